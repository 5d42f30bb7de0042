/**
 * What a program's kernels must be able to do, and words that compilers spell differently.
 *
 * The headers of this folder hold the computation of each op, as static functions over plain
 * structs. The engine includes them, and so does a network written as C source. They are written in
 * what C99 and C++17 have in common. They need memcpy and memset, and no other function.
 *
 * A program that runs one known network defines some of these macros as 0. What it does not need is
 * then not compiled. The results do not change.
 */
#ifndef QK_FEATURES_H
#define QK_FEATURES_H

#ifndef QK_WIDE
#define QK_WIDE 1 /* 16-bit codes */
#endif
#ifndef QK_PACKED
#define QK_PACKED 1 /* weights whose codes share bytes */
#endif
#ifndef QK_NARROW_SHIFT
#define QK_NARROW_SHIFT 1 /* shifts of a byte each */
#endif
#ifndef QK_DOUBLE
#define QK_DOUBLE 1 /* QI_ROUND_DOUBLE */
#endif
#ifndef QK_EVEN
#define QK_EVEN 1 /* QI_ROUND_EVEN */
#endif
#ifndef QK_ONCE
#define QK_ONCE 1 /* QI_ROUND_ONCE */
#endif
#ifndef QK_FRACTION
#define QK_FRACTION 1 /* accumulators with fractional bits */
#endif
#ifndef QK_FEW_CHANNELS
#define QK_FEW_CHANNELS 1 /* a row of one to three output channels has a loop of its own */
#endif
#ifndef QK_LARGE
#define QK_LARGE 1 /* pictures with a side above 32767, or with a central crop: divides 64 bits */
#endif

#ifndef QK_ONE_FILE
#define QK_ONE_FILE 0 /* the program's layers are all in one file */
#endif

/*
 * Which loops. The results are the same:
 *
 *   QK_VECTORS  plain loops over arrays, of which the compiler makes vectors
 *   QK_MVE      sixteen products at a time: Cortex-M55, M85 (Helium)
 *   QK_DSP      two products at a time: Cortex-M4, M7, M33 (arm_dsp.h)
 *   else        one product at a time: Cortex-M0+, M3, RISC-V
 *
 * A test defines them to try on one processor what was written for another.
 */
#ifndef QK_VECTORS
#if defined __SSE2__ || defined __ARM_NEON || defined __riscv_vector || defined __wasm_simd128__
#define QK_VECTORS 1
#else
#define QK_VECTORS 0
#endif
#endif
#ifndef QK_MVE
#if defined __ARM_FEATURE_MVE && !QK_VECTORS
#define QK_MVE 1
#else
#define QK_MVE 0
#endif
#endif
#ifndef QK_DSP
#if defined __ARM_FEATURE_DSP && !QK_VECTORS
#define QK_DSP 1
#else
#define QK_DSP 0
#endif
#endif

#define QK_INLINE static inline
#ifdef __GNUC__
#define QK_RESTRICT __restrict
#define QK_HOT      static inline __attribute__((always_inline)) /* parts of inner loops */
#define QK_APART    static __attribute__((noinline, unused))     /* seldom used: once in memory */
#else
#define QK_RESTRICT
#define QK_HOT   static inline
#define QK_APART static inline
#endif
#if QK_VECTORS
#define QK_SHARED QK_INLINE
#else
#define QK_SHARED QK_APART /* once in memory, where memory is small */
#endif

#endif

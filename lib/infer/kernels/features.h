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

#define QK_INLINE static inline
#ifdef __GNUC__
#define QK_RESTRICT __restrict
#else
#define QK_RESTRICT
#endif

#endif

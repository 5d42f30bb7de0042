/**
 * NEON intrinsics: those of the compiler, or, with QI_SIMDE, the portable ones of SIMDe, so that
 * every inner loop can be checked on any processor. QI_VARIANT gives the two builds of one file
 * different names.
 */
#ifndef QI_HOST_ARM_INTRINSICS_H
#define QI_HOST_ARM_INTRINSICS_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef QI_SIMDE

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>

#define QI_VARIANT(name) name##_simde

/** SRSHL by -n, 0 <= n <= 31: floor(a / 2^n + 1/2). SIMDe 0.7.4~rc2 overflows near INT32_MAX. */
INLINE int32x4_t qi_rounding_shift(int32x4_t a, int32x4_t minus_n)
{
    int32_t lane[4], shift[4];
    vst1q_s32(lane, a);
    vst1q_s32(shift, minus_n);
    for (int i = 0; i < 4; i++)
        lane[i] = (int32_t)(((int64_t)lane[i] + ((INT64_C(1) << -shift[i]) >> 1)) >> -shift[i]);
    return vld1q_s32(lane);
}

#else

#include <arm_neon.h>

#define QI_VARIANT(name)  name
#define qi_rounding_shift vrshlq_s32

#endif

/* One instruction on 64-bit ARM; two halves on 32-bit ARM. */
#if defined(QI_SIMDE) || defined(__aarch64__)

#define qi_pairwise_add      vpaddq_s32
#define qi_pairwise_add16    vpaddq_s16
#define qi_multiply_high     vmull_high_s8
#define qi_multiply_add_high vmlal_high_s8

#else

/** Sums of neighbours: a0 + a1, a2 + a3, b0 + b1, b2 + b3. */
INLINE int32x4_t qi_pairwise_add(int32x4_t a, int32x4_t b)
{
    return vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)),
                        vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
}

INLINE int16x8_t qi_pairwise_add16(int16x8_t a, int16x8_t b)
{
    return vcombine_s16(vpadd_s16(vget_low_s16(a), vget_high_s16(a)),
                        vpadd_s16(vget_low_s16(b), vget_high_s16(b)));
}

/** Products of bytes 8..15. */
INLINE int16x8_t qi_multiply_high(int8x16_t a, int8x16_t b)
{
    return vmull_s8(vget_high_s8(a), vget_high_s8(b));
}

INLINE int16x8_t qi_multiply_add_high(int16x8_t sum, int8x16_t a, int8x16_t b)
{
    return vmlal_s8(sum, vget_high_s8(a), vget_high_s8(b));
}

#endif

#endif

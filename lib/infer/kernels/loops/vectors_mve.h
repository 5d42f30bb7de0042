/**
 * What loops for processors with Helium share. It names nothing that other processors would lack a
 * use for.
 *
 * VQRDMULH is SQRDMULH, and VRSHL shifts to the right by a negative number and rounds ties up. So
 * ties go away from zero if 1 is first subtracted from numbers below 0, as in requant_quick.h.
 */
#ifndef QK_VECTORS_MVE_H
#define QK_VECTORS_MVE_H

#include "infer/kernels/parts/codes.h"

#include <stddef.h>

#if QK_MVE
#include <arm_mve.h>

/** Bytes as signed codes: they are flipped so. */
QK_INLINE uint8_t qk_mve_flip(qi_codes c)
{
    return (uint8_t)(c.flip ^ 0x80);
}

/** The sum of the bytes of one row. */
QK_HOT int32_t qk_mve_sum(const uint8_t *x, size_t depth)
{
    int32_t sum = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[x]], #16\n"
                     "vaddva.s8 %[s], q0\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [x] "+&r"(x), [s] "+&Te"(sum)
                     : [n] "r"(depth)
                     : "q0", "lr", "memory");
    return sum;
}

/** The sum of products of two rows. */
QK_HOT int32_t qk_mve_dot(const uint8_t *w, const uint8_t *x, size_t depth)
{
    int32_t sum = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[w]], #16\n"
                     "vldrb.8 q1, [%[x]], #16\n"
                     "vmladava.s8 %[s], q0, q1\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [w] "+&r"(w), [x] "+&r"(x), [s] "+&Te"(sum)
                     : [n] "r"(depth)
                     : "q0", "q1", "lr", "memory");
    return sum;
}

/** What is the same for all outputs of a layer. */
typedef struct qk_mve_limits {
    int32x4_t lo, hi;
    int32_t zero_point;
} qk_mve_limits;

QK_HOT qk_mve_limits qk_mve_limits_of(int32_t zero_point, int32_t lo, int32_t hi)
{
    qk_mve_limits l;
    l.lo = vdupq_n_s32(lo);
    l.hi = vdupq_n_s32(hi);
    l.zero_point = zero_point;
    return l;
}

/** x / 2^-shift, ties away from zero; shift: -31..-1, x above INT32_MIN. */
QK_HOT int32x4_t qk_mve_divide(int32x4_t x, int32x4_t shift)
{
    return vrshlq_s32(vaddq_s32(x, vshrq_n_s32(x, 31)), shift);
}

/** The codes of values without zero_point. */
QK_HOT int32x4_t qk_mve_limit(const qk_mve_limits *l, int32x4_t value)
{
    return vminq_s32(vmaxq_s32(vqaddq_n_s32(value, l->zero_point), l->lo), l->hi);
}

/** qi_requantize; any shifts. */
QK_HOT int32x4_t qk_mve_twice(int32x4_t acc, int32x4_t mult, int32x4_t shift)
{
    int32x4_t const none = vdupq_n_s32(0), right = vminq_s32(shift, none);
    int32x4_t const x = vqrdmulhq_s32(vqshlq_s32(acc, vmaxq_s32(shift, none)), mult);
    return vrshlq_s32(vaddq_s32(x, vshrq_n_s32(vandq_s32(x, right), 31)), right);
}

#endif

#endif

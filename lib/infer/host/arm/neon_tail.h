/**
 * Turns accumulators into codes with NEON; Jacob et al. appendix B.
 *
 * qi_requantize of a sum s, multiplier m, shift = left - right (one of which is 0), four lanes:
 *
 *   x = SQRDMULH(SQSHL(s, left), m)         saturating left shift; ties up
 *   q = SRSHL(SQADD(x, fix), -right)        ties up, but for the fix: away from zero
 *
 * fix is -1 if x < 0 and right > 0, else 0. A negative x on a tie, x = -(2 j + 1) 2^(right - 1),
 * becomes x - 1, which is no tie and rounds to -(j + 1). A negative x that is not on a tie keeps
 * its nearest integer: x - 1 lies at most on the tie below it, which SRSHL rounds up. SQADD leaves
 * INT32_MIN, a multiple of 2^right, unchanged. SRSHL forms its sum without overflow.
 */
#ifndef QI_HOST_ARM_NEON_TAIL_H
#define QI_HOST_ARM_NEON_TAIL_H

#include "infer/host/arm/intrinsics.h"

enum { QI_NEON_LANES = 4 };

/** q of four sums. shift is -right. */
INLINE int32x4_t qi_requantize_lanes(int32x4_t s, int32x4_t left, int32x4_t mult, int32x4_t shift)
{
    int32x4_t const x = vqrdmulhq_s32(vqshlq_s32(s, left), mult);
    int32x4_t const fix = vshrq_n_s32(vandq_s32(x, shift), 31); /* shift < 0 if right > 0 */
    return qi_rounding_shift(vqaddq_s32(x, fix), shift);
}

/**
 * Rounding EVEN of four sums (infer/host/loops/even.h, doubled): their values, and in *equal all
 * bits of the lanes that are not almost ties. minus_right: -right.
 */
INLINE int32x4_t qi_requantize_even_lanes(int32x4_t s, int32x4_t left, int32x4_t mult,
                                          int32x4_t add, int32x4_t span, int32x4_t minus_right,
                                          uint32x4_t *equal)
{
    int32x4_t const low = vaddq_s32(vqdmulhq_s32(vshlq_s32(s, left), mult), add);
    int32x4_t const y = vshlq_s32(low, minus_right);
    *equal = vceqq_s32(y, vshlq_s32(vaddq_s32(low, span), minus_right));
    return y;
}

/** Has every lane all its bits? */
INLINE int qi_all_lanes(uint32x4_t a)
{
    return vget_lane_u64(vreinterpret_u64_u16(vmovn_u32(a)), 0) == UINT64_MAX;
}

/**
 * How values become bytes of the output. All fields are for QI_S8: QI_U8 codes are reduced by 128,
 * and flip turns them back.
 */
typedef struct qi_neon_output {
    int16x8_t zero_point;
    int8x8_t lo, hi;
    uint8x8_t flip;
} qi_neon_output;

INLINE qi_neon_output qi_neon_output_of(int32_t zero_point, int32_t lo, int32_t hi, uint8_t flip)
{
    return (qi_neon_output){vdupq_n_s16((int16_t)zero_point), vdup_n_s8((int8_t)lo),
                            vdup_n_s8((int8_t)hi), vdup_n_u8(flip)};
}

/**
 * The bytes of eight requantized values. The 16-bit sums saturate beyond every bound of the clamp.
 */
INLINE uint8x8_t qi_codes_of_lanes(const qi_neon_output *o, int32x4_t a, int32x4_t b)
{
    int16x8_t const pair = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
    int8x8_t const codes = vqmovn_s16(vqaddq_s16(pair, o->zero_point));
    return veor_u8(vreinterpret_u8_s8(vmin_s8(vmax_s8(codes, o->lo), o->hi)), o->flip);
}

#endif

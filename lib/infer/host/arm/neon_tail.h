/**
 * From accumulators to codes with NEON; Jacob et al. appendix B.
 *
 * qi_requantize of a sum s, multiplier m, shift = left - right (one of which is 0), four lanes:
 *
 *   x = SQRDMULH(SQSHL(s, left), m)         saturating left shift; ties up
 *   q = SRSHL(SQADD(x, fix), -right)        ties up, but for the fix: away from zero
 *
 * fix is -1 where x < 0 and right > 0, else 0. A negative x on a tie, x = -(2 j + 1) 2^(right - 1),
 * becomes x - 1, which no longer is one and rounds to -(j + 1); one that is on no tie keeps its
 * nearest integer, since x - 1 lies at most on the tie below it, which SRSHL rounds up. SQADD
 * leaves INT32_MIN, a multiple of 2^right, as it is; SRSHL forms its sum without overflow.
 */
#ifndef QI_HOST_ARM_NEON_TAIL_H
#define QI_HOST_ARM_NEON_TAIL_H

#include "infer/host/arm/intrinsics.h"
#include "infer/host/gemm_pack.h"

enum { QI_NEON_LANES = 4 };

/** One panel's share of a piece. */
typedef struct qi_neon_job {
    const qi_packed *packed;
    int32_t panel, room, channels; /* room for channels, and how many are written */
    const int32_t *columns;
    const uint8_t *x; /* of the tile's first row */
    size_t x_stride;
    const int32_t *row_terms; /* of the tile's rows */
    uint8_t *y;               /* of the tile's first row and the panel's first channel */
    size_t y_stride;
} qi_neon_job;

INLINE int32x4_t qi_column(const qi_neon_job *j, int which, int v)
{
    return vld1q_s32(j->columns + which * j->room + v * QI_NEON_LANES);
}

/** What sums start from: bias' of four channels and the row's term. */
INLINE int32x4_t qi_start(const qi_neon_job *j, int row, int v)
{
    return vaddq_s32(qi_column(j, QI_COLUMN_BIAS, v), vdupq_n_s32(j->row_terms[row]));
}

INLINE int32x4_t qi_requantize_lanes(const qi_neon_job *j, int v, int32x4_t s)
{
    int32x4_t const shifted = vqshlq_s32(s, qi_column(j, QI_COLUMN_LEFT, v));
    int32x4_t const x = vqrdmulhq_s32(shifted, qi_column(j, QI_COLUMN_MULT, v));
    int32x4_t const shift = vnegq_s32(qi_column(j, QI_COLUMN_RIGHT, v));
    int32x4_t const fix = vshrq_n_s32(vandq_s32(x, shift), 31); /* shift < 0 where right > 0 */
    return qi_rounding_shift(vqaddq_s32(x, fix), shift);
}

/** Bytes of eight requantized values: zero-point, clamp, and the output's type. The 16-bit sums
 *  saturate beyond every bound of the clamp. */
INLINE uint8x8_t qi_codes_of_lanes(const qi_packed *p, int32x4_t a, int32x4_t b)
{
    int16x8_t const pair = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
    int16x8_t const moved = vqaddq_s16(pair, vdupq_n_s16((int16_t)p->zero_point));
    int8x8_t const limited =
        vmin_s8(vmax_s8(vqmovn_s16(moved), vdup_n_s8((int8_t)p->lo)), vdup_n_s8((int8_t)p->hi));
    return veor_u8(vreinterpret_u8_s8(limited), vdup_n_u8((uint8_t)p->y_flip));
}

/** Rounding DOUBLE, one row of a panel of one or two vectors: through memory, by the scalar
 *  functions. Values in and out, and no inlining, so that a tile's sums stay in registers. */
static __attribute__((noinline)) int32x4x2_t qi_requantize_in_memory(const qi_neon_job *j,
                                                                     int32x4x2_t sums)
{
    int32_t lane[2 * QI_NEON_LANES];
    vst1q_s32(lane, sums.val[0]);
    vst1q_s32(lane + QI_NEON_LANES, sums.val[1]);
    qi_requantize_row(j->packed, j->panel, QI_NEON_LANES, lane);
    sums.val[0] = vld1q_s32(lane);
    sums.val[1] = vld1q_s32(lane + QI_NEON_LANES);
    return sums;
}

/** Sums of one row of a panel of one vector (b is anything) or two to values without zero-point. */
INLINE int32x4x2_t qi_requantize_sums(const qi_neon_job *j, int vectors, int32x4_t a, int32x4_t b)
{
    int32x4x2_t sums = {{a, b}};
    if (j->packed->tail == QI_TAIL_DOUBLE)
        return qi_requantize_in_memory(j, sums);
    for (int v = 0; v < vectors; v++)
        sums.val[v] = qi_requantize_lanes(j, v, sums.val[v]);
    return sums;
}

#endif

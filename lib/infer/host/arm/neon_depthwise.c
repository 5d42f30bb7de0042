/**
 * Depthwise convolutions with the 8-bit multiplications of NEON; see neon_depthwise.h.
 *
 *   SMULL, SMULL2   p[c, 0..3] = x[c, 0..3] w[c, 0..3]          16 bits
 *   ADDP            p[c, 0] + p[c, 1] | p[c, 2] + p[c, 3]       16 bits: see neon_gemm.c
 *   SADALP          sums[c] += both                             32 bits
 *
 * `apart` adds neighbours in 32 bits instead.
 */
#include "infer/host/arm/arm.h"
#include "infer/host/arm/intrinsics.h"

INLINE int32x4_t multiply_quads(int32x4_t sums, int8x16_t x, int8x16_t w, int apart)
{
    int16x8_t const low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
    int16x8_t const high = qi_multiply_high(x, w);
    if (apart)
        return vaddq_s32(sums, qi_pairwise_add(vpaddlq_s16(low), vpaddlq_s16(high)));
    return vpadalq_s16(sums, qi_pairwise_add16(low, high));
}

#include "infer/host/arm/neon_depthwise.h"

const qi_depthwise QI_VARIANT(qi_depthwise_neon) = {
    .name = "neon", .group_bytes = group_bytes, .pack = pack, .interleave = interleave, .run = run};

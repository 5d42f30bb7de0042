/**
 * Depthwise convolutions with the dot products of ARMv8.2. SDOT sums a quad. See neon_depthwise.h.
 */
#include "infer/host/arm/arm.h"
#include "infer/host/arm/intrinsics.h"

INLINE int32x4_t multiply_quads(int32x4_t sums, int8x16_t x, int8x16_t w, int apart)
{
    return vdotq_s32(sums, x, w);
}

#include "infer/host/arm/neon_depthwise.h"

const qi_depthwise QI_VARIANT(qi_depthwise_neondot) = {.name = "neondot",
                                                       .group_bytes = group_bytes,
                                                       .pack = pack,
                                                       .interleave = interleave,
                                                       .run = run};

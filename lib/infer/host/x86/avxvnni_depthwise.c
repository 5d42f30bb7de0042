/**
 * Depthwise convolutions with AVX-VNNI: like avx512vnni_depthwise.c, in registers of 8 lanes. A
 * weight w - Z_w outside -128..127 (only in uint8 models) is split into two that fit.
 */
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

/** Quads of 8 lanes, unchanged. */
typedef __m256i column;

enum { DOT_BYTES = 32 };

INLINE column column_of(__m256i quads)
{
    return quads;
}

INLINE __m256i dot(__m256i sum, const column *c, const uint8_t *w)
{
    return qi_dpbusd256(sum, *c, _mm256_load_si256((const __m256i *)(const void *)w));
}

#include "infer/host/x86/depthwise_blocks_256.h"

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) + 2 * (size_t)rows * (size_t)taps * (wide ? 2 : 1) * DOT_BYTES;
}

/** Write the part of each weight that fits int8; after all of them, the rest of each. */
static void pack(const qi_depthwise_group *group, void *to)
{
    qi_depthwise_head *head = to;
    size_t const taps = (size_t)group->rows * (size_t)group->taps;
    int8_t *fit = (int8_t *)(head + 1), *rest = fit + 2 * taps * DOT_BYTES;
    qi_depthwise_pack_head(group, head);
    for (size_t half = 0; half < 2; half++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t i = 0; i < DOT_BYTES; i++) {
                int16_t const w = group->weights[(tap * LANES + half * HALF) * 4 + i];
                *fit = (int8_t)qi_clamp(w, INT8_MIN, INT8_MAX);
                int8_t const over = (int8_t)(w - *fit++);
                head->spilled |= over != 0;
                if (group->wide)
                    *rest++ = over;
            }
}

const qi_depthwise QI_VARIANT(qi_depthwise_avxvnni) = {.name = "avxvnni",
                                                       .group_bytes = group_bytes,
                                                       .pack = pack,
                                                       .interleave = interleave,
                                                       .run = run,
                                                       .run_block = run_block,
                                                       .block_rows = 1};

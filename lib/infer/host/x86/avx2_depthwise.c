/**
 * Depthwise convolutions with AVX2. The bytes of a quad become two pairs of int16, and
 *
 *   sum += x0 w0 + x2 w2,  sum += x1 w1 + x3 w3      VPMADDWD: s16 * s16, pairs added in 32 bits
 *
 * x <= 255 and |w - Z_w| <= 255, so nothing saturates and no weight must be split.
 */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide256.h"

/** Quads of 8 lanes: bytes 0 and 2, bytes 1 and 3. */
typedef struct column {
    vector even, odd;
} column;

enum { DOT_BYTES = 2 * BYTES, SPLITS = 0 };

INLINE column column_of(vector quads)
{
    return (column){v_and(quads, V(set1_epi16)(0xff)), V(srli_epi16)(quads, 8)};
}

INLINE vector dot(vector sum, const column *c, const uint8_t *w)
{
    vector const even = V(madd_epi16)(c->even, v_load(w));
    vector const odd = V(madd_epi16)(c->odd, v_load(w + BYTES));
    return V(add_epi32)(sum, V(add_epi32)(even, odd));
}

#include "infer/host/x86/depthwise_wide.h"

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) + PARTS * (size_t)rows * (size_t)taps * DOT_BYTES;
}

static void pack(const qi_depthwise_group *group, void *to)
{
    qi_depthwise_head *head = to;
    int16_t *w = (int16_t *)(head + 1);
    size_t const taps = (size_t)group->rows * (size_t)group->taps;
    qi_depthwise_pack_head(group, head);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t tap = 0; tap < taps; tap++, w += DOT_BYTES / 2)
            for (size_t i = 0; i < 4 * LANES; i++)
                w[i % 2 * 2 * LANES + i / 4 * 2 + i % 4 / 2] =
                    group->weights[((tap * PARTS + part) * LANES) * 4 + i];
}

const qi_depthwise QI_VARIANT(qi_depthwise_avx2) = {.name = "avx2",
                                                    .group_bytes = group_bytes,
                                                    .pack = pack,
                                                    .interleave = interleave,
                                                    .run = run,
                                                    .run_block = run_block,
                                                    .block_rows = 1};

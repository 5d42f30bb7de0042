/**
 * Depthwise convolutions with AVX2. The bytes of a quad become two pairs of int16, and
 *
 *   sum += x0 w0 + x2 w2,  sum += x1 w1 + x3 w3      VPMADDWD: s16 * s16, pairs added in 32 bits
 *
 * x <= 255 and |w - Z_w| <= 255, so nothing saturates and no weight must be split.
 */
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

/** Quads of 8 lanes: bytes 0 and 2, bytes 1 and 3. */
typedef struct column {
    __m256i even, odd;
} column;

enum { DOT_BYTES = 64 };

INLINE column column_of(__m256i quads)
{
    return (column){_mm256_and_si256(quads, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(quads, 8)};
}

INLINE __m256i dot(__m256i sum, const column *c, const uint8_t *w)
{
    const __m256i *weights = (const __m256i *)(const void *)w;
    __m256i const even = _mm256_madd_epi16(c->even, _mm256_load_si256(weights));
    __m256i const odd = _mm256_madd_epi16(c->odd, _mm256_load_si256(weights + 1));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}

#include "infer/host/x86/depthwise_blocks_256.h"

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) + 2 * (size_t)rows * (size_t)taps * DOT_BYTES;
}

static void pack(const qi_depthwise_group *group, void *to)
{
    qi_depthwise_head *head = to;
    int16_t *w = (int16_t *)(head + 1);
    size_t const taps = (size_t)group->rows * (size_t)group->taps;
    qi_depthwise_pack_head(group, head);
    for (size_t half = 0; half < 2; half++)
        for (size_t tap = 0; tap < taps; tap++, w += DOT_BYTES / 2)
            for (size_t i = 0; i < 4 * HALF; i++)
                w[i % 2 * 2 * HALF + i / 4 * 2 + i % 4 / 2] =
                    group->weights[(tap * LANES + half * HALF) * 4 + i];
}

const qi_depthwise QI_VARIANT(qi_depthwise_avx2) = {.name = "avx2",
                                                    .group_bytes = group_bytes,
                                                    .pack = pack,
                                                    .interleave = interleave,
                                                    .run = run,
                                                    .run_block = run_block,
                                                    .block_rows = 1};

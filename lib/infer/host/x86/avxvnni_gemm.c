/**
 * Matrix products with AVX-VNNI: avx512vnni_gemm.c with registers of 256 bits.
 *
 *   sums[r][n] += x'[r, 4 g .. 4 g + 3] . w'[n, 4 g .. 4 g + 3]      VPDPBUSD: u8 * s8, four
 * products a lane, added without saturation
 *
 * A tile is up to 6 rows x 16 channels: 12 sums, 2 registers of weights, and the x' of one row at a
 * time in all lanes.
 */
#include "infer/host/x86/gemm256.h"

enum { ROWS = 6 };

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = 4, .weight_size = 1};

INLINE int32_t load_word(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

INLINE __m256i load(const uint8_t *at)
{
    return _mm256_load_si256((const __m256i *)(const void *)at);
}

/** rows (a constant) x vectors * 8 channels. */
INLINE void tile(const struct job *j, int rows, int vectors)
{
    int const room = vectors * LANES;
    const uint8_t *w = (const uint8_t *)(j->columns + QI_COLUMNS * room), *x = j->x;
    const uint8_t *next = j->next;
    ACCUMULATORS(sums, rows, vectors)
    for (int32_t s = j->segments; s > 0; s--) {
        const uint8_t *end = w + j->run * (size_t)room, *from = x, *later = next;
        for (; w < end; w += 4 * room, from += 4, later += j->next_step) {
            _mm_prefetch((const char *)later, _MM_HINT_T1);
            __m256i const w0 = load(w), w1 = vectors == 2 ? load(w + 32) : w0;
            UNROLL
            for (int r = 0; r < rows; r++) {
                __m256i const codes = _mm256_set1_epi32(load_word(from + (size_t)r * j->x_stride));
                sums[r][0] = qi_dpbusd256(sums[r][0], codes, w0);
                if (vectors == 2)
                    sums[r][1] = qi_dpbusd256(sums[r][1], codes, w1);
            }
        }
        w = end;
        x += j->segment_stride;
        next += j->run / 4 * j->next_step;
    }
    finish(j, rows, vectors, (const __m256i(*)[VECTORS])sums);
}

SIX_ROWS_OF_TILES

static void run(const qi_gemm_run *run)
{
    run_codes(run, ROWS, tiles);
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return qi_packed_bytes(layer, &shape);
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_pack(layer, &shape, packed);
}

const qi_gemm QI_VARIANT(qi_gemm_avxvnni) = {.name = "avxvnni",
                                             .row_tile = ROWS,
                                             .channel_tile = VECTORS * LANES,
                                             .least_channels = LANES,
                                             .line_rows = 5,
                                             .unsigned_x = 1,
                                             .packed_bytes = packed_bytes,
                                             .pack = pack,
                                             .run = run};

/**
 * Matrix products with AVX2, exact for all codes, with half the multiplications (Winograd 1968):
 *
 *   x0 w0 + x2 w2 = (x0 + w2)(x2 + w0) - x0 x2 - w0 w2
 *
 *   sums[r][n] += (x0 + w2)(x2 + w0) + (x1 + w3)(x3 + w1)      for each four of k, x = x'[r, k ..],
 *                 VPADDW twice; VPMADDWD: int16 * int16,       w = (w - Z_w)[n, k ..]
 *                 two products a lane, added in 32 bits
 *
 * The products of x alone are one term per row. The products of w alone are one term per channel,
 * which packing subtracts from the bias. A processor has fewer pipes for multiplications than for
 * sums. Both ways take four instructions for 32 products, but this way keeps all pipes busy.
 *
 * x' <= 255 and |w - Z_w| <= 255, so the two products of a lane stay below 2^19; sums are taken
 * modulo 2^32. Weights are packed as 16-bit differences. x' is widened into scratch a few rows at a
 * time, where all panels read it. A tile is up to ROWS rows x 16 channels.
 */
#include "infer/host/x86/avx2_bytes_gemm.h"
#include "infer/host/x86/gemm256.h"

enum { ROWS = 4, GROUP = 4, CHUNK_ROWS = 64, CHUNK_BYTES = 1 << 18 };

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = GROUP, .weight_size = 2};

/* ------------------------------------------------------------------ x in 16 bits */

/** int16 per row of scratch: K rounded up to a register. */
static size_t widened_depth(int32_t depth)
{
    return ((size_t)depth + 15) / 16 * 16;
}

/**
 * How many rows are widened together: as many as stay in the first-level cache, but at least a
 * tile.
 */
static int32_t chunk_rows(int32_t depth)
{
    size_t const fit = CHUNK_BYTES / (widened_depth(depth) * sizeof(int16_t)) / ROWS * ROWS;
    return fit < ROWS ? ROWS : fit > CHUNK_ROWS ? CHUNK_ROWS : (int32_t)fit;
}

static size_t scratch(const qi_gemm_layer *layer)
{
    enum { REGISTER = 32 }; /* the last segment of a row may end up to so much after it */
    return (size_t)chunk_rows(layer->depth) * widened_depth(layer->depth) * sizeof(int16_t) +
           REGISTER;
}

/** Load 16 codes. Only `count` of them exist; the others give x' = 0. */
static __m128i load_codes(const uint8_t *x, int32_t count)
{
    uint8_t some[16];
    if (count >= 16)
        return _mm_loadu_si128((const __m128i *)(const void *)x);
    memset(some, 0, sizeof some);
    memcpy(some, x, (size_t)count);
    return _mm_loadu_si128((const __m128i *)(const void *)some);
}

/** Write x' of a segment as int16, 0 after its end. Subtracts x0 x2 + x1 x3 from sums. */
static __m256i widen_segment(const qi_packed *p, int16_t *to, const uint8_t *x, __m256i sums)
{
    for (int32_t k = 0; k < p->segment; k += 16) {
        __m128i const codes = load_codes(x + k, p->segment - k);
        __m256i const wide = _mm256_cvtepu8_epi16(codes);
        __m256i const later = _mm256_srli_epi64(wide, 32); /* x2 x3 0 0 */
        _mm256_storeu_si256((__m256i *)(void *)(to + k), wide);
        sums = _mm256_sub_epi32(sums, _mm256_madd_epi16(wide, later));
    }
    return sums;
}

/** Write x' of a row as int16, 0 after K. Returns the row's term, -sum (x0 x2 + x1 x3). */
static int32_t widen(const qi_packed *p, int16_t *to, const uint8_t *x)
{
    __m256i sums = _mm256_setzero_si256();
    for (int32_t s = 0; s < p->segments; s++, x += p->segment_stride, to += p->segment)
        sums = widen_segment(p, to, x, sums);
    __m128i const half =
        _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_unpackhi_epi64(half, half)));
}

/* ------------------------------------------------------------------ tiles */

INLINE int32_t load_pair(const int16_t *at)
{
    int32_t pair;
    memcpy(&pair, at, sizeof pair);
    return pair;
}

INLINE __m256i load(const int16_t *at)
{
    return _mm256_load_si256((const __m256i *)(const void *)at);
}

/** (x0 + w2)(x2 + w0) + (x1 + w3)(x3 + w1). x0 also holds x1, and so on. */
INLINE __m256i products_of(__m256i x0, __m256i x2, __m256i w0, __m256i w2)
{
    return _mm256_madd_epi16(_mm256_add_epi16(x0, w2), _mm256_add_epi16(x2, w0));
}

/** rows (a constant) x vectors * 8 channels. */
INLINE void tile(const struct job *j, int rows, int vectors)
{
    int const room = vectors * LANES;
    const int16_t *w = (const int16_t *)(const void *)(j->columns + QI_COLUMNS * room), *x = j->x;
    const int16_t *end = w + (size_t)j->packed->groups * GROUP * (size_t)room;
    size_t const stride = j->x_stride / sizeof *x;
    const uint8_t *next = j->next;
    ACCUMULATORS(sums, rows, vectors)
#pragma GCC unroll 2
    for (; w < end; w += GROUP * room, x += GROUP, next += j->next_step) {
        const int16_t *second = w + 2 * room; /* w2 w3 of each channel */
        _mm_prefetch((const char *)next, _MM_HINT_T1);
        __m256i const w0 = load(w), w2 = load(second);
        __m256i const v0 = vectors == 2 ? load(w + 16) : w0;
        __m256i const v2 = vectors == 2 ? load(second + 16) : w2;
        UNROLL
        for (int r = 0; r < rows; r++) {
            const int16_t *at = x + (size_t)r * stride;
            __m256i const x0 = _mm256_set1_epi32(load_pair(at));
            __m256i const x2 = _mm256_set1_epi32(load_pair(at + 2));
            sums[r][0] = _mm256_add_epi32(sums[r][0], products_of(x0, x2, w0, w2));
            if (vectors == 2)
                sums[r][1] = _mm256_add_epi32(sums[r][1], products_of(x0, x2, v0, v2));
        }
    }
    finish(j, rows, vectors, (const __m256i(*)[VECTORS])sums);
}

TILES(1)
TILES(2)
TILES(3)
TILES(4)

static const tile_table tiles = {{NULL, narrow_1, narrow_2, narrow_3, narrow_4},
                                 {NULL, wide_1, wide_2, wide_3, wide_4}};

/* ------------------------------------------------------------------ pieces */

static void run_panel(const qi_packed *p, int32_t panel, const qi_gemm_run *run, int32_t row,
                      int32_t rows, const int32_t *row_terms)
{
    int32_t const first = panel * p->panel_channels, room = qi_panel_room(p, panel);
    int32_t const left = run->end_channel - first;
    struct job j = {.packed = p,
                    .panel = panel,
                    .channels = left < room ? left : room,
                    .columns = qi_panel_at(p, panel),
                    .x = run->scratch,
                    .x_stride = widened_depth(p->depth) * sizeof(int16_t),
                    .row_terms = row_terms,
                    .y = run->y + (size_t)row * run->y_stride + first,
                    .y_stride = run->y_stride};
    share_next(&j, (rows + ROWS - 1) / ROWS);
    run_rows(&j, rows, ROWS, tiles[room / LANES - 1]);
}

static void run(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    int32_t const step = chunk_rows(p->depth);
    int32_t row_terms[CHUNK_ROWS];
    for (int32_t row = 0; row < run->rows; row += step) {
        int32_t const rows = run->rows - row < step ? run->rows - row : step;
        int16_t *to = run->scratch;
        for (int32_t r = 0; r < rows; r++)
            row_terms[r] =
                widen(p, to + (size_t)r * widened_depth(p->depth), qi_gemm_row(run, row + r));
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            run_panel(p, n / p->panel_channels, run, row, rows, row_terms);
    }
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return qi_packed_bytes(layer, &shape);
}

/** Subtract sum (w0 w2 + w1 w3) from the biases of a panel. */
static void fold_weights(const qi_packed *p, int32_t panel)
{
    int32_t const room = qi_panel_room(p, panel);
    int32_t *bias = (int32_t *)(uintptr_t)qi_panel_at(p, panel) + QI_COLUMN_BIAS * room;
    const int16_t *w = (const int16_t *)(const void *)(bias + QI_COLUMNS * room);
    for (int32_t g = 0; g < p->groups; g++, w += GROUP * room)
        for (int32_t i = 0; i < room; i += LANES) {
            __m256i *at = (__m256i *)(void *)(bias + i);
            __m256i const products = _mm256_madd_epi16(load(w + 2 * i), load(w + 2 * (room + i)));
            _mm256_store_si256(at, _mm256_sub_epi32(_mm256_load_si256(at), products));
        }
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_pack(layer, &shape, packed);
    for (int32_t i = 0; i < qi_panels(packed); i++)
        fold_weights(packed, i);
}

/* ------------------------------------------------------------------ the choice */

static size_t most_packed_bytes(const qi_gemm_layer *layer)
{
    size_t const bytes = qi_avx2_bytes_packed(layer, qi_avx2_bytes_most_entries(layer));
    size_t const widened = packed_bytes(layer);
    return bytes > widened ? bytes : widened;
}

static size_t packed_bytes_of(const qi_gemm_layer *layer)
{
    if (!layer->weights)
        return most_packed_bytes(layer);
    int32_t const entries = qi_avx2_bytes_entries(layer);
    return entries ? qi_avx2_bytes_packed(layer, entries) : packed_bytes(layer);
}

static void pack_either(const qi_gemm_layer *layer, void *packed)
{
    int32_t const entries = qi_avx2_bytes_entries(layer);
    if (entries)
        qi_avx2_bytes_pack(layer, entries, packed);
    else
        pack(layer, packed);
}

static void run_either(const qi_gemm_run *run_)
{
    const qi_packed *p = run_->packed;
    if (p->entries)
        qi_avx2_bytes_run(run_);
    else
        run(run_);
}

static const char *sequence(const void *packed)
{
    const qi_packed *p = packed;
    return p->entries ? "vpmaddubsw vpmaddwd vpaddd" : "vpaddw vpaddw vpmaddwd vpaddd";
}

const qi_gemm QI_VARIANT(qi_gemm_avx2) = {.name = "avx2",
                                          .row_tile = ROWS,
                                          .channel_tile = VECTORS * LANES,
                                          .least_channels = LANES,
                                          .line_rows = 3,
                                          .unsigned_x = 1,
                                          .packed_bytes = packed_bytes_of,
                                          .pack = pack_either,
                                          .scratch = scratch,
                                          .run = run_either,
                                          .sequence = sequence};

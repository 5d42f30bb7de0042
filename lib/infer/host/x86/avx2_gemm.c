/**
 * Matrix products with AVX2, exact for all codes.
 *
 *   sums[r][n] += x'[r, 2 g .. 2 g + 1] . (w - Z_w)[n, 2 g .. 2 g + 1]
 *                               VPMADDWD: int16 * int16, two products a lane, added in 32 bits
 *
 * x' <= 255 and |w - Z_w| <= 255, so a lane's two products stay below 2^17. Weights are packed as
 * differences of 16 bits; x' is widened a few rows at a time into scratch, where all panels read
 * it. A tile is up to ROWS rows x 16 channels.
 */
#include "infer/host/x86/avx2_bytes_gemm.h"
#include "infer/host/x86/gemm256.h"

enum { ROWS = 6, CHUNK_BYTES = 1 << 15 };

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = 2, .weight_size = 2};

/* ------------------------------------------------------------------ x in 16 bits */

/** int16 in a row of scratch: K rounded up to a register. */
static size_t widened_depth(int32_t depth)
{
    return ((size_t)depth + 15) / 16 * 16;
}

/** Rows that are widened together: as many as stay in the first-level cache, but a tile. */
static int32_t chunk_rows(int32_t depth)
{
    size_t const fit = CHUNK_BYTES / (widened_depth(depth) * sizeof(int16_t)) / ROWS * ROWS;
    return fit < ROWS ? ROWS : fit > 64 ? 64 : (int32_t)fit;
}

static size_t scratch(const qi_gemm_layer *layer)
{
    return (size_t)chunk_rows(layer->depth) * widened_depth(layer->depth) * sizeof(int16_t);
}

/** x' as int16; what lies behind K meets weights 0. */
static void widen(const qi_packed *p, int16_t *to, const uint8_t *x)
{
    __m128i const flip = _mm_set1_epi32(p->x_flip);
    for (int32_t k = 0; k < p->depth; k += 16) {
        __m128i const codes = _mm_loadu_si128((const __m128i *)(const void *)(x + k));
        _mm256_store_si256((__m256i *)(void *)(to + k),
                           _mm256_cvtepu8_epi16(_mm_xor_si128(codes, flip)));
    }
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

/** rows (a constant) x vectors * 8 channels. */
INLINE void tile(const struct job *j, int rows, int vectors)
{
    int const room = vectors * LANES;
    const int16_t *w = (const int16_t *)(const void *)(j->columns + QI_COLUMNS * room), *x = j->x;
    const int16_t *end = w + (size_t)j->packed->groups * 2 * (size_t)room;
    size_t const stride = j->x_stride / sizeof *x;
    __m256i sums[ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = column(j, QI_COLUMN_BIAS, room, v);
    for (; w < end; w += 2 * room, x += 2) {
        __m256i const w0 = load(w), w1 = vectors == 2 ? load(w + 16) : w0;
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m256i const pair = _mm256_set1_epi32(load_pair(x + (size_t)r * stride));
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(pair, w0));
            if (vectors == 2)
                sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(pair, w1));
        }
    }
    finish(j, rows, vectors, sums);
}

SIX_ROWS_OF_TILES

/* ------------------------------------------------------------------ pieces */

static void run_panel(const qi_packed *p, int32_t panel, const qi_gemm_run *run, int32_t row,
                      int32_t rows)
{
    int32_t const first = panel * p->panel_channels, room = qi_panel_room(p, panel);
    int32_t const left = run->end_channel - first;
    struct job j = {.packed = p,
                    .panel = panel,
                    .channels = left < room ? left : room,
                    .columns = qi_panel_at(p, panel),
                    .x = run->scratch,
                    .x_stride = widened_depth(p->depth) * sizeof(int16_t),
                    .y = run->y + (size_t)row * run->y_stride + first,
                    .y_stride = run->y_stride};
    run_rows(&j, rows, ROWS, tiles[room / LANES - 1]);
}

static void run(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    int32_t const step = chunk_rows(p->depth);
    for (int32_t row = 0; row < run->rows; row += step) {
        int32_t const rows = run->rows - row < step ? run->rows - row : step;
        int16_t *to = run->scratch;
        for (int32_t r = 0; r < rows; r++)
            widen(p, to + (size_t)r * widened_depth(p->depth),
                  run->x + (size_t)(row + r) * run->x_stride);
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            run_panel(p, n / p->panel_channels, run, row, rows);
    }
}

static size_t packed_bytes(const qi_gemm_layer *layer)
{
    return qi_packed_bytes(layer, &shape);
}

static void pack(const qi_gemm_layer *layer, void *packed)
{
    qi_pack(layer, &shape, packed);
}

/* ------------------------------------------------------------------ the choice */

static size_t packed_bytes_of(const qi_gemm_layer *layer)
{
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
    return p->entries ? "vpmaddubsw vpmaddwd vpaddd" : "vpmaddwd vpaddd";
}

const qi_gemm QI_VARIANT(qi_gemm_avx2) = {.name = "avx2",
                                          .row_tile = ROWS,
                                          .channel_tile = VECTORS * LANES,
                                          .packed_bytes = packed_bytes_of,
                                          .pack = pack_either,
                                          .scratch = scratch,
                                          .run = run_either,
                                          .sequence = sequence};

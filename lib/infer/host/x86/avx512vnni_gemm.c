/**
 * Matrix products with AVX-512 VNNI.
 *
 *     sums[r][n] += x'[r, 4 g .. 4 g + 3] . w'[n, 4 g .. 4 g + 3]
 *                   VPDPBUSD: u8 * s8, four products a lane, added without saturation
 *
 * A tile is up to 12 rows x 32 channels: 24 accumulators, 2 registers of weights, and the x' of one
 * row at a time in all lanes. A narrow last panel has 16 channels. Sums become codes in registers
 * (gemm512.h).
 */
#include "infer/host/x86/gemm512.h"

enum { CALL_ROWS = 240 /* a multiple of ROWS */ };

/** The share of a piece that one panel computes. */
struct job {
    struct panel panel;
    size_t x_stride, x_three, x_five; /* of one row, of three, of five */
    int32_t segments;
    size_t run, segment_stride; /* bytes of x in a segment, in whole groups; to the next one */
    const uint8_t *next;        /* what the next tile brings into the second-level cache */
    size_t next_step, segment_share, share; /* bytes of it for each group, segment, tile */
    int32_t tiles, height, higher;          /* of a line: the first `higher` ones have a row more */
    qi_gemm_flips flips;
};

INLINE int32_t load_word(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/**
 * Rows are addressed from two places. Strides of one, three and five rows, with a factor of up to
 * 4, reach six rows from each. The compiler would add strides up in every step if it knew that they
 * belong together, and additions take the place of multiplies.
 */
enum { HALF = ROWS / 2, LINE = 64 };

/**
 * rows (a constant) x vectors * 16 channels. The loop's accumulators are variables of their own,
 * whose address is never taken, so that the compiler keeps them in registers. While it works on a
 * panel, it has its share of the next one brought into the second-level cache. With `flips` (a
 * constant), each group flips a cache line of codes for later tiles: 16 K bytes a tile, of which 12
 * rows read 12 K.
 */
INLINE void tile(const struct job *j, const uint8_t *x, uint8_t *y, const int32_t *row_terms,
                 const uint8_t *next, int rows, int vectors, int flips)
{
    int const room = vectors * LANES;
    const uint8_t *w = (const uint8_t *)(j->panel.columns + QI_COLUMNS * room);
    size_t const step = j->next_step, half = step / 2;
    size_t const stride = j->x_stride, three = j->x_three, five = j->x_five;
    __m512i const signs = _mm512_set1_epi8(INT8_MIN);
    const uint8_t *codes_of_later = j->flips.codes;
    uint8_t *flipped = j->flips.to;
    __m512i accumulators[ROWS][VECTORS], sums[ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        accumulators[r][v] = column(&j->panel, QI_COLUMN_BIAS, room, v);
    for (int32_t s = j->segments; s > 0; s--) {
        const uint8_t *end = w + j->run * (size_t)room, *later = next;
        const uint8_t *upper = x, *lower = x + HALF * stride;
        for (; w < end; w += 4 * room, upper += 4, lower += 4, later += step) {
            __m512i const w0 = _mm512_load_si512(w);
            __m512i const w1 = vectors == 2 ? _mm512_load_si512(w + 64) : w0;
            _mm_prefetch((const char *)later, _MM_HINT_T1);
            _mm_prefetch((const char *)later + half, _MM_HINT_T1);
            if (flips) {
                __m512i const line = _mm512_loadu_si512(codes_of_later);
                _mm512_storeu_si512(flipped, _mm512_xor_si512(line, signs));
                codes_of_later += LINE;
                flipped += LINE;
            }
            UNROLL
            for (int r = 0; r < rows; r++) {
                size_t const way = r % HALF == 3   ? three
                                   : r % HALF == 5 ? five
                                                   : (size_t)(r % HALF) * stride;
                __m512i const codes =
                    _mm512_set1_epi32(load_word((r < HALF ? upper : lower) + way));
                accumulators[r][0] = _mm512_dpbusd_epi32(accumulators[r][0], codes, w0);
                if (vectors == 2)
                    accumulators[r][1] = _mm512_dpbusd_epi32(accumulators[r][1], codes, w1);
            }
        }
        w = end;
        x += j->segment_stride;
        next += j->segment_share;
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = accumulators[r][v];
    if (j->panel.packed->row_factor)
        UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = _mm512_add_epi32(sums[r][v], _mm512_set1_epi32(row_terms[r]));
    finish(&j->panel, y, rows, vectors, sums);
}

/**
 * Of a constant height and width: x, y and row_terms are those of its first row, y is of the
 * panel's first channel, and next is its share of the next panel.
 */
typedef void tile_fn(const struct job *j, const uint8_t *x, uint8_t *y, const int32_t *row_terms,
                     const uint8_t *next);

#define TILES(ROWS_)                                                                               \
    static void wide_##ROWS_(const struct job *j, const uint8_t *x, uint8_t *y,                    \
                             const int32_t *row_terms, const uint8_t *next)                        \
    {                                                                                              \
        tile(j, x, y, row_terms, next, ROWS_, 2, 0);                                               \
    }                                                                                              \
    static void narrow_##ROWS_(const struct job *j, const uint8_t *x, uint8_t *y,                  \
                               const int32_t *row_terms, const uint8_t *next)                      \
    {                                                                                              \
        tile(j, x, y, row_terms, next, ROWS_, 1, 0);                                               \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)

/** The same, flipping. Lower tiles are rare: only of layers with few rows. */
#define FLIPPING(ROWS_)                                                                            \
    static void flipping_##ROWS_(const struct job *j, const uint8_t *x, uint8_t *y,                \
                                 const int32_t *row_terms, const uint8_t *next)                    \
    {                                                                                              \
        tile(j, x, y, row_terms, next, ROWS_, 2, 1);                                               \
    }
FLIPPING(6)
FLIPPING(7)
FLIPPING(8)
FLIPPING(9)
FLIPPING(10)
FLIPPING(11)
FLIPPING(12)

static tile_fn *const tiles[2][ROWS + 1] = {{NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5,
                                             narrow_6, narrow_7, narrow_8, narrow_9, narrow_10,
                                             narrow_11, narrow_12},
                                            {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6,
                                             wide_7, wide_8, wide_9, wide_10, wide_11, wide_12}};
static tile_fn *const flipping_tiles[ROWS + 1] = {
    [6] = flipping_6,   [7] = flipping_7,   [8] = flipping_8,  [9] = flipping_9,
    [10] = flipping_10, [11] = flipping_11, [12] = flipping_12};

/** Compute d sum x' of every row. */
static void fill_row_terms(const qi_packed *p, const qi_gemm_run *run, const qi_gemm_chunk *chunk,
                           int32_t *terms)
{
    __m512i const ones = _mm512_set1_epi8(1);
    for (int32_t r = 0; r < chunk->rows; r++) {
        const uint8_t *x = qi_gemm_row(run, chunk->row + r);
        __m512i sums = _mm512_setzero_si512();
        for (int32_t s = 0; s < p->segments; s++, x += p->segment_stride)
            for (int32_t k = 0; k < p->segment; k += 64) {
                int32_t const left = p->segment - k;
                uint64_t const mask = left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
                sums = _mm512_dpbusd_epi32(sums, qi_load_bytes512(mask, x + k), ones);
            }
        terms[r] = (int32_t)((uint32_t)p->row_factor * (uint32_t)qi_sum_lanes512(sums));
    }
}

/**
 * Compute a tile, and flip codes of later ones: beside the products as long as there are enough of
 * them for each group, else before them. Few channels leave little time for it, so it goes ahead.
 */
static void run_tile(struct job *j, int32_t height, int32_t vectors, const uint8_t *x, uint8_t *y,
                     const int32_t *row_terms)
{
    size_t const bytes = j->run / 4 * LINE; /* a line for each group */
    qi_gemm_flip_until(&j->flips, x + (size_t)height * j->x_stride);
    if (vectors == VECTORS && flipping_tiles[height] && j->flips.to + bytes <= j->flips.end) {
        flipping_tiles[height](j, x, y, row_terms, j->next);
        j->flips.codes += bytes;
        j->flips.to += bytes;
    } else {
        tiles[vectors - 1][height](j, x, y, row_terms, j->next);
    }
    j->next += j->share;
}

/** Compute a chunk with one panel, in tiles whose heights differ by at most one. */
static void run_panel(struct job *j, int32_t panel, const qi_gemm_run *run,
                      const qi_gemm_chunk *chunk, const int32_t *row_terms)
{
    const qi_packed *p = j->panel.packed;
    int32_t const room = qi_panel_room(p, panel);
    set_panel(&j->panel, panel, run);
    uint8_t *y = run->y + (size_t)chunk->row * run->y_stride + panel * p->panel_channels;
    for (int32_t i = 0; i < chunk->lines; i++) {
        const uint8_t *x = chunk->x + (size_t)i * run->line_stride;
        for (int32_t t = 0; t < j->tiles; t++) {
            int32_t const height = j->height + (t < j->higher);
            run_tile(j, height, room / LANES, x, y, row_terms);
            x += (size_t)height * run->x_stride;
            y += (size_t)height * run->y_stride;
            row_terms += height;
        }
    }
}

/** What all tiles of a run share. */
static struct job job_of(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    return (struct job){.panel = panel_of(run),
                        .x_stride = run->x_stride,
                        .x_three = 3 * run->x_stride,
                        .x_five = 5 * run->x_stride,
                        .segments = p->segments,
                        .run = (size_t)(p->groups / p->segments) * 4,
                        .segment_stride = p->segment_stride,
                        .flips = qi_gemm_flips_of(run)};
}

/**
 * Divide the lines of a chunk into tiles. Among all tiles of all panels divide what is to come: the
 * panels after the first, and then as much as the next layer may need at its start, whose weights
 * follow. A panel is there in time, because no less than a panel passes by at each. There is one
 * line of the next layer for two steps at most.
 */
static void set_tiles(struct job *j, const qi_gemm_run *run, const qi_gemm_chunk *chunk)
{
    enum { AHEAD = 40 << 10 };
    const qi_packed *p = j->panel.packed;
    size_t const groups = (size_t)p->groups, panel = p->panel_bytes;
    int32_t const first = run->first_channel / p->panel_channels;
    size_t const more = (size_t)((run->end_channel - 1) / p->panel_channels - first);
    j->tiles = (chunk->line + ROWS - 1) / ROWS;
    j->height = chunk->line / j->tiles;
    j->higher = chunk->line % j->tiles;
    j->next = (const uint8_t *)qi_panel_at(p, first) + panel;
    size_t const steps = groups * (size_t)(j->tiles * chunk->lines) * (more + 1);
    size_t const ahead = steps * 32 < AHEAD ? steps * 32 : AHEAD;
    j->next_step = (more * panel + (panel > ahead ? panel : ahead)) / steps + 1;
    j->share = j->next_step * groups;
    j->segment_share = j->share / (size_t)j->segments;
}

static void run(const qi_gemm_run *run)
{
    const qi_packed *p = run->packed;
    int32_t row_terms[CALL_ROWS] = {0};
    struct job j = job_of(run);
    for (int32_t row = 0; row < run->rows;) {
        qi_gemm_chunk const chunk = qi_gemm_chunk_at(run, row, CALL_ROWS);
        int32_t panel = run->first_channel / p->panel_channels;
        if (p->row_factor) {
            qi_gemm_flip_until(&j.flips, chunk.x + (size_t)chunk.rows * run->x_stride);
            fill_row_terms(p, run, &chunk, row_terms);
        }
        set_tiles(&j, run, &chunk);
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            run_panel(&j, panel++, run, &chunk, row_terms);
        row += chunk.rows;
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

const qi_gemm QI_VARIANT(qi_gemm_avx512vnni) = {
    .name = "avx512vnni", GEMM512_PIECES, .packed_bytes = packed_bytes, .pack = pack, .run = run};

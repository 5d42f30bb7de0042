/**
 * What the matrix products with 256-bit registers share: how sums become codes, and how codes are
 * stored. A tile has rows x vectors registers of 8 sums each; vectors is 2, or 1 in a narrow last
 * panel. See gemm_pack.h, qi_gemm_tail.
 */
#ifndef QI_HOST_X86_GEMM256_H
#define QI_HOST_X86_GEMM256_H

#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

enum { VECTORS = 2, LANES = 8 };

/** The share of a piece that one panel computes. */
struct job {
    const qi_packed *packed;
    int32_t panel, channels; /* channels that are written */
    const int32_t *columns;
    const void *x; /* first row of the tile, in the form that the tile reads */
    size_t x_stride;
    const int32_t *row_terms; /* d sum x', or NULL: 0 */
    uint8_t *y;               /* of the panel's first channel */
    size_t y_stride;
    int32_t segments;
    size_t run, segment_stride; /* bytes of x in a segment, in whole groups; to the next one */
    const uint8_t *next;        /* this tile's share of the next panel, which it prefetches */
    size_t next_step, share;    /* bytes of it for each group, for the tile */
};

INLINE __m256i column(const struct job *j, int which, int room, int v)
{
    return _mm256_load_si256(
        (const __m256i *)(const void *)(j->columns + which * room + v * LANES));
}

/** s mult in 64 bits, of even and odd lanes. */
INLINE void products(const struct job *j, int room, int v, __m256i s, __m256i *even, __m256i *odd)
{
    *even = _mm256_mul_epi32(s, column(j, QI_COLUMN_MULT, room, v));
    *odd = _mm256_mul_epi32(_mm256_srli_epi64(s, 32), column(j, QI_COLUMN_MULT_ODD, room, v));
}

/** LINE: floor(s m / 2^(31 + n)). */
INLINE __m256i requantize_line(const struct job *j, int room, int v, __m256i s)
{
    __m256i even, odd;
    products(j, room, v, s, &even, &odd);
    __m256i const high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_srav_epi32(high, column(j, QI_COLUMN_SHIFT, room, v));
}

INLINE __m256i requantize_lines(const struct job *j, int room, int v, __m256i s)
{
    __m256i const below = _mm256_cmpgt_epi32(column(j, QI_COLUMN_BOUND, room, v), s);
    __m256i const add = _mm256_and_si256(below, column(j, QI_COLUMN_NEGATIVE_ADD, room, v));
    __m256i const offset = _mm256_and_si256(below, column(j, QI_COLUMN_NEGATIVE_OFFSET, room, v));
    return _mm256_add_epi32(requantize_line(j, room, v, _mm256_add_epi32(s, add)), offset);
}

/** x = (s m + 2^30) >> 31, 0 <= m < 2^31. */
INLINE __m256i high_multiply(const struct job *j, int room, int v, __m256i s)
{
    __m256i const half = _mm256_set1_epi64x(INT64_C(1) << 30);
    __m256i even, odd;
    products(j, room, v, s, &even, &odd);
    return _mm256_blend_epi32(_mm256_srli_epi64(_mm256_add_epi64(even, half), 31),
                              _mm256_slli_epi64(_mm256_add_epi64(odd, half), 1), 0xaa);
}

/** With a fraction f: s 2^f and the bias that has f fractional bits too. */
INLINE void accumulators_of(const struct job *j, int rows, int vectors, __m256i sums[][VECTORS])
{
    __m256i const f = _mm256_set1_epi32(j->packed->fraction);
    UNROLL
    for (int v = 0; v < vectors; v++) {
        __m256i const bias = column(j, QI_COLUMN_LATE_BIAS, vectors * LANES, v);
        UNROLL
        for (int r = 0; r < rows; r++)
            sums[r][v] = _mm256_add_epi32(_mm256_sllv_epi32(sums[r][v], f), bias);
    }
}

/** Any multiplier: a saturating left shift, then qi_rdbp without a sum that could overflow. */
INLINE __m256i requantize_twice(const struct job *j, int room, int v, __m256i s)
{
    __m256i const left = column(j, QI_COLUMN_LEFT, room, v);
    __m256i const right = column(j, QI_COLUMN_RIGHT, room, v);
    __m256i const most = _mm256_set1_epi32(INT32_MAX), one = _mm256_set1_epi32(1);
    __m256i const shifted = _mm256_sllv_epi32(s, left);
    __m256i const fits = _mm256_cmpeq_epi32(_mm256_srav_epi32(shifted, left), s);
    __m256i const limit = _mm256_xor_si256(_mm256_srai_epi32(s, 31), most);
    __m256i const x = high_multiply(j, room, v, _mm256_blendv_epi8(limit, shifted, fits));
    __m256i const mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, right), one);
    __m256i const threshold =
        _mm256_sub_epi32(_mm256_srai_epi32(mask, 1), _mm256_srai_epi32(x, 31));
    __m256i const up = _mm256_cmpgt_epi32(_mm256_and_si256(x, mask), threshold); /* -1: one more */
    return _mm256_sub_epi32(_mm256_srav_epi32(x, right), up);
}

/** EVEN: turn register v of each row of sums into values, in place. */
static void requantize_even(const struct job *j, int rows, int room, int v,
                            int32_t sums[][VECTORS * LANES])
{
    __m256i const left = column(j, QI_COLUMN_LEFT, room, v);
    __m256i const right = column(j, QI_COLUMN_RIGHT, room, v);
    __m256i const add = column(j, QI_COLUMN_EVEN_ADD, room, v);
    __m256i const span = column(j, QI_COLUMN_EVEN_SPAN, room, v);
    for (int r = 0; r < rows; r++) {
        __m256i *at = (__m256i *)(void *)(sums[r] + v * LANES);
        __m256i const s = _mm256_loadu_si256(at);
        __m256i even, odd;
        products(j, room, v, _mm256_sllv_epi32(s, left), &even, &odd);
        __m256i const h = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
        __m256i const low = _mm256_add_epi32(h, add), y = _mm256_srav_epi32(low, right);
        __m256i const equal =
            _mm256_cmpeq_epi32(y, _mm256_srav_epi32(_mm256_add_epi32(low, span), right));
        uint32_t const ties = 0xffu ^ (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(equal));
        _mm256_storeu_si256(at, y);
        if (ties) {
            int32_t before[LANES];
            _mm256_storeu_si256((__m256i *)(void *)before, s);
            qi_requantize_ties(j->packed, j->panel, LANES, v * LANES, ties, before,
                               sums[r] + v * LANES);
        }
    }
}

/** The tails that have no lines: they work on rows of sums in memory. */
__attribute__((noinline)) static void requantize_rows(const struct job *j, int rows, int vectors,
                                                      int32_t sums[][VECTORS * LANES])
{
    int const room = vectors * LANES;
    if (j->packed->tail == QI_TAIL_EVEN) {
        for (int v = 0; v < vectors; v++)
            requantize_even(j, rows, room, v, sums);
        return;
    }
    for (int r = 0; r < rows; r++) {
        if (j->packed->tail == QI_TAIL_SCALAR) {
            qi_requantize_row_scalar(j->packed, j->panel, LANES, sums[r]);
            continue;
        }
        for (int v = 0; v < vectors; v++) {
            __m256i *at = (__m256i *)(void *)(sums[r] + v * LANES);
            _mm256_storeu_si256(at, requantize_twice(j, room, v, _mm256_loadu_si256(at)));
        }
    }
}

/**
 * Turn 32 values into codes: to int16, add the zero_point, to int8, clamp. There are four vectors
 * of one row each, or two of two rows, whose codes then lie side by side.
 */
INLINE __m256i to_codes(const struct job *j, int vectors, __m256i a, __m256i b, __m256i c,
                        __m256i d)
{
    const qi_packed *p = j->packed;
    __m256i const zero_point = column(j, QI_COLUMN_OFFSET, vectors * LANES, 0);
    __m256i const lo = _mm256_set1_epi8((int8_t)p->lo), hi = _mm256_set1_epi8((int8_t)p->hi);
    __m256i const ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point);
    __m256i const cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zero_point);
    __m256i const mixed = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(ab, cd), lo), hi);
    __m256i const codes = _mm256_xor_si256(mixed, _mm256_set1_epi32(p->y_flip));
    if (vectors == 2)
        return _mm256_permute4x64_epi64(codes, 0xd8);
    return _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/** Store the codes of one row, for the channels of the panel that are written. */
INLINE void store_row(const struct job *j, int row, int room, const uint8_t *codes)
{
    uint8_t *y = j->y + (size_t)row * j->y_stride;
    if (j->channels == room)
        memcpy(y, codes, (size_t)room);
    else
        memcpy(y, codes, (size_t)j->channels);
}

INLINE void store(const struct job *j, int rows, int vectors, const __m256i values[][VECTORS])
{
    int const together = 4 / vectors, last = rows - 1, room = vectors * LANES;
    uint8_t codes[32];
    UNROLL
    for (int r = 0; r < rows; r += together) {
        int const r1 = r + 1 < last ? r + 1 : last, r2 = r + 2 < last ? r + 2 : last;
        int const r3 = r + 3 < last ? r + 3 : last;
        _mm256_storeu_si256(
            (__m256i *)(void *)codes,
            vectors == 2
                ? to_codes(j, 2, values[r][0], values[r][1], values[r1][0], values[r1][1])
                : to_codes(j, 1, values[r][0], values[r1][0], values[r2][0], values[r3][0]));
        UNROLL
        for (int k = 0; k < together; k++)
            if (r + k < rows)
                store_row(j, r + k, room, codes + k * room);
    }
}

/**
 * The accumulators of a tile. Its loop adds to them; their address is never taken, so that the
 * compiler keeps them in registers.
 */
#define ACCUMULATORS(name, rows, vectors)                                                          \
    __m256i name[ROWS][VECTORS];                                                                   \
    UNROLL                                                                                         \
    for (int r = 0; r < rows; r++)                                                                 \
        UNROLL                                                                                     \
    for (int v = 0; v < vectors; v++)                                                              \
        name[r][v] = column(j, QI_COLUMN_BIAS, room, v);

/** Store the codes of sums. has_two (a constant): with tail LINES, else LINE. */
INLINE void store_lines(const struct job *j, int rows, int vectors, int has_two,
                        __m256i sums[][VECTORS])
{
    int const room = vectors * LANES;
    UNROLL
    for (int v = 0; v < vectors; v++)
        UNROLL
    for (int r = 0; r < rows; r++)
        sums[r][v] = has_two ? requantize_lines(j, room, v, sums[r][v])
                             : requantize_line(j, room, v, sums[r][v]);
    store(j, rows, vectors, (const __m256i(*)[VECTORS])sums);
}

/** Turn sums, without row terms yet, into codes in memory, or store the sums themselves. */
INLINE void finish(const struct job *j, int rows, int vectors,
                   const __m256i accumulators[][VECTORS])
{
    enum { MOST_ROWS = 8 };
    int const tail = j->packed->tail;
    __m256i sums[MOST_ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = accumulators[r][v];
    if (j->row_terms)
        UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_set1_epi32(j->row_terms[r]));
    if (j->packed->fraction)
        accumulators_of(j, rows, vectors, sums);
    if (tail == QI_TAIL_LINE) {
        store_lines(j, rows, vectors, 0, sums);
        return;
    }
    if (tail == QI_TAIL_LINES) {
        store_lines(j, rows, vectors, 1, sums);
        return;
    }
    int32_t lanes[MOST_ROWS][VECTORS * LANES];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_si256((__m256i *)(void *)(lanes[r] + v * LANES), sums[r][v]);
    if (tail == QI_TAIL_SUMS) {
        qi_store_sums(j->packed, j->panel, LANES, lanes[0], rows, VECTORS * LANES, j->channels,
                      j->y, j->y_stride);
        return;
    }
    requantize_rows(j, rows, vectors, lanes);
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = _mm256_loadu_si256((const __m256i *)(const void *)(lanes[r] + v * LANES));
    store(j, rows, vectors, (const __m256i(*)[VECTORS])sums);
}

/** The sum of n bytes, as four sums. */
static inline __m256i sum_bytes(const uint8_t *x, int32_t n)
{
    __m256i const zero = _mm256_setzero_si256();
    __m256i sums = zero; /* sums of eight bytes each */
    uint8_t last[32];
    int32_t k = 0;
    for (; k + 32 <= n; k += 32) {
        __m256i const bytes = _mm256_loadu_si256((const __m256i *)(const void *)(x + k));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, zero));
    }
    memset(last, 0, sizeof last);
    memcpy(last, x + k, (size_t)(n - k));
    __m256i const bytes = _mm256_loadu_si256((const __m256i *)(const void *)last);
    return _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, zero));
}

/** d sum x' of one row. */
static inline int32_t row_term(const qi_packed *p, const uint8_t *x)
{
    __m256i sums = sum_bytes(x, p->segment);
    for (int32_t s = 1; s < p->segments; s++)
        sums = _mm256_add_epi64(sums, sum_bytes(x + (size_t)s * p->segment_stride, p->segment));
    uint64_t lane[4];
    memcpy(lane, &sums, sizeof lane);
    return (int32_t)((uint32_t)p->row_factor * (uint32_t)(lane[0] + lane[1] + lane[2] + lane[3]));
}

/** Divide the panel after one that `tiles` tiles pass among them. */
static inline void share_next(struct job *j, int32_t tiles)
{
    const qi_packed *p = j->packed;
    size_t const groups = (size_t)(p->entries ? p->entries : p->groups);
    j->next = (const uint8_t *)j->columns + p->panel_bytes;
    j->next_step = p->panel_bytes / (groups * (size_t)tiles) + 1;
    j->share = groups * j->next_step;
}

/** Computes a tile with a constant number of rows. */
typedef void tile_fn(const struct job *j);

/** Compute rows with one panel, in tiles whose heights differ by at most one; tiles: by height. */
static inline void run_rows(struct job *j, int32_t rows, int32_t row_tile, tile_fn *const *tiles)
{
    struct job const first = *j;
    int32_t const n = (rows + row_tile - 1) / row_tile;
    for (int32_t i = 0; i < n; i++) {
        int32_t const from = rows * i / n, to = rows * (i + 1) / n;
        j->x = (const uint8_t *)first.x + (size_t)from * first.x_stride;
        j->y = first.y + (size_t)from * first.y_stride;
        j->row_terms = first.row_terms ? first.row_terms + from : NULL;
        tiles[to - from](j);
        j->next += first.share;
    }
    j->x = first.x;
    j->y = first.y;
    j->row_terms = first.row_terms;
}

/** By vectors - 1 and height. */
typedef tile_fn *tile_table[VECTORS][8];

/** Compute one panel of a chunk whose tiles read x directly. */
static inline void run_panel_codes(const qi_gemm_run *run, int32_t panel,
                                   const qi_gemm_chunk *chunk, const int32_t *row_terms,
                                   int32_t row_tile, tile_fn *const (*tiles)[8])
{
    const qi_packed *p = run->packed;
    int32_t const first = panel * p->panel_channels, room = qi_panel_room(p, panel);
    int32_t const left = run->end_channel - first;
    struct job j = {.packed = p,
                    .panel = panel,
                    .channels = left < room ? left : room,
                    .columns = qi_panel_at(p, panel),
                    .x_stride = run->x_stride,
                    .y_stride = run->y_stride,
                    .segments = p->segments,
                    .run = (size_t)(p->groups / p->segments) * 4,
                    .segment_stride = p->segment_stride};
    share_next(&j, (chunk->line + row_tile - 1) / row_tile * chunk->lines);
    for (int32_t i = 0; i < chunk->lines; i++) {
        int32_t const row = i * chunk->line;
        j.x = chunk->x + (size_t)i * run->line_stride;
        j.y = run->y + (size_t)(chunk->row + row) * run->y_stride + first;
        j.row_terms = p->row_factor ? row_terms + row : NULL;
        run_rows(&j, chunk->line, row_tile, tiles[room / LANES - 1]);
    }
}

/**
 * Compute a piece whose tiles read x directly: the row terms of some rows, then these rows with
 * each panel.
 */
static inline void run_codes(const qi_gemm_run *run, int32_t row_tile, tile_fn *const (*tiles)[8])
{
    enum { CALL_ROWS = 240 }; /* a multiple of every row_tile */
    const qi_packed *p = run->packed;
    int32_t row_terms[CALL_ROWS];
    for (int32_t row = 0; row < run->rows;) {
        qi_gemm_chunk const chunk = qi_gemm_chunk_at(run, row, CALL_ROWS);
        for (int32_t r = 0; r < chunk.rows && p->row_factor; r++)
            row_terms[r] = row_term(p, qi_gemm_row(run, row + r));
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            run_panel_codes(run, n / p->panel_channels, &chunk, row_terms, row_tile, tiles);
        row += chunk.rows;
    }
}

/**
 * For a kernel with `tile(job, rows, vectors)`: one function per height and width, and the table
 * `tiles`.
 */
#define TILES(R)                                                                                   \
    static void wide_##R(const struct job *j)                                                      \
    {                                                                                              \
        tile(j, R, 2);                                                                             \
    }                                                                                              \
    static void narrow_##R(const struct job *j)                                                    \
    {                                                                                              \
        tile(j, R, 1);                                                                             \
    }
#define SIX_ROWS_OF_TILES                                                                          \
    TILES(1)                                                                                       \
    TILES(2)                                                                                       \
    TILES(3)                                                                                       \
    TILES(4)                                                                                       \
    TILES(5)                                                                                       \
    TILES(6)                                                                                       \
    static const tile_table tiles = {                                                              \
        {NULL, narrow_1, narrow_2, narrow_3, narrow_4, narrow_5, narrow_6},                        \
        {NULL, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6}};

#endif

/**
 * What the matrix products with 512-bit registers share: how sums become codes, and how codes are
 * stored. A tile has rows x vectors registers of 16 sums each; vectors is 2, or 1 in a narrow last
 * panel. See gemm_pack.h, qi_gemm_tail. 64-bit products are formed separately for even and odd
 * lanes.
 */
#ifndef QI_HOST_X86_GEMM512_H
#define QI_HOST_X86_GEMM512_H

#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

enum { ROWS = 12, VECTORS = 2, LANES = 16 };

/** How pieces are cut, and who flips codes: equal for all, because one product hands layers on to
 * another. */
#define GEMM512_PIECES                                                                             \
    .row_tile = ROWS, .channel_tile = VECTORS * LANES, .least_channels = LANES, .line_rows = 7,    \
    .joins = 1, .unsigned_x = 1, .flips = 1

static const qi_panel_shape shape = {
    .vectors = VECTORS, .narrow = 1, .lanes = LANES, .group = 4, .weight_size = 1};

/** A panel of a run: how its sums become codes, and how these are stored. */
struct panel {
    const qi_packed *packed;
    int32_t number, channels; /* channels that are written */
    const int32_t *columns;
    size_t y_stride;
    int32_t lo, hi; /* four bytes each */
    int32_t clamps; /* do these, or y_flip, change a code? */
};

/** What all panels of a run share. */
INLINE struct panel panel_of(const qi_gemm_run *run)
{
    const qi_packed *packed = run->packed;
    return (struct panel){.packed = packed,
                          .y_stride = run->y_stride,
                          .lo = (int32_t)((uint8_t)packed->lo * 0x01010101u),
                          .hi = (int32_t)((uint8_t)packed->hi * 0x01010101u),
                          .clamps = packed->lo > -128 || packed->hi < 127 || packed->y_flip};
}

/** Go to a panel. */
INLINE void set_panel(struct panel *p, int32_t number, const qi_gemm_run *run)
{
    int32_t const left = run->end_channel - number * p->packed->panel_channels;
    int32_t const room = qi_panel_room(p->packed, number);
    p->number = number;
    p->channels = left < room ? left : room;
    p->columns = qi_panel_at(p->packed, number);
}

INLINE __m512i column(const struct panel *p, int which, int room, int v)
{
    return _mm512_load_si512(p->columns + which * room + v * LANES);
}

/** LINE: floor(s m / 2^(31 + n)). */
INLINE __m512i requantize_line(const struct panel *p, int room, int v, __m512i s)
{
    __m512i const even = _mm512_mul_epi32(s, column(p, QI_COLUMN_MULT, room, v));
    __m512i const odd =
        _mm512_mul_epi32(_mm512_srli_epi64(s, 32), column(p, QI_COLUMN_MULT_ODD, room, v));
    return qi_srav512(qi_high_words512(even, odd), column(p, QI_COLUMN_SHIFT, room, v));
}

INLINE __m512i requantize_lines(const struct panel *p, int room, int v, __m512i s)
{
    uint16_t const below = _mm512_cmpgt_epi32_mask(column(p, QI_COLUMN_BOUND, room, v), s);
    __m512i const line =
        _mm512_mask_add_epi32(s, below, s, column(p, QI_COLUMN_NEGATIVE_ADD, room, v));
    __m512i const y = requantize_line(p, room, v, line);
    return _mm512_mask_add_epi32(y, below, y, column(p, QI_COLUMN_NEGATIVE_OFFSET, room, v));
}

/** x = (s m + 2^30) >> 31 of signed 32-bit lanes, 0 <= m < 2^31. */
INLINE __m512i high_multiply(const struct panel *p, int room, int v, __m512i s)
{
    const __m512i half = _mm512_set1_epi64(INT64_C(1) << 30);
    __m512i const even =
        _mm512_add_epi64(_mm512_mul_epi32(s, column(p, QI_COLUMN_MULT, room, v)), half);
    __m512i const odd = _mm512_add_epi64(
        _mm512_mul_epi32(_mm512_srli_epi64(s, 32), column(p, QI_COLUMN_MULT_ODD, room, v)), half);
    return _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}

/** With a fraction f: s 2^f and the bias that has f fractional bits too. */
INLINE void accumulators_of(const struct panel *p, int rows, int vectors, __m512i sums[][VECTORS])
{
    __m512i const f = _mm512_set1_epi32(p->packed->fraction);
    UNROLL
    for (int v = 0; v < vectors; v++) {
        __m512i const bias = column(p, QI_COLUMN_LATE_BIAS, vectors * LANES, v);
        UNROLL
        for (int r = 0; r < rows; r++)
            sums[r][v] = _mm512_add_epi32(_mm512_sllv_epi32(sums[r][v], f), bias);
    }
}

/** Any multiplier: a saturating left shift, then qi_rdbp without a sum that could overflow. */
INLINE __m512i requantize_twice(const struct panel *p, int room, int v, __m512i s)
{
    __m512i const left = column(p, QI_COLUMN_LEFT, room, v);
    __m512i const right = column(p, QI_COLUMN_RIGHT, room, v);
    __m512i const most = _mm512_set1_epi32(INT32_MAX), one = _mm512_set1_epi32(1);
    __m512i const shifted = _mm512_sllv_epi32(s, left);
    uint16_t const fits = _mm512_cmpeq_epi32_mask(qi_srav512(shifted, left), s);
    __m512i const limit = _mm512_xor_si512(qi_sra512(s, 31), most);
    __m512i const x = high_multiply(p, room, v, _mm512_mask_blend_epi32(fits, limit, shifted));
    __m512i const mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
    __m512i const threshold = _mm512_sub_epi32(qi_sra512(mask, 1), qi_sra512(x, 31));
    uint16_t const up = _mm512_cmpgt_epi32_mask(_mm512_and_si512(x, mask), threshold);
    __m512i const down = qi_srav512(x, right);
    return _mm512_mask_blend_epi32(up, down, _mm512_add_epi32(down, one));
}

/**
 * Turn 64 values into signed codes that saturate: to int16, add the zero_point, to int8. There are
 * four vectors of one row each, or two of two rows, whose codes then lie side by side.
 */
INLINE __m512i to_codes(const struct panel *p, int vectors, __m512i a, __m512i b, __m512i c,
                        __m512i d)
{
    __m512i const zero_point = column(p, QI_COLUMN_OFFSET, vectors * LANES, 0);
    __m512i const ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero_point);
    __m512i const cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero_point);
    __m512i const codes = _mm512_packs_epi16(ab, cd);
    if (vectors == 2)
        return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), codes);
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), codes);
}

/** The codes of the q-th row of a register, in the lowest lanes. */
INLINE __m512i row_of(int vectors, int q, __m512i codes)
{
    if (q == 0)
        return codes;
    if (vectors == 2)
        return _mm512_castsi256_si512(_mm512_extracti64x4_epi64(codes, 1));
    return _mm512_castsi128_si512(q == 1   ? _mm512_extracti32x4_epi32(codes, 1)
                                  : q == 2 ? _mm512_extracti32x4_epi32(codes, 2)
                                           : _mm512_extracti32x4_epi32(codes, 3));
}

/** Store the codes of `rows` rows. is_whole (a constant): all channels of the panel. */
INLINE void store_rows(const struct panel *p, uint8_t *y, int rows, int vectors, int is_whole,
                       const __m512i *codes)
{
    int const together = 4 / vectors;
    size_t const stride = p->y_stride;
    uint64_t const written = (UINT64_C(1) << p->channels) - 1;
    UNROLL
    for (int r = 0; r < rows; r++, y += stride) {
        __m512i const row = row_of(vectors, r % together, codes[r / together]);
        if (!is_whole)
            qi_store_bytes512(y, written, row);
        else if (vectors == 2)
            _mm256_storeu_si256((__m256i *)(void *)y, _mm512_castsi512_si256(row));
        else
            _mm_storeu_si128((__m128i *)(void *)y, _mm512_castsi512_si128(row));
    }
}

/** Turn values into codes, and store them. */
INLINE void store(const struct panel *p, uint8_t *y, int rows, int vectors,
                  __m512i values[][VECTORS])
{
    int const together = 4 / vectors, last = rows - 1;
    __m512i codes[ROWS / 2];
    UNROLL
    for (int r = 0; r < rows; r += together) {
        int const r1 = r + 1 < last ? r + 1 : last, r2 = r + 2 < last ? r + 2 : last;
        int const r3 = r + 3 < last ? r + 3 : last;
        codes[r / together] =
            vectors == 2
                ? to_codes(p, 2, values[r][0], values[r][1], values[r1][0], values[r1][1])
                : to_codes(p, 1, values[r][0], values[r1][0], values[r2][0], values[r3][0]);
    }
    if (p->clamps) {
        __m512i const lo = _mm512_set1_epi32(p->lo), hi = _mm512_set1_epi32(p->hi);
        __m512i const flip = _mm512_set1_epi32(p->packed->y_flip);
        UNROLL
        for (int i = 0; i * together < rows; i++)
            codes[i] = _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(codes[i], lo), hi), flip);
    }
    if (p->channels == vectors * LANES)
        store_rows(p, y, rows, vectors, 1, codes);
    else
        store_rows(p, y, rows, vectors, 0, codes);
}

/** Store the codes of sums. has_two (a constant): with tail LINES, else LINE. */
INLINE void store_lines(const struct panel *p, uint8_t *y, int rows, int vectors, int has_two,
                        __m512i sums[][VECTORS])
{
    int const room = vectors * LANES;
    UNROLL
    for (int v = 0; v < vectors; v++)
        UNROLL
    for (int r = 0; r < rows; r++)
        sums[r][v] = has_two ? requantize_lines(p, room, v, sums[r][v])
                             : requantize_line(p, room, v, sums[r][v]);
    store(p, y, rows, vectors, sums);
}

/** EVEN: turn register v of each row of sums into values, in place. */
static void requantize_even(const struct panel *p, int rows, int room, int v,
                            int32_t sums[][VECTORS * LANES])
{
    __m512i const mult = column(p, QI_COLUMN_MULT, room, v);
    __m512i const mult_odd = column(p, QI_COLUMN_MULT_ODD, room, v);
    __m512i const left = column(p, QI_COLUMN_LEFT, room, v);
    __m512i const right = column(p, QI_COLUMN_RIGHT, room, v);
    __m512i const add = column(p, QI_COLUMN_EVEN_ADD, room, v);
    __m512i const span = column(p, QI_COLUMN_EVEN_SPAN, room, v);
    for (int r = 0; r < rows; r++) {
        int32_t *at = sums[r] + v * LANES;
        __m512i const s = _mm512_loadu_si512(at), x = _mm512_sllv_epi32(s, left);
        __m512i const h = qi_high_words512(_mm512_mul_epi32(x, mult),
                                           _mm512_mul_epi32(_mm512_srli_epi64(x, 32), mult_odd));
        __m512i const low = _mm512_add_epi32(h, add);
        __m512i const y = qi_srav512(low, right);
        __m512i const high = _mm512_add_epi32(low, span);
        uint32_t const ties = 0xffffu ^ _mm512_cmpeq_epi32_mask(y, qi_srav512(high, right));
        _mm512_storeu_si512(at, y);
        if (ties) {
            int32_t before[LANES];
            _mm512_storeu_si512(before, s);
            qi_requantize_ties(p->packed, p->number, LANES, v * LANES, ties, before, at);
        }
    }
}

/** Turn rows of sums into values, in place, by the tails that have no lines. */
static void requantize_rows(const struct panel *p, int rows, int vectors,
                            int32_t sums[][VECTORS * LANES])
{
    int const room = vectors * LANES;
    if (p->packed->tail == QI_TAIL_EVEN) {
        for (int v = 0; v < vectors; v++)
            requantize_even(p, rows, room, v, sums);
        return;
    }
    for (int r = 0; r < rows; r++) {
        if (p->packed->tail == QI_TAIL_SCALAR) {
            qi_requantize_row_scalar(p->packed, p->number, LANES, sums[r]);
            continue;
        }
        for (int v = 0; v < vectors; v++) {
            int32_t *at = sums[r] + v * LANES;
            _mm512_storeu_si512(at, requantize_twice(p, room, v, _mm512_loadu_si512(at)));
        }
    }
}

/** The tails that have no lines work on rows of sums in memory. */
__attribute__((noinline)) static void store_others(const struct panel *p, uint8_t *y, int rows,
                                                   int vectors, int32_t sums[][VECTORS * LANES])
{
    if (p->packed->tail == QI_TAIL_SUMS) {
        qi_store_sums(p->packed, p->number, LANES, sums[0], rows, VECTORS * LANES, p->channels, y,
                      p->y_stride);
        return;
    }
    requantize_rows(p, rows, vectors, sums);
    for (int r = 0; r < rows; r++, y += p->y_stride) {
        __m512i values[1][VECTORS] = {
            {_mm512_loadu_si512(sums[r]), _mm512_loadu_si512(sums[r] + LANES)}};
        if (vectors == 2)
            store(p, y, 1, 2, values);
        else
            store(p, y, 1, 1, values);
    }
}

/** Store the codes of sums, or the sums themselves. */
INLINE void finish(const struct panel *p, uint8_t *y, int rows, int vectors,
                   __m512i sums[][VECTORS])
{
    int const tail = p->packed->tail;
    if (p->packed->fraction)
        accumulators_of(p, rows, vectors, sums);
    if (tail == QI_TAIL_LINE) {
        store_lines(p, y, rows, vectors, 0, sums);
        return;
    }
    if (tail == QI_TAIL_LINES) {
        store_lines(p, y, rows, vectors, 1, sums);
        return;
    }
    int32_t lanes[ROWS][VECTORS * LANES];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        _mm512_storeu_si512(lanes[r] + v * LANES, sums[r][v]);
    store_others(p, y, rows, vectors, lanes);
}

#endif

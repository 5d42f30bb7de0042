/**
 * Depthwise convolutions in registers of 8 lanes, which are half a group. AVX2 and AVX-VNNI share
 * this. The including file defines how the quads of a half are held and multiplied:
 *
 *     column         quads of 8 lanes, ready for products
 *     column_of      of quads as they lie in memory
 *     dot            sums + products with the weights of one tap, DOT_BYTES of them
 *     pack           a group; its weights are [half][rows][taps][DOT_BYTES], `rest` bytes on those
 *                    that did not fit
 */
#include "infer/host/x86/depthwise_tail.h"
#include "infer/host/x86/intrinsics.h"

enum { LANES = QI_DEPTHWISE_LANES, HALF = LANES / 2, COLUMNS = 4 };

/* ------------------------------------------------------------------ quads */

INLINE __m256i load256(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

INLINE void store256(void *to, __m256i a)
{
    _mm256_storeu_si256((__m256i *)to, a);
}

/**
 * Make quads from 32 positions of four rows, in the order that unpacking within 128 bits gives:
 * depthwise.h.
 */
INLINE void quads_of(const __m256i r[4], __m256i quads[4])
{
    __m256i const a = _mm256_unpacklo_epi8(r[0], r[1]), b = _mm256_unpackhi_epi8(r[0], r[1]);
    __m256i const c = _mm256_unpacklo_epi8(r[2], r[3]), d = _mm256_unpackhi_epi8(r[2], r[3]);
    quads[0] = _mm256_unpacklo_epi16(a, c);
    quads[1] = _mm256_unpackhi_epi16(a, c);
    quads[2] = _mm256_unpacklo_epi16(b, d);
    quads[3] = _mm256_unpackhi_epi16(b, d);
}

INLINE column load_column(const uint32_t *quads)
{
    return column_of(load256(quads));
}

/**
 * Interleave 32 positions of four rows. Words are moved first, so that unpacking within 128 bits
 * leaves the quads in order: words 2 j, 2 j + 1 of the quads' registers come from words j, j + 4.
 */
INLINE void interleave32(const uint8_t *const row[4], __m256i flip, uint32_t *quads)
{
    __m256i const order = _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0);
    __m256i r[4], q[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_permutevar8x32_epi32(_mm256_xor_si256(load256(row[i]), flip), order);
    quads_of(r, q);
    for (int i = 0; i < 4; i++)
        store256(quads + 8 * i, q[i]);
}

static void interleave(const qi_depthwise_rows *rows, uint32_t *quads)
{
    __m256i const flip = _mm256_set1_epi8((char)rows->flip);
    const uint8_t *row[4] = {rows->row[0], rows->row[1], rows->row[2], rows->row[3]};
    for (int32_t p = 0; p < rows->pixels; p++, quads += rows->width) {
        for (int32_t i = 0; i < rows->width; i += 32) {
            const uint8_t *const at[4] = {row[0] + i, row[1] + i, row[2] + i, row[3] + i};
            interleave32(at, flip, quads + i);
        }
        for (int r = 0; r < 4; r++)
            row[r] += rows->pitch[r];
    }
}

/* ------------------------------------------------------------------ sums to codes */

/** The constants of half a group. */
struct tail {
    const qi_depthwise_head *head;
    int kind;  /* constant wherever it is inlined */
    int first; /* first lane */
    __m256i lo, hi, flip;
};

INLINE struct tail tail_of(const qi_depthwise_head *head, int kind, int half)
{
    return (struct tail){.head = head,
                         .kind = kind,
                         .first = half * HALF,
                         .lo = _mm256_set1_epi8(head->lo),
                         .hi = _mm256_set1_epi8(head->hi),
                         .flip = _mm256_set1_epi8((char)head->y_flip)};
}

/** The same as in avx512vnni_depthwise.c, in 8 lanes. */
INLINE __m256i requantize(const struct tail *t, __m256i x)
{
    const qi_depthwise_head *head = t->head;
    if (t->kind == QI_DEPTHWISE_ANY) {
        int32_t lane[HALF];
        store256(lane, x);
        qi_depthwise_requantize(head, t->first, HALF, lane);
        return load256(lane);
    }
    int const cut = t->kind == QI_DEPTHWISE_CUT;
    __m256i const mult = load256(head->mult + t->first), right = load256(head->right + t->first);
    __m256i const half = _mm256_set1_epi64x(INT64_C(1) << 30);
    __m256i const d_even = cut ? load256(head->d[0] + t->first / 2) : half;
    __m256i const d_odd = cut ? load256(head->d[1] + t->first / 2) : half;
    __m256i const even = _mm256_add_epi64(_mm256_mul_epi32(x, mult), d_even);
    __m256i const odd = _mm256_add_epi64(
        _mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(mult, 32)), d_odd);
    if (cut)
        return _mm256_srav_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa), right);
    __m256i const s =
        _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
    __m256i const rounded = _mm256_add_epi32(_mm256_add_epi32(s, _mm256_srai_epi32(s, 31)),
                                             load256(head->round + t->first));
    return _mm256_add_epi32(_mm256_srav_epi32(rounded, right), _mm256_set1_epi32(head->zero_point));
}

/** Clamp signed codes and convert them to the type of the output. */
INLINE __m256i clamped(const struct tail *t, __m256i codes)
{
    return _mm256_xor_si256(_mm256_min_epi8(_mm256_max_epi8(codes, t->lo), t->hi), t->flip);
}

/** Turn four vectors of sums into four runs of 8 codes, in order. */
INLINE __m256i codes_of(const struct tail *t, const __m256i sums[COLUMNS])
{
    __m256i const order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    __m256i const low = _mm256_packs_epi32(requantize(t, sums[0]), requantize(t, sums[1]));
    __m256i const high = _mm256_packs_epi32(requantize(t, sums[2]), requantize(t, sums[3]));
    return _mm256_permutevar8x32_epi32(clamped(t, _mm256_packs_epi16(low, high)), order);
}

INLINE void store8(uint8_t *to, __m128i codes)
{
    _mm_storel_epi64((__m128i *)(void *)to, codes);
}

INLINE void store_high8(uint8_t *to, __m128i codes)
{
    store8(to, _mm_unpackhi_epi64(codes, codes));
}

/* ------------------------------------------------------------------ 3 columns, two rows at once */

INLINE __m256i dot3(__m256i sum, const column *a, const column *b, const column *c,
                    const uint8_t *w)
{
    return dot(dot(dot(sum, a, w), b, w + DOT_BYTES), c, w + 2 * DOT_BYTES);
}

/** Taps 0, step, 2 step: each quad serves three columns of two rows. */
INLINE void run_pair(const qi_depthwise_line *l, int kind, int half)
{
    const qi_depthwise_head *head = l->group;
    const uint8_t *w = (const uint8_t *)(head + 1) + half * 6 * DOT_BYTES;
    struct tail const t = tail_of(head, kind, half);
    __m256i const bias = load256(head->bias + t.first);
    size_t const step = (size_t)l->step, y_step = (size_t)l->y_step;
    const uint32_t *q = l->quads + t.first;
    uint8_t *y0 = l->y[0] + t.first, *y1 = l->y[1] + t.first;
    int32_t const columns = l->columns;
    column a = load_column(q), b = load_column(q + step);
    for (int32_t x = 0; x < columns; x += 2, q += 2 * step, y0 += 2 * y_step, y1 += 2 * y_step) {
        int const both = x + 1 < columns;
        column const c = load_column(q + 2 * step), d = both ? load_column(q + 3 * step) : c;
        __m256i const sums[COLUMNS] = {dot3(bias, &a, &b, &c, w), dot3(bias, &b, &c, &d, w),
                                       dot3(bias, &a, &b, &c, w + 3 * DOT_BYTES),
                                       dot3(bias, &b, &c, &d, w + 3 * DOT_BYTES)};
        __m256i const codes = codes_of(&t, sums);
        __m128i const row0 = _mm256_castsi256_si128(codes);
        __m128i const row1 = _mm256_extracti128_si256(codes, 1);
        store8(y0, row0);
        store8(y1, row1);
        if (both) {
            store_high8(y0 + y_step, row0);
            store_high8(y1 + y_step, row1);
        }
        a = c;
        b = d;
    }
}

/* ------------------------------------------------------------------ any taps, one row */

INLINE qi_sums256 add_dot(qi_sums256 sums, const column *c, const uint8_t *w)
{
    return qi_sums_of256(dot(qi_vector_of256(sums), c, w));
}

/** At most four columns from x on of row r. */
INLINE void run_four(const qi_depthwise_line *l, const struct tail *t, int32_t r, int32_t x)
{
    const qi_depthwise_head *head = l->group;
    size_t const row = (size_t)head->taps * DOT_BYTES;
    size_t const rest = 2 * (size_t)head->rows * row;
    int const half = t->first / HALF;
    const uint8_t *w = (const uint8_t *)(head + 1) + (size_t)(half * head->rows + r) * row;
    int32_t const columns = l->columns - x < COLUMNS ? l->columns - x : COLUMNS;
    const uint32_t *at[COLUMNS];
    qi_sums256 acc[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = l->quads + t->first + (size_t)(x + (i < columns ? i : 0)) * (size_t)l->step;
        acc[i] = qi_sums_of256(load256(head->bias + t->first));
    }
    for (int32_t k = 0; k < head->taps; k++, w += DOT_BYTES)
        for (int i = 0; i < COLUMNS; i++) {
            column const c = load_column(at[i] + l->offsets[k]);
            acc[i] = add_dot(acc[i], &c, w);
            if (head->spilled)
                acc[i] = add_dot(acc[i], &c, w + rest);
        }
    __m256i sums[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        sums[i] = qi_vector_of256(acc[i]);
    __m256i const codes = codes_of(t, sums);
    __m128i const low = _mm256_castsi256_si128(codes), high = _mm256_extracti128_si256(codes, 1);
    size_t const y_step = (size_t)l->y_step;
    uint8_t *y = l->y[r] + t->first + (size_t)x * y_step;
    store8(y, low);
    if (columns > 1)
        store_high8(y + y_step, low);
    if (columns > 2)
        store8(y + 2 * y_step, high);
    if (columns > 3)
        store_high8(y + 3 * y_step, high);
}

INLINE void run_rows(const qi_depthwise_line *l, int kind, int half)
{
    struct tail const t = tail_of(l->group, kind, half);
    for (int32_t r = 0; r < l->rows; r++)
        for (int32_t x = 0; x < l->columns; x += COLUMNS)
            run_four(l, &t, r, x);
}

/* ------------------------------------------------------------------ both halves */

static void pair_cut(const qi_depthwise_line *l)
{
    run_pair(l, QI_DEPTHWISE_CUT, 0);
    run_pair(l, QI_DEPTHWISE_CUT, 1);
}

static void pair_right(const qi_depthwise_line *l)
{
    run_pair(l, QI_DEPTHWISE_RIGHT, 0);
    run_pair(l, QI_DEPTHWISE_RIGHT, 1);
}

static void rows_cut(const qi_depthwise_line *l)
{
    for (int half = 0; half < 2; half++)
        run_rows(l, QI_DEPTHWISE_CUT, half);
}

static void rows_right(const qi_depthwise_line *l)
{
    for (int half = 0; half < 2; half++)
        run_rows(l, QI_DEPTHWISE_RIGHT, half);
}

static void rows_any(const qi_depthwise_line *l)
{
    for (int half = 0; half < 2; half++)
        run_rows(l, QI_DEPTHWISE_ANY, half);
}

static void run(const qi_depthwise_line *l)
{
    const qi_depthwise_head *head = l->group;
    int const slides = head->taps == 3 && head->rows == 2 && l->rows == 2 && l->offsets[0] == 0 &&
                       l->offsets[1] == l->step && l->offsets[2] == 2 * l->step;
    if (head->tail == QI_DEPTHWISE_ANY)
        rows_any(l);
    else if (slides && !head->spilled)
        (head->tail == QI_DEPTHWISE_CUT ? pair_cut : pair_right)(l);
    else
        (head->tail == QI_DEPTHWISE_CUT ? rows_cut : rows_right)(l);
}

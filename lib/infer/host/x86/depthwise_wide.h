/**
 * Depthwise convolutions in vectors of either width: one holds the quads or the sums of a part of a
 * group, which is the whole or a half of it. The including file first includes wide256.h or
 * wide512.h, and defines how the quads of a part are held and multiplied:
 *
 *     column         quads of a part, ready for products
 *     column_of      of quads as they lie in memory
 *     dot            sums + products with the weights of one tap, DOT_BYTES of them
 *     SPLITS         1: weights that do not fit are split in two; 0: all fit
 *     pack           a group; its weights are [part][rows][taps][DOT_BYTES], and as many again
 *                    follow if some of them did not fit
 */
#ifndef QI_HOST_X86_DEPTHWISE_WIDE_H
#define QI_HOST_X86_DEPTHWISE_WIDE_H

#include "infer/host/x86/depthwise_tail.h"

enum { PARTS = QI_DEPTHWISE_LANES / LANES, COLUMNS = 4, BLOCK = QI_DEPTHWISE_BLOCK };

/* ------------------------------------------------------------------ quads */

/**
 * Make quads from BYTES positions of four rows, in the order that unpacking within 128 bits gives:
 * depthwise.h.
 */
INLINE void quads_of(const vector r[4], vector quads[4])
{
    vector const a = V(unpacklo_epi8)(r[0], r[1]), b = V(unpackhi_epi8)(r[0], r[1]);
    vector const c = V(unpacklo_epi8)(r[2], r[3]), d = V(unpackhi_epi8)(r[2], r[3]);
    quads[0] = V(unpacklo_epi16)(a, c);
    quads[1] = V(unpackhi_epi16)(a, c);
    quads[2] = V(unpacklo_epi16)(b, d);
    quads[3] = V(unpackhi_epi16)(b, d);
}

INLINE column load_column(const uint32_t *quads)
{
    return column_of(v_load(quads));
}

/** Interleave BYTES positions in order. */
INLINE void interleave_block(const uint8_t *const row[4], size_t at, vector flip, uint32_t *quads)
{
    vector r[4], q[4];
    for (int i = 0; i < 4; i++)
        r[i] = v_before_unpacking(v_xor(v_load(row[i] + at), flip));
    quads_of(r, q);
    for (int i = 0; i < 4; i++)
        v_store(quads + LANES * i, q[i]);
}

static void interleave(const qi_depthwise_rows *rows, uint32_t *quads)
{
    vector const flip = V(set1_epi8)((char)rows->flip);
    const uint8_t *row[4] = {rows->row[0], rows->row[1], rows->row[2], rows->row[3]};
    size_t const width = (size_t)rows->width;
    for (int32_t p = 0; p < rows->pixels; p++, quads += width) {
        for (size_t i = 0; i < width; i += BYTES)
            interleave_block(row, i, flip, quads + i);
        for (int r = 0; r < 4; r++)
            row[r] += rows->pitch[r];
    }
}

/* ------------------------------------------------------------------ sums to codes */

/** The constants of a part of a group. */
struct tail {
    const qi_depthwise_head *head;
    int kind;  /* constant wherever it is inlined */
    int first; /* first lane */
    vector mult_even, mult_odd, d_even, d_odd, right;
};

INLINE int is_cut(int kind)
{
    return kind == QI_DEPTHWISE_CUT || kind == QI_DEPTHWISE_LEFT_CUT;
}

INLINE struct tail tail_of(const qi_depthwise_head *head, int kind, int part)
{
    int const first = part * LANES, cut = is_cut(kind);
    vector const half = v_set64(INT64_C(1) << 30);
    return (struct tail){.head = head,
                         .kind = kind,
                         .first = first,
                         .mult_even = v_load(head->mult + first),
                         .mult_odd = v_load(head->mult_odd + first / 2),
                         .d_even = cut ? v_load(head->d[0] + first / 2) : half,
                         .d_odd = cut ? v_load(head->d[1] + first / 2) : half,
                         .right = v_load(head->right + first)};
}

INLINE vector requantize_right(const struct tail *t, vector even, vector odd)
{
    vector const s = v_even_odd(V(srli_epi64)(even, 31), V(slli_epi64)(odd, 1));
    vector const rounded =
        V(add_epi32)(V(add_epi32)(s, v_signs32(s)), v_load(t->head->round + t->first));
    return V(add_epi32)(v_shift_right32(rounded, t->right), V(set1_epi32)(t->head->zero_point));
}

INLINE vector product_even(const struct tail *t, vector x)
{
    return V(add_epi64)(V(mul_epi32)(x, t->mult_even), t->d_even);
}

INLINE vector product_odd(const struct tail *t, vector x)
{
    return V(add_epi64)(V(mul_epi32)(V(srli_epi64)(x, 32), t->mult_odd), t->d_odd);
}

/** FINE and ANY. They are rare, and take no registers from the loops that call them. */
__attribute__((noinline)) static vector requantize_rare(const qi_depthwise_head *head, int first,
                                                        vector x)
{
    if (head->tail == QI_DEPTHWISE_FINE) {
        struct tail const t = tail_of(head, QI_DEPTHWISE_FINE, first / LANES);
        vector const fine = V(add_epi32)(V(sll_epi32)(x, _mm_cvtsi32_si128(head->fraction)),
                                         v_load(head->late_bias + first));
        return requantize_right(&t, product_even(&t, fine), product_odd(&t, fine));
    }
    int32_t lane[LANES];
    v_store(lane, x);
    qi_depthwise_requantize(head, first, LANES, lane);
    return v_load(lane);
}

/** Rounding EVEN in lanes: even.h. */
INLINE vector requantize_even(const struct tail *t, vector x)
{
    const qi_depthwise_head *head = t->head;
    vector const s = V(sllv_epi32)(x, v_load(head->even_left + t->first));
    vector const h = v_upper_halves(V(mul_epi32)(s, t->mult_even),
                                    V(mul_epi32)(V(srli_epi64)(s, 32), t->mult_odd));
    vector const low = V(add_epi32)(h, v_load(head->even_add + t->first));
    vector const high = V(add_epi32)(low, v_load(head->even_span + t->first));
    vector const value = v_shift_right32(low, t->right);
    vector const y = V(add_epi32)(value, V(set1_epi32)(head->zero_point));
    uint32_t const ties = v_different32(value, v_shift_right32(high, t->right));
    if (!ties)
        return y;
    int32_t sums[LANES], values[LANES];
    v_store(sums, x);
    v_store(values, y);
    qi_depthwise_ties(head, t->first, ties, sums, values);
    return v_load(values);
}

INLINE vector requantize(const struct tail *t, vector x)
{
    if (t->kind == QI_DEPTHWISE_EVEN)
        return requantize_even(t, x);
    if (t->kind == QI_DEPTHWISE_ANY)
        return requantize_rare(t->head, t->first, x);
    if (t->kind == QI_DEPTHWISE_LEFT_CUT)
        x = V(sll_epi32)(x, _mm_cvtsi32_si128(t->head->left));
    vector const even = product_even(t, x), odd = product_odd(t, x);
    if (is_cut(t->kind))
        return v_shift_right32(v_upper_halves(even, odd), t->right);
    return requantize_right(t, even, odd);
}

/**
 * Clamp signed codes and convert them to the type of the output; packing has usually clamped them
 * already.
 */
INLINE vector finish(const qi_depthwise_head *head, vector codes)
{
    if (head->clamps)
        codes = V(min_epi8)(V(max_epi8)(codes, V(set1_epi8)(head->lo)), V(set1_epi8)(head->hi));
    if (head->y_flip)
        codes = v_xor(codes, V(set1_epi8)((char)head->y_flip));
    return codes;
}

/** Turn four vectors of values into four runs of LANES codes that packing has mixed. */
INLINE vector packed(const qi_depthwise_head *head, const vector v[4])
{
    vector const low = V(packs_epi32)(v[0], v[1]), high = V(packs_epi32)(v[2], v[3]);
    return finish(head, V(packs_epi16)(low, high));
}

/** Turn four vectors of sums into four runs of LANES codes, in order. */
INLINE vector codes_of(const struct tail *t, const vector s[COLUMNS])
{
    vector const v[] = {requantize(t, s[0]), requantize(t, s[1]), requantize(t, s[2]),
                        requantize(t, s[3])};
    return v_in_order(packed(t->head, v));
}

/* ------------------------------------------------------------------ 3 columns, two rows at once */

INLINE vector dot3(vector sum, const column *a, const column *b, const column *c, const uint8_t *w)
{
    return dot(dot(dot(sum, a, w), b, w + DOT_BYTES), c, w + 2 * DOT_BYTES);
}

/** Taps 0, step, 2 step: each quad serves three columns of two rows. */
INLINE void run_pair(const qi_depthwise_line *l, int kind, int part)
{
    const qi_depthwise_head *head = l->group;
    const uint8_t *w = (const uint8_t *)(head + 1) + part * 6 * DOT_BYTES;
    struct tail const t = tail_of(head, kind, part);
    vector const bias = v_load(head->bias + t.first);
    size_t const step = (size_t)l->step, y_step = (size_t)l->y_step;
    const uint32_t *q = l->quads + t.first;
    uint8_t *y0 = l->y[0] + t.first, *y1 = l->y[1] + t.first;
    int32_t const columns = l->columns;
    column a = load_column(q), b = load_column(q + step);
    for (int32_t x = 0; x < columns; x += 2, q += 2 * step, y0 += 2 * y_step, y1 += 2 * y_step) {
        int const both = x + 1 < columns;
        column const c = load_column(q + 2 * step), d = both ? load_column(q + 3 * step) : c;
        vector const s[COLUMNS] = {dot3(bias, &a, &b, &c, w), dot3(bias, &b, &c, &d, w),
                                   dot3(bias, &a, &b, &c, w + 3 * DOT_BYTES),
                                   dot3(bias, &b, &c, &d, w + 3 * DOT_BYTES)};
        vector const codes = codes_of(&t, s);
        v_store_quarter(y0, codes, 0);
        v_store_quarter(y1, codes, 2);
        if (both) {
            v_store_quarter(y0 + y_step, codes, 1);
            v_store_quarter(y1 + y_step, codes, 3);
        }
        a = c;
        b = d;
    }
}

/* ------------------------------------------------------------------ any taps, one row */

INLINE accumulators add_dot(accumulators s, const uint32_t *quads, const uint8_t *w)
{
    column const c = load_column(quads);
    return (accumulators)dot((vector)s, &c, w);
}

/** At most four columns from x on of row r. Missing columns repeat the first. */
INLINE void run_four(const qi_depthwise_line *l, const struct tail *t, int32_t r, int32_t x)
{
    const qi_depthwise_head *head = t->head;
    int32_t const columns = l->columns - x < COLUMNS ? l->columns - x : COLUMNS;
    size_t const row = (size_t)head->taps * DOT_BYTES, rows = (size_t)head->rows;
    size_t const rest = PARTS * rows * row, y_step = (size_t)l->y_step;
    const uint8_t *w =
        (const uint8_t *)(head + 1) + ((size_t)t->first / LANES * rows + (size_t)r) * row;
    uint8_t *y = l->y[r] + t->first + (size_t)x * y_step;
    const uint32_t *at[COLUMNS];
    accumulators acc[COLUMNS];
    vector s[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = l->quads + t->first + (size_t)(x + (i < columns ? i : 0)) * (size_t)l->step;
        acc[i] = (accumulators)v_load(head->bias + t->first);
    }
    for (int32_t k = 0; k < head->taps; k++, w += DOT_BYTES) {
        for (int i = 0; i < COLUMNS; i++)
            acc[i] = add_dot(acc[i], at[i] + l->offsets[k], w);
        if (!SPLITS || !head->spilled)
            continue;
        for (int i = 0; i < COLUMNS; i++)
            acc[i] = add_dot(acc[i], at[i] + l->offsets[k], w + rest);
    }
    for (int i = 0; i < COLUMNS; i++)
        s[i] = (vector)acc[i];
    vector const codes = codes_of(t, s);
    UNROLL for (int i = 0; i < COLUMNS; i++)
    {
        if (i < columns)
            v_store_quarter(y + (size_t)i * y_step, codes, i);
    }
}

INLINE void run_rows(const qi_depthwise_line *l, int kind, int part)
{
    struct tail const t = tail_of(l->group, kind, part);
    for (int32_t r = 0; r < l->rows; r++)
        for (int32_t x = 0; x < l->columns; x += COLUMNS)
            run_four(l, &t, r, x);
}

/* ------------------------------------------------------------------ blocks (depthwise.h) */

/** A part of a block: that part of each group, BYTES channels. */
struct block {
    const qi_depthwise_block *b;
    int kind, part; /* kind is constant wherever it is inlined */
};

INLINE const qi_depthwise_head *head_at(const struct block *k, int j)
{
    return (const qi_depthwise_head *)(const void *)((const uint8_t *)k->b->groups +
                                                     (size_t)j * k->b->group_bytes);
}

/** The weights of the first output row. */
INLINE const uint8_t *weights_at(const struct block *k, const qi_depthwise_head *head)
{
    return (const uint8_t *)(head + 1) + (size_t)(k->part * head->rows) * 3 * DOT_BYTES;
}

/** Column x of four groups, counted from the left border. */
INLINE void column_at(const struct block *k, int32_t x, column c[BLOCK])
{
    const qi_depthwise_rows *rows = &k->b->x;
    vector const flip = V(set1_epi8)((char)rows->flip);
    size_t const at = (size_t)(x - k->b->first);
    vector r[4], quads[BLOCK];
    if (at >= (size_t)rows->pixels) { /* also below 0 */
        for (int j = 0; j < BLOCK; j++)
            c[j] = column_of(V(set1_epi32)((int32_t)k->b->border));
        return;
    }
    for (int i = 0; i < 4; i++)
        r[i] = v_xor(v_load(rows->row[i] + at * rows->pitch[i] + BYTES * k->part), flip);
    quads_of(r, quads);
    for (int j = 0; j < BLOCK; j++)
        c[j] = column_of(quads[j]);
}

/**
 * Compute one row of outputs; stride is a constant. Each column is read and interleaved only once:
 * those under a window move on, in registers if these have room, else by pointers around a ring.
 */
INLINE void run_columns(const struct block *k, int stride)
{
    column ring[4][BLOCK], *a = ring[0], *b = ring[1], *c = ring[2], *d = ring[3];
    uint8_t *y = k->b->y[0] + BYTES * k->part;
    vector v[BLOCK];
    column_at(k, 0, a);
    column_at(k, 1, b);
    for (int32_t x = 0; x < k->b->columns; x++, y += k->b->y_step) {
        column_at(k, stride * x + 2, c);
#pragma GCC unroll 4
        for (int j = 0; j < BLOCK; j++) {
            const qi_depthwise_head *head = head_at(k, j);
            struct tail const t = tail_of(head, k->kind, k->part);
            vector const bias = v_load(head->bias + t.first);
            v[j] = requantize(&t, dot3(bias, &a[j], &b[j], &c[j], weights_at(k, head)));
        }
        v_store(y, packed(k->b->groups, v));
        if (PARTS == 1 && k->kind != QI_DEPTHWISE_EVEN) { /* whose calls take registers */
            for (int j = 0; j < BLOCK; j++) {
                a[j] = stride == 2 ? c[j] : b[j];
                b[j] = c[j];
            }
            if (stride == 2)
                column_at(k, 2 * x + 3, b);
            continue;
        }
        if (stride == 2)
            column_at(k, 2 * x + 3, d);
        column *const first = a, *const second = b;
        a = stride == 2 ? c : b;
        b = stride == 2 ? d : c;
        c = first; /* may be overwritten; so may d for stride 2 */
        d = second;
    }
}

/* ------------------------------------------------------------------ by tail */

/** A function of the parts of a line or a block, with one tail. */
#define KIND(name, type, of_part, tail)                                                            \
    static void name(const type *l)                                                                \
    {                                                                                              \
        _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++) of_part(l, tail, part);   \
    }

/** One for each tail (FINE has that of ANY), and their table. */
#define KINDS(name, type, of_part)                                                                 \
    KIND(name##_cut, type, of_part, QI_DEPTHWISE_CUT)                                              \
    KIND(name##_left_cut, type, of_part, QI_DEPTHWISE_LEFT_CUT)                                    \
    KIND(name##_right, type, of_part, QI_DEPTHWISE_RIGHT)                                          \
    KIND(name##_even, type, of_part, QI_DEPTHWISE_EVEN)                                            \
    KIND(name##_any, type, of_part, QI_DEPTHWISE_ANY)                                              \
    static void (*const name##_by_tail[])(const type *l) = {                                       \
        [QI_DEPTHWISE_CUT] = name##_cut,     [QI_DEPTHWISE_LEFT_CUT] = name##_left_cut,            \
        [QI_DEPTHWISE_RIGHT] = name##_right, [QI_DEPTHWISE_FINE] = name##_any,                     \
        [QI_DEPTHWISE_EVEN] = name##_even,   [QI_DEPTHWISE_ANY] = name##_any};

INLINE void run_stride_1(const qi_depthwise_block *b, int kind, int part)
{
    struct block const k = {.b = b, .kind = kind, .part = part};
    run_columns(&k, 1);
}

INLINE void run_stride_2(const qi_depthwise_block *b, int kind, int part)
{
    struct block const k = {.b = b, .kind = kind, .part = part};
    run_columns(&k, 2);
}

KINDS(pair, qi_depthwise_line, run_pair)
KINDS(rows, qi_depthwise_line, run_rows)
KINDS(stride_1, qi_depthwise_block, run_stride_1)
KINDS(stride_2, qi_depthwise_block, run_stride_2)

static void run(const qi_depthwise_line *l)
{
    const qi_depthwise_head *head = l->group;
    int const slides = head->taps == 3 && head->rows == 2 && l->rows == 2 && l->offsets[0] == 0 &&
                       l->offsets[1] == l->step && l->offsets[2] == 2 * l->step;
    (slides && !head->spilled ? pair_by_tail : rows_by_tail)[head->tail](l);
}

/** One row of outputs. */
static void run_block(const qi_depthwise_block *b)
{
    const qi_depthwise_head *head = b->groups;
    (b->stride == 2 ? stride_2_by_tail : stride_1_by_tail)[head->tail](b);
}

#endif

/**
 * Depthwise convolutions with AVX-512 VNNI: a register holds the quads or the sums of one group.
 *
 *   sums[c] += x'[c, 4 rows] . w[c, 4 rows]       VPDPBUSD: u8 * s8, four products a lane, added
 *                                                 without saturation
 *
 * A weight w - Z_w outside -128..127 (only in uint8 models) is split into two that fit, and its
 * group multiplies twice. The common 3x3 cases keep their weights in registers.
 */
#include "infer/host/x86/depthwise_tail.h"
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

#include <string.h>

enum { LANES = QI_DEPTHWISE_LANES, COLUMNS = 4 };

/* ------------------------------------------------------------------ packing */

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) + (size_t)rows * (size_t)taps * (wide ? 2 : 1) * LANES * 4;
}

/** Write the part of each weight that fits int8; after all of them, the rest of each. */
static void pack(const qi_depthwise_group *group, void *to)
{
    qi_depthwise_head *head = to;
    size_t const n = (size_t)group->rows * (size_t)group->taps * LANES * 4;
    int8_t *fit = (int8_t *)(head + 1), *rest = fit + n;
    qi_depthwise_pack_head(group, head);
    for (size_t i = 0; i < n; i++) {
        fit[i] = (int8_t)qi_clamp(group->weights[i], INT8_MIN, INT8_MAX);
        int8_t const over = (int8_t)(group->weights[i] - fit[i]);
        head->spilled |= over != 0;
        if (group->wide)
            rest[i] = over;
    }
}

/* ------------------------------------------------------------------ quads */

/** Make quads from 64 positions of four rows; register j gets those of group j of a block. */
INLINE void quads_of(const __m512i r[4], __m512i quads[4])
{
    __m512i const a = _mm512_unpacklo_epi8(r[0], r[1]), b = _mm512_unpackhi_epi8(r[0], r[1]);
    __m512i const c = _mm512_unpacklo_epi8(r[2], r[3]), d = _mm512_unpackhi_epi8(r[2], r[3]);
    quads[0] = _mm512_unpacklo_epi16(a, c);
    quads[1] = _mm512_unpackhi_epi16(a, c);
    quads[2] = _mm512_unpacklo_epi16(b, d);
    quads[3] = _mm512_unpackhi_epi16(b, d);
}

/**
 * Interleave 64 positions in order. Words are moved first, word 4 j + i to 4 i + j, so that
 * register j gets positions 16 j .. 16 j + 15.
 */
INLINE void interleave64(const uint8_t *const row[4], size_t at, __m512i flip, uint32_t *quads)
{
    __m512i const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i r[4], q[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm512_permutexvar_epi32(order,
                                        _mm512_xor_si512(_mm512_loadu_si512(row[i] + at), flip));
    quads_of(r, q);
    for (int i = 0; i < 4; i++)
        _mm512_storeu_si512(quads + 16 * i, q[i]);
}

static void interleave(const qi_depthwise_rows *rows, uint32_t *quads)
{
    __m512i const flip = _mm512_set1_epi8((char)rows->flip);
    const uint8_t *row[4] = {rows->row[0], rows->row[1], rows->row[2], rows->row[3]};
    size_t const width = (size_t)rows->width;
    for (int32_t p = 0; p < rows->pixels; p++, quads += width) {
        for (size_t i = 0; i < width; i += 64)
            interleave64(row, i, flip, quads + i);
        for (int r = 0; r < 4; r++)
            row[r] += rows->pitch[r];
    }
}

/* ------------------------------------------------------------------ sums to codes */

/** The constants of a group. */
struct tail {
    const qi_depthwise_head *head;
    int kind; /* constant wherever it is inlined */
    __m512i mult_even, mult_odd, d_even, d_odd, right;
};

INLINE struct tail tail_of(const qi_depthwise_head *head, int kind)
{
    __m512i const mult = _mm512_load_si512(head->mult);
    __m512i const half = _mm512_set1_epi64(INT64_C(1) << 30);
    int const cut = kind == QI_DEPTHWISE_CUT;
    return (struct tail){.head = head,
                         .kind = kind,
                         .mult_even = mult,
                         .mult_odd = _mm512_load_si512(head->mult_odd),
                         .d_even = cut ? _mm512_load_si512(head->d[0]) : half,
                         .d_odd = cut ? _mm512_load_si512(head->d[1]) : half,
                         .right = _mm512_load_si512(head->right)};
}

INLINE __m512i requantize(const struct tail *t, __m512i x)
{
    if (t->kind == QI_DEPTHWISE_ANY) {
        int32_t lane[LANES];
        memcpy(lane, &x, sizeof lane);
        qi_depthwise_requantize(t->head, 0, LANES, lane);
        memcpy(&x, lane, sizeof lane);
        return x;
    }
    __m512i const even = _mm512_add_epi64(_mm512_mul_epi32(x, t->mult_even), t->d_even);
    __m512i const odd =
        _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(x, 32), t->mult_odd), t->d_odd);
    if (t->kind == QI_DEPTHWISE_CUT)
        return qi_srav512(qi_high_words512(even, odd), t->right);
    __m512i const s =
        _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
    __m512i const rounded =
        _mm512_add_epi32(_mm512_add_epi32(s, qi_sra512(s, 31)), _mm512_load_si512(t->head->round));
    return _mm512_add_epi32(qi_srav512(rounded, t->right), _mm512_set1_epi32(t->head->zero_point));
}

/**
 * Clamp signed codes and convert them to the type of the output; packing has usually clamped them
 * already.
 */
INLINE __m512i finish(const qi_depthwise_head *head, __m512i codes)
{
    if (head->clamps)
        codes = _mm512_min_epi8(_mm512_max_epi8(codes, _mm512_set1_epi8(head->lo)),
                                _mm512_set1_epi8(head->hi));
    if (head->y_flip)
        codes = _mm512_xor_si512(codes, _mm512_set1_epi8((char)head->y_flip));
    return codes;
}

/** Turn four vectors of sums into four runs of 16 codes, in order. */
INLINE __m512i codes_of(const struct tail *t, const __m512i sums[COLUMNS])
{
    __m512i const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i const low = _mm512_packs_epi32(requantize(t, sums[0]), requantize(t, sums[1]));
    __m512i const high = _mm512_packs_epi32(requantize(t, sums[2]), requantize(t, sums[3]));
    __m512i codes = _mm512_packs_epi16(low, high);
    return _mm512_permutexvar_epi32(order, finish(t->head, codes));
}

INLINE void store16(uint8_t *to, __m128i codes)
{
    _mm_storeu_si128((__m128i *)(void *)to, codes);
}

/* ------------------------------------------------------------------ 3 columns, two rows at once */

INLINE __m512i load(const void *at)
{
    return _mm512_loadu_si512(at);
}

INLINE __m512i dot3(__m512i sum, __m512i a, __m512i b, __m512i c, const __m512i w[3])
{
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, a, w[0]), b, w[1]), c,
                               w[2]);
}

/** Taps 0, step, 2 step: each quad serves three columns of two rows. */
INLINE void run_pair(const qi_depthwise_line *l, int kind)
{
    const qi_depthwise_head *head = l->group;
    const uint8_t *weights = (const uint8_t *)(head + 1);
    struct tail const t = tail_of(head, kind);
    __m512i const bias = _mm512_load_si512(head->bias);
    size_t const step = (size_t)l->step, y_step = (size_t)l->y_step;
    int32_t const columns = l->columns;
    const uint32_t *q = l->quads;
    uint8_t *y0 = l->y[0], *y1 = l->y[1];
    __m512i w[2][3];
    for (int i = 0; i < 6; i++)
        w[i / 3][i % 3] = _mm512_load_si512(weights + 64 * i);
    __m512i a = load(q), b = load(q + step);
    for (int32_t x = 0; x < columns; x += 2, q += 2 * step, y0 += 2 * y_step, y1 += 2 * y_step) {
        int const both = x + 1 < columns;
        __m512i const c = load(q + 2 * step), d = both ? load(q + 3 * step) : c;
        __m512i const sums[COLUMNS] = {dot3(bias, a, b, c, w[0]), dot3(bias, b, c, d, w[0]),
                                       dot3(bias, a, b, c, w[1]), dot3(bias, b, c, d, w[1])};
        __m512i const codes = codes_of(&t, sums);
        store16(y0, _mm512_castsi512_si128(codes));
        store16(y1, _mm512_extracti32x4_epi32(codes, 2));
        if (both) {
            store16(y0 + y_step, _mm512_extracti32x4_epi32(codes, 1));
            store16(y1 + y_step, _mm512_extracti32x4_epi32(codes, 3));
        }
        a = c;
        b = d;
    }
}

/* ------------------------------------------------------------------ any taps, one row */

/**
 * Where the sums of at most four columns from x on of row r begin. Missing columns repeat the
 * first. Returns their number.
 */
INLINE int32_t four_columns(const qi_depthwise_line *l, int32_t x, const uint32_t *at[COLUMNS])
{
    int32_t const columns = l->columns - x < COLUMNS ? l->columns - x : COLUMNS;
    for (int i = 0; i < COLUMNS; i++)
        at[i] = l->quads + (size_t)(x + (i < columns ? i : 0)) * (size_t)l->step;
    return columns;
}

INLINE qi_sums512 add_dot(qi_sums512 sums, const uint32_t *quads, const uint8_t *weights)
{
    return qi_sums_of512(_mm512_dpbusd_epi32(qi_vector_of512(sums), load(quads), load(weights)));
}

/** Sum the lanes of a group at four columns of row r; `from`: quads to skip. */
INLINE void sum_four(const qi_depthwise_head *head, const int32_t *offsets, int32_t r,
                     const uint32_t *const at[COLUMNS], size_t from, __m512i sums[COLUMNS])
{
    size_t const row = (size_t)head->taps * 64, rest = (size_t)head->rows * row;
    const uint8_t *w = (const uint8_t *)(head + 1) + (size_t)r * row;
    qi_sums512 acc[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        acc[i] = qi_sums_of512(_mm512_load_si512(head->bias));
    for (int32_t k = 0; k < head->taps; k++, w += 64) {
        size_t const tap = (size_t)offsets[k] + from;
        for (int i = 0; i < COLUMNS; i++)
            acc[i] = add_dot(acc[i], at[i] + tap, w);
        if (!head->spilled)
            continue;
        for (int i = 0; i < COLUMNS; i++)
            acc[i] = add_dot(acc[i], at[i] + tap, w + rest);
    }
    for (int i = 0; i < COLUMNS; i++)
        sums[i] = qi_vector_of512(acc[i]);
}

INLINE void run_four(const qi_depthwise_line *l, const struct tail *t, int32_t r, int32_t x)
{
    const uint32_t *at[COLUMNS];
    __m512i sums[COLUMNS];
    int32_t const columns = four_columns(l, x, at);
    size_t const y_step = (size_t)l->y_step;
    uint8_t *y = l->y[r] + (size_t)x * y_step;
    sum_four(t->head, l->offsets, r, at, 0, sums);
    __m512i const codes = codes_of(t, sums);
    store16(y, _mm512_castsi512_si128(codes));
    if (columns > 1)
        store16(y + y_step, _mm512_extracti32x4_epi32(codes, 1));
    if (columns > 2)
        store16(y + 2 * y_step, _mm512_extracti32x4_epi32(codes, 2));
    if (columns > 3)
        store16(y + 3 * y_step, _mm512_extracti32x4_epi32(codes, 3));
}

INLINE void run_rows(const qi_depthwise_line *l, int kind)
{
    struct tail const t = tail_of(l->group, kind);
    for (int32_t r = 0; r < l->rows; r++)
        for (int32_t x = 0; x < l->columns; x += COLUMNS)
            run_four(l, &t, r, x);
}

/* ------------------------------------------------------------------ blocks */

enum { BLOCK = QI_DEPTHWISE_BLOCK };

INLINE const qi_depthwise_head *head_at(const qi_depthwise_block *b, int j)
{
    return (const qi_depthwise_head *)(const void *)((const uint8_t *)b->groups +
                                                     (size_t)j * b->group_bytes);
}

/** The quads of column x, counted from the left border. */
INLINE void column_at(const qi_depthwise_block *b, int32_t x, __m512i quads[BLOCK])
{
    __m512i const flip = _mm512_set1_epi8((char)b->x.flip);
    size_t const at = (size_t)(x - b->first);
    __m512i r[4];
    if (at >= (size_t)b->x.pixels) { /* also below 0 */
        for (int j = 0; j < BLOCK; j++)
            quads[j] = _mm512_set1_epi32((int32_t)b->border);
        return;
    }
    for (int i = 0; i < 4; i++)
        r[i] = _mm512_xor_si512(_mm512_loadu_si512(b->x.row[i] + at * b->x.pitch[i]), flip);
    quads_of(r, quads);
}

/** Store 64 codes from the values of four groups. */
INLINE void store_block(uint8_t *y, const qi_depthwise_head *head, const __m512i v[BLOCK])
{
    __m512i const low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    _mm512_storeu_si512(y, finish(head, _mm512_packs_epi16(low, high)));
}

INLINE void copy_column(__m512i to[BLOCK], const __m512i from[BLOCK])
{
    for (int j = 0; j < BLOCK; j++)
        to[j] = from[j];
}

/** Compute one row of outputs; stride is a constant. */
INLINE void run_columns(const qi_depthwise_block *k, int kind, int stride)
{
    __m512i a[BLOCK], b[BLOCK], c[BLOCK], v[BLOCK];
    column_at(k, 0, a);
    column_at(k, 1, b);
    for (int32_t x = 0; x < k->columns; x++) {
        column_at(k, stride * x + 2, c);
#pragma GCC unroll 4
        for (int j = 0; j < BLOCK; j++) {
            const qi_depthwise_head *head = head_at(k, j);
            struct tail const t = tail_of(head, kind);
            v[j] = requantize(&t, dot3(_mm512_load_si512(head->bias), a[j], b[j], c[j],
                                       (const __m512i *)(const void *)(head + 1)));
        }
        store_block(k->y[0] + (size_t)x * (size_t)k->y_step, k->groups, v);
        copy_column(a, stride == 2 ? c : b);
        if (stride == 2)
            column_at(k, 2 * x + 3, b);
        else
            copy_column(b, c);
    }
}

/**
 * Compute two rows of two columns, whose kernels cover a, b, c and b, c, d: the values of groups 2
 * half and 2 half + 1, as int16.
 */
INLINE void square(const qi_depthwise_block *k, int kind, int half, __m512i q[4][BLOCK],
                   __m512i values[COLUMNS])
{
    __m512i v[2][COLUMNS];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        int const j = 2 * half + i;
        const qi_depthwise_head *head = head_at(k, j);
        const __m512i *w = (const __m512i *)(const void *)(head + 1);
        struct tail const t = tail_of(head, kind);
        __m512i const bias = _mm512_load_si512(head->bias);
        v[i][0] = requantize(&t, dot3(bias, q[0][j], q[1][j], q[2][j], w));
        v[i][1] = requantize(&t, dot3(bias, q[1][j], q[2][j], q[3][j], w));
        v[i][2] = requantize(&t, dot3(bias, q[0][j], q[1][j], q[2][j], w + 3));
        v[i][3] = requantize(&t, dot3(bias, q[1][j], q[2][j], q[3][j], w + 3));
    }
    for (int i = 0; i < COLUMNS; i++)
        values[i] = _mm512_packs_epi32(v[0][i], v[1][i]);
}

/** Compute two rows of outputs with stride 1: weights are read once for four outputs. */
INLINE void run_squares(const qi_depthwise_block *k, int kind)
{
    const qi_depthwise_head *head = k->groups;
    uint8_t *y[2] = {k->y[0], k->y[1]};
    __m512i q[4][BLOCK], low[COLUMNS], high[COLUMNS];
    column_at(k, 0, q[0]);
    column_at(k, 1, q[1]);
    for (int32_t x = 0; x < k->columns; x += 2) {
        column_at(k, x + 2, q[2]);
        column_at(k, x + 3, q[3]);
        square(k, kind, 0, q, low);
        square(k, kind, 1, q, high);
        for (int i = 0; i < COLUMNS; i++)
            if (i % 2 == 0 || x + 1 < k->columns)
                _mm512_storeu_si512(y[i / 2] + (size_t)(x + i % 2) * (size_t)k->y_step,
                                    finish(head, _mm512_packs_epi16(low[i], high[i])));
        copy_column(q[0], q[2]);
        copy_column(q[1], q[3]);
    }
}

/* ------------------------------------------------------------------ the table */

#define KINDS(name, run)                                                                           \
    static void name##_cut(const qi_depthwise_line *l)                                             \
    {                                                                                              \
        run(l, QI_DEPTHWISE_CUT);                                                                  \
    }                                                                                              \
    static void name##_right(const qi_depthwise_line *l)                                           \
    {                                                                                              \
        run(l, QI_DEPTHWISE_RIGHT);                                                                \
    }                                                                                              \
    static void name##_any(const qi_depthwise_line *l)                                             \
    {                                                                                              \
        run(l, QI_DEPTHWISE_ANY);                                                                  \
    }
KINDS(pair, run_pair)
KINDS(rows, run_rows)
#undef KINDS

typedef void line_fn(const qi_depthwise_line *l);

/** [two rows of three columns at once][tail] */
static line_fn *const lines[2][3] = {{rows_cut, rows_right, rows_any},
                                     {pair_cut, pair_right, pair_any}};

static void run(const qi_depthwise_line *l)
{
    const qi_depthwise_head *head = l->group;
    int const slides = l->rows == 2 && head->rows == 2 && head->taps == 3 && !head->spilled &&
                       l->offsets[0] == 0 && l->offsets[1] == l->step &&
                       l->offsets[2] == 2 * l->step;
    lines[slides][head->tail](l);
}

#define KINDS(name, run)                                                                           \
    static void name##_cut(const qi_depthwise_block *b)                                            \
    {                                                                                              \
        run(b, QI_DEPTHWISE_CUT);                                                                  \
    }                                                                                              \
    static void name##_right(const qi_depthwise_block *b)                                          \
    {                                                                                              \
        run(b, QI_DEPTHWISE_RIGHT);                                                                \
    }                                                                                              \
    static void name##_any(const qi_depthwise_block *b)                                            \
    {                                                                                              \
        run(b, QI_DEPTHWISE_ANY);                                                                  \
    }

INLINE void run_stride_1(const qi_depthwise_block *b, int kind)
{
    run_columns(b, kind, 1);
}

INLINE void run_stride_2(const qi_depthwise_block *b, int kind)
{
    run_columns(b, kind, 2);
}

KINDS(stride_1, run_stride_1)
KINDS(stride_2, run_stride_2)
KINDS(squares, run_squares)

typedef void block_fn(const qi_depthwise_block *b);

static void run_block(const qi_depthwise_block *b)
{
    static block_fn *const blocks[3][3] = {{stride_1_cut, stride_1_right, stride_1_any},
                                           {stride_2_cut, stride_2_right, stride_2_any},
                                           {squares_cut, squares_right, squares_any}};
    blocks[b->rows == 2 ? 2 : b->stride - 1][head_at(b, 0)->tail](b);
}

const qi_depthwise QI_VARIANT(qi_depthwise_avx512vnni) = {.name = "avx512vnni",
                                                          .group_bytes = group_bytes,
                                                          .pack = pack,
                                                          .interleave = interleave,
                                                          .run = run,
                                                          .run_block = run_block,
                                                          .block_rows = 2};

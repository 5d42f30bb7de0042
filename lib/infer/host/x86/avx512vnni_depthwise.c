/**
 * Depthwise convolutions with AVX-512 VNNI: a register holds the quads or the sums of one group.
 *
 *   sums[c] += x'[c, 4 rows] . w[c, 4 rows]       VPDPBUSD: u8 * s8, four products a lane, added
 *                                                 without saturation
 *
 * A weight w - Z_w outside -128..127 (uint8 models only) is split in two that fit, and its group
 * multiplies twice. The common 3x3 cases keep their weights in registers.
 */
#include "infer/host/x86/depthwise_tail.h"
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/x86.h"

#include <string.h>

enum { LANES = QI_DEPTHWISE_LANES, COLUMNS = 4 };

#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------ packing */

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) + (size_t)rows * (size_t)taps * (wide ? 2 : 1) * LANES * 4;
}

/** The part of each weight that fits int8; behind them all, the rest of each. */
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

/** 64 positions of four rows. Words are moved first so that unpacking within 128 bits leaves the
 *  quads in order: word 4 i + j of the quads' register j comes from word 4 j + i. */
INLINE void interleave64(const uint8_t *const row[4], __m512i flip, uint32_t *quads)
{
    __m512i const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i r[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm512_permutexvar_epi32(order, _mm512_xor_si512(_mm512_loadu_si512(row[i]), flip));
    __m512i const a = _mm512_unpacklo_epi8(r[0], r[1]), b = _mm512_unpackhi_epi8(r[0], r[1]);
    __m512i const c = _mm512_unpacklo_epi8(r[2], r[3]), d = _mm512_unpackhi_epi8(r[2], r[3]);
    _mm512_storeu_si512(quads, _mm512_unpacklo_epi16(a, c));
    _mm512_storeu_si512(quads + 16, _mm512_unpackhi_epi16(a, c));
    _mm512_storeu_si512(quads + 32, _mm512_unpacklo_epi16(b, d));
    _mm512_storeu_si512(quads + 48, _mm512_unpackhi_epi16(b, d));
}

static void interleave(const qi_depthwise_rows *rows, uint32_t *quads)
{
    __m512i const flip = _mm512_set1_epi8((char)rows->flip);
    const uint8_t *row[4] = {rows->row[0], rows->row[1], rows->row[2], rows->row[3]};
    for (int32_t p = 0; p < rows->pixels; p++, quads += rows->width) {
        for (int32_t i = 0; i < rows->width; i += 64) {
            const uint8_t *const at[4] = {row[0] + i, row[1] + i, row[2] + i, row[3] + i};
            interleave64(at, flip, quads + i);
        }
        for (int r = 0; r < 4; r++)
            row[r] += rows->pitch[r];
    }
}

/* ------------------------------------------------------------------ sums to codes */

/** A group's constants. */
struct tail {
    const qi_depthwise_head *head;
    int kind; /* a constant wherever it is inlined */
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
                         .mult_odd = _mm512_srli_epi64(mult, 32),
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

/** Four vectors of sums to four runs of 16 codes, in order. */
INLINE __m512i codes_of(const struct tail *t, const __m512i sums[COLUMNS])
{
    __m512i const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i const low = _mm512_packs_epi32(requantize(t, sums[0]), requantize(t, sums[1]));
    __m512i const high = _mm512_packs_epi32(requantize(t, sums[2]), requantize(t, sums[3]));
    __m512i codes = _mm512_packs_epi16(low, high);
    codes = _mm512_max_epi8(codes, _mm512_set1_epi8((char)t->head->lo));
    codes = _mm512_min_epi8(codes, _mm512_set1_epi8((char)t->head->hi));
    codes = _mm512_xor_si512(codes, _mm512_set1_epi8((char)t->head->y_flip));
    return _mm512_permutexvar_epi32(order, codes);
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

/** Taps 0, step, 2 step: every quad serves three columns of two rows. */
INLINE void run_pair(const qi_depthwise_line *l, int kind)
{
    const qi_depthwise_head *head = l->group;
    const uint8_t *weights = (const uint8_t *)(head + 1);
    struct tail const t = tail_of(head, kind);
    __m512i const bias = _mm512_load_si512(head->bias);
    size_t const step = (size_t)l->step;
    const uint32_t *q = l->quads;
    uint8_t *y0 = l->y[0], *y1 = l->y[1];
    __m512i w[2][3];
    for (int i = 0; i < 6; i++)
        w[i / 3][i % 3] = _mm512_load_si512(weights + 64 * i);
    __m512i a = load(q), b = load(q + step);
    for (int32_t x = 0; x < l->columns; x += 2, q += 2 * step) {
        int const both = x + 1 < l->columns;
        __m512i const c = load(q + 2 * step), d = both ? load(q + 3 * step) : c;
        __m512i const sums[COLUMNS] = {dot3(bias, a, b, c, w[0]), dot3(bias, b, c, d, w[0]),
                                       dot3(bias, a, b, c, w[1]), dot3(bias, b, c, d, w[1])};
        __m512i const codes = codes_of(&t, sums);
        store16(y0, _mm512_castsi512_si128(codes));
        store16(y1, _mm512_extracti32x4_epi32(codes, 2));
        if (both) {
            store16(y0 + l->y_step, _mm512_extracti32x4_epi32(codes, 1));
            store16(y1 + l->y_step, _mm512_extracti32x4_epi32(codes, 3));
        }
        y0 += 2 * l->y_step;
        y1 += 2 * l->y_step;
        a = c;
        b = d;
    }
}

/* ------------------------------------------------------------------ any taps, one row */

/** Four columns of row r, of which `columns` are stored. */
INLINE void run_four(const qi_depthwise_line *l, const struct tail *t, int32_t r, int32_t x,
                     int taps)
{
    const qi_depthwise_head *head = l->group;
    const uint8_t *w = (const uint8_t *)(head + 1) + (size_t)r * (size_t)taps * 64;
    size_t const rest = (size_t)head->rows * (size_t)taps * 64;
    int32_t const columns = l->columns - x < COLUMNS ? l->columns - x : COLUMNS;
    const uint32_t *at[COLUMNS];
    __m512i sums[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = l->quads + (size_t)(x + (i < columns ? i : 0)) * (size_t)l->step;
        sums[i] = _mm512_load_si512(head->bias);
    }
#pragma GCC unroll 3
    for (int k = 0; k < taps; k++, w += 64) {
        __m512i const weights = _mm512_load_si512(w);
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_dpbusd_epi32(sums[i], load(at[i] + l->offsets[k]), weights);
        if (!head->spilled)
            continue;
        for (int i = 0; i < COLUMNS; i++)
            sums[i] = _mm512_dpbusd_epi32(sums[i], load(at[i] + l->offsets[k]),
                                          _mm512_load_si512(w + rest));
    }
    __m512i const codes = codes_of(t, sums);
    uint8_t *y = l->y[r] + (size_t)x * (size_t)l->y_step;
    store16(y, _mm512_castsi512_si128(codes));
    if (columns > 1)
        store16(y + l->y_step, _mm512_extracti32x4_epi32(codes, 1));
    if (columns > 2)
        store16(y + 2 * (size_t)l->y_step, _mm512_extracti32x4_epi32(codes, 2));
    if (columns > 3)
        store16(y + 3 * (size_t)l->y_step, _mm512_extracti32x4_epi32(codes, 3));
}

INLINE void run_rows(const qi_depthwise_line *l, int kind, int taps)
{
    struct tail const t = tail_of(l->group, kind);
    for (int32_t r = 0; r < l->rows; r++)
        for (int32_t x = 0; x < l->columns; x += COLUMNS)
            run_four(l, &t, r, x, taps);
}

/* ------------------------------------------------------------------ the table */

static void pair_cut(const qi_depthwise_line *l)
{
    run_pair(l, QI_DEPTHWISE_CUT);
}

static void pair_right(const qi_depthwise_line *l)
{
    run_pair(l, QI_DEPTHWISE_RIGHT);
}

static void rows_cut(const qi_depthwise_line *l)
{
    run_rows(l, QI_DEPTHWISE_CUT, ((const qi_depthwise_head *)l->group)->taps);
}

static void rows_right(const qi_depthwise_line *l)
{
    run_rows(l, QI_DEPTHWISE_RIGHT, ((const qi_depthwise_head *)l->group)->taps);
}

static void rows_any(const qi_depthwise_line *l)
{
    run_rows(l, QI_DEPTHWISE_ANY, ((const qi_depthwise_head *)l->group)->taps);
}

static void run(const qi_depthwise_line *l)
{
    const qi_depthwise_head *head = l->group;
    int const slides = head->taps == 3 && l->offsets[0] == 0 && l->offsets[1] == l->step &&
                       l->offsets[2] == 2 * l->step;
    if (head->tail == QI_DEPTHWISE_ANY)
        rows_any(l);
    else if (slides && l->rows == 2 && !head->spilled)
        (head->tail == QI_DEPTHWISE_CUT ? pair_cut : pair_right)(l);
    else
        (head->tail == QI_DEPTHWISE_CUT ? rows_cut : rows_right)(l);
}

const qi_depthwise QI_VARIANT(qi_depthwise_avx512vnni) = {"avx512vnni", group_bytes, pack,
                                                          interleave, run};

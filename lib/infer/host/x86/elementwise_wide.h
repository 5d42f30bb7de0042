/**
 * Runs of codes in vectors of either width. The including file first includes wide256.h or
 * wide512.h, and defines how tables are looked up:
 *
 *     TABLE_VECTORS   that hold a table
 *     load_table      fills them
 *     look_up         a vector of codes in one
 */
#ifndef QI_HOST_X86_ELEMENTWISE_WIDE_H
#define QI_HOST_X86_ELEMENTWISE_WIDE_H

#include "infer/host/loops/plain_loops.h"
#include "infer/host/x86/blend_wide.h"

/* ------------------------------------------------------------------ tables */

static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    vector t[TABLE_VECTORS];
    size_t i = 0;
    load_table(table, t);
    for (; i + BYTES <= n; i += BYTES)
        v_store(y + i, look_up(t, v_load(x + i)));
    if (i < n)
        v_store_first(y + i, look_up(t, v_load_first(x + i, n - i)), n - i);
}

/**
 * Byte i is that of v[turn (i - first) modulo 3]; turn is its own inverse. third: the bytes 0, 1, 2
 * modulo 3.
 */
INLINE vector blend3(const byte_mask third[3], int first, int turn, const vector v[3])
{
    vector const two = v_blend8(third[(first + turn) % 3], v[0], v[1]);
    return v_blend8(third[(first + 2 * turn) % 3], two, v[2]);
}

/**
 * BYTES pixels of three channels. Byte i of vector k has channel (i + NEXT k) modulo 3: so in each
 * place the three vectors have three channels. They are blended into one vector for each channel,
 * looked up, and blended back. (NEXT is its own inverse modulo 3.)
 */
INLINE void look_up_3(vector t[3][TABLE_VECTORS], const byte_mask third[3], const uint8_t *x,
                      uint8_t *y)
{
    enum { NEXT = BYTES % 3 };
    vector const v[] = {v_load(x), v_load(x + BYTES), v_load(x + 2 * BYTES)};
    vector const answers[] = {look_up(t[0], blend3(third, 0, 3 - NEXT, v)),
                              look_up(t[1], blend3(third, 1, 3 - NEXT, v)),
                              look_up(t[2], blend3(third, 2, 3 - NEXT, v))};
    v_store(y, blend3(third, 0, 1, answers));
    v_store(y + BYTES, blend3(third, 3 - NEXT, 1, answers));
    v_store(y + 2 * BYTES, blend3(third, NEXT, 1, answers));
}

static void lookup_3_channels(const uint8_t *tables, const uint8_t *x, uint8_t *y, size_t n)
{
    enum { PIXELS = 3 * BYTES };
    uint8_t last[PIXELS] = {0}, bytes[PIXELS];
    vector t[3][TABLE_VECTORS];
    byte_mask third[3];
    size_t i = 0;
    for (int k = 0; k < PIXELS; k++)
        bytes[k] = k % BYTES % 3 == k / BYTES ? 0xff : 0;
    for (int c = 0; c < 3; c++) {
        third[c] = v_mask_of(bytes + c * BYTES);
        load_table(tables + c * QI_TABLE, t[c]);
    }
    for (; i + PIXELS <= n; i += PIXELS)
        look_up_3(t, third, x + i, y + i);
    memcpy(last, x + i, n - i);
    look_up_3(t, third, last, last);
    memcpy(y + i, last, n - i);
}

static void lookup_channels(const uint8_t *tables, size_t channels, const uint8_t *x, uint8_t *y,
                            size_t n)
{
    if (channels == 3)
        lookup_3_channels(tables, x, y, n);
    else
        plain_lookup_channels(tables, channels, x, y, n);
}

/* ------------------------------------------------------------------ requantization */

/** One multiplier in all lanes; see include/qat/rounding.h. */
struct scale {
    vector mult, round, away; /* away: -1 if halves go away from zero, 0 without a right shift */
    vector right;
};

INLINE struct scale scale_of(int32_t mult, int32_t right)
{
    return (struct scale){.mult = V(set1_epi32)(mult),
                          .round = V(set1_epi32)(right ? 1 << (right - 1) : 0),
                          .away = V(set1_epi32)(right ? -1 : 0),
                          .right = V(set1_epi32)(right)};
}

/** (s + 2^(right-1) - [s < 0]) >> right of s = (x mult + 2^30) >> 31 */
INLINE vector rescale(const struct scale *k, vector x)
{
    vector const half = v_set64(INT64_C(1) << 30);
    vector const even = V(add_epi64)(V(mul_epi32)(x, k->mult), half);
    vector const odd = V(add_epi64)(V(mul_epi32)(V(srli_epi64)(x, 32), k->mult), half);
    vector const s = v_even_odd(V(srli_epi64)(even, 31), V(slli_epi64)(odd, 1));
    vector const away = v_and(v_signs32(s), k->away);
    return v_shift_right32(V(add_epi32)(V(add_epi32)(s, k->round), away), k->right);
}

/** Turn four vectors of values into codes. */
INLINE vector codes_of_values(const qi_scaling *s, const vector v[4])
{
    vector const zero_point = V(set1_epi16)((int16_t)s->zero_point);
    vector const low = V(adds_epi16)(V(packs_epi32)(v[0], v[1]), zero_point);
    vector const high = V(adds_epi16)(V(packs_epi32)(v[2], v[3]), zero_point);
    vector codes = V(packs_epi16)(low, high);
    codes = V(max_epi8)(codes, V(set1_epi8)((char)s->lo));
    codes = V(min_epi8)(codes, V(set1_epi8)((char)s->hi));
    return v_xor(codes, V(set1_epi8)((char)s->y_flip));
}

static void requantize(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n)
{
    struct scale const k = scale_of(s->mult, s->right);
    for (size_t i = 0; i < n; i += BYTES) {
        int32_t last[BYTES] = {0};
        const int32_t *from = sums + i;
        vector v[4];
        if (n - i < BYTES)
            from = memcpy(last, from, (n - i) * sizeof *from);
        for (int j = 0; j < 4; j++)
            v[j] = rescale(&k, v_load(from + LANES * j));
        v_store_first(y + i, v_in_order(codes_of_values(s, v)), n - i);
    }
}

/* ------------------------------------------------------------------ add, sub, mul */

/** Turn bytes into differences, in the order that packing reverses. */
INLINE void differences(vector bytes, qi_codes c, vector d[4])
{
    vector const offset = V(set1_epi32)(c.offset);
    vector const q = v_xor(bytes, V(set1_epi8)((char)c.flip));
    vector const low = V(unpacklo_epi8)(q, v_zero()), high = V(unpackhi_epi8)(q, v_zero());
    d[0] = V(sub_epi32)(V(unpacklo_epi16)(low, v_zero()), offset);
    d[1] = V(sub_epi32)(V(unpackhi_epi16)(low, v_zero()), offset);
    d[2] = V(sub_epi32)(V(unpacklo_epi16)(high, v_zero()), offset);
    d[3] = V(sub_epi32)(V(unpackhi_epi16)(high, v_zero()), offset);
}

INLINE void combine_kind(const qi_combine *c, int kind, const uint8_t *a, const uint8_t *b,
                         uint8_t *y, size_t n)
{
    struct scale const ka = scale_of(c->mult_a, c->right_a), kb = scale_of(c->mult_b, c->right_b);
    struct scale const k = scale_of(c->y.mult, c->y.right);
    __m128i const left = _mm_cvtsi32_si128(c->left_shift);
    for (size_t i = 0; i < n; i += BYTES) {
        vector da[4], db[4], v[4];
        differences(v_load_first(a + i, n - i), c->a, da);
        differences(v_load_first(b + i, n - i), c->b, db);
        for (int j = 0; j < 4; j++) {
            if (kind == QI_COMBINE_MUL) {
                v[j] = rescale(&k, V(mullo_epi32)(da[j], db[j]));
                continue;
            }
            vector const xa = rescale(&ka, V(sll_epi32)(da[j], left));
            vector const xb = rescale(&kb, V(sll_epi32)(db[j], left));
            v[j] =
                rescale(&k, kind == QI_COMBINE_ADD ? V(add_epi32)(xa, xb) : V(sub_epi32)(xa, xb));
        }
        v_store_first(y + i, codes_of_values(&c->y, v), n - i);
    }
}

static void combine(const qi_combine *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    if (c->kind == QI_COMBINE_ADD)
        combine_kind(c, QI_COMBINE_ADD, a, b, y, n);
    else if (c->kind == QI_COMBINE_SUB)
        combine_kind(c, QI_COMBINE_SUB, a, b, y, n);
    else
        combine_kind(c, QI_COMBINE_MUL, a, b, y, n);
}

/* ------------------------------------------------------------------ words to codes */

/** `all`: they are all int8, which packing limits anyway. */
struct limits {
    int all;
    vector lo, hi, flip;
};

static int is_all(int32_t lo, int32_t hi, uint8_t flip)
{
    return lo == INT8_MIN && hi == INT8_MAX && flip == 0;
}

INLINE struct limits limits_of(int all, int32_t lo, int32_t hi, uint8_t flip)
{
    return (struct limits){all, V(set1_epi8)((char)lo), V(set1_epi8)((char)hi),
                           V(set1_epi8)((char)flip)};
}

/** Words to codes; the order of unpacking becomes that of the bytes. */
INLINE vector codes_of_words(const struct limits *k, vector first, vector second)
{
    vector const codes = V(packs_epi16)(first, second);
    if (k->all)
        return codes;
    return v_xor(V(min_epi8)(V(max_epi8)(codes, k->lo), k->hi), k->flip);
}

/* ------------------------------------------------------------------ lines */

static void join(const uint8_t *lower, const uint8_t *upper, int16_t *words, size_t n)
{
    for (size_t i = 0; i < n; i += BYTES) {
        vector const a = v_load(lower + i), b = v_load(upper + i);
        v_store(words + i, V(unpacklo_epi8)(a, b));
        v_store(words + i + BYTES / 2, V(unpackhi_epi8)(a, b));
    }
}

/** Values to words of codes; by is 2^(16 - right). */
INLINE vector line_words(vector x, const int16_t *mult, const int16_t *add, vector by)
{
    vector const product = V(mulhi_epi16)(x, v_load(mult));
    return V(mulhi_epi16)(V(adds_epi16)(product, v_load(add)), by);
}

/** The codes of a block whose lines begin at `at`. */
INLINE vector line_codes(const qi_lines *l, int jumps, const struct limits *limits, vector by,
                         size_t at, vector x)
{
    vector const u = v_xor(x, v_load(l->flip + at));
    vector part = v_load(l->first + at);
    if (jumps)
        part = v_add_from8(part, u, v_load(l->from + at), v_load(l->change + at));
    vector const first = line_words(V(unpacklo_epi8)(part, u), l->mult + at, l->add + at, by);
    vector const second = line_words(V(unpackhi_epi8)(part, u), l->mult + at + BYTES / 2,
                                     l->add + at + BYTES / 2, by);
    return codes_of_words(limits, first, second);
}

INLINE void lines_kind(qi_lines l, int jumps, int all, const uint8_t *x, uint8_t *y, size_t n)
{
    struct limits const limits = limits_of(all, l.lo, l.hi, l.y_flip);
    vector const by = V(set1_epi16)((int16_t)(1 << (16 - l.right)));
    for (size_t first = 0; first < n; first += l.length, x += l.length, y += l.length) {
        size_t const count = n - first < l.length ? n - first : l.length;
        size_t i = 0;
        for (; i + BYTES <= count; i += BYTES)
            v_store(y + i, line_codes(&l, jumps, &limits, by, i, v_load(x + i)));
        if (i < count)
            v_store_first(y + i,
                          line_codes(&l, jumps, &limits, by, i, v_load_first(x + i, count - i)),
                          count - i);
    }
}

static void lines(const qi_lines *l, const uint8_t *x, uint8_t *y, size_t n)
{
    if (!is_all(l->lo, l->hi, l->y_flip))
        lines_kind(*l, 1, 0, x, y, n);
    else if (l->jumps)
        lines_kind(*l, 1, 1, x, y, n);
    else
        lines_kind(*l, 0, 1, x, y, n);
}

/* ------------------------------------------------------------------ lines of two operands */

/** Two coefficients, for the lower and the upper 16 bits of every lane. */
INLINE vector coefficients(const int16_t c[2])
{
    return V(set1_epi32)((int32_t)((uint32_t)(uint16_t)c[1] << 16 | (uint16_t)c[0]));
}

/** A line in vectors. */
struct pair_line {
    int plain; /* the operands' codes are signed */
    vector high, low, add_high, add_low, flip_a, flip_b;
    struct limits limits;
};

/** high of a vector of pairs, each code in the upper byte of its word. */
INLINE vector high_of(const struct pair_line *k, vector x)
{
    vector const low = v_add_products(k->add_low, x, k->low);
    return v_add_upper(v_add_products(k->add_high, x, k->high), low);
}

/** The words of outputs from lanes of bytes a0 a1 b0 b1. */
INLINE vector pair_words(const struct pair_line *k, vector x)
{
    return v_upper_words(high_of(k, V(slli_epi16)(x, 8)),
                         high_of(k, v_and(x, V(set1_epi16)((int16_t)0xff00))));
}

INLINE vector pair_codes(const struct pair_line *k, vector u, vector v)
{
    if (!k->plain) {
        u = v_xor(u, k->flip_a);
        v = v_xor(v, k->flip_b);
    }
    vector const first = pair_words(k, V(unpacklo_epi16)(u, v));
    vector const second = pair_words(k, V(unpackhi_epi16)(u, v));
    return codes_of_words(&k->limits, first, second);
}

/** plain: all codes are signed, and none is limited. */
INLINE void pair_line_kind(const qi_pair_line *l, int plain, const uint8_t *a, const uint8_t *b,
                           uint8_t *y, size_t n)
{
    struct pair_line const k = {.plain = plain,
                                .high = coefficients(l->high),
                                .low = coefficients(l->low),
                                .add_high = V(set1_epi32)(l->add_high),
                                .add_low = V(set1_epi32)(l->add_low),
                                .flip_a = V(set1_epi8)((char)l->flip[0]),
                                .flip_b = V(set1_epi8)((char)l->flip[1]),
                                .limits = limits_of(plain, l->lo, l->hi, l->y_flip)};
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        v_store(y + i, pair_codes(&k, v_load(a + i), v_load(b + i)));
    if (i < n)
        v_store_first(y + i, pair_codes(&k, v_load_first(a + i, n - i), v_load_first(b + i, n - i)),
                      n - i);
}

static void pair_line(const qi_pair_line *l, const uint8_t *a, const uint8_t *b, uint8_t *y,
                      size_t n)
{
    if (l->flip[0] == 0 && l->flip[1] == 0 && is_all(l->lo, l->hi, l->y_flip))
        pair_line_kind(l, 1, a, b, y, n);
    else
        pair_line_kind(l, 0, a, b, y, n);
}

/** A line of products in vectors. */
struct product_line {
    int plain;
    int16_t high;
    vector low, jump, add, flip_a, flip_b, offset_a, offset_b, centre, zero;
    struct limits limits;
};

/** The words of products. */
INLINE vector product_words(const struct product_line *k, vector p)
{
    vector const level = V(mulhi_epi16)(p, k->low);
    vector const part =
        k->plain ? v_add_negative16(level, p, k->jump) : v_add_below16(level, p, k->zero, k->jump);
    return v_weigh16(p, part, k->high, k->add);
}

/** The products of bytes that were unpacked with zeros. */
INLINE vector product_of(const struct product_line *k, vector u, vector v)
{
    vector const p = V(mullo_epi16)(V(sub_epi16)(u, k->offset_a), V(sub_epi16)(v, k->offset_b));
    return V(sub_epi16)(p, k->centre);
}

/** Those of signed codes, with zero-points 0, are the upper words of (2^8 u) (2^8 v). */
INLINE vector product_codes(const struct product_line *k, vector u, vector v)
{
    vector const zero = v_zero();
    vector p, q;
    if (k->plain) {
        p = V(mulhi_epi16)(V(unpacklo_epi8)(zero, u), V(unpacklo_epi8)(zero, v));
        q = V(mulhi_epi16)(V(unpackhi_epi8)(zero, u), V(unpackhi_epi8)(zero, v));
    } else {
        u = v_xor(u, k->flip_a);
        v = v_xor(v, k->flip_b);
        p = product_of(k, V(unpacklo_epi8)(u, zero), V(unpacklo_epi8)(v, zero));
        q = product_of(k, V(unpackhi_epi8)(u, zero), V(unpackhi_epi8)(v, zero));
    }
    return codes_of_words(&k->limits, product_words(k, p), product_words(k, q));
}

/** plain: all codes are signed, the operands' zero-points are 0, and no code is limited. */
INLINE void product_line_kind(const qi_product_line *l, int plain, const uint8_t *a,
                              const uint8_t *b, uint8_t *y, size_t n)
{
    struct product_line const k = {.plain = plain,
                                   .high = l->high,
                                   .low = V(set1_epi16)(l->low),
                                   .jump = V(set1_epi16)(l->jump),
                                   .add = V(set1_epi32)(l->add),
                                   .flip_a = V(set1_epi8)((char)l->a.flip),
                                   .flip_b = V(set1_epi8)((char)l->b.flip),
                                   .offset_a = V(set1_epi16)(l->a.offset),
                                   .offset_b = V(set1_epi16)(l->b.offset),
                                   .centre = V(set1_epi16)(l->centre),
                                   .zero = V(set1_epi16)((int16_t)-l->centre),
                                   .limits = limits_of(plain, l->lo, l->hi, l->y_flip)};
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        v_store(y + i, product_codes(&k, v_load(a + i), v_load(b + i)));
    if (i < n)
        v_store_first(y + i,
                      product_codes(&k, v_load_first(a + i, n - i), v_load_first(b + i, n - i)),
                      n - i);
}

static int is_plain(qi_codes c)
{
    return c.flip == 0x80 && c.offset == 0x80;
}

static void product_line(const qi_product_line *l, const uint8_t *a, const uint8_t *b, uint8_t *y,
                         size_t n)
{
    if (is_plain(l->a) && is_plain(l->b) && is_all(l->lo, l->hi, l->y_flip))
        product_line_kind(l, 1, a, b, y, n);
    else
        product_line_kind(l, 0, a, b, y, n);
}

/* ------------------------------------------------------------------ means of sums (qi_divisor) */

/** One divisor in all words; below: sums that are negative without the flip. */
struct division {
    vector count, below, m, lo, hi, flip;
    __m128i l;
};

/** floor(v / (2 n)) of a vector of sums. */
INLINE vector means(const struct division *k, vector s)
{
    vector const twice = V(add_epi16)(V(add_epi16)(s, s), k->count);
    vector const less = V(min_epu16)(V(subs_epu16)(k->below, s), V(set1_epi16)(1)); /* 1 or 0 */
    return V(srl_epi16)(v_multiply_high_u16(V(sub_epi16)(twice, less), k->m), k->l);
}

/** Both limits as unsigned, before the flip. */
INLINE void divide_block(const struct division *k, const uint16_t *sums, uint8_t *y)
{
    vector const packed =
        V(packus_epi16)(means(k, v_load(sums)), means(k, v_load(sums + BYTES / 2)));
    vector const codes = V(min_epu8)(V(max_epu8)(v_pair_in_order(packed), k->lo), k->hi);
    v_store(y, v_xor(codes, k->flip));
}

static void divide(const uint16_t *sums, const qi_divisor *d, uint8_t *y, size_t n)
{
    qi_reciprocal const by = qi_reciprocal_of(d->n);
    struct division const k = {.count = V(set1_epi16)((int16_t)d->n),
                               .below = V(set1_epi16)((int16_t)(d->n * d->flip)),
                               .m = V(set1_epi16)((int16_t)by.m),
                               .lo = V(set1_epi8)((char)(d->lo + d->flip)),
                               .hi = V(set1_epi8)((char)(d->hi + d->flip)),
                               .flip = V(set1_epi8)((char)d->flip),
                               .l = _mm_cvtsi32_si128(by.l)};
    uint16_t last[BYTES] = {0};
    uint8_t codes[BYTES];
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        divide_block(&k, sums + i, y + i);
    if (i == n)
        return;
    memcpy(last, sums + i, (n - i) * sizeof *last);
    divide_block(&k, last, codes);
    memcpy(y + i, codes, n - i);
}

/** The members of qi_elementwise that only their width distinguishes. */
#define ELEMENTWISE_WIDE                                                                           \
    .lines = lines, .line_block = BYTES, .join = join, .pair_line = pair_line,                     \
    .product_line = product_line, .lookup = lookup, .flip = plain_flip, .combine = combine,        \
    .requantize = requantize, .sum_rows = plain_sum_rows, .sum_sums = plain_sum_sums,              \
    .divide = divide, .most_rows = plain_most_rows, .dots = plain_dots,                            \
    .words = {plain_blend_rows16, blend_columns16}, .lanes = {plain_blend_rows32, blend_columns32}

#endif

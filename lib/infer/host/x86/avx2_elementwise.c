/** Runs of codes with AVX2: table lookups with VPSHUFB, requantization of 8 sums at a time. */
#include "infer/host/loops/plain_loops.h"
#include "infer/host/x86/divide_avx2.h"
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/lookup_avx2.h"
#include "infer/host/x86/x86.h"

enum { LANES = 8, BYTES = 32 };

INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

INLINE void store(void *to, __m256i a)
{
    _mm256_storeu_si256((__m256i *)to, a);
}

static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    lookup_avx2(table, x, y, n);
}

/** Byte i is that of v[(i - first) modulo 3]. third: the bytes 0, 1, 2 modulo 3. */
INLINE __m256i blend3(const __m256i third[3], int first, const __m256i v[3])
{
    __m256i const two = _mm256_blendv_epi8(v[0], v[1], third[(first + 1) % 3]);
    return _mm256_blendv_epi8(two, v[2], third[(first + 2) % 3]);
}

/**
 * 32 pixels of three channels. Byte i of vector k has channel (i - k) modulo 3: so in each place
 * the three vectors have three channels. They are blended into one vector for each channel, looked
 * up, and blended back.
 */
INLINE void look_up_3(__m256i t[3][QI_LOOKUP_STEPS], const __m256i third[3], const uint8_t *x,
                      uint8_t *y)
{
    __m256i const v[] = {load(x), load(x + BYTES), load(x + 2 * BYTES)};
    __m256i const answers[] = {look_up32(t[0], blend3(third, 0, v)),
                               look_up32(t[1], blend3(third, 1, v)),
                               look_up32(t[2], blend3(third, 2, v))};
    store(y, blend3(third, 0, answers));
    store(y + BYTES, blend3(third, 1, answers));
    store(y + 2 * BYTES, blend3(third, 2, answers));
}

static void lookup_3_channels(const uint8_t *tables, const uint8_t *x, uint8_t *y, size_t n)
{
    enum { PIXELS = 3 * BYTES };
    uint8_t last[PIXELS] = {0}, bytes[PIXELS];
    __m256i t[3][QI_LOOKUP_STEPS], third[3];
    size_t i = 0;
    for (int k = 0; k < PIXELS; k++)
        bytes[k] = k % BYTES % 3 == k / BYTES ? 0xff : 0;
    for (int c = 0; c < 3; c++) {
        third[c] = load(bytes + c * BYTES);
        qi_lookup_tables(tables + c * QI_TABLE, t[c]);
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
    __m256i mult, round, away; /* away: -1 if halves go away from zero, 0 without a right shift */
    __m128i right;
};

INLINE struct scale scale_of(int32_t mult, int32_t right)
{
    return (struct scale){.mult = _mm256_set1_epi32(mult),
                          .round = _mm256_set1_epi32(right ? 1 << (right - 1) : 0),
                          .away = _mm256_set1_epi32(right ? -1 : 0),
                          .right = _mm_cvtsi32_si128(right)};
}

/** (s + 2^(right-1) - [s < 0]) >> right of s = (x mult + 2^30) >> 31 */
INLINE __m256i rescale(const struct scale *k, __m256i x)
{
    __m256i const half = _mm256_set1_epi64x(INT64_C(1) << 30);
    __m256i const even = _mm256_add_epi64(_mm256_mul_epi32(x, k->mult), half);
    __m256i const odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), k->mult), half);
    __m256i const s =
        _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
    __m256i const away = _mm256_and_si256(_mm256_srai_epi32(s, 31), k->away);
    return _mm256_sra_epi32(_mm256_add_epi32(_mm256_add_epi32(s, k->round), away), k->right);
}

/** Turn 32 values into codes, in the order in which packing within 128 bits puts them. */
INLINE __m256i pack32(const qi_scaling *s, const __m256i v[4])
{
    __m256i const zero_point = _mm256_set1_epi16((int16_t)s->zero_point);
    __m256i const low = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), zero_point);
    __m256i const high = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), zero_point);
    __m256i codes = _mm256_packs_epi16(low, high);
    codes = _mm256_max_epi8(codes, _mm256_set1_epi8((char)s->lo));
    codes = _mm256_min_epi8(codes, _mm256_set1_epi8((char)s->hi));
    return _mm256_xor_si256(codes, _mm256_set1_epi8((char)s->y_flip));
}

/** Store the first n bytes of a register. */
INLINE void store_first(uint8_t *to, __m256i codes, size_t n)
{
    uint8_t bytes[BYTES];
    if (n >= BYTES) {
        store(to, codes);
        return;
    }
    store(bytes, codes);
    memcpy(to, bytes, n);
}

INLINE __m256i load_first(const uint8_t *from, size_t n)
{
    uint8_t bytes[BYTES] = {0};
    if (n >= BYTES)
        return load(from);
    return load(memcpy(bytes, from, n));
}

static void requantize(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n)
{
    __m256i const order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    struct scale const k = scale_of(s->mult, s->right);
    for (size_t i = 0; i < n; i += BYTES) {
        int32_t last[BYTES] = {0};
        const int32_t *from = sums + i;
        __m256i v[4];
        if (n - i < BYTES)
            from = memcpy(last, from, (n - i) * sizeof *from);
        for (int j = 0; j < 4; j++)
            v[j] = rescale(&k, load(from + LANES * j));
        store_first(y + i, _mm256_permutevar8x32_epi32(pack32(s, v), order), n - i);
    }
}

/* ------------------------------------------------------------------ add, sub, mul */

/** Turn 32 bytes into differences, in the order that pack32 reverses. */
INLINE void differences(__m256i bytes, qi_codes c, __m256i d[4])
{
    __m256i const zero = _mm256_setzero_si256(), offset = _mm256_set1_epi32(c.offset);
    __m256i const q = _mm256_xor_si256(bytes, _mm256_set1_epi8((char)c.flip));
    __m256i const low = _mm256_unpacklo_epi8(q, zero), high = _mm256_unpackhi_epi8(q, zero);
    d[0] = _mm256_sub_epi32(_mm256_unpacklo_epi16(low, zero), offset);
    d[1] = _mm256_sub_epi32(_mm256_unpackhi_epi16(low, zero), offset);
    d[2] = _mm256_sub_epi32(_mm256_unpacklo_epi16(high, zero), offset);
    d[3] = _mm256_sub_epi32(_mm256_unpackhi_epi16(high, zero), offset);
}

INLINE void combine_kind(const qi_combine *c, int kind, const uint8_t *a, const uint8_t *b,
                         uint8_t *y, size_t n)
{
    struct scale const ka = scale_of(c->mult_a, c->right_a), kb = scale_of(c->mult_b, c->right_b);
    struct scale const k = scale_of(c->y.mult, c->y.right);
    __m128i const left = _mm_cvtsi32_si128(c->left_shift);
    for (size_t i = 0; i < n; i += BYTES) {
        __m256i da[4], db[4], v[4];
        differences(load_first(a + i, n - i), c->a, da);
        differences(load_first(b + i, n - i), c->b, db);
        for (int j = 0; j < 4; j++) {
            if (kind == QI_COMBINE_MUL) {
                v[j] = rescale(&k, _mm256_mullo_epi32(da[j], db[j]));
                continue;
            }
            __m256i const xa = rescale(&ka, _mm256_sll_epi32(da[j], left));
            __m256i const xb = rescale(&kb, _mm256_sll_epi32(db[j], left));
            v[j] = rescale(&k, kind == QI_COMBINE_ADD ? _mm256_add_epi32(xa, xb)
                                                      : _mm256_sub_epi32(xa, xb));
        }
        store_first(y + i, pack32(&c->y, v), n - i);
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
    __m256i lo, hi, flip;
};

static int is_all(int32_t lo, int32_t hi, uint8_t flip)
{
    return lo == INT8_MIN && hi == INT8_MAX && flip == 0;
}

INLINE struct limits limits_of(int all, int32_t lo, int32_t hi, uint8_t flip)
{
    return (struct limits){all, _mm256_set1_epi8((char)lo), _mm256_set1_epi8((char)hi),
                           _mm256_set1_epi8((char)flip)};
}

/** Words to codes; the order of unpacking within 128 bits becomes that of the bytes. */
INLINE __m256i codes_of_words(const struct limits *k, __m256i first, __m256i second)
{
    __m256i const codes = _mm256_packs_epi16(first, second);
    if (k->all)
        return codes;
    return _mm256_xor_si256(_mm256_min_epi8(_mm256_max_epi8(codes, k->lo), k->hi), k->flip);
}

/* ------------------------------------------------------------------ lines */

static void join(const uint8_t *lower, const uint8_t *upper, int16_t *words, size_t n)
{
    for (size_t i = 0; i < n; i += BYTES) {
        __m256i const a = load(lower + i), b = load(upper + i);
        store(words + i, _mm256_unpacklo_epi8(a, b));
        store(words + i + BYTES / 2, _mm256_unpackhi_epi8(a, b));
    }
}

/** Values to words of codes; by is 2^(16 - right). */
INLINE __m256i line_words(__m256i x, const int16_t *mult, const int16_t *add, __m256i by)
{
    __m256i const product = _mm256_mulhi_epi16(x, load(mult));
    return _mm256_mulhi_epi16(_mm256_adds_epi16(product, load(add)), by);
}

/** The codes of a block whose lines begin at `at`. */
INLINE __m256i line_codes(const qi_lines *l, int jumps, const struct limits *limits, __m256i by,
                          size_t at, __m256i x)
{
    __m256i const u = _mm256_xor_si256(x, load(l->flip + at));
    __m256i part = load(l->first + at);
    if (jumps) {
        __m256i const below = _mm256_cmpgt_epi8(load(l->from + at), u);
        part = _mm256_add_epi8(part, _mm256_andnot_si256(below, load(l->change + at)));
    }
    __m256i const first = line_words(_mm256_unpacklo_epi8(part, u), l->mult + at, l->add + at, by);
    __m256i const second = line_words(_mm256_unpackhi_epi8(part, u), l->mult + at + BYTES / 2,
                                      l->add + at + BYTES / 2, by);
    return codes_of_words(limits, first, second);
}

INLINE void lines_kind(qi_lines l, int jumps, int all, const uint8_t *x, uint8_t *y, size_t n)
{
    struct limits const limits = limits_of(all, l.lo, l.hi, l.y_flip);
    __m256i const by = _mm256_set1_epi16((int16_t)(1 << (16 - l.right)));
    for (size_t first = 0; first < n; first += l.length, x += l.length, y += l.length) {
        size_t const count = n - first < l.length ? n - first : l.length;
        size_t i = 0;
        for (; i + BYTES <= count; i += BYTES)
            store(y + i, line_codes(&l, jumps, &limits, by, i, load(x + i)));
        if (i < count)
            store_first(y + i, line_codes(&l, jumps, &limits, by, i, load_first(x + i, count - i)),
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
INLINE __m256i coefficients(int16_t lower, int16_t upper)
{
    return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)upper << 16 | (uint16_t)lower));
}

/** A line in registers. */
struct pair_line {
    int plain; /* the operands' codes are signed */
    __m256i high, low, add_high, add_low, flip_a, flip_b;
    struct limits limits;
};

/** high of 8 pairs, each code in the upper byte of its word. */
INLINE __m256i high_of(const struct pair_line *k, __m256i x)
{
    __m256i const low = _mm256_add_epi32(_mm256_madd_epi16(x, k->low), k->add_low);
    __m256i const high = _mm256_add_epi32(_mm256_madd_epi16(x, k->high), k->add_high);
    return _mm256_add_epi32(high, _mm256_srai_epi32(low, 16));
}

/** The words of 16 outputs from lanes of bytes a0 a1 b0 b1. */
INLINE __m256i pair_words(const struct pair_line *k, __m256i x)
{
    __m256i const even = high_of(k, _mm256_slli_epi16(x, 8));
    __m256i const odd = high_of(k, _mm256_and_si256(x, _mm256_set1_epi16((int16_t)0xff00)));
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

INLINE __m256i pair_codes(const struct pair_line *k, __m256i u, __m256i v)
{
    if (!k->plain) {
        u = _mm256_xor_si256(u, k->flip_a);
        v = _mm256_xor_si256(v, k->flip_b);
    }
    return codes_of_words(&k->limits, pair_words(k, _mm256_unpacklo_epi16(u, v)),
                          pair_words(k, _mm256_unpackhi_epi16(u, v)));
}

/** plain: all codes are signed, and none is limited. */
INLINE void pair_line_kind(const qi_pair_line *l, int plain, const uint8_t *a, const uint8_t *b,
                           uint8_t *y, size_t n)
{
    struct pair_line const k = {.plain = plain,
                                .high = coefficients(l->high[0], l->high[1]),
                                .low = coefficients(l->low[0], l->low[1]),
                                .add_high = _mm256_set1_epi32(l->add_high),
                                .add_low = _mm256_set1_epi32(l->add_low),
                                .flip_a = _mm256_set1_epi8((char)l->flip[0]),
                                .flip_b = _mm256_set1_epi8((char)l->flip[1]),
                                .limits = limits_of(plain, l->lo, l->hi, l->y_flip)};
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        store(y + i, pair_codes(&k, load(a + i), load(b + i)));
    if (i < n)
        store_first(y + i, pair_codes(&k, load_first(a + i, n - i), load_first(b + i, n - i)),
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

/** A line of products in registers. */
struct product_line {
    int plain;
    __m256i low, jump, add, high; /* high: beside 1, the coefficient of the part */
    __m256i flip_a, flip_b, offset_a, offset_b, centre, zero;
    struct limits limits;
};

/** The words of 16 products. */
INLINE __m256i product_words(const struct product_line *k, __m256i p)
{
    __m256i const jump = _mm256_and_si256(_mm256_cmpgt_epi16(k->zero, p), k->jump);
    __m256i const part = _mm256_add_epi16(_mm256_mulhi_epi16(p, k->low), jump);
    __m256i const first = _mm256_madd_epi16(_mm256_unpacklo_epi16(p, part), k->high);
    __m256i const second = _mm256_madd_epi16(_mm256_unpackhi_epi16(p, part), k->high);
    return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(first, k->add), 16),
                              _mm256_srai_epi32(_mm256_add_epi32(second, k->add), 16));
}

/** The products of 16 bytes that were unpacked with zeros. */
INLINE __m256i product_of(const struct product_line *k, __m256i u, __m256i v)
{
    __m256i const p =
        _mm256_mullo_epi16(_mm256_sub_epi16(u, k->offset_a), _mm256_sub_epi16(v, k->offset_b));
    return _mm256_sub_epi16(p, k->centre);
}

/** Those of signed codes, with zero-points 0, are the upper words of (2^8 u) (2^8 v). */
INLINE __m256i product_codes(const struct product_line *k, __m256i u, __m256i v)
{
    __m256i const zero = _mm256_setzero_si256();
    __m256i p, q;
    if (k->plain) {
        p = _mm256_mulhi_epi16(_mm256_unpacklo_epi8(zero, u), _mm256_unpacklo_epi8(zero, v));
        q = _mm256_mulhi_epi16(_mm256_unpackhi_epi8(zero, u), _mm256_unpackhi_epi8(zero, v));
    } else {
        u = _mm256_xor_si256(u, k->flip_a);
        v = _mm256_xor_si256(v, k->flip_b);
        p = product_of(k, _mm256_unpacklo_epi8(u, zero), _mm256_unpacklo_epi8(v, zero));
        q = product_of(k, _mm256_unpackhi_epi8(u, zero), _mm256_unpackhi_epi8(v, zero));
    }
    return codes_of_words(&k->limits, product_words(k, p), product_words(k, q));
}

/** plain: all codes are signed, the operands' zero-points are 0, and no code is limited. */
INLINE void product_line_kind(const qi_product_line *l, int plain, const uint8_t *a,
                              const uint8_t *b, uint8_t *y, size_t n)
{
    struct product_line const k = {.plain = plain,
                                   .low = _mm256_set1_epi16(l->low),
                                   .jump = _mm256_set1_epi16(l->jump),
                                   .add = _mm256_set1_epi32(l->add),
                                   .high = coefficients(l->high, 1),
                                   .flip_a = _mm256_set1_epi8((char)l->a.flip),
                                   .flip_b = _mm256_set1_epi8((char)l->b.flip),
                                   .offset_a = _mm256_set1_epi16(l->a.offset),
                                   .offset_b = _mm256_set1_epi16(l->b.offset),
                                   .centre = _mm256_set1_epi16(l->centre),
                                   .zero = _mm256_set1_epi16((int16_t)-l->centre),
                                   .limits = limits_of(plain, l->lo, l->hi, l->y_flip)};
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        store(y + i, product_codes(&k, load(a + i), load(b + i)));
    if (i < n)
        store_first(y + i, product_codes(&k, load_first(a + i, n - i), load_first(b + i, n - i)),
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

const qi_elementwise QI_VARIANT(qi_elementwise_avx2) = {.name = "avx2",
                                                        .lines = lines,
                                                        .line_block = BYTES,
                                                        .join = join,
                                                        .pair_line = pair_line,
                                                        .product_line = product_line,
                                                        .lookup = lookup,
                                                        .lookup_channels = lookup_channels,
                                                        .flip = plain_flip,
                                                        .combine = combine,
                                                        .requantize = requantize,
                                                        .sum_rows = plain_sum_rows,
                                                        .sum_sums = plain_sum_sums,
                                                        .divide = divide_avx2,
                                                        .most_rows = plain_most_rows};

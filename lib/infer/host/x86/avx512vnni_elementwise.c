/**
 * Runs of codes with AVX-512: tables in registers (with VBMI if there is, else as AVX2 does), and
 * requantization of 16 sums at a time.
 */
#include "infer/host/loops/plain_loops.h"
#include "infer/host/x86/divide_avx2.h"
#include "infer/host/x86/intrinsics.h"
#include "infer/host/x86/lookup_avx2.h"
#include "infer/host/x86/x86.h"

enum { LANES = 16, BYTES = 64 };

/** The n lowest of 64 bits. */
INLINE uint64_t first_bits(size_t n)
{
    return n < BYTES ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/** The bytes of a block; without a mask it is quicker. */
INLINE __m512i load_block(uint64_t mask, const uint8_t *from)
{
    return mask == UINT64_MAX ? _mm512_loadu_si512(from) : qi_load_bytes512(mask, from);
}

INLINE void store_block(uint8_t *to, uint64_t mask, __m512i a)
{
    if (mask == UINT64_MAX)
        _mm512_storeu_si512(to, a);
    else
        qi_store_bytes512(to, mask, a);
}

/* ------------------------------------------------------------------ tables */

#ifdef QI_SIMDE
#define VBMI
#else
#define VBMI __attribute__((target("avx512vbmi")))
#endif

static int has_vbmi(void)
{
#ifdef QI_SIMDE
    return 1;
#else
    return __builtin_cpu_supports("avx512vbmi");
#endif
}

/** Look up in a table in four registers. VPERMI2B selects from two of them by seven bits. */
VBMI INLINE __m512i look_up64(const __m512i t[4], __m512i x)
{
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), _mm512_permutex2var_epi8(t[0], x, t[1]),
                                  _mm512_permutex2var_epi8(t[2], x, t[3]));
}

VBMI INLINE void load_table(const uint8_t *table, __m512i t[4])
{
    for (int i = 0; i < 4; i++)
        t[i] = _mm512_loadu_si512(table + BYTES * i);
}

VBMI static void lookup_vbmi(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    __m512i t[4];
    size_t i = 0;
    load_table(table, t);
    for (; i + BYTES <= n; i += BYTES)
        store_block(y + i, UINT64_MAX, look_up64(t, load_block(UINT64_MAX, x + i)));
    if (i < n) {
        uint64_t const mask = first_bits(n - i);
        store_block(y + i, mask, look_up64(t, load_block(mask, x + i)));
    }
}

static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    if (has_vbmi())
        lookup_vbmi(table, x, y, n);
    else
        lookup_avx2(table, x, y, n);
}

enum { MOST_CHANNELS = 4 }; /* with so few channels, all tables are held in registers */

VBMI INLINE void load_tables(const uint8_t *tables, size_t channels, __m512i t[][4])
{
    for (size_t c = 0; c < channels; c++)
        load_table(tables + c * QI_TABLE, t[c]);
}

/** Look up every byte in all tables and take the answer of its own channel, of 2 or 4. */
VBMI INLINE void lookup_even_channels(const uint8_t *tables, size_t channels, const uint8_t *x,
                                      uint8_t *y, size_t n)
{
    uint64_t const first_channel = UINT64_MAX / ((UINT64_C(1) << channels) - 1);
    __m512i t[MOST_CHANNELS][4];
    load_tables(tables, channels, t);
    for (size_t i = 0; i < n; i += BYTES) {
        uint64_t const mask = first_bits(n - i);
        __m512i const bytes = load_block(mask, x + i);
        __m512i answers = look_up64(t[0], bytes);
        for (size_t c = 1; c < channels; c++)
            answers = _mm512_mask_blend_epi8(first_channel << c, answers, look_up64(t[c], bytes));
        store_block(y + i, mask, answers);
    }
}

VBMI static void lookup_2_channels(const uint8_t *tables, const uint8_t *x, uint8_t *y, size_t n)
{
    lookup_even_channels(tables, 2, x, y, n);
}

VBMI static void lookup_4_channels(const uint8_t *tables, const uint8_t *x, uint8_t *y, size_t n)
{
    lookup_even_channels(tables, 4, x, y, n);
}

/** Byte i is that of v[(first - i) modulo 3]. */
INLINE __m512i blend3(int first, const __m512i v[3])
{
    static const uint64_t third[] = {UINT64_C(0x9249249249249249), UINT64_C(0x2492492492492492),
                                     UINT64_C(0x4924924924924924)};
    __m512i const two = _mm512_mask_blend_epi8(third[(first + 2) % 3], v[0], v[1]);
    return _mm512_mask_blend_epi8(third[(first + 1) % 3], two, v[2]);
}

/**
 * 64 pixels of three channels. Byte i of vector k has channel (i + k) modulo 3: so in each place
 * the three vectors have three channels. They are blended into one vector for each channel, looked
 * up, and blended back.
 */
VBMI INLINE void look_up_3(__m512i t[3][4], const uint8_t *x, uint8_t *y)
{
    __m512i const v[] = {_mm512_loadu_si512(x), _mm512_loadu_si512(x + BYTES),
                         _mm512_loadu_si512(x + 2 * BYTES)};
    __m512i const answers[] = {look_up64(t[0], blend3(0, v)), look_up64(t[2], blend3(2, v)),
                               look_up64(t[1], blend3(1, v))}; /* of channels 0, -1, -2 */
    _mm512_storeu_si512(y, blend3(0, answers));
    _mm512_storeu_si512(y + BYTES, blend3(2, answers));
    _mm512_storeu_si512(y + 2 * BYTES, blend3(1, answers));
}

VBMI static void lookup_3_channels(const uint8_t *tables, const uint8_t *x, uint8_t *y, size_t n)
{
    enum { PIXELS = 3 * BYTES };
    uint8_t last[PIXELS] = {0};
    __m512i t[3][4];
    size_t i = 0;
    load_tables(tables, 3, t);
    for (; i + PIXELS <= n; i += PIXELS)
        look_up_3(t, x + i, y + i);
    memcpy(last, x + i, n - i);
    look_up_3(t, last, last);
    memcpy(y + i, last, n - i);
}

static void lookup_channels(const uint8_t *tables, size_t channels, const uint8_t *x, uint8_t *y,
                            size_t n)
{
    if (channels < 2 || channels > MOST_CHANNELS || !has_vbmi())
        plain_lookup_channels(tables, channels, x, y, n);
    else
        (channels == 2   ? lookup_2_channels
         : channels == 3 ? lookup_3_channels
                         : lookup_4_channels)(tables, x, y, n);
}

/* ------------------------------------------------------------------ requantization */

/** One multiplier in all lanes; see include/qat/rounding.h. */
struct scale {
    __m512i mult, round, away; /* away: -1 if halves go away from zero, 0 without a right shift */
    __m512i right;
};

INLINE struct scale scale_of(int32_t mult, int32_t right)
{
    return (struct scale){.mult = _mm512_set1_epi32(mult),
                          .round = _mm512_set1_epi32(right ? 1 << (right - 1) : 0),
                          .away = _mm512_set1_epi32(right ? -1 : 0),
                          .right = _mm512_set1_epi32(right)};
}

/** (s + 2^(right-1) - [s < 0]) >> right of s = (x mult + 2^30) >> 31 */
INLINE __m512i rescale(const struct scale *k, __m512i x)
{
    __m512i const half = _mm512_set1_epi64(INT64_C(1) << 30);
    __m512i const even = _mm512_add_epi64(_mm512_mul_epi32(x, k->mult), half);
    __m512i const odd = _mm512_add_epi64(_mm512_mul_epi32(qi_odd_lanes512(x), k->mult), half);
    __m512i const s =
        _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
    __m512i const away = _mm512_and_si512(qi_sra512(s, 31), k->away);
    return qi_srav512(_mm512_add_epi32(_mm512_add_epi32(s, k->round), away), k->right);
}

/** Turn 64 values into codes, in the order in which packing within 128 bits puts them. */
INLINE __m512i pack64(const qi_scaling *s, const __m512i v[4])
{
    __m512i const zero_point = _mm512_set1_epi16((int16_t)s->zero_point);
    __m512i const low = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero_point);
    __m512i const high = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero_point);
    __m512i codes = _mm512_packs_epi16(low, high);
    codes = _mm512_max_epi8(codes, _mm512_set1_epi8((char)s->lo));
    codes = _mm512_min_epi8(codes, _mm512_set1_epi8((char)s->hi));
    return _mm512_xor_si512(codes, _mm512_set1_epi8((char)s->y_flip));
}

static void requantize(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n)
{
    __m512i const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    struct scale const k = scale_of(s->mult, s->right);
    for (size_t i = 0; i < n; i += BYTES) {
        int32_t last[BYTES] = {0};
        const int32_t *from = sums + i;
        __m512i v[4];
        if (n - i < BYTES)
            from = memcpy(last, from, (n - i) * sizeof *from);
        for (int j = 0; j < 4; j++)
            v[j] = rescale(&k, _mm512_loadu_si512(from + LANES * j));
        qi_store_bytes512(y + i, first_bits(n - i), _mm512_permutexvar_epi32(order, pack64(s, v)));
    }
}

/* ------------------------------------------------------------------ add, sub, mul */

/** Turn 64 bytes into differences, in the order that pack64 reverses. */
INLINE void differences(__m512i bytes, qi_codes c, __m512i d[4])
{
    __m512i const zero = _mm512_setzero_si512(), offset = _mm512_set1_epi32(c.offset);
    __m512i const q = _mm512_xor_si512(bytes, _mm512_set1_epi8((char)c.flip));
    __m512i const low = _mm512_unpacklo_epi8(q, zero), high = _mm512_unpackhi_epi8(q, zero);
    d[0] = _mm512_sub_epi32(_mm512_unpacklo_epi16(low, zero), offset);
    d[1] = _mm512_sub_epi32(_mm512_unpackhi_epi16(low, zero), offset);
    d[2] = _mm512_sub_epi32(_mm512_unpacklo_epi16(high, zero), offset);
    d[3] = _mm512_sub_epi32(_mm512_unpackhi_epi16(high, zero), offset);
}

INLINE void combine_kind(const qi_combine *c, int kind, const uint8_t *a, const uint8_t *b,
                         uint8_t *y, size_t n)
{
    struct scale const ka = scale_of(c->mult_a, c->right_a), kb = scale_of(c->mult_b, c->right_b);
    struct scale const k = scale_of(c->y.mult, c->y.right);
    __m128i const left = _mm_cvtsi32_si128(c->left_shift);
    for (size_t i = 0; i < n; i += BYTES) {
        uint64_t const mask = first_bits(n - i);
        __m512i da[4], db[4], v[4];
        differences(qi_load_bytes512(mask, a + i), c->a, da);
        differences(qi_load_bytes512(mask, b + i), c->b, db);
        for (int j = 0; j < 4; j++) {
            if (kind == QI_COMBINE_MUL) {
                v[j] = rescale(&k, _mm512_mullo_epi32(da[j], db[j]));
                continue;
            }
            __m512i const xa = rescale(&ka, _mm512_sll_epi32(da[j], left));
            __m512i const xb = rescale(&kb, _mm512_sll_epi32(db[j], left));
            v[j] = rescale(&k, kind == QI_COMBINE_ADD ? _mm512_add_epi32(xa, xb)
                                                      : _mm512_sub_epi32(xa, xb));
        }
        qi_store_bytes512(y + i, mask, pack64(&c->y, v));
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
    __m512i lo, hi, flip;
};

static int is_all(int32_t lo, int32_t hi, uint8_t flip)
{
    return lo == INT8_MIN && hi == INT8_MAX && flip == 0;
}

INLINE struct limits limits_of(int all, int32_t lo, int32_t hi, uint8_t flip)
{
    return (struct limits){all, _mm512_set1_epi8((char)lo), _mm512_set1_epi8((char)hi),
                           _mm512_set1_epi8((char)flip)};
}

/** Words to codes; the order of unpacking within 128 bits becomes that of the bytes. */
INLINE __m512i codes_of_words(const struct limits *k, __m512i first, __m512i second)
{
    __m512i const codes = _mm512_packs_epi16(first, second);
    if (k->all)
        return codes;
    return _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(codes, k->lo), k->hi), k->flip);
}

/* ------------------------------------------------------------------ lines */

static void join(const uint8_t *lower, const uint8_t *upper, int16_t *words, size_t n)
{
    for (size_t i = 0; i < n; i += BYTES) {
        __m512i const a = _mm512_loadu_si512(lower + i), b = _mm512_loadu_si512(upper + i);
        _mm512_storeu_si512(words + i, _mm512_unpacklo_epi8(a, b));
        _mm512_storeu_si512(words + i + BYTES / 2, _mm512_unpackhi_epi8(a, b));
    }
}

/** Values to words of codes; by is 2^(16 - right). */
INLINE __m512i line_words(__m512i x, const int16_t *mult, const int16_t *add, __m512i by)
{
    __m512i const product = _mm512_mulhi_epi16(x, _mm512_loadu_si512(mult));
    return _mm512_mulhi_epi16(_mm512_adds_epi16(product, _mm512_loadu_si512(add)), by);
}

/** The codes of a block whose lines begin at `at`. */
INLINE __m512i line_codes(const qi_lines *l, int jumps, const struct limits *limits, __m512i by,
                          size_t at, __m512i x)
{
    __m512i const u = _mm512_xor_si512(x, _mm512_loadu_si512(l->flip + at));
    __m512i part = _mm512_loadu_si512(l->first + at);
    if (jumps) {
        uint64_t const after = _mm512_cmpge_epi8_mask(u, _mm512_loadu_si512(l->from + at));
        part = _mm512_mask_add_epi8(part, after, part, _mm512_loadu_si512(l->change + at));
    }
    __m512i const first = line_words(_mm512_unpacklo_epi8(part, u), l->mult + at, l->add + at, by);
    __m512i const second = line_words(_mm512_unpackhi_epi8(part, u), l->mult + at + BYTES / 2,
                                      l->add + at + BYTES / 2, by);
    return codes_of_words(limits, first, second);
}

INLINE void lines_kind(qi_lines l, int jumps, int all, const uint8_t *x, uint8_t *y, size_t n)
{
    struct limits const limits = limits_of(all, l.lo, l.hi, l.y_flip);
    __m512i const by = _mm512_set1_epi16((int16_t)(1 << (16 - l.right)));
    for (size_t first = 0; first < n; first += l.length, x += l.length, y += l.length) {
        size_t const count = n - first < l.length ? n - first : l.length;
        size_t i = 0;
        for (; i + BYTES <= count; i += BYTES)
            store_block(y + i, UINT64_MAX,
                        line_codes(&l, jumps, &limits, by, i, load_block(UINT64_MAX, x + i)));
        if (i < count) {
            uint64_t const mask = first_bits(count - i);
            store_block(y + i, mask,
                        line_codes(&l, jumps, &limits, by, i, load_block(mask, x + i)));
        }
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

#ifdef QI_SIMDE
INLINE __m512i add_products(__m512i sum, __m512i a, __m512i b)
{
    int32_t total[LANES];
    int16_t x[2 * LANES], y[2 * LANES];
    memcpy(total, &sum, sizeof total);
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 2 * LANES; i++)
        total[i / 2] = (int32_t)((uint32_t)total[i / 2] + (uint32_t)(x[i] * y[i]));
    memcpy(&sum, total, sizeof sum);
    return sum;
}
#else
#define add_products _mm512_dpwssd_epi32
#endif

/** Two coefficients, for the lower and the upper 16 bits of every lane. */
INLINE __m512i coefficients(int16_t lower, int16_t upper)
{
    return _mm512_set1_epi32((int32_t)((uint32_t)(uint16_t)upper << 16 | (uint16_t)lower));
}

/** The high words of two registers of sums: even in the lower 16 bits, odd in the upper ones. */
INLINE __m512i words_of(__m512i even, __m512i odd)
{
    __m512i const down = _mm512_set4_epi32(0x0f0e, 0x0b0a, 0x0706, 0x0302);
    return _mm512_mask_shuffle_epi8(odd, UINT64_C(0x3333333333333333), even, down);
}

/** A line in registers. */
struct pair_line {
    int plain; /* the operands' codes are signed */
    __m512i high, low, add_high, add_low, flip_a, flip_b;
    struct limits limits;
};

/** high of 16 pairs, each code in the upper byte of its word. */
INLINE __m512i high_of(const struct pair_line *k, __m512i x)
{
    __m512i const low = add_products(k->add_low, x, k->low);
    return add_products(add_products(k->add_high, x, k->high), low, coefficients(0, 1));
}

/** The words of 32 outputs from lanes of bytes a0 a1 b0 b1. */
INLINE __m512i pair_words(const struct pair_line *k, __m512i x)
{
    return words_of(high_of(k, _mm512_slli_epi16(x, 8)),
                    high_of(k, _mm512_and_si512(x, _mm512_set1_epi16((int16_t)0xff00))));
}

INLINE void pair_block(const struct pair_line *k, uint64_t mask, const uint8_t *a, const uint8_t *b,
                       uint8_t *y)
{
    __m512i u = load_block(mask, a), v = load_block(mask, b);
    if (!k->plain) {
        u = _mm512_xor_si512(u, k->flip_a);
        v = _mm512_xor_si512(v, k->flip_b);
    }
    __m512i const first = pair_words(k, _mm512_unpacklo_epi16(u, v));
    __m512i const second = pair_words(k, _mm512_unpackhi_epi16(u, v));
    store_block(y, mask, codes_of_words(&k->limits, first, second));
}

/** plain: all codes are signed, and none is limited. */
INLINE void pair_line_kind(const qi_pair_line *l, int plain, const uint8_t *a, const uint8_t *b,
                           uint8_t *y, size_t n)
{
    struct pair_line const k = {.plain = plain,
                                .high = coefficients(l->high[0], l->high[1]),
                                .low = coefficients(l->low[0], l->low[1]),
                                .add_high = _mm512_set1_epi32(l->add_high),
                                .add_low = _mm512_set1_epi32(l->add_low),
                                .flip_a = _mm512_set1_epi8((char)l->flip[0]),
                                .flip_b = _mm512_set1_epi8((char)l->flip[1]),
                                .limits = limits_of(plain, l->lo, l->hi, l->y_flip)};
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        pair_block(&k, UINT64_MAX, a + i, b + i, y + i);
    if (i < n)
        pair_block(&k, first_bits(n - i), a + i, b + i, y + i);
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
    __m512i low, jump, add, of_even[2], of_odd[2]; /* coefficients of p and of its part */
    __m512i flip_a, flip_b, offset_a, offset_b, centre, zero;
    struct limits limits;
};

/** The words of 32 products. */
INLINE __m512i product_words(const struct product_line *k, __m512i p)
{
    __m512i const level = _mm512_mulhi_epi16(p, k->low);
    uint32_t const negative = k->plain ? _mm512_movepi16_mask(p) : qi_above_words512(k->zero, p);
    __m512i const part = _mm512_mask_add_epi16(level, negative, level, k->jump);
    __m512i const even = add_products(add_products(k->add, p, k->of_even[0]), part, k->of_even[1]);
    __m512i const odd = add_products(add_products(k->add, p, k->of_odd[0]), part, k->of_odd[1]);
    return words_of(even, odd);
}

/** The products of signed codes, with zero-points 0: the upper words of (2^8 u) (2^8 v). */
INLINE void plain_products(__m512i u, __m512i v, __m512i p[2])
{
    __m512i const zero = _mm512_setzero_si512();
    p[0] = _mm512_mulhi_epi16(_mm512_unpacklo_epi8(zero, u), _mm512_unpacklo_epi8(zero, v));
    p[1] = _mm512_mulhi_epi16(_mm512_unpackhi_epi8(zero, u), _mm512_unpackhi_epi8(zero, v));
}

INLINE void products(const struct product_line *k, __m512i u, __m512i v, __m512i p[2])
{
    __m512i const zero = _mm512_setzero_si512();
    u = _mm512_xor_si512(u, k->flip_a);
    v = _mm512_xor_si512(v, k->flip_b);
    p[0] = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_unpacklo_epi8(u, zero), k->offset_a),
                              _mm512_sub_epi16(_mm512_unpacklo_epi8(v, zero), k->offset_b));
    p[1] = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_unpackhi_epi8(u, zero), k->offset_a),
                              _mm512_sub_epi16(_mm512_unpackhi_epi8(v, zero), k->offset_b));
    p[0] = _mm512_sub_epi16(p[0], k->centre);
    p[1] = _mm512_sub_epi16(p[1], k->centre);
}

INLINE void product_block(const struct product_line *k, uint64_t mask, const uint8_t *a,
                          const uint8_t *b, uint8_t *y)
{
    __m512i const u = load_block(mask, a), v = load_block(mask, b);
    __m512i p[2];
    if (k->plain)
        plain_products(u, v, p);
    else
        products(k, u, v, p);
    __m512i const first = product_words(k, p[0]), second = product_words(k, p[1]);
    store_block(y, mask, codes_of_words(&k->limits, first, second));
}

/** plain: all codes are signed, the operands' zero-points are 0, and no code is limited. */
INLINE void product_line_kind(const qi_product_line *l, int plain, const uint8_t *a,
                              const uint8_t *b, uint8_t *y, size_t n)
{
    struct product_line const k = {
        .plain = plain,
        .low = _mm512_set1_epi16(l->low),
        .jump = _mm512_set1_epi16(l->jump),
        .add = _mm512_set1_epi32(l->add),
        .of_even = {coefficients(l->high, 0), coefficients(1, 0)},
        .of_odd = {coefficients(0, l->high), coefficients(0, 1)},
        .flip_a = _mm512_set1_epi8((char)l->a.flip),
        .flip_b = _mm512_set1_epi8((char)l->b.flip),
        .offset_a = _mm512_set1_epi16(l->a.offset),
        .offset_b = _mm512_set1_epi16(l->b.offset),
        .centre = _mm512_set1_epi16(l->centre),
        .zero = _mm512_set1_epi16((int16_t)-l->centre),
        .limits = limits_of(plain, l->lo, l->hi, l->y_flip),
    };
    size_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        product_block(&k, UINT64_MAX, a + i, b + i, y + i);
    if (i < n)
        product_block(&k, first_bits(n - i), a + i, b + i, y + i);
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

static int looks_up_fast(size_t channels)
{
    return channels <= 3 && has_vbmi();
}

const qi_elementwise QI_VARIANT(qi_elementwise_avx512vnni) = {.name = "avx512vnni",
                                                              .lines = lines,
                                                              .line_block = BYTES,
                                                              .join = join,
                                                              .pair_line = pair_line,
                                                              .product_line = product_line,
                                                              .looks_up_fast = looks_up_fast,
                                                              .lookup = lookup,
                                                              .lookup_channels = lookup_channels,
                                                              .flip = plain_flip,
                                                              .combine = combine,
                                                              .requantize = requantize,
                                                              .sum_rows = plain_sum_rows,
                                                              .sum_sums = plain_sum_sums,
                                                              .divide = divide_avx2,
                                                              .most_rows = plain_most_rows};

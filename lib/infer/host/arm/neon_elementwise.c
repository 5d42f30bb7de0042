/**
 * Runs of codes with NEON: table lookups with TBL, and requantization as in neon_tail.h, 16 codes
 * at a time.
 */
#include "infer/host/arm/arm.h"
#include "infer/host/arm/neon_tail.h"
#include "infer/host/loops/plain_blend.h"
#include "infer/host/loops/plain_loops.h"

enum { BYTES = 16, VECTORS = BYTES / QI_NEON_LANES };

/* ------------------------------------------------------------------ ends of runs */

/** Store the first n bytes of a register. */
INLINE void store_first(uint8_t *to, uint8x16_t codes, size_t n)
{
    uint8_t bytes[BYTES];
    if (n >= BYTES) {
        vst1q_u8(to, codes);
        return;
    }
    vst1q_u8(bytes, codes);
    memcpy(to, bytes, n);
}

INLINE uint8x16_t load_first(const uint8_t *from, size_t n)
{
    uint8_t bytes[BYTES] = {0};
    return vld1q_u8(n >= BYTES ? from : memcpy(bytes, from, n));
}

/* ------------------------------------------------------------------ tables */

#if defined(QI_SIMDE) || defined(__aarch64__)

enum { QUARTERS = 4, QUARTER = 64 };

INLINE uint8x16x4_t quarter_of(const uint8_t *table, int i)
{
    uint8x16x4_t quarter;
    for (int j = 0; j < 4; j++)
        quarter.val[j] = vld1q_u8(table + i * QUARTER + j * BYTES);
    return quarter;
}

/** TBX leaves a byte unchanged if its index lies outside the 64 entries. */
static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    uint8x16x4_t quarter[QUARTERS];
    for (int i = 0; i < QUARTERS; i++)
        quarter[i] = quarter_of(table, i);
    for (size_t at = 0; at < n; at += BYTES) {
        uint8x16_t index = load_first(x + at, n - at);
        uint8x16_t found = vqtbl4q_u8(quarter[0], index);
        for (int i = 1; i < QUARTERS; i++) {
            index = vsubq_u8(index, vdupq_n_u8(QUARTER));
            found = vqtbx4q_u8(found, quarter[i], index);
        }
        store_first(y + at, found, n - at);
    }
}

#else

/** 32-bit ARM looks up 32 entries at once, which is not faster than loads. */
static void lookup(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    plain_lookup_channels(table, 1, x, y, n);
}

#endif

/* ------------------------------------------------------------------ requantization */

/** One multiplier in all lanes, after a left shift. */
struct scale {
    int32x4_t left, mult, shift;
};

INLINE struct scale scale_of(int32_t left, int32_t mult, int32_t right)
{
    return (struct scale){vdupq_n_s32(left), vdupq_n_s32(mult), vdupq_n_s32(-right)};
}

INLINE int32x4_t rescale(const struct scale *k, int32x4_t x)
{
    return qi_requantize_lanes(x, k->left, k->mult, k->shift);
}

INLINE uint8x16_t codes_of(const qi_neon_output *o, const int32x4_t v[VECTORS])
{
    return vcombine_u8(qi_codes_of_lanes(o, v[0], v[1]), qi_codes_of_lanes(o, v[2], v[3]));
}

static void requantize(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n)
{
    struct scale const k = scale_of(0, s->mult, s->right);
    qi_neon_output const o = qi_neon_output_of(s->zero_point, s->lo, s->hi, s->y_flip);
    for (size_t i = 0; i < n; i += BYTES) {
        int32_t last[BYTES] = {0};
        const int32_t *from = sums + i;
        int32x4_t v[VECTORS];
        if (n - i < BYTES)
            from = memcpy(last, from, (n - i) * sizeof *from);
        for (int j = 0; j < VECTORS; j++)
            v[j] = rescale(&k, vld1q_s32(from + j * QI_NEON_LANES));
        store_first(y + i, codes_of(&o, v), n - i);
    }
}

/* ------------------------------------------------------------------ add, sub, mul */

/** The differences of eight bytes. */
INLINE int16x8_t differences(uint8x8_t bytes, qi_codes c)
{
    uint16x8_t const q = vmovl_u8(veor_u8(bytes, vdup_n_u8(c.flip)));
    return vsubq_s16(vreinterpretq_s16_u16(q), vdupq_n_s16(c.offset));
}

/** The scales of a combination. */
struct scales {
    struct scale a, b, y;
};

INLINE int32x4_t combine_lanes(const struct scales *k, int kind, int16x4_t a, int16x4_t b)
{
    if (kind == QI_COMBINE_MUL)
        return rescale(&k->y, vmull_s16(a, b));
    int32x4_t const xa = rescale(&k->a, vmovl_s16(a)), xb = rescale(&k->b, vmovl_s16(b));
    return rescale(&k->y, kind == QI_COMBINE_ADD ? vaddq_s32(xa, xb) : vsubq_s32(xa, xb));
}

/** Combine eight codes of each operand into two vectors of values. */
INLINE void combine_eight(const struct scales *k, int kind, int16x8_t a, int16x8_t b,
                          int32x4_t v[2])
{
    v[0] = combine_lanes(k, kind, vget_low_s16(a), vget_low_s16(b));
    v[1] = combine_lanes(k, kind, vget_high_s16(a), vget_high_s16(b));
}

INLINE void combine_kind(const qi_combine *c, int kind, const uint8_t *a, const uint8_t *b,
                         uint8_t *y, size_t n)
{
    struct scales const k = {.a = scale_of(c->left_shift, c->mult_a, c->right_a),
                             .b = scale_of(c->left_shift, c->mult_b, c->right_b),
                             .y = scale_of(0, c->y.mult, c->y.right)};
    qi_neon_output const o = qi_neon_output_of(c->y.zero_point, c->y.lo, c->y.hi, c->y.y_flip);
    for (size_t i = 0; i < n; i += BYTES) {
        uint8x16_t const xa = load_first(a + i, n - i), xb = load_first(b + i, n - i);
        int32x4_t v[VECTORS];
        combine_eight(&k, kind, differences(vget_low_u8(xa), c->a),
                      differences(vget_low_u8(xb), c->b), v);
        combine_eight(&k, kind, differences(vget_high_u8(xa), c->a),
                      differences(vget_high_u8(xb), c->b), v + 2);
        store_first(y + i, codes_of(&o, v), n - i);
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

const qi_elementwise QI_VARIANT(qi_elementwise_neon) = {
    .name = "neon",
    .lookup = lookup,
    .lookup_channels = plain_lookup_channels,
    .flip = plain_flip,
    .combine = combine,
    .requantize = requantize,
    .sum_rows = plain_sum_rows,
    .sum_sums = plain_sum_sums,
    .divide = plain_divide,
    .most_rows = plain_most_rows,
    .dots = plain_dots,
    .words = {plain_blend_rows16, plain_blend_columns16},
    .lanes = {plain_blend_rows32, plain_blend_columns32}};

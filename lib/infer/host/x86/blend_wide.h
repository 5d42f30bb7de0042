/**
 * Bilinear blends in vectors of either width (blend.h). elementwise_wide.h includes this behind
 * wide256.h or wide512.h.
 *
 * A pixel's codes are computed in whole vectors. What is stored behind its last code is overwritten
 * by the next pixels.
 */
#ifndef QI_HOST_X86_BLEND_WIDE_H
#define QI_HOST_X86_BLEND_WIDE_H

#include "infer/host/loops/plain_blend.h"

/** A blend in all words or lanes. */
struct blender {
    blend_kind kind;
    vector one, n, half, below, mult, flip;
    __m128i right;
};

INLINE struct blender blender_of(const qi_blend *b, blend_kind kind, int bits)
{
    int const is_shift = bits == 32 && kind == BLEND_AWAY; /* n is a power of two there */
    uint32_t const both = bits == 16 ? 0x10001 : 1;
    return (struct blender){.kind = kind,
                            .one = V(set1_epi32)((int32_t)both),
                            .n = V(set1_epi32)((int32_t)(b->n * both)),
                            .half = V(set1_epi32)((int32_t)(b->half * both)),
                            .below = V(set1_epi32)((int32_t)(b->below * both)),
                            .mult = V(set1_epi32)((int32_t)(b->mult * both)),
                            .flip = V(set1_epi8)((char)b->flip),
                            .right = _mm_cvtsi32_si128(b->right + is_shift)};
}

/* ------------------------------------------------------------------ sums of 16 bits */

/** The blends u of a vector of words. */
INLINE vector blend_words(const struct blender *k, const vector w[2], const uint16_t *left,
                          const uint16_t *right)
{
    vector const sum =
        V(add_epi16)(V(mullo_epi16)(v_load(left), w[0]), V(mullo_epi16)(v_load(right), w[1]));
    vector t = V(add_epi16)(sum, k->half);
    if (k->kind == BLEND_AWAY)
        t = V(sub_epi16)(t, V(min_epu16)(V(subs_epu16)(k->below, sum), k->one));
    vector const u = V(srl_epi16)(v_multiply_high_u16(t, k->mult), k->right);
    if (k->kind != BLEND_EVEN)
        return u;
    vector const rest = V(sub_epi16)(V(mullo_epi16)(u, k->n), sum);
    vector const apart = v_xor(V(add_epi16)(rest, rest), k->n); /* 0: a tie */
    vector const is_tie = v_xor(V(min_epu16)(apart, k->one), k->one);
    return V(sub_epi16)(u, v_and(is_tie, u));
}

/** n codes, in order. */
INLINE vector blend_by_words(const struct blender *k, const vector w[2], const void *left,
                             const void *right, size_t n)
{
    const uint16_t *l = left, *r = right;
    vector const first = blend_words(k, w, l, r);
    vector const second =
        n > BYTES / 2 ? blend_words(k, w, l + BYTES / 2, r + BYTES / 2) : v_zero();
    return v_pair_in_order(V(packus_epi16)(first, second));
}

/* ------------------------------------------------------------------ sums of 32 bits */

/** (a b) >> 32 of unsigned lanes. */
INLINE vector multiply_high_u32(vector a, vector b)
{
    vector const even = V(mul_epu32)(a, b), odd = V(mul_epu32)(V(srli_epi64)(a, 32), b);
    return v_upper_halves(even, odd);
}

/** The blends u of a vector of lanes. Where halves go away from zero, n is 2^20 at most. */
INLINE vector blend_lanes(const struct blender *k, const vector w[2], const uint32_t *left,
                          const uint32_t *right)
{
    vector const sum =
        V(add_epi32)(V(mullo_epi32)(v_load(left), w[0]), V(mullo_epi32)(v_load(right), w[1]));
    vector const t = V(add_epi32)(sum, k->half);
    if (k->kind == BLEND_AWAY)
        return V(srl_epi32)(V(add_epi32)(t, v_signs32(V(sub_epi32)(sum, k->below))), k->right);
    vector const u = V(srl_epi32)(multiply_high_u32(t, k->mult), k->right);
    if (k->kind != BLEND_EVEN)
        return u;
    vector const rest = V(sub_epi32)(V(mullo_epi32)(u, k->n), sum);
    vector const apart = v_xor(V(add_epi32)(rest, rest), k->n);
    vector const is_tie = v_xor(V(min_epu32)(apart, k->one), k->one);
    return V(sub_epi32)(u, v_and(is_tie, u));
}

INLINE vector blend_by_lanes(const struct blender *k, const vector w[2], const void *left,
                             const void *right, size_t n)
{
    const uint32_t *l = left, *r = right;
    vector const a = blend_lanes(k, w, l, r);
    vector const b = n > LANES ? blend_lanes(k, w, l + LANES, r + LANES) : v_zero();
    vector const c = n > 2 * LANES ? blend_lanes(k, w, l + 2 * LANES, r + 2 * LANES) : v_zero();
    vector const d = n > 3 * LANES ? blend_lanes(k, w, l + 3 * LANES, r + 3 * LANES) : v_zero();
    return v_in_order(V(packus_epi16)(V(packs_epi32)(a, b), V(packs_epi32)(c, d)));
}

/* ------------------------------------------------------------------ rows of outputs */

INLINE void blend_columns(const qi_blend *b, blend_kind kind, int bits, const qi_columns *columns,
                          const uint8_t *sums, uint8_t *y)
{
    struct blender const k = blender_of(b, kind, bits);
    uint32_t const both = bits == 16 ? 0x10001 : 1;
    size_t const channels = columns->channels, sum = (size_t)bits / 8;
    const uint8_t *end = y + columns->count * channels;
    for (size_t i = 0; i < columns->count; i++, y += channels) {
        const qi_between *at = &columns->at[i];
        const uint8_t *left = sums + (size_t)at->lower * channels * sum;
        const uint8_t *right = sums + (size_t)at->upper * channels * sum;
        vector const w[] = {V(set1_epi32)((int32_t)(at->weight[0] * both)),
                            V(set1_epi32)((int32_t)(at->weight[1] * both))};
        for (size_t c = 0; c < channels; c += BYTES) {
            vector const u =
                bits == 16 ? blend_by_words(&k, w, left + c * sum, right + c * sum, channels - c)
                           : blend_by_lanes(&k, w, left + c * sum, right + c * sum, channels - c);
            v_store_first(y + c, v_xor(u, k.flip), (size_t)(end - y) - c);
        }
    }
}

static void blend_columns16(const qi_blend *b, const qi_columns *columns, const void *sums,
                            uint8_t *y)
{
    BLEND_BY_KIND(blend_columns, b, 16, columns, sums, y);
}

static void blend_columns32(const qi_blend *b, const qi_columns *columns, const void *sums,
                            uint8_t *y)
{
    BLEND_BY_KIND(blend_columns, b, 32, columns, sums, y);
}

#endif

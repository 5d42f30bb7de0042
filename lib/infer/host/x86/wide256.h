/**
 * Vectors of 256 bits, as elementwise_wide.h and depthwise_wide.h use them; wide512.h has the same
 * names for 512 bits. V(name) is the intrinsic that both widths have. What differs is a function
 * here. Unpacking and packing work within 128 bits.
 */
#ifndef QI_HOST_X86_WIDE256_H
#define QI_HOST_X86_WIDE256_H

#include "infer/host/x86/intrinsics.h"

enum { BYTES = 32, LANES = 8 };

typedef __m256i vector;

#define V(name) _mm256_##name

/**
 * Sums of products, 32-bit lanes. The intrinsics take vectors of 64-bit lanes. If a loop
 * keeps them so, gcc 12 copies each of them twice in every step.
 */
#ifdef QI_SIMDE
typedef vector accumulators;
#else
typedef int32_t accumulators __attribute__((vector_size(32)));
#endif

INLINE vector v_load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INLINE void v_store(void *to, vector a)
{
    _mm256_storeu_si256((__m256i *)to, a);
}

/** The first n bytes; zeros follow. */
INLINE vector v_load_first(const void *from, size_t n)
{
    uint8_t bytes[BYTES] = {0};
    return n >= BYTES ? v_load(from) : v_load(memcpy(bytes, from, n));
}

INLINE void v_store_first(void *to, vector a, size_t n)
{
    uint8_t bytes[BYTES];
    if (n >= BYTES) {
        v_store(to, a);
        return;
    }
    v_store(bytes, a);
    memcpy(to, bytes, n);
}

INLINE vector v_zero(void)
{
    return _mm256_setzero_si256();
}

INLINE vector v_set64(int64_t a)
{
    return _mm256_set1_epi64x(a);
}

INLINE vector v_broadcast128(__m128i a)
{
    return _mm256_broadcastsi128_si256(a);
}

INLINE vector v_xor(vector a, vector b)
{
    return _mm256_xor_si256(a, b);
}

INLINE vector v_and(vector a, vector b)
{
    return _mm256_and_si256(a, b);
}

INLINE vector v_multiply_high_u16(vector a, vector b)
{
    return _mm256_mulhi_epu16(a, b);
}

/** VPDPBUSD, which AVX2 lacks. */
#define v_dot_bytes qi_dpbusd256

/* ------------------------------------------------------------------ lanes */

INLINE vector v_shift_right32(vector a, vector by)
{
    return _mm256_srav_epi32(a, by);
}

/** -1 where a < 0, else 0. */
INLINE vector v_signs32(vector a)
{
    return _mm256_srai_epi32(a, 31);
}

/** A bit for each lane in which a and b differ. */
INLINE uint32_t v_different32(vector a, vector b)
{
    return 0xffu ^ (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)));
}

/** The even lanes of one, the odd ones of the other. */
INLINE vector v_even_odd(vector even, vector odd)
{
    return _mm256_blend_epi32(even, odd, 0xaa);
}

/** The upper halves of 64-bit lanes, those of `even` in the even lanes. */
INLINE vector v_upper_halves(vector even, vector odd)
{
    return v_even_odd(_mm256_srli_epi64(even, 32), odd);
}

/** The upper words of lanes, those of `even` in the even words. */
INLINE vector v_upper_words(vector even, vector odd)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

/* ------------------------------------------------------------------ orders */

/** Lanes in their order, after four vectors of them were packed to bytes. */
INLINE vector v_in_order(vector packed)
{
    return _mm256_permutevar8x32_epi32(packed, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
}

/** The inverse: four vectors that are unpacked twice are in order then. */
INLINE vector v_before_unpacking(vector a)
{
    return _mm256_permutevar8x32_epi32(a, _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0));
}

/** Eight bytes each in their order, after two vectors were packed. */
INLINE vector v_pair_in_order(vector packed)
{
    return _mm256_permute4x64_epi64(packed, 0xd8);
}

/** A quarter of the bytes: LANES of them. */
INLINE void v_store_quarter(uint8_t *to, vector a, int quarter)
{
    __m128i const half = quarter < 2 ? _mm256_castsi256_si128(a) : _mm256_extracti128_si256(a, 1);
    _mm_storel_epi64((__m128i *)(void *)to, quarter % 2 ? _mm_unpackhi_epi64(half, half) : half);
}

/* ------------------------------------------------------------------ choices */

/** Which bytes. */
typedef vector byte_mask;

/** From bytes 0 or 255. */
INLINE byte_mask v_mask_of(const uint8_t *bytes)
{
    return v_load(bytes);
}

/** b where the mask says so. */
INLINE vector v_blend8(byte_mask mask, vector a, vector b)
{
    return _mm256_blendv_epi8(a, b, mask);
}

/** a + (x >= from ? change : 0) */
INLINE vector v_add_from8(vector a, vector x, vector from, vector change)
{
    return _mm256_add_epi8(a, _mm256_andnot_si256(_mm256_cmpgt_epi8(from, x), change));
}

/** a + (x < bound ? change : 0) */
INLINE vector v_add_below16(vector a, vector x, vector bound, vector change)
{
    return _mm256_add_epi16(a, _mm256_and_si256(_mm256_cmpgt_epi16(bound, x), change));
}

/** a + (x < 0 ? change : 0) */
INLINE vector v_add_negative16(vector a, vector x, vector change)
{
    return v_add_below16(a, x, v_zero(), change);
}

/* ------------------------------------------------------------------ products of words */

/** sums + both products of a lane. */
INLINE vector v_add_products(vector sums, vector a, vector b)
{
    return _mm256_add_epi32(_mm256_madd_epi16(a, b), sums);
}

/** sums + (a >> 16) */
INLINE vector v_add_upper(vector sums, vector a)
{
    return _mm256_add_epi32(sums, _mm256_srai_epi32(a, 16));
}

/** Words (p by + q + add) >> 16. One product for both: p and q as neighbours. */
INLINE vector v_weigh16(vector p, vector q, int16_t by, vector add)
{
    vector const both = _mm256_set1_epi32((int32_t)(UINT32_C(1) << 16 | (uint16_t)by));
    vector const low = _mm256_madd_epi16(_mm256_unpacklo_epi16(p, q), both);
    vector const high = _mm256_madd_epi16(_mm256_unpackhi_epi16(p, q), both);
    return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, add), 16),
                              _mm256_srai_epi32(_mm256_add_epi32(high, add), 16));
}

#endif

/** Vectors of 512 bits; see wide256.h. */
#ifndef QI_HOST_X86_WIDE512_H
#define QI_HOST_X86_WIDE512_H

#include "infer/host/x86/intrinsics.h"

enum { BYTES = 64, LANES = 16 };

typedef __m512i vector;

#define V(name) _mm512_##name

#ifdef QI_SIMDE
typedef vector accumulators;
#else
typedef int32_t accumulators __attribute__((vector_size(64)));
#endif

INLINE vector v_load(const void *from)
{
    return _mm512_loadu_si512(from);
}

INLINE void v_store(void *to, vector a)
{
    _mm512_storeu_si512(to, a);
}

/** Without a mask it is quicker. */
INLINE vector v_load_first(const void *from, size_t n)
{
    return n >= BYTES ? v_load(from) : qi_load_bytes512((UINT64_C(1) << n) - 1, from);
}

INLINE void v_store_first(void *to, vector a, size_t n)
{
    if (n >= BYTES)
        v_store(to, a);
    else
        qi_store_bytes512(to, (UINT64_C(1) << n) - 1, a);
}

INLINE vector v_zero(void)
{
    return _mm512_setzero_si512();
}

INLINE vector v_set64(int64_t a)
{
    return _mm512_set1_epi64(a);
}

INLINE vector v_broadcast128(__m128i a)
{
    return _mm512_broadcast_i32x4(a);
}

INLINE vector v_xor(vector a, vector b)
{
    return _mm512_xor_si512(a, b);
}

INLINE vector v_and(vector a, vector b)
{
    return _mm512_and_si512(a, b);
}

INLINE vector v_multiply_high_u16(vector a, vector b)
{
    return qi_multiply_high_u16_512(a, b);
}

#define v_dot_bytes _mm512_dpbusd_epi32

/* ------------------------------------------------------------------ lanes */

INLINE vector v_shift_right32(vector a, vector by)
{
    return qi_srav512(a, by);
}

INLINE vector v_signs32(vector a)
{
    return qi_sra512(a, 31);
}

INLINE uint32_t v_different32(vector a, vector b)
{
    return 0xffffu ^ _mm512_cmpeq_epi32_mask(a, b);
}

INLINE vector v_even_odd(vector even, vector odd)
{
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
}

INLINE vector v_upper_halves(vector even, vector odd)
{
    return qi_high_words512(even, odd);
}

INLINE vector v_upper_words(vector even, vector odd)
{
    vector const down = _mm512_set4_epi32(0x0f0e, 0x0b0a, 0x0706, 0x0302);
    return _mm512_mask_shuffle_epi8(odd, UINT64_C(0x3333333333333333), even, down);
}

/* ------------------------------------------------------------------ orders */

INLINE vector v_in_order(vector packed)
{
    vector const order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_epi32(order, packed);
}

/** The same order: four vectors of four lanes, transposed. */
INLINE vector v_before_unpacking(vector a)
{
    return v_in_order(a);
}

INLINE vector v_pair_in_order(vector packed)
{
    return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), packed);
}

INLINE void v_store_quarter(uint8_t *to, vector a, int quarter)
{
    __m128i const lanes = quarter == 0   ? _mm512_castsi512_si128(a)
                          : quarter == 1 ? _mm512_extracti32x4_epi32(a, 1)
                          : quarter == 2 ? _mm512_extracti32x4_epi32(a, 2)
                                         : _mm512_extracti32x4_epi32(a, 3);
    _mm_storeu_si128((__m128i *)(void *)to, lanes);
}

/* ------------------------------------------------------------------ choices */

typedef uint64_t byte_mask;

INLINE byte_mask v_mask_of(const uint8_t *bytes)
{
    return _mm512_movepi8_mask(v_load(bytes));
}

INLINE vector v_blend8(byte_mask mask, vector a, vector b)
{
    return _mm512_mask_blend_epi8(mask, a, b);
}

INLINE vector v_add_from8(vector a, vector x, vector from, vector change)
{
    return _mm512_mask_add_epi8(a, _mm512_cmpge_epi8_mask(x, from), a, change);
}

INLINE vector v_add_below16(vector a, vector x, vector bound, vector change)
{
    return _mm512_mask_add_epi16(a, qi_above_words512(bound, x), a, change);
}

INLINE vector v_add_negative16(vector a, vector x, vector change)
{
    return _mm512_mask_add_epi16(a, _mm512_movepi16_mask(x), a, change);
}

/* ------------------------------------------------------------------ products of words */

INLINE vector v_add_products(vector sums, vector a, vector b)
{
    return qi_add_products512(sums, a, b);
}

/** By a product with 1: VPDPWSSD adds it, too. */
INLINE vector v_add_upper(vector sums, vector a)
{
    return v_add_products(sums, a, _mm512_set1_epi32(1 << 16));
}

/** Even and odd words by products of their own: VPDPWSSD adds, and nothing is unpacked. */
INLINE vector v_weigh16(vector p, vector q, int16_t by, vector add)
{
    vector const even = _mm512_set1_epi32((uint16_t)by);
    vector const odd = _mm512_set1_epi32((int32_t)((uint32_t)(uint16_t)by << 16));
    vector const even_sums = v_add_products(v_add_products(add, p, even), q, _mm512_set1_epi32(1));
    return v_upper_words(even_sums, v_add_upper(v_add_products(add, p, odd), q));
}

#endif

/**
 * Table lookups with AVX2. VPSHUFB selects from 16 bytes by the low four bits of an index, and
 * gives 0 if the top bit of the index is set. An index below 128 takes part of the first x / 16 + 1
 * of eight steps, since subtraction saturates at -128:
 *
 *   step h:   index x - 16 h, in the table  t[16 h + i] ^ t[16 (h - 1) + i]   (h = 0: t[i])
 *
 * The exclusive or of all steps is t[x]. Eight more steps with x - 128 do the same for the upper
 * half. With its sum and its exclusive or a step takes three instructions.
 */
#ifndef QI_HOST_X86_LOOKUP_AVX2_H
#define QI_HOST_X86_LOOKUP_AVX2_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/x86/intrinsics.h"

enum { QI_LOOKUP_STEPS = 16 };

static inline void qi_lookup_tables(const uint8_t *table, __m256i t[QI_LOOKUP_STEPS])
{
    __m128i before = _mm_setzero_si128();
    for (int h = 0; h < QI_LOOKUP_STEPS; h++) {
        __m128i const own = _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * h));
        int const is_first = h % (QI_LOOKUP_STEPS / 2) == 0;
        t[h] = _mm256_broadcastsi128_si256(is_first ? own : _mm_xor_si128(own, before));
        before = own;
    }
}

INLINE __m256i look_up32(const __m256i t[QI_LOOKUP_STEPS], __m256i x)
{
    __m256i const step = _mm256_set1_epi8(16);
    __m256i upper = _mm256_xor_si256(x, _mm256_set1_epi8((char)0x80));
    __m256i y = _mm256_shuffle_epi8(t[0], x), z = _mm256_shuffle_epi8(t[8], upper);
    UNROLL for (int h = 1; h < QI_LOOKUP_STEPS / 2; h++)
    {
        x = _mm256_subs_epi8(x, step);
        upper = _mm256_subs_epi8(upper, step);
        y = _mm256_xor_si256(y, _mm256_shuffle_epi8(t[h], x));
        z = _mm256_xor_si256(z, _mm256_shuffle_epi8(t[8 + h], upper));
    }
    return _mm256_xor_si256(y, z);
}

static inline void lookup_avx2(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    __m256i t[QI_LOOKUP_STEPS];
    qi_lookup_tables(table, t);
    for (size_t i = 0; i + 32 <= n; i += 32)
        _mm256_storeu_si256(
            (__m256i *)(void *)(y + i),
            look_up32(t, _mm256_loadu_si256((const __m256i *)(const void *)(x + i))));
    for (size_t i = n / 32 * 32; i < n; i++)
        y[i] = table[x[i]];
}

#endif

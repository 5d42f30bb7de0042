/**
 * Table lookups with AVX2. VPSHUFB selects from 16 bytes by the low four bits of an index, and
 * gives 0 if the top bit of the index is set. So sixteen tables are looked up in turn. For an index
 * x, table h sees
 *
 *   (x ^ 16 h) + 0x70, saturating        0x70..0x7f if x is one of 16 h .. 16 h + 15, else >= 0x80
 */
#ifndef QI_HOST_X86_LOOKUP_AVX2_H
#define QI_HOST_X86_LOOKUP_AVX2_H

#include "infer/host/elementwise.h"
#include "infer/host/x86/intrinsics.h"

static inline __m256i look_up32(const uint8_t *table, __m256i x)
{
    __m256i y = _mm256_setzero_si256();
    for (int h = 0; h < 16; h++) {
        __m256i const t = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * h)));
        __m256i const at = _mm256_adds_epu8(_mm256_xor_si256(x, _mm256_set1_epi8((char)(16 * h))),
                                            _mm256_set1_epi8(0x70));
        y = _mm256_or_si256(y, _mm256_shuffle_epi8(t, at));
    }
    return y;
}

static inline void lookup_avx2(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n)
{
    for (size_t i = 0; i + 32 <= n; i += 32)
        _mm256_storeu_si256(
            (__m256i *)(void *)(y + i),
            look_up32(table, _mm256_loadu_si256((const __m256i *)(const void *)(x + i))));
    for (size_t i = n / 32 * 32; i < n; i++)
        y[i] = table[x[i]];
}

#endif

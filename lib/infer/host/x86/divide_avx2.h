/** Means of sums with AVX2, in 16 bits (qi_divisor). */
#ifndef QI_HOST_X86_DIVIDE_AVX2_H
#define QI_HOST_X86_DIVIDE_AVX2_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/x86/intrinsics.h"

/** One divisor in all lanes; below: sums that are negative without the flip. */
struct division {
    __m256i count, below, m, lo, hi, flip;
    __m128i l;
};

/** floor(v / (2 n)) of 16 sums. */
INLINE __m256i means16(const struct division *k, __m256i s)
{
    __m256i const twice = _mm256_add_epi16(_mm256_add_epi16(s, s), k->count);
    __m256i const less =
        _mm256_min_epu16(_mm256_subs_epu16(k->below, s), _mm256_set1_epi16(1)); /* 1 or 0 */
    return _mm256_srl_epi16(_mm256_mulhi_epu16(_mm256_sub_epi16(twice, less), k->m), k->l);
}

/** Both limits as unsigned, before the flip. */
INLINE void divide32(const struct division *k, const uint16_t *sums, uint8_t *y)
{
    const __m256i *s = (const __m256i *)(const void *)sums;
    __m256i const packed = _mm256_packus_epi16(means16(k, _mm256_loadu_si256(s)),
                                               means16(k, _mm256_loadu_si256(s + 1)));
    __m256i const codes =
        _mm256_min_epu8(_mm256_max_epu8(_mm256_permute4x64_epi64(packed, 0xd8), k->lo), k->hi);
    _mm256_storeu_si256((__m256i *)(void *)y, _mm256_xor_si256(codes, k->flip));
}

static void divide_avx2(const uint16_t *sums, const qi_divisor *d, uint8_t *y, size_t n)
{
    enum { AT_ONCE = 32 };
    qi_reciprocal const by = qi_reciprocal_of(d->n);
    struct division const k = {.count = _mm256_set1_epi16((int16_t)d->n),
                               .below = _mm256_set1_epi16((int16_t)(d->n * d->flip)),
                               .m = _mm256_set1_epi16((int16_t)by.m),
                               .lo = _mm256_set1_epi8((char)(d->lo + d->flip)),
                               .hi = _mm256_set1_epi8((char)(d->hi + d->flip)),
                               .flip = _mm256_set1_epi8((char)d->flip),
                               .l = _mm_cvtsi32_si128(by.l)};
    uint16_t last[AT_ONCE] = {0};
    uint8_t codes[AT_ONCE];
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE)
        divide32(&k, sums + i, y + i);
    if (i == n)
        return;
    memcpy(last, sums + i, (n - i) * sizeof *last);
    divide32(&k, last, codes);
    memcpy(y + i, codes, n - i);
}

#endif

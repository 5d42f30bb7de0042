/**
 * CRC-32 by carry-less multiplication. Bits are polynomials over GF(2), and the CRC a remainder
 * modulo P: a block of 128 bits may be replaced by any polynomial that is congruent to it, further
 * on:
 *
 *   A x^(64 + d) + B x^d  =  A (x^(64 + d) mod P) + B (x^d mod P)        A, B: halves of a block
 *
 * moves a block d bits on, where it is added to what lies there. Four blocks move 512 bits at a
 * time, then one by one 128 bits; the 16 bytes that remain have the CRC of all, and go the slow
 * way. In this CRC a polynomial's highest power is its lowest bit, so that the constants are
 * reflected, and one less in their exponent, because a reflected product of 64 by 64 bits is one
 * bit short.
 */
#include "infer/host/crc32.h"

#include <immintrin.h>

/** The block moved on by the distance of k, plus the block that lies there. */
static inline __m128i fold(__m128i block, __m128i k, __m128i there)
{
    __m128i const first = _mm_clmulepi64_si128(block, k, 0x00);
    __m128i const second = _mm_clmulepi64_si128(block, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), there);
}

static inline __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/** Blocks of four to one, which stands for everything before *p. */
static __m128i fold_fours(__m128i b[4], const uint8_t **p, size_t *count)
{
    /* x^(512 + 32) and x^(512 - 32), x^(128 + 32) and x^(128 - 32) modulo P, reflected */
    __m128i const by512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    __m128i const by128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    for (; *count >= 64; *count -= 64, *p += 64)
        for (int i = 0; i < 4; i++)
            b[i] = fold(b[i], by512, load(*p + 16 * i));
    __m128i one = b[0];
    for (int i = 1; i < 4; i++)
        one = fold(one, by128, b[i]);
    for (; *count >= 16; *count -= 16, *p += 16)
        one = fold(one, by128, load(*p));
    return one;
}

uint32_t qi_crc32_pclmul(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    __m128i b[4];
    uint8_t rest[16];
    if (count < 64)
        return qm_crc32(crc, bytes, count);
    for (int i = 0; i < 4; i++)
        b[i] = load(p + 16 * i);
    b[0] = _mm_xor_si128(b[0], _mm_cvtsi32_si128((int)~crc));
    p += 64;
    count -= 64;
    _mm_storeu_si128((__m128i *)(void *)rest, fold_fours(b, &p, &count));
    return qm_crc32(qm_crc32(UINT32_MAX, rest, sizeof rest), p, count);
}

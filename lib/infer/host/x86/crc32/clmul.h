/**
 * CRC-32 by carry-less multiplication, shared by its implementations. Bits are polynomials over
 * GF(2), and the CRC is a remainder modulo P. A block of 128 bits may therefore be replaced by a
 * congruent polynomial further on:
 *
 *   A x^(64 + d) + B x^d  =  A (x^(64 + d) mod P) + B (x^d mod P)        A, B: halves of a block
 *
 * moves a block d bits on, where it is added to the block there. In this CRC the highest power of a
 * polynomial is its lowest bit. The constants are therefore reflected. Their exponents are one
 * less, because a reflected product of 64 by 64 bits is one bit short: x^(d + 32) and x^(d - 32).
 */
#ifndef QI_HOST_X86_CRC32_CLMUL_H
#define QI_HOST_X86_CRC32_CLMUL_H

#include "infer/host/loops/crc32.h"

#include <immintrin.h>

/** x^(d - 32) and x^(d + 32) modulo P, reflected, for _mm_set_epi64x. */
#define QI_CLMUL_BY_128  0x0ccaa009e, 0x1751997d0
#define QI_CLMUL_BY_512  0x1c6e41596, 0x154442bd4
#define QI_CLMUL_BY_2048 0x1322d1430, 0x11542778a

/** The block moved by the distance of k, plus the block that lies there. */
static inline __m128i qi_clmul_fold(__m128i block, __m128i k, __m128i there)
{
    __m128i const first = _mm_clmulepi64_si128(block, k, 0x00);
    __m128i const second = _mm_clmulepi64_si128(block, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), there);
}

static inline __m128i qi_clmul_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/**
 * The CRC of four blocks, which stand for everything before p, and of count more bytes at p. The
 * four blocks move on 512 bits at a time, then one by one 128 bits. The CRC of the last 16 bytes,
 * which stand for everything, is computed the slow way.
 */
static inline uint32_t qi_clmul_finish(__m128i b[4], const uint8_t *p, size_t count)
{
    __m128i const by512 = _mm_set_epi64x(QI_CLMUL_BY_512);
    __m128i const by128 = _mm_set_epi64x(QI_CLMUL_BY_128);
    uint8_t rest[16];
    for (; count >= 64; count -= 64, p += 64)
        for (int i = 0; i < 4; i++)
            b[i] = qi_clmul_fold(b[i], by512, qi_clmul_load(p + 16 * i));
    __m128i one = b[0];
    for (int i = 1; i < 4; i++)
        one = qi_clmul_fold(one, by128, b[i]);
    for (; count >= 16; count -= 16, p += 16)
        one = qi_clmul_fold(one, by128, qi_clmul_load(p));
    _mm_storeu_si128((__m128i *)(void *)rest, one);
    return qm_crc32(qm_crc32(UINT32_MAX, rest, sizeof rest), p, count);
}

#endif

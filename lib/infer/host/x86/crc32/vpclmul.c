/**
 * CRC-32 by carry-less multiplication of 512 bits: four blocks side by side, see clmul.h. Four
 * registers move 2048 bits at a time. Then each is moved onto the next, 512 bits on, and the four
 * blocks of the last one stand for all.
 */
#include "infer/host/x86/crc32/clmul.h"

enum { REGISTERS = 4, REGISTER = 64 };

static inline __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512((const void *)p);
}

static inline __m512i fold(__m512i blocks, __m512i k, __m512i there)
{
    __m512i const first = _mm512_clmulepi64_epi128(blocks, k, 0x00);
    __m512i const second = _mm512_clmulepi64_epi128(blocks, k, 0x11);
    return _mm512_xor_si512(_mm512_xor_si512(first, second), there);
}

/**
 * Fold everything from *p on, in steps of four registers, into four blocks; crc: of the bytes
 * before.
 */
static void fold_registers(uint32_t crc, const uint8_t **p, size_t *count, __m128i b[4])
{
    __m512i const by2048 = _mm512_broadcast_i32x4(_mm_set_epi64x(QI_CLMUL_BY_2048));
    __m512i const by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(QI_CLMUL_BY_512));
    size_t const step = (size_t)REGISTERS * REGISTER;
    __m512i z[REGISTERS];
    for (int i = 0; i < REGISTERS; i++)
        z[i] = load(*p + i * REGISTER);
    z[0] = _mm512_xor_si512(z[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    for (*p += step, *count -= step; *count >= step; *p += step, *count -= step)
        for (int i = 0; i < REGISTERS; i++)
            z[i] = fold(z[i], by2048, load(*p + i * REGISTER));
    for (int i = 1; i < REGISTERS; i++)
        z[i] = fold(z[i - 1], by512, z[i]);
    _mm512_storeu_si512((void *)b, z[REGISTERS - 1]);
}

uint32_t qi_crc32_vpclmul(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    __m128i b[4];
    if (count < (size_t)REGISTERS * REGISTER)
        return qi_crc32_pclmul(crc, bytes, count);
    fold_registers(crc, &p, &count, b);
    return qi_clmul_finish(b, p, count);
}

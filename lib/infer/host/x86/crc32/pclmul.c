/** CRC-32 by carry-less multiplication of 128 bits; see clmul.h. */
#include "infer/host/x86/crc32/clmul.h"

uint32_t qi_crc32_pclmul(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    __m128i b[4];
    if (count < 64)
        return qm_crc32(crc, bytes, count);
    for (int i = 0; i < 4; i++)
        b[i] = qi_clmul_load(p + 16 * i);
    b[0] = _mm_xor_si128(b[0], _mm_cvtsi32_si128((int)~crc));
    return qi_clmul_finish(b, p + 64, count - 64);
}

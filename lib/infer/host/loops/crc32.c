/**
 * CRC-32 of many bytes. After a byte b the register r is (r >> 8) ^ T0[(r ^ b) & 255]. This is
 * linear in r and b, so sixteen bytes at once are the sum (exclusive or) of their contributions:
 *
 *   r' = T15[b0 ^ r0] ^ .. ^ T12[b3 ^ r3] ^ T11[b4] ^ .. ^ T0[b15]      Tk: b, then k bytes 0
 */
#include "infer/host/loops/crc32.h"

#if defined(QI_ARM_CRC) && defined(__linux__)
#include <sys/auxv.h>
#endif

enum { SLICES = 16, WORTH_TABLES = 1 << 15 };

static void make_tables(uint32_t table[SLICES][256])
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t r = b;
        for (int bit = 0; bit < 8; bit++)
            r = (r >> 1) ^ (r & 1 ? UINT32_C(0xedb88320) : 0);
        table[0][b] = r;
    }
    for (int k = 1; k < SLICES; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 255];
}

uint32_t qi_crc32_tables(uint32_t crc, const void *bytes, size_t count)
{
    uint32_t table[SLICES][256];
    const uint8_t *p = bytes;
    if (count < WORTH_TABLES)
        return qm_crc32(crc, bytes, count);
    make_tables(table);
    uint32_t r = ~crc;
    for (; count >= SLICES; count -= SLICES, p += SLICES) {
        uint32_t const head = r ^ qm_u32(p);
        r = 0;
        for (int i = 0; i < 4; i++)
            r ^= table[SLICES - 1 - i][head >> 8 * i & 255];
        for (int i = 4; i < SLICES; i++)
            r ^= table[SLICES - 1 - i][p[i]];
    }
    return qm_crc32(~r, p, count);
}

/* ------------------------------------------------------------------ choice */

static int always(void)
{
    return 1;
}

#ifdef QI_X86
static int has_pclmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static int has_vpclmul(void)
{
    return has_pclmul() && __builtin_cpu_supports("vpclmulqdq") &&
           __builtin_cpu_supports("avx512f");
}
#endif

#ifdef QI_ARM_CRC
static int has_arm_crc(void)
{
#ifdef __linux__
    enum { CRC32_BIT = 7 }; /* HWCAP_CRC32 of <asm/hwcap.h> */
    return getauxval(AT_HWCAP) >> CRC32_BIT & 1;
#else
    return 0;
#endif
}
#endif

static const qi_crc32_way ways[] = {
#ifdef QI_X86
    {"vpclmul", has_vpclmul, qi_crc32_vpclmul},
    {"pclmul", has_pclmul, qi_crc32_pclmul},
#endif
#ifdef QI_ARM_CRC
    {"arm", has_arm_crc, qi_crc32_arm},
#endif
    {"tables", always, qi_crc32_tables},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

const qi_crc32_way *qi_crc32_way_at(int i)
{
    return i >= 0 && i < WAYS ? &ways[i] : NULL;
}

uint32_t qi_crc32(uint32_t crc, const void *bytes, size_t count)
{
    const qi_crc32_way *way = ways;
    while (!way->runs_here())
        way++;
    return way->crc32(crc, bytes, count);
}

#include "base/checksums/crc32c.h"

/** The effect of the low byte, computed bit by bit. */
static void fill(uint32_t table[256])
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        table[byte] = crc;
    }
}

uint32_t qat_crc32c(const void *bytes, size_t count)
{
    uint32_t table[256], crc = 0xffffffffu;
    const uint8_t *at = bytes;
    fill(table);
    for (size_t i = 0; i < count; i++)
        crc = crc >> 8 ^ table[(crc ^ at[i]) & 255];
    return ~crc;
}

uint32_t qat_masked_crc32c(const void *bytes, size_t count)
{
    uint32_t const crc = qat_crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

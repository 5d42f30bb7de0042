/** CRC-32 with the instructions of ARMv8's CRC extension, eight bytes at a time. */
#include "infer/host/loops/crc32.h"

#include <arm_acle.h>
#include <string.h>

uint32_t qi_crc32_arm(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    uint64_t word;
    crc = ~crc;
    for (; count >= sizeof word; count -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        crc = __crc32d(crc, word);
    }
    for (; count; count--)
        crc = __crc32b(crc, *p++);
    return ~crc;
}

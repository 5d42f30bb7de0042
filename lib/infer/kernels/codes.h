/** Codes as bytes or 16-bit numbers, and the differences q - zero_point that kernels multiply. */
#ifndef QI_CODES_H
#define QI_CODES_H

#include "infer/kernels/features.h"
#include "infer/kernels/memory.h"

#include <stdint.h>

/**
 * How bytes become differences: byte b of a tensor stands for (b ^ flip) - offset = q - zero_point.
 * 16-bit codes are differences themselves.
 */
typedef struct qi_codes {
    uint8_t flip, is_wide;
    int16_t offset;
} qi_codes;

/** difference[i] = q[i] - zero_point, |difference| <= 255. */
QK_INLINE void qi_widen(int16_t *QK_RESTRICT difference, const uint8_t *QK_RESTRICT codes, size_t n,
                        qi_codes c)
{
    for (size_t i = 0; i < n; i++)
        difference[i] = (int16_t)((codes[i] ^ c.flip) - c.offset);
}

/** The differences of the codes first..first+n-1 of a tensor with bytes or 16-bit codes. */
QK_INLINE void qi_differences(int16_t *QK_RESTRICT difference, const void *codes, size_t first,
                              size_t n, qi_codes c)
{
    if (QK_WIDE && c.is_wide)
        memcpy(difference, (const int16_t *)codes + first, n * sizeof *difference);
    else
        qi_widen(difference, (const uint8_t *)codes + first, n, c);
}

#endif

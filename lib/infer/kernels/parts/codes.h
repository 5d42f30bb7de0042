/** Codes as bytes or 16-bit numbers, and the differences q - zero_point that kernels multiply. */
#ifndef QI_CODES_H
#define QI_CODES_H

#include "infer/kernels/parts/features.h"
#include "infer/kernels/parts/memory.h"

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

/** The byte of a code that equals the zero_point: its difference is 0. */
QK_INLINE uint8_t qi_zero_byte(qi_codes c)
{
    return (uint8_t)(c.offset ^ c.flip);
}

/** memcpy of few bytes, without a call where Helium has a loop of three instructions. */
QK_INLINE void qk_copy(void *to, const void *from, size_t count)
{
#if QK_MVE
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[from]], #16\n"
                     "vstrb.8 q0, [%[to]], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [from] "+&r"(from), [to] "+&r"(to)
                     : [n] "r"(count)
                     : "q0", "lr", "memory");
#else
    memcpy(to, from, count);
#endif
}

/** to[at + i] = from[first + i] for n codes of 8 or 16 bits. */
QK_INLINE void qi_copy_values(void *to, size_t at, const void *from, size_t first, size_t n,
                              qi_codes c)
{
    size_t const item = QK_WIDE && c.is_wide ? sizeof(int16_t) : 1;
    qk_copy((uint8_t *)to + at * item, (const uint8_t *)from + first * item, n * item);
}

/** to[at + i] = the code whose difference is 0, n times. */
QK_INLINE void qi_fill_zeros(void *to, size_t at, size_t n, qi_codes c)
{
    if (QK_WIDE && c.is_wide)
        memset((int16_t *)to + at, 0, n * sizeof(int16_t));
    else
        memset((uint8_t *)to + at, qi_zero_byte(c), n);
}

#endif

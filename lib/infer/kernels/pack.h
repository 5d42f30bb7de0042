/**
 * pack, unpack: codes of at most 4 bits share bytes along the last axis, n = 2 in a byte, or n = 4
 * if they have 2 bits or fewer.
 *
 *   pack     y[r, k] = sum over j < n of (x[r, k n + j] - lo) 2^(8 j / n)
 *   unpack   y[r, i] = lo + (bits 8 j / n and up of x[r, floor(i / n)], mod 2^bits), j = i mod n
 *
 * lo is the lowest code. What is missing in the last byte of a row counts as lo.
 */
#ifndef QK_PACK_H
#define QK_PACK_H

#include "infer/kernels/values.h"

typedef struct qk_pack {
    int32_t rows;
    int32_t codes;    /* of a row */
    uint8_t per_byte; /* n */
    uint8_t lowest;   /* lo, as a byte */
    uint8_t mask;     /* 2^bits - 1 */
} qk_pack;

QK_INLINE uint8_t qk_packed_byte(qk_pack p, const uint8_t *x, int32_t n, int per_byte)
{
    unsigned byte = 0;
    for (int32_t j = 0; j < n; j++)
        byte |= (unsigned)((x[j] - p.lowest) & p.mask) << (j * (8 / per_byte));
    return (uint8_t)byte;
}

QK_INLINE void qk_unpack_byte(qk_pack p, unsigned byte, int32_t n, int per_byte, uint8_t *y)
{
    for (int32_t j = 0; j < n; j++)
        y[j] = (uint8_t)(p.lowest + (byte >> (j * (8 / per_byte)) & p.mask));
}

/** per_byte is a constant, so that whole bytes need no loop. */
QK_INLINE void qk_pack_rows(qk_pack p, const uint8_t *x, uint8_t *y, int per_byte)
{
    for (int32_t r = 0; r < p.rows; r++) {
        int32_t left = p.codes;
        for (; left >= per_byte; left -= per_byte, x += per_byte)
            *y++ = qk_packed_byte(p, x, per_byte, per_byte);
        if (left > 0)
            *y++ = qk_packed_byte(p, x, left, per_byte);
        x += left;
    }
}

QK_INLINE void qk_unpack_rows(qk_pack p, const uint8_t *x, uint8_t *y, int per_byte)
{
    for (int32_t r = 0; r < p.rows; r++) {
        int32_t left = p.codes;
        for (; left >= per_byte; left -= per_byte, y += per_byte)
            qk_unpack_byte(p, *x++, per_byte, per_byte, y);
        if (left > 0)
            qk_unpack_byte(p, *x++, left, per_byte, y);
        y += left;
    }
}

QK_INLINE void qk_pack_run(const qk_pack *p, const void *x, void *y)
{
    if (p->per_byte == 2)
        qk_pack_rows(*p, (const uint8_t *)x, (uint8_t *)y, 2);
    else
        qk_pack_rows(*p, (const uint8_t *)x, (uint8_t *)y, 4);
}

QK_INLINE void qk_unpack_run(const qk_pack *p, const void *x, void *y)
{
    if (p->per_byte == 2)
        qk_unpack_rows(*p, (const uint8_t *)x, (uint8_t *)y, 2);
    else
        qk_unpack_rows(*p, (const uint8_t *)x, (uint8_t *)y, 4);
}

#endif

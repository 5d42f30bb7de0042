/**
 * Rows of weights: one for each output channel, as bytes or packed (docs/qm-format.md, "Packed
 * codes").
 */
#ifndef QI_ROWS_H
#define QI_ROWS_H

#include "infer/kernels/parts/codes.h"

/** A packing of codes of three values: five of them in a byte. */
enum { QI_TRITS = 8, QI_TRITS_OF_BYTE = 5 };

/** The rows of a constant of 8-bit codes. */
typedef struct qi_rows {
    const uint8_t *first; /* the bytes of row 0 */
    size_t bytes, values; /* of a row */
    const uint8_t *list;  /* the code of each index; NULL: index + lowest */
    uint8_t packing;      /* 0: the bytes are the codes */
    uint8_t lowest;
} qi_rows;

/** Write n values of `bits` bits each, from bit `bit` of a byte on. */
QK_INLINE void qi_unpack_bits(uint8_t *QK_RESTRICT to, const uint8_t *QK_RESTRICT from,
                              unsigned bit, size_t n, unsigned bits)
{
    uint32_t const mask = (UINT32_C(1) << bits) - 1;
    uint32_t waiting = 0;
    unsigned have = 0; /* bits that wait */
    for (size_t i = 0; i < n; i++) {
        if (have < bits) {
            waiting |= (uint32_t)(*from++ >> bit) << have;
            have += 8 - bit;
            bit = 0;
        }
        if (have < bits) { /* the first byte had too few */
            waiting |= (uint32_t)*from++ << have;
            have += 8;
        }
        to[i] = (uint8_t)(waiting & mask);
        waiting >>= bits;
        have -= bits;
    }
}

/** The same from a byte's first bit on, where bytes hold whole values: bits is 1, 2 or 4. */
QK_INLINE void qi_unpack_whole(uint8_t *QK_RESTRICT to, const uint8_t *QK_RESTRICT from, size_t n,
                               unsigned bits)
{
    size_t const each = 8 / bits, bytes = n / each;
    unsigned const mask = (1u << bits) - 1;
    for (size_t i = 0; i < bytes; i++)
        for (size_t j = 0; j < each; j++)
            to[i * each + j] = (uint8_t)(from[i] >> (j * bits) & mask);
    for (size_t j = 0; j < n % each; j++)
        to[bytes * each + j] = (uint8_t)(from[bytes] >> (j * bits) & mask);
}

/** Write n values of base 3, after `skip` others of the first byte. */
QK_INLINE void qi_unpack_trits(uint8_t *QK_RESTRICT to, const uint8_t *QK_RESTRICT from,
                               unsigned skip, size_t n)
{
    for (size_t i = 0; i < n; skip = 0) {
        unsigned byte = *from++;
        for (unsigned j = 0; j < QI_TRITS_OF_BYTE && i < n; j++, byte /= 3)
            if (j >= skip)
                to[i++] = (uint8_t)(byte % 3);
    }
}

/** Write the indices of n values of a row. */
QK_INLINE void qi_unpack_indices(const qi_rows *rows, size_t row, size_t at, size_t n,
                                 uint8_t *indices)
{
    const uint8_t *from = rows->first + row * rows->bytes;
    if (rows->packing == QI_TRITS) {
        qi_unpack_trits(indices, from + at / QI_TRITS_OF_BYTE, (unsigned)(at % QI_TRITS_OF_BYTE),
                        n);
        return;
    }
    size_t const bit = at * rows->packing;
    from += bit / 8;
    if (bit % 8 == 0 && rows->packing == 4)
        qi_unpack_whole(indices, from, n, 4);
    else if (bit % 8 == 0 && rows->packing == 2)
        qi_unpack_whole(indices, from, n, 2);
    else if (bit % 8 == 0 && rows->packing == 1)
        qi_unpack_whole(indices, from, n, 1);
    else
        qi_unpack_bits(indices, from, (unsigned)(bit % 8), n, rows->packing);
}

/** Write the n codes of packed rows from value `at` of a row on. */
QK_APART void qi_unpack_row(const qi_rows *rows, size_t row, size_t at, size_t n, uint8_t *codes)
{
    /* for all that a compiler knows, codes may be where rows is: so it is read once */
    const uint8_t *const list = rows->list;
    uint8_t const lowest = rows->lowest;
    qi_unpack_indices(rows, row, at, n, codes);
    for (size_t i = 0; list && i < n; i++)
        codes[i] = list[codes[i]];
    for (size_t i = 0; !list && i < n; i++)
        codes[i] = (uint8_t)(codes[i] + lowest);
}

/** The differences of a row of weights, packed or not. */
QK_INLINE void qi_widen_row(int16_t *difference, const qi_rows *rows, size_t row, qi_codes c)
{
    uint8_t unpacked[240];
    size_t const most = sizeof unpacked;
    if (!QK_PACKED || !rows->packing) {
        qi_widen(difference, rows->first + row * rows->bytes, rows->values, c);
        return;
    }
    for (size_t at = 0; at < rows->values; at += most) {
        size_t const left = rows->values - at, n = left < most ? left : most;
        qi_unpack_row(rows, row, at, n, unpacked);
        qi_widen(difference + at, unpacked, n, c);
    }
}

#endif

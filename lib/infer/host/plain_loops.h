/**
 * Runs of codes in plain C that compilers vectorize. The file of an instruction set includes this
 * and is compiled with its flags. That file uses intrinsics for loops that compilers do not
 * vectorize well.
 */
#ifndef QI_HOST_PLAIN_LOOPS_H
#define QI_HOST_PLAIN_LOOPS_H

#include "infer/host/elementwise.h"

static void plain_lookup_channels(const uint8_t *tables, size_t channels, const uint8_t *x,
                                  uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i += channels)
        for (size_t c = 0; c < channels; c++)
            y[i + c] = tables[c * QI_TABLE + x[i + c]];
}

static void plain_flip(uint8_t flip, const uint8_t *x, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] ^ flip;
}

static void plain_add(uint8_t flip, const uint8_t *restrict x, uint16_t *restrict sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] = (uint16_t)(sums[i] + (x[i] ^ flip));
}

static inline void plain_divide(const uint16_t *restrict sums, const qi_divisor *d,
                                uint8_t *restrict y, size_t n)
{
    int32_t const count = d->n, less = d->less, lo = d->lo, hi = d->hi;
    uint32_t const half = (uint32_t)count / 2;
    uint32_t const m = ((1u << QI_RECIPROCAL_BITS) + (uint32_t)count - 1) / (uint32_t)count;
    for (size_t i = 0; i < n; i++) {
        int32_t const sum = sums[i] - less, sign = sum >> 31;
        uint32_t const v = (uint32_t)((sum ^ sign) - sign) + half;
        int32_t const q = (int32_t)(v * m >> QI_RECIPROCAL_BITS);
        y[i] = (uint8_t)qi_clamp((q ^ sign) - sign, lo, hi);
    }
}

static void plain_most(uint8_t flip, const uint8_t *restrict x, uint8_t *restrict most, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t const q = x[i] ^ flip;
        most[i] = q > most[i] ? q : most[i];
    }
}

#endif

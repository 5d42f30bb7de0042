/**
 * Runs of codes in plain C that compilers vectorize. The file of an instruction set includes this
 * and is compiled with its flags. That file uses intrinsics for loops that compilers do not
 * vectorize well.
 */
#ifndef QI_HOST_PLAIN_LOOPS_H
#define QI_HOST_PLAIN_LOOPS_H

#include "infer/host/loops/elementwise.h"

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

static int32_t plain_dot(const int16_t *restrict w, const int16_t *restrict x, size_t n)
{
    int32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += w[k] * x[k];
    return sum;
}

static void plain_dots(const int16_t *w, const int16_t *x, size_t n, size_t stride, int32_t rows,
                       int32_t *sums)
{
    for (int32_t r = 0; r < rows; r++)
        sums[r] = plain_dot(w, x + (size_t)r * stride, n);
}

/** Two rows at a time: that halves the loads and stores of what they are added to. */
static void plain_sum_rows(uint8_t flip, const uint8_t *restrict x, size_t step, size_t rows,
                           uint16_t *restrict sums, size_t n)
{
    size_t r = 1;
    for (size_t i = 0; i < n; i++)
        sums[i] = x[i] ^ flip;
    for (const uint8_t *a = x + step; r + 1 < rows; r += 2, a += 2 * step)
        for (size_t i = 0; i < n; i++)
            sums[i] = (uint16_t)(sums[i] + (a[i] ^ flip) + (a[i + step] ^ flip));
    for (size_t i = 0; i < n && r < rows; i++)
        sums[i] = (uint16_t)(sums[i] + (x[r * step + i] ^ flip));
}

static void plain_sum_sums(const uint16_t *restrict sums, size_t step, size_t rows,
                           uint16_t *restrict total, size_t n)
{
    size_t r = 1;
    for (size_t i = 0; i < n; i++)
        total[i] = sums[i];
    for (const uint16_t *a = sums + step; r + 1 < rows; r += 2, a += 2 * step)
        for (size_t i = 0; i < n; i++)
            total[i] = (uint16_t)(total[i] + a[i] + a[i + step]);
    for (size_t i = 0; i < n && r < rows; i++)
        total[i] = (uint16_t)(total[i] + sums[r * step + i]);
}

static inline void plain_divide(const uint16_t *restrict sums, const qi_divisor *d,
                                uint8_t *restrict y, size_t n)
{
    uint16_t const count = (uint16_t)d->n, below = (uint16_t)(d->n * d->flip), flip = d->flip;
    int16_t const lo = (int16_t)d->lo, hi = (int16_t)d->hi;
    qi_reciprocal const by = qi_reciprocal_of(d->n);
    for (size_t i = 0; i < n; i++) {
        uint16_t const v = (uint16_t)(2 * sums[i] + count - (sums[i] < below));
        uint16_t const product = (uint16_t)((uint32_t)v * by.m >> 16);
        int16_t const q = (int16_t)((product >> by.l) - flip), least = q < lo ? lo : q;
        y[i] = (uint8_t)(least > hi ? hi : least);
    }
}

static void plain_most_rows(uint8_t flip, const uint8_t *restrict x, size_t step, size_t rows,
                            uint8_t *restrict most, size_t n)
{
    size_t r = 1;
    for (size_t i = 0; i < n; i++)
        most[i] = x[i] ^ flip;
    for (const uint8_t *a = x + step; r + 1 < rows; r += 2, a += 2 * step)
        for (size_t i = 0; i < n; i++) {
            uint8_t const p = a[i] ^ flip, q = a[i + step] ^ flip, larger = p > q ? p : q;
            most[i] = larger > most[i] ? larger : most[i];
        }
    for (size_t i = 0; i < n && r < rows; i++) {
        uint8_t const p = x[r * step + i] ^ flip;
        most[i] = p > most[i] ? p : most[i];
    }
}

#endif

/** Tiles of 16-bit codes, and dot products in plain C. */
#ifndef QI_TILE_WIDE_H
#define QI_TILE_WIDE_H

#include "infer/kernels/parts/tile_layout.h"

/**
 * Four dot products of n values, `stride` apart, with one row of weights. Each |sum| fits int32:
 * max_accumulator bounds it, or n does.
 */
QK_INLINE void qi_dot4(const int16_t *QK_RESTRICT w, const int16_t *QK_RESTRICT x, size_t n,
                       size_t stride, int32_t sums[4])
{
    const int16_t *QK_RESTRICT a = x, *QK_RESTRICT b = a + stride;
    const int16_t *QK_RESTRICT c = b + stride, *QK_RESTRICT d = c + stride;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t k = 0; k < n; k++) {
        s0 += (int32_t)a[k] * w[k];
        s1 += (int32_t)b[k] * w[k];
        s2 += (int32_t)c[k] * w[k];
        s3 += (int32_t)d[k] * w[k];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

QK_INLINE int32_t qi_dot(const int16_t *QK_RESTRICT w, const int16_t *QK_RESTRICT x, size_t n)
{
    int32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (int32_t)x[k] * w[k];
    return sum;
}

/** A qi_dots_fn in plain C. */
QK_INLINE void qi_dots(const int16_t *w, const int16_t *x, size_t n, size_t stride, int32_t rows,
                       int32_t *sums)
{
    int32_t r = 0;
    for (; r + 4 <= rows; r += 4)
        qi_dot4(w, x + (size_t)r * stride, n, stride, sums + r);
    for (; r < rows; r++)
        sums[r] = qi_dot(w, x + (size_t)r * stride, n);
}

/** Dot products of 16-bit codes: blocks whose sums fit int32, added in 64 bits. */
QK_INLINE void qi_dots_wide(const qi_tile *t, int64_t sums[QI_TILE])
{
    size_t const block = 256;
    int32_t part[QI_TILE];
    memset(sums, 0, QI_TILE * sizeof *sums);
    for (size_t at = 0; at < t->depth; at += block) {
        size_t const n = t->depth - at < block ? t->depth - at : block;
        if (t->dots)
            t->dots(t->row + at, t->x + at, n, t->depth, t->rows, part);
        else
            qi_dots(t->row + at, t->x + at, n, t->depth, t->rows, part);
        for (int32_t r = 0; r < t->rows; r++)
            sums[r] += part[r];
    }
}

QK_APART void qi_run_wide_tile(const qi_tile *t)
{
    int16_t *y = (int16_t *)t->y + t->y_at;
    int64_t sums[QI_TILE];
    for (int32_t o = t->first_channel; o < t->end_channel; o++) {
        qi_widen_row(t->row, &t->weights, (size_t)o, t->weight_codes);
        qi_dots_wide(t, sums);
        for (int32_t r = 0; r < t->rows; r++)
            y[(size_t)r * t->y_stride + (size_t)o] =
                (int16_t)qi_requant_wide_code(&t->requant, o, sums[r]);
    }
}

#endif

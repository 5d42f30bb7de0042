/**
 * Tiles of 8-bit codes, as loops that compilers turn into vectors.
 *
 *   x  | row 0: depth differences | row 1 | ..
 *
 * A row of weights is widened once for all rows of x.
 */
#ifndef QI_TILE_ROWS_H
#define QI_TILE_ROWS_H

#include "infer/kernels/loops/tile_wide.h"

QK_INLINE void qi_rows_row(qi_tile *t, int32_t r, const uint8_t *codes)
{
    qi_widen(t->x + (size_t)r * t->depth, codes, t->depth, t->x_codes);
}

QK_INLINE void qi_run_rows(const qi_tile *t)
{
    uint8_t *y = (uint8_t *)t->y + t->y_at;
    int32_t sums[QI_TILE];
    for (int32_t o = t->first_channel; o < t->end_channel; o++) {
        qi_widen_row(t->row, &t->weights, (size_t)o, t->weight_codes);
        qi_dots(t->row, t->x, t->depth, t->depth, t->rows, sums);
        for (int32_t r = 0; r < t->rows; r++)
            y[(size_t)r * t->y_stride + (size_t)o] =
                (uint8_t)qi_requant_code(&t->requant, o, sums[r]);
    }
}

#endif

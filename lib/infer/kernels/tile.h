/**
 * Tiles of matrix products: some rows of inputs by the weights of some channels.
 *
 *   y[r, o] = code(o, sum over k of x[r, k] (w[o, k] - Z_w))     r < rows
 *
 *     qi_tile t = ...;                          all fields but x, row, sums
 *     qi_tile_place(&t, scratch, rows);         scratch: qi_tile_scratch(rows, depth) bytes; it
 *                                               then holds qi_tile_rows(&t, rows) rows
 *     for each r: qi_tile_row(&t, r, x, at);    depth codes at x[at], or copied to qi_tile_stage;
 *                                               if they are there and plain, it has nothing to do
 *     qi_run_tile(&t);
 *
 * The differences of a row are laid out as the loops over them need it: loops/tile_rows.h for
 * processors with vectors, loops/tile_quads.h for small ones.
 */
#ifndef QI_TILE_H
#define QI_TILE_H

#include "infer/kernels/loops/tile_mve.h"
#include "infer/kernels/loops/tile_quads.h"
#include "infer/kernels/loops/tile_rows.h"

QK_INLINE void qk_tile_row(qi_tile *t, int32_t r, const void *x, size_t at)
{
    if (QK_WIDE && t->x_codes.is_wide)
        memcpy(t->x + (size_t)r * t->depth, (const int16_t *)x + at, t->depth * sizeof(int16_t));
    else if (QK_VECTORS)
        qi_rows_row(t, r, (const uint8_t *)x + at);
    else if (QK_MVE)
        qk_mve_row(t, r, (const uint8_t *)x + at);
    else
        qk_quads_row(t, r, (const uint8_t *)x + at);
}

QK_INLINE void qk_tile_run(const qi_tile *t)
{
    if (QK_WIDE && t->x_codes.is_wide)
        qi_run_wide_tile(t);
    else if (QK_VECTORS)
        qi_run_rows(t);
    else if (QK_MVE)
        qk_run_mve(t);
    else
        qk_run_quads(t);
}

#if QK_ONE_FILE
/** Lay out row r, whose codes are x[at] to x[at + depth - 1]. All rows are laid out in order. */
QK_INLINE void qi_tile_row(qi_tile *t, int32_t r, const void *x, size_t at)
{
    qk_tile_row(t, r, x, at);
}

/** Compute the codes of all rows. */
QK_INLINE void qi_run_tile(const qi_tile *t)
{
    qk_tile_run(t);
}
#else /* the layers of several files share one copy: ops/tile.c of the engine */
void qi_tile_row(qi_tile *t, int32_t r, const void *x, size_t at);
void qi_run_tile(const qi_tile *t);
#endif

/** Compute `rows` rows that lie one behind the other, from value `at` of x on; y begins at y_at. */
QK_INLINE void qi_run_matrix(qi_tile *t, const void *x, size_t at, int32_t rows, int32_t step)
{
    if (qi_tile_is_plain(t)) { /* all of them at once */
        t->codes = (const uint8_t *)x + at;
        t->pitch = t->depth;
        t->rows = rows;
        qi_run_tile(t);
        return;
    }
    for (; rows > 0; rows -= step) {
        t->rows = rows < step ? rows : step;
        for (int32_t r = 0; r < t->rows; r++, at += t->depth)
            qi_tile_row(t, r, x, at);
        qi_run_tile(t);
        t->y_at += (size_t)t->rows * t->y_stride;
    }
}

#endif

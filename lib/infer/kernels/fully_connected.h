/**
 * fully_connected: x has rows * I values, w is [O,I], bias, mult, shift -> y has rows * O values.
 *
 *   acc[r, o] = sum over i of (x[r, i] - Z_x)(w[o, i] - Z_w)
 */
#ifndef QK_FULLY_CONNECTED_H
#define QK_FULLY_CONNECTED_H

#include "infer/kernels/tile.h"

typedef struct qk_fully_connected {
    int32_t rows, inputs, outputs;
    qi_codes x_codes, weight_codes;
    qi_rows weights; /* a row of `inputs` codes for each output */
    qi_requant requant;
    qi_dots_fn *dots; /* of 16-bit codes: a host's loop, or NULL */
} qk_fully_connected;

/** How many rows share one pass over the weights. */
QK_INLINE int32_t qk_fully_connected_tile(const qk_fully_connected *p)
{
    return p->rows < QI_TILE ? p->rows : (int32_t)QI_TILE;
}

QK_INLINE size_t qk_fully_connected_scratch(const qk_fully_connected *p)
{
    return qi_tile_scratch(qk_fully_connected_tile(p), (size_t)p->inputs);
}

/** The outputs first..end-1 of all rows. */
QK_INLINE void qk_fully_connected_part(const qk_fully_connected *p, const void *x, void *y,
                                       void *scratch, int32_t first, int32_t end)
{
    int32_t const step = qk_fully_connected_tile(p);
    qi_tile tile;
    tile.depth = (size_t)p->inputs;
    tile.x_codes = p->x_codes;
    tile.weight_codes = p->weight_codes;
    tile.weights = p->weights;
    tile.first_channel = first;
    tile.end_channel = end;
    tile.requant = p->requant;
    tile.y = y;
    tile.y_stride = (size_t)p->outputs;
    tile.dots = p->dots;
    qi_tile_place(&tile, scratch, step);
    tile.y_at = 0;
    qi_run_matrix(&tile, x, 0, p->rows, qi_tile_rows(&tile, step));
}

QK_INLINE void qk_fully_connected_run(const qk_fully_connected *p, const void *x, void *y,
                                      void *scratch)
{
    qk_fully_connected_part(p, x, y, scratch, 0, p->outputs);
}

#endif

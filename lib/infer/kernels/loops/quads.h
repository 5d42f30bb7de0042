/** Quads of rows: where their differences lie, and their sums. See tile_quads.h. */
#ifndef QK_QUADS_H
#define QK_QUADS_H

#include "infer/kernels/parts/tile_layout.h"

enum { QK_QUAD = 4 };

/** Is row r part of a quad? */
QK_INLINE int qk_in_quad(const qi_tile *t, int32_t r)
{
    return t->rows - r / QK_QUAD * QK_QUAD >= QK_QUAD - 1;
}

/** The place of the first block of row r. */
QK_INLINE int16_t *qk_row_of(const qi_tile *t, int32_t r, int32_t block)
{
    int32_t const quad = r / QK_QUAD * QK_QUAD;
    size_t const pitch = qi_tile_pitch(t->depth);
    return qk_in_quad(t, r) ? t->x + (size_t)quad * pitch + (size_t)((r - quad) * block)
                            : t->x + (size_t)r * pitch;
}

/** The zero_point of the weights. */
QK_INLINE int32_t qk_weight_zero(qi_codes c)
{
    return c.offset - c.flip;
}

/** The sum of the differences of one row, if it is needed. */
QK_INLINE int32_t qk_row_sum(const qi_tile *t, const uint8_t *codes)
{
    qi_codes const c = t->x_codes;
    int32_t sum = 0;
    if (qk_weight_zero(t->weight_codes))
        for (size_t k = 0; k < t->depth; k++)
            sum += (codes[k] ^ c.flip) - c.offset;
    return sum;
}

/** The sums of a quad. */
typedef struct qk_sums4 {
    int32_t a, b, c, d;
} qk_sums4;

#endif

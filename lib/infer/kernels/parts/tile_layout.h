/** What a tile of a matrix product is, and its memory; see tile.h. */
#ifndef QI_TILE_LAYOUT_H
#define QI_TILE_LAYOUT_H

#include "infer/kernels/parts/requant.h"
#include "infer/kernels/parts/rows.h"

enum { QI_TILE = 8 }; /* rows of differences that share one pass over the weights */

/* Helium has rows of bytes. Twice as many take the same memory. */
enum { QI_TILE_MOST = QK_MVE ? 2 * QI_TILE : QI_TILE };

/**
 * The dot products of n weights with the same n values of each row of x, `stride` apart. n is at
 * most 256, so that sums of 16-bit codes fit int32: 2^15 * 255 * 2^8 < 2^31.
 */
typedef void qi_dots_fn(const int16_t *w, const int16_t *x, size_t n, size_t stride, int32_t rows,
                        int32_t *sums);

typedef struct qi_tile {
    int32_t rows;
    size_t depth;
    qi_codes x_codes, weight_codes;
    qi_rows weights; /* a row of depth codes for each channel */
    int32_t first_channel, end_channel;
    qi_requant requant;
    void *y;     /* the output */
    size_t y_at; /* row r is at value y_at + r * y_stride, channel o at position o of the row */
    size_t y_stride;
    qi_dots_fn *dots;           /* of 16-bit codes: a host's loop, or NULL */
    int16_t *x;                 /* scratch: the differences of all rows */
    int16_t *row;               /* scratch: one row of weights, or of codes on their way into x */
    const uint8_t *codes;       /* Helium: the rows as signed bytes, in x or elsewhere, */
    size_t pitch;               /* so many bytes apart */
    int32_t sums[QI_TILE_MOST]; /* of the differences of a row, where Z_w is not 0 */
} qi_tile;

/** Loops over four values at a time may write zeros after a row. */
QK_INLINE size_t qi_tile_pitch(size_t depth)
{
    return (depth + 3) / 4 * 4;
}

/** The rows that tiles of at most so many rows have memory for: three may take the place of four.
 */
QK_INLINE size_t qi_tile_memory(int32_t rows)
{
    return (size_t)(rows + (rows % 4 == 3));
}

/** Bytes of scratch for tiles of at most so many rows. */
QK_INLINE size_t qi_tile_scratch(int32_t rows, size_t depth)
{
    return (qi_tile_memory(rows) + 1) * qi_tile_pitch(depth) * sizeof(int16_t);
}

QK_INLINE void qi_tile_place(qi_tile *t, void *scratch, int32_t rows)
{
    t->x = (int16_t *)scratch;
    t->row = t->x + qi_tile_memory(rows) * qi_tile_pitch(t->depth);
    t->codes = (const uint8_t *)scratch;
    t->pitch = qi_tile_pitch(t->depth);
}

/** Does Helium read the codes of x as they are? */
QK_INLINE int qi_tile_is_plain(const qi_tile *t)
{
    return QK_MVE && !(QK_WIDE && t->x_codes.is_wide) && t->x_codes.flip &&
           t->weight_codes.offset == 128;
}

/** The most rows that fit where `rows` rows of differences do. */
QK_INLINE int32_t qi_tile_rows(const qi_tile *t, int32_t rows)
{
    return QK_MVE && !(QK_WIDE && t->x_codes.is_wide) ? 2 * rows : rows;
}

/** Where depth codes of row r may be put together for qi_tile_row, `at` being 0. */
QK_INLINE void *qi_tile_stage(const qi_tile *t, int32_t r)
{
    if (QK_MVE && !(QK_WIDE && t->x_codes.is_wide))
        return (uint8_t *)t->x + (size_t)r * qi_tile_pitch(t->depth);
    return t->row;
}

#endif

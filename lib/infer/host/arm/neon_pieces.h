/**
 * Walks through the piece of a NEON matrix product: row tiles within panels.
 *
 * NEON multiplies signed bytes. So x' - 128 = byte ^ flip ^ 0x80 replaces the x' of gemm.h, and Z_x
 * - 128 its zero_point. All equations there stay the same.
 */
#ifndef QI_HOST_ARM_NEON_PIECES_H
#define QI_HOST_ARM_NEON_PIECES_H

#include "infer/host/arm/neon_tail.h"
#include "infer/host/loops/gemm_pack.h"

/** The share of a piece that one panel computes. */
typedef struct qi_neon_job {
    const qi_packed *packed;
    int32_t panel, room, channels; /* room for channels, and how many of them are written */
    const int32_t *columns;
    const uint8_t *x; /* of the tile's first row */
    size_t x_stride;
    const int32_t *row_terms; /* of the tile's rows */
    uint8_t *y;               /* of the tile's first row and the panel's first channel */
    size_t y_stride;
} qi_neon_job;

/* ------------------------------------------------------------------ a row of sums */

INLINE int32x4_t qi_column(const qi_neon_job *j, int which, int v)
{
    return vld1q_s32(j->columns + which * j->room + v * QI_NEON_LANES);
}

/** Start values of the sums: bias' of four channels plus the row's term. */
INLINE int32x4_t qi_start(const qi_neon_job *j, int row, int v)
{
    return vaddq_s32(qi_column(j, QI_COLUMN_BIAS, v), vdupq_n_s32(j->row_terms[row]));
}

INLINE qi_neon_output qi_output_of(const qi_packed *p)
{
    return qi_neon_output_of(p->zero_point, p->lo, p->hi, (uint8_t)p->y_flip);
}

/**
 * Tail SCALAR of one row of a panel of one or two vectors, by the scalar functions in memory.
 * It takes and returns values and is not inlined, so that the sums of a tile stay in registers.
 */
static __attribute__((noinline)) int32x4x2_t qi_requantize_in_memory(const qi_neon_job *j,
                                                                     int32x4x2_t sums)
{
    int32_t lane[2 * QI_NEON_LANES];
    vst1q_s32(lane, sums.val[0]);
    vst1q_s32(lane + QI_NEON_LANES, sums.val[1]);
    qi_requantize_row_scalar(j->packed, j->panel, QI_NEON_LANES, lane);
    sums.val[0] = vld1q_s32(lane);
    sums.val[1] = vld1q_s32(lane + QI_NEON_LANES);
    return sums;
}

/** Tail EVEN of one vector of a row, where some lanes are almost ties; not inlined, likewise. */
static __attribute__((noinline)) int32x4_t
qi_requantize_ties_of(const qi_neon_job *j, int v, int32x4_t s, int32x4_t y, uint32x4_t equal)
{
    int32_t sums[QI_NEON_LANES], values[QI_NEON_LANES];
    uint32_t lane[QI_NEON_LANES], ties = 0;
    vst1q_s32(sums, s);
    vst1q_s32(values, y);
    vst1q_u32(lane, equal);
    for (int i = 0; i < QI_NEON_LANES; i++)
        ties |= (lane[i] == 0) << i;
    qi_requantize_ties(j->packed, j->panel, QI_NEON_LANES, v * QI_NEON_LANES, ties, sums, values);
    return vld1q_s32(values);
}

/** Tail EVEN of one vector of a row. */
INLINE int32x4_t qi_requantize_even_sums(const qi_neon_job *j, int v, int32x4_t s)
{
    uint32x4_t equal;
    int32x4_t const y = qi_requantize_even_lanes(
        s, qi_column(j, QI_COLUMN_LEFT, v), qi_column(j, QI_COLUMN_MULT, v),
        qi_column(j, QI_COLUMN_EVEN_ADD, v), qi_column(j, QI_COLUMN_EVEN_SPAN, v),
        vnegq_s32(qi_column(j, QI_COLUMN_RIGHT, v)), &equal);
    return qi_all_lanes(equal) ? y : qi_requantize_ties_of(j, v, s, y, equal);
}

/** s 2^f and the bias that has f fractional bits too. */
INLINE int32x4x2_t qi_accumulators(const qi_neon_job *j, int vectors, int32x4x2_t sums)
{
    int32x4_t const f = vdupq_n_s32(j->packed->fraction);
    for (int v = 0; v < vectors; v++)
        sums.val[v] = vaddq_s32(vshlq_s32(sums.val[v], f), qi_column(j, QI_COLUMN_LATE_BIAS, v));
    return sums;
}

/**
 * Turn the sums of one row of a panel into values without zero_point. The panel has two vectors, or
 * one (b is not used then).
 */
INLINE int32x4x2_t qi_requantize_sums(const qi_neon_job *j, int vectors, int32x4_t a, int32x4_t b)
{
    int32x4x2_t sums = {{a, b}};
    if (j->packed->tail == QI_TAIL_SCALAR)
        return qi_requantize_in_memory(j, sums);
    if (j->packed->tail == QI_TAIL_EVEN) {
        for (int v = 0; v < vectors; v++)
            sums.val[v] = qi_requantize_even_sums(j, v, sums.val[v]);
        return sums;
    }
    if (j->packed->fraction)
        sums = qi_accumulators(j, vectors, sums);
    for (int v = 0; v < vectors; v++)
        sums.val[v] = qi_requantize_lanes(sums.val[v], qi_column(j, QI_COLUMN_LEFT, v),
                                          qi_column(j, QI_COLUMN_MULT, v),
                                          vnegq_s32(qi_column(j, QI_COLUMN_RIGHT, v)));
    return sums;
}

/** SUMS: store one row of a panel of one or two vectors unchanged. */
static __attribute__((noinline)) void qi_store_row_sums(const qi_neon_job *j, int row,
                                                        int32x4x2_t sums)
{
    int32_t lane[2 * QI_NEON_LANES];
    vst1q_s32(lane, sums.val[0]);
    vst1q_s32(lane + QI_NEON_LANES, sums.val[1]);
    qi_store_sums(j->packed, j->panel, QI_NEON_LANES, lane, 1, 2 * QI_NEON_LANES, j->channels,
                  j->y + (size_t)row * j->y_stride, j->y_stride);
}

/* ------------------------------------------------------------------ rows of x */

static inline qi_gemm_layer qi_neon_layer(const qi_gemm_layer *layer)
{
    qi_gemm_layer l = *layer;
    l.x_codes.flip ^= 0x80;
    l.x_codes.offset = (int16_t)(l.x_codes.offset - 128);
    return l;
}

/** Bytes of x in the form that the products take. */
INLINE int8x16_t qi_signed_bytes(const uint8_t *x, uint8x16_t flip)
{
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), flip));
}

INLINE int32_t qi_sum_lanes(int32x4_t a)
{
    int32x4_t const pairs = qi_pairwise_add(a, a);
    return vgetq_lane_s32(qi_pairwise_add(pairs, pairs), 0);
}

/** The sum of the K signed bytes of a row. */
static inline int32_t qi_row_sum(const qi_packed *p, const uint8_t *x)
{
    uint8x16_t const flip = vdupq_n_u8((uint8_t)p->x_flip);
    int32x4_t sums = vdupq_n_s32(0);
    int32_t k = 0;
    for (; k + 16 <= p->depth; k += 16)
        sums = vpadalq_s16(sums, vpaddlq_s8(qi_signed_bytes(x + k, flip)));
    int32_t sum = qi_sum_lanes(sums);
    for (; k < p->depth; k++)
        sum += (int8_t)(x[k] ^ (uint8_t)p->x_flip);
    return sum;
}

static inline void qi_fill_row_terms(const qi_packed *p, const uint8_t *x, size_t x_stride,
                                     int32_t rows, int32_t *terms)
{
    for (int32_t r = 0; r < rows; r++)
        terms[r] =
            (int32_t)((uint32_t)p->row_factor * (uint32_t)qi_row_sum(p, x + (size_t)r * x_stride));
}

/* ------------------------------------------------------------------ pieces */

/** Computes a tile of rows (at most the inner loop's row_tile) with one panel. */
typedef void qi_neon_tile(const qi_neon_job *j, int rows);

/**
 * Compute the rows from first_row on of a piece with one panel, in tiles whose heights differ by at
 * most one.
 */
static inline void qi_neon_panel(const qi_packed *p, int32_t panel, const qi_gemm_run *run,
                                 const int32_t *row_terms, int32_t first_row, int32_t rows,
                                 int32_t row_tile, qi_neon_tile *tile)
{
    int32_t const first = panel * p->panel_channels, room = qi_panel_room(p, panel);
    int32_t const left = run->end_channel - first, n = (rows + row_tile - 1) / row_tile;
    qi_neon_job j = {.packed = p,
                     .panel = panel,
                     .room = room,
                     .channels = left < room ? left : room,
                     .columns = qi_panel_at(p, panel),
                     .x_stride = run->x_stride,
                     .y_stride = run->y_stride};
    for (int32_t i = 0; i < n; i++) {
        int32_t const from = rows * i / n, to = rows * (i + 1) / n;
        j.x = run->x + (size_t)(first_row + from) * run->x_stride;
        j.y = run->y + (size_t)(first_row + from) * run->y_stride + first;
        j.row_terms = row_terms + from;
        tile(&j, to - from);
    }
}

/** Compute all panels and row tiles of a piece. */
static inline void qi_neon_pieces(const qi_packed *p, const qi_gemm_run *run, int32_t row_tile,
                                  qi_neon_tile *tile)
{
    enum { CALL_ROWS = 240 };
    int32_t row_terms[CALL_ROWS] = {0};
    for (int32_t r = 0; r < run->rows; r += CALL_ROWS) {
        int32_t const rows = run->rows - r < CALL_ROWS ? run->rows - r : CALL_ROWS;
        if (p->row_factor)
            qi_fill_row_terms(p, run->x + (size_t)r * run->x_stride, run->x_stride, rows,
                              row_terms);
        for (int32_t n = run->first_channel; n < run->end_channel; n += p->panel_channels)
            qi_neon_panel(p, n / p->panel_channels, run, row_terms, r, rows, row_tile, tile);
    }
}

#endif

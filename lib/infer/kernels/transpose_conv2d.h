/**
 * transpose_conv2d: x [N,H,W,C], w [O,KH,KW,C], bias, mult, shift -> y [N,OH,OW,O].
 *
 *     acc[oy,ox,o] = sum over ky, kx, c of (x[iy,ix,c] - Z_x)(w[o,ky,kx,c] - Z_w),
 *                    where oy + pad_top - ky = iy stride_h inside the input, and ox alike
 *
 * Other kernels scatter each input to several outputs. This one gathers: for each output it makes a
 * row with the codes of the pixels under the taps, and Z_x under the other taps. The rows of a tile
 * (tile.h) share each pass over the weights.
 */
#ifndef QK_TRANSPOSE_CONV2D_H
#define QK_TRANSPOSE_CONV2D_H

#include "infer/kernels/parts/window.h"
#include "infer/kernels/tile.h"

typedef struct qk_transpose_conv2d {
    qi_window window; /* no dilation */
    qi_codes x_codes, weight_codes;
    qi_rows weights; /* a row of KH KW C codes for each output channel */
    qi_requant requant;
} qk_transpose_conv2d;

/** The weights of an output channel. */
QK_INLINE size_t qk_transpose_conv2d_depth(const qk_transpose_conv2d *p)
{
    return (size_t)p->window.kernel_h * (size_t)p->window.kernel_w * (size_t)p->window.c;
}

QK_INLINE size_t qk_transpose_conv2d_scratch(const qk_transpose_conv2d *p)
{
    return qi_tile_scratch(QI_TILE, qk_transpose_conv2d_depth(p));
}

/**
 * The input position under tap k of output position `out`. -1: the tap falls between two pixels or
 * outside.
 */
QK_INLINE int32_t qk_under_tap(int32_t out, int32_t k, int32_t stride, int32_t pad, int32_t size)
{
    int32_t const at = out + pad - k; /* below 2^29 */
    return at < 0 || at % stride || at / stride >= size ? -1 : at / stride;
}

/** Copy the codes under the taps of one output pixel, [KH, KW, C]; at: where the picture begins. */
QK_INLINE void qk_gather_taps(const qk_transpose_conv2d *p, const void *x, void *row, size_t at,
                              int32_t oy, int32_t ox)
{
    const qi_window *g = &p->window;
    size_t const channels = (size_t)g->c;
    size_t to = 0;
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        int32_t const iy = qk_under_tap(oy, ky, g->stride_h, g->pad_top, g->h);
        for (int32_t kx = 0; kx < g->kernel_w; kx++, to += channels) {
            int32_t const ix = qk_under_tap(ox, kx, g->stride_w, g->pad_left, g->w);
            size_t const pixel = (size_t)iy * (size_t)g->w + (size_t)ix;
            if (iy < 0 || ix < 0)
                qi_fill_zeros(row, to, channels, p->x_codes);
            else
                qi_copy_values(row, to, x, at + pixel * channels, channels, p->x_codes);
        }
    }
}

/** Lay out the rows of the output pixels from `first` on, counted over [N,OH,OW]. */
QK_INLINE void qk_gather_rows(const qk_transpose_conv2d *p, const void *x, qi_tile *tile,
                              int32_t first)
{
    const qi_window *g = &p->window;
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    for (int32_t r = 0; r < tile->rows; r++) {
        int32_t const position = first + r, line = position / g->ow;
        void *row = qi_tile_stage(tile, r);
        qk_gather_taps(p, x, row, (size_t)(line / g->oh) * picture, line % g->oh, position % g->ow);
        if (!qi_tile_is_plain(tile))
            qi_tile_row(tile, r, row, 0);
    }
}

QK_INLINE void qk_transpose_conv2d_run(const qk_transpose_conv2d *p, const void *x, void *y,
                                       void *scratch)
{
    int32_t const positions = p->window.n * p->window.oh * p->window.ow;
    qi_tile tile;
    tile.depth = qk_transpose_conv2d_depth(p);
    tile.x_codes = p->x_codes;
    tile.weight_codes = p->weight_codes;
    tile.weights = p->weights;
    tile.first_channel = 0;
    tile.end_channel = p->window.o;
    tile.requant = p->requant;
    tile.y = y;
    tile.y_stride = (size_t)p->window.o;
    tile.dots = NULL;
    qi_tile_place(&tile, scratch, QI_TILE);
    int32_t const step = qi_tile_rows(&tile, QI_TILE);
    for (int32_t at = 0; at < positions; at += step) {
        tile.rows = positions - at < step ? positions - at : step;
        tile.y_at = (size_t)at * tile.y_stride;
        qk_gather_rows(p, x, &tile, at);
        qi_run_tile(&tile);
    }
}

#endif

/**
 * conv2d: x [N,H,W,C], w [O,KH,KW,C/groups], bias, mult, shift -> y [N,OH,OW,O].
 *
 *   acc = sum over ky, kx, c of (x[oy stride - pad + ky dilation, .., c] - Z_x)(w[o,ky,kx,c] - Z_w)
 *
 * Pixels outside the picture count as Z_x (difference 0). The codes of a window, a "patch", are a
 * row of a tile (tile.h). The rows of a tile share each pass over the weights.
 */
#ifndef QK_CONV2D_H
#define QK_CONV2D_H

#include "infer/kernels/parts/window.h"
#include "infer/kernels/tile.h"

typedef struct qk_conv2d {
    qi_window window;
    int32_t groups;
    qi_codes x_codes, weight_codes;
    qi_rows weights; /* a row of KH KW C/groups codes for each output channel */
    qi_requant requant;
    qi_dots_fn *dots; /* of 16-bit codes: a host's loop, or NULL */
} qk_conv2d;

QK_INLINE int32_t qk_conv2d_group_channels(const qk_conv2d *p)
{
    return p->window.c / p->groups;
}

/** The weights of an output channel. */
QK_INLINE size_t qk_conv2d_depth(const qk_conv2d *p)
{
    return (size_t)p->window.kernel_h * (size_t)p->window.kernel_w *
           (size_t)qk_conv2d_group_channels(p);
}

/** Output positions, counted over [N,OH,OW]: at most 2^28. */
QK_INLINE int32_t qk_conv2d_windows(const qk_conv2d *p)
{
    return p->window.n * p->window.oh * p->window.ow;
}

QK_INLINE size_t qk_conv2d_scratch(const qk_conv2d *p)
{
    return qi_tile_scratch(QI_TILE, qk_conv2d_depth(p));
}

/** Copy the codes of the taps of one kernel row. row: the value where the row begins. */
QK_INLINE void qk_conv2d_patch_row(const qk_conv2d *p, const void *x, void *patch, size_t to,
                                   size_t row, qi_taps taps)
{
    size_t const c = (size_t)p->window.c, cg = (size_t)qk_conv2d_group_channels(p);
    if (c == cg && p->window.dilation_w == 1) { /* taps lie side by side */
        size_t const n = (size_t)(taps.end - taps.first) * c;
        qi_copy_values(patch, to + (size_t)taps.first * c, x,
                       row + (size_t)(taps.start + taps.first) * c, n, p->x_codes);
        return;
    }
    for (int32_t kx = taps.first; kx < taps.end; kx++)
        qi_copy_values(patch, to + (size_t)kx * cg, x,
                       row + (size_t)(taps.start + kx * p->window.dilation_w) * c, cg, p->x_codes);
}

/** Copy the codes of one window, [KH, KW, C/groups]. at: the group's first value of the picture. */
QK_INLINE void qk_conv2d_patch(const qk_conv2d *p, const void *x, void *patch, size_t at,
                               int32_t oy, int32_t ox)
{
    const qi_window *g = &p->window;
    size_t const row = (size_t)g->kernel_w * (size_t)qk_conv2d_group_channels(p);
    qi_taps const ty = qi_taps_of_line(g, oy), tx = qi_taps_of_column(g, ox);
    int const whole =
        ty.first == 0 && ty.end == g->kernel_h && tx.first == 0 && tx.end == g->kernel_w;
    if (!whole)
        qi_fill_zeros(patch, 0, (size_t)g->kernel_h * row, p->x_codes);
    if (tx.first >= tx.end)
        return;
    for (int32_t ky = ty.first; ky < ty.end; ky++) {
        int32_t const iy = ty.start + ky * g->dilation_h;
        qk_conv2d_patch_row(p, x, patch, (size_t)ky * row,
                            at + (size_t)iy * (size_t)g->w * (size_t)g->c, tx);
    }
}

/** Lay out the windows first..first+rows-1 for the channels of one group. */
QK_INLINE void qk_conv2d_rows(const qk_conv2d *p, qi_tile *tile, const void *x, int32_t first,
                              int32_t first_channel)
{
    const qi_window *g = &p->window;
    size_t const c = (size_t)g->c, picture = (size_t)g->h * (size_t)g->w * c;
    int const is_pixel = g->kernel_h == 1 && g->kernel_w == 1; /* which is inside the picture */
    int32_t const line = first / g->ow;
    int32_t oy = line % g->oh, ox = first % g->ow;
    size_t at = (size_t)(line / g->oh) * picture + (size_t)first_channel;
    for (int32_t r = 0; r < tile->rows; r++) {
        if (is_pixel) {
            int32_t const pixel = oy * g->stride_h * g->w + ox * g->stride_w;
            qi_tile_row(tile, r, x, at + (size_t)pixel * c);
        } else {
            void *patch = qi_tile_stage(tile, r);
            qk_conv2d_patch(p, x, patch, at, oy, ox);
            if (!qi_tile_is_plain(tile))
                qi_tile_row(tile, r, patch, 0);
        }
        if (++ox < g->ow)
            continue;
        ox = 0;
        if (++oy < g->oh)
            continue;
        oy = 0;
        at += picture;
    }
}

/** Is each window one pixel, and all pixels in a row? */
QK_INLINE int qk_conv2d_is_matrix(const qk_conv2d *p)
{
    const qi_window *g = &p->window;
    return p->groups == 1 && g->kernel_h == 1 && g->kernel_w == 1 && g->oh == g->h &&
           g->ow == g->w && g->stride_h == 1 && g->stride_w == 1 && g->pad_top == 0 &&
           g->pad_left == 0;
}

/** The windows first..end-1. */
QK_INLINE void qk_conv2d_part(const qk_conv2d *p, const void *x, void *y, void *scratch,
                              int32_t first, int32_t end)
{
    int32_t const group_outputs = p->window.o / p->groups;
    qi_tile tile;
    tile.depth = qk_conv2d_depth(p);
    tile.x_codes = p->x_codes;
    tile.weight_codes = p->weight_codes;
    tile.weights = p->weights;
    tile.requant = p->requant;
    tile.y = y;
    tile.y_stride = (size_t)p->window.o;
    tile.dots = p->dots;
    qi_tile_place(&tile, scratch, QI_TILE);
    int32_t const step = qi_tile_rows(&tile, QI_TILE);
    if (qk_conv2d_is_matrix(p)) {
        tile.first_channel = 0;
        tile.end_channel = p->window.o;
        tile.y_at = (size_t)first * tile.y_stride;
        qi_run_matrix(&tile, x, (size_t)first * tile.depth, end - first, step);
        return;
    }
    for (int32_t at = first; at < end; at += step) {
        tile.rows = end - at < step ? end - at : step;
        tile.y_at = (size_t)at * tile.y_stride;
        for (int32_t i = 0; i < p->groups; i++) {
            tile.first_channel = i * group_outputs;
            tile.end_channel = tile.first_channel + group_outputs;
            qk_conv2d_rows(p, &tile, x, at, i * qk_conv2d_group_channels(p));
            qi_run_tile(&tile);
        }
    }
}

QK_INLINE void qk_conv2d_run(const qk_conv2d *p, const void *x, void *y, void *scratch)
{
    qk_conv2d_part(p, x, y, scratch, 0, qk_conv2d_windows(p));
}

#endif

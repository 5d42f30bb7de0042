/** The windows of convolutions and pools, and which of their taps lie inside the picture. */
#ifndef QI_WINDOW_H
#define QI_WINDOW_H

#include "infer/kernels/parts/features.h"

#include <stdint.h>

/** Geometry of a convolution or pool: x [N,H,W,C], y [N,OH,OW,O]. */
typedef struct qi_window {
    int32_t n, h, w, c, oh, ow, o;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
} qi_window;

/** The taps first..end-1 of one axis, which lie inside the input. */
typedef struct qi_taps {
    int32_t first, end;
    int32_t start; /* input position of tap 0, may be negative */
} qi_taps;

/** The taps at output position `out`: start + tap * dilation in 0..size-1. */
QK_INLINE qi_taps qi_taps_at(int32_t out, int32_t stride, int32_t pad, int32_t dilation,
                             int32_t kernel, int32_t size)
{
    qi_taps t = {0, kernel, out * stride - pad};
    if (t.start < 0)
        t.first = (-t.start + dilation - 1) / dilation;
    if (t.start < size && t.start + (kernel - 1) * dilation >= size)
        t.end = (size - 1 - t.start) / dilation + 1;
    return t;
}

/** The taps of an output line, and those of a column. */
QK_INLINE qi_taps qi_taps_of_line(const qi_window *g, int32_t oy)
{
    return qi_taps_at(oy, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
}
QK_INLINE qi_taps qi_taps_of_column(const qi_window *g, int32_t ox)
{
    return qi_taps_at(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
}

#endif

/**
 * Geometry of the ops that slide a window over an image: convolutions and pools.
 *
 * Output row o with kernel row k reads input row o * stride_h + k * dilation_h - pad_top. Columns
 * work the same way. Explicit padding: a number of pixels for each side, and as in PyTorch
 *     out = (in + pads - reach) / stride + 1, rounded down, reach = (kernel - 1) * dilation + 1
 * VALID: only windows inside the image. SAME (TensorFlow's): out = ceil(in / stride), and of the
 * padding
 *     max((out - 1) * stride + (kernel - 1) * dilation + 1 - in, 0)
 * half, rounded down, lies at the top or left, the rest at the bottom or right.
 */
#ifndef QAT_AUTOGRAD_WINDOW_H
#define QAT_AUTOGRAD_WINDOW_H

#include "qat/graph.h"

typedef struct qat_window {
    int in_h, in_w, out_h, out_w;
    int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int pad_top, pad_left;
    bool explicit_pads; /* else the pads follow from the sizes, as SAME's and VALID's do */
} qat_window;

/** Largest kernel, stride and dilation that ops accept. */
enum { QAT_WINDOW_MAX = 1024 };

/**
 * The window of a node over its first input. Its op has the attributes kernel, stride, padding
 * (QAT_ATTR_PADDING), kernel_w and stride_w. A value of 0 for kernel_w or stride_w means the same
 * as in the other direction; a stride of 0 means the size of the kernel. The op may have dilation
 * and dilation_w; otherwise they are 1. Fails with QAT_ERR_SHAPE if the input is not [N,H,W,C], or
 * if the window is larger than the input with its padding; with QAT_ERR_ARGUMENT if a side has as
 * many pixels of padding as the window, or more.
 */
qat_status qat_window_of(qat_window *window, const qat_node *node, qat_error *err);

/**
 * The window of a transposed convolution: that of the convolution whose data gradient it is. So its
 * "input" is the node's output, and its "output" the node's first input. The node has the
 * attributes kernel, stride, padding and their widths, and extra and extra_w, which are rows and
 * columns of the output (explicit padding only):
 *     same      out = in stride
 *     valid     out = in stride + max(kernel - stride, 0)
 *     explicit  out = (in - 1) stride + kernel - pads + extra,  as in PyTorch
 * Fails as qat_window_of does.
 */
qat_status qat_transposed_window_of(qat_window *window, const qat_node *node, qat_error *err);

/**
 * The outputs [first, last) of one direction for which the tap at k * dilation - pad = offset is
 * inside the input.
 */
typedef struct qat_reach {
    int first, last;
} qat_reach;

static inline qat_reach qat_window_reach(int in, int out, int stride, int offset)
{
    int const first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int const last = in > offset ? (in - 1 - offset) / stride + 1 : 0;
    return (qat_reach){first, last < out ? last : out};
}

#endif

/**
 * Geometry of ops that slide a window over an image: convolutions and pools.
 *
 * Output row o, kernel row k read input row o * stride_h + k * dilation_h - pad_top; columns alike.
 * VALID: windows inside the image. SAME (TensorFlow's): out = ceil(in / stride), and of the padding
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
} qat_window;

/** Largest kernel, stride and dilation that ops accept. */
#define QAT_WINDOW_MAX 1024

/** Attributes of a window in an op's list: the value 0 of a _w stands for the other direction's.
 *  Dilation is separate, pools have none. */
#define QAT_WINDOW_ATTRS(kernel_default, stride_default, stride_least, stride_meaning,             \
                         padding_default)                                                          \
    {"kernel", QAT_ATTR_INT, kernel_default, 1, QAT_WINDOW_MAX, NULL, "window height"},            \
        {"kernel_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "window width; 0: as kernel"},      \
        {"stride",       QAT_ATTR_INT, stride_default, stride_least,                               \
         QAT_WINDOW_MAX, NULL,         stride_meaning},                                            \
        {"stride_w",                                                                               \
         QAT_ATTR_INT,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         QAT_WINDOW_MAX,                                                                           \
         NULL,                                                                                     \
         "rows or columns from one window to the next; 0: as stride"},                             \
    {                                                                                              \
        "padding", QAT_ATTR_CHOICE, padding_default, 0, 1, "same|valid",                           \
            "same: output is ceil(input / stride), TensorFlow's padding; valid: none"              \
    }

#define QAT_DILATION_ATTRS                                                                         \
    {"dilation", QAT_ATTR_INT, 1, 1, QAT_WINDOW_MAX, NULL, "rows between the kernel's taps"},      \
    {                                                                                              \
        "dilation_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "columns; 0: as dilation"          \
    }

/**
 * The window of a node whose op has the attributes above, over its first input.
 * Fails with QAT_ERR_SHAPE where the input is not [N,H,W,C] or (valid) the window is larger than
 * it.
 */
qat_status qat_window_of(qat_window *window, const qat_node *node, qat_error *err);

/** Outputs [first, last) of one direction whose tap at `offset` (k * dilation - pad) lies inside.
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

/**
 * Rows of the patch matrix: row r belongs to output pixel r of the batch (r = (n * out_h + y) *
 * out_w
 * + x) and holds the kernel_h * kernel_w * count values under its window, of channels
 * channel..channel + count - 1; zeros outside the image. The matrix that makes a convolution a
 * product.
 * @param x        [N, in_h, in_w, channels]
 * @param patches  rows begin..end-1, one behind the other
 */
void qat_im2col(const qat_window *w, const qat_real *x, int channels, int channel, int count,
                size_t begin, size_t end, qat_real *patches);

/** The adjoint: add the patches' values to where im2col took them from. */
void qat_col2im(const qat_window *w, const qat_real *patches, int channels, int channel, int count,
                size_t begin, size_t end, qat_real *dx);

#endif

/** Windows of foreign convolutions and pools. */
#ifndef QAT_FOREIGN_WINDOW_H
#define QAT_FOREIGN_WINDOW_H

#include "foreign/build.h"

enum { FV_WINDOW_TEXT = 256 };

/** One direction of a window. */
typedef struct fv_direction {
    int64_t kernel, stride, dilation, before, after;
} fv_direction;

enum { FV_DIRECTIONS = 3 };

/**
 * The window that the current node's attributes describe, along dimensions 2 and up: strides,
 * dilations, pads, auto_pad, ceil_mode.
 * @param kernel  of a convolution's weights; NULL: attribute kernel_shape
 */
qat_status fv_directions_of(builder *b, const fv *x, const int64_t *kernel,
                            fv_direction to[FV_DIRECTIONS]);
/** How many windows there are along a dimension of `in` positions; below 1: none. */
int64_t fv_windows(const fv_direction *d, int64_t in);

/** [0] rows, [1] columns; of signals, rows are 1. */
typedef struct fv_window {
    int64_t kernel[2], stride[2], dilation[2], before[2], after[2];
} fv_window;

/** The same of pictures and signals. */
qat_status fv_window_of(builder *b, const fv *x, const int64_t *kernel, fv_window *w);
/** As attributes of conv2d and the pools. */
void fv_window_text(const fv_window *w, bool dilation, char text[FV_WINDOW_TEXT]);

/**
 * ConvTranspose: before and after are what is cut off the output.
 * @param weights  [C, O / groups, ...], with a dimension for each direction
 */
typedef struct fv_transposed {
    int64_t groups, filters;
    fv_direction direction[FV_DIRECTIONS];
    int64_t longer[FV_DIRECTIONS]; /* what is added to the output */
    int64_t length[FV_DIRECTIONS]; /* of the output */
    fv_window window;              /* of pictures and signals, as [0] rows, [1] columns: the same */
    int64_t extra[2], out[2];
} fv_transposed;
qat_status fv_transposed_of(builder *b, const fv *x, const qat_foreign_tensor *weights,
                            fv_transposed *t);

#endif

/**
 * Convolution as matrix products: y = patches(x) w^T, with the patch matrix made in strips of rows
 * that fit the cache. A 1x1 kernel of stride 1 needs no patches: x is its own.
 *
 * Forward: output pixels are cut into blocks of whole strips. Backward: the batch is cut into
 * blocks of whole images, since patches overlap within one; each block sums its own weight
 * gradient, and these are added in block order. Results do not depend on the number of threads.
 */
#ifndef QAT_AUTOGRAD_CONV_H
#define QAT_AUTOGRAD_CONV_H

#include "autograd/window.h"

typedef struct qat_conv {
    qat_window window;
    int batch, channels, filters, groups;
    int depth;   /* kernel_h * kernel_w * channels / groups: columns of a patch matrix */
    bool direct; /* 1x1, stride 1 */
    int strip;   /* rows of the patch matrix made at a time */
    int forward_blocks, backward_blocks;
} qat_conv;

/** The convolution of a conv2d node; fails as qat_window_of, or if groups do not divide. */
qat_status qat_conv_of(qat_conv *conv, const qat_node *node, qat_error *err);

/** Scratch that forward and backward need: QAT_BLOCKS strips and weight gradients at most. */
size_t qat_conv_scratch_bytes(const qat_conv *conv);

/** y [N,OH,OW,O] = x [N,H,W,C] * w [O,KH,KW,C/groups] */
void qat_conv_forward(const qat_conv *conv, const qat_real *x, const qat_real *w, qat_real *y,
                      void *scratch);

/** Add into the gradients that are not NULL. */
void qat_conv_backward(const qat_conv *conv, const qat_real *x, const qat_real *w,
                       const qat_real *dy, qat_real *dx, qat_real *dw, void *scratch);

#endif

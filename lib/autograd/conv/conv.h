/**
 * Convolution without a patch matrix. The sum of a pixel over taps and channels is a row of a
 * matrix product, which reads its operands where the image has them (product.h). The image is cut
 * into bands (slide.h).
 *
 *     forward          y[p, o] = sum_{t,c} x[p + t, c] w[o, t, c]
 *     data gradient    dx[p, c] += sum_{t,o} dy[p - t, o] w[o, t, c]
 *     weight gradient  dw[o, t, c] += sum_p dy[p, o] x[p + t, c]
 *
 * The data gradient is computed phase by phase of the stride.
 *
 * The weights are packed once per pass into panels, in the order in which product.h reads them.
 * Bands are independent, except for the weight gradient: there each block of bands has its own sum,
 * and these sums are added in block order. Results do not depend on the number of threads.
 */
#ifndef QAT_AUTOGRAD_CONV_H
#define QAT_AUTOGRAD_CONV_H

#include "autograd/conv/slide.h"

typedef struct qat_conv {
    qat_window window;
    int batch, channels, filters, groups;
    int depth;                   /* kernel_h * kernel_w * channels / groups */
    qat_slide forward, gradient; /* over x, over dy */
    qat_slide weight_gradient;   /* over x; in place if a tap has enough channels */
    int blocks;                  /* number of blocks of the weight gradient */
    int together; /* images that one of its products takes; 1 unless an image is one band */
} qat_conv;

/**
 * The convolution of a conv2d node. Fails as qat_window_of does, or if groups do not divide the
 * channels.
 */
qat_status qat_conv_of(qat_conv *conv, const qat_node *node, qat_error *err);

/**
 * The convolution with this window. Fails if groups do not divide channels and filters, or if a
 * filter is too large. shards: of how many parts of the batch this is one (qat_shards_of).
 */
qat_status qat_conv_make(qat_conv *conv, const qat_window *window, int batch, int shards,
                         int channels, int filters, int groups, qat_error *err);

/** Bytes of scratch that forward and backward need. */
size_t qat_conv_scratch_bytes(const qat_conv *conv);

/** y [N,OH,OW,O] = x [N,H,W,C] * w [O,KH,KW,C/groups] */
void qat_conv_forward(const qat_conv *conv, const qat_real *x, const qat_real *w, qat_real *y,
                      void *scratch);

/**
 * Compute the gradients that are not NULL. dw is added to. dx is added to if `add` is set,
 * otherwise written.
 */
void qat_conv_backward(const qat_conv *conv, const qat_real *x, const qat_real *w,
                       const qat_real *dy, qat_real *dx, bool add, qat_real *dw, void *scratch);

#endif

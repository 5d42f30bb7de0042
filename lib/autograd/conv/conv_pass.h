/**
 * Declarations shared by the files of the convolution: conv.c (geometry, scratch), conv_forward.c
 * (outputs and data gradients), conv_weights.c (weight gradients).
 */
#ifndef QAT_AUTOGRAD_CONV_PASS_H
#define QAT_AUTOGRAD_CONV_PASS_H

#include "autograd/conv/conv.h"
#include "autograd/conv/product.h"
#include "autograd/loops/tiles.h"

/** Pointers into scratch. */
typedef struct qat_conv_places {
    qat_real *bands;       /* [QAT_BLOCKS][band] */
    qat_real *packed;      /* weights in panels */
    qat_real *partial;     /* [blocks][groups][depth][filters / groups] */
    qat_segment *segments; /* taps of all phases, or [QAT_BLOCKS][block_segments] */
    size_t band;
    size_t block_segments; /* most segments of a product of the weight gradient */
} qat_conv_places;

size_t qat_conv_place(const qat_conv *conv, void *scratch, qat_conv_places *places);

/** Values from image to image of a slide with one band per image. */
static inline size_t qat_conv_image_values(const qat_slide *s)
{
    return s->padded ? s->buffer : (size_t)s->y.source * (size_t)s->row;
}

/** The bands of a slide that block `block` computes, all in the block's buffer. */
static inline qat_span qat_conv_bands(const qat_slide *s, int blocks, int block)
{
    return qat_block_span(s->batch * (size_t)s->bands, blocks, block);
}

static inline qat_real *qat_conv_buffer(const qat_conv_places *at, int block)
{
    return at->bands + (size_t)block * at->band;
}

/** The pass that computes outputs from x, or data gradients from dy. */
void qat_conv_forward_pass(const qat_conv *conv, const qat_conv_places *at, const qat_real *x,
                           const qat_real *w, qat_real *y);
void qat_conv_data_pass(const qat_conv *conv, const qat_conv_places *at, const qat_real *dy,
                        const qat_real *w, qat_real *dx, bool add);
void qat_conv_weights_pass(const qat_conv *conv, const qat_conv_places *at, const qat_real *x,
                           const qat_real *dy, qat_real *dw);

#endif

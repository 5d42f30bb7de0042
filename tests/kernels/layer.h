/** Layers with weights, as one node: makes their numbers, random or given, and compares them. */
#ifndef QAT_TESTS_KERNELS_LAYER_H
#define QAT_TESTS_KERNELS_LAYER_H

#include "kernels/one_node.h"

/** One layer's numbers; fully_connected has batch rows of c values, and kernel 0. */
struct layer {
    int32_t h, w, c, batch;
    int32_t o, multiplier; /* output channels; depthwise: for each of the input's, and o is 0 */
    int32_t groups;        /* conv2d: they divide c and o; 0: one */
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    qi_type x, weights, y;
    int bits;               /* of x and the weights */
    int relu;               /* clamp_lo is the zero-point */
    int shift_lo, shift_hi; /* without the fraction */
    int fraction;           /* at most; so large that int32 holds the accumulator */
    int even;               /* rounding EVEN, without a fraction; else TWICE */
    node_fill x_fill, w_fill;
};

/** 3x3 of int8 with a rectifier; its size, channels and strides are still to be given. */
#define LAYER_3X3                                                                                  \
    .batch = 1, .kernel_h = 3, .kernel_w = 3, .dilation_h = 1, .dilation_w = 1, .x = QI_S8,        \
    .weights = QI_S8, .y = QI_S8, .bits = 8, .relu = 1

/** Sizes, channels, kernel and strides from 1 to those of `most`; the rest but multiplier and
 *  shifts, which are its own, at random. */
struct layer layer_random(const struct layer *most, uint64_t *seed);

/** conv2d, depthwise_conv2d, transpose_conv2d (which has no dilation) or fully_connected; node_free
 *  it. */
void layer_build(one_node *n, const struct layer *l, const qi_kernel *kernel, uint64_t *seed);

/**
 * Build the layer and compare the driver with the kernel. If they differ, fail the test and print
 * the layer's numbers. may_leave: the driver may leave layers to the core whose uint8 weights have
 * zero_point 0.
 */
void layer_compare(const struct layer *l, const qi_kernel *kernel, const qi_fast *fast,
                   const qi_isa *isa, bool may_leave, uint64_t *seed);

#endif

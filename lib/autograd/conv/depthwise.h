/**
 * The inner loops of depthwise convolutions. A small block of taps runs over rows of pixels, with
 * channels in vector lanes.
 *
 *     filter      y[i, c] (+)= sum_{k,l} x[i, c + k hop_y + l hop_x] w[k, l, c]
 *     correlate   dw[k, l, c] += sum_i x[i, c + k hop_y + l hop_x] y[i, c]
 *
 * Eight channels are computed at a time. Their weights, or their sums over all pixels, stay in
 * registers. Each sum runs in the order of taps or pixels, so the bits do not depend on the
 * instruction set.
 */
#ifndef QAT_AUTOGRAD_DEPTHWISE_H
#define QAT_AUTOGRAD_DEPTHWISE_H

#include "qat/graph.h"

/** Most taps of one block in each direction. */
enum { QAT_DEPTHWISE_TAPS = 3 };

/** Distances in values from one row to the next and from one column to the next. */
typedef struct qat_hops {
    ptrdiff_t row, pixel;
} qat_hops;

/** A block of taps over rows x pixels grid points with `channels` values each. */
typedef struct qat_taps_run {
    int rows, pixels;
    size_t channels;
    int taps_y, taps_x;   /* 1..QAT_DEPTHWISE_TAPS */
    qat_hops x, y;        /* between grid points */
    qat_hops tap, weight; /* between taps, in x and in the weights */
} qat_taps_run;

void qat_depthwise_filter(const qat_taps_run *run, const qat_real *x, const qat_real *w, bool add,
                          qat_real *y);
void qat_depthwise_correlate(const qat_taps_run *run, const qat_real *x, const qat_real *y,
                             qat_real *dw);

#endif

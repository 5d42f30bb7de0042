/**
 * A slide moves the taps of a window over an image. Outputs and both gradients use it.
 *
 * A slide runs over a grid of pixels. At grid row u, the tap with offset `at` reads row u * step +
 * at of the source, and the result goes to row u * spread + phase of the target. Columns work the
 * same way.
 *
 *     forward        source x, target y:   step = stride, at = k * dilation - pad, one phase
 *     data gradient  source dy, target dx: spread = stride,
 *                    at = (phase + pad - k * dilation) / stride
 *
 * In a data gradient, row i = u * stride + phase of dx gets those taps k for which i + pad - k *
 * dilation is a multiple of the stride.
 *
 * So a data gradient of stride s is s * s dense convolutions of dy, one for each phase. Nothing is
 * added up in memory. Within a phase the taps and their offsets are arithmetic progressions.
 *
 * If the window leaves the image, the band of the source is copied with zeros around it. Otherwise,
 * or if the caller leaves out the taps there (qat_slide_in_place), the source is read directly.
 */
#ifndef QAT_AUTOGRAD_SLIDE_H
#define QAT_AUTOGRAD_SLIDE_H

#include "autograd/loops/window.h"

/**
 * The taps of one direction and phase. The i-th is kernel row first + i * step, at offset at + i *
 * hop; hop > 0. Taps that read only padding are left out.
 */
typedef struct qat_taps {
    int first, step, count, at, hop;
} qat_taps;

/** One direction of a slide. */
typedef struct qat_axis {
    int kernel, dilation, stride, pad;
    bool gradient;
    int source, target, grid; /* pixels */
    int step, spread;
    int low, high; /* least and largest offset over the taps of all phases */
} qat_axis;

/** 64 KB of float: a band of this size stays in the second-level cache. */
enum { QAT_SLIDE_VALUES = 16 * 1024 };

typedef struct qat_slide {
    qat_axis y, x;
    size_t batch, channels; /* of the source */
    size_t repeat;          /* how often the band holds every channel, one copy after the other */
    bool padded;            /* bands are padded copies */
    int rows;               /* grid rows of a band; the last band of an image may have fewer */
    int bands;              /* bands per image */
    ptrdiff_t row, pixel;   /* distance in values between rows and pixels of the source in a band */
    size_t buffer;          /* values that a copy takes */
} qat_slide;

/**
 * @param channels  of x for the forward slide, of dy for the gradient's
 * @param repeat    1, or the multiplier of a depthwise convolution
 * @param values    most values of a band; but a band has at least one row of pixels
 */
qat_slide qat_slide_forward(const qat_window *w, size_t batch, size_t channels, size_t repeat,
                            size_t values);
qat_slide qat_slide_gradient(const qat_window *w, size_t batch, size_t channels, size_t values);

/** Read the source where it is: the caller leaves out the taps that lie outside it. */
void qat_slide_in_place(qat_slide *slide);

/** Phases are 0..spread - 1 in each direction. A phase larger than the target has no pixels. */
qat_taps qat_axis_taps(const qat_axis *axis, int phase);
/** How many grid pixels, from 0 on, have a target pixel in this phase. */
int qat_axis_reach(const qat_axis *axis, int phase);

/** A band of a source: grid rows [begin, end) of an image. */
typedef struct qat_band {
    size_t image;
    int begin, end;
    const qat_real
        *at; /* what offset (0, 0) reads at grid pixel (begin, 0); may lie outside the source */
    ptrdiff_t row, pixel; /* values from source row to row, pixel to pixel */
} qat_band;

/** Band number `index` of batch * bands. buffer has room for slide->buffer values. */
qat_band qat_slide_band(const qat_slide *slide, const qat_real *source, int index,
                        qat_real *buffer);

#endif

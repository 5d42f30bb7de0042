/** Rectangles cut out of stored pictures. */
#ifndef QAT_DATASETS_WINDOW_H
#define QAT_DATASETS_WINDOW_H

#include "base/rng.h"
#include "qat/dataset.h"

#include <stdbool.h>

enum { QAT_WINDOW_TRIES = 50 }; /* before what is always possible is taken */

/** Pixels of the stored picture; a window may reach beyond it. */
typedef struct qat_window {
    int top, left, height, width;
} qat_window;

/** Uniform in 0..n-1. */
int qat_window_below(qat_rng *rng, int n);

/** Does crop_area ask for parts of pictures? */
bool qat_window_crops(const qat_augment *augment);

/**
 * One part of a picture of height x width, of an area and an aspect drawn from crop_area and
 * crop_aspect; false: it does not fit.
 */
bool qat_window_try(qat_window *window, qat_rng *rng, const qat_augment *augment, int height,
                    int width);

/** The largest one in the middle whose aspect is in crop_aspect. */
qat_window qat_window_middle(const qat_augment *augment, int height, int width);

/** Its pixels, grey (128) outside the picture; free(). NULL: no memory. */
uint8_t *qat_window_cut(const qat_window *window, const qat_picture *picture, int channels);

/**
 * The part of a picture that crop_area and crop_aspect draw, keyed by (seed, epoch, index), resized
 * to values [height, width, channels].
 * @return QAT_ERR_NOMEM
 */
qat_status qat_augment_part(const qat_augment *augment, const qat_picture *picture, uint8_t *values,
                            int height, int width, int channels, uint64_t seed, int64_t epoch,
                            int64_t index, qat_error *err);

#endif

/** Rectangles that are cut out of stored pictures. */
#ifndef QAT_DATASETS_WINDOW_H
#define QAT_DATASETS_WINDOW_H

#include "base/rng.h"
#include "qat/dataset.h"

#include <stdbool.h>

enum { QAT_WINDOW_TRIES = 50 }; /* tries before a part that always fits is taken */

/** Pixels of the stored picture; a window may reach beyond it. */
typedef struct qat_window {
    int top, left, height, width;
} qat_window;

/** A uniform number in 0..n-1. */
int qat_window_below(qat_rng *rng, int n);

/** Does crop_area select parts of pictures? */
bool qat_window_crops(const qat_augment *augment);

/**
 * Draw one part of a height x width picture, with area and aspect from crop_area and crop_aspect.
 * Returns false if it does not fit.
 */
bool qat_window_try(qat_window *window, qat_rng *rng, const qat_augment *augment, int height,
                    int width);

/** The largest centred part whose aspect is in crop_aspect. */
qat_window qat_window_middle(const qat_augment *augment, int height, int width);

/** The pixels of the window, grey (128) outside the picture; free(). NULL: no memory. */
uint8_t *qat_window_cut(const qat_window *window, const qat_picture *picture, int channels);

/**
 * Cut a random part by crop_area and crop_aspect, keyed by (seed, epoch, index), and resize it to
 * values [height, width, channels].
 * @return QAT_ERR_NOMEM
 */
qat_status qat_augment_part(const qat_augment *augment, const qat_picture *picture, uint8_t *values,
                            int height, int width, int channels, uint64_t seed, int64_t epoch,
                            int64_t index, qat_error *err);

#endif

/** Augmentation of pictures with objects: the expansion and crops of SSD, and mirroring. */
#ifndef QAT_DATASETS_BOX_AUGMENT_H
#define QAT_DATASETS_BOX_AUGMENT_H

#include "qat/dataset.h"

/** A training sample while it is made. */
typedef struct qat_boxed_sample {
    uint8_t *values; /* [height, width, channels] */
    int height, width, channels;
    qat_truth *truth; /* room for the picture's objects */
    int count;
    uint8_t *scratch; /* as large as values */
} qat_boxed_sample;

/**
 * Make a sample from a stored picture and its objects, with random numbers keyed by (seed, epoch,
 * index): choose a window by ssd_expand and ssd_crop, resize it, then flip and change colours.
 * @return QAT_ERR_NOMEM
 */
qat_status qat_augment_boxes(const qat_augment *augment, const qat_picture *picture,
                             const qat_objects *objects, qat_boxed_sample *sample, uint64_t seed,
                             int64_t epoch, int64_t index, qat_error *err);

#endif

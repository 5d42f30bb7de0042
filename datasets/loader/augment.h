/** Augmentation inside the loader: checks and noise, in addition to the public qat_augment_u8. */
#ifndef QAT_DATASETS_AUGMENT_H
#define QAT_DATASETS_AUGMENT_H

#include "qat/dataset.h"

/** Check that the values are in range and fit these samples. Errors name the key and the value. */
qat_status qat_augment_check(const qat_augment *augment, const qat_dataset_info *info,
                             qat_error *err);

/** Mirror left-right, in place. */
void qat_augment_mirror(uint8_t *values, int height, int width, int channels);

/**
 * Move the classes of a picture's pixels, [height, width], as qat_augment_u8 moves the pixels. A
 * pixel that comes from outside has the class NaN: it is not known.
 */
void qat_augment_classes(const qat_augment *augment, float *classes, int height, int width,
                         uint64_t seed, int64_t epoch, int64_t index);

/** Does this augmentation change anything? */
bool qat_augment_any(const qat_augment *augment);

/**
 * For samples of real values: add noise * (2u - 1) to each of count values, with u uniform, keyed
 * like the bytes.
 */
void qat_augment_f32(const qat_augment *augment, float *values, size_t count, uint64_t seed,
                     int64_t epoch, int64_t index);

#endif

/** Augmentation of sounds, before their codes are computed. */
#ifndef QAT_DATASETS_SOUND_AUGMENT_H
#define QAT_DATASETS_SOUND_AUGMENT_H

#include "datasets/dataset_kind.h"

/** Does this augmentation change sounds? */
bool qat_sound_augmented(const qat_augment *augment);

/** Check that the values are in range, and that the data have sounds, and background noise. */
qat_status qat_sound_augment_check(const qat_augment *augment, const qat_dataset *dataset,
                                   qat_error *err);

/** The codes of a sound that is moved, made louder and mixed with noise, keyed like pictures. */
qat_status qat_augment_sound(const qat_augment *augment, const qat_dataset *dataset, int index,
                             uint64_t seed, int64_t epoch, uint8_t *codes, qat_error *err);

#endif

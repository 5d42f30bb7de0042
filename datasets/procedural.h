/** What the procedural sets share: all pictures are painted when the set is opened. */
#ifndef QAT_DATASETS_PROCEDURAL_H
#define QAT_DATASETS_PROCEDURAL_H

#include "base/rng.h"
#include "datasets/dataset_kind.h"

enum { QAT_PROCEDURAL_CLASSES = 10 };

/** Paint one picture of a class; every choice comes from rng. */
typedef void qat_painter(qat_rng *rng, int label, uint8_t *values);

/**
 * Fill the data set with side x side x channels pictures, in parallel. Picture i of a split depends
 * on (seed, kind, split, i) alone; among pictures 10 k .. 10 k + 9 each class occurs once.
 * Default counts: 10,000 for training, 2,000 for testing.
 */
qat_status qat_procedural_open(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_split split, int side, int channels, const char *const *labels,
                               qat_painter *paint, qat_error *err);

#endif

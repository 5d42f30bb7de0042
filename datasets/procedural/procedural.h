/**
 * Functions that the procedural sets share: number and size of pictures. All pictures are painted
 * when the set is opened.
 */
#ifndef QAT_DATASETS_PROCEDURAL_H
#define QAT_DATASETS_PROCEDURAL_H

#include "base/rng.h"
#include "datasets/dataset_kind.h"

enum { QAT_PROCEDURAL_CLASSES = 10 };

/** Square colour pictures; options choose the side. */
typedef struct qat_square {
    const char *what; /* "faces", for example; for messages */
    int side, smallest, largest;
    int train, test; /* how many */
} qat_square;

/**
 * Set shape and count of such a set: from options, or else square's side and counts.
 * QAT_ERR_ARGUMENT: another side, other channels than 3, or not square.
 */
qat_status qat_procedural_square(qat_dataset *dataset, const qat_dataset_options *options,
                                 qat_split split, const qat_square *square, qat_error *err);

/** Paints one picture of a class; rng makes every choice. */
typedef void qat_painter(qat_rng *rng, int label, void *values);

/** Pictures or signals that a function draws. */
typedef struct qat_drawn {
    int64_t hwc[3];
    qat_sample_type type;
    const char *const *labels;
    qat_painter *paint;
} qat_drawn;

/**
 * Fill the data set with what `drawn` paints, in parallel. Picture i of a split depends
 * only on (seed, kind, split, i). Among pictures 10 k .. 10 k + 9 each class occurs once. Default
 * counts: 10,000 for training, 2,000 for testing.
 */
qat_status qat_procedural_open(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_split split, const qat_drawn *drawn, qat_error *err);

/** The stream of random numbers of a split: sample i has qat_rng_at(seed, stream, i). */
uint64_t qat_procedural_stream(const qat_dataset *dataset, qat_split split);

#endif

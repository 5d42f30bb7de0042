/** A data set, opened and used as a training run does it. */
#ifndef QAT_TESTS_FUZZ_DATA_H
#define QAT_TESTS_FUZZ_DATA_H

#include "qat/dataset.h"

/**
 * Open a split. If it opens, call every function on it. If it is refused, there must be a message.
 * @param size  of the input: every 16th size stands for a data.memory of 2000 bytes
 */
void fuzz_dataset(const qat_dataset_options *options, qat_split split, size_t size);

/** A status and what came with it: a message exactly where something is wrong. */
void fuzz_check_status(qat_status status, const qat_error *err);

#endif

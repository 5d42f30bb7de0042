/** Inside lib/train: fine-tuning, from the weights of another run. */
#ifndef QAT_TRAIN_INIT_H
#define QAT_TRAIN_INIT_H

#include "qat/train.h"

/**
 * Set a planned training graph's parameters from the file that recipe's train.init names, if any,
 * by their names in it after train.init_map. What train.init_skip names, and observed ranges, keep
 * their start. What was taken, skipped and missing goes to the log, a line each; a tensor of
 * another shape is an error that lists all of these.
 */
qat_status qat_init_from_file(qat_graph *training, const qat_recipe *recipe, const qat_log *log,
                              qat_error *err);

#endif

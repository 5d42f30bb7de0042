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

/**
 * Before planning: the parameters that `patterns` match do not train. Batch norms among them use
 * their averages and leave these as they are. A pattern that matches nothing is an error. Their
 * names go to the log (NULL: none).
 */
qat_status qat_freeze_params(qat_graph *training, const char *patterns, const qat_log *log,
                             qat_error *err);

#endif

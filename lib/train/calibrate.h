/** Inside lib/train: post-training quantization. */
#ifndef QAT_TRAIN_CALIBRATE_H
#define QAT_TRAIN_CALIBRATE_H

#include "qat/train.h"

/** Observe ranges on the training split of `spec` (NULL: the recipe's data), at most `samples`, and
 *  put them into a planned eval graph beside the checkpoint's parameters. */
qat_status qat_calibrate(const qat_restored *restored, const char *spec, int64_t samples,
                         qat_graph *eval, qat_error *err);

#endif

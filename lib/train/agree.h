/**
 * What all ranks must have alike before the first step: recipe, data, build, instruction set, and
 * where the run continues.
 */
#ifndef QAT_TRAIN_AGREE_H
#define QAT_TRAIN_AGREE_H

#include "train/trainer.h"

/**
 * Compare with the other ranks; waits for them. Every rank gets the same error, which names the
 * first rank that has something else than rank 0, or that failed.
 * @param st, err  how opening the run ended here; if it failed, the others learn it
 */
qat_status qat_trainer_agree(qat_trainer *t, qat_status st, qat_error *err);

#endif

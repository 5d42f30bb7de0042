/** Plateaus: evaluations without improvement lower the learning rate, or end the run. */
#ifndef QAT_TRAIN_PLATEAU_H
#define QAT_TRAIN_PLATEAU_H

#include "qat/train.h"

/** The settings of a recipe, in evaluations and percent. */
typedef struct qat_patience {
    bool of_loss;     /* the figure is a loss */
    bool less;        /* less is better, as of a loss */
    double threshold; /* an improvement must be larger than this: points of percent, or if less is
                         better percent of the best figure */
    int64_t drop;     /* evaluations before the rate drops; 0: it does not */
    int64_t stop;     /* evaluations before the run ends; 0: it does not */
} qat_patience;

/** Add the loss of a step. If the figure is a loss, every step is added. */
void qat_plateau_add_loss(qat_plateau *plateau, double loss);

/**
 * Note an evaluation. Its figure is the accuracy, or the mean loss of the steps since the last
 * evaluation; there must be some.
 * @param accuracy  the main figure, NaN: not known; not used if the figure is a loss
 * @param stage   how much of the network is quantized: figures of two stages are not compared
 * @param last    this is the last stage, so the run may end
 */
void qat_plateau_see(qat_plateau *plateau, const qat_patience *patience, double accuracy,
                     int64_t stage, bool last);

#endif

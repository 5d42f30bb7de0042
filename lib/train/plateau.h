/** Plateaus: evaluations that bring nothing better lower the learning rate, or end the run. */
#ifndef QAT_TRAIN_PLATEAU_H
#define QAT_TRAIN_PLATEAU_H

#include "qat/train.h"

/** What a recipe asks for, in evaluations and percent. */
typedef struct qat_patience {
    bool of_loss;     /* the figure is a loss: less is better */
    double threshold; /* better by more than that: points of percent, or percent of the best loss */
    int64_t drop;     /* evaluations before the rate drops; 0: it does not */
    int64_t stop;     /* evaluations before the run ends; 0: it does not */
} qat_patience;

/** A step was taken, of this loss. Where figures are losses, every step's is added. */
void qat_plateau_add_loss(qat_plateau *plateau, double loss);

/**
 * An evaluation was done. Its figure is the accuracy, or the mean loss of the steps since the
 * evaluation before, of which there must be some.
 * @param accuracy  percent; not looked at where figures are losses
 * @param stage   how much of the network is quantized: figures of two stages are not compared
 * @param last    no stage comes behind this one: the run may end
 */
void qat_plateau_see(qat_plateau *plateau, const qat_patience *patience, double accuracy,
                     int64_t stage, bool last);

#endif

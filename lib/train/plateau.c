/**
 * Plateaus. A figure is better than the best so far if
 *
 *     figure > best + threshold                    for an accuracy, in percent
 *     figure < best - |best| threshold / 100       for a loss, or if less is better
 *
 * An evaluation whose figure is not known does not count. After `drop` evaluations in a row without
 * improvement, the learning rate drops once, and the count starts again. After `stop` evaluations
 * without improvement, across drops, the run ends.
 */
#include "train/plateau.h"

#include <math.h>

static bool is_better(const qat_plateau *p, const qat_patience *patience, double figure)
{
    double const share = copysign(patience->threshold / 100, p->best);
    return patience->less ? figure < p->best * (1 - share) : figure > p->best + patience->threshold;
}

void qat_plateau_add_loss(qat_plateau *p, double loss)
{
    p->loss_sum += loss;
    p->losses++;
}

void qat_plateau_see(qat_plateau *p, const qat_patience *patience, double accuracy, int64_t stage,
                     bool last)
{
    double const figure = patience->of_loss ? p->loss_sum / (double)p->losses : accuracy;
    p->loss_sum = 0;
    p->losses = 0;
    if (isnan(figure))
        return;
    if (!p->watched || p->stage != stage || is_better(p, patience, figure)) {
        p->watched = true;
        p->stage = stage;
        p->best = figure;
        p->since = p->since_drop = 0;
        return;
    }
    p->since++;
    p->since_drop++;
    if (patience->drop && p->since_drop >= patience->drop) {
        p->drops++;
        p->since_drop = 0;
    }
    p->ended = last && patience->stop && p->since >= patience->stop;
}

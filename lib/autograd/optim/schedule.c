/** Learning rates as a function of the step. */
#include "qat/graph.h"

#include <math.h>

/**
 * Length of the run so far in periods of `every` steps. `every` = 0 counts as 1, so that an empty
 * field divides nothing by zero.
 */
static double periods(const qat_schedule *schedule, int64_t step)
{
    return (double)step / (double)(schedule->every > 0 ? schedule->every : 1);
}

/** The part of the run after warm-up that is left, from 1 down to 0. */
static double left(const qat_schedule *schedule, int64_t step)
{
    int64_t const span = schedule->total - schedule->warmup;
    return step >= span ? 0 : 1 - (double)step / (double)span;
}

/** Interpolate from rate to final_rate; `ahead` is the part of the way that is left. */
static double between(const qat_schedule *schedule, double ahead)
{
    return schedule->final_rate + (schedule->rate - schedule->final_rate) * ahead;
}

static double cosine(const qat_schedule *schedule, int64_t step)
{
    double const pi = 3.14159265358979323846;
    int64_t const span = schedule->total - schedule->warmup;
    if (step >= span)
        return schedule->final_rate;
    return between(schedule, (1 + cos(pi * (double)step / (double)span)) / 2);
}

static int milestones_reached(const qat_schedule *schedule, int64_t step)
{
    int reached = 0;
    for (int i = 0; i < schedule->n_milestones; i++)
        reached += schedule->milestones[i] <= step;
    return reached;
}

double qat_schedule_at(const qat_schedule *schedule, int64_t step)
{
    int64_t const moment = step;
    if (step < schedule->warmup)
        return schedule->rate * (double)(step + 1) / (double)schedule->warmup;
    step -= schedule->warmup > 0 ? schedule->warmup : 0;
    switch (schedule->kind) {
    case QAT_SCHEDULE_STAIRCASE:
        return schedule->rate * pow(schedule->factor, floor(periods(schedule, step)));
    case QAT_SCHEDULE_EXPONENTIAL:
        return schedule->rate * pow(schedule->factor, periods(schedule, step));
    case QAT_SCHEDULE_COSINE:
        return cosine(schedule, step);
    case QAT_SCHEDULE_POLYNOMIAL:
        return between(schedule, pow(left(schedule, step), schedule->power));
    case QAT_SCHEDULE_PIECEWISE:
        return schedule->rate * pow(schedule->factor, milestones_reached(schedule, moment));
    case QAT_SCHEDULE_PLATEAU:
        return schedule->rate * pow(schedule->factor, (double)schedule->drops);
    case QAT_SCHEDULE_CONSTANT:
        break;
    }
    return schedule->rate;
}

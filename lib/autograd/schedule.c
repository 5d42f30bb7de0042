/** Learning rates as a function of the step. */
#include "qat/graph.h"

#include <math.h>

/** Steps per drop; 0 stands for 1, so that an empty field divides nothing by zero. */
static double periods(const qat_schedule *schedule, int64_t step)
{
    return (double)step / (double)(schedule->every > 0 ? schedule->every : 1);
}

static double cosine(const qat_schedule *schedule, int64_t step)
{
    double const pi = 3.14159265358979323846;
    int64_t const span = schedule->total - schedule->warmup;
    if (step >= span)
        return schedule->final_rate;
    return schedule->final_rate + (schedule->rate - schedule->final_rate) *
                                      (1 + cos(pi * (double)step / (double)span)) / 2;
}

double qat_schedule_at(const qat_schedule *schedule, int64_t step)
{
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
    case QAT_SCHEDULE_CONSTANT:
        break;
    }
    return schedule->rate;
}

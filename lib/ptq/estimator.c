/**
 * Range estimators: find the range to quantize from the histogram of a tensor.
 *
 *     minmax       all values
 *     percentile   at most the share 1 - P/100 of the values beyond either end
 *     mse          of GRID steps of shrinking either end (symmetric: both together), the pair with
 *                  the least sum of squared errors; of equal ones the widest
 */
#include "base/number.h"
#include "ptq/histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 64 };

static void minmax(const qat_histogram *h, const qat_code_grid *grid, double parameter, float *min,
                   float *max)
{
    (void)grid;
    (void)parameter;
    *min = h->min;
    *max = h->max;
}

/** The value at which a bin begins. */
static float edge(const qat_histogram *h, int bin)
{
    double const width = ((double)h->max - (double)h->min) / QAT_HISTOGRAM_BINS;
    return bin == QAT_HISTOGRAM_BINS ? h->max : (float)((double)h->min + bin * width);
}

static void percentile(const qat_histogram *h, const qat_code_grid *grid, double parameter,
                       float *min, float *max)
{
    (void)grid;
    double const may_lose = (1 - parameter / 100) * (double)h->total;
    int low = 0, high = QAT_HISTOGRAM_BINS;
    int64_t below = 0, above = 0;
    while (low < high - 1 && (double)(below + h->counts[low]) <= may_lose)
        below += h->counts[low++];
    while (high > low + 1 && (double)(above + h->counts[high - 1]) <= may_lose)
        above += h->counts[--high];
    *min = edge(h, low);
    *max = edge(h, high);
}

static float shrunk(float end, int step)
{
    return end * (float)(GRID - step) / (float)GRID;
}

/**
 * A symmetric range shrinks by one step at both ends together. Other ranges shrink end by end; an
 * end at 0 does not move.
 */
static void mse(const qat_histogram *h, const qat_code_grid *grid, double parameter, float *min,
                float *max)
{
    (void)parameter;
    qat_histogram_filled filled;
    qat_histogram_filled_of(&filled, h);
    float low = h->min < 0 ? h->min : 0, high = h->max > 0 ? h->max : 0;
    if (grid->symmetric) {
        high = -low > high ? -low : high;
        low = -high;
    }
    int const lows = low < 0 && !grid->symmetric ? GRID : 1, highs = high > 0 ? GRID : 1;
    double best = INFINITY;
    *min = low; /* also if no error is a number, because values were infinite */
    *max = high;
    for (int i = 0; i < lows; i++)
        for (int j = 0; j < highs; j++) {
            float const a = shrunk(low, grid->symmetric ? j : i), b = shrunk(high, j);
            double const error = qat_histogram_error_below(&filled, grid, a, b, best);
            if (!(error < best))
                continue;
            best = error;
            *min = a;
            *max = b;
        }
}

static const qat_estimator estimators[] = {
    {"minmax", "smallest to largest value", NULL, 0, 0, 0, false, minmax},
    {"percentile", "all values but a share at either end", "percent of the values that stay", 99.99,
     50, 100, false, percentile},
    {"mse", "least squared error; also for weights", NULL, 0, 0, 0, true, mse},
};
enum { ESTIMATORS = sizeof estimators / sizeof estimators[0] };

const qat_estimator *qat_estimator_at(int i)
{
    return i >= 0 && i < ESTIMATORS ? &estimators[i] : NULL;
}

static const qat_estimator *find(const char *name, size_t n)
{
    for (int i = 0; i < ESTIMATORS; i++)
        if (strlen(estimators[i].name) == n && !memcmp(estimators[i].name, name, n))
            return &estimators[i];
    return NULL;
}

const qat_estimator *qat_estimator_find(const char *name)
{
    return find(name, strlen(name));
}

/** Parse the number after "name:". */
static qat_status parse_parameter(const qat_estimator *e, const char *text, double *parameter,
                                  qat_error *err)
{
    char *end;
    if (!e->parameter)
        return qat_fail(err, QAT_ERR_ARGUMENT, "estimator %s takes no number", e->name);
    *parameter = qat_number_of(text, &end);
    if (end == text || *end || !(*parameter >= e->least && *parameter <= e->most))
        return qat_fail(err, QAT_ERR_ARGUMENT, "estimator %s:%s: expected a number in %g..%g (%s)",
                        e->name, text, e->least, e->most, e->parameter);
    return QAT_OK;
}

qat_status qat_estimator_parse(const char *text, const qat_estimator **estimator, double *parameter,
                               qat_error *err)
{
    size_t const n = strcspn(text, ":");
    *estimator = find(text, n);
    if (!*estimator)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "unknown estimator '%s': expected minmax, percentile[:P] or mse", text);
    *parameter = (*estimator)->initial;
    return text[n] ? parse_parameter(*estimator, text + n + 1, parameter, err) : QAT_OK;
}

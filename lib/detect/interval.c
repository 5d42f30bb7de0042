/**
 * A bootstrap interval of AP50. The outcome of a box does not depend on the other pictures. So a
 * resample only changes how often the boxes and objects of each picture count.
 */
#include "detect/outcomes.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bootstrap {
    struct outcomes *classes;
    int n_classes, n_pictures;
    int *weights;
    struct curve curve;
    double *figures; /* one for each resample that has objects */
};

static void draw(const struct bootstrap *b, uint64_t seed, int resample)
{
    qat_rng rng = qat_rng_at(seed, qat_hash_name("bootstrap"), (uint64_t)resample);
    memset(b->weights, 0, (size_t)b->n_pictures * sizeof *b->weights);
    for (int i = 0; i < b->n_pictures; i++)
        b->weights[qat_rng_below(&rng, (uint32_t)b->n_pictures)]++;
}

/** The mean over the classes that have objects; -1 if none has. */
static double ap50_of(struct bootstrap *b)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < b->n_classes; i++) {
        double const ap =
            qat_class_precision(&b->classes[i], 0, MOST_FOUND, b->weights, &b->curve, NULL);
        n += ap >= 0;
        sum += ap >= 0 ? ap : 0;
    }
    return n ? sum / n : -1;
}

static int compare(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/**
 * Nearest rank: the smallest value with at least a share p of the values at or below it. Rounding
 * may make a whole p n come out slightly larger.
 */
static double quantile(const double *sorted, int n, double p)
{
    double const rounding = 1e-9;
    int const rank = (int)ceil(p * n - rounding * n);
    return sorted[rank < 1 ? 0 : rank > n ? n - 1 : rank - 1];
}

static bool allocate(struct bootstrap *b, int resamples)
{
    size_t longest = 1;
    for (int i = 0; i < b->n_classes; i++)
        if ((size_t)b->classes[i].n > longest)
            longest = (size_t)b->classes[i].n;
    b->weights = calloc((size_t)b->n_pictures, sizeof *b->weights);
    b->curve.precision = calloc(longest, sizeof(double));
    b->curve.recall = calloc(longest, sizeof(double));
    b->figures = calloc((size_t)resamples, sizeof *b->figures);
    return b->weights && b->curve.precision && b->curve.recall && b->figures;
}

static void free_bootstrap(struct bootstrap *b)
{
    for (int i = 0; b->classes && i < b->n_classes; i++)
        qat_outcomes_free(&b->classes[i]);
    free(b->classes);
    free(b->weights);
    free(b->curve.precision);
    free(b->curve.recall);
    free(b->figures);
}

qat_status qat_ap50_interval(qat_ap_interval *interval, const qat_scored_set *set, int resamples,
                             uint64_t seed, double level, qat_error *err)
{
    struct bootstrap b = {.n_classes = set->classes, .n_pictures = set->n_pictures};
    *interval = (qat_ap_interval){-1, -1};
    if (resamples < 1 || !(level > 0 && level < 1) || set->n_pictures < 1 || set->classes < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "interval: %d resamples, level %g, %d pictures, %d classes", resamples,
                        level, set->n_pictures, set->classes);
    b.classes = calloc((size_t)b.n_classes, sizeof *b.classes);
    qat_status st = b.classes ? QAT_OK : qat_out_of_memory(err, "interval");
    for (int i = 0; !st && i < b.n_classes; i++)
        st = qat_outcomes_init(&b.classes[i], set, i, ALL_AREAS, err);
    if (!st && !allocate(&b, resamples))
        st = qat_out_of_memory(err, "interval");
    int n = 0;
    for (int i = 0; !st && i < resamples; i++) {
        draw(&b, seed, i);
        b.figures[n] = ap50_of(&b);
        n += b.figures[n] >= 0;
    }
    if (n > 0) {
        qsort(b.figures, (size_t)n, sizeof *b.figures, compare);
        interval->low = quantile(b.figures, n, (1 - level) / 2);
        interval->high = quantile(b.figures, n, (1 + level) / 2);
    }
    free_bootstrap(&b);
    return st;
}

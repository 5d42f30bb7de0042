#include "base/figures/curve.h"

#include <stdlib.h>

/** Compares so that the highest score comes first. */
static int by_score(const void *a, const void *b)
{
    double const x = ((const qat_scored *)a)->score, y = ((const qat_scored *)b)->score;
    return (x < y) - (x > y);
}

qat_status qat_curve_of(qat_curve *c, qat_scored *samples, size_t n, qat_error *err)
{
    *c = (qat_curve){.at = malloc((n + 1) * sizeof *c->at)};
    if (!c->at)
        return qat_out_of_memory(err, "figures");
    if (n)
        qsort(samples, n, sizeof *samples, by_score);
    for (size_t i = 0; i < n; i++) {
        c->hits += samples[i].hit;
        c->misses += !samples[i].hit;
        if (i + 1 == n || samples[i + 1].score != samples[i].score)
            c->at[c->n++] = (qat_threshold){samples[i].score, c->hits, c->misses};
    }
    return QAT_OK;
}

void qat_curve_free(qat_curve *c)
{
    free(c->at);
    *c = (qat_curve){0};
}

double qat_curve_auc(const qat_curve *c)
{
    qat_threshold before = {0};
    double right = 0, pairs = (double)c->hits * (double)c->misses;
    for (size_t k = 0; k < c->n; before = c->at[k++]) {
        double const hits = (double)(c->at[k].hits - before.hits);
        double const misses = (double)(c->at[k].misses - before.misses);
        right += hits * ((double)(c->misses - c->at[k].misses) + misses / 2);
    }
    return pairs > 0 ? right / pairs : -1;
}

double qat_curve_ap(const qat_curve *c)
{
    int64_t before = 0;
    double sum = 0;
    for (size_t k = 0; k < c->n; before = c->at[k++].hits) {
        double const found = (double)c->at[k].hits;
        sum += (double)(c->at[k].hits - before) * found / (found + (double)c->at[k].misses);
    }
    return c->hits ? sum / (double)c->hits : -1;
}

double qat_curve_best_f1(const qat_curve *c, double *threshold)
{
    double best = -1;
    for (size_t k = 0; k < c->n && c->hits; k++) {
        double const found = (double)(c->at[k].hits + c->at[k].misses);
        double const f1 = 2 * (double)c->at[k].hits / (found + (double)c->hits);
        if (f1 > best) {
            best = f1;
            *threshold = c->at[k].score;
        }
    }
    return best;
}

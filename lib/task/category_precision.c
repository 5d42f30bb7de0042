/** Computes the average precision of a category. */
#include "task/attributes.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    float score;
    bool hit;
} ranked;

/** Compares so that the best score comes first. */
static int by_score(const void *a, const void *b)
{
    float const x = ((const ranked *)a)->score, y = ((const ranked *)b)->score;
    return (x < y) - (x > y);
}

static double precision_of(const ranked *all, int n, int hits)
{
    double sum = 0;
    int found = 0;
    for (int i = 0, end = 0; i < n; i = end) {
        int here = 0;
        while (end < n && all[end].score == all[i].score)
            here += all[end++].hit;
        found += here;
        sum += (double)here * (double)found / (double)end;
    }
    return sum / (double)hits;
}

qat_status qat_category_precision(const float *scores, const float *truth, int n, int stride,
                                  int truth_stride, double *ap, qat_error *err)
{
    ranked *all = malloc(((size_t)n + 1) * sizeof *all);
    int known = 0, hits = 0;
    if (!all)
        return qat_out_of_memory(err, "evaluation");
    for (int i = 0; i < n; i++) {
        float const t = truth[(size_t)i * (size_t)truth_stride];
        if (isnan(t))
            continue;
        hits += t > 0.5f;
        all[known++] = (ranked){scores[(size_t)i * (size_t)stride], t > 0.5f};
    }
    if (hits)
        qsort(all, (size_t)known, sizeof *all, by_score);
    *ap = hits ? precision_of(all, known, hits) : -1;
    free(all);
    return QAT_OK;
}

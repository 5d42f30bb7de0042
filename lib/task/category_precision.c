/** Computes the average precision of a category. */
#include "base/figures/curve.h"
#include "task/attributes.h"

#include <math.h>
#include <stdlib.h>

qat_status qat_category_precision(const float *scores, const float *truth, int n, int stride,
                                  int truth_stride, double *ap, qat_error *err)
{
    qat_scored *known = malloc(((size_t)n + 1) * sizeof *known);
    qat_curve curve = {0};
    size_t count = 0;
    if (!known)
        return qat_out_of_memory(err, "evaluation");
    for (size_t i = 0; i < (size_t)n; i++) {
        float const t = truth[i * (size_t)truth_stride];
        if (!isnan(t))
            known[count++] = (qat_scored){(double)scores[i * (size_t)stride], t > 0.5f};
    }
    qat_status const st = qat_curve_of(&curve, known, count, err);
    *ap = qat_curve_ap(&curve);
    qat_curve_free(&curve);
    free(known);
    return st;
}

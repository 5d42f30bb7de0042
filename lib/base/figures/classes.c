#include "base/figures/classes.h"

#include <math.h>

static double share(double part, double of)
{
    return of > 0 ? part / of : 0;
}

double qat_precision_of(const qat_counts *c)
{
    return share((double)c->right, (double)c->said);
}

double qat_recall_of(const qat_counts *c)
{
    return share((double)c->right, (double)c->is);
}

double qat_f1_of(const qat_counts *c)
{
    return share(2 * (double)c->right, (double)c->is + (double)c->said);
}

qat_means qat_means_of(const qat_counts *counts, int n, bool weighted)
{
    qat_means sum = {0};
    double weights = 0;
    for (int i = 0; i < n; i++) {
        double const weight = weighted ? (double)counts[i].is : 1;
        sum.precision += weight * qat_precision_of(&counts[i]);
        sum.recall += weight * qat_recall_of(&counts[i]);
        sum.f1 += weight * qat_f1_of(&counts[i]);
        weights += weight;
    }
    return (qat_means){share(sum.precision, weights), share(sum.recall, weights),
                       share(sum.f1, weights)};
}

int qat_highest(const float *scores, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

double qat_log_sum(const float *scores, int n)
{
    double const most = (double)scores[qat_highest(scores, n)];
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp((double)scores[i] - most);
    return most + log(sum);
}

void qat_bins_add(qat_bin bins[QAT_BINS], double p, bool right)
{
    int k = 0;
    while (k + 1 < QAT_BINS && p > (k + 1) * (1.0 / QAT_BINS))
        k++;
    bins[k].n++;
    bins[k].right += right;
    bins[k].sure += p;
}

double qat_bins_error(const qat_bin bins[QAT_BINS], double *largest)
{
    double sum = 0, n = 0;
    *largest = -1;
    for (int k = 0; k < QAT_BINS; k++) {
        double const off = fabs((double)bins[k].right - bins[k].sure);
        sum += off;
        n += (double)bins[k].n;
        if (bins[k].n)
            *largest = fmax(*largest, off / (double)bins[k].n);
    }
    return n > 0 ? sum / n : -1;
}

/**
 * How answers spread over classes, and how sure they are: precision, recall, F1, calibration. The
 * figures are those of scikit-learn, with 0 where a share has no samples.
 */
#ifndef QAT_BASE_CLASSES_H
#define QAT_BASE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Of one class: samples that are of it, that are said to be, and both. */
typedef struct qat_counts {
    int64_t is, said, right;
} qat_counts;

double qat_precision_of(const qat_counts *c); /* right / said */
double qat_recall_of(const qat_counts *c);    /* right / is */
double qat_f1_of(const qat_counts *c);        /* 2 right / (is + said) */

typedef struct qat_means {
    double precision, recall, f1;
} qat_means;

/** Means over n classes, each counted once, or (weighted) as often as it has samples. */
qat_means qat_means_of(const qat_counts *counts, int n, bool weighted);

/** The highest of n scores; of equal ones the first. */
int qat_highest(const float *scores, int n);
/** log(sum_i exp(scores[i])): exp(scores[i] - this) is the softmax. */
double qat_log_sum(const float *scores, int n);

/** Answers by how sure they are: bin k has probabilities in (k/15, (k + 1)/15], the first one 0. */
enum { QAT_BINS = 15 };
typedef struct qat_bin {
    int64_t n, right;
    double sure; /* sum of the probabilities */
} qat_bin;

/** Count an answer of probability p, 0 to 1. */
void qat_bins_add(qat_bin bins[QAT_BINS], double p, bool right);
/**
 * Expected calibration error: sum_k n_k / n |right_k / n_k - mean p_k|; *largest: of one bin. -1:
 * there are no answers.
 */
double qat_bins_error(const qat_bin bins[QAT_BINS], double *largest);

#endif

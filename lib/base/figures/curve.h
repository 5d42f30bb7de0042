/**
 * Scores of samples that are hits or misses: the curve over all thresholds, the area under it,
 * average precision, and the threshold of the best F1. The figures are those of scikit-learn.
 */
#ifndef QAT_BASE_CURVE_H
#define QAT_BASE_CURVE_H

#include "qat/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qat_scored {
    double score; /* not NaN; a higher one says: rather a hit */
    bool hit;
} qat_scored;

/** How many samples have this score or a higher one. */
typedef struct qat_threshold {
    double score;
    int64_t hits, misses;
} qat_threshold;

/** One threshold for each score that occurs, falling; equal scores share one. Zeroed: empty. */
typedef struct qat_curve {
    qat_threshold *at; /* [n] */
    size_t n;
    int64_t hits, misses; /* of all samples */
} qat_curve;

/** Make the curve of n samples; they are sorted. With qat_curve_free, also after an error. */
qat_status qat_curve_of(qat_curve *curve, qat_scored *samples, size_t n, qat_error *err);
void qat_curve_free(qat_curve *curve);

/**
 * The area under the ROC curve: the share of pairs of a hit and a miss in which the hit has the
 * higher score; equal scores count half. -1: there is no pair.
 */
double qat_curve_auc(const qat_curve *curve);
/**
 * Average precision, sum_k (R_k - R_(k-1)) P_k over the thresholds, falling. -1: there is no hit.
 */
double qat_curve_ap(const qat_curve *curve);
/**
 * F1 of the samples from threshold k on, 2 hits / (hits + misses + all hits); the largest of all
 * thresholds, and the highest threshold that gives it. -1: there is no hit.
 */
double qat_curve_best_f1(const qat_curve *curve, double *threshold);

#endif

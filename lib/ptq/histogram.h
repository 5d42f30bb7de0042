/** Private to lib/ptq: the error of many ranges for one histogram. */
#ifndef QAT_PTQ_HISTOGRAM_H
#define QAT_PTQ_HISTOGRAM_H

#include "qat/ptq.h"

/** The bins that hold values: their centres, and how many values. */
typedef struct qat_histogram_filled {
    int n;
    float centre[QAT_HISTOGRAM_BINS];
    double count[QAT_HISTOGRAM_BINS];
} qat_histogram_filled;

void qat_histogram_filled_of(qat_histogram_filled *f, const qat_histogram *h);

/**
 * qat_histogram_error, if that is less than most; else some number >= most. The sum only grows, so
 * it need not be finished once it is as large.
 */
double qat_histogram_error_below(const qat_histogram_filled *f, const qat_code_grid *grid,
                                 float min, float max, double most);

#endif

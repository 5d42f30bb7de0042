/** A histogram of values that come in parts: first all parts for the ends, then all for the bins.
 */
#ifndef QAT_BOARD_HISTOGRAM_H
#define QAT_BOARD_HISTOGRAM_H

#include <stddef.h>

enum { QAT_BOARD_BINS = 64 };

/** Of equally wide bins from min to max. Values that are not finite do not count. */
typedef struct qat_board_histogram {
    double min, max; /* n = 0: not known */
    double n, sum, sum_squares;
    double counts[QAT_BOARD_BINS];
} qat_board_histogram;

/** Start with a histogram of zeros. Add values to the ends and sums ... */
void qat_board_measure(qat_board_histogram *h, const float *values, size_t count);
/** ... and, when all were measured, the same values to the bins. */
void qat_board_count(qat_board_histogram *h, const float *values, size_t count);

#endif

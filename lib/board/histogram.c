#include "board/histogram.h"

#include <math.h>

void qat_board_measure(qat_board_histogram *h, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double const v = (double)values[i];
        if (!isfinite(v))
            continue;
        h->min = h->n == 0 || v < h->min ? v : h->min;
        h->max = h->n == 0 || v > h->max ? v : h->max;
        h->n++;
        h->sum += v;
        h->sum_squares += v * v;
    }
}

void qat_board_count(qat_board_histogram *h, const float *values, size_t count)
{
    double const width = h->max - h->min, per_bin = width > 0 ? QAT_BOARD_BINS / width : 0;
    for (size_t i = 0; i < count; i++) {
        double const v = (double)values[i];
        if (!isfinite(v))
            continue;
        int const bin = (int)((v - h->min) * per_bin);
        h->counts[bin < QAT_BOARD_BINS ? bin : QAT_BOARD_BINS - 1]++;
    }
}

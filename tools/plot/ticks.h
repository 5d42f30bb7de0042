/** Ticks of plot axes, at round numbers from the least to the largest value. */
#ifndef QAT_PLOT_TICKS_H
#define QAT_PLOT_TICKS_H

#include <stdbool.h>

enum { QAT_TICKS_MAX = 32 };

typedef struct qat_ticks {
    double low, high; /* ends of the axis; both are ticks */
    bool logarithmic;
    int n;
    double at[QAT_TICKS_MAX]; /* rising */
    int digits;               /* decimals in the labels of a linear axis */
} qat_ticks;

/**
 * Make ticks around least..largest (in any order; they may be equal). Linear: multiples of 1, 2 or
 * 5 times a power of ten, four to nine of them. Logarithmic: 1, 2, 5 times powers of ten, or, over
 * many decades, only powers of ten; the numbers must be above 0.
 */
qat_ticks qat_ticks_linear(double least, double largest);
qat_ticks qat_ticks_logarithmic(double least, double largest);

/** The position of x between low (0) and high (1). */
double qat_ticks_position(const qat_ticks *t, double x);

#endif

/** Axes of plots: from the least to the largest number, with ticks at round ones. */
#ifndef QAT_SWEEP_TICKS_H
#define QAT_SWEEP_TICKS_H

#include <stdbool.h>

enum { QAT_TICKS_MAX = 32 };

typedef struct qat_ticks {
    double low, high; /* of the axis: both are ticks */
    bool logarithmic;
    int n;
    double at[QAT_TICKS_MAX]; /* rising */
    int digits;               /* behind the point, of a linear axis's labels */
} qat_ticks;

/**
 * Ticks around least..largest (any order; equal is fine). Linear: multiples of 1, 2 or 5 times a
 * power of ten, four to nine of them. Logarithmic: powers of ten times 1, 2, 5, or over many
 * decades powers of ten alone; numbers that are not above 0 cannot be on it.
 */
qat_ticks qat_ticks_linear(double least, double largest);
qat_ticks qat_ticks_logarithmic(double least, double largest);

/** Where x lies between low (0) and high (1). */
double qat_ticks_position(const qat_ticks *t, double x);

#endif

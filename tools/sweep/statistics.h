/** Statistics of a few numbers, such as accuracies over seeds: mean, deviation, paired t-test. */
#ifndef QAT_SWEEP_STATISTICS_H
#define QAT_SWEEP_STATISTICS_H

/**
 * Mean and sample standard deviation, sqrt(sum (x - mean)^2 / (n - 1)). They are NaN if n is too
 * small: below 1 for the mean, below 2 for the deviation.
 */
typedef struct qat_spread {
    int n;
    double mean, deviation;
} qat_spread;

qat_spread qat_spread_of(const double *x, int n);

/**
 * Paired t-test of the differences d = x - y, H0: their mean is 0.
 *
 *     t = mean(d) / (deviation(d) / sqrt(n)),   p = P(|T| >= |t|), T of n - 1 degrees of freedom
 *
 * If all differences are equal, t is infinite and p = 0; if all are 0, t = 0 and p = 1. For n < 2,
 * t and p are NaN.
 */
typedef struct qat_paired {
    qat_spread difference;
    double t, p;
} qat_paired;

qat_paired qat_paired_test(const double *x, const double *y, int n);

/**
 * The regularized incomplete beta function
 *
 *     I_x(a, b) = 1 / B(a, b) * integral from 0 to x of u^(a-1) (1 - u)^(b-1) du
 *
 * for a, b > 0 and x in 0..1. About 12 digits are correct for a, b up to some thousands.
 */
double qat_incomplete_beta(double a, double b, double x);

/** P(|T| >= |t|) of Student's distribution: I_x(df / 2, 1 / 2) at x = df / (df + t^2); df > 0. */
double qat_t_two_sided(double t, double df);

#endif

/**
 * Mean, deviation and the paired t-test, whose p is an incomplete beta function:
 *
 *     p = I_{df / (df + t^2)}(df / 2, 1 / 2)
 *
 * It is a factor times a continued fraction K = 1 / (1 + d1 / (1 + d2 / (1 + ...))):
 *
 *     I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) * K
 *     d_2m   =  m (b - m) x / ((a + 2m - 1) (a + 2m))
 *     d_2m+1 = -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1))
 *
 * K converges fast for x < (a + 1) / (a + b + 2). Beyond that, I_x(a, b) = 1 - I_1-x(b, a).
 */
#include "tools/sweep/statistics.h"

#include <math.h>
#include <stdbool.h>

qat_spread qat_spread_of(const double *x, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    double const mean = n > 0 ? sum / n : NAN;
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return (qat_spread){n, mean, n > 1 ? sqrt(squares / (n - 1)) : NAN};
}

/** d_k of the continued fraction, k >= 1. */
static double coefficient(double a, double b, double x, int k)
{
    double const m = k / 2;
    if (k % 2)
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
}

/** Replaces 0, so that one can divide by the result. */
static double nonzero(double x)
{
    double const tiny = 1e-300;
    return fabs(x) < tiny ? tiny : x;
}

/**
 * Evaluate K from the front (Lentz): each step multiplies by the ratio of two neighbouring
 * convergents.
 */
static double continued_fraction(double a, double b, double x)
{
    double numerator = 1, denominator = 1 / nonzero(1 + coefficient(a, b, x, 1));
    double k_value = denominator;
    for (int k = 2; k < 10000; k++) {
        double const d = coefficient(a, b, x, k);
        denominator = 1 / nonzero(1 + d * denominator);
        numerator = nonzero(1 + d / numerator);
        k_value *= numerator * denominator;
        if (fabs(numerator * denominator - 1) < 1e-15)
            break;
    }
    return k_value;
}

/** I_x(a, b) for an x for which the fraction converges fast. */
static double lower_part(double a, double b, double x)
{
    double const log_front =
        a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b) - log(a);
    return exp(log_front) * continued_fraction(a, b, x);
}

double qat_incomplete_beta(double a, double b, double x)
{
    if (isnan(x) || x <= 0 || x >= 1)
        return isnan(x) ? NAN : x >= 1;
    bool const far = x > (a + 1) / (a + b + 2);
    return far ? 1 - lower_part(b, a, 1 - x) : lower_part(a, b, x);
}

double qat_t_two_sided(double t, double df)
{
    return isinf(t) ? 0 : qat_incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

/** t of n differences with this mean and deviation. */
static double t_of(qat_spread d)
{
    if (d.n < 2)
        return NAN;
    if (!(d.deviation > 0))
        return d.mean > 0 ? INFINITY : d.mean < 0 ? -INFINITY : 0;
    return d.mean / (d.deviation / sqrt(d.n));
}

qat_paired qat_paired_test(const double *x, const double *y, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] - y[i];
    double const mean = n > 0 ? sum / n : NAN;
    for (int i = 0; i < n; i++)
        squares += (x[i] - y[i] - mean) * (x[i] - y[i] - mean);
    qat_spread const d = {n, mean, n > 1 ? sqrt(squares / (n - 1)) : NAN};
    double const t = t_of(d);
    return (qat_paired){d, t, n > 1 ? qat_t_two_sided(t, n - 1) : NAN};
}

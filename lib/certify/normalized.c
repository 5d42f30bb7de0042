/**
 * Weights that are normalised before they are rounded (docs/arithmetic.md, section 18):
 *
 *     dorefa         |c - n tanh(w) / tanh(m)| <= 1, c odd      S = m / n
 *     weight_norm    |c - (w - mu) / S| <= 1/2                  S = D sigma, with D found anew
 */
#include "certify/group.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static double largest(const cert_group *g)
{
    double most = 0;
    for (size_t i = 0; i < cert_group_size(g); i++)
        most = fmax(most, fabs(cert_group_value(g, i)));
    return most;
}

/** The scale, within so much; where it is too small, 1, and all codes are those of 0. */
static qat_status check_scale(const cert_group *g, double expected, double slack)
{
    bool all_zero = true;
    for (size_t i = 0; i < cert_group_size(g); i++)
        all_zero &= cert_group_code(g, i) == g->t->zero_point;
    if (expected <= (double)FLT_MIN + slack && all_zero && (double)g->scale == 1)
        return QAT_OK;
    return fabs((double)g->scale - expected) <= slack ? QAT_OK : cert_refuse_scale(g, expected);
}

qat_status cert_check_dorefa(const cert_group *g)
{
    double const most = largest(g), n = ldexp(1, cert_weight_bits(g->c, g->w->settings)) - 1;
    qat_status st =
        cert_equal(g->c, g->name, "the zero point", g->t->zero_point, (g->lo + g->hi) / 2);
    if (!st)
        st = check_scale(g, most / n, 2 * CERT_FOLD_SLACK * most / n);
    for (size_t i = 0; !st && most / n >= (double)FLT_MIN && i < cert_group_size(g); i++) {
        double const at = n * tanh(cert_group_value(g, i)) / tanh(most);
        int const c = cert_group_code(g, i) - g->t->zero_point;
        if (abs(c) > n || c % 2 == 0 || fabs(c - at) > 1 + CERT_CODE_SLACK)
            st = cert_refuse_code(g, i, at + g->t->zero_point);
    }
    return st;
}

/** E(x c) - s E(c^2) of normally distributed values on codes -most..most: 0 at the best step s. */
static double gain_of_step(double s, int most)
{
    double gain = 0;
    for (int k = 1; k <= most; k++) {
        double const from = (k - 0.5) * s;
        gain += exp(-from * from / 2) * sqrt(2 / acos(-1)) - s * (2 * k - 1) * erfc(from / sqrt(2));
    }
    return gain;
}

static double normal_step(int most)
{
    double low = 0x1p-10, high = 4;
    while (high - low > 0x1p-40) {
        double const middle = (low + high) / 2;
        if (gain_of_step(middle, most) > 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/** Errors of folded weights are shares of the weights, which may be much larger than sigma. */
qat_status cert_check_weight_norm(const cert_group *g)
{
    double mean = 0, squares = 0;
    double const n = (double)cert_group_size(g), error = 2 * CERT_FOLD_SLACK * largest(g);
    int const most = g->hi - g->t->zero_point;
    for (size_t i = 0; i < cert_group_size(g); i++)
        mean += n > 1 ? cert_group_value(g, i) / n : 0;
    for (size_t i = 0; i < cert_group_size(g); i++)
        squares += (cert_group_value(g, i) - mean) * (cert_group_value(g, i) - mean);
    double const step = n > 1 ? normal_step(most) : 1.0 / most, scale = step * sqrt(squares / n);
    qat_status st =
        cert_equal(g->c, g->name, "the zero point", g->t->zero_point, (g->lo + g->hi) / 2);
    if (!st)
        st = check_scale(g, scale, step * error + 2 * CERT_U * scale);
    for (size_t i = 0; !st && i < cert_group_size(g); i++)
        if (!cert_near_code(cert_group_value(g, i) - mean, (double)g->scale, g->t->zero_point,
                            g->t->zero_point - most, g->hi,
                            CERT_CODE_SLACK + error / (double)g->scale, cert_group_code(g, i)))
            st = cert_refuse_code(
                g, i, (cert_group_value(g, i) - mean) / (double)g->scale + g->t->zero_point);
    return st;
}

/**
 * Weights that are normalised before they are rounded (docs/arithmetic.md, section 18):
 *
 *     dorefa         |c - n tanh(w) / tanh(m)| <= 1, c odd      S = m / n
 *     weight_norm    |c - (w - mu) / S| <= 1/2                  S = D sigma, with D found anew
 *     apot           no other level is nearer                   likewise
 */
#include "certify/group.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 128 }; /* of one sign */

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

/** The levels of apot: sums of one number of each row, or 0; by bits less 2. */
static int levels_of_apot(int bits, int levels[CODES])
{
    static const int powers[][2][3] = {
        {{1}, {0}}, {{4, 2, 1}, {0}}, {{8, 4, 1}, {2}}, {{32, 8, 2}, {16, 4, 1}}};
    const int(*rows)[3] = powers[(bits < 5 ? bits : 5) - 2];
    int n = 0;
    for (int sum = 0; sum < CODES; sum++) {
        bool found = false;
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 4; k++)
                found |= (i < 3 ? rows[0][i] : 0) + (k < 3 ? rows[1][k] : 0) == sum;
        if (found)
            levels[n++] = sum;
    }
    return n;
}

/** The codes from 0 on that weights may have. */
static int levels_of(const cert_group *g, int levels[CODES])
{
    const cert_settings *s = g->w->settings;
    int n = 0;
    if (strcmp(s->weights, "apot") == 0)
        return levels_of_apot(cert_weight_bits(g->c, s), levels);
    for (; n < CODES && n <= g->hi - (g->lo + g->hi) / 2; n++)
        levels[n] = n;
    return n;
}

/** E(x c) - s E(c^2) of normally distributed values on codes of +-levels: 0 at the best step s. */
static double gain_of_step(double s, const int *levels, int n)
{
    double gain = 0;
    for (int k = 1; k < n; k++) {
        double const low = levels[k - 1], high = levels[k], from = (low + high) / 2 * s;
        gain += (high - low) * exp(-from * from / 2) * sqrt(2 / acos(-1)) -
                s * (high * high - low * low) * erfc(from / sqrt(2));
    }
    return gain;
}

static double normal_step(const int *levels, int n)
{
    double low = 0x1p-10, high = 4;
    while (high - low > 0x1p-40) {
        double const middle = (low + high) / 2;
        if (gain_of_step(middle, levels, n) > 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/** Is c a level, and none nearer to `at`? */
static bool is_nearest(double at, int c, double slack, const int *levels, int n)
{
    bool is_level = false;
    double least = INFINITY;
    for (int k = 0; k < n; k++) {
        is_level |= abs(c) == levels[k];
        least = fmin(least, fabs(fabs(at) - levels[k]));
    }
    return is_level && fabs(at - c) <= least + 2 * slack;
}

/** Errors of folded weights are shares of the weights, which may be much larger than sigma. */
qat_status cert_check_weight_norm(const cert_group *g)
{
    double mean = 0, squares = 0;
    double const n = (double)cert_group_size(g), error = 2 * CERT_FOLD_SLACK * largest(g);
    int levels[CODES], n_levels = levels_of(g, levels), most = levels[n_levels - 1];
    for (size_t i = 0; i < cert_group_size(g); i++)
        mean += n > 1 ? cert_group_value(g, i) / n : 0;
    for (size_t i = 0; i < cert_group_size(g); i++)
        squares += (cert_group_value(g, i) - mean) * (cert_group_value(g, i) - mean);
    double const step = n > 1 ? normal_step(levels, n_levels) : 1.0 / most,
                 scale = step * sqrt(squares / n);
    qat_status st =
        cert_equal(g->c, g->name, "the zero point", g->t->zero_point, (g->lo + g->hi) / 2);
    if (!st)
        st = check_scale(g, scale, step * error + 2 * CERT_U * scale);
    for (size_t i = 0; !st && i < cert_group_size(g); i++) {
        double const at = (cert_group_value(g, i) - mean) / (double)g->scale;
        if (!is_nearest(at, cert_group_code(g, i) - g->t->zero_point,
                        CERT_CODE_SLACK + error / (double)g->scale, levels, n_levels))
            st = cert_refuse_code(g, i, at + g->t->zero_point);
    }
    return st;
}

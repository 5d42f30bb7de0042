/**
 * Computes scales and zero points from ranges (docs/arithmetic.md, sections 1 and 16), in float64
 * and without rounding. Also computes how far the converter's float32 may be from them.
 *
 *     S = (max - min) / n      n = hi - lo. Two roundings: 2 U, and the errors of min and max
 *     z = lo - min / S         with the file's own S. |min / S| <= n: n (slack of min + 3 U), and
 *                              6 U for the two possible orders of the roundings
 */
#include "certify/certify.h"

#include <float.h>
#include <math.h>
#include <string.h>

void cert_codes(qat_layout layout, int bits, bool weights, int32_t *lo, int32_t *hi)
{
    int32_t const count = (int32_t)1 << bits;
    int32_t const first = layout == QAT_LAYOUT_INT8 ? -count / 2 : 0;
    *lo = first + (weights ? 1 : 0);
    *hi = first + count - 1;
}

void cert_codes_of(const qi_tensor *t, int32_t *lo, int32_t *hi)
{
    cert_codes(t->type == QI_U8 ? QAT_LAYOUT_UINT8 : QAT_LAYOUT_INT8, t->bits, false, lo, hi);
}

/** The largest |value| that a range may have, so that max - min is finite. */
static double limited(double x)
{
    double const most = (double)FLT_MAX / 4;
    return x > most ? most : x < -most ? -most : x;
}

/** Scales that are learned, or powers of two, are kept between these. */
static double scale_within(double scale)
{
    return fmin(fmax(scale, 0x1p-100), 0x1p100);
}

/** The code of 0 of a symmetric grid, which may have one code more below it than above. */
static int32_t middle_of(const cert_grid *g)
{
    return (g->lo + g->hi + 1) / 2;
}

/** [min, max], which holds 0; of a symmetric one the larger end counts for both. */
static cert_grid grid_of_range(double min, double max, const cert_grid *kind)
{
    cert_grid g = *kind;
    double const bound = limited(fmax(-min, max));
    g.lower = g.symmetric ? -bound : limited(fmin(min, 0));
    g.scale = ((g.symmetric ? bound : limited(fmax(max, 0))) - g.lower) / (g.hi - g.lo);
    g.slack += 3 * CERT_U;
    g.empty = g.scale < (double)FLT_MIN;
    if (g.power_of_two && !g.empty)
        g.scale = scale_within(g.scale);
    g.lowest = g.symmetric && middle_of(&g) == 0 ? 0 : g.lo;
    return g;
}

/** 16-bit codes: zero point 0, and the larger end is the highest code. */
static cert_grid grid_of_wide(double min, double max, const cert_grid *kind)
{
    cert_grid g = *kind;
    g.symmetric = true;
    g.scale = limited(fmax(-min, max)) / g.hi;
    g.lower = g.lo * g.scale;
    g.slack += 2 * CERT_U;
    g.empty = g.scale < (double)FLT_MIN;
    return g;
}

/** A learned scale and lower end. */
static cert_grid grid_of_scale(double scale, double lower, const cert_grid *kind)
{
    cert_grid g = *kind;
    g.scale = scale_within(scale);
    g.slack += 2 * CERT_U;
    g.lower = lower;
    return g;
}

/* ------------------------------------------------------------------ quantizers */

static double steps_of(const cert_grid *g)
{
    return g->symmetric ? g->hi - middle_of(g) : g->hi - g->lo;
}

static int bits_of(int32_t lo, int32_t hi)
{
    int bits = 1;
    while ((1 << bits) <= hi - lo)
        bits++;
    return bits;
}

/** tqt: the ends are 2^l and -2^k; an end that was never seen is 0. */
static cert_grid grid_of_tqt(const cert_seen *seen, const cert_grid *kind)
{
    cert_grid from = *kind;
    double const codes = exp2(bits_of(kind->lo, kind->hi) - (kind->symmetric ? 1 : 0));
    double const below = middle_of(kind) - kind->lo; /* of a symmetric one: -t is its lowest code */
    double const stretch = codes / (kind->symmetric ? below : steps_of(kind));
    double up = seen->max, down = kind->symmetric ? 0 : -seen->min;
    if (seen->min == 0 && seen->max == 0)
        return grid_of_range(0, 0, kind);
    if (kind->symmetric)
        up = fmax(up, -seen->min);
    if (seen->learned) {
        up = up > 0 ? exp2((double)seen->learned[0]) : 0;
        down = down > 0 ? exp2((double)seen->learned[1]) : 0;
    } else { /* log2 of it becomes a float32 below 128: 2^l moves by ln 2 * 128 U */
        up *= stretch;
        down *= stretch;
        from.slack += 96 * CERT_U;
    }
    return grid_of_scale((up + down) / codes, -down, &from);
}

static cert_grid grid_of_lsq(const cert_seen *seen, const cert_grid *kind)
{
    double const steps = steps_of(kind);
    bool const two_ends = !kind->symmetric && seen->min < 0;
    if (seen->learned)
        return grid_of_scale((double)seen->learned[0],
                             kind->symmetric ? 0 : (double)seen->learned[1], kind);
    double const scale =
        two_ends ? (seen->max - seen->min) / steps : 2 * seen->mean_abs / sqrt(steps);
    return grid_of_scale(scale > 0 ? fmin(fmax(scale, 0x1p-60), 0x1p60) : 1,
                         kind->symmetric ? 0 : fmin(seen->min, 0), kind);
}

/** pact: one end, of both signs where values of both were seen. */
static cert_grid grid_of_pact(const cert_seen *seen, const cert_grid *kind)
{
    double const end = seen->learned ? (double)seen->learned[0]
                                     : fmin(fmax(fmax(seen->max, -seen->min), 0x1p-60), 0x1p60);
    double const lower = seen->min < 0 ? -end : 0;
    if (seen->min == 0 && seen->max == 0)
        return grid_of_range(0, 0, kind);
    return grid_of_scale((end - lower) / steps_of(kind), lower, kind);
}

static bool is_any(const char *name, const char *a, const char *b)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

int cert_learned_values(const char *name, bool symmetric)
{
    if (strcmp(name, "pact") == 0)
        return symmetric ? 0 : 1;
    if (!is_any(name, "tqt", "tqt_full") && !is_any(name, "lsq", "lsq_full"))
        return 0;
    return symmetric ? 1 : 2;
}

cert_grid cert_grid_of_quantizer(const char *name, cert_seen seen, bool symmetric,
                                 bool power_of_two, int32_t lo, int32_t hi, double slack)
{
    cert_grid const kind = {
        .symmetric = symmetric, .power_of_two = power_of_two, .slack = slack, .lo = lo, .hi = hi};
    if (strcmp(name, "ema") == 0 && bits_of(lo, hi) == QAT_WIDE_BITS)
        return grid_of_wide(seen.min, seen.max, &kind);
    if (strcmp(name, "ema") == 0)
        return grid_of_range(seen.min, seen.max, &kind);
    if (is_any(name, "tqt", "tqt_full"))
        return grid_of_tqt(&seen, &kind);
    if (is_any(name, "lsq", "lsq_full"))
        return grid_of_lsq(&seen, &kind);
    if (strcmp(name, "pact") == 0)
        return grid_of_pact(&seen, &kind);
    return (cert_grid){.unknown = true, .lo = lo, .hi = hi};
}

/* ------------------------------------------------------------------ the file's */

static bool right_scale(const cert_grid *g, double scale)
{
    int exponent;
    if (g->empty)
        return scale == 1;
    if (!g->power_of_two)
        return fabs(scale - g->scale) <= g->slack * g->scale;
    return frexp(scale, &exponent) == 0.5 && scale >= g->scale * (1 - g->slack) &&
           scale < 2 * g->scale * (1 + g->slack);
}

/** The zero point before it is rounded, by the file's own scale. */
static double real_zero(const cert_grid *g, double scale)
{
    if (g->empty)
        return g->lowest;
    return g->symmetric ? middle_of(g) : fmin(fmax(g->lo - g->lower / scale, g->lo), g->hi);
}

qat_status cert_check_grid(const cert *c, const char *name, const cert_grid *g, float scale,
                           int32_t zero_point)
{
    if (g->unknown)
        return QAT_OK;
    if (!right_scale(g, (double)scale))
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: the file's scale is %.9g, but the checkpoint gives %.9g%s", name,
                        (double)scale, g->empty ? 1 : g->scale,
                        g->power_of_two ? " or the power of two above it" : "");
    double const zero = real_zero(g, (double)scale);
    double const slack = g->empty || g->symmetric ? 0 : (g->hi - g->lo) * (g->slack + 6 * CERT_U);
    if (fabs(zero_point - zero) <= 0.5 * !(g->empty || g->symmetric) + slack)
        return QAT_OK;
    return qat_fail(
        c->err, QAT_ERR_MISMATCH,
        "%s: the file's zero point is %d, but the checkpoint gives %.4f before rounding", name,
        (int)zero_point, zero);
}

bool cert_near_code(double value, double scale, int32_t zero_point, int32_t lo, int32_t hi,
                    double slack, int32_t code)
{
    double const at = fmin(fmax(value / scale + zero_point, lo), hi);
    return !isnan(value) && code >= lo && code <= hi && fabs(code - at) <= 0.5 + slack;
}

/**
 * Loops over values that quantizers share: the default observer, and the default gradients.
 *
 *     u = x / s      below: u < lo - Z - margin      above: u > hi - Z + margin      else inside
 *     dx += inside ? g : 0
 *     sums: inside += g (y - x) / s      below += g      above += g
 *
 * With a margin of 0 the ends themselves are outside (LSQ). With 1/2, values that round to a code
 * are inside (TQT). Sums are taken in double, in lanes that do not depend on the processor.
 */
#include "autograd/loops/real.h"
#include "fakequant/quantizer.h"
#include "fakequant/range.h"

#include <math.h>

enum { LANES = 8 };

/* ------------------------------------------------------------------ observing */

enum { KEPT_MIN, KEPT_MAX, KEPT_ABS, KEPT_COUNT, KEPT };

static void clear(double *kept)
{
    kept[KEPT_MIN] = INFINITY;
    kept[KEPT_MAX] = -INFINITY;
    kept[KEPT_ABS] = kept[KEPT_COUNT] = 0;
}

QAT_VECTOR static void add_absolute(const float *x, size_t n, double lanes[LANES])
{
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)fabsf(x[i + l]);
}

static void join(double *kept, const double *more)
{
    kept[KEPT_MIN] = more[KEPT_MIN] < kept[KEPT_MIN] ? more[KEPT_MIN] : kept[KEPT_MIN];
    kept[KEPT_MAX] = more[KEPT_MAX] > kept[KEPT_MAX] ? more[KEPT_MAX] : kept[KEPT_MAX];
    kept[KEPT_ABS] += more[KEPT_ABS];
    kept[KEPT_COUNT] += more[KEPT_COUNT];
}

static void observe(const float *x, size_t n, double *kept)
{
    double lanes[LANES] = {0}, sum = 0;
    qat_interval const all = qat_interval_of(x, n);
    add_absolute(x, n, lanes);
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    for (size_t i = n - n % LANES; i < n; i++)
        sum += (double)fabsf(x[i]);
    double const more[KEPT] = {[KEPT_MIN] = (double)all.min,
                               [KEPT_MAX] = (double)all.max,
                               [KEPT_ABS] = sum,
                               [KEPT_COUNT] = (double)n};
    join(kept, more);
}

static qat_statistics conclude(const double *kept)
{
    double const n = kept[KEPT_COUNT];
    return (qat_statistics){.min = (float)kept[KEPT_MIN],
                            .max = (float)kept[KEPT_MAX],
                            .mean_abs = n > 0 ? (float)(kept[KEPT_ABS] / n) : 0};
}

const qat_observer qat_observer_min_max = {
    .kept = KEPT, .clear = clear, .observe = observe, .join = join, .conclude = conclude};

/* ------------------------------------------------------------------ gradients */

/** x is inside where low <= x / s < high. */
struct bounds {
    float scale, low, high;
};

static struct bounds bounds_of(const qat_qparams *p, float margin)
{
    float const lo = (float)(p->lo - p->zero_point), hi = (float)(p->hi - p->zero_point);
    if (qat_is_empty_range(p)) /* it lets everything through */
        return (struct bounds){p->scale, -INFINITY, INFINITY};
    return (struct bounds){p->scale, margin > 0 ? lo - margin : nextafterf(lo, INFINITY),
                           hi + margin};
}

QAT_VECTOR static void pass_inside(struct bounds b, const float *x, const float *grad, size_t n,
                                   float *dx)
{
    for (size_t i = 0; i < n; i++) {
        float const u = x[i] / b.scale, g = grad[i];
        float const above_low = u >= b.low ? g : 0;
        dx[i] += u < b.high ? above_low : 0;
    }
}

/* Terms of the sums, a loop apart from the sums: gcc vectorizes neither where they are one. */
enum { CHUNK = 512 };
struct terms {
    float inside[CHUNK], below[CHUNK], above[CHUNK];
};

QAT_VECTOR static void find_terms(struct bounds b, const float *restrict x, const float *restrict y,
                                  const float *restrict grad, size_t n, struct terms *restrict t)
{
    for (size_t i = 0; i < n; i++) {
        float const g = grad[i], u = x[i] / b.scale;
        float const error = g * ((y[i] - x[i]) / b.scale);
        float const within = u < b.high ? error : 0;
        t->inside[i] = u >= b.low ? within : 0;
        t->below[i] = u < b.low ? g : 0;
        t->above[i] = u >= b.high ? g : 0;
    }
}

QAT_VECTOR static void add_terms(const float *restrict t, size_t n, double lanes[restrict LANES])
{
    size_t const whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)t[i + l];
    for (size_t i = whole; i < n; i++)
        lanes[i - whole] += (double)t[i];
}

void qat_range_gradient(const qat_qparams *p, float margin, const float *x, const float *y,
                        const float *grad, size_t n, float *dx, qat_range_sums *sums)
{
    struct bounds const b = bounds_of(p, margin);
    double inside[LANES] = {0}, below[LANES] = {0}, above[LANES] = {0};
    struct terms t;
    if (dx)
        pass_inside(b, x, grad, n, dx);
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t const here = n - at < CHUNK ? n - at : CHUNK;
        find_terms(b, x + at, y + at, grad + at, here, &t);
        add_terms(t.inside, here, inside);
        add_terms(t.below, here, below);
        add_terms(t.above, here, above);
    }
    for (size_t l = 0; l < LANES; l++) {
        sums->inside += inside[l];
        sums->below += below[l];
        sums->above += above[l];
    }
}

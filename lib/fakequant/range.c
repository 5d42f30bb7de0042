#include "fakequant/range.h"
#include "autograd/loops/real.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Bounds are limited to this, so that max - min stays finite. */
static const float WIDEST = FLT_MAX / 4;

void qat_code_range(qat_layout layout, int bits, bool weights, int32_t *lo, int32_t *hi)
{
    int32_t const half = (int32_t)1 << (bits - 1);
    assert(bits >= 2 && bits <= (weights ? 8 : QAT_WIDE_BITS));
    if (layout == QAT_LAYOUT_UINT8) {
        *lo = weights ? 1 : 0;
        *hi = 2 * half - 1;
    } else {
        *lo = weights ? 1 - half : -half;
        *hi = half - 1;
    }
}

void qat_weight_code_range(qat_layout layout, int bits, bool all_codes, int32_t *lo, int32_t *hi)
{
    qat_code_range(layout, bits, !all_codes || bits == 8, lo, hi);
}

/* ------------------------------------------------------------------ intervals */

enum {
    LANES = 64
}; /* more than gcc unrolls, because it does not vectorize an unrolled loop of comparisons */

/**
 * Lane l takes the values at l, l + 64, ... NaNs compare false and change nothing. Then the halves
 * of the lanes are joined until lane 0 has the result.
 */
QAT_VECTOR static void interval_lanes(const float *restrict x, size_t n, float *restrict lo,
                                      float *restrict hi)
{
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            lo[l] = x[i + l] < lo[l] ? x[i + l] : lo[l];
            hi[l] = x[i + l] > hi[l] ? x[i + l] : hi[l];
        }
    for (size_t half = LANES / 2; half; half /= 2)
        for (size_t l = 0; l < half; l++) {
            lo[l] = lo[l + half] < lo[l] ? lo[l + half] : lo[l];
            hi[l] = hi[l + half] > hi[l] ? hi[l + half] : hi[l];
        }
}

qat_interval qat_interval_of(const float *x, size_t n)
{
    float lo[LANES], hi[LANES];
    for (int l = 0; l < LANES; l++) {
        lo[l] = INFINITY;
        hi[l] = -INFINITY;
    }
    interval_lanes(x, n, lo, hi);
    qat_interval all = {lo[0], hi[0]};
    for (size_t i = n - n % LANES; i < n; i++)
        all = qat_interval_join(all, (qat_interval){x[i], x[i]});
    return all;
}

qat_interval qat_interval_join(qat_interval a, qat_interval b)
{
    return (qat_interval){b.min < a.min ? b.min : a.min, b.max > a.max ? b.max : a.max};
}

qat_interval qat_interval_widen(qat_interval a)
{
    float const min = a.min < 0 ? a.min : 0, max = a.max > 0 ? a.max : 0;
    return (qat_interval){min < -WIDEST ? -WIDEST : min, max > WIDEST ? WIDEST : max};
}

/* ------------------------------------------------------------------ parameters */

/* Only 0 can be represented: scale 1, every value gives the code of 0. */
static qat_qparams empty_range(int32_t zero_point, int32_t lo, int32_t hi)
{
    return (qat_qparams){
        .scale = 1, .zero_point = zero_point, .lo = lo, .hi = hi, .min = 0, .max = 0, .inv = 1};
}

/* TensorFlow's Nudge, on its own codes lo..hi (0 or 1 .. 2^b - 1). */
static qat_qparams nudge(float min, float max, int32_t lo, int32_t hi)
{
    float const steps = (float)(hi - lo);
    float const scale = (max - min) / steps;
    /*
     * The range is so narrow that the scale would be denormal and inv would overflow: treat it as
     * empty.
     */
    if (!(scale >= FLT_MIN))
        return empty_range(lo, lo, hi);
    float const z = (float)lo - min / scale;
    float const nudged = z < (float)lo ? (float)lo : z > (float)hi ? (float)hi : roundf(z);
    return (qat_qparams){.scale = scale,
                         .zero_point = (int32_t)nudged,
                         .lo = lo,
                         .hi = hi,
                         .min = ((float)lo - nudged) * scale,
                         .max = ((float)hi - nudged) * scale,
                         .inv = steps / (max - min)};
}

static qat_qparams shift_codes(qat_qparams p, int32_t by)
{
    p.zero_point += by;
    p.lo += by;
    p.hi += by;
    return p;
}

/*
 * Signed codes are shifted unsigned codes. So both layouts fake-quantize to the same floats, and a
 * zero_point between two codes is rounded in the same way.
 */
qat_qparams qat_choose_qparams(float min, float max, int32_t lo, int32_t hi, bool widen)
{
    int32_t const by = lo < 0 ? lo : 0;
    if (widen) {
        qat_interval const wide = qat_interval_widen((qat_interval){min, max});
        min = wide.min;
        max = wide.max;
    }
    assert(min <= max && lo < hi);
    return shift_codes(nudge(min, max, lo - by, hi - by), by);
}

/* TensorFlow's narrow range 1..2 hi + 1 on [-max_abs, max_abs], shifted by hi + 1. */
qat_qparams qat_choose_symmetric(float max_abs, int32_t hi)
{
    float const bound = max_abs > WIDEST ? WIDEST : max_abs;
    assert(hi >= 1);
    qat_qparams const p = shift_codes(nudge(-bound, bound, 1, 2 * hi + 1), -(hi + 1));
    return qat_is_empty_range(&p) ? empty_range(0, -hi, hi) : p;
}

qat_qparams qat_given_qparams(float scale, int32_t zero_point, int32_t lo, int32_t hi)
{
    float const min = (float)(lo - zero_point) * scale, max = (float)(hi - zero_point) * scale;
    assert(scale > 0 && lo <= zero_point && zero_point <= hi);
    return (qat_qparams){.scale = scale,
                         .zero_point = zero_point,
                         .lo = lo,
                         .hi = hi,
                         .min = min,
                         .max = max,
                         .inv = (float)(hi - lo) / (max - min)};
}

/* Codes -2^15 .. 2^15 - 1; the range need not reach the lowest. */
static qat_qparams wide_qparams(float largest)
{
    float const bound = largest > WIDEST ? WIDEST : largest, scale = bound / INT16_MAX;
    if (!(scale >= FLT_MIN))
        return empty_range(0, INT16_MIN, INT16_MAX);
    return qat_given_qparams(scale, 0, INT16_MIN, INT16_MAX);
}

static float larger_end(float min, float max)
{
    return -min > max ? -min : max;
}

qat_qparams qat_activation_qparams(float min, float max, qat_layout layout, int bits)
{
    int32_t lo, hi;
    if (bits == QAT_WIDE_BITS)
        return wide_qparams(larger_end(min, max));
    qat_code_range(layout, bits, false, &lo, &hi);
    return qat_choose_qparams(min, max, lo, hi, true);
}

qat_qparams qat_stored_qparams(qi_type type, int bits, float scale, int32_t zero_point)
{
    int32_t lo, hi;
    qat_code_range(type == QI_U8 ? QAT_LAYOUT_UINT8 : QAT_LAYOUT_INT8, bits, false, &lo, &hi);
    return qat_given_qparams(scale, zero_point, lo, hi);
}

qat_qparams qat_fixed_qparams(float min, float max, qat_layout layout, int bits)
{
    int32_t lo, hi;
    qat_code_range(layout, bits, false, &lo, &hi);
    if (bits == QAT_WIDE_BITS)
        return qat_given_qparams(ldexpf(larger_end(min, max), 1 - bits), 0, lo, hi);
    float const scale = ldexpf(max - min, -bits);
    return qat_given_qparams(scale, lo - (int32_t)(min / scale), lo, hi);
}

/* ------------------------------------------------------------------ values and codes */

/* The steps from min to 0, called qz in the formula. */
static float zero_steps(const qat_qparams *p)
{
    return floorf(-p->min * p->inv + 0.5f);
}

static inline float clamped(const qat_qparams *p, float x)
{
    return x < p->min ? p->min : x > p->max ? p->max : x;
}

/*
 * floor() for |v| < 2^31: truncate, and subtract 1 if that went up. Unlike floorf, it vectorizes
 * with SSE2.
 */
static inline float floor_small(float v)
{
    float const t = (float)(int32_t)v;
    return t > v ? t - 1 : t;
}

static int32_t code_of_steps(const qat_qparams *p, float steps)
{
    int32_t const q = (int32_t)floorf(steps) + p->zero_point;
    return q < p->lo ? p->lo : q > p->hi ? p->hi : q;
}

int32_t qat_code(const qat_qparams *p, float x)
{
    if (isnan(x))
        return p->zero_point;
    return code_of_steps(p, (clamped(p, x) - p->min) / p->scale - zero_steps(p) + (0.5f + p->tie));
}

int32_t qat_code_per_channel(const qat_qparams *p, float x)
{
    if (isnan(x))
        return p->zero_point;
    return code_of_steps(p, (clamped(p, x) - p->min) * p->inv - zero_steps(p) + 0.5f);
}

float qat_real_of(const qat_qparams *p, int32_t code)
{
    return p->scale * (float)(code - p->zero_point);
}

/* A NaN is replaced by min before the integer conversion and put back after it. */
QAT_VECTOR static void fake_quant_values(const qat_qparams *p, const float *x, float *y, size_t n)
{
    qat_qparams const q = *p; /* a copy, because the compiler must assume that y may alias p */
    float const qz = zero_steps(p), half = 0.5f + p->tie;
    for (size_t i = 0; i < n; i++) {
        float const v = x[i];
        float const inside = clamped(&q, v == v ? v : q.min);
        float const steps = floor_small((inside - q.min) / q.scale - qz + half);
        y[i] = v == v ? steps * q.scale : v;
    }
}

void qat_fake_quant_values(const qat_qparams *p, const float *x, float *y, size_t n)
{
    fake_quant_values(p, x, y, n);
}

QAT_VECTOR static void fake_quant_values_per_channel(const qat_qparams *p, const float *x, float *y,
                                                     size_t n)
{
    qat_qparams const q = *p;
    float const qz = zero_steps(p);
    for (size_t i = 0; i < n; i++) {
        float const v = x[i];
        float const inside = clamped(&q, v == v ? v : q.min);
        float const steps = floor_small((inside - q.min) * q.inv - qz + 0.5f);
        y[i] = v == v ? steps * q.scale : v;
    }
}

void qat_fake_quant_values_per_channel(const qat_qparams *p, const float *x, float *y, size_t n)
{
    fake_quant_values_per_channel(p, x, y, n);
}

QAT_VECTOR static void codes_of_values(const float *restrict x, float scale, int32_t zero_point,
                                       size_t n, uint8_t *restrict codes)
{
    for (size_t i = 0; i < n; i++) {
        float const steps = x[i] / scale;
        codes[i] = (uint8_t)((int32_t)(steps + (steps < 0 ? -0.5f : 0.5f)) + zero_point);
    }
}

void qat_codes_of_values(const qat_qparams *p, const float *x, size_t n, uint8_t *codes)
{
    codes_of_values(x, p->scale, p->zero_point, n, codes);
}

bool qat_is_empty_range(const qat_qparams *p)
{
    return p->min == p->max;
}

QAT_VECTOR static void fake_quant_gradient(const qat_qparams *p, const float *x, const float *grad,
                                           float *dx, size_t n)
{
    bool const empty = qat_is_empty_range(p);
    float const min = empty ? -INFINITY : p->min, max = empty ? INFINITY : p->max;
    for (size_t i = 0; i < n; i++) {
        float const v = x[i], g = grad[i]; /* read in any case, so that the loop has no branches */
        float const above = v >= min ? g : 0;
        dx[i] += v <= max ? above : 0;
    }
}

void qat_fake_quant_gradient(const qat_qparams *p, const float *x, const float *grad, float *dx,
                             size_t n)
{
    fake_quant_gradient(p, x, grad, dx, n);
}

QAT_VECTOR static void fake_quant_mask(const qat_qparams *p, const float *restrict x,
                                       float *restrict grad, size_t n)
{
    bool const empty = qat_is_empty_range(p);
    float const min = empty ? -INFINITY : p->min, max = empty ? INFINITY : p->max;
    for (size_t i = 0; i < n; i++) {
        float const v = x[i], g = grad[i], above = v >= min ? g : 0;
        grad[i] = v <= max ? above : 0;
    }
}

void qat_fake_quant_mask(const qat_qparams *p, const float *restrict x, float *restrict grad,
                         size_t n)
{
    fake_quant_mask(p, x, grad, n);
}

void qat_fake_quant_range_gradient(const qat_qparams *p, const float *x, const float *grad,
                                   size_t n, float *dmin, float *dmax)
{
    *dmin = *dmax = 0;
    for (size_t i = 0; i < n && !qat_is_empty_range(p); i++) {
        if (x[i] < p->min)
            *dmin += grad[i];
        if (x[i] > p->max)
            *dmax += grad[i];
    }
}

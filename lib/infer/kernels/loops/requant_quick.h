/**
 * Requantization where accumulators are below 2^30 and the multiplier is below one half, which is
 * the usual case: the same bytes as qi_requant_code, in fewer instructions.
 *
 * With |acc| < 2^30 the number 2 acc fits, and SQRDMULH is the rounded high word of a product:
 *
 *   x = floor((acc mult + 2^30) / 2^31) = floor((2 acc mult + 2^31) / 2^32)        |x| <= |acc|
 *
 * For a right shift n of 1..31 the division by 2^n, ties away from zero, is
 *
 *   y = x - (x < 0),   ((y >> (n - 1)) + 1) >> 1  =  floor((y + 2^(n-1)) / 2^n)
 *
 * A positive tie x = (k + 1/2) 2^n gives k + 1; a negative one, x = -(k + 1/2) 2^n, gives
 * floor(-k - 2^-n) = -k - 1. Other numbers are at least 2^-n away from a tie, so the 1 that is
 * subtracted does not matter. n - 1 is ~shift. The result is at most 2^29, so that the zero_point
 * can be added to it.
 */
#ifndef QK_REQUANT_QUICK_H
#define QK_REQUANT_QUICK_H

#include "infer/kernels/loops/arm_dsp.h"
#include "infer/kernels/parts/requant.h"

/** One channel's numbers, and the output's. */
typedef struct qk_quick {
    int32_t twice_bias, mult, right; /* right: n - 1 */
    int32_t zero_point, lo, hi;
} qk_quick;

/** Is the quick way the right one for channel o? */
QK_HOT int qk_is_quick(const qi_requant *r, int32_t o)
{
    return r->is_quick && qi_requant_shift(r, o) < 0;
}

QK_HOT qk_quick qk_quick_of(const qi_requant *r, int32_t o)
{
    qk_quick q;
    q.twice_bias = (int32_t)(2 * (uint32_t)r->bias[o]);
    q.mult = r->mult[o * r->mult_step];
    q.right = ~qi_requant_shift(r, o);
    q.zero_point = r->zero_point;
    q.lo = r->lo;
    q.hi = r->hi;
    return q;
}

/** The value for a sum of products, with the zero_point. */
QK_HOT int32_t qk_quick_value(const qk_quick *q, int32_t sum)
{
    int32_t const x = qk_high_product(2 * sum + q->twice_bias, q->mult);
    return ((((x + (x >> 31)) >> q->right) + 1) >> 1) + q->zero_point;
}

/**
 * Has channel o of a layer with QI_ROUND_DOUBLE a multiplier below one half? Then the value is
 * at most 2^30, and the zero_point can be added to it.
 */
QK_HOT int qk_is_small_double(const qi_requant *r, int32_t o)
{
    int32_t const exponent = qi_requant_shift(r, o);
    return QK_DOUBLE && r->rounding == QI_ROUND_DOUBLE && exponent < 0 && exponent >= -31;
}

/**
 * The magnitude of such a channel's value for an accumulator of magnitude a, with m = -exponent,
 * above 0. It is that of qi_round_fraction:
 *
 *   floor((high + carry + 2^(20+m)) / 2^(21+m))
 *       = floor((floor((high + carry) / 2^21) + 2^(m-1)) / 2^m)
 *
 * because 2^(20+m) is a multiple of 2^21.
 */
QK_APART uint32_t qk_small_double_exact(const int32_t *mult, int32_t m, uint32_t a)
{
    uint64_t const low = (uint64_t)a * (uint32_t)mult[0];
    uint64_t const high = (uint64_t)a * (uint32_t)mult[1] + (low >> 32);
    uint32_t const top = (uint32_t)(high >> 21), rest = (uint32_t)high & 0x1fffff;
    uint32_t const half = top ? UINT32_C(0x80000000) >> qi_leading_zeros(top) : 0;
    uint32_t const carry = (uint32_t)low + half < half;
    return (top + ((rest + carry) >> 21) + (UINT32_C(1) << (m - 1))) >> m;
}

/** Such a channel's numbers, and the output's. upper: the first 32 of the significand's 53 bits. */
typedef struct qk_small_double {
    const int32_t *mult;
    uint32_t upper;
    int32_t m; /* -exponent */
    int32_t zero_point, lo, hi;
} qk_small_double;

QK_HOT qk_small_double qk_small_double_of(const qi_requant *r, int32_t o)
{
    qk_small_double d;
    d.mult = r->mult + 2 * o * r->mult_step;
    d.upper = (uint32_t)d.mult[1] << 11 | (uint32_t)d.mult[0] >> 21;
    d.m = -qi_requant_shift(r, o);
    d.zero_point = r->zero_point;
    d.lo = r->lo;
    d.hi = r->hi;
    return d;
}

/**
 * The code of such a channel for an accumulator. Mostly the upper bits decide it: the lower ones
 * add less than 1/2 to a product of at most 2^31, and the rounding to 53 bits less than 2^-21. So
 * the floor of the product is that of the upper bits, or 1 more, which changes the rounded value
 * only if all m bits below it are ones.
 */
QK_HOT uint8_t qk_small_double_code(const qk_small_double *d, int32_t acc)
{
    uint32_t const sign = (uint32_t)(acc >> 31), a = ((uint32_t)acc ^ sign) - sign;
    uint32_t const half = UINT32_C(1) << (d->m - 1);
    uint32_t const product = qk_unsigned_high_product(a, d->upper) + half;
    uint32_t size = product >> d->m;
    if (!((product + 1) & (2 * half - 1)))
        size = qk_small_double_exact(d->mult, d->m, a);
    int32_t const value = (int32_t)((size ^ sign) - sign);
    return (uint8_t)qi_clamp(value + d->zero_point, d->lo, d->hi);
}

/** Clamps to all codes of a type are one instruction. */
typedef enum qk_clamping { QK_CLAMP_NONE, QK_CLAMP_S8, QK_CLAMP_U8, QK_CLAMP_ANY } qk_clamping;

QK_HOT qk_clamping qk_clamping_of(const qi_requant *r)
{
    return r->lo == INT8_MIN && r->hi == INT8_MAX ? QK_CLAMP_S8
           : r->lo == 0 && r->hi == UINT8_MAX     ? QK_CLAMP_U8
                                                  : QK_CLAMP_ANY;
}

/** The code for a sum of products. */
QK_HOT uint8_t qk_quick_code(const qk_quick *q, qk_clamping clamping, int32_t sum)
{
    int32_t const value = qk_quick_value(q, sum);
    return (uint8_t)(clamping == QK_CLAMP_S8   ? qk_limit_s8(value)
                     : clamping == QK_CLAMP_U8 ? qk_limit_u8(value)
                                               : qi_clamp(value, q->lo, q->hi));
}

/** The code of channel o for a sum of products, if there are few of them. */
QK_HOT uint8_t qk_one_code(const qi_requant *r, int32_t o, int32_t sum)
{
    if (qk_is_small_double(r, o)) {
        qk_small_double const d = qk_small_double_of(r, o);
        return qk_small_double_code(&d, qi_requant_accumulator(r, o, sum));
    }
    if (!qk_is_quick(r, o))
        return (uint8_t)qi_requant_code(r, o, sum);
    qk_quick const q = qk_quick_of(r, o);
    return qk_quick_code(&q, QK_CLAMP_ANY, sum);
}

/** The codes of n channels from o on. */
QK_APART void qk_few_codes(const qi_requant *r, int32_t o, int32_t n, const int32_t *sums,
                           uint8_t *y)
{
    if (!r->mult_step && !r->shift_step && !(QK_FRACTION && r->fraction) &&
        qk_is_small_double(r, o)) {
        qk_small_double const d = qk_small_double_of(r, o);
        const int32_t *bias = r->bias + o;
        for (int32_t i = 0; i < n; i++)
            y[i] = qk_small_double_code(&d, sums[i] + bias[i]);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        y[i] = qk_one_code(r, o + i, sums[i]);
}

#endif

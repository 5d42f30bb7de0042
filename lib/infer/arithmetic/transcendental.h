/**
 * exp, logistic, tanh, reciprocal and inverse square root of 32-bit fixed-point numbers. They are
 * polynomials and Newton iterations with the rounded operations of rounding.h (Jacob et al.
 * appendix A.1).
 *
 * Q<I> is an int32 with I integer bits; its value is raw * 2^(I - 31). qi_srdhm of a Q<I> and a
 * Q<J> number gives a Q<I+J> number.
 */
#ifndef QI_TRANSCENDENTAL_H
#define QI_TRANSCENDENTAL_H

#include "qat/rounding.h"

enum {
    QI_EXP_MINUS_EIGHTH = 1895147668, /* Q0: exp(-1/8) */
    QI_ONE_THIRD = 715827883,         /* Q0 */
    QI_HALF_SQRT_2 = 1518500250,      /* Q0: sqrt(2) / 2 */
    QI_48_OVER_17 = 1515870810,       /* Q2 */
    QI_32_OVER_17 = 1010580540,       /* Q2 */
    QI_ONE_Q2 = 1 << 29,
    QI_ONE_Q3 = 1 << 28
};

/** exp(-2^(k - 2)) in Q0, for bit k of a number of quarters. */
static inline int32_t qi_exp_of_bit(int k)
{
    static const int32_t factor[7] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242};
    return factor[k];
}

/**
 * exp(x) in Q0, for x in [-1/4, 0) in Q0. It is Taylor's polynomial of degree 4 around -1/8, e^-1/8
 * (1 + x + (x^2 + (x^3 + x^4 / 4) / 3) / 2), with x measured from -1/8.
 */
static inline int32_t qi_exp_on_quarter(int32_t a)
{
    int32_t const x = a + (1 << 28);
    int32_t const x2 = qi_srdhm(x, x);
    int32_t const x3 = qi_srdhm(x2, x);
    int32_t const x4 = qi_srdhm(x2, x2);
    int32_t const sixth = qi_srdhm(qi_rdbp(x4, 2) + x3, QI_ONE_THIRD);
    int32_t const tail = qi_rdbp(sixth + x2, 1);
    return QI_EXP_MINUS_EIGHTH + qi_srdhm(QI_EXP_MINUS_EIGHTH, x + tail);
}

/**
 * exp(x) in Q0, for x <= 0 in Q<integer_bits>; exp(0) = 1 - 2^-31.
 *
 * x = r - quarters / 4 with r in [-1/4, 0). The result is the polynomial of r, times a constant for
 * every set bit of the number of quarters.
 *
 * @param integer_bits 0..6; with 6, below -32 the result is 0
 */
static inline int32_t qi_exp_on_negative_values(int32_t x, int integer_bits)
{
    int const fraction_bits = 31 - integer_bits;
    int32_t const quarter = INT32_C(1) << (fraction_bits - 2);
    int32_t const r = (x & (quarter - 1)) - quarter;
    int32_t const quarters = (r - x) >> (fraction_bits - 2);

    if (x == 0)
        return INT32_MAX;
    if (integer_bits > 5 && x < -(INT32_C(1) << (36 - integer_bits)))
        return 0;
    int32_t result = qi_exp_on_quarter(r * (1 << integer_bits));
    for (int k = 0; k < integer_bits + 2; k++)
        if (quarters & (1 << k))
            result = qi_srdhm(result, qi_exp_of_bit(k));
    return result;
}

/** 1 / d by three steps of Newton's iteration, in Q2; half_denominator = d in Q0, in [1/2, 1]. */
static inline int32_t qi_newton_reciprocal(int32_t half_denominator)
{
    int32_t x = QI_48_OVER_17 + qi_srdhm(half_denominator, -QI_32_OVER_17);
    for (int i = 0; i < 3; i++) {
        int32_t const error = QI_ONE_Q2 - qi_srdhm(half_denominator, x);
        x += qi_saturating_left_shift(qi_srdhm(x, error), 2);
    }
    return x;
}

/** 1 / (1 + x) in Q0, for x in [0, 1] in Q0. */
static inline int32_t qi_one_over_one_plus_x(int32_t x)
{
    return qi_saturating_left_shift(qi_newton_reciprocal(qi_rounding_half_sum(x, INT32_MAX)), 1);
}

/** (1 - x) / (1 + x) in Q0, for x in [0, 1] in Q0. */
static inline int32_t qi_one_minus_x_over_one_plus_x(int32_t x)
{
    int32_t const inverse = qi_newton_reciprocal(qi_rounding_half_sum(x, INT32_MAX));
    return qi_saturating_left_shift(inverse - QI_ONE_Q2, 2);
}

/** 1 / (1 + exp(-x)) in Q0, for x in Q<integer_bits>, integer_bits 0..6; exactly 1/2 at 0. */
static inline int32_t qi_logistic(int32_t x, int integer_bits)
{
    if (x == 0)
        return INT32_C(1) << 30;
    int32_t const positive =
        qi_one_over_one_plus_x(qi_exp_on_negative_values(x > 0 ? -x : x, integer_bits));
    return x > 0 ? positive : INT32_MAX - positive;
}

/**
 * tanh(x) in Q0, for x in Q<integer_bits>, integer_bits 0..5: (1 - e) / (1 + e) with e = exp(-2
 * |x|).
 */
static inline int32_t qi_tanh(int32_t x, int integer_bits)
{
    if (x == 0)
        return 0;
    int32_t const e = qi_exp_on_negative_values(x > 0 ? -x : x, integer_bits + 1);
    int32_t const t = qi_one_minus_x_over_one_plus_x(e);
    return x > 0 ? t : -t;
}

/**
 * 1 / x for x > 0 with 12 integer bits (value x * 2^-19). 1/x = result * 2^-over, with the result
 * in Q0, in (1/2, 1]. over may be negative.
 */
static inline int32_t qi_reciprocal_q12(uint32_t x, int *over)
{
    int const headroom = qi_leading_zeros(x);
    *over = 12 - headroom;
    return qi_one_over_one_plus_x((int32_t)((x << headroom) - (UINT32_C(1) << 31)));
}

/**
 * log(x) in Q5, for x of 12 integer bits, 2^19 (1) or more. x = r 2^n with r near 2^-1/4, taken as
 * the smaller of two candidates; log(r) is a quotient of polynomials of q = 2 (r - 2^-1/4).
 */
static inline int32_t qi_log_q12(int32_t x)
{
    enum {
        LOG_2 = 1488522236,
        FOURTH_ROOT_HALF = 1805811301,
        ALPHA_N = 117049297,
        ALPHA_D = 127690142,
        ALPHA_I = 1057819769,
        ALPHA_F = 638450708,
        QUARTER_Q6 = 1 << 23,
        ONE_Q6 = 1 << 25
    };
    int const zeros_a = qi_leading_zeros((uint32_t)x);
    int32_t const b = qi_srdhm(x, QI_HALF_SQRT_2);
    int const zeros_b = qi_leading_zeros((uint32_t)b);
    int32_t const r_a = qi_saturating_left_shift(
        qi_srdhm(qi_saturating_left_shift(x, zeros_a - 1), QI_HALF_SQRT_2), 1);
    int32_t const r_b = qi_saturating_left_shift(x, zeros_b - 1);
    int32_t const power_a = (12 - zeros_a) * ONE_Q6 + QUARTER_Q6;
    int32_t const power_b = (13 - zeros_b) * ONE_Q6 - QUARTER_Q6;
    int32_t const r = r_a < r_b ? r_a : r_b, power = power_a > power_b ? power_a : power_b;

    int32_t const p = qi_rounding_half_sum(r, FOURTH_ROOT_HALF), q = 2 * (r - FOURTH_ROOT_HALF);
    int32_t const square = qi_srdhm(q, q);
    int32_t const numerator = qi_srdhm(q, r) + qi_srdhm(qi_srdhm(q, square), ALPHA_N);
    int32_t const denominator =
        qi_srdhm(p, ALPHA_I + q + qi_srdhm(ALPHA_D, square)) + qi_srdhm(ALPHA_F, q);
    int32_t const log_r = qi_srdhm(qi_rdbp(numerator, 6), qi_one_over_one_plus_x(denominator));
    return qi_saturating_left_shift(qi_srdhm(power, LOG_2) + log_r, 1);
}

/**
 * 1 / sqrt(x) = mult * 2^(shift - 31), shift <= 0. x <= 1 gives the maximum and shift 0. Used by
 * l2_normalization. Five steps of Newton's iteration x (3 - a x^2) / 2 in Q3, where a is x times an
 * even power of two.
 */
static inline void qi_inv_sqrt_multiplier(int32_t x, int32_t *mult, int *shift)
{
    *mult = INT32_MAX;
    *shift = 0;
    if (x <= 1)
        return;
    int right = 11;
    for (; x >= 1 << 29; x /= 4)
        right++;
    int const pairs = (qi_leading_zeros((uint32_t)x) - 1) / 2 - 1;
    right -= pairs;
    x <<= 2 * pairs;

    int32_t const a = x >> 1; /* Q3, in [1/4, 1) */
    int32_t const half_a = qi_rdbp(a, 1);
    int32_t root = QI_ONE_Q3;
    for (int i = 0; i < 5; i++) {
        int32_t const cube =
            qi_saturating_left_shift(qi_srdhm(qi_srdhm(root, root), root), 6); /* Q9 to Q3 */
        int32_t const step = qi_srdhm((1 << 28) + (1 << 27), root) - qi_srdhm(half_a, cube);
        root = qi_saturating_left_shift(step, 3); /* Q6 to Q3 */
    }
    root = qi_srdhm(root, QI_HALF_SQRT_2);
    *mult = right < 0 ? root * (1 << -right) : root;
    *shift = right < 0 ? 0 : -right;
}

#endif

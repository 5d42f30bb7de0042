/**
 * The functions of transcendental.h for 16-bit fixed-point numbers. Q<I> is an int16 with I integer
 * bits; its value is raw * 2^(I - 15). Constants are the 32-bit ones rounded to 16 bits.
 *
 * They are the 16-bit half of TensorFlow's fixed-point functions, and are tested with its golden
 * vectors (test_fixedpoint). The op lstm uses them.
 */
#ifndef QI_TRANSCENDENTAL_I16_H
#define QI_TRANSCENDENTAL_I16_H

#include "infer/arithmetic/transcendental.h"

/** A 32-bit constant, rounded to the nearest 16-bit one. */
static inline int16_t qi_constant_i16(int32_t constant)
{
    return (int16_t)qi_rdbp(constant, 16);
}

/** Like qi_exp_on_quarter; the last sum saturates. */
static inline int16_t qi_exp_on_quarter_i16(int16_t a)
{
    int16_t const base = qi_constant_i16(QI_EXP_MINUS_EIGHTH);
    int16_t const x = (int16_t)(a + (1 << 12));
    int16_t const x2 = qi_srdhm_i16(x, x);
    int16_t const x3 = qi_srdhm_i16(x2, x);
    int16_t const x4 = qi_srdhm_i16(x2, x2);
    int16_t const sixth =
        qi_srdhm_i16((int16_t)(qi_rdbp_i16(x4, 2) + x3), qi_constant_i16(QI_ONE_THIRD));
    int16_t const tail = qi_rdbp_i16((int16_t)(sixth + x2), 1);
    int32_t const sum = base + qi_srdhm_i16(base, (int16_t)(x + tail));
    return (int16_t)qi_clamp(sum, INT16_MIN, INT16_MAX);
}

/** Like qi_exp_on_negative_values, integer_bits 0..5. */
static inline int16_t qi_exp_on_negative_values_i16(int16_t x, int integer_bits)
{
    int const fraction_bits = 15 - integer_bits;
    int32_t const quarter = 1 << (fraction_bits - 2);
    int32_t const r = (x & (quarter - 1)) - quarter;
    int32_t const quarters = (r - x) >> (fraction_bits - 2);

    if (x == 0)
        return INT16_MAX;
    int16_t result =
        qi_exp_on_quarter_i16(qi_saturating_rounding_mul_pot_i16((int16_t)r, integer_bits));
    for (int k = 0; k < integer_bits + 2; k++)
        if (quarters & (1 << k))
            result = qi_srdhm_i16(result, qi_constant_i16(qi_exp_of_bit(k)));
    return result;
}

/** Like qi_newton_reciprocal. */
static inline int16_t qi_newton_reciprocal_i16(int16_t half_denominator)
{
    int16_t x = (int16_t)(qi_constant_i16(QI_48_OVER_17) +
                          qi_srdhm_i16(half_denominator, qi_constant_i16(-QI_32_OVER_17)));
    for (int i = 0; i < 3; i++) {
        int16_t const error = (int16_t)((1 << 13) - qi_srdhm_i16(half_denominator, x));
        x = (int16_t)(x + qi_saturating_rounding_mul_pot_i16(qi_srdhm_i16(x, error), 2));
    }
    return x;
}

/** Like qi_one_over_one_plus_x. */
static inline int16_t qi_one_over_one_plus_x_i16(int16_t x)
{
    int16_t const inverse = qi_newton_reciprocal_i16(qi_rounding_half_sum_i16(x, INT16_MAX));
    return qi_saturating_rounding_mul_pot_i16(inverse, 1);
}

/** Like qi_one_minus_x_over_one_plus_x. */
static inline int16_t qi_one_minus_x_over_one_plus_x_i16(int16_t x)
{
    int16_t const inverse = qi_newton_reciprocal_i16(qi_rounding_half_sum_i16(x, INT16_MAX));
    return qi_saturating_rounding_mul_pot_i16((int16_t)(inverse - (1 << 13)), 2);
}

/** Like qi_logistic, integer_bits 0..5. */
static inline int16_t qi_logistic_i16(int16_t x, int integer_bits)
{
    if (x == 0)
        return 1 << 14;
    int16_t const e = qi_exp_on_negative_values_i16((int16_t)(x > 0 ? -x : x), integer_bits);
    int16_t const positive = qi_one_over_one_plus_x_i16(e);
    return (int16_t)(x > 0 ? positive : INT16_MAX - positive);
}

/** Like qi_tanh, integer_bits 0..4. */
static inline int16_t qi_tanh_i16(int16_t x, int integer_bits)
{
    if (x == 0)
        return 0;
    int16_t const e = qi_exp_on_negative_values_i16((int16_t)(x > 0 ? -x : x), integer_bits + 1);
    int16_t const t = qi_one_minus_x_over_one_plus_x_i16(e);
    return (int16_t)(x > 0 ? t : -t);
}

#endif

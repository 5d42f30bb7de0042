/**
 * Functions from codes to codes: softmax of a row, logistic and tanh of a value. The function and
 * the bits b of the output fix the output's scale: softmax and logistic have scale 2^-b and the
 * lowest code as zero_point; tanh has scale 2^-(b-1) and zero_point lowest + 2^(b-1).
 */
#ifndef QI_CODE_FUNCTIONS_H
#define QI_CODE_FUNCTIONS_H

#include "infer/arithmetic/transcendental.h"
#include <stddef.h>

/** The lowest code of a b-bit type. */
static inline int32_t qi_lowest_code(int is_signed, int bits)
{
    return is_signed ? -(1 << (bits - 1)) : 0;
}

/** Code i of an array of uint8 or int8. */
static inline int32_t qi_load_code(const void *codes, size_t i, int is_signed)
{
    return is_signed ? ((const int8_t *)codes)[i] : ((const uint8_t *)codes)[i];
}

/** Store a code of either type; its byte is the same. */
static inline void qi_store_code(void *codes, size_t i, int32_t code)
{
    ((uint8_t *)codes)[i] = (uint8_t)code;
}

/** How logistic and tanh scale their input: after mult and shift it has 4 integer bits. */
typedef struct qi_input_scaling {
    int32_t zero_point;
    int32_t mult; /* (mult, shift) = quantize_multiplier(scale * 2^27) */
    int32_t shift;
    int32_t radius; /* floor(15 * 2^(27 - shift)), at least 1: the output saturates where
                       |q - zero_point| is this large */
} qi_input_scaling;

/**
 * The logistic of code q. Examples: the zero_point gives half the range; a code radius or more
 * above it gives the highest code.
 * @param lowest, bits  of the output
 */
static inline int32_t qi_logistic_code(int32_t q, const qi_input_scaling *in, int32_t lowest,
                                       int bits)
{
    int32_t const top = (1 << bits) - 1;
    int32_t const x = q - in->zero_point;
    if (x <= -in->radius)
        return lowest;
    if (x >= in->radius)
        return lowest + top;
    int32_t const y = qi_logistic(qi_requantize(x, in->mult, in->shift), 4);
    return lowest + qi_clamp(qi_rdbp(y, 31 - bits), 0, top);
}

/** tanh of code q; see qi_logistic_code. */
static inline int32_t qi_tanh_code(int32_t q, const qi_input_scaling *in, int32_t lowest, int bits)
{
    int32_t const half = 1 << (bits - 1);
    int32_t const x = q - in->zero_point;
    if (x <= -in->radius)
        return lowest;
    if (x >= in->radius)
        return lowest + 2 * half - 1;
    int32_t const y = qi_tanh(qi_requantize(x, in->mult, in->shift), 4);
    return lowest + half + qi_clamp(qi_rdbp(y, 32 - bits), -half, half - 1);
}

/** Parameters of the softmax of a row. */
typedef struct qi_softmax {
    int32_t mult;     /* (mult, shift) = quantize_multiplier(min(beta scale 2^26, 2^31 - 1)) */
    int32_t shift;    /* 0..31 */
    int32_t diff_min; /* -floor(31 * 2^26 / 2^shift) .. 0: lower differences give the lowest code */
    int32_t in_signed;
    int32_t lowest, bits; /* of the output */
} qi_softmax;

/** exp of the difference d of a code from the row's maximum, diff_min <= d <= 0; Q0. */
static inline int32_t qi_softmax_exp(int32_t difference, const qi_softmax *s)
{
    int32_t const shifted = (int32_t)((uint32_t)difference << s->shift); /* it fits */
    return qi_exp_on_negative_values(qi_srdhm(shifted, s->mult), 5);
}

/**
 * y = softmax(x) over n codes, 1 <= n <= 4096. 5 integer bits for differences, 12 for the sum:
 * sum = sum of rdbp(exp, 12); (r, over) = reciprocal_q12(sum);
 * y = rdbp(srdhm(r, exp), over + 31 - bits) + lowest code.
 * x and y may be the same array, unless y has 16 bits.
 */
static inline void qi_softmax_row(const void *x, void *y, size_t n, const qi_softmax *s)
{
    int32_t highest = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        int32_t const q = qi_load_code(x, i, s->in_signed);
        highest = q > highest ? q : highest;
    }
    uint32_t sum = 0; /* at most n * 2^19 */
    for (size_t i = 0; i < n; i++) {
        int32_t const d = qi_load_code(x, i, s->in_signed) - highest;
        if (d >= s->diff_min)
            sum += (uint32_t)qi_rdbp(qi_softmax_exp(d, s), 12);
    }
    int over;
    int32_t const r = qi_reciprocal_q12(sum, &over);
    int const right = over + 31 - s->bits;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = qi_load_code(x, i, s->in_signed) - highest;
        int32_t value = 0;
        if (d >= s->diff_min &&
            right <= 31) /* with a shift beyond 31 every quotient is below one half */
            value = qi_rdbp(qi_srdhm(r, qi_softmax_exp(d, s)), right);
        int32_t const code = s->lowest + qi_clamp(value, 0, (1 << s->bits) - 1);
        if (s->bits > 8)
            ((int16_t *)y)[i] = (int16_t)code;
        else
            qi_store_code(y, i, code);
    }
}

/** Parameters of the log_softmax of a row of int8, besides those of its exponentials. */
typedef struct qi_log_softmax {
    qi_softmax exp;        /* as for softmax, of beta 1 */
    int32_t reverse_mult;  /* (mult, shift) = quantize_multiplier(1 / the real one of exp) */
    int32_t reverse_shift; /* -31..0 */
} qi_log_softmax;

/**
 * y = log_softmax(x) over n codes, 1 <= n < 4096, with scale 1/16 and zero_point 127: differences
 * to the row's maximum minus the logarithm of the sum of their exponentials, both in Q5. x and y
 * may be the same array.
 */
static inline void qi_log_softmax_row(const int8_t *x, int8_t *y, size_t n, const qi_log_softmax *s)
{
    int32_t highest = INT8_MIN, sum = 0; /* at most n * 2^19 */
    for (size_t i = 0; i < n; i++)
        highest = x[i] > highest ? x[i] : highest;
    for (size_t i = 0; i < n; i++)
        if (x[i] - highest >= s->exp.diff_min)
            sum += qi_rdbp(qi_exp_on_negative_values(
                               qi_requantize(x[i] - highest, s->exp.mult, s->exp.shift), 5),
                           12);
    int32_t const log_sum = qi_log_q12(sum);
    int32_t const least = qi_requantize(log_sum + INT32_MIN, s->reverse_mult, s->reverse_shift);
    int32_t const limit = least > s->exp.diff_min - 1 ? least : s->exp.diff_min - 1;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = x[i] - highest;
        int64_t const value = (int64_t)qi_requantize(d, s->exp.mult, s->exp.shift) - log_sum;
        y[i] = (int8_t)(d > limit ? qi_clamp(qi_rdbp(qi_saturate_i64(value), 22) + INT8_MAX,
                                             INT8_MIN, INT8_MAX)
                                  : INT8_MIN);
    }
}

#endif

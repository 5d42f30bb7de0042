/**
 * Functions of rows along the last axis: softmax, log_softmax, softmax16, l2_normalization. The op
 * files have the formulas.
 */
#ifndef QK_ROW_FUNCTIONS_H
#define QK_ROW_FUNCTIONS_H

#include "infer/arithmetic/code_functions.h"
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/kernels/parts/codes.h"
#include "infer/kernels/values.h"

/* ------------------------------------------------------------------ softmax */

typedef struct qk_softmax {
    int32_t rows, row; /* how many rows, and the values of each */
    qi_softmax exp;
} qk_softmax;

QK_INLINE void qk_softmax_run(const qk_softmax *p, const void *x, void *y)
{
    size_t const row = (size_t)p->row, bytes = p->exp.bits > 8 ? 2 * row : row;
    for (size_t i = 0; i < (size_t)p->rows; i++)
        qi_softmax_row((const uint8_t *)x + i * row, (uint8_t *)y + i * bytes, row, &p->exp);
}

typedef struct qk_log_softmax {
    int32_t rows, row;
    qi_log_softmax log;
} qk_log_softmax;

QK_INLINE void qk_log_softmax_run(const qk_log_softmax *p, const void *x, void *y)
{
    size_t const row = (size_t)p->row;
    for (size_t i = 0; i < (size_t)p->rows; i++)
        qi_log_softmax_row((const int8_t *)x + i * row, (int8_t *)y + i * row, row, &p->log);
}

/* ------------------------------------------------------------------ softmax16 */

/** With two tables from the model; op_softmax16.c has the formulas. */
typedef struct qk_softmax16 {
    int32_t rows, row;
    int32_t mult, shift;
    const int16_t *exp, *reciprocal;
} qk_softmax16;

QK_INLINE int32_t qk_largest_i16(const int16_t *x, size_t n)
{
    int32_t largest = INT16_MIN;
    for (size_t i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/** y = the exponentials of a row; returns their sum. */
QK_INLINE uint32_t qk_exponentials_i16(const qk_softmax16 *p, const int16_t *x, int16_t *y)
{
    size_t const n = (size_t)p->row;
    int32_t const largest = qk_largest_i16(x, n);
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t const q = qk_code(qi_requantize(x[i] - largest, p->mult, p->shift), INT16_MAX,
                                  INT16_MIN, INT16_MAX);
        y[i] = (int16_t)qi_lookup_i16(p->exp, q);
        int32_t const e = y[i];
        sum += (uint32_t)e;
    }
    return sum;
}

QK_INLINE void qk_softmax16_row(const qk_softmax16 *p, const int16_t *x, int16_t *y)
{
    uint32_t const all = qk_exponentials_i16(p, x, y);
    uint32_t const sum = all < 2 ? 2 : all; /* the largest e is about 32767 in any real table */
    int const zeros = qi_leading_zeros(sum), right = 31 - zeros; /* 1..30 */
    int32_t const shifted = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14);
    int32_t const code = qi_clamp(shifted - (1 << 15) - (1 << 16), INT16_MIN, INT16_MAX);
    int32_t const reciprocal = qi_lookup_i16(p->reciprocal, code);
    for (size_t i = 0; i < (size_t)p->row; i++) {
        int32_t const value = (y[i] * reciprocal + (1 << (right - 1))) >> right;
        y[i] = (int16_t)qi_clamp(value, 0, INT16_MAX);
    }
}

QK_INLINE void qk_softmax16_run(const qk_softmax16 *p, const void *x, void *y)
{
    size_t const row = (size_t)p->row;
    for (size_t i = 0; i < (size_t)p->rows; i++)
        qk_softmax16_row(p, (const int16_t *)x + i * row, (int16_t *)y + i * row);
}

/* ------------------------------------------------------------------ l2_normalization */

typedef struct qk_l2_normalization {
    int32_t rows, row; /* how many rows, and the values of each */
    qi_codes codes;    /* of x */
} qk_l2_normalization;

QK_INLINE int32_t qk_sum_of_squares(const uint8_t *x, size_t n, qi_codes c)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = (x[i] ^ c.flip) - c.offset;
        sum += d * d;
    }
    return sum;
}

QK_INLINE void qk_normalize_row(const uint8_t *x, uint8_t *y, size_t n, qi_codes c)
{
    int const is_signed = c.flip != 0;
    int32_t const factor = is_signed ? 1 : 128, zero = is_signed ? 0 : 128;
    int32_t const lowest = qi_lowest_code(is_signed, 8);
    int32_t mult;
    int shift;
    qi_inv_sqrt_multiplier(qk_sum_of_squares(x, n, c), &mult, &shift);
    shift += is_signed ? 7 : 0;
    for (size_t i = 0; i < n; i++) {
        int32_t const d = (x[i] ^ c.flip) - c.offset;
        int32_t const value = qi_requantize(factor * d, mult, shift);
        qi_store_code(y, i, qi_clamp(value + zero, lowest, lowest + 255));
    }
}

QK_INLINE void qk_l2_normalization_run(const qk_l2_normalization *p, const void *x, void *y)
{
    size_t const row = (size_t)p->row;
    for (size_t i = 0; i < (size_t)p->rows; i++)
        qk_normalize_row((const uint8_t *)x + i * row, (uint8_t *)y + i * row, row, p->codes);
}

#endif

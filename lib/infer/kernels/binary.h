/**
 * squared_difference, compare, mul, div, maximum, minimum and prelu, of pairs of codes; op_binary.c
 * has the formulas.
 */
#ifndef QK_BINARY_H
#define QK_BINARY_H

#include "infer/arithmetic/transcendental.h"
#include "infer/kernels/pairs.h"
#include "qat/infer.h"

/* ------------------------------------------------------------------ squared_difference */

QK_INLINE int32_t qk_square_of(const qk_pairs *p, int32_t a, int32_t b)
{
    int64_t const difference = qi_saturate_i64((int64_t)a - b);
    return qk_pairs_code(p, qi_saturate_i64(difference * difference), p->mult, p->shift);
}

QK_INLINE void qk_squared_difference_run(const qk_pairs *p, const void *a, const void *b, void *y,
                                         void *scratch)
{
    qk_pairs_run(p, qk_square_of, 0, a, b, y, scratch);
}

/* ------------------------------------------------------------------ compare */

QK_INLINE int32_t qk_comparison_of(const qk_pairs *p, int32_t a, int32_t b)
{
    switch (p->kind) {
    case QI_EQUAL:
        return a == b;
    case QI_NOT_EQUAL:
        return a != b;
    case QI_GREATER:
        return a > b;
    case QI_GREATER_EQUAL:
        return a >= b;
    case QI_LESS:
        return a < b;
    default:
        return a <= b;
    }
}

QK_INLINE void qk_compare_run(const qk_pairs *p, const void *a, const void *b, void *y,
                              void *scratch)
{
    qk_pairs_run(p, qk_comparison_of, 0, a, b, y, scratch);
}

/* ------------------------------------------------------------------ mul */

QK_INLINE int32_t qk_product_of(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code(p, a * b, p->mult, p->shift); /* at most 255^2, or 2^30 */
}

QK_INLINE int32_t qk_product_once(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code_once(p, a * b);
}

QK_INLINE int32_t qk_product_even(const qk_pairs *p, int32_t a, int32_t b)
{
    qi_binary32 const product = qi_b32_mul(qi_b32_of(a * b), p->scale_a);
    return qi_clamp(qi_b32_even(qi_b32_add(product, p->constant)), p->lo, p->hi);
}

QK_INLINE void qk_mul_run(const qk_pairs *p, const void *a, const void *b, void *y, void *scratch)
{
    qk_pairs_run(p, qk_product_of, 0, a, b, y, scratch);
}

/** With rounding ONCE. */
QK_INLINE void qk_mul_once_run(const qk_pairs *p, const void *a, const void *b, void *y,
                               void *scratch)
{
    qk_pairs_run(p, qk_product_once, 0, a, b, y, scratch);
}

/** Rounding EVEN: the numbers of qk_product_even. */
QK_INLINE void qk_mul_even_prepare(qk_pairs *p)
{
    p->scale_a = qi_b32_multiplier(p->mult, p->shift);
    p->constant = qi_b32_of(p->zero_point);
}

/** With rounding EVEN. */
QK_INLINE void qk_mul_even_run(const qk_pairs *pairs, const void *a, const void *b, void *y,
                               void *scratch)
{
    qk_pairs p = *pairs;
    qk_mul_even_prepare(&p);
    qk_pairs_run(&p, qk_product_even, 0, a, b, y, scratch);
}

/* ------------------------------------------------------------------ div */

/** Of differences below 2^23 (2^15 of 16 bits); the shift is not above the headroom. */
QK_INLINE int32_t qk_quotient_of(const qk_pairs *p, int32_t a, int32_t b)
{
    if (!a || !b)
        return a > 0 ? p->hi : a < 0 ? p->lo : qi_clamp(p->zero_point, p->lo, p->hi);
    int32_t const x = b < 0 ? -a : a;
    int const headroom =
        x > 0 ? qi_leading_zeros((uint32_t)x) - 1 : qi_leading_zeros(2 * (uint32_t)-x - 1);
    int over; /* bits of the divisor, less 20 */
    int32_t const inverse = qi_reciprocal_q12((uint32_t)(b < 0 ? -b : b), &over);
    int32_t const quotient = qi_srdhm((int32_t)((int64_t)x * (INT64_C(1) << headroom)), inverse);
    int const bits = over + 19 + headroom - p->shift;
    int64_t const y = bits > 31 ? 0 : qi_rdbp(qi_srdhm(quotient, p->mult), bits);
    return qi_clamp(qi_saturate_i64(y + p->zero_point), p->lo, p->hi);
}

QK_INLINE void qk_div_run(const qk_pairs *p, const void *a, const void *b, void *y, void *scratch)
{
    qk_pairs_run(p, qk_quotient_of, 0, a, b, y, scratch);
}

/* ------------------------------------------------------------------ maximum, minimum */

QK_INLINE int32_t qk_larger_of(const qk_pairs *p, int32_t a, int32_t b)
{
    (void)p;
    return a > b ? a : b;
}

QK_INLINE int32_t qk_smaller_of(const qk_pairs *p, int32_t a, int32_t b)
{
    (void)p;
    return a < b ? a : b;
}

QK_INLINE void qk_maximum_run(const qk_pairs *p, const void *a, const void *b, void *y,
                              void *scratch)
{
    qk_pairs_run(p, qk_larger_of, 1, a, b, y, scratch);
}

QK_INLINE void qk_minimum_run(const qk_pairs *p, const void *a, const void *b, void *y,
                              void *scratch)
{
    qk_pairs_run(p, qk_smaller_of, 1, a, b, y, scratch);
}

/* ------------------------------------------------------------------ prelu */

QK_INLINE int32_t qk_prelu_of(const qk_pairs *p, int32_t x, int32_t alpha)
{
    return x >= 0 ? qk_pairs_code(p, x, p->mult, p->shift)
                  : qk_pairs_code(p, x * alpha, p->mult_neg, p->shift_neg);
}

QK_INLINE void qk_prelu_run(const qk_pairs *p, const void *x, const void *alpha, void *y,
                            void *scratch)
{
    qk_pairs_run(p, qk_prelu_of, 0, x, alpha, y, scratch);
}

#endif

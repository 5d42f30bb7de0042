/**
 * add and sub (Jacob et al. A.2): both differences are shifted left and brought to a common scale,
 * added or subtracted, and requantized:
 *
 *   f(q) = requantize((q - Z) 2^left_shift, mult, shift)
 *   y    = clamp(requantize(f_a(a) +- f_b(b), mult_y, shift_y) + Z_y)
 *
 * With rounding ONCE the last requantization rounds once, ties up.
 *
 * add with rounding EVEN, every operation in binary32, the products fused with the sums:
 *
 *   c = Z_y - (M_a Z_a + M_b Z_b)
 *   y = clamp(even(M_a a + (M_b b + c)))            M_a = S_a / S_y, M_b = S_b / S_y
 */
#ifndef QK_ADD_H
#define QK_ADD_H

#include "infer/kernels/loops/add_mve.h"
#include "infer/kernels/pairs.h"

QK_INLINE int32_t qk_add_twice(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code(p, qi_saturate_i64((int64_t)a + b), p->mult, p->shift);
}

QK_INLINE int32_t qk_add_once(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code_once(p, qi_saturate_i64((int64_t)a + b));
}

/**
 * The sum in fixed point; 0: it is not 2^-11 from the next tie, or far from all codes. With M_a,
 * M_b < 4 the first sum of binary32 is below 2^12, and rounded by at most 2^-13; the second by
 * 2^-15.
 */
QK_INLINE int qk_add_fixed(const qk_pairs *p, int32_t a, int32_t b, int32_t *y)
{
    int64_t const one = INT64_C(1) << QI_B32_FRACTION, margin = one >> 11;
    int64_t const sum = qi_b32_fixed(a, p->scale_a) + qi_b32_fixed(b, p->scale_b) + p->fixed;
    int64_t const rest = sum & (one - 1), whole = sum >> QI_B32_FRACTION;
    *y = qi_clamp((int32_t)whole, p->lo, p->hi);
    return whole > -1024 && whole < 1024 && rest >= margin && rest <= one - margin;
}

QK_INLINE int32_t qk_add_even(const qk_pairs *p, int32_t a, int32_t b)
{
    int32_t y;
    if (p->is_fixed && qk_add_fixed(p, a, b, &y))
        return y;
    qi_binary32 const sum = qi_b32_fma(b, p->scale_b, p->constant);
    return qi_clamp(qi_b32_even(qi_b32_fma(a, p->scale_a, sum)), p->lo, p->hi);
}

QK_INLINE int32_t qk_sub_twice(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code(p, qi_saturate_i64((int64_t)a - b), p->mult, p->shift);
}

QK_INLINE int32_t qk_sub_once(const qk_pairs *p, int32_t a, int32_t b)
{
    return qk_pairs_code_once(p, qi_saturate_i64((int64_t)a - b));
}

QK_INLINE void qk_add_run(const qk_pairs *p, const void *a, const void *b, void *y, void *scratch)
{
    qk_pairs_run_lines(p, qk_add_twice, QK_MVE ? qk_mve_add_line : qk_pairs_line, 0, a, b, y,
                       scratch);
}

QK_INLINE void qk_add_once_run(const qk_pairs *p, const void *a, const void *b, void *y,
                               void *scratch)
{
    qk_pairs_run(p, qk_add_once, 0, a, b, y, scratch);
}

QK_INLINE void qk_sub_run(const qk_pairs *p, const void *a, const void *b, void *y, void *scratch)
{
    qk_pairs_run(p, qk_sub_twice, 0, a, b, y, scratch);
}

QK_INLINE void qk_sub_once_run(const qk_pairs *p, const void *a, const void *b, void *y,
                               void *scratch)
{
    qk_pairs_run(p, qk_sub_once, 0, a, b, y, scratch);
}

/** Rounding EVEN: the numbers of qk_add_even. of_a and of_b give the multipliers, and no left
 * shift.
 */
QK_INLINE void qk_add_even_prepare(qk_pairs *p)
{
    p->scale_a = qi_b32_multiplier(p->of_a.mult, p->of_a.shift);
    p->scale_b = qi_b32_multiplier(p->of_b.mult, p->of_b.shift);
    qi_binary32 const zero_b = qi_b32_mul(qi_b32_of(p->b.zero_point), p->scale_b);
    qi_binary32 const zeros = qi_b32_fma(p->a.zero_point, p->scale_a, zero_b);
    p->constant = qi_b32_sub(qi_b32_of(p->zero_point), zeros);
    p->is_fixed = p->of_a.shift <= 2 && p->of_b.shift <= 2;
    p->fixed =
        p->is_fixed ? qi_b32_fixed(1, p->constant) + (INT64_C(1) << (QI_B32_FRACTION - 1)) : 0;
    p->is_rescaled = 0;
}

/** Rounding EVEN. */
QK_INLINE void qk_add_even_run(const qk_pairs *pairs, const void *a, const void *b, void *y,
                               void *scratch)
{
    qk_pairs p = *pairs;
    qk_add_even_prepare(&p);
    qk_pairs_run(&p, qk_add_even, 1, a, b, y, scratch);
}

#endif

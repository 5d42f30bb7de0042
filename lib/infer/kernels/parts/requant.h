/** How an accumulating layer turns accumulators into codes: docs/arithmetic.md, "Roundings". */
#ifndef QI_REQUANT_H
#define QI_REQUANT_H

#include "infer/arithmetic/binary32.h"
#include "infer/kernels/parts/features.h"
#include "qat/rounding.h"

/** The numbers of a layer, with pointers resolved. */
typedef struct qi_requant {
    const int32_t *bias, *mult, *shift;
    const int8_t *narrow_shift;    /* if the shifts have a byte each; shift is then NULL */
    const int64_t *bias_s64;       /* if the bias has 64 bits; bias is then NULL */
    int32_t mult_step, shift_step; /* 1: one per channel; 0: one for all channels */
    int32_t rounding, fraction;
    int32_t zero_point, lo, hi; /* of the output */
    int32_t is_quick;           /* rounding TWICE, no fraction, every |accumulator| below 2^30 */
} qi_requant;

/** The shift of output channel o. */
QK_INLINE int32_t qi_requant_shift(const qi_requant *r, int32_t o)
{
    int32_t const at = o * r->shift_step;
    return QK_NARROW_SHIFT && r->narrow_shift ? r->narrow_shift[at] : r->shift[at];
}

/** The significand of QI_ROUND_DOUBLE for output channel o: its low 32 bits, then its high 21. */
QK_INLINE int64_t qi_requant_significand(const qi_requant *r, int32_t o)
{
    const int32_t *mult = r->mult + 2 * o * r->mult_step;
    return (int64_t)mult[1] * (INT64_C(1) << 32) + (uint32_t)mult[0];
}

/** The value of output channel o, without zero_point, for an accumulator with its bias. */
QK_INLINE int32_t qi_requant_value(const qi_requant *r, int32_t o, int32_t acc)
{
    int32_t const shift = qi_requant_shift(r, o);
    if (QK_DOUBLE && r->rounding == QI_ROUND_DOUBLE)
        return qi_requantize_double(acc, qi_requant_significand(r, o), shift);
    int32_t const mult = r->mult[o * r->mult_step];
    return QK_EVEN && r->rounding == QI_ROUND_EVEN ? qi_requantize_even(acc, mult, shift)
                                                   : qi_requantize(acc, mult, shift);
}

/** The accumulator of output channel o: the sum of its products and the bias. */
QK_INLINE int32_t qi_requant_accumulator(const qi_requant *r, int32_t o, int32_t sum)
{
    return sum * (QK_FRACTION ? 1 << r->fraction : 1) + r->bias[o];
}

/** The code for a value without zero_point. */
QK_INLINE int32_t qi_requant_clamp(const qi_requant *r, int32_t value)
{
    return qi_clamp(qi_saturate_i64((int64_t)value + r->zero_point), r->lo, r->hi);
}

/** The code of output channel o for a sum of products: eq. 7 and section 2.4 of Jacob et al. */
QK_INLINE int32_t qi_requant_code(const qi_requant *r, int32_t o, int32_t sum)
{
    return qi_requant_clamp(r, qi_requant_value(r, o, qi_requant_accumulator(r, o, sum)));
}

/**
 * The code of output channel o for a 64-bit accumulator, of x with 16-bit codes. Without a 64-bit
 * rounding, acc with its bias fits int32.
 */
QK_INLINE int32_t qi_requant_wide_code(const qi_requant *r, int32_t o, int64_t acc)
{
    int32_t const shift = qi_requant_shift(r, o);
    int32_t value;
    acc += r->bias_s64 ? r->bias_s64[o] : r->bias[o];
    if (QK_DOUBLE && r->rounding == QI_ROUND_DOUBLE)
        value = qi_requantize_double_i64(acc, qi_requant_significand(r, o), shift);
    else if (r->rounding == QI_ROUND_LONG)
        value = qi_requantize_i64(acc, r->mult[o * r->mult_step], shift);
    else
        value = qi_requantize((int32_t)acc, r->mult[o * r->mult_step], shift);
    return qi_requant_clamp(r, value);
}

#endif

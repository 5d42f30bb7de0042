/**
 * Requantization of four accumulators at a time on processors with Helium: of four rows and one
 * channel, or of four channels. The same codes as qi_requant_code.
 */
#ifndef QK_REQUANT_MVE_H
#define QK_REQUANT_MVE_H

#include "infer/kernels/loops/vectors_mve.h"
#include "infer/kernels/parts/requant.h"

#if QK_MVE
#include <arm_mve.h>

/** How four accumulators, with their bias, are scaled. */
typedef enum qk_mve_way {
    QK_MVE_QUICK,  /* QI_ROUND_TWICE, all shifts below 0 */
    QK_MVE_TWICE,  /* QI_ROUND_TWICE */
    QK_MVE_DOUBLE, /* QI_ROUND_DOUBLE, all exponents in -63..-1 */
    QK_MVE_ANY
} qk_mve_way;

/** mult: of QI_ROUND_DOUBLE the highest 31 bits of the significand. */
typedef struct qk_mve_scale {
    int32x4_t bias, mult, shift;
    qk_mve_way way;
} qk_mve_scale;

/** Numbers of the channels o..o+3, or of all channels. */
QK_HOT int32x4_t qk_mve_numbers(const int32_t *first, int32_t o, int32_t step)
{
    return step ? vldrwq_s32(first + o) : vdupq_n_s32(*first);
}

QK_HOT int32x4_t qk_mve_shifts(const qi_requant *r, int32_t o)
{
    if (QK_NARROW_SHIFT && r->narrow_shift)
        return r->shift_step ? vldrbq_s32(r->narrow_shift + o) : vdupq_n_s32(*r->narrow_shift);
    return qk_mve_numbers(r->shift, o, r->shift_step);
}

/** The highest 31 of the 53 bits of each significand. */
QK_HOT int32x4_t qk_mve_significands(const qi_requant *r, int32_t o)
{
    if (!r->mult_step)
        return vdupq_n_s32((int32_t)(qi_requant_significand(r, 0) >> 22));
    uint32x4x2_t const halves = vld2q_u32((const uint32_t *)r->mult + 2 * o);
    return vreinterpretq_s32_u32(vsliq_n_u32(vshrq_n_u32(halves.val[0], 22), halves.val[1], 10));
}

/** How a layer's accumulators are scaled, if no shift keeps them from it. */
QK_HOT qk_mve_way qk_mve_way_of(const qi_requant *r)
{
    if (QK_FRACTION && r->fraction)
        return QK_MVE_ANY;
    return r->rounding == QI_ROUND_TWICE                 ? QK_MVE_QUICK
           : QK_DOUBLE && r->rounding == QI_ROUND_DOUBLE ? QK_MVE_DOUBLE
                                                         : QK_MVE_ANY;
}

/** The same for four shifts. */
QK_HOT qk_mve_way qk_mve_way_of_shifts(qk_mve_way way, int32x4_t shift)
{
    if (way == QK_MVE_QUICK && vmaxvq_s32(INT32_MIN, shift) >= 0)
        return QK_MVE_TWICE;
    if (QK_DOUBLE && way == QK_MVE_DOUBLE &&
        (vmaxvq_s32(INT32_MIN, shift) >= 0 || vminvq_s32(INT32_MAX, shift) < -63))
        return QK_MVE_ANY;
    return way;
}

/** The channels o..o+3. */
QK_HOT qk_mve_scale qk_mve_scale_of(const qi_requant *r, int32_t o)
{
    qk_mve_scale s;
    s.bias = vldrwq_s32(r->bias + o);
    s.shift = qk_mve_shifts(r, o);
    s.way = qk_mve_way_of_shifts(qk_mve_way_of(r), s.shift);
    s.mult = QK_DOUBLE && s.way == QK_MVE_DOUBLE ? qk_mve_significands(r, o)
                                                 : qk_mve_numbers(r->mult, o, r->mult_step);
    return s;
}

/** The same of one channel for four rows. */
QK_HOT qk_mve_scale qk_mve_scale_of_rows(const qi_requant *r, int32_t o)
{
    qk_mve_scale s;
    s.bias = vdupq_n_s32(r->bias[o]);
    s.shift = vdupq_n_s32(qi_requant_shift(r, o));
    s.way = qk_mve_way_of_shifts(qk_mve_way_of(r), s.shift);
    s.mult = vdupq_n_s32(QK_DOUBLE && s.way == QK_MVE_DOUBLE
                             ? (int32_t)(qi_requant_significand(r, o) >> 22)
                             : r->mult[o * r->mult_step]);
    return s;
}

/**
 * QI_ROUND_DOUBLE for exponents e of -63..-1. With all bits of each factor used,
 *
 *   t = floor(acc 2^left mult / 2^31),   acc M = (t + d) 2^(e - left),   -1 < d < 2
 *
 * Rounding to 53 bits changes t + d by less than 1. So if t - 1 and t + 3 round to the same
 * integer, ties up, then it is the value: no tie lies between them. Else the exact sum has to
 * decide; then 0 is returned.
 */
QK_HOT int qk_mve_double(int32x4_t acc, const qk_mve_scale *s, int32x4_t *value)
{
    int32x4_t const left = vclsq_s32(acc), shift = vsubq_s32(s->shift, left);
    int32x4_t const t = vqdmulhq_s32(vshlq_s32(acc, left), s->mult);
    int32x4_t const low = vrshlq_s32(vqsubq_n_s32(t, 1), shift);
    *value = vrshlq_s32(vqaddq_n_s32(t, 3), shift);
    return vcmpneq_s32(low, *value) == 0;
}

/** The codes of the channels o + i step, one by one, for sums of products. */
QK_APART int32x4_t qk_mve_any(const qi_requant *r, int32_t o, int32_t step, int32x4_t sums)
{
    int32_t codes[4];
    vstrwq_s32(codes, sums);
    for (int32_t i = 0; i < 4; i++)
        codes[i] = qi_requant_code(r, o + i * step, codes[i]);
    return vldrwq_s32(codes);
}

/** The codes for sums of products of four channels (step 1), or of four rows of one (step 0). */
QK_HOT int32x4_t qk_mve_codes(const qi_requant *r, const qk_mve_scale *s, const qk_mve_limits *l,
                              int32_t o, int32_t step, int32x4_t sums)
{
    int32x4_t const acc = vaddq_s32(sums, s->bias);
    int32x4_t value;
    if (s->way == QK_MVE_QUICK)
        return qk_mve_limit(l, qk_mve_divide(vqrdmulhq_s32(acc, s->mult), s->shift));
    if (s->way == QK_MVE_TWICE)
        return qk_mve_limit(l, qk_mve_twice(acc, s->mult, s->shift));
    if (QK_DOUBLE && s->way == QK_MVE_DOUBLE && qk_mve_double(acc, s, &value))
        return qk_mve_limit(l, value);
    return qk_mve_any(r, o, step, sums);
}

#endif

#endif

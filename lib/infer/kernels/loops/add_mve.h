/**
 * add of 8-bit codes on processors with Helium: four entries of each table at a time. See add.h.
 */
#ifndef QK_ADD_MVE_H
#define QK_ADD_MVE_H

#include "infer/kernels/loops/vectors_mve.h"
#include "infer/kernels/parts/pairs_layer.h"

#if QK_MVE
#include <arm_mve.h>

/** The entries for four codes, one behind the other or, if step is 0, all the same. */
QK_HOT int32x4_t qk_mve_entries(const int32_t *table, const uint8_t *codes, size_t step)
{
    return vldrwq_gather_shifted_offset_s32(table,
                                            step ? vldrbq_u32(codes) : vdupq_n_u32(codes[0]));
}

/** A qk_pairs_line_fn. */
QK_INLINE void qk_mve_add_line(const qk_pairs *p, qk_combine_fn *combine, const int32_t *table_a,
                               const uint8_t *a, const int32_t *table_b, const uint8_t *b,
                               uint8_t *y)
{
    size_t const step_a = p->a.stride[3], step_b = p->b.stride[3], n = p->dims[3];
    qk_mve_limits const limits = qk_mve_limits_of(p->zero_point, p->lo, p->hi);
    int32x4_t const mult = vdupq_n_s32(p->mult), shift = vdupq_n_s32(p->shift);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        int32x4_t const of_a = qk_mve_entries(table_a, a + i * step_a, step_a);
        int32x4_t const of_b = qk_mve_entries(table_b, b + i * step_b, step_b);
        int32x4_t const value = qk_mve_twice(vqaddq_s32(of_a, of_b), mult, shift);
        vstrbq_s32((int8_t *)y + i, qk_mve_limit(&limits, value));
    }
    for (; i < n; i++)
        y[i] = (uint8_t)combine(p, table_a[a[i * step_a]], table_b[b[i * step_b]]);
}

#else

QK_INLINE void qk_mve_add_line(const qk_pairs *p, qk_combine_fn *combine, const int32_t *table_a,
                               const uint8_t *a, const int32_t *table_b, const uint8_t *b,
                               uint8_t *y)
{
    (void)p;
    (void)combine;
    (void)table_a;
    (void)a;
    (void)table_b;
    (void)b;
    (void)y;
}

#endif

#endif

/**
 * mean, sum and reduce over some axes; the outputs keep the order of the input. Scratch of mean and
 * sum: one int32 sum per output.
 */
#ifndef QK_MEAN_H
#define QK_MEAN_H

#include "infer/arithmetic/binary32.h"
#include "infer/kernels/parts/codes.h"
#include "infer/kernels/values.h"

/** Which values of x belong to an output. */
typedef struct qk_axes {
    int32_t dims[QI_MAX_RANK]; /* of x */
    int32_t step[QI_MAX_RANK]; /* between the outputs of neighbours; 0 along an axis that goes */
    int32_t outputs;
} qk_axes;

/** Add the differences of one run along the last axis. With step 0 all go to one sum. */
QK_INLINE void qk_add_run_of(int32_t *sums, size_t step, const uint8_t *x, size_t n, qi_codes c)
{
    for (size_t i = 0; i < n; i++)
        sums[i * step] += (x[i] ^ c.flip) - c.offset;
}

QK_INLINE void qk_add_wide_run_of(int32_t *sums, size_t step, const int16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i * step] += x[i];
}

/** The sums of differences of all outputs. */
QK_INLINE void qk_sum_axes(const qk_axes *a, qi_codes c, const void *x, int32_t *sums)
{
    size_t const last = (size_t)a->dims[3], step = (size_t)a->step[3];
    size_t at = 0;
    memset(sums, 0, (size_t)a->outputs * sizeof *sums);
    for (int32_t i = 0; i < a->dims[0]; i++)
        for (int32_t j = 0; j < a->dims[1]; j++)
            for (int32_t k = 0; k < a->dims[2]; k++, at += last) {
                int32_t *to = sums + i * a->step[0] + j * a->step[1] + k * a->step[2];
                if (QK_WIDE && c.is_wide)
                    qk_add_wide_run_of(to, step, (const int16_t *)x + at, last);
                else
                    qk_add_run_of(to, step, (const uint8_t *)x + at, last, c);
            }
}

/* ------------------------------------------------------------------ mean */

/** y = clamp(requantize(sum of q - zero_point, mult, shift) + y_zero_point) */
typedef struct qk_mean {
    qk_axes axes;
    qi_codes codes; /* of x */
    int32_t y_type; /* qi_type */
    int32_t mult, shift;
    int32_t y_zero_point, lo, hi;
} qk_mean;

/** How a sum is scaled. */
typedef int32_t qk_scale_fn(int32_t sum, int32_t mult, int shift);

QK_INLINE void qk_mean_scaled(const qk_mean *p, qk_scale_fn *scale, const void *x, void *y,
                              void *scratch)
{
    int32_t *sums = (int32_t *)scratch;
    qk_sum_axes(&p->axes, p->codes, x, sums);
    for (int32_t i = 0; i < p->axes.outputs; i++)
        qi_store_value(p->y_type, y, (size_t)i,
                       qk_code(scale(sums[i], p->mult, p->shift), p->y_zero_point, p->lo, p->hi));
}

QK_INLINE void qk_mean_run(const qk_mean *p, const void *x, void *y, void *scratch)
{
    qk_mean_scaled(p, qi_requantize, x, y, scratch);
}

/** With rounding ONCE. */
QK_INLINE void qk_mean_once_run(const qk_mean *p, const void *x, void *y, void *scratch)
{
    qk_mean_scaled(p, qi_requantize_near_ties_up, x, y, scratch);
}

/** With rounding EVEN. */
QK_INLINE void qk_mean_even_run(const qk_mean *p, const void *x, void *y, void *scratch)
{
    qk_mean_scaled(p, qi_requantize_even, x, y, scratch);
}

/* ------------------------------------------------------------------ sum */

/** y = clamp(round((sum of q) scale + bias) + y_zero_point), in binary32 */
typedef struct qk_sum {
    qk_axes axes;
    qi_codes codes; /* of x */
    int32_t y_type; /* qi_type */
    int32_t zeros;  /* zero_point of x, times the values of a sum */
    qi_binary32 scale, bias;
    int32_t y_zero_point, lo, hi;
} qk_sum;

/** The nearest integer, halves away from zero; far beyond every code if it is not an int32. */
QK_INLINE int32_t qk_nearest_code(qi_binary32 a)
{
    int32_t const far = 1 << 24;
    qi_binary32 const size = {a.mant < 0 ? -a.mant : a.mant, a.exp};
    int32_t const magnitude = a.exp > 0 && a.mant ? far : qi_b32_nearest(size);
    return a.mant < 0 ? -magnitude : magnitude;
}

QK_INLINE void qk_sum_run(const qk_sum *p, const void *x, void *y, void *scratch)
{
    int32_t *sums = (int32_t *)scratch;
    qk_sum_axes(&p->axes, p->codes, x, sums);
    for (int32_t i = 0; i < p->axes.outputs; i++) {
        qi_binary32 const scaled = qi_b32_mul(qi_b32_of(sums[i] + p->zeros), p->scale);
        int32_t const code = qk_nearest_code(qi_b32_add(scaled, p->bias)) + p->y_zero_point;
        qi_store_value(p->y_type, y, (size_t)i, qi_clamp(code, p->lo, p->hi));
    }
}

/* ------------------------------------------------------------------ reduce */

/** The largest or the smallest code. */
typedef struct qk_reduce {
    qk_axes axes;
    int32_t count; /* values of x */
    int32_t type;  /* qi_type */
    int32_t kind;  /* qi_reduction */
    int32_t start; /* the lowest code, of the smallest the highest */
} qk_reduce;

QK_INLINE void qk_reduce_run(const qk_reduce *p, const void *x, void *y)
{
    int32_t at[QI_MAX_RANK] = {0, 0, 0, 0};
    for (size_t i = 0; i < (size_t)p->axes.outputs; i++)
        qi_store_value(p->type, y, i, p->start);
    for (size_t i = 0; i < (size_t)p->count; i++) {
        size_t const to = qk_value_of(at, p->axes.step);
        int32_t const code = (int32_t)qi_value_at(p->type, x, i);
        int32_t const best = (int32_t)qi_value_at(p->type, y, to);
        if (p->kind == QI_LARGEST ? code > best : code < best)
            qi_store_value(p->type, y, to, code);
        qk_next_position(at, p->axes.dims);
    }
}

#endif

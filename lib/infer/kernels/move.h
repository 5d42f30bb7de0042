/**
 * Ops that move codes and compute nothing: concat, reshape, strided_slice, transpose, pad, gather,
 * select.
 */
#ifndef QK_MOVE_H
#define QK_MOVE_H

#include "infer/kernels/values.h"

/* ------------------------------------------------------------------ concat, reshape */

/**
 * One input of concat: of each of `outer` rows of the output it fills some bytes. The planner may
 * have put the input there.
 */
typedef struct qk_concat {
    int32_t outer;
    int32_t row;      /* bytes of a row of the output */
    int32_t at, part; /* where in a row this input's bytes begin, and how many they are */
} qk_concat;

QK_INLINE void qk_concat_run(const qk_concat *p, const void *x, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y + p->at;
    for (int32_t i = 0; to != from && i < p->outer; i++, from += p->part, to += p->row)
        memcpy(to, from, (size_t)p->part);
}

/** reshape; the planner usually gives x and y the same memory. */
typedef struct qk_reshape {
    int32_t bytes;
} qk_reshape;

QK_INLINE void qk_reshape_run(const qk_reshape *p, const void *x, void *y)
{
    if (x != y)
        memcpy(y, x, (size_t)p->bytes);
}

/* ------------------------------------------------------------------ strided_slice, transpose */

/**
 * Each output value is a copy of one input value, which moves by fixed steps along the axes. The
 * planner may have put the output where the values are.
 */
typedef struct qk_walk {
    int32_t item;              /* bytes of a value */
    int32_t dims[QI_MAX_RANK]; /* of y */
    int32_t first;             /* the value of x that is y's first */
    int32_t step[QI_MAX_RANK]; /* along y's axes, in values of x */
} qk_walk;

/** Copy n values, which lie `step` values apart. */
QK_INLINE void qk_copy_run(uint8_t *y, const uint8_t *x, ptrdiff_t step, ptrdiff_t n,
                           ptrdiff_t item)
{
    if (step == 1) {
        memcpy(y, x, (size_t)(n * item));
        return;
    }
    for (ptrdiff_t i = 0; i < n && item == 1; i++)
        y[i] = x[i * step];
    for (ptrdiff_t i = 0; i < n && item > 1; i++)
        memcpy(y + i * item, x + i * step * item, (size_t)item);
}

QK_INLINE void qk_walk_run(const qk_walk *p, const void *x, void *y)
{
    ptrdiff_t const item = p->item, first = p->first;
    const uint8_t *from = (const uint8_t *)x + first * item;
    uint8_t *to = (uint8_t *)y;
    if (to == from)
        return;
    for (ptrdiff_t i = 0; i < p->dims[0]; i++)
        for (ptrdiff_t j = 0; j < p->dims[1]; j++)
            for (ptrdiff_t k = 0; k < p->dims[2]; k++, to += p->dims[3] * item)
                qk_copy_run(to, from + (i * p->step[0] + j * p->step[1] + k * p->step[2]) * item,
                            p->step[3], p->dims[3], item);
}

/* ------------------------------------------------------------------ pad */

/** y is x with positions of the code `value` around it. */
typedef struct qk_pad {
    int32_t type;              /* qi_type */
    int32_t dims[QI_MAX_RANK]; /* of x */
    int32_t count;             /* values of y */
    int32_t value;
    int32_t first;                 /* the value of y that is x's first */
    int32_t step[QI_MAX_RANK - 1]; /* along the first axes of y, in values */
} qk_pad;

QK_INLINE void qk_pad_run(const qk_pad *p, const void *x, void *y)
{
    size_t const item = qi_type_bytes(p->type), run = (size_t)p->dims[3] * item;
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y + (size_t)p->first * item;
    for (size_t i = 0; i < (size_t)p->count; i++)
        qi_store_value(p->type, y, i, p->value);
    for (int32_t i = 0; i < p->dims[0]; i++)
        for (int32_t j = 0; j < p->dims[1]; j++)
            for (int32_t k = 0; k < p->dims[2]; k++, from += run)
                memcpy(to + (size_t)(i * p->step[0] + j * p->step[1] + k * p->step[2]) * item, from,
                       run);
}

/* ------------------------------------------------------------------ gather */

/**
 * y[b, o, i, k] = x[b, o, indices[b, i], k]. An index that is no position counts as the nearest
 * one.
 */
typedef struct qk_gather {
    int32_t index_type; /* QI_S32 or QI_S64 */
    int32_t batches, outer;
    int32_t picked; /* indices of a batch */
    int32_t length; /* positions along the axis of x */
    int32_t bytes;  /* of all k */
} qk_gather;

QK_INLINE void qk_gather_run(const qk_gather *p, const void *x, const void *indices, void *y)
{
    size_t const bytes = (size_t)p->bytes;
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t b = 0; b < p->batches; b++)
        for (int32_t o = 0; o < p->outer; o++, from += (size_t)p->length * bytes)
            for (int32_t i = 0; i < p->picked; i++, to += bytes) {
                int64_t const at =
                    qi_value_at(p->index_type, indices, (size_t)b * (size_t)p->picked + (size_t)i);
                int64_t const last = p->length - 1, near = at < 0 ? 0 : at < last ? at : last;
                memcpy(to, from + (size_t)near * bytes, bytes);
            }
}

/* ------------------------------------------------------------------ select */

/** y = a where the condition holds, b elsewhere; a step is 0 along dims that are repeated. */
typedef struct qk_select {
    int32_t item;                 /* bytes of a value of a, b, y */
    int32_t dims[QI_MAX_RANK];    /* of y */
    int32_t step[3][QI_MAX_RANK]; /* of condition, a, b, in values */
} qk_select;

QK_INLINE void qk_select_run(const qk_select *p, const void *condition, const void *a,
                             const void *b, void *y)
{
    size_t const item = (size_t)p->item;
    int32_t at[QI_MAX_RANK] = {0, 0, 0, 0};
    size_t const count =
        (size_t)p->dims[0] * (size_t)p->dims[1] * (size_t)p->dims[2] * (size_t)p->dims[3];
    uint8_t *to = (uint8_t *)y;
    for (size_t n = 0; n < count; n++, to += item) {
        int const is_a = ((const uint8_t *)condition)[qk_value_of(at, p->step[0])] != 0;
        memcpy(to, (const uint8_t *)(is_a ? a : b) + qk_value_of(at, p->step[is_a ? 1 : 2]) * item,
               item);
        qk_next_position(at, p->dims);
    }
}

#endif

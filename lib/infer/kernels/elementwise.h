/**
 * Functions from one code to one code: logistic, tanh, requantize, cast, and table, whose 256
 * answers are a constant. For more than 256 bytes the 256 answers are computed once (scratch).
 */
#ifndef QK_ELEMENTWISE_H
#define QK_ELEMENTWISE_H

#include "infer/arithmetic/code_functions.h"
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/kernels/values.h"

enum { QK_CODES = 256 };

/** A function of a code; p: the parameters of its op. */
typedef int32_t qk_code_fn(const void *p, int32_t q);

/** The scratch of qk_map_bytes. */
QK_INLINE size_t qk_answers_bytes(size_t n)
{
    return n > QK_CODES ? QK_CODES : 0;
}

/** y[i] = the function of x[i], which are bytes. */
QK_INLINE void qk_map_bytes(const void *p, qk_code_fn *of, int is_signed, size_t n,
                            const uint8_t *x, uint8_t *y, uint8_t *answers)
{
    if (n <= QK_CODES) {
        for (size_t i = 0; i < n; i++)
            qi_store_code(y, i, of(p, qi_load_code(x, i, is_signed)));
        return;
    }
    for (int i = 0; i < QK_CODES; i++)
        qi_store_code(answers, (size_t)i, of(p, is_signed ? (i ^ 0x80) - 0x80 : i));
    for (size_t i = 0; i < n; i++)
        y[i] = answers[x[i]];
}

/* ------------------------------------------------------------------ logistic, tanh */

/** Parameters of logistic and tanh. */
typedef struct qk_sigmoid {
    int32_t count; /* values */
    int32_t is_signed;
    qi_input_scaling in;
    int32_t lowest, bits; /* of y */
} qk_sigmoid;

QK_INLINE int32_t qk_logistic_of(const void *p, int32_t q)
{
    const qk_sigmoid *s = (const qk_sigmoid *)p;
    return qi_logistic_code(q, &s->in, s->lowest, s->bits);
}

QK_INLINE int32_t qk_tanh_of(const void *p, int32_t q)
{
    const qk_sigmoid *s = (const qk_sigmoid *)p;
    return qi_tanh_code(q, &s->in, s->lowest, s->bits);
}

QK_INLINE void qk_logistic_run(const qk_sigmoid *p, const void *x, void *y, void *scratch)
{
    qk_map_bytes(p, qk_logistic_of, p->is_signed, (size_t)p->count, (const uint8_t *)x,
                 (uint8_t *)y, (uint8_t *)scratch);
}

QK_INLINE void qk_tanh_run(const qk_sigmoid *p, const void *x, void *y, void *scratch)
{
    qk_map_bytes(p, qk_tanh_of, p->is_signed, (size_t)p->count, (const uint8_t *)x, (uint8_t *)y,
                 (uint8_t *)scratch);
}

/** x scaled to steps of the table of 16-bit logistic and tanh. */
QK_INLINE int32_t qk_scaled_i16(const qk_sigmoid *p, const void *x, int32_t i)
{
    return qi_requantize_half_up(((const int16_t *)x)[i], p->in.mult, p->in.shift);
}

/** Of 16-bit codes. */
QK_INLINE void qk_logistic_wide_run(const qk_sigmoid *p, const void *x, void *y)
{
    for (int32_t i = 0; i < p->count; i++)
        ((int16_t *)y)[i] = (int16_t)qi_logistic_i16_line(qk_scaled_i16(p, x, i));
}

QK_INLINE void qk_tanh_wide_run(const qk_sigmoid *p, const void *x, void *y)
{
    for (int32_t i = 0; i < p->count; i++)
        ((int16_t *)y)[i] = (int16_t)qi_tanh_i16_line(qk_scaled_i16(p, x, i));
}

/* ------------------------------------------------------------------ requantize */

/** y = clamp(requantize(x - x_zero_point, mult, shift) + y_zero_point) */
typedef struct qk_requantize {
    int32_t count;
    int32_t x_type, y_type; /* qi_type */
    int32_t mult, shift;
    int32_t x_zero_point, y_zero_point;
    int32_t lo, hi;
} qk_requantize;

QK_INLINE int32_t qk_requantize_of(const void *p, int32_t q)
{
    const qk_requantize *r = (const qk_requantize *)p;
    return qk_code(qi_requantize(q - r->x_zero_point, r->mult, r->shift), r->y_zero_point, r->lo,
                   r->hi);
}

/** With rounding ONCE. */
QK_INLINE int32_t qk_requantize_once_of(const void *p, int32_t q)
{
    const qk_requantize *r = (const qk_requantize *)p;
    return qk_code(qi_requantize_near_ties_up(q - r->x_zero_point, r->mult, r->shift),
                   r->y_zero_point, r->lo, r->hi);
}

/** From bytes to bytes. */
QK_INLINE void qk_requantize_run(const qk_requantize *p, const void *x, void *y, void *scratch)
{
    qk_map_bytes(p, qk_requantize_of, p->x_type == QI_S8, (size_t)p->count, (const uint8_t *)x,
                 (uint8_t *)y, (uint8_t *)scratch);
}

QK_INLINE void qk_requantize_once_run(const qk_requantize *p, const void *x, void *y, void *scratch)
{
    qk_map_bytes(p, qk_requantize_once_of, p->x_type == QI_S8, (size_t)p->count, (const uint8_t *)x,
                 (uint8_t *)y, (uint8_t *)scratch);
}

QK_INLINE void qk_map_values(const qk_requantize *p, qk_code_fn *of, const void *x, void *y)
{
    for (size_t i = 0; i < (size_t)p->count; i++)
        qi_store_value(p->y_type, y, i, of(p, (int32_t)qi_value_at(p->x_type, x, i)));
}

/** From or to values of 16 or 32 bits. */
QK_INLINE void qk_requantize_wide_run(const qk_requantize *p, const void *x, void *y)
{
    qk_map_values(p, qk_requantize_of, x, y);
}

QK_INLINE void qk_requantize_wide_once_run(const qk_requantize *p, const void *x, void *y)
{
    qk_map_values(p, qk_requantize_once_of, x, y);
}

/* ------------------------------------------------------------------ cast */

/** The stored integers, of which the lowest bits are kept; or whether they are not 0. */
typedef struct qk_cast {
    int32_t count;
    int32_t x_type, y_type; /* qi_type */
    int32_t is_truth;       /* y is 0 or 1 */
} qk_cast;

QK_INLINE void qk_cast_run(const qk_cast *p, const void *x, void *y)
{
    for (size_t i = 0; i < (size_t)p->count; i++) {
        int64_t const q = qi_value_at(p->x_type, x, i);
        int64_t const value = p->is_truth ? q != 0 : q;
        if (p->y_type == QI_S64)
            ((int64_t *)y)[i] = value;
        else
            qi_store_value(p->y_type, y, i, (int32_t)value);
    }
}

/* ------------------------------------------------------------------ table */

/** 256 answers for each channel, by byte; of 16-bit codes the entries of lines. */
typedef struct qk_table {
    int32_t count;    /* values of x */
    int32_t channels; /* the last dimension of x, or 1 if all have one table */
    int32_t flip;     /* entry = byte ^ flip: -128..127 become 0..255 */
    const void *table;
} qk_table;

QK_INLINE void qk_table_run(const qk_table *p, const void *x, void *y)
{
    const uint8_t *codes = (const uint8_t *)x, *table = (const uint8_t *)p->table;
    uint8_t *to = (uint8_t *)y;
    for (int32_t i = 0; i < p->count; i += p->channels)
        for (int32_t c = 0; c < p->channels; c++)
            to[i + c] = table[c * QK_CODES + (codes[i + c] ^ p->flip)];
}

/** From bytes to 16-bit codes. */
QK_INLINE void qk_table_to_wide_run(const qk_table *p, const void *x, void *y)
{
    const uint8_t *codes = (const uint8_t *)x;
    const int16_t *table = (const int16_t *)p->table;
    int16_t *to = (int16_t *)y;
    for (int32_t i = 0; i < p->count; i += p->channels)
        for (int32_t c = 0; c < p->channels; c++)
            to[i + c] = table[c * QK_CODES + (codes[i + c] ^ p->flip)];
}

/** 16-bit codes: lines between the entries. */
QK_INLINE void qk_table_wide_run(const qk_table *p, const void *x, void *y)
{
    for (int32_t i = 0; i < p->count; i++)
        ((int16_t *)y)[i] =
            (int16_t)qi_lookup_i16((const int16_t *)p->table, ((const int16_t *)x)[i]);
}

#endif

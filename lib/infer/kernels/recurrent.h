/** Layers with a memory: svdf and lstm; op_svdf.c and op_lstm.c have the formulas. */
#ifndef QK_RECURRENT_H
#define QK_RECURRENT_H

#include "infer/arithmetic/transcendental_i16.h"
#include "infer/kernels/values.h"

/* ------------------------------------------------------------------ svdf */

typedef struct qk_svdf {
    int32_t batch, inputs, units;
    int32_t rank, memory; /* filters of a unit; features that a filter remembers */
    int32_t x_zero_point;
    int32_t mult_state, shift_state, state_lo, state_hi;
    int32_t mult_y, shift_y, zero_point, lo, hi;
    const int8_t *weights;       /* [units rank, inputs] */
    const int16_t *time_weights; /* [units rank, memory] */
    const int32_t *bias;         /* [units] */
} qk_svdf;

/** What filter f sees of a row. */
QK_INLINE int16_t qk_svdf_feature(const qk_svdf *p, const int8_t *x, int32_t f)
{
    const int8_t *weights = p->weights + (size_t)f * (size_t)p->inputs;
    int32_t acc = 0;
    for (int32_t i = 0; i < p->inputs; i++)
        acc += (x[i] - p->x_zero_point) * weights[i];
    int32_t const value = qi_requantize(acc, p->mult_state, p->shift_state);
    return (int16_t)qi_clamp(value, p->state_lo, p->state_hi);
}

/** Move on the memory of filter f, and weigh it. */
QK_INLINE int64_t qk_svdf_remember(const qk_svdf *p, int32_t f, const int16_t *state, int16_t *next,
                                   int16_t feature)
{
    size_t const m = (size_t)p->memory;
    const int16_t *weights = p->time_weights + (size_t)f * m;
    int64_t sum = 0;
    memcpy(next, state + 1, (m - 1) * sizeof *next);
    next[m - 1] = feature;
    for (size_t i = 0; i < m; i++)
        sum += (int64_t)weights[i] * next[i];
    return sum;
}

QK_INLINE void qk_svdf_run(const qk_svdf *p, const void *x, const void *state, void *y, void *next)
{
    const int8_t *row = (const int8_t *)x;
    const int16_t *from = (const int16_t *)state;
    int16_t *to = (int16_t *)next;
    int8_t *out = (int8_t *)y;
    for (int32_t b = 0; b < p->batch; b++, row += p->inputs)
        for (int32_t u = 0; u < p->units; u++) {
            int64_t acc = p->bias[u];
            for (int32_t f = u * p->rank; f < (u + 1) * p->rank; f++) {
                acc += qk_svdf_remember(p, f, from, to, qk_svdf_feature(p, row, f));
                from += p->memory;
                to += p->memory;
            }
            int64_t const value = qi_requantize(qi_saturate_i64(acc), p->mult_y, p->shift_y);
            *out++ = (int8_t)qk_code(value, p->zero_point, p->lo, p->hi);
        }
}

/* ------------------------------------------------------------------ lstm */

enum { QK_GATES = 4, QK_GATE_BITS = 3 };
enum { QK_INPUT_GATE, QK_FORGET_GATE, QK_CELL_GATE, QK_OUTPUT_GATE };

typedef struct qk_lstm {
    int32_t batch, steps, inputs, units;
    int32_t x_zero_point, h_zero_point;
    int32_t mult_x[QK_GATES], shift_x[QK_GATES], mult_h[QK_GATES], shift_h[QK_GATES];
    int32_t mult_y, shift_y;
    int32_t tanh_bits, cell_clip;
    const int8_t *w_x;   /* [4, units, inputs] */
    const int8_t *w_h;   /* [4, units, units] */
    const int32_t *bias; /* [4, units] */
} qk_lstm;

/** The scratch: the gates of one row. */
QK_INLINE size_t qk_lstm_scratch(int32_t units)
{
    return QK_GATES * (size_t)units * sizeof(int16_t);
}

/** One row of weights times one row of codes, plus a bias; limited to int32. */
QK_INLINE int32_t qk_weigh(const int8_t *codes, int32_t zero_point, const int8_t *weights,
                           int32_t n, int32_t bias)
{
    int64_t acc = bias;
    for (int32_t i = 0; i < n; i++)
        acc += (codes[i] - zero_point) * weights[i];
    return qi_saturate_i64(acc);
}

QK_INLINE int32_t qk_clamp_i16(int64_t value)
{
    return qi_clamp(qi_saturate_i64(value), INT16_MIN, INT16_MAX);
}

/** A gate of one unit. */
QK_INLINE int16_t qk_gate_of(const qk_lstm *p, const int8_t *x, const int8_t *h, int g,
                             int32_t unit)
{
    size_t const row = (size_t)g * (size_t)p->units + (size_t)unit;
    const int8_t *w_x = p->w_x + row * (size_t)p->inputs;
    const int8_t *w_h = p->w_h + row * (size_t)p->units;
    int32_t const of_x = qk_weigh(x, p->x_zero_point, w_x, p->inputs, p->bias[row]);
    int32_t const of_h = qk_weigh(h, p->h_zero_point, w_h, p->units, 0);
    int32_t const from_x = qk_clamp_i16(qi_requantize(of_x, p->mult_x[g], p->shift_x[g]));
    int32_t const from_h = qi_requantize(of_h, p->mult_h[g], p->shift_h[g]);
    int16_t const sum = (int16_t)qk_clamp_i16((int64_t)from_x + from_h);
    return g == QK_CELL_GATE ? qi_tanh_i16(sum, QK_GATE_BITS) : qi_logistic_i16(sum, QK_GATE_BITS);
}

/** The next code of a cell; gates: those of its unit, `units` apart. */
QK_INLINE int16_t qk_cell_of(const qk_lstm *p, int32_t c, const int16_t *gates)
{
    size_t const units = (size_t)p->units;
    int32_t const kept = qi_rdbp(gates[QK_FORGET_GATE * units] * c, 15);
    int32_t const added =
        qi_rdbp(gates[QK_INPUT_GATE * units] * gates[QK_CELL_GATE * units], 15 + p->tanh_bits);
    int32_t const sum = qk_clamp_i16((int64_t)kept + added), clip = p->cell_clip;
    return (int16_t)(clip ? qi_clamp(sum, -clip, clip) : sum);
}

/** One step of one row: x to y, h and c. */
QK_INLINE void qk_lstm_step(const qk_lstm *p, const int8_t *x, int8_t *h, int16_t *c, int8_t *y,
                            int16_t *gates)
{
    size_t const units = (size_t)p->units;
    for (int g = 0; g < QK_GATES; g++)
        for (size_t u = 0; u < units; u++)
            gates[(size_t)g * units + u] = qk_gate_of(p, x, h, g, (int32_t)u);
    for (size_t u = 0; u < units; u++) {
        c[u] = qk_cell_of(p, c[u], gates + u);
        int32_t const hidden = gates[QK_OUTPUT_GATE * units + u] * qi_tanh_i16(c[u], p->tanh_bits);
        int64_t const value = qi_requantize(hidden, p->mult_y, p->shift_y);
        h[u] = (int8_t)qk_code(value, p->h_zero_point, INT8_MIN, INT8_MAX);
    }
    memcpy(y, h, units);
}

QK_INLINE void qk_lstm_run(const qk_lstm *p, const void *x, const void *h, const void *c, void *y,
                           void *next_h, void *next_c, void *scratch)
{
    size_t const states = (size_t)p->batch * (size_t)p->units;
    const int8_t *from = (const int8_t *)x;
    int8_t *to = (int8_t *)y;
    memcpy(next_h, h, states);
    memcpy(next_c, c, states * sizeof(int16_t));
    for (int32_t b = 0; b < p->batch; b++)
        for (int32_t t = 0; t < p->steps; t++, from += p->inputs, to += p->units)
            qk_lstm_step(p, from, (int8_t *)next_h + (size_t)b * (size_t)p->units,
                         (int16_t *)next_c + (size_t)b * (size_t)p->units, to, (int16_t *)scratch);
}

#endif

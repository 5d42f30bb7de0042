/**
 * Functions of 16-bit codes, as TensorFlow Lite computes them:
 *
 *     logistic, tanh    lines between 256 steps of 1/24 (or 1/48): S 4096 3 steps of 2^-9 (2^-8) a
 *                       code, cut to 15 bits
 *     table             lines between 513 entries over all codes
 *     softmax16         two such tables: exp over -10..0, 1 / (1 + x) over 0..1
 *     leaky_relu, abs   prelu with the one code 1 or -1 as alpha
 */
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <string.h>

enum { LINES = 512 };

static const qat_qtensor *input(const qat_emit *e)
{
    return &e->graph->tensors[e->inputs[0]];
}

static const qat_qtensor *output(const qat_emit *e)
{
    return &e->graph->tensors[e->output];
}

bool qat_is_power_of_two(float scale, int *exponent)
{
    float const log = logf(scale) * (1.0f / logf(2.0f));
    *exponent = (int)roundf(log);
    return fabsf(log - roundf(log)) < 1e-3f;
}

/** Append a constant vector of 16-bit codes. */
static qat_status append_s16(const qat_emit *e, const char *part, int count, const int16_t *values,
                             int *index, qat_error *err)
{
    qat_qtensor t = {.type = QI_S16,
                     .bits = 16,
                     .rank = 1,
                     .dims = {count, 1, 1, 1},
                     .scale = 1.0f,
                     .data = (void *)values, /* copied */
                     .source_index = -1};
    qat_part_name(t.name, e->name, part);
    *index = qat_qgraph_tensor(e->graph, &t, err);
    return qat_append_status(*index, err);
}

/* ------------------------------------------------------------------ tables of lines */

/** An entry of a table; what is no number becomes 0, as in TensorFlow Lite on x86. */
static int16_t entry_of(double code)
{
    return (int16_t)(isnan(code) ? 0 : fmin(fmax(code, INT16_MIN), INT16_MAX));
}

/**
 * Fill a table for a function over low..high, so that its lines lie on both sides of the function:
 * an entry is lowered by half the error in the middle of its line. unit: the code of 1. least,
 * most: where the function is -INFINITY or no number. TensorFlow Lite does so in float32, and in
 * float64 for softmax; a few entries differ.
 */
#define FILL_LINES(NAME, REAL, ROUND)                                                              \
    static REAL NAME##_at(REAL (*f)(REAL), REAL x, REAL least, REAL most)                          \
    {                                                                                              \
        REAL const y = f(x);                                                                       \
        return isnan(y) ? most : y == (REAL)-INFINITY ? least : y;                                 \
    }                                                                                              \
    static void NAME(int16_t table[LINES + 1], REAL (*f)(REAL), REAL low, REAL high, REAL unit,    \
                     REAL least, REAL most)                                                        \
    {                                                                                              \
        REAL const step = (high - low) / LINES, half = step / 2;                                   \
        for (int i = 0; i <= LINES; i++) {                                                         \
            REAL const at = i < LINES ? low + (REAL)i * step : high;                               \
            REAL const first = ROUND(NAME##_at(f, at, least, most) * unit);                        \
            REAL const next = NAME##_at(f, low + (REAL)(i + 1) * step, least, most) * unit;        \
            REAL const middle = ROUND(NAME##_at(f, at + half, least, most) * unit);                \
            REAL const error = ROUND((next + first) / 2) - middle;                                 \
            table[i] = entry_of((double)(i < LINES ? first - ROUND(error / 2) : first));           \
        }                                                                                          \
    }

FILL_LINES(fill_lines, float, roundf)
FILL_LINES(fill_lines_f64, double, round)

qat_status qat_emit_wide_table(const qat_emit *e, qat_real_fn *f, qat_error *err)
{
    float const low = input(e)->scale * INT16_MIN, high = input(e)->scale * INT16_MAX;
    float const out_low = output(e)->scale * INT16_MIN, out_high = output(e)->scale * INT16_MAX;
    int16_t table[LINES + 1];
    int inputs[2] = {e->inputs[0]};
    fill_lines(table, f, low, high, 65536.0f / (out_high - out_low), out_low, out_high);
    qat_emit with_table = *e;
    with_table.n_inputs = 2;
    with_table.inputs = inputs;
    qat_status const st = append_s16(e, "table", LINES + 1, table, &inputs[1], err);
    return st ? st : qat_emit_op(&with_table, "table", QI_ROUND_NONE, 0, NULL, 0, err);
}

/* ------------------------------------------------------------------ logistic, tanh */

/** The steps of a code, factor / 2^right with factor up to 2^15. */
static int32_t step_factor(const qat_emit *e, bool is_tanh, int *right)
{
    int exponent;
    bool const is_power = qat_is_power_of_two(input(e)->scale, &exponent);
    int const left = exponent + 12;
    double factor = (double)input(e)->scale * 4096.0 * 3.0;
    *right = 0;
    if (is_power && (left == 0 || (is_tanh && left == 1)))
        return 3 << left;
    for (; factor <= 32767.0 / 2.0 && *right <= 30; factor *= 2.0)
        ++*right;
    return factor < 32768.0 ? (int32_t)factor : -1;
}

qat_status qat_emit_wide_sigmoid(const qat_emit *e, const char *op, qat_error *err)
{
    int right;
    int32_t const factor = step_factor(e, strcmp(op, "tanh") == 0, &right);
    int32_t const params[] = {factor * (1 << 16), 15 - right, 0};
    if (factor < 0)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: %s of 16-bit codes of scale %g", e->name, op,
                        (double)input(e)->scale);
    return qat_emit_op(e, op, QI_ROUND_NONE, 3, params, 0, err);
}

/* ------------------------------------------------------------------ softmax */

static double reciprocal(double x)
{
    return 1.0 / (1.0 + x);
}

qat_status qat_emit_softmax16(const qat_emit *e, float beta, qat_error *err)
{
    int16_t table[LINES + 1];
    int inputs[3] = {e->inputs[0]};
    int32_t params[2];
    qat_emit with_tables = *e;
    with_tables.n_inputs = 3;
    with_tables.inputs = inputs;
    qat_requantize_multiplier((double)(input(e)->scale * beta) / (10.0 / 65535.0), &params[0],
                              &params[1]);
    fill_lines_f64(table, exp, -10.0, 0.0, 32768.0, 0.0, 0.0);
    qat_status st = append_s16(e, "exp", LINES + 1, table, &inputs[1], err);
    fill_lines_f64(table, reciprocal, 0.0, 1.0, 32768.0, 0.0, 0.0);
    if (!st)
        st = append_s16(e, "reciprocal", LINES + 1, table, &inputs[2], err);
    return st ? st : qat_emit_op(&with_tables, "softmax16", QI_ROUND_NONE, 2, params, 0, err);
}

/* ------------------------------------------------------------------ leaky_relu, abs */

/** prelu with the real multipliers of positive and of negative codes, and one code as alpha. */
static qat_status emit_two_lines(const qat_emit *e, double positive, double negative, int16_t alpha,
                                 qat_error *err)
{
    int inputs[2] = {e->inputs[0]};
    int32_t params[6];
    qat_emit with_alpha = *e;
    with_alpha.n_inputs = 2;
    with_alpha.inputs = inputs;
    qat_requantize_multiplier(positive, &params[0], &params[1]);
    qat_requantize_multiplier(negative, &params[2], &params[3]);
    qat_emit_clamp(e, &params[4], &params[5]);
    qat_status const st = append_s16(e, "alpha", 1, &alpha, &inputs[1], err);
    return st ? st : qat_emit_op(&with_alpha, "prelu", QI_ROUND_TWICE, 6, params, 0, err);
}

qat_status qat_emit_wide_leaky_relu(const qat_emit *e, float alpha, qat_error *err)
{
    float const x = input(e)->scale, y = output(e)->scale;
    double const negative = (double)(x * alpha / y);
    return emit_two_lines(e, (double)(x / y), fabs(negative), negative < 0 ? -1 : 1, err);
}

qat_status qat_emit_wide_abs(const qat_emit *e, qat_error *err)
{
    float const m = input(e)->scale / output(e)->scale;
    return emit_two_lines(e, (double)m, (double)m, -1, err);
}

/* ------------------------------------------------------------------ exact evaluation */

/** exp of a code that is `below` under the row's largest, with 15 fractional bits. */
static int32_t exponential(const qat_exact_call *call, int32_t below)
{
    const int32_t *p = call->op->params;
    int64_t const code = (int64_t)INT16_MAX + qi_requantize(-below, p[0], p[1]);
    return qi_lookup_i16(call->in[1], (int32_t)(code < INT16_MIN ? INT16_MIN : code));
}

/** 1 / (1 + x), x = sum 2^-places - 1, where places makes it lie in 0..1. */
static int32_t reciprocal_of(const qat_exact_call *call, int64_t sum, int places)
{
    double const x = ldexp((double)sum, -places) - 1.0; /* exact: a sum has 31 bits at most */
    double const code = floor(x * 65536.0 + 0.5) - 32768.0;
    return qi_lookup_i16(call->in[2], (int32_t)fmin(code, INT16_MAX));
}

static void softmax16_row(const qat_exact_call *call, size_t first, size_t n, const int16_t *x,
                          int16_t *y)
{
    int32_t largest = INT16_MIN;
    int64_t sum = 0;
    for (size_t i = first; i < first + n; i++)
        largest = x[i] > largest ? x[i] : largest;
    for (size_t i = first; i < first + n; i++)
        sum += exponential(call, largest - x[i]);
    sum = sum < 2 ? 2 : sum;
    int const places = qi_bit_length((uint64_t)sum) - 1;
    int32_t const reciprocal = reciprocal_of(call, sum, places);
    for (size_t i = first; i < first + n; i++) {
        int64_t const product = (int64_t)exponential(call, largest - x[i]) * reciprocal;
        int64_t const value = (product + (INT64_C(1) << (places - 1))) >> places;
        y[i] = (int16_t)(value < 0 ? 0 : value > INT16_MAX ? INT16_MAX : value);
    }
}

static void softmax16_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *y = qat_exact_output(call);
    size_t const n = (size_t)y->dims[y->rank - 1], count = qat_qtensor_count(y);
    const void *from = qat_exact_in(call, 0, sample);
    void *to = qat_exact_out(call, sample);
    for (size_t i = 0; i < count; i += n)
        softmax16_row(call, i, n, from, to);
}

/**
 * An exponential moves by 4 steps of 2^-15 where its difference is rounded to 10 / 65535, and by 1
 * beside the line of its table; a term below e^-10 counts as that. So does each of the n terms of
 * the sum, in proportion to itself, and by 1 at least.
 */
static double softmax16_bound(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *y = &graph->tensors[op->outputs[0]];
    return 12.0 + 1.5 * (double)y->dims[y->rank - 1];
}

const qat_integer_op qat_integer_softmax16 = {
    .name = "softmax16", .sample = softmax16_sample, .is_wide = true, .bound = softmax16_bound};

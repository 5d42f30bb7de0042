/**
 * Curves (autograd/ops/curves.h), and leaky_relu of imported models. docs/arithmetic.md, section 8.
 *
 *                    logistic, tanh                      the others
 *     output         a fixed range: 2^-b and the         observed
 *                    lowest code, 2^-(b-1) and the
 *                    middle
 *     paper          fixed point, 4 integer bits         a table of the float function
 *     tflite, onnx   a table of the float function       the same; hard_swish in profile tflite:
 *                                                        TensorFlow Lite's own table
 *
 * A curve that is added has an entry below, qat_quant_NAME. Where its output's range is observed,
 * this is {.role = QAT_ROLE_TABLE} and no more. A fixed range is QAT_ROLE_FIXED with fixed_min and
 * fixed_max. A freeze function is only for a table that is not the float function's; max_quanta
 * then bounds how far from it the table may be.
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <string.h>

enum { CODES = 256, MAX_RADIUS = 1 << 30 };

static const qat_qtensor *input(const qat_emit *e)
{
    return &e->graph->tensors[e->inputs[0]];
}

static const qat_qtensor *output(const qat_emit *e)
{
    return &e->graph->tensors[e->output];
}

/* ------------------------------------------------------------------ logistic, tanh */

/**
 * (mult, shift) = quantize_multiplier(S 2^27),  radius = floor(15 2^(27 - shift))
 *
 *     y = lowest                 q - Z <= -radius
 *         highest                q - Z >= radius
 *         f(requantize(q - Z))   else, rounded to b bits
 */
static qat_status emit_fixed_point(const qat_emit *e, const char *op, qat_error *err)
{
    double const real = (double)input(e)->scale * (1 << 27);
    int32_t mult;
    int shift;
    qat_quantize_multiplier(real, &mult, &shift);
    /*
     * From scale 8 on, every code but the zero_point is beyond the radius. A radius of 1 instead of
     * 0 keeps f(0).
     */
    double const radius = fmax(floor(ldexp(15.0, 27 - shift)), 1.0);
    int32_t const params[] = {mult, shift < 31 ? shift : 31,
                              (int32_t)fmin(radius, (double)MAX_RADIUS)};
    return qat_emit_op(e, op, QI_ROUND_NONE, 3, params, 0, err);
}

static float real_logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float real_tanh(float x)
{
    return tanhf(x);
}

qat_status qat_emit_real_table(const qat_emit *e, qat_real_fn *f, qat_error *err)
{
    const qat_qtensor *x = input(e), *y = output(e);
    float const inverse = 1.0f / y->scale;
    uint8_t codes[CODES];
    int32_t lo, hi;
    if (x->type == QI_S16)
        return qat_emit_wide_table(e, f, err);
    qat_tensor_codes(y, &lo, &hi);
    for (int i = 0; i < CODES; i++) {
        int32_t const difference = qat_code_at((qi_type)x->type, i) - x->zero_point;
        float const steps = roundf(f(x->scale * (float)difference) * inverse);
        float const code = steps + (float)y->zero_point;
        codes[i] = (uint8_t)(code > (float)lo ? code > (float)hi ? hi : (int32_t)code : lo);
    }
    return qat_emit_table(e, 1, codes, err);
}

qat_status qat_emit_sigmoid(const qat_emit *e, const char *op, qat_error *err)
{
    qat_status const st = qat_refuse_activation(e, op, err);
    if (st)
        return st;
    if (input(e)->type == QI_S16)
        return qat_emit_wide_sigmoid(e, op, err);
    if (e->profile == QAT_PROFILE_TFLITE)
        return qat_emit_real_table(e, strcmp(op, "tanh") == 0 ? real_tanh : real_logistic, err);
    return emit_fixed_point(e, op, err);
}

/* ------------------------------------------------------------------ tables of integers */

/** The value of a function for a difference x; the output's zero_point is not added yet. */
typedef int32_t step_fn(const void *params, int32_t x);

static qat_status emit_integer_table(const qat_emit *e, step_fn *of, const void *params,
                                     qat_error *err)
{
    const qat_qtensor *x = input(e), *y = output(e);
    uint8_t codes[CODES];
    int32_t lo, hi;
    qat_emit_clamp(e, &lo, &hi);
    for (int i = 0; i < CODES; i++) {
        int64_t const code = (int64_t)of(params, qat_code_at(x->type, i) - x->zero_point);
        codes[i] = (uint8_t)qi_clamp(qi_saturate_i64(code + y->zero_point), lo, hi);
    }
    return qat_emit_table(e, 1, codes, err);
}

struct multiplier {
    int32_t mult; /* of a negative number: negative */
    int32_t shift;
};

static struct multiplier multiplier_of(float real)
{
    struct multiplier m;
    qat_requantize_multiplier(real < 0 ? -(double)real : (double)real, &m.mult, &m.shift);
    if (real < 0)
        m.mult = -m.mult;
    return m;
}

struct leaky_relu {
    struct multiplier positive, negative;
};

static int32_t leaky_relu_of(const void *params, int32_t x)
{
    const struct leaky_relu *p = params;
    struct multiplier const m = x >= 0 ? p->positive : p->negative;
    return qi_requantize(x, m.mult, m.shift);
}

qat_status qat_emit_leaky_relu(const qat_emit *e, float alpha, qat_error *err)
{
    float const x = input(e)->scale, y = output(e)->scale;
    if (input(e)->type == QI_S16)
        return qat_emit_wide_leaky_relu(e, alpha, err);
    struct leaky_relu const p = {multiplier_of(x / y), multiplier_of(x * alpha / y)};
    qat_status const st = qat_refuse_activation(e, "leaky_relu", err);
    return st ? st : emit_integer_table(e, leaky_relu_of, &p, err);
}

/* ------------------------------------------------------------------ rsqrt */

/** 1 / sqrt(x) with 20 fractional bits, then on the output's scale. x <= 0 gives the highest code.
 */
static int32_t rsqrt_of(const void *params, int32_t x)
{
    enum { FRACTION = 20 };
    const struct multiplier *m = params;
    int32_t mult;
    int shift;
    if (x <= 0)
        return INT32_MAX;
    qi_inv_sqrt_multiplier(x, &mult, &shift);
    int32_t const root = qi_requantize(1, mult, shift + FRACTION), right = m->shift - FRACTION;
    return qi_requantize(root, m->mult, right > -31 ? right : -31);
}

qat_status qat_emit_rsqrt(const qat_emit *e, qat_error *err)
{
    struct multiplier const m = multiplier_of(1.0f / (sqrtf(input(e)->scale) * output(e)->scale));
    return emit_integer_table(e, rsqrt_of, &m, err);
}

/* ------------------------------------------------------------------ hard swish */

/** A multiplier in 16 bits: real = mult 2^(shift - 15). */
struct multiplier_i16 {
    int16_t mult;
    int32_t shift;
};

struct hard_swish {
    struct multiplier_i16 output; /* S / (128 S'), at most 1 */
    struct multiplier_i16 relu;   /* x in 1/128 steps to where 32768 means 3 */
};

static struct multiplier_i16 multiplier_i16_of(float real)
{
    struct multiplier const m = multiplier_of(real);
    int32_t const rounded = m.mult < 0x7fff0000 ? (m.mult + (1 << 15)) >> 16 : INT16_MAX;
    return (struct multiplier_i16){(int16_t)rounded, m.shift};
}

static int16_t limit_i16(int32_t x)
{
    return (int16_t)qi_clamp(x, INT16_MIN, INT16_MAX);
}

/**
 * Turns x, in 1/128 steps, into [-1, 1) in Q15 between -3 and 3, saturating outside. There is a
 * left shift by all but one place, the multiplier, then the last place; or the multiplier and a
 * right shift.
 */
static int16_t relu_part(int16_t fine, const struct multiplier_i16 *m)
{
    int const left = m->shift < 16 ? m->shift : 16; /* beyond that, everything but 0 saturates */
    int16_t x = fine;
    if (left > 0)
        x = qi_saturating_rounding_mul_pot_i16(x, left - 1);
    x = qi_srdhm_i16(x, m->mult);
    if (left > 0)
        return limit_i16(2 * x);
    return qi_rdbp_i16(x, left > -15 ? -left : 15);
}

/** The product of relu and value is truncated towards zero, unlike all others. */
static int32_t hard_swish_of(const void *params, int32_t x)
{
    const struct hard_swish *p = params;
    int16_t const fine = (int16_t)(x * 128); /* |x| <= 255 */
    int16_t const value = qi_srdhm_i16(fine, p->output.mult);
    int32_t const relu = (relu_part(fine, &p->relu) + (1 << 15)) >> 1; /* Q15, [0, 1) */
    return qi_rdbp_i16((int16_t)(relu * value / (1 << 15)), -p->output.shift);
}

qat_status qat_emit_hard_swish(const qat_emit *e, qat_error *err)
{
    float const x = input(e)->scale, y = output(e)->scale, fine = 1.0f / 128.0f * x;
    struct hard_swish const p = {multiplier_i16_of(fine / y),
                                 multiplier_i16_of(fine / (3.0f / 32768.0f))};
    qat_status const st = qat_refuse_activation(e, "hard_swish", err);
    if (st)
        return st;
    if (p.output.shift > 0 || p.output.shift < -15)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: hard_swish from scale %g to %g: their ratio is outside 2^-9..128",
                        e->name, (double)x, (double)y);
    return emit_integer_table(e, hard_swish_of, &p, err);
}

/* ------------------------------------------------------------------ entries */

static qat_status freeze_sigmoid(const qat_fused_layer *layer, const char *op, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return layer->profile == QAT_PROFILE_ONNX ? qat_freeze_table(layer, err)
                                              : qat_emit_sigmoid(&e, op, err);
}

static qat_status freeze_logistic(const qat_fused_layer *layer, qat_error *err)
{
    return freeze_sigmoid(layer, "logistic", err);
}

static qat_status freeze_tanh(const qat_fused_layer *layer, qat_error *err)
{
    return freeze_sigmoid(layer, "tanh", err);
}

static qat_status freeze_hard_swish(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return layer->profile == QAT_PROFILE_TFLITE ? qat_emit_hard_swish(&e, err)
                                                : qat_freeze_table(layer, err);
}

const qat_quant qat_quant_logistic = {
    .role = QAT_ROLE_FIXED, .freeze = freeze_logistic, .fixed_max = 1, .takes_wide = true};
const qat_quant qat_quant_tanh = {.role = QAT_ROLE_FIXED,
                                  .freeze = freeze_tanh,
                                  .fixed_min = -1,
                                  .fixed_max = 1,
                                  .takes_wide = true};
const qat_quant qat_quant_hard_swish = {
    .role = QAT_ROLE_TABLE, .freeze = freeze_hard_swish, .max_quanta = 1.6};
const qat_quant qat_quant_silu = {.role = QAT_ROLE_TABLE};
const qat_quant qat_quant_gelu = {.role = QAT_ROLE_TABLE};

/* ------------------------------------------------------------------ exact evaluation */

typedef int32_t fixed_fn(int32_t x, int integer_bits);

/** table[byte]: code of y. unit_bits: 2^unit_bits codes span [0, 1). */
static void sigmoid_sample(const qat_exact_call *call, int sample, fixed_fn *f, int unit_bits)
{
    const qat_qtensor *y = qat_exact_output(call);
    const int32_t *p = call->op->params;
    int32_t table[256], lo, hi;
    qat_tensor_codes(y, &lo, &hi);
    qat_exact_differences(qat_exact_input(call, 0), table);
    for (int i = 0; i < 256; i++) {
        if (table[i] <= -p[2]) {
            table[i] = lo;
        } else if (table[i] >= p[2]) {
            table[i] = hi;
        } else {
            int32_t const value = f(qi_requantize(table[i], p[0], p[1]), 4);
            table[i] = qi_clamp(qi_rdbp(value, 31 - unit_bits) + y->zero_point, lo, hi);
        }
    }
    qat_exact_map(call, sample, table);
}

typedef int32_t line_fn(int32_t x);

/** Of 16-bit codes: a line between the entries of the function's table. */
static bool wide_sample(const qat_exact_call *call, int sample, line_fn *line)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const int32_t *p = call->op->params;
    const void *from = qat_exact_in(call, 0, sample);
    for (size_t i = 0; y->type == QI_S16 && i < qat_qtensor_count(y); i++) {
        int32_t const at = qi_requantize_half_up(qat_exact_code(x, from, i), p[0], p[1]);
        qat_exact_store(y, qat_exact_out(call, sample), i, line(at));
    }
    return y->type == QI_S16;
}

static void logistic_sample(const qat_exact_call *call, int sample)
{
    if (wide_sample(call, sample, qi_logistic_i16_line))
        return;
    sigmoid_sample(call, sample, qi_logistic, qat_exact_output(call)->bits);
}

static void tanh_sample(const qat_exact_call *call, int sample)
{
    if (wide_sample(call, sample, qi_tanh_i16_line))
        return;
    sigmoid_sample(call, sample, qi_tanh, qat_exact_output(call)->bits - 1);
}

/* ------------------------------------------------------------------ rows */

/**
 * The smallest real |x| that saturates. Up to scale 1 it is 7.5 or more, where both functions have
 * reached their last code. At scale 4 the radius is 1: logistic(4) is 4.6 codes of 8 bits from 1.
 */
static double saturated_from(const qat_qgraph *graph, const qat_qop *op)
{
    double const scale = qat_input_scale(graph, op, 0);
    int shift;
    (void)frexp(ldexp(scale, 27), &shift);
    return scale * fmax(floor(ldexp(15.0, 27 - shift)), 1.0);
}

/**
 * Of 16-bit codes: the lines of a table with a step of 1/24 are up to h^2 f'' / 8 from the
 * function, 0.7 quanta, x is rounded to 2^-9 steps and its factor to 15 bits, 0.3 and 0.5, the rest
 * are roundings. tanh has twice the function, twice as fast.
 */
enum { WIDE_LOGISTIC_QUANTA = 3, WIDE_TANH_QUANTA = 6 };

/**
 * A scale 2^e (1 + d) with a small d counts as 2^e (quant_wide.c). So x is wrong by d x, and f(x)
 * by at most d max x f'(x), which is `steepest`. In quanta of 2^-15.
 */
static double wide_sigmoid_bound(const qat_qgraph *graph, const qat_qop *op, double quanta,
                                 double steepest)
{
    double const scale = qat_input_scale(graph, op, 0);
    int exponent;
    if (!qat_is_power_of_two((float)scale, &exponent))
        return quanta;
    return quanta + steepest * fabs(ldexp(scale, -exponent) - 1.0) * 32768.0;
}

/** That of the polynomials or, if it is more, (1 - f(radius S1)) / S2. */
static double logistic_bound(const qat_qgraph *graph, const qat_qop *op)
{
    if (graph->tensors[op->outputs[0]].type == QI_S16)
        return wide_sigmoid_bound(graph, op, WIDE_LOGISTIC_QUANTA, 0.224);
    double const missing = 1.0 / (1.0 + exp(saturated_from(graph, op)));
    return fmax(QAT_FIXED_POINT_QUANTA, missing / qat_output_scale(graph, op));
}

static double tanh_bound(const qat_qgraph *graph, const qat_qop *op)
{
    if (graph->tensors[op->outputs[0]].type == QI_S16)
        return wide_sigmoid_bound(graph, op, WIDE_TANH_QUANTA, 0.448);
    double const missing = 1.0 - tanh(saturated_from(graph, op));
    return fmax(QAT_FIXED_POINT_QUANTA, missing / qat_output_scale(graph, op));
}

const qat_integer_op qat_integer_logistic = {
    .name = "logistic", .sample = logistic_sample, .is_wide = true, .bound = logistic_bound};
const qat_integer_op qat_integer_tanh = {
    .name = "tanh", .sample = tanh_sample, .is_wide = true, .bound = tanh_bound};

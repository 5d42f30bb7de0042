/**
 * logistic and tanh: Jacob et al. A.1; docs/arithmetic.md, section 8. Output scale and zero_point
 * are fixed: 2^-b and the lowest code, 2^-(b-1) and the middle.
 *
 * Profile paper, fixed point with 4 integer bits:
 *
 *     (mult, shift) = quantize_multiplier(S 2^27),  radius = floor(15 2^(27 - shift))
 *     y = lowest                 q - Z <= -radius
 *         highest                q - Z >= radius
 *         f(requantize(q - Z))   else, rounded to b bits
 *
 * Profile tflite: a table of round(f(S (q - Z)) (1 / S')) + Z', every operation in float32.
 */
#include "autograd/op.h"
#include "fakequant/quant_ops.h"
#include "infer/fixedpoint.h"

#include <math.h>
#include <string.h>

enum { MAX_RADIUS = 1 << 30 };

/* ------------------------------------------------------------------ appending the ops */

typedef float real_fn(float x);

static float real_logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float real_tanh(float x)
{
    return tanhf(x);
}

static qat_status emit_float_table(const qat_emit *e, real_fn *f, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    float const inverse = 1.0f / y->scale;
    uint8_t codes[256];
    int32_t lo, hi;
    qat_tensor_codes(y, &lo, &hi);
    for (int i = 0; i < 256; i++) {
        int32_t const difference = qat_code_at((qi_type)x->type, i) - x->zero_point;
        float const steps = roundf(f(x->scale * (float)difference) * inverse);
        float const code = steps + (float)y->zero_point;
        codes[i] = (uint8_t)(code < (float)lo ? lo : code > (float)hi ? hi : (int32_t)code);
    }
    return qat_emit_table(e, 1, codes, err);
}

static qat_status emit_fixed_point(const qat_emit *e, const char *op, qat_error *err)
{
    double const real = (double)e->graph->tensors[e->inputs[0]].scale * (1 << 27);
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

qat_status qat_emit_sigmoid(const qat_emit *e, const char *op, qat_error *err)
{
    qat_status const st = qat_refuse_activation(e, op, err);
    if (st)
        return st;
    if (e->profile == QAT_PROFILE_TFLITE)
        return emit_float_table(e, strcmp(op, "tanh") == 0 ? real_tanh : real_logistic, err);
    return emit_fixed_point(e, op, err);
}

static qat_status freeze_logistic(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_sigmoid(&e, "logistic", err);
}

static qat_status freeze_tanh(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_sigmoid(&e, "tanh", err);
}

const qat_quant qat_quant_logistic = {
    .role = QAT_ROLE_FIXED, .freeze = freeze_logistic, .fixed_max = 1};
const qat_quant qat_quant_tanh = {
    .role = QAT_ROLE_FIXED, .freeze = freeze_tanh, .fixed_min = -1, .fixed_max = 1};

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

static void logistic_sample(const qat_exact_call *call, int sample)
{
    sigmoid_sample(call, sample, qi_logistic, qat_exact_output(call)->bits);
}

static void tanh_sample(const qat_exact_call *call, int sample)
{
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

/** That of the polynomials or, if it is more, (1 - f(radius S1)) / S2. */
static double logistic_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const missing = 1.0 / (1.0 + exp(saturated_from(graph, op)));
    return fmax(QAT_FIXED_POINT_QUANTA, missing / qat_output_scale(graph, op));
}

static double tanh_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const missing = 1.0 - tanh(saturated_from(graph, op));
    return fmax(QAT_FIXED_POINT_QUANTA, missing / qat_output_scale(graph, op));
}

const qat_integer_op qat_integer_logistic = {
    .name = "logistic", .sample = logistic_sample, .bound = logistic_bound};
const qat_integer_op qat_integer_tanh = {
    .name = "tanh", .sample = tanh_sample, .bound = tanh_bound};

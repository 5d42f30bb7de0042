/**
 * Clamps (ReLU, ReLU6) that are not fused, and changes of scale: one requantization with a clamp.
 *
 *     y = clamp(Z3 + requantize(q - Z1, M)),   with the bounds of the activation as codes
 *     M = S1 / S3: float64; in profile tflite float32 for a clamp, but for one of 16-bit codes that
 *     goes below 0, which TensorFlow Lite has only as a QUANTIZE and its limits
 *
 * In profile onnx it is a table: what DequantizeLinear and QuantizeLinear make of each code, every
 * operation in float32, ties to even.
 *
 *     y = clamp(Z3 + even(S1 (q - Z1) / S3))
 *
 * If they are fused into a layer, they become the clamp of that layer.
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>

/* ------------------------------------------------------------------ appending the op */

static qat_status emit_even_table(const qat_emit *e, qat_error *err)
{
    enum { CODES = 256 };
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    uint8_t codes[CODES];
    int32_t lo, hi;
    qat_emit_clamp(e, &lo, &hi);
    for (int i = 0; i < CODES; i++) {
        float const real = x->scale * (float)(qat_code_at((qi_type)x->type, i) - x->zero_point);
        float const code = rintf(real / y->scale) + (float)y->zero_point;
        codes[i] = (uint8_t)(code < (float)lo ? lo : code > (float)hi ? hi : (int32_t)code);
    }
    return qat_emit_table(e, 1, codes, err);
}

qat_status qat_emit_requantize(const qat_emit *e, qat_error *err)
{
    if (e->profile == QAT_PROFILE_ONNX)
        return emit_even_table(e, err);
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    bool const relu =
        (!isinf(e->act_min) || !isinf(e->act_max)) && !(y->type == QI_S16 && e->act_min < 0);
    double const real = relu && e->profile == QAT_PROFILE_TFLITE
                            ? (double)(x->scale / y->scale)
                            : (double)x->scale / (double)y->scale;
    int32_t params[4];
    qat_requantize_multiplier(real, &params[0], &params[1]);
    qat_emit_clamp(e, &params[2], &params[3]);
    return qat_emit_op(e, "requantize", qat_emit_rounding(e, QI_ROUND_TWICE), 4, params, 0, err);
}

qat_status qat_freeze_requantize(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_requantize(&e, err);
}

#define CLAMP(op, MIN, MAX, text)                                                                  \
    const qat_quant qat_quant_##op = {                                                             \
        .role = QAT_ROLE_CLAMP, .clamp_min = (MIN), .clamp_max = (MAX), .takes_wide = true};
QAT_CLAMPS(CLAMP)

/* ------------------------------------------------------------------ exact evaluation */

static void requantize_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const qat_qop *op = call->op;
    const int32_t *p = op->params;
    const uint8_t *from = qat_exact_in(call, 0, sample);
    uint8_t *to = qat_exact_out(call, sample);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        int32_t const difference = qat_exact_code(x, from, i) - x->zero_point;
        int64_t const value = qat_rounded(op->rounding, difference, p[0], p[1]);
        qat_exact_store_clamped(y, to, i, value + y->zero_point, p[2], p[3]);
    }
}

static double requantize_bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const m = qat_input_scale(graph, op, 0) / qat_output_scale(graph, op);
    return qat_rounded_quanta(op, m) + qat_float_quanta(graph, op, 1.0);
}

const qat_integer_op qat_integer_requantize = {
    .name = "requantize", .sample = requantize_sample, .is_wide = true, .bound = requantize_bound};

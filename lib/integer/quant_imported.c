/**
 * Ops that only imported models have, as TensorFlow Lite's kernels compute them. x = q - Z, and the
 * same for other codes. Every M is computed in float32, but for squared_difference.
 *
 *     batch_matmul         requantize(sum of a b, (S_a S_b) / S'); in profile onnx EVEN
 *     div                  a / b, times S_a / (S_b S')
 *     prelu                x >= 0: requantize(x, S / S'), else
 *                          requantize(x alpha, S S_alpha / S')
 *     squared_difference   like add, with 7 in place of 20; M of the square = twice^2 / (2^14 S')
 *     compare              each side is requantize(x 2^8, S)
 *     sum                  round((sum of q) S / S' - n Z S / S') + Z', every operation in float32
 *     log_softmax          exponentials as in softmax; output scale 1/16
 */
#include "integer/quant_ops.h"

#include <math.h>

qat_status qat_emit_batch_matmul(const qat_emit *e, bool transpose_a, bool transpose_b,
                                 qat_error *err)
{
    const qat_qtensor *t = e->graph->tensors, *y = &t[e->output];
    bool const is_onnx = e->profile == QAT_PROFILE_ONNX && y->type != QI_S16;
    float const a = t[e->inputs[0]].scale, b = t[e->inputs[1]].scale;
    double const m =
        is_onnx ? (double)(a * b / y->scale) : qat_accumulator_multiplier(a, b, y->scale, true);
    int32_t params[6] = {transpose_a, transpose_b};
    qat_requantize_multiplier(m, &params[2], &params[3]);
    qat_clamp_codes(y, e->act_min, e->act_max, &params[4], &params[5]);
    qi_rounding const rounding = y->type == QI_S16 ? QI_ROUND_LONG
                                 : is_onnx         ? QI_ROUND_EVEN
                                                   : QI_ROUND_TWICE;
    return qat_emit_op(e, "batch_matmul", rounding, 6, params, 0, err);
}

qat_status qat_emit_div(const qat_emit *e, qat_error *err)
{
    const qat_qtensor *t = e->graph->tensors, *y = &t[e->output];
    float const m = t[e->inputs[0]].scale / (t[e->inputs[1]].scale * y->scale);
    int32_t params[4];
    qat_requantize_multiplier((double)m, &params[0], &params[1]);
    qat_clamp_codes(y, e->act_min, e->act_max, &params[2], &params[3]);
    return qat_emit_op(e, "div", QI_ROUND_TWICE, 4, params, 0, err);
}

qat_status qat_emit_prelu(const qat_emit *e, qat_error *err)
{
    const qat_qtensor *t = e->graph->tensors, *output = &t[e->output];
    float const x = t[e->inputs[0]].scale, alpha = t[e->inputs[1]].scale, y = output->scale;
    int32_t params[6];
    qat_requantize_multiplier((double)(x / y), &params[0], &params[1]);
    qat_requantize_multiplier((double)(x * alpha / y), &params[2], &params[3]);
    qat_clamp_codes(output, e->act_min, e->act_max, &params[4], &params[5]);
    return qat_emit_op(e, "prelu", QI_ROUND_TWICE, 6, params, 0, err);
}

qat_status qat_emit_squared_difference(const qat_emit *e, qat_error *err)
{
    enum { LEFT_SHIFT = 7 };
    const qat_qtensor *t = e->graph->tensors, *y = &t[e->output];
    double const a = (double)t[e->inputs[0]].scale, b = (double)t[e->inputs[1]].scale;
    double const twice = 2.0 * (a > b ? a : b);
    int32_t params[9] = {LEFT_SHIFT};
    qat_requantize_multiplier(a / twice, &params[1], &params[2]);
    qat_requantize_multiplier(b / twice, &params[3], &params[4]);
    qat_requantize_multiplier(twice * twice / ((1 << 2 * LEFT_SHIFT) * (double)y->scale),
                              &params[5], &params[6]);
    qat_clamp_codes(y, e->act_min, e->act_max, &params[7], &params[8]);
    return qat_emit_op(e, "squared_difference", QI_ROUND_TWICE, 9, params, 0, err);
}

qat_status qat_emit_compare(const qat_emit *e, qi_comparison kind, qat_error *err)
{
    enum { LEFT_SHIFT = 8 };
    int32_t params[6] = {kind, LEFT_SHIFT};
    for (int i = 0; i < 2; i++)
        qat_requantize_multiplier((double)e->graph->tensors[e->inputs[i]].scale, &params[2 + 2 * i],
                                  &params[3 + 2 * i]);
    return qat_emit_op(e, "compare", QI_ROUND_NONE, 6, params, 0, err);
}

/** A float32 as a 24-bit integer and an exponent, or 0. */
static void split_float(float real, int32_t *mant, int32_t *exponent)
{
    int exp = 0;
    *mant = (int32_t)ldexpf(frexpf(real, &exp), 24);
    *exponent = *mant ? exp - 24 : 0;
}

qat_status qat_emit_sum(const qat_emit *e, unsigned axis_mask, qat_error *err)
{
    const qat_qtensor *x = &e->graph->tensors[e->inputs[0]], *y = &e->graph->tensors[e->output];
    float const scale = x->scale / y->scale;
    float const count = (float)(qat_qtensor_count(x) / qat_qtensor_count(y));
    float const bias = (float)-x->zero_point * scale * count;
    int32_t params[7] = {(int32_t)axis_mask};
    if (!isfinite(scale) || !isfinite(bias))
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: sum from scale %g to %g", e->name,
                        (double)x->scale, (double)y->scale);
    split_float(scale, &params[1], &params[2]);
    split_float(bias, &params[3], &params[4]);
    qat_clamp_codes(y, e->act_min, e->act_max, &params[5], &params[6]);
    return qat_emit_op(e, "sum", QI_ROUND_NONE, 7, params, 0, err);
}

qat_status qat_emit_log_softmax(const qat_emit *e, qat_error *err)
{
    double const scale = (double)e->graph->tensors[e->inputs[0]].scale;
    int32_t params[5];
    int shift, reverse_shift;
    qat_quantize_multiplier(fmin(scale * (1 << 26), (double)INT32_MAX), &params[0], &shift);
    if (shift < 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: log_softmax of codes of scale %g", e->name,
                        scale);
    params[1] = shift;
    params[2] = -(int32_t)floor(ldexp(31.0, 26 - shift));
    qat_quantize_multiplier(ldexp(1.0, 31 - shift) / (double)params[0], &params[3], &reverse_shift);
    params[4] = reverse_shift;
    return qat_emit_op(e, "log_softmax", QI_ROUND_NONE, 5, params, 0, err);
}

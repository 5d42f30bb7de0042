/**
 * prelu, which only imported models have, as TensorFlow Lite's reference kernel computes it:
 *
 *     x >= 0: requantize(x, S / S'),   else requantize(x alpha, S S_alpha / S')
 *
 * x = q - Z, and the same for alpha's codes. Every M is computed in float32.
 */
#include "integer/quant_ops.h"

qat_status qat_emit_batch_matmul(const qat_emit *e, bool transpose_a, bool transpose_b,
                                 qat_error *err)
{
    const qat_qtensor *t = e->graph->tensors, *y = &t[e->output];
    double const m =
        qat_accumulator_multiplier(t[e->inputs[0]].scale, t[e->inputs[1]].scale, y->scale, true);
    int32_t params[6] = {transpose_a, transpose_b};
    qat_requantize_multiplier(m, &params[2], &params[3]);
    qat_clamp_codes(y, e->act_min, e->act_max, &params[4], &params[5]);
    return qat_emit_op(e, "batch_matmul", y->type == QI_S16 ? QI_ROUND_WIDE : QI_ROUND_TWICE, 6,
                       params, 0, err);
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

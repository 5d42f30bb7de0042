/**
 * A custom layer with weights and an integer kernel of its own. It learns a gain for every
 * position:
 *
 *     y[n, h, w, c] = g[h, w] x[n, h, w, c]
 *
 * For example, a lens makes pictures darker at the corners; this layer can learn to brighten them.
 * The quantized layer, with eq. 1 of Jacob et al. for both factors, is
 *
 *     acc = (q - Z)(g - Zg),   y = clamp(Z3 + round(M acc)),   M = S Sg / S3
 *
 * The file has four parts: the float op, which is trained; freeze, which turns a trained layer into
 * an integer op; exact, the evaluation with which qat-export compares the engine; and the engine's
 * kernel.
 */
#include "qat/plugin.h"
#include "qat/rounding.h"

#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ the float op */

enum { X, GAIN };

static int gain_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    const qat_shape *x = &node->inputs[X]->shape;
    if (x->rank != 4) {
        qat_fail(err, QAT_ERR_SHAPE, "%s: position_scale takes [N, H, W, C], not rank %d",
                 node->name, x->rank);
        return -1;
    }
    defs[0] = (qat_param_def){.name = "gain",
                              .shape = QAT_SHAPE(1, x->dims[1], x->dims[2], 1),
                              .init = QAT_INIT_CONSTANT,
                              .scale = 1,
                              .trainable = true};
    return 1;
}

static qat_status gain_shape(qat_node *node, qat_error *err)
{
    const qat_shape *x = &node->inputs[X]->shape, *g = &node->inputs[GAIN]->shape;
    if (g->rank != 4 || g->dims[1] != x->dims[1] || g->dims[2] != x->dims[2] ||
        qat_shape_count(g) != (size_t)x->dims[1] * (size_t)x->dims[2])
        return qat_fail(err, QAT_ERR_SHAPE, "%s: the gain does not fit the input", node->name);
    node->shape = *x;
    return QAT_OK;
}

static void gain_forward(qat_node *node, const qat_run *run)
{
    (void)run;
    qat_real const *x = node->inputs[X]->value, *g = node->inputs[GAIN]->value;
    size_t const positions = qat_shape_count(&node->inputs[GAIN]->shape);
    size_t const channels = (size_t)node->shape.dims[3];
    size_t const count = qat_shape_count(&node->shape);
    for (size_t i = 0; i < count; i++)
        node->value[i] = g[i / channels % positions] * x[i];
}

static void gain_backward(qat_node *node, const qat_run *run)
{
    (void)run;
    qat_real const *x = node->inputs[X]->value, *g = node->inputs[GAIN]->value;
    qat_real *dx = node->inputs[X]->grad, *dg = node->inputs[GAIN]->grad;
    size_t const positions = qat_shape_count(&node->inputs[GAIN]->shape);
    size_t const channels = (size_t)node->shape.dims[3];
    size_t const count = qat_shape_count(&node->shape);
    for (size_t i = 0; i < count; i++) {
        size_t const at = i / channels % positions;
        if (dx)
            dx[i] += g[at] * node->grad[i];
        if (dg)
            dg[at] += x[i] * node->grad[i];
    }
}

/* ------------------------------------------------------------------ freeze: to an integer op */

enum { MULT, SHIFT, CLAMP_LO, CLAMP_HI, N_PARAMS };

static qat_status gain_freeze(const qat_fused_layer *layer, qat_error *err)
{
    int gain;
    qat_status st = qat_freeze_weights(layer, layer->head->inputs[GAIN], &gain, err);
    if (st)
        return st;
    const qat_qparams *out = &layer->output_params;
    double const m = (double)layer->input_params[0].scale *
                     (double)layer->graph->tensors[gain].scale / (double)out->scale;
    int32_t mult;
    int shift;
    qat_quantize_multiplier(m, &mult, &shift);
    if (shift > 30)
        return qat_fail(err, QAT_ERR_NUMERIC, "%s: multiplier %g is too large", layer->head->name,
                        m);
    if (shift < -31)
        mult = shift = 0; /* everything rounds to 0 */
    int const inputs[] = {layer->inputs[0], gain};
    int32_t const params[N_PARAMS] = {mult, shift, out->lo, out->hi};
    int const op = qat_qgraph_op(layer->graph, "position_scale", layer->head->name, QI_ROUND_TWICE,
                                 2, inputs, 1, &layer->output, N_PARAMS, params, 255 * 255, err);
    return op < 0 ? QAT_ERR_NOMEM : QAT_OK;
}

/* ------------------------------------------------------------------ exact: the right result */

static int32_t code_of(const void *codes, bool is_signed, size_t i)
{
    return is_signed ? ((const int8_t *)codes)[i] : ((const uint8_t *)codes)[i];
}

/** Add the zero_point. A shift of up to 31 can give any int32, so the sum is computed in 64 bits.
 */
static int32_t shifted(int32_t value, int32_t zero_point)
{
    return qi_saturate_i64((int64_t)value + zero_point);
}

static qat_status gain_exact(const qat_exact_call *call, qat_error *err)
{
    (void)err;
    const qat_qtensor *x = &call->graph->tensors[call->op->inputs[X]];
    const qat_qtensor *g = &call->graph->tensors[call->op->inputs[GAIN]];
    const qat_qtensor *y = &call->graph->tensors[call->op->outputs[0]];
    const int32_t *p = call->op->params;
    size_t const count = qat_qtensor_count(x) * (size_t)call->batch;
    size_t const positions = qat_qtensor_count(g), channels = (size_t)x->dims[3];
    for (size_t i = 0; i < count; i++) {
        int32_t const q = code_of(call->in[X], x->type == QI_S8, i) - x->zero_point;
        int32_t const w =
            code_of(call->in[GAIN], g->type == QI_S8, i / channels % positions) - g->zero_point;
        int32_t const code = shifted(qi_requantize(q * w, p[MULT], p[SHIFT]), y->zero_point);
        ((uint8_t *)call->out[0])[i] = (uint8_t)qi_clamp(code, p[CLAMP_LO], p[CLAMP_HI]);
    }
    return QAT_OK;
}

static const qat_quant gain_quant = {
    .role = QAT_ROLE_CUSTOM,
    .freeze = gain_freeze,
    .exact_op = "position_scale",
    .exact = gain_exact,
    .weight_params = 1,
};

static const qat_op gain_op = {
    .name = "position_scale",
    .meaning = "a learned gain for every position",
    .min_inputs = 1,
    .max_inputs = 1,
    .params = gain_params,
    .shape = gain_shape,
    .forward = gain_forward,
    .backward = gain_backward,
    .quant = &gain_quant,
};

/* ------------------------------------------------------------------ the engine's kernel */

static qi_status gain_check(const qi_model *model, const qi_node *node, int32_t index,
                            qi_error *err)
{
    if (node->n_inputs != 2 || node->n_outputs != 1 || node->n_params != N_PARAMS)
        return qi_fail(err, QI_ERR_FORMAT, "position_scale: inputs, outputs or params", index,
                       node->n_params, N_PARAMS);
    const qi_tensor *x = qi_tensor_at(model, node->inputs[X]);
    const qi_tensor *g = qi_tensor_at(model, node->inputs[GAIN]);
    const qi_tensor *y = qi_tensor_at(model, node->outputs[0]);
    const int32_t *p = node->params;
    if (x->type > QI_S8 || y->type != x->type || g->type != x->type || g->kind != QI_CONSTANT)
        return qi_fail(err, QI_ERR_FORMAT, "position_scale: tensor types", index, x->type, y->type);
    if (x->rank != 4 || y->bytes != x->bytes || g->bytes != (size_t)x->dims[1] * (size_t)x->dims[2])
        return qi_fail(err, QI_ERR_SHAPE, "position_scale: shapes", index, (int64_t)g->bytes,
                       (int64_t)x->dims[1] * x->dims[2]);
    if (p[MULT] < 0 || p[SHIFT] < -31 || p[SHIFT] > 31)
        return qi_fail(err, QI_ERR_PARAM, "position_scale: shift", index, p[SHIFT], 31);
    return QI_OK;
}

static void gain_run(const qi_call *call)
{
    const qi_tensor *x = qi_tensor_at(call->model, call->node->inputs[X]);
    const qi_tensor *g = qi_tensor_at(call->model, call->node->inputs[GAIN]);
    const qi_tensor *y = qi_tensor_at(call->model, call->node->outputs[0]);
    const int32_t *p = call->node->params;
    bool const is_signed = x->type == QI_S8;
    uint8_t *out = call->out[0];
    size_t i = 0;
    for (int32_t n = 0; n < x->dims[0]; n++) {
        for (size_t position = 0; position < g->bytes; position++) {
            int32_t const w = code_of(call->in[GAIN], is_signed, position) - g->zero_point;
            for (int32_t c = 0; c < x->dims[3]; c++, i++) {
                int32_t const q = code_of(call->in[X], is_signed, i) - x->zero_point;
                int32_t const code =
                    shifted(qi_requantize(q * w, p[MULT], p[SHIFT]), y->zero_point);
                out[i] = (uint8_t)qi_clamp(code, p[CLAMP_LO], p[CLAMP_HI]);
            }
        }
    }
}

static const qi_kernel gain_kernel = {
    .name = "position_scale", .check = gain_check, .run = gain_run};

const qat_plugin qat_plugin_entry = {
    .version = QAT_PLUGIN_VERSION,
    .name = "position_scale",
    .ops = (const qat_op *const[]){&gain_op},
    .n_ops = 1,
    .kernels = (const qi_kernel *const[]){&gain_kernel},
    .n_kernels = 1,
};

/**
 * concat is a copy, because its inputs and output are one class with one scale and zero_point
 * (Jacob et al. A.3, docs/arithmetic.md, section 10). An input with another scale is first brought
 * to this scale:
 *
 *     profile tflite, uint8: a table, q' = round(q k + b) + Z', all float32,
 *                            k = S (1 / S'), b = -Z k
 *     otherwise              requantize, M = S / S' in float64
 */
#include "autograd/ops/op.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ appending the ops */

/** TFLite's rule for uint8, entry by entry. */
static void fill_table(const qat_qtensor *x, const qat_qtensor *y, uint8_t codes[256])
{
    int32_t lo, hi;
    qat_tensor_codes(y, &lo, &hi);
    float const k = x->scale * (1.0f / y->scale);
    float const b = (float)-x->zero_point * k;
    for (int i = 0; i < 256; i++) {
        float const steps = roundf((float)qat_code_at((qi_type)x->type, i) * k + b);
        float const code = steps + (float)y->zero_point;
        codes[i] = (uint8_t)(code > (float)lo ? code > (float)hi ? hi : (int32_t)code : lo);
    }
}

/** Append a tensor on the output's scale, and the op that fills it from input i. */
static qat_status bring_to_scale(const qat_emit *e, int i, int *index, qat_error *err)
{
    qat_qtensor const x = e->graph->tensors[e->inputs[i]], y = e->graph->tensors[e->output];
    char part[24];
    snprintf(part, sizeof part, "input%d", i);
    qat_qtensor t = qat_part_like(&y, e->name, part);
    t.rank = x.rank;
    memcpy(t.dims, x.dims, sizeof t.dims);
    *index = qat_qgraph_tensor(e->graph, &t, err);
    qat_status const st = qat_append_status(*index, err);
    if (st)
        return st;
    qat_emit one = *e;
    one.name = t.name;
    one.n_inputs = 1;
    one.inputs = &e->inputs[i];
    one.output = *index;
    if (e->profile == QAT_PROFILE_TFLITE && x.type == QI_U8 && y.type == QI_U8) {
        uint8_t codes[256];
        fill_table(&x, &y, codes);
        return qat_emit_table(&one, 1, codes, err);
    }
    return qat_emit_requantize(&one, err);
}

qat_status qat_emit_concat(const qat_emit *e, int axis, qat_error *err)
{
    qat_status st = qat_refuse_activation(e, "concat", err);
    int32_t const param = axis < 0 ? axis + e->graph->tensors[e->output].rank : axis;
    int *inputs =
        st ? NULL : qat_arena_array(e->graph->memory, (size_t)e->n_inputs, sizeof *inputs);
    if (!st && !inputs)
        st = qat_out_of_memory(err, e->name);
    for (int i = 0; !st && i < e->n_inputs; i++) {
        const qat_qtensor *tensors = e->graph->tensors;
        inputs[i] = e->inputs[i];
        if (!qat_same_grid(&tensors[inputs[i]], &tensors[e->output]))
            st = bring_to_scale(e, i, &inputs[i], err);
    }
    if (!st) {
        qat_emit copies = *e;
        copies.inputs = inputs;
        st = qat_emit_op(&copies, "concat", QI_ROUND_NONE, 1, &param, 0, err);
    }
    return st;
}

static qat_status freeze_concat(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_concat(&e, (int)qat_attr(layer->head, "axis"), err);
}

const qat_quant qat_quant_concat = {
    .role = QAT_ROLE_CONCAT, .freeze = freeze_concat, .takes_wide = true};

/* ------------------------------------------------------------------ exact evaluation */

static void concat_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *y = qat_exact_output(call);
    int const axis = call->op->params[0];
    size_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++)
        outer *= (size_t)y->dims[i];
    for (int i = axis + 1; i < y->rank; i++)
        inner *= (size_t)y->dims[i];
    uint8_t *out = qat_exact_out(call, sample);
    for (size_t o = 0; o < outer; o++)
        for (int i = 0; i < call->op->n_inputs; i++) {
            size_t const run = (size_t)qat_exact_input(call, i)->dims[axis] * inner *
                               (size_t)qi_type_bytes(y->type);
            memcpy(out, qat_exact_in(call, i, sample) + o * run, run);
            out += run;
        }
}

/** It only moves codes. */
const qat_integer_op qat_integer_concat = {
    .name = "concat", .sample = concat_sample, .is_wide = true};

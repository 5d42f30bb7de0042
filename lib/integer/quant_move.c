/**
 * strided_slice, transpose, pad: codes pass through unchanged, to other positions; a padding of 0
 * is the zero point. pack and unpack, which no layer becomes: lib/bands puts them between ops. And
 * the functions with a form (lib/autograd/ops/op_formed.c), which become tables.
 */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

#include <string.h>

static qat_status emit_moved(const qat_fused_layer *layer, const char *op, int n,
                             const int32_t *params, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    qat_status st = qat_refuse_activation(&e, op, err);
    if (!st)
        st = qat_require_same_grid(&e, op, 0, err);
    return st ? st : qat_emit_op(&e, op, QI_ROUND_NONE, n, params, 0, err);
}

static qat_status freeze_slice(const qat_fused_layer *layer, qat_error *err)
{
    int32_t params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    int const axis = (int)qat_attr(layer->head, "axis");
    params[axis] = (int32_t)qat_attr(layer->head, "begin");
    params[QI_MAX_RANK + axis] = (int32_t)qat_attr(layer->head, "step");
    return emit_moved(layer, "strided_slice", 2 * QI_MAX_RANK, params, err);
}

static qat_status freeze_transpose(const qat_fused_layer *layer, qat_error *err)
{
    int32_t const params[QI_MAX_RANK] = {0, (int32_t)qat_attr(layer->head, "d1"),
                                         (int32_t)qat_attr(layer->head, "d2"),
                                         (int32_t)qat_attr(layer->head, "d3")};
    return emit_moved(layer, "transpose", QI_MAX_RANK, params, err);
}

static qat_status freeze_pad(const qat_fused_layer *layer, qat_error *err)
{
    static const char *const before[] = {"top", "left", "front"};
    static const char *const after[] = {"bottom", "right", "back"};
    int32_t params[2 * QI_MAX_RANK + 1] = {0};
    for (int i = 0; i < 3; i++) {
        params[1 + i] = (int32_t)qat_attr(layer->head, before[i]);
        params[QI_MAX_RANK + 1 + i] = (int32_t)qat_attr(layer->head, after[i]);
    }
    params[2 * QI_MAX_RANK] = layer->output_params.zero_point;
    return emit_moved(layer, "pad", 2 * QI_MAX_RANK + 1, params, err);
}

const qat_quant qat_quant_strided_slice = {
    .role = QAT_ROLE_PASS, .freeze = freeze_slice, .takes_wide = true};
const qat_quant qat_quant_transpose = {
    .role = QAT_ROLE_PASS, .freeze = freeze_transpose, .takes_wide = true};
const qat_quant qat_quant_pad = {.role = QAT_ROLE_PASS, .freeze = freeze_pad, .takes_wide = true};

/** Of 16-bit codes it is TensorFlow Lite's operator, whose slope is not negative. */
static qat_status freeze_leaky_relu(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    if (layer->graph->tensors[layer->inputs[0]].type != QI_S16)
        return qat_freeze_table(layer, err);
    return qat_emit_wide_leaky_relu(&e, (float)qat_attr(layer->head, "alpha"), err);
}

const qat_quant qat_quant_leaky_relu = {
    .role = QAT_ROLE_TABLE, .freeze = freeze_leaky_relu, .takes_wide = true};
const qat_quant qat_quant_clip = {.role = QAT_ROLE_TABLE};
const qat_quant qat_quant_hard_sigmoid = {.role = QAT_ROLE_FIXED, .fixed_max = 1};

/* ------------------------------------------------------------------ exact evaluation */

/** Position of an output code in one sample, along the four axes. */
static void position_of(const qat_qtensor *y, size_t i, size_t at[QI_MAX_RANK])
{
    for (int d = QI_MAX_RANK - 1; d >= 0; d--) {
        size_t const dim = d < y->rank ? (size_t)y->dims[d] : 1;
        at[d] = i % dim;
        i /= dim;
    }
}

static size_t offset_of(const qat_qtensor *x, const size_t at[QI_MAX_RANK])
{
    size_t offset = 0;
    for (int d = 0; d < x->rank; d++)
        offset = offset * (size_t)x->dims[d] + at[d];
    return offset;
}

static void slice_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const int32_t *p = call->op->params;
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        size_t at[QI_MAX_RANK];
        position_of(y, i, at);
        for (int d = 0; d < QI_MAX_RANK; d++)
            at[d] = (size_t)((int64_t)p[d] + (int64_t)at[d] * p[QI_MAX_RANK + d]);
        qat_exact_store(y, out, i, qat_exact_code(x, in, offset_of(x, at)));
    }
}

static void transpose_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        size_t at[QI_MAX_RANK], from[QI_MAX_RANK];
        position_of(y, i, at);
        for (int d = 0; d < QI_MAX_RANK; d++)
            from[call->op->params[d]] = at[d];
        qat_exact_store(y, out, i, qat_exact_code(x, in, offset_of(x, from)));
    }
}

/** They only move codes. */
const qat_integer_op qat_integer_strided_slice = {
    .name = "strided_slice", .sample = slice_sample, .is_wide = true};
const qat_integer_op qat_integer_transpose = {
    .name = "transpose", .sample = transpose_sample, .is_wide = true};

/* ------------------------------------------------------------------ codes that share bytes */

static int32_t last_of(const qat_qtensor *t)
{
    return t->dims[t->rank - 1];
}

static size_t codes_of_byte(const qat_qtensor *codes)
{
    return codes->bits <= 2 ? 4 : 2;
}

static int32_t lowest_of(const qat_qtensor *t)
{
    int32_t lowest, highest;
    qat_tensor_codes(t, &lowest, &highest);
    return lowest;
}

static void pack_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    size_t const n = codes_of_byte(x), row = (size_t)last_of(x);
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    int32_t const lo = lowest_of(x);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        size_t const first = i % (size_t)last_of(y) * n, at = i / (size_t)last_of(y) * row + first;
        int32_t byte = 0;
        for (size_t j = 0; j < n && first + j < row; j++)
            byte += (qat_exact_code(x, in, at + j) - lo) * (1 << (j * 8 / n));
        qat_exact_store(y, out, i, byte);
    }
}

static void unpack_sample(const qat_exact_call *call, int sample)
{
    const qat_qtensor *x = qat_exact_input(call, 0), *y = qat_exact_output(call);
    size_t const n = codes_of_byte(y), row = (size_t)last_of(y);
    const uint8_t *in = qat_exact_in(call, 0, sample);
    uint8_t *out = qat_exact_out(call, sample);
    for (size_t i = 0; i < qat_qtensor_count(y); i++) {
        size_t const k = i % row, at = i / row * (size_t)last_of(x) + k / n;
        int32_t const field = qat_exact_code(x, in, at) >> (k % n * 8 / n);
        qat_exact_store(y, out, i, field % (1 << y->bits) + lowest_of(y));
    }
}

const qat_integer_op qat_integer_pack = {.name = "pack", .sample = pack_sample};
const qat_integer_op qat_integer_unpack = {.name = "unpack", .sample = unpack_sample};

/**
 * QuantizeLinear and DequantizeLinear of an activation with a scale for each index of a dimension.
 *
 * The engine's tensors have one scale. So such codes have a tensor of scale 1 and zero point 0, and
 * what they stand for is a function of the code for each index. Inside the network that is a table
 * with a row for each. At its ends the scales stand beside the tensor (docs/qm-format.md,
 * channel_scales), which has 16-bit codes without a zero point:
 *
 *     input    q = clamp(round(x / S_c) + Z_c)    the border; then + Z_c and the clamp in the
 * engine output   y = S_c (q - Z_c)                  - Z_c in the engine; then the border
 */
#include "convert/onnx/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int32_t zero_of(const oq_constant *c, size_t i)
{
    return (int32_t)(c->zero_points ? c->zero_points[i] : c->zero_point);
}

/** Find the dimension, and check that it has as many indices as there are scales. */
static qat_status find_axis(oq_importer *q, oq_constant *c, const fv *shape)
{
    qat_status const st = fv_axis(&q->b, fv_attr_int(&q->b, "axis", 1), shape->rank, &c->axis);
    if (st)
        return st;
    if (fv_attr_int(&q->b, "block_size", 0))
        return fv_refuse(&q->b, "attribute block_size is not supported");
    if (shape->dims[c->axis] != (int64_t)c->n_scales)
        return fv_refuse(&q->b, "%zu scales for dimension %d, of %lld", c->n_scales, c->axis,
                         (long long)shape->dims[c->axis]);
    return QAT_OK;
}

/** Codes of scale 1 and this zero point. */
static oq_target plain_codes(qi_type type, int32_t zero_point, int value)
{
    return (oq_target){.type = type,
                       .scale = 1,
                       .zero_point = zero_point,
                       .lo = -INFINITY,
                       .hi = INFINITY,
                       .value = value};
}

/* ------------------------------------------------------------------ inside the network */

qat_status oq_dequantize_channels(oq_importer *q, const oq_constant *given, oq_operand *x)
{
    oq_constant *c = fv_take(&q->b, &q->b.arena, 1, sizeof *c);
    float *to = oq_new_function(q, (int)given->n_scales);
    if (!c || !to)
        return fv_graph_error(&q->b);
    *c = *given;
    qat_status const st = c->n_scales > 1 ? find_axis(q, c, &x->shape) : QAT_OK;
    if (st)
        return st;
    int32_t lo, hi;
    qat_tensor_codes(&q->graph->tensors[x->v.tensor], &lo, &hi);
    for (size_t r = 0; r < c->n_scales; r++)
        if (zero_of(c, r) < lo || zero_of(c, r) > hi)
            return fv_refuse(&q->b, "its zero point is %d, of codes %d to %d", (int)zero_of(c, r),
                             (int)lo, (int)hi);
    for (size_t r = 0; r < c->n_scales; r++)
        for (int i = 0; i < OQ_BYTES; i++) {
            int32_t const code = qat_qtensor_code(&q->graph->tensors[x->v.tensor], (uint8_t)i);
            to[r * OQ_BYTES + (size_t)i] = c->scales[r] * (float)(code - zero_of(c, r));
        }
    oq_set_function(x, to, (int)c->n_scales, c->axis);
    x->v.is_real = true;
    x->v.channels = c->n_scales > 1 ? c : NULL;
    return QAT_OK;
}

/** A code that is not limited yet. */
static float code_of(float x, float scale, float zero)
{
    return rintf(x / scale) + zero;
}

static float limited(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/** Two lists of a float for each scale. */
static qat_status lists(oq_importer *q, size_t n, float **a, float **b)
{
    *a = fv_take(&q->b, &q->b.arena, n, sizeof **a);
    *b = fv_take(&q->b, &q->b.arena, n, sizeof **b);
    return *a && *b ? QAT_OK : fv_graph_error(&q->b);
}

/** A Relu or Clip between a layer and its codes limits these: a table. */
static qat_status limit_codes(oq_importer *q, const oq_value *layer, const oq_constant *c,
                              const oq_target *target)
{
    float *lo, *hi;
    oq_operand x = {q->values[target->value], q->b.values[target->value]};
    qat_status st = lists(q, c->n_scales, &lo, &hi);
    for (size_t i = 0; i < c->n_scales && !st; i++) {
        lo[i] = code_of(layer->lo, c->scales[i], (float)zero_of(c, i));
        hi[i] = code_of(layer->hi, c->scales[i], (float)zero_of(c, i));
    }
    x.v.is_real = true;
    if (!st)
        st = oq_apply_each(q, &x, limited, (int)c->n_scales, c->axis, lo, hi);
    return st ? st : oq_quantize(q, &x, target);
}

/** A layer that is only noted: the scales become those of its weights. *done false: it is none. */
static qat_status quantize_layer(oq_importer *q, const oq_constant *c, const oq_operand *noted,
                                 const oq_target *target, bool *done)
{
    int rank, axis, outputs;
    float *gain, *offset;
    oq_operand x = *noted;
    *done = oq_is_layer(q, x.v.op, &rank, &axis, &outputs) && axis == c->axis &&
            (size_t)outputs == c->n_scales;
    if (!*done)
        return QAT_OK;
    qat_status st = lists(q, c->n_scales, &gain, &offset);
    for (size_t i = 0; i < c->n_scales && !st; i++) {
        gain[i] = 1 / c->scales[i];
        offset[i] = (float)zero_of(c, i);
    }
    x.v.lo = -INFINITY;
    x.v.hi = INFINITY;
    if (!st)
        st = oq_scale_layer(q, &x, outputs, gain, offset);
    if (!st)
        st = oq_emit_noted(q, &x.v, target);
    bool const is_limited = noted->v.lo > -INFINITY || noted->v.hi < INFINITY;
    return st || !is_limited ? st : limit_codes(q, &noted->v, c, target);
}

/** The dimension of a layer's outputs, before the layer has a shape. */
static qat_status axis_of_layer(oq_importer *q, oq_constant *c, const qat_foreign_node *op)
{
    int rank = 0, axis, n;
    int64_t const given = fv_attr_int(&q->b, "axis", 1);
    c->axis = -1;
    if (!oq_is_layer(q, op, &rank, &axis, &n))
        return QAT_OK;
    return fv_axis(&q->b, given, rank, &c->axis);
}

/* ------------------------------------------------------------------ at its ends */

/** y = x + sign Z_c, of 16-bit codes: the same codes in another place, or a sum with a constant. */
static qat_status add_zeros(oq_importer *q, const oq_constant *c, int sign, int32_t already,
                            int from, int to)
{
    int16_t *zeros = fv_take(&q->b, &q->b.arena, c->n_scales, sizeof *zeros);
    if (!zeros)
        return fv_graph_error(&q->b);
    for (size_t i = 0; i < c->n_scales; i++)
        zeros[i] = (int16_t)(sign * zero_of(c, i) + already);
    qat_qtensor t = {.type = QI_S16,
                     .bits = 16,
                     .rank = 1,
                     .dims = {(int32_t)c->n_scales, 1, 1, 1},
                     .scale = q->graph->tensors[from].scale,
                     .data = (uint8_t *)zeros,
                     .source_index = -1};
    qat_part_name(t.name, q->b.name, "zero_points");
    qat_status const st = oq_append_constant(q, &t);
    if (st)
        return st;
    q->graph->tensors[t.source_index].source_index = -1;
    int const inputs[] = {from, t.source_index};
    qat_emit e = oq_emit(q, 2, inputs, to, NULL);
    e.profile = QAT_PROFILE_PAPER; /* exact: all have one scale */
    return qat_emit_add(&e, "add", q->err);
}

/** Give a tensor the scales at the network's border. */
static qat_status set_border(oq_importer *q, int tensor, const oq_constant *c, qi_border border)
{
    qat_qtensor *t = &q->graph->tensors[tensor];
    float *scales = qat_arena_array(q->graph->memory, c->n_scales, sizeof *scales);
    if (!scales)
        return qat_out_of_memory(q->err, q->b.from->source);
    memcpy(scales, c->scales, c->n_scales * sizeof *scales);
    t->channel_scales = scales;
    t->n_channels = (int)c->n_scales;
    t->border = border;
    return QAT_OK;
}

static bool has_zeros(const oq_constant *c, int32_t zero)
{
    for (size_t i = 0; i < c->n_scales; i++)
        if (zero_of(c, i) != zero)
            return false;
    return true;
}

/** Do the scales belong to the last dimension in memory of a tensor that can have them? */
static bool is_last(int n_last, int rank, int axis)
{
    return rank <= QI_MAX_RANK && oq_place(n_last, rank, axis) == rank - 1;
}

/** The tensor of the file's input i, of floats, that the border fills. */
static qat_status append_input(oq_importer *q, const oq_operand *x, const oq_constant *c, int i,
                               int n_last)
{
    oq_target codes = plain_codes(QI_S16, 0, -1);
    if (q->inputs[i] >= 0) {
        const qat_qtensor *t = &q->graph->tensors[q->inputs[i]];
        bool const same = t->channel_scales && t->n_channels == (int)c->n_scales &&
                          !memcmp(t->channel_scales, c->scales, c->n_scales * sizeof(float));
        return same ? QAT_OK
                    : fv_refuse(&q->b, "the network's input %d is quantized in two ways", i);
    }
    qat_status st =
        oq_append_output(q, &codes, n_last, x->shape.rank, x->shape.dims, &q->inputs[i]);
    if (st)
        return st;
    qat_qtensor *t = &q->graph->tensors[q->inputs[i]];
    t->source_index = q->b.from->inputs[i];
    snprintf(t->name, sizeof t->name, "%s", q->b.from->values[t->source_index].name);
    return set_border(q, q->inputs[i], c, QI_BORDER_EVEN);
}

static qat_status quantize_input(oq_importer *q, const oq_operand *x, const oq_constant *c,
                                 qi_type type, int i)
{
    int const rank = x->shape.rank, n_last = rank == 4 && !q->packed;
    oq_target const target = plain_codes(type, 0, q->b.node->outputs[0]);
    int output, shifted;
    if (!is_last(n_last, rank, c->axis))
        return fv_refuse(&q->b,
                         "a scale for each index of dimension %d of the network's input; the "
                         "engine has them for its last dimension, of pictures for the channels",
                         c->axis);
    qat_status st = append_input(q, x, c, i, n_last);
    shifted = st ? -1 : q->inputs[i];
    if (!st && !has_zeros(c, 0)) {
        st = oq_append_wide(q, q->inputs[i], "with_zero_points", &shifted);
        if (!st)
            st = add_zeros(q, c, 1, 0, q->inputs[i], shifted);
    }
    if (!st)
        st = oq_append_output(q, &target, n_last, rank, x->shape.dims, &output);
    if (st)
        return st;
    qat_emit e = oq_emit(q, 1, &shifted, output, NULL);
    e.profile = QAT_PROFILE_PAPER;
    return qat_emit_requantize(&e, q->err);
}

bool oq_has_real_channels(const oq_importer *q, const oq_operand *x)
{
    int const rank = x->shape.rank;
    return x->v.channels && x->v.channels->n_scales > 1 &&
           is_last(rank == 4 && !q->packed, rank, x->v.channels->axis);
}

qat_status oq_real_channels(oq_importer *q, oq_operand *x)
{
    const oq_constant *c = x->v.channels;
    oq_set_function(x, NULL, 0, 0);
    qat_status st = oq_order(q, x, x->shape.rank == 4 && !q->packed);
    int const codes = x->v.tensor;
    int32_t const zero = st ? 0 : q->graph->tensors[codes].zero_point;
    if (!st)
        st = oq_widen(q, &x->v.tensor); /* q - zero */
    int const wide = x->v.tensor;
    if (!st && !has_zeros(c, zero)) {
        st = oq_append_wide(q, codes, "reals", &x->v.tensor);
        if (!st)
            st = add_zeros(q, c, -1, zero, wide, x->v.tensor);
    }
    return st ? st : set_border(q, x->v.tensor, c, QI_BORDER_FLOAT32);
}

/* ------------------------------------------------------------------ QuantizeLinear */

qat_status oq_quantize_channels(oq_importer *q, oq_constant *c, qi_type type, oq_operand *x)
{
    int const output = q->b.node->outputs[0];
    bool done = false;
    float *scales, *zeros;
    qat_status st = QAT_OK;
    if (output < 0)
        return QAT_OK;
    oq_target const target = plain_codes(type, 0, output);
    if (x->v.op) {
        st = axis_of_layer(q, c, x->v.op);
        if (!st)
            st = quantize_layer(q, c, x, &target, &done);
        if (!st && !done)
            st = oq_settle(q, q->b.node->inputs[0], false, x);
        if (st || done)
            return st;
    }
    st = find_axis(q, c, &x->shape);
    if (!st && x->v.tensor <= OQ_FIRST_INPUT)
        return quantize_input(q, x, c, type, OQ_FIRST_INPUT - x->v.tensor);
    if (!st && (x->v.tensor < 0 || !x->v.is_real))
        return fv_refuse(&q->b, "its input is no real numbers");
    if (!st && oq_rows(&x->v) > 1 && x->v.row_axis != c->axis)
        st = oq_own_grid(q, x);
    if (!st)
        st = lists(q, c->n_scales, &scales, &zeros);
    for (size_t i = 0; i < c->n_scales && !st; i++) {
        scales[i] = c->scales[i];
        zeros[i] = (float)zero_of(c, i);
    }
    if (!st)
        st = oq_apply_each(q, x, code_of, (int)c->n_scales, c->axis, scales, zeros);
    return st ? st : oq_quantize(q, x, &target);
}

/** Tensors: scales and zero points, codes, constants, orders in memory. */
#include "convert/onnx/import.h"
#include "infer/model/qm_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 256 };

/* ------------------------------------------------------------------ operands */

oq_operand oq_input(oq_importer *q, int i)
{
    int const value = i < q->b.node->n_inputs ? q->b.node->inputs[i] : -1;
    if (value < 0)
        return (oq_operand){.v = {.tensor = -1}};
    return (oq_operand){q->values[value], q->b.values[value]};
}

bool oq_is_given(const oq_operand *x)
{
    return x->v.tensor >= 0 || x->v.tensor <= OQ_FIRST_INPUT || x->v.op || x->v.constant.codes ||
           x->shape.constant;
}

int32_t oq_code_of(float real, const oq_target *grid)
{
    int32_t const lowest = grid->type == QI_S8 ? INT8_MIN : 0, highest = lowest + UINT8_MAX;
    float const steps = rintf(real / grid->scale);
    if (!(steps > (float)(lowest - grid->zero_point)))
        return lowest;
    if (steps >= (float)(highest - grid->zero_point))
        return highest;
    return (int32_t)steps + grid->zero_point;
}

static bool is_scale(float scale)
{
    return scale > 0 && isfinite(scale);
}

/** The constant in input i; NULL: there is none. */
static const qat_foreign_tensor *constant_of(const oq_importer *q, int i)
{
    const fv *v = i < 0 ? NULL : fv_input(&q->b, i);
    return v ? v->constant : NULL;
}

/** Scales and the zero point, which is one for all of them. */
static qat_status scales_of(oq_importer *q, int scale, int zero_point, oq_constant *c, int *stored)
{
    const qat_foreign_tensor *s = constant_of(q, scale), *z = constant_of(q, zero_point);
    if (!s || s->type != QAT_FOREIGN_FLOAT || s->rank > 1 || s->count < 1)
        return fv_refuse(&q->b, "its scale, input %d, is not a constant list of floats", scale);
    if (fv_input(&q->b, zero_point) && (!z || z->type != QAT_FOREIGN_INT || z->rank > 1))
        return fv_refuse(&q->b, "its zero point, input %d, is not a constant of integers",
                         zero_point);
    for (size_t i = 0; i < s->count; i++)
        if (!is_scale(s->floats[i]))
            return fv_refuse(&q->b, "its scale is %g", (double)s->floats[i]);
    for (size_t i = 0; z && i < z->count; i++)
        if (z->ints[i] != z->ints[0])
            return fv_refuse(&q->b, "its zero points differ, %lld and %lld: one is supported",
                             (long long)z->ints[0], (long long)z->ints[i]);
    if (z && z->count != 1 && z->count != s->count)
        return fv_refuse(&q->b, "%zu scales, but %zu zero points", s->count, z->count);
    c->scales = s->floats;
    c->n_scales = s->count;
    c->zero_point = z && z->count ? (int32_t)z->ints[0] : 0;
    *stored = z ? z->stored : 0;
    return QAT_OK;
}

qat_status oq_grid(oq_importer *q, int scale, int zero_point, oq_target *grid)
{
    oq_constant c = {0};
    int stored = 0;
    qat_status const st = scales_of(q, scale, zero_point, &c, &stored);
    if (st)
        return st;
    int64_t const given = stored ? stored : fv_attr_int(&q->b, "output_dtype", 0);
    if (c.n_scales != 1)
        return fv_refuse(&q->b, "%zu scales for an activation; one is supported", c.n_scales);
    if (given && given != OQ_UINT8 && given != OQ_INT8)
        return fv_refuse(&q->b, "codes of type %lld of the file; uint8 and int8 are supported",
                         (long long)given);
    *grid = (oq_target){.type = given == OQ_INT8 ? QI_S8 : QI_U8,
                        .scale = c.scales[0],
                        .zero_point = c.zero_point,
                        .lo = -INFINITY,
                        .hi = INFINITY,
                        .value = -1};
    return QAT_OK;
}

qat_status oq_real_input(oq_importer *q, int i, oq_operand *x)
{
    oq_constant c = {0};
    int stored = 0;
    *x = oq_input(q, i);
    qat_status const st = scales_of(q, i + 1, i + 2, &c, &stored);
    if (st)
        return st;
    c.codes = x->shape.constant;
    if (c.codes && c.codes->type == QAT_FOREIGN_INT) {
        int64_t const axis = fv_attr_int(&q->b, "axis", 1);
        c.axis = (int)(axis < 0 ? axis + c.codes->rank : axis);
        x->v = (oq_value){.tensor = -1, .is_real = true, .constant = c};
        x->shape.rank = c.codes->rank;
        memcpy(x->shape.dims, c.codes->dims, sizeof x->shape.dims);
        x->shape.constant = NULL;
        return fv_attr_int(&q->b, "block_size", 0)
                   ? fv_refuse(&q->b, "attribute block_size is not supported")
                   : QAT_OK;
    }
    if (x->v.tensor < 0 || x->v.is_real)
        return fv_refuse(&q->b, "its input %d is not of codes", i);
    const qat_qtensor *t = &q->graph->tensors[x->v.tensor];
    if (c.n_scales != 1 || c.scales[0] != t->scale || c.zero_point != t->zero_point)
        return fv_refuse(
            &q->b, "its input %d has scale %g, zero point %d, but was made with %g, %d", i,
            (double)c.scales[0], (int)c.zero_point, (double)t->scale, (int)t->zero_point);
    x->v.is_real = true;
    return QAT_OK;
}

qat_status oq_codes(oq_importer *q, oq_operand *x, const char *what)
{
    if (x->v.tensor >= 0 && !x->v.function)
        return QAT_OK;
    return fv_refuse(&q->b, "its %s is not quantized (no QuantizeLinear and DequantizeLinear)",
                     what);
}

/* ------------------------------------------------------------------ appending */

void oq_set(oq_importer *q, int value, const oq_value *v, int rank, const int64_t *dims)
{
    if (value < 0)
        return;
    fv *shape = &q->b.values[value];
    q->values[value] = *v;
    *shape = (fv){.rank = rank};
    if (rank)
        memcpy(shape->dims, dims, (size_t)rank * sizeof *dims);
}

void oq_output(oq_importer *q, int i, const oq_value *v, int rank, const int64_t *dims)
{
    oq_set(q, i < q->b.node->n_outputs ? q->b.node->outputs[i] : -1, v, rank, dims);
}

qat_emit oq_emit(const oq_importer *q, int n, const int *inputs, int output,
                 const oq_target *target)
{
    /* Bounds as the reals of their codes, so that they are rounded as QuantizeLinear does. */
    qat_emit e = {.graph = q->graph,
                  .profile = QAT_PROFILE_ONNX,
                  .name = q->b.name,
                  .n_inputs = n,
                  .inputs = inputs,
                  .output = output,
                  .act_min = -INFINITY,
                  .act_max = INFINITY};
    if (target && target->lo > -INFINITY)
        e.act_min = target->scale * (float)(oq_code_of(target->lo, target) - target->zero_point);
    if (target && target->hi < INFINITY)
        e.act_max = target->scale * (float)(oq_code_of(target->hi, target) - target->zero_point);
    return e;
}

qat_status oq_move(oq_importer *q, const char *op, int from, int to, int n_params,
                   const int32_t *params)
{
    qat_emit const e = oq_emit(q, 1, &from, to, NULL);
    return qat_emit_op(&e, op, QI_ROUND_NONE, n_params, params, 0, q->err);
}

int oq_place(bool channels_last, int rank, int i)
{
    return !channels_last || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
}

qat_status oq_dims(oq_importer *q, bool channels_last, int rank, const int64_t *dims,
                   int32_t to[QI_MAX_RANK])
{
    int64_t count = 1;
    if (rank > QI_MAX_RANK)
        return fv_refuse(&q->b, "a value of %d dimensions; at most %d are supported", rank,
                         QI_MAX_RANK);
    for (int i = 0; i < QI_MAX_RANK; i++)
        to[i] = 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1 || dims[i] > QM_MAX_TENSOR_VALUES ||
            (count *= dims[i]) > QM_MAX_TENSOR_VALUES)
            return fv_refuse(&q->b, "a value would be empty, too large, or of unknown size");
        to[oq_place(channels_last, rank, i)] = (int32_t)dims[i];
    }
    return QAT_OK;
}

static qat_status append(oq_importer *q, const qat_qtensor *t, int *tensor)
{
    *tensor = qat_qgraph_tensor(q->graph, t, q->err);
    return qat_append_status(*tensor, q->err);
}

qat_status oq_append_output(oq_importer *q, const oq_target *target, bool channels_last, int rank,
                            const int64_t *dims, int *tensor)
{
    bool const has_name = target->value >= 0 && target->value < q->b.from->n_values;
    qat_qtensor t = {.type = target->type,
                     .bits = 8,
                     .rank = rank ? rank : 1,
                     .scale = target->scale,
                     .zero_point = target->zero_point,
                     .source_index = has_name ? target->value : -1};
    snprintf(t.name, sizeof t.name, "%s",
             has_name ? q->b.from->values[target->value].name : q->b.name);
    qat_status st = oq_dims(q, channels_last, rank, dims, t.dims);
    if (!st)
        st = append(q, &t, tensor);
    oq_value const v = {.tensor = *tensor, .channels_last = channels_last};
    if (!st)
        oq_set(q, target->value, &v, rank, dims);
    return st;
}

qat_status oq_append_like(oq_importer *q, int like, const char *part, int rank, const int32_t *dims,
                          int *tensor)
{
    qat_qtensor t = q->graph->tensors[like];
    qat_part_name(t.name, q->b.name, part);
    t.source_index = -1;
    t.border = QI_BORDER_NONE;
    t.rank = rank ? rank : 1;
    for (int i = 0; i < QI_MAX_RANK; i++)
        t.dims[i] = i < rank ? dims[i] : 1;
    return append(q, &t, tensor);
}

qat_status oq_append_constant(oq_importer *q, qat_qtensor *t)
{
    enum { PER_CHANNEL = 32 }; /* bytes beside the codes: scales, bias, multipliers */
    size_t const bytes = qat_qtensor_bytes(t) + (size_t)t->n_channels * PER_CHANNEL;
    if (bytes > q->b.room)
        return qat_fail(q->err, QAT_ERR_LIMIT,
                        "%s: node '%.80s': constants take more memory than is allowed",
                        q->b.from->source, q->b.name);
    q->b.room -= bytes;
    int tensor;
    qat_status const st = append(q, t, &tensor);
    t->source_index = tensor;
    return st;
}

/* ------------------------------------------------------------------ orders in memory */

/** Is the memory the same in both orders? */
static bool is_flat(const fv *shape)
{
    int64_t pixels = 1;
    for (int i = 2; i < shape->rank; i++)
        pixels *= shape->dims[i];
    return pixels == 1 || shape->dims[1] == 1;
}

qat_status oq_order(oq_importer *q, oq_operand *x, bool channels_last)
{
    int const rank = x->shape.rank, from = x->v.tensor;
    int32_t dims[QI_MAX_RANK], perm[QI_MAX_RANK] = {0, 1, 2, 3};
    if (rank < 3 || x->v.channels_last == channels_last) {
        x->v.channels_last = channels_last;
        return QAT_OK;
    }
    qat_status st = oq_dims(q, channels_last, rank, x->shape.dims, dims);
    if (!st)
        st = oq_append_like(q, from, channels_last ? "channels_last" : "in_order", rank, dims,
                            &x->v.tensor);
    for (int i = 0; i < rank; i++)
        perm[oq_place(channels_last, rank, i)] = oq_place(!channels_last, rank, i);
    x->v.channels_last = channels_last;
    if (st)
        return st;
    return is_flat(&x->shape) ? oq_move(q, "reshape", from, x->v.tensor, 0, NULL)
                              : oq_move(q, "transpose", from, x->v.tensor, QI_MAX_RANK, perm);
}

qat_status oq_picture(oq_importer *q, oq_operand *x, int *tensor)
{
    qat_status st = oq_order(q, x, true);
    *tensor = x->v.tensor;
    if (st || x->shape.rank == 4)
        return st;
    const int64_t *d = x->shape.dims;
    int32_t const dims[] = {(int32_t)d[0], 1, (int32_t)d[2], (int32_t)d[1]};
    st = oq_append_like(q, x->v.tensor, "picture", 4, dims, tensor);
    return st ? st : oq_move(q, "reshape", x->v.tensor, *tensor, 0, NULL);
}

qat_status oq_reshape(oq_importer *q, oq_operand *x, int rank, const int64_t *dims)
{
    int32_t to[QI_MAX_RANK];
    int64_t before = 1, after = 1;
    qat_status st = oq_dims(q, false, rank, dims, to);
    for (int i = 0; i < x->shape.rank; i++)
        before *= x->shape.dims[i];
    for (int i = 0; i < rank && !st; i++)
        after *= dims[i];
    if (!st && before != after)
        return fv_refuse(&q->b, "the new shape has %lld values, the input %lld", (long long)after,
                         (long long)before);
    if (!st && !(x->shape.rank > 1 && is_flat(&x->shape)))
        st = oq_order(q, x, false);
    int const from = x->v.tensor;
    if (!st)
        st = oq_append_like(q, from, "shape", rank, to, &x->v.tensor);
    if (!st)
        st = oq_move(q, "reshape", from, x->v.tensor, 0, NULL);
    x->v.channels_last = false;
    if (!st)
        oq_output(q, 0, &x->v, rank, dims);
    return st;
}

/* ------------------------------------------------------------------ quantizing */

/** What each byte of a tensor stands for. */
static void reals_of(const oq_importer *q, const oq_value *v, float reals[BYTES])
{
    const qat_qtensor *t = &q->graph->tensors[v->tensor];
    for (int i = 0; i < BYTES; i++)
        reals[i] = v->function
                       ? v->function[i]
                       : t->scale * (float)(qat_qtensor_code(t, (uint8_t)i) - t->zero_point);
}

/** A table from the bytes of x, whose positions begin at code -128 of int8. */
static qat_status append_table(oq_importer *q, oq_operand *x, const oq_target *target)
{
    float reals[BYTES];
    uint8_t codes[BYTES];
    int output;
    uint8_t const first = q->graph->tensors[x->v.tensor].type == QI_S8 ? 0x80 : 0;
    reals_of(q, &x->v, reals);
    for (int i = 0; i < BYTES; i++)
        codes[i] = (uint8_t)oq_code_of(reals[i ^ first], target);
    qat_status const st =
        oq_append_output(q, target, x->v.channels_last, x->shape.rank, x->shape.dims, &output);
    qat_emit const e = oq_emit(q, 1, &x->v.tensor, output, NULL);
    return st ? st : qat_emit_table(&e, 1, codes, q->err);
}

/** A constant of floats as codes. */
static qat_status quantize_constant(oq_importer *q, const qat_foreign_tensor *x,
                                    const oq_target *target)
{
    qat_foreign_tensor *t = fv_constant(&q->b, QAT_FOREIGN_INT, x->rank, x->dims);
    if (!t)
        return fv_graph_error(&q->b);
    t->stored = target->type == QI_S8 ? OQ_INT8 : OQ_UINT8;
    for (size_t i = 0; i < t->count; i++)
        ((int64_t *)t->ints)[i] = oq_code_of(x->floats[i], target);
    fv const v = {.constant = t};
    q->b.values[target->value] = v;
    return QAT_OK;
}

static bool has_grid(const qat_qtensor *t, const oq_target *target)
{
    return t->type == target->type && t->scale == target->scale &&
           t->zero_point == target->zero_point;
}

/** Input i of the file, of floats: its QuantizeLinear makes it an input of codes. */
static qat_status quantize_input(oq_importer *q, const oq_operand *x, const oq_target *target,
                                 int i)
{
    oq_target codes = *target;
    oq_value v = {.channels_last = x->shape.rank == 4};
    codes.value = -1;
    qat_status st = QAT_OK;
    if (q->inputs[i] < 0) {
        st = oq_append_output(q, &codes, v.channels_last, x->shape.rank, x->shape.dims,
                              &q->inputs[i]);
        qat_qtensor *t = st ? NULL : &q->graph->tensors[q->inputs[i]];
        if (t) {
            t->border = QI_BORDER_EVEN;
            t->source_index = q->b.from->inputs[i];
            snprintf(t->name, sizeof t->name, "%s", q->b.from->values[t->source_index].name);
        }
    }
    if (!st && !has_grid(&q->graph->tensors[q->inputs[i]], target))
        return fv_refuse(&q->b, "the network's input %d is quantized in two ways", i);
    v.tensor = q->inputs[i];
    if (!st)
        oq_set(q, target->value, &v, x->shape.rank, x->shape.dims);
    return st;
}

qat_status oq_quantize(oq_importer *q, oq_operand *x, const oq_target *target)
{
    if (x->v.tensor <= OQ_FIRST_INPUT)
        return quantize_input(q, x, target, OQ_FIRST_INPUT - x->v.tensor);
    if (x->v.op)
        return oq_emit_noted(q, &x->v, target);
    if (x->shape.constant && x->shape.constant->type == QAT_FOREIGN_FLOAT && target->value >= 0)
        return quantize_constant(q, x->shape.constant, target);
    if (x->v.tensor < 0 || !x->v.is_real)
        return fv_refuse(&q->b, "its input is neither real numbers nor a constant of floats");
    if (x->v.function || !has_grid(&q->graph->tensors[x->v.tensor], target))
        return append_table(q, x, target);
    oq_value v = x->v;
    v.is_real = false;
    oq_set(q, target->value, &v, x->shape.rank, x->shape.dims);
    return QAT_OK;
}

qat_status oq_apply(oq_importer *q, oq_operand *x, oq_function *f, float a, float b,
                    const float **function)
{
    float reals[BYTES];
    float *to = fv_take(&q->b, &q->b.arena, BYTES, sizeof *to);
    if (!to)
        return fv_graph_error(&q->b);
    reals_of(q, &x->v, reals);
    for (int i = 0; i < BYTES; i++)
        to[i] = f(reals[i], a, b);
    *function = to;
    return QAT_OK;
}

/** Operators on values: sums, products, means, concatenation, softmax, functions of one value. */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ Add, Mul */

/** Dimension i from the last one; 1 beyond the first. */
static int64_t from_last(const fv *x, int i)
{
    return i < x->rank ? x->dims[x->rank - 1 - i] : 1;
}

/** A constant operand as a tensor of rank dimensions, in the same order as the other operand. */
static qat_status append_operand(oq_importer *q, oq_operand *x, int rank, bool channels_last)
{
    const oq_constant *c = &x->v.constant;
    int32_t dims[QI_MAX_RANK], at[QI_MAX_RANK];
    int64_t full[QAT_FOREIGN_RANK];
    if (c->n_scales != 1 || (c->codes->stored != OQ_UINT8 && c->codes->stored != OQ_INT8))
        return fv_refuse(&q->b, "a constant with several scales, or not of 8 bits");
    for (int i = 0; i < rank; i++)
        full[i] = from_last(&x->shape, rank - 1 - i);
    qat_status st = oq_dims(q, channels_last, rank, full, dims);
    uint8_t *codes = st ? NULL : fv_take(&q->b, &q->b.arena, c->codes->count, 1);
    if (!codes)
        return st ? st : fv_graph_error(&q->b);
    for (size_t i = 0; i < c->codes->count; i++) {
        size_t rest = i, to = 0;
        for (int d = rank - 1; d >= 0; d--) {
            at[oq_place(channels_last, rank, d)] = (int32_t)(rest % (size_t)full[d]);
            rest /= (size_t)full[d];
        }
        for (int d = 0; d < rank; d++)
            to = to * (size_t)dims[d] + (size_t)at[d];
        codes[to] = (uint8_t)c->codes->ints[i];
    }
    qat_qtensor t = {.type = c->codes->stored == OQ_INT8 ? QI_S8 : QI_U8,
                     .bits = 8,
                     .rank = rank ? rank : 1,
                     .scale = c->scales[0],
                     .zero_point = c->zero_point,
                     .data = codes,
                     .source_index = -1};
    memcpy(t.dims, dims, sizeof t.dims);
    qat_part_name(t.name, q->b.name, "constant");
    st = oq_append_constant(q, &t);
    x->v.tensor = t.source_index;
    if (!st)
        q->graph->tensors[x->v.tensor].source_index = -1;
    return st;
}

/** NumPy's broadcasting; dims gets the larger rank. */
static qat_status broadcast(oq_importer *q, const fv *a, const fv *b, int rank, int64_t *dims)
{
    for (int i = 0; i < rank; i++) {
        int64_t const x = from_last(a, i), y = from_last(b, i);
        if (x != y && x != 1 && y != 1)
            return fv_refuse(&q->b, "dimensions %lld and %lld do not go together", (long long)x,
                             (long long)y);
        dims[rank - 1 - i] = x > y ? x : y;
    }
    return QAT_OK;
}

typedef qat_status emit_fn(const qat_emit *e, qat_error *err);

static qat_status emit_binary(oq_importer *q, oq_operand *in, const oq_target *target,
                              emit_fn *emit)
{
    int const ra = in[0].shape.rank, rb = in[1].shape.rank, rank = ra > rb ? ra : rb;
    int64_t dims[QAT_FOREIGN_RANK];
    int output;
    bool last = rank > 2;
    for (int i = 0; i < 2; i++)
        last =
            last && (in[i].v.constant.codes || (in[i].shape.rank == rank && in[i].v.channels_last));
    qat_status st = broadcast(q, &in[0].shape, &in[1].shape, rank, dims);
    for (int i = 0; i < 2 && !st; i++) {
        if (in[i].v.constant.codes)
            st = append_operand(q, &in[i], rank, last);
        else
            st = oq_codes(q, &in[i], i ? "second input" : "first input");
        if (!st && !in[i].v.constant.codes)
            st = oq_order(q, &in[i], last);
    }
    if (!st)
        st = oq_append_output(q, target, last, rank, dims, &output);
    if (st)
        return st;
    int const inputs[] = {in[0].v.tensor, in[1].v.tensor};
    if (q->graph->tensors[inputs[0]].data && q->graph->tensors[inputs[1]].data)
        return fv_refuse(&q->b, "both inputs are constants");
    qat_emit const e = oq_emit(q, 2, inputs, output, target);
    return emit(&e, q->err);
}

static qat_status append_add(const qat_emit *e, qat_error *err)
{
    return qat_emit_add(e, "add", err);
}

static qat_status emit_add(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    return emit_binary(q, in, target, append_add);
}

static qat_status emit_mul(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    return emit_binary(q, in, target, qat_emit_mul);
}

/* ------------------------------------------------------------------ means */

static qat_status append_mean(oq_importer *q, oq_operand *x, unsigned reduced, bool keep,
                              const oq_target *target)
{
    int const rank = x->shape.rank;
    int64_t dims[QAT_FOREIGN_RANK];
    unsigned mask = 0, pixels = 0;
    int n = 0, output;
    for (int i = 2; i < rank; i++)
        pixels |= 1u << i;
    qat_status st = oq_codes(q, x, "input");
    if (!st && (rank > QI_MAX_RANK || !reduced))
        return fv_refuse(&q->b, "a mean over no dimension, or of more than %d", QI_MAX_RANK);
    if (!st && reduced != pixels && !keep)
        st = oq_order(q, x, false);
    for (int i = 0; i < rank; i++) {
        bool const is_reduced = reduced >> i & 1;
        mask |= is_reduced ? 1u << oq_place(x->v.channels_last, rank, i) : 0;
        if (keep || !is_reduced)
            dims[n++] = is_reduced ? 1 : x->shape.dims[i];
    }
    if (!st)
        st = oq_append_output(q, target, keep && x->v.channels_last, n, dims, &output);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 1, &x->v.tensor, output, target);
    return qat_emit_mean(&e, mask, q->err);
}

static qat_status emit_global(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    unsigned reduced = 0;
    if (fv_attr_int(&q->b, "channels_last", 0))
        return fv_refuse(&q->b, "attribute channels_last = 1 is not supported");
    for (int i = 2; i < in[0].shape.rank; i++)
        reduced |= 1u << i;
    return append_mean(q, &in[0], reduced, true, target);
}

static qat_status emit_reduce(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    int64_t axes[QAT_FOREIGN_RANK];
    unsigned reduced = 0;
    int count;
    qat_status st = fv_ints(&q->b, 1, "axes", axes, QAT_FOREIGN_RANK, &count);
    for (int i = 0; i < (st || count < 0 ? in[0].shape.rank : count) && !st; i++) {
        int axis = i;
        st = count < 0 ? QAT_OK : fv_axis(&q->b, axes[i], in[0].shape.rank, &axis);
        reduced |= st ? 0 : 1u << axis;
    }
    return st ? st
              : append_mean(q, &in[0], reduced, fv_attr_int(&q->b, "keepdims", 1) != 0, target);
}

/* ------------------------------------------------------------------ Concat, Softmax */

static qat_status emit_concat(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    int inputs[OQ_OPERANDS], axis, output;
    int64_t dims[QAT_FOREIGN_RANK];
    int const rank = in[0].shape.rank;
    oq_target part = *target;
    bool last = true;
    qat_status st = fv_axis(&q->b, fv_attr_int(&q->b, "axis", 1), rank, &axis);
    for (int i = 0; i < n && !st; i++) {
        st = in[i].v.constant.codes ? append_operand(q, &in[i], rank, false) : QAT_OK;
        last = last && in[i].v.channels_last && in[i].shape.rank == rank;
    }
    memcpy(dims, in[0].shape.dims, sizeof dims);
    for (int i = 0; i < n && !st; i++) {
        part.value = q->b.from->n_values; /* a place for what is between */
        if (in[i].v.tensor < 0 || in[i].shape.rank != rank)
            return fv_refuse(&q->b, "its input %d is not quantized, or has another rank", i);
        in[i].v.is_real = true;
        st = oq_order(q, &in[i], last);
        if (!st)
            st = oq_quantize(q, &in[i], &part);
        inputs[i] = q->values[part.value].tensor;
        for (int d = 0; d < rank && !st && i > 0; d++)
            if (d != axis && in[i].shape.dims[d] != dims[d])
                return fv_refuse(&q->b, "inputs that differ in dimension %d", d);
        dims[axis] += i > 0 ? in[i].shape.dims[axis] : 0;
    }
    if (!st)
        st = oq_append_output(q, target, last, rank, dims, &output);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, n, inputs, output, NULL);
    return qat_emit_concat(&e, oq_place(last, rank, axis), q->err);
}

/** With the scale that softmax has in the engine; another one is a table behind it. */
static qat_status emit_softmax(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    int const rank = in[0].shape.rank;
    int axis;
    int64_t const otherwise = q->b.from->opset < 13 ? 1 : -1;
    oq_target own = *target;
    qat_status st = oq_codes(q, &in[0], "input");
    if (!st)
        st = fv_axis(&q->b, fv_attr_int(&q->b, "axis", otherwise), rank, &axis);
    if (st)
        return st;
    for (int i = axis + 1; i < rank; i++)
        if (in[0].shape.dims[i] != 1)
            return fv_refuse(&q->b, "a softmax along another dimension than the last");
    if (axis != rank - 1 && rank > 2)
        return fv_refuse(&q->b, "a softmax along another dimension than the last");
    own.scale = 0x1p-8f;
    own.zero_point = own.type == QI_S8 ? INT8_MIN : 0;
    bool const same = own.scale == target->scale && own.zero_point == target->zero_point;
    own.value = same ? target->value : q->b.from->n_values;
    int output;
    st = oq_order(q, &in[0], false);
    if (!st)
        st = oq_append_output(q, &own, false, rank, in[0].shape.dims, &output);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 1, &in[0].v.tensor, output, NULL);
    st = qat_emit_softmax(&e, 1, q->err);
    oq_operand y = {q->values[own.value], q->b.values[own.value]};
    y.v.is_real = true;
    return st || same ? st : oq_quantize(q, &y, target);
}

const oq_operator oq_value_operators[] = {
    {"Add", "QLinearAdd", 2, 6, -1, emit_add},
    {"Mul", "QLinearMul", 2, 6, -1, emit_mul},
    {"GlobalAveragePool", "QLinearGlobalAveragePool", 1, 3, -1, emit_global},
    {"ReduceMean", "QLinearReduceMean", 1, 3, -1, emit_reduce},
    {"Concat", "QLinearConcat", -1, 0, -1, emit_concat},
    {"Softmax", "QLinearSoftmax", 1, 3, -1, emit_softmax},
    {NULL, NULL, 0, 0, 0, NULL},
};

/* ------------------------------------------------------------------ functions of one real */

static float limited(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static float leaky(float x, float slope, float unused)
{
    return x >= 0 ? x : slope * x;
}

static float elu(float x, float alpha, float unused)
{
    return x >= 0 ? x : alpha * (expf(x) - 1);
}

static float hard_sigmoid(float x, float alpha, float beta)
{
    return limited(alpha * x + beta, 0, 1);
}

static float hard_swish(float x, float alpha, float beta)
{
    return x * hard_sigmoid(x, alpha, beta);
}

static float gelu(float x, float is_tanh, float unused)
{
    float const inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    return is_tanh != 0 ? 0.5f * x * (1 + tanhf(inner)) : 0.5f * x * (1 + erff(x * 0.70710678f));
}

#define PLAIN(name, expression)                                                                    \
    static float name(float x, float a, float b)                                                   \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return expression;                                                                         \
    }
PLAIN(sigmoid, 1 / (1 + expf(-x)))
PLAIN(hyperbolic, tanhf(x))
PLAIN(exponential, expf(x))
PLAIN(logarithm, logf(x))
PLAIN(root, sqrtf(x))
PLAIN(size, fabsf(x))
PLAIN(negative, -x)
PLAIN(error_function, erff(x))
PLAIN(softplus, logf(1 + expf(x)))
PLAIN(silu, x / (1 + expf(-x)))

/** A function of a value that is codes, or already a function of codes. */
static qat_status give(builder *b, oq_function *f, float p, float s)
{
    oq_importer *q = oq_of(b);
    oq_operand x = oq_input(q, 0);
    if (x.v.op)
        return fv_refuse(b, "a function of a result that is not quantized before it");
    if (x.v.tensor < 0 || !x.v.is_real)
        return fv_refuse(b, "its input is not quantized");
    qat_status const st = oq_apply(q, &x, f, p, s, &x.v.function);
    if (!st)
        oq_output(q, 0, &x.v, x.shape.rank, x.shape.dims);
    return st;
}

/** Relu and Clip of a noted operator limit its codes. */
static qat_status limit(builder *b, float lo, float hi)
{
    oq_importer *q = oq_of(b);
    oq_operand x = oq_input(q, 0);
    if (!x.v.op)
        return give(b, limited, lo, hi);
    x.v.lo = limited(x.v.lo, lo, hi);
    x.v.hi = limited(x.v.hi, lo, hi);
    oq_output(q, 0, &x.v, x.shape.rank, x.shape.dims);
    return QAT_OK;
}

static qat_status build_relu(builder *b)
{
    return limit(b, 0, INFINITY);
}

/** A bound of Clip: an input, a constant of codes, or an attribute. */
static qat_status bound(builder *b, int i, const char *name, float *value)
{
    const oq_operand x = oq_input(oq_of(b), i);
    const oq_constant *c = &x.v.constant;
    if (i < b->node->n_inputs && x.shape.constant && x.shape.constant->type == QAT_FOREIGN_FLOAT &&
        x.shape.constant->count == 1)
        *value = x.shape.constant->floats[0];
    else if (c->codes && c->codes->count == 1)
        *value = c->scales[0] * (float)(c->codes->ints[0] - c->zero_point);
    else if (i < b->node->n_inputs && b->node->inputs[i] >= 0)
        return fv_refuse(b, "its bound %s is not a constant", name);
    else
        *value = (float)fv_attr_real(b, name, (double)*value);
    return *value == *value ? QAT_OK : fv_refuse(b, "its bound %s is not a number", name);
}

/** Clip of codes: a table, of the reals that they stand for. */
static qat_status limit_codes(builder *b, oq_operand *x)
{
    oq_importer *q = oq_of(b);
    const qat_qtensor *t = &q->graph->tensors[x->v.tensor];
    oq_target const target = oq_same_codes(q, x, b->node->outputs[0]);
    float ends[] = {-INFINITY, INFINITY};
    for (int i = 0; i < 2; i++) {
        const oq_operand end = oq_input(q, 1 + i);
        const qat_foreign_tensor *c = end.shape.constant;
        if (oq_is_given(&end) && (!c || c->type != QAT_FOREIGN_INT || c->count != 1))
            return fv_refuse(b, "its bound %d is not a constant code", i + 1);
        if (c)
            ends[i] = t->scale * (float)(c->ints[0] - t->zero_point);
    }
    qat_status const st = oq_apply(q, x, limited, ends[0], ends[1], &x->v.function);
    x->v.is_real = true;
    return st ? st : oq_quantize(q, x, &target);
}

static qat_status build_clip(builder *b)
{
    float lo = -INFINITY, hi = INFINITY;
    oq_operand x = oq_input(oq_of(b), 0);
    if (x.v.tensor >= 0 && !x.v.is_real && b->node->n_outputs)
        return limit_codes(b, &x);
    qat_status st = bound(b, 1, "min", &lo);
    if (!st)
        st = bound(b, 2, "max", &hi);
    if (!st && lo > hi)
        return fv_refuse(b, "its bounds are %g and %g", (double)lo, (double)hi);
    return st ? st : limit(b, lo, hi);
}

static qat_status build_leaky(builder *b)
{
    return give(b, leaky, (float)fv_attr_real(b, "alpha", 0.01), 0);
}

static qat_status build_elu(builder *b)
{
    return give(b, elu, (float)fv_attr_real(b, "alpha", 1), 0);
}

static qat_status build_hard_sigmoid(builder *b)
{
    return give(b, hard_sigmoid, (float)fv_attr_real(b, "alpha", 0.2),
                (float)fv_attr_real(b, "beta", 0.5));
}

static qat_status build_hard_swish(builder *b)
{
    return give(b, hard_swish, 1.0f / 6, 0.5f);
}

static qat_status build_gelu(builder *b)
{
    return give(b, gelu, strcmp(fv_attr_text(b, "approximate", "none"), "tanh") == 0, 0);
}

#define BUILD(name)                                                                                \
    static qat_status build_##name(builder *b)                                                     \
    {                                                                                              \
        return give(b, name, 0, 0);                                                                \
    }
BUILD(sigmoid)
BUILD(hyperbolic)
BUILD(exponential)
BUILD(logarithm)
BUILD(root)
BUILD(size)
BUILD(negative)
BUILD(error_function)
BUILD(softplus)
BUILD(silu)

const fv_operator oq_functions[] = {
    {"Relu", build_relu},
    {"Clip", build_clip},
    {"LeakyRelu", build_leaky},
    {"Elu", build_elu},
    {"HardSigmoid", build_hard_sigmoid},
    {"HardSwish", build_hard_swish},
    {"Gelu", build_gelu},
    {"Sigmoid", build_sigmoid},
    {"Tanh", build_hyperbolic},
    {"Exp", build_exponential},
    {"Log", build_logarithm},
    {"Sqrt", build_root},
    {"Abs", build_size},
    {"Neg", build_negative},
    {"Erf", build_error_function},
    {"Softplus", build_softplus},
    {"Swish", build_silu},
    {NULL, NULL},
};

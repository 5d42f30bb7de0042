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

qat_status oq_append_operand(oq_importer *q, oq_operand *x, int rank, int n_last)
{
    const oq_constant *c = &x->v.constant;
    int32_t dims[QI_MAX_RANK], at[QI_MAX_RANK];
    int64_t full[QAT_FOREIGN_RANK];
    if (rank > QI_MAX_RANK)
        return oq_few_dims(q, rank);
    if (c->n_scales != 1 || (c->codes->stored != OQ_UINT8 && c->codes->stored != OQ_INT8))
        return fv_refuse(&q->b, "a constant with several scales, or not of 8 bits");
    for (int i = 0; i < rank; i++)
        full[i] = from_last(&x->shape, rank - 1 - i);
    qat_status st = oq_dims(q, n_last, rank, full, dims);
    uint8_t *codes = st ? NULL : fv_take(&q->b, &q->b.arena, c->codes->count, 1);
    if (!codes)
        return st ? st : fv_graph_error(&q->b);
    for (size_t i = 0; i < c->codes->count; i++) {
        size_t rest = i, to = 0;
        for (int d = rank - 1; d >= 0; d--) {
            at[oq_place(n_last, rank, d)] = (int32_t)(rest % (size_t)full[d]);
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

/** The order in memory that all operands of this rank have; else the file's. */
static int common_order(const oq_operand *in, int n, int rank)
{
    int common = -1;
    for (int i = 0; i < n; i++) {
        if (in[i].v.constant.codes)
            continue;
        if (in[i].shape.rank != rank || (common >= 0 && common != in[i].v.n_last))
            return 0;
        common = in[i].v.n_last;
    }
    return common < 0 ? 0 : common;
}

typedef qat_status emit_fn(const qat_emit *e, qat_error *err);

static qat_status emit_binary(oq_importer *q, oq_operand *in, const oq_target *target,
                              emit_fn *emit)
{
    int const ra = in[0].shape.rank, rb = in[1].shape.rank, rank = ra > rb ? ra : rb;
    int64_t dims[QAT_FOREIGN_RANK];
    int output, last = common_order(in, 2, rank);
    qat_status st = broadcast(q, &in[0].shape, &in[1].shape, rank, dims);
    bool const equal =
        ra == rb && !memcmp(in[0].shape.dims, in[1].shape.dims, (size_t)rank * sizeof *dims);
    if (!st && !equal)
        st = oq_few_dims(q, rank);
    for (int i = 0; i < 2 && !st; i++) {
        if (in[i].v.constant.codes)
            st = oq_append_operand(q, &in[i], rank, last);
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

/**
 * The sum of codes and of a layer's result that the file does not quantize: in 16 bits. What the
 * layer gives beyond the codes of the sum, whatever the other operand is, is limited.
 */
static qat_status add_to_layer(oq_importer *q, oq_operand *in, int layer, const oq_target *target)
{
    enum { FINER = 127 }; /* steps of the sum in one of the target: 255 of these fit 16 bits */
    oq_operand *x = &in[!layer];
    int32_t const lowest = target->type == QI_S8 ? INT8_MIN : 0;
    float const least = target->scale * (float)(lowest - target->zero_point);
    float const most = target->scale * (float)(lowest + UINT8_MAX - target->zero_point);
    float lo, hi;
    int output = -1;
    qat_status st = oq_codes(q, x, "other input");
    if (st)
        return st;
    if (!oq_range(q, x, &lo, &hi))
        return fv_refuse(&q->b, "its other input is not finite");
    float const reach = hi - least > most - lo ? hi - least : most - lo;
    oq_target wide = {.type = QI_S16,
                      .scale = reach / INT16_MAX,
                      .lo = -INFINITY,
                      .hi = INFINITY,
                      .value = q->b.from->n_values};
    st = oq_emit_noted(q, &in[layer].v, &wide);
    if (st)
        return st;
    in[layer] = (oq_operand){q->values[wide.value], q->b.values[wide.value]};
    wide.scale = target->scale / FINER;
    st = oq_widen(q, &x->v.tensor);
    if (!st)
        st = emit_binary(q, in, &wide, append_add);
    if (st)
        return st;
    oq_operand const sum = {q->values[wide.value], q->b.values[wide.value]};
    st = oq_append_output(q, target, sum.v.n_last, sum.shape.rank, sum.shape.dims, &output);
    if (st)
        return st;
    qat_emit e = oq_emit(q, 1, &sum.v.tensor, output, target);
    e.profile = QAT_PROFILE_PAPER;
    return qat_emit_requantize(&e, q->err);
}

static qat_status emit_add(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    for (int i = 0; i < 2; i++)
        if (in[i].v.op)
            return add_to_layer(q, in, i, target);
    return emit_binary(q, in, target, append_add);
}

static float opposite(float x, float a, float b)
{
    return -x;
}

/** a - b is a plus the codes that stand for -b: those from the other end. */
static qat_status emit_sub(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    oq_operand *b = &in[1];
    qat_status st = b->v.constant.codes ? oq_append_operand(q, b, b->shape.rank, 0)
                                        : oq_codes(q, b, "second input");
    oq_target grid = st ? *target : oq_same_codes(q, b, q->b.from->n_values);
    grid.zero_point = (grid.type == QI_S8 ? -1 : UINT8_MAX) - grid.zero_point;
    b->v.is_real = true;
    b->v.constant.codes = NULL;
    if (!st)
        st = oq_apply(q, b, opposite, 0, 0);
    if (!st)
        st = oq_quantize(q, b, &grid);
    if (st)
        return st;
    *b = (oq_operand){q->values[grid.value], q->b.values[grid.value]};
    b->v.is_real = true;
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
        st = oq_order(q, x, 0);
    for (int i = 0; i < rank; i++) {
        bool const is_reduced = reduced >> i & 1;
        mask |= is_reduced ? 1u << oq_place(x->v.n_last, rank, i) : 0;
        if (keep || !is_reduced)
            dims[n++] = is_reduced ? 1 : x->shape.dims[i];
    }
    if (!st)
        st = oq_append_output(q, target, keep ? x->v.n_last : 0, n, dims, &output);
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

qat_status oq_reduced(builder *b, int rank, unsigned *mask)
{
    int64_t axes[QAT_FOREIGN_RANK];
    int count;
    bool const quantized = !strncmp(b->node->op, "QLinear", 7); /* input 1 is a scale */
    qat_status st =
        fv_ints(b, quantized ? b->node->n_inputs : 1, "axes", axes, QAT_FOREIGN_RANK, &count);
    bool const all = count < 0 || (count == 0 && !fv_attr_int(b, "noop_with_empty_axes", 0));
    *mask = 0;
    for (int i = 0; i < (st || all ? rank : count) && !st; i++) {
        int axis = i;
        st = all ? QAT_OK : fv_axis(b, axes[i], rank, &axis);
        *mask |= st ? 0 : 1u << axis;
    }
    return st;
}

static qat_status emit_reduce(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    unsigned reduced;
    qat_status const st = oq_reduced(&q->b, in[0].shape.rank, &reduced);
    return st ? st
              : append_mean(q, &in[0], reduced, fv_attr_int(&q->b, "keepdims", 1) != 0, target);
}

/* ------------------------------------------------------------------ Concat, Softmax */

/** Inputs without values join nothing. Returns how many are left, at the front of the list. */
static int drop_empty(oq_operand *in, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (!oq_is_empty(&in[i]))
            in[left++] = in[i];
    return left;
}

static qat_status emit_concat(oq_importer *q, oq_operand *in, int given, const oq_target *target)
{
    int inputs[OQ_OPERANDS], axis, output;
    int64_t dims[QAT_FOREIGN_RANK];
    int const n = drop_empty(in, given);
    if (!n)
        return fv_refuse(&q->b, "none of its inputs has values");
    int const rank = in[0].shape.rank;
    oq_target part = *target;
    int const last = common_order(in, n, rank);
    qat_status st = fv_axis(&q->b, fv_attr_int(&q->b, "axis", 1), rank, &axis);
    if (!st)
        st = oq_few_dims(q, rank);
    for (int i = 0; i < n && !st; i++)
        if (in[i].v.constant.codes) {
            st = oq_append_operand(q, &in[i], rank, last);
            in[i].v.n_last = last;
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
        oq_operand made = {q->values[part.value], q->b.values[part.value]};
        if (!st) /* a table for each index has an order of its own */
            st = oq_order(q, &made, last);
        inputs[i] = made.v.tensor;
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

/** Dimension `axis` and the last one change places. */
static qat_status swap_last(oq_importer *q, oq_operand *x, int axis)
{
    int perm[QAT_FOREIGN_RANK];
    for (int i = 0; i < x->shape.rank; i++)
        perm[i] = i;
    perm[axis] = x->shape.rank - 1;
    perm[x->shape.rank - 1] = axis;
    return axis == x->shape.rank - 1 ? QAT_OK : oq_transpose(q, x, perm);
}

/** Before opset 13 a softmax is over all dimensions from the axis on. */
static qat_status softmax_axis(oq_importer *q, const fv *x, int *axis)
{
    bool const old = q->b.from->opset < 13;
    qat_status const st = fv_axis(&q->b, fv_attr_int(&q->b, "axis", old ? 1 : -1), x->rank, axis);
    if (st || !old)
        return st;
    int first = *axis;
    for (int i = first, seen = 0; i < x->rank; i++)
        if (x->dims[i] != 1) {
            if (seen++)
                return fv_refuse(&q->b, "a softmax over several dimensions");
            *axis = i;
        }
    return QAT_OK;
}

/** With the scale that softmax has in the engine; another one is a table behind it. */
static qat_status emit_softmax(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    oq_operand *x = &in[0];
    int axis, output;
    oq_target own = *target;
    qat_status st = oq_codes(q, x, "input");
    if (!st)
        st = softmax_axis(q, &x->shape, &axis);
    if (!st)
        st = swap_last(q, x, axis);
    if (!st)
        st = oq_order(q, x, 0);
    own.scale = 0x1p-8f;
    own.zero_point = own.type == QI_S8 ? INT8_MIN : 0;
    bool const is_last = !st && axis == x->shape.rank - 1 && target->lo <= 0 && target->hi >= 1 &&
                         own.scale == target->scale && own.zero_point == target->zero_point;
    own.value = is_last ? target->value : q->b.from->n_values;
    if (!st)
        st = oq_append_output(q, &own, 0, x->shape.rank, x->shape.dims, &output);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 1, &x->v.tensor, output, NULL);
    st = qat_emit_softmax(&e, 1, q->err);
    if (st || is_last)
        return st;
    oq_operand y = {q->values[own.value], q->b.values[own.value]};
    st = swap_last(q, &y, axis);
    if (!st)
        oq_set(q, own.value, &y.v, y.shape.rank, y.shape.dims);
    return st ? st : oq_finish(q, own.value, target);
}

const oq_operator oq_value_operators[] = {
    {"Add", "QLinearAdd", 2, 6, -1, emit_add},
    {"Sub", NULL, 2, 0, -1, emit_sub},
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
PLAIN(softplus, x > 0 ? x + logf(expf(-x) + 1) : logf(expf(x) + 1))
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
    qat_status const st = oq_apply(q, &x, f, p, s);
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
    qat_status const st = oq_apply(q, x, limited, ends[0], ends[1]);
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

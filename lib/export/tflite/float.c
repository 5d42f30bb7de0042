/**
 * Writes a float network as a .tflite file of float32. A bias, a batch norm and a clamp that only a
 * layer with weights leads to become part of it, as TensorFlow Lite has them. States are fed, as in
 * states.c.
 */
#include "autograd/loops/window.h"
#include "base/shown.h"
#include "export/tflite/out.h"
#include "layer/layer.h"
#include "qat/qat.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** A layer with weights whose file still changes: what reads it alone may join it. */
typedef struct product {
    tfo_operator *op;
    int activation; /* the option's field */
    float *weights, *bias;
    size_t count, channels;
    bool channels_last; /* in the weights */
} product;

typedef struct float_value {
    int index, readers; /* index: the tensor of the file */
    product *product;   /* NULL: nothing may join it */
} float_value;

typedef struct float_writer {
    tfo o;
    float_value *values;  /* by node */
    const qat_node *node; /* that is written */
    qat_error *err;
} float_writer;

typedef qat_status float_fn(float_writer *w, const qat_node *node);

static float_value *value_of(const float_writer *w, const qat_node *node)
{
    return &w->values[node->index];
}

static int in(const float_writer *w, const qat_node *node, int i)
{
    return value_of(w, node->inputs[i])->index;
}

static qat_status refuse(const float_writer *w, const qat_node *node, const char *why)
{
    return qat_fail(w->err, QAT_ERR_UNSUPPORTED,
                    "layer '%.80s' (%s) cannot be written as .tflite: %s", node->name,
                    node->op->name, why);
}

/* ------------------------------------------------------------------ tensors */

static int add_tensor(float_writer *w, const char *name, const qat_shape *shape)
{
    tfo_tensor t = {.type = TFL_FLOAT32, .rank = shape->rank};
    memcpy(t.dims, shape->dims, (size_t)shape->rank * sizeof *t.dims);
    return tfo_add_tensor(&w->o.file, name, &t);
}

/** A tensor between the operators of one node. */
static int between(float_writer *w, const char *part, const qat_shape *shape)
{
    char name[QAT_NAME_MAX];
    qat_part_name(name, w->node->name, part);
    return add_tensor(w, name, shape);
}

/** The tensor of the node. */
static int output(float_writer *w)
{
    float_value *v = value_of(w, w->node);
    if (v->index < 0)
        v->index = add_tensor(w, w->node->name, &w->node->shape);
    return v->index;
}

static float *take(float_writer *w, size_t count)
{
    float *floats = qat_arena_array(&w->o.file.arena, count, sizeof *floats);
    w->o.file.failed = w->o.file.failed || !floats;
    return floats;
}

static int constant(float_writer *w, const char *name, const qat_shape *shape, const float *values)
{
    int const index = add_tensor(w, name, shape);
    w->o.file.tensors[index].buffer =
        tfo_add_buffer(&w->o.file, values, qat_shape_count(shape) * sizeof *values);
    return index;
}

/** A constant that the caller fills; NULL: no memory. */
static int filled(float_writer *w, const char *part, const qat_shape *shape, float **values)
{
    char name[QAT_NAME_MAX];
    qat_part_name(name, w->node->name, part);
    *values = take(w, qat_shape_count(shape));
    return *values ? constant(w, name, shape, *values) : 0;
}

static int number(float_writer *w, const char *part, double value)
{
    float *at;
    int const index = filled(w, part, &(qat_shape){1, {1}}, &at);
    if (at)
        *at = (float)value;
    return index;
}

static int ints(float_writer *w, const char *part, int rows, int columns, const int32_t *values)
{
    char name[QAT_NAME_MAX];
    size_t const count = (size_t)rows * (size_t)(columns ? columns : 1);
    tfo_tensor t = {.type = TFL_INT32, .rank = columns ? 2 : 1, .dims = {rows, columns}};
    int32_t *copy = qat_arena_array(&w->o.file.arena, count, sizeof *copy);
    if (copy)
        memcpy(copy, values, count * sizeof *copy);
    t.buffer = tfo_add_buffer(&w->o.file, copy, count * sizeof *copy);
    qat_part_name(name, w->node->name, part);
    return tfo_add_tensor(&w->o.file, name, &t);
}

/* ------------------------------------------------------------------ operators */

static tfo_operator *apply(float_writer *w, int code, int from, int to)
{
    return tfo_append(&w->o, code, 1, &from, to);
}

static tfo_operator *apply2(float_writer *w, int code, int a, int b, int to)
{
    return tfo_append(&w->o, code, 2, (const int[]){a, b}, to);
}

/** min(max(x, lo), hi); 1e30 and beyond is no bound. */
static void bounded(float_writer *w, int from, double lo, double hi, int to)
{
    bool const lower = lo > -1e30, upper = hi < 1e30;
    if (lo == 0 && (!upper || hi == 6)) {
        apply(w, upper ? TFL_RELU6 : TFL_RELU, from, to);
    } else if (lo == -1 && hi == 1) {
        apply(w, TFL_RELU_N1_TO_1, from, to);
    } else {
        int const raised = lower && upper ? between(w, "raised", &w->node->shape) : to;
        if (lower || !upper)
            apply2(w, TFL_MAXIMUM, from, number(w, "lowest", lo), raised);
        if (upper)
            apply2(w, TFL_MINIMUM, lower ? raised : from, number(w, "highest", hi), to);
    }
}

static qat_status function(float_writer *w, const qat_node *node, int code)
{
    apply(w, code, in(w, node, 0), output(w));
    return QAT_OK;
}

/** The node is what its input is, which gets its name. */
static void join(float_writer *w, const qat_node *node, product *p)
{
    float_value *v = value_of(w, node);
    v->index = in(w, node, 0);
    v->product = p;
    qat_shown(w->o.file.tensors[v->index].name, QAT_NAME_MAX, node->name, false);
}

/** The layer that the node may join; NULL: none. */
static product *joinable(const float_writer *w, const qat_node *node)
{
    const float_value *v = value_of(w, node->inputs[0]);
    return v->readers == 1 ? v->product : NULL;
}

/* ------------------------------------------------------------------ windows */

/** Both directions; transposed: of the convolution whose gradient it is. */
static qat_status window_of(float_writer *w, const qat_node *node, bool transposed,
                            tfo_direction d[2])
{
    qat_window g;
    qat_status const st =
        transposed ? qat_transposed_window_of(&g, node, w->err) : qat_window_of(&g, node, w->err);
    if (st)
        return st;
    d[0] = (tfo_direction){g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top};
    d[1] = (tfo_direction){g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left};
    return QAT_OK;
}

/** A border of `value` around x, as wide as both directions say. */
static int padded(float_writer *w, int x, tfo_direction d[2], double value)
{
    const qat_shape *from = &w->node->inputs[0]->shape;
    int32_t const pads[] = {0, 0, d[0].pad, tfo_pad_behind(&d[0]), d[1].pad, tfo_pad_behind(&d[1]),
                            0, 0};
    qat_shape shape = *from;
    for (int i = 0; i < 2; i++) {
        shape.dims[1 + i] += pads[2 + 2 * i] + pads[3 + 2 * i];
        d[i].in = shape.dims[1 + i];
        d[i].pad = 0;
    }
    int const inputs[] = {x, ints(w, "paddings", 4, 2, pads),
                          value != 0 ? number(w, "value", value) : -1};
    int const y = between(w, "padded", &shape);
    tfo_append(&w->o, value != 0 ? TFL_PADV2 : TFL_PAD, value != 0 ? 3 : 2, inputs, y);
    return y;
}

static qat_status padding_of(float_writer *w, int *x, tfo_direction d[2], double value,
                             int *padding)
{
    *padding = tfo_padding(d);
    if (*padding < 0)
        *x = padded(w, *x, d, value);
    *padding = *padding < 0 ? tfo_padding(d) : *padding;
    return *padding < 0 ? refuse(w, w->node, "it leaves more than a stride of its input unread")
                        : QAT_OK;
}

/* ------------------------------------------------------------------ layers with weights */

/** Copies of the weights and a bias of zeros, in the file too. */
static product *begin_product(float_writer *w, const qat_node *node, size_t channels, int inputs[3])
{
    const qat_node *p = node->inputs[1];
    qat_shape const of_bias = {1, {(int)channels}};
    product *made = qat_arena_take(&w->o.file.arena, sizeof *made);
    if (!made) {
        w->o.file.failed = true;
        return NULL;
    }
    made->count = qat_shape_count(&p->shape);
    made->channels = channels;
    made->weights = take(w, made->count);
    if (!made->weights)
        return NULL;
    memcpy(made->weights, p->value, made->count * sizeof(float));
    inputs[1] = constant(w, p->name, &p->shape, made->weights);
    inputs[2] = filled(w, "bias", &of_bias, &made->bias);
    return made->bias ? made : NULL;
}

static void end_product(float_writer *w, product *p, tfo_operator *op, int activation)
{
    p->op = op;
    p->activation = activation;
    value_of(w, w->node)->product = op ? p : NULL;
}

static qat_status conv2d(float_writer *w, const qat_node *node)
{
    tfo_direction d[2];
    int padding, inputs[3] = {in(w, node, 0)};
    qat_status st = window_of(w, node, false, d);
    if (!st)
        st = padding_of(w, &inputs[0], d, 0, &padding);
    product *p = st ? NULL : begin_product(w, node, (size_t)node->shape.dims[3], inputs);
    if (!p)
        return st;
    tfo_operator *op = tfo_append(&w->o, TFL_CONV_2D, 3, inputs, output(w));
    tfo_option_int(op, CONV_PADDING, padding);
    tfo_option_int(op, CONV_STRIDE_H, d[0].stride);
    tfo_option_int(op, CONV_STRIDE_W, d[1].stride);
    tfo_option_int(op, CONV_DILATION_H, d[0].dilation);
    tfo_option_int(op, CONV_DILATION_W, d[1].dilation);
    if (op && qat_attr(node, "groups") > 1)
        op->version = 6;
    end_product(w, p, op, CONV_ACTIVATION);
    return QAT_OK;
}

static qat_status depthwise_conv2d(float_writer *w, const qat_node *node)
{
    tfo_direction d[2];
    int padding, inputs[3] = {in(w, node, 0)};
    qat_status st = window_of(w, node, false, d);
    if (!st)
        st = padding_of(w, &inputs[0], d, 0, &padding);
    product *p = st ? NULL : begin_product(w, node, (size_t)node->shape.dims[3], inputs);
    if (!p)
        return st;
    p->channels_last = true;
    tfo_operator *op = tfo_append(&w->o, TFL_DEPTHWISE_CONV_2D, 3, inputs, output(w));
    tfo_option_int(op, DEPTHWISE_PADDING, padding);
    tfo_option_int(op, DEPTHWISE_STRIDE_H, d[0].stride);
    tfo_option_int(op, DEPTHWISE_STRIDE_W, d[1].stride);
    tfo_option_int(op, DEPTHWISE_DILATION_H, d[0].dilation);
    tfo_option_int(op, DEPTHWISE_DILATION_W, d[1].dilation);
    tfo_option_int(op, DEPTHWISE_MULTIPLIER, (int)qat_attr(node, "multiplier"));
    end_product(w, p, op, DEPTHWISE_ACTIVATION);
    return QAT_OK;
}

static qat_status transpose_conv2d(float_writer *w, const qat_node *node)
{
    tfo_direction d[2];
    int made[3] = {0};
    qat_status const st = window_of(w, node, true, d);
    if (st)
        return st;
    int const padding = tfo_padding(d);
    if (padding < 0)
        return refuse(w, node, "its padding is neither SAME nor VALID");
    product *p = begin_product(w, node, (size_t)node->shape.dims[3], made);
    if (!p)
        return QAT_OK;
    int const inputs[] = {ints(w, "shape", 4, 0, node->shape.dims), made[1], in(w, node, 0),
                          made[2]};
    tfo_operator *op = tfo_append(&w->o, TFL_TRANSPOSE_CONV, 4, inputs, output(w));
    tfo_option_int(op, TRANSPOSE_CONV_PADDING, padding);
    tfo_option_int(op, TRANSPOSE_CONV_STRIDE_H, d[0].stride);
    tfo_option_int(op, TRANSPOSE_CONV_STRIDE_W, d[1].stride);
    end_product(w, p, op, -1);
    return QAT_OK;
}

static qat_status fully_connected(float_writer *w, const qat_node *node)
{
    int inputs[3] = {in(w, node, 0)};
    product *p = begin_product(w, node, (size_t)node->shape.dims[1], inputs);
    if (!p)
        return QAT_OK;
    tfo_operator *op = tfo_append(&w->o, TFL_FULLY_CONNECTED, 3, inputs, output(w));
    end_product(w, p, op, FULLY_CONNECTED_ACTIVATION);
    return QAT_OK;
}

static qat_status bias(float_writer *w, const qat_node *node)
{
    const qat_node *b = node->inputs[1];
    product *p = joinable(w, node);
    for (size_t c = 0; p && c < p->channels; c++)
        p->bias[c] += b->value[c];
    if (p)
        join(w, node, p);
    else
        apply2(w, TFL_ADD, in(w, node, 0), constant(w, b->name, &b->shape, b->value), output(w));
    return QAT_OK;
}

/** y = factor x + term, a pair for each channel. */
static void factors_of(const qat_node *node, float *factor, float *term)
{
    double const epsilon = qat_attr(node, "epsilon");
    for (int c = 0; c < qat_shape_channels(&node->shape); c++) {
        double const gamma = (double)node->inputs[1]->value[c];
        double const mean = (double)node->inputs[3]->value[c];
        double const f = gamma / sqrt((double)node->inputs[4]->value[c] + epsilon);
        factor[c] = (float)f;
        term[c] = (float)((double)node->inputs[2]->value[c] - mean * f);
    }
}

static qat_status batch_norm(float_writer *w, const qat_node *node)
{
    qat_shape const each = {1, {qat_shape_channels(&node->shape)}};
    product *p = joinable(w, node);
    float *factor = take(w, (size_t)each.dims[0]), *term = take(w, (size_t)each.dims[0]);
    if (!factor || !term)
        return QAT_OK;
    factors_of(node, factor, term);
    if (p) {
        size_t const per_channel = p->count / p->channels;
        for (size_t i = 0; i < p->count; i++)
            p->weights[i] *= factor[p->channels_last ? i % p->channels : i / per_channel];
        for (size_t c = 0; c < p->channels; c++)
            p->bias[c] = p->bias[c] * factor[c] + term[c];
        join(w, node, p);
        return QAT_OK;
    }
    char name[QAT_NAME_MAX];
    qat_part_name(name, node->name, "factor");
    int const scaled = between(w, "scaled", &node->shape);
    apply2(w, TFL_MUL, in(w, node, 0), constant(w, name, &each, factor), scaled);
    qat_part_name(name, node->name, "term");
    apply2(w, TFL_ADD, scaled, constant(w, name, &each, term), output(w));
    return QAT_OK;
}

/* ------------------------------------------------------------------ functions */

static qat_status clamp(float_writer *w, const qat_node *node)
{
    float const lo = node->op->quant->clamp_min, hi = node->op->quant->clamp_max;
    int const activation = lo == 0 && isinf(hi)    ? TFL_ACT_RELU
                           : lo == 0 && hi == 6.0f ? TFL_ACT_RELU6
                           : lo == -1 && hi == 1   ? TFL_ACT_RELU_N1_TO_1
                                                   : TFL_ACT_NONE;
    product *p = joinable(w, node);
    if (p && p->activation >= 0 && activation != TFL_ACT_NONE) {
        tfo_option_int(p->op, p->activation, activation);
        join(w, node, NULL);
    } else {
        bounded(w, in(w, node, 0), (double)lo, (double)hi, output(w));
    }
    return QAT_OK;
}

static qat_status clip(float_writer *w, const qat_node *node)
{
    bounded(w, in(w, node, 0), qat_attr(node, "min"), qat_attr(node, "max"), output(w));
    return QAT_OK;
}

static qat_status logistic(float_writer *w, const qat_node *node)
{
    return function(w, node, TFL_LOGISTIC);
}

static qat_status tanh_(float_writer *w, const qat_node *node)
{
    return function(w, node, TFL_TANH);
}

static qat_status hard_swish(float_writer *w, const qat_node *node)
{
    return function(w, node, TFL_HARD_SWISH);
}

static qat_status gelu(float_writer *w, const qat_node *node)
{
    return function(w, node, TFL_GELU);
}

static qat_status silu(float_writer *w, const qat_node *node)
{
    int const x = in(w, node, 0), gate = between(w, "gate", &node->shape);
    apply(w, TFL_LOGISTIC, x, gate);
    apply2(w, TFL_MUL, x, gate, output(w));
    return QAT_OK;
}

static qat_status leaky_relu(float_writer *w, const qat_node *node)
{
    tfo_option_float(apply(w, TFL_LEAKY_RELU, in(w, node, 0), output(w)), LEAKY_RELU_ALPHA,
                     (float)qat_attr(node, "alpha"));
    return QAT_OK;
}

static qat_status hard_sigmoid(float_writer *w, const qat_node *node)
{
    int const scaled = between(w, "scaled", &node->shape), line = between(w, "line", &node->shape);
    apply2(w, TFL_MUL, in(w, node, 0), number(w, "alpha", qat_attr(node, "alpha")), scaled);
    apply2(w, TFL_ADD, scaled, number(w, "beta", qat_attr(node, "beta")), line);
    bounded(w, line, 0, 1, output(w));
    return QAT_OK;
}

static qat_status softmax(float_writer *w, const qat_node *node)
{
    tfo_option_float(apply(w, TFL_SOFTMAX, in(w, node, 0), output(w)), SOFTMAX_BETA, 1.0f);
    return QAT_OK;
}

/* ------------------------------------------------------------------ two inputs, pools */

static qat_status both(float_writer *w, const qat_node *node, int code)
{
    apply2(w, code, in(w, node, 0), in(w, node, 1), output(w));
    return QAT_OK;
}

static qat_status add(float_writer *w, const qat_node *node)
{
    return both(w, node, TFL_ADD);
}

static qat_status sub(float_writer *w, const qat_node *node)
{
    return both(w, node, TFL_SUB);
}

static qat_status mul(float_writer *w, const qat_node *node)
{
    return both(w, node, TFL_MUL);
}

static qat_status concat(float_writer *w, const qat_node *node)
{
    int const axis = (int)qat_attr(node, "axis");
    int *inputs = qat_arena_array(&w->o.file.arena, (size_t)node->n_data, sizeof *inputs);
    if (!inputs)
        return qat_out_of_memory(w->err, NULL);
    for (int i = 0; i < node->n_data; i++)
        inputs[i] = in(w, node, i);
    tfo_option_int(tfo_append(&w->o, TFL_CONCATENATION, node->n_data, inputs, output(w)),
                   CONCATENATION_AXIS, axis < 0 ? axis + node->shape.rank : axis);
    return QAT_OK;
}

static void append_pool(float_writer *w, int code, int x, const tfo_direction d[2], int padding,
                        int y)
{
    tfo_operator *op = apply(w, code, x, y);
    tfo_option_int(op, POOL_PADDING, padding);
    tfo_option_int(op, POOL_FILTER_H, d[0].kernel);
    tfo_option_int(op, POOL_FILTER_W, d[1].kernel);
    tfo_option_int(op, POOL_STRIDE_H, d[0].stride);
    tfo_option_int(op, POOL_STRIDE_W, d[1].stride);
}

static qat_status max_pool2d(float_writer *w, const qat_node *node)
{
    tfo_direction d[2];
    int padding, x = in(w, node, 0);
    qat_status st = window_of(w, node, false, d);
    if (!st)
        st = padding_of(w, &x, d, -FLT_MAX, &padding);
    if (!st)
        append_pool(w, TFL_MAX_POOL_2D, x, d, padding, output(w));
    return st;
}

/** How many positions of the window at `at` lie inside x. */
static int inside(const tfo_direction *d, int at)
{
    int const first = at * d->stride - d->pad, end = first + d->kernel;
    return (end < d->in ? end : d->in) - (first > 0 ? first : 0);
}

/**
 * TensorFlow Lite does not count SAME's padding. Zeros of a PAD count; where they must not, a
 * factor for each position makes up for them.
 */
static qat_status average_pool2d(float_writer *w, const qat_node *node)
{
    bool const counts = qat_attr(node, "count_padding") > 0;
    const qat_shape *y = &node->shape;
    tfo_direction d[2], own[2];
    int padding, x = in(w, node, 0), to = output(w);
    float *factor = NULL;
    qat_status st = window_of(w, node, false, d);
    memcpy(own, d, sizeof own);
    bool const pads = d[0].pad || d[1].pad || tfo_pad_behind(&d[0]) || tfo_pad_behind(&d[1]);
    if (!st && counts && pads)
        x = padded(w, x, d, 0);
    bool const whole = !counts && tfo_padding(d) < 0;
    if (!st)
        st = padding_of(w, &x, d, 0, &padding);
    if (st)
        return st;
    int const pooled = whole ? between(w, "pooled", y) : to;
    append_pool(w, TFL_AVERAGE_POOL_2D, x, d, padding, pooled);
    if (!whole)
        return QAT_OK;
    int const f = filled(w, "factor", &(qat_shape){4, {1, y->dims[1], y->dims[2], 1}}, &factor);
    for (int i = 0; factor && i < y->dims[1]; i++)
        for (int j = 0; j < y->dims[2]; j++)
            factor[i * y->dims[2] + j] = (float)(own[0].kernel * own[1].kernel) /
                                         (float)(inside(&own[0], i) * inside(&own[1], j));
    apply2(w, TFL_MUL, pooled, f, to);
    return QAT_OK;
}

static qat_status global_average_pool(float_writer *w, const qat_node *node)
{
    static const int32_t axes[] = {1, 2};
    tfo_option_int(apply2(w, TFL_MEAN, in(w, node, 0), ints(w, "axes", 2, 0, axes), output(w)),
                   REDUCER_KEEP_DIMS, 1);
    return QAT_OK;
}

/* ------------------------------------------------------------------ moves */

static qat_status reshape(float_writer *w, const qat_node *node)
{
    apply2(w, TFL_RESHAPE, in(w, node, 0), ints(w, "shape", node->shape.rank, 0, node->shape.dims),
           output(w));
    return QAT_OK;
}

static qat_status strided_slice(float_writer *w, const qat_node *node)
{
    int32_t begin[QAT_MAX_RANK] = {0}, end[QAT_MAX_RANK], step[QAT_MAX_RANK];
    int const rank = node->shape.rank, axis = (int)qat_attr(node, "axis");
    for (int i = 0; i < rank; i++) {
        end[i] = node->shape.dims[i];
        step[i] = 1;
    }
    begin[axis] = (int32_t)qat_attr(node, "begin");
    step[axis] = (int32_t)qat_attr(node, "step");
    end[axis] = begin[axis] + (node->shape.dims[axis] - 1) * step[axis] + 1;
    int const inputs[] = {in(w, node, 0), ints(w, "begin", rank, 0, begin),
                          ints(w, "end", rank, 0, end), ints(w, "strides", rank, 0, step)};
    tfo_append(&w->o, TFL_STRIDED_SLICE, 4, inputs, output(w));
    return QAT_OK;
}

static qat_status transpose(float_writer *w, const qat_node *node)
{
    int32_t const perm[] = {0, (int32_t)qat_attr(node, "d1"), (int32_t)qat_attr(node, "d2"),
                            (int32_t)qat_attr(node, "d3")};
    apply2(w, TFL_TRANSPOSE, in(w, node, 0), ints(w, "perm", 4, 0, perm), output(w));
    return QAT_OK;
}

static qat_status pad(float_writer *w, const qat_node *node)
{
    static const char *const sides[] = {"top", "bottom", "left", "right", "front", "back"};
    int32_t pads[2 * QAT_MAX_RANK] = {0};
    for (int i = 0; i < 6; i++)
        pads[2 + i] = (int32_t)qat_attr(node, sides[i]);
    apply2(w, TFL_PAD, in(w, node, 0), ints(w, "paddings", 4, 2, pads), output(w));
    return QAT_OK;
}

static qat_status resize(float_writer *w, const qat_node *node, bool bilinear)
{
    tfo_operator *op =
        apply2(w, bilinear ? TFL_RESIZE_BILINEAR : TFL_RESIZE_NEAREST_NEIGHBOR, in(w, node, 0),
               ints(w, "size", 2, 0, &node->shape.dims[1]), output(w));
    tfo_option_int(op, bilinear ? RESIZE_BILINEAR_ALIGN_CORNERS : RESIZE_NEAREST_ALIGN_CORNERS,
                   qat_attr(node, "align_corners") != 0);
    tfo_option_int(op, bilinear ? RESIZE_BILINEAR_HALF_PIXEL : RESIZE_NEAREST_HALF_PIXEL,
                   qat_attr(node, "half_pixel_centers") != 0);
    return QAT_OK;
}

static qat_status resize_nearest(float_writer *w, const qat_node *node)
{
    return resize(w, node, false);
}

static qat_status resize_bilinear(float_writer *w, const qat_node *node)
{
    return resize(w, node, true);
}

static qat_status same(float_writer *w, const qat_node *node)
{
    value_of(w, node)->index = in(w, node, 0);
    return QAT_OK;
}

static qat_status state(float_writer *w, const qat_node *node)
{
    w->o.file.inputs[w->o.file.n_inputs++] = output(w);
    (void)node;
    return QAT_OK;
}

static const struct {
    const char *name;
    float_fn *write;
} ops[] = {{"conv2d", conv2d},
           {"depthwise_conv2d", depthwise_conv2d},
           {"transpose_conv2d", transpose_conv2d},
           {"fully_connected", fully_connected},
           {"bias", bias},
           {"batch_norm", batch_norm},
           {"logistic", logistic},
           {"tanh", tanh_},
           {"hard_swish", hard_swish},
           {"silu", silu},
           {"gelu", gelu},
           {"leaky_relu", leaky_relu},
           {"hard_sigmoid", hard_sigmoid},
           {"clip", clip},
           {"softmax", softmax},
           {"add", add},
           {"sub", sub},
           {"mul", mul},
           {"concat", concat},
           {"max_pool2d", max_pool2d},
           {"average_pool2d", average_pool2d},
           {"global_average_pool", global_average_pool},
           {"reshape", reshape},
           {"flatten", reshape},
           {"strided_slice", strided_slice},
           {"transpose", transpose},
           {"pad", pad},
           {"resize_nearest", resize_nearest},
           {"resize_bilinear", resize_bilinear},
           {"dropout", same},
           {"carry", same},
           {"state", state}};

/* ------------------------------------------------------------------ the whole */

static float_fn *writer_of(const qat_op *op)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (!strcmp(ops[i].name, op->name))
            return ops[i].write;
    return op->quant && op->quant->role == QAT_ROLE_CLAMP ? clamp : NULL;
}

/** Count who reads each node on the way to an output or to a state. */
static void count_readers(const float_writer *w, const qat_graph *graph)
{
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        w->values[qat_graph_output_at(graph, i)->index].readers += 2;
    for (int i = qat_graph_nodes(graph); i-- > 0;) {
        const qat_node *node = qat_graph_node(graph, i);
        bool const carries = qat_is_carry(node);
        int const shares = carries ? 2 : 1; /* nothing joins what is carried */
        w->values[i].readers += carries;
        for (int k = 0; w->values[i].readers && k < node->n_inputs; k++)
            w->values[node->inputs[k]->index].readers += shares;
    }
}

static qat_status begin(float_writer *w, const qat_graph *graph)
{
    enum { TENSORS_PER_NODE = 8, OPERATORS_PER_NODE = 3 };
    int const n = qat_graph_nodes(graph);
    tfo_file *f = &w->o.file;
    qat_status const st =
        tfo_file_init(f, TENSORS_PER_NODE * n, OPERATORS_PER_NODE * n, n, n, w->err);
    if (st)
        return st;
    f->n_inputs = f->n_outputs = 0;
    snprintf(f->description, sizeof f->description, "made by qat %s", qat_version());
    w->values = qat_arena_array(&f->arena, (size_t)n, sizeof *w->values);
    if (!w->values)
        return qat_out_of_memory(w->err, NULL);
    for (int i = 0; i < n; i++)
        w->values[i].index = -1;
    count_readers(w, graph);
    return QAT_OK;
}

static qat_status write_graph(float_writer *w, const qat_graph *graph)
{
    tfo_file *f = &w->o.file;
    int const n = qat_graph_nodes(graph);
    for (int i = 0; i < n; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        w->node = node;
        if (!w->values[i].readers || node->is_param)
            continue;
        float_fn *write = node->op ? writer_of(node->op) : state;
        if (!write)
            return refuse(w, node, "no operator of TensorFlow Lite is known for it");
        qat_status const st = write(w, node);
        if (st)
            return st;
    }
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        f->outputs[f->n_outputs++] = value_of(w, qat_graph_output_at(graph, i))->index;
    for (int i = 0; i < n; i++)
        if (qat_has_role(qat_graph_node(graph, i), QAT_ROLE_STATE))
            f->outputs[f->n_outputs++] = value_of(w, qat_carry_of(qat_graph_node(graph, i)))->index;
    return f->failed ? qat_out_of_memory(w->err, NULL) : QAT_OK;
}

qat_status qat_tflite_write_float(const qat_graph *graph, const qat_write_options *options,
                                  uint8_t **bytes, size_t *count, qat_error *err)
{
    float_writer w = {.err = err};
    qat_writer to = {0};
    *bytes = NULL;
    *count = 0;
    if (options && options->struct_size > sizeof *options)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_write_options: of a later version of the library");
    qat_status st = begin(&w, graph);
    if (!st)
        st = write_graph(&w, graph);
    if (!st)
        st = tfo_file_write(&w.o.file, &to, TFO_MAX_BYTES, err);
    tfo_file_free(&w.o.file);
    if (st) {
        qat_writer_free(&to);
        return st;
    }
    *bytes = to.bytes;
    *count = to.count;
    return QAT_OK;
}

#include "debug/real_graph.h"

#include "base/number.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRS = 240 };

/* ------------------------------------------------------------------ tensors of a model */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

size_t qat_real_count(const qi_tensor *t)
{
    return t->bytes / qi_type_bytes(t->type);
}

float qat_real_scale(const qi_tensor *t)
{
    return float_of(t->scale_bits);
}

bool qat_real_is_activation(const qi_tensor *t)
{
    return t->kind == QI_ACTIVATION && qi_type_has_codes(t->type) && t->rank >= 2 &&
           t->dims[0] == 1;
}

bool qat_real_accumulates(const qi_model *model, const qi_node *op)
{
    const qi_op *row = qi_op_named(op->kernel->name);
    return row && row->kernel == op->kernel && op->kernel->products >= QI_PRODUCTS_ROWS &&
           op->kernel->products <= QI_PRODUCTS_SPREAD && op->n_inputs == QAT_ACCUMULATE_INPUTS &&
           qi_tensor_at(model, op->inputs[QAT_IN_WEIGHTS])->kind == QI_CONSTANT &&
           qi_tensor_at(model, op->inputs[QAT_IN_BIAS])->kind == QI_CONSTANT;
}

int qat_real_channels(const qi_node *op, const qi_tensor *w)
{
    return w->dims[op->kernel->products == QI_PRODUCTS_LAST ? w->rank - 1 : 0];
}

int qat_real_channel_of(const qi_node *op, const qi_tensor *w, size_t i)
{
    size_t const channels = (size_t)qat_real_channels(op, w);
    return (int)(op->kernel->products == QI_PRODUCTS_LAST ? i % channels
                                                          : i / (qat_real_count(w) / channels));
}

float qat_real_weight_scale(const qi_model *model, const qi_tensor *w, int channel)
{
    const qi_tensor *scales = w->channel_scales < 0 ? NULL : qi_tensor_at(model, w->channel_scales);
    if (!scales || channel >= scales->dims[0])
        return qat_real_scale(w);
    return float_of(((const uint32_t *)scales->data)[channel]);
}

/* ------------------------------------------------------------------ building */

/** An op that is being translated. */
struct build {
    const qi_model *model;
    const qi_node *op;
    const qi_tensor *x, *y;
    qat_real_graph *r;
    char name[48];
};

static const char *part(struct build *b, const char *what)
{
    snprintf(b->name, sizeof b->name, "t%d%s", (int)b->op->outputs[0], what);
    return b->name;
}

static qat_node *apply(struct build *b, const char *op, const char *what, const char *attrs,
                       qat_node *x)
{
    return x ? qat_apply1(b->r->graph, op, part(b, what), attrs, x) : NULL;
}

static qat_node *input(const struct build *b, int i)
{
    return b->r->of[b->op->inputs[i]];
}

/** The bounds of its activation: where the codes are limited before they end, and at 0 and 6. */
static void set_bounds(const struct build *b, int32_t clamp_lo, int32_t clamp_hi)
{
    const qi_tensor *y = b->y;
    float const s = qat_real_scale(y), end = float_of(y->range_bits[1]);
    float *bounds = b->r->bounds[b->op->outputs[0]];
    int32_t const least = y->type == QI_U8 ? 0 : -(1 << (y->bits - 1));
    int32_t const most = y->type == QI_U8 ? (1 << y->bits) - 1 : (1 << (y->bits - 1)) - 1;
    if (clamp_lo > least || y->zero_point == clamp_lo)
        bounds[0] = s * (float)(clamp_lo - y->zero_point);
    if (clamp_hi < most)
        bounds[1] = s * (float)(clamp_hi - y->zero_point);
    else if (bounds[0] == 0 && fabsf(end - 6) < s / 2)
        bounds[1] = 6;
}

static qat_node *clip(struct build *b, qat_node *x)
{
    const float *bounds = b->r->bounds[b->op->outputs[0]];
    char attrs[ATTRS];
    qat_format(attrs, sizeof attrs, "min=%.9g max=%.9g", fmax((double)bounds[0], -1e30),
               fmin((double)bounds[1], 1e30));
    return apply(b, "clip", "/clip", attrs, x);
}

static int after(int in, int out, int kernel, int stride, int dilation, int before)
{
    int64_t const n =
        (int64_t)(out - 1) * stride + (int64_t)(kernel - 1) * dilation + 1 - in - (int64_t)before;
    return n > 0 && n <= QAT_PADDING_MAX ? (int)n : 0;
}

static qat_node *windowed(struct build *b, const char *op, const char *size, const int32_t *stride,
                          const int32_t *dilation, const int32_t *pad, const int32_t *kernel,
                          const char *more)
{
    char attrs[ATTRS];
    qat_format(
        attrs, sizeof attrs, "%skernel=%d kernel_w=%d stride=%d stride_w=%d padding=%d,%d,%d,%d%s",
        size, kernel[0], kernel[1], stride[0], stride[1], pad[0],
        after(b->x->dims[1], b->y->dims[1], kernel[0], stride[0], dilation[0], pad[0]), pad[1],
        after(b->x->dims[2], b->y->dims[2], kernel[1], stride[1], dilation[1], pad[1]), more);
    return apply(b, op, "", attrs, input(b, 0));
}

/** With bias and activation. */
static qat_node *accumulated(struct build *b, qat_node *sum)
{
    const int32_t *p = b->op->params + b->op->n_params - 2;
    set_bounds(b, p[0], p[1]);
    return clip(b, apply(b, "bias", "/bias", "", sum));
}

static qat_node *convolution(struct build *b)
{
    const qi_tensor *w = qi_tensor_at(b->model, b->op->inputs[QAT_IN_WEIGHTS]);
    const int32_t *p = b->op->params;
    bool const depthwise = b->op->kernel->products == QI_PRODUCTS_LAST;
    char size[ATTRS / 4], more[ATTRS / 4];
    qat_format(size, sizeof size, depthwise ? "multiplier=%d " : "filters=%d ",
               depthwise ? p[6] : w->dims[0]);
    qat_format(more, sizeof more, " dilation=%d dilation_w=%d", p[2], p[3]);
    if (!depthwise)
        qat_format(more + strlen(more), sizeof more - strlen(more), " groups=%d", p[6]);
    return accumulated(b,
                       windowed(b, b->op->kernel->name, size, p, p + 2, p + 4, w->dims + 1, more));
}

/** Rows or columns more at the end, and those that are cut off there. */
static void transposed_end(const struct build *b, const qi_tensor *w, int d, int *cut, int *extra)
{
    const int32_t *p = b->op->params;
    int64_t const whole = (int64_t)(b->x->dims[d] - 1) * p[d - 1] + w->dims[d] - p[d + 1];
    int64_t const behind = whole - b->y->dims[d];
    *cut = behind > 0 && behind <= QAT_PADDING_MAX ? (int)behind : 0;
    *extra = behind < 0 && behind >= -QAT_WINDOW_MAX ? (int)-behind : 0;
}

static qat_node *transposed(struct build *b)
{
    const qi_tensor *w = qi_tensor_at(b->model, b->op->inputs[QAT_IN_WEIGHTS]);
    const int32_t *p = b->op->params;
    char attrs[ATTRS];
    int cut[2], extra[2];
    for (int d = 1; d <= 2; d++)
        transposed_end(b, w, d, &cut[d - 1], &extra[d - 1]);
    qat_format(attrs, sizeof attrs,
               "filters=%d kernel=%d kernel_w=%d stride=%d stride_w=%d padding=%d,%d,%d,%d "
               "extra=%d extra_w=%d",
               w->dims[0], w->dims[1], w->dims[2], p[0], p[1], p[2], cut[0], p[3], cut[1], extra[0],
               extra[1]);
    return accumulated(b, apply(b, "transpose_conv2d", "", attrs, input(b, 0)));
}

static qat_node *fully_connected(struct build *b)
{
    const qi_tensor *w = qi_tensor_at(b->model, b->op->inputs[QAT_IN_WEIGHTS]);
    char attrs[ATTRS];
    if ((size_t)w->dims[1] != qat_real_count(b->x))
        return NULL;
    qat_format(attrs, sizeof attrs, "units=%d", w->dims[0]);
    return accumulated(b, apply(b, "fully_connected", "", attrs, input(b, 0)));
}

static qat_node *of_two(struct build *b)
{
    const int32_t *p = b->op->params + b->op->n_params - 2;
    qat_node *x = input(b, 0), *y = input(b, 1);
    if (!x || !y || !qat_shape_equal(&x->shape, &y->shape))
        return NULL;
    set_bounds(b, p[0], p[1]);
    return clip(b, qat_apply2(b->r->graph, b->op->kernel->name, part(b, ""), "", x, y));
}

static qat_node *requantize(struct build *b)
{
    if (qi_type_has_codes(b->x->type))
        set_bounds(b, b->op->params[2], b->op->params[3]);
    return clip(b, input(b, 0));
}

static qat_node *pool(struct build *b)
{
    static const int32_t none[2] = {1, 1};
    const int32_t *p = b->op->params;
    return windowed(b, b->op->kernel->name, "", p + 2, none, p + 4, p, "");
}

static qat_node *mean(struct build *b)
{
    enum { HEIGHT_AND_WIDTH = 6 };
    if (b->x->rank != QI_MAX_RANK || b->op->params[0] != HEIGHT_AND_WIDTH)
        return NULL;
    return apply(b, "global_average_pool", "", "", input(b, 0));
}

static qat_node *concat(struct build *b)
{
    qat_node **all = calloc((size_t)b->op->n_inputs, sizeof *all);
    qat_node *y = NULL;
    char attrs[ATTRS];
    int n = 0;
    while (all && n < b->op->n_inputs && input(b, n)) {
        all[n] = input(b, n);
        n++;
    }
    qat_format(attrs, sizeof attrs, "axis=%d", b->op->params[0]);
    if (all && n == b->op->n_inputs && b->op->params[0] > 0)
        y = qat_apply(b->r->graph, "concat", part(b, ""), attrs, n, all);
    free(all);
    return y;
}

/** In the shape of the op's output. */
static qat_node *reshaped(struct build *b, const char *what, qat_node *x)
{
    char attrs[ATTRS] = "";
    for (int i = 1; i < b->y->rank; i++)
        qat_format(attrs + strlen(attrs), sizeof attrs - strlen(attrs), "d%d=%d ", i,
                   b->y->dims[i]);
    return apply(b, "reshape", what, attrs, x);
}

static qat_node *reshape(struct build *b)
{
    return reshaped(b, "/shape", input(b, 0));
}

static qat_node *function(struct build *b)
{
    return apply(b, b->op->kernel->name, "", "", input(b, 0));
}

/* clang-format off */
static const struct {
    const char *op;
    qat_node *(*translate)(struct build *b);
} translations[] = {
    {"conv2d", convolution}, {"depthwise_conv2d", convolution}, {"transpose_conv2d", transposed},
    {"fully_connected", fully_connected}, {"add", of_two}, {"sub", of_two}, {"mul", of_two},
    {"requantize", requantize}, {"average_pool2d", pool}, {"max_pool2d", pool}, {"mean", mean},
    {"concat", concat}, {"reshape", reshape}, {"logistic", function}, {"tanh", function},
};
/* clang-format on */

static qat_node *translate(struct build *b)
{
    for (size_t i = 0; i < sizeof translations / sizeof *translations; i++)
        if (strcmp(translations[i].op, b->op->kernel->name) == 0)
            return translations[i].translate(b);
    return NULL;
}

/** A tensor whose values are given. */
static qat_node *given(const struct build *b, int32_t tensor)
{
    const qi_tensor *t = qi_tensor_at(b->model, tensor);
    int dims[QAT_MAX_RANK];
    char name[48];
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    snprintf(name, sizeof name, "t%d/given", (int)tensor);
    return qat_graph_input(b->r->graph, name, qat_shape_of(dims, t->rank));
}

/** Has the node the values that the engine has there, in its shape? */
static bool fits(const qat_node *node, const qi_tensor *t)
{
    bool same = node->shape.rank == t->rank;
    for (int i = 0; same && i < t->rank; i++)
        same = node->shape.dims[i] == t->dims[i];
    return same;
}

static void add_op(struct build *b)
{
    b->y = qi_tensor_at(b->model, b->op->outputs[0]);
    b->x = b->op->n_inputs > 0 ? qi_tensor_at(b->model, b->op->inputs[0]) : NULL;
    bool const plain = b->op->n_outputs == 1 && b->x && qat_real_is_activation(b->y);
    qat_node *y = plain ? translate(b) : NULL;
    if (y && !fits(y, b->y) && qat_shape_count(&y->shape) == qat_real_count(b->y))
        y = reshaped(b, "/back", y);
    for (int i = 0; i < b->op->n_outputs; i++) {
        int32_t const out = b->op->outputs[i];
        if (!qat_real_is_activation(qi_tensor_at(b->model, out)))
            continue;
        b->r->of[out] = y && fits(y, qi_tensor_at(b->model, out)) ? y : given(b, out);
        qat_graph_output(b->r->graph, b->r->of[out]);
    }
}

/* ------------------------------------------------------------------ parameters */

/** The first node of an op on the way back from its last one, by its name. */
static qat_node *part_of(const qat_real_graph *r, int32_t tensor, const char *what)
{
    char name[48];
    snprintf(name, sizeof name, "t%d%s", (int)tensor, what);
    return qat_graph_find(r->graph, name);
}

static void set_params(const qat_real_graph *r, const qi_model *model, const qi_node *op)
{
    const qat_node *sum = part_of(r, op->outputs[0], ""),
                   *bias = part_of(r, op->outputs[0], "/bias");
    if (!bias || !sum)
        return;
    const qi_tensor *x = qi_tensor_at(model, op->inputs[QAT_IN_X]);
    const qi_tensor *w = qi_tensor_at(model, op->inputs[QAT_IN_WEIGHTS]);
    const qi_tensor *codes = qi_tensor_at(model, op->inputs[QAT_IN_BIAS]);
    float *values = sum->inputs[sum->n_data]->value, *biases = bias->inputs[bias->n_data]->value;
    for (size_t i = 0; i < qat_real_count(w); i++)
        values[i] = qat_real_weight_scale(model, w, qat_real_channel_of(op, w, i)) *
                    (float)(qi_value_at(w->type, w->data, i) - w->zero_point);
    for (int c = 0; c < qat_real_channels(op, w); c++)
        biases[c] =
            (float)ldexp((double)qat_real_scale(x) * (double)qat_real_weight_scale(model, w, c) *
                             (double)qi_value_at(codes->type, codes->data, (size_t)c),
                         -op->fraction);
}

/** Weights without a scale have no real values. */
static qat_status needs_scales(const qi_model *model, qat_error *err)
{
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *op = qi_node_at(model, i);
        if (qat_real_accumulates(model, op) &&
            qat_real_weight_scale(model, qi_tensor_at(model, op->inputs[QAT_IN_WEIGHTS]), 0) == 0)
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "op %d of the model has weights without scales: they were left out "
                            "(qat-export --strip)",
                            (int)i);
    }
    return QAT_OK;
}

qat_status qat_real_graph_create(qat_real_graph *r, const qi_model *model,
                                 const qat_registry *registry, int max_batch, qat_error *err)
{
    size_t const n = (size_t)qi_tensor_count(model);
    *r = (qat_real_graph){.of = calloc(n + 1, sizeof(qat_node *)),
                          .bounds = calloc(n + 1, sizeof *r->bounds)};
    struct build b = {.model = model, .r = r};
    if (!r->of || !r->bounds)
        return qat_out_of_memory(err, "debugger");
    for (size_t i = 0; i < n; i++) {
        r->bounds[i][0] = -INFINITY;
        r->bounds[i][1] = INFINITY;
    }
    qat_status st = needs_scales(model, err);
    if (!st)
        st = qat_graph_create(&r->graph, registry, err);
    for (int32_t i = 0; !st && i < qi_input_count(model); i++)
        if (qat_real_is_activation(qi_tensor_at(model, qi_input_at(model, i))))
            r->of[qi_input_at(model, i)] = given(&b, qi_input_at(model, i));
    for (int32_t i = 0; !st && i < qi_node_count(model); i++) {
        b.op = qi_node_at(model, i);
        add_op(&b);
    }
    if (!st)
        st = qat_graph_check(r->graph, err);
    if (!st)
        st = qat_graph_plan(r->graph, max_batch, QAT_PLAN_KEEP, err);
    if (!st)
        qat_graph_init_params(r->graph, 0);
    for (int32_t i = 0; !st && i < qi_node_count(model); i++)
        if (qat_real_accumulates(model, qi_node_at(model, i)))
            set_params(r, model, qi_node_at(model, i));
    return st;
}

void qat_real_graph_free(qat_real_graph *r)
{
    qat_graph_free(r->graph);
    free(r->of);
    free(r->bounds);
    *r = (qat_real_graph){0};
}

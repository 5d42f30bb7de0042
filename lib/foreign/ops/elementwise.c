/** Functions of one value. */
#include "base/number.h"
#include "foreign/build.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ one input */

static qat_status add_function(builder *b, const char *op, const char *attrs)
{
    fv *x;
    qat_status const st = fv_data(b, 0, &x);
    if (st)
        return st;
    if (!qat_registry_find(qat_graph_registry(b->graph), op))
        return fv_refuse(b, "this operator is not supported");
    qat_node *y = fv_add(b, op, "", x->node, "%s", attrs);
    fv const out = fv_like(x, y);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

static qat_status build_relu(builder *b)
{
    return add_function(b, "relu", " ");
}

static qat_status build_sigmoid(builder *b)
{
    return add_function(b, "logistic", " ");
}

static qat_status build_tanh(builder *b)
{
    return add_function(b, "tanh", " ");
}

static qat_status build_hard_swish(builder *b)
{
    return add_function(b, "hard_swish", " ");
}

/** An op with numbers as attributes. */
static qat_status add_formed(builder *b, const char *op, const char *first, double x,
                             const char *second, double y)
{
    char attrs[128];
    int const n = qat_format(attrs, sizeof attrs, "%s=%.17g", first, x);
    if (second)
        qat_format(attrs + n, sizeof attrs - (size_t)n, " %s=%.17g", second, y);
    return add_function(b, op, attrs);
}

static qat_status build_leaky_relu(builder *b)
{
    return add_formed(b, "leaky_relu", "alpha",
                      (double)(float)fv_attr_real(b, "alpha", (double)0.01F), NULL, 0);
}

static qat_status build_hard_sigmoid(builder *b)
{
    return add_formed(b, "hard_sigmoid", "alpha", fv_attr_real(b, "alpha", (double)0.2F), "beta",
                      fv_attr_real(b, "beta", 0.5));
}

/** A bound of Clip: of input i, or of the attribute. */
static qat_status bound(builder *b, int i, const char *name, double otherwise, double *value)
{
    const qat_foreign_tensor *c;
    *value = fv_attr_real(b, name, otherwise);
    if (!fv_input(b, i))
        return QAT_OK;
    qat_status const st = fv_floats(b, i, name, &c);
    if (!st && c->count != 1)
        return fv_refuse(b, "its %s must be one number", name);
    *value = st ? otherwise : (double)c->floats[0];
    return st;
}

static qat_status build_clip(builder *b)
{
    double low, high;
    qat_status st = bound(b, 1, "min", -INFINITY, &low);
    if (!st)
        st = bound(b, 2, "max", INFINITY, &high);
    if (st)
        return st;
    if (low <= -(double)3.4e38F)
        low = -INFINITY;
    if (high >= (double)3.4e38F)
        high = INFINITY;
    if (!(low < INFINITY) || !(high > -INFINITY))
        return fv_refuse(b, "a min of %g and a max of %g", low, high);
    if (low == 0 && isinf(high))
        return add_function(b, "relu", " ");
    if (low == 0 && high == 6)
        return add_function(b, "relu6", " ");
    if (low == -1 && high == 1)
        return add_function(b, "hard_tanh", " ");
    if (isinf(low) && isinf(high)) {
        fv_output(b, 0, fv_input(b, 0));
        return QAT_OK;
    }
    return add_formed(b, "clip", "min", isinf(low) ? -1e30 : low, "max", isinf(high) ? 1e30 : high);
}

static qat_status build_gelu(builder *b)
{
    const char *how = fv_attr_text(b, "approximate", "none");
    if (strcmp(how, "none") != 0)
        return fv_refuse(b, "attribute approximate = %.20s is not supported", how);
    return add_function(b, "gelu", " ");
}

static qat_status build_swish(builder *b)
{
    double const alpha = fv_attr_real(b, "alpha", 1);
    if (alpha != 1)
        return fv_refuse(b, "attribute alpha = %g is not supported", alpha);
    return add_function(b, "silu", " ");
}

static qat_status build_softmax(builder *b)
{
    fv *in, x;
    qat_node *from;
    int axis;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    bool const flattens = b->from->opset < 13; /* over all dimensions from the axis on */
    st = fv_axis(b, fv_attr_int(b, "axis", flattens ? 1 : -1), x.rank, &axis);
    if (st)
        return st;
    if (axis < fv_first(&x))
        return fv_refuse(b, "attribute axis = 0 is the batch");
    int64_t length = 1;
    int axes[QAT_FOREIGN_RANK], n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x.rank; i++)
            if ((flattens ? i >= axis : i == axis) == (pass == 1)) {
                axes[n++] = i;
                length *= pass ? x.dims[i] : 1;
            }
    /* One softmax a sample is [N, C], whatever its dimensions: the loss finds it behind a reshape.
     */
    st = fv_order(b, &x, axes);
    int const rest = (int)(fv_count(&x) / length);
    from = st          ? NULL
           : rest == 1 ? fv_shaped(b, &x, QAT_SHAPE(1, (int)length))
                       : fv_shaped(b, &x, QAT_SHAPE(1, 1, rest, (int)length));
    if (!from)
        return st ? st : fv_graph_error(b);
    qat_node *y = fv_add(b, "softmax", "", from, " ");
    fv const out = fv_like(&x, y);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

static qat_status build_identity(builder *b)
{
    fv *x;
    qat_status const st = fv_data(b, 0, &x);
    if (!st)
        fv_output(b, 0, x);
    return st;
}

static qat_status build_dropout(builder *b)
{
    fv *x;
    const qat_foreign_tensor *c;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_floats(b, 1, "ratio", &c);
    if (st)
        return st;
    double const rate = c && c->count == 1 ? (double)c->floats[0] : fv_attr_real(b, "ratio", 0.5);
    if (!(rate > 0 && rate <= 0.95))
        return build_identity(b);
    qat_node *y = fv_add(b, "dropout", "", x->node, "rate=%.9g", rate);
    fv const out = fv_like(x, y);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

/**
 * PRelu. One slope a is a leaky ReLU. Several become a x + (1 - a) relu(x), which layers with a
 * weight a channel can compute.
 */
static qat_status build_prelu(builder *b)
{
    const qat_foreign_tensor *slope;
    fv *x, below, above;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_floats(b, 1, "slope", &slope);
    if (st)
        return st;
    if (!slope || !slope->count)
        return fv_refuse(b, "it has no slope");
    bool same = true;
    for (size_t i = 1; i < slope->count; i++)
        same = same && slope->floats[i] == slope->floats[0];
    if (same)
        return add_formed(b, "leaky_relu", "alpha", (double)slope->floats[0], NULL, 0);
    qat_foreign_tensor *rest = fv_constant(b, QAT_FOREIGN_FLOAT, slope->rank, slope->dims);
    qat_node *relu = fv_add(b, "relu", "relu", x->node, " ");
    if (!rest || !relu)
        return fv_graph_error(b);
    for (size_t i = 0; i < slope->count; i++)
        ((float *)rest->floats)[i] = 1 - slope->floats[i];
    fv const positive = fv_like(x, relu);
    st = fv_scaled(b, "slopes", x, slope, false, &below);
    if (!st)
        st = fv_scaled(b, "above", &positive, rest, false, &above);
    qat_node *y = st ? NULL : fv_add2(b, "add", "", below.node, above.node, " ");
    if (!y)
        return st ? st : fv_graph_error(b);
    fv const out = fv_like(&below, y);
    fv_output(b, 0, &out);
    return QAT_OK;
}

/** From one kind of floats to another: here all are float32. */
static qat_status build_cast(builder *b)
{
    enum { FLOAT = 1, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
    int64_t const to = fv_attr_int(b, "to", 0);
    if (to != FLOAT && to != FLOAT16 && to != DOUBLE && to != BFLOAT16)
        return fv_refuse(b, "attribute to = %lld: data stay floats here", (long long)to);
    return build_identity(b);
}

const fv_operator fv_elementwise_operators[] = {
    {"Relu", build_relu},
    {"Clip", build_clip},
    {"LeakyRelu", build_leaky_relu},
    {"PRelu", build_prelu},
    {"Gelu", build_gelu},
    {"Swish", build_swish},
    {"HardSwish", build_hard_swish},
    {"HardSigmoid", build_hard_sigmoid},
    {"Sigmoid", build_sigmoid},
    {"Tanh", build_tanh},
    {"Softmax", build_softmax},
    {"Identity", build_identity},
    {"Dropout", build_dropout},
    {"Cast", build_cast},
    {NULL, NULL},
};

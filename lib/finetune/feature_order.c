/** The order of features: follow them back to where a feature map was flattened. */
#include "finetune/feature_order.h"

#include "layer/layer.h"

#include <stdlib.h>
#include <string.h>

int qat_features_of(const qat_node *x)
{
    return (int)(qat_shape_count(&x->shape) / (size_t)x->shape.dims[0]);
}

bool qat_is_own_order(const int *order, int n)
{
    for (int i = 0; i < n; i++)
        if (order[i] != i)
            return false;
    return true;
}

/** Reshapes and dropout. */
static bool is_view(const qat_node *x)
{
    return qat_has_role(x, QAT_ROLE_PASS) && x->op->quant->is_view;
}

static bool is_dropout(const qat_node *x)
{
    return is_view(x) && x->op->quant->training_factor;
}

/** Inputs, and ops that compute new features: maps of [C, H, W] in PyTorch, or vectors. */
static bool makes_features(const qat_node *x)
{
    return !x->op || qat_has_role(x, QAT_ROLE_ACCUMULATE) || (qat_passes_codes(x) && !is_view(x));
}

/** Ops whose i-th output feature belongs to the i-th input feature. */
static bool keeps_features(const qat_node *x)
{
    return qat_is_fused(x) || qat_has_role(x, QAT_ROLE_FIXED) || qat_has_role(x, QAT_ROLE_TABLE) ||
           qat_has_role(x, QAT_ROLE_BINARY) || is_dropout(x);
}

/* [N, H, W, C] (or [N, W, C]) here, [N, C, H, W] in PyTorch; a vector is a map of one pixel. */
static void map_order(const qat_shape *shape, int *order)
{
    int const channels = qat_shape_channels(shape);
    int pixels = 1;
    for (int i = 1; i < shape->rank - 1; i++)
        pixels *= shape->dims[i];
    for (int p = 0; p < pixels; p++)
        for (int c = 0; c < channels; c++)
            order[p * channels + c] = c * pixels + p;
}

static bool is_one_pixel(const qat_node *x)
{
    return qat_features_of(x) == qat_shape_channels(&x->shape);
}

static qat_status refuse(const qat_node *x, qat_error *err)
{
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "the order of the features of %s (op %s) in PyTorch is not known", x->name,
                    x->op->name);
}

/** The parts of a concatenation of vectors follow one another. */
static qat_status order_of_parts(const qat_node *x, int *order, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int k = 0, at = 0; k < x->n_data && !st; k++) {
        int const part = qat_features_of(x->inputs[k]);
        st = qat_feature_order(x->inputs[k], order + at, err);
        for (int i = 0; i < part; i++)
            order[at + i] += at;
        at += part;
    }
    return st;
}

/** All inputs that are not broadcast must have the same order. */
static qat_status order_of_inputs(const qat_node *x, int *order, qat_error *err)
{
    int const n = qat_features_of(x);
    size_t const bytes = (size_t)n * sizeof *order;
    int *other = malloc(bytes);
    qat_status st = other ? QAT_OK : qat_out_of_memory(err, x->name);
    bool found = false;
    map_order(&x->shape, order); /* if all are broadcast */
    for (int k = 0; k < x->n_data && !st; k++) {
        if (qat_features_of(x->inputs[k]) != n)
            continue;
        st = qat_feature_order(x->inputs[k], found ? other : order, err);
        if (!st && found && memcmp(order, other, bytes) != 0)
            st = refuse(x, err);
        found = true;
    }
    free(other);
    return st;
}

/** A reshape to a map gives the pixels and channels a new meaning, unless the channels stay. */
static qat_status order_of_reshape(const qat_node *x, int *order, qat_error *err)
{
    const qat_shape *from = &x->inputs[0]->shape;
    bool const same_channels =
        from->rank > 2 && qat_shape_channels(from) == qat_shape_channels(&x->shape);
    if (is_one_pixel(x) || same_channels)
        return qat_feature_order(x->inputs[0], order, err);
    return refuse(x, err);
}

/** Another op, such as one of a plugin. Its maps are maps. It keeps an order that is the same here
 *  and in PyTorch. */
static qat_status order_of_unknown(const qat_node *x, int *order, qat_error *err)
{
    qat_status st = QAT_OK;
    map_order(&x->shape, order);
    for (int k = 0; k < x->n_data && !st && is_one_pixel(x); k++) {
        int const n = qat_features_of(x->inputs[k]);
        int *input = malloc((size_t)n * sizeof *input);
        st = input ? qat_feature_order(x->inputs[k], input, err) : qat_out_of_memory(err, x->name);
        if (!st && !qat_is_own_order(input, n))
            st = refuse(x, err);
        free(input);
    }
    return st;
}

qat_status qat_feature_order(const qat_node *x, int *order, qat_error *err)
{
    bool const joins = qat_has_role(x, QAT_ROLE_CONCAT);
    if (joins && is_one_pixel(x))
        return order_of_parts(x, order, err);
    if (keeps_features(x))
        return order_of_inputs(x, order, err);
    if (is_view(x))
        return order_of_reshape(x, order, err);
    if (!makes_features(x) && !joins)
        return order_of_unknown(x, order, err);
    map_order(&x->shape, order);
    return QAT_OK;
}

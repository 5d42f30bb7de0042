/** Bring values from PyTorch's order into this project's. */
#include "train/torch_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ who reads a parameter */

/** The node that fills a slot, without folds and fake quantization. */
static const qat_node *source_of(const qat_node *node)
{
    while (node->op && node->n_inputs > 0)
        node = node->inputs[0];
    return node;
}

/** The first node of that op that has the parameter in a slot after slot 0; else NULL. */
static const qat_node *reader_of(const qat_graph *graph, const qat_node *param, const char *op)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        for (int k = 1; qat_node_is_op(node, op) && k < node->n_inputs; k++)
            if (source_of(node->inputs[k]) == param)
                return node;
    }
    return NULL;
}

/* ------------------------------------------------------------------ the order of features */

static int features_of(const qat_node *x)
{
    return (int)(qat_shape_count(&x->shape) / (size_t)x->shape.dims[0]);
}

/** The order of a feature map's values: [N, H, W, C] (or [N, W, C]) here, [N, C, H, W] in PyTorch.
 */
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

/** Does a node mix its input's features, as a matrix of weights does? */
static bool mixes(const qat_node *x)
{
    for (int k = 1; k < x->n_inputs; k++) {
        const qat_node *param = source_of(x->inputs[k]);
        if (param->is_param && param->shape.rank > 1)
            return true;
    }
    return false;
}

/**
 * order[i]: where PyTorch has the i-th feature of a sample of x. The function follows x back to
 * where feature maps were flattened. A concatenation of vectors has the orders of its parts, one
 * after another.
 */
static void feature_order(const qat_node *x, int *order)
{
    int const n = features_of(x);
    bool const same_size = x->op && x->n_inputs > 0 && features_of(x->inputs[0]) == n;
    if (x->shape.rank > 2) {
        map_order(&x->shape, order);
    } else if (qat_node_is_op(x, "concat")) {
        for (int k = 0, at = 0; k < x->n_data; k++) {
            int const part = features_of(x->inputs[k]);
            feature_order(x->inputs[k], order + at);
            for (int i = 0; i < part; i++)
                order[at + i] += at;
            at += part;
        }
    } else if (same_size && !mixes(x)) {
        feature_order(x->inputs[0], order);
    } else {
        for (int i = 0; i < n; i++)
            order[i] = i;
    }
}

/* ------------------------------------------------------------------ values */

static bool is_depthwise(const qat_graph *graph, const qat_node *param)
{
    return reader_of(graph, param, "depthwise_conv2d") != NULL;
}

qat_shape qat_torch_shape(const qat_graph *graph, const qat_node *param, const qat_shape *theirs)
{
    if (param->shape.rank != 4 || theirs->rank < 3)
        return *theirs;
    const int *d = theirs->dims;
    int const height = theirs->rank == 4 ? d[2] : 1, width = d[theirs->rank - 1];
    return is_depthwise(graph, param) ? QAT_SHAPE(d[1], height, width, d[0])
                                      : QAT_SHAPE(d[0], height, width, d[1]);
}

/** to [outer, pixels, inner] from [A, B, pixels], where A and B are (outer, inner) or, of a
 *  depthwise convolution, (inner, outer). */
static void turn_filters(const qat_shape *ours, bool depthwise, const float *from, float *to)
{
    size_t const outer = (size_t)ours->dims[0], inner = (size_t)ours->dims[3];
    size_t const pixels = (size_t)ours->dims[1] * (size_t)ours->dims[2];
    for (size_t o = 0; o < outer; o++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t i = 0; i < inner; i++) {
                size_t const filter = depthwise ? i * outer + o : o * inner + i;
                to[(o * pixels + p) * inner + i] = from[filter * pixels + p];
            }
}

/** to [rows, n] from the same matrix with its columns in another order. */
static void turn_columns(size_t rows, size_t n, const int *order, const float *from, float *to)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            to[r * n + i] = from[r * n + (size_t)order[i]];
}

/** The node whose input features are the parameter's last dimension; NULL: none. */
static const qat_node *feature_reader(const qat_graph *graph, const qat_node *param)
{
    static const char *const ops[] = {"fully_connected", "batch_norm", "bias"};
    const qat_node *reader = NULL;
    for (int i = 0; i < 3 && !reader; i++)
        reader = reader_of(graph, param, ops[i]);
    bool const vectors =
        reader && (reader->inputs[0]->shape.rank == 2 || qat_node_is_op(reader, "fully_connected"));
    return vectors ? reader : NULL;
}

static qat_status turn_features(const qat_graph *graph, const qat_node *param, qat_named_tensor *t,
                                float *to, qat_error *err)
{
    const qat_node *reader = feature_reader(graph, param);
    size_t const n = (size_t)qat_shape_channels(&t->shape), count = qat_shape_count(&t->shape);
    int *order = NULL;
    memcpy(to, t->values, count * sizeof *to);
    if (!reader || (size_t)features_of(reader->inputs[0]) != n)
        return QAT_OK;
    order = malloc(n * sizeof *order);
    if (!order)
        return qat_out_of_memory(err, t->name);
    feature_order(reader->inputs[0], order);
    turn_columns(count / n, n, order, t->values, to);
    free(order);
    return QAT_OK;
}

static qat_status convert(const qat_graph *graph, const qat_node *param, qat_named_tensor *t,
                          qat_error *err)
{
    qat_status st = QAT_OK;
    qat_shape const ours = qat_torch_shape(graph, param, &t->shape);
    float *values = malloc(qat_shape_count(&t->shape) * sizeof *values);
    if (!values)
        return qat_out_of_memory(err, t->name);
    if (param->shape.rank == 4 && t->shape.rank >= 3)
        turn_filters(&ours, is_depthwise(graph, param), t->values, values);
    else
        st = turn_features(graph, param, t, values, err);
    free(t->values);
    t->values = values;
    t->shape = ours;
    return st;
}

/* ------------------------------------------------------------------ biases without a layer */

/** "<layer>/bias/bias" of a layer that has weights but no bias? Its name goes to layer. */
static bool has_no_place(const qat_graph *graph, const qat_named_tensor *t,
                         char layer[QAT_NAME_MAX])
{
    static const char end[] = "/bias/bias";
    char weights[QAT_NAME_MAX + 16];
    size_t const n = strlen(t->name), m = sizeof end - 1;
    if (n <= m || strcmp(t->name + n - m, end) != 0 || qat_graph_find(graph, t->name))
        return false;
    snprintf(layer, QAT_NAME_MAX, "%.*s", (int)(n - m), t->name);
    snprintf(weights, sizeof weights, "%s/weights", layer);
    return qat_graph_find(graph, weights) != NULL;
}

/** A batch norm of z + b with mean m equals a batch norm of z with mean m - b. */
static qat_status absorb_bias(qat_weights_file *file, const qat_graph *graph, int i,
                              const char *path, qat_error *err)
{
    char layer[QAT_NAME_MAX], mean[QAT_NAME_MAX + 16];
    qat_named_tensor bias = file->tensors[i];
    if (!has_no_place(graph, &bias, layer))
        return QAT_OK;
    snprintf(mean, sizeof mean, "%s/bn/ema_mean", layer);
    const qat_named_tensor *m = qat_weights_find(file, mean);
    if (!m || !qat_graph_find(graph, mean) || !qat_shape_equal(&m->shape, &bias.shape))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: it has a bias for the layer %s, which has none in this network", path,
                        layer);
    for (size_t c = 0; c < qat_shape_count(&bias.shape); c++)
        m->values[c] -= bias.values[c];
    free(bias.values);
    memmove(&file->tensors[i], &file->tensors[i + 1],
            (size_t)(file->count - i - 1) * sizeof *file->tensors);
    file->count--;
    return QAT_OK;
}

qat_status qat_torch_convert(qat_weights_file *file, const qat_graph *graph, const char *path,
                             qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = file->count - 1; i >= 0 && !st; i--)
        st = absorb_bias(file, graph, i, path, err);
    for (int i = 0; i < file->count && !st; i++) {
        const qat_node *param = qat_graph_find(graph, file->tensors[i].name);
        if (param && param->is_param)
            st = convert(graph, param, &file->tensors[i], err);
    }
    return st;
}

/** Bring values from PyTorch's order into this project's. */
#include "finetune/feature_order.h"
#include "finetune/pattern.h"
#include "finetune/torch_layout.h"
#include "layer/layer.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ who reads a parameter */

typedef bool node_test(const qat_node *node);

/** The first such node that has the parameter in a slot after slot 0; else NULL. */
static const qat_node *reader_of(const qat_graph *graph, const qat_node *param, node_test *wanted)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        for (int k = 1; k < node->n_inputs; k++)
            if (node->inputs[k] == param && wanted(node))
                return node;
    }
    return NULL;
}

static bool is_convolution(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) && qat_weights_of(node)->shape.rank == 4;
}

/** Is the first dimension of its weights in PyTorch the last one here? */
static bool is_swapped(const qat_node *node)
{
    return is_convolution(node) && (qat_channel_axis(node) > 0 || node->op->quant->transposed);
}

static bool is_matrix(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) && !is_convolution(node);
}

static bool is_affine(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_BIAS) || qat_has_role(node, QAT_ROLE_NORM);
}

static bool is_other(const qat_node *node)
{
    return !is_convolution(node);
}

/* ------------------------------------------------------------------ values */

static bool goes_to_swapped(const qat_graph *graph, const qat_node *param)
{
    return reader_of(graph, param, is_swapped) != NULL;
}

qat_shape qat_torch_shape(const qat_graph *graph, const qat_node *param, const qat_shape *theirs)
{
    if (param->shape.rank != 4 || theirs->rank < 3)
        return *theirs;
    const int *d = theirs->dims;
    int const height = theirs->rank == 4 ? d[2] : 1, width = d[theirs->rank - 1];
    return goes_to_swapped(graph, param) ? QAT_SHAPE(d[1], height, width, d[0])
                                         : QAT_SHAPE(d[0], height, width, d[1]);
}

/** to [outer, pixels, inner] from [A, B, pixels], where A and B are (outer, inner) or, swapped,
 *  (inner, outer). */
static void turn_filters(const qat_shape *ours, bool swapped, const float *from, float *to)
{
    size_t const outer = (size_t)ours->dims[0], inner = (size_t)ours->dims[3];
    size_t const pixels = (size_t)ours->dims[1] * (size_t)ours->dims[2];
    for (size_t o = 0; o < outer; o++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t i = 0; i < inner; i++) {
                size_t const filter = swapped ? i * outer + o : o * inner + i;
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
    static node_test *const tests[] = {is_matrix, is_affine, is_other};
    const qat_node *reader = NULL;
    for (int i = 0; i < 3 && !reader; i++)
        reader = reader_of(graph, param, tests[i]);
    return reader && qat_features_of(reader->inputs[0]) == qat_shape_channels(&param->shape)
               ? reader
               : NULL;
}

/** The order of the features that a node with parameters reads. What an op of a plugin does with
 *  its parameters is known only if both orders are the same. */
static qat_status order_for(const qat_node *reader, int *order, qat_error *err)
{
    bool const known = is_matrix(reader) || is_affine(reader);
    qat_status const st = qat_feature_order(reader->inputs[0], order, err);
    if (st || known || qat_is_own_order(order, qat_features_of(reader->inputs[0])))
        return st;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "it is not known how %s (op %s) uses the features of a flattened map",
                    reader->name, reader->op->name);
}

static qat_status turn_features(const qat_graph *graph, const qat_node *param, qat_named_tensor *t,
                                float *to, qat_error *err)
{
    const qat_node *reader = feature_reader(graph, param);
    size_t const n = (size_t)qat_shape_channels(&t->shape), count = qat_shape_count(&t->shape);
    int *order = NULL;
    memcpy(to, t->values, count * sizeof *to);
    if (!reader || (size_t)qat_features_of(reader->inputs[0]) != n)
        return QAT_OK;
    order = malloc(n * sizeof *order);
    if (!order)
        return qat_out_of_memory(err, t->name);
    qat_error why = {0};
    qat_status st = order_for(reader, order, &why);
    if (st)
        st = qat_fail(err, st,
                      "%.200s: %.300s; leave it out (train.init_skip), or give the file in this "
                      "project's order (train.init_layout = qat)",
                      t->name, why.message);
    else
        turn_columns(count / n, n, order, t->values, to);
    free(order);
    return st;
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
        turn_filters(&ours, goes_to_swapped(graph, param), t->values, values);
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

/**
 * A batch norm of z + b with mean m equals a batch norm of z with mean m - b. If train.init_skip
 * leaves out the bias or the mean, the bias stays in the file as a tensor without a place.
 */
static qat_status absorb_bias(qat_weights_file *file, const qat_graph *graph, int i,
                              const char *skip, const char *path, qat_error *err)
{
    char layer[QAT_NAME_MAX], mean[QAT_NAME_MAX + 16];
    qat_named_tensor bias = file->tensors[i];
    if (!has_no_place(graph, &bias, layer))
        return QAT_OK;
    snprintf(mean, sizeof mean, "%s/bn/ema_mean", layer);
    if (qat_patterns_match(skip, bias.name) || qat_patterns_match(skip, mean))
        return QAT_OK;
    const qat_named_tensor *m = qat_weights_find(file, mean);
    if (!m || !qat_graph_find(graph, mean) || !qat_shape_equal(&m->shape, &bias.shape))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: it has a bias for the layer %s, which has none in this network "
                        "(train.init_skip can leave out the layer)",
                        path, layer);
    for (size_t c = 0; c < qat_shape_count(&bias.shape); c++)
        m->values[c] -= bias.values[c];
    free(bias.values);
    memmove(&file->tensors[i], &file->tensors[i + 1],
            (size_t)(file->count - i - 1) * sizeof *file->tensors);
    file->count--;
    return QAT_OK;
}

qat_status qat_torch_convert(qat_weights_file *file, const qat_graph *graph, const qat_recipe *r,
                             const char *path, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = file->count - 1; i >= 0 && !st; i--)
        st = absorb_bias(file, graph, i, r->train.init_skip, path, err);
    for (int i = 0; i < file->count && !st; i++) {
        const qat_node *param = qat_graph_find(graph, file->tensors[i].name);
        if (param && param->is_param && !qat_patterns_match(r->train.init_skip, param->name))
            st = convert(graph, param, &file->tensors[i], err);
    }
    return st;
}

#include "fakequant/layer_pairs.h"

#include <stdlib.h>

static bool is_depthwise(const qat_node *head)
{
    return qat_node_is_op(head, "depthwise_conv2d");
}

int qat_output_channel(const qat_node *head, size_t i)
{
    const qat_shape *w = &qat_weights_of(head)->shape;
    if (is_depthwise(head))
        return (int)(i % (size_t)qat_shape_channels(w));
    return (int)(i / (qat_shape_count(w) / (size_t)w->dims[0]));
}

int qat_input_channel(const qat_node *head, size_t i, int channels)
{
    int const last = qat_shape_channels(&qat_weights_of(head)->shape);
    int const at = (int)(i % (size_t)last);
    return is_depthwise(head) ? at / (last / channels) : at % channels;
}

static const qat_node *sole_reader(const qat_graph *graph, const qat_node *node)
{
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        if (qat_graph_output_at(graph, i) == node)
            return NULL;
    for (int i = node->index + 1; qat_node_consumers(node) == 1 && i < qat_graph_nodes(graph); i++)
        if (qat_graph_node(graph, i)->n_data && qat_graph_node(graph, i)->inputs[0] == node)
            return qat_graph_node(graph, i);
    return NULL;
}

static bool has_role(const qat_node *node, qat_quant_role role)
{
    return node && node->op && node->op->quant && node->op->quant->role == role;
}

/** Is its parameter number k (from 0) really a parameter, and does nothing else read it? */
static bool owns(const qat_node *node, int k)
{
    const qat_node *p = node->inputs[node->n_data + k];
    return p->is_param && qat_node_consumers(p) == 1;
}

/** Does `second` read each channel by weights that belong to that channel only? */
static bool reads_by_channel(const qat_node *second, int channels)
{
    int const last = qat_shape_channels(&qat_weights_of(second)->shape);
    bool const grouped =
        qat_node_is_op(second, "conv2d") && last != qat_shape_channels(&second->inputs[0]->shape);
    bool const regrouped =
        is_depthwise(second) && qat_shape_channels(&second->inputs[0]->shape) != channels;
    return owns(second, 0) && !grouped && !regrouped && last % channels == 0;
}

/** Take the layer's own bias and batch norm; returns the node after them. */
static const qat_node *take_affine(const qat_graph *graph, qat_layer_pair *p)
{
    const qat_node *node = sole_reader(graph, p->first);
    if (qat_node_is_op(node, "bias")) {
        p->bias = node;
        node = sole_reader(graph, node);
    }
    if (qat_node_is_op(node, "batch_norm")) {
        p->bn = node;
        node = sole_reader(graph, node);
    }
    return node;
}

/**
 * Walk from a layer to the next. Returns false if a node on the way does not commute with scales.
 */
static bool walk(const qat_graph *graph, qat_layer_pair *p)
{
    const qat_node *node = take_affine(graph, p);
    for (; node && !has_role(node, QAT_ROLE_ACCUMULATE); node = sole_reader(graph, node)) {
        p->behind_relu6 |= qat_node_is_op(node, "relu6");
        p->rectified |= qat_node_is_op(node, "relu");
        if (!qat_node_is_op(node, "relu") && !qat_node_is_op(node, "relu6") &&
            !has_role(node, QAT_ROLE_PASS) && !has_role(node, QAT_ROLE_POOL))
            return false;
    }
    p->second = node;
    return node != NULL;
}

static bool pair_at(const qat_graph *graph, const qat_node *head, qat_layer_pair *p)
{
    *p = (qat_layer_pair){.first = head, .channels = qat_shape_channels(&head->shape)};
    if (!has_role(head, QAT_ROLE_ACCUMULATE) || !owns(head, 0) || !walk(graph, p))
        return false;
    if (p->bias && !owns(p->bias, 0))
        return false;
    if (p->bn && (!owns(p->bn, 0) || !owns(p->bn, 1)))
        return false;
    return reads_by_channel(p->second, p->channels);
}

qat_status qat_layer_pairs(const qat_graph *graph, qat_layer_pair **pairs, int *count,
                           qat_error *err)
{
    int const nodes = qat_graph_nodes(graph);
    qat_layer_pair *found = calloc((size_t)nodes + 1, sizeof *found);
    *pairs = found;
    *count = 0;
    if (!found)
        return qat_out_of_memory(err, "pairs of layers");
    for (int i = 0; i < nodes; i++)
        *count += pair_at(graph, qat_graph_node(graph, i), &found[*count]);
    return QAT_OK;
}

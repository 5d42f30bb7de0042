/**
 * Finds the nodes that become one integer layer.
 *
 *     conv2d -> bias -> batch_norm -> relu -> ...      one layer: head, bias, bn, activation
 *     add -> relu6 -> ...                              one layer: head, activation
 *     conv2d -+-> relu -> ...                          two: the conv alone, and a relu of its own
 *             '-> ...
 *     max_pool2d -> batch_norm -> relu -> ...          one without head: rewrite_layer.c gives it
 * one
 *
 * A node joins the layer before it only if it is the only reader, and if the value is not a graph
 * output. Losses count as readers, so that training and eval graphs have the same layers.
 */
#include "fakequant/rewrite.h"

static bool is_activation(const qat_node *node)
{
    return qat_node_is_op(node, "relu") || qat_node_is_op(node, "relu6");
}

/** The node after `node` that can be fused next, or NULL. */
static const qat_node *follower(const rw_analysis *a, const qat_node *node)
{
    const rw_info *info = &a->nodes[node->index];
    const qat_node *reader = info->is_output ? NULL : info->sole_reader;
    return reader && reader->inputs[0] == node ? reader : NULL;
}

static void extend(rw_layer *layer, const qat_node **part, const qat_node *node)
{
    *part = layer->last = node;
    if (!layer->first)
        layer->first = node;
}

/** Take the nodes that may follow layer->last. accumulates: a bias and a batch norm may. */
static void take_followers(const rw_analysis *a, rw_layer *layer, bool accumulates)
{
    const qat_node *next = follower(a, layer->last);
    if (accumulates && !layer->bias && !layer->bn && qat_node_is_op(next, "bias")) {
        extend(layer, &layer->bias, next);
        next = follower(a, next);
    }
    if (accumulates && !layer->bn && qat_node_is_op(next, "batch_norm")) {
        extend(layer, &layer->bn, next);
        next = follower(a, next);
    }
    if (is_activation(next))
        extend(layer, &layer->activation, next);
}

/** The layer that begins with this node. */
static rw_layer layer_at(const rw_analysis *a, const qat_node *node)
{
    rw_layer layer = {0};
    if (is_activation(node)) {
        extend(&layer, &layer.activation, node);
        return layer;
    }
    if (qat_node_is_op(node, "bias"))
        extend(&layer, &layer.bias, node);
    else if (qat_node_is_op(node, "batch_norm"))
        extend(&layer, &layer.bn, node);
    else
        extend(&layer, &layer.head, node);
    take_followers(a, &layer, !rw_has_role(node, QAT_ROLE_BINARY));
    return layer;
}

void rw_fuse(rw_analysis *a)
{
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        bool const begins = rw_has_role(node, QAT_ROLE_ACCUMULATE) ||
                            rw_has_role(node, QAT_ROLE_BINARY) || rw_has_role(node, QAT_ROLE_FUSED);
        if (!begins || a->nodes[i].layer >= 0)
            continue;
        rw_layer *layer = &a->layers[a->n_layers];
        *layer = layer_at(a, node);
        const qat_node *parts[] = {layer->head, layer->bias, layer->bn, layer->activation};
        for (int k = 0; k < 4; k++)
            if (parts[k])
                a->nodes[parts[k]->index].layer = a->n_layers;
        a->n_layers++;
    }
}

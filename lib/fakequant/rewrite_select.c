/**
 * Selects the nodes of the new graph, and finds networks that cannot be rewritten.
 *
 *     training graph   all of them
 *     eval graph       nodes that lead to an output; all of them must be quantizable
 *
 *     image -> conv ... -> logits (output) -> loss            image -> conv ... -> logits
 *     label -----------------------------------^      --->
 */
#include "fakequant/rewrite.h"

#include <string.h>

static void note_readers(rw_analysis *a)
{
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        for (int k = 0; k < node->n_inputs; k++)
            if (qat_node_consumers(node->inputs[k]) == 1)
                a->nodes[node->inputs[k]->index].sole_reader = node;
    }
    for (int i = 0; i < qat_graph_outputs(a->graph); i++)
        a->nodes[qat_graph_output_at(a->graph, i)->index].is_output = true;
}

/** Mark as copied: all nodes, or those that lead to an output. */
static void note_copied(rw_analysis *a, bool training)
{
    for (int i = a->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(a->graph, i);
        a->nodes[i].copied |= training || a->nodes[i].is_output;
        for (int k = 0; a->nodes[i].copied && k < node->n_inputs; k++)
            a->nodes[node->inputs[k]->index].copied = true;
    }
}

static bool is_known_fused(const qat_node *node)
{
    return qat_node_is_op(node, "bias") || qat_node_is_op(node, "batch_norm") ||
           qat_node_is_op(node, "relu") || qat_node_is_op(node, "relu6");
}

static bool is_known_fixed(const qat_node *node)
{
    return qat_node_is_op(node, "softmax") || qat_node_is_op(node, "logistic") ||
           qat_node_is_op(node, "tanh");
}

static qat_status refuse(const qat_node *node, const char *why, qat_error *err)
{
    return qat_fail(err, QAT_ERR_UNSUPPORTED, "node '%s' (%s) cannot be quantized: %s", node->name,
                    node->op->name, why);
}

/** The parameters that become integers, by position, as a bit mask. */
static unsigned frozen_params(const qat_node *node)
{
    switch (node->op->quant->role) {
    case QAT_ROLE_ACCUMULATE:
        return 1;
    case QAT_ROLE_FUSED:
        return ~0u;
    default:
        return node->op->quant->weight_params;
    }
}

static qat_status check_params(const qat_node *node, qat_error *err)
{
    for (int i = node->n_data; i < node->n_inputs; i++)
        if ((frozen_params(node) >> (i - node->n_data) & 1) && !node->inputs[i]->is_param)
            return refuse(node, "another node computes its parameters", err);
    if (rw_has_role(node, QAT_ROLE_ACCUMULATE) && node->n_inputs == node->n_data)
        return refuse(node, "it has no weights", err);
    return QAT_OK;
}

static qat_status check_node(const qat_node *node, bool training, qat_error *err)
{
    if (!node->op)
        return QAT_OK;
    if (rw_has_role(node, QAT_ROLE_QUANTIZER))
        return refuse(node, "quantizers are placed by the rewrites", err);
    if (!node->op->quant)
        return training ? QAT_OK : refuse(node, "the op has no quant entry", err);
    if (rw_has_role(node, QAT_ROLE_FUSED) && !is_known_fused(node))
        return refuse(node, "only bias, batch_norm, relu and relu6 fuse", err);
    if (rw_has_role(node, QAT_ROLE_FIXED) && !is_known_fixed(node))
        return refuse(node, "the fixed range of its output is not known", err);
    for (int i = 0; i < node->n_data; i++)
        if (node->inputs[i]->is_param)
            return refuse(node, "a parameter is its data input", err);
    return check_params(node, err);
}

qat_status rw_select(rw_analysis *a, bool training, qat_error *err)
{
    qat_status st = QAT_OK;
    if (!training && qat_graph_outputs(a->graph) == 0)
        return qat_fail(err, QAT_ERR_STATE, "the graph has no outputs marked");
    note_readers(a);
    note_copied(a, training);
    for (int i = 0; !st && i < a->count; i++)
        if (a->nodes[i].copied)
            st = check_node(qat_graph_node(a->graph, i), training, err);
    return st;
}

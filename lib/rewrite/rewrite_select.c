/**
 * Selects the nodes of the new graph, and finds networks that cannot be rewritten.
 *
 *     training graph   all of them
 *     eval graph       nodes that lead to an output; all of them must be quantizable
 *
 *     image -> conv ... -> logits (output) -> loss            image -> conv ... -> logits
 *     label -----------------------------------^      --->
 */
#include "autograd/ops/op.h"
#include "rewrite/rewrite.h"

#include <math.h>

static void note_outputs(rw_analysis *a)
{
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
    case QAT_ROLE_BIAS:
    case QAT_ROLE_NORM:
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
    if (qat_has_role(node, QAT_ROLE_ACCUMULATE) && node->n_inputs == node->n_data)
        return refuse(node, "it has no weights", err);
    return QAT_OK;
}

/** At least one bound is finite; otherwise nothing is clamped. */
static bool is_clamp(const qat_node *node)
{
    const qat_quant *quant = node->op->quant;
    return quant->clamp_min < quant->clamp_max &&
           !(isinf(quant->clamp_min) && isinf(quant->clamp_max));
}

/** Is 0 one of four equal steps from min, so that it is a code for any number of bits? */
static bool is_grid(float min, float max)
{
    float const steps = -min / (max - min) * 4;
    return min < max && isfinite(max - min) && min <= 0 && max > 0 && steps == floorf(steps);
}

static bool has_fixed_range(const qat_node *node)
{
    while (qat_passes_codes(node))
        node = node->inputs[0];
    return qat_has_role(node, QAT_ROLE_FIXED) || qat_node_is_input(node);
}

static qat_status check_node(const qat_node *node, bool training, qat_error *err)
{
    if (!node->op)
        return QAT_OK;
    const qat_quant *quant = node->op->quant;
    if (qat_has_role(node, QAT_ROLE_QUANTIZER))
        return refuse(node, "quantizers are placed by the rewrites", err);
    if (!quant)
        return training ? QAT_OK : refuse(node, "the op has no quant entry", err);
    if ((qat_has_role(node, QAT_ROLE_BIAS) && node->op != &qat_op_bias) ||
        (qat_has_role(node, QAT_ROLE_NORM) && node->op != &qat_op_batch_norm))
        return refuse(node, "only bias and batch_norm can have its role", err);
    if (qat_has_role(node, QAT_ROLE_CLAMP) && !is_clamp(node))
        return refuse(node, "clamp_min must be below clamp_max, and one of them finite", err);
    if (qat_has_role(node, QAT_ROLE_CLAMP) && (node->n_inputs != 1 || quant->freeze))
        return refuse(node, "a clamp has one input, no parameters and no freeze function", err);
    if (qat_has_role(node, QAT_ROLE_FIXED) && !is_grid(quant->fixed_min, quant->fixed_max))
        return refuse(node, "fixed_min..fixed_max must be a finite range in which 0 is a code",
                      err);
    if (qat_is_carry(node) && has_fixed_range(node->inputs[0]))
        return refuse(node,
                      "the range of its value is fixed, but a state has an observed one: let an "
                      "add or mul come before it",
                      err);
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
    note_outputs(a);
    note_copied(a, training);
    for (int i = 0; !st && i < a->count; i++)
        if (a->nodes[i].copied)
            st = check_node(qat_graph_node(a->graph, i), training, err);
    return st;
}

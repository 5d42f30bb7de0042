/**
 * Planning of chains: decides which ops the op before them runs in strips (tail.h), and which
 * gradients share the memory of another.
 *
 *     z ----> batch_norm -> relu -> fake_quant -> ...
 *     one buffer: the gradients of fake_quant, relu, batch_norm, and of z, if batch_norm is its
 *     sole reader
 */
#include "autograd/graph/core.h"
#include "autograd/loops/tail.h"

/**
 * The input node, if this node is its only reader and both have the same size and need of a
 * gradient.
 */
static core_node *sole_input(const qat_node *node, const bool *needed)
{
    core_node *input = core_of(node->inputs[0]);
    bool const sole = input->node.op && input->consumers == 1 && !input->is_output;
    bool const alike = needed[node->index] == needed[input->node.index] &&
                       qat_shape_count(&node->shape) == qat_shape_count(&input->node.shape);
    return sole && alike ? input : NULL;
}

/** May the node run in strips? Its parameters must not need gradients. */
static bool is_elementwise(const qat_node *node, const bool *needed)
{
    if (!node->op || !node->op->elementwise || node->n_data != 1 || node->op->reads)
        return false;
    for (int i = 1; i < node->n_inputs; i++)
        if (needed[node->inputs[i]->index])
            return false;
    return true;
}

/** The head of the chain that this node can join as the next op, or NULL. */
static qat_node *chain_of(const qat_node *node, const bool *needed)
{
    if (!is_elementwise(node, needed))
        return NULL;
    core_node *input = sole_input(node, needed);
    if (!input)
        return NULL;
    const qat_op *op = input->node.op;
    if (!input->head)
        return op->runs_tail && op->runs_tail(&input->node) ? &input->node : NULL;
    bool const full = input->head->tail->n == QAT_TAIL_MAX;
    return full || op->elementwise->ends_chain ? NULL : input->head;
}

static qat_status append(qat_graph *graph, qat_node *head, qat_node *node, qat_error *err)
{
    if (!head->tail)
        head->tail = qat_arena_array(&graph->arena, 1, sizeof *head->tail);
    if (!head->tail)
        return qat_out_of_memory(err, "plan");
    qat_tail *tail = (qat_tail *)head->tail;
    tail->ops[tail->n++] = node;
    core_of(node)->head = head;
    return QAT_OK;
}

/**
 * From the last node to the first: a gradient in place lies in the buffer of the gradient it comes
 * from.
 */
static void place_gradients(qat_graph *graph, const bool *needed)
{
    for (int i = graph->count - 1; i >= 0; i--) {
        core_node *core = graph->nodes[i];
        const qat_node *node = &core->node;
        if (node->tail)
            core->grad_owner = core_of(qat_tail_last(node))->grad_owner;
        if (!node->op || !needed[i] || !node->n_inputs || !needed[node->inputs[0]->index])
            continue;
        core_node *input = sole_input(node, needed);
        if (input && (core->head || node->op->grads == QAT_GRADS_IN_PLACE))
            input->grad_owner = core->grad_owner;
    }
}

qat_status qat_core_find_chains(qat_graph *graph, const bool *needed, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        core->grad_owner = i;
        core->head = NULL;
        core->node.tail = NULL;
    }
    if (graph->plan != QAT_PLAN_TRAIN)
        return QAT_OK;
    for (int i = 0; !st && i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node, *head = chain_of(node, needed);
        if (head)
            st = append(graph, head, node, err);
    }
    if (!st)
        place_gradients(graph, needed);
    return st;
}

/** Copies a graph: the same nodes in the same order, without values and without a plan. */
#include "autograd/graph/core.h"

static void clone_op(qat_graph *to, const qat_node *node)
{
    qat_node **inputs = qat_arena_array(&to->arena, (size_t)node->n_inputs, sizeof *inputs);
    if (!inputs) {
        qat_core_no_memory(to, node->name);
        return;
    }
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = qat_graph_node(to, node->inputs[i]->index);
    qat_core_apply(to, node->op, node->name, node->attrs, node->n_data, node->n_inputs, inputs);
}

static void clone_node(qat_graph *to, const core_node *core)
{
    const qat_node *node = &core->node;
    if (node->op) {
        clone_op(to, node);
    } else if (node->is_param) {
        qat_param_def def = node->init;
        def.name = node->name;
        def.trainable = node->trainable;
        def.decay = node->decay;
        qat_graph_param(to, &def);
    } else {
        qat_node *input = qat_graph_input(to, node->name, core->built);
        if (core->wanted)
            qat_graph_want_gradient(to, input);
    }
}

qat_status qat_graph_clone(qat_graph **clone, const qat_graph *graph, qat_error *err)
{
    qat_status st = qat_graph_create(clone, graph->registry, err);
    if (st)
        return st;
    qat_graph *to = *clone;
    for (int i = 0; i < graph->count && !to->error.status; i++)
        clone_node(to, graph->nodes[i]);
    for (int i = 0; i < graph->n_outputs && !to->error.status; i++)
        qat_graph_output(to, qat_graph_node(to, graph->outputs[i]->index));
    st = qat_graph_check(to, err);
    if (st) {
        qat_graph_free(to);
        *clone = NULL;
    }
    return st;
}

/**
 * Running a planned graph: forward, backward, update. Nothing here allocates. Backward and update
 * follow a forward of the same run.
 */
#include "autograd/core.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/**
 * Find the nodes that need no computing: those whose every reader is idle itself or says that it
 * will not look. Outputs and nodes without readers are what a run is for.
 */
static void find_idle(qat_graph *graph, const qat_run *run)
{
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        core->idle = core->node.op && core->consumers > 0 && !core->is_output;
    }
    for (int i = graph->count - 1; i >= 0; i--) {
        const qat_node *node = &graph->nodes[i]->node;
        if (!node->op || graph->nodes[i]->idle)
            continue;
        for (int k = 0; k < node->n_inputs; k++)
            if (!node->op->reads || node->op->reads(node, k, run))
                core_of(node->inputs[k])->idle = false;
    }
}

static bool runs(const core_node *core)
{
    return core->node.op && !core->idle;
}

void qat_graph_forward(qat_graph *graph, const qat_run *run)
{
    qat_graph_forward_visit(graph, run, NULL, NULL);
}

void qat_graph_forward_visit(qat_graph *graph, const qat_run *run, qat_visit *visit, void *context)
{
    assert(graph->planned);
    find_idle(graph, run);
    for (int i = 0; i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node;
        if (!runs(graph->nodes[i]))
            continue;
        node->op->forward(node, run);
        if (visit)
            visit(context, node);
    }
}

void qat_graph_update(qat_graph *graph, const qat_run *run)
{
    assert(graph->planned);
    for (int i = 0; i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node;
        if (runs(graph->nodes[i]) && node->op->update)
            node->op->update(node, run);
    }
}

/**
 * Find what the loss depends on, and for each such node the consumer that first adds to its
 * gradient in backward's order: just before that, the gradient is zeroed.
 */
static void trace(qat_graph *graph, const qat_node *loss)
{
    for (int i = 0; i < graph->count; i++) {
        graph->nodes[i]->active = false;
        graph->nodes[i]->first_writer = -1;
    }
    core_of(loss)->active = loss->grad != NULL;
    for (int i = loss->index; i >= 0; i--) {
        const qat_node *node = &graph->nodes[i]->node;
        if (!graph->nodes[i]->active || !node->op)
            continue;
        for (int k = 0; k < node->n_inputs; k++) {
            core_node *input = core_of(node->inputs[k]);
            if (input->node.grad && !input->active) {
                input->active = true;
                input->first_writer = i;
            }
        }
    }
    graph->loss = loss;
}

static void zero_grad(qat_node *node)
{
    memset(node->grad, 0, qat_shape_count(&node->shape) * sizeof *node->grad);
}

/** Gradients of inputs of node that begin to live with its backward. */
static void zero_first_written(const qat_node *node)
{
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k]->grad && core_of(node->inputs[k])->first_writer == node->index)
            zero_grad(node->inputs[k]);
}

void qat_graph_backward(qat_graph *graph, qat_node *loss, const qat_run *run)
{
    assert(graph->planned && graph->plan == QAT_PLAN_TRAIN);
    assert(loss->graph == graph && qat_shape_count(&loss->shape) == 1);
    if (graph->loss != loss)
        trace(graph, loss);
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        if (!core->node.op && core->node.grad && core->first_writer < 0)
            zero_grad(&core->node); /* the loss does not depend on it */
    }
    if (loss->grad)
        loss->grad[0] = 1;
    for (int i = loss->index; i >= 0; i--) {
        qat_node *node = &graph->nodes[i]->node;
        if (!graph->nodes[i]->active || !node->op)
            continue;
        zero_first_written(node);
        if (runs(graph->nodes[i]))
            node->op->backward(node, run);
    }
}

static bool finite_values(const qat_real *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

qat_node *qat_graph_find_nonfinite(const qat_graph *graph)
{
    assert(graph->planned);
    for (int i = 0; i < graph->count; i++) {
        const core_node *core = graph->nodes[i];
        if (core->keeps_value && !core->idle &&
            !finite_values(core->node.value, qat_shape_count(&core->node.shape)))
            return &graph->nodes[i]->node;
    }
    return NULL;
}

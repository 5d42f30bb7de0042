/**
 * Runs a planned graph: forward, backward, update. Nothing here allocates. Backward and update must
 * follow a forward of the same run.
 */
#include "autograd/graph/core.h"
#include "autograd/graph/shared.h"
#include "autograd/loops/tail.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool reads(const qat_node *node, int input, const qat_run *run)
{
    return !node->op->reads || node->op->reads(node, input, run);
}

/**
 * Find the nodes that need not be computed: every reader of such a node is idle itself, or says
 * that it does not read it. Outputs and nodes without readers are always computed.
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
            if (reads(node, k, run))
                core_of(node->inputs[k])->idle = false;
    }
}

static bool runs(const core_node *core)
{
    return core->node.op && !core->idle;
}

void qat_graph_watch(qat_graph *graph, qat_watch *watch, void *context)
{
    graph->watch = watch;
    graph->watch_context = context;
}

static void tell(const qat_graph *graph, const qat_node *node, qat_pass pass)
{
    if (graph->watch)
        graph->watch(graph->watch_context, node, pass);
}

bool qat_core_runs(const core_node *core)
{
    return runs(core) && !core->head;
}

void qat_graph_forward(qat_graph *graph, const qat_run *run)
{
    qat_graph_forward_visit(graph, run, NULL, NULL);
}

void qat_node_forward(qat_node *node, const qat_run *run)
{
    qat_tail_begin(node, run);
    if (qat_is_shared(node))
        node->op->shared->forward(node, run);
    else
        node->op->forward(node, run);
    qat_tail_end(node, run);
}

void qat_graph_set_backend(qat_graph *graph, const qat_backend *backend, void *context)
{
    assert(!graph->planned && !graph->backend);
    graph->backend = backend;
    graph->backend_context = context;
}

void *qat_graph_backend(const qat_graph *graph, const qat_backend *backend)
{
    return graph->backend == backend ? graph->backend_context : NULL;
}

qat_status qat_graph_run_status(const qat_graph *graph, qat_error *err)
{
    return graph->backend ? graph->backend->status(graph->backend_context, err) : QAT_OK;
}

static void run_backend(qat_graph *graph, qat_node *node, const qat_run *run)
{
    qat_core_borrow(graph, node, QAT_PASS_FORWARD);
    graph->backend->forward(graph->backend_context, node, run);
}

void qat_core_begin_forward(qat_graph *graph, const qat_run *run)
{
    assert(graph->planned);
    graph->behind_backward = false;
    find_idle(graph, run);
    graph->backend_runs = graph->backend && graph->backend->begin(graph->backend_context, run);
}

void qat_core_forward(qat_graph *graph, int i, const qat_run *run)
{
    qat_node *node = &graph->nodes[i]->node;
    if (graph->backend_runs)
        run_backend(graph, node, run);
    else
        qat_node_forward(node, run);
    tell(graph, node, QAT_PASS_FORWARD);
}

void qat_graph_forward_visit(qat_graph *graph, const qat_run *run, qat_visit *visit, void *context)
{
    qat_core_begin_forward(graph, run);
    for (int i = 0; i < graph->count; i++) {
        if (!qat_core_runs(graph->nodes[i]))
            continue;
        qat_core_forward(graph, i, run);
        if (visit)
            visit(context, qat_tail_last(&graph->nodes[i]->node));
    }
}

void qat_graph_update(qat_graph *graph, const qat_run *run)
{
    assert(graph->planned);
    for (int i = 0; i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node;
        if (!runs(graph->nodes[i]) || !node->op->update)
            continue;
        node->op->update(node, run);
        tell(graph, node, QAT_PASS_UPDATE);
    }
}

static void mark_inputs(qat_graph *graph, int i, const qat_run *run)
{
    const qat_node *node = &graph->nodes[i]->node;
    bool const fixed = graph->nodes[i]->kind == CORE_FIXED;
    if (!graph->nodes[i]->active || !runs(graph->nodes[i]))
        return;
    for (int k = 0; k < node->n_inputs; k++) {
        core_node *input = core_of(node->inputs[k]);
        if (!input->node.grad || !reads(node, k, run))
            continue;
        if (!input->active)
            input->first_writer = i;
        if (!fixed)
            input->last_writer = i;
        input->active = true;
    }
}

/**
 * Find the nodes on which the loss depends in this run. For each, find the consumer that writes its
 * gradient first in the order of backward: until then the gradient holds nothing.
 */
static void trace(qat_graph *graph, const qat_node *loss, const qat_run *run)
{
    for (int i = 0; i < graph->count; i++) {
        graph->nodes[i]->active = false;
        graph->nodes[i]->first_writer = graph->nodes[i]->last_writer = -1;
    }
    core_of(loss)->active = loss->grad != NULL;
    for (int i = loss->index; i >= 0; i--)
        if (graph->nodes[i]->kind != CORE_FIXED)
            mark_inputs(graph, i, run);
    for (int i = loss->index; i >= 0; i--)
        if (graph->nodes[i]->kind == CORE_FIXED)
            mark_inputs(graph, i, run);
}

static void zero_grad(qat_node *node)
{
    memset(node->grad, 0, qat_shape_count(&node->shape) * sizeof *node->grad);
}

/**
 * Begin the gradients of the inputs whose life starts with node's backward. Ops that write
 * gradients are informed; for other ops the gradient is set to 0.
 */
static void begin_gradients(qat_node *node)
{
    node->new_grads = 0;
    for (int k = 0; k < node->n_inputs; k++) {
        core_node *input = core_of(node->inputs[k]);
        if (!input->node.grad || input->first_writer != node->index)
            continue;
        input->first_writer = -1; /* for a second slot with the same input it is not new any more */
        if (node->op->grads != QAT_GRADS_ADD && k < node->n_data && k < 32 && !input->node.is_param)
            node->new_grads |= 1U << k;
        else
            zero_grad(&input->node);
    }
}

void qat_core_prepare_backward(qat_graph *graph, int i)
{
    qat_node *node = &graph->nodes[i]->node;
    begin_gradients(node);
    if (graph->backend)
        qat_core_borrow(graph, node, QAT_PASS_BACKWARD);
}

/** Zero the gradients that stay readable and that no backward will write. */
static void zero_unwritten(qat_graph *graph)
{
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        if (!core->node.op && core->node.grad && core->first_writer < 0)
            zero_grad(&core->node);
    }
}

void qat_core_begin_backward(qat_graph *graph, qat_node *loss, const qat_run *run)
{
    assert(graph->planned && qat_core_trains(graph));
    assert(loss->graph == graph && qat_shape_count(&loss->shape) == 1);
    graph->behind_backward = true;
    trace(graph, loss, run);
    zero_unwritten(graph);
    if (loss->grad)
        loss->grad[0] = 1;
}

bool qat_core_runs_backward(const core_node *core)
{
    return core->active && qat_core_runs(core);
}

void qat_core_backward(qat_graph *graph, int i, const qat_run *run)
{
    qat_node *node = &graph->nodes[i]->node;
    if (qat_is_shared(node) && node->op->shared->backward)
        node->op->shared->backward(node, run);
    else {
        qat_core_prepare_backward(graph, i);
        node->op->backward(node, run);
    }
    tell(graph, node, QAT_PASS_BACKWARD);
}

void qat_graph_backward(qat_graph *graph, qat_node *loss, const qat_run *run)
{
    qat_core_begin_backward(graph, loss, run);
    for (int i = loss->index; i >= 0; i--)
        if (qat_core_runs_backward(graph->nodes[i]))
            qat_core_backward(graph, i, run);
}

static bool finite_values(const qat_real *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/** Does its memory still hold the value of the last forward? */
static bool has_value(const core_node *core)
{
    return core->keeps_value && !core->idle &&
           !(core->node.graph->behind_backward && qat_core_ends_with_backward(core));
}

qat_node *qat_graph_find_nonfinite(const qat_graph *graph)
{
    assert(graph->planned);
    for (int i = 0; i < graph->count; i++) {
        const core_node *core = graph->nodes[i];
        if (has_value(core) && !finite_values(core->node.value, qat_shape_count(&core->node.shape)))
            return &graph->nodes[i]->node;
    }
    return NULL;
}

/**
 * Plans a graph: shapes for a batch, lifetimes, one arena.
 *
 * A step has 2n + 1 moments for n nodes: node i runs forward at moment i and backward at 2n - 1 -
 * i; the optimizer and the ops' updates run at 2n. Buffers have these lifetimes:
 *
 *     moment        0 ... i ... last consumer c ... n-1 | n ... 2n-1-c ... 2n-1-i ... 2n-1 | 2n
 *     value, EVAL         [=====================]
 *     value, others [==================================================================== ... ]
 *     gradient                                                 [===========]
 *     scratch             [================================================]
 *       that is forgotten [=]                                            [=]
 *
 * Parameters, their gradients and the gradients of inputs always live. Scratch ends with forward if
 * no backward follows, and lasts to the end if the op has an update. If the op forgets its scratch,
 * others may use it between forward and backward. A chain (chain.c) has one value and one gradient
 * for all its nodes.
 */
#include "autograd/graph/core.h"
#include "autograd/graph/pack.h"
#include "autograd/loops/tail.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_VALUE, BUFFER_GRAD, BUFFER_SCRATCH, BUFFERS };

/* ------------------------------------------------------------------ shapes */

qat_status qat_core_infer_all(qat_graph *graph, int batch, qat_error *err)
{
    qat_status st = QAT_OK;
    char why[128];
    for (int i = 0; !st && i < graph->count; i++) {
        qat_node *node = &graph->nodes[i]->node;
        if (node->op) {
            st = qat_core_infer(node, err);
        } else if (!node->is_param) {
            node->shape.dims[0] = batch;
            if (qat_core_shape_bad(&node->shape, why))
                st = qat_fail(err, QAT_ERR_SHAPE, "input '%s': %s", node->name, why);
        }
    }
    return st;
}

/** Parameters keep their shapes for every batch. It is an error if an op asks for others. */
static qat_status check_params(const qat_node *node, qat_error *err)
{
    qat_param_def defs[QAT_MAX_PARAMS];
    char a[64], b[64];
    int const n = qat_core_params(node, defs, err);
    if (n < 0)
        return QAT_ERR_SHAPE;
    for (int i = 0; i < n; i++) {
        const qat_shape *shape = &node->inputs[node->n_data + i]->shape;
        if (!qat_shape_equal(shape, &defs[i].shape))
            return qat_fail(
                err, QAT_ERR_SHAPE,
                "node '%s' (%s): parameter '%s' needs shape %s at this batch, but has %s",
                node->name, node->op->name, defs[i].name, qat_shape_text(&defs[i].shape, a),
                qat_shape_text(shape, b));
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ lifetimes */

static bool needs_grad(const core_node *core, const bool *needed)
{
    const qat_node *node = &core->node;
    if (!node->op)
        return (node->is_param && node->trainable) || core->wanted;
    for (int i = 0; node->op->backward && i < node->n_inputs; i++)
        if (needed[node->inputs[i]->index])
            return true;
    return false;
}

static void live(pack_buffer *b, size_t bytes, int start, int end)
{
    b->bytes = bytes;
    b->start = start;
    b->end = end;
}

/** Does its value stay readable after forward? */
static bool keeps_value(const qat_graph *graph, const core_node *core)
{
    return graph->plan != QAT_PLAN_EVAL || core->node.is_param || core->is_output ||
           core->last_consumer < 0 || core->outlives_readers;
}

static void value_lifetime(const qat_graph *graph, core_node *core, size_t bytes, pack_buffer *b)
{
    qat_node const *node = &core->node;
    bool const inner = qat_tail_last(core->head ? core->head : node) != node || core->coded;
    core->keeps_value = !inner && !core->last_reader && keeps_value(graph, core);
    if (inner)
        return;
    if (core->last_reader) {
        live(b, bytes, node->index, core->last_reader->index);
        return;
    }
    live(b, bytes, node->op ? node->index : 0,
         core->keeps_value ? 2 * graph->count : core->last_consumer);
    if (qat_core_ends_with_backward(core)) {
        b->start = core->head ? core->head->index : node->index;
        b->end = 2 * graph->count - 1 - b->start;
    } else if (node->is_param || graph->plan != QAT_PLAN_EVAL)
        b->start = 0;
}

/** A backend reads what the forward of weights left for each of their readers. */
static void scratch_lifetime(const qat_node *node, int i, int last, bool grad, pack_buffer *b)
{
    int const backward = last - 1 - i, forward = node->graph->backend ? last : i;
    live(b, node->scratch_bytes, i, node->op->update ? last : grad ? backward : forward);
    if (b->end == backward && backward > i + 1 && node->op->forgets_scratch) {
        b->pause = i;
        b->resume = backward;
    }
}

/** Set the lifetimes of a node's buffers. The ops of a tail run at the moments of their head. */
static void lifetimes(const qat_graph *graph, core_node *core, bool grad, pack_buffer *b)
{
    qat_node const *node = &core->node;
    int const last = 2 * graph->count, i = core->head ? core->head->index : node->index;
    int const backward = last - 1 - i;
    bool const sink = core->last_consumer < 0;
    size_t const bytes = qat_shape_count(&node->shape) * sizeof(qat_real);

    value_lifetime(graph, core, bytes, &b[BUFFER_VALUE]);
    if (grad && !node->op)
        live(&b[BUFFER_GRAD], bytes, 0, last);
    else if (grad)
        live(&b[BUFFER_GRAD], bytes, sink ? backward : last - 1 - core->last_consumer, backward);

    if (node->op)
        scratch_lifetime(node, i, last, grad, &b[BUFFER_SCRATCH]);
}

/**
 * A graph of a shard: what has no samples is computed before all others, and its backward runs
 * after all others. Only the first graph has memory for it; each has its part of the gradient.
 */
static void fixed_lifetimes(const qat_graph *graph, const core_node *core, pack_buffer *b)
{
    bool const own = graph->first == graph;
    b[BUFFER_VALUE].start = b[BUFFER_SCRATCH].start = 0;
    for (int kind = 0; kind < BUFFERS; kind++) {
        b[kind].end = 2 * graph->count;
        b[kind].pause = b[kind].resume = 0;
        if (!own && (kind != BUFFER_GRAD || !core->partial))
            b[kind].bytes = 0;
    }
}

/** A buffer lives longer if it also holds the gradient of another node. */
static void share_gradients(const qat_graph *graph, pack_buffer *buffers)
{
    for (int i = 0; i < graph->count; i++) {
        int const owner = graph->nodes[i]->grad_owner;
        pack_buffer *own = &buffers[BUFFERS * i + BUFFER_GRAD];
        pack_buffer *shared = &buffers[BUFFERS * owner + BUFFER_GRAD];
        if (owner == i)
            continue;
        shared->start = own->start < shared->start ? own->start : shared->start;
        shared->end = own->end > shared->end ? own->end : shared->end;
        own->bytes = 0;
    }
}

/** Fill buffers with those that have bytes; returns how many there are. */
static int collect(qat_graph *graph, const bool *needed, pack_buffer *buffers)
{
    int n = 0;
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        pack_buffer *b = buffers + BUFFERS * i;
        lifetimes(graph, core, needed[i], b);
        if (graph->first && core->kind == CORE_FIXED)
            fixed_lifetimes(graph, core, b);
        core->max_values = qat_shape_count(&core->node.shape);
        core->max_scratch = core->node.scratch_bytes;
        for (int kind = 0; kind < BUFFERS; kind++) {
            b[kind].owner = i;
            b[kind].kind = kind;
        }
    }
    share_gradients(graph, buffers);
    for (int k = 0; k < BUFFERS * graph->count; k++)
        if (buffers[k].bytes)
            buffers[n++] = buffers[k];
    return graph->backend ? n + qat_core_code_buffers(graph, buffers + n) : n;
}

/* ------------------------------------------------------------------ the arena */

/** Values and scratch of nodes without samples are those of the first graph. */
static void borrow_fixed(qat_graph *graph)
{
    for (int i = 0; i < graph->count; i++)
        if (graph->nodes[i]->kind == CORE_FIXED) {
            graph->nodes[i]->node.value = graph->first->nodes[i]->node.value;
            graph->nodes[i]->node.scratch = graph->first->nodes[i]->node.scratch;
        }
}

static void hand_out(qat_graph *graph, const pack_buffer *buffers, int n)
{
    for (int k = 0; k < n; k++) {
        qat_node *node = &graph->nodes[buffers[k].owner]->node;
        void *memory = graph->memory + buffers[k].offset;
        if (buffers[k].kind >= CORE_CODES)
            qat_core_hand_out_codes(graph, &buffers[k]);
        else if (buffers[k].kind == BUFFER_VALUE)
            node->value = memory;
        else if (buffers[k].kind == BUFFER_GRAD)
            node->grad = memory;
        else
            node->scratch = memory;
    }
    for (int i = 0; i < graph->count; i++)
        graph->nodes[i]->node.grad = graph->nodes[graph->nodes[i]->grad_owner]->node.grad;
    if (graph->first && graph->first != graph)
        borrow_fixed(graph);
}

/** Check the limit of the graph's registry; of shards, all graphs count together. */
static qat_status check_limit(const qat_graph *graph, qat_error *err)
{
    uint64_t const limit = graph->registry ? qat_registry_memory(graph->registry) : 0;
    uint64_t const bytes = graph->bytes_before + graph->memory_bytes, mib = (uint64_t)1 << 20;
    if (!limit || bytes <= limit)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "the network needs %llu MiB of memory for a batch of %d, but %llu MiB are "
                    "allowed (--max-memory)",
                    (unsigned long long)((bytes - 1) / mib + 1), graph->max_batch,
                    (unsigned long long)((limit - 1) / mib + 1));
}

static qat_status allocate(qat_graph *graph, pack_buffer *buffers, int n, qat_error *err)
{
    if (!qat_pack_buffers(buffers, n, &graph->memory_bytes))
        return qat_fail(err, QAT_ERR_SHAPE, "the graph needs more than %zu bytes for a batch of %d",
                        graph->memory_bytes / 2, graph->max_batch);
    qat_status const st = check_limit(graph, err);
    if (st)
        return st;
    graph->memory = qat_aligned_alloc(graph->memory_bytes);
    if (!graph->memory) {
        char what[96];
        snprintf(what, sizeof what, "a graph of %zu bytes for a batch of %d", graph->memory_bytes,
                 graph->max_batch);
        return qat_out_of_memory(err, what);
    }
    hand_out(graph, buffers, n);
    return QAT_OK;
}

static qat_status plan_memory(qat_graph *graph, qat_error *err)
{
    size_t const count = (size_t)graph->count;
    size_t const most = BUFFERS * count + (size_t)qat_core_most_code_buffers(graph);
    pack_buffer *buffers = calloc(most ? most : 1, sizeof *buffers);
    bool *needed = calloc(count ? count : 1, sizeof *needed);
    qat_status st = QAT_OK;
    if (!buffers || !needed)
        st = qat_out_of_memory(err, "plan");
    for (int i = 0; !st && i < graph->count; i++)
        needed[i] = qat_core_trains(graph) && needs_grad(graph->nodes[i], needed);
    if (!st)
        st = qat_core_find_chains(graph, needed, err);
    if (!st)
        st = allocate(graph, buffers, collect(graph, needed, buffers), err);
    free(buffers);
    free(needed);
    return st;
}

qat_status qat_graph_plan(qat_graph *graph, int max_batch, qat_plan plan, qat_error *err)
{
    qat_status st = qat_graph_check(graph, err);
    if (!st && graph->planned)
        st = qat_fail(err, QAT_ERR_STATE, "the graph is already planned, for a batch of %d",
                      graph->max_batch);
    if (!st && max_batch < 1)
        st = qat_fail(err, QAT_ERR_ARGUMENT, "batch %d is below 1", max_batch);
    if (!st)
        st = qat_core_infer_all(graph, max_batch, err);
    for (int i = 0; !st && i < graph->count; i++)
        if (graph->nodes[i]->node.op)
            st = check_params(&graph->nodes[i]->node, err);
    if (!st) {
        graph->plan = plan;
        graph->batch = graph->max_batch = max_batch;
        if (graph->backend)
            st = graph->backend->plan(graph->backend_context, graph, err);
    }
    if (!st && graph->first)
        st = qat_core_find_kinds(graph, err);
    if (!st)
        st = qat_core_find_coded(graph, err);
    if (!st)
        st = plan_memory(graph, err);
    graph->planned = graph->planned || !st;
    return st;
}

size_t qat_graph_arena_bytes(const qat_graph *graph)
{
    return graph->planned ? graph->memory_bytes : 0;
}

/* ------------------------------------------------------------------ other batches */

/** No buffer may need more memory than at the largest batch. */
static qat_status check_fits(const qat_graph *graph, qat_error *err)
{
    for (int i = 0; i < graph->count; i++) {
        const core_node *core = graph->nodes[i];
        const qat_node *node = &core->node;
        size_t const values = qat_shape_count(&node->shape);
        if (values > core->max_values || node->scratch_bytes > core->max_scratch)
            return qat_fail(err, QAT_ERR_STATE,
                            "node '%s' (%s) needs %zu values and %zu bytes of scratch, more than "
                            "the %zu and %zu of the largest batch",
                            node->name, node->op ? node->op->name : "input", values,
                            node->scratch_bytes, core->max_values, core->max_scratch);
    }
    return QAT_OK;
}

qat_status qat_graph_set_batch(qat_graph *graph, int batch, qat_error *err)
{
    if (!graph->planned)
        return qat_fail(err, QAT_ERR_STATE, "the batch was set before planning");
    if (batch < 1 || batch > graph->max_batch)
        return qat_fail(err, QAT_ERR_ARGUMENT, "batch %d is outside 1..%d", batch,
                        graph->max_batch);
    if (batch == graph->batch)
        return QAT_OK;
    qat_status st = qat_core_infer_all(graph, batch, err);
    if (!st)
        st = check_fits(graph, err);
    if (st)
        qat_core_infer_all(graph, graph->batch, NULL); /* back to the batch before */
    else
        graph->batch = batch;
    return st;
}

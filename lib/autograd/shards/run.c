/** Runs the graphs of the shards side by side, from one node that adds up over samples to the next.
 */
#include "autograd/shards/own.h"

#include "autograd/graph/shared.h"
#include "base/parallel.h"

/* ------------------------------------------------------------------ a mean over the samples */

/** Is its value a mean over samples, of an op that knows nothing of shards? */
static bool is_plain_mean(const core_node *core)
{
    if (core->kind != CORE_TOTAL || core->node.op->shared)
        return false;
    for (int k = 0; k < core->node.n_inputs; k++)
        if (core_of(core->node.inputs[k])->kind == CORE_SAMPLES)
            return true;
    return false;
}

/** The share of own shard i in the batch. */
static double share_of(const qat_shards *s, int i)
{
    qat_samples const samples = qat_shards_samples(s, i);
    return (double)(samples.end - samples.begin) / (double)s->batch;
}

/** The mean over the batch from those of the shards, value by value. */
static void join_means(qat_shards *s, int node)
{
    size_t one = 1;
    size_t const n = qat_shape_count(&s->graphs[0]->nodes[node]->node.shape);
    for (size_t v = 0; v < n; v++) {
        for (int i = 0; i < s->own; i++) {
            s->means[i] = share_of(s, i) * (double)s->graphs[i]->nodes[node]->node.value[v];
            s->sums[i] = &s->means[i];
        }
        qat_sum_over_shards(s, s->sums, 1, qat_join_doubles, &one);
        for (int i = 0; i < s->own; i++)
            s->graphs[i]->nodes[node]->node.value[v] = (qat_real)s->means[i];
    }
}

static void scale_gradient(const qat_shards *s, int i, qat_node *node)
{
    for (size_t v = 0; node->grad && v < qat_shape_count(&node->shape); v++)
        node->grad[v] *= (qat_real)share_of(s, i);
}

/* ------------------------------------------------------------------ running */

/** Nodes that the graphs run side by side: up to one whose sums stop them. */
struct stretch {
    qat_shards *s;
    const qat_run *run;
    int begin, end; /* nodes [begin, end) forward, (begin, end] from end down backward */
    bool stops;     /* forward: node `end` adds up; backward: node `begin` */
};

static int forward_sums(qat_graph *g, qat_node *node, const qat_run *run, double **sums)
{
    if (g->backend_runs)
        qat_core_borrow(g, node, QAT_PASS_FORWARD); /* its inputs may be codes alone */
    if (g->backend_runs && g->backend->forward_sums)
        return g->backend->forward_sums(g->backend_context, node, run, sums);
    return node->op->shared->forward_sums(node, run, sums);
}

static void forward_shard(void *context, int i, int thread)
{
    const struct stretch *t = context;
    qat_graph *g = t->s->graphs[i];
    (void)thread;
    for (int k = t->begin; k < t->end; k++)
        if (!qat_is_fixed(g->nodes[k]) && qat_core_runs(g->nodes[k]))
            qat_core_forward(g, k, t->run);
    if (t->stops && qat_is_shared(&g->nodes[t->end]->node))
        t->s->n_sums[i] = forward_sums(g, &g->nodes[t->end]->node, t->run, &t->s->sums[i]);
}

/**
 * Run fn for each own shard. If there are enough of them, each thread has some for itself;
 * otherwise the threads share the tiles of one shard after the other. The bits are the same.
 */
static void each_shard(qat_shards *s, qat_tile_fn *fn, void *context)
{
    int const threads = qat_threads();
    bool const split = s->own % threads == 0 || s->own >= 4 * threads;
    if (split)
        qat_parallel(s->own, fn, context);
    for (int i = 0; !split && i < s->own; i++)
        fn(context, i, 0);
}

/** A backend may have failed in one of the graphs, which then has no sums. */
static bool all_ran(qat_shards *s)
{
    qat_error err;
    for (int i = 0; i < s->own; i++)
        if (qat_graph_run_status(s->graphs[i], &err))
            qat_shards_failed(s, &err);
    return !s->error.status;
}

static void add_up(qat_shards *s)
{
    size_t n = (size_t)s->n_sums[0];
    if (n && all_ran(s))
        qat_sum_over_shards(s, s->sums, n, qat_join_doubles, &n);
}

static bool stops_forward(const core_node *core)
{
    return !qat_is_fixed(core) && qat_core_runs(core) &&
           (qat_is_shared(&core->node) || is_plain_mean(core));
}

void qat_shards_forward_params(qat_shards *s, const qat_run *run)
{
    qat_graph *first = s->graphs[0];
    for (int i = 0; i < s->own; i++)
        qat_core_begin_forward(s->graphs[i], run);
    for (int k = 0; k < first->count; k++)
        if (qat_is_fixed(first->nodes[k]) && qat_core_runs(first->nodes[k]))
            qat_core_forward(first, k, run);
}

void qat_shards_forward(qat_shards *s, const qat_run *run)
{
    const qat_graph *first = s->graphs[0];
    struct stretch t = {s, run, 0, 0, true};
    qat_shards_forward_params(s, run);
    while (t.begin < first->count && !s->error.status) {
        while (t.end < first->count && !stops_forward(first->nodes[t.end]))
            t.end++;
        bool const mean = t.end < first->count && is_plain_mean(first->nodes[t.end]);
        t.end += mean; /* it runs first, then its value is joined */
        t.stops = !mean && t.end < first->count;
        each_shard(s, forward_shard, &t);
        if (mean)
            join_means(s, t.end - 1);
        else if (t.stops)
            add_up(s);
        t.begin = t.end;
        t.end += t.stops;
    }
}

static bool stops_backward(const core_node *core)
{
    return !qat_is_fixed(core) && qat_core_runs_backward(core) && qat_is_shared(&core->node) &&
           core->node.op->shared->backward_sums;
}

static void backward_shard(void *context, int i, int thread)
{
    const struct stretch *t = context;
    qat_graph *g = t->s->graphs[i];
    (void)thread;
    for (int k = t->end; k > t->begin; k--) {
        qat_node *node = &g->nodes[k]->node;
        if (qat_is_fixed(g->nodes[k]) || !qat_core_runs_backward(g->nodes[k]))
            continue;
        if (is_plain_mean(g->nodes[k]))
            scale_gradient(t->s, i, node);
        qat_core_backward(g, k, t->run);
    }
    if (!t->stops)
        return;
    qat_node *node = &g->nodes[t->begin]->node;
    qat_core_prepare_backward(g, t->begin);
    t->s->n_sums[i] = node->op->shared->backward_sums(node, t->run, &t->s->sums[i]);
}

void qat_shards_backward(qat_shards *s, qat_node *loss, const qat_run *run)
{
    qat_graph *first = s->graphs[0];
    struct stretch t = {s, run, loss->index, loss->index, true};
    for (int i = 0; i < s->own; i++)
        qat_core_begin_backward(s->graphs[i], &s->graphs[i]->nodes[loss->index]->node, run);
    qat_shard_gradients_begin(s);
    while (t.end >= 0 && !s->error.status) {
        while (t.begin >= 0 && !stops_backward(first->nodes[t.begin]) &&
               !(t.begin < t.end && qat_shard_gradients_due(s, t.begin + 1)))
            t.begin--;
        t.stops = t.begin >= 0 && stops_backward(first->nodes[t.begin]);
        each_shard(s, backward_shard, &t);
        qat_shard_gradients_advance(s, t.begin + 1);
        if (t.stops)
            add_up(s);
        t.end = t.begin;
        t.begin -= t.stops;
    }
    qat_shard_gradients_end(s);
    for (int k = loss->index; k >= 0 && !s->error.status; k--)
        if (qat_is_fixed(first->nodes[k]) && qat_core_runs_backward(first->nodes[k]))
            qat_core_backward(first, k, run);
}

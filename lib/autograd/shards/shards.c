#include "autograd/shards/own.h"

#include "autograd/graph/shared.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ who has which */

static qat_samples samples_of(const qat_shards *s, int shard)
{
    long long const batch = s->batch;
    return (qat_samples){(int)(batch * shard / s->tree.shards),
                         (int)(batch * (shard + 1) / s->tree.shards)};
}

static void find_roots(qat_shards *s)
{
    for (int rank = 0; rank < s->tree.ranks; rank++)
        s->roots[rank + 1] =
            s->roots[rank] + qat_tree_roots(&s->tree, rank, s->starts + s->roots[rank]);
}

static qat_status check(int count, int batch, int ranks, qat_error *err)
{
    if (count < 1 || count > batch)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "train.shards = %d: a batch of %d samples has 1 to %d shards", count, batch,
                        batch);
    if (ranks > count)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "train.shards = %d, but there are %d ranks: each needs a shard of its own",
                        count, ranks);
    return QAT_OK;
}

static bool allocate(qat_shards *s)
{
    size_t const shards = (size_t)s->tree.shards, own = (size_t)s->own;
    s->graphs = calloc(own, sizeof *s->graphs);
    s->sums = calloc(own, sizeof *s->sums);
    s->n_sums = calloc(own, sizeof *s->n_sums);
    s->means = calloc(own, sizeof *s->means);
    s->slots = calloc(shards, sizeof *s->slots);
    s->starts = calloc(shards, sizeof *s->starts);
    s->roots = calloc((size_t)s->tree.ranks + 1, sizeof *s->roots);
    return s->graphs && s->sums && s->n_sums && s->means && s->slots && s->starts && s->roots;
}

qat_status qat_shards_create(qat_shards **shards, int count, int batch, const qat_ranks *ranks,
                             qat_error *err)
{
    int const n = ranks ? ranks->count : 1;
    *shards = NULL;
    qat_status const st = check(count, batch, n, err);
    qat_shards *s = st ? NULL : calloc(1, sizeof *s);
    if (!s)
        return st ? st : qat_out_of_memory(err, "shards");
    s->tree = (qat_shard_tree){count, n};
    s->ranks = ranks;
    s->rank = ranks ? ranks->rank : 0;
    s->first = qat_tree_first(&s->tree, s->rank);
    s->own = qat_tree_first(&s->tree, s->rank + 1) - s->first;
    s->batch = batch;
    if (!allocate(s)) {
        qat_shards_free(s);
        return qat_out_of_memory(err, "shards");
    }
    find_roots(s);
    *shards = s;
    return QAT_OK;
}

void qat_shards_free(qat_shards *s)
{
    if (!s)
        return;
    qat_shard_gradients_free(s);
    free(s->room.send);
    free(s->room.receive);
    free(s->ready);
    free(s->graphs);
    free(s->sums);
    free(s->n_sums);
    free(s->means);
    free(s->slots);
    free(s->starts);
    free(s->roots);
    free(s);
}

int qat_shards_own(const qat_shards *s)
{
    return s->own;
}

qat_samples qat_shards_samples(const qat_shards *s, int i)
{
    return samples_of(s, s->first + i);
}

qat_samples qat_shards_all_samples(const qat_shards *s)
{
    return (qat_samples){samples_of(s, s->first).begin, samples_of(s, s->first + s->own - 1).end};
}

bool qat_is_shared(const qat_node *node)
{
    return node->graph->first && node->op->shared && node->op->shared->forward;
}

int qat_shards_of(const qat_node *node)
{
    return node->graph->first ? node->graph->shards : 1;
}

int qat_shard_of(const qat_node *node)
{
    return node->graph->first ? node->graph->shard : -1;
}

/* ------------------------------------------------------------------ planning */

/** A node without a batch that is made of samples: what is it, if its op does not add up? */
static qat_status check_total(const qat_node *node, qat_error *err)
{
    bool samples = false, totals = false, learns = false;
    for (int k = 0; k < node->n_inputs; k++) {
        const core_node *input = core_of(node->inputs[k]);
        samples |= input->kind == CORE_SAMPLES;
        totals |= input->kind == CORE_TOTAL;
        learns |= input->kind == CORE_FIXED && (input->node.op || input->node.trainable);
    }
    if (node->op->shared || (samples && !totals) || (!samples && !learns))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "train.shards: node '%s' (%s) mixes %s: its part of a shard is not known",
                    node->name, node->op->name,
                    samples ? "samples with what is made of all samples"
                            : "what is made of all samples with parameters");
}

/** Nobody would join what such an op has seen of each part. */
static qat_status check_update(const qat_node *node, qat_error *err)
{
    if (!node->op || !node->op->update || node->op->shared)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "train.shards: node '%s' (%s) updates its parameters from the batch, but its op "
        "does not say how parts of a batch are joined",
        node->name, node->op->name);
}

static qat_status find_kind(core_node *core, bool has_batch, qat_error *err)
{
    const qat_node *node = &core->node;
    core->kind = has_batch ? CORE_SAMPLES : CORE_FIXED;
    for (int k = 0; !has_batch && k < node->n_inputs; k++)
        if (core_of(node->inputs[k])->kind != CORE_FIXED)
            core->kind = CORE_TOTAL;
    for (int k = 0; core->kind != CORE_FIXED && k < node->n_inputs; k++)
        core_of(node->inputs[k])->partial |= core_of(node->inputs[k])->kind == CORE_FIXED;
    qat_status const st = core->kind == CORE_FIXED ? QAT_OK : check_update(node, err);
    return !st && core->kind == CORE_TOTAL ? check_total(node, err) : st;
}

/** A node has a batch dimension if another batch gives it another size. */
qat_status qat_core_find_kinds(qat_graph *graph, qat_error *err)
{
    int const other = graph->max_batch > 1 ? graph->max_batch - 1 : 2;
    size_t *counts = calloc((size_t)graph->count + 1, sizeof *counts);
    qat_status st = counts ? QAT_OK : qat_out_of_memory(err, "plan");
    for (int i = 0; !st && i < graph->count; i++)
        counts[i] = qat_shape_count(&graph->nodes[i]->node.shape);
    if (!st)
        st = qat_core_infer_all(graph, other, err);
    for (int i = 0; !st && i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        st = find_kind(core, qat_shape_count(&core->node.shape) != counts[i], err);
    }
    free(counts);
    return st ? st : qat_core_infer_all(graph, graph->max_batch, err);
}

static qat_status plan_one(qat_shards *s, int i, qat_plan plan, qat_error *err)
{
    qat_graph *graph = s->graphs[i];
    qat_samples const samples = qat_shards_samples(s, i);
    graph->first = s->graphs[0];
    graph->shard = s->first + i;
    graph->shards = s->tree.shards;
    for (int k = 0; k < i; k++)
        graph->bytes_before += s->graphs[k]->memory_bytes;
    return qat_graph_plan(graph, samples.end - samples.begin, plan, err);
}

qat_status qat_shards_plan(qat_shards *s, qat_graph *const *graphs, qat_plan plan, qat_error *err)
{
    qat_status st = QAT_OK;
    memcpy(s->graphs, graphs, (size_t)s->own * sizeof *s->graphs);
    free(s->ready);
    s->ready = calloc((size_t)graphs[0]->count + 1, sizeof *s->ready);
    if (!s->ready)
        return qat_out_of_memory(err, "shards");
    for (int i = 0; !st && i < s->own; i++)
        st = plan_one(s, i, plan, err);
    return st;
}

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

static bool is_fixed(const core_node *core)
{
    return core->kind == CORE_FIXED;
}

static int forward_sums(qat_graph *g, qat_node *node, const qat_run *run, double **sums)
{
    if (g->engine_runs)
        qat_core_borrow(g, node, QAT_PASS_FORWARD); /* its inputs may be codes alone */
    if (g->engine_runs && g->engine->forward_sums)
        return g->engine->forward_sums(g->engine_context, node, run, sums);
    return node->op->shared->forward_sums(node, run, sums);
}

static void forward_shard(void *context, int i, int thread)
{
    const struct stretch *t = context;
    qat_graph *g = t->s->graphs[i];
    (void)thread;
    for (int k = t->begin; k < t->end; k++)
        if (!is_fixed(g->nodes[k]) && qat_core_runs(g->nodes[k]))
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

/** An engine may have failed in one of the graphs, which then has no sums. */
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
    return !is_fixed(core) && qat_core_runs(core) &&
           (qat_is_shared(&core->node) || is_plain_mean(core));
}

void qat_shards_forward(qat_shards *s, const qat_run *run)
{
    qat_graph *first = s->graphs[0];
    struct stretch t = {s, run, 0, 0, true};
    for (int i = 0; i < s->own; i++)
        qat_core_begin_forward(s->graphs[i], run);
    for (int k = 0; k < first->count; k++)
        if (is_fixed(first->nodes[k]) && qat_core_runs(first->nodes[k]))
            qat_core_forward(first, k, run);
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
    return !is_fixed(core) && qat_core_runs_backward(core) && qat_is_shared(&core->node) &&
           core->node.op->shared->backward_sums;
}

static void backward_shard(void *context, int i, int thread)
{
    const struct stretch *t = context;
    qat_graph *g = t->s->graphs[i];
    (void)thread;
    for (int k = t->end; k > t->begin; k--) {
        qat_node *node = &g->nodes[k]->node;
        if (is_fixed(g->nodes[k]) || !qat_core_runs_backward(g->nodes[k]))
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
        if (is_fixed(first->nodes[k]) && qat_core_runs_backward(first->nodes[k]))
            qat_core_backward(first, k, run);
}

/* ------------------------------------------------------------------ update */

struct observers {
    const qat_graph *graph;
    const qat_run *run;
};

/** How many numbers a node of own shard i has observed; writes them. */
static int observed_of(const qat_graph *g, int k, const qat_run *run, double *observed)
{
    const qat_node *node = &g->nodes[k]->node;
    const qat_shared *shared = node->op ? node->op->shared : NULL;
    if (is_fixed(g->nodes[k]) || g->nodes[k]->idle || !shared || !shared->observed)
        return 0;
    return shared->observed(node, run, observed);
}

/** A qat_join_fn: all nodes, one behind the other. */
static void join_observed(void *context, void *a, const void *b)
{
    const struct observers *o = context;
    double *to = a, ignored[QAT_OBSERVED_MAX];
    const double *from = b;
    for (int k = 0; k < o->graph->count; k++) {
        int const n = observed_of(o->graph, k, o->run, ignored);
        if (n)
            o->graph->nodes[k]->node.op->shared->join(&o->graph->nodes[k]->node, to, from);
        to += n;
        from += n;
    }
}

static size_t write_observed(const qat_graph *g, const qat_run *run, double *to)
{
    double ignored[QAT_OBSERVED_MAX];
    size_t n = 0;
    for (int k = 0; k < g->count; k++)
        n += (size_t)observed_of(g, k, run, to ? to + n : ignored);
    return n;
}

static void read_observed(qat_graph *g, const qat_run *run, const double *from)
{
    double ignored[QAT_OBSERVED_MAX];
    for (int k = 0; k < g->count; k++) {
        int const n = observed_of(g, k, run, ignored);
        if (n)
            g->nodes[k]->node.op->shared->set_observed(&g->nodes[k]->node, from);
        from += n;
    }
}

void qat_shards_update(qat_shards *s, const qat_run *run)
{
    struct observers o = {s->graphs[0], run};
    size_t const n = write_observed(s->graphs[0], run, NULL);
    double *all = n ? malloc((size_t)s->own * n * sizeof *all) : NULL;
    if (n && !all) {
        qat_error err;
        qat_out_of_memory(&err, "shards");
        qat_shards_failed(s, &err);
        return;
    }
    for (int i = 0; n && i < s->own; i++) {
        s->sums[i] = all + (size_t)i * n;
        write_observed(s->graphs[i], run, s->sums[i]);
    }
    if (n)
        qat_sum_over_shards(s, s->sums, n, join_observed, &o);
    if (n)
        read_observed(s->graphs[0], run, all);
    free(all);
    if (!s->error.status)
        qat_graph_update(s->graphs[0], run);
}

/* ------------------------------------------------------------------ errors, exchanges, counts */

void qat_shards_failed(qat_shards *s, const qat_error *err)
{
    if (!s->error.status)
        s->error = *err;
}

qat_status qat_shards_status(qat_shards *s, qat_error *err)
{
    qat_status st = s->error.status;
    if (st)
        return qat_fail(err, st, "%s", s->error.message);
    for (int i = 0; !st && i < s->own; i++)
        st = qat_graph_run_status(s->graphs[i], err);
    return st;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool qat_shards_begin(qat_shards *s, qat_exchange *x)
{
    qat_error err = {0};
    for (int i = 0; i < x->n_send; i++)
        s->cost.bytes += (long long)x->send[i].bytes;
    if (s->error.status || s->ranks->begin(s->ranks->context, x, &err)) {
        qat_shards_failed(s, &err);
        return false;
    }
    return true;
}

bool qat_shards_wait(qat_shards *s, qat_exchange *x)
{
    qat_error err = {0};
    bool done;
    double const before = now();
    if (s->ranks->done(s->ranks->context, x, true, &done, &err))
        qat_shards_failed(s, &err);
    s->cost.waited += now() - before;
    return !s->error.status;
}

qat_shards_cost qat_shards_take_cost(qat_shards *s)
{
    qat_shards_cost const cost = s->cost;
    s->cost = (qat_shards_cost){0};
    return cost;
}

qat_status qat_shards_add_up(qat_shards *s, double *counts, int n, qat_error *err)
{
    size_t each = (size_t)n;
    double *rest = calloc((size_t)s->own * each + 1, sizeof *rest);
    if (!rest)
        return qat_out_of_memory(err, "shards");
    for (int i = 0; i < s->own; i++)
        s->sums[i] = i ? rest + (size_t)i * each : counts;
    qat_sum_over_shards(s, s->sums, each, qat_join_doubles, &each);
    free(rest);
    return s->error.status ? qat_fail(err, s->error.status, "%s", s->error.message) : QAT_OK;
}

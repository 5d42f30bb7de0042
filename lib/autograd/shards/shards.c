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
    free(s->seen);
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

void qat_shards_split_batch_norm(qat_shards *s)
{
    s->split_batch_norm = true;
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
    const qat_graph *graph = node->graph;
    const qat_shared *shared = node->op->shared;
    return graph->first && shared && shared->forward &&
           !(shared->is_batch_norm && graph->split_batch_norm);
}

int qat_shards_of(const qat_node *node)
{
    return node->graph->first ? node->graph->shards : 1;
}

int qat_shard_of(const qat_node *node)
{
    return node->graph->first ? node->graph->shard : -1;
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

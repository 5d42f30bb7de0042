/** Joins what the nodes of the shards have observed, before the first graph is updated. */
#include "autograd/shards/own.h"

#include "autograd/graph/shared.h"

#include <stdlib.h>

struct observers {
    const qat_graph *graph;
    const qat_run *run;
};

int qat_shards_observed(const qat_graph *g, int k, const qat_run *run, double *observed)
{
    const qat_node *node = &g->nodes[k]->node;
    const qat_shared *shared = node->op ? node->op->shared : NULL;
    if (qat_is_fixed(g->nodes[k]) || g->nodes[k]->idle || !shared || !shared->observed)
        return 0;
    return shared->observed(node, run, observed);
}

/** A qat_join_fn: all nodes, one behind the other. */
static void join_observed(void *context, void *a, const void *b)
{
    const struct observers *o = context;
    double *to = a;
    const double *from = b;
    for (int k = 0; k < o->graph->count; k++) {
        int const n = qat_shards_observed(o->graph, k, o->run, NULL);
        if (n)
            o->graph->nodes[k]->node.op->shared->join(&o->graph->nodes[k]->node, to, from);
        to += n;
        from += n;
    }
}

static size_t write_observed(const qat_graph *g, const qat_run *run, double *to)
{
    size_t n = 0;
    for (int k = 0; k < g->count; k++)
        n += (size_t)qat_shards_observed(g, k, run, to ? to + n : NULL);
    return n;
}

static void read_observed(qat_graph *g, const qat_run *run, const double *from)
{
    for (int k = 0; k < g->count; k++) {
        int const n = qat_shards_observed(g, k, run, NULL);
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

/**
 * What the nodes of another process have observed, as a message: for each node that may observe
 * something 1 and its numbers, or 0 if it did not observe in this step.
 */
#include "autograd/shards/own.h"

#include "autograd/graph/shared.h"

#include <stdlib.h>

qat_status qat_shards_plan_messages(qat_shards *s, const qat_run *first, size_t *n, qat_error *err)
{
    const qat_graph *g = s->graphs[0];
    free(s->seen);
    s->seen = calloc((size_t)g->count + 1, sizeof *s->seen);
    *n = 0;
    if (!s->seen)
        return qat_out_of_memory(err, "shards");
    for (int k = 0; k < g->count; k++) {
        s->seen[k] = qat_shards_observed(g, k, first, NULL);
        *n += s->seen[k] ? 1 + (size_t)s->seen[k] : 0;
    }
    return QAT_OK;
}

void qat_shards_write_observed(const qat_shards *s, const qat_run *run, double *observed)
{
    const qat_graph *g = s->graphs[0];
    for (int k = 0; k < g->count; k++) {
        if (!s->seen[k])
            continue;
        observed[0] = qat_shards_observed(g, k, run, observed + 1) > 0;
        observed += 1 + s->seen[k];
    }
}

/**
 * A node whose statistics are not there is left out of the update. One that no longer needs any,
 * because its range is learned since, takes part.
 */
static void take_observed(core_node *core, const double *observed, bool expects)
{
    qat_node *node = &core->node;
    if (observed[0] > 0)
        node->op->shared->set_observed(node, observed + 1);
    else if (expects)
        core->idle = true;
}

void qat_shards_update_remote(qat_shards *s, const qat_run *run, const double *observed)
{
    qat_graph *g = s->graphs[0];
    for (int k = 0; k < g->count; k++) {
        if (!s->seen[k])
            continue;
        take_observed(g->nodes[k], observed, qat_shards_observed(g, k, run, NULL) > 0);
        observed += 1 + s->seen[k];
    }
    qat_graph_update(g, run);
}

#include "known.h"
#include "foreign/build.h"

#include <math.h>
#include <string.h>

static qat_status fold_all(builder *b)
{
    bool done = true;
    qat_status st = QAT_OK;
    for (int i = 0; i < b->from->n_values; i++)
        b->values[i].constant = b->from->values[i].constant;
    for (int i = 0; i < b->from->n_nodes && !st; i++) {
        b->node = &b->from->nodes[i];
        st = fv_fold(b, &done);
        if (!st && !done)
            st = fv_refuse(b, "it needs data");
    }
    return st;
}

/** 0 of equal integers; INFINITY if something else than a float differs. */
static double difference(const qat_foreign_tensor *is, const qat_foreign_tensor *want)
{
    double worst = 0, largest = 1;
    if (!is || is->type != want->type || is->rank != want->rank || is->count != want->count ||
        memcmp(is->dims, want->dims, (size_t)is->rank * sizeof *is->dims) != 0)
        return INFINITY;
    for (size_t i = 0; i < is->count; i++) {
        if (is->type == QAT_FOREIGN_INT) {
            worst = is->ints[i] == want->ints[i] ? worst : INFINITY;
            continue;
        }
        double const x = (double)is->floats[i], y = (double)want->floats[i];
        largest = isfinite(y) ? fmax(largest, fabs(y)) : largest;
        bool const same = x == y || (isnan(x) && isnan(y));
        worst = same ? worst : isnan(x - y) ? INFINITY : fmax(worst, fabs(x - y));
    }
    return worst / largest;
}

qat_status known_compare(const node_test *t, const qat_registry *registry, double *worst,
                         qat_error *err)
{
    qat_graph *graph = NULL;
    builder b = {.from = t->graph, .room = t->graph->room, .err = err, .batch = 1, .head_node = -1};
    qat_status st = qat_graph_create(&graph, registry, err);
    b.graph = graph;
    b.values = qat_arena_array(&b.arena, (size_t)t->graph->n_values + 1, sizeof *b.values);
    if (!st)
        st = b.values ? fold_all(&b) : qat_out_of_memory(err, t->folder);
    *worst = 0;
    for (int i = 0; i < t->n_outputs && !st; i++) {
        int const value = t->graph->outputs[i];
        if (t->outputs[i])
            *worst = fmax(*worst,
                          difference(value < 0 ? NULL : b.values[value].constant, t->outputs[i]));
    }
    qat_arena_free(&b.arena);
    qat_graph_free(graph);
    return st;
}

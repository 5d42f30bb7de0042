#include "board/probe.h"

#include "board/events.h"
#include "evaluate/data.h"
#include "qat/quantizer.h"

#include <stdio.h>
#include <stdlib.h>

enum { TAG_MAX = QAT_NAME_MAX + 32 };

struct qat_probe {
    qat_graph *graph;
    qat_board_histogram *of_node;
    bool *shown; /* nodes with a histogram */
};

/* ------------------------------------------------------------------ which nodes */

/** Does the node depend on the sample? Inputs before it are marked in `varies`. */
static bool depends(const qat_node *node, const bool *varies)
{
    bool any = qat_node_is_input(node);
    for (int i = 0; i < node->n_inputs; i++)
        any |= varies[node->inputs[i]->index];
    return any;
}

/**
 * Show what ops compute of a sample, up to the last output: behind it are losses. A quantizer's
 * output has its input's histogram, in steps.
 */
static qat_status choose_nodes(qat_probe *p, qat_error *err)
{
    int const n = qat_graph_nodes(p->graph), outputs = qat_graph_outputs(p->graph);
    bool *varies = calloc((size_t)n + 1, sizeof *varies);
    int last = 0;
    if (!varies)
        return qat_out_of_memory(err, "tensorboard");
    for (int i = 0; i < outputs; i++) {
        int const index = qat_graph_output_at(p->graph, i)->index;
        last = index > last ? index : last;
    }
    for (int i = 0; i <= last; i++) {
        const qat_node *node = qat_graph_node(p->graph, i);
        varies[i] = depends(node, varies);
        p->shown[i] = varies[i] && node->op && !qat_node_quantizer(node);
    }
    free(varies);
    return QAT_OK;
}

qat_status qat_probe_open(qat_probe **probe, qat_graph *graph, qat_error *err)
{
    size_t const n = (size_t)qat_graph_nodes(graph) + 1;
    qat_probe *p = *probe = calloc(1, sizeof *p);
    if (!p) {
        qat_graph_free(graph);
        return qat_out_of_memory(err, "tensorboard");
    }
    p->graph = graph;
    p->of_node = calloc(n, sizeof *p->of_node);
    p->shown = calloc(n, sizeof *p->shown);
    qat_status st = p->of_node && p->shown ? QAT_OK : qat_out_of_memory(err, "tensorboard");
    if (!st)
        st = choose_nodes(p, err);
    if (!st)
        st = qat_graph_plan(graph, 1, QAT_PLAN_KEEP, err);
    if (!st)
        qat_graph_init_params(graph, 0); /* those that a rewrite added and no other graph has */
    return st;
}

void qat_probe_free(qat_probe *probe)
{
    if (!probe)
        return;
    qat_graph_free(probe->graph);
    free(probe->of_node);
    free(probe->shown);
    free(probe);
}

qat_graph *qat_probe_graph(const qat_probe *probe)
{
    return probe->graph;
}

/* ------------------------------------------------------------------ running */

typedef void add_values(qat_board_histogram *h, const float *values, size_t count);

/** Run the samples, and add the values of all shown nodes to their histograms. */
static qat_status run_samples(qat_probe *p, const qat_input_info *input, const qat_dataset *data,
                              add_values *add, qat_error *err)
{
    qat_loader_options const o = {.batch = 1, .threads = 1, .prefetch = 1};
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_loader *loader = NULL;
    int const count = qat_dataset_info_of(data)->count;
    qat_status st = qat_open_loader(&loader, data, input, &o, err);
    for (int i = 0; !st && i < count && i < QAT_PROBE_SAMPLES; i++) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (!st)
            st = qat_feed_graph(p->graph, batch, 1, err);
        if (st)
            break;
        qat_graph_forward(p->graph, &run);
        for (int k = 0; k < qat_graph_nodes(p->graph); k++) {
            const qat_node *node = qat_graph_node(p->graph, k);
            if (p->shown[k] && node->value)
                add(&p->of_node[k], node->value, qat_shape_count(&node->shape));
        }
    }
    qat_loader_free(loader);
    return st;
}

qat_status qat_probe_write(qat_probe *p, const qat_input_info *input, const qat_dataset *data,
                           int64_t step, qat_writer *to, qat_error *err)
{
    char tag[TAG_MAX];
    int const n = qat_graph_nodes(p->graph);
    for (int i = 0; i < n; i++)
        p->of_node[i] = (qat_board_histogram){0};
    qat_status st = run_samples(p, input, data, qat_board_measure, err);
    if (!st)
        st = run_samples(p, input, data, qat_board_count, err);
    for (int i = 0; i < n && !st; i++) {
        (void)snprintf(tag, sizeof tag, "activations/%s", qat_graph_node(p->graph, i)->name);
        if (p->of_node[i].n > 0)
            qat_event_histogram(to, step, tag, &p->of_node[i]);
    }
    return st;
}

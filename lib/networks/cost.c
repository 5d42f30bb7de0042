/**
 * Estimates what a network costs on a device, layer by layer, before any training.
 *
 * flash  weights one byte each, a 32-bit bias a channel, 32-bit multiplier and shift (one pair a
 *        layer with layout uint8, one a channel with int8); the file's headers are not counted
 * ram    bytes of activations that are alive while the layer runs, one byte each: those that a
 *        later layer reads, its inputs and its output
 *
 * Both are lower bounds: a .qm also has headers, names and tables, and an arena has alignment and
 * the scratch of kernels.
 */
#include "layer/layer.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LAYER = -1, NETWORK_INPUT = -2 };

/** Which nodes are part of an exported model. */
static bool *reachable(const qat_graph *graph)
{
    int const n = qat_graph_nodes(graph);
    bool *used = calloc((size_t)n + 1, sizeof *used);
    if (!used)
        return NULL;
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        used[qat_graph_output_at(graph, i)->index] = true;
    for (int i = n - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(graph, i);
        for (int k = 0; used[i] && k < node->n_inputs; k++)
            used[node->inputs[k]->index] = true;
    }
    return used;
}

typedef struct costing {
    const qat_graph *graph;
    qat_layering fused;
    bool *used;
    int *layer_of; /* by node: the index of its layer in costs, NO_LAYER or NETWORK_INPUT */
    int *last_use; /* by layer: the last layer that reads it */
    bool *counted; /* by node: its parameters are counted in an earlier layer */
    qat_layer_cost *costs;
    int count;
} costing;

static int64_t sample_values(const qat_node *node)
{
    int64_t n = 1;
    for (int i = 1; i < node->shape.rank; i++)
        n *= node->shape.dims[i];
    return n;
}

/** Does a bias or batch norm begin a layer here, which becomes a 1x1 depthwise convolution? */
static bool begins_affine(const costing *l, const qat_node *node)
{
    int const fused = l->fused.of[node->index];
    bool const affine = qat_has_role(node, QAT_ROLE_BIAS) || qat_has_role(node, QAT_ROLE_NORM);
    return affine && l->fused.layers[fused].first == node;
}

static int64_t multiply_adds(const costing *l, const qat_node *node)
{
    if (begins_affine(l, node))
        return sample_values(node);
    if (!qat_has_role(node, QAT_ROLE_ACCUMULATE))
        return 0;
    const qat_shape *w = &qat_weights_of(node)->shape;
    int64_t const weights = (int64_t)qat_shape_count(w);
    if (node->op->quant->transposed) /* each value of the input meets the weights of its channel */
        return sample_values(node->inputs[0]) * weights / w->dims[w->rank - 1];
    return sample_values(node) * weights / w->dims[qat_channel_axis(node)];
}

/**
 * Add the parameters and bytes of one node. Batch norm disappears into weights and bias. Parameters
 * that several nodes share count for the first node; but a model holds their codes once per layer.
 */
static void add_parameters(costing *l, qat_layer_cost *c, const qat_node *node, qat_layout layout)
{
    int64_t const channels = qat_shape_channels(&node->shape);
    for (int i = node->n_data; i < node->n_inputs; i++) {
        const qat_node *p = node->inputs[i];
        int64_t const values = (int64_t)qat_shape_count(&p->shape);
        if (!p->trainable)
            continue;
        c->parameters += l->counted[p->index] ? 0 : values;
        c->flash += qat_is_fused(node) ? 0 : values;
        l->counted[p->index] = true;
    }
    if (begins_affine(l, node))
        c->flash += channels;
    if (qat_has_role(node, QAT_ROLE_ACCUMULATE) || begins_affine(l, node))
        c->flash += 4 * channels + 8 * (layout == QAT_LAYOUT_INT8 ? channels : 1);
}

static void append_op(qat_layer_cost *c, const char *op)
{
    size_t const n = strlen(c->op);
    snprintf(c->op + n, sizeof c->op - n, "%s%s", n ? "+" : "", op);
}

/** The layer of the first node of its fused layer, or NO_LAYER if it is the first itself. */
static int joins(const costing *l, const qat_node *node)
{
    int const fused = l->fused.of[node->index];
    const qat_node *first = fused < 0 ? node : l->fused.layers[fused].first;
    return first == node ? NO_LAYER : l->layer_of[first->index];
}

static void place(costing *l, const qat_node *node, qat_layout layout)
{
    int layer = joins(l, node);
    if (layer < 0) {
        layer = l->count++;
        snprintf(l->costs[layer].name, sizeof l->costs[layer].name, "%s", node->name);
    }
    l->layer_of[node->index] = layer;
    l->last_use[layer] = layer;
    qat_layer_cost *c = &l->costs[layer];
    append_op(c, node->op->name);
    c->shape = node->shape;
    c->macs += multiply_adds(l, node);
    add_parameters(l, c, node, layout);
    for (int i = 0; i < node->n_data; i++) {
        int const from = l->layer_of[node->inputs[i]->index];
        if (from >= 0)
            l->last_use[from] = layer;
    }
}

/** Add up the activations alive at each layer. The network's input lives until its last reader. */
static void count_ram(costing *l)
{
    int64_t input_bytes = 0;
    int input_last = -1;
    for (int i = 0; i < qat_graph_nodes(l->graph); i++) {
        const qat_node *node = qat_graph_node(l->graph, i);
        for (int k = 0; node->op && l->used[i] && k < node->n_data; k++)
            if (l->layer_of[node->inputs[k]->index] == NETWORK_INPUT && l->layer_of[i] > input_last)
                input_last = l->layer_of[i];
        if (qat_node_is_input(node) && l->used[i])
            input_bytes += sample_values(node);
    }
    for (int i = 0; i < l->count; i++) {
        int64_t alive = i <= input_last ? input_bytes : 0;
        for (int k = 0; k <= i; k++) {
            int64_t values = 1;
            for (int d = 1; d < l->costs[k].shape.rank; d++)
                values *= l->costs[k].shape.dims[d];
            if (l->last_use[k] >= i)
                alive += values;
        }
        l->costs[i].ram = alive;
    }
}

static void add_totals(costing *l)
{
    qat_layer_cost *total = &l->costs[l->count];
    snprintf(total->name, sizeof total->name, "total");
    total->shape = l->count ? l->costs[l->count - 1].shape : total->shape;
    for (int i = 0; i < l->count; i++) {
        total->parameters += l->costs[i].parameters;
        total->macs += l->costs[i].macs;
        total->flash += l->costs[i].flash;
        total->ram = l->costs[i].ram > total->ram ? l->costs[i].ram : total->ram;
    }
    l->count++;
}

/**
 * Assign all nodes to layers. A view belongs to the layer of its producer, so that lifetimes follow
 * the data.
 */
static void place_all(costing *l, qat_layout layout)
{
    int const n = qat_graph_nodes(l->graph);
    for (int i = 0; i < n; i++) {
        const qat_node *node = qat_graph_node(l->graph, i);
        l->layer_of[i] = qat_node_is_input(node) ? NETWORK_INPUT : NO_LAYER;
        if (!l->used[i] || !node->op)
            continue;
        if (node->op->quant && node->op->quant->is_view)
            l->layer_of[i] = l->layer_of[node->inputs[0]->index];
        else
            place(l, node, layout);
    }
}

qat_status qat_network_costs(const qat_graph *graph, qat_layout layout, qat_layer_cost **costs,
                             int *count, qat_error *err)
{
    size_t const n = (size_t)qat_graph_nodes(graph) + 1;
    qat_arena arena = {0};
    costing l = {.graph = graph, .used = reachable(graph)};
    l.layer_of = calloc(n, sizeof *l.layer_of);
    l.last_use = calloc(n, sizeof *l.last_use);
    l.counted = calloc(n, sizeof *l.counted);
    l.costs = calloc(n, sizeof *l.costs);
    bool const ok = qat_layering_find(&l.fused, graph, &arena) && l.used && l.layer_of &&
                    l.last_use && l.counted && l.costs;
    *costs = NULL;
    *count = 0;
    if (ok) {
        place_all(&l, layout);
        count_ram(&l);
        add_totals(&l);
        *costs = l.costs;
        *count = l.count;
    } else {
        free(l.costs);
    }
    qat_arena_free(&arena);
    free(l.used);
    free(l.layer_of);
    free(l.last_use);
    free(l.counted);
    return ok ? QAT_OK : qat_out_of_memory(err, "costs");
}

#include "layer/layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool qat_has_role(const qat_node *node, qat_quant_role role)
{
    return node && node->op && node->op->quant && node->op->quant->role == role;
}

bool qat_passes_codes(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_PASS) || qat_has_role(node, QAT_ROLE_POOL);
}

bool qat_is_fused(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_BIAS) || qat_has_role(node, QAT_ROLE_NORM) ||
           qat_has_role(node, QAT_ROLE_CLAMP);
}

/* ------------------------------------------------------------------ forward */

qat_node *qat_layering_next(const qat_layering *layering, const qat_node *node)
{
    qat_node *reader = layering->reader[node->index];
    return reader && reader->inputs[0] == node ? reader : NULL;
}

static void note_readers(qat_layering *l)
{
    for (int i = 0; i < qat_graph_nodes(l->graph); i++) {
        qat_node *node = qat_graph_node(l->graph, i);
        for (int k = 0; k < node->n_inputs; k++)
            if (qat_node_consumers(node->inputs[k]) == 1)
                l->reader[node->inputs[k]->index] = node;
    }
    for (int i = 0; i < qat_graph_outputs(l->graph); i++)
        l->reader[qat_graph_output_at(l->graph, i)->index] = NULL;
}

/** Take `node` into the layer if it has this role. Returns the node after it, or `node` again. */
static qat_node *take(const qat_layering *l, qat_layer *layer, qat_node **part, qat_node *node,
                      qat_quant_role role)
{
    if (!qat_has_role(node, role))
        return node;
    *part = layer->last = node;
    return qat_layering_next(l, node);
}

static qat_layer layer_from(const qat_layering *l, qat_node *node)
{
    qat_layer layer = {.first = node, .last = node, .min = -INFINITY, .max = INFINITY};
    if (!qat_is_fused(node)) {
        layer.head = node;
        node = qat_layering_next(l, node);
    }
    if (!qat_has_role(layer.head, QAT_ROLE_BINARY)) {
        node = take(l, &layer, &layer.bias, node, QAT_ROLE_BIAS);
        node = take(l, &layer, &layer.norm, node, QAT_ROLE_NORM);
    }
    take(l, &layer, &layer.clamp, node, QAT_ROLE_CLAMP);
    if (layer.clamp) {
        layer.min = layer.clamp->op->quant->clamp_min;
        layer.max = layer.clamp->op->quant->clamp_max;
    }
    return layer;
}

static bool begins_layer(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) || qat_has_role(node, QAT_ROLE_BINARY) ||
           qat_is_fused(node);
}

bool qat_layering_find(qat_layering *layering, const qat_graph *graph, qat_arena *arena)
{
    int const nodes = qat_graph_nodes(graph);
    size_t const n = (size_t)nodes + 1;
    qat_layering *l = layering;
    *l = (qat_layering){.graph = graph,
                        .layers = qat_arena_array(arena, n, sizeof *l->layers),
                        .of = qat_arena_array(arena, n, sizeof *l->of),
                        .reader = qat_arena_array(arena, n, sizeof *l->reader)};
    if (!l->layers || !l->of || !l->reader)
        return false;
    note_readers(l);
    for (int i = 0; i < nodes; i++)
        l->of[i] = -1;
    for (int i = 0; i < nodes; i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (l->of[i] >= 0 || !begins_layer(node))
            continue;
        qat_layer const layer = layer_from(l, node);
        const qat_node *parts[] = {layer.head, layer.bias, layer.norm, layer.clamp};
        for (int k = 0; k < 4; k++)
            if (parts[k])
                l->of[parts[k]->index] = l->count;
        l->layers[l->count++] = layer;
    }
    return true;
}

/* ------------------------------------------------------------------ back from its end */

qat_layer qat_layer_before(const qat_node *end)
{
    qat_node *node = end->inputs[0];
    qat_layer layer = {.last = node, .min = -INFINITY, .max = INFINITY};
    for (; qat_has_role(node, QAT_ROLE_CLAMP); node = node->inputs[0]) {
        const qat_quant *quant = node->op->quant;
        layer.clamp = layer.clamp ? layer.clamp : node;
        float const min = fminf(fmaxf(quant->clamp_min, layer.min), layer.max);
        layer.max = fminf(fmaxf(quant->clamp_max, layer.min), layer.max);
        layer.min = min;
    }
    if (qat_has_role(node, QAT_ROLE_NORM)) {
        layer.norm = node;
        node = node->inputs[0];
    }
    if (qat_has_role(node, QAT_ROLE_BIAS)) {
        layer.bias = node;
        node = node->inputs[0];
    }
    layer.head = layer.first = node;
    return layer;
}

/* ------------------------------------------------------------------ steps */

const qat_node *qat_first_step(const qat_node *node)
{
    char name[QAT_NAME_MAX];
    const char *at = strrchr(node->name, '@');
    if (!at || !qat_graph_find(node->graph, QAT_FRAME_NAME))
        return node;
    snprintf(name, sizeof name, "%.*s", (int)(at - node->name), node->name);
    const qat_node *first = qat_graph_find(node->graph, name);
    return first && first->op == node->op ? first : node;
}

bool qat_is_carry(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_PASS) && node->n_data == 2;
}

const qat_node *qat_carry_of(const qat_node *state)
{
    for (int i = 0; i < qat_graph_nodes(state->graph); i++) {
        const qat_node *node = qat_graph_node(state->graph, i);
        if (qat_is_carry(node) && node->inputs[1] == state)
            return node;
    }
    return state;
}

/* ------------------------------------------------------------------ weights */

int qat_channel_axis(const qat_node *head)
{
    return head->op->quant->channel_axis;
}

/** Are the channels the last dimension of the weights: one filter for each, as in a depthwise
 *  convolution? */
static bool is_by_channel(const qat_node *head)
{
    return qat_channel_axis(head) > 0;
}

int qat_output_channel(const qat_node *head, size_t i)
{
    const qat_shape *w = &qat_weights_of(head)->shape;
    if (is_by_channel(head))
        return (int)(i % (size_t)qat_shape_channels(w));
    return (int)(i / (qat_shape_count(w) / (size_t)w->dims[0]));
}

int qat_input_channel(const qat_node *head, size_t i, int channels)
{
    int const last = qat_shape_channels(&qat_weights_of(head)->shape);
    int const at = (int)(i % (size_t)last);
    return is_by_channel(head) ? at / (last / channels) : at % channels;
}

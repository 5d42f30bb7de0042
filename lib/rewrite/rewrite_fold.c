/**
 * Makes a float graph without batch norms.
 *
 *     conv(w) [-> bias(b)] -> batch_norm -> relu     conv(gamma w / s) -> bias(b') -> relu
 *     conv(w) -> relu                                conv(w) -> bias(0) -> relu
 *
 *     b' = beta + gamma (b - EMA(m)) / s
 *
 * If there was a batch norm, the new bias has its name, so that tensors keep their names. Weights
 * keep their names too, unless several layers read them.
 */
#include "fold/fold.h"
#include "rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

enum { BN_GAMMA = 1, BN_BETA, BN_EMA_MEAN, BN_EMA_VARIANCE };

static bool is_accumulating(const qat_layer *layer)
{
    return qat_has_role(layer->head, QAT_ROLE_ACCUMULATE);
}

/* ------------------------------------------------------------------ nodes */

/** A separate parameter if folding gives shared weights another value for each reader. */
static qat_node *folded_weights(rw_maker *m, const qat_layer *layer)
{
    char name[RW_NAME_MAX];
    const qat_node *w = layer->head->inputs[layer->head->n_data];
    if (!layer->norm || qat_node_consumers(w) == 1)
        return rw_input(m, w);
    qat_param_def def = w->init;
    def.name = rw_name(name, layer->head->name, "/folded");
    def.shape = w->shape;
    def.trainable = w->trainable;
    def.decay = w->decay;
    return qat_graph_param(m->graph, &def);
}

/** The name of the layer's only bias: the batch norm's, its own, or a new one. */
static const char *bias_name(char name[RW_NAME_MAX], const qat_layer *layer)
{
    if (layer->norm)
        return rw_name(name, layer->norm->name, "");
    return layer->bias ? rw_name(name, layer->bias->name, "")
                       : rw_name(name, layer->head->name, "/offset");
}

static qat_node *folded_bias(rw_maker *m, const qat_layer *layer, qat_node *x)
{
    char name[RW_NAME_MAX], param[RW_NAME_MAX];
    const qat_node *head = layer->head;
    if (layer->bias && !layer->norm)
        return rw_copy(m, layer->bias);
    bias_name(name, layer);
    qat_param_def const def = {.name = rw_name(param, name, "/bias"),
                               .shape = QAT_SHAPE(qat_shape_channels(&head->shape)),
                               .init = QAT_INIT_CONSTANT,
                               .trainable = true};
    return qat_apply2(m->graph, "bias", name, "", x, qat_graph_param(m->graph, &def));
}

/** Make the head and the nodes that belong to it, up to the layer's last affine node. */
static void make_accumulating(rw_maker *m, const qat_layer *layer, const qat_node *node)
{
    const qat_node *affine = layer->norm ? layer->norm : layer->bias ? layer->bias : layer->head;
    qat_node **image = &m->image[node->index];
    if (node == layer->head)
        *image = rw_apply(m, node, node->name, folded_weights(m, layer));
    else
        *image = m->image[node->inputs[0]->index];
    if (node == affine)
        *image = folded_bias(m, layer, *image);
}

void rw_make_folded_node(rw_maker *m, const qat_layer *layer, const qat_node *node)
{
    if (is_accumulating(layer) && node != layer->clamp)
        make_accumulating(m, layer, node);
    else
        m->image[node->index] = rw_copy(m, node);
}

/* ------------------------------------------------------------------ values */

static float value_of(const qat_layer *layer, int param, int channel)
{
    return layer->norm->inputs[param]->value[channel];
}

static float factor_of(const qat_layer *layer, int channel)
{
    return qat_fold_factor(value_of(layer, BN_GAMMA, channel),
                           value_of(layer, BN_EMA_VARIANCE, channel),
                           qat_attr(layer->norm, "epsilon"));
}

static void fill_weights(const qat_layer *layer, qat_node *made)
{
    const qat_node *w = layer->head->inputs[layer->head->n_data];
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++)
        made->value[i] = factor_of(layer, qat_output_channel(layer->head, i)) * w->value[i];
}

static void fill_bias(const qat_layer *layer, qat_node *made)
{
    double const epsilon = qat_attr(layer->norm, "epsilon");
    for (int c = 0; c < made->shape.dims[0]; c++) {
        made->value[c] = qat_fold_offset(value_of(layer, BN_GAMMA, c), value_of(layer, BN_BETA, c),
                                         value_of(layer, BN_EMA_MEAN, c),
                                         value_of(layer, BN_EMA_VARIANCE, c), epsilon);
        if (layer->bias)
            made->value[c] += factor_of(layer, c) * layer->bias->inputs[1]->value[c];
    }
}

void rw_fill_folded(const rw_analysis *a, qat_graph *folded)
{
    char name[RW_NAME_MAX];
    qat_graph_init_params(folded, 0);
    qat_graph_copy_params(folded, a->graph);
    for (int i = 0; i < a->layering.count; i++) {
        const qat_layer *layer = &a->layering.layers[i];
        if (!is_accumulating(layer) || !layer->norm)
            continue;
        const qat_node *head = qat_graph_find(folded, layer->head->name);
        if (!head)
            continue; /* does not lead to an output */
        fill_weights(layer, head->inputs[head->n_data]);
        fill_bias(layer, qat_graph_find(folded, bias_name(name, layer))->inputs[1]);
    }
}

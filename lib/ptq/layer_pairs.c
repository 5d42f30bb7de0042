#include "ptq/layer_pairs.h"

#include <math.h>
#include <stdlib.h>

/** Is its parameter number k (from 0) really a parameter, and does nothing else read it? */
static bool owns(const qat_node *node, int k)
{
    const qat_node *p = node->inputs[node->n_data + k];
    return p->is_param && qat_node_consumers(p) == 1;
}

/** Does `second` read each channel by weights that belong to that channel only? */
static bool reads_by_channel(const qat_node *second, int channels)
{
    int const last = qat_shape_channels(&qat_weights_of(second)->shape);
    int const inputs = qat_shape_channels(&second->inputs[0]->shape);
    bool const by_channel = qat_channel_axis(second) > 0;
    bool const grouped = !by_channel && qat_weights_of(second)->shape.rank == 4 && last != inputs;
    bool const regrouped = by_channel && inputs != channels;
    return owns(second, 0) && !grouped && !regrouped && last % channels == 0;
}

/** Does clamp(s x) = s clamp(x) hold for all s > 0? */
static bool commutes(float min, float max)
{
    return (min == 0 || isinf(min)) && (max == 0 || isinf(max));
}

/**
 * Walk from the end of a layer to the next layer that has weights. Returns false if a node on the
 * way does not commute with scales, but for a clamp, which is noted.
 */
static bool walk(const qat_layering *l, const qat_node *node, qat_layer_pair *p)
{
    for (node = qat_layering_next(l, node); node && !qat_has_role(node, QAT_ROLE_ACCUMULATE);
         node = qat_layering_next(l, node)) {
        if (qat_has_role(node, QAT_ROLE_CLAMP)) {
            const qat_quant *quant = node->op->quant;
            bool const scales = commutes(quant->clamp_min, quant->clamp_max);
            p->behind_bound |= !scales;
            p->rectified |= scales && quant->clamp_min == 0;
        } else if (!qat_passes_codes(node)) {
            return false;
        }
    }
    p->second = node;
    return node != NULL;
}

static bool pair_at(const qat_layering *l, const qat_layer *layer, qat_layer_pair *p)
{
    const qat_node *head = layer->head;
    if (!qat_has_role(head, QAT_ROLE_ACCUMULATE) || !owns(head, 0))
        return false;
    *p = (qat_layer_pair){.first = head,
                          .bias = layer->bias,
                          .bn = layer->norm,
                          .channels = qat_shape_channels(&head->shape)};
    const qat_node *affine = layer->norm ? layer->norm : layer->bias ? layer->bias : head;
    if (!walk(l, affine, p))
        return false;
    if (p->bias && !owns(p->bias, 0))
        return false;
    if (p->bn && (!owns(p->bn, 0) || !owns(p->bn, 1)))
        return false;
    return reads_by_channel(p->second, p->channels);
}

qat_status qat_layer_pairs(const qat_graph *graph, qat_layer_pair **pairs, int *count,
                           qat_error *err)
{
    qat_arena arena = {0};
    qat_layering l;
    qat_layer_pair *found = calloc((size_t)qat_graph_nodes(graph) + 1, sizeof *found);
    bool const ok = found && qat_layering_find(&l, graph, &arena);
    *count = 0;
    for (int i = 0; ok && i < l.count; i++)
        *count += pair_at(&l, &l.layers[i], &found[*count]);
    qat_arena_free(&arena);
    if (!ok) {
        free(found);
        found = NULL;
    }
    *pairs = found;
    return ok ? QAT_OK : qat_out_of_memory(err, "pairs of layers");
}

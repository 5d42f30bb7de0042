/**
 * With which settings each layer is quantized: the options for all layers, then [quant.layer
 * PATTERN] in order.
 */
#include "base/words.h"
#include "certify/certify.h"

#include <string.h>

/** The node whose name a pattern is compared with; NULL: nothing of this node can be set. */
static const qat_node *named(const cert *c, const qat_node *node)
{
    const cert_node *info = cert_info(c, node);
    if (info->layer >= 0) {
        const cert_layer *l = &c->layers[info->layer];
        return l->head ? l->head : l->first;
    }
    if (node->is_param || info->kind == CERT_PASS || info->kind == CERT_POOL ||
        (node->op && info->kind == CERT_NONE))
        return NULL;
    return node;
}

/** The first or the last node with weights. */
static const qat_node *end_of(const cert *c, bool last)
{
    const qat_node *found = NULL;
    for (int i = 0; i < c->count; i++)
        if (c->nodes[i].kind == CERT_ACCUMULATE && (last || !found))
            found = qat_graph_node(c->graph, i);
    return found;
}

static bool applies(const cert *c, const char *pattern, const qat_node *name)
{
    if (strcmp(pattern, "@first") == 0)
        return name == end_of(c, false);
    if (strcmp(pattern, "@last") == 0)
        return name == end_of(c, true);
    return qat_matches(pattern, name->name);
}

static const char *or_ema(const char *name)
{
    return *name ? name : "ema";
}

static void apply(const qat_quant_layer *from, cert_settings *s)
{
    if (from->weight_bits)
        s->weight_bits = from->weight_bits;
    if (from->activation_bits)
        s->activation_bits = from->activation_bits;
    if (from->input_bits)
        s->input_bits = from->input_bits;
    if (from->per_channel >= 0)
        s->per_channel = from->per_channel;
    if (from->symmetric >= 0)
        s->symmetric = from->symmetric;
    if (from->power_of_two >= 0)
        s->power_of_two = from->power_of_two;
    if (from->is_float >= 0)
        s->is_float = from->is_float;
    if (*from->weight_ranges)
        s->weights = from->weight_ranges;
    if (*from->activation_ranges)
        s->activations = from->activation_ranges;
}

static int at_least(int bits, int least)
{
    return bits > least ? bits : least;
}

int cert_weight_bits(const cert *c, const cert_settings *settings)
{
    return at_least(settings->weight_bits, c->source->quant.least_weight_bits);
}

int cert_activation_bits(const cert *c, const cert_settings *settings)
{
    return at_least(settings->activation_bits, c->source->quant.least_activation_bits);
}

const qat_node *cert_first_step(const cert *c, const qat_node *node)
{
    char name[QAT_NAME_MAX];
    const char *mark = strrchr(node->name, '@');
    if (!mark || !qat_graph_find(c->graph, "input/frame"))
        return node;
    memcpy(name, node->name, (size_t)(mark - node->name));
    name[mark - node->name] = 0;
    const qat_node *first = qat_graph_find(c->graph, name);
    return first && first->op == node->op ? first : node;
}

qat_status cert_settle(cert *c)
{
    const qat_quant_options *o = &c->source->quant;
    bool const int8 = o->layout == QAT_LAYOUT_INT8;
    for (int i = 0; i < c->count; i++) {
        const qat_node *name = named(c, qat_graph_node(c->graph, i));
        cert_settings *s = &c->nodes[i].settings;
        *s = (cert_settings){o->weight_bits,
                             o->activation_bits,
                             o->input_bits,
                             int8,
                             int8,
                             o->power_of_two,
                             false,
                             or_ema(o->weight_ranges),
                             or_ema(o->activation_ranges)};
        for (int k = 0; name && k < o->n_layers; k++)
            if (applies(c, o->layers[k].pattern, name))
                apply(&o->layers[k], s);
    }
    for (int i = 0; i < c->count; i++) {
        const qat_node *node = qat_graph_node(c->graph, i);
        c->nodes[i].settings = cert_info(c, cert_first_step(c, node))->settings;
        if (qat_node_is_op(node, "carry"))
            c->nodes[node->inputs[1]->index].settings = cert_info(c, node->inputs[0])->settings;
    }
    return cert_narrow(c);
}

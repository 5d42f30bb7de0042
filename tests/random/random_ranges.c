/*
 * Chooses where a random network's ranges come from, and which layers have other settings. It uses
 * random numbers of its own, so the rest of the network stays the same.
 */
#include "random/random_net.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_RANGES = 23, STREAM_INPUT_BITS, STREAM_NORMALIZED, STREAM_FULL };

static bool chance(qat_rng *rng, uint32_t percent)
{
    return qat_rng_below(rng, 100) < percent;
}

static const char *some_quantizer(qat_rng *rng)
{
    static const char *const names[] = {"ema", "tqt", "lsq", "pact"};
    return names[qat_rng_below(rng, 4)];
}

static const char *some_weights_quantizer(qat_rng *rng)
{
    static const char *const names[] = {"ema", "tqt", "lsq", "bwn", "twn"};
    return names[qat_rng_below(rng, 5)];
}

static void set_name(char *to, const char *name)
{
    snprintf(to, QAT_QUANTIZER_NAME_MAX, "%s", name);
}

static int some_bits(qat_rng *rng)
{
    return 2 + (int)qat_rng_below(rng, 7);
}

static bool is_layer(const qat_node *node)
{
    static const char *const ops[] = {
        "conv2d", "depthwise_conv2d", "fully_connected", "add",  "sub", "mul",
        "concat", "softmax",          "logistic",        "tanh", NULL};
    for (int i = 0; node->op && ops[i]; i++)
        if (strcmp(node->op->name, ops[i]) == 0)
            return true;
    return false;
}

static void override(qat_rng *rng, const qat_quant_options *o, qat_quant_layer *layer)
{
    layer->weight_bits = chance(rng, 50) ? some_bits(rng) : 0;
    bool const wide = o->activation_bits == QAT_WIDE_BITS; /* so are all layers then */
    layer->activation_bits = chance(rng, 60) ? some_bits(rng) : 0;
    if (wide)
        layer->activation_bits = layer->activation_bits ? QAT_WIDE_BITS : 0;
    if (o->layout == QAT_LAYOUT_INT8)
        layer->per_channel = (int)qat_rng_below(rng, 2);
    else
        layer->symmetric = (int)qat_rng_below(rng, 2);
    layer->power_of_two = chance(rng, 20) && !wide ? 1 : -1;
    if (chance(rng, 40))
        set_name(layer->weight_ranges, some_weights_quantizer(rng));
    if (chance(rng, 40) && !wide)
        set_name(layer->activation_ranges, some_quantizer(rng));
}

/** With a stream of its own, so that all else stays. */
static void choose_input_bits(const random_net *net, qat_quant_options *o)
{
    qat_rng rng = qat_rng_at(net->seed, STREAM_INPUT_BITS, net->index);
    for (int i = 0; i < o->n_layers && o->activation_bits != QAT_WIDE_BITS; i++)
        o->layers[i].input_bits = chance(&rng, 30) ? some_bits(&rng) : 0;
}

static bool is_scheme(const char *quantizer)
{
    return strcmp(quantizer, "bwn") == 0 || strcmp(quantizer, "twn") == 0;
}

static void limit_bits(qat_quant_options *o, int most)
{
    o->weight_bits = o->weight_bits > most ? most : o->weight_bits;
    for (int i = 0; i < o->n_layers; i++)
        if (o->layers[i].weight_bits > most)
            o->layers[i].weight_bits = most;
}

/** Weights that are normalised, or that freeze, or have more bits; with a stream of its own. */
static void choose_normalized(const random_net *net, qat_quant_options *o)
{
    qat_rng rng = qat_rng_at(net->seed, STREAM_NORMALIZED, net->index);
    bool schemes = is_scheme(o->weight_ranges);
    for (int i = 0; i < o->n_layers; i++)
        schemes |= is_scheme(o->layers[i].weight_ranges);
    if (chance(&rng, 20) && !schemes) {
        o->freeze_bits = some_bits(&rng);
        o->freeze_threshold = o->freeze_threshold_end = 0.2;
        o->freeze_share = 0.5;
    } else if (chance(&rng, 25)) {
        static const char *const names[] = {"dorefa", "weight_norm", "apot"};
        static const int bits[] = {7, 8, 5}; /* at most */
        uint32_t const by = qat_rng_below(&rng, 3);
        set_name(o->weight_ranges, names[by]);
        limit_bits(o, bits[by]);
    }
    if (chance(&rng, 20)) { /* as inside a schedule of bits */
        o->least_weight_bits =
            2 + (int)qat_rng_below(&rng, strcmp(o->weight_ranges, "apot") ? 6 : 4);
        o->least_activation_bits = some_bits(&rng);
    }
}

/** Learned weights, a half of them with their lowest code. */
static void choose_full(const random_net *net, qat_quant_options *o)
{
    qat_rng rng = qat_rng_at(net->seed, STREAM_FULL, net->index);
    for (int i = -1; i < o->n_layers; i++) {
        char *name = i < 0 ? o->weight_ranges : o->layers[i].weight_ranges;
        bool const learned = !strcmp(name, "tqt") || !strcmp(name, "lsq");
        if (chance(&rng, 50) && learned)
            set_name(name, *name == 't' ? "tqt_full" : "lsq_full");
    }
}

void random_net_choose_ranges(random_net *net)
{
    qat_rng rng = qat_rng_at(net->seed, STREAM_RANGES, net->index);
    qat_quant_options *o = &net->options;
    if (chance(&rng, 40))
        return; /* the plain scheme */
    set_name(o->weight_ranges, some_weights_quantizer(&rng));
    set_name(o->activation_ranges, some_quantizer(&rng));
    o->power_of_two = chance(&rng, 25);
    if (o->activation_bits == QAT_WIDE_BITS) {
        set_name(o->activation_ranges, "ema");
        o->power_of_two = false;
    }
    o->learn_delay = 1 + (int64_t)qat_rng_below(&rng, (uint32_t)net->calibration_steps + 1);
    for (int i = 0; i < qat_graph_nodes(net->graph) && o->n_layers < 6; i++) {
        const qat_node *node = qat_graph_node(net->graph, i);
        if (!is_layer(node) || !chance(&rng, 30))
            continue;
        o->layers[o->n_layers] = qat_quant_layer_defaults(node->name);
        override(&rng, o, &o->layers[o->n_layers++]);
    }
    choose_input_bits(net, o);
    choose_normalized(net, o);
    choose_full(net, o);
}

void random_net_make_narrow(random_net *net)
{
    qat_quant_options *o = &net->options;
    if (o->activation_bits != QAT_WIDE_BITS)
        return;
    o->activation_bits = 8;
    for (int i = 0; i < o->n_layers; i++)
        o->layers[i].activation_bits = 0;
}

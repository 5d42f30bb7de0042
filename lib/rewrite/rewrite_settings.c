/**
 * Finds the settings of each layer: the options, then every override whose pattern matches its
 * name, in order. A layer has the name of its head, or, without one, of its first node. Pools,
 * reshapes and dropout pass codes on and have no settings of their own.
 */
#include "base/words.h"
#include "fakequant/quantizer.h"
#include "fakequant/schemes.h"
#include "rewrite/rewrite.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/** Is this an input that only losses read, such as the labels? */
static bool is_target(const rw_analysis *a, const qat_node *node)
{
    for (int i = node->index + 1; i < a->count; i++) {
        const qat_node *reader = qat_graph_node(a->graph, i);
        for (int k = 0; k < reader->n_inputs; k++)
            if (reader->inputs[k] == node && reader->op->quant)
                return false;
    }
    return !node->op && !a->nodes[node->index].is_output;
}

/** The node whose name an override must match, or NULL if there is nothing to set. */
static const qat_node *owner_of(const rw_analysis *a, const qat_node *node)
{
    const qat_layer *layer = rw_layer_of(a, node);
    if (layer)
        return layer->first;
    if (node->is_param || qat_passes_codes(node) || (node->op && !node->op->quant))
        return NULL;
    return is_target(a, node) ? NULL : node;
}

/** The first or last convolution or fully connected layer. */
static const qat_node *end_layer(const rw_analysis *a, bool last)
{
    const qat_node *found = NULL;
    for (int i = 0; i < a->count && (last || !found); i++)
        if (qat_has_role(qat_graph_node(a->graph, i), QAT_ROLE_ACCUMULATE))
            found = qat_graph_node(a->graph, i);
    return found;
}

static bool matches(const rw_analysis *a, const qat_quant_layer *layer, const qat_node *owner)
{
    if (strcmp(layer->pattern, "@first") == 0 || strcmp(layer->pattern, "@last") == 0)
        return owner == end_layer(a, layer->pattern[1] == 'l');
    return qat_matches(layer->pattern, owner->name);
}

/** The layer whose codes a matching node passes on; NULL: no such node matches. */
static const qat_node *source_of_matching(const rw_analysis *a, const char *pattern)
{
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        if (!qat_passes_codes(node) || !qat_matches(pattern, node->name))
            continue;
        while (qat_passes_codes(node))
            node = node->inputs[0];
        return owner_of(a, node);
    }
    return NULL;
}

static qat_status nothing_matches(const rw_analysis *a, const qat_quant_layer *layer,
                                  qat_error *err)
{
    static const char *const ends[] = {"@first", "@last"};
    const char *nearest = "none: the network has no layers";
    int distance = 1 << 20;
    const qat_node *source = source_of_matching(a, layer->pattern);
    if (source)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s%s[quant.layer %s]: it passes on the codes of %s: set those",
                        layer->where, *layer->where ? ": " : "", layer->pattern, source->name);
    for (size_t i = 0; *layer->pattern == '@' && i < sizeof ends / sizeof *ends; i++)
        if (qat_edit_distance(layer->pattern, ends[i]) < distance) {
            distance = qat_edit_distance(layer->pattern, ends[i]);
            nearest = ends[i];
        }
    for (int i = 0; *layer->pattern != '@' && i < a->count; i++) {
        const qat_node *owner = owner_of(a, qat_graph_node(a->graph, i));
        int const d = owner ? qat_edit_distance(layer->pattern, owner->name) : distance;
        if (d < distance) {
            distance = d;
            nearest = owner->name;
        }
    }
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s%s[quant.layer %s]: no layer matches; the nearest is %s", layer->where,
                    *layer->where ? ": " : "", layer->pattern, nearest);
}

/** Refuse an override for a kind of tensor that the layer does not have, or for another layout. */
static qat_status check_legal(const qat_quant_options *o, const qat_quant_layer *layer,
                              qat_error *err)
{
    const char *colon = *layer->where ? ": " : "";
    if (layer->per_channel == 1 && o->layout == QAT_LAYOUT_UINT8)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s%s[quant.layer %s]: per_channel = yes needs quant.layout = int8",
                        layer->where, colon, layer->pattern);
    if (layer->symmetric == 0 && o->layout == QAT_LAYOUT_INT8)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s%s[quant.layer %s]: symmetric = no needs quant.layout = uint8",
                        layer->where, colon, layer->pattern);
    return QAT_OK;
}

/* ------------------------------------------------------------------ quantizers */

/** The existing name that is most similar. */
static const char *nearest_quantizer(const qat_registry *registry, const char *name, bool weights)
{
    const char *nearest = "ema";
    int distance = 1 << 20;
    for (int i = 0; i < qat_registry_count(registry); i++) {
        const qat_quantizer *q = qat_op_quantizer(qat_registry_at(registry, i));
        int const d = q && q->weights == weights ? qat_edit_distance(name, q->name) : distance;
        if (d < distance) {
            distance = d;
            nearest = q->name;
        }
    }
    return nearest;
}

/** "ema, tqt, lsq": those of weights, or of activations, cut to fit. */
static void list_quantizers(const qat_registry *registry, bool weights, char *all, size_t max)
{
    size_t at = 0;
    *all = 0;
    for (int i = 0; i < qat_registry_count(registry) && at < max; i++) {
        const qat_op *op = qat_registry_at(registry, i);
        const qat_quantizer *q = qat_op_quantizer(op);
        bool const is_first = q && qat_find_quantizer(registry, q->name, weights) == op;
        if (q && q->weights == weights && is_first)
            at += (size_t)snprintf(all + at, max - at, "%s%s", at ? ", " : "", q->name);
    }
}

qat_status qat_check_quantizer(const qat_registry *registry, const char *where, const char *name,
                               bool weights, qat_error *err)
{
    static const char *const kinds[] = {"activations", "weights"};
    if (qat_find_quantizer(registry, name, weights))
        return QAT_OK;
    if (qat_find_quantizer(registry, name, !weights))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s = %s: this quantizer is not for %s: set %s_ranges = %s", where, name,
                        kinds[weights], weights ? "activation" : "weight", name);
    char all[256];
    list_quantizers(registry, weights, all, sizeof all);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s = %s: there is no such quantizer; the nearest is %s (of %s)", where, name,
                    nearest_quantizer(registry, name, weights), all);
}

static qat_status find_quantizer(const rw_analysis *a, const char *where, const char *pattern,
                                 const char *name, bool weights, const qat_op **op, qat_error *err)
{
    char key[2 * QAT_NAME_MAX + QAT_QUANT_WHERE_MAX];
    const qat_registry *registry = qat_graph_registry(a->graph);
    if (!*name)
        return QAT_OK;
    snprintf(key, sizeof key, *pattern ? "%s%s[quant.layer %s] %s" : "%s%s%s%s", where,
             *where ? ": " : "", pattern, weights ? "weight_ranges" : "activation_ranges");
    *op = qat_find_quantizer(registry, name, weights);
    return *op ? QAT_OK : qat_check_quantizer(registry, key, name, weights, err);
}

/* ------------------------------------------------------------------ settings */

static void set_if(int value, bool *setting)
{
    if (value >= 0)
        *setting = value != 0;
}

static qat_status override(const rw_analysis *a, const qat_quant_layer *layer, rw_settings *s,
                           qat_error *err)
{
    bool per_channel = !s->per_tensor;
    if (layer->weight_bits) {
        s->weight_bits = layer->weight_bits;
        s->bits_from = layer;
    }
    if (layer->activation_bits)
        s->activation_bits = layer->activation_bits;
    if (layer->input_bits)
        s->input_bits = layer->input_bits;
    set_if(layer->per_channel, &per_channel);
    s->per_tensor = !per_channel;
    set_if(layer->symmetric, &s->symmetric);
    set_if(layer->power_of_two, &s->power_of_two);
    s->is_float = layer->is_float >= 0 ? layer->is_float != 0 : s->is_float;
    qat_status const st = find_quantizer(a, layer->where, layer->pattern, layer->weight_ranges,
                                         true, &s->weights, err);
    return st ? st
              : find_quantizer(a, layer->where, layer->pattern, layer->activation_ranges, false,
                               &s->activations, err);
}

static qat_status override_matching(rw_analysis *a, const qat_quant_layer *layer, qat_error *err)
{
    bool matched = false;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < a->count; i++) {
        const qat_node *owner = owner_of(a, qat_graph_node(a->graph, i));
        if (!owner || !matches(a, layer, owner))
            continue;
        matched = true;
        st = override(a, layer, &a->settings[i], err);
    }
    return !st && !matched ? nothing_matches(a, layer, err) : st;
}

static qat_status settings_of_all(const rw_analysis *a, const qat_quant_options *o, rw_settings *s,
                                  qat_error *err)
{
    const char *weights = *o->weight_ranges ? o->weight_ranges : "ema";
    const char *activations = *o->activation_ranges ? o->activation_ranges : "ema";
    *s = (rw_settings){.weight_bits = o->weight_bits,
                       .activation_bits = o->activation_bits,
                       .input_bits = o->input_bits,
                       .symmetric = o->layout == QAT_LAYOUT_INT8,
                       .per_tensor = o->layout == QAT_LAYOUT_UINT8,
                       .power_of_two = o->power_of_two,
                       .dampen = o->dampen,
                       .freeze_bits = o->freeze_bits};
    qat_status const st = find_quantizer(a, "", "", weights, true, &s->weights, err);
    return st ? st : find_quantizer(a, "", "", activations, false, &s->activations, err);
}

/** inq freezes folded weights, so these must not depend on the statistics of the batch any more. */
static qat_status check_folded_inq(const rw_analysis *a, const qat_quant_options *o, qat_error *err)
{
    for (int i = 0; o->bn_freeze_delay > o->weight_delay && i < a->layering.count; i++) {
        const qat_layer *layer = &a->layering.layers[i];
        const rw_settings *s = &a->settings[layer->first->index];
        bool const folds = layer->norm && !s->is_float && !rw_float_activation(s);
        if (folds && s->weights == &qat_op_inq_weights)
            return qat_fail(
                err, QAT_ERR_ARGUMENT,
                "%s: inq freezes weights into which batch norm is folded, so batch norm "
                "must keep its averages from then on: set bn_freeze_delay to the step at which "
                "weights are quantized (weight_delay, or else quant_delay) and bn_reestimate = 0, "
                "or activation_ranges = none",
                layer->first->name);
    }
    return QAT_OK;
}

static bool quantizes_weights(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_ACCUMULATE) ||
           (qat_has_role(node, QAT_ROLE_CUSTOM) && node->op->quant->weight_params != 0);
}

/** Schemes with codes of their own do not freeze weights. */
static qat_status check_freezing(const rw_analysis *a, qat_error *err)
{
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        const rw_settings *s = &a->settings[i];
        if (quantizes_weights(node) && !s->is_float && rw_freezes(s) &&
            !qat_is_quantizer_op(rw_quantizer_op(s->weights, s)))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%s: quant.freeze_threshold cannot freeze weights by %s, only those by "
                            "ema, tqt, lsq, tqt_full, lsq_full or a plugin's quantizer",
                            node->name, qat_op_quantizer(s->weights)->name);
    }
    return QAT_OK;
}

/** The most bits that weights of a scheme have; 8: no limit of its own. */
static int most_bits_of(const qat_op *by)
{
    if (by == &qat_op_dorefa_weights)
        return DOREFA_MOST_BITS;
    if (by == &qat_op_apot_weights)
        return APOT_MOST_BITS;
    return by == &qat_op_inq_weights ? INQ_MOST_BITS : 8;
}

static qat_status too_many_bits(const qat_node *node, const rw_settings *s, int most,
                                qat_error *err)
{
    const char *scheme = qat_op_quantizer(s->weights)->name;
    const qat_quant_layer *from = s->bits_from;
    if (!from)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: quant.weight_bits = %d, but weights by %s have 2 to %d bits",
                        node->name, s->weight_bits, scheme, most);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s%s[quant.layer %s] weight_bits = %d, but weights by %s have 2 to %d bits "
                    "(%s)",
                    from->where, *from->where ? ": " : "", from->pattern, s->weight_bits, scheme,
                    most, node->name);
}

static qat_status check_scheme_bits(const rw_analysis *a, qat_error *err)
{
    for (int i = 0; i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        const rw_settings *s = &a->settings[i];
        int const most = most_bits_of(s->weights);
        if (quantizes_weights(node) && !s->is_float && s->weight_bits > most)
            return too_many_bits(node, s, most, err);
    }
    return QAT_OK;
}

/** Why weights by this quantizer cannot begin with so many bits; NULL: they can. */
static const char *no_schedule(const qat_op *by, int most)
{
    if (by == &qat_op_dorefa_weights && most > DOREFA_MOST_BITS)
        return ", which have at most 7 bits";
    if (by == &qat_op_apot_weights && most > APOT_MOST_BITS)
        return ", which have at most 5 bits";
    return by == &qat_op_inq_weights ? "" : NULL;
}

static qat_status check_bits_schedule(const rw_analysis *a, const qat_quant_options *o,
                                      qat_error *err)
{
    int const most = o->n_weight_stages ? o->weight_stages[0].bits : o->least_weight_bits;
    for (int i = 0; most > 0 && i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        const qat_op *by = a->settings[i].weights;
        const char *why = no_schedule(by, most);
        if (quantizes_weights(node) && !a->settings[i].is_float && why)
            return qat_fail(
                err, QAT_ERR_ARGUMENT,
                "%s: quant.weight_bits_schedule cannot be combined with weights by %s%s",
                node->name, qat_op_quantizer(by)->name, why);
    }
    return QAT_OK;
}

/** A copy in a later step has the settings of its first step, a state those of what it becomes. */
static void follow(rw_analysis *a, const qat_node *node)
{
    a->settings[node->index] = a->settings[qat_first_step(node)->index];
    if (qat_is_carry(node))
        a->settings[node->inputs[1]->index] = a->settings[node->inputs[0]->index];
}

/** Every op of a network with 16-bit activations must have an integer form that takes them. */
static qat_status check_wide(const rw_analysis *a, const qat_quant_options *o, qat_error *err)
{
    for (int i = 0; o->activation_bits == QAT_WIDE_BITS && i < a->count; i++) {
        const qat_node *node = qat_graph_node(a->graph, i);
        if (a->nodes[i].copied && node->op && node->op->quant && !node->op->quant->takes_wide)
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "%s: op %s takes no %d-bit activations (quant.activation_bits = %d)",
                            node->name, node->op->name, QAT_WIDE_BITS, QAT_WIDE_BITS);
    }
    return QAT_OK;
}

static qat_status narrow(rw_analysis *a, qat_error *err)
{
    int *wanted = qat_arena_array(&a->arena, (size_t)a->count + 1, sizeof *wanted);
    if (!wanted)
        return qat_out_of_memory(err, "rewrite");
    rw_narrow_tensors(a, wanted);
    rw_input_settings(a);
    return QAT_OK;
}

qat_status rw_settle(rw_analysis *a, const qat_quant_options *o, qat_error *err)
{
    rw_settings all;
    qat_status st = settings_of_all(a, o, &all, err);
    for (int i = 0; !st && i < a->count; i++)
        a->settings[i] = all;
    for (int i = 0; !st && i < o->n_layers; i++) {
        st = check_legal(o, &o->layers[i], err);
        if (!st)
            st = override_matching(a, &o->layers[i], err);
    }
    for (int i = 0; !st && i < a->count; i++)
        follow(a, qat_graph_node(a->graph, i));
    if (!st)
        st = narrow(a, err);
    if (!st)
        st = check_wide(a, o, err);
    if (!st)
        st = check_scheme_bits(a, err);
    if (!st)
        st = check_freezing(a, err);
    if (!st)
        st = check_bits_schedule(a, o, err);
    return st ? st : check_folded_inq(a, o, err);
}

bool rw_same_codes(const rw_settings *x, const rw_settings *y)
{
    return x->activation_bits == y->activation_bits && x->activations == y->activations &&
           x->power_of_two == y->power_of_two && x->is_float == y->is_float;
}

bool rw_float_activation(const rw_settings *settings)
{
    return settings->activations == &qat_op_float_activation;
}

/* ------------------------------------------------------------------ what cannot become integers */

static const char *of_quantizer(const qat_op *op, int bits)
{
    const qat_quantizer *q = op->quant->quantizer;
    return q->no_integers ? q->no_integers(bits) : NULL;
}

/**
 * The reason why a layer cannot become integers, at the node after which it is named; NULL: it can,
 * or this is another node.
 */
static const char *reason_of(const rw_analysis *a, const qat_node *node)
{
    const rw_settings *s = &a->settings[node->index];
    if (owner_of(a, node) != node)
        return NULL;
    if (s->is_float)
        return "layers left in float ([quant.layer ...] float = yes)";
    const char *weights = quantizes_weights(node) ? of_quantizer(s->weights, s->weight_bits) : NULL;
    return weights || !node->op ? weights : of_quantizer(s->activations, s->activation_bits);
}

/**
 * Write the names of the layers with this reason (NULL: any), in the graph's order: at most so
 * many, and how many more there are.
 */
static size_t write_names(const rw_analysis *a, const char *reason, int most, char *names,
                          size_t max)
{
    size_t at = 0;
    int n = 0;
    for (int i = 0; i < a->count && at < max; i++) {
        const char *why = reason_of(a, qat_graph_node(a->graph, i));
        if (why && (!reason || why == reason) && n++ < most)
            at += (size_t)snprintf(names + at, max - at, "%s%s", at ? ", " : "",
                                   qat_graph_node(a->graph, i)->name);
    }
    if (n > most && at < max)
        at += (size_t)snprintf(names + at, max - at, " and %d more", n - most);
    return at;
}

void rw_float_names(const rw_analysis *a, char *names, size_t max)
{
    *names = 0;
    write_names(a, NULL, INT_MAX, names, max);
}

/** Is this the first layer with its reason? */
static bool is_first(const rw_analysis *a, int node, const char *reason)
{
    for (int i = 0; i < node; i++)
        if (reason_of(a, qat_graph_node(a->graph, i)) == reason)
            return false;
    return true;
}

void rw_float_reasons(const rw_analysis *a, char *text, size_t max)
{
    enum { MOST_NAMES = 5 };
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < a->count && at < max; i++) {
        const char *reason = reason_of(a, qat_graph_node(a->graph, i));
        if (!reason || !is_first(a, i, reason))
            continue;
        at += (size_t)snprintf(text + at, max - at, "%s%s cannot become integers: ", at ? "; " : "",
                               reason);
        at += at < max ? write_names(a, reason, MOST_NAMES, text + at, max - at) : 0;
    }
}

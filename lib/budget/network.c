/** Finds the layers of a network and the tensors whose bits a budget chooses. */
#include "budget/network.h"

#include "base/words.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/schemes.h"
#include "finetune/pattern.h"
#include "infer/model/qm_layout.h"
#include "layer/layer.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS_MOST = 8 };

int64_t budget_packed_bytes(const qat_shape *weights, int bits, size_t list, bool few)
{
    size_t const rows = (size_t)weights->dims[0], row = qat_shape_count(weights) / rows;
    size_t bytes = list + rows * (bits < BITS_MOST ? qm_packed_row_bytes(bits, row) : row);
    size_t const trits = QM_MOST_TRITS + rows * qm_packed_row_bytes(QI_TRITS, row);
    if (few && trits < bytes)
        bytes = trits;
    return (int64_t)((bytes + QM_ALIGNMENT - 1) / QM_ALIGNMENT * QM_ALIGNMENT);
}

/** Everything that is asked while items are found. */
typedef struct finder {
    budget_network *net;
    const qat_recipe *recipe;
    const qat_graph *float_graph;
    qat_graph *simulated;
    const qat_graph *wanted;
} finder;

static int layer_named(const budget_network *net, const char *name)
{
    for (int i = 0; i < net->n_layers; i++)
        if (!strcmp(net->layers[i].name, name))
            return i;
    return -1;
}

/* ------------------------------------------------------------------ kept bits */

/** The first or last layer with weights. */
static const char *end_layer(const qat_graph *graph, bool last)
{
    const char *name = "";
    for (int i = 0; i < qat_graph_nodes(graph) && (last || !*name); i++)
        if (qat_has_role(qat_graph_node(graph, i), QAT_ROLE_ACCUMULATE))
            name = qat_graph_node(graph, i)->name;
    return name;
}

static bool matches(const finder *f, const char *pattern, const char *name)
{
    if (!strcmp(pattern, "@first") || !strcmp(pattern, "@last"))
        return !strcmp(end_layer(f->float_graph, pattern[1] == 'l'), name);
    return qat_matches(pattern, name);
}

static bool is_kept(const finder *f, const char *name)
{
    char pattern[QAT_PATTERN_MAX];
    const char *at = f->recipe->budget.keep;
    while (qat_list_next(&at, pattern))
        if (matches(f, pattern, name))
            return true;
    return false;
}

/** Does a section [quant.layer] give the layer these bits? */
static bool is_given(const finder *f, const char *name, const char *key)
{
    for (int i = 0; i < f->recipe->n_quant_layers; i++) {
        const qat_recipe_layer *section = &f->recipe->quant_layers[i];
        for (int k = 0; k < section->n_entries && matches(f, section->name, name); k++)
            if (!strcmp(section->entries[k].key, key))
                return true;
    }
    return false;
}

static qat_status check_keep(const finder *f, qat_error *err)
{
    char pattern[QAT_PATTERN_MAX], where[QAT_RECIPE_WHERE_MAX];
    const char *at = f->recipe->budget.keep;
    while (qat_list_next(&at, pattern)) {
        bool found = false;
        for (int i = 0; i < f->net->n_layers; i++)
            found |= matches(f, pattern, f->net->layers[i].name);
        if (found)
            continue;
        qat_recipe_where(f->recipe, "budget", "keep", where);
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: budget.keep: no layer matches %s (qat-train --dry-run lists them)",
                        where, pattern);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ items */

/** By falling bits; a kept tensor has its own bits only. */
static void set_choices(budget_item *item, const qat_int_list *bits, int own, bool kept)
{
    item->n = 0;
    for (int b = BITS_MOST; b >= 2; b--) {
        bool listed = false;
        for (int i = 0; i < bits->n; i++)
            listed |= bits->v[i] == b;
        if (kept || !bits->n ? b == own : listed)
            item->bits[item->n++] = b;
    }
}

/** The quantizer of this name as the run will have it. */
static const qat_node *as_wanted(const finder *f, const qat_node *quantizer)
{
    return qat_graph_find(f->wanted, quantizer->name);
}

static qat_status refuse_scheme(const finder *f, const char *layer, const qat_op *op,
                                qat_error *err)
{
    static const qat_op *const schemes[] = {&qat_op_bwn_weights,    &qat_op_twn_weights,
                                            &qat_op_fgq_weights,    &qat_op_inq_weights,
                                            &qat_op_dorefa_weights, &qat_op_apot_weights};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (op == schemes[i])
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "%s: layer %s: the bits of weight_ranges = %s cannot be searched; name "
                            "the layer in budget.keep",
                            f->recipe->source, layer, op->quant->quantizer->name);
    return QAT_OK;
}

/** The layer whose weights a quantizer gives to its reader; -1: no layer that is exported. */
static int layer_of_weights(const finder *f, const qat_node *quantizer)
{
    for (int i = quantizer->index + 1; i < qat_graph_nodes(f->simulated); i++) {
        const qat_node *node = qat_graph_node(f->simulated, i);
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] == quantizer)
                return layer_named(f->net, node->name);
    }
    return -1;
}

static qat_node *reader_of_weights(const finder *f, const qat_node *quantizer)
{
    for (int i = quantizer->index + 1; i < qat_graph_nodes(f->simulated); i++) {
        qat_node *node = qat_graph_node(f->simulated, i);
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] == quantizer)
                return node;
    }
    return NULL;
}

/** The quantizer whose codes a node reads, or NULL. */
static const qat_node *codes_of(const qat_node *node)
{
    while (node && node->op && !qat_has_role(node, QAT_ROLE_QUANTIZER))
        node = qat_passes_codes(node) ? node->inputs[0] : NULL;
    return node && node->op ? node : NULL;
}

/** The item of the activation that a quantizer makes, or -1: its codes may come from another one.
 */
static int item_of_activation(const finder *f, const qat_node *quantizer)
{
    const qat_node *head = qat_layer_before(quantizer).head;
    if (head && qat_passes_codes(head)) {
        const qat_node *from = codes_of(head);
        return from ? f->net->item_of[from->index] : -1;
    }
    int const layer = head ? layer_named(f->net, head->name) : -1;
    for (int i = 0; layer >= 0 && i < f->net->n_items; i++)
        if (f->net->tensors[i].layer == layer && !f->net->tensors[i].weights)
            return i;
    return -1;
}

static budget_item *add_item(const finder *f, int layer, bool weights, qat_node *quantizer,
                             int own_bits)
{
    budget_network *net = f->net;
    const char *name = net->layers[layer].name;
    const qat_int_list *bits =
        weights ? &f->recipe->budget.weight_bits : &f->recipe->budget.activation_bits;
    budget_item *item = &net->items[net->n_items];
    budget_tensor *t = &net->tensors[net->n_items];
    *t = (budget_tensor){.layer = layer, .weights = weights, .quantizer = quantizer};
    t->kept = is_kept(f, name) || is_given(f, name, weights ? "weight_bits" : "activation_bits");
    *item = (budget_item){.input = BUDGET_GIVEN};
    set_choices(item, bits, own_bits, t->kept);
    t->kept = t->kept || !bits->n;
    net->item_of[quantizer->index] = net->n_items++;
    return item;
}

/** The bits that weights have if they have no choice. Those by bwn and twn have 2 or 3 values. */
static int own_weight_bits(const qat_node *wanted, const qat_node *quantizer)
{
    bool const is_few =
        wanted && (wanted->op == &qat_op_bwn_weights || wanted->op == &qat_op_twn_weights);
    return is_few ? 2 : (int)quantizer->attrs[FQW_BITS];
}

static bool has_all_codes(const qat_node *wanted)
{
    const qat_quantizer *quantizer = qat_node_quantizer(wanted);
    return quantizer && quantizer->all_codes;
}

/** Do weights of so many bits have three codes? Others of 2 bits have two or four. */
static bool has_three_codes(const qat_node *wanted, int bits)
{
    return bits == 2 && wanted->op != &qat_op_bwn_weights && wanted->op != &qat_op_dorefa_weights &&
           !has_all_codes(wanted);
}

/**
 * The bits of a code in the file. bwn has two codes. dorefa's odd codes of 7 bits are codes of 8,
 * which are not packed.
 */
static int bits_in_file(const qat_node *wanted, int bits)
{
    if (wanted->op == &qat_op_bwn_weights)
        return 1;
    return wanted->op == &qat_op_dorefa_weights && bits == BITS_MOST - 1 ? BITS_MOST : bits;
}

static int64_t bytes_in_file(const qat_node *wanted, const qat_shape *weights, int asked)
{
    static const qat_op *const listed[] = {&qat_op_dorefa_weights, &qat_op_apot_weights,
                                           &qat_op_inq_weights, &qat_op_bwn_weights};
    int const bits = bits_in_file(wanted, asked);
    bool const three = has_three_codes(wanted, asked);
    size_t list = 0; /* of codes that do not follow each other */
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (wanted->op == listed[i] && bits < BITS_MOST && !three)
            list = (size_t)1 << bits;
    return budget_packed_bytes(weights, bits, list, three);
}

static qat_status add_weights(const finder *f, qat_node *quantizer, qat_error *err)
{
    budget_network *net = f->net;
    int const layer = layer_of_weights(f, quantizer);
    const qat_node *reader = reader_of_weights(f, quantizer);
    const qat_node *wanted = as_wanted(f, quantizer);
    if (layer < 0 || !wanted || !qat_has_role(reader, QAT_ROLE_ACCUMULATE))
        return QAT_OK;
    budget_item *item = add_item(f, layer, true, quantizer, own_weight_bits(wanted, quantizer));
    budget_tensor *t = &net->tensors[net->n_items - 1];
    const qat_node *input = codes_of(reader->inputs[0]);
    t->narrows = wanted->op != &qat_op_fake_quant_weights;
    t->all_codes = has_all_codes(wanted);
    item->macs = net->layers[layer].macs;
    item->input = input ? net->item_of[input->index] : BUDGET_GIVEN;
    item->input_bits = input && input->op == &qat_op_fake_quant ? (int)input->attrs[FQ_BITS] : 8;
    net->shapes[layer] = quantizer->shape;
    net->layers[layer].weights = (int64_t)qat_shape_count(&quantizer->shape);
    for (int c = 0; c < item->n; c++)
        item->bytes[c] = bytes_in_file(wanted, &quantizer->shape, item->bits[c]);
    return t->kept ? QAT_OK : refuse_scheme(f, net->layers[layer].name, wanted->op, err);
}

static void add_activation(const finder *f, qat_node *quantizer)
{
    budget_network *net = f->net;
    int const known = item_of_activation(f, quantizer);
    const qat_node *head = qat_layer_before(quantizer).head;
    int const layer =
        known < 0 && head && !qat_passes_codes(head) ? layer_named(net, head->name) : -1;
    net->item_of[quantizer->index] = known;
    if (layer < 0)
        return;
    const qat_node *wanted = as_wanted(f, quantizer);
    (void)add_item(f, layer, false, quantizer, (int)quantizer->attrs[FQ_BITS]);
    net->tensors[net->n_items - 1].narrows = wanted && wanted->op != &qat_op_fake_quant;
}

static qat_status find_items(const finder *f, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qat_graph_nodes(f->simulated); i++) {
        qat_node *node = qat_graph_node(f->simulated, i);
        f->net->item_of[i] = -1;
        if (node->op == &qat_op_fake_quant_weights)
            st = add_weights(f, node, err);
        else if (qat_fake_quant_is_observed(node))
            add_activation(f, node);
    }
    return st;
}

/* ------------------------------------------------------------------ layers */

static qat_status find_layers(const finder *f, qat_error *err)
{
    qat_layer_cost *costs;
    int count;
    budget_network *net = f->net;
    qat_status const st =
        qat_network_costs(f->float_graph, (qat_layout)f->recipe->quant.layout, &costs, &count, err);
    if (st)
        return st;
    net->n_layers = count - 1; /* the last row has the totals */
    net->layers = calloc((size_t)count, sizeof *net->layers);
    net->shapes = calloc((size_t)count, sizeof *net->shapes);
    for (int i = 0; net->layers && i < net->n_layers; i++) {
        qat_budget_layer *layer = &net->layers[i];
        snprintf(layer->name, sizeof layer->name, "%s", costs[i].name);
        snprintf(layer->op, sizeof layer->op, "%s", costs[i].op);
        layer->macs = costs[i].macs;
        for (int b = 0; b <= BITS_MOST; b++)
            layer->weight_loss[b] = layer->activation_loss[b] = NAN;
    }
    free(costs);
    return net->layers && net->shapes ? QAT_OK : qat_out_of_memory(err, "budget");
}

qat_status budget_network_find(budget_network *net, const qat_recipe *recipe,
                               const qat_graph *float_graph, qat_graph *simulated,
                               const qat_graph *wanted, qat_error *err)
{
    finder const f = {net, recipe, float_graph, simulated, wanted};
    size_t const nodes = (size_t)qat_graph_nodes(simulated) + 1;
    *net = (budget_network){.n_nodes = qat_graph_nodes(simulated),
                            .items = calloc(nodes, sizeof *net->items),
                            .tensors = calloc(nodes, sizeof *net->tensors),
                            .item_of = calloc(nodes, sizeof *net->item_of)};
    if (!net->items || !net->tensors || !net->item_of)
        return qat_out_of_memory(err, "budget");
    qat_status st = find_layers(&f, err);
    if (!st)
        st = check_keep(&f, err);
    return st ? st : find_items(&f, err);
}

void budget_network_free(budget_network *net)
{
    free(net->layers);
    free(net->shapes);
    free(net->items);
    free(net->tensors);
    free(net->item_of);
    *net = (budget_network){0};
}

/* ------------------------------------------------------------------ a choice */

void budget_network_choose(budget_network *net, const int *choice)
{
    for (int i = 0; i < net->n_layers; i++) {
        net->layers[i].loss = 0;
        net->layers[i].bytes = net->layers[i].macs_bits = 0;
    }
    for (int i = 0; i < net->n_items; i++) {
        const budget_item *item = &net->items[i];
        const budget_tensor *t = &net->tensors[i];
        qat_budget_layer *layer = &net->layers[t->layer];
        int const c = choice[i];
        int const by = item->input == BUDGET_GIVEN
                           ? item->input_bits
                           : net->items[item->input].bits[choice[item->input]];
        *(t->weights ? &layer->weight_bits : &layer->activation_bits) = item->bits[c];
        *(t->weights ? &layer->weights_kept : &layer->activations_kept) = t->kept;
        layer->bytes += item->bytes[c];
        layer->macs_bits += item->macs * item->bits[c] * by;
        layer->loss += (double)item->loss[c] * BUDGET_LOSS_UNIT;
        for (int k = 0; k < item->n; k++)
            (t->weights ? layer->weight_loss : layer->activation_loss)[item->bits[k]] =
                (double)item->loss[k] * BUDGET_LOSS_UNIT;
    }
}

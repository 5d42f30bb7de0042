/**
 * qat_create_training_graph and qat_create_eval_graph: analyse the float graph, then copy it node
 * by node in its order and insert nodes on the way. rewrite.h describes the parts.
 *
 *     image -> conv -> batch_norm -> relu -> dropout -> flatten -> FC -> logits -> loss
 *
 *     training:  image -> q -> conv(q(fold w)) -> bn_fold_train -> relu -> q -> dropout -> flatten
 *                  -> FC(q(w)) -> q -> loss
 *     eval:      image -> q -> conv(q(fold w)) -> bias(bn_fold_bias) -> relu -> q -> flatten
 *                  -> FC(q(w)) -> q
 */
#include "rewrite/rewrite.h"
#include "fakequant/bits.h"
#include "live/integer_forward.h"
#include "qat/ptq.h"
#include "rewrite/options.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ copying */

const char *rw_name(char name[RW_NAME_MAX], const char *base, const char *suffix)
{
    snprintf(name, RW_NAME_MAX, "%s%s", base, suffix);
    return name;
}

int64_t rw_delay(const rw_maker *m, int64_t delay)
{
    return m->training ? delay : 0;
}

qat_node *rw_input(rw_maker *m, const qat_node *node)
{
    qat_node **image = &m->image[node->index];
    if (node->is_param && !*image) {
        qat_param_def def = node->init;
        def.name = node->name;
        def.shape = node->shape;
        def.trainable = node->trainable;
        def.decay = node->decay;
        *image = qat_graph_param(m->graph, &def);
    }
    return *image;
}

/**
 * The node that a reader gets. Losses read graph inputs directly, because labels and targets are
 * not codes.
 */
static qat_node *input_of(rw_maker *m, const qat_node *reader, int input)
{
    const qat_node *node = reader->inputs[input];
    if (!reader->op->quant && qat_node_is_input(node))
        return m->plain[node->index];
    return input < reader->n_data ? rw_narrowed(m, reader, input) : rw_input(m, node);
}

/**
 * Apply the op of a float node. data and params replace its images if they are given and not NULL.
 */
static qat_node *apply(rw_maker *m, const qat_node *node, const char *name, qat_node *const *data,
                       int n_params, qat_node *const *params)
{
    qat_node **inputs = qat_arena_array(&m->a->arena, (size_t)node->n_inputs, sizeof *inputs);
    if (!inputs) {
        m->no_memory = true;
        return NULL;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        int const param = i - node->n_data;
        if (param < 0 && data)
            inputs[i] = data[i];
        else if (param >= 0 && param < n_params && params[param])
            inputs[i] = params[param];
        else
            inputs[i] = input_of(m, node, i);
    }
    return qat_apply_values(m->graph, node->op, name, node->attrs, node->n_inputs, inputs);
}

qat_node *rw_apply(rw_maker *m, const qat_node *node, const char *name, qat_node *first_param)
{
    return apply(m, node, name, NULL, 1, &first_param);
}

qat_node *rw_apply_params(rw_maker *m, const qat_node *node, qat_node *const *params)
{
    return apply(m, node, node->name, NULL, node->n_inputs - node->n_data, params);
}

qat_node *rw_apply_data(rw_maker *m, const qat_node *node, qat_node *const *data)
{
    return apply(m, node, node->name, data, 0, NULL);
}

qat_node *rw_copy(rw_maker *m, const qat_node *node)
{
    return apply(m, node, node->name, NULL, 0, NULL);
}

/* ------------------------------------------------------------------ node by node */

/** Make the counterpart of a float node, before its own fake_quant. */
static qat_node *make_value(rw_maker *m, const qat_node *node)
{
    if (!node->op)
        return qat_graph_input(m->graph, node->name, node->shape);
    if (!m->training && node->op->quant && node->op->quant->training_factor)
        return rw_input(m, node->inputs[0]);
    if (m->floating)
        return rw_copy(m, node);
    if (qat_has_role(node, QAT_ROLE_CONCAT))
        return rw_make_concat(m, node);
    if (qat_has_role(node, QAT_ROLE_CUSTOM))
        return rw_make_custom(m, node);
    return rw_copy(m, node);
}

static void make_node(rw_maker *m, const qat_node *node)
{
    const rw_info *info = &m->a->nodes[node->index];
    if (!info->copied || node->is_param)
        return;
    const qat_layer *layer = rw_layer_of(m->a, node);
    if (layer) {
        if (m->floating)
            rw_make_folded_node(m, layer, node);
        else
            rw_make_layer_node(m, layer, node);
        return;
    }
    m->plain[node->index] = make_value(m, node);
    m->image[node->index] = m->floating || qat_has_role(node, QAT_ROLE_PASS)
                                ? m->plain[node->index]
                                : rw_make_fake_quant(m, node, m->plain[node->index]);
}

static qat_status make_graph(rw_maker *m, qat_error *err)
{
    const qat_graph *from = m->a->graph;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < m->a->count; i++) {
        make_node(m, qat_graph_node(from, i));
        st = qat_graph_check(m->graph, err);
        if (m->no_memory)
            st = qat_out_of_memory(err, "rewrite");
    }
    for (int i = 0; !st && i < qat_graph_outputs(from); i++) {
        qat_graph_output(m->graph, m->image[qat_graph_output_at(from, i)->index]);
        st = qat_graph_check(m->graph, err);
    }
    if (!st && !m->floating) {
        rw_elect_committers(m);
        st = qat_graph_annotate(m->graph, m->options, sizeof *m->options);
    }
    return st ? st : qat_graph_check(m->graph, err);
}

/* ------------------------------------------------------------------ from start to end */

static bool take_arrays(rw_analysis *a, rw_maker *m)
{
    size_t const n = (size_t)a->count + 1;
    size_t slots = n;
    for (int i = 0; i < a->count; i++)
        if (qat_has_role(qat_graph_node(a->graph, i), QAT_ROLE_CONCAT))
            slots += (size_t)qat_graph_node(a->graph, i)->n_data;
    qat_node ***arrays[] = {&m->image, &m->plain, &m->raw, &m->range, &m->learned, &m->last};
    bool taken = true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = qat_arena_array(&a->arena, 2 * n, sizeof **arrays[i]);
        taken = taken && *arrays[i];
    }
    a->nodes = qat_arena_array(&a->arena, n, sizeof *a->nodes);
    a->settings = qat_arena_array(&a->arena, 2 * n, sizeof *a->settings);
    m->members = qat_arena_array(&a->arena, slots, sizeof *m->members);
    return taken && a->nodes && a->settings && m->members &&
           qat_layering_find(&a->layering, a->graph, &a->arena);
}

static qat_status check_arguments(const rw_maker *m, qat_error *err)
{
    const qat_graph *graph = m->a->graph;
    qat_status st = qat_graph_check(graph, err);
    if (!st && qat_graph_quant_options(graph))
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "the graph is already rewritten; a float graph is needed");
    return st || m->floating ? st : qat_quant_check(m->options, err);
}

/**
 * Make m->graph from m->a->graph; m says for which purpose. Its arrays live until the arena is
 * freed.
 */
static qat_status rewrite(rw_maker *m, qat_error *err)
{
    rw_analysis *a = m->a;
    qat_status st = check_arguments(m, err);
    if (!st && !take_arrays(a, m))
        st = qat_out_of_memory(err, "rewrite");
    if (!st)
        st = rw_select(a, m->training, err);
    if (!st && !m->floating)
        st = rw_settle(a, m->options, err);
    if (!st)
        st = qat_graph_create(&m->graph, qat_graph_registry(a->graph), err);
    if (!st) {
        rw_classes(a);
        st = make_graph(m, err);
    }
    return st;
}

/** Hand the new graph over, or free it if the rewrite failed. */
static qat_status finish(rw_maker *m, qat_graph **made, qat_status st)
{
    *made = st ? NULL : m->graph;
    if (st)
        qat_graph_free(m->graph);
    qat_arena_free(&m->a->arena);
    return st;
}

static qat_status rewrite_quantized(qat_graph **made, const qat_graph *graph,
                                    const qat_quant_options *options, bool training, qat_error *err)
{
    rw_analysis a = {.graph = graph, .count = qat_graph_nodes(graph)};
    rw_maker m = {.a = &a, .options = options, .training = training};
    qat_status const st = finish(&m, made, rewrite(&m, err));
    if (!st)
        qat_set_least_bits(*made, options->least_weight_bits, options->least_activation_bits,
                           false);
    return st;
}

/** Find what cannot become integers, and let `write` put it into words. */
static qat_status describe_floats(const qat_graph *float_graph, const qat_quant_options *options,
                                  void (*write)(const rw_analysis *a, char *text, size_t max),
                                  char *text, size_t max, qat_error *err)
{
    rw_analysis a = {.graph = float_graph, .count = qat_graph_nodes(float_graph)};
    rw_maker m = {.a = &a};
    *text = 0;
    qat_status st =
        take_arrays(&a, &m) ? rw_select(&a, true, err) : qat_out_of_memory(err, "rewrite");
    if (!st)
        st = rw_settle(&a, options, err);
    if (!st)
        write(&a, text, max);
    qat_arena_free(&a.arena);
    return st;
}

qat_status qat_float_layers(const qat_graph *float_graph, const qat_quant_options *options,
                            char *names, size_t max, qat_error *err)
{
    return describe_floats(float_graph, options, rw_float_names, names, max, err);
}

qat_status qat_check_integers(const qat_graph *float_graph, const qat_quant_options *options,
                              qat_error *err)
{
    char text[QAT_ERROR_MESSAGE_MAX];
    qat_status const st =
        describe_floats(float_graph, options, rw_float_reasons, text, sizeof text, err);
    return st || !*text ? st : qat_fail(err, QAT_ERR_UNSUPPORTED, "%s", text);
}

static qat_status drop_if_failed(qat_graph **graph, qat_status st)
{
    if (st) {
        qat_graph_free(*graph);
        *graph = NULL;
    }
    return st;
}

qat_status qat_create_training_graph(qat_graph **training, const qat_graph *float_graph,
                                     const qat_quant_options *options, qat_error *err)
{
    qat_status st = rewrite_quantized(training, float_graph, options, true, err);
    if (!st && options->forward == QAT_FORWARD_INTEGER)
        st = qat_integer_forward(*training, err);
    else if (!st && qat_quant_simulates_integers(options))
        st = qat_simulated_forward(*training, true, err);
    return drop_if_failed(training, st);
}

qat_status qat_create_eval_graph(qat_graph **eval, const qat_graph *float_graph,
                                 const qat_quant_options *options, qat_error *err)
{
    qat_status st = rewrite_quantized(eval, float_graph, options, false, err);
    if (!st && qat_quant_simulates_integers(options))
        st = qat_simulated_forward(*eval, false, err);
    return drop_if_failed(eval, st);
}

qat_status qat_fold_batch_norm(qat_graph **folded, const qat_graph *float_graph, int max_batch,
                               qat_error *err)
{
    rw_analysis a = {.graph = float_graph, .count = qat_graph_nodes(float_graph)};
    rw_maker m = {.a = &a, .floating = true};
    qat_status st = rewrite(&m, err);
    if (!st)
        st = qat_graph_plan(m.graph, max_batch, QAT_PLAN_KEEP, err);
    if (!st)
        rw_fill_folded(&a, m.graph);
    return finish(&m, folded, st);
}

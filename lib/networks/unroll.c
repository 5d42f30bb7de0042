/**
 * From the network of one step to that of a whole sequence, whose steps share their parameters.
 *
 *     frame (zeros) -> layers -> gru -> classifier         one step; gru reads and sets the state h
 *
 *     input -+-> input/frame   -> layers   -> gru          reads h
 *            |                                 |
 *            '-> input/frame@1 -> layers@1 -> gru@1 -> classifier
 *
 * A node has its own name in the first step in which it runs, and NAME@t in a later step t. What
 * no later step reads runs only in the last one. There is one state: that of the first step. The
 * last step's carry says what the state is when the next sequence goes on.
 */
#include "networks/network.h"

#include "base/arena.h"
#include "layer/layer.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <string.h>

typedef struct unroller {
    const qat_recipe *recipe;
    const qat_graph *from;
    int count, steps;
    qat_graph *to;
    qat_node *input;        /* of all steps */
    qat_node **image;       /* by node: in the current step; parameters: in all of them */
    qat_node **state;       /* by state: the node of the first step */
    const qat_node **carry; /* by state */
    bool *carried, *wanted; /* by node: carries read it; the output reads it */
} unroller;

/** The layer of the recipe that a node is of; NULL: of none. */
static const qat_recipe_layer *layer_of(const qat_recipe *r, const qat_node *node)
{
    for (int i = 0; i < r->n_layers; i++) {
        size_t const n = strlen(r->layers[i].name);
        if (!strncmp(r->layers[i].name, node->name, n) && (!node->name[n] || node->name[n] == '/'))
            return &r->layers[i];
    }
    return NULL;
}

static qat_status refuse(const unroller *u, const qat_node *node, const char *why, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    const qat_recipe_layer *layer = layer_of(u->recipe, node);
    if (layer && layer->line)
        qat_recipe_entry_where(u->recipe, layer, NULL, where);
    else
        qat_recipe_where(u->recipe, "model", "steps", where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: layer '%s' (%s): %s", where, node->name,
                    node->op->name, why);
}

static bool is_state(const qat_node *node)
{
    return qat_has_role(node, QAT_ROLE_STATE);
}

static void mark(const unroller *u, bool *set)
{
    for (int i = u->count - 1; i >= 0; i--) {
        const qat_node *node = qat_graph_node(u->from, i);
        for (int k = 0; set[i] && k < node->n_data; k++)
            set[node->inputs[k]->index] = true;
    }
}

/** A state has the range of what it becomes. So that must not have the range of a state. */
static qat_status check_value(const unroller *u, const qat_node *carry, qat_error *err)
{
    char why[2 * QAT_NAME_MAX + 128];
    const qat_node *value = carry->inputs[0];
    while (qat_passes_codes(value))
        value = value->inputs[0];
    if (!is_state(value))
        return QAT_OK;
    snprintf(why, sizeof why,
             "its value is the state '%s' as it is, but in a quantized network it must have an "
             "observed range of its own, as the result of an add or mul has",
             value->name);
    return refuse(u, carry, why, err);
}

/** Find the carries, what they read, and what the last node reads. */
static qat_status analyse(unroller *u, const qat_node *last, qat_error *err)
{
    bool any = false;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < u->count; i++) {
        const qat_node *node = qat_graph_node(u->from, i);
        any |= is_state(node);
        if (!qat_is_carry(node))
            continue;
        const qat_node *state = node->inputs[1];
        if (!is_state(state) || u->carry[state->index])
            st = refuse(u, node, "its second input must be a state that no other carry has", err);
        u->carry[state->index] = node;
        u->carried[i] = true;
    }
    u->wanted[last->index] = true;
    mark(u, u->carried);
    mark(u, u->wanted);
    for (int i = 0; !st && i < u->count; i++) {
        const qat_node *node = qat_graph_node(u->from, i);
        if (is_state(node) && !u->carry[i])
            st = refuse(u, node, "no carry says what it is in the next step", err);
        else if (qat_is_carry(node) && !u->wanted[i])
            st = refuse(u, node, "the network's output does not depend on it", err);
        else if (qat_is_carry(node) && u->recipe->quant.enabled)
            st = check_value(u, node, err);
        else if (qat_has_role(node, QAT_ROLE_NORM) && u->carried[i] && u->steps > 1)
            st = refuse(u, node,
                        "batch norm cannot come before a state: each step would have other "
                        "statistics; use a bias",
                        err);
    }
    if (st || any)
        return st;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(u->recipe, "model", "steps", where);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: model.steps = %d, but no layer of the network has a state", where,
                    u->steps);
}

/** Step t of the input. */
static qat_node *frame(const unroller *u, int t)
{
    char name[QAT_NAME_MAX], attrs[96];
    int const axis = u->input->shape.dims[1] > 1 ? 1 : 2;
    int const size = u->input->shape.dims[axis] / u->steps;
    if (u->steps == 1)
        return u->input;
    snprintf(name, sizeof name, t ? "%s@%d" : "%s", QAT_FRAME_NAME, t);
    snprintf(attrs, sizeof attrs, "axis=%d begin=%d count=%d", axis, t * size, size);
    return qat_apply1(u->to, "strided_slice", name, attrs, u->input);
}

static qat_node *image_of(unroller *u, const qat_node *node)
{
    qat_node **image = &u->image[node->index];
    if (node->is_param && !*image) {
        qat_param_def def = node->init;
        def.name = node->name;
        def.shape = node->shape;
        def.trainable = node->trainable;
        def.decay = node->decay;
        *image = qat_graph_param(u->to, &def);
    }
    return *image;
}

static qat_node *copy(unroller *u, const qat_node *node, int t, qat_node **inputs)
{
    char name[2 * QAT_NAME_MAX];
    bool const again = qat_graph_find(u->to, node->name) != NULL;
    snprintf(name, sizeof name, again ? "%s@%d" : "%s", node->name, t);
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = image_of(u, node->inputs[i]);
    if (qat_is_carry(node))
        inputs[1] = u->state[node->inputs[1]->index];
    return qat_apply_values(u->to, node->op, name, node->attrs, node->n_inputs, inputs);
}

static void make_step(unroller *u, int t, qat_node **inputs)
{
    bool const last = t == u->steps - 1;
    for (int i = 0; i < u->count; i++) {
        const qat_node *node = qat_graph_node(u->from, i);
        if (qat_node_is_input(node))
            u->image[i] = frame(u, t);
        else if (!node->op || (is_state(node) && t) || !(last ? u->wanted : u->carried)[i])
            continue;
        else if (qat_is_carry(node) && !last)
            u->image[i] = u->image[node->inputs[0]->index];
        else
            u->image[i] = copy(u, node, t, inputs);
        if (is_state(node) && !t)
            u->state[i] = u->image[i];
    }
    for (int i = 0; i < u->count; i++)
        if (u->carry[i])
            u->image[i] = u->image[u->carry[i]->index];
}

static qat_status unroll(unroller *u, qat_arena *arena, qat_node **last, const qat_shape *whole,
                         qat_error *err)
{
    size_t const n = (size_t)u->count;
    size_t most = 1;
    for (int i = 0; i < u->count; i++) {
        size_t const inputs = (size_t)qat_graph_node(u->from, i)->n_inputs;
        most = inputs > most ? inputs : most;
    }
    qat_node **inputs = qat_arena_array(arena, most, sizeof *inputs);
    u->image = qat_arena_array(arena, n, sizeof *u->image);
    u->state = qat_arena_array(arena, n, sizeof *u->state);
    u->carry = qat_arena_array(arena, n, sizeof *u->carry);
    u->carried = qat_arena_array(arena, n, sizeof *u->carried);
    u->wanted = qat_arena_array(arena, n, sizeof *u->wanted);
    if (!inputs || !u->image || !u->state || !u->carry || !u->carried || !u->wanted)
        return qat_out_of_memory(err, "unroll");
    qat_status st = analyse(u, *last, err);
    if (!st)
        st = qat_graph_create(&u->to, qat_graph_registry(u->from), err);
    if (st)
        return st;
    u->input = qat_graph_input(u->to, QAT_INPUT_NAME, *whole);
    for (int t = 0; !st && t < u->steps; t++) {
        make_step(u, t, inputs);
        st = qat_graph_check(u->to, err);
    }
    *last = u->image[(*last)->index];
    return st;
}

qat_status qat_net_unroll(qat_net *net, int steps, qat_shape whole, qat_node **last, qat_error *err)
{
    qat_arena arena = {0};
    unroller u = {.from = net->graph,
                  .count = qat_graph_nodes(net->graph),
                  .steps = steps,
                  .recipe = net->recipe};
    qat_status const st = unroll(&u, &arena, last, &whole, err);
    qat_arena_free(&arena);
    qat_graph_free(net->graph);
    net->graph = u.to;
    return st;
}

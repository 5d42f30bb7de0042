/**
 * Builds and fills the graphs of gradient_cases.h. Values are rounded to float, so that the float
 * and the double program begin with the same numbers.
 */
#include "unit/autograd/gradient_cases.h"

#include "autograd/ops/clamps.h"
#include "base/rng.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t const seed = 20240917;

static qat_shape shape_of(const gradient_input *input, int times)
{
    int rank = 0, dims[QAT_MAX_RANK];
    for (; rank < QAT_MAX_RANK && input->dims[rank]; rank++)
        dims[rank] = input->dims[rank];
    if (input->kind == KIND_DATA || input->kind == KIND_FIXED)
        dims[0] *= times;
    return qat_shape_of(dims, rank);
}

static qat_node *add_input(qat_graph *graph, const gradient_input *input, int i, int times)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", i);
    if (input->kind == KIND_DATA || input->kind == KIND_FIXED) {
        qat_node *node = qat_graph_input(graph, name, shape_of(input, times));
        if (node && input->kind == KIND_DATA)
            qat_graph_want_gradient(graph, node);
        return node;
    }
    qat_param_def const def = {
        .name = name, .shape = shape_of(input, times), .trainable = input->kind == KIND_PARAM};
    return qat_graph_param(graph, &def);
}

/*
 * The loss is the node itself if it is a loss. Otherwise it is half the squared distance from a
 * fixed target. If the node's first dimension is the batch, the target is an input.
 */
static qat_node *add_loss(qat_graph *graph, qat_node *node, bool batched)
{
    if (!node || qat_shape_count(&node->shape) == 1)
        return node;
    qat_param_def const def = {.name = "target", .shape = node->shape};
    return qat_apply2(graph, "l2_loss", "loss", "", node,
                      batched ? qat_graph_input(graph, def.name, def.shape)
                              : qat_graph_param(graph, &def));
}

#define BOUNDS(op, MIN, MAX, text) MIN, MAX,

static double value_of(gradient_fill fill, double uniform)
{
    if (fill == FILL_POSITIVE)
        return 0.5 + uniform;
    if (fill != FILL_CLEAR)
        return 2 * uniform - 1;
    static const double bounds[] = {QAT_CLAMPS(BOUNDS)};
    double x = 10 * uniform - 2;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (x > bounds[i] - 0.01 && x < bounds[i] + 0.01)
            x = x < bounds[i] ? bounds[i] - 0.01 : bounds[i] + 0.01;
    return x;
}

static void fill_distinct(qat_node *node, qat_rng *rng)
{
    uint32_t const n = (uint32_t)qat_shape_count(&node->shape);
    uint32_t *order = malloc(n * sizeof *order);
    ck_assert_ptr_nonnull(order);
    qat_rng_shuffle(rng, order, n);
    for (uint32_t i = 0; i < n; i++)
        node->value[i] = (float)(0.02 * ((double)order[i] - n / 2.0));
    free(order);
}

static void fill(qat_node *node, gradient_fill how, int classes)
{
    qat_rng rng = qat_rng_at(seed, qat_hash_name(node->name), 0);
    if (how == FILL_DISTINCT) {
        fill_distinct(node, &rng);
        return;
    }
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        if (how == FILL_LABELS)
            node->value[i] = (qat_real)qat_rng_below(&rng, (uint32_t)classes);
        else
            node->value[i] = (float)value_of(how, qat_rng_uniform(&rng));
}

/* Inputs "in<i>" by their case's word; what the op created by itself: variances are positive. */
static void fill_all(const gradient_case *c, qat_graph *graph)
{
    qat_node *first = qat_graph_find(graph, "in0");
    int const classes = first->shape.dims[first->shape.rank - 1];
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        int input;
        if (node->op)
            continue;
        if (sscanf(node->name, "in%d", &input) == 1)
            fill(node, c->inputs[input].fill, classes);
        else
            fill(node, strstr(node->name, "ema_variance") ? FILL_POSITIVE : FILL_PLAIN, classes);
    }
}

gradient_graph gradient_build(const qat_registry *registry, const gradient_case *c, int times)
{
    gradient_graph g = {.run = {.mode = c->mode, .step = c->step, .seed = seed}};
    qat_node *inputs[GRADIENT_MAX_INPUTS];
    qat_error err;
    int n = 0, batch = 0;
    ck_assert_int_eq(qat_graph_create(&g.graph, registry, &err), QAT_OK);
    for (; n < GRADIENT_MAX_INPUTS && c->inputs[n].fill; n++) {
        inputs[n] = add_input(g.graph, &c->inputs[n], n, times);
        if (c->inputs[n].kind == KIND_DATA)
            batch = c->inputs[n].dims[0] * times;
    }
    g.node = qat_apply(g.graph, c->op, "node", c->attrs, n, inputs);
    g.loss = add_loss(g.graph, g.node, batch > 0);
    ck_assert_msg(qat_graph_check(g.graph, &err) == QAT_OK, "%s %s: %s", c->op, c->attrs,
                  err.message);
    ck_assert_msg(qat_graph_plan(g.graph, batch ? batch : 1, QAT_PLAN_TRAIN, &err) == QAT_OK,
                  "%s %s: %s", c->op, c->attrs, err.message);
    fill_all(c, g.graph);
    return g;
}

void gradient_free(gradient_graph *g)
{
    qat_graph_free(g->graph);
}

bool gradient_is_compared(const qat_node *node)
{
    return !node->op && node->grad && (!node->is_param || node->trainable);
}

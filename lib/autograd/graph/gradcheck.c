/** Compares gradients with central differences. */
#include "autograd/graph/core.h"

#include <math.h>
#include <stdio.h>

/**
 * Gradients smaller than this part of the largest one are compared with that part of it, not with
 * themselves: their difference quotient is mostly rounding error.
 */
static double const floor_part = 1e-3;

typedef struct check {
    qat_graph *graph;
    const qat_node *loss;
    const qat_run *run;
    double h;
    int max_values;
    double floor;
    int compared;
    qat_gradcheck_result *result;
} check;

static bool is_checked(const qat_node *node)
{
    return !node->op && node->grad && (!node->is_param || node->trainable);
}

/**
 * The position of the k-th checked value of a tensor of count values, spread evenly. Returns false
 * after the last.
 */
static bool value_at(const check *c, size_t count, int k, size_t *at)
{
    size_t const n = count < (size_t)c->max_values ? count : (size_t)c->max_values;
    if ((size_t)k >= n)
        return false;
    *at = (size_t)((double)k * (double)count / (double)n);
    return true;
}

static double largest_gradient(const check *c)
{
    double largest = 0;
    for (int i = 0; i < c->graph->count; i++) {
        const qat_node *node = &c->graph->nodes[i]->node;
        size_t at = 0;
        for (int k = 0; is_checked(node) && value_at(c, qat_shape_count(&node->shape), k, &at); k++)
            largest = fmax(largest, fabs((double)node->grad[at]));
    }
    return largest;
}

static double loss_with(const check *c, qat_real *value, qat_real x)
{
    *value = x;
    qat_graph_forward(c->graph, c->run);
    return (double)c->loss->value[0];
}

/** (f(x+h) - f(x-h)) / 2h, where 2h is the difference that the number format really has. */
static double numeric(const check *c, qat_real *value)
{
    qat_real const x = *value;
    volatile qat_real const above = (qat_real)((double)x + c->h);
    volatile qat_real const below = (qat_real)((double)x - c->h);
    double const difference = loss_with(c, value, above) - loss_with(c, value, below);
    *value = x;
    return difference / ((double)above - (double)below);
}

static qat_status compare(check *c, qat_node *node, size_t at, qat_error *err)
{
    double const a = (double)node->grad[at], n = numeric(c, &node->value[at]);
    if (!isfinite(a) || !isfinite(n))
        return qat_fail(err, QAT_ERR_NUMERIC, "gradient of %s[%zu]: analytic %g, numeric %g",
                        node->name, at, a, n);
    double const size = fmax(fmax(fabs(a), fabs(n)), c->floor);
    double const error = fabs(a - n) / size;
    if (error > c->result->max_error || !c->compared) {
        c->result->max_error = error;
        snprintf(c->result->worst, sizeof c->result->worst, "%s[%zu]", node->name, at);
    }
    c->compared++;
    return QAT_OK;
}

static qat_status compare_all(check *c, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < c->graph->count; i++) {
        qat_node *node = &c->graph->nodes[i]->node;
        size_t at = 0;
        for (int k = 0;
             !st && is_checked(node) && value_at(c, qat_shape_count(&node->shape), k, &at); k++)
            st = compare(c, node, at, err);
    }
    return st;
}

qat_status qat_gradcheck(qat_graph *graph, qat_node *loss, const qat_run *run, double h,
                         int max_values, qat_gradcheck_result *result, qat_error *err)
{
    *result = (qat_gradcheck_result){0};
    if (!graph->planned || !qat_core_trains(graph))
        return qat_fail(err, QAT_ERR_STATE, "a gradient check needs a graph planned for training");
    if (qat_shape_count(&loss->shape) != 1)
        return qat_fail(err, QAT_ERR_SHAPE, "the loss '%s' is not a scalar", loss->name);
    if (!(h > 0) || max_values < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "h %g is not above 0, or max_values %d below 1", h,
                        max_values);
    check c = {graph, loss, run, h, max_values, 0, 0, result};
    qat_graph_forward(graph, run);
    qat_graph_backward(graph, loss, run);
    result->max_gradient = largest_gradient(&c);
    c.floor = fmax(floor_part * result->max_gradient, 1e-30);
    qat_status st = compare_all(&c, err);
    qat_graph_forward(graph, run); /* compute the values of the unchanged parameters again */
    if (!st && !c.compared)
        st = qat_fail(err, QAT_ERR_STATE, "no parameter or input of the graph has a gradient");
    return st;
}

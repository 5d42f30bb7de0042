/** Applies ops: sorts inputs from parameters and infers shapes. */
#include "autograd/graph/core.h"

#include <stdio.h>
#include <string.h>

/** Put "node 'conv1' (conv2d): " before the message of an op or of the attribute parser. */
static qat_status prefix(const qat_node *node, qat_status status, const qat_error *inner,
                         qat_error *err)
{
    return qat_fail(err, status, "node '%s' (%s): %s", node->name, node->op->name, inner->message);
}

qat_status qat_core_infer(qat_node *node, qat_error *err)
{
    qat_error inner = {QAT_OK, ""};
    char why[128];
    memset(&node->shape, 0, sizeof node->shape);
    node->scratch_bytes = 0;
    qat_status const st = node->op->shape(node, &inner);
    if (st)
        return prefix(node, st, &inner, err);
    if (qat_core_shape_bad(&node->shape, why)) {
        qat_fail(&inner, QAT_ERR_SHAPE, "its output: %s", why);
        return prefix(node, QAT_ERR_SHAPE, &inner, err);
    }
    node->shape = qat_shape_of(node->shape.dims, node->shape.rank); /* unused dims are 1 */
    return QAT_OK;
}

int qat_core_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    if (!node->op->params)
        return 0;
    qat_error inner = {QAT_OK, ""};
    memset(defs, 0, QAT_MAX_PARAMS * sizeof *defs);
    int const n = node->op->params(node, defs, &inner);
    if (n < 0)
        prefix(node, inner.status ? inner.status : QAT_ERR_SHAPE, &inner, err);
    return n;
}

/** "1 input", "2 to 3 inputs", "at least 1 input" */
static const char *inputs_text(const qat_op *op, char text[64])
{
    if (op->max_inputs == op->min_inputs)
        snprintf(text, 64, "%d input%s", op->min_inputs, op->min_inputs == 1 ? "" : "s");
    else if (op->max_inputs < 0)
        snprintf(text, 64, "at least %d input%s", op->min_inputs, op->min_inputs == 1 ? "" : "s");
    else
        snprintf(text, 64, "%d to %d inputs", op->min_inputs, op->max_inputs);
    return text;
}

static bool params_fit(const qat_node *node, int n_defs, const qat_param_def *defs)
{
    for (int i = 0; i < n_defs; i++)
        if (!qat_shape_equal(&node->inputs[node->n_data + i]->shape, &defs[i].shape))
            return false;
    return true;
}

/**
 * How many of an op's inputs are data, if the caller did not say. All are, unless the last inputs
 * are as many as the op's parameters and have their shapes. If there are more inputs than the op
 * takes, the last ones are parameters whatever their shapes are; the error message can then be
 * about the shape.
 */
static int count_data(qat_node *node)
{
    const qat_op *op = node->op;
    int const n = node->n_inputs;
    bool const too_many = op->max_inputs >= 0 && n > op->max_inputs;
    qat_param_def defs[QAT_MAX_PARAMS];
    int n_data = too_many ? op->max_inputs : n - 1;
    for (; op->params && n_data >= op->min_inputs && n - n_data <= QAT_MAX_PARAMS; n_data--) {
        node->n_data = node->n_inputs = n_data;
        int const n_defs = qat_core_params(node, defs, NULL);
        node->n_inputs = n;
        if (n_defs == n - n_data && (too_many || params_fit(node, n_defs, defs)))
            return n_data;
    }
    return too_many && op->params ? op->max_inputs : n;
}

static qat_node *create_param(qat_node *node, const qat_param_def *def)
{
    char name[2 * QAT_NAME_MAX];
    qat_param_def named = *def;
    snprintf(name, sizeof name, "%s/%s", node->name, def->name);
    named.name = name;
    return qat_graph_param(node->graph, &named);
}

/** Attach given parameters or create them. Returns false after qat_core_fail. */
static bool attach_params(qat_node *node)
{
    qat_graph *graph = node->graph;
    qat_param_def defs[QAT_MAX_PARAMS];
    qat_error err;
    char a[64], b[64];
    int const given = node->n_inputs - node->n_data;
    node->n_inputs = node->n_data; /* the inputs that op->params may look at */
    int const n = qat_core_params(node, defs, &err);
    if (n < 0 || n > QAT_MAX_PARAMS)
        return n < 0 ? qat_core_fail(graph, err.status, "%s", err.message)
                     : qat_core_fail(graph, QAT_ERR_ARGUMENT, "op '%s' describes %d parameters",
                                     node->op->name, n);
    if (given && given != n)
        return qat_core_fail(
            graph, QAT_ERR_ARGUMENT, "node '%s' (%s): takes %s and %d parameters, got %d and %d",
            node->name, node->op->name, inputs_text(node->op, a), n, node->n_data, given);
    for (int i = 0; i < n; i++) {
        qat_node **slot = &node->inputs[node->n_data + i];
        if (!given)
            *slot = create_param(node, &defs[i]);
        if (!*slot)
            return false;
        if (!qat_shape_equal(&(*slot)->shape, &defs[i].shape))
            return qat_core_fail(graph, QAT_ERR_SHAPE,
                                 "node '%s' (%s): parameter '%s' needs shape %s, got '%s' of %s",
                                 node->name, node->op->name, defs[i].name,
                                 qat_shape_text(&defs[i].shape, a), (*slot)->name,
                                 qat_shape_text(&(*slot)->shape, b));
    }
    node->n_inputs = node->n_data + n;
    return true;
}

/**
 * Are all inputs given, and of this graph? A NULL input follows an earlier error, or is an error.
 */
static bool inputs_good(qat_graph *graph, const char *name, int n, qat_node *const *inputs)
{
    for (int i = 0; i < n; i++)
        if (!inputs[i] || inputs[i]->graph != graph) {
            qat_core_fail(graph, QAT_ERR_ARGUMENT, "node '%s': input %d is %s", name ? name : "", i,
                          inputs[i] ? "another graph's node" : "NULL");
            return false;
        }
    return true;
}

static bool take_inputs(qat_node *node, int n_data, int n_inputs, qat_node *const *inputs)
{
    char text[64];
    const qat_op *op = node->op;
    node->inputs = qat_arena_array(&node->graph->arena, (size_t)n_inputs + QAT_MAX_PARAMS,
                                   sizeof *node->inputs);
    if (!node->inputs)
        return qat_core_no_memory(node->graph, node->name);
    if (n_inputs)
        memcpy(node->inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    node->n_inputs = n_inputs;
    node->n_data = n_data < 0 ? count_data(node) : n_data;
    node->n_inputs = n_inputs;
    if (node->n_data < op->min_inputs || (op->max_inputs >= 0 && node->n_data > op->max_inputs))
        return qat_core_fail(node->graph, QAT_ERR_ARGUMENT, "node '%s' (%s): takes %s, got %d",
                             node->name, op->name, inputs_text(op, text), node->n_data);
    return true;
}

qat_node *qat_core_apply(qat_graph *graph, const qat_op *op, const char *name, const double *attrs,
                         int n_data, int n_inputs, qat_node *const *inputs)
{
    qat_error err;
    if (graph->error.status || !inputs_good(graph, name, n_inputs, inputs))
        return NULL;
    core_node *core = qat_core_new_node(graph, name);
    if (!core)
        return NULL;
    qat_node *node = &core->node;
    node->op = op;
    if (qat_core_attrs_check(op, attrs, &err))
        return qat_core_fail(graph, err.status, "node '%s' (%s): %s", name, op->name, err.message);
    for (int i = 0; op->attrs && op->attrs[i].name; i++)
        node->attrs[i] = attrs[i];
    if (!take_inputs(node, n_data, n_inputs, inputs) || !attach_params(node))
        return NULL;
    if (qat_core_infer(node, &err))
        return qat_core_fail(graph, err.status, "%s", err.message);
    return qat_core_append(graph, core);
}

qat_node *qat_apply_values(qat_graph *graph, const qat_op *op, const char *name,
                           const double *attrs, int n_inputs, qat_node *const *inputs)
{
    return qat_core_apply(graph, op, name, attrs, -1, n_inputs, inputs);
}

qat_node *qat_apply(qat_graph *graph, const char *op, const char *name, const char *attrs,
                    int n_inputs, qat_node *const *inputs)
{
    double values[QAT_MAX_ATTRS] = {0};
    qat_error err;
    if (graph->error.status)
        return NULL;
    const qat_op *found = qat_registry_find(graph->registry, op);
    if (!found)
        return qat_core_fail(graph, QAT_ERR_ARGUMENT, "node '%s': no op is named '%s'",
                             name ? name : "", op);
    if (qat_core_attrs_parse(found, attrs, values, &err))
        return qat_core_fail(graph, err.status, "node '%s' (%s): %s", name ? name : "", op,
                             err.message);
    return qat_core_apply(graph, found, name, values, -1, n_inputs, inputs);
}

qat_node *qat_apply1(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a)
{
    return qat_apply(graph, op, name, attrs, 1, &a);
}

qat_node *qat_apply2(qat_graph *graph, const char *op, const char *name, const char *attrs,
                     qat_node *a, qat_node *b)
{
    return qat_apply(graph, op, name, attrs, 2, (qat_node *const[]){a, b});
}

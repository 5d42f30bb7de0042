/**
 * A custom elementwise layer: swish(x) = x / (1 + exp(-beta x)).
 *
 * This file has no integer code. The role QAT_ROLE_TABLE is enough. In training, the output gets an
 * observed range. Export calls the forward function below for each of the 256 input codes and
 * stores the results as a table. So the engine gives the same bytes.
 *
 * A recipe uses the layer with `op = swish`, after `path = libswish.so` in section [plugin]. A C
 * program calls qat_registry_add(registry, &swish_op, &err).
 */
#include "qat/plugin.h"

#include <math.h>

static qat_real sigmoid(qat_real x)
{
    return 1 / (1 + (qat_real)exp(-(double)x));
}

static qat_status swish_shape(qat_node *node, qat_error *err)
{
    (void)err;
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void swish_forward(qat_node *node, const qat_run *run)
{
    (void)run;
    qat_real const beta = (qat_real)qat_attr(node, "beta");
    qat_real const *x = node->inputs[0]->value;
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        node->value[i] = x[i] * sigmoid(beta * x[i]);
}

/* d/dx x s(bx) = s + b x s (1 - s), with s = s(bx) */
static void swish_backward(qat_node *node, const qat_run *run)
{
    (void)run;
    qat_real const beta = (qat_real)qat_attr(node, "beta");
    qat_real const *x = node->inputs[0]->value;
    qat_real *dx = node->inputs[0]->grad;
    for (size_t i = 0; dx && i < qat_shape_count(&node->shape); i++) {
        qat_real const s = sigmoid(beta * x[i]);
        dx[i] += node->grad[i] * (s + beta * x[i] * s * (1 - s));
    }
}

static const qat_attr_def swish_attrs[] = {
    {.name = "beta",
     .type = QAT_ATTR_REAL,
     .initial = 1,
     .min = 0.01,
     .max = 100,
     .meaning = "steepness"},
    {0},
};

static const qat_quant swish_quant = {.role = QAT_ROLE_TABLE};

static const qat_op swish_op = {
    .name = "swish",
    .meaning = "x times the logistic function of beta x",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = swish_attrs,
    .shape = swish_shape,
    .forward = swish_forward,
    .backward = swish_backward,
    .quant = &swish_quant,
};

const qat_plugin qat_plugin_entry = {
    .version = QAT_PLUGIN_VERSION,
    .name = "swish",
    .ops = (const qat_op *const[]){&swish_op},
    .n_ops = 1,
};

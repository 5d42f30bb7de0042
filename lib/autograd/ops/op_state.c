/**
 * state, carry: what a recurrent network keeps from one step to the next. A graph of several steps
 * has one state, which is what the first step starts with, and the carry of the last step.
 */
#include "autograd/ops/op.h"

#include <string.h>

static qat_status state_shape(qat_node *node, qat_error *err)
{
    (void)err;
    node->shape = QAT_SHAPE(node->inputs[0]->shape.dims[0], (int)qat_attr(node, "units"));
    return QAT_OK;
}

static void state_forward(qat_node *node, const qat_run *unused)
{
    memset(node->value, 0, qat_shape_count(&node->shape) * sizeof *node->value);
}

/** Only the batch of its input matters. */
static bool state_reads(const qat_node *node, int input, const qat_run *unused)
{
    return false;
}

static const qat_attr_def state_attrs[] = {
    {"units", QAT_ATTR_INT, 0, 1, 65536, NULL, "number of values; must be given"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_state = {
    .name = "state",
    .meaning = "values kept from step to step: zeros before the first, then those of its carry",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = state_attrs,
    .shape = state_shape,
    .forward = state_forward,
    .reads = state_reads,
    .quant = QAT_QUANT(state),
};

static qat_status carry_shape(qat_node *node, qat_error *err)
{
    const qat_shape *value = &node->inputs[0]->shape, *state = &node->inputs[1]->shape;
    char a[64], b[64];
    if (!qat_shape_equal(value, state))
        return qat_fail(err, QAT_ERR_SHAPE, "values %s for a state %s", qat_shape_text(value, a),
                        qat_shape_text(state, b));
    node->shape = *value;
    return QAT_OK;
}

static void carry_forward(qat_node *node, const qat_run *unused)
{
    memcpy(node->value, node->inputs[0]->value,
           qat_shape_count(&node->shape) * sizeof *node->value);
}

static void carry_backward(qat_node *node, const qat_run *unused)
{
    qat_real *to = node->inputs[0]->grad;
    for (size_t i = 0; to && i < qat_shape_count(&node->shape); i++)
        to[i] += node->grad[i];
}

static bool carry_reads(const qat_node *node, int input, const qat_run *unused)
{
    return input == 0;
}

const qat_op qat_op_carry = {
    .name = "carry",
    .meaning = "its first input, which the second one, a state, is in the next step",
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = carry_shape,
    .forward = carry_forward,
    .backward = carry_backward,
    .reads = carry_reads,
    .quant = QAT_QUANT(carry),
};

/**
 * loss_sum(a [1], b [1]): y = a + weight b. It joins two losses: that of a network and that of its
 * auxiliary classifier.
 */
#include "autograd/ops/op.h"

static qat_status loss_sum_shape(qat_node *node, qat_error *err)
{
    char text[64];
    for (int i = 0; i < 2; i++)
        if (qat_shape_count(&node->inputs[i]->shape) != 1)
            return qat_fail(err, QAT_ERR_SHAPE, "input %d is %s, not a scalar", i,
                            qat_shape_text(&node->inputs[i]->shape, text));
    node->shape = QAT_SHAPE(1);
    return QAT_OK;
}

static void loss_sum_forward(qat_node *node, const qat_run *run)
{
    double const a = (double)node->inputs[0]->value[0], b = (double)node->inputs[1]->value[0];
    node->value[0] = (qat_real)(a + qat_attr(node, "weight") * b);
}

static void loss_sum_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        node->inputs[0]->grad[0] += node->grad[0];
    if (node->inputs[1]->grad)
        node->inputs[1]->grad[0] += (qat_real)(qat_attr(node, "weight") * (double)node->grad[0]);
}

static const qat_attr_def loss_sum_attrs[] = {
    {"weight", QAT_ATTR_REAL, 1, 0, 1e6, NULL, "weight of the second loss"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_loss_sum = {
    .name = "loss_sum",
    .meaning = "the first loss plus weight times the second",
    .min_inputs = 2,
    .max_inputs = 2,
    .attrs = loss_sum_attrs,
    .shape = loss_sum_shape,
    .forward = loss_sum_forward,
    .backward = loss_sum_backward,
};

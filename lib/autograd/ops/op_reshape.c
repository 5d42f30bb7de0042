/** reshape, flatten: the same values in another shape. The batch stays the first dimension. */
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

#include <string.h>

static void copy_forward(qat_node *node, const qat_run *run)
{
    memcpy(node->value, node->inputs[0]->value, qat_shape_count(&node->shape) * sizeof(qat_real));
}

static void copy_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        qat_pass_gradient(node, 0);
}

/* The dimensions d1, d2, d3 up to the first 0. */
static qat_status reshape_shape(qat_node *node, qat_error *err)
{
    static const char *const names[] = {"d1", "d2", "d3"};
    const qat_shape *in = &node->inputs[0]->shape;
    int dims[QAT_MAX_RANK] = {in->dims[0]}, rank = 1;
    double count = in->dims[0]; /* up to 2^93, which may not fit size_t */
    for (; rank < QAT_MAX_RANK && qat_attr(node, names[rank - 1]) > 0; rank++) {
        dims[rank] = (int)qat_attr(node, names[rank - 1]);
        count *= dims[rank];
    }
    node->shape = qat_shape_of(dims, rank);
    if (count != (double)qat_shape_count(in)) {
        char text[2][64];
        return qat_fail(err, QAT_ERR_SHAPE, "%s does not have as many values as %s",
                        qat_shape_text(in, text[0]), qat_shape_text(&node->shape, text[1]));
    }
    return QAT_OK;
}

static const qat_attr_def reshape_attrs[] = {
    {"d1", QAT_ATTR_INT, 0, 0, INT32_MAX, NULL, "first dimension after the batch; 0: none"},
    {"d2", QAT_ATTR_INT, 0, 0, INT32_MAX, NULL, "second dimension; 0: none"},
    {"d3", QAT_ATTR_INT, 0, 0, INT32_MAX, NULL, "third dimension; 0: none"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_reshape = {
    .name = "reshape",
    .meaning = "the same values in the shape [N, d1, d2, d3]",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = reshape_attrs,
    .shape = reshape_shape,
    .forward = copy_forward,
    .backward = copy_backward,
    .quant = QAT_QUANT(reshape),
    .grads = QAT_GRADS_IN_PLACE,
};

static qat_status flatten_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    node->shape = QAT_SHAPE(in->dims[0], (int)(qat_shape_count(in) / (size_t)in->dims[0]));
    return QAT_OK;
}

const qat_op qat_op_flatten = {
    .name = "flatten",
    .meaning = "the same values in the shape [N, I]",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = flatten_shape,
    .forward = copy_forward,
    .backward = copy_backward,
    .quant = QAT_QUANT(flatten),
    .grads = QAT_GRADS_IN_PLACE,
};

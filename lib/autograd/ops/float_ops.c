/** The list of built-in float ops that qat_registry_create registers. */
#include "autograd/ops/op.h"

#define ENTRY(op, ...) , &qat_op_##op

const qat_op *const qat_float_ops[] = {
    &qat_op_conv2d,
    &qat_op_depthwise_conv2d,
    &qat_op_transpose_conv2d,
    &qat_op_fully_connected,
    &qat_op_bias,
    &qat_op_batch_norm QAT_ACTIVATIONS(ENTRY),
    &qat_op_softmax,
    &qat_op_add,
    &qat_op_sub,
    &qat_op_mul,
    &qat_op_concat,
    &qat_op_max_pool2d,
    &qat_op_average_pool2d,
    &qat_op_global_average_pool,
    &qat_op_reshape,
    &qat_op_flatten,
    &qat_op_dropout,
    &qat_op_strided_slice,
    &qat_op_transpose,
    &qat_op_pad,
    &qat_op_leaky_relu,
    &qat_op_hard_sigmoid,
    &qat_op_clip,
    &qat_op_softmax_cross_entropy,
    &qat_op_sigmoid_cross_entropy,
    &qat_op_l2_loss,
    &qat_op_weight_decay,
    &qat_op_distillation,
    &qat_op_loss_sum,
    &qat_op_smooth_l1_loss,
    &qat_op_detection_loss,
    NULL,
};

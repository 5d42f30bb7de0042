/**
 * For op sources: the entries of the op table, and the quant entries that they point to.
 *
 * The quant entries are defined in lib/integer (quant_*.c) and are opaque here. The
 * double-precision build of the op sources, which exists to check gradients, has none.
 */
#ifndef QAT_AUTOGRAD_OP_H
#define QAT_AUTOGRAD_OP_H

#include "autograd/ops/curves.h"
#include "qat/graph.h"

#ifdef QAT_REAL_DOUBLE
#define QAT_QUANT(entry) NULL
#else
#define QAT_QUANT(entry)              (&qat_quant_##entry)
extern const struct qat_quant qat_quant_state, qat_quant_carry;
extern const struct qat_quant qat_quant_conv2d, qat_quant_depthwise_conv2d,
    qat_quant_fully_connected, qat_quant_bias, qat_quant_batch_norm, qat_quant_softmax,
    qat_quant_add, qat_quant_sub, qat_quant_mul, qat_quant_concat, qat_quant_max_pool2d,
    qat_quant_average_pool2d, qat_quant_global_average_pool, qat_quant_reshape, qat_quant_flatten,
    qat_quant_dropout;
extern const struct qat_quant qat_quant_strided_slice, qat_quant_transpose, qat_quant_pad,
    qat_quant_leaky_relu, qat_quant_hard_sigmoid, qat_quant_clip, qat_quant_transpose_conv2d,
    qat_quant_resize_nearest, qat_quant_resize_bilinear, qat_quant_embedding;
#define QAT_ACTIVATION_QUANT(op, ...) extern const struct qat_quant qat_quant_##op;
QAT_ACTIVATIONS(QAT_ACTIVATION_QUANT)
#endif

/* The float ops; one file per op family (op_<family>.c). */
extern const qat_op qat_op_state, qat_op_carry;
extern const qat_op qat_op_conv2d, qat_op_depthwise_conv2d, qat_op_fully_connected, qat_op_bias,
    qat_op_batch_norm, qat_op_softmax, qat_op_add, qat_op_sub, qat_op_mul, qat_op_concat,
    qat_op_max_pool2d, qat_op_average_pool2d, qat_op_global_average_pool, qat_op_reshape,
    qat_op_flatten, qat_op_dropout, qat_op_softmax_cross_entropy, qat_op_sigmoid_cross_entropy,
    qat_op_l2_loss, qat_op_weight_decay, qat_op_distillation, qat_op_loss_sum,
    qat_op_smooth_l1_loss, qat_op_detection_loss, qat_op_strided_slice, qat_op_transpose,
    qat_op_pad, qat_op_leaky_relu, qat_op_hard_sigmoid, qat_op_clip, qat_op_transpose_conv2d,
    qat_op_resize_nearest, qat_op_resize_bilinear, qat_op_embedding;

#define QAT_ACTIVATION_OP(op, ...) extern const qat_op qat_op_##op;
QAT_ACTIVATIONS(QAT_ACTIVATION_OP)

/** A count as fan_in or fan_out of a qat_param_def: 1..INT32_MAX. */
static inline int qat_fan(int64_t count)
{
    return count < 1 ? 1 : count > INT32_MAX ? INT32_MAX : (int)count;
}

/** All float ops, in a list that ends with NULL (float_ops.c). */
extern const qat_op *const qat_float_ops[];

#endif

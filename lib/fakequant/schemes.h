/**
 * Schemes of weights with codes of their own, in op_scaled_weights.c, op_normalized_weights.c and
 * op_inq_weights.c; and activations that stay float.
 */
#ifndef QAT_FAKEQUANT_SCHEMES_H
#define QAT_FAKEQUANT_SCHEMES_H

#include "fakequant/ops.h"
#include "qat/quantizer.h"

extern const qat_op qat_op_bwn_weights, qat_op_twn_weights, qat_op_fgq_weights;
extern const qat_op qat_op_dorefa_weights, qat_op_weight_norm_weights, qat_op_apot_weights;

/** The most bits that weights of these schemes have. */
enum { DOREFA_MOST_BITS = 7, APOT_MOST_BITS = 5, INQ_MOST_BITS = 5 };

/*
 * inq_weights (w, frozen, exponent): the first attributes are those of fake_quant_weights (ops.h).
 * Then come the steps from which on 50, 75, 87.5 and 100 % of the weights are frozen.
 */
enum { INQ_STAGE = FQW_ATTRS, INQ_STAGES = QAT_INQ_STAGES, INQ_ATTRS = INQ_STAGE + INQ_STAGES };
enum { INQ_W, INQ_FROZEN, INQ_EXPONENT };
extern const qat_op qat_op_inq_weights;

/** Stands for activations that are not quantized. The rewrites insert no such node. */
extern const qat_op qat_op_float_activation;

#endif

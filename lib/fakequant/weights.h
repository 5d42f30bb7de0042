/** Quantization parameters of the weights that a fake_quant_weights node reads. */
#ifndef QAT_FAKEQUANT_WEIGHTS_H
#define QAT_FAKEQUANT_WEIGHTS_H

#include "qat/quant.h"

/**
 * A weight tensor as [outer, channels, inner]: runs of `inner` values that share parameters. Layout
 * uint8 has one channel, whose parameters are of the whole tensor.
 */
typedef struct qat_weight_view {
    int outer, channels, inner;
    bool per_channel; /* layout int8: symmetric, the per-channel formula */
} qat_weight_view;

qat_weight_view qat_weight_view_of(const qat_node *fake_quant_weights);

/** Parameters of one channel from the values that the node reads now. */
qat_qparams qat_weight_qparams(const qat_node *fake_quant_weights, int channel);

#endif

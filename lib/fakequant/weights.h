/** The quantization parameters of weights that a fake_quant_weights node reads. */
#ifndef QAT_FAKEQUANT_WEIGHTS_H
#define QAT_FAKEQUANT_WEIGHTS_H

#include "base/parallel.h"
#include "qat/quant.h"

/**
 * A weight tensor as [outer, channels, inner]: runs of `inner` values with the same parameters.
 * Layout uint8, and int8 with per_tensor, have one channel for the whole tensor.
 */
typedef struct qat_weight_view {
    int outer, channels, inner;
    bool per_channel; /* layout int8: a scale for each, the per-channel formula */
    bool symmetric;   /* zero_point in the middle */
} qat_weight_view;

qat_weight_view qat_weight_view_of(const qat_node *fake_quant_weights);

/** The shape of a quantizer of weights: that of its input, of which the attribute axis is a
 * dimension. */
qat_status qat_weights_shape(qat_node *quantizer, qat_error *err);

/**
 * The forward of a quantizer of weights: its input as it is before `delay`, and past it
 * `quantize(quantizer, channel, thread)` for each channel, in threads. Did it quantize?
 */
bool qat_weights_forward(qat_node *quantizer, const qat_run *run, qat_tile_fn *quantize);

/** Where run `outer` of a channel begins. */
static inline size_t qat_weight_run(const qat_weight_view *view, int outer, int channel)
{
    return ((size_t)outer * (size_t)view->channels + (size_t)channel) * (size_t)view->inner;
}

/**
 * The parameters of one channel, for any quantizer of weights: from its current input values, or as
 * learned.
 */
qat_qparams qat_weight_qparams(const qat_node *quantizer, int channel);

/** May a node's weights be frozen at codes, so that its values are not those of its input? */
bool qat_weights_freeze(const qat_node *quantizer);

/** The parameters with which its last forward quantized. */
const qat_qparams *qat_fake_quant_weights_params(const qat_node *fake_quant_weights, int channel);

#endif

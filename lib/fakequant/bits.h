/** Numbers of bits that fall in training (qat_quant_options.weight_stages, activation_stages). */
#ifndef QAT_FAKEQUANT_BITS_H
#define QAT_FAKEQUANT_BITS_H

#include "qat/quant.h"

/** The bits that quantizers have at least in this step; 0: no stage is left. */
int qat_least_bits(const qat_bits_stage *stages, int n, int64_t step);

/**
 * Let all quantizers of a rewritten graph have at least so many bits, and those of their layers
 * where these are more. 0: those of their layers. Activations of QAT_WIDE_BITS keep them.
 * @param rescale  true: the bits change in training. Learned values are turned into those for the
 *                 new bits (qat_quantizer.rescale), and what is known about oscillations is
 *                 forgotten. The graph must be planned. false: parameters are left alone
 */
void qat_set_least_bits(qat_graph *graph, int weight_bits, int activation_bits, bool rescale);

#endif

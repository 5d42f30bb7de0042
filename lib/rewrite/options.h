/** Checks of qat_quant_options. */
#ifndef QAT_REWRITE_OPTIONS_H
#define QAT_REWRITE_OPTIONS_H

#include "qat/quant.h"

/** QAT_ERR_ARGUMENT, naming the value, if a value is outside its range or two values contradict. */
qat_status qat_quant_check(const qat_quant_options *options, qat_error *err);
/**
 * Can forward = integer compute tensors of this quantizer? Each value needs a code in every step,
 * and an output channel one scale. Of the built-in ones, none, fgq and inq cannot. An empty name is
 * ema.
 */
bool qat_quant_has_integers(const char *quantizer);
/**
 * QAT_ERR_ARGUMENT, naming the key, for what forward = integer cannot do: other quantizers, and
 * layers left in float. qat_quant_check includes this.
 */
qat_status qat_quant_check_forward(const qat_quant_options *options, qat_error *err);
/**
 * Does a simulation round as the integers do? It does if any weights, activations or inputs of
 * convolutions have fewer than 8 bits, all have integers (as above), none has 16 bits, and
 * QAT_FORWARD_FAKE_QUANT does not ask for less.
 */
bool qat_quant_simulates_integers(const qat_quant_options *options);
/**
 * QAT_ERR_ARGUMENT, naming the key, for what does not go together with 16-bit activations, and for
 * layers that mix them with others. qat_quant_check includes this.
 */
qat_status qat_quant_check_wide(const qat_quant_options *options, qat_error *err);

#endif

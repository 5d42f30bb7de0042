/** Integer forward, for the rewrite that sets it up and for tests. */
#ifndef QAT_LIVE_INTEGER_FORWARD_H
#define QAT_LIVE_INTEGER_FORWARD_H

#include "qat/quant.h"

/** Make a rewritten training graph, not yet planned, run forward on integers. */
qat_status qat_integer_forward(qat_graph *training, qat_error *err);
/**
 * Make a rewritten graph, not yet planned, round as the integers do, with sums that are computed
 * in float32. A network that has no integers is simulated by fake quantization alone. on:
 * from its first run on (qat_simulate_integers).
 */
qat_status qat_simulated_forward(qat_graph *graph, bool on, qat_error *err);

#endif

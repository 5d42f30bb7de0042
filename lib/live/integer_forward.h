/** Integer forward, for the rewrite that sets it up and for tests. */
#ifndef QAT_LIVE_INTEGER_FORWARD_H
#define QAT_LIVE_INTEGER_FORWARD_H

#include "qat/quant.h"

/** Make a rewritten training graph, not yet planned, run forward on integers. */
qat_status qat_integer_forward(qat_graph *training, qat_error *err);

#endif

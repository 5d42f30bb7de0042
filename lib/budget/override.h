/**
 * Private to lib/budget: weights that are quantized to ranges of the least squared error, as
 * learned ranges come near to, instead of to their min and max.
 */
#ifndef QAT_BUDGET_OVERRIDE_H
#define QAT_BUDGET_OVERRIDE_H

#include "qat/quant.h"

typedef struct budget_override budget_override;

/**
 * The ranges for the weights that the quantizer read in the last forward, and its bits.
 * @param all_codes  with fewer than 8 bits they use the lowest code, too
 */
qat_status budget_override_make(budget_override **override, const qat_node *quantizer,
                                bool all_codes, qat_error *err);
bool budget_override_has_all_codes(const budget_override *override);
void budget_override_free(budget_override *override);
/** Quantize what the node has read; call it after the node's forward. */
void budget_override_apply(budget_override *override, qat_node *node);

#endif

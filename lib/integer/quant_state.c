/** state, carry: a tensor that the engine keeps between runs, and the tensor that it then becomes.
 */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

static qat_status freeze_state(const qat_fused_layer *layer, qat_error *err)
{
    qat_qtensor *t = &layer->graph->tensors[layer->output];
    (void)err;
    t->is_state = true;
    t->next = -1; /* the graph's carry says it */
    return QAT_OK;
}

const qat_quant qat_quant_state = {
    .role = QAT_ROLE_STATE, .freeze = freeze_state, .takes_wide = true};
const qat_quant qat_quant_carry = {.role = QAT_ROLE_PASS, .is_view = true, .takes_wide = true};

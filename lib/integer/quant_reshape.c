/** reshape, flatten and dropout: codes pass through unchanged. */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

#include <string.h>

qat_status qat_emit_reshape(const qat_emit *e, qat_error *err)
{
    qat_status st = qat_refuse_activation(e, "reshape", err);
    if (!st)
        st = qat_require_same_grid(e, "reshape", 0, err);
    return st ? st : qat_emit_op(e, "reshape", QI_ROUND_NONE, 0, NULL, 0, err);
}

static qat_status freeze_reshape(const qat_fused_layer *layer, qat_error *err)
{
    qat_emit const e = qat_emit_of(layer);
    return qat_emit_reshape(&e, err);
}

const qat_quant qat_quant_reshape = {
    .role = QAT_ROLE_PASS, .freeze = freeze_reshape, .is_view = true, .takes_wide = true};
const qat_quant qat_quant_flatten = {
    .role = QAT_ROLE_PASS, .freeze = freeze_reshape, .is_view = true, .takes_wide = true};
/* ------------------------------------------------------------------ dropout */

static double kept_factor(const qat_node *node)
{
    return 1 / (1 - qat_attr(node, "rate"));
}

/** No integer op: qat_create_eval_graph removes it. */
const qat_quant qat_quant_dropout = {
    .role = QAT_ROLE_PASS, .is_view = true, .training_factor = kept_factor, .takes_wide = true};

static void reshape_sample(const qat_exact_call *call, int sample)
{
    memcpy(qat_exact_out(call, sample), qat_exact_in(call, 0, sample),
           qat_qtensor_bytes(qat_exact_output(call)));
}

const qat_integer_op qat_integer_reshape = {
    .name = "reshape", .sample = reshape_sample, .is_wide = true};

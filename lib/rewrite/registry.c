/** The registry that users get: the float ops and the ops that the rewrites insert. */
#include "autograd/graph/registry.h"
#include "autograd/ops/op.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/schemes.h"

const qat_op *const qat_fake_quant_ops[] = {
    &qat_op_fake_quant,
    &qat_op_fake_quant_weights,
    &qat_op_bn_fold_weights,
    &qat_op_bn_fold_train,
    &qat_op_bn_fold_bias,
    &qat_op_tqt,
    &qat_op_tqt_weights,
    &qat_op_tqt_full_weights,
    &qat_op_lsq,
    &qat_op_lsq_weights,
    &qat_op_lsq_full_weights,
    &qat_op_pact,
    &qat_op_ema_grid,
    &qat_op_ema_grid_weights,
    &qat_op_bwn_weights,
    &qat_op_twn_weights,
    &qat_op_fgq_weights,
    &qat_op_inq_weights,
    &qat_op_dorefa_weights,
    &qat_op_weight_norm_weights,
    &qat_op_apot_weights,
    &qat_op_float_activation,
    NULL,
};

bool qat_is_fake_quant_op(const qat_op *op)
{
    if (qat_op_quantizer(op))
        return true; /* also for a user's */
    for (int i = 0; qat_fake_quant_ops[i]; i++)
        if (op == qat_fake_quant_ops[i])
            return true;
    return false;
}

static qat_status add_all(qat_registry *registry, const qat_op *const *ops, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && ops[i]; i++)
        st = qat_registry_add(registry, ops[i], err);
    return st;
}

qat_status qat_registry_create(qat_registry **registry, qat_error *err)
{
    qat_registry *made = NULL;
    *registry = NULL;
    qat_status st = qat_registry_create_empty(&made, err);
    if (!st)
        st = add_all(made, qat_float_ops, err);
    if (!st)
        st = add_all(made, qat_fake_quant_ops, err);
    if (!st) {
        *registry = made;
        made = NULL;
    }
    qat_registry_free(made);
    return st;
}

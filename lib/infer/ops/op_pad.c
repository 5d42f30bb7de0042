/**
 * pad: y is x with before[d] and after[d] positions of the code `value` around it along each axis
 * d. Axes beyond the rank have none.
 */
#include "infer/kernels/move.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, QI_PAD_PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *before = node->params + QI_PAD_BEFORE, *after = node->params + QI_PAD_AFTER;
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->rank == y->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int64_t const want = (int64_t)x->dims[d] + before[d] + after[d];
        qi_rule_range(&c, "before", before[d], 0, d < x->rank ? INT32_MAX : 0);
        qi_rule_range(&c, "after", after[d], 0, d < x->rank ? INT32_MAX : 0);
        qi_rule(&c, y->dims[d] == want, QI_ERR_SHAPE, "dimension of the output", y->dims[d], want);
    }
    qi_rule_range(&c, "value", node->params[QI_PAD_VALUE], qi_code_lo(y), qi_code_hi(y));
    return c.status;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    size_t stride[QI_MAX_RANK];
    qk_pad pad = {.type = y->type, .count = (int32_t)qi_count(y), .value = p[QI_PAD_VALUE]};
    qi_strides(y, stride);
    memcpy(pad.dims, x->dims, sizeof pad.dims);
    for (int d = 0; d < QI_MAX_RANK; d++)
        pad.first += p[QI_PAD_BEFORE + d] * (int32_t)stride[d];
    for (int d = 0; d < QI_MAX_RANK - 1; d++)
        pad.step[d] = (int32_t)stride[d];
    *(qk_pad *)params = pad;
}

static void run(const qi_call *call)
{
    qk_pad p;
    fill(call, &p);
    qk_pad_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_pad = {.name = "pad", .check = check, .run = run};
const qi_code qi_code_pad = {"qk_pad", sizeof(qk_pad), fill, NULL, 0, 0};

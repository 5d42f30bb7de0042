/**
 * select: y = a where the condition holds, b elsewhere. The three broadcast as NumPy's do. The
 * codes pass unchanged, whatever they mean.
 */
#include "infer/kernels/move.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { CONDITION, A, B, INPUTS };

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, INPUTS, INPUTS, 0, QI_ROUND_NONE))
        return c.status;
    qi_rule_truth(&c, qi_input(model, node, CONDITION));
    qi_rule_same_type(&c, A);
    qi_rule_same_type(&c, B);
    qi_rule_broadcast(&c, CONDITION, B);
    return c.status;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    qk_select p = {.item = (int32_t)qi_type_bytes(y->type)};
    for (int d = 0; d < QI_MAX_RANK; d++)
        p.dims[d] = qi_aligned_dim(y, d);
    for (int32_t i = 0; i < INPUTS; i++) {
        size_t stride[QI_MAX_RANK];
        qi_broadcast_strides(qi_input(call->model, call->node, i), stride);
        for (int d = 0; d < QI_MAX_RANK; d++)
            p.step[i][d] = (int32_t)stride[d];
    }
    *(qk_select *)params = p;
}

static void run(const qi_call *call)
{
    qk_select p;
    fill(call, &p);
    qk_select_run(&p, call->in[CONDITION], call->in[A], call->in[B], call->out[0]);
}

const qi_kernel qi_kernel_select = {.name = "select", .check = check, .run = run};
const qi_code qi_code_select = {"qk_select", sizeof(qk_select), fill, NULL, 0, 0};

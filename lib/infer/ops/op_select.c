/**
 * select: y = a where the condition holds, b elsewhere. The three broadcast as NumPy's do. The
 * codes pass unchanged, whatever they mean.
 */
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

/** Where the value of input i lies that belongs to output position `at`. */
static const uint8_t *value_at(const qi_call *call, int32_t i, const int32_t at[QI_MAX_RANK])
{
    const qi_tensor *t = qi_input(call->model, call->node, i);
    size_t stride[QI_MAX_RANK], offset = 0;
    qi_broadcast_strides(t, stride);
    for (int d = 0; d < QI_MAX_RANK; d++)
        offset += (size_t)at[d] * stride[d];
    return (const uint8_t *)call->in[i] + offset * qi_type_bytes(t->type);
}

static void run(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    size_t const each = qi_type_bytes(y->type);
    int32_t at[QI_MAX_RANK] = {0};
    uint8_t *to = call->out[0];
    for (int64_t n = qi_count(y); n > 0; n--, to += each) {
        memcpy(to, value_at(call, *value_at(call, CONDITION, at) ? A : B, at), each);
        for (int d = QI_MAX_RANK - 1; d >= 0 && ++at[d] == qi_aligned_dim(y, d); d--)
            at[d] = 0;
    }
}

const qi_kernel qi_kernel_select = {.name = "select", .check = check, .run = run};

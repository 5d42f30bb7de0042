/**
 * pad: y is x with before[d] and after[d] positions of the code `value` around it along each axis
 * d. Axes beyond the rank have none.
 */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { BEFORE = 0, AFTER = QI_MAX_RANK, VALUE = 2 * QI_MAX_RANK, PARAMS };

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *before = node->params + BEFORE, *after = node->params + AFTER;
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->rank == y->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int64_t const want = (int64_t)x->dims[d] + before[d] + after[d];
        qi_rule_range(&c, "before", before[d], 0, d < x->rank ? INT32_MAX : 0);
        qi_rule_range(&c, "after", after[d], 0, d < x->rank ? INT32_MAX : 0);
        qi_rule(&c, y->dims[d] == want, QI_ERR_SHAPE, "dimension of the output", y->dims[d], want);
    }
    qi_rule_range(&c, "value", node->params[VALUE], qi_code_lo(y), qi_code_hi(y));
    return c.status;
}

static void fill(const qi_tensor *y, void *values, int32_t value)
{
    if (qi_type_bytes(y->type) == 1)
        memset(values, (uint8_t)value, y->bytes);
    else
        for (size_t i = 0; i < (size_t)qi_count(y); i++)
            qi_store_value(y->type, values, i, value);
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    const uint8_t *from = call->in[0];
    uint8_t *to = call->out[0];
    size_t const item = qi_type_bytes(y->type), run = (size_t)x->dims[3] * item;
    size_t stride[QI_MAX_RANK];
    qi_strides(y, stride);
    fill(y, to, p[VALUE]);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        stride[d] *= item;
        to += (size_t)p[BEFORE + d] * stride[d];
    }
    for (size_t i = 0; i < (size_t)x->dims[0]; i++)
        for (size_t j = 0; j < (size_t)x->dims[1]; j++)
            for (size_t k = 0; k < (size_t)x->dims[2]; k++, from += run)
                memcpy(to + i * stride[0] + j * stride[1] + k * stride[2], from, run);
}

const qi_kernel qi_kernel_pad = {.name = "pad", .check = check, .run = run};

/** softmax along the last axis, in fixed point; see qi_softmax_row in code_functions.h. */
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST_VALUES = 4096 }; /* limit of a row: the sum has 12 integer bits */
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, QI_SOFTMAX_PARAMS, QI_ROUND_NONE) || !qi_rule_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *p = node->params;
    qi_rule_same_shape(&c, 0);
    qi_rule(&c, x->dims[x->rank - 1] <= MOST_VALUES, QI_ERR_SHAPE, "values of a row",
            x->dims[x->rank - 1], MOST_VALUES);
    qi_rule(&c, y->zero_point == qi_code_lo(y), QI_ERR_PARAM, "zero_point of the output",
            y->zero_point, qi_code_lo(y));
    qi_rule_range(&c, "mult", p[QI_SOFTMAX_MULT], 0, INT32_MAX);
    if (qi_rule_range(&c, "shift", p[QI_SOFTMAX_SHIFT], 0, 31))
        qi_rule_range(&c, "diff_min", p[QI_SOFTMAX_DIFF_MIN],
                      -((INT64_C(31) << 26) >> p[QI_SOFTMAX_SHIFT]), 0);
    return c.status;
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    qi_softmax const s = {.mult = p[QI_SOFTMAX_MULT],
                          .shift = p[QI_SOFTMAX_SHIFT],
                          .diff_min = p[QI_SOFTMAX_DIFF_MIN],
                          .in_signed = x->type == QI_S8,
                          .lowest = qi_code_lo(y),
                          .bits = y->bits};
    size_t const row = (size_t)x->dims[x->rank - 1];
    for (size_t i = 0; i < x->bytes; i += row)
        qi_softmax_row((const uint8_t *)call->in[0] + i, (uint8_t *)call->out[0] + i, row, &s);
}

const qi_kernel qi_kernel_softmax = {.name = "softmax", .check = check, .run = run, .in_place = 1};

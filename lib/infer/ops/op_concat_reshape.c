/** concat and reshape: these ops move codes and compute nothing. */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { AXIS, CONCAT_PARAMS };

/* ------------------------------------------------------------------ concat */

static qi_status check_concat(const qi_model *model, const qi_node *node, int32_t index,
                              qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, QM_MAX_NODE_INPUTS, CONCAT_PARAMS, QI_ROUND_NONE) ||
        !qi_rule_any_codes(&c, 0, node->n_inputs - 1))
        return c.status;
    const qi_tensor *y = qi_output(model, node);
    int32_t const axis = node->params[AXIS];
    if (!qi_rule_range(&c, "axis", axis, 0, y->rank - 1))
        return c.status;
    int64_t length = 0;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const qi_tensor *x = qi_input(model, node, i);
        qi_rule_same_codes(&c, i);
        qi_rule(&c, x->rank == y->rank, QI_ERR_SHAPE, "rank of an input", x->rank, y->rank);
        for (int d = 0; d < QI_MAX_RANK; d++)
            qi_rule(&c, d == axis || x->dims[d] == y->dims[d], QI_ERR_SHAPE,
                    "dimension of an input", x->dims[d], y->dims[d]);
        length += x->dims[axis];
    }
    qi_rule(&c, length == y->dims[axis], QI_ERR_SHAPE, "dimension of the output along the axis",
            y->dims[axis], length);
    return c.status;
}

/** Bytes of t from the axis on: what one step of the axes before it covers. */
static size_t inner_bytes(const qi_tensor *t, int32_t axis)
{
    size_t n = qi_type_bytes(t->type);
    for (int d = axis; d < t->rank; d++)
        n *= (size_t)t->dims[d];
    return n;
}

static void run_concat(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    int32_t const axis = call->node->params[AXIS];
    size_t const whole = inner_bytes(y, axis), outer = y->bytes / whole;
    size_t at = 0;
    for (int32_t i = 0; i < call->node->n_inputs; i++) {
        size_t const part = inner_bytes(qi_input(call->model, call->node, i), axis);
        for (size_t j = 0; j < outer; j++)
            memcpy((uint8_t *)call->out[0] + j * whole + at,
                   (const uint8_t *)call->in[i] + j * part, part);
        at += part;
    }
}

/* ------------------------------------------------------------------ reshape */

static qi_status check_reshape(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, 0, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->bytes == y->bytes, QI_ERR_SHAPE, "values of the output", (int64_t)y->bytes,
            (int64_t)x->bytes);
    return c.status;
}

/** If the planner gave both tensors the same memory (plan.c), there is nothing to do. */
static void run_reshape(const qi_call *call)
{
    if (call->out[0] != call->in[0])
        memcpy(call->out[0], call->in[0], qi_output(call->model, call->node)->bytes);
}

const qi_kernel qi_kernel_concat = {.name = "concat", .check = check_concat, .run = run_concat};
const qi_kernel qi_kernel_reshape = {
    .name = "reshape", .check = check_reshape, .run = run_reshape, .in_place = QI_SAME_BYTES};

/** concat and reshape: these ops move codes and compute nothing. */
#include "infer/kernels/move.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

/* ------------------------------------------------------------------ concat */

static qi_status check_concat(const qi_model *model, const qi_node *node, int32_t index,
                              qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, QM_MAX_NODE_INPUTS, QI_CONCAT_PARAMS, QI_ROUND_NONE) ||
        !qi_rule_any_codes(&c, 0, node->n_inputs - 1))
        return c.status;
    const qi_tensor *y = qi_output(model, node);
    int32_t const axis = node->params[QI_CONCAT_AXIS];
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

/** Input i, whose bytes begin at byte `at` of each row of the output. */
static qk_concat part_of(const qi_call *call, int32_t i, size_t at)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    int32_t const axis = call->node->params[QI_CONCAT_AXIS];
    size_t const row = inner_bytes(y, axis);
    return (qk_concat){.outer = (int32_t)(y->bytes / row),
                       .row = (int32_t)row,
                       .at = (int32_t)at,
                       .part = (int32_t)inner_bytes(qi_input(call->model, call->node, i), axis)};
}

static void fill_concat(const qi_call *call, void *params)
{
    size_t at = 0;
    for (int32_t i = 0; i < call->node->n_inputs; i++) {
        qk_concat *p = (qk_concat *)params + i;
        *p = part_of(call, i, at);
        at += (size_t)p->part;
    }
}

static void run_concat(const qi_call *call)
{
    size_t at = 0;
    for (int32_t i = 0; i < call->node->n_inputs; i++) {
        qk_concat const p = part_of(call, i, at);
        qk_concat_run(&p, call->in[i], call->out[0]);
        at += (size_t)p.part;
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

static void fill_reshape(const qi_call *call, void *params)
{
    *(qk_reshape *)params = (qk_reshape){(int32_t)qi_output(call->model, call->node)->bytes};
}

static void run_reshape(const qi_call *call)
{
    qk_reshape p;
    fill_reshape(call, &p);
    qk_reshape_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_concat = {
    .name = "concat", .check = check_concat, .run = run_concat, .in_place = QI_PARTS_OF_OUTPUT};
const qi_kernel qi_kernel_reshape = {
    .name = "reshape", .check = check_reshape, .run = run_reshape, .in_place = QI_SAME_BYTES};

const qi_code qi_code_concat = {"qk_concat", sizeof(qk_concat), fill_concat, NULL, 0, 1};
const qi_code qi_code_reshape = {"qk_reshape", sizeof(qk_reshape), fill_reshape, NULL, 0, 0};

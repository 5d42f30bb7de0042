/**
 * arg_max: y = the index of the largest code along an axis of x; the lowest index if there are
 * several. y is int32 or int64 and has the dims of x without that axis; [1] if x has rank 1.
 *
 * top_k: y = the int32 indices of the largest codes of each row along the last axis, from the
 * largest on; of equal codes the lower index comes first. y has the dims of x, but for the last,
 * which says how many. Scratch: where the indices of each code begin.
 */
#include "infer/kernels/arg_max.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { AXIS, PARAMS };

/** Dim d of the output: the dims of x without the axis. */
static int32_t kept_dim(const qi_tensor *x, int32_t axis, int d)
{
    int const from = d < axis ? d : d + 1;
    return from < x->rank ? x->dims[from] : 1;
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, PARAMS, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    int32_t const axis = node->params[AXIS], rank = x->rank > 1 ? x->rank - 1 : 1;
    qi_rule(&c, x->type <= QI_S8, QI_ERR_SHAPE, "type, not of 8 bits", x->type, QI_S8);
    qi_rule(&c, y->type == QI_S32 || y->type == QI_S64, QI_ERR_SHAPE,
            "type of the output, neither int32 nor int64", y->type, QI_S64);
    if (!qi_rule_range(&c, "axis", axis, 0, x->rank - 1))
        return c.status;
    qi_rule(&c, y->rank == rank, QI_ERR_SHAPE, "rank of the output", y->rank, rank);
    for (int d = 0; d < QI_MAX_RANK; d++)
        qi_rule(&c, y->dims[d] == kept_dim(x, axis, d), QI_ERR_SHAPE, "dimension of the output",
                y->dims[d], kept_dim(x, axis, d));
    return c.status;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    int32_t const axis = call->node->params[AXIS], n = x->dims[axis];
    size_t stride[QI_MAX_RANK];
    qi_strides(x, stride);
    int32_t const inner = (int32_t)stride[axis];
    *(qk_arg_max *)params = (qk_arg_max){.outer = (int32_t)x->bytes / inner / n,
                                         .n = n,
                                         .inner = inner,
                                         .flip = x->type == QI_S8 ? 0x80 : 0,
                                         .y_type = qi_output(call->model, call->node)->type};
}

static void run(const qi_call *call)
{
    qk_arg_max p;
    fill(call, &p);
    qk_arg_max_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_arg_max = {.name = "arg_max", .check = check, .run = run};

static qi_status check_top_k(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, 0, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    int const last = x->rank - 1;
    qi_rule(&c, x->type <= QI_S8, QI_ERR_SHAPE, "type, not of 8 bits", x->type, QI_S8);
    qi_rule(&c, y->type == QI_S32, QI_ERR_SHAPE, "type of the output, not int32", y->type, QI_S32);
    qi_rule(&c, y->rank == x->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < last; d++)
        qi_rule(&c, y->dims[d] == x->dims[d], QI_ERR_SHAPE, "dimension of the output", y->dims[d],
                x->dims[d]);
    qi_rule(&c, y->dims[last] <= x->dims[last], QI_ERR_SHAPE, "indices of a row", y->dims[last],
            x->dims[last]);
    return c.status;
}

static size_t scratch_top_k(const qi_model *model, const qi_node *node)
{
    (void)model;
    (void)node;
    return qk_top_k_scratch();
}

static void fill_top_k(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    int32_t const k = y->dims[y->rank - 1];
    *(qk_top_k *)params = (qk_top_k){.rows = (int32_t)qi_count(y) / k,
                                     .n = x->dims[x->rank - 1],
                                     .k = k,
                                     .flip = x->type == QI_S8 ? 0x80 : 0};
}

static void run_top_k(const qi_call *call)
{
    qk_top_k p;
    fill_top_k(call, &p);
    qk_top_k_run(&p, call->in[0], call->out[0], call->scratch);
}

const qi_kernel qi_kernel_top_k = {
    .name = "top_k", .check = check_top_k, .scratch = scratch_top_k, .run = run_top_k};

const qi_code qi_code_arg_max = {"qk_arg_max", sizeof(qk_arg_max), fill, NULL, 0, 0};
const qi_code qi_code_top_k = {"qk_top_k", sizeof(qk_top_k), fill_top_k, NULL, 0, 0};

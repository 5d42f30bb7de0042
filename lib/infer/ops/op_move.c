/**
 * strided_slice and transpose: each output code is a copy of one input code. Its position moves by
 * a fixed distance along each axis of the output.
 *
 *   strided_slice   y[i]    = x[begin[d] + i[d] stride[d] along every axis d]
 *   transpose       y[i]    = x[j], j[perm[d]] = i[d]
 *
 * There are parameters for four axes. Axes beyond the rank have begin 0, stride 1, perm d.
 */
#include "infer/kernels/move.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

/** A walk from the first value of x; its steps are not set. */
static qk_walk walk_of(const qi_call *call, size_t distance[QI_MAX_RANK])
{
    const qi_tensor *y = qi_output(call->model, call->node);
    qk_walk w = {.item = (int32_t)qi_type_bytes(y->type)};
    memcpy(w.dims, y->dims, sizeof w.dims);
    qi_strides(qi_input(call->model, call->node, 0), distance);
    return w;
}

/* ------------------------------------------------------------------ strided_slice */

static qi_status check_slice(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, QI_SLICE_PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *begin = node->params + QI_SLICE_BEGIN, *stride = node->params + QI_SLICE_STRIDE;
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->rank == y->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int64_t const last = begin[d] + ((int64_t)y->dims[d] - 1) * stride[d];
        qi_rule_range(&c, "begin", begin[d], 0, x->dims[d] - 1);
        qi_rule(&c, stride[d] != 0 && (d < x->rank || stride[d] == 1), QI_ERR_PARAM, "stride",
                stride[d], 1);
        qi_rule(&c, last >= 0 && last < x->dims[d], QI_ERR_SHAPE, "last position along an axis",
                last, x->dims[d] - 1);
    }
    return c.status;
}

static void fill_slice(const qi_call *call, void *params)
{
    const int32_t *begin = call->node->params + QI_SLICE_BEGIN,
                  *stride = call->node->params + QI_SLICE_STRIDE;
    size_t distance[QI_MAX_RANK];
    qk_walk w = walk_of(call, distance);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        w.first += begin[d] * (int32_t)distance[d];
        w.step[d] = w.dims[d] > 1 ? stride[d] * (int32_t)distance[d] : 0;
    }
    *(qk_walk *)params = w;
}

static void run_slice(const qi_call *call)
{
    qk_walk p;
    fill_slice(call, &p);
    qk_walk_run(&p, call->in[0], call->out[0]);
}

/* ------------------------------------------------------------------ transpose */

enum { TRANSPOSE_PARAMS = QI_MAX_RANK };

static qi_status check_transpose(const qi_model *model, const qi_node *node, int32_t index,
                                 qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, TRANSPOSE_PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    int32_t seen = 0;
    qi_rule_same_codes(&c, 0);
    qi_rule(&c, x->rank == y->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < QI_MAX_RANK && !c.status; d++) {
        int32_t const from = node->params[d];
        qi_rule_range(&c, "perm", from, d < x->rank ? 0 : d, d < x->rank ? x->rank - 1 : d);
        if (c.status)
            return c.status;
        qi_rule(&c, !(seen >> from & 1), QI_ERR_PARAM, "perm: an axis named twice", from, d);
        qi_rule(&c, y->dims[d] == x->dims[from], QI_ERR_SHAPE, "dimension of the output",
                y->dims[d], x->dims[from]);
        seen |= 1 << from;
    }
    return c.status;
}

static void fill_transpose(const qi_call *call, void *params)
{
    size_t distance[QI_MAX_RANK];
    qk_walk w = walk_of(call, distance);
    for (int d = 0; d < QI_MAX_RANK; d++)
        w.step[d] = (int32_t)distance[call->node->params[d]];
    *(qk_walk *)params = w;
}

static void run_transpose(const qi_call *call)
{
    qk_walk p;
    fill_transpose(call, &p);
    qk_walk_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_strided_slice = {
    .name = "strided_slice", .check = check_slice, .run = run_slice, .in_place = QI_PART_OF_INPUT};
const qi_kernel qi_kernel_transpose = {
    .name = "transpose", .check = check_transpose, .run = run_transpose};

const qi_code qi_code_strided_slice = {"qk_walk", sizeof(qk_walk), fill_slice, NULL, 0, 0};
const qi_code qi_code_transpose = {"qk_walk", sizeof(qk_walk), fill_transpose, NULL, 0, 0};

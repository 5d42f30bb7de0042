/**
 * strided_slice and transpose: each output code is a copy of one input code. Its position moves by
 * a fixed distance along each axis of the output.
 *
 *   strided_slice   y[i]    = x[begin[d] + i[d] stride[d] along every axis d]
 *   transpose       y[i]    = x[j], j[perm[d]] = i[d]
 *
 * There are parameters for four axes. Axes beyond the rank have begin 0, stride 1, perm d.
 */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

/** Where the values of the output lie in the input, counted in values. */
struct walk {
    ptrdiff_t first;
    ptrdiff_t step[QI_MAX_RANK]; /* along the output's axes */
};

/** Copy n values of `item` bytes, which lie `step` values apart. */
static inline void copy_run(uint8_t *y, const uint8_t *x, ptrdiff_t step, ptrdiff_t n, size_t item)
{
    if (step == 1) {
        memcpy(y, x, (size_t)n * item);
        return;
    }
    for (ptrdiff_t i = 0; i < n && item == 1; i++)
        y[i] = x[i * step];
    for (ptrdiff_t i = 0; i < n && item > 1; i++)
        memcpy(y + i * (ptrdiff_t)item, x + i * step * (ptrdiff_t)item, item);
}

static void copy_walk(const qi_call *call, const struct walk *w)
{
    const int32_t *dims = qi_output(call->model, call->node)->dims;
    ptrdiff_t const item = (ptrdiff_t)qi_type_bytes(qi_output(call->model, call->node)->type);
    const uint8_t *x = (const uint8_t *)call->in[0] + w->first * item;
    uint8_t *y = call->out[0];
    for (ptrdiff_t i = 0; i < dims[0]; i++)
        for (ptrdiff_t j = 0; j < dims[1]; j++)
            for (ptrdiff_t k = 0; k < dims[2]; k++, y += dims[3] * item)
                copy_run(y, x + (i * w->step[0] + j * w->step[1] + k * w->step[2]) * item,
                         w->step[3], dims[3], (size_t)item);
}

/* ------------------------------------------------------------------ strided_slice */

enum { BEGIN = 0, STRIDE = QI_MAX_RANK, SLICE_PARAMS = 2 * QI_MAX_RANK };

static qi_status check_slice(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, SLICE_PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *begin = node->params + BEGIN, *stride = node->params + STRIDE;
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

static void run_slice(const qi_call *call)
{
    const int32_t *begin = call->node->params + BEGIN, *stride = call->node->params + STRIDE;
    size_t distance[QI_MAX_RANK];
    struct walk w = {0};
    qi_strides(qi_input(call->model, call->node, 0), distance);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        w.first += begin[d] * (ptrdiff_t)distance[d];
        w.step[d] = stride[d] * (ptrdiff_t)distance[d];
    }
    copy_walk(call, &w);
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

static void run_transpose(const qi_call *call)
{
    size_t distance[QI_MAX_RANK];
    struct walk w = {0};
    qi_strides(qi_input(call->model, call->node, 0), distance);
    for (int d = 0; d < QI_MAX_RANK; d++)
        w.step[d] = (ptrdiff_t)distance[call->node->params[d]];
    copy_walk(call, &w);
}

const qi_kernel qi_kernel_strided_slice = {
    .name = "strided_slice", .check = check_slice, .run = run_slice};
const qi_kernel qi_kernel_transpose = {
    .name = "transpose", .check = check_transpose, .run = run_transpose};

/**
 * gather: parts of x in the order of indices. With the dims of x before batch_dims as b, from there
 * up to the axis as o, and behind the axis as k:
 *
 *   y[b, o, i, k] = x[b, o, indices[b, i], k]
 *
 * y may have any shape with as many values. An index that is no position counts as the nearest one.
 */
#include "infer/kernels/move.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { AXIS, BATCH_DIMS, PARAMS };
enum { X, INDICES, INPUTS };

/** The values of dims first..end-1. */
static int64_t product(const qi_tensor *t, int32_t first, int32_t end)
{
    int64_t n = 1;
    for (int32_t d = first; d < end; d++)
        n *= t->dims[d];
    return n;
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, INPUTS, INPUTS, PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, X, X))
        return c.status;
    const qi_tensor *x = qi_input(model, node, X), *indices = qi_input(model, node, INDICES);
    int32_t const axis = node->params[AXIS], batch_dims = node->params[BATCH_DIMS];
    qi_rule_same_codes(&c, X);
    qi_rule(&c, !qi_type_has_codes(indices->type), QI_ERR_SHAPE,
            "type of the indices, neither int32 nor int64", indices->type, QI_S64);
    qi_rule_range(&c, "axis", axis, 0, x->rank - 1);
    if (!qi_rule_range(&c, "batch_dims", batch_dims, 0, axis))
        return c.status;
    for (int32_t d = 0; d < batch_dims; d++)
        qi_rule(&c, indices->dims[d] == x->dims[d], QI_ERR_SHAPE, "dimension of the indices",
                indices->dims[d], x->dims[d]);
    int64_t const values = qi_count(x) / x->dims[axis] * product(indices, batch_dims, QI_MAX_RANK);
    qi_rule(&c, qi_count(qi_output(model, node)) == values, QI_ERR_SHAPE, "values of the output",
            qi_count(qi_output(model, node)), values);
    return c.status;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    const qi_tensor *indices = qi_input(call->model, call->node, INDICES);
    int32_t const axis = call->node->params[AXIS], batch_dims = call->node->params[BATCH_DIMS];
    *(qk_gather *)params = (qk_gather){
        .index_type = indices->type,
        .batches = (int32_t)product(x, 0, batch_dims),
        .outer = (int32_t)product(x, batch_dims, axis),
        .picked = (int32_t)product(indices, batch_dims, QI_MAX_RANK),
        .length = x->dims[axis],
        .bytes = (int32_t)(product(x, axis + 1, x->rank) * (int64_t)qi_type_bytes(x->type))};
}

static void run(const qi_call *call)
{
    qk_gather p;
    fill(call, &p);
    qk_gather_run(&p, call->in[X], call->in[INDICES], call->out[0]);
}

const qi_kernel qi_kernel_gather = {.name = "gather", .check = check, .run = run};
const qi_code qi_code_gather = {"qk_gather", sizeof(qk_gather), fill, NULL, 0, 0};

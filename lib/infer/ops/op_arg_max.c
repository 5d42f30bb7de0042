/**
 * arg_max: y = the index of the largest code along an axis of x; the lowest index if there are
 * several. y is int32 or int64 and has the dims of x without that axis; [1] if x has rank 1.
 *
 * top_k: y = the int32 indices of the largest codes of each row along the last axis, from the
 * largest on; of equal codes the lower index comes first. y has the dims of x, but for the last,
 * which says how many. Scratch: where the indices of each code begin.
 */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { AXIS, PARAMS };
enum { CODES = 256 };

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

/** The index of the largest of n codes that lie `step` apart. */
static int32_t largest(const uint8_t *x, size_t step, int32_t n, uint8_t flip)
{
    int32_t best = 0;
    uint8_t most = *x ^ flip;
    for (int32_t i = 1; i < n; i++) {
        uint8_t const code = x[(size_t)i * step] ^ flip;
        if (code > most) {
            most = code;
            best = i;
        }
    }
    return best;
}

static void store(const qi_tensor *y, void *to, size_t at, int32_t index)
{
    if (y->type == QI_S64)
        ((int64_t *)to)[at] = index;
    else
        ((int32_t *)to)[at] = index;
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    int32_t const axis = call->node->params[AXIS], n = x->dims[axis];
    uint8_t const flip = x->type == QI_S8 ? 0x80 : 0; /* so that -128..127 compare as 0..255 */
    const uint8_t *codes = call->in[0];
    size_t stride[QI_MAX_RANK];
    qi_strides(x, stride);
    size_t const inner = stride[axis], outer = x->bytes / inner / (size_t)n;
    for (size_t i = 0; i < outer; i++, codes += (size_t)n * inner)
        for (size_t j = 0; j < inner; j++)
            store(y, call->out[0], i * inner + j, largest(codes + j, inner, n, flip));
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
    return CODES * sizeof(int32_t);
}

/** Write the indices of the k largest of n codes: where those of a code begin, all larger end. */
static void largest_first(const uint8_t *x, int32_t n, uint8_t flip, int32_t *begin, int32_t k,
                          int32_t *y)
{
    memset(begin, 0, CODES * sizeof *begin);
    for (int32_t i = 0; i < n; i++)
        begin[x[i] ^ flip]++;
    for (int32_t code = CODES - 1, larger = 0; code >= 0; code--) {
        int32_t const count = begin[code];
        begin[code] = larger;
        larger += count;
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t const place = begin[x[i] ^ flip]++;
        if (place < k)
            y[place] = i;
    }
}

static void run_top_k(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    int32_t const n = x->dims[x->rank - 1], k = y->dims[y->rank - 1];
    const uint8_t *codes = call->in[0];
    int32_t *to = call->out[0];
    for (int64_t row = qi_count(y) / k; row > 0; row--, codes += n, to += k)
        largest_first(codes, n, x->type == QI_S8 ? 0x80 : 0, call->scratch, k, to);
}

const qi_kernel qi_kernel_top_k = {
    .name = "top_k", .check = check_top_k, .scratch = scratch_top_k, .run = run_top_k};

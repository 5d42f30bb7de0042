/**
 * mean over the axes of axis_mask. Each output is the mean of n values:
 *
 *   y = clamp(requantize(sum of q - n Z_x, mult, shift) + Z_y)
 *
 * The multiplier contains the division by n (docs/arithmetic.md, section 6). The outputs keep the
 * order of the input. In the output's shape the averaged axes are 1, or left out. Scratch: one
 * int32 sum per output.
 */
#include "infer/model/memory.h"
#include "infer/model/op.h"

/** Number of values in the output: the product of the dims that are not averaged. */
static int64_t kept_values(const qi_tensor *x, int32_t mask)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        if (!(mask >> d & 1))
            n *= x->dims[d];
    return n;
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, QI_MEAN_CLAMP_HI + 1, QI_ROUND_TWICE) ||
        !qi_rule_codes_or_wide(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    int32_t const mask = node->params[QI_MEAN_AXIS_MASK];
    if (!qi_rule_range(&c, "axis_mask", mask, 1, (1 << x->rank) - 1))
        return c.status;
    int64_t const kept = kept_values(x, mask);
    qi_rule(&c, qi_count(y) == kept, QI_ERR_SHAPE, "values of the output", qi_count(y), kept);
    int64_t const largest = qi_is_wide(x) ? -(int64_t)INT16_MIN : UINT8_MAX;
    int64_t const most = qi_count(x) / kept * largest; /* largest sum of q, and of q - Z */
    qi_rule(&c, most <= INT32_MAX, QI_ERR_OVERFLOW, "largest accumulator", most, INT32_MAX);
    qi_rule_multiplier(&c, QI_MEAN_MULT);
    qi_rule_clamp(&c, QI_MEAN_CLAMP_LO);
    return c.status;
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    return (size_t)qi_count(qi_output(model, node)) * sizeof(int32_t);
}

/** For each axis of x, the distance between the outputs of neighbours; 0 for an averaged axis. */
static void output_steps(const qi_tensor *x, int32_t mask, size_t step[QI_MAX_RANK])
{
    size_t distance = 1;
    for (int d = QI_MAX_RANK - 1; d >= 0; d--) {
        int const averaged = d >= x->rank || (mask >> d & 1);
        step[d] = averaged ? 0 : distance;
        distance *= averaged ? 1 : (size_t)x->dims[d];
    }
}

/** Add the differences of one run along the last axis. With step 0 all go to one sum. */
static void add_run(int32_t *sums, size_t step, const uint8_t *x, size_t n, qi_codes c)
{
    for (size_t i = 0; i < n; i++)
        sums[i * step] += (x[i] ^ c.flip) - c.offset;
}

static void add_wide_run(int32_t *sums, size_t step, const int16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i * step] += x[i];
}

static void sum_all(int32_t *sums, const qi_tensor *x, const void *codes, int32_t mask)
{
    size_t step[QI_MAX_RANK], at = 0;
    size_t const last = (size_t)x->dims[3];
    output_steps(x, mask, step);
    for (size_t i = 0; i < (size_t)x->dims[0]; i++)
        for (size_t j = 0; j < (size_t)x->dims[1]; j++)
            for (size_t k = 0; k < (size_t)x->dims[2]; k++, at += last) {
                int32_t *to = sums + i * step[0] + j * step[1] + k * step[2];
                if (qi_is_wide(x))
                    add_wide_run(to, step[3], (const int16_t *)codes + at, last);
                else
                    add_run(to, step[3], (const uint8_t *)codes + at, last, qi_codes_of(x));
            }
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    int32_t *sums = call->scratch;
    size_t const n = (size_t)qi_count(y);
    memset(sums, 0, n * sizeof *sums);
    sum_all(sums, x, call->in[0], p[QI_MEAN_AXIS_MASK]);
    for (size_t i = 0; i < n; i++) {
        int64_t const code =
            (int64_t)qi_requantize(sums[i], p[QI_MEAN_MULT], p[QI_MEAN_SHIFT]) + y->zero_point;
        qi_store_value(y->type, call->out[0], i,
                       qi_clamp(qi_saturate_i64(code), p[QI_MEAN_CLAMP_LO], p[QI_MEAN_CLAMP_HI]));
    }
}

const qi_kernel qi_kernel_mean = {.name = "mean", .check = check, .scratch = scratch, .run = run};

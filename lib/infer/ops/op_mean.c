/**
 * mean, sum and reduce over the axes of axis_mask. Each output of mean is the mean of n values:
 *
 *   y = clamp(requantize(sum of q - n Z_x, mult, shift) + Z_y)
 *
 * The multiplier contains the division by n (docs/arithmetic.md, section 6). The outputs keep the
 * order of the input. In the output's shape the averaged axes are 1, or left out. Scratch: one
 * int32 sum per output.
 *
 * sum is the reference's binary32 arithmetic, rounded half away from zero:
 *
 *   y = clamp(round((sum of q) scale + bias) + Z_y)
 *
 * reduce keeps the largest or the smallest code.
 */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { AXIS_MASK, SCALE_MANT, SCALE_EXP, BIAS_MANT, BIAS_EXP, CLAMP_LO, CLAMP_HI, SUM_PARAMS };
enum { KIND = 1, REDUCE_PARAMS };

/** Number of values in the output: the product of the dims that are not averaged. */
static int64_t kept_values(const qi_tensor *x, int32_t mask)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        if (!(mask >> d & 1))
            n *= x->dims[d];
    return n;
}

/** Check the axes and the number of outputs. */
static int rule_axes(qi_checker *c, int32_t mask)
{
    const qi_tensor *x = qi_input(c->model, c->node, 0), *y = qi_output(c->model, c->node);
    if (!qi_rule_range(c, "axis_mask", mask, 1, (1 << x->rank) - 1))
        return 0;
    int64_t const kept = kept_values(x, mask);
    return qi_rule(c, qi_count(y) == kept, QI_ERR_SHAPE, "values of the output", qi_count(y), kept);
}

/** Check that sums of codes fit int32. */
static void rule_sums(qi_checker *c, int32_t mask)
{
    const qi_tensor *x = qi_input(c->model, c->node, 0);
    int64_t const largest = qi_is_wide(x) ? -(int64_t)INT16_MIN : UINT8_MAX;
    int64_t const most =
        qi_count(x) / kept_values(x, mask) * largest; /* largest sum of q, and of q - Z */
    qi_rule(c, most <= INT32_MAX, QI_ERR_OVERFLOW, "largest accumulator", most, INT32_MAX);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    enum { OTHERS = 1 << QI_ROUND_EVEN | 1 << QI_ROUND_ONCE };
    if (!qi_rule_counts(&c, 1, 1, QI_MEAN_CLAMP_HI + 1,
                        qi_rounding_or(model, node, QI_ROUND_TWICE, OTHERS)) ||
        !qi_rule_codes_or_wide(&c, 0, 0) || !rule_axes(&c, node->params[QI_MEAN_AXIS_MASK]))
        return c.status;
    rule_sums(&c, node->params[QI_MEAN_AXIS_MASK]);
    qi_rule_multiplier(&c, QI_MEAN_MULT);
    qi_rule_clamp(&c, QI_MEAN_CLAMP_LO);
    return c.status;
}

/** Check a binary32 number: 24 bits and an exponent, or 0. */
static void rule_binary32(qi_checker *c, int32_t at)
{
    int64_t const mant = c->node->params[at], size = mant < 0 ? -mant : mant;
    if (mant)
        qi_rule_range(c, "bits of a binary32", size, 1 << 23, (1 << 24) - 1);
    qi_rule_range(c, "exponent of a binary32", c->node->params[at + 1], -200, 200);
}

static qi_status check_sum(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, SUM_PARAMS, QI_ROUND_NONE) || !qi_rule_codes_or_wide(&c, 0, 0) ||
        !rule_axes(&c, node->params[AXIS_MASK]))
        return c.status;
    rule_sums(&c, node->params[AXIS_MASK]);
    rule_binary32(&c, SCALE_MANT);
    rule_binary32(&c, BIAS_MANT);
    qi_rule_clamp(&c, CLAMP_LO);
    return c.status;
}

static qi_status check_reduce(const qi_model *model, const qi_node *node, int32_t index,
                              qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, REDUCE_PARAMS, QI_ROUND_NONE) || !qi_rule_any_codes(&c, 0, 0) ||
        !rule_axes(&c, node->params[AXIS_MASK]))
        return c.status;
    qi_rule_same_codes(&c, 0);
    qi_rule_range(&c, "kind", node->params[KIND], QI_LARGEST, QI_SMALLEST);
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
    int32_t const rounding = call->node->rounding;
    for (size_t i = 0; i < n; i++) {
        int32_t const mult = p[QI_MEAN_MULT], shift = p[QI_MEAN_SHIFT];
        int64_t const value = rounding == QI_ROUND_EVEN ? qi_requantize_even(sums[i], mult, shift)
                              : rounding == QI_ROUND_ONCE
                                  ? qi_requantize_near_ties_up(sums[i], mult, shift)
                                  : qi_requantize(sums[i], mult, shift);
        int64_t const code = value + y->zero_point;
        qi_store_value(y->type, call->out[0], i,
                       qi_clamp(qi_saturate_i64(code), p[QI_MEAN_CLAMP_LO], p[QI_MEAN_CLAMP_HI]));
    }
}

/* ------------------------------------------------------------------ sum */

/** The nearest integer, halves away from zero; far beyond every code if it is not an int32. */
static int32_t nearest(qi_binary32 a)
{
    int32_t const far = 1 << 24;
    qi_binary32 const size = {a.mant < 0 ? -a.mant : a.mant, a.exp};
    int32_t const magnitude = a.exp > 0 && a.mant ? far : qi_b32_nearest(size);
    return a.mant < 0 ? -magnitude : magnitude;
}

static void run_sum(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    qi_binary32 const scale = {p[SCALE_MANT], p[SCALE_EXP]}, bias = {p[BIAS_MANT], p[BIAS_EXP]};
    int32_t *sums = call->scratch;
    size_t const n = (size_t)qi_count(y);
    int32_t const zeros = (int32_t)(qi_count(x) / (int64_t)n) * x->zero_point;
    memset(sums, 0, n * sizeof *sums);
    sum_all(sums, x, call->in[0], p[AXIS_MASK]);
    for (size_t i = 0; i < n; i++) {
        qi_binary32 const scaled = qi_b32_mul(qi_b32_of(sums[i] + zeros), scale);
        int32_t const code = nearest(qi_b32_add(scaled, bias)) + y->zero_point;
        qi_store_value(y->type, call->out[0], i, qi_clamp(code, p[CLAMP_LO], p[CLAMP_HI]));
    }
}

/* ------------------------------------------------------------------ reduce */

static void run_reduce(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    size_t step[QI_MAX_RANK], from = 0;
    int32_t at[QI_MAX_RANK] = {0};
    size_t const n = (size_t)qi_count(x), kept = (size_t)qi_count(y);
    output_steps(x, p[AXIS_MASK], step);
    for (size_t i = 0; i < kept; i++)
        qi_store_value(y->type, call->out[0], i,
                       p[KIND] == QI_LARGEST ? qi_code_lo(y) : qi_code_hi(y));
    for (; from < n; from++) {
        size_t to = 0;
        for (int d = 0; d < QI_MAX_RANK; d++)
            to += (size_t)at[d] * step[d];
        int32_t const code = (int32_t)qi_value_at(x->type, call->in[0], from);
        int32_t const best = (int32_t)qi_value_at(y->type, call->out[0], to);
        if (p[KIND] == QI_LARGEST ? code > best : code < best)
            qi_store_value(y->type, call->out[0], to, code);
        for (int d = QI_MAX_RANK - 1; d >= 0 && ++at[d] == x->dims[d]; d--)
            at[d] = 0;
    }
}

const qi_kernel qi_kernel_mean = {.name = "mean", .check = check, .scratch = scratch, .run = run};
const qi_kernel qi_kernel_sum = {
    .name = "sum", .check = check_sum, .scratch = scratch, .run = run_sum};
const qi_kernel qi_kernel_reduce = {.name = "reduce", .check = check_reduce, .run = run_reduce};

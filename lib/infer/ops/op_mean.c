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
#include "infer/kernels/mean.h"
#include "infer/model/code.h"
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
static qk_axes axes_of(const qi_call *call, int32_t mask)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    qk_axes a = {.outputs = (int32_t)qi_count(qi_output(call->model, call->node))};
    int32_t distance = 1;
    for (int d = QI_MAX_RANK - 1; d >= 0; d--) {
        int const averaged = d >= x->rank || (mask >> d & 1);
        a.dims[d] = x->dims[d];
        a.step[d] = averaged ? 0 : distance;
        distance *= averaged ? 1 : x->dims[d];
    }
    return a;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    *(qk_mean *)params = (qk_mean){.axes = axes_of(call, p[QI_MEAN_AXIS_MASK]),
                                   .codes = qi_codes_of(qi_input(call->model, call->node, 0)),
                                   .y_type = y->type,
                                   .mult = p[QI_MEAN_MULT],
                                   .shift = p[QI_MEAN_SHIFT],
                                   .y_zero_point = y->zero_point,
                                   .lo = p[QI_MEAN_CLAMP_LO],
                                   .hi = p[QI_MEAN_CLAMP_HI]};
}

static void run(const qi_call *call)
{
    qk_mean p;
    fill(call, &p);
    if (call->node->rounding == QI_ROUND_EVEN)
        qk_mean_even_run(&p, call->in[0], call->out[0], call->scratch);
    else if (call->node->rounding == QI_ROUND_ONCE)
        qk_mean_once_run(&p, call->in[0], call->out[0], call->scratch);
    else
        qk_mean_run(&p, call->in[0], call->out[0], call->scratch);
}

/* ------------------------------------------------------------------ sum */

static void fill_sum(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    *(qk_sum *)params = (qk_sum){.axes = axes_of(call, p[AXIS_MASK]),
                                 .codes = qi_codes_of(x),
                                 .y_type = y->type,
                                 .zeros = (int32_t)(qi_count(x) / qi_count(y)) * x->zero_point,
                                 .scale = {p[SCALE_MANT], p[SCALE_EXP]},
                                 .bias = {p[BIAS_MANT], p[BIAS_EXP]},
                                 .y_zero_point = y->zero_point,
                                 .lo = p[CLAMP_LO],
                                 .hi = p[CLAMP_HI]};
}

static void run_sum(const qi_call *call)
{
    qk_sum p;
    fill_sum(call, &p);
    qk_sum_run(&p, call->in[0], call->out[0], call->scratch);
}

/* ------------------------------------------------------------------ reduce */

static void fill_reduce(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const int32_t *p = call->node->params;
    *(qk_reduce *)params =
        (qk_reduce){.axes = axes_of(call, p[AXIS_MASK]),
                    .count = (int32_t)qi_count(x),
                    .type = x->type,
                    .kind = p[KIND],
                    .start = p[KIND] == QI_LARGEST ? qi_code_lo(x) : qi_code_hi(x)};
}

static void run_reduce(const qi_call *call)
{
    qk_reduce p;
    fill_reduce(call, &p);
    qk_reduce_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_mean = {.name = "mean", .check = check, .scratch = scratch, .run = run};
const qi_kernel qi_kernel_sum = {
    .name = "sum", .check = check_sum, .scratch = scratch, .run = run_sum};
const qi_kernel qi_kernel_reduce = {.name = "reduce", .check = check_reduce, .run = run_reduce};

const qi_code qi_code_mean = {"qk_mean", sizeof(qk_mean), fill, NULL, 0, 0};
const qi_code qi_code_sum = {"qk_sum", sizeof(qk_sum), fill_sum, NULL, 0, 0};
const qi_code qi_code_reduce = {"qk_reduce", sizeof(qk_reduce), fill_reduce, NULL, 0, 0};

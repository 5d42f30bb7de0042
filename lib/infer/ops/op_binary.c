/**
 * add, sub, squared_difference, mul, div, maximum, minimum, prelu and compare of two tensors, which
 * broadcast: infer/kernels/pairs.h. mul, too, has rounding ONCE of add (infer/kernels/add.h).
 *
 * add, sub: infer/kernels/add.h, which also defines f.
 *
 * squared_difference: y = clamp(requantize((f_a(a) - f_b(b))^2, mult_y, shift_y) + Z_y), of 8-bit
 * codes only.
 *
 * compare: y = 1 if f_a(a) is to f_b(b) as `kind` says, else 0; of 8-bit codes only.
 *
 * mul: y = clamp(requantize((a - Z_a)(b - Z_b), mult, shift) + Z_y). With rounding EVEN, Z_y is
 * added in binary32, before the sum becomes an integer.
 *
 * div: y = clamp(rdbp(srdhm(srdhm(a' 2^headroom, 1 / b'), mult), bits) + Z_y), with the differences
 * a', b' > 0, or both negated. By 0 the answer is the highest code, the lowest, or, of 0, Z_y.
 *
 * maximum, minimum: of the codes themselves.
 *
 * prelu (a: x, b: alpha):
 *
 *   y = clamp(requantize(x - Z_x, mult_pos, shift_pos) + Z_y)                       x >= Z_x
 *   y = clamp(requantize((x - Z_x)(alpha - Z_alpha), mult_neg, shift_neg) + Z_y)    else
 */
#include "infer/kernels/add.h"
#include "infer/kernels/binary.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { MULT_POS, SHIFT_POS, MULT_NEG, SHIFT_NEG, PRELU_CLAMP_LO, PRELU_CLAMP_HI };
enum {
    KIND,
    COMPARE_LEFT_SHIFT,
    COMPARE_A,
    COMPARE_B = COMPARE_A + 2,
    COMPARE_PARAMS = COMPARE_B + 2
};
enum { MOST_LEFT_SHIFT = 20, MOST_LEFT_SHIFT_WIDE = 15 };
enum { EVEN_OR_ONCE = 1 << QI_ROUND_EVEN | 1 << QI_ROUND_ONCE };
enum { LEAST_HEADROOM = 23, LEAST_HEADROOM_WIDE = 15 }; /* of a difference in 32 bits */

/* ------------------------------------------------------------------ checking */

/** qi_b32_fma counts on 24 bits of a number that is not 0. */
static void check_even_multiplier(qi_checker *c, const char *what, int32_t mult)
{
    if (mult)
        qi_rule_range(c, what, mult, INT32_C(1) << 30, INT32_MAX);
}

static qi_status check_add(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    unsigned const others = node->kernel == &qi_kernel_add   ? EVEN_OR_ONCE
                            : node->kernel == &qi_kernel_sub ? 1U << QI_ROUND_ONCE
                                                             : 0;
    if (!qi_rule_counts(&c, 2, 2, QI_ADD_CLAMP_HI + 1,
                        qi_rounding_or(model, node, QI_ROUND_TWICE, others)) ||
        !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    int const is_wide = qi_is_wide(qi_output(model, node));
    qi_rule_broadcast(&c, 0, 1);
    if (is_wide && node->kernel == &qi_kernel_squared_difference)
        qi_rule(&c, 0, QI_ERR_SHAPE, "type, not of 8 bits", QI_S16, QI_S8);
    qi_rule_range(&c, "left_shift", node->params[QI_ADD_LEFT_SHIFT], 0,
                  is_wide ? MOST_LEFT_SHIFT_WIDE : MOST_LEFT_SHIFT);
    qi_rule_multiplier(&c, QI_ADD_MULT_A);
    qi_rule_multiplier(&c, QI_ADD_MULT_B);
    qi_rule_multiplier(&c, QI_ADD_MULT_Y);
    qi_rule_clamp(&c, QI_ADD_CLAMP_LO);
    if (node->rounding == QI_ROUND_EVEN) {
        qi_rule_range(&c, "left_shift", node->params[QI_ADD_LEFT_SHIFT], 0, 0);
        qi_rule_range(&c, "mult_y", node->params[QI_ADD_MULT_Y], 0, 0);
        qi_rule_range(&c, "shift_y", node->params[QI_ADD_SHIFT_Y], 0, 0);
        check_even_multiplier(&c, "mult_a", node->params[QI_ADD_MULT_A]);
        check_even_multiplier(&c, "mult_b", node->params[QI_ADD_MULT_B]);
    }
    return c.status;
}

static qi_status check_mul(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, QI_MUL_CLAMP_HI + 1,
                        qi_rounding_or(model, node, QI_ROUND_TWICE, EVEN_OR_ONCE)) ||
        !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    qi_rule_broadcast(&c, 0, 1);
    qi_rule_multiplier(&c, QI_MUL_MULT);
    qi_rule_clamp(&c, QI_MUL_CLAMP_LO);
    return c.status;
}

static qi_status check_div(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, QI_MUL_CLAMP_HI + 1, QI_ROUND_TWICE) ||
        !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    qi_rule_broadcast(&c, 0, 1);
    qi_rule_multiplier(&c, QI_MUL_MULT);
    qi_rule_range(&c, "shift", node->params[QI_MUL_SHIFT], -31,
                  qi_is_wide(qi_output(model, node)) ? LEAST_HEADROOM_WIDE : LEAST_HEADROOM);
    qi_rule_clamp(&c, QI_MUL_CLAMP_LO);
    return c.status;
}

static qi_status check_compare(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, COMPARE_PARAMS, QI_ROUND_NONE) || !qi_rule_codes(&c, 0, 1))
        return c.status;
    qi_rule_broadcast(&c, 0, 1);
    qi_rule_truth(&c, qi_output(model, node));
    qi_rule_range(&c, "kind", node->params[KIND], QI_EQUAL, QI_LESS_EQUAL);
    qi_rule_range(&c, "left_shift", node->params[COMPARE_LEFT_SHIFT], 0, MOST_LEFT_SHIFT);
    qi_rule_multiplier(&c, COMPARE_A);
    qi_rule_multiplier(&c, COMPARE_B);
    return c.status;
}

static qi_status check_extreme(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, 0, QI_ROUND_NONE) || !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    qi_rule_broadcast(&c, 0, 1);
    qi_rule_same_type(&c, 0);
    qi_rule_same_type(&c, 1);
    return c.status;
}

static qi_status check_prelu(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, PRELU_CLAMP_HI + 1, QI_ROUND_TWICE) ||
        !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    qi_rule_broadcast(&c, 0, 1);
    qi_rule_multiplier(&c, MULT_POS);
    qi_rule_multiplier(&c, MULT_NEG);
    qi_rule_clamp(&c, PRELU_CLAMP_LO);
    return c.status;
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    return qk_pairs_scratch(qi_is_wide(qi_output(model, node)));
}

/* ------------------------------------------------------------------ running */

/** The geometry of a call, and its codes. */
static qk_pairs geometry_of(const qi_call *call)
{
    const qi_tensor *a = qi_input(call->model, call->node, 0);
    const qi_tensor *b = qi_input(call->model, call->node, 1);
    const qi_tensor *y = qi_output(call->model, call->node);
    qk_pairs p = {.a = {.flip = qi_codes_of(a).flip, .zero_point = a->zero_point},
                  .b = {.flip = qi_codes_of(b).flip, .zero_point = b->zero_point},
                  .is_wide = qi_is_wide(y),
                  .zero_point = y->zero_point};
    for (int d = 0; d < QI_MAX_RANK; d++)
        p.dims[d] = (size_t)qi_aligned_dim(y, d);
    qi_broadcast_strides(a, p.a.stride);
    qi_broadcast_strides(b, p.b.stride);
    return p;
}

/** The same with the multiplier at params[mult_at] and the clamp at params[clamp_at]. */
static qk_pairs scaled_pairs_of(const qi_call *call, int32_t mult_at, int32_t clamp_at)
{
    const int32_t *params = call->node->params;
    qk_pairs p = geometry_of(call);
    p.mult = params[mult_at];
    p.shift = params[mult_at + 1];
    p.lo = params[clamp_at];
    p.hi = params[clamp_at + 1];
    return p;
}

/* ------------------------------------------------------------------ parameters */

static qk_rescaling rescaling_of(const int32_t *params, int32_t left_shift_at, int32_t mult_at)
{
    return (qk_rescaling){params[left_shift_at], params[mult_at], params[mult_at + 1]};
}

/** add, sub and squared_difference. */
static void fill_sum(const qi_call *call, void *params)
{
    qk_pairs p = scaled_pairs_of(call, QI_ADD_MULT_Y, QI_ADD_CLAMP_LO);
    p.is_rescaled = 1;
    p.of_a = rescaling_of(call->node->params, QI_ADD_LEFT_SHIFT, QI_ADD_MULT_A);
    p.of_b = rescaling_of(call->node->params, QI_ADD_LEFT_SHIFT, QI_ADD_MULT_B);
    *(qk_pairs *)params = p;
}

static void fill_compare(const qi_call *call, void *params)
{
    qk_pairs p = geometry_of(call);
    p.kind = call->node->params[KIND];
    p.is_rescaled = 1;
    p.of_a = rescaling_of(call->node->params, COMPARE_LEFT_SHIFT, COMPARE_A);
    p.of_b = rescaling_of(call->node->params, COMPARE_LEFT_SHIFT, COMPARE_B);
    *(qk_pairs *)params = p;
}

/** mul and div. */
static void fill_product(const qi_call *call, void *params)
{
    *(qk_pairs *)params = scaled_pairs_of(call, QI_MUL_MULT, QI_MUL_CLAMP_LO);
}

/** maximum and minimum. */
static void fill_extreme(const qi_call *call, void *params)
{
    *(qk_pairs *)params = geometry_of(call);
}

static void fill_prelu(const qi_call *call, void *params)
{
    qk_pairs p = scaled_pairs_of(call, MULT_POS, PRELU_CLAMP_LO);
    p.mult_neg = call->node->params[MULT_NEG];
    p.shift_neg = call->node->params[SHIFT_NEG];
    *(qk_pairs *)params = p;
}

/* ------------------------------------------------------------------ running */

typedef void pairs_fn(const qk_pairs *p, const void *a, const void *b, void *y, void *scratch);

static void run(const qi_call *call, void (*fill)(const qi_call *call, void *params), pairs_fn *fn)
{
    qk_pairs p;
    fill(call, &p);
    fn(&p, call->in[0], call->in[1], call->out[0], call->scratch);
}

/** One of these, by the node's rounding. */
static pairs_fn *by_rounding(const qi_call *call, pairs_fn *twice, pairs_fn *once, pairs_fn *even)
{
    return call->node->rounding == QI_ROUND_EVEN   ? even
           : call->node->rounding == QI_ROUND_ONCE ? once
                                                   : twice;
}

static void run_add(const qi_call *call)
{
    run(call, fill_sum, by_rounding(call, qk_add_run, qk_add_once_run, qk_add_even_run));
}

static void run_sub(const qi_call *call)
{
    run(call, fill_sum, by_rounding(call, qk_sub_run, qk_sub_once_run, NULL));
}

static void run_squared_difference(const qi_call *call)
{
    run(call, fill_sum, qk_squared_difference_run);
}

static void run_compare(const qi_call *call)
{
    run(call, fill_compare, qk_compare_run);
}

static void run_mul(const qi_call *call)
{
    run(call, fill_product, by_rounding(call, qk_mul_run, qk_mul_once_run, qk_mul_even_run));
}

static void run_div(const qi_call *call)
{
    run(call, fill_product, qk_div_run);
}

static void run_maximum(const qi_call *call)
{
    run(call, fill_extreme, qk_maximum_run);
}

static void run_minimum(const qi_call *call)
{
    run(call, fill_extreme, qk_minimum_run);
}

static void run_prelu(const qi_call *call)
{
    run(call, fill_prelu, qk_prelu_run);
}

const qi_kernel qi_kernel_add = {.name = "add",
                                 .check = check_add,
                                 .scratch = scratch,
                                 .run = run_add,
                                 .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_sub = {.name = "sub",
                                 .check = check_add,
                                 .scratch = scratch,
                                 .run = run_sub,
                                 .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_squared_difference = {.name = "squared_difference",
                                                .check = check_add,
                                                .scratch = scratch,
                                                .run = run_squared_difference,
                                                .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_compare = {.name = "compare",
                                     .check = check_compare,
                                     .scratch = scratch,
                                     .run = run_compare,
                                     .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_mul = {.name = "mul",
                                 .check = check_mul,
                                 .scratch = scratch,
                                 .run = run_mul,
                                 .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_div = {.name = "div",
                                 .check = check_div,
                                 .scratch = scratch,
                                 .run = run_div,
                                 .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_maximum = {.name = "maximum",
                                     .check = check_extreme,
                                     .scratch = scratch,
                                     .run = run_maximum,
                                     .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_minimum = {.name = "minimum",
                                     .check = check_extreme,
                                     .scratch = scratch,
                                     .run = run_minimum,
                                     .in_place = QI_OVER_EITHER};
const qi_kernel qi_kernel_prelu = {.name = "prelu",
                                   .check = check_prelu,
                                   .scratch = scratch,
                                   .run = run_prelu,
                                   .in_place = QI_OVER_EITHER};

#define CODE(op, fill) const qi_code qi_code_##op = {"qk_pairs", sizeof(qk_pairs), fill, NULL, 0, 0}
CODE(add, fill_sum);
CODE(sub, fill_sum);
CODE(squared_difference, fill_sum);
CODE(compare, fill_compare);
CODE(mul, fill_product);
CODE(div, fill_product);
CODE(maximum, fill_extreme);
CODE(minimum, fill_extreme);
CODE(prelu, fill_prelu);

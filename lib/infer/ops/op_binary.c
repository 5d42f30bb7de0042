/**
 * add, sub, squared_difference, mul, div, maximum, minimum, prelu and compare of two tensors. They
 * broadcast as NumPy does: dims are aligned at the last, and a dim of 1 is repeated.
 *
 * add, sub (Jacob et al. A.2): both differences are shifted left and brought to a common scale,
 * added or subtracted, and requantized:
 *
 *   f(q) = requantize((q - Z) 2^left_shift, mult, shift)
 *   y    = clamp(requantize(f_a(a) +- f_b(b), mult_y, shift_y) + Z_y)
 *
 * f depends only on the code, so two tables of 256 values hold it (scratch). 16-bit codes have no
 * tables. With rounding ONCE, which mul has too, the last requantization rounds once, ties up.
 *
 * add with rounding EVEN, every operation in binary32, the products fused with the sums:
 *
 *   c = Z_y - (M_a Z_a + M_b Z_b)
 *   y = clamp(even(M_a a + (M_b b + c)))            M_a = S_a / S_y, M_b = S_b / S_y
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
#include "infer/model/op.h"

enum { MULT_POS, SHIFT_POS, MULT_NEG, SHIFT_NEG, PRELU_CLAMP_LO, PRELU_CLAMP_HI };
enum {
    KIND,
    COMPARE_LEFT_SHIFT,
    COMPARE_A,
    COMPARE_B = COMPARE_A + 2,
    COMPARE_PARAMS = COMPARE_B + 2
};
enum { CODES = 256, MOST_LEFT_SHIFT = 20, MOST_LEFT_SHIFT_WIDE = 15 };
enum { EVEN_OR_ONCE = 1 << QI_ROUND_EVEN | 1 << QI_ROUND_ONCE };
enum { LEAST_HEADROOM = 23, LEAST_HEADROOM_WIDE = 15 }; /* of a difference in 32 bits */

/* ------------------------------------------------------------------ checking */

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
    return qi_is_wide(qi_output(model, node)) ? 0 : 2 * CODES * sizeof(int32_t);
}

/* ------------------------------------------------------------------ running */

/** How add and sub bring an operand to their common scale. */
struct rescaling {
    int32_t left_shift, mult, shift;
};

/**
 * One call: the tables of both operands, and the parameters that combine two entries into a code.
 */
struct binary {
    int32_t *a, *b;                      /* [256] tables by byte; NULL for 16-bit codes */
    const struct rescaling *of_a, *of_b; /* add, sub */
    int32_t mult, shift;
    int32_t mult_neg, shift_neg; /* prelu: for negative x; mult, shift are for the others */
    int32_t kind;                /* of compare */
    qi_binary32 scale_a, scale_b, constant; /* add, rounding EVEN; mul: scale_a */
    int32_t zero_point, lo, hi;
};

/** Computes the code of the output from a and b. */
typedef int32_t combine_fn(const struct binary *v, int32_t a, int32_t b);

static inline int32_t code_of(const struct binary *v, int32_t x, int32_t mult, int32_t shift)
{
    int64_t const code = (int64_t)qi_requantize(x, mult, shift) + v->zero_point;
    return qi_clamp(qi_saturate_i64(code), v->lo, v->hi);
}

/** With rounding ONCE. */
static inline int32_t code_once(const struct binary *v, int32_t x)
{
    int64_t const code = (int64_t)qi_requantize_near_ties_up(x, v->mult, v->shift) + v->zero_point;
    return qi_clamp(qi_saturate_i64(code), v->lo, v->hi);
}

static int32_t sum_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, qi_saturate_i64((int64_t)a + b), v->mult, v->shift);
}

static int32_t sum_once(const struct binary *v, int32_t a, int32_t b)
{
    return code_once(v, qi_saturate_i64((int64_t)a + b));
}

static int32_t even_sum_of(const struct binary *v, int32_t a, int32_t b)
{
    qi_binary32 const sum = qi_b32_fma(b, v->scale_b, v->constant);
    return qi_clamp(qi_b32_even(qi_b32_fma(a, v->scale_a, sum)), v->lo, v->hi);
}

static int32_t difference_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, qi_saturate_i64((int64_t)a - b), v->mult, v->shift);
}

static int32_t difference_once(const struct binary *v, int32_t a, int32_t b)
{
    return code_once(v, qi_saturate_i64((int64_t)a - b));
}

static int32_t square_of(const struct binary *v, int32_t a, int32_t b)
{
    int64_t const difference = qi_saturate_i64((int64_t)a - b);
    return code_of(v, qi_saturate_i64(difference * difference), v->mult, v->shift);
}

static int32_t comparison_of(const struct binary *v, int32_t a, int32_t b)
{
    switch (v->kind) {
    case QI_EQUAL:
        return a == b;
    case QI_NOT_EQUAL:
        return a != b;
    case QI_GREATER:
        return a > b;
    case QI_GREATER_EQUAL:
        return a >= b;
    case QI_LESS:
        return a < b;
    default:
        return a <= b;
    }
}

static int32_t product_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, a * b, v->mult, v->shift); /* at most 255^2, or 2^30 */
}

static int32_t product_once(const struct binary *v, int32_t a, int32_t b)
{
    return code_once(v, a * b);
}

static int32_t even_product_of(const struct binary *v, int32_t a, int32_t b)
{
    qi_binary32 const product = qi_b32_mul(qi_b32_of(a * b), v->scale_a);
    return qi_clamp(qi_b32_even(qi_b32_add(product, v->constant)), v->lo, v->hi);
}

/** Of differences below 2^23 (2^15 of 16 bits); the shift is not above the headroom. */
static int32_t quotient_of(const struct binary *v, int32_t a, int32_t b)
{
    if (!a || !b)
        return a > 0 ? v->hi : a < 0 ? v->lo : qi_clamp(v->zero_point, v->lo, v->hi);
    int32_t const x = b < 0 ? -a : a;
    int const headroom =
        x > 0 ? qi_leading_zeros((uint32_t)x) - 1 : qi_leading_zeros(2 * (uint32_t)-x - 1);
    int over; /* bits of the divisor, less 20 */
    int32_t const inverse = qi_reciprocal_q12((uint32_t)(b < 0 ? -b : b), &over);
    int32_t const quotient = qi_srdhm((int32_t)((int64_t)x * (INT64_C(1) << headroom)), inverse);
    int const bits = over + 19 + headroom - v->shift;
    int64_t const y = bits > 31 ? 0 : qi_rdbp(qi_srdhm(quotient, v->mult), bits);
    return qi_clamp(qi_saturate_i64(y + v->zero_point), v->lo, v->hi);
}

static int32_t larger_of(const struct binary *v, int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller_of(const struct binary *v, int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t prelu_of(const struct binary *v, int32_t x, int32_t alpha)
{
    return x >= 0 ? code_of(v, x, v->mult, v->shift)
                  : code_of(v, x * alpha, v->mult_neg, v->shift_neg);
}

/** One run along the last axis; the step is 0 for an operand that is repeated. */
static inline void combine_run(const struct binary *v, combine_fn *combine, const uint8_t *a,
                               size_t step_a, const uint8_t *b, size_t step_b, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        qi_store_code(y, i, combine(v, v->a[a[i * step_a]], v->b[b[i * step_b]]));
}

static inline int32_t rescaled(const struct rescaling *r, int32_t x)
{
    return r ? qi_requantize(x * (1 << r->left_shift), r->mult, r->shift) : x;
}

/** The same for 16-bit codes, whose zero_point is 0. */
static inline void combine_wide_run(const struct binary *v, combine_fn *combine, const int16_t *a,
                                    size_t step_a, const int16_t *b, size_t step_b, int16_t *y,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] =
            (int16_t)combine(v, rescaled(v->of_a, a[i * step_a]), rescaled(v->of_b, b[i * step_b]));
}

/** Walk through all outputs in runs along the last axis. */
static inline void combine_all(const qi_call *call, const struct binary *v, combine_fn *combine)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    size_t const last = (size_t)qi_aligned_dim(y, 3);
    size_t sa[QI_MAX_RANK], sb[QI_MAX_RANK];
    size_t to = 0;
    qi_broadcast_strides(qi_input(call->model, call->node, 0), sa);
    qi_broadcast_strides(qi_input(call->model, call->node, 1), sb);
    for (size_t i = 0; i < (size_t)qi_aligned_dim(y, 0); i++)
        for (size_t j = 0; j < (size_t)qi_aligned_dim(y, 1); j++)
            for (size_t k = 0; k < (size_t)qi_aligned_dim(y, 2); k++, to += last) {
                size_t const a = i * sa[0] + j * sa[1] + k * sa[2];
                size_t const b = i * sb[0] + j * sb[1] + k * sb[2];
                if (qi_is_wide(y))
                    combine_wide_run(v, combine, (const int16_t *)call->in[0] + a, sa[3],
                                     (const int16_t *)call->in[1] + b, sb[3],
                                     (int16_t *)call->out[0] + to, last);
                else
                    combine_run(v, combine, (const uint8_t *)call->in[0] + a, sa[3],
                                (const uint8_t *)call->in[1] + b, sb[3],
                                (uint8_t *)call->out[0] + to, last);
            }
}

/** table[byte] = q - from, where q is the code in the byte. */
static void differences(const qi_tensor *t, int32_t from, int32_t table[CODES])
{
    int32_t const flip = qi_codes_of(t).flip;
    for (int32_t i = 0; i < CODES; i++)
        table[i] = (i ^ flip) - flip - from;
}

/** Tables of differences q - Z; the parameters are not set. */
static struct binary tables_of(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    if (qi_is_wide(y))
        return (struct binary){.zero_point = 0};
    struct binary const v = {
        .a = call->scratch, .b = (int32_t *)call->scratch + CODES, .zero_point = y->zero_point};
    const qi_tensor *a = qi_input(call->model, call->node, 0);
    const qi_tensor *b = qi_input(call->model, call->node, 1);
    differences(a, a->zero_point, v.a);
    differences(b, b->zero_point, v.b);
    return v;
}

/** Tables of the codes themselves. */
static struct binary codes_of(const qi_call *call)
{
    struct binary const v = {.a = call->scratch, .b = (int32_t *)call->scratch + CODES};
    if (qi_is_wide(qi_output(call->model, call->node)))
        return v;
    differences(qi_input(call->model, call->node, 0), 0, v.a);
    differences(qi_input(call->model, call->node, 1), 0, v.b);
    return v;
}

static struct binary binary_of(const qi_call *call, int32_t mult_at, int32_t clamp_at)
{
    const int32_t *p = call->node->params;
    struct binary v = tables_of(call);
    v.mult = p[mult_at];
    v.shift = p[mult_at + 1];
    v.lo = p[clamp_at];
    v.hi = p[clamp_at + 1];
    return v;
}

/** Bring the differences in a table to the common scale of add and sub. */
static void rescale(int32_t table[CODES], const struct rescaling *r)
{
    for (int i = 0; i < CODES; i++)
        table[i] = rescaled(r, table[i]);
}

/** add, sub or squared_difference. */
static inline void run_sum(const qi_call *call, combine_fn *combine)
{
    const int32_t *p = call->node->params;
    struct rescaling const a = {p[QI_ADD_LEFT_SHIFT], p[QI_ADD_MULT_A], p[QI_ADD_SHIFT_A]};
    struct rescaling const b = {p[QI_ADD_LEFT_SHIFT], p[QI_ADD_MULT_B], p[QI_ADD_SHIFT_B]};
    struct binary v = binary_of(call, QI_ADD_MULT_Y, QI_ADD_CLAMP_LO);
    v.of_a = &a;
    v.of_b = &b;
    if (v.a) {
        rescale(v.a, &a);
        rescale(v.b, &b);
    }
    combine_all(call, &v, combine);
}

/** add with rounding EVEN. */
static void run_even_sum(const qi_call *call)
{
    const int32_t *p = call->node->params;
    qi_binary32 const a = qi_b32_multiplier(p[QI_ADD_MULT_A], p[QI_ADD_SHIFT_A]);
    qi_binary32 const b = qi_b32_multiplier(p[QI_ADD_MULT_B], p[QI_ADD_SHIFT_B]);
    int32_t const z_a = qi_input(call->model, call->node, 0)->zero_point;
    int32_t const z_b = qi_input(call->model, call->node, 1)->zero_point;
    qi_binary32 const zeros = qi_b32_fma(z_a, a, qi_b32_mul(qi_b32_of(z_b), b));
    struct binary v = codes_of(call);
    v.scale_a = a;
    v.scale_b = b;
    v.constant = qi_b32_sub(qi_b32_of(qi_output(call->model, call->node)->zero_point), zeros);
    v.lo = p[QI_ADD_CLAMP_LO];
    v.hi = p[QI_ADD_CLAMP_HI];
    combine_all(call, &v, even_sum_of);
}

static void run_add(const qi_call *call)
{
    if (call->node->rounding == QI_ROUND_EVEN)
        run_even_sum(call);
    else
        run_sum(call, call->node->rounding == QI_ROUND_ONCE ? sum_once : sum_of);
}

static void run_sub(const qi_call *call)
{
    run_sum(call, call->node->rounding == QI_ROUND_ONCE ? difference_once : difference_of);
}

static void run_squared_difference(const qi_call *call)
{
    run_sum(call, square_of);
}

static void run_compare(const qi_call *call)
{
    const int32_t *p = call->node->params;
    struct rescaling const a = {p[COMPARE_LEFT_SHIFT], p[COMPARE_A], p[COMPARE_A + 1]};
    struct rescaling const b = {p[COMPARE_LEFT_SHIFT], p[COMPARE_B], p[COMPARE_B + 1]};
    struct binary v = tables_of(call);
    v.kind = p[KIND];
    rescale(v.a, &a);
    rescale(v.b, &b);
    combine_all(call, &v, comparison_of);
}

static void run_mul(const qi_call *call)
{
    struct binary v = binary_of(call, QI_MUL_MULT, QI_MUL_CLAMP_LO);
    v.scale_a = qi_b32_multiplier(v.mult, v.shift);
    v.constant = qi_b32_of(v.zero_point);
    combine_all(call, &v,
                call->node->rounding == QI_ROUND_EVEN   ? even_product_of
                : call->node->rounding == QI_ROUND_ONCE ? product_once
                                                        : product_of);
}

static void run_div(const qi_call *call)
{
    struct binary const v = binary_of(call, QI_MUL_MULT, QI_MUL_CLAMP_LO);
    combine_all(call, &v, quotient_of);
}

static void run_maximum(const qi_call *call)
{
    struct binary const v = codes_of(call);
    combine_all(call, &v, larger_of);
}

static void run_minimum(const qi_call *call)
{
    struct binary const v = codes_of(call);
    combine_all(call, &v, smaller_of);
}

static void run_prelu(const qi_call *call)
{
    struct binary v = binary_of(call, MULT_POS, PRELU_CLAMP_LO);
    v.mult_neg = call->node->params[MULT_NEG];
    v.shift_neg = call->node->params[SHIFT_NEG];
    combine_all(call, &v, prelu_of);
}

const qi_kernel qi_kernel_add = {
    .name = "add", .check = check_add, .scratch = scratch, .run = run_add, .in_place = 1};
const qi_kernel qi_kernel_sub = {
    .name = "sub", .check = check_add, .scratch = scratch, .run = run_sub, .in_place = 1};
const qi_kernel qi_kernel_squared_difference = {.name = "squared_difference",
                                                .check = check_add,
                                                .scratch = scratch,
                                                .run = run_squared_difference,
                                                .in_place = 1};
const qi_kernel qi_kernel_compare = {.name = "compare",
                                     .check = check_compare,
                                     .scratch = scratch,
                                     .run = run_compare,
                                     .in_place = 1};
const qi_kernel qi_kernel_mul = {
    .name = "mul", .check = check_mul, .scratch = scratch, .run = run_mul, .in_place = 1};
const qi_kernel qi_kernel_div = {
    .name = "div", .check = check_div, .scratch = scratch, .run = run_div, .in_place = 1};
const qi_kernel qi_kernel_maximum = {.name = "maximum",
                                     .check = check_extreme,
                                     .scratch = scratch,
                                     .run = run_maximum,
                                     .in_place = 1};
const qi_kernel qi_kernel_minimum = {.name = "minimum",
                                     .check = check_extreme,
                                     .scratch = scratch,
                                     .run = run_minimum,
                                     .in_place = 1};
const qi_kernel qi_kernel_prelu = {
    .name = "prelu", .check = check_prelu, .scratch = scratch, .run = run_prelu, .in_place = 1};

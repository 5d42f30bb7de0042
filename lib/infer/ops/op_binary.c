/**
 * add, sub, mul, maximum, minimum and prelu of two tensors. They broadcast as NumPy does: dims are
 * aligned at the last, and a dim of 1 is repeated.
 *
 * add, sub (Jacob et al. A.2): both differences are shifted left and brought to a common scale,
 * added or subtracted, and requantized:
 *
 *   f(q) = requantize((q - Z) 2^left_shift, mult, shift)
 *   y    = clamp(requantize(f_a(a) +- f_b(b), mult_y, shift_y) + Z_y)
 *
 * f depends only on the code, so two tables of 256 values hold it (scratch).
 *
 * mul: y = clamp(requantize((a - Z_a)(b - Z_b), mult, shift) + Z_y).
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
enum { CODES = 256 };

/* ------------------------------------------------------------------ checking */

static void rule_broadcast(qi_checker *c)
{
    const qi_tensor *a = qi_input(c->model, c->node, 0), *b = qi_input(c->model, c->node, 1);
    const qi_tensor *y = qi_output(c->model, c->node);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int32_t const da = qi_aligned_dim(a, d), db = qi_aligned_dim(b, d),
                      dy = qi_aligned_dim(y, d);
        qi_rule(c, da == db || da == 1 || db == 1, QI_ERR_SHAPE, "dimensions of the inputs", da,
                db);
        qi_rule(c, dy == (da == 1 ? db : da), QI_ERR_SHAPE, "dimension of the output", dy,
                da == 1 ? db : da);
    }
}

static qi_status check_add(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, QI_ADD_CLAMP_HI + 1, QI_ROUND_TWICE) || !qi_rule_codes(&c, 0, 1))
        return c.status;
    rule_broadcast(&c);
    qi_rule_range(&c, "left_shift", node->params[QI_ADD_LEFT_SHIFT], 0, 20);
    qi_rule_multiplier(&c, QI_ADD_MULT_A);
    qi_rule_multiplier(&c, QI_ADD_MULT_B);
    qi_rule_multiplier(&c, QI_ADD_MULT_Y);
    qi_rule_clamp(&c, QI_ADD_CLAMP_LO);
    return c.status;
}

static qi_status check_mul(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, QI_MUL_CLAMP_HI + 1, QI_ROUND_TWICE) || !qi_rule_codes(&c, 0, 1))
        return c.status;
    rule_broadcast(&c);
    qi_rule_multiplier(&c, QI_MUL_MULT);
    qi_rule_clamp(&c, QI_MUL_CLAMP_LO);
    return c.status;
}

static qi_status check_select(const qi_model *model, const qi_node *node, int32_t index,
                              qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, 0, QI_ROUND_NONE) || !qi_rule_codes(&c, 0, 1))
        return c.status;
    rule_broadcast(&c);
    qi_rule_same_type(&c, 0);
    qi_rule_same_type(&c, 1);
    return c.status;
}

static qi_status check_prelu(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, PRELU_CLAMP_HI + 1, QI_ROUND_TWICE) || !qi_rule_codes(&c, 0, 1))
        return c.status;
    rule_broadcast(&c);
    qi_rule_multiplier(&c, MULT_POS);
    qi_rule_multiplier(&c, MULT_NEG);
    qi_rule_clamp(&c, PRELU_CLAMP_LO);
    return c.status;
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    return 2 * CODES * sizeof(int32_t);
}

/* ------------------------------------------------------------------ running */

/**
 * One call: the tables of both operands, and the parameters that combine two entries into a code.
 */
struct binary {
    int32_t *a, *b; /* [256] tables by byte */
    int32_t mult, shift;
    int32_t mult_neg, shift_neg; /* prelu: for negative x; mult, shift are for the others */
    int32_t zero_point, lo, hi;
};

/** Computes the code of the output from a and b. */
typedef int32_t combine_fn(const struct binary *v, int32_t a, int32_t b);

static inline int32_t code_of(const struct binary *v, int32_t x, int32_t mult, int32_t shift)
{
    int64_t const code = (int64_t)qi_requantize(x, mult, shift) + v->zero_point;
    return qi_clamp(qi_saturate_i64(code), v->lo, v->hi);
}

static int32_t sum_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, qi_saturate_i64((int64_t)a + b), v->mult, v->shift);
}

static int32_t difference_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, qi_saturate_i64((int64_t)a - b), v->mult, v->shift);
}

static int32_t product_of(const struct binary *v, int32_t a, int32_t b)
{
    return code_of(v, a * b, v->mult, v->shift); /* |a|, |b| <= 255 */
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

/** Walk through all outputs in runs along the last axis. */
static inline void combine_all(const qi_call *call, const struct binary *v, combine_fn *combine)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    size_t const last = (size_t)qi_aligned_dim(y, 3);
    size_t sa[QI_MAX_RANK], sb[QI_MAX_RANK];
    uint8_t *to = call->out[0];
    qi_broadcast_strides(qi_input(call->model, call->node, 0), sa);
    qi_broadcast_strides(qi_input(call->model, call->node, 1), sb);
    for (size_t i = 0; i < (size_t)qi_aligned_dim(y, 0); i++)
        for (size_t j = 0; j < (size_t)qi_aligned_dim(y, 1); j++)
            for (size_t k = 0; k < (size_t)qi_aligned_dim(y, 2); k++, to += last) {
                const uint8_t *a = call->in[0], *b = call->in[1];
                combine_run(v, combine, a + i * sa[0] + j * sa[1] + k * sa[2], sa[3],
                            b + i * sb[0] + j * sb[1] + k * sb[2], sb[3], to, last);
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
    struct binary const v = {.a = call->scratch,
                             .b = (int32_t *)call->scratch + CODES,
                             .zero_point = qi_output(call->model, call->node)->zero_point};
    const qi_tensor *a = qi_input(call->model, call->node, 0);
    const qi_tensor *b = qi_input(call->model, call->node, 1);
    differences(a, a->zero_point, v.a);
    differences(b, b->zero_point, v.b);
    return v;
}

/** Tables of the codes themselves, for both operands. */
static struct binary codes_of(const qi_call *call)
{
    struct binary const v = {.a = call->scratch, .b = call->scratch};
    differences(qi_input(call->model, call->node, 0), 0, v.a);
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

/** Bring the differences of add and sub to their common scale. */
static void rescale(int32_t table[CODES], const int32_t *params, int32_t mult_at)
{
    for (int i = 0; i < CODES; i++)
        table[i] = qi_requantize(table[i] * (1 << params[QI_ADD_LEFT_SHIFT]), params[mult_at],
                                 params[mult_at + 1]);
}

static struct binary add_of(const qi_call *call)
{
    struct binary const v = binary_of(call, QI_ADD_MULT_Y, QI_ADD_CLAMP_LO);
    rescale(v.a, call->node->params, QI_ADD_MULT_A);
    rescale(v.b, call->node->params, QI_ADD_MULT_B);
    return v;
}

static void run_add(const qi_call *call)
{
    struct binary const v = add_of(call);
    combine_all(call, &v, sum_of);
}

static void run_sub(const qi_call *call)
{
    struct binary const v = add_of(call);
    combine_all(call, &v, difference_of);
}

static void run_mul(const qi_call *call)
{
    struct binary const v = binary_of(call, QI_MUL_MULT, QI_MUL_CLAMP_LO);
    combine_all(call, &v, product_of);
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
const qi_kernel qi_kernel_mul = {
    .name = "mul", .check = check_mul, .scratch = scratch, .run = run_mul, .in_place = 1};
const qi_kernel qi_kernel_maximum = {.name = "maximum",
                                     .check = check_select,
                                     .scratch = scratch,
                                     .run = run_maximum,
                                     .in_place = 1};
const qi_kernel qi_kernel_minimum = {.name = "minimum",
                                     .check = check_select,
                                     .scratch = scratch,
                                     .run = run_minimum,
                                     .in_place = 1};
const qi_kernel qi_kernel_prelu = {
    .name = "prelu", .check = check_prelu, .scratch = scratch, .run = run_prelu, .in_place = 1};

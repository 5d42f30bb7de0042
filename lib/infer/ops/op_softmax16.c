/**
 * softmax16: softmax of 16-bit codes along the last axis, with two tables from the model.
 *
 *   e   = exp[requantize(q - largest q, mult, shift) + 32767]      15 fractional bits
 *   sum = sum of e, shifted so that it lies in [1, 2)
 *   y   = e reciprocal[sum - 1] / 2^(31 - leading zeros of sum), half up, at most 32767
 *
 * The table exp spans -10..0, reciprocal spans 1 / (1 + x) for x in 0..1, both over all codes.
 */
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/model/op.h"

enum { MULT, SHIFT, PARAMS };
enum { X, EXP, RECIPROCAL, INPUTS };

/** The table has an entry for each line and one more, and none is negative. */
static void rule_table(qi_checker *c, int32_t input)
{
    const qi_tensor *t = qi_input(c->model, c->node, input);
    const int16_t *entries = t->data;
    qi_rule(c, t->kind == QI_CONSTANT, QI_ERR_SHAPE, "table: not constant", t->kind, QI_CONSTANT);
    qi_rule(c, t->rank == 1 && t->dims[0] == QI_LINES + 1, QI_ERR_SHAPE, "entries of the table",
            t->dims[0], QI_LINES + 1);
    for (int32_t i = 0; i <= QI_LINES && !c->status; i++)
        qi_rule_range(c, "entry of the table", entries[i], 0, INT16_MAX);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST_VALUES = (1 << 16) - 1 }; /* of a row: the sum fits int32 */
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, INPUTS, INPUTS, PARAMS, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *x = qi_input(model, node, X), *y = qi_output(model, node);
    qi_rule(&c, qi_is_wide(y) && y->bits == 16, QI_ERR_SHAPE, "bits of the output", y->bits, 16);
    qi_rule_codes_or_wide(&c, X, RECIPROCAL);
    qi_rule_same_shape(&c, X);
    qi_rule(&c, x->dims[x->rank - 1] <= MOST_VALUES, QI_ERR_SHAPE, "values of a row",
            x->dims[x->rank - 1], MOST_VALUES);
    qi_rule_multiplier(&c, MULT);
    for (int32_t i = EXP; i <= RECIPROCAL && !c.status; i++)
        rule_table(&c, i);
    return c.status;
}

static int32_t largest_of(const int16_t *x, size_t n)
{
    int32_t largest = INT16_MIN;
    for (size_t i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/** y = the exponentials of a row; returns their sum. */
static uint32_t exponentials(const qi_call *call, const int16_t *x, int16_t *y, size_t n)
{
    const int32_t *p = call->node->params;
    int32_t const largest = largest_of(x, n);
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t const q = (int64_t)qi_requantize(x[i] - largest, p[MULT], p[SHIFT]) + INT16_MAX;
        int32_t const code = qi_clamp(qi_saturate_i64(q), INT16_MIN, INT16_MAX);
        y[i] = (int16_t)qi_lookup_i16(call->in[EXP], code);
        sum += (uint32_t)y[i];
    }
    return sum;
}

static void run_row(const qi_call *call, const int16_t *x, int16_t *y, size_t n)
{
    uint32_t const all = exponentials(call, x, y, n);
    uint32_t const sum = all < 2 ? 2 : all; /* the largest e is about 32767 in any real table */
    int const zeros = qi_leading_zeros(sum), right = 31 - zeros; /* 1..30 */
    int32_t const shifted = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14);
    int32_t const code = qi_clamp(shifted - (1 << 15) - (1 << 16), INT16_MIN, INT16_MAX);
    int32_t const reciprocal = qi_lookup_i16(call->in[RECIPROCAL], code);
    for (size_t i = 0; i < n; i++) {
        int32_t const value = (y[i] * reciprocal + (1 << (right - 1))) >> right;
        y[i] = (int16_t)qi_clamp(value, 0, INT16_MAX);
    }
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    size_t const row = (size_t)x->dims[x->rank - 1], all = (size_t)qi_count(x);
    for (size_t i = 0; i < all; i += row)
        run_row(call, (const int16_t *)call->in[X] + i, (int16_t *)call->out[0] + i, row);
}

const qi_kernel qi_kernel_softmax16 = {
    .name = "softmax16", .check = check, .run = run, .in_place = 1};

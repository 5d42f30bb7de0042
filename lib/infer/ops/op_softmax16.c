/**
 * softmax16: softmax of 16-bit codes along the last axis, with two tables from the model.
 *
 *   e   = exp[requantize(q - largest q, mult, shift) + 32767]      15 fractional bits
 *   sum = sum of e, shifted so that it lies in [1, 2)
 *   y   = e reciprocal[sum - 1] / 2^(31 - leading zeros of sum), half up, at most 32767
 *
 * The table exp spans -10..0, reciprocal spans 1 / (1 + x) for x in 0..1, both over all codes.
 */
#include "infer/kernels/row_functions.h"
#include "infer/model/code.h"
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

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    int32_t const row = x->dims[x->rank - 1];
    *(qk_softmax16 *)params = (qk_softmax16){.rows = (int32_t)qi_count(x) / row,
                                             .row = row,
                                             .mult = call->node->params[MULT],
                                             .shift = call->node->params[SHIFT],
                                             .exp = call->in[EXP],
                                             .reciprocal = call->in[RECIPROCAL]};
}

static void run(const qi_call *call)
{
    qk_softmax16 p;
    fill(call, &p);
    qk_softmax16_run(&p, call->in[X], call->out[0]);
}

const qi_kernel qi_kernel_softmax16 = {
    .name = "softmax16", .check = check, .run = run, .in_place = QI_OVER_FIRST};
const qi_code qi_code_softmax16 = {"qk_softmax16", sizeof(qk_softmax16),       fill,
                                   NULL,           1 << EXP | 1 << RECIPROCAL, 0};

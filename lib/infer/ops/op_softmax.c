/**
 * softmax and log_softmax along the last axis, in fixed point; see qi_softmax_row and
 * qi_log_softmax_row in code_functions.h.
 */
#include "infer/kernels/row_functions.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { REVERSE_MULT = QI_SOFTMAX_PARAMS, REVERSE_SHIFT, LOG_SOFTMAX_PARAMS };
enum { MOST_VALUES = 4096 }; /* limit of a row: the sum has 12 integer bits */

/** Check what both have: mult, shift, diff_min. */
static void rule_exp(qi_checker *c)
{
    const int32_t *p = c->node->params;
    qi_rule_range(c, "mult", p[QI_SOFTMAX_MULT], 0, INT32_MAX);
    if (qi_rule_range(c, "shift", p[QI_SOFTMAX_SHIFT], 0, 31))
        qi_rule_range(c, "diff_min", p[QI_SOFTMAX_DIFF_MIN],
                      -((INT64_C(31) << 26) >> p[QI_SOFTMAX_SHIFT]), 0);
}

static void rule_row(qi_checker *c, int32_t most)
{
    const qi_tensor *x = qi_input(c->model, c->node, 0);
    qi_rule_same_shape(c, 0);
    qi_rule(c, x->dims[x->rank - 1] <= most, QI_ERR_SHAPE, "values of a row", x->dims[x->rank - 1],
            most);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, QI_SOFTMAX_PARAMS, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    qi_rule(&c, x->type <= QI_S8, QI_ERR_SHAPE, "type, not of 8 bits", x->type, QI_S8);
    if (!qi_rule(&c, qi_type_has_codes(y->type), QI_ERR_SHAPE, "type, not of codes", y->type,
                 QI_S8))
        return c.status;
    qi_rule(&c, y->bits <= 8 || y->bits == 16, QI_ERR_SHAPE, "bits of the output", y->bits, 16);
    rule_row(&c, MOST_VALUES);
    qi_rule(&c, y->zero_point == qi_code_lo(y), QI_ERR_PARAM, "zero_point of the output",
            y->zero_point, qi_code_lo(y));
    rule_exp(&c);
    return c.status;
}

static qi_status check_log(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, LOG_SOFTMAX_PARAMS, QI_ROUND_NONE) || !qi_rule_codes(&c, 0, 0))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    qi_rule(&c, x->type == QI_S8, QI_ERR_SHAPE, "type, not int8", x->type, QI_S8);
    qi_rule(&c, y->type == QI_S8, QI_ERR_SHAPE, "type of the output", y->type, QI_S8);
    qi_rule(&c, y->bits == 8, QI_ERR_SHAPE, "bits of the output", y->bits, 8);
    rule_row(&c, MOST_VALUES - 1);
    qi_rule(&c, y->zero_point == INT8_MAX, QI_ERR_PARAM, "zero_point of the output", y->zero_point,
            INT8_MAX);
    rule_exp(&c);
    qi_rule_range(&c, "reverse_mult", node->params[REVERSE_MULT], 0, INT32_MAX);
    qi_rule_range(&c, "reverse_shift", node->params[REVERSE_SHIFT], -31, 0);
    return c.status;
}

static qi_softmax exp_of(const qi_call *call)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    return (qi_softmax){.mult = p[QI_SOFTMAX_MULT],
                        .shift = p[QI_SOFTMAX_SHIFT],
                        .diff_min = p[QI_SOFTMAX_DIFF_MIN],
                        .in_signed = qi_input(call->model, call->node, 0)->type == QI_S8,
                        .lowest = qi_code_lo(y),
                        .bits = y->bits};
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    int32_t const row = x->dims[x->rank - 1];
    *(qk_softmax *)params =
        (qk_softmax){.rows = (int32_t)qi_count(x) / row, .row = row, .exp = exp_of(call)};
}

static void run(const qi_call *call)
{
    qk_softmax p;
    fill(call, &p);
    qk_softmax_run(&p, call->in[0], call->out[0]);
}

static void fill_log(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const int32_t *p = call->node->params;
    int32_t const row = x->dims[x->rank - 1];
    *(qk_log_softmax *)params =
        (qk_log_softmax){.rows = (int32_t)qi_count(x) / row,
                         .row = row,
                         .log = {exp_of(call), p[REVERSE_MULT], p[REVERSE_SHIFT]}};
}

static void run_log(const qi_call *call)
{
    qk_log_softmax p;
    fill_log(call, &p);
    qk_log_softmax_run(&p, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_log_softmax = {
    .name = "log_softmax", .check = check_log, .run = run_log, .in_place = QI_OVER_FIRST};
const qi_kernel qi_kernel_softmax = {
    .name = "softmax", .check = check, .run = run, .in_place = QI_OVER_FIRST};

const qi_code qi_code_softmax = {"qk_softmax", sizeof(qk_softmax), fill, NULL, 0, 0};
const qi_code qi_code_log_softmax = {
    "qk_log_softmax", sizeof(qk_log_softmax), fill_log, NULL, 0, 0};

/**
 * Functions from one code to one code: logistic, tanh, requantize, cast, and table, whose 256
 * answers are in the file. For a tensor of more than 256 values the 256 answers are computed once
 * (scratch).
 */
#include "infer/kernels/elementwise.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

/** Are both of 8 bits, so that 256 answers say all? */
static int has_answers(const qi_model *model, const qi_node *node)
{
    return qi_type_bytes(qi_input(model, node, 0)->type) == 1 &&
           qi_type_bytes(qi_output(model, node)->type) == 1;
}

static size_t answers_scratch(const qi_model *model, const qi_node *node)
{
    return has_answers(model, node) ? qk_answers_bytes((size_t)qi_count(qi_input(model, node, 0)))
                                    : 0;
}

/* ------------------------------------------------------------------ logistic, tanh */

enum { MULT, SHIFT, RADIUS, SIGMOID_PARAMS };

static qi_status check_sigmoid(const qi_model *model, const qi_node *node, int32_t index,
                               qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, SIGMOID_PARAMS, QI_ROUND_NONE) ||
        !qi_rule_codes_or_wide(&c, 0, 0))
        return c.status;
    const qi_tensor *y = qi_output(model, node);
    int32_t const middle = node->kernel == &qi_kernel_tanh ? 1 << (y->bits - 1) : 0;
    qi_rule_same_shape(&c, 0);
    qi_rule_multiplier(&c, MULT);
    qi_rule_range(&c, "radius", node->params[RADIUS], 0, 1 << 30);
    if (qi_is_wide(y))
        qi_rule(&c, y->bits == 16, QI_ERR_SHAPE, "bits of the output", y->bits, 16);
    else
        qi_rule(&c, y->zero_point == qi_code_lo(y) + middle, QI_ERR_PARAM,
                "zero_point of the output", y->zero_point, qi_code_lo(y) + middle);
    return c.status;
}

static void fill_sigmoid(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    *(qk_sigmoid *)params = (qk_sigmoid){.count = (int32_t)qi_count(x),
                                         .is_signed = x->type == QI_S8,
                                         .in = {x->zero_point, p[MULT], p[SHIFT], p[RADIUS]},
                                         .lowest = qi_code_lo(y),
                                         .bits = y->bits};
}

static void run_logistic(const qi_call *call)
{
    qk_sigmoid p;
    fill_sigmoid(call, &p);
    if (has_answers(call->model, call->node))
        qk_logistic_run(&p, call->in[0], call->out[0], call->scratch);
    else
        qk_logistic_wide_run(&p, call->in[0], call->out[0]);
}

static const char *logistic_function(const qi_call *call)
{
    return has_answers(call->model, call->node) ? "qk_logistic_run" : "qk_logistic_wide_run";
}

static void run_tanh(const qi_call *call)
{
    qk_sigmoid p;
    fill_sigmoid(call, &p);
    if (has_answers(call->model, call->node))
        qk_tanh_run(&p, call->in[0], call->out[0], call->scratch);
    else
        qk_tanh_wide_run(&p, call->in[0], call->out[0]);
}

static const char *tanh_function(const qi_call *call)
{
    return has_answers(call->model, call->node) ? "qk_tanh_run" : "qk_tanh_wide_run";
}

/* ------------------------------------------------------------------ requantize */

enum { CLAMP_LO = 2, CLAMP_HI, REQUANTIZE_PARAMS };

static qi_status check_requantize(const qi_model *model, const qi_node *node, int32_t index,
                                  qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, REQUANTIZE_PARAMS,
                        qi_rounding_or(model, node, QI_ROUND_TWICE, 1U << QI_ROUND_ONCE)))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    qi_rule(&c, x->type != QI_S64, QI_ERR_SHAPE, "type", x->type, QI_S32);
    qi_rule(&c, y->type != QI_S64, QI_ERR_SHAPE, "type of the output", y->type, QI_S32);
    qi_rule_same_shape(&c, 0);
    qi_rule_multiplier(&c, MULT);
    qi_rule_clamp(&c, CLAMP_LO);
    return c.status;
}

static void fill_requantize(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    *(qk_requantize *)params = (qk_requantize){.count = (int32_t)qi_count(x),
                                               .x_type = x->type,
                                               .y_type = y->type,
                                               .mult = p[MULT],
                                               .shift = p[SHIFT],
                                               .x_zero_point = x->zero_point,
                                               .y_zero_point = y->zero_point,
                                               .lo = p[CLAMP_LO],
                                               .hi = p[CLAMP_HI]};
}

static void run_requantize(const qi_call *call)
{
    int const is_once = call->node->rounding == QI_ROUND_ONCE;
    qk_requantize p;
    fill_requantize(call, &p);
    if (has_answers(call->model, call->node))
        (is_once ? qk_requantize_once_run : qk_requantize_run)(&p, call->in[0], call->out[0],
                                                               call->scratch);
    else
        (is_once ? qk_requantize_wide_once_run : qk_requantize_wide_run)(&p, call->in[0],
                                                                         call->out[0]);
}

static const char *requantize_function(const qi_call *call)
{
    int const is_once = call->node->rounding == QI_ROUND_ONCE;
    if (has_answers(call->model, call->node))
        return is_once ? "qk_requantize_once_run" : "qk_requantize_run";
    return is_once ? "qk_requantize_wide_once_run" : "qk_requantize_wide_run";
}

/* ------------------------------------------------------------------ cast */

static qi_status check_cast(const qi_model *model, const qi_node *node, int32_t index,
                            qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 1, 1, 0, QI_ROUND_NONE))
        return c.status;
    const qi_tensor *y = qi_output(model, node);
    int32_t const bits = 8 * (int32_t)qi_type_bytes(y->type);
    qi_rule_same_shape(&c, 0);
    if (y->bits < bits)
        qi_rule_truth(&c, y);
    return c.status;
}

static void fill_cast(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    *(qk_cast *)params = (qk_cast){.count = (int32_t)qi_count(y),
                                   .x_type = x->type,
                                   .y_type = y->type,
                                   .is_truth = y->bits == 1};
}

static void run_cast(const qi_call *call)
{
    qk_cast p;
    fill_cast(call, &p);
    qk_cast_run(&p, call->in[0], call->out[0]);
}

/* ------------------------------------------------------------------ table */

/** 8-bit codes to 8 or 16 bits, or 16-bit codes to 16 bits. */
static int rule_table_types(qi_checker *c)
{
    const qi_tensor *x = qi_input(c->model, c->node, 0), *y = qi_output(c->model, c->node);
    if (!qi_is_wide(y) || qi_is_wide(x))
        return qi_rule_codes_or_wide(c, 0, 1);
    qi_rule_any_codes(c, 0, 1);
    return qi_rule(c, y->zero_point == 0, QI_ERR_SHAPE, "zero_point of 16-bit codes", y->zero_point,
                   0);
}

static qi_status check_table(const qi_model *model, const qi_node *node, int32_t index,
                             qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, 2, 2, 0, QI_ROUND_NONE) || !rule_table_types(&c))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *table = qi_input(model, node, 1);
    const qi_tensor *y = qi_output(model, node);
    int32_t const entries = qi_is_wide(x) ? QI_LINES + 1 : QK_CODES;
    qi_rule_same_shape(&c, 0);
    qi_rule(&c, table->kind == QI_CONSTANT, QI_ERR_SHAPE, "table: not constant", table->kind,
            QI_CONSTANT);
    qi_rule(&c, table->type == y->type && table->bits == y->bits, QI_ERR_SHAPE,
            "bits of the table or its type", table->bits, y->bits);
    qi_rule(&c, table->rank <= 2 && table->dims[table->rank - 1] == entries, QI_ERR_SHAPE,
            "entries of the table", table->dims[table->rank - 1], entries);
    if (qi_is_wide(x))
        qi_rule(&c, table->rank == 1, QI_ERR_SHAPE, "rank of the table", table->rank, 1);
    else if (table->rank == 2)
        qi_rule(&c, table->dims[0] == 1 || table->dims[0] == x->dims[x->rank - 1], QI_ERR_SHAPE,
                "rows of the table", table->dims[0], x->dims[x->rank - 1]);
    return c.status;
}

static void fill_table(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *t = qi_input(call->model, call->node, 1);
    *(qk_table *)params = (qk_table){.count = (int32_t)qi_count(x),
                                     .channels = t->rank == 2 ? t->dims[0] : 1,
                                     .flip = x->type == QI_S8 ? 0x80 : 0,
                                     .table = call->in[1]};
}

static void run_table(const qi_call *call)
{
    qk_table p;
    fill_table(call, &p);
    if (qi_is_wide(qi_input(call->model, call->node, 0)))
        qk_table_wide_run(&p, call->in[0], call->out[0]);
    else if (qi_is_wide(qi_output(call->model, call->node)))
        qk_table_to_wide_run(&p, call->in[0], call->out[0]);
    else
        qk_table_run(&p, call->in[0], call->out[0]);
}

static const char *table_function(const qi_call *call)
{
    return qi_is_wide(qi_input(call->model, call->node, 0)) ? "qk_table_wide_run"
           : qi_is_wide(qi_output(call->model, call->node)) ? "qk_table_to_wide_run"
                                                            : "qk_table_run";
}

const qi_kernel qi_kernel_logistic = {.name = "logistic",
                                      .check = check_sigmoid,
                                      .scratch = answers_scratch,
                                      .run = run_logistic,
                                      .in_place = QI_OVER_FIRST};
const qi_kernel qi_kernel_tanh = {.name = "tanh",
                                  .check = check_sigmoid,
                                  .scratch = answers_scratch,
                                  .run = run_tanh,
                                  .in_place = QI_OVER_FIRST};
const qi_kernel qi_kernel_requantize = {.name = "requantize",
                                        .check = check_requantize,
                                        .scratch = answers_scratch,
                                        .run = run_requantize,
                                        .in_place = QI_OVER_FIRST};
const qi_kernel qi_kernel_cast = {
    .name = "cast", .check = check_cast, .run = run_cast, .in_place = QI_OVER_FIRST};
const qi_kernel qi_kernel_table = {
    .name = "table", .check = check_table, .run = run_table, .in_place = QI_OVER_FIRST};

const qi_code qi_code_logistic = {
    "qk_sigmoid", sizeof(qk_sigmoid), fill_sigmoid, logistic_function, 0, 0};
const qi_code qi_code_tanh = {"qk_sigmoid", sizeof(qk_sigmoid), fill_sigmoid, tanh_function, 0, 0};
const qi_code qi_code_requantize = {
    "qk_requantize", sizeof(qk_requantize), fill_requantize, requantize_function, 0, 0};
const qi_code qi_code_cast = {"qk_cast", sizeof(qk_cast), fill_cast, 0, 0, 0};
const qi_code qi_code_table = {"qk_table", sizeof(qk_table), fill_table, table_function, 1 << 1, 0};

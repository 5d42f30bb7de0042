/**
 * Functions from one code to one code: logistic, tanh, requantize, cast, and table, whose 256
 * answers are in the file. For a tensor of more than 256 values the 256 answers are computed once
 * (scratch).
 */
#include "infer/arithmetic/code_functions_i16.h"
#include "infer/model/op.h"

enum { CODES = 256 };

/* ------------------------------------------------------------------ running */

/** The parameters of a function. */
struct function {
    const int32_t *params;
    const qi_tensor *x, *y;
    qi_input_scaling scaling; /* logistic, tanh */
    int32_t lowest;           /* lowest code of y */
};

typedef int32_t code_fn(const struct function *f, int32_t q);

/** Are both of 8 bits, so that 256 answers say all? */
static int has_answers(const qi_tensor *x, const qi_tensor *y)
{
    return qi_type_bytes(x->type) == 1 && qi_type_bytes(y->type) == 1;
}

/** y[i] = function of x[i]. */
static void map_codes(const qi_call *call, const struct function *f, code_fn *of)
{
    int const is_signed = f->x->type == QI_S8;
    const uint8_t *x = call->in[0];
    uint8_t *y = call->out[0], *answers = call->scratch;
    size_t const n = (size_t)qi_count(f->x);
    if (!has_answers(f->x, f->y)) {
        for (size_t i = 0; i < n; i++)
            qi_store_value(f->y->type, y, i, of(f, (int32_t)qi_value_at(f->x->type, x, i)));
        return;
    }
    if (n <= CODES) {
        for (size_t i = 0; i < n; i++)
            qi_store_code(y, i, of(f, qi_load_code(x, i, is_signed)));
        return;
    }
    for (int i = 0; i < CODES; i++)
        qi_store_code(answers, (size_t)i, of(f, is_signed ? (i ^ 0x80) - 0x80 : i));
    for (size_t i = 0; i < n; i++)
        y[i] = answers[x[i]];
}

static size_t answers_scratch(const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    return has_answers(x, qi_output(model, node)) && qi_count(x) > CODES ? CODES : 0;
}

static struct function function_of(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    return (struct function){.params = p,
                             .x = x,
                             .y = y,
                             .scaling = {x->zero_point, p[0], p[1], p[2]},
                             .lowest = qi_code_lo(y)};
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

/** Of 16-bit codes, which are scaled to steps of the table. */
static int32_t logistic_i16_of(const struct function *f, int32_t q)
{
    return qi_logistic_i16_line(qi_requantize_half_up(q, f->scaling.mult, f->scaling.shift));
}

static int32_t tanh_i16_of(const struct function *f, int32_t q)
{
    return qi_tanh_i16_line(qi_requantize_half_up(q, f->scaling.mult, f->scaling.shift));
}

static int32_t logistic_of(const struct function *f, int32_t q)
{
    return qi_logistic_code(q, &f->scaling, f->lowest, f->y->bits);
}

static int32_t tanh_of(const struct function *f, int32_t q)
{
    return qi_tanh_code(q, &f->scaling, f->lowest, f->y->bits);
}

static void run_logistic(const qi_call *call)
{
    struct function const f = function_of(call);
    map_codes(call, &f, qi_is_wide(f.y) ? logistic_i16_of : logistic_of);
}

static void run_tanh(const qi_call *call)
{
    struct function const f = function_of(call);
    map_codes(call, &f, qi_is_wide(f.y) ? tanh_i16_of : tanh_of);
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

/** clamp(requantize(q - Z_x, mult, shift) + Z_y) */
static int32_t requantized(const struct function *f, int32_t q)
{
    const int32_t *p = f->params;
    int32_t const value = qi_requantize(q - f->x->zero_point, p[MULT], p[SHIFT]);
    return qi_clamp(qi_saturate_i64((int64_t)value + f->y->zero_point), p[CLAMP_LO], p[CLAMP_HI]);
}

static int32_t requantized_once(const struct function *f, int32_t q)
{
    const int32_t *p = f->params;
    int32_t const value = qi_requantize_near_ties_up(q - f->x->zero_point, p[MULT], p[SHIFT]);
    return qi_clamp(qi_saturate_i64((int64_t)value + f->y->zero_point), p[CLAMP_LO], p[CLAMP_HI]);
}

static void run_requantize(const qi_call *call)
{
    struct function const f = function_of(call);
    map_codes(call, &f, call->node->rounding == QI_ROUND_ONCE ? requantized_once : requantized);
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

/** The stored integers, of which the lowest bits are kept; or whether they are not 0. */
static void run_cast(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    size_t const n = (size_t)qi_count(y);
    for (size_t i = 0; i < n; i++) {
        int64_t const q = qi_value_at(x->type, call->in[0], i);
        if (y->type == QI_S64)
            ((int64_t *)call->out[0])[i] = q;
        else
            qi_store_value(y->type, call->out[0], i, y->bits == 1 ? q != 0 : (int32_t)q);
    }
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
    int32_t const entries = qi_is_wide(x) ? QI_LINES + 1 : CODES;
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

/** 16-bit codes: lines between the entries. */
static void run_lines(const qi_call *call)
{
    const int16_t *x = call->in[0];
    int16_t *y = call->out[0];
    size_t const n = (size_t)qi_count(qi_output(call->model, call->node));
    for (size_t i = 0; i < n; i++)
        y[i] = (int16_t)qi_lookup_i16(call->in[1], x[i]);
}

static void run_table(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *t = qi_input(call->model, call->node, 1);
    if (qi_is_wide(x)) {
        run_lines(call);
        return;
    }
    const uint8_t *codes = call->in[0], *table = call->in[1];
    const int16_t *wide_table = call->in[1];
    uint8_t const flip = x->type == QI_S8 ? 0x80 : 0; /* byte position of an int8: q + 128 */
    size_t const channels = t->rank == 2 ? (size_t)t->dims[0] : 1;
    uint8_t *y = call->out[0];
    int16_t *wide = call->out[0];
    int const is_wide = qi_is_wide(t);
    for (size_t i = 0; i < x->bytes; i += channels)
        for (size_t c = 0; c < channels; c++) {
            size_t const entry = c * CODES + (codes[i + c] ^ flip);
            if (is_wide)
                wide[i + c] = wide_table[entry];
            else
                y[i + c] = table[entry];
        }
}

const qi_kernel qi_kernel_logistic = {.name = "logistic",
                                      .check = check_sigmoid,
                                      .scratch = answers_scratch,
                                      .run = run_logistic,
                                      .in_place = 1};
const qi_kernel qi_kernel_tanh = {.name = "tanh",
                                  .check = check_sigmoid,
                                  .scratch = answers_scratch,
                                  .run = run_tanh,
                                  .in_place = 1};
const qi_kernel qi_kernel_requantize = {.name = "requantize",
                                        .check = check_requantize,
                                        .scratch = answers_scratch,
                                        .run = run_requantize,
                                        .in_place = 1};
const qi_kernel qi_kernel_cast = {
    .name = "cast", .check = check_cast, .run = run_cast, .in_place = 1};
const qi_kernel qi_kernel_table = {
    .name = "table", .check = check_table, .run = run_table, .in_place = 1};

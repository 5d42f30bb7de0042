/**
 * lstm: a long short-term memory over the steps of a sequence. x [B,T,I], h [B,U], c [B,U],
 * w_x [4,U,I], w_h [4,U,U], bias [4,U] -> y [B,T,U], the next h, the next c. h has 8-bit codes, c
 * 16-bit codes with tanh_bits integer bits. The gates are input, forget, cell, output.
 *
 *   gate[g] = requantize(bias[g] + sum of (x - Z_x) w_x[g], mult_x[g], shift_x[g])
 *           + requantize(sum of (h - Z_h) w_h[g], mult_h[g], shift_h[g])    3 integer bits
 *   i, f, o = logistic(gate), z = tanh(gate)                               15 fractional bits
 *   c       = f c / 2^15 + i z / 2^(15 + tanh_bits), within +-cell_clip
 *   h = y   = requantize(o tanh(c), mult_y, shift_y) + Z_h
 *
 *   scratch  | the gates of one row, int16 [4,U] |
 */
#include "infer/kernels/recurrent.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { GATES = QK_GATES };
enum {
    MULT_X,
    SHIFT_X = MULT_X + GATES,
    MULT_H = SHIFT_X + GATES,
    SHIFT_H = MULT_H + GATES,
    MULT_Y = SHIFT_H + GATES,
    SHIFT_Y,
    TANH_BITS,
    CELL_CLIP,
    PARAMS
};
enum { X, H, C, W_X, W_H, BIAS, INPUTS };
enum { Y, NEXT_H, NEXT_C, OUTPUTS };

/* ------------------------------------------------------------------ checking */

/** Type, all its bits, and dims of a state and of what it becomes. */
static void rule_state(qi_checker *c, int32_t i, int32_t next, qi_type type, const int32_t dims[])
{
    int32_t const bits = 8 * (int32_t)qi_type_bytes((int)type);
    const qi_tensor *both[] = {qi_input(c->model, c->node, i),
                               qi_node_output(c->model, c->node, next)};
    for (int k = 0; k < 2; k++) {
        qi_rule_tensor(c, both[k], type, 2, dims);
        qi_rule(c, both[k]->bits == bits, QI_ERR_SHAPE, "bits", both[k]->bits, bits);
    }
}

static void rule_shapes(qi_checker *c)
{
    const qi_tensor *x = qi_input(c->model, c->node, X), *h = qi_input(c->model, c->node, H);
    const qi_tensor *y = qi_output(c->model, c->node);
    int32_t const batch = x->dims[0], steps = x->dims[1], inputs = x->dims[2], units = h->dims[1];
    const int32_t state[] = {batch, units};
    qi_rule_tensor(c, x, QI_S8, 3, (const int32_t[]){batch, steps, inputs});
    rule_state(c, H, NEXT_H, QI_S8, state);
    rule_state(c, C, NEXT_C, QI_S16, state);
    qi_rule_tensor(c, y, QI_S8, 3, (const int32_t[]){batch, steps, units});
    qi_rule(c, y->bits == 8, QI_ERR_SHAPE, "bits", y->bits, 8);
    qi_rule_weights(c, W_X, QI_S8, 3, (const int32_t[]){GATES, units, inputs});
    qi_rule_weights(c, W_H, QI_S8, 3, (const int32_t[]){GATES, units, units});
    qi_rule_s32(c, BIAS, (int64_t)GATES * units, "bias");
}

static void rule_zero_points(qi_checker *c)
{
    int32_t const h = qi_input(c->model, c->node, H)->zero_point;
    int32_t const others[] = {qi_node_output(c->model, c->node, Y)->zero_point,
                              qi_node_output(c->model, c->node, NEXT_H)->zero_point};
    int32_t const cells[] = {qi_input(c->model, c->node, C)->zero_point,
                             qi_node_output(c->model, c->node, NEXT_C)->zero_point};
    for (int i = 0; i < 2; i++) {
        qi_rule(c, others[i] == h, QI_ERR_SHAPE, "zero_point of the output", others[i], h);
        qi_rule(c, cells[i] == 0, QI_ERR_SHAPE, "zero_point of the cell", cells[i], 0);
    }
}

static void rule_params(qi_checker *c)
{
    const int32_t *p = c->node->params;
    for (int g = 0; g < GATES; g++) {
        qi_rule_range(c, "mult_x", p[MULT_X + g], 0, INT32_MAX);
        qi_rule_range(c, "shift_x", p[SHIFT_X + g], -31, 31);
        qi_rule_range(c, "mult_h", p[MULT_H + g], 0, INT32_MAX);
        qi_rule_range(c, "shift_h", p[SHIFT_H + g], -31, 31);
    }
    qi_rule_multiplier(c, MULT_Y);
    qi_rule_range(c, "tanh_bits", p[TANH_BITS], 0, 4);
    qi_rule_range(c, "cell_clip", p[CELL_CLIP], 0, INT16_MAX);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts_outputs(&c, INPUTS, INPUTS, OUTPUTS, PARAMS, QI_ROUND_TWICE))
        return c.status;
    rule_shapes(&c);
    rule_zero_points(&c);
    rule_params(&c);
    return c.status;
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    return qk_lstm_scratch(qi_input(model, node, H)->dims[1]);
}

/* ------------------------------------------------------------------ running */

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    const qi_tensor *h = qi_input(call->model, call->node, H);
    const int32_t *p = call->node->params;
    qk_lstm l = {.batch = x->dims[0],
                 .steps = x->dims[1],
                 .inputs = x->dims[2],
                 .units = h->dims[1],
                 .x_zero_point = x->zero_point,
                 .h_zero_point = h->zero_point,
                 .mult_y = p[MULT_Y],
                 .shift_y = p[SHIFT_Y],
                 .tanh_bits = p[TANH_BITS],
                 .cell_clip = p[CELL_CLIP],
                 .w_x = call->in[W_X],
                 .w_h = call->in[W_H],
                 .bias = call->in[BIAS]};
    for (int g = 0; g < GATES; g++) {
        l.mult_x[g] = p[MULT_X + g];
        l.shift_x[g] = p[SHIFT_X + g];
        l.mult_h[g] = p[MULT_H + g];
        l.shift_h[g] = p[SHIFT_H + g];
    }
    *(qk_lstm *)params = l;
}

static void run(const qi_call *call)
{
    qk_lstm p;
    fill(call, &p);
    qk_lstm_run(&p, call->in[X], call->in[H], call->in[C], call->out[Y], call->out[NEXT_H],
                call->out[NEXT_C], call->scratch);
}

const qi_kernel qi_kernel_lstm = {.name = "lstm",
                                  .check = check,
                                  .scratch = scratch,
                                  .run = run,
                                  .products = QI_PRODUCTS_RECURRENT};

const qi_code qi_code_lstm = {
    "qk_lstm", sizeof(qk_lstm), fill, NULL, 1 << W_X | 1 << W_H | 1 << BIAS, 0};

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
#include "infer/model/op.h"

enum { GATES = 4, GATE_BITS = 3 };
enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE };
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
    return GATES * (size_t)qi_input(model, node, H)->dims[1] * sizeof(int16_t);
}

/* ------------------------------------------------------------------ running */

/** One row of weights times one row of codes, plus a bias; limited to int32. */
static int32_t weigh(const int8_t *codes, int32_t zero_point, const int8_t *weights, int32_t n,
                     int32_t bias)
{
    int64_t acc = bias;
    for (int32_t i = 0; i < n; i++)
        acc += (codes[i] - zero_point) * weights[i];
    return qi_saturate_i64(acc);
}

static int32_t clamp_16(int64_t value)
{
    return qi_clamp(qi_saturate_i64(value), INT16_MIN, INT16_MAX);
}

/** A gate of one unit. */
static int16_t gate_of(const qi_call *call, const int8_t *x, const int8_t *h, int g, int32_t unit)
{
    const qi_tensor *tx = qi_input(call->model, call->node, X);
    const qi_tensor *th = qi_input(call->model, call->node, H);
    const int32_t *p = call->node->params;
    int32_t const inputs = tx->dims[2], units = th->dims[1];
    size_t const row = (size_t)g * (size_t)units + (size_t)unit;
    const int8_t *w_x = (const int8_t *)call->in[W_X] + row * (size_t)inputs;
    const int8_t *w_h = (const int8_t *)call->in[W_H] + row * (size_t)units;
    int32_t const bias = ((const int32_t *)call->in[BIAS])[row];
    int32_t const from_x = clamp_16(
        qi_requantize(weigh(x, tx->zero_point, w_x, inputs, bias), p[MULT_X + g], p[SHIFT_X + g]));
    int32_t const from_h =
        qi_requantize(weigh(h, th->zero_point, w_h, units, 0), p[MULT_H + g], p[SHIFT_H + g]);
    int16_t const sum = (int16_t)clamp_16((int64_t)from_x + from_h);
    return g == CELL_GATE ? qi_tanh_i16(sum, GATE_BITS) : qi_logistic_i16(sum, GATE_BITS);
}

/** The next code of a cell. */
static int16_t cell_of(const qi_call *call, int32_t c, const int16_t *gates, size_t units)
{
    const int32_t *p = call->node->params;
    int32_t const kept = qi_rdbp(gates[FORGET_GATE * units] * c, 15);
    int32_t const added =
        qi_rdbp(gates[INPUT_GATE * units] * gates[CELL_GATE * units], 15 + p[TANH_BITS]);
    int32_t const sum = clamp_16((int64_t)kept + added), clip = p[CELL_CLIP];
    return (int16_t)(clip ? qi_clamp(sum, -clip, clip) : sum);
}

/** One step of one row: x to y, h and c. */
static void step(const qi_call *call, const int8_t *x, int8_t *h, int16_t *c, int8_t *y)
{
    const qi_tensor *th = qi_input(call->model, call->node, H);
    const int32_t *p = call->node->params;
    size_t const units = (size_t)th->dims[1];
    int16_t *gates = call->scratch;
    for (int g = 0; g < GATES; g++)
        for (size_t u = 0; u < units; u++)
            gates[(size_t)g * units + u] = gate_of(call, x, h, g, (int32_t)u);
    for (size_t u = 0; u < units; u++) {
        c[u] = cell_of(call, c[u], gates + u, units);
        int32_t const hidden = gates[OUTPUT_GATE * units + u] * qi_tanh_i16(c[u], p[TANH_BITS]);
        int64_t const value = qi_requantize(hidden, p[MULT_Y], p[SHIFT_Y]);
        h[u] = (int8_t)qi_clamp(qi_saturate_i64(value + th->zero_point), INT8_MIN, INT8_MAX);
    }
    memcpy(y, h, units);
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    size_t const batch = (size_t)x->dims[0], steps = (size_t)x->dims[1],
                 inputs = (size_t)x->dims[2];
    size_t const units = (size_t)qi_input(call->model, call->node, H)->dims[1];
    memcpy(call->out[NEXT_H], call->in[H], batch * units);
    memcpy(call->out[NEXT_C], call->in[C], batch * units * sizeof(int16_t));
    for (size_t b = 0; b < batch; b++)
        for (size_t t = 0; t < steps; t++)
            step(call, (const int8_t *)call->in[X] + (b * steps + t) * inputs,
                 (int8_t *)call->out[NEXT_H] + b * units, (int16_t *)call->out[NEXT_C] + b * units,
                 (int8_t *)call->out[Y] + (b * steps + t) * units);
}

const qi_kernel qi_kernel_lstm = {.name = "lstm",
                                  .check = check,
                                  .scratch = scratch,
                                  .run = run,
                                  .products = QI_PRODUCTS_RECURRENT};

/**
 * svdf: a layer of filters over time. x [B,I], w [F,I], w_time [F,M], bias [U], state [B,F M] ->
 * y [B,U], next [B,F M], what the state becomes. A unit u has `rank` filters; each remembers its
 * last M features.
 *
 *   feature[f] = requantize(sum over i of (x[i] - Z_x) w[f,i], mult_state, shift_state)
 *   next[f]    = state[f, 1..M-1], feature[f]
 *   acc[u]     = bias[u] + sum over the filters f of u and m of w_time[f,m] next[f,m], limited to
 *                int32
 *   y[u]       = requantize(acc[u], mult_y, shift_y) + Z_y
 */
#include "infer/kernels/recurrent.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

enum { RANK, MULT_STATE, SHIFT_STATE, MULT_Y, SHIFT_Y, CLAMP_LO, CLAMP_HI, PARAMS };
enum { X, W, W_TIME, BIAS, STATE, INPUTS };
enum { Y, NEXT, OUTPUTS };

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST_INPUTS = 1 << 16 }; /* 2^16 128 255 fits int32 */
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts_outputs(&c, INPUTS, INPUTS, OUTPUTS, PARAMS, QI_ROUND_TWICE))
        return c.status;
    const qi_tensor *state = qi_input(model, node, STATE),
                    *next = qi_node_output(model, node, NEXT);
    int32_t const batch = qi_input(model, node, X)->dims[0], rank = node->params[RANK];
    int32_t const inputs = qi_input(model, node, X)->dims[1];
    int32_t const filters = qi_input(model, node, W)->dims[0];
    int32_t const memory = qi_input(model, node, W_TIME)->dims[1];
    int64_t const remembered = (int64_t)filters * memory;
    if (!qi_rule_range(&c, "rank", rank, 1, filters) ||
        !qi_rule(&c, filters % rank == 0, QI_ERR_PARAM, "rank", rank, filters) ||
        !qi_rule(&c, remembered <= INT32_MAX, QI_ERR_SHAPE, "dimension", remembered, INT32_MAX))
        return c.status;
    const int32_t of_state[] = {batch, (int32_t)remembered};
    qi_rule_tensor(&c, qi_input(model, node, X), QI_S8, 2, (const int32_t[]){batch, inputs});
    qi_rule(&c, inputs <= MOST_INPUTS, QI_ERR_SHAPE, "values of a row", inputs, MOST_INPUTS);
    qi_rule_weights(&c, W, QI_S8, 2, (const int32_t[]){filters, inputs});
    qi_rule_weights(&c, W_TIME, QI_S16, 2, (const int32_t[]){filters, memory});
    qi_rule_s32(&c, BIAS, filters / rank, "bias");
    qi_rule_tensor(&c, state, QI_S16, 2, of_state);
    qi_rule_tensor(&c, next, QI_S16, 2, of_state);
    qi_rule_tensor(&c, qi_output(model, node), QI_S8, 2, (const int32_t[]){batch, filters / rank});
    qi_rule(&c, state->zero_point == 0, QI_ERR_SHAPE, "zero_point", state->zero_point, 0);
    qi_rule(&c, next->zero_point == 0, QI_ERR_SHAPE, "zero_point", next->zero_point, 0);
    qi_rule(&c, state->bits == next->bits, QI_ERR_SHAPE, "bits", next->bits, state->bits);
    qi_rule_multiplier(&c, MULT_STATE);
    qi_rule_multiplier(&c, MULT_Y);
    qi_rule_clamp(&c, CLAMP_LO);
    return c.status;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    const qi_tensor *y = qi_output(call->model, call->node);
    const qi_tensor *next = qi_node_output(call->model, call->node, NEXT);
    const int32_t *p = call->node->params;
    *(qk_svdf *)params = (qk_svdf){.batch = x->dims[0],
                                   .inputs = x->dims[1],
                                   .units = y->dims[1],
                                   .rank = p[RANK],
                                   .memory = qi_input(call->model, call->node, W_TIME)->dims[1],
                                   .x_zero_point = x->zero_point,
                                   .mult_state = p[MULT_STATE],
                                   .shift_state = p[SHIFT_STATE],
                                   .state_lo = qi_code_lo(next),
                                   .state_hi = qi_code_hi(next),
                                   .mult_y = p[MULT_Y],
                                   .shift_y = p[SHIFT_Y],
                                   .zero_point = y->zero_point,
                                   .lo = p[CLAMP_LO],
                                   .hi = p[CLAMP_HI],
                                   .weights = call->in[W],
                                   .time_weights = call->in[W_TIME],
                                   .bias = call->in[BIAS]};
}

static void run(const qi_call *call)
{
    qk_svdf p;
    fill(call, &p);
    qk_svdf_run(&p, call->in[X], call->in[STATE], call->out[Y], call->out[NEXT]);
}

const qi_kernel qi_kernel_svdf = {
    .name = "svdf", .check = check, .run = run, .products = QI_PRODUCTS_RECURRENT};
const qi_code qi_code_svdf = {
    "qk_svdf", sizeof(qk_svdf), fill, NULL, 1 << W | 1 << W_TIME | 1 << BIAS, 0};

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

/** What filter f sees of a row. */
static int16_t feature_of(const qi_call *call, const int8_t *x, int32_t f)
{
    const qi_tensor *w = qi_input(call->model, call->node, W);
    const qi_tensor *next = qi_node_output(call->model, call->node, NEXT);
    const int32_t *p = call->node->params;
    const int8_t *weights = (const int8_t *)call->in[W] + (size_t)f * (size_t)w->dims[1];
    int32_t const zero_point = qi_input(call->model, call->node, X)->zero_point;
    int32_t acc = 0;
    for (int32_t i = 0; i < w->dims[1]; i++)
        acc += (x[i] - zero_point) * weights[i];
    int32_t const value = qi_requantize(acc, p[MULT_STATE], p[SHIFT_STATE]);
    return (int16_t)qi_clamp(value, qi_code_lo(next), qi_code_hi(next));
}

/** Move on the memory of filter f of row b, and weigh it. */
static int64_t remember(const qi_call *call, size_t b, int32_t f, int16_t feature)
{
    const qi_tensor *time = qi_input(call->model, call->node, W_TIME);
    size_t const m = (size_t)time->dims[1], at = (b * (size_t)time->dims[0] + (size_t)f) * m;
    const int16_t *state = (const int16_t *)call->in[STATE] + at;
    const int16_t *weights = (const int16_t *)call->in[W_TIME] + (size_t)f * m;
    int16_t *next = (int16_t *)call->out[NEXT] + at;
    int64_t sum = 0;
    memcpy(next, state + 1, (m - 1) * sizeof *next);
    next[m - 1] = feature;
    for (size_t i = 0; i < m; i++)
        sum += (int64_t)weights[i] * next[i];
    return sum;
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, X);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params, *bias = call->in[BIAS];
    int8_t *out = call->out[Y];
    for (size_t b = 0; b < (size_t)x->dims[0]; b++) {
        const int8_t *row = (const int8_t *)call->in[X] + b * (size_t)x->dims[1];
        for (int32_t u = 0; u < y->dims[1]; u++) {
            int64_t acc = bias[u];
            for (int32_t f = u * p[RANK]; f < (u + 1) * p[RANK]; f++)
                acc += remember(call, b, f, feature_of(call, row, f));
            int64_t const value = qi_requantize(qi_saturate_i64(acc), p[MULT_Y], p[SHIFT_Y]);
            *out++ =
                (int8_t)qi_clamp(qi_saturate_i64(value + y->zero_point), p[CLAMP_LO], p[CLAMP_HI]);
        }
    }
}

const qi_kernel qi_kernel_svdf = {
    .name = "svdf", .check = check, .run = run, .products = QI_PRODUCTS_RECURRENT};

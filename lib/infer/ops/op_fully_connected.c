/**
 * fully_connected: x has rows * I values, w is [O,I], bias, mult, shift -> y has rows * O values.
 *
 *   acc[r, o] = sum over i of (x[r, i] - Z_x)(w[o, i] - Z_w)
 *
 *   scratch  | differences of up to QI_TILE rows, int16 | one row of weights, int16 |
 */
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, QI_FULLY_CONNECTED_CLAMP_HI + 1,
                        qi_layer_rounding(node, 1)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *w = qi_input(model, node, 1);
    int64_t const n = qi_count(qi_input(model, node, 0)), m = qi_count(qi_output(model, node));
    qi_rule(&c, w->rank == 2, QI_ERR_SHAPE, "rank of the weights", w->rank, 2);
    qi_rule(&c, n % w->dims[1] == 0, QI_ERR_SHAPE, "values of the input, no multiple of I", n,
            w->dims[1]);
    qi_rule(&c, n / w->dims[1] * w->dims[0] == m, QI_ERR_SHAPE, "values of the output", m,
            n / w->dims[1] * w->dims[0]);
    qi_rule_clamp(&c, QI_FULLY_CONNECTED_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, w->dims[0]);
    return c.status;
}

static int32_t rows_of(const qi_model *model, const qi_node *node)
{
    return (int32_t)qi_count(qi_input(model, node, 0)) / qi_input(model, node, 1)->dims[1];
}

/** How many rows share one pass over the weights. */
static int32_t tile_rows(const qi_model *model, const qi_node *node)
{
    int32_t const rows = rows_of(model, node);
    return rows < QI_TILE ? rows : QI_TILE;
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    size_t const depth = (size_t)qi_input(model, node, 1)->dims[1];
    return ((size_t)tile_rows(model, node) + 1) * depth * sizeof(int16_t);
}

void qi_run_fully_connected_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots)
{
    const qi_tensor *w = qi_input(call->model, call->node, 1);
    size_t const depth = (size_t)w->dims[1], outputs = (size_t)w->dims[0];
    int32_t const rows = rows_of(call->model, call->node);
    int32_t const step = tile_rows(call->model, call->node);
    int16_t *x = call->scratch;
    qi_tile tile = {.x = x,
                    .depth = depth,
                    .weights = qi_rows_of(w, call->in[1]),
                    .weight_codes = qi_codes_of(w),
                    .weight_row = x + (size_t)step * depth,
                    .first_channel = first,
                    .end_channel = end,
                    .requant = qi_requant_of(call, QI_FULLY_CONNECTED_CLAMP_LO),
                    .y = call->out[0],
                    .y_stride = outputs,
                    .is_wide = qi_is_wide(qi_output(call->model, call->node)),
                    .dots = dots};
    qi_codes const codes = qi_codes_of(qi_input(call->model, call->node, 0));
    for (int32_t r = 0; r < rows; r += step) {
        tile.rows = rows - r < step ? rows - r : step;
        tile.y_at = (size_t)r * outputs;
        qi_differences(x, call->in[0], (size_t)r * depth, (size_t)tile.rows * depth, codes);
        qi_run_tile(&tile);
    }
}

static void run(const qi_call *call)
{
    qi_run_fully_connected_part(call, 0, qi_input(call->model, call->node, 1)->dims[0], NULL);
}

const qi_kernel qi_kernel_fully_connected = {.name = "fully_connected",
                                             .check = check,
                                             .scratch = scratch,
                                             .run = run,
                                             .products = QI_PRODUCTS_ROWS,
                                             .max_fraction = QI_MAX_FRACTION,
                                             .reads_packed = 1};

/** fully_connected: infer/kernels/fully_connected.h. */
#include "infer/kernels/fully_connected.h"
#include "infer/model/code.h"
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

/** The layer of a node, without its requantization. */
static qk_fully_connected layer_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0), *w = qi_input(model, node, 1);
    return (qk_fully_connected){.rows = (int32_t)qi_count(x) / w->dims[1],
                                .inputs = w->dims[1],
                                .outputs = w->dims[0],
                                .x_codes = qi_codes_of(x),
                                .weight_codes = qi_codes_of(w),
                                .weights = qi_rows_of(w, w->data)};
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    qk_fully_connected const layer = layer_of(model, node);
    return qk_fully_connected_scratch(&layer);
}

static void fill(const qi_call *call, void *params)
{
    qk_fully_connected layer = layer_of(call->model, call->node);
    layer.requant = qi_requant_of(call, QI_FULLY_CONNECTED_CLAMP_LO);
    *(qk_fully_connected *)params = layer;
}

void qi_run_fully_connected_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots)
{
    qk_fully_connected layer;
    fill(call, &layer);
    layer.dots = dots;
    qk_fully_connected_part(&layer, call->in[0], call->out[0], call->scratch, first, end);
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
                                             .reads_packed = QI_READS_CODES | QI_READS_NARROW};

/** Inputs 1 to 4, the weights and how their sums are scaled, are constants. */
const qi_code qi_code_fully_connected = {
    "qk_fully_connected", sizeof(qk_fully_connected), fill, NULL, 0x1e, 0};

/** depthwise_conv2d: infer/kernels/depthwise_conv2d.h. */
#include "infer/kernels/depthwise_conv2d.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, QI_CONV_CLAMP_HI + 1,
                        qi_layer_rounding(node, 0)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *w = qi_input(model, node, 1);
    qi_window const g = qi_conv_window(model, node);
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule_window(&c, &g);
    qi_rule(&c, w->dims[0] == 1, QI_ERR_SHAPE, "first dimension of the weights", w->dims[0], 1);
    qi_rule(&c, w->dims[3] == g.o, QI_ERR_SHAPE, "output channels of the weights", w->dims[3], g.o);
    qi_rule(&c, (int64_t)g.c * node->params[QI_CONV_MULTIPLIER] == g.o, QI_ERR_PARAM, "multiplier",
            node->params[QI_CONV_MULTIPLIER], g.o / g.c);
    qi_rule_clamp(&c, QI_CONV_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, g.o);
    return c.status;
}

/** The layer of a node, without its requantization. */
static qk_depthwise_conv2d layer_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    return (qk_depthwise_conv2d){.window = qi_conv_window(model, node),
                                 .multiplier = node->params[QI_CONV_MULTIPLIER],
                                 .x_codes = qi_codes_of(qi_input(model, node, 0)),
                                 .weight_codes = qi_codes_of(w),
                                 .weights = qi_rows_of(w, w->data)};
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    qk_depthwise_conv2d const layer = layer_of(model, node);
    return qk_depthwise_conv2d_scratch(&layer);
}

static void fill(const qi_call *call, void *params)
{
    qk_depthwise_conv2d layer = layer_of(call->model, call->node);
    layer.requant = qi_requant_of(call, QI_CONV_CLAMP_LO);
    *(qk_depthwise_conv2d *)params = layer;
}

static void run(const qi_call *call)
{
    qk_depthwise_conv2d layer;
    fill(call, &layer);
    qk_depthwise_conv2d_run(&layer, call->in[0], call->out[0], call->scratch);
}

const qi_kernel qi_kernel_depthwise_conv2d = {.name = "depthwise_conv2d",
                                              .check = check,
                                              .scratch = scratch,
                                              .run = run,
                                              .products = QI_PRODUCTS_LAST,
                                              .max_fraction = QI_MAX_FRACTION,
                                              .reads_packed = QI_READS_CODES | QI_READS_NARROW};

/** Inputs 1 to 4, the weights and how their sums are scaled, are constants. */
const qi_code qi_code_depthwise_conv2d = {
    "qk_depthwise_conv2d", sizeof(qk_depthwise_conv2d), fill, NULL, 0x1e, 0};

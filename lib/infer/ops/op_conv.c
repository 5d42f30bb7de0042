/** conv2d: infer/kernels/conv2d.h. */
#include "infer/kernels/conv2d.h"
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
    int32_t const groups = node->params[QI_CONV_GROUPS];
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule_window(&c, &g);
    qi_rule_range(&c, "groups", groups, 1, g.c);
    if (c.status)
        return c.status;
    qi_rule(&c, g.c % groups == 0, QI_ERR_PARAM, "groups: do not divide the input channels", groups,
            g.c);
    qi_rule(&c, g.o % groups == 0, QI_ERR_PARAM, "groups: do not divide the output channels",
            groups, g.o);
    qi_rule(&c, w->dims[0] == g.o, QI_ERR_SHAPE, "output channels of the weights", w->dims[0], g.o);
    qi_rule(&c, w->dims[3] == g.c / groups, QI_ERR_SHAPE, "input channels of the weights",
            w->dims[3], g.c / groups);
    qi_rule_clamp(&c, QI_CONV_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, g.o);
    return c.status;
}

/** The layer of a node, without its requantization. */
static qk_conv2d layer_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    return (qk_conv2d){.window = qi_conv_window(model, node),
                       .groups = node->params[QI_CONV_GROUPS],
                       .x_codes = qi_codes_of(qi_input(model, node, 0)),
                       .weight_codes = qi_codes_of(w),
                       .weights = qi_rows_of(w, w->data)};
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    qk_conv2d const layer = layer_of(model, node);
    return qk_conv2d_scratch(&layer);
}

static void fill(const qi_call *call, void *params)
{
    qk_conv2d layer = layer_of(call->model, call->node);
    layer.requant = qi_requant_of(call, QI_CONV_CLAMP_LO);
    *(qk_conv2d *)params = layer;
}

void qi_run_conv2d_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots)
{
    qk_conv2d layer;
    fill(call, &layer);
    layer.dots = dots;
    qk_conv2d_part(&layer, call->in[0], call->out[0], call->scratch, first, end);
}

static void run(const qi_call *call)
{
    const int32_t *y = qi_output(call->model, call->node)->dims;
    qi_run_conv2d_part(call, 0, y[0] * y[1] * y[2], NULL); /* at most QM_MAX_TENSOR_VALUES */
}

const qi_kernel qi_kernel_conv2d = {.name = "conv2d",
                                    .check = check,
                                    .scratch = scratch,
                                    .run = run,
                                    .products = QI_PRODUCTS_ROWS,
                                    .max_fraction = QI_MAX_FRACTION,
                                    .reads_packed = QI_READS_CODES | QI_READS_NARROW};

/** Inputs 1 to 4, the weights and how their sums are scaled, are constants. */
const qi_code qi_code_conv2d = {"qk_conv2d", sizeof(qk_conv2d), fill, NULL, 0x1e, 0};

/** transpose_conv2d: infer/kernels/transpose_conv2d.h. */
#include "infer/kernels/transpose_conv2d.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

static void rule_axis(qi_checker *c, int32_t kernel, int32_t stride, int32_t pad)
{
    qi_rule_range(c, "kernel", kernel, 1, QM_MAX_SIDE);
    qi_rule_range(c, "stride", stride, 1, QM_MAX_SIDE);
    qi_rule_range(c, "pad", pad, 0, kernel - 1);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, QI_TRANSPOSE_CLAMP_HI + 1,
                        qi_layer_rounding(node, 0)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *w = qi_input(model, node, 1);
    const qi_tensor *y = qi_output(model, node);
    const int32_t *p = node->params;
    qi_rule(&c, x->rank == 4, QI_ERR_SHAPE, "rank of the input", x->rank, 4);
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule(&c, y->rank == 4, QI_ERR_SHAPE, "rank of the output", y->rank, 4);
    qi_rule(&c, x->dims[0] == y->dims[0], QI_ERR_SHAPE, "batch of the output", y->dims[0],
            x->dims[0]);
    qi_rule(&c, w->dims[0] == y->dims[3], QI_ERR_SHAPE, "output channels of the weights",
            w->dims[0], y->dims[3]);
    qi_rule(&c, w->dims[3] == x->dims[3], QI_ERR_SHAPE, "input channels of the weights", w->dims[3],
            x->dims[3]);
    rule_axis(&c, w->dims[1], p[QI_TRANSPOSE_STRIDE_H], p[QI_TRANSPOSE_PAD_TOP]);
    rule_axis(&c, w->dims[2], p[QI_TRANSPOSE_STRIDE_W], p[QI_TRANSPOSE_PAD_LEFT]);
    qi_rule_clamp(&c, QI_TRANSPOSE_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, w->dims[0]);
    return c.status;
}

static qk_transpose_conv2d layer_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    return (qk_transpose_conv2d){.window = qi_transpose_window(model, node),
                                 .x_codes = qi_codes_of(qi_input(model, node, 0)),
                                 .weight_codes = qi_codes_of(w),
                                 .weights = qi_rows_of(w, w->data)};
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    qk_transpose_conv2d const layer = layer_of(model, node);
    return qk_transpose_conv2d_scratch(&layer);
}

static void fill(const qi_call *call, void *params)
{
    qk_transpose_conv2d layer = layer_of(call->model, call->node);
    layer.requant = qi_requant_of(call, QI_TRANSPOSE_CLAMP_LO);
    *(qk_transpose_conv2d *)params = layer;
}

static void run(const qi_call *call)
{
    qk_transpose_conv2d layer;
    fill(call, &layer);
    qk_transpose_conv2d_run(&layer, call->in[0], call->out[0], call->scratch);
}

const qi_kernel qi_kernel_transpose_conv2d = {.name = "transpose_conv2d",
                                              .check = check,
                                              .scratch = scratch,
                                              .run = run,
                                              .products = QI_PRODUCTS_SPREAD,
                                              .max_fraction = QI_MAX_FRACTION,
                                              .reads_packed = QI_READS_CODES | QI_READS_NARROW};

/** Inputs 1 to 4, the weights and how their sums are scaled, are constants. */
const qi_code qi_code_transpose_conv2d = {
    "qk_transpose_conv2d", sizeof(qk_transpose_conv2d), fill, NULL, 0x1e, 0};

/** average_pool2d and max_pool2d: infer/kernels/pool.h. */
#include "infer/kernels/pool.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST_PIXELS = 1 << 23, MOST_WIDE = (1 << 16) - 1 }; /* their sums fit int32 */
    qi_checker c = {model, node, index, err, QI_OK};
    enum { OTHERS = 1 << QI_ROUND_EVEN | 1 << QI_ROUND_ONCE };
    unsigned const others = node->kernel == &qi_kernel_average_pool2d ? OTHERS : 0;
    if (!qi_rule_counts(&c, 1, 1, QI_POOL_CLAMP_HI + 1,
                        qi_rounding_or(model, node, QI_ROUND_NONE, others)) ||
        !qi_rule_codes_or_wide(&c, 0, 0))
        return c.status;
    qi_window const g = qi_pool_window(model, node);
    qi_rule_same_codes(&c, 0);
    qi_rule_window(&c, &g);
    qi_rule(&c, g.c == g.o, QI_ERR_SHAPE, "channels of the output", g.o, g.c);
    qi_rule_range(&c, "pixels of a window", (int64_t)g.kernel_h * g.kernel_w, 1,
                  qi_is_wide(qi_output(model, node)) ? MOST_WIDE : MOST_PIXELS);
    qi_rule_clamp(&c, QI_POOL_CLAMP_LO);
    return c.status;
}

static qk_pool layer_of(const qi_model *model, const qi_node *node)
{
    qi_codes const codes = qi_codes_of(qi_input(model, node, 0));
    return (qk_pool){.window = qi_pool_window(model, node),
                     .flip = codes.flip,
                     .is_wide = codes.is_wide,
                     .rounding = node->rounding,
                     .lo = node->params[QI_POOL_CLAMP_LO],
                     .hi = node->params[QI_POOL_CLAMP_HI]};
}

static size_t average_scratch(const qi_model *model, const qi_node *node)
{
    qk_pool const layer = layer_of(model, node);
    return qk_average_pool2d_scratch(&layer);
}

static void fill(const qi_call *call, void *params)
{
    *(qk_pool *)params = layer_of(call->model, call->node);
}

static void run_average(const qi_call *call)
{
    qk_pool const layer = layer_of(call->model, call->node);
    qk_average_pool2d_run(&layer, call->in[0], call->out[0], call->scratch);
}

static void run_max(const qi_call *call)
{
    qk_pool const layer = layer_of(call->model, call->node);
    qk_max_pool2d_run(&layer, call->in[0], call->out[0]);
}

const qi_kernel qi_kernel_average_pool2d = {.name = "average_pool2d",
                                            .check = check,
                                            .scratch = average_scratch,
                                            .run = run_average,
                                            .products = QI_PRODUCTS_POOL};
const qi_kernel qi_kernel_max_pool2d = {
    .name = "max_pool2d", .check = check, .run = run_max, .products = QI_PRODUCTS_POOL};

const qi_code qi_code_average_pool2d = {"qk_pool", sizeof(qk_pool), fill, NULL, 0, 0};
const qi_code qi_code_max_pool2d = {"qk_pool", sizeof(qk_pool), fill, NULL, 0, 0};

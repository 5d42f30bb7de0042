/** Counts the work of one run, so that a caller can refuse a model before it runs. */
#include "infer/op.h"

/** How many products one value of the output sums; 0: the op has none. */
static int64_t products_of(const qi_model *model, const qi_node *node)
{
    const qi_kernel *k = node->kernel;
    if (k == &qi_kernel_conv2d || k == &qi_kernel_transpose_conv2d ||
        k == &qi_kernel_fully_connected) {
        const qi_tensor *w = qi_input(model, node, 1);
        return qi_count(w) / w->dims[0];
    }
    if (k == &qi_kernel_depthwise_conv2d) {
        const qi_tensor *w = qi_input(model, node, 1);
        return qi_count(w) / w->dims[3];
    }
    if (k == &qi_kernel_average_pool2d || k == &qi_kernel_max_pool2d) {
        qi_window const g = qi_pool_window(model, node);
        int64_t const rows = g.kernel_h < g.h ? g.kernel_h : g.h;
        return rows * (g.kernel_w < g.w ? g.kernel_w : g.w);
    }
    return 0;
}

/** At most 2^28 2^24 for a built-in kernel, and the sum of 272 tensors otherwise: no overflow. */
static int64_t node_macs(const qi_model *model, const qi_node *node)
{
    int64_t const products = products_of(model, node);
    int64_t values = 0;
    if (products)
        return products * qi_count(qi_output(model, node));
    for (int32_t i = 0; i < node->n_inputs; i++)
        values += qi_count(&model->tensors[node->inputs[i]]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        values += qi_count(&model->tensors[node->outputs[i]]);
    return values;
}

int64_t qi_model_macs(const qi_model *model)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < model->n_nodes; i++) {
        int64_t const more = node_macs(model, &model->nodes[i]);
        if (more > INT64_MAX - sum)
            return INT64_MAX;
        sum += more;
    }
    return sum;
}

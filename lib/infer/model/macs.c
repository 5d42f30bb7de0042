/** Counts multiply-adds: those that a run takes, and those of weights and values. */
#include "infer/model/op.h"

static int64_t count(const int32_t dims[QI_MAX_RANK])
{
    return (int64_t)dims[0] * dims[1] * dims[2] * dims[3];
}

int64_t qi_multiply_adds(qi_products products, const int32_t x[QI_MAX_RANK],
                         const int32_t weights[QI_MAX_RANK], const int32_t y[QI_MAX_RANK])
{
    switch (products) {
    case QI_PRODUCTS_ROWS:
        return count(weights) / weights[0] * count(y);
    case QI_PRODUCTS_LAST:
        return count(weights) / weights[QI_MAX_RANK - 1] * count(y);
    case QI_PRODUCTS_SPREAD:
        return count(weights) / weights[QI_MAX_RANK - 1] * count(x);
    default:
        return 0;
    }
}

/** Pixels of a window that lies inside the input as far as it can. */
static int64_t window_pixels(const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_pool_window(model, node);
    int64_t const rows = g.kernel_h < g.h ? g.kernel_h : g.h;
    return rows * (g.kernel_w < g.w ? g.kernel_w : g.w);
}

int64_t qi_node_multiply_adds(const qi_model *model, const qi_node *node)
{
    const qi_tensor *t = model->tensors, *x = &t[node->inputs[0]];
    int64_t weights = 0;
    if (node->kernel->products != QI_PRODUCTS_RECURRENT)
        return qi_multiply_adds(node->kernel->products, x->dims,
                                t[node->inputs[node->n_inputs > 1]].dims, t[node->outputs[0]].dims);
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (t[node->inputs[i]].kind == QI_CONSTANT && t[node->inputs[i]].type != QI_S32)
            weights += qi_count(&t[node->inputs[i]]);
    return weights * (qi_count(x) / x->dims[x->rank - 1]);
}

/** At most 2^28 times some 2^28, or the sum of 272 tensors: no overflow. */
static int64_t node_macs(const qi_model *model, const qi_node *node)
{
    const qi_tensor *t = model->tensors, *x = &t[node->inputs[0]], *y = &t[node->outputs[0]];
    qi_products const products = node->kernel->products;
    int64_t values = 0;
    if (products == QI_PRODUCTS_POOL)
        return window_pixels(model, node) * qi_count(y);
    if (products == QI_PRODUCTS_MATRIX)
        return qi_aligned_dim(x, QI_MAX_RANK - 1 - (node->params[0] != 0)) * qi_count(y);
    if (products == QI_PRODUCTS_RECURRENT)
        return qi_node_multiply_adds(model, node);
    if (products) /* a spread sum gathers: it multiplies zeros, too */
        return qi_multiply_adds(products == QI_PRODUCTS_SPREAD ? QI_PRODUCTS_ROWS : products,
                                x->dims, t[node->inputs[1]].dims, y->dims);
    for (int32_t i = 0; i < node->n_inputs; i++)
        values += qi_count(&t[node->inputs[i]]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        values += qi_count(&t[node->outputs[i]]);
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

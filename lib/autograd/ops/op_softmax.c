/** softmax over the last dimension: y = exp(x - max) / sum exp(x - max); dx = y (dy - sum dy y) */
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"
#include "autograd/ops/softmax.h"

void qat_softmax_row(const qat_real *x, qat_real *y, size_t n)
{
    qat_real highest = x[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        highest = x[i] > highest ? x[i] : highest;
    for (size_t i = 0; i < n; i++) {
        y[i] = QAT_EXP(x[i] - highest);
        sum += (double)y[i];
    }
    for (size_t i = 0; i < n; i++)
        y[i] = (qat_real)((double)y[i] / sum);
}

static qat_status softmax_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static size_t columns_of(const qat_node *node)
{
    return (size_t)qat_shape_channels(&node->shape);
}

static void forward_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    size_t const columns = columns_of(node), rows = qat_shape_count(&node->shape) / columns;
    qat_span const span = qat_tile_span(rows, qat_tile_rows(columns), tile);
    for (size_t r = span.begin; r < span.end; r++)
        qat_softmax_row(node->inputs[0]->value + r * columns, node->value + r * columns, columns);
}

static void row_gradient(const qat_real *y, const qat_real *dy, qat_real *dx, size_t n)
{
    double dot = 0;
    for (size_t i = 0; i < n; i++)
        dot += (double)dy[i] * (double)y[i];
    for (size_t i = 0; i < n; i++)
        dx[i] += y[i] * (dy[i] - (qat_real)dot);
}

static void backward_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    size_t const columns = columns_of(node), rows = qat_shape_count(&node->shape) / columns;
    qat_span const span = qat_tile_span(rows, qat_tile_rows(columns), tile);
    for (size_t r = span.begin; r < span.end; r++)
        row_gradient(node->value + r * columns, node->grad + r * columns,
                     node->inputs[0]->grad + r * columns, columns);
}

static void run_rows(qat_node *node, qat_tile_fn *fn)
{
    size_t const columns = columns_of(node), rows = qat_shape_count(&node->shape) / columns;
    qat_parallel(qat_tiles_of(rows, qat_tile_rows(columns)), fn, node);
}

static void softmax_forward(qat_node *node, const qat_run *run)
{
    run_rows(node, forward_tile);
}

static void softmax_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        run_rows(node, backward_tile);
}

const qat_op qat_op_softmax = {
    .name = "softmax",
    .meaning = "exp(x) / sum exp(x) over the last dimension",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = softmax_shape,
    .forward = softmax_forward,
    .backward = softmax_backward,
    .quant = QAT_QUANT(softmax),
};

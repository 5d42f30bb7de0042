/** bias: y = x + b, b along the last dimension. */
#include "autograd/op.h"
#include "autograd/real.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"

static int channels_of(const qat_node *node)
{
    const qat_shape *in = &node->inputs[0]->shape;
    return in->dims[in->rank - 1];
}

static size_t rows_of(const qat_node *node)
{
    return qat_shape_count(&node->inputs[0]->shape) / (size_t)channels_of(node);
}

static int bias_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    defs[0] =
        (qat_param_def){.name = "bias", .shape = QAT_SHAPE(channels_of(node)), .trainable = true};
    return 1;
}

/* Backward's sums: of blocks, and of all. */
static size_t place(const qat_node *node, double **partial, double **sum)
{
    qat_carve carve = {node->scratch, 0};
    int const channels = channels_of(node);
    *partial = qat_carve_take(&carve, qat_column_partials(rows_of(node), channels), sizeof(double));
    *sum = qat_carve_take(&carve, (size_t)channels, sizeof(double));
    return carve.used;
}

static qat_status bias_shape(qat_node *node, qat_error *err)
{
    double *partial, *sum;
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = place(node, &partial, &sum);
    return QAT_OK;
}

QAT_VECTOR static void add_bias(const qat_real *restrict x, const qat_real *restrict b, size_t rows,
                                size_t channels, qat_real *restrict y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < channels; c++)
            y[r * channels + c] = x[r * channels + c] + b[c];
}

static void forward_tile(void *context, int tile, int thread)
{
    const qat_node *node = context;
    size_t const channels = (size_t)channels_of(node);
    qat_span const rows = qat_tile_span(rows_of(node), qat_tile_rows(channels), tile);
    size_t const at = rows.begin * channels;
    add_bias(node->inputs[0]->value + at, node->inputs[1]->value, rows.end - rows.begin, channels,
             node->value + at);
}

static void bias_forward(qat_node *node, const qat_run *run)
{
    size_t const rows = qat_tile_rows((size_t)channels_of(node));
    qat_parallel(qat_tiles_of(rows_of(node), rows), forward_tile, node);
}

static void bias_backward(qat_node *node, const qat_run *run)
{
    double *partial, *sum;
    qat_real *dx = node->inputs[0]->grad, *db = node->inputs[1]->grad;
    if (dx)
        qat_accumulate(dx, node->grad, qat_shape_count(&node->shape));
    if (!db)
        return;
    place(node, &partial, &sum);
    qat_column_sums(node->grad, NULL, rows_of(node), channels_of(node), partial, sum, NULL);
    for (int c = 0; c < channels_of(node); c++)
        db[c] += (qat_real)sum[c];
}

const qat_op qat_op_bias = {
    .name = "bias",
    .meaning = "an offset per channel",
    .min_inputs = 1,
    .max_inputs = 1,
    .params = bias_params,
    .shape = bias_shape,
    .forward = bias_forward,
    .backward = bias_backward,
    .quant = QAT_QUANT(bias),
};

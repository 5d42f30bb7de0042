/** bias: y = x + b, where b runs along the last dimension. */
#include "autograd/loops/column_sums.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/loops/wide.h"
#include "autograd/ops/op.h"

static int channels_of(const qat_node *node)
{
    return qat_shape_channels(&node->inputs[0]->shape);
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

/** Scratch: the sums of backward (per block and total), and b repeated for wide.h. */
struct work {
    double *partial, *sum;
    qat_real *wide;
};

static size_t place(const qat_node *node, struct work *w)
{
    qat_carve carve = {node->scratch, 0};
    int const channels = channels_of(node);
    w->partial =
        qat_carve_take(&carve, qat_column_partials(rows_of(node), channels), sizeof(double));
    w->sum = qat_carve_take(&carve, (size_t)channels, sizeof(double));
    w->wide = qat_carve_take(&carve, qat_wide_pattern((size_t)channels), sizeof(qat_real));
    return carve.used;
}

static qat_status bias_shape(qat_node *node, qat_error *err)
{
    struct work w;
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = place(node, &w);
    return QAT_OK;
}

/* y = x + b, with b repeated as wide.h needs it. */
QAT_VECTOR static void add_bias(const qat_real *restrict x, const qat_real *restrict b, size_t n,
                                size_t wide, qat_real *restrict y)
{
    for (size_t i = 0; i < n; i += wide, x += wide, y += wide)
        for (size_t c = 0; c < (n - i < wide ? n - i : wide); c++)
            y[c] = x[c] + b[c];
}

/** Compute the node's own values [at, at + n). */
static void values_at(const qat_node *node, size_t at, size_t n, qat_real *y)
{
    struct work w;
    size_t const channels = (size_t)channels_of(node);
    place(node, &w);
    add_bias(node->inputs[0]->value + at, w.wide + at % channels, n, qat_wide_of(channels), y);
}

static void forward_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    qat_real *y = qat_tail_last(node)->value + at;
    values_at(node, at, n, y);
    qat_tail_forward(node, at, y, n);
}

static void bias_forward(qat_node *node, const qat_run *run)
{
    struct work w;
    place(node, &w);
    qat_wide_lay(node->inputs[1]->value, (size_t)channels_of(node), w.wide);
    qat_run_strips(qat_shape_count(&node->shape), forward_strip, node);
}

/** Mask dy by the node's tail. */
static void mask_strip(void *context, size_t at, size_t n)
{
    const qat_node *node = context;
    qat_real y[QAT_STRIP_VALUES];
    values_at(node, at, n, y);
    qat_tail_backward(node, y, node->grad + at, n);
}

static const qat_real *mask_strips(void *context, size_t at, size_t n, qat_real *room)
{
    qat_each_strip(at, at + n, mask_strip, context);
    return NULL;
}

static void bias_backward(qat_node *node, const qat_run *run)
{
    struct work w;
    qat_real *db = node->inputs[1]->grad;
    qat_columns const columns = {.a = node->grad,
                                 .rows = rows_of(node),
                                 .columns = channels_of(node),
                                 .prepare = node->tail ? mask_strips : NULL,
                                 .context = node};
    place(node, &w);
    if (db || node->tail)
        qat_column_sums(&columns, w.partial, w.sum, NULL);
    for (int c = 0; db && c < channels_of(node); c++)
        db[c] += (qat_real)w.sum[c];
    if (node->inputs[0]->grad)
        qat_pass_gradient(node, 0);
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
    .grads = QAT_GRADS_IN_PLACE,
    .runs_tail = qat_runs_any_tail,
};

/**
 * smooth_l1_loss (x, t): 1/N sum s(x - t), with the distance s of smooth_l1.h. Sums are taken in
 * double over tiles. A target of NaN means "not known": it adds nothing to the sum and to the
 * gradients.
 */
#include "autograd/loops/tiles.h"
#include "autograd/losses/mean.h"
#include "autograd/losses/smooth_l1.h"
#include "autograd/ops/op.h"

struct smooth {
    const qat_real *x, *t;
    size_t n;
    double beta, *sums; /* sums: one per tile */
    qat_real *dx, *dt, scale;
};

static size_t values_of(const qat_node *node)
{
    return qat_shape_count(&node->inputs[0]->shape);
}

static int tiles_of(size_t n)
{
    return qat_tiles_of(n, QAT_TILE_VALUES);
}

static qat_status smooth_shape(qat_node *node, qat_error *err)
{
    const qat_shape *x = &node->inputs[0]->shape, *t = &node->inputs[1]->shape;
    char text[2][64];
    if (!qat_shape_equal(x, t))
        return qat_fail(err, QAT_ERR_SHAPE, "%s and targets %s have different shapes",
                        qat_shape_text(x, text[0]), qat_shape_text(t, text[1]));
    node->shape = QAT_SHAPE(1);
    node->scratch_bytes = QAT_MEAN_BYTES + (size_t)tiles_of(values_of(node)) * sizeof(double);
    return QAT_OK;
}

static struct smooth smooth_of(const qat_node *node)
{
    return (struct smooth){.x = node->inputs[0]->value,
                           .t = node->inputs[1]->value,
                           .n = values_of(node),
                           .beta = node->attrs[0],
                           .sums = (double *)(void *)((char *)node->scratch + QAT_MEAN_BYTES),
                           .dx = node->inputs[0]->grad,
                           .dt = node->inputs[1]->grad};
}

static void forward_tile(void *context, int tile, int thread)
{
    const struct smooth *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    double sum = 0;
    for (size_t i = span.begin; i < span.end; i++)
        if (!isnan(s->t[i]))
            sum += qat_smooth_l1((double)s->x[i] - (double)s->t[i], s->beta);
    s->sums[tile] = sum;
}

static int smooth_sums(qat_node *node, const qat_run *run, double **sums)
{
    struct smooth s = smooth_of(node);
    double sum = 0;
    qat_parallel(tiles_of(s.n), forward_tile, &s);
    for (int i = 0; i < tiles_of(s.n); i++)
        sum += s.sums[i];
    return qat_mean_set(node, sum, (double)node->inputs[0]->shape.dims[0], sums);
}

static void smooth_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    smooth_sums(node, run, &sums);
    qat_mean_forward(node, run);
}

/* ds/dx = -ds/dt */
static void backward_tile(void *context, int tile, int thread)
{
    const struct smooth *s = context;
    qat_real const beta = (qat_real)s->beta;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    for (size_t i = span.begin; i < span.end; i++) {
        if (isnan(s->t[i]))
            continue;
        qat_real const slope = qat_smooth_l1_slope(s->x[i] - s->t[i], beta);
        if (s->dx)
            s->dx[i] += s->scale * slope;
        if (s->dt)
            s->dt[i] -= s->scale * slope;
    }
}

static void smooth_backward(qat_node *node, const qat_run *run)
{
    struct smooth s = smooth_of(node);
    s.scale =
        node->grad[0] / (qat_real)qat_mean_counted(node, (double)node->inputs[0]->shape.dims[0]);
    qat_parallel(tiles_of(s.n), backward_tile, &s);
}

static const qat_attr_def smooth_attrs[] = {
    {"beta", QAT_ATTR_REAL, 1, 1e-6, 1e6, NULL, "the distance is quadratic below this value"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared smooth_shared = {.forward_sums = smooth_sums, .forward = qat_mean_forward};

const qat_op qat_op_smooth_l1_loss = {
    .name = "smooth_l1_loss",
    .meaning = "smooth-L1 distance of the input from a second input (NaN: not known), summed, mean "
               "over the batch",
    .min_inputs = 2,
    .max_inputs = 2,
    .attrs = smooth_attrs,
    .shape = smooth_shape,
    .forward = smooth_forward,
    .backward = smooth_backward,
    .shared = &smooth_shared,
};

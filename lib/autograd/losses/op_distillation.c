/**
 * distillation(loss [1], z [N,K], t [N,K]): adds to a student's loss its distance from a teacher's
 * logits t (Hinton, Vinyals, Dean 2015), with temperature T and weight w:
 *
 *     y = (1 - w) loss + w T^2 1/N sum_n sum_k p[n,k] log(p[n,k] / q[n,k])
 *     p = softmax(t / T), q = softmax(z / T)          dz = w T/N (q - p), dloss = 1 - w
 *
 * The teacher gets no gradient. Rows are computed in double and added in order. With w = 0 the
 * result is the loss, and all gradients are as without this node.
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/losses/mean.h"
#include "autograd/ops/op.h"

enum { LOSS, STUDENT, TEACHER };
enum { TEMPERATURE, WEIGHT };

/** Scratch: the mean divergence, q - p [N,K], and the divergence of each row [N]. */
struct distillation {
    size_t rows, classes;
    double temperature;
    const qat_real *student, *teacher;
    qat_real *difference;
    double *divergence;
    qat_real *gradient, scale; /* used in backward */
};

static size_t place(const qat_node *node, struct distillation *d)
{
    qat_carve carve = {node->scratch, QAT_MEAN_BYTES};
    *d = (struct distillation){.rows = (size_t)node->inputs[STUDENT]->shape.dims[0],
                               .classes = (size_t)node->inputs[STUDENT]->shape.dims[1],
                               .temperature = node->attrs[TEMPERATURE],
                               .student = node->inputs[STUDENT]->value,
                               .teacher = node->inputs[TEACHER]->value};
    d->difference = qat_carve_take(&carve, d->rows * d->classes, sizeof(qat_real));
    d->divergence = qat_carve_take(&carve, d->rows, sizeof(double));
    return carve.used;
}

static qat_status distillation_shape(qat_node *node, qat_error *err)
{
    const qat_shape *z = &node->inputs[STUDENT]->shape, *t = &node->inputs[TEACHER]->shape;
    struct distillation d;
    char text[2][64];
    if (z->rank != 2 || !qat_shape_equal(z, t))
        return qat_fail(err, QAT_ERR_SHAPE, "logits %s and a teacher's %s are not both [N, K]",
                        qat_shape_text(z, text[0]), qat_shape_text(t, text[1]));
    if (qat_shape_count(&node->inputs[LOSS]->shape) != 1)
        return qat_fail(err, QAT_ERR_SHAPE, "the loss is %s, not a scalar",
                        qat_shape_text(&node->inputs[LOSS]->shape, text[0]));
    node->shape = QAT_SHAPE(1);
    node->scratch_bytes = place(node, &d);
    return QAT_OK;
}

/** The softmax of one row: log sum exp(x / T) = shift / T + log(sum). */
struct row {
    const qat_real *x;
    double shift, log_sum, temperature;
};

static struct row row_of(const qat_real *x, size_t n, double temperature)
{
    struct row r = {x, (double)x[0], 0, temperature};
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        r.shift = (double)x[i] > r.shift ? (double)x[i] : r.shift;
    for (size_t i = 0; i < n; i++)
        sum += exp(((double)x[i] - r.shift) / temperature);
    r.log_sum = log(sum);
    return r;
}

static double log_softmax(const struct row *r, size_t i)
{
    return ((double)r->x[i] - r->shift) / r->temperature - r->log_sum;
}

static void forward_tile(void *context, int tile, int thread)
{
    const struct distillation *d = context;
    size_t const n = d->classes;
    qat_span const span = qat_tile_span(d->rows, qat_tile_rows(n), tile);
    for (size_t r = span.begin; r < span.end; r++) {
        struct row const z = row_of(d->student + r * n, n, d->temperature);
        struct row const t = row_of(d->teacher + r * n, n, d->temperature);
        d->divergence[r] = 0;
        for (size_t i = 0; i < n; i++) {
            double const log_q = log_softmax(&z, i), log_p = log_softmax(&t, i), p = exp(log_p);
            d->divergence[r] += p * (log_p - log_q);
            d->difference[r * n + i] = (qat_real)(exp(log_q) - p);
        }
    }
}

static int tiles_of(const struct distillation *d)
{
    return qat_tiles_of(d->rows, qat_tile_rows(d->classes));
}

static int distillation_sums(qat_node *node, const qat_run *run, double **sums)
{
    struct distillation d;
    double const w = node->attrs[WEIGHT];
    double sum = 0;
    place(node, &d);
    if (w > 0)
        qat_parallel(tiles_of(&d), forward_tile, &d);
    for (size_t r = 0; w > 0 && r < d.rows; r++)
        sum += d.divergence[r];
    return qat_mean_set(node, sum, (double)d.rows, sums);
}

static void distillation_join(qat_node *node, const qat_run *run)
{
    double const w = node->attrs[WEIGHT], loss = (double)node->inputs[LOSS]->value[0];
    double const t = node->attrs[TEMPERATURE];
    double const divergence = qat_mean_of(node)->sum / qat_mean_count(node);
    node->value[0] = (qat_real)((1 - w) * loss + w * t * t * divergence);
}

static void distillation_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    distillation_sums(node, run, &sums);
    distillation_join(node, run);
}

static void backward_tile(void *context, int tile, int thread)
{
    const struct distillation *d = context;
    qat_span const span = qat_tile_span(d->rows, qat_tile_rows(d->classes), tile);
    for (size_t i = span.begin * d->classes; i < span.end * d->classes; i++)
        d->gradient[i] += d->scale * d->difference[i];
}

static void distillation_backward(qat_node *node, const qat_run *run)
{
    struct distillation d;
    double const w = node->attrs[WEIGHT];
    if (node->inputs[LOSS]->grad)
        node->inputs[LOSS]->grad[0] += node->grad[0] * (qat_real)(1 - w);
    if (!node->inputs[STUDENT]->grad || w == 0)
        return;
    place(node, &d);
    d.gradient = node->inputs[STUDENT]->grad;
    d.scale =
        node->grad[0] * (qat_real)(w * d.temperature / qat_mean_counted(node, (double)d.rows));
    qat_parallel(tiles_of(&d), backward_tile, &d);
}

static const qat_attr_def distillation_attrs[] = {
    [TEMPERATURE] = {"temperature", QAT_ATTR_REAL, 4, 1e-3, 1e6, NULL,
                     "divides the logits of both softmaxes"},
    [WEIGHT] = {"weight", QAT_ATTR_REAL, 0.5, 0, 1, NULL,
                "weight of the teacher; the loss has 1 - weight"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared distillation_shared = {.forward_sums = distillation_sums,
                                               .forward = distillation_join};

const qat_op qat_op_distillation = {
    .name = "distillation",
    .meaning = "a loss plus the distance of a student's logits [N, K] from a teacher's",
    .min_inputs = 3,
    .max_inputs = 3,
    .attrs = distillation_attrs,
    .shape = distillation_shape,
    .forward = distillation_forward,
    .backward = distillation_backward,
    .shared = &distillation_shared,
};

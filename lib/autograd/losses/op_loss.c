/**
 * Losses: scalars of shape [1]. Sums are taken in double, in order over rows or fixed tiles.
 *
 *     softmax_cross_entropy   1/N sum_n log sum_k exp z[n,k] - sum_k t[n,k] z[n,k]
 *     (z [N,K], label [N])    t[n,k] = (1 - smoothing) [k = label] + smoothing / K
 *     (z [N,H,W,K], label [N,H,W])   the same of pixels; the mean is over those that are known
 *     sigmoid_cross_entropy   1/N sum max(z,0) - z t + log(1 + exp(-|z|))
 *     l2_loss (x [, t])       1/N sum (x - t)^2 / 2
 *     weight_decay (w, ...)   rate sum w^2 / 2
 *
 * A target t of NaN means "not known": it adds nothing to the sum and to the gradients.
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/losses/mean.h"
#include "autograd/ops/op.h"
#include "autograd/ops/softmax.h"

static qat_status same_shapes(const qat_node *node, qat_error *err)
{
    const qat_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    char text[2][64];
    if (qat_shape_equal(a, b))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_SHAPE, "%s and targets %s have different shapes",
                    qat_shape_text(a, text[0]), qat_shape_text(b, text[1]));
}

static size_t values_of(const qat_node *node, int i)
{
    return qat_shape_count(&node->inputs[i]->shape);
}

static double batch_of(const qat_node *node)
{
    return (double)node->inputs[0]->shape.dims[0];
}

static double sum_of(const double *parts, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += parts[i];
    return sum;
}

/* ------------------------------------------------------------------ softmax cross-entropy */

/** Scratch: the mean, probabilities [N,K], loss of each row [N]. A row is a sample, or a pixel of
 * one. */
struct cross_entropy {
    size_t rows, classes;
    bool pixels; /* a label of NaN is not known; of samples it is no class */
    const qat_real *z, *label;
    qat_real *probability;
    double *loss, smoothing;
    qat_real *dz, scale; /* used in backward */
};

static size_t place_entropy(const qat_node *node, struct cross_entropy *e)
{
    qat_carve carve = {node->scratch, QAT_MEAN_BYTES};
    *e = (struct cross_entropy){.rows = qat_shape_count(&node->inputs[1]->shape),
                                .classes = (size_t)qat_shape_channels(&node->inputs[0]->shape),
                                .pixels = node->inputs[1]->shape.rank > 1,
                                .z = node->inputs[0]->value,
                                .label = node->inputs[1]->value,
                                .smoothing = node->attrs[0]};
    e->probability = qat_carve_take(&carve, e->rows * e->classes, sizeof(qat_real));
    e->loss = qat_carve_take(&carve, e->rows, sizeof(double));
    return carve.used;
}

static qat_status entropy_shape(qat_node *node, qat_error *err)
{
    const qat_shape *z = &node->inputs[0]->shape, *label = &node->inputs[1]->shape;
    struct cross_entropy e;
    char text[2][64];
    bool fits = z->rank == label->rank + 1 && (label->rank == 1 || label->rank == 3);
    for (int i = 0; fits && i < label->rank; i++)
        fits = label->dims[i] == z->dims[i];
    if (!fits)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "logits %s and labels %s are not [N, K] and [N], or [N, H, W, K] and "
                        "[N, H, W]",
                        qat_shape_text(z, text[0]), qat_shape_text(label, text[1]));
    node->shape = QAT_SHAPE(1);
    node->scratch_bytes = place_entropy(node, &e);
    return QAT_OK;
}

/* The class of a row, or -1 if the label is not in 0..K-1. */
static int64_t class_of(const struct cross_entropy *e, size_t row)
{
    qat_real const label = e->label[row];
    return label >= 0 && label < (qat_real)e->classes ? (int64_t)label : -1;
}

static bool is_known(const struct cross_entropy *e, size_t row)
{
    return !e->pixels || !isnan(e->label[row]);
}

/** The rows over which the mean is taken. */
static size_t known_rows(const struct cross_entropy *e)
{
    size_t n = 0;
    for (size_t r = 0; r < e->rows; r++)
        n += is_known(e, r);
    return n;
}

/** sum_k t[k] z[k] */
static double mean_target(const struct cross_entropy *e, const qat_real *z, int64_t label)
{
    double sum = 0;
    if (e->smoothing == 0)
        return (double)z[label];
    for (size_t i = 0; i < e->classes; i++)
        sum += (double)z[i];
    return (1 - e->smoothing) * (double)z[label] + e->smoothing / (double)e->classes * sum;
}

static void entropy_forward_tile(void *context, int tile, int thread)
{
    const struct cross_entropy *e = context;
    size_t const n = e->classes;
    qat_span const span = qat_tile_span(e->rows, qat_tile_rows(n), tile);
    for (size_t r = span.begin; r < span.end; r++) {
        const qat_real *z = e->z + r * n;
        int64_t const k = class_of(e, r);
        double sum = 0;
        qat_real highest = z[0];
        for (size_t i = 1; i < n; i++)
            highest = z[i] > highest ? z[i] : highest;
        for (size_t i = 0; i < n; i++)
            sum += exp((double)z[i] - (double)highest);
        qat_softmax_row(z, e->probability + r * n, n);
        e->loss[r] = !is_known(e, r) ? 0
                     : k < 0         ? (double)NAN
                                     : log(sum) + (double)highest - mean_target(e, z, k);
    }
}

static int entropy_sums(qat_node *node, const qat_run *run, double **sums)
{
    struct cross_entropy e;
    place_entropy(node, &e);
    qat_parallel(qat_tiles_of(e.rows, qat_tile_rows(e.classes)), entropy_forward_tile, &e);
    return qat_mean_set(node, sum_of(e.loss, (int)e.rows), (double)known_rows(&e), sums);
}

static void entropy_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    entropy_sums(node, run, &sums);
    qat_mean_forward(node, run);
}

/* dz = (p - t) / N. A label that is not a class gives NaN, here and in the loss. */
static void entropy_backward_tile(void *context, int tile, int thread)
{
    const struct cross_entropy *e = context;
    size_t const n = e->classes;
    qat_real const shared = (qat_real)(e->smoothing / (double)n),
                   own = (qat_real)(1 - e->smoothing);
    qat_span const span = qat_tile_span(e->rows, qat_tile_rows(n), tile);
    for (size_t r = span.begin; r < span.end; r++) {
        int64_t const k = class_of(e, r);
        qat_real const scale = k < 0 ? (qat_real)NAN : e->scale;
        qat_real *dz = e->dz + r * n;
        if (!is_known(e, r))
            continue;
        qat_vector_add_scaled(dz, e->probability + r * n, scale, n);
        for (size_t i = 0; e->smoothing > 0 && i < n; i++)
            dz[i] -= scale * shared;
        if (k >= 0)
            dz[k] -= scale * own;
    }
}

static void entropy_backward(qat_node *node, const qat_run *run)
{
    struct cross_entropy e;
    if (!node->inputs[0]->grad)
        return;
    place_entropy(node, &e);
    e.dz = node->inputs[0]->grad;
    e.scale = node->grad[0] / (qat_real)qat_mean_counted(node, (double)known_rows(&e));
    qat_parallel(qat_tiles_of(e.rows, qat_tile_rows(e.classes)), entropy_backward_tile, &e);
}

static const qat_attr_def entropy_attrs[] = {
    {"smoothing", QAT_ATTR_REAL, 0, 0, 1, NULL,
     "share of the target that is spread over all classes"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared entropy_shared = {.forward_sums = entropy_sums,
                                          .forward = qat_mean_forward};

const qat_op qat_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .meaning = "mean cross-entropy of softmax(logits [N, K]) with class numbers [N]; or of pixels, "
               "[N, H, W, K] with [N, H, W] (NaN: not known)",
    .min_inputs = 2,
    .max_inputs = 2,
    .attrs = entropy_attrs,
    .shape = entropy_shape,
    .forward = entropy_forward,
    .backward = entropy_backward,
    .shared = &entropy_shared,
};

/* ------------------------------------------------------------------ sums over tiles */

/** A sum over the values of one or two inputs, and its gradients. */
struct tiled {
    const qat_real *x, *t; /* t may be NULL */
    size_t n;
    double *sums;      /* one per tile */
    qat_real *dx, *dt; /* may be NULL */
    qat_real scale;
};

static int tiles_of(size_t n)
{
    return qat_tiles_of(n, QAT_TILE_VALUES);
}

static qat_status sum_shape(qat_node *node, size_t largest)
{
    node->shape = QAT_SHAPE(1);
    node->scratch_bytes = QAT_MEAN_BYTES + (size_t)tiles_of(largest) * sizeof(double);
    return QAT_OK;
}

static double run_sum(const qat_node *node, const qat_real *x, const qat_real *t, size_t n,
                      qat_tile_fn *fn)
{
    struct tiled s = {.x = x, .t = t, .n = n};
    s.sums = (double *)(void *)((char *)node->scratch + QAT_MEAN_BYTES);
    qat_parallel(tiles_of(n), fn, &s);
    return sum_of(s.sums, tiles_of(n));
}

static void squares_tile(void *context, int tile, int thread)
{
    const struct tiled *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    s->sums[tile] = qat_vector_squares(s->x + span.begin, s->t ? s->t + span.begin : NULL,
                                       span.end - span.begin);
}

static bool is_unknown(const struct tiled *s, size_t i)
{
    return s->t && isnan(s->t[i]);
}

/* d/dx (x - t)^2 / 2 = x - t = -d/dt */
static void squares_gradient_tile(void *context, int tile, int thread)
{
    const struct tiled *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    for (size_t i = span.begin; i < span.end; i++) {
        if (is_unknown(s, i))
            continue;
        qat_real const d = s->scale * (s->x[i] - (s->t ? s->t[i] : 0));
        if (s->dx)
            s->dx[i] += d;
        if (s->dt)
            s->dt[i] -= d;
    }
}

/* ------------------------------------------------------------------ sigmoid cross-entropy */

static qat_status sigmoid_shape(qat_node *node, qat_error *err)
{
    qat_status const st = same_shapes(node, err);
    return st ? st : sum_shape(node, values_of(node, 0));
}

static void sigmoid_tile(void *context, int tile, int thread)
{
    const struct tiled *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    double sum = 0;
    for (size_t i = span.begin; i < span.end; i++) {
        double const z = (double)s->x[i];
        if (is_unknown(s, i))
            continue;
        sum += (z > 0 ? z : 0) - z * (double)s->t[i] + log1p(exp(-fabs(z)));
    }
    s->sums[tile] = sum;
}

/* dz = logistic(z) - t, dt = -z */
static void sigmoid_gradient_tile(void *context, int tile, int thread)
{
    const struct tiled *s = context;
    qat_span const span = qat_tile_span(s->n, QAT_TILE_VALUES, tile);
    for (size_t i = span.begin; i < span.end; i++) {
        if (is_unknown(s, i))
            continue;
        qat_real const e = QAT_EXP(-QAT_FABS(s->x[i]));
        if (s->dx)
            s->dx[i] += s->scale * ((s->x[i] < 0 ? e : 1) / (1 + e) - s->t[i]);
        if (s->dt)
            s->dt[i] -= s->scale * s->x[i];
    }
}

static int sigmoid_sums(qat_node *node, const qat_run *run, double **sums)
{
    double const sum = run_sum(node, node->inputs[0]->value, node->inputs[1]->value,
                               values_of(node, 0), sigmoid_tile);
    return qat_mean_set(node, sum, batch_of(node), sums);
}

static void sigmoid_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    sigmoid_sums(node, run, &sums);
    qat_mean_forward(node, run);
}

static void pair_backward(const qat_node *node, qat_tile_fn *fn)
{
    const qat_node *x = node->inputs[0], *t = node->n_data > 1 ? node->inputs[1] : NULL;
    struct tiled s = {.x = x->value, .n = values_of(node, 0), .dx = x->grad};
    s.t = t ? t->value : NULL;
    s.dt = t ? t->grad : NULL;
    s.scale = node->grad[0] / (qat_real)qat_mean_counted(node, batch_of(node));
    qat_parallel(tiles_of(s.n), fn, &s);
}

static void sigmoid_backward(qat_node *node, const qat_run *run)
{
    pair_backward(node, sigmoid_gradient_tile);
}

static const qat_shared sigmoid_shared = {.forward_sums = sigmoid_sums,
                                          .forward = qat_mean_forward};

const qat_op qat_op_sigmoid_cross_entropy = {
    .name = "sigmoid_cross_entropy",
    .meaning = "cross-entropy of logistic(logits) with targets in 0..1 (NaN: not known), summed "
               "over outputs, mean over the batch",
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = sigmoid_shape,
    .forward = sigmoid_forward,
    .backward = sigmoid_backward,
    .shared = &sigmoid_shared,
};

/* ------------------------------------------------------------------ l2 */

static qat_status l2_shape(qat_node *node, qat_error *err)
{
    qat_status const st = node->n_data > 1 ? same_shapes(node, err) : QAT_OK;
    return st ? st : sum_shape(node, values_of(node, 0));
}

static int l2_sums(qat_node *node, const qat_run *run, double **sums)
{
    const qat_real *t = node->n_data > 1 ? node->inputs[1]->value : NULL;
    double const sum = run_sum(node, node->inputs[0]->value, t, values_of(node, 0), squares_tile);
    return qat_mean_set(node, 0.5 * sum, batch_of(node), sums);
}

static void l2_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    l2_sums(node, run, &sums);
    qat_mean_forward(node, run);
}

static void l2_backward(qat_node *node, const qat_run *run)
{
    pair_backward(node, squares_gradient_tile);
}

static const qat_shared l2_shared = {.forward_sums = l2_sums, .forward = qat_mean_forward};

const qat_op qat_op_l2_loss = {
    .name = "l2_loss",
    .meaning = "half the sum of squares of the input, or of its difference from a second input "
               "(NaN: not known), mean over the batch",
    .min_inputs = 1,
    .max_inputs = 2,
    .shape = l2_shape,
    .forward = l2_forward,
    .backward = l2_backward,
    .shared = &l2_shared,
};

/* ------------------------------------------------------------------ weight decay */

static qat_status decay_shape(qat_node *node, qat_error *err)
{
    size_t largest = 0;
    for (int i = 0; i < node->n_data; i++)
        largest = values_of(node, i) > largest ? values_of(node, i) : largest;
    return sum_shape(node, largest);
}

static void decay_forward(qat_node *node, const qat_run *run)
{
    double sum = 0;
    for (int i = 0; i < node->n_data; i++)
        sum += run_sum(node, node->inputs[i]->value, NULL, values_of(node, i), squares_tile);
    node->value[0] = (qat_real)(0.5 * qat_attr(node, "rate") * sum);
}

static void decay_backward(qat_node *node, const qat_run *run)
{
    for (int i = 0; i < node->n_data; i++) {
        const qat_node *w = node->inputs[i];
        struct tiled s = {.x = w->value, .n = values_of(node, i), .dx = w->grad};
        s.scale = node->grad[0] * (qat_real)qat_attr(node, "rate");
        qat_parallel(tiles_of(s.n), squares_gradient_tile, &s);
    }
}

static const qat_attr_def decay_attrs[] = {
    {"rate", QAT_ATTR_REAL, 1e-4, 0, 1e6, NULL, "factor of half the sum of squares"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_weight_decay = {
    .name = "weight_decay",
    .meaning = "half the sum of squares of all inputs, times rate",
    .min_inputs = 1,
    .max_inputs = -1,
    .attrs = decay_attrs,
    .shape = decay_shape,
    .forward = decay_forward,
    .backward = decay_backward,
};

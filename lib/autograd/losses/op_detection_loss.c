/**
 * detection_loss(codes [N,A,4], scores [N,A,K], target codes [N,A,4], target classes [N,A]): the
 * loss of SSD for N pictures with A anchors each (Liu et al., 2016, eq. 1-3). A target class is 0
 * for background, 1, 2 .. for a class, and below 0 for an anchor that is ignored.
 *
 *     y = 1/M [ sum over chosen anchors of class(scores, c)
 *               + box_weight sum over matched anchors and coordinates of smooth(code - target) ]
 *     class, softmax:  log sum_k exp z[k] - z[c]                             K = classes + 1
 *     class, sigmoid:  sum_k max(z,0) - z t + log(1 + exp(-|z|)), t = [k = c - 1]   K = classes
 *     smooth: with `beta`, smooth_l1.h
 *
 * M is the number of matched anchors (c > 0) of the batch, at least 1. Chosen anchors are the
 * matched ones and, in each picture, the background anchors with the largest class loss:
 * `negatives` times as many as the picture has matches (hard_negatives.h). The choice is not
 * differentiated. Sums are taken in double, picture by picture.
 */
#include "autograd/loops/tiles.h"
#include "autograd/losses/hard_negatives.h"
#include "autograd/losses/mean.h"
#include "autograd/losses/smooth_l1.h"
#include "autograd/ops/op.h"

enum { CODES, SCORES, TARGET_CODES, TARGET_CLASSES };
enum { CLASSIFICATION, NEGATIVES, LEAST, BOX_WEIGHT, BETA };
enum { SIGMOID, SOFTMAX };
enum { COORDINATES = 4 };

/** Scratch: the mean, the gradient of the class loss [N,A,K], and arrays of each picture. */
struct detection {
    const qat_node *node;
    size_t pictures, anchors, scores; /* scores is K */
    qat_real *slope;                  /* [N,A,K] */
    double *loss;                     /* [N,A], class loss */
    double *sums;                     /* [N] */
    int *matches;                     /* [N] */
    uint8_t *chosen;                  /* [N,A] */
    int32_t *keys;                    /* [N,A] */
    int *order;                       /* [N,2A] */
    qat_real scale;                   /* used in backward */
};

static size_t place(const qat_node *node, struct detection *d)
{
    const qat_shape *scores = &node->inputs[SCORES]->shape;
    qat_carve carve = {node->scratch, QAT_MEAN_BYTES};
    size_t const n = (size_t)scores->dims[0], a = (size_t)scores->dims[1];
    *d = (struct detection){
        .node = node, .pictures = n, .anchors = a, .scores = (size_t)scores->dims[2]};
    d->slope = qat_carve_take(&carve, n * a * d->scores, sizeof *d->slope);
    d->loss = qat_carve_take(&carve, n * a, sizeof *d->loss);
    d->sums = qat_carve_take(&carve, n, sizeof *d->sums);
    d->matches = qat_carve_take(&carve, n, sizeof *d->matches);
    d->chosen = qat_carve_take(&carve, n * a, 1);
    d->keys = qat_carve_take(&carve, n * a, sizeof *d->keys);
    d->order = qat_carve_take(&carve, 2 * n * a, sizeof *d->order);
    return carve.used;
}

static qat_status detection_shape(qat_node *node, qat_error *err)
{
    const qat_shape *codes = &node->inputs[CODES]->shape, *scores = &node->inputs[SCORES]->shape;
    const qat_shape *targets = &node->inputs[TARGET_CODES]->shape;
    const qat_shape *classes = &node->inputs[TARGET_CLASSES]->shape;
    struct detection d;
    char text[4][64];
    bool const fit = codes->rank == 3 && codes->dims[2] == COORDINATES && scores->rank == 3 &&
                     scores->dims[0] == codes->dims[0] && scores->dims[1] == codes->dims[1] &&
                     qat_shape_equal(codes, targets) && classes->rank == 2 &&
                     classes->dims[0] == codes->dims[0] && classes->dims[1] == codes->dims[1];
    if (!fit)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "codes %s, scores %s, target codes %s and classes %s are not [N, A, 4], "
                        "[N, A, K], [N, A, 4] and [N, A]",
                        qat_shape_text(codes, text[0]), qat_shape_text(scores, text[1]),
                        qat_shape_text(targets, text[2]), qat_shape_text(classes, text[3]));
    if (node->attrs[CLASSIFICATION] == SOFTMAX && scores->dims[2] < 2)
        return qat_fail(
            err, QAT_ERR_SHAPE,
            "scores %s: softmax needs a score for the background and for at least one class",
            qat_shape_text(scores, text[0]));
    node->shape = QAT_SHAPE(1);
    node->scratch_bytes = place(node, &d);
    return QAT_OK;
}

/* ------------------------------------------------------------------ classes */

/** Does the first score belong to class 1, not to the background? */
static bool is_sigmoid(const struct detection *d)
{
    return d->node->attrs[CLASSIFICATION] == SIGMOID;
}

static double softmax_loss(const qat_real *z, qat_real *slope, size_t n, int64_t own)
{
    double highest = (double)z[0], sum = 0;
    for (size_t k = 1; k < n; k++)
        highest = (double)z[k] > highest ? (double)z[k] : highest;
    for (size_t k = 0; k < n; k++)
        sum += exp((double)z[k] - highest);
    for (size_t k = 0; k < n; k++)
        slope[k] = (qat_real)(exp((double)z[k] - highest) / sum - ((int64_t)k == own));
    return log(sum) + highest - (double)z[own];
}

static double sigmoid_loss(const qat_real *z, qat_real *slope, size_t n, int64_t own)
{
    double loss = 0;
    for (size_t k = 0; k < n; k++) {
        double const x = (double)z[k], e = exp(-fabs(x));
        bool const is_own = (int64_t)k == own;
        loss += (x > 0 ? x : 0) - (is_own ? x : 0) + log1p(e);
        slope[k] = (qat_real)((x < 0 ? e : 1) / (1 + e) - is_own);
    }
    return loss;
}

/** The class loss of one anchor; NaN if there is no such class. */
static double class_loss(const struct detection *d, size_t anchor, qat_real class)
{
    const qat_real *z = d->node->inputs[SCORES]->value + anchor * d->scores;
    qat_real *slope = d->slope + anchor * d->scores;
    if (!(class < (qat_real)(d->scores + is_sigmoid(d)))) {
        for (size_t k = 0; k < d->scores; k++)
            slope[k] = (qat_real)NAN;
        return (double)NAN;
    }
    int64_t const own =
        (int64_t) class - is_sigmoid(d); /* -1: the background of sigmoid, which has no score */
    return is_sigmoid(d) ? sigmoid_loss(z, slope, d->scores, own)
                         : softmax_loss(z, slope, d->scores, own);
}

/* ------------------------------------------------------------------ boxes */

static double box_loss(const struct detection *d, size_t anchor)
{
    const qat_real *code = d->node->inputs[CODES]->value + anchor * COORDINATES;
    const qat_real *target = d->node->inputs[TARGET_CODES]->value + anchor * COORDINATES;
    double const beta = d->node->attrs[BETA];
    double sum = 0;
    for (int i = 0; i < COORDINATES; i++)
        sum += qat_smooth_l1((double)code[i] - (double)target[i], beta);
    return sum;
}

static void box_gradient(const struct detection *d, size_t anchor, qat_real *gradient)
{
    const qat_real *code = d->node->inputs[CODES]->value + anchor * COORDINATES;
    const qat_real *target = d->node->inputs[TARGET_CODES]->value + anchor * COORDINATES;
    qat_real const beta = (qat_real)d->node->attrs[BETA];
    qat_real const scale = d->scale * (qat_real)d->node->attrs[BOX_WEIGHT];
    for (int i = 0; i < COORDINATES; i++)
        gradient[i] += scale * qat_smooth_l1_slope(code[i] - target[i], beta);
}

/* ------------------------------------------------------------------ pictures */

static qat_mining mining_of(const struct detection *d, int picture)
{
    size_t const first = (size_t)picture * d->anchors;
    return (qat_mining){.loss = d->loss + first,
                        .class = d->node->inputs[TARGET_CLASSES]->value + first,
                        .n = (int)d->anchors,
                        .ratio = d->node->attrs[NEGATIVES],
                        .least = (int)d->node->attrs[LEAST],
                        .chosen = d->chosen + first,
                        .keys = d->keys + first,
                        .order = d->order + 2 * first};
}

static void forward_picture(void *context, int picture, int thread)
{
    const struct detection *d = context;
    qat_mining const m = mining_of(d, picture);
    size_t const first = (size_t)picture * d->anchors;
    double sum = 0;
    for (size_t a = 0; a < d->anchors; a++)
        d->loss[first + a] = m.class[a] < 0 ? 0 : class_loss(d, first + a, m.class[a]);
    d->matches[picture] = qat_mine_negatives(&m);
    for (size_t a = 0; a < d->anchors; a++) {
        sum += m.chosen[a] ? m.loss[a] : 0;
        sum += m.class[a] > 0 ? d->node->attrs[BOX_WEIGHT] * box_loss(d, first + a) : 0;
    }
    d->sums[picture] = sum;
}

/** M, added up from the matches of the pictures. */
static double matches_of(const struct detection *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->pictures; i++)
        n += d->matches[i];
    return (double)n;
}

static int detection_sums(qat_node *node, const qat_run *run, double **sums)
{
    struct detection d;
    double sum = 0;
    place(node, &d);
    qat_parallel((int)d.pictures, forward_picture, &d);
    for (size_t i = 0; i < d.pictures; i++)
        sum += d.sums[i];
    return qat_mean_set(node, sum, matches_of(&d), sums);
}

static void detection_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    detection_sums(node, run, &sums);
    qat_mean_forward(node, run);
}

static void backward_picture(void *context, int picture, int thread)
{
    const struct detection *d = context;
    const qat_real *class = d->node->inputs[TARGET_CLASSES]->value;
    qat_real *codes = d->node->inputs[CODES]->grad, *scores = d->node->inputs[SCORES]->grad;
    size_t const first = (size_t)picture * d->anchors, n = d->scores;
    for (size_t a = first; a < first + d->anchors; a++) {
        for (size_t k = 0; scores && d->chosen[a] && k < n; k++)
            scores[a * n + k] += d->scale * d->slope[a * n + k];
        if (codes && class[a] > 0)
            box_gradient(d, a, codes + a * COORDINATES);
    }
}

static void detection_backward(qat_node *node, const qat_run *run)
{
    struct detection d;
    place(node, &d);
    d.scale = node->grad[0] / (qat_real)qat_mean_counted(node, matches_of(&d));
    qat_parallel((int)d.pictures, backward_picture, &d);
}

static const qat_attr_def detection_attrs[] = {
    [CLASSIFICATION] =
        {"classification", QAT_ATTR_CHOICE, SIGMOID, 0, 1, "sigmoid|softmax",
         "cross-entropy of the scores; softmax has one score more, for the background"},
    [NEGATIVES] = {"negatives", QAT_ATTR_REAL, 3, 0, 1e9, NULL,
                   "how many anchors without an object count for each anchor with one"},
    [LEAST] = {"least_negatives", QAT_ATTR_INT, 0, 0, 1e9, NULL,
               "least number of such anchors per picture"},
    [BOX_WEIGHT] = {"box_weight", QAT_ATTR_REAL, 1, 0, 1e6, NULL, "weight of the boxes' part"},
    [BETA] = {"beta", QAT_ATTR_REAL, 1, 1e-6, 1e6, NULL,
              "smooth-L1 is quadratic below this distance"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared detection_shared = {.forward_sums = detection_sums,
                                            .forward = qat_mean_forward};

const qat_op qat_op_detection_loss = {
    .name = "detection_loss",
    .meaning = "SSD's loss: box codes [N, A, 4], scores [N, A, K], target codes, target classes",
    .min_inputs = 4,
    .max_inputs = 4,
    .attrs = detection_attrs,
    .shape = detection_shape,
    .forward = detection_forward,
    .backward = detection_backward,
    .shared = &detection_shared,
};

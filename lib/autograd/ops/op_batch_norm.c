/**
 * batch_norm normalises over all dimensions but the last. In train mode it uses the batch's mean
 * and biased variance; `update` then merges them into the averages. In eval mode, or if gamma does
 * not train (a frozen layer), it uses the averages, which then stay unchanged. batch_norm.h has the
 * arithmetic.
 */
#include "autograd/graph/shared.h"
#include "autograd/loops/batch_norm.h"
#include "autograd/loops/tail.h"
#include "autograd/ops/op.h"

enum { GAMMA = 1, BETA, EMA_MEAN, EMA_VARIANCE, EMA_STEPS }; /* inputs */

static int channels_of(const qat_node *node)
{
    return qat_shape_channels(&node->inputs[0]->shape);
}

/* Place the node's working memory in its scratch; returns the bytes. */
static size_t place(const qat_node *node, qat_bn *bn)
{
    int const channels = channels_of(node);
    size_t const rows = qat_shape_count(&node->inputs[0]->shape) / (size_t)channels;
    return qat_bn_place(bn, node->scratch, rows, channels);
}

static int bn_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    qat_shape const per_channel = QAT_SHAPE(channels_of(node));
    defs[0] = (qat_param_def){.name = "gamma", .shape = per_channel, .scale = 1, .trainable = true};
    defs[1] = (qat_param_def){.name = "beta", .shape = per_channel, .trainable = true};
    defs[2] = (qat_param_def){.name = "ema_mean", .shape = per_channel};
    defs[3] = (qat_param_def){.name = "ema_variance", .shape = per_channel, .scale = 1};
    defs[4] = (qat_param_def){.name = "ema_steps", .shape = QAT_SHAPE(1)};
    return 5;
}

static qat_status bn_shape(qat_node *node, qat_error *err)
{
    qat_bn bn;
    if (node->inputs[0]->shape.rank < 2) {
        char text[64];
        return qat_fail(err, QAT_ERR_SHAPE, "input %s has no dimension after the batch",
                        qat_shape_text(&node->inputs[0]->shape, text));
    }
    node->shape = node->inputs[0]->shape;
    node->scratch_bytes = place(node, &bn);
    return QAT_OK;
}

static bool uses_batch(const qat_node *node, const qat_run *run)
{
    return run->mode == QAT_MODE_TRAIN && node->inputs[GAMMA]->trainable;
}

static int bn_forward_sums(qat_node *node, const qat_run *run, double **sums)
{
    qat_bn bn;
    if (!uses_batch(node, run))
        return 0;
    place(node, &bn);
    qat_bn_sum_batch(&bn, node->inputs[0]->value);
    *sums = bn.sum;
    return (int)qat_bn_sums(bn.channels);
}

static void bn_normalise(qat_node *node, const qat_run *run)
{
    qat_bn bn;
    double const epsilon = qat_attr(node, "epsilon");
    place(node, &bn);
    if (uses_batch(node, run))
        qat_bn_use_sums(&bn, epsilon);
    else
        qat_bn_use_averages(&bn, node->inputs[EMA_MEAN]->value, node->inputs[EMA_VARIANCE]->value,
                            epsilon);
    qat_bn_forward(&bn, node, node->inputs[GAMMA]->value, node->inputs[BETA]->value);
}

static void bn_forward(qat_node *node, const qat_run *run)
{
    double *sums;
    bn_forward_sums(node, run, &sums);
    bn_normalise(node, run);
}

static int bn_backward_sums(qat_node *node, const qat_run *run, double **sums)
{
    qat_bn bn;
    place(node, &bn);
    qat_bn_sum_gradient(&bn, node, node->inputs[GAMMA]->grad, node->inputs[BETA]->grad);
    *sums = bn.sum;
    return uses_batch(node, run) ? (int)qat_bn_sums(bn.channels) : 0;
}

static void bn_through_norm(qat_node *node, const qat_run *run)
{
    qat_bn bn;
    place(node, &bn);
    qat_bn_backward(&bn, node, uses_batch(node, run));
}

static void bn_backward(qat_node *node, const qat_run *run)
{
    double *sums;
    bn_backward_sums(node, run, &sums);
    bn_through_norm(node, run);
}

static void bn_update(qat_node *node, const qat_run *run)
{
    qat_bn bn;
    if (!uses_batch(node, run))
        return;
    place(node, &bn);
    qat_bn_update(&bn, qat_attr(node, "momentum"), node->inputs[EMA_MEAN]->value,
                  node->inputs[EMA_VARIANCE]->value, node->inputs[EMA_STEPS]->value);
}

/* ------------------------------------------------------------------ each shard by itself */

static int bn_observed(const qat_node *node, const qat_run *run, double *observed)
{
    qat_bn bn;
    if (qat_is_shared(node) || !uses_batch(node, run))
        return 0;
    place(node, &bn);
    if (observed)
        qat_bn_weigh_statistics(&bn, observed);
    return (int)qat_bn_sums(bn.channels);
}

static void bn_join(const qat_node *node, double *a, const double *b)
{
    qat_bn_join_statistics(channels_of(node), a, b);
}

static void bn_set_observed(qat_node *node, const double *observed)
{
    qat_bn bn;
    place(node, &bn);
    qat_bn_set_statistics(&bn, observed);
}

static const qat_attr_def bn_attrs[] = {
    {"epsilon", QAT_ATTR_REAL, 1e-3, 1e-12, 1, NULL, "added to the variance"},
    {"momentum", QAT_ATTR_REAL, 0.99, 0, 1, NULL, "weight of the old value in the averages"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_shared bn_shared = {.forward_sums = bn_forward_sums,
                                     .forward = bn_normalise,
                                     .backward_sums = bn_backward_sums,
                                     .backward = bn_through_norm,
                                     .observed = bn_observed,
                                     .join = bn_join,
                                     .set_observed = bn_set_observed,
                                     .is_batch_norm = true};

const qat_op qat_op_batch_norm = {
    .name = "batch_norm",
    .meaning =
        "normalization by the statistics of the batch, then a scale and an offset per channel",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = bn_attrs,
    .params = bn_params,
    .shape = bn_shape,
    .forward = bn_forward,
    .backward = bn_backward,
    .update = bn_update,
    .quant = QAT_QUANT(batch_norm),
    .grads = QAT_GRADS_IN_PLACE,
    .runs_tail = qat_runs_any_tail,
    .shared = &bn_shared,
};

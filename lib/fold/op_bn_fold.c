/**
 * bn_fold_weights and bn_fold_bias fold a batch norm into the weights and the bias of the op before
 * it (fold.h). For both, averages are constants.
 *
 *     bn_fold_weights(w, gamma, ema_variance)                  (gamma / s) w, by output channel;
 *                                                              w itself until its delay
 *     bn_fold_bias(gamma, beta, ema_mean, ema_variance[, b])   beta - (gamma / s) EMA(m)
 *                                                              [+ (gamma / s) b]
 *
 * A bias b before the batch norm is scaled as the weights are: it is one more column of the
 * weights. bn_fold_weights is used for it too.
 */
#include "autograd/loops/vector.h"
#include "fakequant/ops.h"
#include "fold/fold.h"

#include <string.h>

static qat_status check_channels(const qat_node *node, int input, int channels, qat_error *err)
{
    char text[64];
    const qat_shape *shape = &node->inputs[input]->shape;
    if (shape->rank == 1 && shape->dims[0] == channels)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_SHAPE, "'%s' is %s, not one value for each of %d channels",
                    node->inputs[input]->name, qat_shape_text(shape, text), channels);
}

/* ------------------------------------------------------------------ bn_fold_weights */

/** w, seen as [outer, channels, inner]. */
struct view {
    size_t outer, channels, inner;
};

static struct view view_of(const qat_node *node)
{
    const qat_shape *shape = &node->inputs[FOLDW_W]->shape;
    int const axis = (int)node->attrs[FOLDW_AXIS];
    struct view view = {1, (size_t)shape->dims[axis], 1};
    for (int i = 0; i < axis; i++)
        view.outer *= (size_t)shape->dims[i];
    for (int i = axis + 1; i < shape->rank; i++)
        view.inner *= (size_t)shape->dims[i];
    return view;
}

static qat_status weights_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[FOLDW_W]->shape;
    if (node->attrs[FOLDW_AXIS] >= node->shape.rank)
        return qat_fail(err, QAT_ERR_ARGUMENT, "axis %g of a tensor of rank %d",
                        node->attrs[FOLDW_AXIS], node->shape.rank);
    int const channels = (int)view_of(node).channels;
    qat_status const st = check_channels(node, FOLDW_GAMMA, channels, err);
    return st ? st : check_channels(node, FOLDW_EMA_VARIANCE, channels, err);
}

static qat_real factor_of(const qat_node *node, size_t channel)
{
    return qat_fold_factor(node->inputs[FOLDW_GAMMA]->value[channel],
                           node->inputs[FOLDW_EMA_VARIANCE]->value[channel],
                           node->attrs[FOLDW_EPSILON]);
}

static void weights_forward(qat_node *node, const qat_run *run)
{
    struct view const v = view_of(node);
    const qat_real *w = node->inputs[FOLDW_W]->value;
    if (!qat_past_delay(run, node->attrs[FOLDW_DELAY])) {
        memcpy(node->value, w, v.outer * v.channels * v.inner * sizeof *w);
        return;
    }
    for (size_t i = 0; i < v.outer * v.channels; i++) {
        qat_real const factor = factor_of(node, i % v.channels);
        for (size_t k = i * v.inner; k < (i + 1) * v.inner; k++)
            node->value[k] = factor * w[k];
    }
}

/** dw += factor dy;  dgamma += sum of dy w / s */
static void weights_backward(qat_node *node, const qat_run *run)
{
    struct view const v = view_of(node);
    qat_node *w = node->inputs[FOLDW_W], *gamma = node->inputs[FOLDW_GAMMA];
    if (!qat_past_delay(run, node->attrs[FOLDW_DELAY])) {
        if (w->grad)
            qat_accumulate(w->grad, node->grad, v.outer * v.channels * v.inner);
        return;
    }
    for (size_t i = 0; i < v.outer * v.channels; i++) {
        size_t const channel = i % v.channels, at = i * v.inner;
        qat_real const s = qat_fold_std(node->inputs[FOLDW_EMA_VARIANCE]->value[channel],
                                        node->attrs[FOLDW_EPSILON]);
        double sum = 0;
        for (size_t k = at; k < at + v.inner; k++)
            sum += (double)node->grad[k] * (double)w->value[k];
        if (gamma->grad)
            gamma->grad[channel] += (qat_real)(sum / (double)s);
        if (w->grad)
            qat_vector_add_scaled(w->grad + at, node->grad + at, factor_of(node, channel), v.inner);
    }
}

static const qat_attr_def weights_attrs[] = {
    [FOLDW_EPSILON] = {"epsilon", QAT_ATTR_REAL, 1e-3, 1e-12, 1, NULL, "as of the batch norm"},
    [FOLDW_AXIS] = {"axis", QAT_ATTR_INT, 0, 0, QAT_MAX_RANK - 1, NULL,
                    "dimension of the output channels"},
    [FOLDW_DELAY] = {"delay", QAT_ATTR_INT, 0, 0, QAT_NEVER, NULL,
                     "steps before the weights are folded"},
    [FOLDW_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_bn_fold_weights = {
    .name = "bn_fold_weights",
    .meaning = "weights multiplied by the factor that the following batch norm gives to its input",
    .min_inputs = FOLDW_INPUTS,
    .max_inputs = FOLDW_INPUTS,
    .attrs = weights_attrs,
    .shape = weights_shape,
    .forward = weights_forward,
    .backward = weights_backward,
};

/* ------------------------------------------------------------------ bn_fold_bias */

static qat_status bias_shape(qat_node *node, qat_error *err)
{
    qat_status st = QAT_OK;
    node->shape = node->inputs[FOLDB_GAMMA]->shape;
    for (int i = 0; !st && i < node->n_inputs; i++)
        st = check_channels(node, i, node->shape.dims[0], err);
    return st;
}

static bool has_bias(const qat_node *node)
{
    return node->n_inputs > FOLDB_BIAS;
}

static void bias_forward(qat_node *node, const qat_run *run)
{
    double const epsilon = node->attrs[FOLDB_EPSILON];
    for (int c = 0; c < node->shape.dims[0]; c++) {
        qat_real const gamma = node->inputs[FOLDB_GAMMA]->value[c];
        qat_real const variance = node->inputs[FOLDB_EMA_VARIANCE]->value[c];
        node->value[c] = qat_fold_offset(gamma, node->inputs[FOLDB_BETA]->value[c],
                                         node->inputs[FOLDB_EMA_MEAN]->value[c], variance, epsilon);
        if (has_bias(node))
            node->value[c] +=
                qat_fold_factor(gamma, variance, epsilon) * node->inputs[FOLDB_BIAS]->value[c];
    }
}

static void bias_backward(qat_node *node, const qat_run *run)
{
    qat_node *gamma = node->inputs[FOLDB_GAMMA], *beta = node->inputs[FOLDB_BETA];
    qat_node *bias = has_bias(node) ? node->inputs[FOLDB_BIAS] : NULL;
    for (int c = 0; c < node->shape.dims[0]; c++) {
        qat_real const s =
            qat_fold_std(node->inputs[FOLDB_EMA_VARIANCE]->value[c], node->attrs[FOLDB_EPSILON]);
        qat_real const shift = (bias ? bias->value[c] : 0) - node->inputs[FOLDB_EMA_MEAN]->value[c];
        if (beta->grad)
            beta->grad[c] += node->grad[c];
        if (gamma->grad)
            gamma->grad[c] += node->grad[c] * shift / s;
        if (bias && bias->grad)
            bias->grad[c] += node->grad[c] * gamma->value[c] / s;
    }
}

static const qat_attr_def bias_attrs[] = {
    [FOLDB_EPSILON] = {"epsilon", QAT_ATTR_REAL, 1e-3, 1e-12, 1, NULL, "as of the batch norm"},
    [FOLDB_ATTRS] = {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_bn_fold_bias = {
    .name = "bn_fold_bias",
    .meaning = "the bias that remains when a batch norm is folded into weights",
    .min_inputs = FOLDB_INPUTS - 1,
    .max_inputs = FOLDB_INPUTS,
    .attrs = bias_attrs,
    .shape = bias_shape,
    .forward = bias_forward,
    .backward = bias_backward,
};

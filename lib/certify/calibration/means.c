/**
 * Checks corrected biases. Bias correction makes the mean output of a layer, before its activation,
 * equal to that of the float network (ptq.h). Each layer is corrected after all layers before it,
 * and later corrections do not change it. So in the end this holds for every channel of every
 * layer:
 *
 *     mean(y) = mean(y')      y: folded network, y': the calibrated one, on the calibration data
 *
 * Only rounding errors are left. The correction was measured on y' = fl(acc + b) with the old bias.
 * It was rounded to a float32 bias. And it is seen in another y'. Each of these errors is at most U
 * of the value:
 *
 *     |mean(y) - mean(y')|  <=  8 U (mean|y| + mean|y'| + |b|)
 *
 * A correction that was applied twice is wrong by the correction itself.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct layer {
    const qat_node *real, *quantized;
    double *difference, *magnitude; /* by channel: sums of y - y', |y| + |y'| */
    double rows;
};

struct cert_means {
    qat_graph *folded, *eval;
    int n_layers;
    struct layer *layers;
    qat_arena arena;
};

bool cert_is_corrected(const qat_node *bias)
{
    if (!qat_node_is_op(bias, "bias") || bias->n_inputs < 2 || !bias->inputs[1]->is_param)
        return false;
    const qat_op *before = bias->inputs[0]->op;
    return before && before->quant && before->quant->role == QAT_ROLE_ACCUMULATE;
}

static qat_status add_layer(cert_means *m, const qat_node *real, qat_error *err)
{
    const qat_node *quantized = qat_graph_find(m->eval, real->name);
    size_t const channels = (size_t)qat_shape_channels(&real->shape);
    if (!quantized || !qat_node_is_op(quantized, "bias") ||
        qat_shape_channels(&quantized->shape) != (int)channels)
        return qat_fail(
            err, QAT_ERR_MISMATCH,
            "%s: its bias was to be corrected, but the calibrated network has no such bias",
            real->name);
    struct layer *l = &m->layers[m->n_layers++];
    *l = (struct layer){.real = real, .quantized = quantized};
    l->difference = qat_arena_array(&m->arena, channels, sizeof *l->difference);
    l->magnitude = qat_arena_array(&m->arena, channels, sizeof *l->magnitude);
    return l->difference && l->magnitude ? QAT_OK : qat_out_of_memory(err, "certificate");
}

qat_status cert_means_create(cert_means **means, qat_graph *folded, qat_graph *eval, qat_error *err)
{
    cert_means *m = calloc(1, sizeof *m);
    *means = m;
    if (!m)
        return qat_out_of_memory(err, "certificate");
    m->folded = folded;
    m->eval = eval;
    m->layers = qat_arena_array(&m->arena, (size_t)qat_graph_nodes(folded) + 1, sizeof *m->layers);
    qat_status st = m->layers ? QAT_OK : qat_out_of_memory(err, "certificate");
    for (int i = 0; !st && i < qat_graph_nodes(folded); i++)
        if (cert_is_corrected(qat_graph_node(folded, i)))
            st = add_layer(m, qat_graph_node(folded, i), err);
    return st;
}

void cert_means_free(cert_means *means)
{
    if (!means)
        return;
    qat_arena_free(&means->arena);
    free(means);
}

static void add_batch(struct layer *l)
{
    size_t const n = qat_shape_count(&l->real->shape),
                 channels = (size_t)qat_shape_channels(&l->real->shape);
    for (size_t i = 0; i < n; i++) {
        double const y = (double)l->real->value[i], z = (double)l->quantized->value[i];
        l->difference[i % channels] += y - z;
        l->magnitude[i % channels] += fabs(y) + fabs(z);
    }
    l->rows += (double)(n / channels);
}

void cert_means_batch(cert_means *m)
{
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(m->folded, &run);
    qat_graph_forward(m->eval, &run);
    for (int i = 0; i < m->n_layers; i++)
        add_batch(&m->layers[i]);
}

static qat_status check_layer(const struct layer *l, qat_error *err)
{
    const float *bias = l->quantized->inputs[1]->value;
    for (int i = 0; i < qat_shape_channels(&l->real->shape) && l->rows > 0; i++) {
        double const mean = l->difference[i] / l->rows;
        double const slack = 8 * CERT_U * (l->magnitude[i] / l->rows + fabs((double)bias[i]));
        if (!(fabs(mean) <= slack))
            return qat_fail(err, QAT_ERR_MISMATCH,
                            "%s, channel %d: its bias was to be corrected, but on the calibration "
                            "data the float network's mean is still %g above that of the "
                            "calibrated network; rounding explains at most %g",
                            l->real->name, i, mean, slack);
    }
    return QAT_OK;
}

qat_status cert_means_check(const cert_means *m, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < m->n_layers; i++)
        st = check_layer(&m->layers[i], err);
    return st;
}

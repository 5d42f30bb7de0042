/**
 * Computes batch norm's averages again, with quantized weights (docs/arithmetic.md, section 14).
 *
 * The training graph runs forward on batches of training data. Everything is quantized, and each
 * batch norm uses the statistics of its batch, in the way of the run's bn_fold. Nothing is written
 * back. For batch i, per channel, over batch and positions, with biased variances:
 *
 *     two_pass   m_i = E[r]              v_i = Var[r]                  r = conv(x, w) + b
 *     one_pass   m_i = (s / gamma) E[z]  v_i = (s / gamma)^2 Var[z]    z = conv(x, FQ(gamma w / s))
 *                                                                          + gamma b / s
 *     EMA(m) := (m_1 + .. + m_N) / N      EMA(v) := (v_1 + .. + v_N) / N
 *
 * EMA(v) is replaced only if the weights keep their codes. The new s scales gamma w / s channel by
 * channel. Ranges of single channels that come from the weights (layout int8, ema) follow this
 * scaling. One range for a whole tensor, or a learned range, does not. In that case the network was
 * trained with the rounding of its weights, and keeps s.
 *
 * s is always the trained one. With one_pass, m and v cannot be computed for a channel with |gamma|
 * below 1e-6. Such a channel keeps its averages.
 */
#include "deploy/calibrate.h"
#include "evaluate/data.h"
#include "fakequant/ops.h"
#include "fakequant/weights.h"
#include "finetune/init.h"
#include "fold/fold.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Sums over batches, by node of the training graph; NULL for nodes other than bn_fold_train. */
typedef struct sums {
    qat_graph *graph;
    double **of_node; /* [2, channels]: means, then variances */
    int64_t batches;
} sums;

static qat_status sums_create(sums *s, qat_graph *graph, qat_error *err)
{
    int const n = qat_graph_nodes(graph);
    *s = (sums){.graph = graph, .of_node = calloc((size_t)n + 1, sizeof *s->of_node)};
    bool good = s->of_node != NULL;
    for (int i = 0; good && i < n; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (node->op != &qat_op_bn_fold_train)
            continue;
        s->of_node[i] = calloc(2 * (size_t)qat_shape_channels(&node->shape), sizeof **s->of_node);
        good = s->of_node[i] != NULL;
    }
    return good ? QAT_OK : qat_out_of_memory(err, "batch norm's statistics");
}

static void sums_free(sums *s)
{
    for (int i = 0; s->of_node && i < qat_graph_nodes(s->graph); i++)
        free(s->of_node[i]);
    free(s->of_node);
}

/** The mean and biased variance of one column of z. */
static void moments(const qat_node *z, int channel, double *mean, double *variance)
{
    size_t const channels = (size_t)qat_shape_channels(&z->shape),
                 n = qat_shape_count(&z->shape) / channels;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)z->value[i * channels + (size_t)channel];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double const d = (double)z->value[i * channels + (size_t)channel] - *mean;
        squares += d * d;
    }
    *variance = squares / (double)n;
}

static const qat_node *raw_of(const qat_node *node)
{
    return node->n_inputs > FOLDT_RAW ? node->inputs[FOLDT_RAW] : NULL;
}

static bool tells(const qat_node *node, int channel)
{
    return raw_of(node) || fabsf(node->inputs[FOLDT_GAMMA]->value[channel]) >= 1e-6f;
}

/** s / gamma */
static double one_pass_ratio(const qat_node *node, int channel)
{
    double const s = (double)qat_fold_std(node->inputs[FOLDT_EMA_VARIANCE]->value[channel],
                                          node->attrs[FOLDT_EPSILON]);
    return s / (double)node->inputs[FOLDT_GAMMA]->value[channel];
}

static void add_batch(void *context, qat_node *node)
{
    const sums *s = context;
    double *sum = s->of_node[node->index];
    int const channels = sum ? qat_shape_channels(&node->shape) : 0;
    for (int c = 0; c < channels; c++) {
        double mean, variance;
        if (!tells(node, c))
            continue;
        double const ratio = raw_of(node) ? 1 : one_pass_ratio(node, c);
        moments(raw_of(node) ? raw_of(node) : node->inputs[FOLDT_Z], c, &mean, &variance);
        sum[c] += ratio * mean;
        sum[channels + c] += ratio * ratio * variance;
    }
}

static qat_status run_batches(sums *s, qat_loader *loader, int64_t batches, uint64_t seed,
                              qat_error *err)
{
    qat_status st = QAT_OK;
    for (; !st && s->batches < batches; s->batches++) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (!st)
            st = qat_feed_graph(s->graph, batch, batch->count, err);
        if (st)
            break;
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = s->batches, .seed = seed};
        qat_graph_forward_visit(s->graph, &run, add_batch, s);
    }
    return st;
}

/**
 * Do the ranges of the weights into which this variance is folded follow it, channel by channel?
 */
static bool ranges_follow(const qat_graph *graph, const qat_node *variance)
{
    bool follow = true;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        const qat_node *folded = qat_node_quantizes(node, true) ? node->inputs[0] : NULL;
        if (folded && folded->op == &qat_op_bn_fold_weights &&
            folded->inputs[FOLDW_EMA_VARIANCE] == variance)
            follow = follow && node->op == &qat_op_fake_quant_weights &&
                     qat_weight_view_of(node).per_channel;
    }
    return follow;
}

static void replace(const sums *s, const qat_node *node, qat_graph *eval)
{
    const double *sum = s->of_node[node->index];
    if (!sum || !node->inputs[FOLDT_GAMMA]->trainable) /* frozen: its averages stay */
        return;
    qat_node *mean = qat_graph_find(eval, node->inputs[FOLDT_EMA_MEAN]->name);
    qat_node *variance = qat_graph_find(eval, node->inputs[FOLDT_EMA_VARIANCE]->name);
    int const channels = mean && variance ? qat_shape_channels(&node->shape) : 0;
    bool const both = ranges_follow(s->graph, node->inputs[FOLDT_EMA_VARIANCE]);
    for (int c = 0; c < channels; c++) {
        if (!tells(node, c))
            continue;
        mean->value[c] = (float)(sum[c] / (double)s->batches);
        if (both)
            variance->value[c] = (float)(sum[channels + c] / (double)s->batches);
    }
}

static qat_status open_graph(const qat_reestimation *from, const qat_graph *eval, int batch,
                             qat_graph **graph, qat_error *err)
{
    qat_quant_options o = *from->quant;
    o.weight_delay = o.activation_delay = o.learn_delay = 0;
    o.bn_freeze_delay = INT64_MAX;
    o.forward = QAT_FORWARD_FAKE_QUANT; /* others leave notes of z */
    qat_status st = qat_create_training_graph(graph, from->float_graph, &o, err);
    if (!st)
        st = qat_freeze_params(*graph, from->recipe->train.freeze, NULL, err);
    if (!st)
        st = qat_graph_plan(*graph, batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = from->set_params(from->context, *graph, err);
    if (!st)
        qat_graph_copy_params(*graph, eval); /* ranges that calibration has set */
    return st;
}

static qat_status run(const qat_reestimation *from, int64_t batches, qat_graph *graph,
                      qat_graph *eval, qat_error *err)
{
    qat_loader_options const o = qat_training_loader(from->recipe);
    qat_dataset *opened = NULL;
    qat_loader *loader = NULL;
    sums s;
    qat_status st = sums_create(&s, graph, err);
    if (!st && !from->data)
        st = qat_recipe_open_data(&opened, from->recipe, NULL, QAT_SPLIT_TRAIN, err);
    if (!st)
        st = qat_open_loader(&loader, from->data ? from->data : opened, from->input, &o, err);
    if (!st)
        st = run_batches(&s, loader, batches, (uint64_t)from->recipe->train.seed, err);
    for (int i = 0; !st && i < qat_graph_nodes(graph); i++)
        replace(&s, qat_graph_node(graph, i), eval);
    qat_loader_free(loader);
    qat_dataset_close(opened);
    sums_free(&s);
    return st;
}

qat_status qat_reestimate_bn(const qat_reestimation *from, int64_t batches, qat_graph *eval,
                             qat_error *err)
{
    qat_graph *graph = NULL;
    qat_status st = open_graph(from, eval, (int)from->recipe->train.batch, &graph, err);
    if (!st)
        st = run(from, batches, graph, eval, err);
    qat_graph_free(graph);
    return st;
}

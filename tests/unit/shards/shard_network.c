#include "tests/unit/shards/shard_network.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 6, CLASSES = 5 };

/* ------------------------------------------------------------------ a small network */

qat_registry *registry;

qat_graph *build(enum loss loss)
{
    qat_graph *g;
    ck_assert(!qat_graph_create(&g, registry, NULL));
    qat_node *x = qat_graph_input(g, QAT_INPUT_NAME, QAT_SHAPE(1, SIDE, SIDE, 3));
    x = qat_apply1(g, "conv2d", "c1", "filters=8 kernel=3", x);
    x = qat_apply1(g, "batch_norm", "c1/bn", "", x);
    qat_node *a = qat_apply1(g, "relu", "c1/relu", "", x);
    x = qat_apply1(g, "depthwise_conv2d", "c2", "kernel=3", a);
    x = qat_apply1(g, "batch_norm", "c2/bn", "", x);
    x = qat_apply2(g, "add", "sum", "", x, a);
    x = qat_apply1(g, "global_average_pool", "pool", "", x);
    x = qat_apply1(g, "fully_connected", "fc", "units=5", x);
    x = qat_apply1(g, "bias", "fc/bias", "", x);
    qat_graph_output(g, x);
    qat_node *label = qat_graph_input(g, QAT_LABEL_NAME, QAT_SHAPE(1));
    if (loss == KEPT)
        x = qat_apply1(g, "keeper", "kept", "", x);
    if (loss == OWN || loss == KEPT)
        qat_apply1(g, "own_loss", QAT_LOSS_NAME, "", x);
    else if (loss == ENTROPY)
        qat_apply2(g, "softmax_cross_entropy", QAT_LOSS_NAME, "", x, label);
    else
        qat_apply2(g, "loss_sum", QAT_LOSS_NAME, "weight=0.5",
                   qat_apply2(g, "softmax_cross_entropy", "entropy", "", x, label),
                   loss == TWO ? qat_apply1(g, "l2_loss", "l2", "", x)
                               : qat_apply1(g, "weight_decay", "decay", "",
                                            qat_graph_find(g, "fc/weights")));
    ck_assert(!qat_graph_check(g, NULL));
    return g;
}

/** A loss of somebody who knows nothing of shards: y = 1/N sum x^2 / 2 over N samples. */
static qat_status own_shape(qat_node *node, qat_error *err)
{
    (void)err;
    node->shape = QAT_SHAPE(1);
    return QAT_OK;
}

static void own_forward(qat_node *node, const qat_run *run)
{
    const qat_node *x = node->inputs[0];
    double sum = 0;
    (void)run;
    for (size_t i = 0; i < qat_shape_count(&x->shape); i++)
        sum += 0.5 * (double)x->value[i] * (double)x->value[i];
    node->value[0] = (float)(sum / x->shape.dims[0]);
}

static void own_backward(qat_node *node, const qat_run *run)
{
    const qat_node *x = node->inputs[0];
    (void)run;
    for (size_t i = 0; i < qat_shape_count(&x->shape); i++)
        x->grad[i] += node->grad[0] * x->value[i] / (float)x->shape.dims[0];
}

static const qat_op own_loss = {.name = "own_loss",
                                .meaning = "half the mean square",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .shape = own_shape,
                                .forward = own_forward,
                                .backward = own_backward};

/** It updates something from the batch. */
static void keeper_update(qat_node *node, const qat_run *run)
{
    (void)node;
    (void)run;
}

static qat_status keeper_shape(qat_node *node, qat_error *err)
{
    (void)err;
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static const qat_op keeper = {.name = "keeper",
                              .meaning = "keeps something of the batch",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = keeper_shape,
                              .forward = own_forward,
                              .backward = own_backward,
                              .update = keeper_update};

void open_registry(void)
{
    ck_assert(!qat_registry_create(&registry, NULL));
    ck_assert(!qat_registry_add(registry, &own_loss, NULL));
    ck_assert(!qat_registry_add(registry, &keeper, NULL));
}

void close_registry(void)
{
    qat_registry_free(registry);
}

qat_graph *training_graph(const struct setting *how)
{
    qat_graph *g = build(how->loss), *made = NULL;
    if (!how->quantized)
        return g;
    ck_assert(!qat_create_training_graph(&made, g, &how->quant, NULL));
    qat_graph_free(g);
    return made;
}

void feed(qat_graph *g, int step, qat_samples samples)
{
    qat_node *x = qat_graph_find(g, QAT_INPUT_NAME), *label = qat_graph_find(g, QAT_LABEL_NAME);
    size_t const n = (size_t)SIDE * SIDE * 3;
    ck_assert(!qat_graph_set_batch(g, samples.end - samples.begin, NULL));
    for (int i = samples.begin; i < samples.end; i++) {
        qat_rng rng = qat_rng_at(7, (uint64_t)step, (uint64_t)i);
        for (size_t k = 0; k < n; k++)
            x->value[(size_t)(i - samples.begin) * n + k] = (float)qat_rng_uniform(&rng) * 2 - 1;
        label->value[i - samples.begin] = (float)(i % CLASSES);
    }
}

/* ------------------------------------------------------------------ some steps */

void keep(struct outcome *o, const qat_graph *g)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (int i = 0; i < qat_graph_nodes(g); i++) {
            const qat_node *node = qat_graph_node(g, i);
            size_t const n = qat_shape_count(&node->shape);
            if (!node->is_param)
                continue;
            if (pass)
                memcpy(o->values + at, node->value, n * sizeof(float));
            at += n;
            if (!node->trainable)
                continue;
            if (pass)
                memcpy(o->values + at, node->grad, n * sizeof(float));
            at += n;
        }
        o->n = at;
        if (!pass)
            o->values = malloc(at * sizeof *o->values);
        ck_assert(o->values);
    }
}

qat_optimizer *optimizer_of(qat_graph *g)
{
    qat_optimizer *optimizer;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    ck_assert(!qat_optimizer_create(&optimizer, g, &o, NULL));
    return optimizer;
}

void shard_steps(struct outcome *o, const struct setting *how, int shards, const qat_ranks *ranks)
{
    qat_shards *s;
    qat_error err = {0};
    qat_graph *graphs[MOST_SHARDS];
    ck_assert_msg(!qat_shards_create(&s, shards, BATCH, ranks, &err), "%s", err.message);
    if (how->split)
        qat_shards_split_batch_norm(s);
    for (int i = 0; i < qat_shards_own(s); i++)
        graphs[i] = training_graph(how);
    ck_assert_msg(!qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), "%s", err.message);
    qat_graph_init_params(graphs[0], 3);
    qat_node *loss = qat_graph_find(graphs[0], QAT_LOSS_NAME);
    qat_optimizer *optimizer = optimizer_of(graphs[0]);
    for (int step = 0; step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
        for (int i = 0; i < qat_shards_own(s); i++)
            feed(graphs[i], step, qat_shards_samples(s, i));
        qat_shards_forward(s, &run);
        o->loss[step] = (double)loss->value[0];
        qat_shards_backward(s, loss, &run);
        if (step + 1 < STEPS)
            qat_optimizer_step(optimizer, 0.01);
        qat_shards_update(s, &run);
        ck_assert_msg(!qat_shards_status(s, &err), "%s", err.message);
    }
    keep(o, graphs[0]);
    qat_optimizer_free(optimizer);
    for (int i = 0; i < qat_shards_own(s); i++)
        qat_graph_free(graphs[i]);
    qat_shards_free(s);
}

/* ------------------------------------------------------------------ how */

void set_settings(struct setting settings[SETTINGS])
{
    for (int i = 0; i < SETTINGS; i++) {
        settings[i] = (struct setting){.quantized = i >= TWO_PASS && i != OF_BATCH,
                                       .split = i >= OF_BATCH,
                                       .quant = qat_quant_defaults()};
        settings[i].quant.weight_delay = settings[i].quant.activation_delay = 1;
    }
    settings[0].name = "float";
    settings[1].name = "float, two losses";
    settings[1].loss = TWO;
    settings[2].name = "float, a loss of one's own";
    settings[2].loss = OWN;
    settings[TWO_PASS].name = "two_pass";
    settings[ONE_PASS].name = "one_pass";
    settings[ONE_PASS].quant.bn_fold = QAT_FOLD_ONE_PASS;
    settings[LSQ].name = "lsq";
    (void)snprintf(settings[LSQ].quant.weight_ranges, sizeof settings[LSQ].quant.weight_ranges,
                   "lsq");
    (void)snprintf(settings[LSQ].quant.activation_ranges,
                   sizeof settings[LSQ].quant.activation_ranges, "lsq");
    settings[LSQ].quant.learn_delay = 1;
    settings[OF_BATCH].name = "float, split";
    settings[7].name = "two_pass, split";
    settings[8].name = "one_pass, split";
    settings[8].quant.bn_fold = QAT_FOLD_ONE_PASS;
}

double difference(const struct outcome *a, const struct outcome *b)
{
    double largest = 0, most = 0;
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        most = fmax(most, fabs((double)a->values[i] - (double)b->values[i]));
        largest = fmax(largest, fabs((double)a->values[i]));
    }
    return most / largest;
}

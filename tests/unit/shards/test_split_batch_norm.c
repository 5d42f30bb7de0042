/** Batch norm of each shard, against graphs that know nothing of each other. */
#include "tests/common/suite.h"
#include "tests/unit/shards/shard_network.h"

#include <stdlib.h>
#include <string.h>

/** Each value of `to` becomes the mean over the graphs, weighted by their samples. */
static void mean_of(qat_graph *const *graphs, const qat_samples *samples, int n, int node,
                    bool gradient, qat_graph *to)
{
    const qat_node *at = qat_graph_node(to, node);
    for (size_t v = 0; v < qat_shape_count(&at->shape); v++) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            const qat_node *from = qat_graph_node(graphs[i], node);
            sum += (double)(gradient ? from->grad : from->value)[v] *
                   (samples[i].end - samples[i].begin) / BATCH;
        }
        (gradient ? at->grad : at->value)[v] = (float)sum;
    }
}

static bool is_average(const qat_node *node)
{
    return node->is_param && strstr(node->name, "/ema_");
}

/**
 * What the shards do, by graphs that know nothing of each other: each normalises its own samples.
 * Gradients and averages are means over them.
 */
static struct outcome separate_batches(const struct setting *how, int n)
{
    struct outcome o = {0};
    qat_graph *graphs[MOST_SHARDS], *whole = training_graph(how);
    qat_samples samples[MOST_SHARDS];
    ck_assert(!qat_graph_plan(whole, 1, QAT_PLAN_TRAIN, NULL));
    qat_graph_init_params(whole, 3);
    qat_optimizer *optimizer = optimizer_of(whole);
    for (int i = 0; i < n; i++) {
        samples[i] = (qat_samples){BATCH * i / n, BATCH * (i + 1) / n};
        graphs[i] = training_graph(how);
        ck_assert(!qat_graph_plan(graphs[i], BATCH, QAT_PLAN_TRAIN, NULL));
        qat_graph_init_params(graphs[i], 3);
    }
    for (int step = 0; step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
        for (int i = 0; i < n; i++) {
            qat_graph_copy_params(graphs[i], whole);
            feed(graphs[i], step, samples[i]);
            qat_graph_forward(graphs[i], &run);
            qat_graph_backward(graphs[i], qat_graph_find(graphs[i], QAT_LOSS_NAME), &run);
            qat_graph_update(graphs[i], &run);
        }
        for (int k = 0; k < qat_graph_nodes(whole); k++) {
            if (qat_graph_node(whole, k)->is_param && qat_graph_node(whole, k)->trainable)
                mean_of(graphs, samples, n, k, true, whole);
            if (is_average(qat_graph_node(whole, k)))
                mean_of(graphs, samples, n, k, false, whole);
        }
        if (step + 1 < STEPS)
            qat_optimizer_step(optimizer, 0.01);
    }
    keep(&o, whole);
    qat_optimizer_free(optimizer);
    for (int i = 0; i < n; i++)
        qat_graph_free(graphs[i]);
    qat_graph_free(whole);
    return o;
}

/** Observed ranges are no means: set them to 0. */
static void forget_ranges(const struct setting *how, const struct outcome *o)
{
    qat_graph *g = training_graph(how);
    size_t at = 0;
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        size_t const n = node->is_param ? qat_shape_count(&node->shape) : 0;
        if (n && !node->trainable && !is_average(node))
            memset(o->values + at, 0, n * sizeof *o->values);
        at += node->trainable ? 2 * n : n;
    }
    qat_graph_free(g);
}

/** Only weights are quantized: ranges of activations are joined otherwise. */
START_TEST(split_batch_norm_is_that_of_each_shard)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = OF_BATCH; k < SETTINGS; k++) {
        settings[k].quant.activation_delay = INT64_MAX;
        for (int shards = 1; shards <= 4; shards++) {
            struct outcome apart = separate_batches(&settings[k], shards), o = {0};
            shard_steps(&o, &settings[k], shards, NULL);
            forget_ranges(&settings[k], &apart);
            forget_ranges(&settings[k], &o);
            double const d = difference(&apart, &o);
            ck_assert_msg(d < 1e-5, "%s, %d shards: %g", settings[k].name, shards, d);
            free(o.values);
            free(apart.values);
        }
        settings[k].split = false; /* and it is another thing than that of the batch */
        struct outcome apart = separate_batches(&settings[k], 4), o = {0};
        shard_steps(&o, &settings[k], 4, NULL);
        forget_ranges(&settings[k], &apart);
        forget_ranges(&settings[k], &o);
        ck_assert(difference(&apart, &o) > 1e-3);
        free(o.values);
        free(apart.values);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split batch norm");
    TCase *tcase = tcase_create("split batch norm");
    tcase_add_checked_fixture(tcase, open_registry, close_registry);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, split_batch_norm_is_that_of_each_shard);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

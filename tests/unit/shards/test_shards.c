/**
 * A batch in shards: the tree of sums; gradients against those of the whole batch; the same bits
 * for every number of ranks and threads.
 */
#include "autograd/shards/shards.h"
#include "autograd/shards/tree.h"
#include "base/rng.h"
#include "qat/quant.h"
#include "qat/runtime.h"
#include "qat/train.h"
#include "tests/unit/shards/thread_ranks.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 13, STEPS = 3, MOST_SHARDS = 8, SIDE = 6, CLASSES = 5 };

/* ------------------------------------------------------------------ the tree */

/** Joins texts: "(a b)". */
static void join_texts(void *context, void *a, const void *b)
{
    char both[256];
    (void)context;
    (void)snprintf(both, sizeof both, "(%s%s)", (char *)a, (const char *)b);
    memcpy(a, both, sizeof both);
}

/** The shape of the tree for so many shards and ranks, each rank joining its own first. */
static const char *tree_text(int shards, int ranks, char text[MOST_SHARDS][256])
{
    qat_shard_tree const tree = {shards, ranks};
    void *slots[MOST_SHARDS];
    for (int i = 0; i < shards; i++) {
        (void)snprintf(text[i], 256, "%d", i);
        slots[i] = text[i];
    }
    for (int rank = 0; rank < ranks; rank++)
        qat_tree_join_own(&tree, rank, slots, join_texts, NULL);
    qat_tree_join_roots(&tree, slots, join_texts, NULL);
    return text[0];
}

START_TEST(tree_is_fixed)
{
    char text[MOST_SHARDS][256], one[256];
    for (int shards = 1; shards <= MOST_SHARDS; shards++) {
        memcpy(one, tree_text(shards, 1, text), sizeof one);
        for (int ranks = 2; ranks <= shards; ranks++)
            ck_assert_str_eq(tree_text(shards, ranks, text), one);
    }
    ck_assert_str_eq(tree_text(6, 2, text), "(((01)(23))(45))");
}
END_TEST

START_TEST(roots_are_the_largest)
{
    int starts[MOST_SHARDS];
    qat_shard_tree const tree = {6, 2};
    ck_assert_int_eq(qat_tree_roots(&tree, 0, starts), 2);
    ck_assert(starts[0] == 0 && starts[1] == 2);
    ck_assert_int_eq(qat_tree_roots(&tree, 1, starts), 2);
    ck_assert(starts[0] == 3 && starts[1] == 4);
    ck_assert_int_eq(qat_tree_roots(&(qat_shard_tree){8, 4}, 3, starts), 1);
    ck_assert_int_eq(starts[0], 6);
}
END_TEST

/* ------------------------------------------------------------------ a small network */

static qat_registry *registry;

enum loss { ENTROPY, TWO, OWN, DECAY, KEPT };

/** Everything that adds up over a batch: batch norm, weights, biases, a loss. */
static qat_graph *build(enum loss loss)
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

/** How a network is trained. */
struct setting {
    enum loss loss;
    bool quantized;
    qat_quant_options quant;
    const char *name;
};

static qat_graph *training_graph(const struct setting *how)
{
    qat_graph *g = build(how->loss), *made = NULL;
    if (!how->quantized)
        return g;
    ck_assert(!qat_create_training_graph(&made, g, &how->quant, NULL));
    qat_graph_free(g);
    return made;
}

/** Values of sample i of step `step`. */
static void feed(qat_graph *g, int step, qat_samples samples)
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

/** What some steps leave: the losses, then all parameters, then the gradients of the last step. */
struct outcome {
    double loss[STEPS];
    float *values;
    size_t n;
};

static void keep(struct outcome *o, const qat_graph *g)
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

static qat_optimizer *optimizer_of(qat_graph *g)
{
    qat_optimizer *optimizer;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    ck_assert(!qat_optimizer_create(&optimizer, g, &o, NULL));
    return optimizer;
}

static struct outcome whole_batch(const struct setting *how)
{
    struct outcome o = {0};
    qat_graph *g = training_graph(how);
    qat_node *loss = qat_graph_find(g, QAT_LOSS_NAME);
    ck_assert(!qat_graph_plan(g, BATCH, QAT_PLAN_TRAIN, NULL));
    qat_graph_init_params(g, 3);
    qat_optimizer *optimizer = optimizer_of(g);
    for (int step = 0; step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
        feed(g, step, (qat_samples){0, BATCH});
        qat_graph_forward(g, &run);
        o.loss[step] = (double)loss->value[0];
        qat_graph_backward(g, loss, &run);
        if (step + 1 < STEPS)
            qat_optimizer_step(optimizer, 0.01);
        qat_graph_update(g, &run);
    }
    keep(&o, g);
    qat_optimizer_free(optimizer);
    qat_graph_free(g);
    return o;
}

static void shard_steps(struct outcome *o, const struct setting *how, int shards,
                        const qat_ranks *ranks)
{
    qat_shards *s;
    qat_error err = {0};
    qat_graph *graphs[MOST_SHARDS];
    ck_assert_msg(!qat_shards_create(&s, shards, BATCH, ranks, &err), "%s", err.message);
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

/* ------------------------------------------------------------------ against the whole batch */

enum { SETTINGS = 6 };

static void set_settings(struct setting settings[SETTINGS])
{
    for (int i = 0; i < SETTINGS; i++) {
        settings[i] = (struct setting){.quantized = i > 2, .quant = qat_quant_defaults()};
        settings[i].quant.weight_delay = settings[i].quant.activation_delay = 1;
    }
    settings[0].name = "float";
    settings[1].name = "float, two losses";
    settings[1].loss = TWO;
    settings[2].name = "float, a loss of one's own";
    settings[2].loss = OWN;
    settings[3].name = "two_pass";
    settings[4].name = "one_pass";
    settings[4].quant.bn_fold = QAT_FOLD_ONE_PASS;
    settings[5].name = "lsq";
    (void)snprintf(settings[5].quant.weight_ranges, sizeof settings[5].quant.weight_ranges, "lsq");
    (void)snprintf(settings[5].quant.activation_ranges, sizeof settings[5].quant.activation_ranges,
                   "lsq");
    settings[5].quant.learn_delay = 1;
}

/** The largest difference, relative to the largest value. */
static double difference(const struct outcome *a, const struct outcome *b)
{
    double largest = 0, most = 0;
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        most = fmax(most, fabs((double)a->values[i] - (double)b->values[i]));
        largest = fmax(largest, fabs((double)a->values[i]));
    }
    return most / largest;
}

START_TEST(near_the_whole_batch)
{
    /* float: the rounding of sums. Quantized: a value near the middle of two codes may take the
       other one. */
    double const bounds[] = {1e-5, 1e-5, 1e-5, 2e-2, 2e-2, 2e-2};
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++) {
        struct outcome whole = whole_batch(&settings[k]);
        for (int shards = 1; shards <= MOST_SHARDS; shards++) {
            struct outcome o = {0};
            shard_steps(&o, &settings[k], shards, NULL);
            double const d = difference(&whole, &o);
            ck_assert_msg(d < bounds[k], "%s, %d shards: %g", settings[k].name, shards, d);
            ck_assert(fabs(o.loss[0] - whole.loss[0]) < 1e-5);
            free(o.values);
        }
        free(whole.values);
    }
}
END_TEST

/* ------------------------------------------------------------------ the same bits */

struct team {
    const struct setting *how;
    int shards;
    struct outcome outcomes[MOST_SHARDS];
};

static void take_part(void *context, const qat_ranks *ranks)
{
    struct team *t = context;
    shard_steps(&t->outcomes[ranks->rank], t->how, t->shards, ranks);
}

START_TEST(same_for_all_ranks)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++)
        for (int shards = 3; shards <= MOST_SHARDS; shards += 5) {
            struct outcome one = {0};
            shard_steps(&one, &settings[k], shards, NULL);
            for (int ranks = 2; ranks <= shards; ranks += ranks < 3 ? 1 : 5) {
                struct team t = {.how = &settings[k], .shards = shards};
                thread_ranks_run(ranks, take_part, &t);
                for (int i = 0; i < ranks; i++) {
                    ck_assert_mem_eq(t.outcomes[i].loss, one.loss, sizeof one.loss);
                    ck_assert_uint_eq(t.outcomes[i].n, one.n);
                    ck_assert_msg(
                        !memcmp(t.outcomes[i].values, one.values, one.n * sizeof *one.values),
                        "%s: %d shards, rank %d of %d", settings[k].name, shards, i, ranks);
                    free(t.outcomes[i].values);
                }
            }
            free(one.values);
        }
}
END_TEST

START_TEST(same_for_all_threads)
{
    struct setting settings[SETTINGS];
    set_settings(settings);
    for (int k = 0; k < SETTINGS; k++) {
        struct outcome a = {0}, b = {0};
        qat_set_threads(1);
        shard_steps(&a, &settings[k], 5, NULL);
        qat_set_threads(3);
        shard_steps(&b, &settings[k], 5, NULL);
        ck_assert_mem_eq(a.values, b.values, a.n * sizeof *a.values);
        free(a.values);
        free(b.values);
    }
}
END_TEST

/** A loss and weights at once: which part of the weights' gradient is a shard's? */
START_TEST(refused)
{
    qat_shards *s;
    qat_error err;
    qat_graph *graphs[2] = {build(DECAY), build(DECAY)};
    ck_assert(!qat_shards_create(&s, 2, BATCH, NULL, NULL));
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "node 'loss' (loss_sum)"));
    for (int i = 0; i < 2; i++) {
        qat_graph_free(graphs[i]);
        graphs[i] = build(KEPT);
    }
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "node 'kept' (keeper) updates its parameters"));
    qat_graph_free(graphs[0]);
    qat_graph_free(graphs[1]);
    qat_shards_free(s);
}
END_TEST

/** The graphs of all shards count together. */
START_TEST(memory)
{
    qat_shards *s;
    qat_error err;
    qat_graph *alone = build(ENTROPY), *graphs[2] = {build(ENTROPY), build(ENTROPY)};
    ck_assert(!qat_graph_plan(alone, BATCH - BATCH / 2, QAT_PLAN_TRAIN, NULL));
    qat_registry_set_memory(registry, qat_graph_arena_bytes(alone) * 3 / 2);
    ck_assert(!qat_shards_create(&s, 2, BATCH, NULL, NULL));
    ck_assert_int_eq(qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err), QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "--max-memory"));
    qat_graph_free(alone);
    qat_graph_free(graphs[0]);
    qat_graph_free(graphs[1]);
    qat_shards_free(s);
}
END_TEST

START_TEST(too_many)
{
    qat_shards *s;
    qat_error err;
    ck_assert_int_eq(qat_shards_create(&s, 9, 8, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "train.shards = 9"));
    qat_ranks const ranks = {.rank = 0, .count = 4};
    ck_assert_int_eq(qat_shards_create(&s, 3, 8, &ranks, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "4 ranks"));
}
END_TEST

static void open_registry(void)
{
    ck_assert(!qat_registry_create(&registry, NULL));
    ck_assert(!qat_registry_add(registry, &own_loss, NULL));
    ck_assert(!qat_registry_add(registry, &keeper, NULL));
}

static void close_registry(void)
{
    qat_registry_free(registry);
}

int main(void)
{
    Suite *suite = suite_create("shards");
    TCase *tcase = tcase_create("shards");
    tcase_add_checked_fixture(tcase, open_registry, close_registry);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, tree_is_fixed);
    tcase_add_test(tcase, roots_are_the_largest);
    tcase_add_test(tcase, near_the_whole_batch);
    tcase_add_test(tcase, same_for_all_ranks);
    tcase_add_test(tcase, same_for_all_threads);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, memory);
    tcase_add_test(tcase, too_many);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

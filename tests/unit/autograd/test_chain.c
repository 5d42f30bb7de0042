/**
 * Chains of ops that run in strips (autograd/loops/tail.h) are compared with the same ops run one
 * by one. Every parameter, every gradient that stays and every value that is kept must be equal bit
 * for bit: in steps before quantization starts, with batch statistics and with frozen ones, and
 * with another number of threads.
 *
 * The networks are random ones (random_net.h), and one with long tensors: they have many strips and
 * tiles, and no strip holds a whole number of their rows.
 */
#include "autograd/graph/core.h"
#include "autograd/loops/tail.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "common/suite.h"
#include "random/random_net.h"

#include <check.h>
#include <string.h>

enum { BATCH = 6, STEPS = 6, RANDOM_NETS = 48, CLASSES = 7 };

static qat_registry *registry;
static qat_error err;

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
}

static void teardown(void)
{
    qat_registry_free(registry);
}

static void check(qat_status st)
{
    ck_assert_msg(st == QAT_OK, "%s", err.message);
}

/* ------------------------------------------------------------------ two plans of one graph */

struct run {
    qat_graph *graph;
    qat_optimizer *optimizer;
    qat_node *loss;
};

static void start(struct run *r, qat_graph *graph, const char *loss, qat_plan plan)
{
    qat_optimizer_options const sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    *r = (struct run){.graph = graph, .loss = qat_graph_find(graph, loss)};
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (qat_node_is_input(qat_graph_node(graph, i)) && i % 2 == 0)
            qat_graph_want_gradient(graph, qat_graph_node(graph, i));
    check(qat_graph_plan(graph, BATCH, plan, &err));
    qat_graph_init_params(graph, 3);
    check(qat_optimizer_create(&r->optimizer, graph, &sgd, &err));
}

static void stop(struct run *r)
{
    qat_optimizer_free(r->optimizer);
    qat_graph_free(r->graph);
}

static void fill_inputs(qat_graph *graph, int step, int classes)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (!qat_node_is_input(node))
            continue;
        qat_rng rng = qat_rng_at(5, qat_hash_name(node->name), (uint64_t)step);
        for (size_t k = 0; k < qat_shape_count(&node->shape); k++)
            node->value[k] = node->shape.rank == 1 ? (float)qat_rng_below(&rng, (uint32_t)classes)
                                                   : (float)(2 * qat_rng_uniform(&rng) - 1);
    }
}

static void take_step(struct run *r, int step, int classes)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 2};
    check(qat_graph_set_batch(r->graph, step % 3 == 2 ? BATCH - 2 : BATCH, &err));
    fill_inputs(r->graph, step, classes);
    qat_graph_forward(r->graph, &run);
    qat_graph_backward(r->graph, r->loss, &run);
    qat_optimizer_step(r->optimizer, 0.01);
    qat_graph_update(r->graph, &run);
}

static void same(const qat_node *node, int step, const char *what, const qat_real *a,
                 const qat_real *b)
{
    size_t const n = qat_shape_count(&node->shape);
    for (size_t i = 0; a && memcmp(a, b, n * sizeof *a) != 0 && i < n; i++)
        ck_assert_msg(memcmp(&a[i], &b[i], sizeof *a) == 0,
                      "step %d: %s of '%s' [%zu]: %.9g in strips, %.9g op by op", step, what,
                      node->name, i, (double)a[i], (double)b[i]);
}

static void compare(const struct run *strips, const struct run *single, int step)
{
    for (int i = 0; i < qat_graph_nodes(strips->graph); i++) {
        const qat_node *a = qat_graph_node(strips->graph, i);
        const qat_node *b = qat_graph_node(single->graph, i);
        if (!core_of(a)->idle)
            same(a, step, "value", a->value, b->value);
        if (!a->op)
            same(a, step, "gradient", a->grad, b->grad);
    }
}

static int count_tails(const qat_graph *graph)
{
    int count = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        ck_assert(!node->tail || (!node->value && qat_tail_last(node)->value));
        count += node->tail ? node->tail->n : 0;
    }
    return count;
}

/** Takes both graphs over; returns how many ops ran in strips. */
static int train_both(qat_graph *a, qat_graph *b, const char *loss, int classes)
{
    struct run strips, single;
    start(&strips, a, loss, QAT_PLAN_TRAIN);
    start(&single, b, loss, QAT_PLAN_TRAIN_KEEP);
    int const tails = count_tails(a);
    ck_assert_int_eq(count_tails(b), 0);
    for (int step = 0; step < STEPS; step++) {
        qat_set_threads(1 + step % 3);
        take_step(&strips, step, classes);
        qat_set_threads(1);
        take_step(&single, step, classes);
        compare(&strips, &single, step);
    }
    stop(&strips);
    stop(&single);
    return tails;
}

/** Steps 0, 1 plain, then quantized, the last two frozen. */
static qat_quant_options options_of(int i)
{
    qat_quant_options o = qat_quant_defaults();
    o.layout = (qat_layout)(i & 1);
    o.bn_fold = (qat_bn_fold)(i >> 1 & 1);
    o.weight_delay = 1 + (i >> 2 & 1);
    o.activation_delay = 2;
    o.bn_freeze_delay = STEPS - 2;
    o.activation_bits = i & 1 ? 8 : 4;
    return o;
}

static qat_graph *quantized(const qat_graph *graph, int i)
{
    qat_graph *training;
    qat_quant_options const o = options_of(i);
    check(qat_create_training_graph(&training, graph, &o, &err));
    return training;
}

/* ------------------------------------------------------------------ networks */

START_TEST(test_random_nets)
{
    int tails = 0;
    for (int i = 0; i < RANDOM_NETS; i++) {
        random_net net[2];
        for (int k = 0; k < 2; k++)
            check(random_net_create(&net[k], 4, (uint64_t)i, registry, &err));
        tails += train_both(quantized(net[0].graph, i), quantized(net[1].graph, i),
                            net[0].loss->name, net[0].classes);
        tails += train_both(net[0].graph, net[1].graph, net[0].loss->name, net[0].classes);
        for (int k = 0; k < 2; k++) {
            net[k].graph = NULL;
            random_net_free(&net[k]);
        }
    }
    ck_assert_int_gt(tails, 4 * RANDOM_NETS);
}
END_TEST

/** Long tensors: rows of 24, 150 and 1100 values, batches of 55 to 220 thousand. */
static qat_graph *build_long(void)
{
    qat_graph *g;
    check(qat_graph_create(&g, registry, &err));
    qat_node *image = qat_graph_input(g, "image", QAT_SHAPE(1, 40, 38, 3));
    qat_node *label = qat_graph_input(g, "label", QAT_SHAPE(1));
    qat_node *x = qat_apply1(g, "conv2d", "c1", "filters=24 kernel=3", image);
    x = qat_apply1(g, "batch_norm", "c1/bn", "", x);
    qat_node *stem = qat_apply1(g, "relu6", "c1/relu", "", x);
    x = qat_apply1(g, "depthwise_conv2d", "d1", "kernel=3", stem);
    x = qat_apply1(g, "bias", "d1/bias", "", x);
    x = qat_apply2(g, "add", "sum", "", x, stem);
    x = qat_apply1(g, "relu", "sum/relu", "", x);
    x = qat_apply1(g, "conv2d", "c2", "filters=150 kernel=1 stride=3", x);
    x = qat_apply1(g, "batch_norm", "c2/bn", "", x);
    x = qat_apply1(g, "relu", "c2/relu", "", x);
    x = qat_apply1(g, "global_average_pool", "pool", "", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = qat_apply1(g, "fully_connected", "f1", "units=1100", x);
    x = qat_apply1(g, "batch_norm", "f1/bn", "", x);
    x = qat_apply1(g, "relu", "f1/relu", "", x);
    x = qat_apply1(g, "fully_connected", "logits", "units=7", x);
    x = qat_apply1(g, "bias", "logits/bias", "", x);
    qat_graph_output(g, x);
    qat_apply2(g, "softmax_cross_entropy", "loss", "", x, label);
    check(qat_graph_check(g, &err));
    return g;
}

START_TEST(test_long_tensors)
{
    qat_graph *g = build_long();
    ck_assert_int_ge(train_both(quantized(g, _i), quantized(g, _i), "loss", CLASSES), 8);
    qat_graph_free(g);
}
END_TEST

START_TEST(test_long_tensors_in_float)
{
    /* relu6; add - relu; relu; relu; nothing follows the bias */
    ck_assert_int_eq(train_both(build_long(), build_long(), "loss", CLASSES), 4);
}
END_TEST

/** Of a chain of three, at most one value and one gradient of the three of each remain. */
START_TEST(test_memory)
{
    qat_graph *g = build_long(), *strips = quantized(g, 2), *single = quantized(g, 2);
    check(qat_graph_plan(strips, BATCH, QAT_PLAN_TRAIN, &err));
    check(qat_graph_plan(single, BATCH, QAT_PLAN_TRAIN_KEEP, &err));
    ck_assert_uint_lt(3 * qat_graph_arena_bytes(strips), 2 * qat_graph_arena_bytes(single));
    qat_graph_free(strips);
    qat_graph_free(single);
    qat_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, test_random_nets);
    tcase_add_loop_test(all, test_long_tensors, 0, 8);
    tcase_add_test(all, test_long_tensors_in_float);
    tcase_add_test(all, test_memory);
    suite_add_tcase(suite, all);
    return test_run_suite(suite);
}

/*
 * Until its delay, a quantized run is bit for bit the same as the float run: losses, parameters,
 * averages.
 */
#include "base/rng.h"
#include "common/suite.h"
#include "qat/quant.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 6, STEPS = 8, CLASSES = 5 };

/** A net with every kind of layer that the rewrites touch; also with the loss's own weight decay.
 */
static qat_graph *build(const qat_registry *registry, bool decay)
{
    qat_graph *g;
    qat_error err;
    ck_assert_msg(qat_graph_create(&g, registry, &err) == QAT_OK, "%s", err.message);
    qat_node *image = qat_graph_input(g, "image", QAT_SHAPE(1, 9, 9, 3));
    qat_node *label = qat_graph_input(g, "label", QAT_SHAPE(1));
    qat_node *x = qat_apply1(g, "conv2d", "c1", "filters=8 kernel=3", image);
    x = qat_apply1(g, "batch_norm", "c1/bn", "", x);
    qat_node *stem = qat_apply1(g, "relu", "c1/relu", "", x);
    x = qat_apply1(g, "depthwise_conv2d", "d1", "kernel=3", stem);
    x = qat_apply1(g, "bias", "d1/bias", "", x);
    x = qat_apply1(g, "batch_norm", "d1/bn", "momentum=0.9", x);
    x = qat_apply2(g, "add", "add", "", x, stem);
    x = qat_apply1(g, "relu6", "add/relu", "", x);
    qat_node *pool = qat_apply1(g, "average_pool2d", "pool", "kernel=3 stride=1 padding=same", x);
    x = qat_apply1(g, "max_pool2d", "max", "kernel=3 stride=1 padding=same", x);
    qat_node *t = qat_apply1(g, "tanh", "tanh", "", stem);
    qat_node *parts[] = {pool, x, t};
    x = qat_apply(g, "concat", "cat", "", 3, parts);
    x = qat_apply1(g, "batch_norm", "cat/bn", "", x);
    x = qat_apply1(g, "dropout", "drop", "rate=0.2", x);
    x = qat_apply1(g, "conv2d", "c2", "filters=6 kernel=2 stride=2", x);
    x = qat_apply1(g, "bias", "c2/bias", "", x);
    x = qat_apply1(g, "relu", "c2/relu", "", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = qat_apply1(g, "fully_connected", "f1", "units=16", x);
    x = qat_apply1(g, "batch_norm", "f1/bn", "", x);
    x = qat_apply1(g, "logistic", "f1/act", "", x);
    x = qat_apply1(g, "bias", "f1/shift", "", x);
    x = qat_apply1(g, "fully_connected", "logits", "units=5", x);
    qat_graph_output(g, x);
    qat_node *loss = qat_apply2(g, "softmax_cross_entropy", "loss", "", x, label);
    if (decay) {
        qat_node *weights[] = {qat_graph_find(g, "c1/weights"), qat_graph_find(g, "d1/weights"),
                               qat_graph_find(g, "c2/weights"), qat_graph_find(g, "f1/weights"),
                               qat_graph_find(g, "logits/weights")};
        qat_node *wd = qat_apply(g, "weight_decay", "decay", "rate=0.01", 5, weights);
        qat_apply2(g, "add", "total", "", loss, wd);
    }
    ck_assert_msg(qat_graph_check(g, &err) == QAT_OK, "%s", err.message);
    return g;
}

/** One graph in training. */
struct run {
    qat_graph *graph;
    qat_optimizer *optimizer;
    qat_node *loss;
};

static void start(struct run *r, qat_graph *graph, bool decay)
{
    qat_error err;
    r->graph = graph;
    ck_assert_msg(qat_graph_plan(graph, BATCH, QAT_PLAN_TRAIN, &err) == QAT_OK, "%s", err.message);
    qat_graph_init_params(graph, 7);
    qat_optimizer_options const options = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    ck_assert_int_eq(qat_optimizer_create(&r->optimizer, graph, &options, &err), QAT_OK);
    r->loss = qat_graph_find(graph, decay ? "total" : "loss");
    ck_assert_ptr_nonnull(r->loss);
}

static void stop(struct run *r)
{
    qat_optimizer_free(r->optimizer);
    qat_graph_free(r->graph);
}

static void fill_inputs(qat_graph *graph, int64_t step)
{
    qat_rng rng = qat_rng_at(3, 1, (uint64_t)step);
    qat_node *image = qat_graph_find(graph, "image"), *label = qat_graph_find(graph, "label");
    for (size_t i = 0; i < qat_shape_count(&image->shape); i++)
        image->value[i] = (float)(2 * qat_rng_uniform(&rng) - 1);
    for (int i = 0; i < label->shape.dims[0]; i++)
        label->value[i] = (float)qat_rng_below(&rng, CLASSES);
}

static float step_of(struct run *r, int64_t step)
{
    qat_error err;
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 11};
    int const batch = step % 3 == 2 ? BATCH - 2 : BATCH; /* the last batch of an epoch */
    ck_assert_int_eq(qat_graph_set_batch(r->graph, batch, &err), QAT_OK);
    fill_inputs(r->graph, step);
    qat_graph_forward(r->graph, &run);
    qat_graph_backward(r->graph, r->loss, &run);
    qat_optimizer_step(r->optimizer, 0.05);
    qat_graph_update(r->graph, &run);
    return r->loss->value[0];
}

/** First parameter of the float graph whose bits differ in the other; NULL: none. */
static const char *first_difference(const qat_graph *floats, const qat_graph *other)
{
    for (int i = 0; i < qat_graph_nodes(floats); i++) {
        const qat_node *a = qat_graph_node(floats, i);
        if (!a->is_param)
            continue;
        const qat_node *b = qat_graph_find(other, a->name);
        ck_assert_msg(b != NULL, "the training graph has no %s", a->name);
        ck_assert(qat_shape_equal(&a->shape, &b->shape));
        ck_assert_int_eq(a->trainable, b->trainable);
        ck_assert_int_eq(a->decay, b->decay);
        if (memcmp(a->value, b->value, qat_shape_count(&a->shape) * sizeof *a->value) != 0)
            return a->name;
    }
    return NULL;
}

static void compare(const qat_quant_options *options, bool decay)
{
    qat_registry *registry;
    qat_error err;
    struct run f, q;
    qat_graph *training;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_graph *floats = build(registry, decay);
    qat_status const st = qat_create_training_graph(&training, floats, options, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    start(&f, floats, decay);
    start(&q, training, decay);
    ck_assert_ptr_null(first_difference(floats, training));
    int64_t const delay = options->weight_delay < options->activation_delay
                              ? options->weight_delay
                              : options->activation_delay;
    bool differed = false;
    for (int64_t step = 0; step < STEPS; step++) {
        float const a = step_of(&f, step), b = step_of(&q, step);
        const char *name = first_difference(floats, training);
        if (step < delay) {
            ck_assert_msg(memcmp(&a, &b, sizeof a) == 0, "step %d: loss %.9g, float %.9g",
                          (int)step, (double)b, (double)a);
            ck_assert_msg(name == NULL, "step %d: %s differs", (int)step, name);
        }
        differed |= name != NULL;
        ck_assert_ptr_null(qat_graph_find_nonfinite(training));
    }
    ck_assert(differed == (delay < STEPS));
    stop(&f);
    stop(&q);
    qat_registry_free(registry);
}

/** layout x fold x weight decay, from the test's loop index. */
static qat_quant_options options_of(int i)
{
    qat_quant_options o = qat_quant_defaults();
    o.layout = i & 1 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    o.bn_fold = i & 2 ? QAT_FOLD_ONE_PASS : QAT_FOLD_TWO_PASS;
    o.weight_delay = o.activation_delay = 1000;
    return o;
}

START_TEST(test_beyond_the_end)
{
    qat_quant_options const o = options_of(_i);
    compare(&o, _i & 4);
}
END_TEST

START_TEST(test_weights_first)
{
    qat_quant_options o = options_of(_i);
    o.weight_delay = 3;
    o.bn_freeze_delay = 6;
    compare(&o, false);
}
END_TEST

START_TEST(test_activations_first)
{
    qat_quant_options o = options_of(_i);
    o.activation_delay = 4;
    compare(&o, false);
}
END_TEST

START_TEST(test_no_delay)
{
    qat_quant_options o = options_of(_i);
    o.activation_delay = o.weight_delay = 0;
    o.bn_freeze_delay = _i & 1 ? 0 : 4;
    compare(&o, true);
}
END_TEST

START_TEST(test_freeze_before_fold_is_refused)
{
    qat_registry *registry;
    qat_error err;
    qat_graph *training;
    qat_quant_options o = options_of(0);
    o.weight_delay = 100;
    o.bn_freeze_delay = 99;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_graph *floats = build(registry, false);
    ck_assert_int_eq(qat_create_training_graph(&training, floats, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(training);
    ck_assert_str_eq(err.message, "bn_freeze_delay 99 is before weight_delay 100: batch norm can "
                                  "only freeze after it is folded");
    qat_graph_free(floats);
    qat_registry_free(registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("delay");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_beyond_the_end, 0, 8);
    tcase_add_loop_test(tests, test_weights_first, 0, 4);
    tcase_add_loop_test(tests, test_activations_first, 0, 4);
    tcase_add_loop_test(tests, test_no_delay, 0, 4);
    tcase_add_test(tests, test_freeze_before_fold_is_refused);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}

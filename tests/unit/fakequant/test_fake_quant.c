/*
 * The inserted ops in a run: observers, delays, straight-through gradients, weights, and batch norm
 * folded in training and in evaluation.
 */
#include "base/rng.h"
#include "common/suite.h"
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "fakequant/weights.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *g;
static qat_error err;

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
}

static void teardown(void)
{
    qat_graph_free(g);
    qat_registry_free(registry);
}

static qat_run const evaluating = {.mode = QAT_MODE_EVAL};

static qat_run train_at(int64_t step)
{
    return (qat_run){.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
}

static void plan(qat_graph *graph, int batch)
{
    ck_assert_msg(qat_graph_plan(graph, batch, QAT_PLAN_TRAIN_KEEP, &err) == QAT_OK, "%s",
                  err.message);
    qat_graph_init_params(graph, 5);
}

static void observe(qat_graph *graph, int64_t step)
{
    qat_run const run = train_at(step);
    qat_graph_forward(graph, &run);
    qat_graph_update(graph, &run);
}

static void set(qat_node *node, const float *values)
{
    memcpy(node->value, values, qat_shape_count(&node->shape) * sizeof *values);
}

static const float *value_of(const qat_graph *graph, const char *name)
{
    const qat_node *node = qat_graph_find(graph, name);
    ck_assert_msg(node != NULL, "there is no %s", name);
    return node->value;
}

/* ------------------------------------------------------------------ fake_quant */

START_TEST(test_moving_average)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 4));
    qat_node *q = qat_apply1(g, "fake_quant", "q", "decay=0.75", x);
    qat_qparams p;
    ck_assert_int_eq(qat_node_qparams(q, &p, &err), QAT_ERR_STATE);
    plan(g, 1);
    ck_assert_int_eq(qat_node_qparams(q, &p, &err), QAT_ERR_STATE);
    ck_assert_str_eq(err.message, "'q' was never observed: calibrate on a batch first");
    ck_assert_int_eq(qat_node_qparams(x, &p, &err), QAT_ERR_ARGUMENT);
    const float *range = value_of(g, "q/range");

    set(x, (const float[]){1, 2, 3, 4}); /* widened to 0..4; the first batch initialises */
    observe(g, 0);
    ck_assert_float_eq(range[RANGE_MIN], 0);
    ck_assert_float_eq(range[RANGE_MAX], 4);
    ck_assert_float_eq(range[RANGE_STEPS], 1);
    set(x, (const float[]){-2, 0, 1, 8});
    observe(g, 1);
    ck_assert_float_eq(range[RANGE_MIN], 0.25f * -2);
    ck_assert_float_eq(range[RANGE_MAX], 0.75f * 4 + 0.25f * 8);
    ck_assert_float_eq(range[RANGE_STEPS], 2);

    qat_graph_forward(g, &evaluating); /* neither observes */
    qat_graph_update(g, &evaluating);
    ck_assert_float_eq(range[RANGE_STEPS], 2);
    ck_assert_int_eq(qat_node_qparams(q, &p, &err), QAT_OK);
    qat_qparams const expected = qat_choose_qparams(-0.5f, 5, 0, 255, true);
    ck_assert_float_eq(p.scale, expected.scale);
    ck_assert_int_eq(p.zero_point, expected.zero_point);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(q->value[i], qat_real_of(&p, qat_code(&p, x->value[i])));
}
END_TEST

/*
 * The very first batch is quantized with its own range. A forward pass alone does not change the
 * range.
 */
START_TEST(test_first_batch)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 3));
    qat_node *q = qat_apply1(g, "fake_quant", "q", "bits=4", x);
    plan(g, 1);
    set(x, (const float[]){0.1f, 0.5f, 1.5f});
    qat_run const run = train_at(0);
    qat_graph_forward(g, &run);
    qat_qparams const p = qat_choose_qparams(0, 1.5f, 0, 15, true);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(q->value[i], qat_real_of(&p, qat_code(&p, x->value[i])));
    ck_assert_float_eq(value_of(g, "q/range")[RANGE_STEPS], 0);
    qat_graph_forward(g, &evaluating);
    ck_assert_float_eq(q->value[2], 1.5f);
    ck_assert_float_eq(value_of(g, "q/range")[RANGE_STEPS], 0);
}
END_TEST

/*
 * In a class, the average takes one step for each batch, over all members. Each member has a delay.
 */
START_TEST(test_shared_range)
{
    qat_node *a = qat_graph_input(g, "a", QAT_SHAPE(1, 2));
    qat_node *b = qat_graph_input(g, "b", QAT_SHAPE(1, 3));
    qat_node *qa = qat_apply1(g, "fake_quant", "qa", "commits=0 decay=0.5", a);
    qat_node *const inputs[] = {b, qat_graph_find(g, "qa/range")};
    qat_node *qb = qat_apply(g, "fake_quant", "qb", "decay=0.5 delay=10", 2, inputs);
    plan(g, 1);
    set(a, (const float[]){-1, 1});
    set(b, (const float[]){0, 3, 0.3f});
    observe(g, 0);
    const float *range = value_of(g, "qa/range");
    ck_assert_float_eq(range[RANGE_MIN], -1);
    ck_assert_float_eq(range[RANGE_MAX], 3);
    ck_assert_float_eq(range[RANGE_STEPS], 1);
    ck_assert_float_eq(qb->value[2], 0.3f); /* not yet */
    set(a, (const float[]){0, 9});
    observe(g, 1);
    ck_assert_float_eq(range[RANGE_MIN], -0.5f);
    ck_assert_float_eq(range[RANGE_MAX], 6);
    qat_run const run = train_at(10);
    qat_graph_forward(g, &run);
    qat_qparams p;
    ck_assert_int_eq(qat_node_qparams(qa, &p, &err), QAT_OK);
    ck_assert_float_eq(qb->value[2], qat_real_of(&p, qat_code(&p, 0.3f)));
}
END_TEST

START_TEST(test_straight_through)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 5));
    qat_graph_want_gradient(g, x);
    qat_node *q = qat_apply1(g, "fake_quant", "q", "kind=range min=-1 max=1 delay=3", x);
    qat_node *loss = qat_apply1(g, "l2_loss", "loss", "", q);
    plan(g, 1);
    set(x, (const float[]){-1.5f, -0.5f, 0, 0.5f, 1.5f});
    qat_run run = train_at(2);
    qat_graph_forward(g, &run);
    ck_assert_mem_eq(q->value, x->value, 5 * sizeof(float));
    qat_graph_backward(g, loss, &run);
    for (int i = 0; i < 5; i++)
        ck_assert(x->value[i] == 0 || x->grad[i] != 0);
    run = train_at(3);
    qat_graph_forward(g, &run);
    qat_graph_backward(g, loss, &run);
    ck_assert_float_eq(x->grad[0], 0);
    ck_assert_float_eq(x->grad[4], 0);
    for (int i = 1; i < 4; i++)
        ck_assert_float_eq(x->grad[i], q->grad[i]);
    ck_assert(x->grad[3] != 0);
    qat_graph_forward(g, &evaluating); /* evaluation does not wait */
    ck_assert_float_lt(q->value[4], 1.1f);
}
END_TEST

START_TEST(test_given_range_is_checked)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 2));
    qat_apply1(g, "fake_quant", "q", "kind=given scale=0.5 zero_point=-3", x);
    ck_assert_int_eq(qat_graph_check(g, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "zero_point -3 is not a code of 0..255"));
}
END_TEST

/* Many tiles: the same bits as one pass over everything. */
START_TEST(test_large)
{
    enum { N = 100003 };
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, N));
    qat_node *q = qat_apply1(g, "fake_quant", "q", "", x);
    plan(g, 1);
    qat_rng rng = qat_rng_at(1, 2, 3);
    for (int i = 0; i < N; i++)
        x->value[i] = (float)(6 * qat_rng_uniform(&rng) - 2);
    observe(g, 0);
    qat_interval const all = qat_interval_of(x->value, N);
    ck_assert_float_eq(value_of(g, "q/range")[RANGE_MIN], all.min);
    ck_assert_float_eq(value_of(g, "q/range")[RANGE_MAX], all.max);
    qat_qparams const p = qat_choose_qparams(all.min, all.max, 0, 255, true);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(q->value[i], qat_real_of(&p, qat_code(&p, x->value[i])));
}
END_TEST

/* ------------------------------------------------------------------ fake_quant_weights */

static const float eight[] = {-3, 0.5f, 0.25f, 2, 0.1f, -0.1f, 0.07f, 0};

static qat_node *weights_node(const char *attrs, qat_shape shape)
{
    qat_param_def const def = {.name = "w", .shape = shape, .trainable = true};
    qat_node *w = qat_graph_param(g, &def);
    qat_node *q = qat_apply1(g, "fake_quant_weights", "q", attrs, w);
    plan(g, 1);
    set(w, eight);
    return q;
}

START_TEST(test_weights_per_tensor)
{
    qat_node *q = weights_node("bits=8 layout=uint8 delay=1", QAT_SHAPE(2, 4));
    qat_run const run = train_at(0);
    qat_graph_forward(g, &run);
    ck_assert_mem_eq(q->value, eight, sizeof eight);
    qat_graph_forward(g, &evaluating);
    qat_qparams const p = qat_choose_qparams(-3, 2, 1, 255, true);
    for (int i = 0; i < 8; i++) {
        ck_assert_float_eq(q->value[i], qat_real_of(&p, qat_code(&p, eight[i])));
        ck_assert_int_ge(qat_code(&p, eight[i]), 1);
    }
    ck_assert_int_eq(qat_weight_view_of(q).channels, 1);
    ck_assert_float_eq(qat_weight_qparams(q, 0).scale, p.scale);
}
END_TEST

static void check_channels(const qat_node *q, const float *max_abs, int channels, int outer_step)
{
    ck_assert_int_eq(qat_weight_view_of(q).channels, channels);
    for (int c = 0; c < channels; c++) {
        qat_qparams const p = qat_weight_qparams(q, c);
        ck_assert_float_eq(p.scale, 2 * max_abs[c] / 14);
        ck_assert_int_eq(p.zero_point, 0);
        for (int i = 0; i < 8; i++) {
            int const channel = outer_step ? i % channels : i / (8 / channels);
            if (channel == c)
                ck_assert_float_eq(q->value[i],
                                   qat_real_of(&p, qat_code_per_channel(&p, eight[i])));
        }
    }
}

START_TEST(test_weights_per_channel)
{
    qat_node *q = weights_node("bits=4 layout=int8 axis=0", QAT_SHAPE(2, 4));
    qat_graph_forward(g, &evaluating);
    check_channels(q, (const float[]){3, 0.1f}, 2, 0);
}
END_TEST

START_TEST(test_weights_per_channel_of_last_axis)
{
    qat_node *q = weights_node("bits=4 layout=int8 axis=3", QAT_SHAPE(1, 2, 2, 2));
    qat_graph_forward(g, &evaluating);
    check_channels(q, (const float[]){3, 2}, 2, 1);
}
END_TEST

/* ------------------------------------------------------------------ batch norm, folded */

enum { SIDE = 6, CHANNELS = 3, BATCH = 4 };

/** A conv (or depthwise, FC) with batch norm, with or without a bias between. */
static void build_bn(const char *head, bool bias)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    const char *attrs = strcmp(head, "conv2d") == 0            ? "filters=5"
                        : strcmp(head, "fully_connected") == 0 ? "units=5"
                                                               : "multiplier=2";
    x = qat_apply1(g, head, "head", attrs, x);
    if (bias)
        x = qat_apply1(g, "bias", "bias", "", x);
    x = qat_apply1(g, "batch_norm", "bn", "momentum=0.5", x);
    qat_graph_output(g, x);
    qat_apply1(g, "l2_loss", "loss", "", x);
}

static void fill(qat_node *node, double lo, double hi, uint64_t stream)
{
    qat_rng rng = qat_rng_at(9, stream, 0);
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        node->value[i] = (float)(lo + (hi - lo) * qat_rng_uniform(&rng));
}

/** Parameters away from their start, the same in any graph. */
static void fill_params(qat_graph *graph)
{
    fill(qat_graph_find(graph, "bn/gamma"), 0.5, 1.5, 1);
    fill(qat_graph_find(graph, "bn/beta"), -1, 1, 2);
    fill(qat_graph_find(graph, "bn/ema_mean"), -0.5, 0.5, 3);
    fill(qat_graph_find(graph, "bn/ema_variance"), 0.5, 2, 4);
    if (qat_graph_find(graph, "bn/ema_steps"))
        fill(qat_graph_find(graph, "bn/ema_steps"), 3, 3, 5);
    if (qat_graph_find(graph, "bias/bias"))
        fill(qat_graph_find(graph, "bias/bias"), -2, 2, 6);
    fill(qat_graph_find(graph, "x"), -1, 1, 7);
}

/**
 * The same graph without everything that quantizes; folding stays. fake_quant_weights gets an
 * endless delay of its own.
 */
static void stop_quantizing(qat_graph *graph)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (node->op == &qat_op_fake_quant_weights)
            node->attrs[FQW_DELAY] = QAT_NEVER;
        if (node->op == &qat_op_fake_quant)
            node->attrs[FQ_DELAY] = QAT_NEVER;
    }
}

static void check_close(const char *what, const float *got, const float *expected, size_t n,
                        double tolerance)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - (double)expected[i]) <= tolerance * largest,
                      "%s[%zu]: %.9g, expected %.9g", what, i, (double)got[i], (double)expected[i]);
}

static void check_params(const qat_graph *graph, double tolerance, bool gradients)
{
    static const char *const names[] = {"head/weights", "bias/bias",   "bn/gamma",
                                        "bn/beta",      "bn/ema_mean", "bn/ema_variance"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const qat_node *a = qat_graph_find(g, names[i]), *b = qat_graph_find(graph, names[i]);
        if (!a)
            continue;
        size_t const n = qat_shape_count(&a->shape);
        if (!gradients)
            check_close(names[i], b->value, a->value, n, tolerance);
        /* a bias before batch norm has no gradient but rounding */
        else if (a->grad && strcmp(names[i], "bias/bias") != 0)
            check_close(names[i], b->grad, a->grad, n, tolerance);
    }
}

static const char *const heads[] = {"conv2d", "depthwise_conv2d", "fully_connected"};

/**
 * Without quantization, folding changes nothing but rounding. For all averages, the values,
 * gradients and averages of a training step are those of plain batch norm.
 */
START_TEST(test_training_form_is_batch_norm)
{
    qat_quant_options options = qat_quant_defaults();
    qat_graph *training;
    options.bn_fold = _i & 1 ? QAT_FOLD_ONE_PASS : QAT_FOLD_TWO_PASS;
    build_bn(heads[_i / 2 % 3], _i >= 6);
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_OK);
    stop_quantizing(training);
    plan(g, BATCH);
    plan(training, BATCH);
    fill_params(g);
    fill_params(training);
    qat_run const run = train_at(0);
    qat_graph *const both[] = {g, training};
    for (int i = 0; i < 2; i++) {
        qat_graph_forward(both[i], &run);
        qat_graph_backward(both[i], qat_graph_find(both[i], "loss"), &run);
        qat_graph_update(both[i], &run);
    }
    const qat_node *y = qat_graph_find(g, "bn");
    check_close("y", value_of(training, "bn"), y->value, qat_shape_count(&y->shape), 1e-5);
    check_params(training, 1e-5, false);
    check_params(training, 2e-4, true);
    ck_assert_float_eq(value_of(training, "bn/ema_steps")[0], 4);
    qat_graph_free(training);
}
END_TEST

/**
 * The eval graph without its rounding equals the float graph in eval mode. So does the training
 * graph, in eval mode and while its batch norm is frozen.
 */
START_TEST(test_eval_form_is_batch_norm)
{
    qat_quant_options options = qat_quant_defaults();
    qat_graph *training, *eval;
    options.bn_freeze_delay = 0;
    options.bn_fold = _i & 1 ? QAT_FOLD_ONE_PASS : QAT_FOLD_TWO_PASS;
    build_bn(heads[_i / 2 % 3], _i >= 6);
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_OK);
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, &err), QAT_OK);
    qat_graph *const all[] = {g, training, eval};
    for (int i = 0; i < 3; i++) {
        if (i)
            stop_quantizing(all[i]);
        plan(all[i], BATCH);
        fill_params(all[i]);
        qat_run const run = i ? train_at(0) : evaluating; /* train mode: the delays hold */
        qat_graph_forward(all[i], &run);
    }
    const qat_node *y = qat_graph_find(g, "bn");
    size_t const n = qat_shape_count(&y->shape);
    check_close("frozen", value_of(training, "bn"), y->value, n, 1e-5);
    check_close("eval", value_of(eval, "bn"), y->value, n, 1e-5);
    observe(training, 1);
    check_params(training, 0, false); /* frozen averages stay */
    qat_graph_free(training);
    qat_graph_free(eval);
}
END_TEST

/**
 * Folded weights are gamma w / s and are then quantized. The eval graph differs from the float
 * graph only as much as 8 bits for weights and activations explain.
 */
START_TEST(test_eval_graph_quantized)
{
    qat_quant_options options = qat_quant_defaults();
    qat_graph *eval;
    options.layout = _i & 1 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    build_bn("conv2d", _i & 2);
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, &err), QAT_OK);
    plan(g, BATCH);
    plan(eval, BATCH);
    fill_params(g);
    fill_params(eval);
    qat_graph_forward(g, &evaluating);
    observe(eval, 0); /* calibration */
    qat_graph_forward(eval, &evaluating);
    const qat_node *w = qat_graph_find(eval, "head/weights");
    const qat_node *folded = qat_graph_find(eval, "head/weights/fold");
    size_t const run = qat_shape_count(&w->shape) / 5;
    for (size_t i = 0; i < 5 * run; i++) {
        double const gamma = (double)value_of(eval, "bn/gamma")[i / run];
        double const v = (double)value_of(eval, "bn/ema_variance")[i / run];
        double const expected = gamma * (double)w->value[i] / sqrt(v + 1e-3);
        ck_assert_double_eq_tol((double)folded->value[i], expected, 1e-6 * fabs(expected));
    }
    const qat_node *y = qat_graph_find(g, "bn");
    check_close("eval", value_of(eval, "bn/q"), y->value, qat_shape_count(&y->shape), 0.03);
    qat_graph_free(eval);
}
END_TEST

/** one_pass: a channel whose gamma is 0 keeps its averages and gives beta. */
START_TEST(test_one_pass_without_gamma)
{
    qat_quant_options options = qat_quant_defaults();
    qat_graph *training;
    options.bn_fold = QAT_FOLD_ONE_PASS;
    build_bn("conv2d", false);
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_OK);
    plan(training, BATCH);
    fill_params(training);
    qat_graph_find(training, "bn/gamma")->value[2] = 0;
    float const mean = value_of(training, "bn/ema_mean")[2];
    float const variance = value_of(training, "bn/ema_variance")[2];
    float const other = value_of(training, "bn/ema_mean")[1];
    qat_run const run = train_at(0);
    qat_graph_forward(training, &run);
    qat_graph_backward(training, qat_graph_find(training, "loss"), &run);
    qat_graph_update(training, &run);
    ck_assert_float_eq(value_of(training, "bn")[2], value_of(training, "bn/beta")[2]);
    ck_assert_float_eq(value_of(training, "bn/ema_mean")[2], mean);
    ck_assert_float_eq(value_of(training, "bn/ema_variance")[2], variance);
    ck_assert(value_of(training, "bn/ema_mean")[1] != other);
    const qat_node *gamma = qat_graph_find(training, "bn/gamma");
    for (int i = 0; i < 5; i++)
        ck_assert(isfinite(gamma->grad[i]) && (i == 2 || gamma->grad[i] != 0));
    qat_graph_free(training);
}
END_TEST

/** The raw convolution is computed only as long as statistics are taken from it. */
START_TEST(test_raw_conv_is_skipped)
{
    qat_quant_options options = qat_quant_defaults();
    qat_graph *training;
    options.weight_delay = 2;
    options.bn_freeze_delay = 4;
    build_bn("conv2d", true);
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_OK);
    plan(training, BATCH);
    fill_params(training);
    for (int step = 0; step < 6; step++) {
        qat_node *raw = qat_graph_find(training, "head/raw");
        qat_node *biased = qat_graph_find(training, "bias/raw");
        qat_run const run = train_at(step);
        raw->value[0] = biased->value[0] = NAN;
        qat_graph_forward(training, &run);
        qat_graph_backward(training, qat_graph_find(training, "loss"), &run);
        qat_graph_update(training, &run);
        bool const computed = step == 2 || step == 3;
        ck_assert_int_eq(isnan(raw->value[0]), !computed);
        ck_assert_int_eq(isnan(biased->value[0]), !computed);
        ck_assert_ptr_null(qat_graph_find_nonfinite(training));
        ck_assert(isfinite(qat_graph_find(training, "head/weights")->grad[0]));
    }
    qat_graph_free(training);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_quant");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_moving_average);
    tcase_add_test(tests, test_first_batch);
    tcase_add_test(tests, test_shared_range);
    tcase_add_test(tests, test_straight_through);
    tcase_add_test(tests, test_given_range_is_checked);
    tcase_add_test(tests, test_large);
    tcase_add_test(tests, test_weights_per_tensor);
    tcase_add_test(tests, test_weights_per_channel);
    tcase_add_test(tests, test_weights_per_channel_of_last_axis);
    tcase_add_loop_test(tests, test_training_form_is_batch_norm, 0, 12);
    tcase_add_loop_test(tests, test_eval_form_is_batch_norm, 0, 12);
    tcase_add_loop_test(tests, test_eval_graph_quantized, 0, 4);
    tcase_add_test(tests, test_one_pass_without_gamma);
    tcase_add_test(tests, test_raw_conv_is_skipped);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}

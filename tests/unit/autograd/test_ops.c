/**
 * Float ops: values are compared with simple loops, the bits are the same for any number of
 * threads, edges, and what is refused.
 */
#include "autograd/loops/gemm.h"
#include "autograd/ops/op.h"
#include "base/parallel.h"
#include "common/suite.h"
#include "unit/autograd/gradient_cases.h"
#include "unit/autograd/naive_ops.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_registry *registry;

static void setup(void)
{
    qat_error err;
    ck_assert_msg(qat_registry_create(&registry, &err) == QAT_OK, "%s", err.message);
}

static void teardown(void)
{
    qat_registry_free(registry);
}

/* ------------------------------------------------------------------ values */

static double largest(const double *y, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(y[i]));
    return most;
}

/* Forward, and every value within 2e-6 of the largest one; false: no naive function. */
static bool check_values(const gradient_case *c, gradient_graph *g)
{
    size_t const n = qat_shape_count(&g->node->shape);
    double *y = malloc(n * sizeof *y);
    ck_assert_ptr_nonnull(y);
    qat_graph_forward(g->graph, &g->run);
    bool const known = naive_forward(g->node, &g->run, y);
    double const bound = known ? 2e-6 * largest(y, n) : 0;
    for (size_t i = 0; known && i < n; i++)
        ck_assert_msg(fabs((double)g->node->value[i] - y[i]) <= bound,
                      "%s \"%s\" batch %d, value %zu: %.9g, should be %.9g", c->op, c->attrs,
                      g->node->shape.dims[0], i, (double)g->node->value[i], y[i]);
    free(y);
    return known;
}

START_TEST(values_equal_naive_loops)
{
    int compared[64] = {0}, ops = 0;
    for (const gradient_case *c = gradient_float_cases; c->op; c++)
        for (int times = 1; times <= 19; times += 18) {
            gradient_graph g = gradient_build(registry, c, times);
            bool const known = check_values(c, &g);
            for (int i = 0; qat_float_ops[i]; i++)
                compared[i] += known && qat_float_ops[i] == g.node->op;
            gradient_free(&g);
        }
    for (; qat_float_ops[ops]; ops++)
        ck_assert_msg(compared[ops] > 0, "%s was not compared", qat_float_ops[ops]->name);
}
END_TEST

/* Planned for more images than are run. */
START_TEST(values_of_a_smaller_batch_equal_naive_loops)
{
    for (const gradient_case *c = gradient_float_cases; c->op; c++) {
        if (c->inputs[0].kind != KIND_DATA)
            continue;
        gradient_graph g = gradient_build(registry, c, 20);
        ck_assert_int_eq(qat_graph_set_batch(g.graph, c->inputs[0].dims[0], NULL), QAT_OK);
        check_values(c, &g);
        qat_graph_backward(g.graph, g.loss, &g.run);
        gradient_free(&g);
    }
}
END_TEST

/* ------------------------------------------------------------------ gradients of large batches */

/* Ops for which f(a x) = a f(x), a > 0, in each input alone, or in all of them together. */
static const char *const each_homogeneous[] = {"conv2d", "depthwise_conv2d", "fully_connected",
                                               "mul", NULL};
static const char *const all_homogeneous[] = {"bias",
                                              "relu",
                                              "add",
                                              "sub",
                                              "concat",
                                              "max_pool2d",
                                              "dropout",
                                              "average_pool2d",
                                              "global_average_pool",
                                              "reshape",
                                              "flatten",
                                              "strided_slice",
                                              "transpose",
                                              "pad",
                                              "leaky_relu",
                                              NULL};

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static double product(const qat_node *node, double *size)
{
    double sum = 0;
    *size = 0;
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        sum += (double)node->value[i] * (double)node->grad[i];
        *size += fabs((double)node->value[i] * (double)node->grad[i]);
    }
    return sum;
}

static void assert_product(const gradient_case *c, double input, double output, double size)
{
    ck_assert_msg(fabs(input - output) <= 1e-5 * size, "%s \"%s\": x dx is %.9g, y dy %.9g (of %g)",
                  c->op, c->attrs, input, output, size);
}

/*
 * Euler's theorem: for such f, the sum of x dx equals the sum of y dy. It is a test for any size.
 * Central differences would take too long here, where the work has many tiles, strips and blocks.
 */
START_TEST(gradients_of_large_batches_obey_euler)
{
    for (const gradient_case *c = gradient_float_cases; c->op; c++) {
        bool const each = is_among(c->op, each_homogeneous);
        if (!each && !is_among(c->op, all_homogeneous))
            continue;
        gradient_graph g = gradient_build(registry, c, 500);
        double size, unused, all = 0;
        qat_graph_forward(g.graph, &g.run);
        qat_graph_backward(g.graph, g.loss, &g.run);
        double const output = product(g.node, &size);
        for (int i = 0; i < g.node->n_inputs; i++) {
            double const input = product(g.node->inputs[i], &unused);
            all += input;
            if (each)
                assert_product(c, input, output, size);
        }
        if (!each)
            assert_product(c, all, output, size);
        gradient_free(&g);
    }
}
END_TEST

/* ------------------------------------------------------------------ threads */

static size_t copy_all(const gradient_graph *g, unsigned char *to)
{
    size_t used = 0;
    for (int i = 0; i < qat_graph_nodes(g->graph); i++) {
        const qat_node *node = qat_graph_node(g->graph, i);
        size_t const bytes = qat_shape_count(&node->shape) * sizeof(qat_real);
        bool const compared = gradient_is_compared(node);
        if (to) {
            memcpy(to + used, node->value, bytes);
            if (compared)
                memcpy(to + used + bytes, node->grad, bytes);
        }
        used += compared ? 2 * bytes : bytes;
    }
    return used;
}

/* Values and gradients after a step with this many threads, and other garbage in scratch that is
 * forgotten. Owned by the caller. */
static unsigned char *step_with(gradient_graph *g, int threads, size_t *bytes)
{
    qat_set_threads(threads);
    qat_graph_forward(g->graph, &g->run);
    if (g->node->op->forgets_scratch)
        memset(g->node->scratch, threads, g->node->scratch_bytes);
    qat_graph_backward(g->graph, g->loss, &g->run);
    *bytes = copy_all(g, NULL);
    unsigned char *copy = malloc(*bytes);
    ck_assert_ptr_nonnull(copy);
    copy_all(g, copy);
    return copy;
}

static void assert_threads_agree(const gradient_case *c, int times)
{
    static const int threads[] = {2, 3, 16};
    gradient_graph g = gradient_build(registry, c, times);
    size_t bytes;
    unsigned char *one = step_with(&g, 1, &bytes);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        unsigned char *more = step_with(&g, threads[i], &bytes);
        ck_assert_msg(memcmp(one, more, bytes) == 0, "%s \"%s\": %d threads give other bits", c->op,
                      c->attrs, threads[i]);
        free(more);
    }
    free(one);
    gradient_free(&g);
}

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    const gradient_case *c;
    for (int n = 0; (c = gradient_case_at(n)); n++) {
        assert_threads_agree(c, 1);
        assert_threads_agree(c, 150); /* several tiles of every op */
    }
}
END_TEST

/* ------------------------------------------------------------------ memory */

enum { GUARD = 256, GUARD_BYTE = 0xa5 };

/* The same content in memory of its own, with guard bytes behind it. */
static void *guarded(const void *content, size_t bytes)
{
    unsigned char *copy = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    ck_assert_ptr_nonnull(copy);
    if (content && bytes)
        memcpy(copy, content, bytes);
    memset(copy + bytes, GUARD_BYTE, GUARD);
    return copy;
}

static void assert_untouched(const gradient_case *c, const char *what, void *memory, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        ck_assert_msg(((unsigned char *)memory)[bytes + i] == GUARD_BYTE,
                      "%s \"%s\" writes %zu bytes behind its %s", c->op, c->attrs, i + 1, what);
    free(memory);
}

START_TEST(no_op_writes_outside_its_memory)
{
    const gradient_case *c;
    for (int n = 0; (c = gradient_case_at(n / 2)); n++) {
        gradient_graph g = gradient_build(registry, c, n % 2 ? 150 : 1);
        qat_node *node = g.node;
        size_t const bytes = qat_shape_count(&node->shape) * sizeof(qat_real);
        node->value = guarded(node->value, bytes);
        node->grad = guarded(node->grad, bytes);
        node->scratch = guarded(node->scratch, node->scratch_bytes);
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i]->grad)
                node->inputs[i]->grad =
                    guarded(node->inputs[i]->grad,
                            qat_shape_count(&node->inputs[i]->shape) * sizeof(qat_real));
        qat_graph_forward(g.graph, &g.run);
        qat_graph_backward(g.graph, g.loss, &g.run);
        assert_untouched(c, "value", node->value, bytes);
        assert_untouched(c, "gradient", node->grad, bytes);
        assert_untouched(c, "scratch", node->scratch, node->scratch_bytes);
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i]->grad)
                assert_untouched(c, "input's gradient", node->inputs[i]->grad,
                                 qat_shape_count(&node->inputs[i]->shape) * sizeof(qat_real));
        gradient_free(&g);
    }
}
END_TEST

/* ------------------------------------------------------------------ edges */

/** One op on an input that has a gradient, and the loss (y + 1)^2 / 2. */
struct single {
    qat_graph *graph;
    qat_node *x, *node, *target, *loss;
    qat_run run;
};

static struct single single_op(const char *op, const char *attrs, qat_shape shape)
{
    struct single s = {.run = {.mode = QAT_MODE_TRAIN, .seed = 5}};
    qat_error err;
    ck_assert_int_eq(qat_graph_create(&s.graph, registry, NULL), QAT_OK);
    s.x = qat_graph_input(s.graph, "x", shape);
    qat_graph_want_gradient(s.graph, s.x);
    s.node = qat_apply1(s.graph, op, "node", attrs, s.x);
    if (s.node)
        s.target = qat_graph_input(s.graph, "target", s.node->shape);
    s.loss = qat_apply2(s.graph, "l2_loss", "loss", "", s.node, s.target);
    ck_assert_msg(qat_graph_check(s.graph, &err) == QAT_OK, "%s", err.message);
    ck_assert_msg(qat_graph_plan(s.graph, shape.dims[0], QAT_PLAN_TRAIN, &err) == QAT_OK, "%s",
                  err.message);
    qat_graph_init_params(s.graph, 1);
    for (size_t i = 0; i < qat_shape_count(&s.target->shape); i++)
        s.target->value[i] = -1;
    return s;
}

static void run_single(struct single *s, const float *x)
{
    for (size_t i = 0; x && i < qat_shape_count(&s->x->shape); i++)
        s->x->value[i] = x[i];
    qat_graph_forward(s->graph, &s->run);
    qat_graph_backward(s->graph, s->loss, &s->run);
}

/* 2 x 5 values, of which the targets of two are not known. At a distance
 * of 2 a known one gives 2^2 / 2, 2 - 1/2 and 2 + log(1 + e^-2). */
START_TEST(unknown_targets_have_no_part)
{
    static const struct {
        const char *op;
        double each, slope;
    } losses[] = {{"l2_loss", 2, 2},
                  {"smooth_l1_loss", 1.5, 1},
                  {"sigmoid_cross_entropy", 2.1269280110429727, 0.8807970779778823}};
    qat_graph *g;
    qat_run const run = {.mode = QAT_MODE_TRAIN};
    ck_assert_int_eq(qat_graph_create(&g, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(2, 5));
    qat_node *t = qat_graph_input(g, "t", QAT_SHAPE(2, 5));
    qat_graph_want_gradient(g, x);
    qat_node *loss = qat_apply2(g, losses[_i].op, "loss", "", x, t);
    ck_assert_int_eq(qat_graph_plan(g, 2, QAT_PLAN_TRAIN, NULL), QAT_OK);
    for (int i = 0; i < 10; i++) {
        x->value[i] = 2;
        t->value[i] =
            i == 1 || i == 9 ? NAN : 0; /* both where eight are summed at once and behind */
    }
    qat_graph_forward(g, &run);
    qat_graph_backward(g, loss, &run);
    ck_assert_double_eq_tol((double)loss->value[0], 8 * losses[_i].each / 2, 1e-6);
    for (int i = 0; i < 10; i++)
        ck_assert_double_eq_tol((double)x->grad[i], i == 1 || i == 9 ? 0 : losses[_i].slope / 2,
                                1e-6);
    qat_graph_free(g);
}
END_TEST

/* 2 x 1 x 3 pixels of two classes; of equal logits each known pixel gives log 2, and p - t = +-1/2.
 */
START_TEST(unknown_pixels_have_no_part)
{
    float const labels[] = {0, NAN, 1, NAN, NAN, 0};
    qat_graph *g;
    qat_run const run = {.mode = QAT_MODE_TRAIN};
    ck_assert_int_eq(qat_graph_create(&g, registry, NULL), QAT_OK);
    qat_node *z = qat_graph_input(g, "z", QAT_SHAPE(2, 1, 3, 2));
    qat_node *t = qat_graph_input(g, "t", QAT_SHAPE(2, 1, 3));
    qat_graph_want_gradient(g, z);
    qat_node *loss = qat_apply2(g, "softmax_cross_entropy", "loss", "", z, t);
    ck_assert_int_eq(qat_graph_plan(g, 2, QAT_PLAN_TRAIN, NULL), QAT_OK);
    for (int i = 0; i < 12; i++)
        z->value[i] = 3;
    memcpy(t->value, labels, sizeof labels);
    qat_graph_forward(g, &run);
    qat_graph_backward(g, loss, &run);
    ck_assert_double_eq_tol((double)loss->value[0], log(2), 1e-6);
    for (int i = 0; i < 12; i++) {
        float const label = labels[i / 2];
        double const expected = isnan(label) ? 0 : (i % 2 == (int)label ? -0.5 : 0.5) / 3;
        ck_assert_double_eq_tol((double)z->grad[i], expected, 1e-6);
    }
    for (int i = 0; i < 6; i++) /* none is known: no loss, and no division by 0 */
        t->value[i] = NAN;
    qat_graph_forward(g, &run);
    qat_graph_backward(g, loss, &run);
    ck_assert(loss->value[0] == 0 && z->grad[0] == 0);
    t->value[4] = 2; /* no class */
    qat_graph_forward(g, &run);
    ck_assert(isnan(loss->value[0]));
    qat_graph_free(g);
}
END_TEST

/* The loss is (y + 1)^2 / 2: dy = y + 1, nowhere 0. */
START_TEST(relu_has_no_gradient_at_its_corners)
{
    float const x[] = {-1, 0, 0.5f, 6, 7};
    float const dx[] = {0, 0, 1.5f, 7, 8}, dx6[] = {0, 0, 1.5f, 0, 0};
    struct single r = single_op("relu", "", QAT_SHAPE(1, 5));
    struct single r6 = single_op("relu6", "", QAT_SHAPE(1, 5));
    run_single(&r, x);
    run_single(&r6, x);
    for (int i = 0; i < 5; i++) {
        ck_assert(r.x->grad[i] == dx[i]);
        ck_assert(r6.x->grad[i] == dx6[i]);
    }
    qat_graph_free(r.graph);
    qat_graph_free(r6.graph);
}
END_TEST

#define NAME(op, ...) #op,

START_TEST(nan_passes_through_activations)
{
    static const char *const ops[] = {QAT_ACTIVATIONS(NAME) "softmax"};
    float const x[] = {1, NAN};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct single s = single_op(ops[i], "", QAT_SHAPE(1, 2));
        run_single(&s, x);
        ck_assert_msg(isnan(s.node->value[1]), "%s hides NaN", ops[i]);
        qat_graph_free(s.graph);
    }
}
END_TEST

START_TEST(large_arguments_do_not_overflow)
{
    static const char *const ops[] = {"logistic", "tanh", "softmax"};
    static const float expected[][2] = {{0, 1}, {-1, 1}, {0, 1}};
    float const x[] = {-1e30f, 1e30f};
    for (int i = 0; i < 3; i++) {
        struct single s = single_op(ops[i], "", QAT_SHAPE(1, 2));
        run_single(&s, x);
        ck_assert(s.node->value[0] == expected[i][0] && s.node->value[1] == expected[i][1]);
        ck_assert(isfinite(s.x->grad[0]) && isfinite(s.x->grad[1]));
        qat_graph_free(s.graph);
    }
}
END_TEST

START_TEST(max_pool_sends_the_gradient_to_the_first_maximum)
{
    float const x[] = {1, 3, 3, 3, 2, 2, 2, 2};
    float const dx[] = {0, 4, 0, 0, 3, 0, 0, 0};
    struct single s = single_op("max_pool2d", "kernel=2", QAT_SHAPE(1, 4, 2, 1));
    run_single(&s, x);
    for (int i = 0; i < 8; i++)
        ck_assert(s.x->grad[i] == dx[i]);
    qat_graph_free(s.graph);
}
END_TEST

/* Two taps, a row of four pixels: the extra column of zeros is the one on the right. */
START_TEST(same_padding_puts_the_extra_pixel_last)
{
    float const x[] = {1, 2, 3, 4};
    struct single s = single_op("conv2d", "filters=1 kernel=1 kernel_w=2", QAT_SHAPE(1, 1, 4, 1));
    qat_node *w = qat_graph_find(s.graph, "node/weights");
    w->value[0] = 10;
    w->value[1] = 1;
    run_single(&s, x);
    static const float y[] = {12, 23, 34, 40};
    for (int i = 0; i < 4; i++)
        ck_assert(s.node->value[i] == y[i]);
    qat_graph_free(s.graph);
}
END_TEST

/* The product of its sizes leaves int32; it is not a convolution without a window. */
START_TEST(a_window_may_be_large)
{
    static const int sides[] = {216, 256};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
        int const side = sides[k];
        size_t const n = (size_t)side * (size_t)side;
        char attrs[80];
        snprintf(attrs, sizeof attrs, "filters=2 kernel=%d stride=%d padding=valid", side, side);
        struct single s = single_op("conv2d", attrs, QAT_SHAPE(1, side, side, 1));
        qat_node *w = qat_graph_find(s.graph, "node/weights");
        float *x = malloc(n * sizeof *x);
        ck_assert(x && qat_shape_count(&s.node->shape) == 2);
        for (size_t i = 0; i < n; i++) {
            x[i] = 1;
            w->value[i] = 1;
            w->value[n + i] = 2;
        }
        run_single(&s, x);
        ck_assert(s.node->value[0] == (float)n && s.node->value[1] == (float)(2 * n));
        free(x);
        qat_graph_free(s.graph);
    }
}
END_TEST

static void assert_all(const qat_real *values, const qat_shape *shape, float value)
{
    for (size_t i = 0; i < qat_shape_count(shape); i++)
        ck_assert(values[i] == value);
}

/* Both taps lie in the padding, before and behind the picture. */
START_TEST(a_window_that_sees_only_padding_gives_zero)
{
    static const char *const cases[][2] = {
        {"conv2d", "filters=3 kernel=2 dilation=20"},
        {"depthwise_conv2d", "kernel=2 dilation=20"},
        {"depthwise_conv2d", "kernel=2 dilation=20 multiplier=3"},
    };
    float x[4 * 5 * 2];
    for (int i = 0; i < 4 * 5 * 2; i++)
        x[i] = (float)(i + 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct single s = single_op(cases[i][0], cases[i][1], QAT_SHAPE(1, 4, 5, 2));
        memset(s.node->value, 0x7f, qat_shape_count(&s.node->shape) * sizeof(float));
        memset(s.x->grad, 0x7f, qat_shape_count(&s.x->shape) * sizeof(float));
        run_single(&s, x);
        assert_all(s.node->value, &s.node->shape, 0);
        assert_all(s.x->grad, &s.x->shape, 0);
        assert_all(s.node->inputs[1]->grad, &s.node->inputs[1]->shape, 0);
        qat_graph_free(s.graph);
    }
}
END_TEST

/* ------------------------------------------------------------------ batch norm's averages */

START_TEST(batch_norm_averages_start_with_the_first_batch)
{
    float const first[] = {1, 3, 5, 7}, second[] = {0, 0, 0, 8};
    struct single s = single_op("batch_norm", "momentum=0.75", QAT_SHAPE(4, 1));
    qat_node *mean = qat_graph_find(s.graph, "node/ema_mean");
    qat_node *variance = qat_graph_find(s.graph, "node/ema_variance");
    qat_node *steps = qat_graph_find(s.graph, "node/ema_steps");
    run_single(&s, first);
    ck_assert(mean->value[0] == 0 && variance->value[0] == 1); /* forward is pure */
    qat_graph_update(s.graph, &s.run);
    ck_assert(mean->value[0] == 4 && variance->value[0] == 5 && steps->value[0] == 1);
    run_single(&s, second);
    qat_graph_update(s.graph, &s.run);
    float const keep = (float)(2 / 11.), take = 1 - keep; /* the ramp: (1 + 1) / (10 + 1) */
    float const expected[] = {keep * 4 + take * 2, keep * 5 + take * 12};
    ck_assert(mean->value[0] == expected[0] && variance->value[0] == expected[1]);
    s.run.mode = QAT_MODE_EVAL;
    run_single(&s, first);
    qat_graph_update(s.graph, &s.run);
    ck_assert(mean->value[0] == expected[0] && steps->value[0] == 2);
    ck_assert_double_eq_tol((double)s.node->value[0],
                            (1 - (double)expected[0]) / sqrt((double)expected[1] + 1e-3), 1e-6);
    qat_graph_free(s.graph);
}
END_TEST

/* After the ramp the momentum decides. */
START_TEST(batch_norm_averages_follow_the_momentum)
{
    float const first[] = {1, 3, 5, 7}, second[] = {0, 0, 0, 8};
    struct single s = single_op("batch_norm", "momentum=0.75", QAT_SHAPE(4, 1));
    qat_node *mean = qat_graph_find(s.graph, "node/ema_mean");
    qat_graph_find(s.graph, "node/ema_steps")->value[0] = 26; /* (1 + 26) / (10 + 26) = 0.75 */
    mean->value[0] = 4;
    run_single(&s, second);
    qat_graph_update(s.graph, &s.run);
    ck_assert(mean->value[0] == 0.75f * 4 + 0.25f * 2);
    run_single(&s, first);
    qat_graph_update(s.graph, &s.run);
    ck_assert(mean->value[0] == 0.75f * (0.75f * 4 + 0.25f * 2) + 0.25f * 4);
    qat_graph_free(s.graph);
}
END_TEST

/**
 * A short run with the default momentum, 0.99: 100 batches whose mean rises from 0 to 99. The
 * average is near the last ones. Without the ramp, the first batch alone would count for 37 %.
 */
START_TEST(batch_norm_averages_forget_the_beginning)
{
    struct single s = single_op("batch_norm", "", QAT_SHAPE(4, 1));
    qat_node *mean = qat_graph_find(s.graph, "node/ema_mean");
    for (int step = 0; step < 100; step++) {
        float const x[] = {(float)step - 1, (float)step, (float)step, (float)step + 1};
        run_single(&s, x);
        qat_graph_update(s.graph, &s.run);
    }
    ck_assert_msg(mean->value[0] > 85, "%g", (double)mean->value[0]);
    qat_graph_free(s.graph);
}
END_TEST

/* A channel that is constant and far from 0: no negative variance, no NaN. */
START_TEST(batch_norm_of_a_constant_is_beta)
{
    struct single s = single_op("batch_norm", "", QAT_SHAPE(1000, 1));
    for (int i = 0; i < 1000; i++)
        s.x->value[i] = 1000.1f;
    run_single(&s, NULL);
    for (int i = 0; i < 1000; i++)
        ck_assert(fabsf(s.node->value[i]) < 1e-2f);
    qat_graph_free(s.graph);
}
END_TEST

/* ------------------------------------------------------------------ dropout */

enum { DROPS = 40000 };

static int kept_of(struct single *s)
{
    int kept = 0;
    run_single(s, NULL);
    for (int i = 0; i < DROPS; i++) {
        ck_assert(s->node->value[i] == 0 || s->node->value[i] == 1 / 0.7f);
        ck_assert((s->x->grad[i] == 0) == (s->node->value[i] == 0));
        kept += s->node->value[i] != 0;
    }
    return kept;
}

START_TEST(dropout_is_a_function_of_seed_and_step)
{
    struct single s = single_op("dropout", "rate=0.3", QAT_SHAPE(1, DROPS));
    float *before = malloc(DROPS * sizeof *before);
    ck_assert_ptr_nonnull(before);
    for (int i = 0; i < DROPS; i++)
        s.x->value[i] = 1;
    ck_assert_int_lt(abs(kept_of(&s) - DROPS * 7 / 10), 500); /* five standard deviations */
    memcpy(before, s.node->value, DROPS * sizeof *before);
    kept_of(&s);
    ck_assert(memcmp(before, s.node->value, DROPS * sizeof *before) == 0);
    s.run.step = 1;
    kept_of(&s);
    ck_assert(memcmp(before, s.node->value, DROPS * sizeof *before) != 0);
    s.run.step = 0;
    s.run.seed = 6;
    kept_of(&s);
    ck_assert(memcmp(before, s.node->value, DROPS * sizeof *before) != 0);
    s.run.mode = QAT_MODE_EVAL;
    run_single(&s, NULL);
    for (int i = 0; i < DROPS; i++)
        ck_assert(s.node->value[i] == 1);
    free(before);
    qat_graph_free(s.graph);
}
END_TEST

/* ------------------------------------------------------------------ labels */

START_TEST(labels_that_are_no_class_give_nan)
{
    float const bad[] = {-1, 3, 1e30f, -1e30f, NAN, INFINITY};
    static const gradient_case c = {
        .op = "softmax_cross_entropy",
        .attrs = "",
        .inputs = {INPUT(FILL_PLAIN, KIND_DATA, 2, 3), INPUT(FILL_LABELS, KIND_FIXED, 2)}};
    gradient_graph g = gradient_build(registry, &c, 1);
    qat_node *label = qat_graph_find(g.graph, "in1"), *z = qat_graph_find(g.graph, "in0");
    qat_graph_forward(g.graph, &g.run);
    ck_assert(isfinite(g.loss->value[0]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        label->value[1] = bad[i];
        qat_graph_forward(g.graph, &g.run);
        qat_graph_backward(g.graph, g.loss, &g.run);
        ck_assert(isnan(g.loss->value[0]));
        ck_assert(isfinite(z->grad[0]) && isnan(z->grad[3]));
    }
    gradient_free(&g);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static const struct refusal {
    const char *op, *attrs;
    gradient_input inputs[3];
    const char *words[4]; /* all must be in the message */
} refusals[] = {
#define IN(...) INPUT(FILL_PLAIN, KIND_FIXED, __VA_ARGS__)
    {"conv2d", "filters=2", {IN(1, 28, 28)}, {"node", "conv2d", "[1, 28, 28]"}},
    {"conv2d",
     "filters=2 kernel=5 padding=valid",
     {IN(1, 4, 8, 3)},
     {"node", "conv2d", "5x5", "[1, 4, 8, 3]"}},
    {"conv2d",
     "filters=2 kernel=3 dilation=4 padding=valid",
     {IN(1, 8, 9, 3)},
     {"3x3", "4x4", "[1, 8, 9, 3]"}},
    {"conv2d", "filters=4 groups=2", {IN(1, 4, 4, 3)}, {"2 groups", "3 channels", "4 filters"}},
    {"conv2d", "kernel=3", {IN(1, 4, 4, 3)}, {"filters"}},
    {"depthwise_conv2d", "", {IN(1, 28)}, {"depthwise_conv2d", "[1, 28]"}},
    {"fully_connected", "", {IN(1, 28)}, {"units"}},
    {"batch_norm", "", {IN(4)}, {"batch_norm", "[4]"}},
    {"add", "", {IN(1, 4, 4, 3), IN(1, 4, 4, 2)}, {"[1, 4, 4, 3]", "[1, 4, 4, 2]"}},
    {"mul", "", {IN(1, 4), IN(1, 4, 1)}, {"[1, 4]", "[1, 4, 1]"}},
    {"add", "", {IN(1, 4), IN(2, 4)}, {"[1, 4]", "[2, 4]"}},
    {"concat", "axis=1", {IN(1, 4, 4, 3), IN(1, 4, 5, 3)}, {"[1, 4, 5, 3]", "axis 1"}},
    {"concat", "", {IN(1, 4, 3), IN(1, 3)}, {"[1, 3]", "[1, 4, 3]"}},
    {"concat", "axis=0", {IN(1, 4), IN(1, 4)}, {"axis 0", "[1, 4]"}},
    {"concat", "axis=2", {IN(1, 4), IN(1, 4)}, {"axis 2", "[1, 4]"}},
    {"max_pool2d", "kernel=9", {IN(1, 8, 8, 3)}, {"max_pool2d", "9x9", "[1, 8, 8, 3]"}},
    {"average_pool2d", "", {IN(1, 8, 8)}, {"[1, 8, 8]"}},
    {"global_average_pool", "", {IN(1, 8)}, {"[1, 8]"}},
    {"reshape", "d1=5 d2=2", {IN(1, 3, 4)}, {"[1, 3, 4]", "[1, 5, 2]"}},
    {"reshape", "d1=2147483647 d2=2147483647 d3=2147483647", {IN(1, 3)}, {"[1, 3]"}},
    {"softmax_cross_entropy", "", {IN(1, 3), IN(2)}, {"[1, 3]", "[2]"}},
    {"distillation", "", {IN(1), IN(1, 3), IN(1, 4)}, {"[1, 3]", "[1, 4]"}},
    {"distillation", "", {IN(1, 2), IN(1, 3), IN(1, 3)}, {"[1, 2]"}},
    {"loss_sum", "", {IN(1), IN(1, 3)}, {"input 1 is [1, 3], not a scalar"}},
    {"softmax_cross_entropy", "", {IN(1, 3, 3, 3), IN(1)}, {"[1, 3, 3, 3]"}},
    {"sigmoid_cross_entropy", "", {IN(1, 3), IN(1, 4)}, {"[1, 3]", "[1, 4]"}},
    {"l2_loss", "", {IN(1, 3), IN(1, 4)}, {"[1, 3]", "[1, 4]"}},
#undef IN
};

START_TEST(impossible_shapes_are_refused_with_their_numbers)
{
    const struct refusal *r = &refusals[_i];
    qat_graph *graph;
    qat_node *inputs[3];
    qat_error err;
    int n = 0;
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    for (; n < 3 && r->inputs[n].fill; n++) {
        char name[16];
        int rank = 0;
        while (rank < QAT_MAX_RANK && r->inputs[n].dims[rank])
            rank++;
        snprintf(name, sizeof name, "in%d", n);
        inputs[n] = qat_graph_input(graph, name, qat_shape_of(r->inputs[n].dims, rank));
    }
    ck_assert_ptr_null(qat_apply(graph, r->op, "node", r->attrs, n, inputs));
    ck_assert_int_ne(qat_graph_check(graph, &err), QAT_OK);
    for (int i = 0; i < 4 && r->words[i]; i++)
        ck_assert_msg(strstr(err.message, r->words[i]) != NULL, "no '%s' in: %s", r->words[i],
                      err.message);
    printf("%s\n", err.message);
    qat_graph_free(graph);
}
END_TEST

/* ------------------------------------------------------------------ products */

START_TEST(double_products_of_integers_are_exact)
{
    enum { N = 67 };
    static double a[N * N], b[N * N], c[N * N];
    ck_assert_int_eq(qat_gemm_prepare(NULL), QAT_OK);
    for (int i = 0; i < N * N; i++) {
        a[i] = i * 7919 % 511 - 255;
        b[i] = i * 104729 % 511 - 255;
    }
    qat_gemm_f64(QAT_AS_IS, QAT_TRANSPOSED, N, N, N, a, N, b, N, 0, c, N);
    for (int i = 0; i < N * N; i++) {
        int64_t sum = 0;
        for (int k = 0; k < N; k++)
            sum += (int64_t)a[i / N * N + k] * (int64_t)b[i % N * N + k];
        ck_assert(c[i] == (double)sum);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ops");
    TCase *tcase = tcase_create("ops");
    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, values_equal_naive_loops);
    tcase_add_test(tcase, values_of_a_smaller_batch_equal_naive_loops);
    tcase_add_test(tcase, gradients_of_large_batches_obey_euler);
    tcase_add_test(tcase, any_number_of_threads_gives_the_same_bits);
    tcase_add_test(tcase, no_op_writes_outside_its_memory);
    tcase_add_test(tcase, relu_has_no_gradient_at_its_corners);
    tcase_add_loop_test(tcase, unknown_targets_have_no_part, 0, 3);
    tcase_add_test(tcase, unknown_pixels_have_no_part);
    tcase_add_test(tcase, nan_passes_through_activations);
    tcase_add_test(tcase, large_arguments_do_not_overflow);
    tcase_add_test(tcase, max_pool_sends_the_gradient_to_the_first_maximum);
    tcase_add_test(tcase, same_padding_puts_the_extra_pixel_last);
    tcase_add_test(tcase, a_window_may_be_large);
    tcase_add_test(tcase, a_window_that_sees_only_padding_gives_zero);
    tcase_add_test(tcase, batch_norm_averages_start_with_the_first_batch);
    tcase_add_test(tcase, batch_norm_averages_follow_the_momentum);
    tcase_add_test(tcase, batch_norm_averages_forget_the_beginning);
    tcase_add_test(tcase, batch_norm_of_a_constant_is_beta);
    tcase_add_test(tcase, dropout_is_a_function_of_seed_and_step);
    tcase_add_test(tcase, labels_that_are_no_class_give_nan);
    tcase_add_loop_test(tcase, impossible_shapes_are_refused_with_their_numbers, 0,
                        (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tcase, double_products_of_integers_are_exact);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

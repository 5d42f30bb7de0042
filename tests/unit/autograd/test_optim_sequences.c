/**
 * Compares optimizers, clipping and averages with closed forms, for gradients that do not change,
 * or stop. A parameter has two values, and the test chooses the gradient. Bounds are relative to
 * the distance that a value went: 1e-5, about a hundred roundings of float32.
 */
#include "base/parallel.h"
#include "common/suite.h"
#include "common/toy_ops.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *graph;
static qat_optimizer *optimizer;
static qat_node *pair, *rest;

enum { REST = 70000 }; /* several tiles */

static void setup(void)
{
    qat_error err;
    qat_param_def def = {.name = "pair", .shape = QAT_SHAPE(2), .trainable = true, .decay = true};
    registry = toy_registry();
    optimizer = NULL;
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    pair = qat_graph_param(graph, &def);
    def = (qat_param_def){.name = "rest", .shape = QAT_SHAPE(REST), .trainable = true};
    rest = qat_graph_param(graph, &def);
    ck_assert_msg(!qat_graph_plan(graph, 1, QAT_PLAN_TRAIN, &err), "%s", err.message);
}

static void teardown(void)
{
    qat_optimizer_free(optimizer);
    qat_graph_free(graph);
    qat_registry_free(registry);
}

static void create(qat_optimizer_options options)
{
    qat_error err;
    pair->value[0] = 1;
    pair->value[1] = -2;
    ck_assert_msg(!qat_optimizer_create(&optimizer, graph, &options, &err), "%s", err.message);
}

static void steps(int n, double rate, double g0, double g1)
{
    for (int i = 0; i < n; i++) {
        pair->grad[0] = (qat_real)g0;
        pair->grad[1] = (qat_real)g1;
        qat_optimizer_step(optimizer, rate);
    }
}

static void close_to(double x, double expected, double way)
{
    ck_assert_double_eq_tol(x, expected, 1e-5 * fabs(way));
}

/** sum of mu^0 ... mu^(n-1) */
static double geometric(double mu, int n)
{
    return (1 - pow(mu, n)) / (1 - mu);
}

enum { STEPS = 25 };
static double const rate = 0.01;

START_TEST(sgd_under_a_constant_gradient)
{
    double const mu = 0.9, g = 0.5;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.nesterov = _i;
    create(o);
    steps(STEPS, rate, g, 0);
    /* velocities g (1 - mu^t) / (1 - mu), summed */
    double const velocities = g * (STEPS - mu * geometric(mu, STEPS)) / (1 - mu);
    double const way = rate * (_i ? STEPS * g + mu * velocities : velocities);
    close_to((double)pair->value[0], 1 - way, way);
    ck_assert_double_eq((double)pair->value[1], -2);
}
END_TEST

/**
 * Without a gradient, w (1 - rate decay)^n remains: with SGD by L2, with AdamW by its own decay.
 */
START_TEST(weight_decay_alone_is_geometric)
{
    qat_optimizer_options o = qat_optimizer_defaults(_i ? QAT_OPTIMIZER_ADAMW : QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    o.weight_decay = 0.5;
    create(o);
    steps(STEPS, rate, 0, 0);
    double const left = pow(1 - rate * 0.5, STEPS);
    close_to((double)pair->value[0], left, 1 - left);
    close_to((double)pair->value[1], -2 * left, 1 - left);
}
END_TEST

/** At every step m' = g and v' = g^2, so Adam moves by rate g / (|g| + epsilon). */
START_TEST(adam_under_a_constant_gradient)
{
    double const g = 0.25, epsilon = 0.05, unit = g / (g + epsilon);
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_ADAM);
    o.epsilon = epsilon;
    create(o);
    steps(STEPS, rate, g, -g);
    close_to((double)pair->value[0], 1 - STEPS * rate * unit, STEPS * rate);
    close_to((double)pair->value[1], -2 + STEPS * rate * unit, STEPS * rate);
}
END_TEST

/**
 * The same with decay: w' = (1 - rate decay) w - rate unit. This converges geometrically to -unit /
 * decay.
 */
START_TEST(adamw_under_a_constant_gradient)
{
    double const g = 0.25, epsilon = 0.05, unit = g / (g + epsilon), decay = 0.5;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_ADAMW);
    o.epsilon = epsilon;
    o.weight_decay = decay;
    create(o);
    steps(STEPS, rate, g, -g);
    double const left = pow(1 - rate * decay, STEPS), end = unit / decay;
    close_to((double)pair->value[0], (1 + end) * left - end, 1);
    close_to((double)pair->value[1], (-2 - end) * left + end, 1);
}
END_TEST

/** s = g^2 + (initial - g^2) decay^t; without momentum the way is a sum of rate g / sqrt(s +
 * epsilon); with momentum and initial = g^2, where s stays, that of SGD with a constant gradient.
 */
START_TEST(rmsprop_under_a_constant_gradient)
{
    double const g = 0.5, g1 = 2;
    double way = 0;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_RMSPROP);
    ck_assert_double_eq(o.decay, 0.9);
    ck_assert_double_eq(o.momentum, 0.9);
    ck_assert_double_eq(o.epsilon, 1);
    ck_assert_double_eq(o.initial, 1);
    o.momentum = 0;
    create(o);
    steps(STEPS, rate, g, 0);
    for (int t = 1; t <= STEPS; t++)
        way += rate * g / sqrt(g * g + (1 - g * g) * pow(0.9, t) + 1);
    close_to((double)pair->value[0], 1 - way, way);
    qat_optimizer_free(optimizer);
    o.momentum = 0.9;
    o.initial = g1 * g1;
    create(o);
    steps(STEPS, rate, 0, g1);
    double const unit = g1 / sqrt(g1 * g1 + 1);
    way = rate * unit * (STEPS - 0.9 * geometric(0.9, STEPS)) / 0.1;
    close_to((double)pair->value[1], -2 - way, way);
}
END_TEST

/** s = initial + t g^2 */
START_TEST(adagrad_under_a_constant_gradient)
{
    double const g = 0.5;
    double way = 0;
    qat_optimizer_options const o = qat_optimizer_defaults(QAT_OPTIMIZER_ADAGRAD);
    ck_assert_double_eq(o.initial, 0.1);
    create(o);
    steps(STEPS, rate, g, 0);
    for (int t = 1; t <= STEPS; t++)
        way += rate * g / sqrt(0.1 + t * g * g);
    close_to((double)pair->value[0], 1 - way, way);
    ck_assert_double_eq((double)pair->value[1], -2);
}
END_TEST

/* ------------------------------------------------------------------ averages */

/** Parameters move by s in each step. Their average lags behind by s (d + d^2 + ... + d^n). */
START_TEST(an_average_lags_behind_a_steady_walk)
{
    double const d = 0.875, g = 0.5, stride = rate * g;
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    o.average_decay = d;
    create(o);
    ck_assert_double_eq((double)qat_optimizer_average(optimizer, pair)[1], -2);
    pair->value[1] = 3; /* set after the creation: averages begin with it all the same */
    steps(STEPS, rate, g, 0);
    const qat_real *average = qat_optimizer_average(optimizer, pair);
    close_to((double)average[0], 1 - STEPS * stride + stride * d * geometric(d, STEPS), 1);
    ck_assert_double_eq((double)average[1], 3);
}
END_TEST

/** One jump from 1 to 0, then rest: what is left of 1 is the product of the decays; of a ramp
 *  (1 + t) / (10 + t) that is 10! (n + 1)! / (n + 10)!, up to the step where decay is smaller. */
START_TEST(a_ramp_forgets_the_beginning)
{
    enum { RAMP = 8 }; /* (1 + 8) / (10 + 8) = 0.5: from the next step on decay counts */
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    o.average_decay = 0.5;
    o.average_ramp = true;
    create(o);
    const qat_real *average = qat_optimizer_average(optimizer, pair);
    steps(1, 1, 1, 0);
    ck_assert_double_eq((double)pair->value[0], 0);
    close_to((double)average[0], 2.0 / 11, 1);
    steps(RAMP - 1, 1, 0, 0);
    double left = 1;
    for (int k = 2; k <= 10; k++) /* 10! / ((n + 2) ... (n + 10)) */
        left *= (double)k / (RAMP + k);
    ck_assert_double_eq_tol((double)average[0], left, 1e-6 * left);
    steps(3, 1, 0, 0);
    ck_assert_double_eq_tol((double)average[0], left / 8, 1e-6 * left);
}
END_TEST

/* ------------------------------------------------------------------ clipping, rates */

START_TEST(the_norm_counts_all_parameters)
{
    long double sum = 9 + 16;
    double first = 0;
    create(qat_optimizer_defaults(QAT_OPTIMIZER_SGD));
    pair->grad[0] = 3;
    pair->grad[1] = -4;
    memset(rest->grad, 0, REST * sizeof *rest->grad);
    ck_assert_double_eq(qat_optimizer_gradient_norm(optimizer), 5);
    for (int i = 0; i < REST; i++) {
        rest->grad[i] = (qat_real)sin(i);
        sum += (long double)rest->grad[i] * (long double)rest->grad[i];
    }
    for (int threads = 1; threads <= 4; threads++) {
        qat_set_threads(threads);
        double const norm = qat_optimizer_gradient_norm(optimizer);
        first = threads == 1 ? norm : first;
        ck_assert_double_eq(norm, first);
    }
    ck_assert_double_eq_tol(first, (double)sqrtl(sum), 1e-13 * first);
}
END_TEST

START_TEST(a_large_gradient_is_scaled_to_the_norm)
{
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    o.weight_decay = 0.5; /* is not part of the norm */
    o.clip_norm = 1;
    create(o);
    memset(rest->grad, 0, REST * sizeof *rest->grad);
    steps(1, 1, 3, -4);
    ck_assert_double_eq_tol((double)pair->value[0], 1 - 0.6 - 0.5, 1e-6);
    ck_assert_double_eq_tol((double)pair->value[1], -2 + 0.8 + 1, 1e-6);
    ck_assert_double_eq_tol(qat_optimizer_gradient_norm(optimizer), 1, 1e-6);
    o.weight_decay = 0;
    qat_optimizer_free(optimizer);
    create(o);
    steps(1, 1, 0, 1.5);
    ck_assert_double_eq_tol((double)pair->value[1], -3, 1e-6);
    pair->value[0] = 0;
    steps(1, 1, 0.75, 0.5);
    ck_assert_double_eq((double)pair->value[0], -0.75); /* a small one stays */
}
END_TEST

START_TEST(values_are_clipped_one_by_one)
{
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    o.clip_value = 0.5;
    create(o);
    steps(1, 1, 3, -0.25);
    ck_assert_double_eq((double)pair->value[0], 0.5);
    ck_assert_double_eq((double)pair->value[1], -1.75);
    steps(1, 1, -3, NAN);
    ck_assert_double_eq((double)pair->value[0], 1);
    ck_assert(isnan((double)pair->value[1])); /* and is seen */
}
END_TEST

START_TEST(a_parameter_may_have_its_own_rate)
{
    qat_optimizer_options o = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    o.momentum = 0;
    create(o);
    qat_optimizer_set_rate_scale(optimizer, pair, 0.25);
    rest->value[REST - 1] = 0;
    rest->grad[REST - 1] = 1;
    steps(1, 1, 1, 1);
    ck_assert_double_eq((double)pair->value[0], 0.75);
    ck_assert_double_eq((double)rest->value[REST - 1], -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optim_sequences");
    TCase *tc = tcase_create("optim_sequences");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, sgd_under_a_constant_gradient, 0, 2);
    tcase_add_loop_test(tc, weight_decay_alone_is_geometric, 0, 2);
    tcase_add_test(tc, adam_under_a_constant_gradient);
    tcase_add_test(tc, adamw_under_a_constant_gradient);
    tcase_add_test(tc, rmsprop_under_a_constant_gradient);
    tcase_add_test(tc, adagrad_under_a_constant_gradient);
    tcase_add_test(tc, an_average_lags_behind_a_steady_walk);
    tcase_add_test(tc, a_ramp_forgets_the_beginning);
    tcase_add_test(tc, the_norm_counts_all_parameters);
    tcase_add_test(tc, a_large_gradient_is_scaled_to_the_norm);
    tcase_add_test(tc, values_are_clipped_one_by_one);
    tcase_add_test(tc, a_parameter_may_have_its_own_rate);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

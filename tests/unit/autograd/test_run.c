/** Forward, backward, update, initial values of parameters, and the gradient check. */
#include "common/suite.h"
#include "common/toy_graph.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_error err;
static qat_run const run = {.mode = QAT_MODE_TRAIN};

static void plan(int batch)
{
    ck_assert_msg(!qat_graph_plan(graph, batch, QAT_PLAN_TRAIN, &err), "%s", err.message);
    qat_graph_init_params(graph, 7);
}

static void step(qat_node *loss)
{
    qat_graph_forward(graph, &run);
    qat_graph_backward(graph, loss, &run);
}

static void assert_near(qat_real value, double expected)
{
    ck_assert_double_eq_tol((double)value, expected, 1e-5 * (1 + fabs(expected)));
}

/* ------------------------------------------------------------------ gradients */

START_TEST(gradients_follow_the_chain_rule)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 2));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=1 gain=3", x);
    qat_node *loss =
        qat_apply1(graph, "total", "loss", "", qat_apply1(graph, "square", "s", "", y));
    qat_graph_want_gradient(graph, x);
    plan(1);
    qat_node *w = y->inputs[1], *b = y->inputs[2];
    x->value[0] = (qat_real)0.5, x->value[1] = -2;
    w->value[0] = 3, w->value[1] = (qat_real)0.25;
    b->value[0] = 1;
    for (int repeat = 0; repeat < 2; repeat++) /* gradients do not pile up over steps */
        step(loss);
    double const out = 3 * (0.5 * 3 - 2 * 0.25 + 1); /* loss = out^2 */
    assert_near(loss->value[0], out * out);
    assert_near(w->grad[0], 2 * out * 3 * 0.5);
    assert_near(w->grad[1], 2 * out * 3 * -2);
    assert_near(b->grad[0], 2 * out * 3);
    assert_near(x->grad[0], 2 * out * 3 * 3);
    assert_near(x->grad[1], 2 * out * 3 * 0.25);
}
END_TEST

START_TEST(gradients_of_several_uses_are_added)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 1));
    qat_node *a = qat_apply1(graph, "linear", "a", "units=1", x);
    qat_node *again[] = {a, a->inputs[1], a->inputs[2]};
    qat_node *b = qat_apply(graph, "linear", "b", "units=1", 3, again); /* shares a's parameters */
    qat_node *twice = qat_apply2(graph, "plus", "twice", "", b, b);
    qat_node *sum = qat_apply2(graph, "plus", "sum", "", twice, a);
    qat_node *loss = qat_apply1(graph, "total", "loss", "", sum);
    plan(1);
    qat_node *w = a->inputs[1], *o = a->inputs[2];
    x->value[0] = 5;
    w->value[0] = 3;
    o->value[0] = 2;
    step(loss); /* 2 (w (w x + o) + o) + w x + o */
    assert_near(loss->value[0], 2 * (3 * 17 + 2) + 17);
    assert_near(w->grad[0], 2 * (2 * 3 * 5 + 2) + 5);
    assert_near(o->grad[0], 2 * (3 + 1) + 1);
}
END_TEST

START_TEST(only_what_the_loss_depends_on_gets_a_gradient)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 1));
    qat_node *a = qat_apply1(graph, "linear", "a", "units=1", x);
    qat_node *b = qat_apply1(graph, "linear", "b", "units=1", a);
    qat_node *stop = qat_apply1(graph, "stop", "stop", "", b);
    qat_node *loss_a = qat_apply1(graph, "total", "loss_a", "", a);
    qat_node *loss_b = qat_apply1(graph, "total", "loss_b", "", b);
    qat_node *loss_stop = qat_apply1(graph, "total", "loss_stop", "", stop);
    plan(1);
    x->value[0] = 4;
    for (int repeat = 0; repeat < 2; repeat++) {
        step(loss_b);
        assert_near(a->inputs[1]->grad[0], 4 * (double)b->inputs[1]->value[0]);
        assert_near(b->inputs[2]->grad[0], 1);
        step(loss_a); /* the other loss leaves nothing of the first one's */
        assert_near(a->inputs[1]->grad[0], 4);
        assert_near(b->inputs[1]->grad[0], 0);
        assert_near(b->inputs[2]->grad[0], 0);
        step(loss_stop);
        assert_near(a->inputs[1]->grad[0], 0);
        assert_near(b->inputs[2]->grad[0], 0);
    }
}
END_TEST

START_TEST(a_value_that_nobody_reads_is_not_computed)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 1));
    qat_node *side = qat_apply1(graph, "linear", "side", "units=1", x);
    qat_node *deep = qat_apply1(graph, "square", "deep", "", side);
    qat_node *main_path = qat_apply1(graph, "linear", "main", "units=1", x);
    qat_node *gate = qat_apply2(graph, "gate", "gate", "", main_path, deep);
    qat_node *loss = qat_apply1(graph, "total", "loss", "", gate);
    plan(1);
    x->value[0] = 4;
    for (int64_t s = 0; s < 4; s++) {
        qat_run const at = {.mode = QAT_MODE_TRAIN, .step = s};
        side->value[0] = deep->value[0] = NAN; /* stays where they are not computed */
        qat_graph_forward(graph, &at);
        qat_graph_backward(graph, loss, &at);
        ck_assert_int_eq(isnan(deep->value[0]) != 0, s < 2);
        ck_assert_int_eq(isnan(side->value[0]) != 0, s < 2);
        ck_assert_ptr_null(qat_graph_find_nonfinite(graph));
        assert_near(main_path->inputs[1]->grad[0], 4);
        assert_near(side->inputs[1]->grad[0], s < 2 ? 0 : 2 * (double)side->value[0] * 4);
    }
}
END_TEST

START_TEST(update_changes_state_once_a_step)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 2));
    qat_node *c = qat_apply1(graph, "centre", "c", "", x);
    plan(2);
    for (int i = 0; i < 4; i++)
        x->value[i] = (qat_real)i;
    qat_graph_forward(graph, &run);
    assert_near(c->value[3], 3);
    assert_near(c->inputs[1]->value[0], 0); /* forward changes no state */
    qat_graph_update(graph, &run);
    assert_near(c->inputs[1]->value[0], 1.5);
    qat_graph_forward(graph, &run);
    assert_near(c->value[3], 1.5);
}
END_TEST

START_TEST(the_first_node_that_is_not_finite_is_named)
{
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 2));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=2", x);
    qat_node *z = qat_apply1(graph, "square", "sq", "", y);
    plan(1);
    toy_fill(x, 1);
    qat_graph_forward(graph, &run);
    ck_assert_ptr_null(qat_graph_find_nonfinite(graph));
    z->value[1] = (qat_real)INFINITY;
    ck_assert_ptr_eq(qat_graph_find_nonfinite(graph), z);
    y->inputs[1]->value[3] = (qat_real)NAN;
    ck_assert_ptr_eq(qat_graph_find_nonfinite(graph), y->inputs[1]);
}
END_TEST

/* ------------------------------------------------------------------ parameters */

static qat_param_def param_of(const char *name, qat_init init, int count)
{
    return (qat_param_def){.name = name,
                           .shape = QAT_SHAPE(count),
                           .init = init,
                           .scale = 0.75,
                           .fan_in = 8,
                           .fan_out = 16,
                           .trainable = true};
}

START_TEST(initial_values_have_their_distribution)
{
    enum { N = 100000 };
    qat_param_def const defs[] = {param_of("he", QAT_INIT_HE, N),
                                  param_of("glorot", QAT_INIT_GLOROT, N),
                                  param_of("constant", QAT_INIT_CONSTANT, 3)};
    for (int i = 0; i < 3; i++)
        qat_graph_param(graph, &defs[i]);
    plan(1);
    double const limits[] = {2 * sqrt(2.0 / 8), sqrt(6.0 / 24)};
    /* Variance of a standard normal cut at 2: 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.773741;
     * of a uniform one: limit^2 / 3. */
    double const variances[] = {2.0 / 8 * 0.773741, 6.0 / 24 / 3};
    for (int i = 0; i < 2; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        double sum = 0, square = 0, largest = 0;
        for (int k = 0; k < N; k++) {
            sum += (double)node->value[k];
            square += (double)node->value[k] * (double)node->value[k];
            largest = fmax(largest, fabs((double)node->value[k]));
        }
        /* Five deviations of the mean and of the variance (whose own is below sqrt(2 / N)). */
        ck_assert_double_le(fabs(sum / N), 5 * sqrt(variances[i] / N));
        ck_assert_double_le(fabs(square / N / variances[i] - 1), 5 * sqrt(2.0 / N));
        ck_assert_double_le(largest, limits[i] * (1 + 1e-6));
        ck_assert_double_ge(largest, limits[i] * 0.99);
    }
    ck_assert(qat_graph_find(graph, "constant")->value[2] == (qat_real)0.75);
}
END_TEST

START_TEST(initial_values_depend_on_name_and_seed_alone)
{
    qat_graph *other;
    qat_param_def const def = param_of("w", QAT_INIT_HE, 50);
    qat_param_def const before = param_of("before", QAT_INIT_HE, 9);
    ck_assert_int_eq(qat_graph_create(&other, registry, NULL), QAT_OK);
    qat_graph_param(other, &before);
    qat_node *a = qat_graph_param(graph, &def), *b = qat_graph_param(other, &def);
    plan(1);
    ck_assert_int_eq(qat_graph_plan(other, 4, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(other, 7);
    ck_assert_mem_eq(a->value, b->value, 50 * sizeof(qat_real));
    ck_assert(memcmp(a->value, qat_graph_find(other, "before")->value, 9 * sizeof(qat_real)) != 0);
    qat_graph_init_params(other, 8);
    ck_assert(memcmp(a->value, b->value, 50 * sizeof(qat_real)) != 0);
    qat_graph_free(other);
}
END_TEST

START_TEST(parameters_of_equal_name_and_shape_are_copied)
{
    qat_graph *other;
    qat_param_def const same = param_of("same", QAT_INIT_HE, 5);
    qat_param_def const here = param_of("differs", QAT_INIT_CONSTANT, 5);
    qat_param_def const there = param_of("differs", QAT_INIT_HE, 6);
    ck_assert_int_eq(qat_graph_create(&other, registry, NULL), QAT_OK);
    qat_node *a = qat_graph_param(graph, &same), *c = qat_graph_param(graph, &here);
    qat_graph_input(other, "x", QAT_SHAPE(1));
    qat_node *b = qat_graph_param(other, &same);
    qat_graph_param(other, &there);
    plan(1);
    ck_assert_int_eq(qat_graph_plan(other, 4, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(other, 8);
    ck_assert_int_eq(qat_graph_copy_params(graph, other), 1);
    ck_assert_mem_eq(a->value, b->value, 5 * sizeof(qat_real));
    ck_assert(c->value[0] == (qat_real)0.75);
    qat_graph_free(other);
}
END_TEST

/* ------------------------------------------------------------------ the gradient check */

START_TEST(the_gradient_check_passes_what_is_right)
{
    qat_gradcheck_result result;
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 5));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=4", x);
    qat_node *loss =
        qat_apply1(graph, "total", "loss", "", qat_apply1(graph, "square", "s", "", y));
    qat_graph_want_gradient(graph, x);
    plan(3);
    toy_fill(x, 2);
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1e-2, 7, &result, &err), QAT_OK);
    double const bound = sizeof(qat_real) == sizeof(double) ? 1e-9 : 1e-3;
    ck_assert_msg(result.max_error < bound, "%g at %s", result.max_error, result.worst);
    ck_assert(result.max_gradient > 0.1 && strchr(result.worst, '['));
}
END_TEST

START_TEST(the_gradient_check_finds_what_is_wrong)
{
    qat_gradcheck_result result;
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 1));
    qat_node *y = qat_apply1(graph, "linear", "fc", "units=1", x);
    qat_node *lie = qat_apply1(graph, "lying", "lie", "", y);
    qat_node *loss = qat_apply1(graph, "total", "loss", "", lie);
    qat_node *stopped =
        qat_apply1(graph, "total", "stopped", "", qat_apply1(graph, "stop", "stop", "", y));
    plan(1);
    x->value[0] = (qat_real)0.25;
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1e-2, 9, &result, &err), QAT_OK);
    ck_assert_double_eq_tol(result.max_error, 0.2, 1e-3); /* 2.5 for 2 */
    ck_assert_double_eq_tol(result.max_gradient, 2.5, 1e-3);
    ck_assert_int_eq(strncmp(result.worst, "fc/", 3), 0);
    ck_assert_int_eq(qat_gradcheck(graph, stopped, &run, 1e-2, 9, &result, &err), QAT_OK);
    ck_assert_double_eq_tol(result.max_error, 1, 1e-6); /* analytic 0 */

    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 0, 9, &result, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1, 0, &result, &err), QAT_ERR_ARGUMENT);
    x->value[0] = (qat_real)NAN;
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1e-2, 9, &result, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "fc/"), "%s", err.message);
}
END_TEST

START_TEST(the_gradient_check_needs_something_to_check)
{
    qat_gradcheck_result result;
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 2));
    qat_node *sq = qat_apply1(graph, "square", "sq", "", x);
    qat_node *loss = qat_apply1(graph, "total", "loss", "", sq);
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1e-2, 9, &result, &err), QAT_ERR_STATE);
    plan(1);
    ck_assert_int_eq(qat_gradcheck(graph, sq, &run, 1e-2, 9, &result, &err), QAT_ERR_SHAPE);
    ck_assert_int_eq(qat_gradcheck(graph, loss, &run, 1e-2, 9, &result, &err), QAT_ERR_STATE);
    ck_assert_msg(strstr(err.message, "has a gradient"), "%s", err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *tc = tcase_create("run");
    tcase_add_checked_fixture(tc, toy_graph_setup, toy_graph_teardown);
    tcase_add_test(tc, gradients_follow_the_chain_rule);
    tcase_add_test(tc, gradients_of_several_uses_are_added);
    tcase_add_test(tc, only_what_the_loss_depends_on_gets_a_gradient);
    tcase_add_test(tc, a_value_that_nobody_reads_is_not_computed);
    tcase_add_test(tc, update_changes_state_once_a_step);
    tcase_add_test(tc, the_first_node_that_is_not_finite_is_named);
    tcase_add_test(tc, initial_values_have_their_distribution);
    tcase_add_test(tc, initial_values_depend_on_name_and_seed_alone);
    tcase_add_test(tc, parameters_of_equal_name_and_shape_are_copied);
    tcase_add_test(tc, the_gradient_check_passes_what_is_right);
    tcase_add_test(tc, the_gradient_check_finds_what_is_wrong);
    tcase_add_test(tc, the_gradient_check_needs_something_to_check);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

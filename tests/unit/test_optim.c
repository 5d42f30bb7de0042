/** Optimizers against their equations in double, and what they refuse. */
#include "base/parallel.h"
#include "common/fail_alloc.h"
#include "common/toy_ops.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *graph;
static qat_optimizer *optimizer;
static qat_error err;
static qat_node *decayed, *plain, *frozen;

enum { SMALL = 3, LARGE = 40000 }; /* LARGE: several tiles and a part of one */

/** Three parameters without any op: a large one with decay, a small one without, one not trained.
 */
static void setup(void)
{
    qat_param_def def = {
        .name = "decayed", .shape = QAT_SHAPE(LARGE), .trainable = true, .decay = true};
    registry = toy_registry();
    optimizer = NULL;
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    decayed = qat_graph_param(graph, &def);
    def.name = "frozen";
    def.trainable = false;
    frozen = qat_graph_param(graph, &def);
    def = (qat_param_def){.name = "plain", .shape = QAT_SHAPE(SMALL), .trainable = true};
    plain = qat_graph_param(graph, &def);
    ck_assert_msg(!qat_graph_plan(graph, 1, QAT_PLAN_TRAIN, &err), "%s", err.message);
    toy_fill(decayed, 1);
    toy_fill(plain, 2);
    toy_fill(frozen, 3);
}

static void teardown(void)
{
    qat_optimizer_free(optimizer);
    qat_graph_free(graph);
    qat_registry_free(registry);
}

static void create(qat_optimizer_options options)
{
    qat_optimizer_free(optimizer);
    ck_assert_msg(!qat_optimizer_create(&optimizer, graph, &options, &err), "%s", err.message);
}

/** A gradient that changes from step to step. */
static double gradient(size_t i, int step)
{
    return sin(0.1 * (double)i + step) + 0.3;
}

static void run_steps(int n, double rate)
{
    for (int s = 0; s < n; s++) {
        for (size_t i = 0; i < LARGE; i++)
            decayed->grad[i] = (qat_real)gradient(i, s);
        for (size_t i = 0; i < SMALL; i++)
            plain->grad[i] = (qat_real)gradient(i, s);
        qat_optimizer_step(optimizer, rate);
    }
}

/** The equations, one value at a time. */
static double expected(const qat_optimizer_options *o, double w, size_t i, int steps, double rate,
                       double decay)
{
    double m = 0, v = 0;
    for (int s = 0; s < steps; s++) {
        double const g = gradient(i, s) + decay * w;
        if (o->kind == QAT_OPTIMIZER_SGD) {
            v = o->momentum * v + g;
            w -= rate * (o->nesterov ? g + o->momentum * v : v);
        } else {
            m = o->beta1 * m + (1 - o->beta1) * g;
            v = o->beta2 * v + (1 - o->beta2) * g * g;
            double const m_hat = m / (1 - pow(o->beta1, s + 1));
            double const v_hat = v / (1 - pow(o->beta2, s + 1));
            w -= rate * m_hat / (sqrt(v_hat) + o->epsilon);
        }
    }
    return w;
}

static qat_optimizer_options cases(int i)
{
    qat_optimizer_options o =
        qat_optimizer_defaults(i < 3 ? QAT_OPTIMIZER_SGD : QAT_OPTIMIZER_ADAM);
    o.weight_decay = i == 1 ? 0 : 0.01;
    o.momentum = i == 0 ? 0 : 0.9;
    o.nesterov = i == 2;
    return o;
}

START_TEST(steps_follow_the_equations)
{
    enum { STEPS = 7 };
    double const rate = 0.05;
    qat_optimizer_options const options = cases(_i);
    qat_real *start = malloc(LARGE * sizeof *start), fixed[4], small[SMALL];
    ck_assert_ptr_nonnull(start);
    memcpy(start, decayed->value, LARGE * sizeof *start);
    memcpy(small, plain->value, sizeof small);
    memcpy(fixed, frozen->value, sizeof fixed);
    create(options);
    run_steps(STEPS, rate);
    for (size_t i = 0; i < LARGE; i++)
        ck_assert_double_eq_tol(
            (double)decayed->value[i],
            expected(&options, (double)start[i], i, STEPS, rate, options.weight_decay), 2e-6);
    for (size_t i = 0; i < SMALL; i++)
        ck_assert_double_eq_tol((double)plain->value[i],
                                expected(&options, (double)small[i], i, STEPS, rate, 0), 2e-6);
    ck_assert_mem_eq(fixed, frozen->value, sizeof fixed);
    free(start);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    qat_real *first = malloc(LARGE * sizeof *first);
    ck_assert_ptr_nonnull(first);
    for (int threads = 1; threads <= 4; threads++) {
        qat_set_threads(threads);
        toy_fill(decayed, 1);
        create(cases(3));
        run_steps(3, 0.1);
        if (threads == 1)
            memcpy(first, decayed->value, LARGE * sizeof *first);
        ck_assert_mem_eq(first, decayed->value, LARGE * sizeof *first);
    }
    free(first);
}
END_TEST

START_TEST(state_can_be_saved_and_restored)
{
    create(cases(3));
    ck_assert_int_eq(qat_optimizer_slots(optimizer), 2);
    ck_assert_ptr_null(qat_optimizer_slot(optimizer, frozen, 0));
    ck_assert_ptr_null(qat_optimizer_slot(optimizer, plain, 2));
    run_steps(3, 0.1);
    ck_assert_int_eq(qat_optimizer_steps(optimizer), 3);
    qat_real w[SMALL], slots[2][SMALL], after[SMALL];
    memcpy(w, plain->value, sizeof w);
    for (int s = 0; s < 2; s++)
        memcpy(slots[s], qat_optimizer_slot(optimizer, plain, s), sizeof slots[s]);
    run_steps(1, 0.1);
    memcpy(after, plain->value, sizeof after);

    create(cases(3));
    qat_optimizer_set_steps(optimizer, 3);
    memcpy(plain->value, w, sizeof w);
    for (int s = 0; s < 2; s++)
        memcpy(qat_optimizer_slot(optimizer, plain, s), slots[s], sizeof slots[s]);
    run_steps(1, 0.1);
    ck_assert_mem_eq(plain->value, after, sizeof after);

    create(cases(0));
    ck_assert_int_eq(qat_optimizer_slots(optimizer), 1);
}
END_TEST

START_TEST(bad_options_are_named)
{
    static const struct {
        qat_optimizer_options options;
        const char *words;
    } bad[] = {
        {{.kind = QAT_OPTIMIZER_SGD, .momentum = 1}, "momentum 1"},
        {{.kind = QAT_OPTIMIZER_SGD, .momentum = -0.5}, "momentum -0.5"},
        {{.kind = QAT_OPTIMIZER_SGD, .weight_decay = -1}, "weight decay -1"},
        {{.kind = QAT_OPTIMIZER_SGD, .weight_decay = HUGE_VAL}, "weight decay inf"},
        {{.kind = QAT_OPTIMIZER_ADAM, .beta1 = 1, .beta2 = 0.9, .epsilon = 1}, "beta1 1"},
        {{.kind = QAT_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 2, .epsilon = 1}, "beta2 2"},
        {{.kind = QAT_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.9}, "epsilon 0"},
        {{.kind = (qat_optimizer_kind)7}, "optimizer 7"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(qat_optimizer_create(&optimizer, graph, &bad[i].options, &err),
                         QAT_ERR_ARGUMENT);
        ck_assert_ptr_null(optimizer);
        ck_assert_msg(strstr(err.message, bad[i].words) != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(a_graph_without_gradients_is_refused)
{
    qat_graph *eval;
    qat_optimizer_options const options = cases(0);
    ck_assert_int_eq(qat_graph_create(&eval, registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_optimizer_create(&optimizer, eval, &options, &err), QAT_ERR_STATE);
    ck_assert_int_eq(qat_graph_plan(eval, 1, QAT_PLAN_KEEP, NULL), QAT_OK);
    ck_assert_int_eq(qat_optimizer_create(&optimizer, eval, &options, &err), QAT_ERR_STATE);
    qat_graph_free(eval);
    for (long n = 0; n < 3; n++) {
        test_fail_alloc_after(n);
        qat_status const st = qat_optimizer_create(&optimizer, graph, &options, &err);
        ck_assert(test_fail_alloc_stop());
        ck_assert_int_eq(st, QAT_ERR_NOMEM);
        ck_assert_ptr_null(optimizer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optim");
    TCase *tc = tcase_create("optim");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, steps_follow_the_equations, 0, 4);
    tcase_add_test(tc, threads_do_not_change_a_bit);
    tcase_add_test(tc, state_can_be_saved_and_restored);
    tcase_add_test(tc, bad_options_are_named);
    tcase_add_test(tc, a_graph_without_gradients_is_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int const failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures != 0;
}

/**
 * Compares optimizers with their equations in double, and tests what they refuse. Closed forms of
 * whole sequences are in test_optim_sequences.c.
 */
#include "base/parallel.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
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

/** One value of a parameter and its state, in double. */
typedef struct value {
    double w, a, b, average;
} value;

/** Step t (the first is 1) by the textbook, g being the loss's gradient. */
static void expected_step(value *x, const qat_optimizer_options *o, double g, int t, double rate,
                          double decay)
{
    double const l2 = g + decay * x->w;
    switch (o->kind) {
    case QAT_OPTIMIZER_SGD:
        x->a = o->momentum * x->a + l2;
        x->w -= rate * (o->nesterov ? l2 + o->momentum * x->a : x->a);
        break;
    case QAT_OPTIMIZER_ADAM:
    case QAT_OPTIMIZER_ADAMW: {
        double const used = o->kind == QAT_OPTIMIZER_ADAM ? l2 : g;
        x->a = o->beta1 * x->a + (1 - o->beta1) * used;
        x->b = o->beta2 * x->b + (1 - o->beta2) * used * used;
        double const m = x->a / (1 - pow(o->beta1, t)), v = x->b / (1 - pow(o->beta2, t));
        if (o->kind == QAT_OPTIMIZER_ADAMW)
            x->w *= 1 - rate * decay;
        x->w -= rate * m / (sqrt(v) + o->epsilon);
        break;
    }
    case QAT_OPTIMIZER_RMSPROP:
        x->a = o->decay * x->a + (1 - o->decay) * l2 * l2;
        x->b = o->momentum * x->b + rate * l2 / sqrt(x->a + o->epsilon);
        x->w -= x->b;
        break;
    case QAT_OPTIMIZER_ADAGRAD:
        x->a += l2 * l2;
        x->w -= rate * l2 / sqrt(x->a);
        break;
    case QAT_OPTIMIZERS:
        break;
    }
    x->average = o->average_decay * x->average + (1 - o->average_decay) * x->w;
}

static value expected(const qat_optimizer_options *o, double w, size_t i, int steps, double rate,
                      double decay)
{
    bool const initial = o->kind == QAT_OPTIMIZER_RMSPROP || o->kind == QAT_OPTIMIZER_ADAGRAD;
    value x = {.w = w, .a = initial ? o->initial : 0, .average = w};
    for (int s = 0; s < steps; s++)
        expected_step(&x, o, gradient(i, s), s + 1, rate, decay);
    return x;
}

enum { CASES = 8, ADAM_CASE = 3 };

/** Every rule, with decay and averages or without. */
static qat_optimizer_options cases(int i)
{
    static const qat_optimizer_kind kinds[CASES] = {
        QAT_OPTIMIZER_SGD,   QAT_OPTIMIZER_SGD,     QAT_OPTIMIZER_SGD,     QAT_OPTIMIZER_ADAM,
        QAT_OPTIMIZER_ADAMW, QAT_OPTIMIZER_RMSPROP, QAT_OPTIMIZER_RMSPROP, QAT_OPTIMIZER_ADAGRAD};
    qat_optimizer_options o = qat_optimizer_defaults(kinds[i]);
    o.weight_decay = i == 1 ? 0 : 0.01;
    o.momentum = i == 0 ? 0 : 0.9;
    o.nesterov = i == 2;
    o.average_decay = i > ADAM_CASE ? 0.75 : 0;
    if (i == 6) /* the formula without the paper's constants */
        o.decay = 0.5, o.epsilon = 1e-3, o.initial = 0.25, o.momentum = 0;
    return o;
}

/** Within 2e-6, sixteen units of float32's last place at 1: seven steps of rounding. */
static void check_value(const qat_node *node, size_t i, value x)
{
    const qat_real *average = qat_optimizer_average(optimizer, node);
    ck_assert_double_eq_tol((double)node->value[i], x.w, 2e-6);
    if (average)
        ck_assert_double_eq_tol((double)average[i], x.average, 2e-6);
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
        check_value(decayed, i,
                    expected(&options, (double)start[i], i, STEPS, rate, options.weight_decay));
    for (size_t i = 0; i < SMALL; i++)
        check_value(plain, i, expected(&options, (double)small[i], i, STEPS, rate, 0));
    ck_assert_mem_eq(fixed, frozen->value, sizeof fixed);
    free(start);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    qat_optimizer_options o = cases(_i);
    qat_real *first = malloc(LARGE * sizeof *first);
    ck_assert_ptr_nonnull(first);
    o.clip_norm = 0.5;
    for (int threads = 1; threads <= 4; threads++) {
        qat_set_threads(threads);
        toy_fill(decayed, 1);
        create(o);
        run_steps(3, 0.1);
        if (threads == 1)
            memcpy(first, decayed->value, LARGE * sizeof *first);
        ck_assert_mem_eq(first, decayed->value, LARGE * sizeof *first);
    }
    free(first);
}
END_TEST

/**
 * Another optimizer continues with the slots and steps of the first one, and gives the same bits.
 */
START_TEST(state_can_be_saved_and_restored)
{
    qat_optimizer_options o = cases(_i);
    o.average_decay = _i % 2 ? 0.75 : 0;
    o.average_ramp = true;
    create(o);
    int const n = qat_optimizer_slots(optimizer);
    ck_assert_int_eq(n, (_i >= ADAM_CASE && _i < 7 ? 2 : 1) + _i % 2);
    ck_assert_ptr_null(qat_optimizer_slot(optimizer, frozen, 0));
    ck_assert_ptr_null(qat_optimizer_slot(optimizer, plain, n));
    ck_assert_ptr_eq(qat_optimizer_average(optimizer, plain),
                     _i % 2 ? qat_optimizer_slot(optimizer, plain, n - 1) : NULL);
    run_steps(3, 0.1);
    ck_assert_int_eq(qat_optimizer_steps(optimizer), 3);
    qat_real w[SMALL], slots[3][SMALL], after[SMALL], slots_after[3][SMALL];
    memcpy(w, plain->value, sizeof w);
    for (int s = 0; s < n; s++)
        memcpy(slots[s], qat_optimizer_slot(optimizer, plain, s), sizeof slots[s]);
    run_steps(1, 0.1);
    memcpy(after, plain->value, sizeof after);
    for (int s = 0; s < n; s++)
        memcpy(slots_after[s], qat_optimizer_slot(optimizer, plain, s), sizeof slots[s]);

    create(o);
    qat_optimizer_set_steps(optimizer, 3);
    memcpy(plain->value, w, sizeof w);
    for (int s = 0; s < n; s++)
        memcpy(qat_optimizer_slot(optimizer, plain, s), slots[s], sizeof slots[s]);
    run_steps(1, 0.1);
    ck_assert_mem_eq(plain->value, after, sizeof after);
    for (int s = 0; s < n; s++)
        ck_assert_mem_eq(qat_optimizer_slot(optimizer, plain, s), slots_after[s], sizeof slots[s]);
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
        {{.kind = QAT_OPTIMIZER_ADAMW, .beta1 = 1, .beta2 = 0.9, .epsilon = 1}, "beta1 1"},
        {{.kind = QAT_OPTIMIZER_RMSPROP, .momentum = 1, .initial = 1, .epsilon = 1}, "momentum 1"},
        {{.kind = QAT_OPTIMIZER_RMSPROP, .decay = 1, .initial = 1, .epsilon = 1}, "decay 1"},
        {{.kind = QAT_OPTIMIZER_RMSPROP, .initial = 1}, "epsilon 0"},
        {{.kind = QAT_OPTIMIZER_ADAGRAD, .initial = 0}, "initial 0"},
        {{.kind = QAT_OPTIMIZER_SGD, .average_decay = 1}, "average_decay 1"},
        {{.kind = QAT_OPTIMIZER_SGD, .clip_norm = NAN}, "clip_norm nan"},
        {{.kind = QAT_OPTIMIZER_SGD, .clip_value = -1}, "clip_value -1"},
        {{.kind = QAT_OPTIMIZER_SGD, .clip_norm = 2, .clip_value = 3},
         "clip_norm 2 and clip_value 3"},
        {{.kind = (qat_optimizer_kind)7}, "optimizer 7"},
        {{.kind = (qat_optimizer_kind)-1}, "optimizer -1"},
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
    for (long n = 0; n < 6; n++) {
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
    tcase_add_loop_test(tc, steps_follow_the_equations, 0, CASES);
    tcase_add_loop_test(tc, threads_do_not_change_a_bit, 0, CASES);
    tcase_add_loop_test(tc, state_can_be_saved_and_restored, 0, CASES);
    tcase_add_test(tc, bad_options_are_named);
    tcase_add_test(tc, a_graph_without_gradients_is_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * Anomalies: the AUC of scores, what is learned of which samples, training, evaluation and export,
 * and what is refused.
 */
#include "checkpoint/restore.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "evaluate/data.h"
#include "task/task.h"
#include "unit/task/task_export.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA   "[data]\nkind = digits\ntrain_count = 60\ntest_count = 40\n"
#define BATCH  "[train]\nbatch = 20\nsteps = 6\neval_every = 3\noptimizer = adam\nlr = 0.003\n"
#define MODEL  "[model]\ntask = anomaly\narch = mlp\nhidden = 16, 4, 16\n"
#define QUANT  "[quant]\nenabled = yes\nquant_delay = 2\n"
#define LAYERS "[model]\ntask = anomaly\narch = layers\n"

/* ------------------------------------------------------------------ the figure */

/** The judgement of samples with these scores: of two values, the first is off by its root. */
static qat_status judge(const float *scores, const int32_t *labels, int n, qat_accuracy *a,
                        qat_error *err)
{
    const qat_task *task = &qat_task_anomaly;
    float given[2 * 8] = {0}, back[2 * 8] = {0};
    qat_outputs const outputs = {
        .n = 2, .at = {{.name = "back", .n = 2, .real = back}, {.n = 2, .real = given}}};
    void *pass = NULL;
    for (int i = 0; i < n; i++) {
        given[2 * i] = back[2 * i] = (float)i; /* what is common does not count */
        back[2 * i + 1] = sqrtf(2 * scores[i]);
    }
    qat_status st = task->begin(&pass, &(qat_input_info){.classes = 2}, err);
    if (!st)
        st = task->add(pass, &outputs, &(qat_batch){.count = n, .labels = labels}, n, err);
    if (!st)
        st = task->judge(pass, a, err);
    task->end(pass);
    return st;
}

/* Worked by hand: the share of pairs of an anomaly and a normal sample that are in the right order;
 * equal scores count half. */
START_TEST(auc_by_hand)
{
    static const struct {
        int n;
        float scores[6];
        int32_t labels[6];
        double auc;
    } cases[] = {{4, {2, 8, 18, 32}, {0, 0, 1, 2}, 1},
                 {4, {18, 32, 2, 8}, {0, 0, 1, 2}, 0},
                 {4, {2, 18, 8, 32}, {0, 0, 3, 3}, 0.75},
                 {3, {8, 8, 8}, {0, 9, 0}, 0.5},
                 {5, {2, 8, 8, 8, 18}, {0, 0, 1, 1, 0}, (2 * (1 + 0.5)) / 6},
                 {6, {32, 8, 2, 8, 18, 8}, {1, 0, 0, 1, 1, 0}, (3 + 3 + 1 + 2 * 0.5) / 9},
                 {2, {2, 8}, {0, 0}, -1},
                 {2, {2, 8}, {1, 4}, -1},
                 {0, {0}, {0}, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_accuracy a;
        ck_assert_int_eq(judge(cases[i].scores, cases[i].labels, cases[i].n, &a, NULL), QAT_OK);
        ck_assert(a.task == &qat_task_anomaly && a.n == cases[i].n);
        ck_assert_double_eq_tol(a.figures[0], cases[i].auc, 1e-15);
    }
}
END_TEST

START_TEST(a_score_must_be_finite)
{
    qat_accuracy a;
    qat_error err;
    ck_assert_int_eq(judge((float[]){1, NAN}, (int32_t[]){0, 1}, 2, &a, &err), QAT_ERR_NUMERIC);
    ck_assert_str_eq(err.message, "evaluation: an answer is not finite");
}
END_TEST

START_TEST(lack_of_memory_is_no_figure)
{
    bool failed;
    long n = 0;
    do {
        qat_accuracy a = {0};
        test_fail_alloc_after(n++);
        qat_status const st = judge((float[]){1, 2}, (int32_t[]){0, 1}, 2, &a, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        ck_assert(failed ? !a.n : a.figures[0] == 1);
    } while (failed);
    ck_assert_int_eq(n, 6);
}
END_TEST

/* ------------------------------------------------------------------ all the way */

static const char *const networks[] = {
    DATA BATCH MODEL QUANT, DATA BATCH MODEL QUANT "layout = int8\nprofile = tflite\n",
    DATA BATCH "[model]\ntask = anomaly\nfilters = 4, 6\nhead = flatten\n" QUANT,
    /* pictures in, pictures out */
    DATA BATCH LAYERS "[layer.a]\nop = conv2d\nfilters = 3\nbatch_norm = yes\nactivation = relu\n"
                      "[layer.b]\nop = conv2d\nfilters = 1\nbias = yes\n" QUANT};

START_TEST(autoencoders_train_and_export)
{
    char path[TEST_PATH_MAX];
    qat_restored *c;
    qat_dataset *data;
    qat_train_result result;
    qat_input_info in;
    qat_error err;
    qat_recipe *r = recipe_of(networks[_i]);
    qat_status const st = qat_train(r, &(qat_train_options){.dir = folder}, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert(result.float_accuracy.task == &qat_task_anomaly && result.loss > 0);
    ck_assert(result.float_accuracy.figures[0] >= 0 && result.float_accuracy.figures[0] <= 1);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    ck_assert(in.task == &qat_task_anomaly && in.classes == 28 * 28);
    ck_assert_int_eq(qi_label_count(qi_host_model(host)), 0);
    qat_accuracy const engine = judge_model(host, &in, data);
    ck_assert(exact.n == 40 && engine.n == 40);
    ck_assert(exact.figures[0] == engine.figures[0]);
    ck_assert(exact.figures[0] == result.integer_accuracy.figures[0]);
    qi_host_close(host);
    qat_dataset_close(data);
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

/* The targets of two samples of two values, of which the second is no normal one. */
START_TEST(only_normal_samples_are_learned)
{
    qat_registry *ops;
    qat_graph *graph;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&ops, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&graph, ops, NULL), QAT_OK);
    qat_node *x = qat_graph_input(graph, QAT_INPUT_NAME, QAT_SHAPE(2, 1, 1, 2));
    qat_node *last = qat_apply1(graph, "fully_connected", "last", "units=2", x);
    qat_recipe *r = recipe_of(DATA MODEL);
    qat_net_ends const ends = {.graph = graph, .recipe = r, .last = last};
    ck_assert_msg(qat_task_anomaly.ends(&ends, &err) == QAT_OK, "%s", err.message);
    qat_node *target = qat_graph_find(graph, qat_task_anomaly.target);
    ck_assert_msg(qat_graph_plan(graph, 2, QAT_PLAN_TRAIN, &err) == QAT_OK, "%s", err.message);
    float const real[] = {3, 5, 7, 9};
    int32_t const labels[] = {0, 4};
    qat_batch const batch = {.count = 2, .labels = labels, .real = real};
    ck_assert_int_eq(qat_task_anomaly.feed(NULL, r, graph, &batch, NULL), QAT_OK);
    ck_assert(target->value[0] == 3 && target->value[1] == 5);
    ck_assert(isnan(target->value[2]) && isnan(target->value[3]));
    qat_recipe_free(r);
    qat_graph_free(graph);
    qat_registry_free(ops);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static const struct {
    const char *text, *says;
} refused[] = {
    {"[data]\nkind = faces\ntrain_count = 24\ntest_count = 8\n" BATCH MODEL,
     "model.task = anomaly, but samples of faces/train have no class"},
    {DATA BATCH LAYERS "[layer.out]\nop = fully_connected\nunits = 10\n",
     "the last layer, out, must give as many values as the input has: 784, not 10"},
    {DATA BATCH MODEL "output = softmax\n", "model.output = softmax"},
    {DATA MODEL BATCH "label_smoothing = 0.1\n", "train.label_smoothing"},
    {DATA BATCH MODEL "[distill]\nteacher = none.ckpt\n", "distillation works with classifiers"},
};

START_TEST(what_does_not_go_with_anomalies_is_refused)
{
    refuses_recipe(refused[_i].text, refused[_i].says);
}
END_TEST

/* A class is enough for both, and only a recipe makes it anomalies. */
START_TEST(data_do_not_ask_for_it)
{
    qat_dataset_info const digits = {.classes = 10, .name = "digits"};
    qat_dataset_info const boxes = {.classes = 10, .has_objects = true, .name = "boxes"};
    qat_input_info const own = {.task = &qat_task_anomaly}, classifier = {.classes = 10};
    qat_error err;
    qat_recipe *r = recipe_of(DATA MODEL), *plain = recipe_of(DATA);
    ck_assert(qat_task_for(NULL, r, &digits) == &qat_task_anomaly);
    ck_assert(qat_task_for(NULL, plain, &digits) == &qat_task_classes);
    ck_assert(qat_task_for(NULL, NULL, &digits) == &qat_task_classes);
    for (int judged = 0; judged < 2; judged++) {
        ck_assert_int_eq(qat_task_check_data(&own, &digits, judged, NULL), QAT_OK);
        ck_assert_int_eq(qat_task_check_data(&classifier, &digits, judged, NULL), QAT_OK);
    }
    ck_assert_int_eq(qat_task_check_data(&own, &boxes, true, &err), QAT_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(err.message, "samples without a class"));
    qat_recipe_free(plain);
    qat_recipe_free(r);
}
END_TEST

/* A checkpoint holds no more. */
START_TEST(a_sample_has_at_most_65536_values)
{
    qat_recipe *r = recipe_of(DATA MODEL);
    ck_assert_int_eq(QAT_CHECKPOINT_MAX_CLASSES, 256 * 256);
    for (int more = 0; more < 2; more++) {
        qat_dataset_info const data = {.classes = 10,
                                       .height = 256,
                                       .width = 256 + more,
                                       .channels = 1,
                                       .max = 255,
                                       .type = QAT_SAMPLE_U8};
        qat_input_info in;
        qat_error err = {0};
        ck_assert_int_eq(qat_input_info_of(&in, NULL, r, &data, &err),
                         more ? QAT_ERR_ARGUMENT : QAT_OK);
        ck_assert(!more || strstr(err.message, "answers 65792 values for a sample of 256 x 257"));
    }
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("anomaly");
    TCase *tc = tcase_create("anomaly");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, auc_by_hand);
    tcase_add_test(tc, a_score_must_be_finite);
    tcase_add_test(tc, lack_of_memory_is_no_figure);
    tcase_add_loop_test(tc, autoencoders_train_and_export, 0,
                        (int)(sizeof networks / sizeof *networks));
    tcase_add_test(tc, only_normal_samples_are_learned);
    tcase_add_loop_test(tc, what_does_not_go_with_anomalies_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, data_do_not_ask_for_it);
    tcase_add_test(tc, a_sample_has_at_most_65536_values);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * Labels that may occur together: the figures, the threshold that a validation split chooses, data
 * from arrays and from boxes, training and export, and what is refused.
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

#define DATA                                                                                       \
    "[data]\nkind = scenes\npresence = yes\nheight = 32\ntrain_count = 60\ntest_count = 40\n"
#define BATCH "[train]\nbatch = 20\nsteps = 6\neval_every = 3\noptimizer = adam\nlr = 0.003\n"
#define MODEL "[model]\narch = convnet\nfilters = 4, 6\nstrides = 2\n"
#define QUANT "[quant]\nenabled = yes\nquant_delay = 2\n"

enum { AP, AUC, F1 };

/* ------------------------------------------------------------------ the figures */

/** The judgement of scores for n samples of `each` labels. */
static qat_status judge(const float *scores, const float *truth, int n, int each, float *threshold,
                        bool chooses, qat_accuracy *a, qat_error *err)
{
    const qat_task *task = &qat_task_multi_label;
    qat_outputs const outputs = {.n = 1,
                                 .at = {{.name = "out", .n = (size_t)each, .real = scores}}};
    qat_input_info const in = {.classes = each,
                               .attributes = {.low = *threshold, .width = 1},
                               .chosen = chooses ? threshold : NULL};
    qat_batch const batch = {.count = n, .targets = truth, .n_targets = each};
    void *pass = NULL;
    qat_status st = task->begin(&pass, &in, err);
    if (!st)
        st = task->add(pass, &outputs, &batch, n, err);
    if (!st)
        st = task->judge(pass, a, err);
    task->end(pass);
    return st;
}

/* Means over the labels of which there is a hit. F1 = 2 hits said / (said + all hits). */
START_TEST(figures_by_hand)
{
    static const struct {
        int n, each;
        float scores[8], truth[8];
        double ap, auc, f1;
    } cases[] = {
        {4, 1, {0.9F, 0.8F, 0.3F, 0.1F}, {1, 1, 0, 0}, 1, 1, 1},
        {4, 1, {0.9F, 0.8F, 0.3F, 0.6F}, {1, 0, 1, 0}, (1 + 2 / 4.0) / 2, 0.5, 2 / 5.0},
        {4, 1, {0.9F, 0.8F, 0.3F, 0.6F}, {1, 0, NAN, NAN}, 1, 1, 2 / 3.0},
        {2, 2, {0.9F, 0.2F, 0.4F, 0.3F}, {1, 0, 0, 1}, 1, 1, (1 + 0) / 2.0},
        {2, 2, {0.9F, 0.2F, 0.4F, 0.3F}, {1, 0, 0, 0}, 1, 1, 1},
        {2, 1, {0.9F, 0.2F}, {1, 1}, 1, -1, 2 / 3.0},
        {2, 1, {0.9F, 0.2F}, {0, 0}, -1, -1, -1},
        {1, 1, {0.5F}, {1}, 1, -1, 1}, /* at the threshold it is said */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_accuracy a;
        float threshold = 0.5F;
        ck_assert_int_eq(judge(cases[i].scores, cases[i].truth, cases[i].n, cases[i].each,
                               &threshold, false, &a, NULL),
                         QAT_OK);
        ck_assert(a.task == &qat_task_multi_label && a.n == cases[i].n && threshold == 0.5F);
        ck_assert_double_eq_tol(a.figures[AP], cases[i].ap, 1e-12);
        ck_assert_double_eq_tol(a.figures[AUC], cases[i].auc, 1e-12);
        ck_assert_double_eq_tol(a.figures[F1], cases[i].f1, 1e-12);
    }
}
END_TEST

/* At 0.3, F1 of all labels together is 2 * 3 / (4 + 3); at 0.6 it is 2 * 2 / (3 + 3). */
START_TEST(a_validation_split_chooses_the_threshold)
{
    float const scores[] = {0.9F, 0.6F, 0.7F, 0.3F, 0.1F, 0.2F}, truth[] = {1, 1, 0, 1, 0, 0};
    float threshold = 0.5F;
    qat_accuracy a;
    ck_assert_int_eq(judge(scores, truth, 3, 2, &threshold, true, &a, NULL), QAT_OK);
    ck_assert(threshold == 0.3F);
    ck_assert_double_eq_tol(a.figures[F1], (2 / 3.0 + 1) / 2, 1e-12);
    float const none[] = {0, 0, 0, 0, 0, 0};
    ck_assert_int_eq(judge(scores, none, 3, 2, &threshold, true, &a, NULL), QAT_OK);
    ck_assert(threshold == 0.3F && a.figures[F1] == -1);
}
END_TEST

START_TEST(lack_of_memory_is_no_figure)
{
    bool failed;
    long n = 0;
    do {
        qat_accuracy a = {0};
        float threshold = 0.5F;
        test_fail_alloc_after(n++);
        qat_status const st =
            judge((float[]){0.9F, 0.1F}, (float[]){1, 0}, 2, 1, &threshold, true, &a, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        ck_assert(failed ? !a.n : a.figures[AP] == 1);
    } while (failed);
    ck_assert_int_eq(n, 6);
}
END_TEST

/* ------------------------------------------------------------------ data */

/* A label is there if a box has it; the pictures are the same. */
START_TEST(boxes_become_labels)
{
    qat_dataset_options o = {.kind = "scenes", .height = 32, .train_count = 20};
    qat_dataset *boxes, *labels;
    ck_assert_int_eq(qat_dataset_open(&boxes, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    o.presence = true;
    ck_assert_int_eq(qat_dataset_open(&labels, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    const qat_dataset_info *info = qat_dataset_info_of(labels);
    ck_assert(info->targets == QAT_TARGETS_LABELS && info->n_targets == info->classes);
    ck_assert(!info->has_objects && !qat_dataset_objects(labels, 0));
    ck_assert(qat_task_for(NULL, NULL, info) == &qat_task_multi_label);
    for (int i = 0; i < 20; i++) {
        const qat_objects *found = qat_dataset_objects(boxes, i);
        const float *there = qat_dataset_targets(labels, i);
        for (int c = 0; c < info->classes; c++) {
            bool is_there = false;
            for (int k = 0; k < found->count; k++)
                is_there |= found->truth[k].label == c;
            ck_assert(there[c] == (is_there ? 1 : 0));
        }
    }
    qat_dataset_close(boxes);
    qat_dataset_close(labels);
}
END_TEST

/* ------------------------------------------------------------------ all the way */

static const char *const networks[] = {
    DATA BATCH MODEL QUANT, DATA "validation = 0.25\n" BATCH MODEL QUANT,
    DATA "validation = 0.25\n" BATCH MODEL QUANT "layout = int8\nprofile = tflite\n"};

START_TEST(networks_of_labels_train_and_export)
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
    ck_assert(result.float_accuracy.task == &qat_task_multi_label);
    ck_assert_int_eq(result.float_accuracy.n, _i ? 15 : 40);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    ck_assert(in.task == &qat_task_multi_label && in.classes == 10);
    float const threshold = in.attributes.low;
    ck_assert(threshold == qat_checkpoint_input(qat_restored_checkpoint(c))->attributes.low);
    ck_assert((threshold == 0.5F) == !_i);
    ck_assert_int_eq(qi_label_count(qi_host_model(host)), 10);
    qat_accuracy const engine = judge_model(host, &in, data);
    ck_assert(exact.n == 40 && engine.n == 40);
    for (int i = 0; i <= F1; i++)
        ck_assert(exact.figures[i] == engine.figures[i]);
    qi_host_close(host);
    qat_dataset_close(data);
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

static float threshold_of(const char *simulated)
{
    char text[800];
    qat_train_result result;
    qat_restored *c;
    snprintf(text, sizeof text, "%seval_simulated = %s\n" MODEL QUANT "bn_reestimate = 1\n",
             DATA "validation = 0.25\n" BATCH, simulated);
    qat_recipe *r = recipe_of(text);
    qat_train_options const o = {.dir = folder, .overwrite = true};
    ck_assert_int_eq(qat_train(r, &o, &result, NULL), QAT_OK);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    float const threshold = qat_checkpoint_input(qat_restored_checkpoint(c))->attributes.low;
    qat_restored_free(c);
    qat_recipe_free(r);
    return threshold;
}

/* The simulation's scores are other ones, but the .qm answers the integers'. */
START_TEST(a_simulation_beside_integers_chooses_no_threshold)
{
    ck_assert(threshold_of("yes") == threshold_of("no"));
}
END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {DATA BATCH "[model]\narch = layers\n[layer.out]\nop = fully_connected\nunits = 3\n",
     "but 10 labels need [1, 10]"},
    {DATA BATCH MODEL "output = softmax\n", "model.output = softmax"},
    {DATA MODEL BATCH "label_smoothing = 0.1\n", "train.label_smoothing"},
    {DATA BATCH MODEL "[distill]\nteacher = none.ckpt\n", "distillation works with classifiers"},
};

START_TEST(what_does_not_go_with_labels_is_refused)
{
    refuses_recipe(refused[_i].text, refused[_i].says);
}
END_TEST

#define COUNT(of) (int)(sizeof(of) / sizeof *(of))

int main(void)
{
    Suite *suite = suite_create("multi_label");
    TCase *tc = tcase_create("multi_label");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, figures_by_hand);
    tcase_add_test(tc, a_validation_split_chooses_the_threshold);
    tcase_add_test(tc, lack_of_memory_is_no_figure);
    tcase_add_test(tc, boxes_become_labels);
    tcase_add_loop_test(tc, networks_of_labels_train_and_export, 0, COUNT(networks));
    tcase_add_test(tc, a_simulation_beside_integers_chooses_no_threshold);
    tcase_add_loop_test(tc, what_does_not_go_with_labels_is_refused, 0, COUNT(refused));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

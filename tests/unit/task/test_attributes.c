/**
 * Attributes and a value, from targets to figures: what heads learn, how answers are judged,
 * training, evaluation and export, and what is refused.
 */
#include "checkpoint/restore.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "evaluate/data.h"
#include "qat/border.h"
#include "task/attributes.h"
#include "unit/task/task_export.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DATA  "[data]\nkind = faces\nheight = 32\ntrain_count = 24\ntest_count = 14\nflip = yes\n"
#define MODEL "[model]\narch = convnet\nfilters = 6, 8\n"
#define BATCH "[train]\nbatch = 8\n"
#define TRAIN                                                                                      \
    "[train]\nbatch = 8\nsteps = 6\neval_batch = 6\noptimizer = adam\nlr = 0.003\n"                \
    "eval_every = 3\n[quant]\nenabled = yes\nquant_delay = 2\nbn_freeze_delay = 4\n"

/* ------------------------------------------------------------------ average precision */

/*
 * Worked by hand. Hits at ranks 1 and 3 of 4: (1/1 + 2/3) / 2. If a hit and a miss have the same
 * score, they count together, in either order: 1/1, then 2/3, then a hit at rank 4: 3/4.
 */
START_TEST(precision_of_a_category_by_hand)
{
    static const struct {
        int n;
        float scores[5], truth[5];
        double ap;
    } cases[] = {{4, {0.7f, 0.9f, 0.6f, 0.8f}, {1, 1, 0, 0}, (1 + 2.0 / 3) / 2},
                 {4, {0.5f, 0.9f, 0.1f, 0.5f}, {1, 1, 1, 0}, (1 + 2.0 / 3 + 3.0 / 4) / 3},
                 {4, {0.5f, 0.9f, 0.1f, 0.5f}, {0, 1, 1, 1}, (1 + 2.0 / 3 + 3.0 / 4) / 3},
                 {3, {0.5f, 0.5f, 0.5f}, {0, 1, 0}, 1.0 / 3},
                 {5, {0.1f, 0.9f, 0.8f, 0.7f, 0.3f}, {1, NAN, 1, 0, NAN}, (1 + 2.0 / 3) / 2},
                 {3, {0.1f, 0.2f, 0.3f}, {0, 0, NAN}, -1},
                 {0, {0}, {0}, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ap;
        ck_assert_int_eq(
            qat_category_precision(cases[i].scores, cases[i].truth, cases[i].n, 1, 1, &ap, NULL),
            QAT_OK);
        ck_assert_double_eq_tol(ap, cases[i].ap, 1e-15);
    }
}
END_TEST

/* ------------------------------------------------------------------ what the value's head learns
 */

START_TEST(values_become_steps_and_are_read_from_them)
{
    qat_attributes const ordered = {.count = 2, .outputs = 4, .low = 10, .width = 5};
    qat_attributes const real = {.count = 2, .outputs = 1, .low = 10, .width = 5};
    static const struct {
        float value, steps[4], read;
    } cases[] = {{22, {1, 1, 0.4f, 0}, 22},
                 {10, {0, 0, 0, 0}, 10},
                 {3, {0, 0, 0, 0}, 10},   /* below the range */
                 {99, {1, 1, 1, 1}, 30}}; /* beyond it */
    float t[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float sum = 0;
        qat_value_targets(&ordered, true, cases[i].value, t);
        for (int k = 0; k < 4; k++) {
            ck_assert_float_eq_tol(t[k], cases[i].steps[k], 1e-6f);
            sum += t[k];
        }
        ck_assert_float_eq_tol(qat_attributes_value(&ordered, sum), cases[i].read, 1e-5f);
        qat_value_targets(&real, false, cases[i].value, t);
        ck_assert_float_eq_tol(qat_attributes_value(&real, t[0]), cases[i].value, 1e-5f);
    }
    qat_value_targets(&ordered, true, NAN, t);
    ck_assert(isnan(t[0]) && isnan(t[3]));
}
END_TEST

/* Three samples, one value not known; off by 0, 6 and -; the first attribute is ranked perfectly,
 * the second is nobody's. */
START_TEST(answers_are_judged_by_hand)
{
    qat_input_info const in = {.attributes = {.count = 2, .outputs = 1, .low = 0, .width = 1},
                               .within = 5};
    static const float scores[3][2] = {{0.9f, 0.5f}, {0.2f, 0.4f}, {0.3f, 0.1f}};
    static const float sums[3] = {40, 31, 20},
                       targets[3][3] = {{1, 0, 40}, {0, 0, 25}, {0, 0, NAN}};
    void *answers;
    qat_accuracy a;
    ck_assert_int_eq(qat_answers_begin(&answers, &in, NULL), QAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(qat_answers_add(answers, scores[i], sums[i], targets[i], NULL), QAT_OK);
    ck_assert_int_eq(qat_answers_judge(answers, &a, NULL), QAT_OK);
    ck_assert(a.n == 3 && a.task == &qat_task_attributes);
    ck_assert_double_eq_tol(a.figures[QAT_CATEGORY_AP], 1, 1e-15);
    ck_assert_double_eq_tol(a.figures[QAT_WITHIN], 0.5, 1e-15);
    ck_assert_double_eq_tol(a.figures[QAT_MEAN_ERROR], 3, 1e-15);
    ck_assert_double_eq_tol(qat_score(&a), 75, 1e-12);
    qat_answers_end(answers);
}
END_TEST

/** Two samples of two attributes, both ranked perfectly. */
static qat_status judge_two(qat_accuracy *a, qat_error *err)
{
    qat_input_info const in = {.attributes = {.count = 2}};
    static const float scores[2][2] = {{0.9f, 0.1f}, {0.2f, 0.7f}},
                       targets[2][3] = {{1, 0, NAN}, {0, 1, NAN}};
    void *answers = NULL;
    qat_status st = qat_answers_begin(&answers, &in, err);
    for (int i = 0; !st && i < 2; i++)
        st = qat_answers_add(answers, scores[i], 0, targets[i], err);
    if (!st)
        st = qat_answers_judge(answers, a, err);
    qat_answers_end(answers);
    return st;
}

/*
 * If the targets cannot be allocated, nothing is known about an attribute; it must not look as if
 * it had no hit.
 */
START_TEST(lack_of_memory_is_no_figure)
{
    qat_accuracy a = {0};
    bool failed;
    long n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = judge_two(&a, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    } while (failed);
    ck_assert_int_eq(n, 7);
    ck_assert(a.figures[QAT_CATEGORY_AP] == 1 && a.figures[QAT_WITHIN] == -1);
}
END_TEST

/* ------------------------------------------------------------------ all the way */

static void assert_same(const qat_accuracy *a, const qat_accuracy *b)
{
    ck_assert(a->task == &qat_task_attributes && b->task == a->task && a->n == b->n);
    ck_assert(a->figures[QAT_CATEGORY_AP] == b->figures[QAT_CATEGORY_AP] &&
              a->figures[QAT_WITHIN] == b->figures[QAT_WITHIN]);
    ck_assert(a->figures[QAT_MEAN_ERROR] == b->figures[QAT_MEAN_ERROR]);
}

/** The engine equals the exact evaluation byte for byte, so both get the same figures. */
static qat_accuracy check_export(const qat_restored *c, const qat_dataset *data, int outputs)
{
    char path[TEST_PATH_MAX];
    qat_input_info in;
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    in.within = 5;
    ck_assert_int_eq(in.attributes.count, 24);
    ck_assert_int_eq(in.attributes.outputs, outputs);
    ck_assert_str_eq(qi_label_at(qi_host_model(host), 3), "moustache");
    qat_accuracy const engine = judge_model(host, &in, data);
    assert_same(&exact, &engine);
    qi_host_close(host);
    return engine;
}

static const struct {
    const char *text;
    int outputs;
} heads[] = {{"steps = 10\n", 10},
             {"value = smooth_l1\n", 1},
             {"value = l2\nlow = -5\n", 1},
             {"value = none\n", 0},
             {"[quant]\nlayout = int8\nprofile = tflite\n", 20}};

START_TEST(both_heads_train_and_export)
{
    char text[1024];
    qat_restored *c;
    qat_dataset *data;
    qat_train_result result;
    qat_error err;
    qat_train_options const o = {.dir = folder};
    snprintf(text, sizeof text, DATA MODEL TRAIN "[attributes]\n%s", heads[_i].text);
    qat_recipe *r = recipe_of(text);
    qat_status const st = qat_train(r, &o, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    const qat_accuracy *f = &result.float_accuracy;
    ck_assert(f->task == &qat_task_attributes && f->figures[QAT_CATEGORY_AP] > 0 &&
              isfinite(result.loss) && result.loss > 0);
    ck_assert(heads[_i].outputs ? f->figures[QAT_WITHIN] >= 0 && f->figures[QAT_MEAN_ERROR] > 0
                                : f->figures[QAT_WITHIN] == -1);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(c->checkpoint->input.attributes.outputs, heads[_i].outputs);
    assert_same(&c->checkpoint->integer_accuracy, &result.integer_accuracy);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const engine = check_export(c, data, heads[_i].outputs);
    assert_same(&engine, &result.integer_accuracy);
    qat_dataset_close(data);
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static const struct {
    const char *text, *says;
} refused[] = {
    {DATA "[model]\narch = mobilenet_ssd\n",
     "model.arch = mobilenet_ssd learns boxes, but faces/train"},
    {DATA MODEL "[attributes]\nlow = 5\nhigh = 5\n",
     "attributes.high = 5 cannot be combined with attributes.low = 5"},
    {DATA BATCH "[model]\narch = layers\n[layer.pool]\nop = global_average_pool\n[layer.logits]\n"
                "op = fully_connected\nunits = 24\n",
     "has no second head: add a layer named value, or set attributes.value = none"},
    {DATA BATCH
     "[model]\narch = layers\n[layer.pool]\nop = global_average_pool\n[layer.value]\n"
     "op = fully_connected\nunits = 19\n[layer.logits]\nop = fully_connected\ninput = pool\n"
     "units = 24\n",
     "value gives [1, 19], but 20 outputs need [1, 20]"},
    {DATA BATCH MODEL "output = softmax\n", "model.output = softmax"},
    {DATA MODEL BATCH "label_smoothing = 0.1\n", "train.label_smoothing"},
    {DATA BATCH MODEL "[distill]\nteacher = none.ckpt\n", "distillation works with classifiers"},
};

START_TEST(what_does_not_go_with_attributes_is_refused)
{
    refuses_recipe(refused[_i].text, refused[_i].says);
}
END_TEST

START_TEST(data_of_another_kind_are_refused)
{
    qat_dataset_options const o = {.kind = "shapes", .test_count = 4};
    qat_input_info const in = {
        .height = 32, .width = 32, .channels = 3, .classes = 24, .task = &qat_task_attributes};
    qat_dataset *d;
    qat_error err;
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, NULL), QAT_OK);
    ck_assert_int_eq(qat_input_check(&in, d, &err), QAT_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(err.message, "the network answers attributes"));
    qat_dataset_close(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attributes");
    TCase *tc = tcase_create("attributes");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, precision_of_a_category_by_hand);
    tcase_add_test(tc, values_become_steps_and_are_read_from_them);
    tcase_add_test(tc, answers_are_judged_by_hand);
    tcase_add_test(tc, lack_of_memory_is_no_figure);
    tcase_add_loop_test(tc, both_heads_train_and_export, 0, (int)(sizeof heads / sizeof *heads));
    tcase_add_loop_test(tc, what_does_not_go_with_attributes_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, data_of_another_kind_are_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

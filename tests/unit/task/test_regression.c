/**
 * Real values: the figures, what is learned, data from arrays and tables, training and export, and
 * what is refused.
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

#define DATA  "[data]\nkind = tones\ntrain_count = 60\ntest_count = 40\n"
#define BATCH "[train]\nbatch = 20\nsteps = 6\neval_every = 3\noptimizer = adam\nlr = 0.003\n"
#define QUANT "[quant]\nenabled = yes\nquant_delay = 2\n"

enum { R2, MAE, RMSE };

/* ------------------------------------------------------------------ the figures */

/** The judgement of answers to n samples of `each` values. */
static qat_status judge(const float *answers, const float *wanted, int n, int each, qat_accuracy *a,
                        qat_error *err)
{
    const qat_task *task = &qat_task_regression;
    qat_outputs const outputs = {.n = 1,
                                 .at = {{.name = "out", .n = (size_t)each, .real = answers}}};
    qat_input_info const in = {.classes = each, .attributes = {.low = 10, .width = 2}};
    qat_batch const batch = {.count = n, .targets = wanted, .n_targets = each};
    void *pass = NULL;
    qat_status st = task->begin(&pass, &in, err);
    if (!st)
        st = task->add(pass, &outputs, &batch, n, err);
    if (!st)
        st = task->judge(pass, a, err);
    task->end(pass);
    return st;
}

/* Answers are 10 + 2 * output. */
START_TEST(figures_by_hand)
{
    static const struct {
        int n, each;
        float outputs[6], wanted[6];
        double r2, mae, rmse;
    } cases[] = {
        {3, 1, {0, 1, 2}, {10, 12, 14}, 1, 0, 0},
        {3, 1, {0, 1, 2}, {11, 12, 13}, 1 - 2.0 / 2, 2.0 / 3, 0},
        {3, 1, {1, 1, 1}, {9, 12, 15}, 0, 2, 0},
        {2, 1, {5, -5}, {10, 14}, 1 - (100 + 196) / 8.0, 12, 0},
        {4, 1, {0, 1, 7, 2}, {10, 12, NAN, 14}, 1, 0, 0},
        {2, 2, {0, 1, 1, 0}, {10, 10, 12, 14}, (1 + 1 - 20 / 8.0) / 2, 6.0 / 4, 0},
        {2, 1, {1, 1}, {12, 12}, 1, 0, 0},
        {2, 1, {1, 2}, {12, 12}, 0, 1, 0},
    };
    static const double squares[] = {0, 2.0 / 3, 6, 148, 0, 5, 0, 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_accuracy a;
        qat_error err;
        ck_assert_msg(
            judge(cases[i].outputs, cases[i].wanted, cases[i].n, cases[i].each, &a, &err) == QAT_OK,
            "%s", err.message);
        ck_assert(a.task == &qat_task_regression && a.n == cases[i].n);
        ck_assert_double_eq_tol(a.figures[R2], cases[i].r2, 1e-12);
        ck_assert_double_eq_tol(a.figures[MAE], cases[i].mae, 1e-12);
        ck_assert_double_eq_tol(a.figures[RMSE] * a.figures[RMSE], squares[i], 1e-12);
    }
}
END_TEST

START_TEST(answers_must_be_finite_and_values_known)
{
    qat_accuracy a;
    qat_error err;
    ck_assert_int_eq(judge((float[]){1, INFINITY}, (float[]){0, 1}, 2, 1, &a, &err),
                     QAT_ERR_NUMERIC);
    ck_assert_str_eq(err.message, "evaluation: an answer is not finite");
    ck_assert_int_eq(judge((float[]){1}, (float[]){NAN}, 1, 1, &a, &err), QAT_ERR_FORMAT);
    ck_assert_str_eq(err.message, "evaluation: no value of any sample is known");
}
END_TEST

START_TEST(lack_of_memory_is_no_figure)
{
    bool failed;
    long n = 0;
    do {
        qat_accuracy a = {0};
        test_fail_alloc_after(n++);
        qat_status const st = judge((float[]){0, 1}, (float[]){10, 12}, 2, 1, &a, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        ck_assert(failed ? !a.n : a.figures[R2] == 1);
    } while (failed);
    ck_assert_int_eq(n, 3);
}
END_TEST

/* ------------------------------------------------------------------ data */

static void write_npy(const char *name, const char *type, const char *shape, const void *values,
                      size_t bytes)
{
    uint8_t file[1024];
    char header[118];
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(header, ' ', sizeof header);
    int const n = snprintf(header, sizeof header,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    header[n] = ' ';
    header[sizeof header - 1] = '\n';
    memcpy(file + 10, header, sizeof header);
    memcpy(file + 128, values, bytes);
    test_temp_write(folder, name, (const char *)file, 128 + bytes);
}

/* Arrays of any rank; the mean and the deviation are of what is known. */
START_TEST(arrays_of_values)
{
    float const x[] = {1, 2, 3, 4, 5, 6};
    double y[] = {1, 2, 3, 6, NAN, 3};
    qat_dataset *d;
    qat_error err;
    qat_dataset_options const o = {.kind = "npy", .path = folder};
    write_npy("train_x.npy", "<f4", "3, 2", x, sizeof x);
    write_npy("train_y.npy", "<f8", "3, 1, 2", y, sizeof y);
    ck_assert_msg(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err) == QAT_OK, "%s", err.message);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert(info->targets == QAT_TARGETS_VALUES && info->n_targets == 2 && !info->classes);
    ck_assert_double_eq_tol((double)info->target_mean, 3, 1e-6);
    ck_assert_double_eq_tol((double)info->target_deviation, sqrt((4 + 1 + 9) / 5.0), 1e-6);
    const float *last = qat_dataset_targets(d, 2);
    ck_assert(isnan(last[0]) && last[1] == 3);
    ck_assert(qat_task_for(NULL, NULL, info) == &qat_task_regression);
    qat_dataset_close(d);
    y[3] = INFINITY;
    write_npy("train_y.npy", "<f8", "3, 1, 2", y, sizeof y);
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err), QAT_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(err.message, "value 1 of sample 1 is infinite"));
}
END_TEST

static qat_status open_table(qat_dataset **d, const char *text, const char *value, double share,
                             qat_split split, qat_error *err)
{
    char path[TEST_PATH_MAX];
    qat_dataset_options const o = {.kind = "numbers",
                                   .path = test_temp_path(path, folder, "t.csv"),
                                   .value = value,
                                   .split = share};
    test_temp_write(folder, "t.csv", text, strlen(text));
    return qat_dataset_open(d, &o, split, err);
}

START_TEST(tables_of_numbers)
{
    static const char text[] =
        "\xef\xbb\xbfsplit,b,\"a\",y,z\r\ntrain,1,2,3,4\r\ntest,5,6,7,8\r\n\n"
        "train,-1e1, 2.5,NA,\n";
    qat_dataset *d;
    qat_error err;
    float x[2];
    int label;
    ck_assert_msg(open_table(&d, text, "z, y", 0, QAT_SPLIT_TRAIN, &err) == QAT_OK, "%s",
                  err.message);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert(info->count == 2 && info->height == 1 && info->width == 2 && info->channels == 1);
    ck_assert(info->min == -10 && info->max == 2.5F);
    ck_assert_int_eq(qat_dataset_get(d, 1, x, &label, NULL), QAT_OK);
    ck_assert(x[0] == -10 && x[1] == 2.5F);
    const float *y = qat_dataset_targets(d, 0);
    ck_assert(y[0] == 4 && y[1] == 3 && isnan(y[2]) && isnan(y[3]));
    qat_dataset_close(d);
    ck_assert_int_eq(open_table(&d, text, "y", 0, QAT_SPLIT_TEST, &err), QAT_OK);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 1);
    qat_dataset_close(d);
    ck_assert_int_eq(open_table(&d, "a,y\n1,2\n3,4\n5,6\n7,8\n", "y", 0.5, QAT_SPLIT_TRAIN, &err),
                     QAT_OK);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    qat_dataset_close(d);
}
END_TEST

static const struct {
    const char *text, *value, *says;
    double share;
} bad_tables[] = {
    {"", "y", "no column \"split\"", 0},
    {"", "y", "data.value: no column \"y\"", 0.5},
    {"a,y\n1,2\n", "y", "data.split = 0.8 trains", 0},
    {"split,a,y\ntrain,1,2\n", "y", "data.split would make another test split", 0.5},
    {"a,y\n1,2\n", "", "data.value must name the columns", 0.5},
    {"a,y\n1,2\n", "y,y", "no column \"y\" is left", 0.5},
    {"a,y\n1,2\n", "y, a", "no column is left as input", 0.5},
    {"a,y\n1,2,3\n", "y", "t.csv:2: 3 fields, but the header has 2", 0.5},
    {"a,y\n1,2\nx,2\n", "y", "t.csv:3: column \"a\": \"x\" is not a number", 0.5},
    {"a,y\n,2\n", "y", "t.csv:2: column \"a\": \"\" is not a number", 0.5},
    {"a,y\n1,2 m\n", "y", "column \"y\": \"2 m\" is not a number", 0.5},
    {"a,y\n1e99,2\n", "y", "\"1e99\" is not a number", 0.5},
    {"split,a,y\nlater,1,2\n", "y", "split \"later\", expected train, val or test", 0},
    {"split,a,y\ntest,1,2\n", "y", "no line of split train", 0},
};

START_TEST(bad_tables_are_refused)
{
    qat_dataset *d;
    qat_error err;
    ck_assert_int_ne(open_table(&d, bad_tables[_i].text, bad_tables[_i].value, bad_tables[_i].share,
                                QAT_SPLIT_TRAIN, &err),
                     QAT_OK);
    ck_assert_msg(strstr(err.message, bad_tables[_i].says), "\"%s\" lacks \"%s\"", err.message,
                  bad_tables[_i].says);
}
END_TEST

/* ------------------------------------------------------------------ all the way */

#define CONVNET "[model]\narch = convnet\nfilters = 4, 6\nkernel = 5\nstrides = 2\n"

static const char *const networks[] = {
    DATA BATCH CONVNET QUANT,
    DATA BATCH CONVNET QUANT "layout = int8\nprofile = tflite\n[regression]\nloss = l1\n",
    DATA BATCH "[regression]\nloss = huber\ndelta = 0.5\n[model]\narch = mlp\nhidden = 8\n" QUANT,
    /* values in the shape of a picture */
    DATA BATCH "[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 2\nkernel = 1\n"
               "kernel_w = 96\npadding = valid\nbias = yes\n" QUANT};

START_TEST(regressions_train_and_export)
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
    ck_assert(result.float_accuracy.task == &qat_task_regression && result.loss > 0);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    ck_assert(in.task == &qat_task_regression && in.classes == 2);
    ck_assert(in.attributes.low ==
              qat_checkpoint_input(qat_restored_checkpoint(c))->attributes.low);
    qat_accuracy const engine = judge_model(host, &in, data);
    ck_assert(exact.n == 40 && engine.n == 40);
    for (int i = 0; i < 3; i++) {
        ck_assert(exact.figures[i] == engine.figures[i]);
        ck_assert(exact.figures[i] == result.integer_accuracy.figures[i]);
    }
    qi_host_close(host);
    qat_dataset_close(data);
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {DATA BATCH "[model]\narch = layers\n[layer.out]\nop = fully_connected\nunits = 3\n",
     "the last layer, out, must give as many values as a sample has: 2, not 3"},
    {DATA BATCH CONVNET "output = softmax\n", "model.output = softmax"},
    {DATA CONVNET BATCH "label_smoothing = 0.1\n", "train.label_smoothing"},
    {DATA BATCH CONVNET "[distill]\nteacher = none.ckpt\n", "distillation works with classifiers"},
    {DATA BATCH CONVNET "task = anomaly\n",
     "model.task = anomaly, but samples of tones/train have no class"},
};

START_TEST(what_does_not_go_with_values_is_refused)
{
    refuses_recipe(refused[_i].text, refused[_i].says);
}
END_TEST

#define COUNT(of) (int)(sizeof(of) / sizeof *(of))

int main(void)
{
    Suite *suite = suite_create("regression");
    TCase *tc = tcase_create("regression");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, figures_by_hand);
    tcase_add_test(tc, answers_must_be_finite_and_values_known);
    tcase_add_test(tc, lack_of_memory_is_no_figure);
    tcase_add_test(tc, arrays_of_values);
    tcase_add_test(tc, tables_of_numbers);
    tcase_add_loop_test(tc, bad_tables_are_refused, 0, COUNT(bad_tables));
    tcase_add_loop_test(tc, regressions_train_and_export, 0, COUNT(networks));
    tcase_add_loop_test(tc, what_does_not_go_with_values_is_refused, 0, COUNT(refused));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * Training runs with each optimizer, averages, clipping and a teacher. Interrupted runs equal whole
 * ones. Options that should change nothing change no bit. Evaluation uses the parameters that it
 * should.
 */
#include "base/files/file.h"
#include "base/parallel.h"
#include "checkpoint/restore.h"
#include "common/common.h"
#include "common/suite.h"
#include "train/distill.h"
#include "unit/train/train_runs.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 6 };

static void setup(void)
{
    test_folder_make();
    qat_set_threads(2);
}

static void differ(const char *a, const char *b)
{
    char *x = log_of(a), *y = log_of(b);
    ck_assert_str_ne(x, y);
    free(x);
    free(y);
}

static int count(const char *const *sets)
{
    int n = 0;
    while (n < SETS_MAX && sets[n])
        n++;
    return n;
}

/* ------------------------------------------------------------------ interrupted runs */

static const char *const runs[][SETS_MAX] = {
    {"train.nesterov=yes", "train.clip_norm=0.5", "train.average_decay=0.9"},
    {"train.optimizer=adam", "train.lr=0.002", "train.clip_value=0.01"},
    {"train.optimizer=adamw", "train.lr=0.002", "train.average_decay=0.99",
     "train.average_ramp=yes"},
    {"train.optimizer=rmsprop", "train.lr=0.01", "train.average_decay=0.9", "quant.enabled=yes"},
    {"train.optimizer=adagrad", "train.schedule=polynomial", "train.power=2", "quant.enabled=yes"},
    {"train.schedule=piecewise", "train.milestones=4, 1 epochs, 90%", "train.label_smoothing=0.1"},
    {"train.schedule=exponential", "train.factor=0.5", "train.every=0.5 epochs", "train.warmup=3",
     "train.lr_scale=conv1:0.1, */bias: 2"},
};

enum { RUNS = sizeof runs / sizeof *runs };

/** Stopped twice, and by one thread: the same log and the same checkpoint, state included. */
START_TEST(interrupted_runs_equal_whole_ones)
{
    int const n = count(runs[_i]);
    must_train_with("whole", runs[_i], n, 0, false);
    must_train_with("parts", runs[_i], n, 3, false);
    must_train_with("parts", runs[_i], n, 7, true);
    qat_set_threads(1);
    must_train_with("parts", runs[_i], n, 0, true);
    same_logs("whole", "parts");
    same_checkpoints("whole", "parts");
    must_train("plain", NULL, 0, false);
    differ("plain", "whole");
}
END_TEST

/* ------------------------------------------------------------------ averages */

/** Of the float network that the checkpoint's parameters make. */
static qat_accuracy float_accuracy(const qat_restored *r)
{
    qat_accuracy a;
    qat_graph *g;
    qat_dataset *d;
    const qat_checkpoint *c = r->checkpoint;
    ck_assert(!qat_graph_read(&g, r->registry, c->graph, "graph", NULL));
    ck_assert(!qat_graph_plan(g, 20, QAT_PLAN_EVAL, NULL));
    ck_assert(!qat_checkpoint_params(c, g, NULL));
    ck_assert(!qat_recipe_open_data(&d, r->recipe, NULL, QAT_SPLIT_TEST, NULL));
    ck_assert(!qat_evaluate_graph(g, &c->input, d, 20, 0, NULL, NULL, &a, NULL));
    qat_dataset_close(d);
    qat_graph_free(g);
    return a;
}

static void same_params(const qat_checkpoint *a, const qat_checkpoint *b)
{
    ck_assert_int_eq(a->n_params, b->n_params);
    for (int i = 0; i < a->n_params; i++)
        ck_assert_mem_eq(a->params[i].values, b->params[i].values,
                         qat_shape_count(&a->params[i].shape) * sizeof(float));
}

/** Averaging changes no step; evaluation and a restored checkpoint take the averages, and the last
 *  step's parameters are there to be swapped in. Batch norm's averages are no trained parameters.
 */
START_TEST(averages_are_evaluated)
{
    enum { SETS = 9 };
    const char *sets[SETS] = {"train.average_decay=0.9999",
                              "train.epochs=5",
                              "train.optimizer=adam",
                              "train.lr=0.005",
                              "model.filters=8,16",
                              "model.head=flatten",
                              "model.bn_momentum=0.9",
                              "data.train_count=640",
                              "data.crop_pad=0"};
    must_train_with("plain", sets + 1, SETS - 1, 0, false);
    must_train_with("averaged", sets, SETS, 0, false);
    qat_checkpoint *plain = checkpoint_of("plain"), *averaged = checkpoint_of("averaged");
    ck_assert(averaged->averaged && !plain->averaged);
    ck_assert_int_eq(averaged->n_slots, 3);
    same_params(plain, averaged);
    ck_assert_int_gt(plain->float_accuracy.figures[QAT_TOP1],
                     averaged->float_accuracy.figures[QAT_TOP1] + 6); /* the start's */
    qat_restored *r = restored("averaged");
    qat_accuracy const a = float_accuracy(r);
    ck_assert_int_eq(a.n, 60);
    ck_assert_int_eq(a.figures[QAT_TOP1], averaged->float_accuracy.figures[QAT_TOP1]);
    for (int i = 0, k = 2; i < r->checkpoint->n_params; i++) {
        const qat_named_tensor *t = &r->checkpoint->params[i];
        bool const trained = !strstr(t->name, "/ema_");
        const qat_named_tensor *from = trained ? &averaged->slots[k] : &averaged->params[i];
        k += trained ? 3 : 0;
        ck_assert_str_eq(t->name, from->name);
        ck_assert_mem_eq(t->values, from->values, qat_shape_count(&t->shape) * sizeof(float));
    }
    ck_assert(qat_checkpoint_swap_averages(r->checkpoint));
    same_params(plain, r->checkpoint);
    ck_assert_int_eq(float_accuracy(r).figures[QAT_TOP1], plain->float_accuracy.figures[QAT_TOP1]);
    ck_assert(!qat_checkpoint_swap_averages(plain));
    qat_restored_free(r);
    qat_checkpoint_free(plain);
    qat_checkpoint_free(averaged);
}
END_TEST

/** A quantized run's averages become a model: of their own weights, not of the last step's. */
START_TEST(averages_are_exported)
{
    const char *sets[] = {"train.average_decay=0.8", "quant.enabled=yes"};
    char qm[2][TEST_PATH_MAX];
    qat_error err;
    uint8_t *bytes[2];
    size_t n[2];
    must_train_with("averaged", sets, 2, 0, false);
    qat_restored *r = restored("averaged");
    for (int raw = 0; raw < 2; raw++) {
        qat_deploy_options const o = {.samples = 20};
        qat_deploy_result result;
        test_temp_path(qm[raw], folder, raw ? "raw.qm" : "averaged.qm");
        ck_assert_msg(!qat_deploy(r, qm[raw], &o, &result, &err), "%s", err.message);
        ck_assert_int_eq(result.compare.differing, 0);
        ck_assert_int_eq(qat_file_read(qm[raw], 1 << 20, &bytes[raw], &n[raw], NULL), QAT_OK);
        ck_assert(qat_restored_use_raw(r));
    }
    ck_assert(n[0] != n[1] || memcmp(bytes[0], bytes[1], n[0]) != 0);
    free(bytes[0]);
    free(bytes[1]);
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ clipping */

START_TEST(clipping_acts_only_where_it_should)
{
    must_train("plain", NULL, 0, false);
    must_train("far", "train.clip_norm=1e9", 0, false);
    same_logs("plain", "far");
    same_checkpoints("plain", "far");
    must_train("near", "train.clip_norm=0.1", 0, false);
    differ("plain", "near");
    must_train("far_value", "train.clip_value=1e9", 0, false);
    same_checkpoints("plain", "far_value");
}
END_TEST

/** The log's last column: a number above 0 in every row. */
START_TEST(the_gradient_norm_is_logged)
{
    int rows = 0;
    must_train("a", NULL, 0, false);
    char *log = log_of("a"), *line = strtok(log, "\n");
    ck_assert_ptr_nonnull(strstr(line, ",gradient_norm"));
    while ((line = strtok(NULL, "\n"))) {
        ck_assert_double_gt(atof(strrchr(line, ',') + 1), 0);
        rows++;
    }
    ck_assert_int_eq(rows, 16);
    free(log);
}
END_TEST

/* ------------------------------------------------------------------ a teacher */

/** Settings with the checkpoint of run `name` as teacher. */
static void with_teacher(char text[TEST_PATH_MAX + 64], const char *name)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    dir_of(dir, name);
    snprintf(text, TEST_PATH_MAX + 64, "distill.teacher=%s",
             test_temp_path(path, dir, "last.ckpt"));
}

START_TEST(a_teacher_without_weight_changes_no_bit)
{
    char teacher[TEST_PATH_MAX + 64];
    const char *sets[] = {teacher, "distill.weight=0", "quant.enabled=yes"};
    must_train("teacher", "model.filters=6, 12", 0, false);
    with_teacher(teacher, "teacher");
    must_train_with("plain", sets + 2, _i, 0, false);
    must_train_with("student", sets, 2 + _i, 0, false);
    same_logs("plain", "student");
    same_checkpoints("plain", "student");
    sets[1] = "distill.weight=0.5";
    must_train_with("taught", sets, 2 + _i, 0, false);
    differ("plain", "taught");
    must_train_with("parts", sets, 2 + _i, 5, false);
    qat_set_threads(1);
    must_train_with("parts", sets, 2 + _i, 0, true);
    same_logs("taught", "parts");
    same_checkpoints("taught", "parts");
}
END_TEST

/** The loss of a row of the log; row 1 is the first. */
static double loss_of(const char *name, int row)
{
    double loss = NAN;
    char *log = log_of(name), *line = log;
    for (int i = 0; i < row; i++)
        line = strchr(line, '\n') + 1;
    ck_assert_int_eq(sscanf(line, "%*d,%*f,%*f,%lf", &loss), 1);
    free(log);
    return loss;
}

/**
 * A student with other initial weights learns only from its teacher's answers. It comes closer to
 * them: the loss, which is T^2 times their divergence, falls to a third.
 */
START_TEST(a_teacher_alone_teaches)
{
    char teacher[TEST_PATH_MAX + 64];
    const char *sets[] = {teacher,           "distill.weight=1",      "train.seed=2",
                          "train.epochs=15", "model.bn_momentum=0.9", "model.dropout=0"};
    must_train_with("teacher", sets + 3, 3, 0, false);
    with_teacher(teacher, "teacher");
    must_train_with("student", sets, 6, 0, false);
    ck_assert_double_lt(loss_of("student", 120), loss_of("student", 1) / 3);
    sets[2] = "train.shards=3"; /* the teacher sees one part at a time, of two sizes */
    sets[3] = "train.epochs=1";
    must_train_with("parts", sets, 6, 0, false);
}
END_TEST

/**
 * The student's graph is given the logits of the teacher's float network in eval mode: no batch
 * statistics, no dropout, averaged parameters. This is so even if the teacher's output is a
 * softmax.
 */
START_TEST(a_teacher_answers_in_eval_mode)
{
    enum { BATCH = 16, PIXELS = 28 * 28 };
    char text[TEST_PATH_MAX + 64];
    const char *sets[] = {text, "model.output=softmax", "train.average_decay=0.5"};
    static float x[BATCH * PIXELS];
    int32_t const labels[BATCH] = {0};
    qat_batch const batch = {.count = BATCH, .real = x, .labels = labels};
    qat_run const eval = {.mode = QAT_MODE_EVAL};
    qat_teacher *teacher;
    qat_graph *student, *alone;
    must_train_with("teacher", sets + 1, 2, 0, false);
    with_teacher(text, "teacher");
    qat_recipe *recipe = recipe_with(sets, 1);
    qat_restored *r = restored("teacher");
    const qat_checkpoint *c = r->checkpoint;
    for (int i = 0; i < BATCH * PIXELS; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    qat_input_info real = c->input;
    qat_error err;
    real.type = QAT_SAMPLE_F32;
    ck_assert(qat_teacher_open(&teacher, recipe, &real, BATCH, r->registry, NULL, NULL, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "takes pixels, but the student takes real values"));
    ck_assert(!qat_teacher_open(&teacher, recipe, &c->input, BATCH, r->registry, NULL, NULL, NULL));
    ck_assert(!qat_graph_read(&student, r->registry, c->graph, "student", NULL));
    ck_assert_ptr_nonnull(qat_teacher_join(teacher, student));
    ck_assert(!qat_graph_plan(student, BATCH, QAT_PLAN_TRAIN, NULL));
    ck_assert(!qat_teacher_answer(teacher, student, &batch, NULL));
    ck_assert(!qat_graph_read(&alone, r->registry, c->graph, "alone", NULL));
    ck_assert(!qat_graph_plan(alone, BATCH, QAT_PLAN_KEEP, NULL));
    ck_assert(!qat_checkpoint_params(c, alone, NULL));
    memcpy(qat_graph_find(alone, QAT_INPUT_NAME)->value, x, sizeof x);
    qat_graph_forward(alone, &eval);
    ck_assert_mem_eq(qat_graph_find(student, "loss/teacher")->value,
                     qat_graph_find(alone, QAT_LOSS_NAME)->inputs[0]->value,
                     BATCH * 10 * sizeof(float));
    qat_graph_free(student);
    qat_graph_free(alone);
    qat_teacher_free(teacher);
    qat_restored_free(r);
    qat_recipe_free(recipe);
}
END_TEST

START_TEST(teachers_that_do_not_fit_are_refused)
{
    char teacher[TEST_PATH_MAX + 64];
    qat_error err;
    const char *sets[] = {teacher, "distill.weight=0.5"};
    static const struct {
        const char *set, *words;
    } bad[] = {{"data.std=50", "its std is 50, but the student's is 127.5"},
               {"data.mean=100", "its mean is 100, but the student's is 127.5"},
               {"data.kind=shapes", "its height is 32, but the student's is 28"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%zu", i);
        must_train(name, bad[i].set, 1, false);
        with_teacher(teacher, name);
        ck_assert_int_eq(train_with("s", sets, 2, 0, false, &err), QAT_ERR_ARGUMENT);
        ck_assert_msg(strstr(err.message, bad[i].words) != NULL, "%s", err.message);
    }
    snprintf(teacher, sizeof teacher, "distill.teacher=/no/such.ckpt");
    ck_assert_int_eq(train_with("s", sets, 2, 0, false, &err), QAT_ERR_IO);
    ck_assert_msg(strstr(err.message, "distill.teacher: cannot open /no/such.ckpt") != NULL, "%s",
                  err.message);
}
END_TEST

/** If the teacher is another one, or is left out, this is another run and cannot be resumed. */
START_TEST(another_teacher_is_another_run)
{
    char teacher[TEST_PATH_MAX + 64];
    qat_error err;
    const char *sets[] = {teacher};
    must_train("first", NULL, 2, false);
    must_train("second", "train.seed=2", 2, false);
    with_teacher(teacher, "first");
    must_train_with("student", sets, 1, 4, false);
    with_teacher(teacher, "second");
    ck_assert_int_eq(train_with("student", sets, 1, 0, true, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "not the same run"));
    ck_assert_int_eq(train("student", NULL, 0, true, &err), QAT_ERR_ARGUMENT);
    with_teacher(teacher, "first");
    must_train_with("student", sets, 1, 0, true);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

START_TEST(rates_by_name_are_checked)
{
    static const char *const bad[][2] = {
        {"train.lr_scale=nothing/*:2", "no trained parameter matches 'nothing/*'"},
        {"train.lr_scale=conv1/*", "'conv1/*': expected PATTERN:NUMBER"},
        {"train.lr_scale=conv1/*:1, *:-1", "expected PATTERN:NUMBER"},
        {"train.lr_scale=conv1 conv2:2", "'conv1 conv2:2': expected PATTERN:NUMBER"},
        {"train.lr_scale=conv1/*:x", "expected PATTERN:NUMBER"}};
    qat_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(train("r", bad[i][0], 1, false, &err), QAT_ERR_ARGUMENT);
        ck_assert_msg(strstr(err.message, bad[i][1]) != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(a_rate_of_zero_leaves_a_parameter)
{
    must_train("start", "train.steps=1", 1, false);
    must_train("a", "train.lr_scale=conv1/weights:0", 0, false);
    must_train("b", "train.lr_scale=conv1/weights:0", 5, false);
    qat_checkpoint *a = checkpoint_of("a"), *b = checkpoint_of("b");
    ck_assert_str_eq(a->params[0].name, "conv1/weights");
    ck_assert_mem_eq(a->params[0].values, b->params[0].values,
                     qat_shape_count(&a->params[0].shape) * sizeof(float));
    qat_checkpoint_free(a);
    qat_checkpoint_free(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_options");
    TCase *tc = tcase_create("train_options");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, interrupted_runs_equal_whole_ones, 0, RUNS);
    tcase_add_test(tc, averages_are_evaluated);
    tcase_add_test(tc, averages_are_exported);
    tcase_add_test(tc, clipping_acts_only_where_it_should);
    tcase_add_test(tc, the_gradient_norm_is_logged);
    tcase_add_loop_test(tc, a_teacher_without_weight_changes_no_bit, 0, 2);
    tcase_add_test(tc, a_teacher_alone_teaches);
    tcase_add_test(tc, a_teacher_answers_in_eval_mode);
    tcase_add_test(tc, teachers_that_do_not_fit_are_refused);
    tcase_add_test(tc, another_teacher_is_another_run);
    tcase_add_test(tc, rates_by_name_are_checked);
    tcase_add_test(tc, a_rate_of_zero_leaves_a_parameter);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

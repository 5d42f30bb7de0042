/*
 * Training runs: the same bits in two runs, for any number of threads, and after an interruption.
 * Until the delay a quantized run equals the float run. A run stops if something is not finite.
 * Checkpoints become models.
 */
#include "base/files/file.h"
#include "base/files/npy.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "checkpoint/restore.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "recipe/recipe.h"
#include "unit/train/train_runs.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void setup(void)
{
    test_folder_make();
    qat_set_threads(2);
}

static const char *const checkpoints[] = {"last.ckpt", "best.ckpt"};
static const char *const modes[] = {"quant.enabled=no", "quant.enabled=yes"};

START_TEST(test_same_twice)
{
    must_train("a", modes[_i], 0, false);
    must_train("b", modes[_i], 0, false);
    qat_set_threads(1);
    must_train("c", modes[_i], 0, false);
    same_logs("a", "b");
    same_logs("a", "c");
    for (int i = 0; i < 2; i++) {
        same_files("a", "b", checkpoints[i]);
        same_files("a", "c", checkpoints[i]);
    }
}
END_TEST

START_TEST(test_seed_matters)
{
    must_train("a", NULL, 0, false);
    must_train("b", "train.seed=2", 0, false);
    char *x = log_of("a"), *y = log_of("b");
    ck_assert_str_ne(x, y);
    free(x);
    free(y);
}
END_TEST

/** Stopped inside an epoch, at its end, and twice. */
START_TEST(test_resume)
{
    static const int stops[][2] = {{3, 0}, {8, 0}, {5, 7}};
    must_train("whole", modes[1], 0, false);
    for (int i = 0; i < 3; i++) {
        char parts[24];
        snprintf(parts, sizeof parts, "parts%d", i);
        must_train(parts, modes[1], stops[i][0], false);
        qat_checkpoint *c = checkpoint_of(parts);
        ck_assert_int_eq(c->step, stops[i][0]);
        qat_checkpoint_free(c);
        if (stops[i][1])
            must_train(parts, modes[1], stops[i][1], true);
        must_train(parts, modes[1], 0, true);
        same_logs("whole", parts);
        same_files("whole", parts, checkpoints[0]);
        same_files("whole", parts, checkpoints[1]);
    }
}
END_TEST

/** Counts EVAL events down to 0, at which it stops. */
static void count_evaluations(void *context, const qat_train_progress *p)
{
    int *left = context;
    *left -= p->event == QAT_EVENT_EVAL;
}

/**
 * A run is stopped inside the evaluation of the first epoch, of either network. The checkpoint is
 * that of its step, without a row. The continued run evaluates first, and its end is the same.
 */
START_TEST(test_stop_in_evaluation)
{
    const char *sets[] = {modes[1], "train.eval_batch=20", "train.checkpoint_every=3"};
    char dir[TEST_PATH_MAX], name[24];
    qat_recipe *r = recipe_with(sets, 3);
    must_train_with("whole", sets, 3, 0, false);
    for (int i = 1; i <= 4; i++) { /* 3 batches of the float network, 3 of the quantized one */
        int left = i;
        qat_train_result result;
        snprintf(name, sizeof name, "parts%d", i);
        qat_train_options const o = {.dir = dir_of(dir, name),
                                     .progress = count_evaluations,
                                     .stop = at_step,
                                     .context = &left};
        ck_assert_int_eq(qat_train(r, &o, &result, NULL), QAT_OK);
        ck_assert_int_eq(result.step, 8);
        ck_assert_int_eq(result.float_accuracy.n, 0);
        char *log = log_of(name);
        ck_assert_ptr_null(strstr(log, "\n8,"));
        free(log);
        must_train_with(name, sets, 3, 0, true);
        same_logs("whole", name);
        same_files("whole", name, checkpoints[0]);
        same_files("whole", name, checkpoints[1]);
    }
    qat_recipe_free(r);
}
END_TEST

/** If the program was killed, the log may have rows after the last checkpoint. They are removed. */
START_TEST(test_resume_after_kill)
{
    char dir[TEST_PATH_MAX], from[TEST_PATH_MAX], to[TEST_PATH_MAX];
    uint8_t *bytes;
    size_t count;
    must_train("whole", modes[1], 0, false);
    must_train("killed", modes[1], 6, false);
    dir_of(dir, "killed");
    test_temp_path(from, dir, "last.ckpt");
    test_temp_path(to, folder, "kept.ckpt");
    ck_assert_int_eq(qat_file_read(from, 1 << 24, &bytes, &count, NULL), QAT_OK);
    ck_assert_int_eq(qat_file_write_atomic(to, bytes, count, NULL), QAT_OK);
    must_train("killed", modes[1], 0, true);
    ck_assert_int_eq(qat_file_write_atomic(from, bytes, count, NULL), QAT_OK);
    must_train("killed", modes[1], 0, true);
    same_logs("whole", "killed");
    free(bytes);
}
END_TEST

static bool exists(const char *name)
{
    char path[TEST_PATH_MAX];
    struct stat info;
    return stat(test_temp_path(path, folder, name), &info) == 0;
}

/** A finished run that is resumed does nothing, and its time stays the same. */
START_TEST(test_resume_of_a_finished_run)
{
    char dir[TEST_PATH_MAX];
    qat_error err;
    qat_train_result result[2];
    qat_recipe *r = recipe_with(NULL, 0);
    must_train("finished", NULL, 0, false);
    qat_train_options const o = {.dir = dir_of(dir, "finished"), .resume = true};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(qat_train(r, &o, &result[i], &err), QAT_OK);
    ck_assert(result[0].seconds > 0);
    ck_assert_double_eq(result[0].seconds, result[1].seconds);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_resume_refused)
{
    qat_error err;
    ck_assert_int_eq(train("none", NULL, 0, true, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "none/last.ckpt"));
    ck_assert(!exists("none"));
    must_train("a", NULL, 3, false);
    ck_assert_int_eq(train("a", "train.lr=0.06", 0, true, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(
        err.message,
        "train.lr is '0.06', but in the checkpoint's recipe '0.05': it is not the same run; to "
        "continue with other settings, start a run in another folder from these weights: "
        "train.init (qat-train --init)");
    ck_assert_int_eq(train("a", "train.threads=1", 0, true, &err), QAT_OK);
}
END_TEST

/** A folder that holds a run is not truncated, and not mixed with another run. */
START_TEST(test_used_folder)
{
    qat_error err;
    char dir[TEST_PATH_MAX];
    qat_recipe *r = recipe_with(NULL, 0);
    must_train("a", NULL, 3, false);
    must_train("b", NULL, 3, false);
    ck_assert_int_eq(train("a", NULL, 3, false, &err), QAT_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(err.message, "a/last.ckpt already exists"));
    same_logs("a", "b");
    qat_train_options o = {.dir = dir_of(dir, "a"), .overwrite = true};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_OK);
    o.dir = "";
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "output.dir is empty: name a folder");
    qat_recipe_free(r);
}
END_TEST

/**
 * --overwrite removes the old checkpoint. If the new run fails, nobody can mistake the old one for
 * it.
 */
START_TEST(test_overwriting_removes_the_old_checkpoint)
{
    const char *sets[] = {"train.lr=1e30"};
    qat_error err;
    char dir[TEST_PATH_MAX];
    qat_recipe *r = recipe_with(sets, 1);
    must_train("a", NULL, 3, false);
    qat_train_options const o = {.dir = dir_of(dir, "a"), .overwrite = true};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(err.message, "no checkpoint was written yet"));
    ck_assert(!exists("a/last.ckpt"));
    qat_recipe_free(r);
}
END_TEST

/** The same rows in both logs up to a step. */
static void same_rows(const char *a, const char *b, int rows)
{
    char *x = log_of(a), *y = log_of(b), *p = x, *q = y;
    for (int i = 0; i <= rows; i++) {
        size_t const n = strcspn(p, "\n"), m = strcspn(q, "\n");
        ck_assert_uint_eq(n, m);
        ck_assert_mem_eq(p, q, n);
        p += n + 1;
        q += m + 1;
    }
    free(x);
    free(y);
}

START_TEST(test_delay)
{
    static const char *const delays[] = {"quant.quant_delay=1000", "quant.quant_delay=6"};
    char text[1024];
    qat_recipe *r;
    must_train("float", modes[0], 0, false);
    for (int i = 0; i < 2; i++) {
        char dir[TEST_PATH_MAX];
        const char *sets[] = {modes[1], delays[i]};
        snprintf(text, sizeof text, "%s", small);
        ck_assert_int_eq(qat_recipe_parse(&r, text, "small.ini", sets, 2, NULL), QAT_OK);
        qat_train_options const o = {.dir = dir_of(dir, i ? "six" : "never")};
        ck_assert_int_eq(qat_train(r, &o, NULL, NULL), QAT_OK);
        qat_recipe_free(r);
    }
    same_rows("float", "never", 16);
    same_rows("float", "six", 6);
    char *x = log_of("float"), *y = log_of("six");
    ck_assert_str_ne(x, y);
    free(x);
    free(y);
}
END_TEST

START_TEST(test_not_finite)
{
    qat_error err;
    must_train("a", "train.lr=0.05", 5, false);
    ck_assert_int_eq(train("b", "train.lr=1e30", 0, false, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(
        strstr(err.message, "step 2: the loss is NaN; the first layer with such a value is conv"),
        "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "no checkpoint was written yet"));
}
END_TEST

/** A step makes parameters larger than float32 can hold, although its loss was finite. */
START_TEST(test_not_finite_parameter)
{
    const char *sets[] = {"train.lr=100"};
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_error err;
    int stop = 1;
    qat_recipe *r = recipe_with(sets, 1);
    qat_train_options o = {
        .dir = dir_of(dir, "p"), .progress = count_steps, .stop = at_step, .context = &stop};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_OK);
    qat_checkpoint *c = checkpoint_of("p");
    ck_assert_int_gt(c->n_slot_tensors, 0);
    c->slots[0].values[0] = 3e38f; /* a momentum that an earlier step might have left behind */
    ck_assert_int_eq(qat_checkpoint_save(c, test_temp_path(path, dir, "last.ckpt"), NULL), QAT_OK);
    qat_checkpoint_free(c);
    o = (qat_train_options){.dir = dir, .resume = true};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(
        strstr(err.message, "step 2: parameter conv1/weights is not finite after this step"), "%s",
        err.message);
    qat_recipe_free(r);
}
END_TEST

/**
 * Averages of batch norm that only the evaluation uses. Every parameter is finite, but no score is.
 */
START_TEST(test_not_finite_evaluation)
{
    const char *sets[] = {"train.checkpoint_every=2 epochs"};
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_error err;
    int stop = 4;
    qat_recipe *r = recipe_with(sets, 1);
    qat_train_options o = {
        .dir = dir_of(dir, "e"), .progress = count_steps, .stop = at_step, .context = &stop};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_OK);
    qat_checkpoint *c = checkpoint_of("e");
    for (int i = 0; i < c->n_params; i++) {
        qat_named_tensor *p = &c->params[i];
        for (size_t k = 0; strstr(p->name, "mean") && k < qat_shape_count(&p->shape); k++)
            p->values[k] = -3e38f;
    }
    ck_assert_int_eq(qat_checkpoint_save(c, test_temp_path(path, dir, "last.ckpt"), NULL), QAT_OK);
    qat_checkpoint_free(c);
    o = (qat_train_options){.dir = dir, .resume = true};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "step 8: evaluation: the score of class 0 is ") &&
                      strstr(err.message, "the checkpoint of step 4 stays: "),
                  "%s", err.message);
    c = checkpoint_of("e");
    ck_assert_int_eq(c->step, 4);
    qat_checkpoint_free(c);
    qat_recipe_free(r);
}
END_TEST

/** The optimizer diverges after the first epoch. The checkpoint from before stays. */
START_TEST(test_not_finite_keeps_checkpoint)
{
    const char *sets[] = {"train.lr=1e-8",       "train.schedule=exponential",
                          "train.factor=1",      "train.warmup=0",
                          "train.epochs=4",      "train.checkpoint_every=2",
                          "train.optimizer=sgd", "train.momentum=0",
                          "train.weight_decay=0"};
    char dir[TEST_PATH_MAX];
    qat_error err;
    qat_recipe *r = recipe_with(sets, 9);
    int stop = 4;
    qat_train_options o = {
        .dir = dir_of(dir, "c"), .progress = count_steps, .stop = at_step, .context = &stop};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_OK);
    qat_checkpoint *c = checkpoint_of("c");
    c->params[0].values[0] = 3e38f; /* what an earlier step might have left behind */
    c->params[0].values[1] = 3e38f;
    char path[TEST_PATH_MAX];
    ck_assert_int_eq(qat_checkpoint_save(c, test_temp_path(path, dir, "last.ckpt"), NULL), QAT_OK);
    qat_checkpoint_free(c);
    o = (qat_train_options){.dir = dir, .resume = true};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "step 5: the loss is "), "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "the checkpoint of step 4 stays: "));
    c = checkpoint_of("c");
    ck_assert_int_eq(c->step, 4);
    qat_checkpoint_free(c);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_refused)
{
    qat_error err;
    char file[TEST_PATH_MAX], below[TEST_PATH_MAX];
    ck_assert_int_eq(train("a", "train.batch=1000", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "train.batch = 1000, but there are only 128 training samples");
    ck_assert_int_eq(train("a", "data.mean=1,2", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "data.mean has 2 values, but the data have 1 channels");
    ck_assert_int_eq(train("a", "data.resize_short=28", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message,
                     "data.resize_short = 28, but digits/train has samples of 28 x 28 x 1; "
                     "only pictures in files can be cropped");
    ck_assert_int_eq(train("a", "data.central_crop=0.875", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message,
                     "data.central_crop = 0.875: only pictures in files can be cropped, "
                     "not digits/train");
    ck_assert_int_eq(train("a", "data.kind=idx", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "data of kind idx need a path");
    ck_assert_int_eq(train("a", "quant.input_min=3", 0, false, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "the range 3..1 of the input is empty");
    ck_assert_int_eq(train("a", "plugin.path=/no/such.so", 0, false, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/no/such.so"));
    test_temp_write(folder, "file", "x", 1);
    test_temp_path(file, folder, "file");
    snprintf(below, sizeof below, "%.400s/out", "file");
    ck_assert_int_eq(train(below, NULL, 0, false, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, file));
}
END_TEST

/* ------------------------------------------------------------------ to a model */

static qat_deploy_result deploy(const qat_restored *r, const qat_deploy_options *o, const char *qm)
{
    char path[TEST_PATH_MAX];
    qat_deploy_result result;
    qat_error err;
    qat_status const st = qat_deploy(r, test_temp_path(path, folder, qm), o, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_int_eq(result.compare.differing, 0);
    ck_assert_int_gt(result.compare.bytes, 0);
    return result;
}

/** The file answers as the exact evaluation of the checkpoint does. */
static qat_accuracy same_accuracy(const qat_restored *r, const qat_deploy_options *o,
                                  const char *qm)
{
    char path[TEST_PATH_MAX];
    qat_accuracy exact, engine;
    qat_graph *eval;
    qat_qgraph *graph;
    qat_dataset *data;
    qi_host *host = NULL;
    qat_input_info in;
    ck_assert_int_eq(qat_recipe_open_data(&data, r->recipe, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    ck_assert_int_eq(qat_restored_eval_graph(r, o, 20, &eval, NULL), QAT_OK);
    ck_assert_int_eq(qat_restored_freeze(r, o, eval, &graph, NULL), QAT_OK);
    ck_assert_int_eq(qat_evaluate_exact(graph, r->registry, &r->checkpoint->input, data, 20, 0,
                                        NULL, NULL, &exact, NULL),
                     QAT_OK);
    ck_assert_int_eq(qi_host_open(&host, test_temp_path(path, folder, qm), NULL, NULL), QAT_OK);
    ck_assert_int_eq(qat_input_info_of_model(&in, NULL, qi_host_model(host), NULL), QAT_OK);
    ck_assert_int_eq(qat_evaluate_model(host, &in, data, 0, NULL, NULL, &engine, NULL), QAT_OK);
    ck_assert_int_eq(exact.n, 60);
    ck_assert_int_eq(engine.n, exact.n);
    ck_assert_int_eq(engine.figures[QAT_TOP1], exact.figures[QAT_TOP1]);
    ck_assert_int_eq(engine.figures[QAT_TOP5], exact.figures[QAT_TOP5]);
    qi_host_close(host);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    qat_dataset_close(data);
    return engine;
}

/** Options without struct_size end before `write`. */
static qat_status must_not_write(void *context, const qi_host *model, const char *path,
                                 qat_error *err)
{
    ck_abort_msg("%s: not from these options", path);
    return QAT_ERR_STATE;
}

START_TEST(test_deploy)
{
    qat_deploy_options o = {0};
    must_train("a", modes[1], 0, false);
    qat_restored *r = restored("a");
    qat_deploy_result result = deploy(r, &o, "a.qm");
    ck_assert_int_eq(result.samples, 60);
    ck_assert_str_eq(result.verified_on, "digits/test");
    same_accuracy(r, &o, "a.qm");
    o = (qat_deploy_options){
        .has_profile = true, .profile = QAT_PROFILE_TFLITE, .samples = 7, .write = must_not_write};
    result = deploy(r, &o, "t.qm");
    ck_assert_int_eq(result.samples, 7);
    same_accuracy(r, &o, "t.qm");
    qat_restored_free(r);
}
END_TEST

START_TEST(test_deploy_without_data)
{
    qat_deploy_options o = {0};
    must_train("a", modes[1], 2, false);
    qat_restored *r = restored("a");
    r->recipe->data.kind = 2;
    r->recipe->data.path = "/no/such/folder";
    qat_deploy_result const result = deploy(r, &o, "a.qm");
    ck_assert_ptr_nonnull(strstr(result.verified_on, "seeded random bytes"));
    ck_assert_ptr_nonnull(strstr(result.verified_on, "/no/such/folder"));
    o.data = "idx:/no/such/folder";
    qat_deploy_result ignored;
    qat_error err;
    ck_assert_int_eq(qat_deploy(r, "x.qm", &o, &ignored, &err), QAT_ERR_IO);
    o.data = "jpeg:x";
    ck_assert_int_eq(qat_deploy(r, "x.qm", &o, &ignored, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(
        err.message, "data jpeg:x: expected KIND[:PATH], where KIND is one of digits|shapes|"));
    o.data = "shapes";
    ck_assert_int_eq(qat_deploy(r, "x.qm", &o, &ignored, &err), QAT_ERR_SHAPE);
    qat_restored_free(r);
}
END_TEST

/** A float run has no ranges, until they are found on data; what batch norm does not scale stays.
 */
START_TEST(test_calibrate)
{
    qat_ptq_report report;
    qat_deploy_options o = {.report = &report};
    qat_deploy_result ignored;
    qat_error err;
    must_train("a", modes[0], 0, false);
    qat_restored *r = restored("a");
    ck_assert_int_eq(qat_deploy(r, "x.qm", &o, &ignored, &err), QAT_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(err.message, "float run"));
    o.calibrate = "recipe";
    deploy(r, &o, "a.qm");
    same_accuracy(r, &o, "a.qm");
    qat_graph *eval;
    ck_assert_int_eq(qat_restored_eval_graph(r, &o, 1, &eval, NULL), QAT_OK);
    for (int i = 0; i < r->checkpoint->n_params; i++) {
        const qat_named_tensor *t = &r->checkpoint->params[i];
        const qat_node *node = qat_graph_find(eval, t->name);
        if (node && !strncmp(t->name, "logits/", 7))
            ck_assert_mem_eq(node->value, t->values, qat_shape_count(&t->shape) * sizeof(float));
        ck_assert(!node || !strstr(t->name, "/bn/"));
    }
    ck_assert_int_eq(report.samples, 128);
    ck_assert_ptr_nonnull(strstr(report.data, "digits/train"));
    ck_assert_float_gt(qat_graph_find(eval, "conv1/relu/q/range")->value[1], 0);
    qat_graph_free(eval);
    qat_restored_free(r);
}
END_TEST

/** Two kinds of waves of three channels, 40 values long, as NumPy arrays. */
static void write_signals(const char *split, int count)
{
    enum { W = 40, C = 3 };
    int64_t const x_dims[] = {count, W, C}, y_dims[] = {count};
    float *x = malloc((size_t)count * W * C * sizeof *x);
    int32_t *y = malloc((size_t)count * sizeof *y);
    char name[32], path[TEST_PATH_MAX];
    ck_assert(x && y);
    qat_rng rng = qat_rng_at(5, (uint64_t)count, 0);
    for (int i = 0; i < count; i++) {
        y[i] = i % 2;
        float const phase = (float)qat_rng_uniform(&rng);
        for (int k = 0; k < W * C; k++) {
            float const t = (float)(k / C) * (y[i] ? 0.11f : 0.05f) + phase;
            x[i * W * C + k] = 3 * (t - floorf(t)) + (float)(k % C) - 0.7f;
        }
    }
    snprintf(name, sizeof name, "%s_x.npy", split);
    ck_assert_int_eq(
        qat_npy_write(test_temp_path(path, folder, name), QAT_NPY_F32, 3, x_dims, x, NULL), QAT_OK);
    snprintf(name, sizeof name, "%s_y.npy", split);
    ck_assert_int_eq(
        qat_npy_write(test_temp_path(path, folder, name), QAT_NPY_I32, 1, y_dims, y, NULL), QAT_OK);
    free(x);
    free(y);
}

/** Real values: 1-D convolutions, an input whose range the data give, codes into the model. */
START_TEST(test_signals)
{
    char set[TEST_PATH_MAX + 16], dir[TEST_PATH_MAX];
    const char *sets[] = {set,
                          "data.kind=npy",
                          "data.train_count=0",
                          "data.test_count=0",
                          "data.flip=no",
                          "data.crop_pad=0",
                          "data.mean=1,2,3",
                          "data.std=1.5",
                          "quant.enabled=yes",
                          "train.epochs=8",
                          "quant.layout=int8"};
    write_signals("train", 128);
    write_signals("test", 60);
    snprintf(set, sizeof set, "data.path=%.450s", folder);
    qat_recipe *r = recipe_with(sets, 11);
    qat_train_options const o = {.dir = dir_of(dir, "s")};
    qat_error err;
    ck_assert_msg(qat_train(r, &o, NULL, &err) == QAT_OK, "%s", err.message);
    qat_restored *c = restored("s");
    const qat_node *conv = qat_graph_find(c->float_graph, "conv1/weights");
    qat_shape const expected = QAT_SHAPE(4, 1, 3, 3);
    ck_assert(qat_shape_equal(&conv->shape, &expected));
    qat_deploy_options const d = {0};
    deploy(c, &d, "s.qm");
    qat_accuracy engine = same_accuracy(c, &d, "s.qm");
    ck_assert_int_gt(engine.figures[QAT_TOP1],
                     45); /* far above chance: codes mean what they should */
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_unwritable_model)
{
    qat_deploy_options const o = {.samples = 2};
    qat_deploy_result result;
    qat_error err;
    must_train("a", modes[1], 2, false);
    qat_restored *r = restored("a");
    ck_assert_int_eq(qat_deploy(r, "/no/such/folder/x.qm", &o, &result, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/no/such/folder/x.qm"));
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ strangers */

/** A checkpoint whose recipe allows itself much: limits are those of the machine that opens it. */
START_TEST(test_limits_of_a_checkpoint)
{
    static const char section[] = "[data]\n";
    static const char more[] = "max_pixels = 268435456\nmemory = 1000000\n";
    qat_recipe *r = recipe_with(NULL, 0);
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX], text[16384];
    qat_train_options const o = {.dir = dir_of(dir, "l")};
    qat_checkpoint *c = NULL;
    qat_restored *restored = NULL;
    qat_error err = {0};
    test_temp_path(path, dir, "last.ckpt");
    ck_assert_msg(qat_train(r, &o, NULL, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_checkpoint_load(&c, path, &err), QAT_OK);
    const char *at = strstr(c->recipe, section);
    ck_assert_ptr_nonnull(at);
    at += strlen(section);
    ck_assert_int_lt(
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - c->recipe), c->recipe, more, at),
        (int)sizeof text);
    free(c->recipe);
    c->recipe = strdup(text);
    ck_assert_int_eq(qat_checkpoint_save(c, path, &err), QAT_OK);
    ck_assert_msg(qat_restore(&restored, path, NULL, 0, &err) == QAT_OK, "%s", err.message);
    ck_assert_ptr_nonnull(strstr(restored->checkpoint->recipe, more));
    ck_assert_int_eq(restored->recipe->data.max_pixels, QAT_PICTURE_MAX_PIXELS);
    ck_assert_int_eq(restored->recipe->data.memory, 4096);
    qat_restored_free(restored);
    qat_checkpoint_free(c);
    qat_recipe_free(r);
}
END_TEST

/* ------------------------------------------------------------------ memory */

/** Every allocation of a run and of an export fails once. */
START_TEST(test_out_of_memory)
{
    const char *sets[] = {"quant.enabled=yes", "data.train_count=4", "data.test_count=2",
                          "train.batch=2",     "train.steps=1",      "model.filters=2",
                          "data.prefetch=1",   "train.eval_batch=2"};
    qat_recipe *r = recipe_with(sets, 8);
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX], qm[TEST_PATH_MAX];
    qat_train_options const o = {.dir = dir_of(dir, "m"), .overwrite = true};
    qat_deploy_options const d = {.samples = 1};
    test_temp_path(path, dir, "last.ckpt");
    test_temp_path(qm, folder, "m.qm");
    long n = 0;
    bool failed;
    do {
        qat_restored *restored_run = NULL;
        qat_deploy_result result;
        qat_error err = {0};
        test_fail_alloc_after(n++);
        qat_status st = qat_train(r, &o, NULL, &err);
        if (!st)
            st = qat_restore(&restored_run, path, NULL, 0, &err);
        if (!st)
            st = qat_deploy(restored_run, qm, &d, &result, &err);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "allocation %ld: status %d: %s", n,
                      (int)st, err.message);
        qat_restored_free(restored_run);
    } while (failed);
    ck_assert_int_gt(n, 100);
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train");
    TCase *tc = tcase_create("train");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, test_same_twice, 0, 2);
    tcase_add_test(tc, test_seed_matters);
    tcase_add_test(tc, test_resume);
    tcase_add_test(tc, test_stop_in_evaluation);
    tcase_add_test(tc, test_resume_after_kill);
    tcase_add_test(tc, test_resume_of_a_finished_run);
    tcase_add_test(tc, test_resume_refused);
    tcase_add_test(tc, test_used_folder);
    tcase_add_test(tc, test_overwriting_removes_the_old_checkpoint);
    tcase_add_test(tc, test_delay);
    tcase_add_test(tc, test_not_finite);
    tcase_add_test(tc, test_not_finite_keeps_checkpoint);
    tcase_add_test(tc, test_not_finite_parameter);
    tcase_add_test(tc, test_not_finite_evaluation);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_deploy);
    tcase_add_test(tc, test_deploy_without_data);
    tcase_add_test(tc, test_calibrate);
    tcase_add_test(tc, test_signals);
    tcase_add_test(tc, test_unwritable_model);
    tcase_add_test(tc, test_limits_of_a_checkpoint);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

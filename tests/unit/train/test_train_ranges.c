/*
 * Ranges in whole runs. Learned ranges are trained with a rate of their own, and resumed; their log
 * continues where it was, and its columns are right. Also: batch norm's averages taken anew.
 */
#include "base/files/file.h"
#include "base/parallel.h"
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "common/temp.h"
#include "evaluate/data.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "qat/train.h"
#include "recipe/recipe.h"
#include "train/log/quant_log.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_error err;

static const char small[] =
    "[data]\nkind = digits\ntrain_count = 128\ntest_count = 40\n"
    "[model]\nfilters = 4, 6\nstrides = 2\n"
    "[train]\nsteps = 12\nbatch = 16\nlr = 0.05\ncheckpoint_every = 100\n"
    "[quant]\nenabled = yes\nquant_delay = 2\nlearn_delay = 4\nranges = tqt\n"
    "range_log_every = 3\n";

static void setup(void)
{
    test_folder_make();
    qat_set_threads(2);
}

static bool at_step(void *context)
{
    int *left = context;
    return left && --*left == 0;
}

/** More lines of [quant]. */
static const char *recipe_bits = "";

/** Words of `settings` are KEY=VALUE; stop: after so many steps, 0: at the end. */
static void train(const char *name, const char *settings, int stop, bool resume)
{
    char dir[TEST_PATH_MAX], words[2 * TEST_PATH_MAX], text[sizeof small + 256];
    const char *sets[8];
    int count = 0;
    qat_recipe *r;
    qat_train_result result;
    snprintf(words, sizeof words, "%s", settings);
    for (char *at = strtok(words, " "); at; at = strtok(NULL, " "))
        sets[count++] = at;
    snprintf(text, sizeof text, "%s%s", small, recipe_bits);
    ck_assert_msg(qat_recipe_parse(&r, text, "small.ini", sets, count, &err) == QAT_OK, "%s",
                  err.message);
    qat_train_options const o = {.dir = test_temp_path(dir, folder, name),
                                 .resume = resume,
                                 .stop = at_step,
                                 .context = stop ? &stop : NULL};
    ck_assert_msg(qat_train(r, &o, &result, &err) == QAT_OK, "%s", err.message);
    qat_recipe_free(r);
}

static char *file_of(const char *name, const char *file)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    uint8_t *bytes;
    size_t count;
    test_temp_path(dir, folder, name);
    test_temp_path(path, dir, file);
    ck_assert_msg(qat_file_read(path, 1 << 22, &bytes, &count, &err) == QAT_OK, "%s", err.message);
    bytes = realloc(bytes, count + 1);
    bytes[count] = 0;
    return (char *)bytes;
}

static qat_restored *restored_of(const char *name)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_restored *r;
    test_temp_path(dir, folder, name);
    test_temp_path(path, dir, "last.ckpt");
    ck_assert_msg(qat_restore(&r, path, NULL, 0, &err) == QAT_OK, "%s", err.message);
    return r;
}

static const qat_named_tensor *param_of(const qat_restored *r, const char *name)
{
    for (int i = 0; i < r->checkpoint->n_params; i++)
        if (strcmp(r->checkpoint->params[i].name, name) == 0)
            return &r->checkpoint->params[i];
    ck_abort_msg("no parameter %s", name);
    return NULL;
}

static void expect_same_params(const qat_restored *a, const qat_restored *b)
{
    ck_assert_int_eq(a->checkpoint->n_params, b->checkpoint->n_params);
    for (int i = 0; i < a->checkpoint->n_params; i++) {
        const qat_named_tensor *x = &a->checkpoint->params[i];
        const qat_named_tensor *y = param_of(b, x->name);
        ck_assert_msg(memcmp(x->values, y->values, qat_shape_count(&x->shape) * sizeof(float)) == 0,
                      "%s differs", x->name);
    }
}

static const int stops[] = {3, 5, 8, 9};

/** The run with these settings, whole and stopped on the way, has the same log and parameters. */
static void expect_resumes(const char *settings, int stop, const char *last_row)
{
    train("whole", settings, 0, false);
    train("parts", settings, stop, false);
    qat_set_threads(1);
    train("parts", settings, 0, true);
    char *whole = file_of("whole", "quant.csv"), *parts = file_of("parts", "quant.csv");
    ck_assert_str_eq(whole, parts);
    ck_assert_ptr_nonnull(strstr(whole, last_row));
    ck_assert_ptr_null(strstr(whole, "\n13,"));
    qat_restored *a = restored_of("whole"), *b = restored_of("parts");
    expect_same_params(a, b);
    qat_restored_free(a);
    qat_restored_free(b);
    free(whole);
    free(parts);
}

/* Runs that were interrupted between two rows of the log, or while learning, show no difference. */
START_TEST(test_resume)
{
    expect_resumes("", stops[_i], "\n12,logits/weights/q,weights,tqt,8,1,");
}
END_TEST

/* Stages begin with steps 2 (the delay), 3, 6 and 9; interrupted there and between them. In the end
 * all weights are powers of two, the very parameters too. */
START_TEST(test_resume_stages)
{
    int exponent;
    expect_resumes("quant.weight_ranges=inq quant.weight_bits=5 quant.activation_ranges=none "
                   "quant.layout=int8",
                   stops[_i], "\n12,logits/weights/q,weights,inq,5,10,");
    qat_restored *r = restored_of("whole");
    const qat_named_tensor *w = param_of(r, "conv1/weights"),
                           *frozen = param_of(r, "conv1/weights/q/frozen");
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++) {
        ck_assert_float_gt(frozen->values[i], 0);
        ck_assert(w->values[i] == 0 || fabsf(frexpf(w->values[i], &exponent)) == 0.5f);
    }
    qat_restored_free(r);
}
END_TEST

/* Weights are frozen from step 6 on or so: the codes that were frozen, and what is followed, are
 * resumed. A frozen weight has its code, and its parameter stands still. */
START_TEST(test_resume_freezing)
{
    static const char *const ranges[] = {"ema", "lsq"};
    char settings[256], last[64];
    const char *by = ranges[_i % 2];
    snprintf(settings, sizeof settings,
             "quant.ranges=%s quant.weight_bits=3 quant.freeze_threshold=0.25 "
             "quant.freeze_share=0.2 train.lr=0.5",
             by);
    snprintf(last, sizeof last, "\n12,logits/weights/q,weights,%s,3,1,", by);
    expect_resumes(settings, stops[_i / 2], last);
    qat_restored *r = restored_of("whole");
    const qat_named_tensor *w = param_of(r, "conv2/weights"),
                           *frozen = param_of(r, "conv2/weights/q/frozen"),
                           *row = param_of(r, "conv2/weights/q/oscillation");
    size_t const n = qat_shape_count(&w->shape);
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (frozen->values[i] > 0) {
            count++;
            ck_assert_float_eq(w->values[i], row->values[4 * i + 3]);
        }
    ck_assert(count > 0 && count < n);
    qat_restored_free(r);
}
END_TEST

/* Bits fall at steps 5, 8 and 9: interrupted there and between, also at the very steps. Learned
 * steps are rescaled once, codes of oscillating weights forgotten once. */
START_TEST(test_resume_bits)
{
    static const char *const ranges[] = {"lsq", "tqt", "ema", "dorefa"};
    char settings[256], last[64];
    const char *by = ranges[_i % 4];
    recipe_bits = "weight_bits_schedule = 7 until 5, 5 until 9\n"
                  "activation_bits_schedule = 8 until 8\nactivation_bits = 4\n";
    snprintf(settings, sizeof settings, "quant.%s=%s quant.weight_bits=3%s",
             _i % 4 == 3 ? "weight_ranges" : "ranges", by,
             _i % 4 == 3 ? "" : " quant.freeze_threshold=0.15 quant.freeze_share=0.2");
    snprintf(last, sizeof last, "\n12,logits/weights/q,weights,%s,3,1,", by);
    expect_resumes(settings, stops[_i / 4], last);
    char *text = file_of("whole", "quant.csv");
    char expected[64];
    static const int bits[] = {7, 5, 5}; /* of steps 2, 5 and 8 */
    for (int i = 0; i < 3; i++) {
        snprintf(expected, sizeof expected, "\n%d,logits/weights/q,weights,%s,%d,1,", 3 + 3 * i, by,
                 bits[i]);
        ck_assert_msg(strstr(text, expected) != NULL, "no %s in %s", expected, text);
    }
    free(text);
    recipe_bits = "";
}
END_TEST

/* The range_rate does not change where learning starts. It changes how far it gets. */
START_TEST(test_range_rate)
{
    train("start", "", 4, false);
    train("still", "quant.range_rate=0", 0, false);
    train("moved", "quant.range_rate=1", 0, false);
    qat_restored *start = restored_of("start"), *still = restored_of("still"),
                 *moved = restored_of("moved");
    static const char *const names[] = {"conv1/weights/q/learned", "conv1/relu/q/learned"};
    for (int i = 0; i < 2; i++) {
        float const from = param_of(start, names[i])->values[0];
        ck_assert_float_eq(param_of(still, names[i])->values[0], from);
        ck_assert_float_ne(param_of(moved, names[i])->values[0], from);
    }
    qat_restored_free(start);
    qat_restored_free(still);
    qat_restored_free(moved);
}
END_TEST

/* ------------------------------------------------------------------ batch norm's averages */

/** Mean and biased variance of a column. */
static void moments(const qat_node *z, int channel, double *mean, double *variance)
{
    size_t const channels = (size_t)z->shape.dims[3], n = qat_shape_count(&z->shape) / channels;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double const v = (double)z->value[i * channels + (size_t)channel];
        sum += v;
        squares += v * v;
    }
    *mean = sum / (double)n;
    *variance = squares / (double)n - *mean * *mean;
}

static const float *values_of(const qat_graph *g, const char *layer, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s", layer, what);
    return qat_graph_find(g, name)->value;
}

/** Averages over three batches of what the training graph's own two-pass convolution gives. */
static void expect_averages(const qat_restored *r, const qat_graph *eval, const char *layer,
                            bool variances)
{
    enum { BATCHES = 3, CHANNELS = 4 };
    char raw[64], was[64];
    double mean[CHANNELS] = {0}, variance[CHANNELS] = {0};
    qat_quant_options o = r->checkpoint->quant;
    qat_loader_options const loading = qat_training_loader(r->recipe);
    qat_graph *g;
    qat_dataset *data;
    qat_loader *loader;
    snprintf(raw, sizeof raw, "%s/raw", layer);
    snprintf(was, sizeof was, "%s/bn/ema_variance", layer);
    o.weight_delay = o.activation_delay = o.learn_delay = 0;
    o.bn_freeze_delay = INT64_MAX;
    ck_assert_int_eq(qat_create_training_graph(&g, r->float_graph, &o, &err), QAT_OK);
    ck_assert_int_eq(qat_freeze_params(g, r->recipe->train.freeze, NULL, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(g, 16, QAT_PLAN_KEEP, &err), QAT_OK);
    ck_assert_int_eq(qat_checkpoint_params(r->checkpoint, g, &err), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r->recipe, NULL, QAT_SPLIT_TRAIN, &err), QAT_OK);
    ck_assert_int_eq(qat_open_loader(&loader, data, &r->checkpoint->input, &loading, &err), QAT_OK);
    for (int i = 0; i < BATCHES; i++) {
        const qat_batch *batch;
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = i};
        ck_assert_int_eq(qat_loader_next(loader, &batch, &err), QAT_OK);
        ck_assert_int_eq(qat_feed_graph(g, batch, batch->count, &err), QAT_OK);
        qat_graph_forward(g, &run);
        for (int c = 0; c < CHANNELS; c++) {
            double m, v;
            moments(qat_graph_find(g, raw), c, &m, &v);
            mean[c] += m / BATCHES;
            variance[c] += v / BATCHES;
        }
    }
    for (int c = 0; c < CHANNELS; c++) {
        double const before = (double)param_of(r, was)->values[c];
        ck_assert_double_eq_tol((double)values_of(eval, layer, "bn/ema_mean")[c], mean[c], 1e-4);
        ck_assert_double_eq_tol((double)values_of(eval, layer, "bn/ema_variance")[c],
                                variances ? variance[c] : before, 1e-4 * (1 + variance[c]));
        ck_assert(fabs(before - variance[c]) > 1e-3 * variance[c]); /* there was something to do */
    }
    qat_loader_free(loader);
    qat_dataset_close(data);
    qat_graph_free(g);
}

/* Variances are taken anew only where the weights keep the codes with which they were trained. */
START_TEST(test_reestimate)
{
    static const struct {
        const char *set;
        bool variances;
    } cases[] = {{"quant.ranges=tqt", false},
                 {"quant.ranges=ema", false},
                 {"quant.layout=int8", false},
                 {"quant.ranges=ema quant.layout=int8", true}};
    train("run", cases[_i].set, 0, false);
    qat_restored *r = restored_of("run");
    qat_deploy_options const o = {.bn_reestimate = 3};
    qat_graph *eval;
    ck_assert_msg(qat_restored_eval_graph(r, &o, 8, &eval, &err) == QAT_OK, "%s", err.message);
    expect_averages(r, eval, "conv1", cases[_i].variances);
    qat_graph_free(eval);
    qat_restored_free(r);
}
END_TEST

/* A frozen layer keeps its averages. Those of the next layer come from its outputs. */
START_TEST(test_reestimate_frozen)
{
    static const char *const kept[] = {"bn/ema_mean", "bn/ema_variance"};
    char settings[2 * TEST_PATH_MAX];
    train("start", "", 0, false);
    snprintf(settings, sizeof settings,
             "train.freeze=conv1 quant.ranges=ema quant.layout=int8 train.init=%s/start/last.ckpt",
             folder);
    train("run", settings, 0, false);
    qat_restored *r = restored_of("run");
    qat_deploy_options const o = {.bn_reestimate = 3};
    qat_graph *eval;
    ck_assert_msg(qat_restored_eval_graph(r, &o, 8, &eval, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "conv1/%s", kept[i]);
        ck_assert_mem_eq(values_of(eval, "conv1", kept[i]), param_of(r, name)->values,
                         4 * sizeof(float));
    }
    expect_averages(r, eval, "conv2", true);
    qat_graph_free(eval);
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ the log's columns */

/* Four weights on the codes of +-7 (4 bits, s = 1): two move up, then one of them back. */
START_TEST(test_oscillation)
{
    static const float steps[][4] = {{-7, 0, 2, 3}, {-7, 1, 3, 3}, {-7, 2, 2, 3}, {-7, 2, 3, 3}};
    static const char *const ends[] = {",,,1\n", ",0.5,0,1\n", ",0.5,0.25,1\n", ",0.25,0.25,1\n"};
    qat_registry *registry;
    qat_graph *g;
    qat_quant_log *log;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
    qat_param_def const def = {.name = "w", .shape = QAT_SHAPE(1, 4), .trainable = true};
    qat_node *w = qat_graph_param(g, &def);
    qat_apply1(g, "fake_quant_weights", "w/q", "bits=4 layout=int8", w);
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_TRAIN_KEEP, &err), QAT_OK);
    ck_assert_msg(qat_quant_log_open(&log, g, folder, NULL, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < 4; i++) {
        memcpy(w->value, steps[i], sizeof steps[i]);
        qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_TRAIN, .step = i});
        ck_assert_int_eq(qat_quant_log_rows(log, i + 1, &err), QAT_OK);
    }
    qat_quant_log_close(log);
    char *text = file_of(".", "quant.csv");
    char *line = strchr(text, '\n');
    for (int i = 0; i < 4; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "%d,w/q,weights,ema,4,1,-7,7,1,1,0%s", i + 1, ends[i]);
        ck_assert_msg(strncmp(line + 1, expected, strlen(expected)) == 0, "%.80s, not %s", line + 1,
                      expected);
        line = strchr(line + 1, '\n');
    }
    ck_assert_str_eq(line, "\n");
    free(text);
    qat_graph_free(g);
    qat_registry_free(registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_ranges");
    TCase *tc = tcase_create("train_ranges");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_loop_test(tc, test_resume, 0, 4);
    tcase_add_loop_test(tc, test_resume_stages, 0, 4);
    tcase_add_loop_test(tc, test_resume_freezing, 0, 8);
    tcase_add_loop_test(tc, test_resume_bits, 0, 16);
    tcase_add_test(tc, test_range_rate);
    tcase_add_loop_test(tc, test_reestimate, 0, 4);
    tcase_add_test(tc, test_reestimate_frozen);
    tcase_add_test(tc, test_oscillation);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/*
 * Fine-tuning: weights by name from a checkpoint or a .npz, what is skipped, missing and refused.
 * Frozen layers keep every bit.
 */
#include "base/bytes.h"
#include "base/files/file.h"
#include "base/files/npz.h"
#include "base/parallel.h"
#include "checkpoint/checkpoint.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "finetune/pattern.h"
#include "qat/train.h"
#include "unit/train/npz_write.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

static char told[4096]; /* what the log said */

static const char small[] = "[data]\nkind = digits\ntrain_count = 96\ntest_count = 30\n"
                            "[model]\nfilters = 4, 6\nstrides = 2\n"
                            "[train]\nepochs = 1\nbatch = 16\nlr = 0.05\n"
                            "[quant]\nema_decay = 0.9\n";

static void setup(void)
{
    test_folder_make();
    qat_set_threads(2);
}

static char *path_of(char *path, const char *run, const char *file)
{
    char dir[TEST_PATH_MAX];
    test_temp_path(dir, folder, run);
    return test_temp_path(path, dir, file);
}

static void tell(void *context, const char *text)
{
    (void)context;
    size_t const n = strlen(told);
    snprintf(told + n, sizeof told - n, "%s\n", text);
}

enum { MOST_SETS = 8 };

/** Train into folder/run; sets end with NULL. */
static qat_status train(const char *run, const char *const *sets, qat_error *err)
{
    char dir[TEST_PATH_MAX];
    qat_log const log = {tell, NULL};
    qat_recipe *r;
    int n = 0;
    while (n < MOST_SETS && sets[n])
        n++;
    told[0] = 0;
    qat_status st = qat_recipe_parse(&r, small, "small.ini", sets, n, err);
    if (st)
        return st;
    qat_train_options const o = {.dir = test_temp_path(dir, folder, run), .log = &log};
    st = qat_train(r, &o, NULL, err);
    qat_recipe_free(r);
    return st;
}

#define TRAIN(run, ...) train(run, (const char *const[]){__VA_ARGS__, NULL}, &err)
#define MUST(call)      ck_assert_msg((call) == QAT_OK, "%s", err.message)
#define SAYS(text)      ck_assert_msg(strstr(told, text) != NULL, "'%s' is not in: %s", text, told)

static qat_checkpoint *load(const char *run)
{
    char path[TEST_PATH_MAX];
    qat_checkpoint *c;
    qat_error err;
    MUST(qat_checkpoint_load(&c, path_of(path, run, "last.ckpt"), &err));
    return c;
}

static const qat_named_tensor *tensor(const qat_checkpoint *c, const char *name)
{
    for (int i = 0; i < c->n_params; i++)
        if (!strcmp(c->params[i].name, name))
            return &c->params[i];
    ck_abort_msg("no %s", name);
    return NULL;
}

static bool same(const qat_checkpoint *a, const qat_checkpoint *b, const char *name)
{
    const qat_named_tensor *x = tensor(a, name), *y = tensor(b, name);
    return !memcmp(x->values, y->values, qat_shape_count(&x->shape) * sizeof(float));
}

/** "train.init=<folder>/<run>/<file>"; the same buffer every time. */
static const char *init_from(const char *run, const char *file)
{
    static char set[TEST_PATH_MAX + 16];
    char path[TEST_PATH_MAX];
    snprintf(set, sizeof set, "train.init=%s", path_of(path, run, file));
    return set;
}

static const char *const layer_params[] = {"/weights",     "/bn/gamma",        "/bn/beta",
                                           "/bn/ema_mean", "/bn/ema_variance", "/bn/ema_steps"};

static bool same_layer(const qat_checkpoint *a, const qat_checkpoint *b, const char *layer)
{
    char name[QAT_NAME_MAX];
    bool all = true;
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s%s", layer, layer_params[i]);
        all = all && same(a, b, name);
    }
    return all;
}

/* ------------------------------------------------------------------ from a checkpoint */

static const char *const quantized[] = {"quant.enabled=no", "quant.enabled=yes"};

/**
 * A learning rate of 0 shows with which parameters the run began. Averages move, so they are not
 * compared.
 */
START_TEST(test_init)
{
    qat_error err;
    MUST(TRAIN("float", "train.seed=7"));
    MUST(TRAIN("tuned", init_from("float", "last.ckpt"), "train.lr=0", quantized[_i]));
    SAYS("14 parameters taken");
    qat_checkpoint *a = load("float"), *b = load("tuned");
    ck_assert(same(a, b, "conv1/weights"));
    ck_assert(same(a, b, "conv2/bn/gamma"));
    ck_assert(same(a, b, "logits/weights"));
    ck_assert(same(a, b, "logits/bias/bias"));
    float const before = tensor(a, "conv1/bn/ema_steps")->values[0];
    ck_assert_float_eq(before, 6);
    ck_assert_float_eq(tensor(b, "conv1/bn/ema_steps")->values[0], 12); /* they went on */
    qat_checkpoint_free(a);
    qat_checkpoint_free(b);
}
END_TEST

/** Ranges in the file are not taken: they are observed from the beginning. */
START_TEST(test_ranges_begin_anew)
{
    qat_error err;
    MUST(TRAIN("a", "quant.enabled=yes"));
    MUST(TRAIN("b", init_from("a", "last.ckpt"), "quant.enabled=yes", "train.steps=1"));
    qat_checkpoint *b = load("b");
    ck_assert_float_eq(tensor(b, "conv1/relu/q/range")->values[2], 1);
    qat_checkpoint_free(b);
}
END_TEST

START_TEST(test_replaced_head)
{
    qat_error err;
    MUST(TRAIN("a", "data.classes=0"));
    ck_assert_int_eq(TRAIN("b", init_from("a", "last.ckpt"), "model.filters=4, 8"), QAT_ERR_SHAPE);
    ck_assert_msg(strstr(err.message, "conv2/weights is [6, 3, 3, 4], here [8, 3, 3, 4]"), "%s",
                  err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "logits/weights is [10, 6], here [10, 8]"));
    MUST(TRAIN("b", init_from("a", "last.ckpt"), "model.filters=4, 8", "train.lr=0",
               "train.init_skip=conv2, logits*"));
    SAYS("6 parameters taken");
    SAYS("skipped (train.init_skip): conv2/weights, conv2/bn/gamma");
    ck_assert_int_eq(TRAIN("c", init_from("a", "last.ckpt"), "train.init_skip=conv1, conv7"),
                     QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "train.init_skip: no parameter matches 'conv7'");
    ck_assert_int_eq(TRAIN("c", init_from("a", "last.ckpt"), "train.init_map=backbone/:"),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "train.init_map: 'backbone/:': no tensor of "));
    qat_checkpoint *a = load("a"), *b = load("b");
    ck_assert(same(a, b, "conv1/weights"));
    qat_checkpoint_free(a);
    qat_checkpoint_free(b);
}
END_TEST

START_TEST(test_missing_and_unused)
{
    qat_error err;
    MUST(TRAIN("a", "model.filters=4"));
    MUST(TRAIN("b", init_from("a", "last.ckpt"), "model.filters=4, 8", "train.init_skip=logits"));
    SAYS("not in the file; they keep their initial values: conv2/weights");
    MUST(TRAIN("c", init_from("b", "last.ckpt"), "model.filters=4", "train.init_skip=logits"));
    SAYS("6 in the file, but not in the network: conv2/weights");
}
END_TEST

START_TEST(test_init_refuses)
{
    qat_error err;
    char path[TEST_PATH_MAX];
    MUST(TRAIN("a", "train.steps=1"));
    ck_assert_int_eq(TRAIN("b", init_from("none", "last.ckpt")), QAT_ERR_IO);
    test_temp_write(folder, "text/x.npz", "no archive at all", 17);
    ck_assert_int_eq(TRAIN("b", init_from("text", "x.npz")), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, path_of(path, "text", "x.npz")));
    ck_assert_int_eq(TRAIN("b", init_from("a", "last.ckpt"), "train.init_map=conv1"),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "'conv1' is not OLD:NEW"));
    ck_assert_int_eq(TRAIN("b", init_from("a", "last.ckpt"), "train.init_map=:other/"),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "no tensor of this file is in the network"));
    ck_assert_int_eq(TRAIN("b", init_from("a", "last.ckpt"), "train.init_map=conv1:conv2"),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "two tensors would be called 'conv2/weights'"));
}
END_TEST

/* ------------------------------------------------------------------ from NumPy's archives */

static const float gamma_values[] = {1, 2, 3, 4};
static const double beta_values[] = {0.5, 0.25, -1, 0};

START_TEST(test_npz)
{
    qat_error err;
    npz_array const arrays[] = {
        {"net/conv1/bn/gamma.npy", "<f4", "4,", gamma_values, sizeof gamma_values},
        {"net/conv1/bn/beta.npy", "<f8", "4,", beta_values, sizeof beta_values}};
    npz_write(folder, "w.npz", arrays, 2);
    MUST(TRAIN("b", init_from(".", "w.npz"), "train.init_map=net/:", "train.lr=0"));
    SAYS("2 parameters taken, 8 values");
    qat_checkpoint *b = load("b");
    ck_assert_mem_eq(tensor(b, "conv1/bn/gamma")->values, gamma_values, sizeof gamma_values);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(tensor(b, "conv1/bn/beta")->values[i], (float)beta_values[i]);
    qat_checkpoint_free(b);
}
END_TEST

/** What NumPy never writes, although libzip could read it. */
START_TEST(test_npz_of_another_method)
{
    qat_error err;
    char path[TEST_PATH_MAX];
    npz_array const arrays[] = {{"a.npy", "<f4", "4,", gamma_values, sizeof gamma_values},
                                {"b.npy", "<f4", "4,", gamma_values, sizeof gamma_values}};
    if (!zip_compression_method_supported(ZIP_CM_BZIP2, 1))
        return;
    npz_write(folder, "w.npz", arrays, 2);
    zip_t *zip = zip_open(test_temp_path(path, folder, "w.npz"), 0, NULL);
    ck_assert_ptr_nonnull(zip);
    ck_assert_int_eq(zip_set_file_compression(zip, 1, ZIP_CM_BZIP2, 0), 0);
    ck_assert_int_eq(zip_close(zip), 0);
    ck_assert_int_eq(TRAIN("b", init_from(".", "w.npz")), QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "array 'b.npy': packed by method 12") != NULL, "%s",
                  err.message);
}
END_TEST

/** Averages without their count of batches: the first batch moves them by 1 - momentum, and does
 *  not replace them. _i: float; folded and quantized at once; folded after a delay; in one pass. */
START_TEST(test_given_averages_are_warm)
{
    static const float mean[] = {1000, 2000, 3000, 4000}, variance[] = {9e6F, 9e6F, 9e6F, 9e6F};
    static const char *const how[][2] = {{"quant.enabled=no", "quant.quant_delay=0"},
                                         {"quant.enabled=yes", "quant.quant_delay=0"},
                                         {"quant.enabled=yes", "quant.quant_delay=3"},
                                         {"quant.enabled=yes", "quant.bn_fold=one_pass"}};
    qat_error err;
    npz_array const arrays[] = {
        {"conv1/bn/ema_mean.npy", "<f4", "4,", mean, sizeof mean},
        {"conv1/bn/ema_variance.npy", "<f4", "4,", variance, sizeof variance}};
    npz_write(folder, "w.npz", arrays, 2);
    MUST(TRAIN("b", init_from(".", "w.npz"), "train.lr=0", "train.steps=1", how[_i][0], how[_i][1],
               "model.bn_momentum=0.9"));
    qat_checkpoint *b = load("b");
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq_tol(tensor(b, "conv1/bn/ema_mean")->values[i], 0.9F * mean[i], 100);
        ck_assert_float_eq_tol(tensor(b, "conv1/bn/ema_variance")->values[i], 0.9F * variance[i],
                               9e4F);
    }
    ck_assert_float_lt(fabsf(tensor(b, "conv2/bn/ema_mean")->values[0]), 100); /* not given */
    ck_assert_float_eq(tensor(b, "conv2/bn/ema_steps")->values[0], 1);
    qat_checkpoint_free(b);
}
END_TEST

/** A count of 0 beside averages that nobody touched is a network that has not begun. */
START_TEST(test_untouched_averages)
{
    static const float zeros[4] = {0}, ones[] = {1, 1, 1, 1};
    qat_error err;
    for (int given = 0; given < 2; given++) { /* the count is given, or not */
        npz_array const arrays[] = {{"conv1/bn/ema_mean.npy", "<f4", "4,", zeros, sizeof zeros},
                                    {"conv1/bn/ema_variance.npy", "<f4", "4,", ones, sizeof ones},
                                    {"conv1/bn/ema_steps.npy", "<f4", "1,", zeros, sizeof *zeros}};
        npz_write(folder, "w.npz", arrays, 2 + given);
        MUST(TRAIN(given ? "b" : "c", init_from(".", "w.npz"), "train.lr=0", "train.steps=1"));
        qat_checkpoint *b = load(given ? "b" : "c");
        ck_assert_float_eq(tensor(b, "conv1/bn/ema_steps")->values[0], given ? 1 : 1000001);
        qat_checkpoint_free(b);
    }
}
END_TEST

START_TEST(test_npz_refuses)
{
    static const int32_t ints[] = {1, 2, 3, 4};
    static const float wild[] = {1, 2, INFINITY, 4};
    static const struct {
        npz_array array;
        const char *says;
    } wrong[] = {
        {{"conv1/bn/gamma.npy", "<i4", "4,", ints, 16}, "array 'conv1/bn/gamma' has type <i4"},
        {{"conv1/bn/gamma", "<f4", "4,", wild, 16},
         "its entry 'conv1/bn/gamma' is not a .npy file"},
        {{"conv1/bn/gamma.npy", "<f4", "", wild, 4}, "has rank 0"},
        {{"conv1/bn/gamma.npy", "<f4", "5,", wild, 16}, "array 'conv1/bn/gamma.npy'"},
        {{"conv1/bn/gamma.npy", "<f4", "4,", wild, 16}, "conv1/bn/gamma[2] is inf"},
        {{"conv1/bn/gamma.npy", "<f4", "2,2", wild, 16}, "conv1/bn/gamma is [2, 2], here [4]"},
    };
    qat_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        npz_write(folder, "w.npz", &wrong[i].array, 1);
        ck_assert_int_ne(TRAIN("b", init_from(".", "w.npz")), QAT_OK);
        ck_assert_msg(strstr(err.message, wrong[i].says) != NULL, "%s", err.message);
    }
}
END_TEST

/** Any byte of an archive is changed. It is read as before, or refused; nothing worse happens. */
START_TEST(test_npz_broken)
{
    char path[TEST_PATH_MAX];
    uint8_t bytes[4096];
    npz_array const arrays[] = {{"a.npy", "<f4", "4,", gamma_values, 16},
                                {"b.npy", "<f8", "4,", beta_values, 32}};
    npz_write(folder, "w.npz", arrays, 2);
    FILE *file = fopen(test_temp_path(path, folder, "w.npz"), "rb");
    size_t const n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(n, sizeof bytes);
    int refused = 0;
    for (size_t i = 0; i < n; i++) {
        qat_npz npz;
        qat_error err;
        bytes[i] ^= 0x41;
        test_temp_write(folder, "broken.npz", bytes, n);
        refused += qat_npz_read(&npz, test_temp_path(path, folder, "broken.npz"), UINT64_MAX, "",
                                &err) != QAT_OK;
        qat_npz_free(&npz);
        bytes[i] ^= 0x41;
    }
    ck_assert_int_gt(refused, (int)n / 4);
}
END_TEST

START_TEST(test_npz_no_memory)
{
    char path[TEST_PATH_MAX];
    npz_array const arrays[] = {{"a.npy", "<f4", "4,", gamma_values, 16},
                                {"b.npy", "<f8", "4,", beta_values, 32}};
    qat_npz npz;
    long n = 0;
    bool failed;
    npz_write(folder, "w.npz", arrays, 2);
    test_temp_path(path, folder, "w.npz");
    do {
        qat_error err;
        test_fail_alloc_after(n++);
        qat_status const st = qat_npz_read(&npz, path, UINT64_MAX, "", &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        if (!failed) {
            ck_assert_int_eq(npz.count, 2);
            ck_assert_str_eq(npz.entries[1].name, "b");
        }
        qat_npz_free(&npz);
    } while (failed);
    ck_assert_int_gt(n, 6);
}
END_TEST

/** Written, read again, and without memory for each allocation. */
START_TEST(test_npz_written)
{
    static const char *const names[] = {"conv1/weights", "count"};
    float values[6] = {1, -2, 3.5F, 0, 1e-30F, 6};
    int64_t steps = 7;
    qat_npy const arrays[] = {{.type = QAT_NPY_F32, .rank = 2, .dims = {2, 3}, .data = values},
                              {.type = QAT_NPY_I64, .rank = 0, .data = &steps}};
    char path[TEST_PATH_MAX];
    uint8_t *bytes = NULL, *again = NULL;
    size_t count = 0, count_again = 0;
    long n = 0;
    bool failed;
    qat_error err;
    qat_npz npz;
    do {
        free(bytes);
        test_fail_alloc_after(n++);
        qat_status const st = qat_npz_bytes(2, names, arrays, "a.npz", &bytes, &count, &err);
        failed = test_fail_alloc_stop();
        ck_assert_msg((st == QAT_OK) == !failed, "%s", err.message);
        ck_assert((bytes != NULL) == !failed);
    } while (failed);
    ck_assert_int_gt(n, 4);
    MUST(qat_npz_bytes(2, names, arrays, "a.npz", &again, &count_again, &err));
    ck_assert_uint_eq(count, count_again);
    ck_assert_mem_eq(bytes, again, count);
    MUST(qat_file_write_atomic(test_temp_path(path, folder, "a.npz"), bytes, count, &err));
    MUST(qat_npz_read(&npz, path, UINT64_MAX, "", &err));
    ck_assert_int_eq(npz.count, 2);
    for (int i = 0; i < 2; i++) {
        const qat_npy *x = &npz.entries[i].array;
        ck_assert_str_eq(npz.entries[i].name, names[i]);
        ck_assert_int_eq(x->type, arrays[i].type);
        ck_assert_int_eq(x->rank, arrays[i].rank);
        ck_assert_mem_eq(x->data, arrays[i].data, x->count * qat_npy_item_bytes(x->type));
    }
    ck_assert_uint_eq(npz.entries[0].array.count, 6);
    qat_npz_free(&npz);
    free(bytes);
    free(again);
}
END_TEST

/* ------------------------------------------------------------------ frozen layers */

/** _i: float; quantized from the first step; after a delay; with statistics in one pass. */
START_TEST(test_freeze)
{
    static const char *const how[][2] = {{"quant.enabled=no", "quant.quant_delay=0"},
                                         {"quant.enabled=yes", "quant.quant_delay=0"},
                                         {"quant.enabled=yes", "quant.quant_delay=3"},
                                         {"quant.enabled=yes", "quant.bn_fold=one_pass"}};
    qat_error err;
    MUST(TRAIN("a", "train.seed=3"));
    MUST(TRAIN("b", init_from("a", "last.ckpt"), "train.freeze=conv1, logits/bias*", how[_i][0],
               how[_i][1]));
    qat_checkpoint *a = load("a"), *b = load("b");
    ck_assert(same_layer(a, b, "conv1"));
    ck_assert(same(a, b, "logits/bias/bias"));
    ck_assert(!same(a, b, "logits/weights"));
    for (int i = 0; i < 6; i++) {
        char name[QAT_NAME_MAX];
        snprintf(name, sizeof name, "conv2%s", layer_params[i]);
        ck_assert_msg(!same(a, b, name), "%s did not train", name);
    }
    qat_checkpoint_free(a);
    qat_checkpoint_free(b);
}
END_TEST

/** Until its delay, a quantized run equals the float run, also in its frozen layers. */
START_TEST(test_freeze_until_delay)
{
    qat_error err;
    MUST(TRAIN("a", "train.seed=3"));
    MUST(TRAIN("b", init_from("a", "last.ckpt"), "train.freeze=conv1", "quant.enabled=no"));
    MUST(TRAIN("c", init_from("a", "last.ckpt"), "train.freeze=conv1", "quant.enabled=yes",
               "quant.quant_delay=never"));
    qat_checkpoint *b = load("b"), *c = load("c");
    ck_assert(same_layer(b, c, "conv2"));
    ck_assert(same(b, c, "logits/weights"));
    qat_checkpoint_free(b);
    qat_checkpoint_free(c);
}
END_TEST

START_TEST(test_freeze_refuses)
{
    qat_error err;
    ck_assert_int_eq(TRAIN("a", "train.freeze=conv1, conv9"), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "train.freeze: no parameter matches 'conv9'");
    ck_assert_int_eq(TRAIN("a", "train.freeze=*"), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "train.freeze = * leaves nothing to train");
}
END_TEST

START_TEST(test_patterns)
{
    ck_assert(qat_pattern_matches("conv1", "conv1/bn/gamma"));
    ck_assert(qat_pattern_matches("conv1/bn", "conv1/bn/gamma"));
    ck_assert(qat_pattern_matches("conv1/bn/gamma", "conv1/bn/gamma"));
    ck_assert(qat_pattern_matches("*gamma", "conv1/bn/gamma"));
    ck_assert(qat_pattern_matches("conv?", "conv1/weights"));
    ck_assert(!qat_pattern_matches("conv1", "conv10/weights"));
    ck_assert(!qat_pattern_matches("gamma", "conv1/bn/gamma"));
    ck_assert(qat_patterns_match(" a*,\tb ,c", "b/weights"));
    ck_assert(!qat_patterns_match("", "b"));
    ck_assert(!qat_patterns_match(" , ", "b"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("finetune");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_loop_test(tc, test_init, 0, 2);
    tcase_add_test(tc, test_ranges_begin_anew);
    tcase_add_test(tc, test_replaced_head);
    tcase_add_test(tc, test_missing_and_unused);
    tcase_add_test(tc, test_init_refuses);
    tcase_add_test(tc, test_npz);
    tcase_add_test(tc, test_npz_of_another_method);
    tcase_add_loop_test(tc, test_given_averages_are_warm, 0, 4);
    tcase_add_test(tc, test_untouched_averages);
    tcase_add_test(tc, test_npz_refuses);
    tcase_add_test(tc, test_npz_broken);
    tcase_add_test(tc, test_npz_no_memory);
    tcase_add_test(tc, test_npz_written);
    tcase_add_loop_test(tc, test_freeze, 0, 4);
    tcase_add_test(tc, test_freeze_until_delay);
    tcase_add_test(tc, test_freeze_refuses);
    tcase_add_test(tc, test_patterns);
    Suite *suite = suite_create("finetune");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

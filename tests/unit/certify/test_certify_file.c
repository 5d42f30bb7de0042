/**
 * What a file says beside its graph is compared with recipe and checkpoint: a small network of each
 * task is trained and exported, and then one field of the source is changed at a time.
 */
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/dataset_kind.h"
#include "deploy/certified_source.h"
#include "infer/model/model.h"
#include "recipe/recipe.h"
#include "unit/task/task_export.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAIN                                                                                      \
    "[train]\nbatch = 4\nsteps = 2\neval_every = never\n[quant]\nenabled = yes\nquant_delay = 1\n"
#define CONVNET "[model]\nname = small\narch = convnet\nfilters = 4, 5\n"

static const char classifier[] =
    "[data]\nkind = shapes\ntrain_count = 12\ntest_count = 6\n" CONVNET TRAIN;
static const char attributes[] =
    "[data]\nkind = faces\nheight = 32\ntrain_count = 12\ntest_count = 6\n" CONVNET TRAIN;
static const char detector[] =
    "[data]\nkind = scenes\nheight = 64\ntrain_count = 8\ntest_count = 4\n[model]\n"
    "arch = mobilenet_ssd\nmultiplier = 0.03\n[detect]\nclassification = softmax\n" TRAIN;

/* ------------------------------------------------------------------ an exported file */

struct exported {
    qat_restored *restored;
    qat_certified_source source;
    qi_host *host;
    qat_dataset *data;
};

static void make(struct exported *x, const char *text)
{
    char path[TEST_PATH_MAX];
    qat_recipe *r = recipe_of(text);
    qat_train_options const o = {.dir = folder, .overwrite = true};
    qat_deploy_options const deploy = {.samples = 4};
    qat_deploy_result deployed;
    qat_train_result result;
    qat_input_info in;
    qat_error err;
    qat_status st = qat_train(r, &o, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_restore(&x->restored, result.checkpoint, NULL, 0, NULL), QAT_OK);
    st = qat_deploy(x->restored, test_temp_path(path, folder, "a.qm"), &deploy, &deployed, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    x->host = open_model(path, &in);
    st = qat_certified_source_open(&x->source, x->restored, &deploy, NULL, NULL, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_recipe_open_data(&x->data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_recipe_free(r);
}

static void unmake(struct exported *x)
{
    qat_dataset_close(x->data);
    qat_certified_source_close(&x->source);
    qi_host_close(x->host);
    qat_restored_free(x->restored);
}

static qat_status certify(const struct exported *x, qat_error *err)
{
    return qat_certify_file(&x->source, qi_host_model(x->host), x->data, err);
}

/** With this value the file is refused, and the message says so of this field. */
#define EXPECT(lvalue, value, says)                                                                \
    do {                                                                                           \
        __typeof__(lvalue) const kept_ = (lvalue);                                                 \
        qat_error err_ = {0};                                                                      \
        (lvalue) = (value);                                                                        \
        ck_assert_msg(certify(x, &err_) == QAT_ERR_MISMATCH, "%s: nothing noticed", #lvalue);      \
        ck_assert_msg(strstr(err_.message, says), "\"%s\" lacks \"%s\"", err_.message, says);      \
        (lvalue) = kept_;                                                                          \
    } while (0)

static void expect_acceptance(const struct exported *x)
{
    qat_error err = {0};
    ck_assert_msg(certify(x, &err) == QAT_OK, "%s", err.message);
}

/* ------------------------------------------------------------------ every task */

static void change_preprocessing(struct exported *x)
{
    qat_recipe *r = x->source.recipe;
    qat_input_info *in = &x->source.checkpoint->input;
    EXPECT(in->type, QAT_SAMPLE_F32, "preprocessing: kind");
    EXPECT(in->height, in->height + 1, "preprocessing: height");
    EXPECT(in->width, in->width - 1, "preprocessing: width");
    EXPECT(in->channels, 1, "preprocessing: channels");
    EXPECT(r->data.resize_short, 40, "preprocessing: resize_short");
    EXPECT(r->data.central_crop, 0.9, "preprocessing: central_crop");
    for (int i = 0; i < 3; i++) {
        EXPECT(in->mean[i], in->mean[i] + 1, "preprocessing: mean");
        EXPECT(in->std[i], in->std[i] * 1.01f, "preprocessing: std");
    }
    qat_real_list const one = {1, {100}};
    EXPECT(r->data.mean, one, "preprocessing: mean");
    EXPECT(r->data.std, one, "preprocessing: std");
}

static void change_origin(struct exported *x)
{
    qat_checkpoint *c = x->source.checkpoint;
    EXPECT(c->digest[31], (uint8_t)(c->digest[31] ^ 1), "SHA-256");
    EXPECT(x->source.recipe->model.name, "another", "description");
}

static void change_labels(struct exported *x)
{
    qat_checkpoint *c = x->source.checkpoint;
    int const last = c->input.classes - 1;
    EXPECT(c->labels, NULL, "the number of labels");
    EXPECT(c->input.classes, last, "the number of labels");
    EXPECT(c->labels[last], c->labels[0], "label ");
    EXPECT(c->labels[0], c->labels[last], "label ");
}

START_TEST(test_every_task)
{
    static const char *const texts[] = {classifier, attributes, detector};
    struct exported exported, *x = &exported;
    make(x, texts[_i]);
    expect_acceptance(x);
    change_preprocessing(x);
    change_origin(x);
    change_labels(x);
    expect_acceptance(x);
    unmake(x);
}
END_TEST

/* ------------------------------------------------------------------ one task */

/** Labels of the data that the file is verified on; an epilogue that is missing; no known answer.
 */
START_TEST(test_classifier)
{
    struct exported exported, *x = &exported;
    make(x, classifier);
    int const n = x->data->info.classes;
    const char **swapped = calloc((size_t)n, sizeof *swapped);
    for (int i = 0; i < n; i++)
        swapped[i] = x->data->info.labels[n - 1 - i];
    EXPECT(x->data->info.labels, swapped, "class 0 of shapes/test is");
    free(swapped);
    qi_model *m = (qi_model *)(uintptr_t)qi_host_model(x->host);
    EXPECT(m->epilogue.name, "attributes", "the number of epilogues");
    EXPECT(m->kat, NULL, "known-answer test");
    unmake(x);
}
END_TEST

START_TEST(test_attributes)
{
    struct exported exported, *x = &exported;
    make(x, attributes);
    qat_recipe *r = x->source.recipe;
    EXPECT(r->attributes.low, r->attributes.low + 1, "epilogue: parameter");
    EXPECT(r->attributes.high, r->attributes.high + 1, "epilogue: parameter");
    EXPECT(r->attributes.steps, r->attributes.steps + 1, "epilogue: parameter");
    qi_model *m = (qi_model *)(uintptr_t)qi_host_model(x->host);
    EXPECT(m->epilogue.name, NULL, "epilogue");
    unmake(x);
}
END_TEST

START_TEST(test_detector)
{
    struct exported exported, *x = &exported;
    make(x, detector);
    qat_recipe *r = x->source.recipe;
    EXPECT(r->detect.max_detections, r->detect.max_detections + 1, "epilogue: parameter 0");
    EXPECT(r->detect.score_threshold, 0.3, "epilogue: parameter 5");
    EXPECT(r->detect.nms_iou, 0.11, "epilogue: parameter 6");
    EXPECT(r->detect.min_scale, r->detect.min_scale + 0.01, "anchor ");
    EXPECT(r->detect.max_scale, r->detect.max_scale - 0.01, "anchor ");
    EXPECT(r->detect.reduced_lowest, !r->detect.reduced_lowest, "anchor");
    EXPECT(r->detect.classification, 0, "the number of labels");
    unmake(x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("certify file");
    TCase *tc = tcase_create("fields");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_every_task, 0, 3);
    tcase_add_test(tc, test_classifier);
    tcase_add_test(tc, test_attributes);
    tcase_add_test(tc, test_detector);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * Detectors from recipe to .qm: the network, what its anchors learn, training, evaluation, export,
 * and what is refused.
 */
#include "base/bytes.h"
#include "checkpoint/restore.h"
#include "common/common.h"
#include "common/suite.h"
#include "common/temp.h"
#include "networks/network.h"
#include "qat/border.h"
#include "task/detector.h"
#include "unit/task/task_export.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA                                                                                       \
    "[data]\nkind = scenes\nheight = 64\ntrain_count = 24\ntest_count = 12\none_class = yes\n"     \
    "flip = yes\nssd_crop = yes\n"
#define MODEL "[model]\narch = mobilenet_ssd\nmultiplier = 0.05\n"
#define TRAIN                                                                                      \
    "[train]\nbatch = 8\nsteps = 8\neval_batch = 6\noptimizer = adam\nlr = 0.003\n"                \
    "eval_every = 4\n[quant]\nenabled = yes\nquant_delay = 3\nbn_freeze_delay = 5\n"

/* ------------------------------------------------------------------ the network */

static qat_graph *build(const qat_registry *registry, const qat_recipe *r, int side, int classes)
{
    qat_input_info const in = {.height = side, .width = side, .channels = 3, .classes = classes};
    qat_graph *g;
    qat_error err;
    qat_status const st = qat_network_build(&g, registry, r, &in, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return g;
}

/* 300 x 300: Liu et al.'s and Howard et al.'s feature maps, 19, 10, 5, 3, 2 and 1 cells wide. */
START_TEST(the_published_size_has_1917_anchors)
{
    static const struct {
        const char *extra;
        int scores;
    } cases[] = {{"", 91}, {"[detect]\nclassification = softmax\n", 92}};
    qat_registry *registry;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    for (int i = 0; i < 2; i++) {
        char text[256];
        qat_detector *d;
        snprintf(text, sizeof text, "[data]\nkind = scenes\n%s%s", MODEL, cases[i].extra);
        qat_recipe *r = recipe_of(text);
        qat_graph *g = build(registry, r, 300, 91);
        const qat_node *codes = qat_graph_output_at(g, 0), *scores = qat_graph_output_at(g, 1);
        qat_shape const four = QAT_SHAPE(1, 1917, 4), each = QAT_SHAPE(1, 1917, cases[i].scores);
        ck_assert(qat_shape_equal(&codes->shape, &four));
        ck_assert(qat_shape_equal(&scores->shape, &each));
        ck_assert_int_eq(qat_detector_create(&d, g, r, 91, NULL), QAT_OK);
        ck_assert_int_eq(d->n_anchors, 1917);
        ck_assert_int_eq(d->rules.background, i);
        qat_detector_free(d);
        qat_graph_free(g);
        qat_recipe_free(r);
    }
    qat_registry_free(registry);
}
END_TEST

/** Each anchor has 4 numbers and 3 scores; a checkpoint may say that there are more classes. */
START_TEST(outputs_of_other_sizes_are_refused)
{
    qat_registry *registry;
    qat_detector *d;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    qat_recipe *r = recipe_of("[data]\nkind = scenes\n" MODEL);
    qat_graph *g = build(registry, r, 64, 3);
    ck_assert_int_eq(qat_detector_create(&d, g, r, 4, &err), QAT_ERR_SHAPE);
    ck_assert_ptr_null(d);
    ck_assert_ptr_nonnull(strstr(err.message, "anchors with 4 values each, but its output scores"));
    qat_graph_output(g, qat_graph_output_at(g, 0));
    ck_assert_int_eq(qat_detector_create(&d, g, r, 3, &err), QAT_ERR_SHAPE);
    ck_assert_str_eq(err.message, "a detector has 2 outputs, boxes and scores, not 3");
    qat_graph_free(g);
    qat_recipe_free(r);
    qat_registry_free(registry);
}
END_TEST

START_TEST(anchors_learn_what_they_overlap)
{
    qat_registry *registry;
    qat_detector *d;
    qat_truth truth[2] = {{.label = 2}, {.label = 0, .crowd = true}};
    qat_objects const objects = {64, 64, 2, truth};
    qat_batch const batch = {.count = 1, .objects = &objects};
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    qat_recipe *r = recipe_of("[data]\nkind = scenes\n" MODEL);
    qat_graph *g = build(registry, r, 64, 3);
    ck_assert_int_eq(qat_detector_create(&d, g, r, 3, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_TRAIN, NULL), QAT_OK);
    int const last = d->n_anchors - 1;
    truth[0].box = qat_box_corners(&d->anchors[last]);
    truth[1].box = qat_box_corners(&d->anchors[0]);
    ck_assert_int_eq(qat_feed_targets(&(qat_input_info){.state = d}, r, g, &batch, NULL), QAT_OK);
    const float *codes = qat_graph_find(g, QAT_TARGET_CODES_NAME)->value;
    const float *classes = qat_graph_find(g, QAT_TARGET_CLASSES_NAME)->value;
    ck_assert(classes[last] == 3 && classes[0] == -1);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq_tol(codes[4 * last + i], 0, 1e-5f);
    qat_detector_free(d);
    qat_graph_free(g);
    qat_recipe_free(r);
    qat_registry_free(registry);
}
END_TEST

/* ------------------------------------------------------------------ all the way */

/*
 * The answers in training steps are not judged: the accuracy is neither 0 nor 100 percent, but NaN.
 */
static void note_accuracy(void *context, const qat_train_progress *p)
{
    if (p->event == QAT_EVENT_ROW)
        *(bool *)context = isnan(p->accuracy);
}

/** *unjudged: have rows of the log no accuracy of the training batches? */
static qat_train_result train(const qat_recipe *r, const char *dir, bool *unjudged)
{
    qat_train_options const o = {.dir = dir, .progress = note_accuracy, .context = unjudged};
    qat_train_result result;
    qat_error err;
    qat_status const st = qat_train(r, &o, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return result;
}

/** The exact evaluation and the engine find the same boxes. */
/** The model's figures are those that the run had. */
static void check_export(const qat_restored *c, const qat_dataset *data, const qat_accuracy *run)
{
    char path[TEST_PATH_MAX];
    qat_input_info in;
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    ck_assert(qat_is_detector(qi_host_model(host)));
    ck_assert_int_eq(qat_detector_classes(qi_host_model(host)), 1);
    qat_accuracy const engine = judge_model(host, &in, data);
    ck_assert(exact.task == &qat_task_boxes && engine.task == exact.task && exact.n == 12);
    ck_assert(exact.figures[QAT_AP50] == engine.figures[QAT_AP50] &&
              exact.figures[QAT_AP] == engine.figures[QAT_AP]);
    ck_assert(run->n == 12 && run->figures[QAT_AP50] == engine.figures[QAT_AP50] &&
              run->figures[QAT_AP] == engine.figures[QAT_AP]);
    ck_assert(exact.figures[QAT_AP50_LOW] == engine.figures[QAT_AP50_LOW] &&
              exact.figures[QAT_AP50_HIGH] == engine.figures[QAT_AP50_HIGH]);
    ck_assert(exact.figures[QAT_PRECISION] == engine.figures[QAT_PRECISION] &&
              exact.figures[QAT_RECALL] == engine.figures[QAT_RECALL]);
    qi_host_close(host);
}

/** A classifier does not learn from it. */
static void check_no_teacher(const char *checkpoint)
{
    char text[2 * TEST_PATH_MAX], dir[2 * TEST_PATH_MAX];
    qat_error err;
    snprintf(text, sizeof text,
             "[data]\nkind = digits\ntrain_count = 100\ntest_count = 10\n[distill]\nteacher = %s\n",
             checkpoint);
    snprintf(dir, sizeof dir, "%s/student", folder);
    qat_recipe *r = recipe_of(text);
    qat_train_options const o = {.dir = dir};
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "the teacher is a detector"));
    qat_recipe_free(r);
}

START_TEST(a_detector_trains_and_exports)
{
    char text[1024];
    qat_restored *c;
    qat_dataset *data;
    snprintf(text, sizeof text, "%s%s%s%s", DATA, MODEL, TRAIN,
             _i ? "[detect]\nclassification = softmax\n" : "");
    qat_recipe *r = recipe_of(text);
    bool unjudged = false;
    qat_train_result const result = train(r, folder, &unjudged);
    ck_assert(unjudged);
    check_no_teacher(result.checkpoint);
    ck_assert(result.float_accuracy.task == &qat_task_boxes &&
              result.float_accuracy.figures[QAT_AP50] >= 0);
    ck_assert(result.integer_accuracy.task == &qat_task_boxes && isfinite(result.loss) &&
              result.loss > 0);
    ck_assert_int_eq(result.simulated_accuracy.n, 0);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert(c->checkpoint->input.state && c->checkpoint->float_accuracy.figures[QAT_AP50] ==
                                                result.float_accuracy.figures[QAT_AP50]);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    check_export(c, data, &result.integer_accuracy);
    qat_dataset_close(data);
    qat_restored_free(c);
    qat_recipe_free(r);
}
END_TEST

/* ------------------------------------------------------------------ findings */

/* Two objects and two boxes on them, one with a score of 0; a row that is empty. */
START_TEST(a_score_of_zero_is_found_too)
{
    qat_truth truth[2] = {{.box = {0, 0, 0.5f, 0.5f}, .area = 100},
                          {.box = {0.5f, 0.5f, 1, 1}, .area = 100}};
    qat_objects const objects = {64, 64, 2, truth};
    float boxes[12] = {0, 0, 0.5f, 0.5f, 0.5f, 0.5f, 1, 1}, classes[3] = {0}, scores[3] = {0.5f};
    bool used[3] = {true, true, false};
    qat_detections const d = {
        .rows = 3, .found = 2, .boxes = boxes, .classes = classes, .scores = scores, .used = used};
    qat_findings *f;
    qat_accuracy a;
    ck_assert_int_eq(qat_findings_create(&f, 1, NULL), QAT_OK);
    ck_assert_int_eq(qat_findings_add_detections(f, &objects, &d, NULL), QAT_OK);
    ck_assert_int_eq(qat_findings_judge(f, &a, NULL), QAT_OK);
    ck_assert_double_gt(a.figures[QAT_AP50], 0.999);
    ck_assert_double_eq_tol(a.figures[QAT_PRECISION], 1, 1e-12);
    ck_assert_double_eq_tol(a.figures[QAT_RECALL], 0.5,
                            1e-12); /* of a score from 1/2 on: one of two */
    qat_findings_free(f);
}
END_TEST

/* Pictures without objects have no average precision, which is not one below zero. */
START_TEST(without_objects_precision_is_not_known)
{
    qat_objects const objects = {.height = 64, .width = 64};
    qat_text told = {0};
    qat_findings *f;
    qat_accuracy a;
    ck_assert_int_eq(qat_findings_create(&f, 1, NULL), QAT_OK);
    ck_assert_int_eq(qat_findings_add(f, &objects, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(qat_findings_judge(f, &a, NULL), QAT_OK);
    ck_assert(isnan(qat_main_figure(&a)));
    qat_task_boxes.tell(&told, &a, 1);
    qat_task_boxes.tell_json(&told, &a, "");
    qat_write_u8(&told, 0);
    ck_assert_str_eq((const char *)told.bytes,
                     "AP50 not known  AP@[.5:.95] not known  precision 100.00 %, recall 100.00 %  "
                     "(1 picture), \"precision\": 1, \"recall\": 1");
    qat_writer_free(&told);
    qat_findings_free(f);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static const struct {
    const char *text, *says;
} refused[] = {
    {DATA "[model]\narch = convnet\n", "scenes/train has pictures with boxes"},
    {"[data]\nkind = digits\ntrain_count = 100\ntest_count = 10\n" MODEL,
     "model.arch = mobilenet_ssd learns boxes, but digits/train has none"},
    {"[data]\nkind = scenes\nheight = 32\n" MODEL,
     "model.arch = mobilenet_ssd takes pictures of 64 x 64 or more"},
    {DATA MODEL "[train]\nbatch = 4\n[distill]\nteacher = large.ckpt\n",
     "distill.teacher = large.ckpt: the student is a detector"},
};

START_TEST(what_is_no_detection_is_refused)
{
    qat_recipe *r = recipe_of(refused[_i].text);
    qat_train_options const o = {.dir = folder};
    qat_error err;
    ck_assert_int_ne(qat_train(r, &o, NULL, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, refused[_i].says), "\"%s\" lacks \"%s\"", err.message,
                  refused[_i].says);
    qat_recipe_free(r);
}
END_TEST

/* ------------------------------------------------------------------ long labels */

/** Two pictures with a box each, in COCO's format; the first category's name is long. */
static void write_coco(const char *split, size_t label_bytes)
{
    enum { SIDE = 64, HEAD = 13 };
    static uint8_t picture[HEAD + SIDE * SIDE * 3];
    char name[64], label[6000], json[8000];
    memset(picture, 90, sizeof picture);
    memcpy(picture, "P6\n64 64\n255\n", HEAD);
    memset(label, 'x', label_bytes);
    label[label_bytes] = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "images/%s/%d.ppm", split, i);
        test_temp_write(folder, name, picture, sizeof picture);
    }
    int const n = snprintf(
        json, sizeof json,
        "{\"images\": [{\"id\": 1, \"file_name\": \"%s/0.ppm\", \"width\": 64, \"height\": 64}, "
        "{\"id\": 2, \"file_name\": \"%s/1.ppm\", \"width\": 64, \"height\": 64}], "
        "\"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 1, \"area\": 400, "
        "\"iscrowd\": 0, \"bbox\": [4, 4, 20, 20]}, {\"id\": 2, \"image_id\": 2, \"category_id\": "
        "2, "
        "\"area\": 400, \"iscrowd\": 0, \"bbox\": [8, 9, 20, 20]}], "
        "\"categories\": [{\"id\": 1, \"name\": \"%s\"}, {\"id\": 2, \"name\": \"short\"}]}",
        split, split, label);
    snprintf(name, sizeof name, "instances_%s.json", split);
    test_temp_write(folder, name, json, (size_t)n);
}

static qat_recipe *coco_recipe(size_t label_bytes)
{
    char text[2048];
    write_coco("train", label_bytes);
    write_coco("val", label_bytes);
    snprintf(text, sizeof text, "[data]\nkind = coco\npath = %s\nheight = 64\n%s%s", folder, MODEL,
             "[train]\nbatch = 2\nsteps = 2\neval_every = never\n[quant]\nenabled = yes\n");
    return recipe_of(text);
}

/** A label of 300 bytes comes through checkpoint and file whole; one that is too long is named. */
START_TEST(long_labels_are_kept)
{
    char path[TEST_PATH_MAX];
    qat_recipe *r = coco_recipe(300);
    qat_train_options o = {.dir = folder};
    qat_deploy_options const deploy = {0};
    qat_train_result result;
    qat_deploy_result deployed;
    qat_restored *c;
    qat_input_info in;
    qat_error err;
    qat_status st = qat_train(r, &o, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    st = qat_deploy(c, test_temp_path(path, folder, "a.qm"), &deploy, &deployed, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    qi_host *host = open_model(path, &in);
    ck_assert_uint_eq(strlen(qi_label_at(qi_host_model(host), 0)), 300);
    ck_assert_str_eq(qi_label_at(qi_host_model(host), 1), "short");
    qi_host_close(host);
    qat_restored_free(c);
    qat_recipe_free(r);
    r = coco_recipe(5000);
    o.overwrite = true;
    ck_assert_int_eq(qat_train(r, &o, NULL, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "the label of class 0 has 5000 bytes"));
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("detector");
    TCase *tc = tcase_create("detector");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, the_published_size_has_1917_anchors);
    tcase_add_test(tc, outputs_of_other_sizes_are_refused);
    tcase_add_test(tc, anchors_learn_what_they_overlap);
    tcase_add_loop_test(tc, a_detector_trains_and_exports, 0, 2);
    tcase_add_test(tc, a_score_of_zero_is_found_too);
    tcase_add_test(tc, without_objects_precision_is_not_known);
    tcase_add_loop_test(tc, what_is_no_detection_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, long_labels_are_kept);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

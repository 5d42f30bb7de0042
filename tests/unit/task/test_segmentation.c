/**
 * Classes of pixels: the figures, drawn scenes and masks in files, how masks move, training and
 * export, and what is refused.
 */
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/loader/augment.h"
#include "evaluate/data.h"
#include "task/task.h"
#include "unit/task/task_export.h"

#include <check.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DATA                                                                                       \
    "[data]\nkind = scenes\npixels = yes\nheight = 32\ntrain_count = 40\ntest_count = 20\n"        \
    "flip = yes\ncrop_pad = 2\n"
#define BATCH "[train]\nbatch = 10\nsteps = 6\neval_every = 3\noptimizer = adam\nlr = 0.003\n"
#define QUANT "[quant]\nenabled = yes\nquant_delay = 2\n"
#define NET(last)                                                                                  \
    "[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 6\nstride = 2\nbatch_norm = "       \
    "yes\nactivation = relu\n" last
#define UP NET("[layer.b]\nop = transpose_conv2d\nfilters = 11\nbias = yes\n")
#define RESIZED                                                                                    \
    NET("[layer.b]\nop = conv2d\nfilters = 11\nbias = yes\n[layer.c]\nop = resize_bilinear\n"      \
        "factor = 2\n")

enum { MIOU, PIXEL_ACCURACY };

/* 1 x 4 pixels of three classes. */
START_TEST(figures_by_hand)
{
    static const struct {
        int said[4];
        float truth[4];
        double miou, right;
    } cases[] = {
        {{0, 1, 2, 0}, {0, 1, 2, 0}, 1, 1},
        {{0, 0, 0, 0}, {0, 0, 1, 1}, (2 / 4.0 + 0) / 2, 0.5},
        {{0, 1, 1, 2}, {0, 0, 1, 1}, (1 / 2.0 + 1 / 3.0 + 0) / 3, 0.5},
        {{0, 1, 1, 2}, {0, NAN, 1, NAN}, 1, 1},
        {{0, 1, 1, 2}, {NAN, NAN, NAN, NAN}, -1, -1},
    };
    const qat_task *task = &qat_task_segmentation;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float scores[12] = {0};
        qat_accuracy a;
        void *pass = NULL;
        for (int k = 0; k < 4; k++)
            scores[3 * k + cases[i].said[k]] = 1;
        qat_outputs const outputs = {.n = 1, .at = {{.name = "out", .n = 12, .real = scores}}};
        qat_input_info const in = {.classes = 3, .height = 1, .width = 4};
        qat_batch const batch = {.count = 1, .targets = cases[i].truth, .n_targets = 4};
        ck_assert_int_eq(task->begin(&pass, &in, NULL), QAT_OK);
        ck_assert_int_eq(task->add(pass, &outputs, &batch, 1, NULL), QAT_OK);
        ck_assert_int_eq(task->judge(pass, &a, NULL), QAT_OK);
        ck_assert(a.task == task && a.n == 1);
        ck_assert_double_eq_tol(a.figures[MIOU], cases[i].miou, 1e-12);
        ck_assert_double_eq_tol(a.figures[PIXEL_ACCURACY], cases[i].right, 1e-12);
        scores[5] = NAN;
        ck_assert_int_eq(task->add(pass, &outputs, &batch, 1, NULL), QAT_ERR_NUMERIC);
        task->end(pass);
    }
}
END_TEST

/* A picture whose pixels are their own classes moves as they do; 0 stands for what is not known. */
START_TEST(masks_move_with_pictures)
{
    enum { H = 5, W = 6 };
    qat_augment const a = {.crop_pad = 3, .flip = true};
    for (int index = 0; index < 40; index++) {
        uint8_t pixels[H * W], scratch[H * W];
        float classes[H * W];
        for (int i = 0; i < H * W; i++)
            classes[i] = pixels[i] = (uint8_t)(i + 1);
        qat_augment_u8(&a, pixels, H, W, 1, 7, 1, index, scratch);
        qat_augment_classes(&a, classes, H, W, 7, 1, index);
        for (int i = 0; i < H * W; i++)
            ck_assert(pixels[i] ? classes[i] == pixels[i] : isnan(classes[i]));
    }
}
END_TEST

/* The shapes stand where the boxes are, and the pictures are the same. */
START_TEST(drawn_scenes_have_masks)
{
    qat_dataset_options o = {.kind = "scenes", .height = 32, .train_count = 10};
    qat_dataset *boxes, *masks;
    ck_assert_int_eq(qat_dataset_open(&boxes, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    o.pixels = true;
    ck_assert_int_eq(qat_dataset_open(&masks, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    const qat_dataset_info *info = qat_dataset_info_of(masks);
    ck_assert(info->targets == QAT_TARGETS_PIXELS && info->n_targets == 32 * 32);
    ck_assert(info->classes == 11 && !info->has_objects && !strcmp(info->labels[0], "background"));
    ck_assert(qat_task_for(NULL, NULL, info) == &qat_task_segmentation);
    for (int i = 0; i < 10; i++) {
        const qat_objects *found = qat_dataset_objects(boxes, i);
        const float *classes = qat_dataset_targets(masks, i);
        for (int p = 0; p < 32 * 32; p++) {
            float const y = ((float)(p / 32) + 0.5F) / 32, x = ((float)(p % 32) + 0.5F) / 32;
            bool inside = classes[p] == 0;
            for (int k = 0; k < found->count; k++) {
                const qat_truth *t = &found->truth[k];
                inside |= (float)t->label + 1 == classes[p] && y > t->box.ymin && y < t->box.ymax &&
                          x > t->box.xmin && x < t->box.xmax;
            }
            ck_assert(inside);
        }
    }
    qat_dataset_close(boxes);
    qat_dataset_close(masks);
}
END_TEST

/* ------------------------------------------------------------------ files */

static void write_png(const char *name, int height, int width, uint32_t format, const void *pixels)
{
    char path[TEST_PATH_MAX];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = format,
                       .height = (png_uint_32)height,
                       .width = (png_uint_32)width};
    ck_assert(
        png_image_write_to_file(&image, test_temp_path(path, folder, name), 0, pixels, 0, NULL));
}

static qat_status open_masks(qat_dataset **d, int classes, int ignore, qat_error *err)
{
    qat_dataset_options const o = {.kind = "masks",
                                   .path = folder,
                                   .height = 2,
                                   .width = 2,
                                   .split = 0.5,
                                   .classes = classes,
                                   .ignore = ignore};
    return qat_dataset_open(d, &o, QAT_SPLIT_TRAIN, err);
}

START_TEST(masks_in_files)
{
    static const uint8_t rgb[4 * 4 * 3] = {9};
    static const uint8_t mask[4 * 4] = {0, 1, 2, 2, 1, 1, 2, 255, 0, 0, 3, 3, 0, 0, 3, 3};
    char path[TEST_PATH_MAX];
    qat_dataset *d;
    qat_error err;
    ck_assert_int_eq(mkdir(test_temp_path(path, folder, "images"), 0777), 0);
    ck_assert_int_eq(mkdir(test_temp_path(path, folder, "masks"), 0777), 0);
    write_png("images/a.png", 4, 4, PNG_FORMAT_RGB, rgb);
    ck_assert_int_ne(open_masks(&d, 0, 0, &err), QAT_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "masks/a.png"));
    write_png("masks/a.png", 4, 4, PNG_FORMAT_RGB, rgb);
    ck_assert_int_eq(open_masks(&d, 0, 0, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "a.png: a PNG of 8-bit colours; a mask has"));
    write_png("masks/a.png", 4, 3, PNG_FORMAT_GRAY, mask);
    ck_assert_int_eq(open_masks(&d, 0, 0, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "masks/a.png: 4 x 3 pixels, but its picture"));
    write_png("masks/a.png", 4, 4, PNG_FORMAT_GRAY, mask);
    ck_assert_int_eq(open_masks(&d, 3, 0, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "class 3 of the pixel in row 2, column 2 is not in 0..2"));
    ck_assert_msg(open_masks(&d, 0, 0, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 4);
    const float *t = qat_dataset_targets(d, 0); /* the pixels in odd rows and columns */
    ck_assert(t[0] == 1 && isnan(t[1]) && t[2] == 0 && t[3] == 3);
    qat_dataset_close(d);
    ck_assert_msg(open_masks(&d, 4, 1 + 0, &err) == QAT_ERR_FORMAT, "255 is no class then");
}
END_TEST

/* ------------------------------------------------------------------ all the way */

static const char *const networks[] = {DATA BATCH UP QUANT, DATA BATCH RESIZED QUANT,
                                       DATA BATCH UP QUANT "layout = int8\nprofile = tflite\n"};

START_TEST(segmentations_train_and_export)
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
    ck_assert(result.float_accuracy.task == &qat_task_segmentation);
    ck_assert_int_eq(qat_restore(&c, result.checkpoint, NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    qat_accuracy const exact = export_task(c, data, test_temp_path(path, folder, "a.qm"));
    qi_host *host = open_model(path, &in);
    ck_assert(in.task == &qat_task_segmentation && in.classes == 11);
    qat_accuracy const engine = judge_model(host, &in, data);
    ck_assert(exact.n == 20 && engine.n == 20);
    for (int i = 0; i <= PIXEL_ACCURACY; i++) {
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
    {DATA BATCH NET(""), "the last layer, a/relu, gives [1, 16, 16, 6], but"},
    {DATA BATCH "[model]\noutput = softmax\narch = layers\n[layer.a]\nop = conv2d\nfilters = 11\n",
     "model.output = softmax"},
    {DATA "crop_area = 0.5, 1\ncrop_pad = 0\n" BATCH UP, "crop_pad"},
    {DATA "presence = yes\n" BATCH UP, "pixels and presence"},
};

START_TEST(what_does_not_go_with_pixels_is_refused)
{
    refuses_recipe(refused[_i].text, refused[_i].says);
}
END_TEST

#define COUNT(of) (int)(sizeof(of) / sizeof *(of))

int main(void)
{
    Suite *suite = suite_create("segmentation");
    TCase *tc = tcase_create("segmentation");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, figures_by_hand);
    tcase_add_test(tc, masks_move_with_pictures);
    tcase_add_test(tc, drawn_scenes_have_masks);
    tcase_add_test(tc, masks_in_files);
    tcase_add_loop_test(tc, segmentations_train_and_export, 0, COUNT(networks));
    tcase_add_loop_test(tc, what_does_not_go_with_pixels_is_refused, 0, COUNT(refused));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

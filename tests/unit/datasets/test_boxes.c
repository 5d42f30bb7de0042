/** Pictures with objects: COCO's files, what they refuse, the procedural set, and batches of them.
 */
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"
#include "qat/runtime.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static FILE *create(const char *name)
{
    char path[2 * TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/%.64s", folder, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    return f;
}

static void write_text(const char *name, const char *text)
{
    FILE *f = create(name);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/** Binary PPM: red rises to the right, green downwards. */
static void write_picture(const char *name, int height, int width)
{
    char path[2 * TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/images", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "images/%.32s", name);
    FILE *f = create(path);
    fprintf(f, "P6\n%d %d\n255\n", width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            fputc(4 * x, f);
            fputc(4 * y, f);
            fputc(7, f);
        }
    ck_assert_int_eq(fclose(f), 0);
}

static qat_dataset *open_set(const qat_dataset_options *o, qat_split split)
{
    qat_dataset *d;
    qat_error err = {0};
    qat_status const st = qat_dataset_open(&d, o, split, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return d;
}

static qat_dataset_options coco(void)
{
    return (qat_dataset_options){.kind = "coco", .path = folder, .height = 8, .width = 8};
}

/* ------------------------------------------------------------------ reading */

/* Ids in no order; a crowd; a box without area; a picture without objects. */
static const char *const good =
    "{\"categories\": [{\"id\": 90, \"name\": \"cat\"}, {\"id\": 7, \"name\": \"dog\"}],"
    " \"images\": [{\"id\": 5, \"file_name\": \"b.ppm\", \"height\": 32, \"width\": 64},"
    "              {\"id\": 2, \"file_name\": \"a.ppm\", \"height\": 32, \"width\": 32}],"
    " \"annotations\": ["
    "  {\"id\": 1, \"image_id\": 5, \"category_id\": 90, \"bbox\": [16, 8, 32, 16], \"area\": "
    "99.5},"
    "  {\"id\": 2, \"image_id\": 5, \"category_id\": 7, \"bbox\": [-4, 0, 8, 32], \"iscrowd\": 1},"
    "  {\"id\": 3, \"image_id\": 5, \"category_id\": 7, \"bbox\": [3, 3, 0, 9]}]}";

START_TEST(annotations_become_shares)
{
    write_text("instances_train.json", good);
    write_picture("a.ppm", 32, 32);
    write_picture("b.ppm", 32, 64);
    qat_dataset_options o = coco();
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    const qat_objects *b = qat_dataset_objects(d, 0), *a = qat_dataset_objects(d, 1);
    uint8_t values[8 * 8 * 3];
    int label;
    ck_assert_int_eq(info->count, 2);
    ck_assert_int_eq(info->classes, 2);
    ck_assert_str_eq(info->labels[0], "dog");
    ck_assert_str_eq(info->labels[1], "cat");
    ck_assert(info->has_objects && info->most_objects == 2);
    ck_assert(b->height == 32 && b->width == 64 && b->count == 2 && a->count == 0);
    qat_truth const t = b->truth[0], crowd = b->truth[1];
    ck_assert(t.label == 1 && t.area == 99.5 && !t.crowd);
    ck_assert(t.box.ymin == 0.25f && t.box.xmin == 0.25f && t.box.ymax == 0.75f &&
              t.box.xmax == 0.75f);
    ck_assert(crowd.label == 0 && crowd.crowd && crowd.area == 256 && crowd.box.xmin == -0.0625f);
    ck_assert_int_eq(qat_dataset_get(d, 0, values, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 0);
    ck_assert_int_eq(values[2], 7);
    ck_assert_int_eq(values[0], 14); /* between columns 3 and 4 of 64 */
    qat_dataset_close(d);
    o.one_class = true;
    o.train_count = 1;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 1);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 1);
    ck_assert_int_eq(qat_dataset_objects(d, 0)->truth[0].label, 0);
    qat_dataset_close(d);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

#define CATEGORIES "\"categories\": [{\"id\": 1, \"name\": \"cat\"}]"
#define IMAGES     "\"images\": [{\"id\": 2, \"file_name\": \"a.ppm\", \"height\": 32, \"width\": 64}]"
#define ANNOTATED(text)                                                                            \
    "{" CATEGORIES ", " IMAGES ", \"annotations\": [{\"id\": 31, \"image_id\": 2, " text "}]}"
#define BOX(text) ANNOTATED("\"category_id\": 1, \"bbox\": " text)

static const struct {
    const char *text, *says;
} refused[] = {
    {"{\"images\": [,]}", "instances_train.json:1:13: not JSON: "},
    {"", "not JSON"},
    {"{\"images\": [", "not JSON"},
    {"[1, 2]", "no list \"images\""},
    {"{" CATEGORIES ", " IMAGES "}", "no list \"annotations\""},
    {"{\"categories\": [], " IMAGES ", \"annotations\": []}", "0 categories"},
    {"{\"categories\": [{\"id\": 1}], " IMAGES ", \"annotations\": []}",
     "category 1 has no string \"name\""},
    {"{\"categories\": [{\"id\": 1, \"name\": \"a\"}, {\"id\": 1, \"name\": \"b\"}], " IMAGES
     ", \"annotations\": []}",
     "two categories have the id 1"},
    {"{" CATEGORIES ", \"images\": [], \"annotations\": []}", "no images"},
    {"{" CATEGORIES ", \"images\": [{\"file_name\": \"a\"}], \"annotations\": []}",
     "images number 1 has no integer \"id\""},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"height\": 3}], \"annotations\": []}",
     "image 8 has no string \"file_name\""},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"file_name\": \"/a\"}], \"annotations\": []}",
     "image 8: \"file_name\" is \"/a\", which lies outside of the folder of pictures"},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"file_name\": \"..\"}], \"annotations\": []}",
     "image 8: \"file_name\" is \"..\", which"},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"file_name\": \"a/../../b\"}], "
     "\"annotations\": []}",
     "image 8: \"file_name\" is \"a/../../b\", which"},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"file_name\": \"b/..\"}], "
     "\"annotations\": []}",
     "image 8: \"file_name\" is \"b/..\", which"},
    {"{" CATEGORIES ", \"images\": [{\"id\": 8, \"file_name\": \"..a/...\", \"height\": 0}], "
     "\"annotations\": []}",
     "image 8: \"height\" is 0"},
    {"{" CATEGORIES
     ", \"images\": [{\"id\": 8, \"file_name\": \"a\", \"height\": 0}], \"annotations\": []}",
     "image 8: \"height\" is 0, not an integer in 1..65536"},
    {"{" CATEGORIES ", " IMAGES ", \"annotations\": [{\"id\": 31}]}",
     "annotation 31 has no integer \"image_id\""},
    {"{" CATEGORIES ", " IMAGES ", \"annotations\": [{\"id\": 31, \"image_id\": 3}]}",
     "annotation 31: image_id 3: there is no such image"},
    {ANNOTATED("\"category_id\": 4"), "annotation 31: category_id 4: there is no such category"},
    {ANNOTATED("\"category_id\": 1"), "annotation 31: \"bbox\" is not a list of 4 numbers"},
    {BOX("[1, 2, 3]"), "annotation 31: \"bbox\" is not a list of 4 numbers"},
    {BOX("[1, 2, -3, 4]"), "annotation 31: bbox [1, 2, -3, 4] is not x, y, width, height of"},
    {BOX("[1, 2, \"3\", 4]"), "annotation 31: bbox [1, 2, nan, 4]"},
    {BOX("[64, 2, 3, 4]"), "in a picture of 64 x 32"},
    {BOX("[-5, 2, 5, 4]"), "bbox [-5, 2, 5, 4]"},
    {BOX("[1, 2, 3, 1e30]"), "bbox [1, 2, 3, 1e+30]"},
    {BOX("[1, 2, 3, 4], \"area\": -1"), "annotation 31: \"area\" is -1"},
    {BOX("[1, 2, 3, 4], \"iscrowd\": 2"), "annotation 31: \"iscrowd\" is 2, not 0 or 1"},
};

START_TEST(broken_annotations_are_named)
{
    qat_dataset_options const o = coco();
    qat_dataset *d;
    qat_error err;
    write_text("instances_train.json", refused[_i].text);
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, refused[_i].says) && strstr(err.message, folder),
                  "\"%s\" lacks \"%s\"", err.message, refused[_i].says);
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(missing_files_and_wrong_pictures_are_named)
{
    qat_dataset_options o = coco();
    qat_dataset *d;
    qat_error err;
    uint8_t values[8 * 8 * 3];
    int label;
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "instances_val.json"));
    o.annotations[QAT_SPLIT_TEST] = "other.json";
    write_text("other.json", good);
    write_picture("b.ppm", 32, 48);
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_get(d, 0, values, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "images/b.ppm: 48 x 32 pixels (width x height), "));
    ck_assert_ptr_nonnull(strstr(err.message, "other.json says 64 x 32"));
    ck_assert_int_eq(qat_dataset_get(d, 1, values, &label, &err), QAT_ERR_IO);
    qat_dataset_close(d);
    o.max_pixels = 32 * 48 - 1;
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_get(d, 0, values, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "images/b.ppm: 32 x 48 pixels, more than the 1535 "));
    qat_dataset_close(d);
    o.resize_short = 9;
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "resize_short 9"));
}
END_TEST

static void check_memory(const qat_dataset_options *o)
{
    bool failed;
    long n = 0;
    do {
        qat_dataset *d;
        test_fail_alloc_after(n++);
        qat_status const st = qat_dataset_open(&d, o, QAT_SPLIT_TRAIN, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_dataset_close(d);
    } while (failed);
}

START_TEST(no_memory_is_an_error)
{
    qat_dataset_options o = coco();
    write_text("instances_train.json", good);
    check_memory(&o);
    o = (qat_dataset_options){.kind = "scenes", .train_count = 2, .height = 32};
    check_memory(&o);
}
END_TEST

/* ------------------------------------------------------------------ scenes */

START_TEST(scenes_are_a_function_of_their_seed)
{
    enum { SIDE = 64, BYTES = SIDE * SIDE * 3 };
    qat_dataset_options const o = {
        .kind = "scenes", .seed = 3, .train_count = 40, .height = SIDE, .one_class = false};
    qat_set_threads(1);
    qat_dataset *a = open_set(&o, QAT_SPLIT_TRAIN);
    qat_set_threads(3);
    qat_dataset *b = open_set(&o, QAT_SPLIT_TRAIN);
    uint8_t x[BYTES], y[BYTES];
    int objects = 0, classes = 0, label;
    for (int i = 0; i < 40; i++) {
        const qat_objects *p = qat_dataset_objects(a, i), *q = qat_dataset_objects(b, i);
        ck_assert_int_eq(qat_dataset_get(a, i, x, &label, NULL), QAT_OK);
        ck_assert_int_eq(qat_dataset_get(b, i, y, &label, NULL), QAT_OK);
        ck_assert_mem_eq(x, y, BYTES);
        ck_assert(p->height == SIDE && p->width == SIDE && p->count == q->count);
        for (int k = 0; k < p->count; k++, objects++) {
            qat_box const box = p->truth[k].box;
            ck_assert(box.ymin >= 0 && box.xmin >= 0 && box.ymax <= 1 && box.xmax <= 1);
            ck_assert(box.ymax - box.ymin > 0.05f && box.xmax - box.xmin > 0.02f);
            ck_assert(memcmp(&box, &q->truth[k].box, sizeof box) == 0);
            classes |= 1 << p->truth[k].label;
        }
    }
    ck_assert_int_gt(objects, 80);
    ck_assert_int_eq(classes, (1 << 10) - 1);
    qat_dataset_close(a);
    qat_dataset_close(b);
}
END_TEST

START_TEST(scenes_of_every_size_have_objects)
{
    static const int sides[] = {32, 0, 512};
    for (int i = 0; i < 3; i++) {
        qat_dataset_options const o = {
            .kind = "scenes", .seed = 1, .train_count = 4, .height = sides[i]};
        qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
        ck_assert_int_eq(qat_dataset_info_of(d)->width, sides[i] ? sides[i] : 128);
        for (int k = 0; k < 4; k++)
            ck_assert_int_gt(qat_dataset_objects(d, k)->count, 0);
        qat_dataset_close(d);
    }
}
END_TEST

START_TEST(scenes_of_impossible_sizes_are_refused)
{
    qat_dataset_options const o = {.kind = "scenes", .height = 64, .width = 32};
    qat_dataset *d;
    qat_error err;
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "scenes of 64 x 32 x 3"));
}
END_TEST

/* ------------------------------------------------------------------ batches */

static qat_loader *open_loader(const qat_dataset *d, int threads, bool augmented)
{
    qat_loader *loader;
    qat_error err = {0};
    qat_loader_options const o = {
        .batch = 7,
        .shuffle = true,
        .seed = 4,
        .threads = threads,
        .prefetch = 2,
        .augment =
            augmented
                ? (qat_augment){.ssd_crop = true, .ssd_expand = 2, .flip = true, .contrast = 0.2f}
                : (qat_augment){0}};
    qat_status const st = qat_loader_create(&loader, d, &o, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return loader;
}

START_TEST(batches_bring_their_objects)
{
    qat_dataset_options const o = {.kind = "scenes", .train_count = 24, .height = 32};
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    for (int augmented = 0; augmented < 2; augmented++) {
        qat_loader *one = open_loader(d, 1, augmented), *three = open_loader(d, 3, augmented);
        for (int b = 0; b < 8; b++) {
            const qat_batch *x, *y;
            ck_assert_int_eq(qat_loader_next(one, &x, NULL), QAT_OK);
            ck_assert_int_eq(qat_loader_next(three, &y, NULL), QAT_OK);
            ck_assert_mem_eq(x->bytes, y->bytes, (size_t)x->count * 32 * 32 * 3);
            for (int i = 0; i < x->count; i++) {
                size_t const n = (size_t)x->objects[i].count;
                ck_assert_uint_eq(n, (size_t)y->objects[i].count);
                ck_assert(!augmented || n <= 6);
                for (size_t k = 0; k < n; k++)
                    ck_assert(memcmp(&x->objects[i].truth[k].box, &y->objects[i].truth[k].box,
                                     sizeof(qat_box)) == 0);
            }
        }
        qat_loader_free(one);
        qat_loader_free(three);
    }
    qat_dataset_close(d);
}
END_TEST

START_TEST(augmentations_that_do_not_fit_are_refused)
{
    qat_dataset_options const boxes = {.kind = "scenes", .train_count = 4, .height = 32};
    qat_dataset_options const none = {.kind = "shapes", .train_count = 10};
    qat_dataset *with = open_set(&boxes, QAT_SPLIT_TRAIN), *without = open_set(&none, 0);
    qat_loader_options o = {.batch = 1, .threads = 1, .prefetch = 1, .augment = {.crop_pad = 2}};
    qat_loader *loader;
    qat_error err;
    ck_assert_int_eq(qat_loader_create(&loader, with, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "crop_pad would cut off boxes"));
    o.augment = (qat_augment){.ssd_crop = true};
    ck_assert_int_eq(qat_loader_create(&loader, without, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "shapes/train has none"));
    o.augment = (qat_augment){.ssd_expand = 9};
    ck_assert_int_eq(qat_loader_create(&loader, with, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "ssd_expand 9, not in 1..8"));
    o.augment = (qat_augment){.ssd_crop = true, .crop_area = {0.5f, 1}, .crop_aspect = {1, 1}};
    ck_assert_int_eq(qat_loader_create(&loader, with, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "crop_area cannot be combined with ssd_crop"));
    qat_dataset_close(with);
    qat_dataset_close(without);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boxes");
    TCase *tc = tcase_create("boxes");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, annotations_become_shares);
    tcase_add_loop_test(tc, broken_annotations_are_named, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, missing_files_and_wrong_pictures_are_named);
    tcase_add_test(tc, no_memory_is_an_error);
    tcase_add_test(tc, scenes_are_a_function_of_their_seed);
    tcase_add_test(tc, scenes_of_every_size_have_objects);
    tcase_add_test(tc, scenes_of_impossible_sizes_are_refused);
    tcase_add_test(tc, batches_bring_their_objects);
    tcase_add_test(tc, augmentations_that_do_not_fit_are_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

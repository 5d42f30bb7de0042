/**
 * What is said about data before the first step: what was found and ignored, broken pictures, and
 * what changed since a run began.
 */
#include "base/parallel.h"
#include "checkpoint/checkpoint.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"
#include "train/first_look.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char header[] = "P6\n2 2\n255\n";

static void write_picture(const char *name, size_t missing)
{
    char ppm[] = "P6\n2 2\n255\n____________";
    test_temp_write(folder, name, ppm, sizeof ppm - 1 - missing);
}

static void write_set(const char *under, int cats, int dogs)
{
    char name[64];
    for (int i = 0; i < cats + dogs; i++) {
        snprintf(name, sizeof name, "%s/%s/p%02d.ppm", under, i < cats ? "cat" : "dog", i);
        write_picture(name, 0);
    }
}

static void setup(void)
{
    test_folder_make();
    write_set("train", 3, 5);
    write_set("val", 2, 1);
}

static qat_dataset *open_set(qat_split split)
{
    qat_dataset_options const o = {.kind = "folder", .path = folder, .height = 2};
    qat_dataset *d;
    qat_error err;
    ck_assert_msg(qat_dataset_open(&d, &o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

/* ------------------------------------------------------------------ what was found */

/** The description behind "folder NAME: ". */
static void expect_description(const char *expected)
{
    qat_dataset *train = open_set(QAT_SPLIT_TRAIN), *test = open_set(QAT_SPLIT_TEST);
    char *text;
    ck_assert_int_eq(qat_dataset_describe(train, test, &text, NULL), QAT_OK);
    ck_assert_ptr_nonnull(strchr(text, ':'));
    ck_assert_str_eq(strchr(text, ':') + 2, expected);
    free(text);
    qat_dataset_close(train);
    qat_dataset_close(test);
}

START_TEST(both_splits_are_counted)
{
    expect_description("8 training pictures, 3 test pictures, 2 classes (cat 5, dog 6)");
}
END_TEST

START_TEST(what_is_ignored_is_counted)
{
    test_temp_write(folder, "train/cat/a.webp", "", 0);
    test_temp_write(folder, "train/cat/B.WEBP", "", 0);
    test_temp_write(folder, "train/cat/a.gz", "", 0);
    test_temp_write(folder, "train/dog/more/p.png", "", 0);
    test_temp_write(folder, "val/notes", "", 0);
    test_temp_write(folder, "val/dog/c.txt", "", 0);
    test_temp_write(folder, "val/dog/.hidden", "", 0);
    expect_description(
        "8 training pictures, 3 test pictures, 2 classes (cat 5, dog 6); ignored: 5 "
        "files (.webp 2, no ending 1, .gz 1, .txt 1), 1 subfolder of a class folder");
}
END_TEST

START_TEST(many_classes_are_abbreviated)
{
    char name[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "train/m%02d/a.ppm", i);
        write_picture(name, 0);
    }
    expect_description(
        "20 training pictures, 3 test pictures, 14 classes (cat 5, dog 6, m00 1, m01 "
        "1, m02 1, m03 1, m04 1, m05 1, m06 1, m07 1, and 4 more)");
}
END_TEST

START_TEST(generated_data_are_described)
{
    qat_dataset_options const o = {.kind = "digits", .train_count = 30, .test_count = 1};
    qat_dataset *d[2];
    char *text;
    for (int s = 0; s < 2; s++)
        ck_assert_int_eq(qat_dataset_open(&d[s], &o, (qat_split)s, NULL), QAT_OK);
    ck_assert_int_eq(qat_dataset_describe(d[0], d[1], &text, NULL), QAT_OK);
    ck_assert_msg(strncmp(text, "digits: 30 training pictures, 1 test picture, 10 classes", 55) ==
                      0,
                  "%s", text);
    free(text);
    qat_dataset_close(d[0]);
    qat_dataset_close(d[1]);
}
END_TEST

/** Shape and counts are those of the drawn set; samples are refused; objects are not counted. */
static void expect_undrawn(qat_dataset_options o, const char *text)
{
    qat_dataset *drawn, *d[2];
    char *told;
    uint8_t *values = malloc(1 << 20);
    int label;
    qat_error err;
    o.struct_size = sizeof o;
    o.train_count = 30;
    o.test_count = 10;
    o.height = strcmp(o.kind, "digits") == 0 ? 20 : 0;
    o.validation = 0.2;
    ck_assert_int_eq(qat_dataset_open(&drawn, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    o.undrawn = true;
    for (int s = 0; s < 2; s++)
        ck_assert_int_eq(qat_dataset_open(&d[s], &o, (qat_split)s, NULL), QAT_OK);
    const qat_dataset_info *a = qat_dataset_info_of(drawn), *b = qat_dataset_info_of(d[0]);
    ck_assert_int_eq(a->count, b->count);
    ck_assert_int_eq(a->height, b->height);
    ck_assert_int_eq(a->width, b->width);
    ck_assert_int_eq(a->channels, b->channels);
    ck_assert_int_eq(a->classes, b->classes);
    ck_assert_int_eq(a->targets, b->targets);
    ck_assert_int_eq(a->n_targets, b->n_targets);
    ck_assert_int_eq(a->has_objects, b->has_objects);
    ck_assert_int_eq(qat_dataset_get(d[0], 0, values, &label, &err), QAT_ERR_STATE);
    ck_assert_msg(strstr(err.message, "sample 0 was not drawn") != NULL, "%s", err.message);
    ck_assert_int_eq(qat_dataset_describe(d[0], d[1], &told, NULL), QAT_OK);
    ck_assert_str_eq(told, text);
    free(told);
    free(values);
    qat_dataset_close(drawn);
    qat_dataset_close(d[0]);
    qat_dataset_close(d[1]);
}

START_TEST(undrawn_data_are_described)
{
    expect_undrawn((qat_dataset_options){.kind = "tones"},
                   "tones: 24 training signals, 10 test signals, 2 values each");
    expect_undrawn((qat_dataset_options){.kind = "scenes"},
                   "scenes: 24 training pictures, 10 test pictures, objects of 10 classes");
    expect_undrawn((qat_dataset_options){.kind = "scenes", .pixels = true},
                   "scenes: 24 training pictures, 10 test pictures, pixels of 11 classes");
    expect_undrawn((qat_dataset_options){.kind = "scenes", .presence = true},
                   "scenes: 24 training pictures, 10 test pictures, 10 labels");
    expect_undrawn((qat_dataset_options){.kind = "faces"},
                   "faces: 24 training pictures, 10 test pictures, 24 attributes, a value");
    expect_undrawn((qat_dataset_options){.kind = "digits"},
                   "digits: 20 training pictures, 10 test pictures, 10 classes (0 3, 1 3, 2 3, 3 "
                   "3, 4 3, 5 3, 6 3, 7 3, 8 3, 9 3)");
    expect_undrawn(
        (qat_dataset_options){.kind = "keywords"},
        "keywords: 20 training sounds, 10 test sounds, 10 classes (sami 3, masi 3, nami 3, mina 3, "
        "kito 3, toki 3, tiko 3, koti 3, suke 3, kuse 3), of 49 frames (0.992 s)");
    expect_undrawn((qat_dataset_options){.kind = "words"},
                   "words: 20 training signals, 10 test signals, 10 classes (aiu 3, aui 3, iau 3, "
                   "iua 3, uai 3, uia 3, asi 3, isa 3, sai 3, sia 3)");
}
END_TEST

/* ------------------------------------------------------------------ broken pictures */

static bool count_ticks(void *context, int64_t done, int64_t total)
{
    int *left = context;
    ck_assert(done <= total);
    return (*left)-- > 0;
}

START_TEST(broken_pictures_are_found)
{
    qat_faults faults;
    int ticks = 9;
    write_picture("train/cat/p01.ppm", 5);
    test_temp_write(folder, "train/dog/p06.ppm", "hello", 5);
    for (int threads = 1; threads <= 4; threads += 3) {
        qat_set_threads(threads);
        qat_dataset *d = open_set(QAT_SPLIT_TRAIN);
        ck_assert_int_eq(qat_dataset_check(d, true, count_ticks, &ticks, &faults, NULL), QAT_OK);
        ck_assert_int_eq(faults.count, 2);
        ck_assert(faults.samples[0] == 1 && faults.samples[1] == 6);
        ck_assert_ptr_nonnull(strstr(faults.told[0], "train/cat/p01.ppm: truncated"));
        ck_assert_ptr_nonnull(strstr(faults.told[1], "train/dog/p06.ppm: "));
        ck_assert_int_eq(qat_dataset_skip(d, &faults, NULL), QAT_OK);
        const qat_dataset_info *info = qat_dataset_info_of(d);
        ck_assert(info->count == 6 && info->skipped == 2);
        uint8_t values[2 * 2 * 3];
        int label, dogs = 0;
        for (int i = 0; i < 6; i++) {
            ck_assert_int_eq(qat_dataset_get(d, i, values, &label, NULL), QAT_OK);
            dogs += label;
        }
        ck_assert_int_eq(dogs, 4);
        qat_faults_free(&faults);
        qat_dataset_close(d);
    }
    ck_assert_int_eq(ticks, 7);
}
END_TEST

START_TEST(a_check_can_be_stopped)
{
    qat_faults faults;
    qat_error err;
    int ticks = 0;
    qat_dataset *d = open_set(QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_check(d, true, count_ticks, &ticks, &faults, &err), QAT_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(err.message, "stopped while its pictures were checked"));
    qat_dataset_close(d);
}
END_TEST

/**
 * Files whose first and last bytes are right are not decoded. Other files, and those of other
 * formats, are decoded.
 */
START_TEST(ends_are_enough)
{
    static const char png[] = "\x89PNG\r\n\x1a\n nonsense \0\0\0\0IEND\xae\x42\x60\x82";
    static const char jpeg[] = "\xff\xd8\xff\xe0 nonsense \xff\xd9";
    qat_faults faults;
    test_temp_write(folder, "train/cat/q1.png", png, sizeof png - 1);
    test_temp_write(folder, "train/cat/q2.png", png, sizeof png - 2);
    test_temp_write(folder, "train/cat/q3.jpg", jpeg, sizeof jpeg - 1);
    test_temp_write(folder, "train/cat/q4.jpg", jpeg, sizeof jpeg - 2);
    test_temp_write(folder, "train/cat/q5.ppm", header, sizeof header - 1);
    qat_dataset *d = open_set(QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_check(d, false, NULL, NULL, &faults, NULL), QAT_OK);
    ck_assert_int_eq(faults.count, 3);
    ck_assert(faults.samples[0] == 4 && faults.samples[1] == 6 && faults.samples[2] == 7);
    qat_faults_free(&faults);
    ck_assert_int_eq(qat_dataset_check(d, true, NULL, NULL, &faults, NULL), QAT_OK);
    ck_assert_int_eq(faults.count, 5);
    qat_faults_free(&faults);
    qat_dataset_close(d);
}
END_TEST

START_TEST(nothing_left_is_an_error)
{
    qat_faults faults;
    qat_error err;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "val/%s/p%02d.ppm", i < 2 ? "cat" : "dog", i);
        write_picture(name, 3);
    }
    qat_dataset *d = open_set(QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_check(d, true, NULL, NULL, &faults, NULL), QAT_OK);
    ck_assert_int_eq(qat_dataset_skip(d, &faults, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "none of its 3 pictures can be read"));
    qat_faults_free(&faults);
    qat_dataset_close(d);
}
END_TEST

/* ------------------------------------------------------------------ what changed */

static qat_data_digest then[2];

static void remember(void)
{
    for (int s = 0; s < 2; s++) {
        qat_dataset *d = open_set((qat_split)s);
        ck_assert_int_eq(qat_dataset_digest(d, &then[s], NULL), QAT_OK);
        qat_dataset_close(d);
    }
}

/** says NULL: nothing changed. */
static void expect_change(const char *says)
{
    qat_dataset *d[2];
    qat_data_digest now[2];
    qat_error err = {0};
    for (int s = 0; s < 2; s++) {
        d[s] = open_set((qat_split)s);
        ck_assert_int_eq(qat_dataset_digest(d[s], &now[s], NULL), QAT_OK);
    }
    const qat_dataset *const both[] = {d[0], d[1]};
    qat_status const st = qat_dataset_compare(both, now, then, &err);
    ck_assert_int_eq(st, says ? QAT_ERR_ARGUMENT : QAT_OK);
    ck_assert_msg(!says || strstr(err.message, says), "\"%s\" lacks \"%s\"", err.message, says);
    for (int s = 0; s < 2; s++) {
        qat_data_digest_free(&now[s]);
        qat_data_digest_free(&then[s]);
        qat_dataset_close(d[s]);
    }
}

static void rename_in(const char *from, const char *to)
{
    char a[TEST_PATH_MAX], b[TEST_PATH_MAX];
    test_temp_path(a, folder, from);
    ck_assert_int_eq(rename(a, test_temp_path(b, folder, to)), 0);
}

static void change(int how)
{
    char path[TEST_PATH_MAX];
    switch (how) {
    case 0:
        break;
    case 1:
        write_picture("train/cat/new.ppm", 0);
        break;
    case 2:
        unlink(test_temp_path(path, folder, "train/cat/p01.ppm"));
        break;
    case 3:
        unlink(test_temp_path(path, folder, "val/dog/p02.ppm"));
        write_picture("val/dog/p03.ppm", 0);
        break;
    case 4:
        test_temp_write(folder, "val/cat/p01.ppm", "P6\n2 2\n255\n______________", 25);
        break;
    case 5:
        rename_in("train/cat/p00.ppm", "train/dog/p00.ppm");
        break;
    case 6:
        unlink(test_temp_path(path, folder, "train/dog/p07.ppm"));
        break;
    default:
        break;
    }
}

static const char *const changes[] = {
    NULL,
    "/train: the data changed since the run began: 9 samples now, 8 then; train/cat/new.ppm is new",
    "7 samples now, 8 then; what came before train/cat/p02.ppm is gone",
    "/test: the data changed since the run began: 3 samples now, 3 then; val/dog/p03.ppm is new",
    "val/cat/p01.ppm has another size, content or class",
    "8 samples now, 8 then; train/dog/p00.ppm is new",
    "what came after train/dog/p06.ppm is gone"};

START_TEST(changes_are_named)
{
    remember();
    change(_i);
    expect_change(changes[_i]);
}
END_TEST

/** A checkpoint of an older version does not say what its data were, and has another log. */
START_TEST(an_older_run_is_not_resumed)
{
    qat_trainer t = {.checkpoint_path = "run/last.ckpt"};
    qat_checkpoint const c = {0};
    qat_error err;
    ck_assert_int_eq(qat_trainer_same_data(&t, &c, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "run/last.ckpt: an older version"));
    ck_assert_ptr_nonnull(strstr(err.message, "--init"));
}
END_TEST

/** The folder may have another name. */
START_TEST(data_may_move)
{
    char moved[TEST_PATH_MAX + 8], old[TEST_PATH_MAX];
    remember();
    snprintf(old, sizeof old, "%s", folder);
    snprintf(moved, sizeof moved, "%s-moved", folder);
    ck_assert_int_eq(rename(folder, moved), 0);
    snprintf(folder, sizeof folder, "%.500s", moved);
    expect_change(NULL);
    remember();
    change(1);
    expect_change("; train/cat/new.ppm is new"); /* the name from the data's folder on */
}
END_TEST

/** Data in memory: their values count. */
START_TEST(values_are_compared)
{
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    uint8_t other[sizeof images];
    qat_dataset_options const o = {.kind = "idx", .path = folder};
    qat_data_digest d[2][2];
    qat_dataset *set[2];
    qat_error err;
    memcpy(other, images, sizeof images);
    other[17] = 7;
    test_temp_write(folder, "train-labels-idx1-ubyte", labels, sizeof labels);
    for (int k = 0; k < 2; k++) {
        test_temp_write(folder, "train-images-idx3-ubyte", k ? other : images, sizeof images);
        ck_assert_int_eq(qat_dataset_open(&set[k], &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
        for (int s = 0; s < 2; s++)
            ck_assert_int_eq(qat_dataset_digest(set[k], &d[k][s], NULL), QAT_OK);
    }
    const qat_dataset *const both[] = {set[1], set[1]};
    ck_assert_int_eq(qat_dataset_compare(both, d[1], d[1], &err), QAT_OK);
    ck_assert_int_eq(qat_dataset_compare(both, d[1], d[0], &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "sample 1 has another size, content or class"));
    for (int k = 0; k < 2; k++) {
        for (int s = 0; s < 2; s++)
            qat_data_digest_free(&d[k][s]);
        qat_dataset_close(set[k]);
    }
}
END_TEST

/* ------------------------------------------------------------------ no memory */

/** Everything above, once. */
static qat_status all_of_it(void)
{
    qat_dataset_options const o = {.kind = "folder", .path = folder, .height = 2};
    qat_dataset *d;
    qat_faults faults = {0};
    qat_data_digest digest = {0};
    char *text = NULL;
    qat_status st = qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, NULL);
    if (!st)
        st = qat_dataset_describe(d, NULL, &text, NULL);
    if (!st)
        st = qat_dataset_digest(d, &digest, NULL);
    if (!st)
        st = qat_dataset_check(d, true, NULL, NULL, &faults, NULL);
    if (!st)
        st = qat_dataset_skip(d, &faults, NULL);
    free(text);
    qat_data_digest_free(&digest);
    qat_faults_free(&faults);
    qat_dataset_close(d);
    return st;
}

START_TEST(memory_may_run_out)
{
    bool failed;
    long n = 0;
    qat_set_threads(1);
    write_picture("train/cat/p01.ppm", 5);
    do {
        test_fail_alloc_after(n++);
        qat_status const st = all_of_it();
        failed = test_fail_alloc_stop();
        ck_assert(failed || st == QAT_OK);
    } while (failed);
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("first look");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_test(tc, both_splits_are_counted);
    tcase_add_test(tc, what_is_ignored_is_counted);
    tcase_add_test(tc, many_classes_are_abbreviated);
    tcase_add_test(tc, generated_data_are_described);
    tcase_add_test(tc, undrawn_data_are_described);
    tcase_add_test(tc, broken_pictures_are_found);
    tcase_add_test(tc, a_check_can_be_stopped);
    tcase_add_test(tc, ends_are_enough);
    tcase_add_test(tc, nothing_left_is_an_error);
    tcase_add_loop_test(tc, changes_are_named, 0, (int)(sizeof changes / sizeof *changes));
    tcase_add_test(tc, an_older_run_is_not_resumed);
    tcase_add_test(tc, data_may_move);
    tcase_add_test(tc, values_are_compared);
    tcase_add_test(tc, memory_may_run_out);
    Suite *suite = suite_create("first look");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

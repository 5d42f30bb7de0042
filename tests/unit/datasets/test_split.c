/** data.split: data without a test split are divided into a training and a test split. */
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 200 };

static void write_picture(const char *name, char grey)
{
    char ppm[] = "P6\n2 2\n255\n____________";
    memset(strchr(ppm, '_'), grey, 12);
    test_temp_write(folder, name, ppm, sizeof ppm - 1);
}

/** Classes of 10, 5, 2 and 1 pictures; grey is the class's number times 16 and the picture's. */
static void write_tree(const char *under)
{
    static const int counts[] = {10, 5, 2, 1};
    char name[64];
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < counts[c]; i++) {
            snprintf(name, sizeof name, "%sclass%d/p%02d.ppm", under, c, i);
            write_picture(name, (char)(16 * c + i));
        }
}

static qat_dataset *open_set(const qat_dataset_options *o, qat_split split)
{
    qat_dataset *d;
    qat_error err;
    ck_assert_msg(qat_dataset_open(&d, o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

static void refuse(const qat_dataset_options *o, qat_split split, const char *says)
{
    qat_dataset *d;
    qat_error err;
    ck_assert_int_ne(qat_dataset_open(&d, o, split, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" lacks \"%s\"", err.message, says);
}

/** First byte of each sample, and its label. */
static int values_of(const qat_dataset *d, int values[MOST], int labels[MOST])
{
    int const n = qat_dataset_info_of(d)->count;
    uint8_t *all = malloc(32 * 32 * 3);
    ck_assert(all && n <= MOST);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, all, &labels[i], NULL), QAT_OK);
        values[i] = all[0];
    }
    free(all);
    return n;
}

static qat_dataset_options of_folder(double split)
{
    return (qat_dataset_options){
        .kind = "folder", .path = folder, .height = 2, .width = 2, .split = split, .seed = 3};
}

START_TEST(each_class_is_split)
{
    qat_dataset_options o = of_folder(0.8);
    int seen[64] = {0}, values[MOST], labels[MOST], of_class[2][4] = {{0}};
    write_tree(_i ? "train/" : "");
    for (int s = 0; s < 2; s++) {
        qat_dataset *d = open_set(&o, (qat_split)s);
        ck_assert_int_eq(qat_dataset_info_of(d)->classes, 4);
        int const n = values_of(d, values, labels);
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(values[i] / 16, labels[i]);
            seen[values[i]]++;
            of_class[s][labels[i]]++;
        }
        qat_dataset_close(d);
    }
    static const int train[] = {8, 4, 1, 1}, test[] = {2, 1, 1, 0};
    ck_assert_mem_eq(of_class[0], train, sizeof train);
    ck_assert_mem_eq(of_class[1], test, sizeof test);
    for (int v = 0; v < 64; v++)
        ck_assert_int_le(seen[v], 1); /* no sample is in both */
}
END_TEST

START_TEST(the_seed_draws_the_split)
{
    qat_dataset_options o = of_folder(0.5);
    int a[MOST], b[MOST], c[MOST], labels[MOST];
    write_tree("");
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    int const n = values_of(d, a, labels);
    qat_dataset_close(d);
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(values_of(d, b, labels), n);
    qat_dataset_close(d);
    ck_assert_mem_eq(a, b, (size_t)n * sizeof *a);
    o.seed = 4;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(values_of(d, c, labels), n);
    qat_dataset_close(d);
    ck_assert(memcmp(a, c, (size_t)n * sizeof *a) != 0);
    o.train_count = 6;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(values_of(d, c, labels), 6);
    ck_assert_int_gt(labels[5], 0); /* spread: not the first class alone */
    qat_dataset_close(d);
}
END_TEST

START_TEST(a_second_split_is_refused)
{
    qat_dataset_options o = of_folder(0.8);
    write_tree("train/");
    write_tree("val/");
    refuse(&o, QAT_SPLIT_TRAIN, "/val is there already: data.split would make another");
    o.kind = "digits";
    refuse(&o, QAT_SPLIT_TRAIN, "data of kind digits have a test split already");
    o.kind = "idx";
    refuse(&o, QAT_SPLIT_TRAIN, "data of kind idx have a test split already");
    o = of_folder(1);
    refuse(&o, QAT_SPLIT_TRAIN, "split 1, not in 0..1");
}
END_TEST

START_TEST(missing_splits_name_the_key)
{
    qat_dataset_options o = of_folder(0);
    write_tree("");
    refuse(&o, QAT_SPLIT_TRAIN, "itself, data.split = 0.8");
    write_tree("train/");
    refuse(&o, QAT_SPLIT_TEST, "no folder val or test; data.split = 0.8");
    o.kind = "list";
    refuse(&o, QAT_SPLIT_TEST, "data.split = 0.8");
    o.kind = "coco";
    refuse(&o, QAT_SPLIT_TEST, "data.split = 0.8");
    test_temp_write(folder, "train_x.npy", "", 0);
    o.kind = "npy";
    refuse(&o, QAT_SPLIT_TEST, "data.split = 0.8");
}
END_TEST

START_TEST(a_list_is_split)
{
    char path[TEST_PATH_MAX];
    qat_dataset_options o = of_folder(0.75);
    int values[MOST], labels[MOST];
    static const char list[] = "class0/p00.ppm 0\nclass0/p01.ppm 0\nclass0/p02.ppm 0\n"
                               "class0/p03.ppm 0\nclass1/p00.ppm 1\nclass1/p01.ppm 1\n";
    write_tree("");
    test_temp_write(folder, _i ? "train.txt" : "all.txt", list, sizeof list - 1);
    o.kind = "list";
    o.path = _i ? folder : test_temp_path(path, folder, "all.txt");
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(values_of(d, values, labels), 4);
    qat_dataset_close(d);
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(values_of(d, values, labels), 2);
    ck_assert(labels[0] == 0 && labels[1] == 1);
    qat_dataset_close(d);
    if (_i) {
        test_temp_write(folder, "test.txt", list, sizeof list - 1);
        refuse(&o, QAT_SPLIT_TEST, "test.txt is there already");
    }
}
END_TEST

START_TEST(a_table_is_split)
{
    char path[TEST_PATH_MAX];
    static const char table[] = "file,age\na,1\nb,2\nc,3\nd,4\ne,5\n";
    static const char divided[] = "file,age,split\na,1,train\nb,2,val\n";
    qat_dataset_options o = {.kind = "table",
                             .path = test_temp_path(path, folder, "t.csv"),
                             .attributes = "age=3",
                             .value = "age",
                             .split = 0.6};
    test_temp_write(folder, "t.csv", table, sizeof table - 1);
    float sum = 0;
    for (int s = 0; s < 2; s++) {
        qat_dataset *d = open_set(&o, (qat_split)s);
        int const n = qat_dataset_info_of(d)->count;
        ck_assert_int_eq(n, s ? 2 : 3);
        for (int i = 0; i < n; i++) {
            const float *t = qat_dataset_targets(d, i);
            ck_assert(t[0] == (t[1] == 3));
            sum += t[1];
        }
        qat_dataset_close(d);
    }
    ck_assert(sum == 15); /* each line once */
    test_temp_write(folder, "t.csv", divided, sizeof divided - 1);
    refuse(&o, QAT_SPLIT_TRAIN, "a column \"split\" is there already");
    o.split = 0;
    test_temp_write(folder, "t.csv", table, sizeof table - 1);
    refuse(&o, QAT_SPLIT_TRAIN, "data.split = 0.8 does without");
}
END_TEST

/** A NumPy file of version 1. */
static void write_npy(const char *name, const char *type, const char *shape, const void *values,
                      size_t bytes)
{
    char file[1024];
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    int const n = snprintf(file + 10, sizeof file - 10,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memset(file + 10 + n, ' ', (size_t)(0x76 - n));
    file[10 + 0x75] = '\n';
    memcpy(file + 10 + 0x76, values, bytes);
    test_temp_write(folder, name, file, 10 + 0x76 + bytes);
}

START_TEST(arrays_are_split)
{
    float x[8];
    int8_t y[8];
    qat_dataset_options o = {.kind = "npy", .path = folder, .split = 0.75};
    for (int i = 0; i < 8; i++) {
        x[i] = (float)i;
        y[i] = (int8_t)(i % 2);
    }
    write_npy(_i ? "x.npy" : "train_x.npy", "<f4", "8, 1", x, sizeof x);
    write_npy(_i ? "y.npy" : "train_y.npy", "|i1", "8,", y, sizeof y);
    float sum = 0;
    for (int s = 0; s < 2; s++) {
        qat_dataset *d = open_set(&o, (qat_split)s);
        const qat_dataset_info *info = qat_dataset_info_of(d);
        float least = 99, most = -99;
        ck_assert_int_eq(info->count, s ? 2 : 6);
        for (int i = 0; i < info->count; i++) {
            float v;
            int label;
            ck_assert_int_eq(qat_dataset_get(d, i, &v, &label, NULL), QAT_OK);
            ck_assert_int_eq(label, (int)v % 2);
            sum += v;
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        ck_assert(info->min == least && info->max == most); /* of this split alone */
        qat_dataset_close(d);
    }
    ck_assert(sum == 28);
    write_npy("test_x.npy", "<f4", "8, 1", x, sizeof x);
    refuse(&o, QAT_SPLIT_TRAIN, "test_x.npy is there already");
}
END_TEST

START_TEST(boxes_are_split)
{
    static const char json[] =
        "{\"images\": [{\"id\": 1, \"file_name\": \"a\", \"width\": 10, \"height\": 10},"
        "{\"id\": 2, \"file_name\": \"b\", \"width\": 20, \"height\": 10},"
        "{\"id\": 3, \"file_name\": \"c\", \"width\": 30, \"height\": 10}],"
        "\"annotations\": [{\"image_id\": 2, \"category_id\": 1, \"bbox\": [1, 1, 2, 2]},"
        "{\"image_id\": 3, \"category_id\": 1, \"bbox\": [1, 1, 0, 2]}],"
        "\"categories\": [{\"id\": 1, \"name\": \"dot\"}]}";
    qat_dataset_options o = {.kind = "coco", .path = folder, .split = 0.7};
    test_temp_write(folder, "instances_train.json", json, sizeof json - 1);
    int widths = 0;
    for (int s = 0; s < 2; s++) {
        qat_dataset *d = open_set(&o, (qat_split)s);
        int const n = qat_dataset_info_of(d)->count;
        ck_assert_int_eq(n, s ? 1 : 2);
        for (int i = 0; i < n; i++) {
            const qat_objects *objects = qat_dataset_objects(d, i);
            widths += objects->width;
            ck_assert_int_eq(objects->count, objects->width == 20);
        }
        qat_dataset_close(d);
    }
    ck_assert_int_eq(widths, 60);
    test_temp_write(folder, "instances_val.json", json, sizeof json - 1);
    refuse(&o, QAT_SPLIT_TEST, "instances_val.json is there already");
}
END_TEST

/* A fifth of the training samples, of each class; the others stay, and so does the test split. */
START_TEST(validation_is_taken_from_training)
{
    qat_dataset_options o = {.kind = "digits", .train_count = 100, .test_count = 20};
    qat_dataset *whole = open_set(&o, QAT_SPLIT_TRAIN), *test = open_set(&o, QAT_SPLIT_TEST);
    o.validation = 0.2;
    qat_dataset *parts[] = {open_set(&o, QAT_SPLIT_TRAIN), open_set(&o, QAT_SPLIT_VALIDATION)};
    qat_dataset *same = open_set(&o, QAT_SPLIT_TEST);
    uint8_t values[2][28 * 28];
    int label[2], at[2] = {0, 0}, of_class[10] = {0};
    ck_assert_int_eq(qat_dataset_info_of(parts[0])->count, 80);
    ck_assert_int_eq(qat_dataset_info_of(parts[1])->count, 20);
    ck_assert_str_eq(qat_dataset_info_of(parts[1])->name, "digits/validation");
    for (int i = 0; i < 100; i++) { /* each sample is in one of both, in order */
        int found = 0;
        ck_assert_int_eq(qat_dataset_get(whole, i, values[0], &label[0], NULL), QAT_OK);
        for (int p = 0; p < 2; p++) {
            if (at[p] == qat_dataset_info_of(parts[p])->count)
                continue;
            ck_assert_int_eq(qat_dataset_get(parts[p], at[p], values[1], &label[1], NULL), QAT_OK);
            if (memcmp(values[0], values[1], sizeof values[0]))
                continue;
            ck_assert_int_eq(label[0], label[1]);
            of_class[label[0]] += p;
            at[p]++;
            found++;
        }
        ck_assert_int_eq(found, 1);
    }
    for (int c = 0; c < 10; c++)
        ck_assert_int_eq(of_class[c], 2);
    for (int i = 0; i < 20; i++) {
        qat_dataset_get(test, i, values[0], &label[0], NULL);
        qat_dataset_get(same, i, values[1], &label[1], NULL);
        ck_assert_mem_eq(values[0], values[1], sizeof values[0]);
    }
    o.validation = 1;
    refuse(&o, QAT_SPLIT_TRAIN, "validation 1, not in 0..1");
    qat_dataset_close(whole);
    qat_dataset_close(test);
    qat_dataset_close(same);
    for (int p = 0; p < 2; p++)
        qat_dataset_close(parts[p]);
}
END_TEST

/** ImageNet's layout: test pictures in one folder, and a list of their classes. */
START_TEST(a_flat_folder_has_a_list)
{
    static const struct {
        const char *name, *text, *says; /* NULL: it can be read */
    } lists[] = {
        {"val.txt", "b.ppm 1\nc.ppm\tclass2\r\n\na.ppm 0 and more\n", NULL},
        {"LOC_val_solution.csv", "ImageId,PredictionString\nb.ppm,class1 1 2 3 4\nc.ppm,2\na.ppm,0",
         NULL},
        {"val.txt", "b.ppm 4", "val.txt:1: \"b.ppm 4\" is not a picture and the name or number"},
        {"val.txt", "b.ppm 1\nb.ppm dog", "val.txt:2: \"b.ppm dog\" is not a picture"},
        {"val.txt", "b.ppm", "val.txt:1: \"b.ppm\" is not a picture"},
        {"val.txt", "../b.ppm 1", "is not a picture"},
        {"val.txt", "\n", "val.txt: no picture is listed"},
    };
    qat_dataset_options const o = of_folder(0);
    int values[MOST], labels[MOST];
    char path[TEST_PATH_MAX];
    write_tree("train/");
    write_picture("val/a.ppm", 1);
    write_picture("val/b.ppm", 2);
    write_picture("val/c.ppm", 3);
    refuse(&o, QAT_SPLIT_TEST, "empty; expected one folder per class");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        test_temp_write(folder, lists[i].name, lists[i].text, strlen(lists[i].text));
        if (lists[i].says) {
            refuse(&o, QAT_SPLIT_TEST, lists[i].says);
        } else {
            qat_dataset *d = open_set(&o, QAT_SPLIT_TEST);
            ck_assert_int_eq(values_of(d, values, labels), 3);
            for (int k = 0; k < 3; k++) {
                ck_assert_int_eq(values[k], (k + 1) % 3 + 1);
                ck_assert_int_eq(labels[k], (k + 1) % 3);
            }
            ck_assert_int_eq(qat_dataset_info_of(d)->classes, 4);
            qat_dataset_close(d);
        }
        unlink(test_temp_path(path, folder, lists[i].name));
    }
    test_temp_write(folder, "val.txt", "p00 1\n", 6); /* JPEG, which is not there: told later */
    qat_dataset *d = open_set(&o, QAT_SPLIT_TEST);
    qat_error err;
    uint8_t v[12];
    ck_assert_int_eq(qat_dataset_get(d, 0, v, labels, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "val/p00.JPEG"));
    qat_dataset_close(d);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("split");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_loop_test(tc, each_class_is_split, 0, 2);
    tcase_add_test(tc, the_seed_draws_the_split);
    tcase_add_test(tc, a_second_split_is_refused);
    tcase_add_test(tc, missing_splits_name_the_key);
    tcase_add_loop_test(tc, a_list_is_split, 0, 2);
    tcase_add_test(tc, a_table_is_split);
    tcase_add_loop_test(tc, arrays_are_split, 0, 2);
    tcase_add_test(tc, boxes_are_split);
    tcase_add_test(tc, a_flat_folder_has_a_list);
    Suite *suite = suite_create("split");
    tcase_add_test(tc, validation_is_taken_from_training);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

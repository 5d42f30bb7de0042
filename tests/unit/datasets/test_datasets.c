/*
 * Data sets: those that a program draws, every file format and what it refuses, pictures,
 * augmentation.
 */
#include "base/files/npy.h"
#include "base/parallel.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/*
 * CRCs of the first 500 training pictures of seed 1. A change of the pictures changes every result
 * that was measured on them. It must not happen by accident.
 */
static const unsigned long digits_crc = 0x91c90dd3, shapes_crc = 0xfccd15ca, words_crc = 0xbe3b5503,
                           patterns_crc = 0x693cec61;

static char path[TEST_PATH_MAX];

static qat_dataset *open_set(const qat_dataset_options *options, qat_split split)
{
    qat_dataset *dataset;
    qat_error err = {0};
    qat_status st = qat_dataset_open(&dataset, options, split, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return dataset;
}

/** Opening fails with this status; the message has both parts. */
static void refuse(const qat_dataset_options *options, qat_split split, qat_status status,
                   const char *part, const char *other)
{
    qat_dataset *dataset;
    qat_error err = {0};
    qat_status const st = qat_dataset_open(&dataset, options, split, &err);
    ck_assert_msg(st == status, "status %d, expected %d: %s", st, status, err.message);
    ck_assert_msg(strstr(err.message, part) && strstr(err.message, other),
                  "\"%s\" lacks \"%s\" or \"%s\"", err.message, part, other);
    ck_assert_ptr_null(dataset);
}

static size_t value_count(const qat_dataset *dataset)
{
    const qat_dataset_info *info = qat_dataset_info_of(dataset);
    return (size_t)info->height * (size_t)info->width * (size_t)info->channels;
}

/** CRC-32 of samples first..end-1, their labels as one byte each after the values. */
static unsigned long crc_of(const qat_dataset *dataset, int first, int end)
{
    size_t const each = qat_dataset_info_of(dataset)->type == QAT_SAMPLE_F32 ? sizeof(float) : 1;
    size_t const n = each * value_count(dataset);
    uint8_t *values = malloc(n);
    unsigned long crc = crc32(0, NULL, 0);
    ck_assert_ptr_nonnull(values);
    for (int i = first; i < end; i++) {
        int label;
        ck_assert_int_eq(qat_dataset_get(dataset, i, values, &label, NULL), QAT_OK);
        values[n - 1] = (uint8_t)(values[n - 1] ^ label);
        crc = crc32(crc, values, (uInt)n);
    }
    free(values);
    return crc;
}

START_TEST(test_options)
{
    qat_error err;
    int label;
    uint8_t values[28 * 28];
    refuse(&(qat_dataset_options){.kind = "mnist"}, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "'mnist'",
           "digits|shapes|idx|cifar10|cifar100|folder|list|tar|tfrecord|npy|coco|scenes|faces|"
           "patterns|table");
    refuse(&(qat_dataset_options){0}, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "unknown kind", "''");
    refuse(&(qat_dataset_options){.kind = "idx"}, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "idx", "path");
    refuse(&(qat_dataset_options){.kind = "digits", .test_count = -5}, QAT_SPLIT_TRAIN,
           QAT_ERR_ARGUMENT, "negative", "-5");
    refuse(&(qat_dataset_options){.struct_size = sizeof(qat_dataset_options) + 1, .kind = "digits"},
           QAT_SPLIT_TRAIN, QAT_ERR_UNSUPPORTED, "qat_dataset_options", "later");
    /* Without struct_size the options end before `undrawn`. */
    qat_dataset *d =
        open_set(&(qat_dataset_options){.kind = "digits", .train_count = 3, .undrawn = true}, 0);
    ck_assert_int_eq(qat_dataset_get(d, 2, values, &label, &err), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(d, 3, values, &label, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "sample 3, not in 0..2"));
    ck_assert_int_eq(qat_dataset_get(d, -1, values, &label, &err), QAT_ERR_ARGUMENT);
    qat_dataset_close(d);
    qat_dataset_close(NULL);
}
END_TEST

/* The procedural sets. */

static void check_procedural(const char *kind, int height, int width, int channels,
                             qat_sample_type type)
{
    qat_dataset_options o = {.kind = kind, .seed = 3, .train_count = 300, .test_count = 100};
    qat_set_threads(1);
    qat_dataset *one = open_set(&o, QAT_SPLIT_TRAIN), *test = open_set(&o, QAT_SPLIT_TEST);
    qat_set_threads(3);
    qat_dataset *three = open_set(&o, QAT_SPLIT_TRAIN);
    o.train_count = 77;
    qat_dataset *fewer = open_set(&o, QAT_SPLIT_TRAIN);
    o.seed = 4;
    qat_dataset *other = open_set(&o, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(one);
    ck_assert_int_eq(info->count, 300);
    ck_assert_int_eq(info->height, height);
    ck_assert_int_eq(info->width, width);
    ck_assert_int_eq(info->channels, channels);
    ck_assert_int_eq(info->type, type);
    ck_assert_float_eq(info->max, type == QAT_SAMPLE_U8 ? 255 : 1);
    ck_assert_int_eq(info->classes, 10);
    ck_assert_str_ne(info->labels[0], info->labels[9]);
    ck_assert_int_eq(qat_dataset_info_of(test)->count, 100);
    ck_assert_uint_eq(crc_of(one, 0, 300), crc_of(three, 0, 300));
    ck_assert_uint_eq(crc_of(one, 0, 77), crc_of(fewer, 0, 77));
    ck_assert_uint_ne(crc_of(one, 0, 77), crc_of(other, 0, 77));
    ck_assert_uint_ne(crc_of(one, 0, 77), crc_of(test, 0, 77));
    qat_dataset_close(one);
    qat_dataset_close(test);
    qat_dataset_close(three);
    qat_dataset_close(fewer);
    qat_dataset_close(other);
}

START_TEST(test_procedural)
{
    check_procedural("digits", 28, 28, 1, QAT_SAMPLE_U8);
    check_procedural("shapes", 32, 32, 3, QAT_SAMPLE_U8);
    check_procedural("words", 1, 24, 12, QAT_SAMPLE_F32);
}
END_TEST

/*
 * Each class occurs once in ten pictures. No two pictures are equal, and no picture has only one
 * colour.
 */
START_TEST(test_procedural_pictures)
{
    static const char *const kinds[] = {"digits", "shapes"};
    for (int k = 0; k < 2; k++) {
        qat_dataset *d =
            open_set(&(qat_dataset_options){.kind = kinds[k], .seed = 1, .train_count = 200}, 0);
        size_t const n = value_count(d);
        uint8_t *all = malloc(200 * n);
        ck_assert_ptr_nonnull(all);
        unsigned seen = 0;
        for (int i = 0; i < 200; i++) {
            int label;
            uint8_t *p = all + (size_t)i * n, low = 255, high = 0;
            ck_assert_int_eq(qat_dataset_get(d, i, p, &label, NULL), QAT_OK);
            seen = i % 10 ? seen | 1U << label : 1U << label;
            ck_assert(i % 10 != 9 || seen == 1023);
            for (size_t j = 0; j < n; j++) {
                low = p[j] < low ? p[j] : low;
                high = p[j] > high ? p[j] : high;
            }
            ck_assert_int_gt(high - low, 60);
            for (int j = 0; j < i; j++)
                ck_assert(memcmp(all + (size_t)j * n, p, n) != 0);
        }
        free(all);
        qat_dataset_close(d);
    }
}
END_TEST

/* The same bytes on every machine and compiler. */
START_TEST(test_procedural_pinned)
{
    qat_dataset *d =
        open_set(&(qat_dataset_options){.kind = "digits", .seed = 1, .train_count = 500}, 0);
    ck_assert_uint_eq(crc_of(d, 0, 500), digits_crc);
    qat_dataset_close(d);
    d = open_set(&(qat_dataset_options){.kind = "shapes", .seed = 1, .train_count = 500}, 0);
    ck_assert_uint_eq(crc_of(d, 0, 500), shapes_crc);
    qat_dataset_close(d);
    d = open_set(&(qat_dataset_options){.kind = "words", .seed = 1, .train_count = 500}, 0);
    ck_assert_uint_eq(crc_of(d, 0, 500), words_crc);
    qat_dataset_close(d);
}
END_TEST

static void check_memory(const qat_dataset_options *o, qat_split split);

/** Drawn when requested: any number of classes, each as often; the same with some left out. */
START_TEST(test_patterns)
{
    qat_dataset_options o = {
        .kind = "patterns", .seed = 1, .train_count = 60, .classes = 20, .height = 32};
    int seen[20] = {0}, label;
    uint8_t whole[32 * 32 * 3], part[sizeof whole];
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_uint_eq(crc_of(d, 0, 60), patterns_crc);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 20);
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, whole, &label, NULL), QAT_OK);
        ck_assert_int_eq(++seen[label], i / 20 + 1);
    }
    int left_out[] = {0, 7};
    qat_faults const faults = {.count = 2, .samples = left_out};
    qat_dataset *fewer = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_skip(fewer, &faults, NULL), QAT_OK);
    for (int i = 0; i < 58; i++) {
        int const from = i + 1 + (i >= 6);
        int other;
        ck_assert_int_eq(qat_dataset_get(fewer, i, part, &other, NULL), QAT_OK);
        ck_assert_int_eq(qat_dataset_get(d, from, whole, &label, NULL), QAT_OK);
        ck_assert_mem_eq(part, whole, sizeof whole);
        ck_assert_int_eq(label, other);
    }
    qat_dataset_close(fewer);
    qat_dataset_close(d);
    o.classes = 70000;
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "classes 70000", "1..65536");
    o.classes = 0;
    check_memory(&o, QAT_SPLIT_TRAIN);
}
END_TEST

/** Share of test pictures whose nearest class mean is that of their class. */
static double nearest_mean(const char *kind)
{
    enum { TRAIN = 2000, TEST = 500, MOST = 3072 };
    static double mean[10][MOST];
    uint8_t v[MOST];
    int label, right = 0;
    qat_dataset_options const o = {
        .kind = kind, .seed = 1, .train_count = TRAIN, .test_count = TEST};
    qat_dataset *train = open_set(&o, QAT_SPLIT_TRAIN), *test = open_set(&o, QAT_SPLIT_TEST);
    size_t const n = value_count(train);
    memset(mean, 0, sizeof mean);
    for (int i = 0; i < TRAIN; i++) {
        ck_assert_int_eq(qat_dataset_get(train, i, v, &label, NULL), QAT_OK);
        for (size_t j = 0; j < n; j++)
            mean[label][j] += v[j] / (TRAIN / 10.0);
    }
    for (int i = 0; i < TEST; i++) {
        double best = INFINITY;
        int found = -1;
        ck_assert_int_eq(qat_dataset_get(test, i, v, &label, NULL), QAT_OK);
        for (int c = 0; c < 10; c++) {
            double far = 0;
            for (size_t j = 0; j < n; j++)
                far += (v[j] - mean[c][j]) * (v[j] - mean[c][j]);
            found = far < best ? c : found;
            best = far < best ? far : best;
        }
        right += found == label;
    }
    qat_dataset_close(train);
    qat_dataset_close(test);
    return (double)right / TEST;
}

/*
 * The data are hard enough to be worth training on: class means alone classify badly, though those
 * of the digits are of some use.
 */
START_TEST(test_procedural_hard)
{
    double const digits = nearest_mean("digits"), shapes = nearest_mean("shapes");
    printf("nearest class mean: digits %.3f, shapes %.3f\n", digits, shapes);
    ck_assert_double_gt(digits, 0.25);
    ck_assert_double_lt(digits, 0.75);
    ck_assert_double_lt(shapes, 0.40);
}
END_TEST

/* IDX. */

static void write_idx(const char *images_name, const char *labels_name, const uint8_t *header,
                      size_t pixels, const char *labels, uint8_t label_count)
{
    uint8_t images[16 + 64], text[8 + 16] = {0, 0, 8, 1, 0, 0, 0, label_count};
    memcpy(images, header, 16);
    for (size_t i = 0; i < pixels; i++)
        images[16 + i] = (uint8_t)(i * 3 + 1);
    memcpy(text + 8, labels, strlen(labels));
    for (size_t i = 0; i < strlen(labels); i++)
        text[8 + i] = (uint8_t)(text[8 + i] - '0');
    test_temp_write(folder, images_name, images, 16 + pixels);
    test_temp_write(folder, labels_name, text, 8 + strlen(labels));
}

/* 3 pictures of 2 x 4 */
static const uint8_t idx_header[16] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4};
#define IDX_TRAIN "train-images-idx3-ubyte", "train-labels-idx1-ubyte"

START_TEST(test_idx)
{
    qat_dataset_options o = {.kind = "idx", .path = folder};
    uint8_t v[8];
    int label;
    write_idx(IDX_TRAIN, idx_header, 24, "704", 3);
    write_idx("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", idx_header, 24, "111", 3);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert_int_eq(info->count, 3);
    ck_assert_int_eq(info->height, 2);
    ck_assert_int_eq(info->width, 4);
    ck_assert_int_eq(info->channels, 1);
    ck_assert_int_eq(info->classes, 8);
    ck_assert_ptr_null(info->labels);
    ck_assert(info->min == 0 && info->max == 255);
    ck_assert_int_eq(strncmp(info->name, "idx qat-test-", 13), 0);
    ck_assert_ptr_nonnull(strstr(info->name, "/train"));
    ck_assert_int_eq(qat_dataset_get(d, 2, v, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 4);
    ck_assert_int_eq(v[0], 16 * 3 + 1);
    ck_assert_int_eq(v[7], 23 * 3 + 1);
    qat_dataset_close(d);
    o.test_count = 2;
    o.classes = 5;
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 5);
    qat_dataset_close(d);
}
END_TEST

static void refuse_idx(qat_status status, const char *part, const char *other, int classes)
{
    refuse(&(qat_dataset_options){.kind = "idx", .path = folder, .classes = classes},
           QAT_SPLIT_TRAIN, status, part, other);
}

START_TEST(test_idx_refused)
{
    uint8_t h[16];
    refuse_idx(QAT_ERR_IO, "train-images-idx3-ubyte: there is no such file", ".gz", 0);
    memcpy(h, idx_header, 16);
    write_idx(IDX_TRAIN, h, 23, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "train-images-idx3-ubyte: truncated", "24 bytes of data, found 23",
               0);
    write_idx(IDX_TRAIN, h, 25, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "train-images-idx3-ubyte: too long", "found 25", 0);
    write_idx(IDX_TRAIN, h, 24, "01", 3);
    refuse_idx(QAT_ERR_FORMAT, "train-labels-idx1-ubyte: truncated", "found 2", 0);
    write_idx(IDX_TRAIN, h, 24, "01", 2);
    refuse_idx(QAT_ERR_FORMAT, "holds 2 labels, but", "holds 3 images", 0);
    write_idx(IDX_TRAIN, h, 24, "018", 3);
    refuse_idx(QAT_ERR_FORMAT, "label 8 of sample 2 is not in 0..7", "train-labels", 8);
    refuse_idx(QAT_ERR_ARGUMENT, "classes -1", "data", -1);
    h[3] = 1;
    write_idx(IDX_TRAIN, h, 24, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "magic number 0x00000801, expected 0x00000803", "train-images", 0);
    memcpy(h, "\x89PNG\r\n\x1a\n", 8);
    write_idx(IDX_TRAIN, h, 24, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "magic number 0x89504e47, expected 0x00000803", "train-images", 0);
    memcpy(h, idx_header, 16);
    memset(h + 4, 0xff, 12); /* sides and count of 2^32 - 1 */
    write_idx(IDX_TRAIN, h, 24, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "4294967295 samples", "train-images", 0);
    memcpy(h + 4, "\0\0\0\3", 4);
    write_idx(IDX_TRAIN, h, 24, "012", 3);
    refuse_idx(QAT_ERR_FORMAT, "impossible sample size 4294967295 x 4294967295 x 1", "train", 0);
    memset(h + 4, 0, 4);
    write_idx(IDX_TRAIN, h, 0, "", 0);
    refuse_idx(QAT_ERR_FORMAT, "0 samples", "train-images", 0);
    test_temp_write(folder, "train-images-idx3-ubyte", idx_header, 15);
    refuse_idx(QAT_ERR_FORMAT, "truncated: 15 bytes", "header", 0);
    test_temp_write(folder, "train-images-idx3-ubyte", "", 0);
    refuse_idx(QAT_ERR_FORMAT, "truncated: 0 bytes", "header", 0);
    unlink(test_temp_path(path, folder, "train-images-idx3-ubyte"));
    test_temp_write(folder, "plain", "this is no gzip file", 20);
    ck_assert_int_eq(rename(test_temp_path((char[TEST_PATH_MAX]){0}, folder, "plain"),
                            test_temp_path(path, folder, "train-images-idx3-ubyte.gz")),
                     0);
    refuse_idx(QAT_ERR_FORMAT, "train-images-idx3-ubyte.gz: not a gzip file", "", 0);
}
END_TEST

/* CIFAR-10. */

enum { RECORD = 3073 };

static void write_batch(const char *name, int first, int records, size_t extra)
{
    uint8_t *b = calloc((size_t)records + 1, RECORD);
    ck_assert_ptr_nonnull(b);
    for (int i = 0; i < records; i++) {
        b[i * RECORD] = (uint8_t)((first + i) % 10);
        for (int p = 0; p < 3072; p++) /* red plane 1.., green 2.., blue 3.. */
            b[i * RECORD + 1 + p] = (uint8_t)(100 * (p / 1024) + p % 97 + first + i);
    }
    test_temp_write(folder, name, b, (size_t)records * RECORD + extra);
    free(b);
}

START_TEST(test_cifar10)
{
    static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\r\ni\nlast\n\n";
    qat_dataset_options o = {.kind = "cifar10", .path = folder};
    uint8_t v[3072];
    int label;
    write_batch("data_batch_1.bin", 0, 4, 0);
    write_batch("data_batch_2.bin.gz", 4, 3, 0);
    write_batch("data_batch_4.bin", 7, 3, 0); /* behind a gap: not taken */
    write_batch("test_batch.bin", 8, 2, 0);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 7);
    ck_assert_ptr_null(qat_dataset_info_of(d)->labels);
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(label, i);
        for (int p = 0; p < 1024; p++) {
            for (int c = 0; c < 3; c++)
                ck_assert_int_eq(v[3 * p + c], (uint8_t)(100 * c + (1024 * c + p) % 97 + i));
        }
    }
    qat_dataset_close(d);
    test_temp_write(folder, "batches.meta.txt", names, sizeof names - 1);
    o.train_count = 5;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 5);
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[7], "h");
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[9], "last");
    qat_dataset_close(d);
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    qat_dataset_close(d);
}
END_TEST

START_TEST(test_cifar10_refused)
{
    qat_dataset_options const o = {.kind = "cifar10", .path = folder};
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_IO, "data_batch_1.bin: there is no such file", folder);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_IO, "test_batch.bin: there is no such file", folder);
    write_batch("data_batch_1.bin", 0, 2, 0);
    write_batch("data_batch_2.bin", 0, 2, 17);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT,
           "data_batch_2.bin: truncated or not a CIFAR-10 file", "6163");
    write_batch("data_batch_2.bin", 0, 0, 0);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "data_batch_2.bin", "0 bytes");
    uint8_t record[2 * RECORD] = {0};
    record[RECORD] = 10;
    test_temp_write(folder, "data_batch_2.bin", record, sizeof record);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "data_batch_2.bin: label 10 of sample 1", "0..9");
    write_batch("data_batch_2.bin", 0, 1, 0);
    test_temp_write(folder, "batches.meta.txt", "cat\ndog\n", 8);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "batches.meta.txt: only 2 lines", "10");
    test_temp_write(folder, "batches.meta.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", 23);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "batches.meta.txt: more than 10", "10");
}
END_TEST

START_TEST(test_cifar100)
{
    enum { FINE = 2 + 3072 };
    qat_dataset_options const o = {.kind = "cifar100", .path = folder};
    uint8_t bytes[2 * FINE] = {19, 99, 7}, v[3072];
    char names[400] = "";
    int label;
    bytes[FINE] = 3; /* a superclass */
    bytes[FINE - 1] = 42;
    for (int i = 0; i < 100; i++)
        sprintf(names + strlen(names), "n%d\n", i);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_IO, "train.bin: there is no such file", folder);
    test_temp_write(folder, "train.bin", bytes, sizeof bytes);
    test_temp_write(folder, "test.bin", bytes, FINE);
    test_temp_write(folder, "fine_label_names.txt", names, strlen(names));
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 100);
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[99], "n99");
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 99);
    ck_assert_int_eq(v[0], 7);
    ck_assert_int_eq(v[3071], 42);
    ck_assert_int_eq(qat_dataset_get(d, 1, v, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 0);
    qat_dataset_close(d);
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 1);
    qat_dataset_close(d);
    bytes[1] = 100;
    test_temp_write(folder, "train.bin", bytes, sizeof bytes);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "train.bin: label 100 of sample 0", "0..99");
    test_temp_write(folder, "train.bin", bytes, FINE - 1);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "not a CIFAR-100 file", "3074");
}
END_TEST

/* .npy pairs. */

static void write_npy(const char *name, qat_npy_type type, int rank, int64_t a, int64_t b,
                      int64_t c, int64_t d, const void *data)
{
    int64_t const dims[4] = {a, b, c, d};
    ck_assert_int_eq(
        qat_npy_write(test_temp_path(path, folder, name), type, rank, dims, data, NULL), QAT_OK);
}

static void expect_shape(const char *what, int count, int height, int width, int channels,
                         qat_sample_type type)
{
    qat_dataset *d =
        open_set(&(qat_dataset_options){.kind = "npy", .path = folder}, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert_msg(info->count == count && info->height == height && info->width == width &&
                      info->channels == channels && info->type == type,
                  "%s: %d of %d x %d x %d, type %d", what, info->count, info->height, info->width,
                  info->channels, info->type);
    qat_dataset_close(d);
}

START_TEST(test_npy_shapes)
{
    static const float data[24] = {0};
    static const int32_t labels[4] = {0, 1, 1, 0};
    write_npy("train_y.npy", QAT_NPY_I32, 1, 4, 0, 0, 0, labels);
    write_npy("train_x.npy", QAT_NPY_F32, 2, 4, 6, 0, 0, data);
    expect_shape("[N, L]", 4, 1, 6, 1, QAT_SAMPLE_F32);
    write_npy("train_x.npy", QAT_NPY_F32, 3, 4, 3, 2, 0, data);
    expect_shape("[N, W, C]", 4, 1, 3, 2, QAT_SAMPLE_F32);
    write_npy("train_x.npy", QAT_NPY_F32, 4, 4, 3, 2, 1, data);
    expect_shape("[N, H, W, C]", 4, 3, 2, 1, QAT_SAMPLE_F32);
    write_npy("train_x.npy", QAT_NPY_U8, 4, 4, 1, 2, 3, data);
    expect_shape("pixels", 4, 1, 2, 3, QAT_SAMPLE_U8);
}
END_TEST

/** Two samples of two values each, as these types hold them, come out as floats. */
static void check_values(qat_npy_type type, const void *data, const float *expected)
{
    float v[2];
    int label;
    write_npy("test_x.npy", type, 2, 2, 2, 0, 0, data);
    qat_dataset *d =
        open_set(&(qat_dataset_options){.kind = "npy", .path = folder}, QAT_SPLIT_TEST);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert_int_eq(info->classes, 8);
    ck_assert(info->min == expected[0] && info->max == expected[3]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(label, i ? 7 : 0);
        ck_assert_mem_eq(v, expected + 2 * i, sizeof v);
    }
    qat_dataset_close(d);
}

START_TEST(test_npy_types)
{
    static const uint8_t y8[2] = {0, 7};
    static const int64_t y64[2] = {0, 7};
    static const int16_t y16[2] = {0, 7};
    write_npy("test_y.npy", QAT_NPY_U8, 1, 2, 0, 0, 0, y8);
    check_values(QAT_NPY_F32, (float[]){-0.1f, 0.25f, 0.5f, 3e8f},
                 (float[]){-0.1f, 0.25f, 0.5f, 3e8f});
    check_values(QAT_NPY_F64, (double[]){-0.1, 0.25, 0.5, 3e8},
                 (float[]){-0.1f, 0.25f, 0.5f, 3e8f});
    write_npy("test_y.npy", QAT_NPY_I64, 1, 2, 0, 0, 0, y64);
    check_values(QAT_NPY_I8, (int8_t[]){-128, 0, 1, 127}, (float[]){-128, 0, 1, 127});
    write_npy("test_y.npy", QAT_NPY_I16, 1, 2, 0, 0, 0, y16);
    check_values(QAT_NPY_I16, (int16_t[]){-32768, 0, 1, 32767}, (float[]){-32768, 0, 1, 32767});
}
END_TEST

START_TEST(test_npy_refused)
{
    qat_dataset_options const o = {.kind = "npy", .path = folder};
    static const float data[24] = {[15] = NAN};
    static const double big[4] = {1, 2, 3, 1e300};
    static const int64_t labels[4] = {0, 1, 2, 3}, negative[4] = {0, 0, -1, 0};
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_IO, "test_x.npy: there is no such file", folder);
    write_npy("test_x.npy", QAT_NPY_F32, 2, 4, 3, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_IO, "test_y.npy: there is no such file", folder);
    write_npy("test_y.npy", QAT_NPY_I64, 1, 4, 0, 0, 0, labels);
    write_npy("test_x.npy", QAT_NPY_F32, 2, 4, 6, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_NUMERIC, "test_x.npy: value 3 of sample 2 is nan", "");
    write_npy("test_x.npy", QAT_NPY_F64, 2, 4, 1, 0, 0, big);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_NUMERIC, "test_x.npy: value 0 of sample 3 is inf", "");
    write_npy("test_x.npy", QAT_NPY_F32, 2, 4, 3, 0, 0, data);
    write_npy("test_y.npy", QAT_NPY_I64, 1, 3, 0, 0, 0, labels);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "test_y.npy holds 3 labels", "holds 4 samples");
    write_npy("test_y.npy", QAT_NPY_I64, 2, 4, 1, 0, 0, labels);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "test_y.npy: label 0 of sample 2 is 2",
           "not 0 or 1");
    write_npy("test_y.npy", QAT_NPY_F64, 1, 4, 0, 0, 0, big);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_NUMERIC, "test_y.npy: value 0 of sample 3", "infinite");
    write_npy("test_y.npy", QAT_NPY_I64, 1, 4, 0, 0, 0, negative);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "label -1 of sample 2", "test_y.npy");
    write_npy("test_y.npy", QAT_NPY_I64, 1, 4, 0, 0, 0, labels);
    write_npy("test_x.npy", QAT_NPY_I32, 2, 4, 3, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_UNSUPPORTED, "test_x.npy: type <i4", "|u1");
    write_npy("test_x.npy", QAT_NPY_F32, 1, 4, 0, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_SHAPE, "test_x.npy: rank 1", "[N, L]");
    write_npy("test_x.npy", QAT_NPY_F32, 2, 4, 0, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "impossible sample size 1 x 0 x 1", "test_x.npy");
    write_npy("test_x.npy", QAT_NPY_F32, 2, 0, 4, 0, 0, data);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "0 samples", "test_x.npy");
    test_temp_write(folder, "test_x.npy", "\x93NUMPY\x01\x00", 8);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "test_x.npy: truncated", "header");
}
END_TEST

/* Folders. */

/** A PPM of one colour. */
static void write_ppm(const char *name, int height, int width, uint8_t r, uint8_t g, uint8_t b)
{
    uint8_t bytes[4096];
    int n = snprintf((char *)bytes, sizeof bytes, "P6\n%d %d\n255\n", width, height);
    for (int i = 0; i < height * width; i++) {
        bytes[n++] = r;
        bytes[n++] = g;
        bytes[n++] = b;
    }
    test_temp_write(folder, name, bytes, (size_t)n);
}

static void write_tree(void)
{
    write_ppm("train/cat/2.ppm", 4, 4, 20, 0, 0);
    write_ppm("train/cat/1.PPM", 4, 6, 10, 0, 0);
    write_ppm("train/ant/x.ppm", 2, 2, 30, 60, 90);
    write_ppm("train/bee/y.ppm", 2, 2, 40, 0, 0);
    write_ppm("train/bee/z.ppm", 2, 2, 50, 0, 0);
    test_temp_write(folder, "train/ant/notes.txt", "no picture", 10);
    test_temp_write(folder, "train/README", "no folder", 9);
    test_temp_write(folder, "train/.hidden/x", "", 0);
    write_ppm("val/cat/v.ppm", 4, 4, 60, 0, 0); /* ant and bee are missing: cat stays number 2 */
}

START_TEST(test_folder)
{
    qat_dataset_options o = {
        .kind = "folder", .path = folder, .height = 2, .width = 3, .channels = 3};
    static const int labels[] = {0, 1, 1, 2, 2}, reds[] = {30, 40, 50, 10, 20};
    uint8_t v[32 * 32 * 3];
    int label;
    write_tree();
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert_int_eq(info->count, 5);
    ck_assert_int_eq(info->classes, 3);
    ck_assert_str_eq(info->labels[0], "ant");
    ck_assert_str_eq(info->labels[2], "cat");
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(label, labels[i]);
        ck_assert_int_eq(v[0], reds[i]);
        ck_assert_int_eq(v[15], reds[i]);
    }
    qat_dataset_close(d);
    o.train_count = 3; /* spread over the classes */
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(label, i);
    }
    qat_dataset_close(d);
    d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 1);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 3);
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 2);
    qat_dataset_close(d);
    o.height = o.width = o.channels = 0;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_uint_eq(value_count(d), 32 * 32 * 3);
    qat_dataset_close(d);
    o.channels = 1; /* grey: (77 R + 150 G + 29 B) / 256 */
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, NULL), QAT_OK);
    ck_assert_int_eq(v[0], (77 * 30 + 150 * 60 + 29 * 90) / 256);
    qat_dataset_close(d);
}
END_TEST

START_TEST(test_folder_refused)
{
    qat_dataset_options o = {.kind = "folder", .path = folder};
    uint8_t v[32 * 32 * 3];
    int label;
    qat_error err;
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "train: no such folder", folder);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "no folder val or test", "data.split = 0.8");
    test_temp_write(folder, "train/file.ppm", "", 0);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "train: empty", "class");
    test_temp_write(folder, "train/dog/note.txt", "", 0);
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "train/dog: no pictures", ".png");
    write_ppm("train/dog/a.ppm", 2, 2, 1, 2, 3);
    write_ppm("test/wolf/a.ppm", 2, 2, 1, 2, 3);
    refuse(&o, QAT_SPLIT_TEST, QAT_ERR_FORMAT, "the class folder wolf does not exist in train",
           "test");
    o.channels = 4;
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "channels 4", "1 or 3");
    o.channels = 3;
    o.height = -2;
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_FORMAT, "impossible sample size -2 x -2 x 3", folder);
    o.height = 64;
    o.resize_short = 40;
    refuse(&o, QAT_SPLIT_TRAIN, QAT_ERR_ARGUMENT, "resize_short 40", "64 x 64");
    o = (qat_dataset_options){.kind = "folder", .path = folder};
    test_temp_write(folder, "train/dog/b.png", "\x89PNG\r\n\x1a\nbroken", 14);
    test_temp_write(folder, "train/dog/c.jpg", "", 0);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, &err), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(d, 1, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "train/dog/b.png: truncated"));
    ck_assert_int_eq(qat_dataset_get(d, 2, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "train/dog/c.jpg: empty file"));
    unlink(test_temp_path(path, folder, "train/dog/a.ppm"));
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "train/dog/a.ppm: No such file"));
    qat_dataset_close(d);
}
END_TEST

/* Pictures. */

/** The definition of docs/preprocessing.md in rational numbers, with 11-bit weights. */
static double resized_at(const uint8_t *from, int from_h, int from_w, int channels, int to_h,
                         int to_w, int y, int x, int c)
{
    int const side[2] = {from_h, from_w}, to[2] = {to_h, to_w}, at[2] = {y, x};
    int low[2], high[2];
    double w[2];
    for (int k = 0; k < 2; k++) {
        double s = (at[k] + 0.5) * side[k] / to[k] - 0.5;
        s = s < 0 ? 0 : s > side[k] - 1 ? side[k] - 1 : s;
        low[k] = (int)floor(s + 1e-9);
        high[k] = low[k] + 1 < side[k] ? low[k] + 1 : low[k];
        w[k] = floor((s - low[k]) * 2048 + 0.5 + 1e-9) / 2048;
    }
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum +=
            (k & 2 ? w[0] : 1 - w[0]) * (k & 1 ? w[1] : 1 - w[1]) *
            from[((k & 2 ? high[0] : low[0]) * from_w + (k & 1 ? high[1] : low[1])) * channels + c];
    return floor(sum + 0.5); /* exact: a multiple of 2^-22 below 2^8 */
}

START_TEST(test_resize)
{
    static const int sizes[][4] = {{4, 4, 4, 4},   {4, 4, 8, 8},   {8, 8, 4, 4}, {5, 7, 3, 11},
                                   {1, 1, 5, 5},   {13, 9, 1, 1},  {2, 3, 7, 2}, {31, 17, 16, 32},
                                   {3, 40, 29, 5}, {40, 30, 13, 9}};
    uint8_t from[40 * 40 * 3], to[40 * 40 * 3];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * i * 31 + i * 7);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int *s = sizes[k];
        for (int channels = 1; channels <= 3; channels += 2) {
            qat_image_resize(from, s[0], s[1], to, s[2], s[3], channels);
            for (int i = 0; i < s[2] * s[3] * channels; i++)
                ck_assert_int_eq(to[i], (int)resized_at(from, s[0], s[1], channels, s[2], s[3],
                                                        i / channels / s[3], i / channels % s[3],
                                                        i % channels));
        }
    }
    qat_image_resize(from, 4, 4, to, 4, 4, 3);
    ck_assert_mem_eq(from, to, 4 * 4 * 3);
    qat_image_resize((uint8_t[]){0, 100}, 1, 2, to, 1, 4, 1); /* 0, 1/4, 3/4, 1 */
    ck_assert_mem_eq(to, ((uint8_t[]){0, 25, 75, 100}), 4);
}
END_TEST

START_TEST(test_image_load)
{
    uint8_t bytes[64] = "P5\n8 4\n255\n", v[48];
    qat_error err;
    for (int i = 0; i < 32; i++)
        bytes[11 + i] = (uint8_t)(i % 8 * 10 + i / 8); /* column * 10 + row */
    test_temp_write(folder, "wide.pgm", bytes, 11 + 32);
    test_temp_path(path, folder, "wide.pgm");
    ck_assert_int_eq(qat_image_load(path, 4, 4, 1, 4, false, v, &err), QAT_OK);
    for (int i = 0; i < 16; i++) /* centre columns 2..5 */
        ck_assert_int_eq(v[i], (i % 4 + 2) * 10 + i / 4);
    ck_assert_int_eq(qat_image_load(path, 4, 3, 1, 4, false, v, &err), QAT_OK);
    ck_assert_int_eq(v[0], 20); /* (8 - 3) / 2 rounded down */
    ck_assert_int_eq(qat_image_load(path, 2, 2, 1, 0, false, v, &err), QAT_OK); /* squashed */
    ck_assert_int_eq(v[0], (10 + 11 + 20 + 21 + 2) / 4);
    write_ppm("c.ppm", 2, 2, 10, 20, 30);
    test_temp_path(path, folder, "c.ppm");
    ck_assert_int_eq(qat_image_load(path, 2, 2, 3, 0, true, v, &err), QAT_OK);
    ck_assert_mem_eq(v, "\x1e\x14\x0a\x1e\x14\x0a", 6);
    ck_assert_int_eq(qat_image_load(path, 2, 2, 2, 0, true, v, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_image_load(path, 0, 2, 3, 0, true, v, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_image_load(path, 4, 4, 3, 3, true, v, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "too small for a crop of 4 x 4"));
    ck_assert_int_eq(qat_image_load("none.png", 4, 4, 3, 0, true, v, &err), QAT_ERR_IO);
}
END_TEST

/* Augmentation. */

enum { AH = 6, AW = 5, AN = AH * AW * 3 };

static void ramp(uint8_t *v)
{
    for (int i = 0; i < AN; i++)
        v[i] = (uint8_t)(20 + i * 71 % 181);
}

static void augmented(const qat_augment *a, int64_t epoch, int64_t index, uint8_t *v)
{
    uint8_t scratch[AN];
    ramp(v);
    qat_augment_u8(a, v, AH, AW, 3, 7, epoch, index, scratch);
}

/* Pictures in memory are resized where a size is asked for: as qat_image_resize does. */
START_TEST(test_other_size)
{
    qat_dataset_options o = {.kind = "shapes", .train_count = 3, .height = 48};
    static uint8_t whole[32 * 32 * 3], small[20 * 48 * 3], expected[48 * 48 * 3],
        found[48 * 48 * 3];
    qat_dataset *resized = open_set(&o, QAT_SPLIT_TRAIN);
    o.height = 0;
    qat_dataset *plain = open_set(&o, QAT_SPLIT_TRAIN);
    int label, same;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(qat_dataset_get(plain, i, whole, &label, NULL), QAT_OK);
        qat_image_resize(whole, 32, 32, expected, 48, 48, 3);
        ck_assert_int_eq(qat_dataset_get(resized, i, found, &same, NULL), QAT_OK);
        ck_assert_mem_eq(found, expected, sizeof found);
        ck_assert_int_eq(same, label);
    }
    qat_dataset_close(resized);
    o.height = 20;
    o.width = 48;
    resized = open_set(&o, QAT_SPLIT_TRAIN);
    qat_image_resize(whole, 32, 32, expected, 20, 48, 3);
    ck_assert_int_eq(qat_dataset_info_of(resized)->height, 20);
    ck_assert_int_eq(qat_dataset_get(resized, 2, small, &same, NULL), QAT_OK);
    ck_assert_mem_eq(small, expected, sizeof small);
    qat_dataset_close(resized);
    qat_dataset_close(plain);
}
END_TEST

/* Every offset of -pad..pad occurs, and each picture is the original moved by one. */
START_TEST(test_augment_crop)
{
    qat_augment const a = {.crop_pad = 2};
    uint8_t v[AN], from[AN];
    unsigned seen = 0;
    ramp(from);
    for (int i = 0; i < 400; i++) {
        int matches = 0;
        augmented(&a, 0, i, v);
        for (int k = 0; k < 25; k++) {
            int const dy = k / 5 - 2, dx = k % 5 - 2;
            bool same = true;
            for (int p = 0; p < AN && same; p++) {
                int const y = p / 15 + dy, x = p / 3 % 5 + dx;
                bool const inside = y >= 0 && y < AH && x >= 0 && x < AW;
                same = v[p] == (inside ? from[(y * AW + x) * 3 + p % 3] : 0);
            }
            seen |= same ? 1U << k : 0;
            matches += same;
        }
        ck_assert_int_eq(matches, 1);
    }
    ck_assert_uint_eq(seen, (1U << 25) - 1);
}
END_TEST

START_TEST(test_augment_flip)
{
    qat_augment const a = {.flip = true};
    uint8_t v[AN], from[AN], mirrored[AN];
    int flips = 0;
    ramp(from);
    for (int p = 0; p < AN; p++)
        mirrored[p] = from[(p / 15 * AW + AW - 1 - p / 3 % 5) * 3 + p % 3];
    for (int i = 0; i < 1000; i++) {
        augmented(&a, i, 3, v);
        bool const flipped = memcmp(v, mirrored, AN) == 0;
        ck_assert(flipped || memcmp(v, from, AN) == 0);
        flips += flipped;
    }
    ck_assert_int_gt(flips, 400);
    ck_assert_int_lt(flips, 600);
}
END_TEST

/* v' is on a line through the pivot. Its slope is in 1 +- strength. */
static void check_factor(const qat_augment *a, const int *pivots, double strength)
{
    uint8_t v[AN], from[AN];
    double least = 9, most = 0;
    ramp(from);
    for (int i = 0; i < 300; i++) {
        augmented(a, 1, i, v);
        double low = 0, high = 9; /* the slopes that explain every byte */
        for (int p = 0; p < AN; p++) {
            double const d = from[p] - pivots[p];
            double const e1 = (v[p] - pivots[p] - 0.501) / d, e2 = (v[p] - pivots[p] + 0.501) / d;
            if (fabs(d) < 1 || v[p] == 0 || v[p] == 255)
                continue;
            low = fmax(low, fmin(e1, e2));
            high = fmin(high, fmax(e1, e2));
        }
        ck_assert_double_le(low, high);
        least = fmin(least, high);
        most = fmax(most, low);
    }
    ck_assert_double_gt(least, 1 - strength - 0.02);
    ck_assert_double_lt(least, 1 - 0.8 * strength);
    ck_assert_double_lt(most, 1 + strength + 0.02);
    ck_assert_double_gt(most, 1 + 0.8 * strength);
}

START_TEST(test_augment_colour)
{
    int zero[AN] = {0}, mean[AN], grey[AN], sum = 0;
    uint8_t from[AN];
    ramp(from);
    for (int p = 0; p < AN; p++)
        sum += from[p];
    for (int p = 0; p < AN; p++) {
        const uint8_t *rgb = from + p / 3 * 3;
        mean[p] = (2 * sum + AN) / (2 * AN);
        grey[p] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) / 256;
    }
    check_factor(&(qat_augment){.brightness = 0.25f}, zero, 0.25);
    check_factor(&(qat_augment){.contrast = 0.5f}, mean, 0.5);
    check_factor(&(qat_augment){.saturation = 1.0f}, grey, 1.0);
}
END_TEST

/** Hue as a share of the circle; 0 where there is none. */
static double hue_of(const uint8_t *v)
{
    double const r = v[0], g = v[1], b = v[2];
    double const most = fmax(r, fmax(g, b)), range = most - fmin(r, fmin(g, b));
    double const sixths = range == 0  ? 0
                          : most == r ? (g - b) / range
                          : most == g ? 2 + (b - r) / range
                                      : 4 + (r - g) / range;
    return (sixths < 0 ? sixths + 6 : sixths) / 6;
}

static int largest_of(const uint8_t *v)
{
    return v[0] > v[1] ? v[0] > v[2] ? v[0] : v[2] : v[1] > v[2] ? v[1] : v[2];
}

static int smallest_of(const uint8_t *v)
{
    return v[0] < v[1] ? v[0] < v[2] ? v[0] : v[2] : v[1] < v[2] ? v[1] : v[2];
}

/** All colours are turned by the same share, as far as bytes can say; returns it, -1/2..1/2. */
static double turn_of(const uint8_t *from, const uint8_t *to, int pixels)
{
    double low = -9, high = 9, first = 0;
    for (int i = 0; i < pixels; i++, from += 3, to += 3) {
        double const range = largest_of(from) - smallest_of(from);
        ck_assert(largest_of(from) == largest_of(to) && smallest_of(from) == smallest_of(to));
        if (range < 16)
            continue;
        double turn = hue_of(to) - hue_of(from);
        first = low < -8 ? turn : first;
        turn -= round(turn - first); /* the same way round */
        low = fmax(low, turn - 0.502 / range / 6);
        high = fmin(high, turn + 0.502 / range / 6);
    }
    ck_assert_double_le(low, high);
    double const turn = (low + high) / 2;
    return turn - round(turn);
}

START_TEST(test_augment_hue)
{
    enum { STEP = 15, SIDE = 255 / STEP + 1, PIXELS = SIDE * SIDE * SIDE };
    static uint8_t from[PIXELS * 3], to[PIXELS * 3], scratch[PIXELS * 3];
    double least = 0, most = 0;
    for (int i = 0; i < PIXELS; i++) {
        from[3 * i] = (uint8_t)(i % SIDE * STEP);
        from[3 * i + 1] = (uint8_t)(i / SIDE % SIDE * STEP);
        from[3 * i + 2] = (uint8_t)(i / SIDE / SIDE * STEP);
    }
    for (int i = 0; i < 100; i++) {
        memcpy(to, from, sizeof to);
        qat_augment_u8(&(qat_augment){.hue = 0.25f}, to, 1, PIXELS, 3, 1, 0, i, scratch);
        double const turn = turn_of(from, to, PIXELS);
        least = fmin(least, turn);
        most = fmax(most, turn);
    }
    ck_assert(least > -0.251 && least < -0.2 && most > 0.2 && most < 0.251);
    memcpy(to, from, sizeof to); /* no turn: no change */
    qat_augment_u8(&(qat_augment){.hue = 1e-7f}, to, 1, PIXELS, 3, 1, 0, 0, scratch);
    ck_assert_mem_eq(to, from, sizeof to);
}
END_TEST

START_TEST(test_augment_keys)
{
    qat_augment const all = {
        .crop_pad = 2, .flip = true, .brightness = 0.3f, .contrast = 0.3f, .saturation = 0.3f};
    uint8_t a[AN], b[AN];
    augmented(&all, 1, 2, a);
    augmented(&all, 1, 2, b);
    ck_assert_mem_eq(a, b, AN);
    augmented(&all, 2, 1, b);
    ck_assert(memcmp(a, b, AN) != 0);
    augmented(&all, 1, 3, b);
    ck_assert(memcmp(a, b, AN) != 0);
    augmented(&(qat_augment){0}, 1, 2, b);
    ramp(a);
    ck_assert_mem_eq(a, b, AN);
    /* a signal is never moved up or down */
    uint8_t scratch[4], signal[4];
    for (int i = 0; i < 50; i++) {
        memcpy(signal, "abcd", 4);
        qat_augment_u8(&(qat_augment){.crop_pad = 1}, signal, 1, 4, 1, 1, 0, i, scratch);
        ck_assert(memcmp(signal, "abcd", 4) == 0 || memcmp(signal, "bcd\0", 4) == 0 ||
                  memcmp(signal, "\0abc", 4) == 0);
    }
}
END_TEST

/* The nth allocation fails: out of memory, nothing leaks, nothing crashes. */

static void check_memory(const qat_dataset_options *o, qat_split split)
{
    bool failed;
    long n = 0;
    do {
        qat_dataset *d = NULL;
        uint8_t v[32 * 32 * 3];
        int label;
        test_fail_alloc_after(n++);
        qat_status st = qat_dataset_open(&d, o, split, NULL);
        if (!st)
            st = qat_dataset_get(d, 0, v, &label, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "%s, allocation %ld: status %d",
                      o->kind, n, st);
        qat_dataset_close(d);
    } while (failed);
    ck_assert_int_gt(n, 2);
}

START_TEST(test_out_of_memory)
{
    static const uint8_t labels[4] = {0};
    qat_set_threads(1);
    check_memory(&(qat_dataset_options){.kind = "digits", .train_count = 5}, QAT_SPLIT_TRAIN);
    check_memory(&(qat_dataset_options){.kind = "shapes", .train_count = 5}, QAT_SPLIT_TRAIN);
    write_idx(IDX_TRAIN, idx_header, 24, "704", 3);
    check_memory(&(qat_dataset_options){.kind = "idx", .path = folder}, QAT_SPLIT_TRAIN);
    write_batch("data_batch_1.bin", 0, 4, 0);
    write_batch("data_batch_2.bin.gz", 4, 3, 0);
    test_temp_write(folder, "batches.meta.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", 21);
    check_memory(&(qat_dataset_options){.kind = "cifar10", .path = folder}, QAT_SPLIT_TRAIN);
    write_npy("train_y.npy", QAT_NPY_U8, 1, 4, 0, 0, 0, labels);
    write_npy("train_x.npy", QAT_NPY_U8, 2, 4, 1, 0, 0, labels);
    check_memory(&(qat_dataset_options){.kind = "npy", .path = folder}, QAT_SPLIT_TRAIN);
    write_tree();
    check_memory(&(qat_dataset_options){.kind = "folder", .path = folder, .resize_short = 32},
                 QAT_SPLIT_TEST);
}
END_TEST

/* Real data. */

static bool real(const char *name)
{
    if (test_data_path(path, sizeof path, name))
        return true;
    test_skip(name, "not under QAT_DATA");
    return false;
}

static void check_real(const qat_dataset_options *o, qat_split split, int count, int classes,
                       const int *first, unsigned long pixels_crc, unsigned long labels_crc)
{
    qat_dataset *d = open_set(o, split);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    unsigned long pixels = crc32(0, NULL, 0), labels = pixels;
    uint8_t v[3072];
    ck_assert_int_eq(info->count, count);
    ck_assert_int_eq(info->classes, classes);
    for (int i = 0; i < count; i++) {
        int label;
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert(i >= 10 || label == first[i]);
        pixels = crc32(pixels, v, (uInt)value_count(d));
        labels = crc32(labels, &(uint8_t){(uint8_t)label}, 1);
    }
    ck_assert_uint_eq(pixels, pixels_crc);
    ck_assert_uint_eq(labels, labels_crc);
    qat_dataset_close(d);
}

START_TEST(test_real_mnist)
{
    qat_dataset_options const o = {.kind = "idx", .path = path};
    if (real("mnist")) {
        check_real(&o, QAT_SPLIT_TRAIN, 60000, 10, (int[]){5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
                   0xf3639b56, 0xba07e8ef);
        check_real(&o, QAT_SPLIT_TEST, 10000, 10, (int[]){7, 2, 1, 0, 4, 1, 4, 9, 5, 9}, 0xe4ca5f57,
                   0xee8604d9);
    }
    if (real("fashion-mnist")) {
        check_real(&o, QAT_SPLIT_TRAIN, 60000, 10, (int[]){9, 0, 0, 3, 0, 2, 7, 2, 5, 5},
                   0xae65dccd, 0x2ed6e46a);
        check_real(&o, QAT_SPLIT_TEST, 10000, 10, (int[]){9, 2, 1, 1, 6, 1, 4, 6, 5, 7}, 0x12728439,
                   0x242bc73f);
    }
}
END_TEST

START_TEST(test_real_cifar10)
{
    qat_dataset_options const o = {.kind = "cifar10", .path = path};
    if (!real("cifar-10"))
        return;
    check_real(&o, QAT_SPLIT_TRAIN, 18000, 10, (int[]){4, 0, 5, 3, 4, 2, 8, 9, 0, 3}, 0x9f949373,
               0xb54b11f0);
    check_real(&o, QAT_SPLIT_TEST, 10000, 10, (int[]){3, 8, 1, 0, 4, 0, 9, 3, 4, 9}, 0x1b0b0b5c,
               0x4760fab6);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[0], "airplane");
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[9], "truck");
    ck_assert_ptr_nonnull(strstr(qat_dataset_info_of(d)->name, "cifar10 cifar-10/test"));
    qat_dataset_close(d);
}
END_TEST

/* The validation pictures of the folder are among the binary test set's, with the same labels. */
START_TEST(test_real_folder)
{
    static char binary[TEST_PATH_MAX];
    uint8_t v[3072], w[3072];
    int label, other;
    if (!real("cifar-10"))
        return;
    strcpy(binary, path);
    if (!real("cifar10-folder"))
        return;
    qat_dataset *train = open_set(&(qat_dataset_options){.kind = "folder", .path = path}, 0);
    ck_assert_int_eq(qat_dataset_info_of(train)->count, 300);
    ck_assert_int_eq(qat_dataset_info_of(train)->classes, 10);
    ck_assert_str_eq(qat_dataset_info_of(train)->labels[3], "cat");
    qat_dataset *val =
        open_set(&(qat_dataset_options){.kind = "folder", .path = path}, QAT_SPLIT_TEST);
    qat_dataset *all =
        open_set(&(qat_dataset_options){.kind = "cifar10", .path = binary}, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(val)->count, 200);
    for (int i = 0; i < 200; i += 7) {
        bool found = false;
        ck_assert_int_eq(qat_dataset_get(val, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(label, i / 20);
        for (int k = 0; k < 10000 && !found; k++) {
            ck_assert_int_eq(qat_dataset_get(all, k, w, &other, NULL), QAT_OK);
            found = other == label && memcmp(v, w, sizeof v) == 0;
        }
        ck_assert(found);
    }
    qat_dataset_close(train);
    qat_dataset_close(val);
    qat_dataset_close(all);
}
END_TEST

START_TEST(test_real_photo)
{
    enum { SIDE = 224 };
    static uint8_t v[SIDE * SIDE * 3];
    qat_error err;
    if (!real("imagenet-sample/images/n01494475.jpg"))
        return;
    qat_status st = qat_image_load(path, SIDE, SIDE, 3, 256, false, v, &err);
    if (st == QAT_ERR_UNSUPPORTED) {
        test_skip("a photo in JPEG", "a build without libjpeg-turbo");
        return;
    }
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    int seen[256] = {0}, distinct = 0;
    for (size_t i = 0; i < sizeof v; i++)
        distinct += seen[v[i]]++ == 0;
    ck_assert_int_gt(distinct, 100);
}
END_TEST

static TCase *file_case(void)
{
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, test_idx);
    tcase_add_test(tc, test_idx_refused);
    tcase_add_test(tc, test_cifar10);
    tcase_add_test(tc, test_cifar10_refused);
    tcase_add_test(tc, test_cifar100);
    tcase_add_test(tc, test_npy_shapes);
    tcase_add_test(tc, test_npy_types);
    tcase_add_test(tc, test_npy_refused);
    tcase_add_test(tc, test_folder);
    tcase_add_test(tc, test_folder_refused);
    tcase_add_test(tc, test_image_load);
    tcase_add_test(tc, test_out_of_memory);
    return tc;
}

static TCase *plain_case(void)
{
    TCase *tc = tcase_create("plain");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, test_options);
    tcase_add_test(tc, test_procedural);
    tcase_add_test(tc, test_procedural_pictures);
    tcase_add_test(tc, test_procedural_pinned);
    tcase_add_test(tc, test_patterns);
    tcase_add_test(tc, test_procedural_hard);
    tcase_add_test(tc, test_resize);
    tcase_add_test(tc, test_other_size);
    tcase_add_test(tc, test_augment_crop);
    tcase_add_test(tc, test_augment_flip);
    tcase_add_test(tc, test_augment_colour);
    tcase_add_test(tc, test_augment_hue);
    tcase_add_test(tc, test_augment_keys);
    tcase_add_test(tc, test_real_mnist);
    tcase_add_test(tc, test_real_cifar10);
    tcase_add_test(tc, test_real_folder);
    tcase_add_test(tc, test_real_photo);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("datasets");
    suite_add_tcase(suite, file_case());
    suite_add_tcase(suite, plain_case());
    return test_run_suite(suite);
}

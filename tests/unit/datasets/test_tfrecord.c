/* Pictures in TFRecords: both names of features, gzip, checksums, cuts, messages that are none. */
#include "base/bytes.h"
#include "base/checksums/crc32c.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/packed/example.h"
#include "qat/dataset.h"
#include "qat/runtime.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE * 3, PPM = 11 + PIXELS, COUNT = 9 };

static qat_writer file;

/* ------------------------------------------------------------------ messages */

static void put_varint(qat_writer *w, uint64_t v)
{
    for (; v > 127; v >>= 7)
        qat_write_u8(w, (uint8_t)(v | 128));
    qat_write_u8(w, (uint8_t)v);
}

static void put_bytes(qat_writer *w, int number, const void *bytes, size_t n)
{
    put_varint(w, (uint64_t)number << 3 | 2);
    put_varint(w, n);
    qat_write_bytes(w, bytes, n);
}

/** An entry of the map: its value is the list `kind` of a Feature. */
static void put_feature(qat_writer *features, const char *key, int kind, const qat_writer *list)
{
    qat_writer feature = {0}, entry = {0};
    put_bytes(&feature, kind, list->bytes, list->count);
    put_bytes(&entry, 1, key, strlen(key));
    put_bytes(&entry, 2, feature.bytes, feature.count);
    put_bytes(features, 1, entry.bytes, entry.count);
    qat_writer_free(&feature);
    qat_writer_free(&entry);
}

static void put_text(qat_writer *features, const char *key, const void *bytes, size_t n)
{
    qat_writer list = {0};
    put_bytes(&list, 1, bytes, n);
    put_feature(features, key, 1, &list);
    qat_writer_free(&list);
}

static void put_integer(qat_writer *features, const char *key, uint64_t value, bool packed)
{
    qat_writer list = {0}, numbers = {0};
    put_varint(&numbers, value);
    if (packed) {
        put_bytes(&list, 1, numbers.bytes, numbers.count);
    } else {
        put_varint(&list, 1 << 3);
        put_varint(&list, value);
    }
    put_feature(features, key, 3, &list);
    qat_writer_free(&list);
    qat_writer_free(&numbers);
}

/* ------------------------------------------------------------------ records */

static void put_record(const void *message, size_t n)
{
    size_t const at = file.count;
    qat_write_u64(&file, n);
    qat_write_u32(&file, qat_masked_crc32c(file.bytes + at, 8));
    qat_write_bytes(&file, message, n);
    qat_write_u32(&file, qat_masked_crc32c(message, n));
}

static void put_example(const qat_writer *features)
{
    qat_writer example = {0};
    put_bytes(&example, 1, features->bytes, features->count);
    put_record(example.bytes, example.count);
    qat_writer_free(&example);
}

static const uint8_t *picture(int i)
{
    static uint8_t ppm[PPM];
    memcpy(ppm, "P6\n4 4\n255\n", 11);
    for (int k = 0; k < PIXELS; k++)
        ppm[11 + k] = (uint8_t)(i * 5 + k);
    return ppm;
}

static int moved; /* added to all classes */

static uint64_t class_of(int i)
{
    return (uint64_t)(i + moved) % 3;
}

/** As TensorFlow's script for ImageNet writes it, or as TensorFlow Datasets does. */
static void put_sample(int i)
{
    uint8_t empty[] = {1 << 3 | 2, 0}; /* a packed list of no integers */
    qat_writer const none = {.bytes = empty, .count = sizeof empty};
    qat_writer features = {0};
    char name[32];
    int const n = snprintf(name, sizeof name, "n01440764/p%d.JPEG", i);
    if (i % 2) {
        put_integer(&features, "image/class/label", class_of(i), i % 4 == 1);
        put_text(&features, "image/encoded", picture(i), PPM);
        put_text(&features, "image/filename", name, (size_t)n);
        put_integer(&features, "image/height", SIDE, true);
        put_feature(&features, "image/object/bbox/label", 3, &(qat_writer){0});
        put_feature(&features, "image/object/count", 3, &none);
    } else {
        put_text(&features, "image", picture(i), PPM);
        put_integer(&features, "label", class_of(i), true);
    }
    put_example(&features);
    qat_writer_free(&features);
}

static void write_file(const char *name)
{
    ck_assert(!file.failed);
    test_temp_write(folder, name, file.bytes, file.count);
}

static void write_set(const char *name)
{
    file.count = 0;
    for (int i = 0; i < COUNT; i++)
        put_sample(i);
    write_file(name);
}

static void teardown(void)
{
    qat_writer_free(&file);
    test_folder_remove();
}

/* ------------------------------------------------------------------ tests */

static qat_dataset_options const set = {.kind = "tfrecord", .path = folder, .height = SIDE};

static void check_samples(void)
{
    qat_dataset *d;
    qat_error err;
    uint8_t v[PIXELS];
    int label;
    ck_assert_msg(qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, COUNT);
    for (int i = COUNT - 1; i >= 0; i--) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_mem_eq(v, picture(i) + 11, PIXELS);
        ck_assert_int_eq(label, i % 3);
    }
    qat_dataset_close(d);
}

static void refused(const char *says)
{
    qat_dataset *d;
    qat_error err = {0};
    ck_assert_int_eq(qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" lacks \"%s\"", err.message, says);
}

static const char *const names[] = {"train.tfrecord",          "x-train.tfrecords",
                                    "train-00000-of-00001",    "train.tfrecord-00000-of-00001",
                                    "train.tfrecord.gz",       "train-00000-of-00001.gz",
                                    "train/part.tfrecords.gz", "train-00000-of-00001.tfrecord"};

/** Twice: the second time with an index. */
START_TEST(samples_are_read)
{
    write_set(names[_i]);
    test_temp_write(folder, "train.txt", "no shard", 8);
    test_temp_write(folder, "train-of-things", "no shard", 8);
    check_samples();
    check_samples();
}
END_TEST

/** Unpacked content is in one file, however many shards there are. */
START_TEST(many_gzip_shards_take_one_descriptor)
{
    enum { SHARDS = 40, DESCRIPTORS = 24 };
    struct rlimit const few = {DESCRIPTORS, DESCRIPTORS};
    qat_dataset *d;
    qat_error err;
    uint8_t v[PIXELS];
    int label;
    for (int s = 0; s < SHARDS; s++) {
        char name[64];
        file.count = 0;
        put_sample(s);
        put_sample(s + 1);
        snprintf(name, sizeof name, "train-%05d-of-%05d.gz", s, SHARDS);
        write_file(name);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int time = 0; time < 2; time++) {
        ck_assert_msg(qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, &err) == QAT_OK, "%s",
                      err.message);
        ck_assert_int_eq(qat_dataset_info_of(d)->count, 2 * SHARDS);
        for (int i = 0; i < 2 * SHARDS; i++) {
            ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
            ck_assert_mem_eq(v, picture(i / 2 + i % 2) + 11, PIXELS);
        }
        qat_dataset_close(d);
    }
}
END_TEST

/** Every cut is refused, but those between records; with a gzip file, all. */
START_TEST(cuts_are_refused)
{
    char says[128];
    file.count = 0;
    for (int i = 0; i < 3; i++)
        put_sample(i);
    size_t const all = file.count;
    write_file("train.tfrecord");
    for (size_t cut = 1; cut < all; cut++) {
        size_t record = 0, next = 0;
        while (next <= cut) {
            record = next;
            qat_reader r = qat_reader_of(file.bytes + next, 8);
            next += 16 + (size_t)qat_read_u64(&r);
        }
        test_temp_write(folder, "train.tfrecord", file.bytes, cut);
        if (record == cut)
            continue;
        snprintf(says, sizeof says,
                 "train.tfrecord: truncated at byte %zu: the record that begins at byte %zu", cut,
                 record);
        refused(says);
    }
    test_temp_write(folder, "train.tfrecord", "", 0);
    refused("no picture in 1 shards");
}
END_TEST

/** Any byte of a record that is changed is noticed by a checksum. */
START_TEST(damage_is_noticed)
{
    qat_dataset *d;
    qat_error err;
    uint8_t v[PIXELS];
    int label;
    write_set("train.tfrecord");
    for (size_t at = 0; at < file.count; at += 7) {
        file.bytes[at] ^= 4;
        write_file("train.tfrecord");
        refused("the record at byte");
        file.bytes[at] ^= 4;
    }
    write_file("train.tfrecord");
    ck_assert_int_eq(qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    file.bytes[file.count - 20] ^= 1; /* while a run goes on */
    write_file("train.tfrecord");
    ck_assert_int_eq(qat_dataset_get(d, COUNT - 1, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "record 8: a damaged record"));
    file.count = 0;
    put_sample(1);
    write_file("train.tfrecord");
    ck_assert_int_eq(qat_dataset_get(d, 5, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "train.tfrecord/p5.JPEG: truncated"));
    qat_dataset_close(d);
    test_temp_write(folder, "train.tfrecord", "not a record at all", 19);
    refused("no TFRecord");
}
END_TEST

/** A shard that is replaced while a set is open. */
START_TEST(another_class_is_noticed)
{
    qat_dataset *d;
    qat_error err = {0};
    uint8_t v[PIXELS];
    int label;
    write_set("train.tfrecord");
    ck_assert_int_eq(qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    moved = 1;
    write_set("train.tfrecord");
    moved = 0;
    ck_assert_int_eq(qat_dataset_get(d, 4, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, "of class 2, but of 1 in the index") != NULL, "%s",
                  err.message);
    qat_dataset_close(d);
}
END_TEST

START_TEST(what_is_no_picture_with_a_class)
{
    qat_writer features = {0};
    file.count = 0;
    put_record("\xff\xff\xff", 3);
    write_file("train.tfrecord");
    refused("at byte 0 is no tf.train.Example");
    file.count = 0;
    put_integer(&features, "label", 3, true);
    put_example(&features);
    write_file("train.tfrecord");
    refused("has no picture");
    file.count = features.count = 0;
    put_text(&features, "image", "x", 1);
    put_text(&features, "label", "3", 1);
    put_example(&features);
    write_file("train.tfrecord");
    refused("has no class in 0..65535");
    file.count = features.count = 0;
    put_text(&features, "image", "x", 1);
    put_integer(&features, "label", 65536, true);
    put_example(&features);
    write_file("train.tfrecord");
    refused("has no class in 0..65535");
    qat_writer_free(&features);
}
END_TEST

/** Messages that are cut, or whose lengths lie, are refused without a read past their end. */
START_TEST(messages_of_strangers)
{
    qat_example e;
    file.count = 0;
    put_sample(1);
    size_t const n = file.count - 16;
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, file.bytes + 12, cut);
        bool const read = qat_example_read(&e, exact, cut);
        test_assert_in_loop(read == (cut == 0), "%zu bytes of %zu", cut, n);
        free(exact);
    }
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit++) {
            file.bytes[12 + at] ^= (uint8_t)(1 << bit);
            uint8_t *exact = malloc(n);
            memcpy(exact, file.bytes + 12, n);
            if (qat_example_read(&e, exact, n) && e.picture)
                test_assert_in_loop(e.picture >= exact && e.picture + e.picture_bytes <= exact + n,
                                    "a picture outside of its message");
            free(exact);
            file.bytes[12 + at] ^= (uint8_t)(1 << bit);
        }
}
END_TEST

START_TEST(out_of_memory)
{
    bool failed;
    long n = 0;
    char path[TEST_PATH_MAX];
    qat_set_threads(1);
    write_set(_i ? "train.tfrecord.gz" : "train.tfrecord");
    do {
        qat_dataset *d = NULL;
        uint8_t v[PIXELS];
        int label;
        unlink(test_temp_path(path, folder, _i ? "train.tfrecord.gz.idx" : "train.tfrecord.idx"));
        test_fail_alloc_after(n++);
        qat_status st = qat_dataset_open(&d, &set, QAT_SPLIT_TRAIN, NULL);
        if (!st)
            st = qat_dataset_get(d, 0, v, &label, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == QAT_OK || (failed && st == QAT_ERR_NOMEM), "allocation %ld: %d", n, st);
        qat_dataset_close(d);
    } while (failed);
    ck_assert_int_gt(n, 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tfrecord");
    Suite *suite = suite_create("tfrecord");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, test_folder_make, teardown);
    tcase_add_loop_test(tc, samples_are_read, 0, (int)(sizeof names / sizeof *names));
    tcase_add_test(tc, many_gzip_shards_take_one_descriptor);
    tcase_add_test(tc, cuts_are_refused);
    tcase_add_test(tc, damage_is_noticed);
    tcase_add_test(tc, another_class_is_noticed);
    tcase_add_test(tc, what_is_no_picture_with_a_class);
    tcase_add_test(tc, messages_of_strangers);
    tcase_add_loop_test(tc, out_of_memory, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

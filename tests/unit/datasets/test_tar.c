/* Pictures in tar archives: what is read, in which order, and what is refused where. */
#include "base/bytes.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/packed/index.h"
#include "datasets/packed/tar.h"
#include "qat/dataset.h"
#include "qat/runtime.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE * 3, PPM = 11 + PIXELS, COUNT = 30 };

static qat_writer archive;
static char path[TEST_PATH_MAX];

/* ------------------------------------------------------------------ archives */

/** Make a header's sum right again. */
static void sum(uint8_t *block)
{
    unsigned total = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < QAT_TAR_BLOCK; i++)
        total += block[i];
    snprintf((char *)block + 148, 8, "%06o", total);
}

static void put_as(char type, const char *name, const void *bytes, size_t n)
{
    uint8_t block[QAT_TAR_BLOCK];
    qat_tar_make_header(block, name, n);
    block[156] = (uint8_t)type;
    sum(block);
    qat_write_bytes(&archive, block, sizeof block);
    qat_write_bytes(&archive, bytes, n);
    qat_write_align(&archive, QAT_TAR_BLOCK);
}

static void put(const char *name, const void *bytes, size_t n)
{
    put_as('0', name, bytes, n);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/** A picture that differs from all others. */
static const uint8_t *picture(int i)
{
    static uint8_t ppm[PPM];
    memcpy(ppm, "P6\n4 4\n255\n", 11);
    for (int k = 0; k < PIXELS; k++)
        ppm[11 + k] = (uint8_t)(k < 2 ? i >> (8 * k) : i * 7 + k);
    return ppm;
}

static void put_sample(int i)
{
    char name[64], label[16];
    snprintf(name, sizeof name, "%06d.ppm", i);
    put(name, picture(i), PPM);
    snprintf(name, sizeof name, "%06d.%s", i, i % 2 ? "cls" : "json");
    snprintf(label, sizeof label, i % 2 ? "%d\n" : "{\"label\": %d}", i % 3);
    put_text(name, label);
}

static void start(void)
{
    archive.count = 0;
}

static void finish(const char *name)
{
    static const uint8_t zeros[2 * QAT_TAR_BLOCK];
    qat_write_bytes(&archive, zeros, sizeof zeros);
    ck_assert(!archive.failed);
    test_temp_write(folder, name, archive.bytes, archive.count);
}

/** COUNT samples in three shards, and 5 in one of the test split. */
static void write_set(void)
{
    for (int s = 0; s < 4; s++) {
        char name[32];
        start();
        for (int i = s * 10; i < (s < 3 ? s * 10 + 10 : COUNT + 5); i++)
            put_sample(i);
        snprintf(name, sizeof name, s < 3 ? "x-train-%d.tar" : "x-val-%d.tar", s);
        finish(name);
    }
}

static void teardown(void)
{
    qat_writer_free(&archive);
    test_folder_remove();
}

/* ------------------------------------------------------------------ data sets */

static qat_dataset_options of(const char *where)
{
    return (qat_dataset_options){
        .struct_size = sizeof(qat_dataset_options), .kind = "tar", .path = where, .height = SIDE};
}

static qat_dataset *open_set(const qat_dataset_options *o, qat_split split)
{
    qat_dataset *d;
    qat_error err;
    ck_assert_msg(qat_dataset_open(&d, o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

static qat_status refusal(const qat_dataset_options *o, qat_split split, const char *says)
{
    qat_dataset *d;
    qat_error err = {0};
    qat_status const st = qat_dataset_open(&d, o, split, &err);
    ck_assert_int_ne(st, QAT_OK);
    ck_assert_msg(strstr(err.message, says) != NULL, "\"%s\" lacks \"%s\"", err.message, says);
    return st;
}

/** Which sample is it, by its first pixel? */
static int number_of(const uint8_t *values)
{
    return values[0] | values[1] << 8;
}

static void check_samples(const qat_dataset *d, int first, int count)
{
    uint8_t v[PIXELS];
    int label;
    ck_assert_int_eq(qat_dataset_info_of(d)->count, count);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_mem_eq(v, picture(first + i) + 11, PIXELS);
        ck_assert_int_eq(label, (first + i) % 3);
    }
}

static void there(const char *name, bool wanted)
{
    ck_assert_msg((access(test_temp_path(path, folder, name), F_OK) == 0) == wanted, "%s", name);
}

/** The first time without an index, then with it. */
START_TEST(samples_come_in_the_order_of_the_shards)
{
    qat_dataset_options const o = of(folder);
    write_set();
    for (int time = 0; time < 2; time++) {
        there("x-train-0.tar.idx", time > 0);
        qat_dataset *train = open_set(&o, QAT_SPLIT_TRAIN), *test = open_set(&o, QAT_SPLIT_TEST);
        check_samples(train, 0, COUNT);
        check_samples(test, COUNT, 5);
        ck_assert_int_eq(qat_dataset_info_of(train)->classes, 3);
        qat_dataset_close(train);
        qat_dataset_close(test);
    }
}
END_TEST

/** An index that does not fit is made anew: damaged, of another shard, older than the shard. */
START_TEST(an_index_that_does_not_fit_is_made_anew)
{
    static const char *const wrong[] = {"", "qat-index 1 0 0 00000000\n", "qat-index 2 1 1 1\n",
                                        "qat-index 1 99999999999999999999999 1 1\n"};
    qat_dataset_options const o = of(folder);
    struct stat before, after;
    write_set();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        test_temp_write(folder, "x-train-1.tar.idx", wrong[i], strlen(wrong[i]));
        qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
        check_samples(d, 0, COUNT);
        qat_dataset_close(d);
        ck_assert_int_eq(stat(test_temp_path(path, folder, "x-train-1.tar.idx"), &before), 0);
        ck_assert_int_gt(before.st_size, 100);
    }
    start();
    for (int i = 10; i < 19; i++)
        put_sample(i == 18 ? 19 : i);
    finish("x-train-1.tar");
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, COUNT - 1);
    qat_dataset_close(d);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_lt(after.st_size, before.st_size);
}
END_TEST

/** Another shard of the same size and of an older date, as cp -p and rsync -t make it. */
START_TEST(a_shard_of_the_same_size_has_another_index)
{
    qat_dataset_options const o = of(folder);
    struct timespec const old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    uint8_t v[PIXELS];
    int label;
    for (int time = 0; time < 2; time++) {
        start();
        for (int i = 0; i < 3; i++) {
            char name[32], text[8];
            snprintf(name, sizeof name, "%d.ppm", i);
            put(name, picture(i), PPM);
            snprintf(name, sizeof name, "%d.cls", i);
            snprintf(text, sizeof text, "%d", time ? 2 - i : i);
            put_text(name, text);
        }
        finish("train.tar");
        ck_assert_int_eq(utimensat(AT_FDCWD, test_temp_path(path, folder, "train.tar"), old, 0), 0);
        for (int again = 0; again < 2; again++) {
            qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
            ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, NULL), QAT_OK);
            ck_assert_int_eq(label, time ? 2 : 0);
            qat_dataset_close(d);
        }
        there("train.tar.idx", true);
    }
}
END_TEST

/** A shard that was replaced while a run goes on: the samples are not where they were. */
START_TEST(a_replaced_shard_is_noticed)
{
    qat_dataset_options const o = of(folder);
    uint8_t v[PIXELS];
    qat_error err;
    int label;
    write_set();
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    start();
    put_text("readme", "text");
    for (int i = 0; i < 10; i++)
        put_sample(i);
    finish("x-train-0.tar");
    ck_assert_int_eq(qat_dataset_get(d, 3, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "x-train-0.tar/000003.ppm: it is not where"));
    test_temp_write(folder, "x-train-0.tar", archive.bytes, 2000);
    ck_assert_int_eq(qat_dataset_get(d, 3, v, &label, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "000003.ppm: truncated, the file has no byte 6144"));
    qat_dataset_close(d);
}
END_TEST

/** Long names in pax and GNU form, a size in pax, a prefix, folders, links and files of no sample.
 */
START_TEST(dialects_of_tar)
{
    char name[300] = "", record[400];
    qat_dataset_options const o = of(test_temp_path(path, folder, "train.tar"));
    qat_dataset_options split = o;
    while (strlen(name) < 200)
        strcat(name, "folder/");
    strcat(name, "000000.ppm");
    start();
    put_as('5', "folder/", "", 0);
    put_as('g', "global", "20 comment=anything\n", 20);
    int const n = snprintf(record, sizeof record, "%d path=%s\n", (int)strlen(name) + 10, name);
    ck_assert_int_eq(n, (int)strlen(name) + 10);
    put_as('x', "pax", record, (size_t)n);
    put("short.ppm", picture(0), PPM);
    memcpy(strrchr(name, '.'), ".cls", 5);
    put_as('L', "././@LongLink", name, strlen(name) + 1);
    put_text("cut", "0");
    put_as('2', "link.txt", "", 0);
    put_as('x', "pax", "11 size=59\n", 11); /* of what follows, whose header says 0 */
    size_t const at = archive.count;
    put("000001.PPM", picture(1), PPM);
    memcpy(archive.bytes + at + 124, "00000000000", 11);
    sum(archive.bytes + at);
    put_text("000001.txt", "a caption");
    put_text("000001.cls", " 1\n");
    put_text("._000001.cls", "hidden");
    put_text("000002.seg.png", "a mask, which is ignored");
    put("000002.ppm", picture(2), PPM);
    put_text("000002.json", "{\"label\": \"owl\"}"); /* words, beside a class */
    put_text("000002.cls", "2");
    put_text("000003.txt", "no picture");
    put_text("000003.cls", "7");
    finish("train.tar");
    split.split = 0.5;
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    check_samples(d, 0, 3);
    char *text;
    ck_assert_int_eq(qat_dataset_describe(d, NULL, &text, NULL), QAT_OK);
    ck_assert_str_eq(text, "tar train.tar: 3 training pictures, 3 classes (0: 1, 1: 1, 2: 1); "
                           "ignored: 4 files (.txt 2, .cls 1, .png 1)");
    free(text);
    qat_dataset_close(d);
    d = open_set(&split, QAT_SPLIT_TRAIN); /* one class each: all of them train */
    check_samples(d, 0, 3);
    qat_dataset_close(d);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

/** At every block an archive may end too early: refused, with its name and the byte. */
START_TEST(a_truncated_archive_is_refused)
{
    qat_dataset_options const o = of(folder);
    start();
    put_as('x', "pax", "20 comment=anything\n", 20);
    for (int i = 0; i < 4; i++)
        put_sample(i);
    finish("train.tar");
    for (size_t cut = 0; cut < archive.count; cut += cut % 512 ? 511 : 1) {
        char says[80];
        test_temp_write(folder, "train.tar", archive.bytes, cut);
        snprintf(says, sizeof says, cut ? "train.tar: truncated at byte %zu" : "empty file", cut);
        ck_assert_int_eq(refusal(&o, QAT_SPLIT_TRAIN, says), QAT_ERR_FORMAT);
        there("train.tar.idx", false);
    }
    test_temp_write(folder, "train.tar", archive.bytes, archive.count);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    check_samples(d, 0, 4);
    qat_dataset_close(d);
    test_temp_write(folder, "train.tar", archive.bytes, archive.count - 1024); /* with an index */
    refusal(&o, QAT_SPLIT_TRAIN, "train.tar: truncated at byte");
}
END_TEST

START_TEST(broken_headers_are_refused)
{
    static const struct {
        size_t at; /* in the second header, or in the first one's data */
        const char *bytes, *says;
    } cases[] = {
        {0, "\x01", "no header of a tar archive at byte 1024"},
        {124, "9", "a size that cannot be read"},
        {124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size that cannot be read"},
        {124, "\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size that cannot be read"},
        {124, "77777777777", "has 8589934591 bytes"},
        {156, "S", "a sparse file"},
        {0, "a\nb", "characters that are not allowed"},
        {156, "x", "a name or records that cannot be read"},
    };
    qat_dataset_options const o = of(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start();
        put_text("readme", "text");
        put_sample(1);
        memcpy(archive.bytes + 1024 + cases[i].at, cases[i].bytes, strlen(cases[i].bytes));
        if (i)
            sum(archive.bytes + 1024);
        finish("train.tar");
        ck_assert_int_eq(refusal(&o, QAT_SPLIT_TRAIN, cases[i].says), QAT_ERR_FORMAT);
    }
    for (char type = '1'; type <= '2'; type++) {
        start();
        put_as(type, "1.ppm", "", 0);
        put_text("1.cls", "1");
        finish("train.tar");
        refusal(&o, QAT_SPLIT_TRAIN, "1.ppm is a link; tar --dereference");
    }
    test_temp_write(folder, "train.tar", "\x1f\x8b________", 10);
    refusal(&o, QAT_SPLIT_TRAIN, "truncated at byte 10");
    start();
    qat_write_bytes(&archive, "\x1f\x8b", 2);
    qat_write_align(&archive, QAT_TAR_BLOCK);
    finish("train.tar");
    refusal(&o, QAT_SPLIT_TRAIN, "gunzip it");
    unlink(test_temp_path(path, folder, "train.tar"));
    finish("train.tar.gz"); /* gzip in gzip; it is not unpacked */
    refusal(&o, QAT_SPLIT_TRAIN, "train.tar.gz: ");
}
END_TEST

/** A picture of more than 1 GiB is refused before memory is taken; the archive has a hole. */
START_TEST(a_huge_picture_is_refused)
{
    qat_dataset_options const o = of(test_temp_path(path, folder, "train.tar"));
    start();
    put("1.ppm", "", 0);
    char size[12];
    (void)snprintf(size, sizeof size, "%011o", QAT_INDEX_MAX_PART + 1);
    memcpy(archive.bytes + 124, size, 11);
    sum(archive.bytes);
    finish("train.tar");
    if (truncate(path, (off_t)3 << 29) != 0)
        return; /* no room for such a file here */
    refusal(&o, QAT_SPLIT_TRAIN, "1.ppm has more than 1 GiB");
}
END_TEST

START_TEST(samples_that_are_not_whole_are_refused)
{
    static const struct {
        const char *names[3], *texts[3], *says;
    } cases[] = {
        {{"1.ppm"}, {"x"}, "1.ppm has no class"},
        {{"1.ppm", "2.cls"}, {"x", "1"}, "1.ppm has no class"},
        {{"1.ppm", "1.json"}, {"x", "{\"width\": 3}"}, "1.ppm has no class"},
        {{"1.ppm", "1.cls"}, {"x", "65536"}, "1.cls is not a class in 0..65535"},
        {{"1.ppm", "1.cls"}, {"x", "-1"}, "1.cls is not a class"},
        {{"1.ppm", "1.cls"}, {"x", "cat"}, "1.cls is not a class"},
        {{"1.ppm", "1.cls"}, {"x", ""}, "1.cls is not a class"},
        {{"1.ppm", "1.json"}, {"x", "{\"label\": 1"}, "1.json is not JSON with"},
        {{"1.ppm", "1.json"}, {"x", "{\"label\": \"cat\"}"}, "1.json is not JSON with"},
        {{"1.ppm", "1.json"}, {"x", "[1]"}, "1.ppm has no class: 1.json is not"},
        {{"1.ppm", "1.png", "1.cls"}, {"x", "y", "1"}, "1.ppm and 1.png are pictures of one"},
        {{"1.ppm", "1.cls", "1.json"}, {"x", "1", "{\"cls\": 2}"}, "says class 2, not 1"},
        {{"1.txt"}, {"x"}, "no picture in 1 shards"},
    };
    qat_dataset_options const o = of(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start();
        for (int k = 0; k < 3 && cases[i].names[k]; k++)
            put_text(cases[i].names[k], cases[i].texts[k]);
        finish("train.tar");
        ck_assert_int_eq(refusal(&o, QAT_SPLIT_TRAIN, cases[i].says), QAT_ERR_FORMAT);
    }
}
END_TEST

/* ------------------------------------------------------------------ which shards */

START_TEST(shards_of_a_split)
{
    char pattern[TEST_PATH_MAX], other[TEST_PATH_MAX];
    qat_dataset_options o = of(folder);
    write_set();
    refusal(&(qat_dataset_options){.kind = "tar", .path = "/nowhere"}, QAT_SPLIT_TRAIN,
            "no such file or folder");
    qat_dataset_options matches = of(test_temp_path(pattern, folder, "x-*[0-1].tar"));
    qat_dataset *d = open_set(&matches, QAT_SPLIT_TRAIN);
    check_samples(d, 0, 20);
    qat_dataset_close(d);
    refusal(&matches, QAT_SPLIT_TEST, "none has the word val or test in its name");
    matches.split = 0.5;
    d = open_set(&matches, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 9); /* of 7, 7 and 6 of a class */
    qat_dataset_close(d);
    matches.path = test_temp_path(other, folder, "y-*.tar");
    refusal(&matches, QAT_SPLIT_TEST, "no file has such a name");
    o.split = 0.5;
    refusal(&o, QAT_SPLIT_TRAIN, "is there already");
    start();
    for (int i = 100; i < 103; i++)
        put_sample(i);
    finish("sub/train/a.tar");
    finish("sub/test/trains.tar"); /* says nothing: no whole word */
    o = of(test_temp_path(pattern, folder, "sub"));
    d = open_set(&o, QAT_SPLIT_TEST);
    check_samples(d, 100, 3);
    qat_dataset_close(d);
    test_temp_write(folder, "sub/test/PACKING", "", 0);
    refusal(&o, QAT_SPLIT_TEST, "sub/test: packing began but did not end here");
    test_temp_write(folder, "empty/a.txt", "", 0);
    o = of(test_temp_path(pattern, folder, "empty"));
    refusal(&o, QAT_SPLIT_TRAIN, "no shard (.tar)");
}
END_TEST

START_TEST(names_and_numbers_of_classes)
{
    qat_dataset_options o = of(folder);
    write_set();
    test_temp_write(folder, "classes.txt", "cat\n\ndog\r\nowl\nhen\n", 18);
    qat_dataset *d = open_set(&o, QAT_SPLIT_TEST);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 4);
    ck_assert_str_eq(qat_dataset_info_of(d)->labels[2], "owl");
    qat_dataset_close(d);
    test_temp_write(folder, "classes.txt", "cat\ndog\n", 8);
    refusal(&o, QAT_SPLIT_TRAIN, "label 2 of sample 2 is not in 0..1");
    unlink(test_temp_path(path, folder, "classes.txt"));
    o.classes = 10;
    d = open_set(&o, QAT_SPLIT_TRAIN);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 10);
    qat_dataset_close(d);
}
END_TEST

/* ------------------------------------------------------------------ order, memory, faults */

/** The numbers of the samples of `epochs` epochs, from a batch on. */
static int load(const qat_dataset *d, int threads, int epoch, int batch, int *order)
{
    qat_loader_options const o = {
        .batch = 4, .shuffle = true, .seed = 3, .threads = threads, .prefetch = threads};
    qat_loader *l;
    int n = 0;
    ck_assert_int_eq(qat_loader_create(&l, d, &o, NULL), QAT_OK);
    ck_assert_int_eq(qat_loader_seek(l, epoch, batch, NULL), QAT_OK);
    for (const qat_batch *b; n < 2 * COUNT;) {
        ck_assert_int_eq(qat_loader_next(l, &b, NULL), QAT_OK);
        for (int i = 0; i < b->count && n < 2 * COUNT; i++) {
            order[n] = number_of(b->bytes + i * PIXELS);
            ck_assert_int_eq(b->labels[i], order[n] % 3);
            n++;
        }
    }
    qat_loader_free(l);
    return n;
}

START_TEST(the_order_does_not_depend_on_readers)
{
    qat_dataset_options const o = of(folder);
    int first[2 * COUNT], other[2 * COUNT];
    write_set();
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    load(d, 1, 0, 0, first);
    ck_assert(memcmp(first, first + COUNT, COUNT * sizeof *first) != 0);
    for (int threads = 2; threads <= 8; threads++) {
        load(d, threads, 0, 0, other);
        ck_assert_mem_eq(first, other, sizeof first);
    }
    for (int b = 1; b < 7; b++) { /* a run that goes on */
        load(d, b, 0, b, other);
        ck_assert_mem_eq(first + (ptrdiff_t)b * 4, other,
                         (size_t)(2 * COUNT - 4 * b) * sizeof *first);
    }
    qat_dataset_close(d);
}
END_TEST

/** Samples that are broken: counted, named, left out; the others keep their order. */
START_TEST(broken_samples_are_left_out)
{
    qat_dataset_options const o = of(folder);
    qat_faults faults;
    qat_data_digest digest;
    start();
    for (int i = 0; i < 20; i++) {
        put_sample(i);
        if (i % 10 == 4) /* the picture before: its kind is damaged, or its end is missing */
            memcpy(archive.bytes + archive.count - 2048 + 512, i == 4 ? "XXXX" : "P6\n9", 4);
    }
    finish("train.tar");
    for (int decode = 0; decode < 2; decode++) {
        qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
        ck_assert_int_eq(qat_dataset_check(d, decode, NULL, NULL, &faults, NULL), QAT_OK);
        ck_assert_int_eq(faults.count, 2);
        ck_assert_ptr_nonnull(strstr(faults.told[0], "train.tar/000004.ppm: not a picture"));
        ck_assert_ptr_nonnull(strstr(faults.told[1], "train.tar/000014.ppm: truncated"));
        ck_assert_int_eq(qat_dataset_skip(d, &faults, NULL), QAT_OK);
        qat_faults_free(&faults);
        ck_assert_int_eq(qat_dataset_info_of(d)->skipped, 2);
        uint8_t v[PIXELS];
        int label;
        for (int i = 0, k = 0; i < 20; i++)
            if (i % 10 != 4) {
                ck_assert_int_eq(qat_dataset_get(d, k++, v, &label, NULL), QAT_OK);
                ck_assert_int_eq(number_of(v), i);
                ck_assert_int_eq(label, i % 3);
            }
        ck_assert_int_eq(qat_dataset_digest(d, &digest, NULL), QAT_OK);
        ck_assert_int_eq(digest.n, 18);
        ck_assert_int_eq(digest.bytes, 18 * PPM);
        qat_data_digest_free(&digest);
        qat_dataset_close(d);
    }
}
END_TEST

/** The same files, of which other pixels are made. */
START_TEST(another_decoding_is_noticed)
{
    qat_dataset_options o = of(folder);
    qat_data_digest digest[2];
    qat_dataset *d[2];
    qat_error err = {0};
    start();
    for (int i = 0; i < 20; i++)
        put_sample(i);
    finish("train.tar");
    for (int i = 0; i < 2; i++) {
        o.jpeg_scale = i != 0;
        d[i] = open_set(&o, QAT_SPLIT_TRAIN);
        ck_assert_int_eq(qat_dataset_digest(d[i], &digest[i], NULL), QAT_OK);
    }
    const qat_dataset *const both[] = {d[1], d[1]};
    qat_data_digest const then[] = {digest[0], digest[0]}, now[] = {digest[1], digest[1]};
    ck_assert_int_eq(qat_dataset_compare(both, now, then, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(
        strstr(err.message, "20 samples now, 20 then; the files are the same, but not how") != NULL,
        "%s", err.message);
    for (int i = 0; i < 2; i++) {
        qat_data_digest_free(&digest[i]);
        qat_dataset_close(d[i]);
    }
}
END_TEST

static bool stop(void *context, int64_t done, int64_t total)
{
    ck_assert_int_le(done, total);
    return --*(int *)context > 0;
}

START_TEST(limits)
{
    qat_dataset_options o = of(folder);
    int ticks = 1;
    write_set();
    o.memory = 500;
    ck_assert_int_eq(refusal(&o, QAT_SPLIT_TRAIN, "data.memory"), QAT_ERR_LIMIT);
    o.memory = 0;
    o.tick = stop;
    o.tick_context = &ticks;
    ck_assert_int_eq(refusal(&o, QAT_SPLIT_TRAIN, "stopped"), QAT_ERR_STATE);
    ticks = 9;
    o.train_count = 7; /* spread over all */
    qat_dataset *d = open_set(&o, QAT_SPLIT_TRAIN);
    uint8_t v[PIXELS];
    int label;
    ck_assert_int_eq(ticks, 8);
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, v, &label, NULL), QAT_OK);
        ck_assert_int_eq(number_of(v), i * COUNT / 7);
    }
    qat_dataset_close(d);
}
END_TEST

/** The nth allocation fails: no memory is reported, or an index is made anew. */
START_TEST(out_of_memory)
{
    qat_dataset_options const o = of(folder);
    bool failed;
    long n = 0;
    qat_set_threads(1);
    write_set();
    test_temp_write(folder, "classes.txt", "cat\ndog\nowl\n", 12);
    do {
        qat_dataset *d = NULL;
        uint8_t v[PIXELS];
        int label;
        if (n % 2)
            unlink(test_temp_path(path, folder, "x-train-1.tar.idx"));
        test_fail_alloc_after(n++);
        qat_status st = qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, NULL);
        if (!st)
            st = qat_dataset_get(d, 0, v, &label, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == QAT_OK || (failed && st == QAT_ERR_NOMEM), "allocation %ld: %d", n, st);
        if (!st)
            check_samples(d, 0, COUNT);
        qat_dataset_close(d);
    } while (failed);
    ck_assert_int_gt(n, 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tar");
    Suite *suite = suite_create("tar");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, test_folder_make, teardown);
    tcase_add_test(tc, samples_come_in_the_order_of_the_shards);
    tcase_add_test(tc, an_index_that_does_not_fit_is_made_anew);
    tcase_add_test(tc, a_shard_of_the_same_size_has_another_index);
    tcase_add_test(tc, a_replaced_shard_is_noticed);
    tcase_add_test(tc, dialects_of_tar);
    tcase_add_test(tc, a_truncated_archive_is_refused);
    tcase_add_test(tc, broken_headers_are_refused);
    tcase_add_test(tc, a_huge_picture_is_refused);
    tcase_add_test(tc, samples_that_are_not_whole_are_refused);
    tcase_add_test(tc, shards_of_a_split);
    tcase_add_test(tc, names_and_numbers_of_classes);
    tcase_add_test(tc, the_order_does_not_depend_on_readers);
    tcase_add_test(tc, broken_samples_are_left_out);
    tcase_add_test(tc, another_decoding_is_noticed);
    tcase_add_test(tc, limits);
    tcase_add_test(tc, out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/* The loader: every sample once, the same bytes for any number of threads, seeking, errors. */
#include "base/files/npy.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char path[TEST_PATH_MAX];
static qat_dataset *digits; /* 103 of them */
enum { COUNT = 103, PIXELS = 28 * 28 };

static qat_dataset *open_set(const qat_dataset_options *options)
{
    qat_dataset *dataset;
    qat_error err = {0};
    qat_status st = qat_dataset_open(&dataset, options, QAT_SPLIT_TRAIN, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return dataset;
}

static void setup(void)
{
    test_folder_make();
    digits = open_set(&(qat_dataset_options){.kind = "digits", .seed = 2, .train_count = COUNT});
}

static void teardown(void)
{
    qat_dataset_close(digits);
    test_folder_remove();
}

static qat_loader *create(const qat_dataset *dataset, const qat_loader_options *options)
{
    qat_loader *loader;
    qat_error err = {0};
    qat_status st = qat_loader_create(&loader, dataset, options, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return loader;
}

static const qat_batch *next(qat_loader *loader)
{
    const qat_batch *batch;
    qat_error err = {0};
    qat_status st = qat_loader_next(loader, &batch, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return batch;
}

/** Which digit is this? Unchanged pictures are looked up; they are all different. */
static int find(const uint8_t *pixels, int *label)
{
    uint8_t v[PIXELS];
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(qat_dataset_get(digits, i, v, label, NULL), QAT_OK);
        if (memcmp(v, pixels, PIXELS) == 0)
            return i;
    }
    ck_abort_msg("a picture that is not in the set");
    return -1;
}

/** The samples of one epoch, in order, into order[COUNT]; each once. */
static void run_epoch(qat_loader *loader, int64_t epoch, int batch_size, int *order)
{
    int seen[COUNT] = {0}, taken = 0, label;
    for (int b = 0; b < qat_loader_batches(loader); b++) {
        const qat_batch *batch = next(loader);
        int const left = COUNT - b * batch_size;
        ck_assert_int_eq(batch->epoch, epoch);
        ck_assert_int_eq(batch->index, b);
        ck_assert_int_eq(batch->count, left < batch_size ? left : batch_size);
        for (int i = 0; i < batch->count; i++) {
            int const found = find(batch->bytes + i * PIXELS, &label);
            ck_assert_int_eq(batch->labels[i], label);
            ck_assert_int_eq(seen[found]++, 0);
            order[taken++] = found;
        }
    }
}

START_TEST(test_every_sample_once)
{
    qat_loader_options const o = {
        .batch = 10, .shuffle = true, .seed = 5, .threads = 2, .prefetch = 3};
    int first[COUNT], second[COUNT], plain[COUNT];
    qat_loader *loader = create(digits, &o);
    ck_assert_int_eq(qat_loader_batches(loader), 11);
    run_epoch(loader, 0, 10, first);
    run_epoch(loader, 1, 10, second);
    qat_loader_free(loader);
    ck_assert(memcmp(first, second, sizeof first) != 0);
    loader = create(digits, &(qat_loader_options){.batch = 200, .threads = 1, .prefetch = 1});
    ck_assert_int_eq(qat_loader_batches(loader), 1);
    for (int e = 0; e < 3; e++) {
        run_epoch(loader, e, 200, plain);
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(plain[i], i);
    }
    qat_loader_free(loader);
    ck_assert(memcmp(first, plain, sizeof first) != 0);
}
END_TEST

START_TEST(test_drop_last)
{
    qat_loader_options const o = {.batch = 10, .drop_last = true, .threads = 3, .prefetch = 2};
    qat_loader *loader = create(digits, &o);
    ck_assert_int_eq(qat_loader_batches(loader), 10);
    for (int b = 0; b < 25; b++) {
        const qat_batch *batch = next(loader);
        ck_assert_int_eq(batch->count, 10);
        ck_assert_int_eq(batch->epoch, b / 10);
        ck_assert_int_eq(batch->index, b % 10);
    }
    qat_loader_free(loader);
}
END_TEST

/* (pixel - mean) / std, two roundings, per channel. */
START_TEST(test_normalised)
{
    static const float mean[3] = {125.3f, 122.95f, 0.1f}, std[3] = {62.99f, 3.0f, 66.7f};
    qat_dataset *shapes = open_set(&(qat_dataset_options){.kind = "shapes", .train_count = 20});
    qat_loader_options const o = {
        .batch = 20, .mean = mean, .std = std, .threads = 1, .prefetch = 1};
    qat_loader *loader = create(shapes, &o);
    const qat_batch *batch = next(loader);
    for (int i = 0; i < 20 * 3072; i++) {
        volatile float const shifted = (float)batch->bytes[i] - mean[i % 3];
        volatile float const expected = shifted / std[i % 3];
        ck_assert(batch->real[i] == expected);
    }
    qat_loader_free(loader);
    qat_dataset_close(shapes);
}
END_TEST

/** CRC-32 over the batches of two epochs and a half: bytes, real values, labels, places. */
static unsigned long run_crc(const qat_dataset *dataset, qat_loader_options o, int threads,
                             int prefetch)
{
    const qat_dataset_info *info = qat_dataset_info_of(dataset);
    uInt const each = (uInt)(info->height * info->width * info->channels);
    unsigned long crc = crc32(0, NULL, 0);
    o.threads = threads;
    o.prefetch = prefetch;
    qat_loader *loader = create(dataset, &o);
    for (int b = 0; b < 2 * qat_loader_batches(loader) + 5; b++) {
        const qat_batch *batch = next(loader);
        uInt const n = (uInt)batch->count;
        ck_assert((batch->bytes != NULL) == (info->type == QAT_SAMPLE_U8));
        if (batch->bytes)
            crc = crc32(crc, batch->bytes, n * each);
        crc = crc32(crc, (const Bytef *)batch->real, n * each * (uInt)sizeof(float));
        crc = crc32(crc, (const Bytef *)batch->labels, n * (uInt)sizeof(int32_t));
        crc = crc32(crc, (const Bytef *)&batch->epoch, sizeof batch->epoch);
        crc = crc32(crc, (const Bytef *)&batch->index, sizeof batch->index);
    }
    qat_loader_free(loader);
    return crc;
}

static void check_threads(const qat_dataset *dataset, const qat_loader_options *o)
{
    unsigned long const one = run_crc(dataset, *o, 1, 1);
    qat_loader_options other = *o;
    ck_assert_uint_eq(run_crc(dataset, *o, 1, 7), one);
    ck_assert_uint_eq(run_crc(dataset, *o, 2, 1), one);
    ck_assert_uint_eq(run_crc(dataset, *o, 2, 4), one);
    ck_assert_uint_eq(run_crc(dataset, *o, 4, 40), one);
    ck_assert_uint_eq(run_crc(dataset, *o, 8, 3), one);
    other.seed++;
    ck_assert_uint_ne(run_crc(dataset, other, 2, 2), one);
}

START_TEST(test_threads_pictures)
{
    qat_dataset *shapes = open_set(&(qat_dataset_options){.kind = "shapes", .train_count = 150});
    qat_loader_options const o = {
        .batch = 16,
        .shuffle = true,
        .seed = 11,
        .augment = {
            .crop_pad = 4, .flip = true, .brightness = 0.2f, .contrast = 0.3f, .saturation = 0.4f}};
    check_threads(shapes, &o);
    qat_loader_options parts = o;
    parts.augment.crop_pad = 0;
    parts.augment.crop_area[0] = 0.2f;
    parts.augment.crop_area[1] = 1;
    parts.augment.crop_aspect[0] = 0.75f;
    parts.augment.crop_aspect[1] = 1.25f;
    check_threads(shapes, &parts);
    qat_dataset_close(shapes);
}
END_TEST

static qat_dataset *open_signals(void)
{
    static float x[90 * 8];
    static uint8_t y[90];
    for (int i = 0; i < 90 * 8; i++)
        x[i] = (float)i * 0.25f - 50;
    for (int i = 0; i < 90; i++)
        y[i] = (uint8_t)(i % 3);
    ck_assert_int_eq(qat_npy_write(test_temp_path(path, folder, "train_x.npy"), QAT_NPY_F32, 3,
                                   (int64_t[]){90, 4, 2}, x, NULL),
                     QAT_OK);
    ck_assert_int_eq(qat_npy_write(test_temp_path(path, folder, "train_y.npy"), QAT_NPY_U8, 1,
                                   (int64_t[]){90}, y, NULL),
                     QAT_OK);
    return open_set(&(qat_dataset_options){.kind = "npy", .path = folder});
}

START_TEST(test_threads_signals)
{
    qat_dataset *signals = open_signals();
    qat_loader_options const o = {.batch = 7, .shuffle = true, .augment = {.noise = 0.5f}};
    check_threads(signals, &o);
    qat_dataset_close(signals);
}
END_TEST

/* Real values: noise is bounded by its strength and fills it, then (x - mean) / std. */
START_TEST(test_real_values)
{
    static const float mean[2] = {1, -2}, std[2] = {2, 4};
    qat_dataset *signals = open_signals();
    qat_loader_options o = {.batch = 90, .mean = mean, .std = std, .threads = 1, .prefetch = 1};
    qat_loader *plain = create(signals, &o);
    o.augment.noise = 0.5f;
    qat_loader *noisy = create(signals, &o);
    const qat_batch *a = next(plain), *b = next(noisy);
    float least = 0, most = 0;
    ck_assert_ptr_null(a->bytes);
    for (int i = 0; i < 90 * 8; i++) {
        ck_assert(a->real[i] == ((float)i * 0.25f - 50 - mean[i % 2]) / std[i % 2]);
        float const change = (b->real[i] - a->real[i]) * std[i % 2];
        least = fminf(least, change);
        most = fmaxf(most, change);
    }
    ck_assert(least >= -0.5001f && least < -0.45f);
    ck_assert(most <= 0.5001f && most > 0.45f);
    qat_loader_free(plain);
    qat_loader_free(noisy);
    qat_dataset_close(signals);
}
END_TEST

/* A seek gives what a run from the start gives at that place. */
START_TEST(test_seek)
{
    qat_loader_options const o = {.batch = 9,
                                  .shuffle = true,
                                  .seed = 1,
                                  .threads = 3,
                                  .prefetch = 5,
                                  .augment = {.crop_pad = 2}};
    static uint8_t kept[36][9 * PIXELS]; /* three epochs */
    qat_loader *loader = create(digits, &o);
    int const batches = qat_loader_batches(loader);
    qat_error err;
    ck_assert_int_eq(batches, 12);
    for (int b = 0; b < 3 * batches; b++) {
        const qat_batch *batch = next(loader);
        memcpy(kept[b], batch->bytes, (size_t)batch->count * PIXELS);
    }
    static const int places[] = {0, 35, 12, 13, 11, 30, 5, 5};
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        int const at = places[k];
        ck_assert_int_eq(qat_loader_seek(loader, at / batches, at % batches, &err), QAT_OK);
        for (int b = at; b < at + 3 && b < 36; b++) {
            const qat_batch *batch = next(loader);
            ck_assert_int_eq(batch->epoch, b / batches);
            ck_assert_int_eq(batch->index, b % batches);
            ck_assert_mem_eq(batch->bytes, kept[b], (size_t)batch->count * PIXELS);
        }
    }
    ck_assert_int_eq(qat_loader_seek(loader, 0, batches, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "no batch 12 in epoch 0, which has 12"));
    ck_assert_int_eq(qat_loader_seek(loader, -1, 0, &err), QAT_ERR_ARGUMENT);
    qat_loader_free(loader);
}
END_TEST

/* Parts of batches, some batches, and batches without values are those of the whole. */
START_TEST(test_parts)
{
    qat_loader_options const o = {.batch = 9,
                                  .shuffle = true,
                                  .seed = 1,
                                  .threads = 2,
                                  .prefetch = 3,
                                  .augment = {.crop_pad = 2}};
    qat_loader *whole = create(digits, &o), *part = create(digits, &o), *some = create(digits, &o);
    qat_loader *truth = create(digits, &o);
    next(part); /* each begins again */
    qat_loader_take_samples(part, 3, 7);
    qat_loader_take_batches(some, 1, 3);
    qat_loader_leave_values(truth);
    for (int b = 0; b < 2 * qat_loader_batches(whole); b++) {
        const qat_batch *all = next(whole), *a = next(part), *c = next(some), *t = next(truth);
        int const wanted = all->count < 7 ? all->count - 3 : 4; /* the last one has 4 samples */
        ck_assert_int_eq(a->count, wanted);
        ck_assert_mem_eq(a->bytes, all->bytes + 3 * PIXELS, (size_t)wanted * PIXELS);
        ck_assert_mem_eq(a->labels, all->labels + 3, (size_t)wanted * sizeof *a->labels);
        ck_assert_int_eq(c->count, all->index % 3 == 1 ? all->count : 0);
        ck_assert_mem_eq(c->real, all->real, (size_t)c->count * PIXELS * sizeof *c->real);
        ck_assert_int_eq(t->count, all->count);
        ck_assert_mem_eq(t->labels, all->labels, (size_t)t->count * sizeof *t->labels);
    }
    qat_loader_free(whole);
    qat_loader_free(part);
    qat_loader_free(some);
    qat_loader_free(truth);
}
END_TEST

/* A loader may be freed at any moment: nothing hangs, nothing leaks. */
START_TEST(test_free_early)
{
    for (int k = 0; k < 60; k++) {
        qat_loader_options const o = {
            .batch = 1 + k % 7, .shuffle = k % 2, .threads = 1 + k % 5, .prefetch = 1 + k % 6};
        qat_loader *loader = create(digits, &o);
        for (int b = 0; b < k % 4; b++)
            (void)next(loader);
        if (k % 3 == 0)
            ck_assert_int_eq(qat_loader_seek(loader, 2, 0, NULL), QAT_OK);
        qat_loader_free(loader);
    }
    qat_loader_free(NULL);
}
END_TEST

static void refuse(qat_loader_options o, const qat_dataset *dataset, const char *part)
{
    qat_loader *loader;
    qat_error err = {0};
    ck_assert_int_eq(qat_loader_create(&loader, dataset, &o, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" lacks \"%s\"", err.message, part);
    ck_assert_ptr_null(loader);
}

START_TEST(test_refused)
{
    static const float zero = 0, nan_value = NAN;
    qat_loader_options const fine = {.batch = 8, .threads = 1, .prefetch = 1};
    qat_loader_options o = fine;
    qat_dataset *signals = open_signals();
    o.batch = 0;
    refuse(o, digits, "batch 0");
    o = fine, o.threads = 0;
    refuse(o, digits, "threads 0");
    o = fine, o.prefetch = -1;
    refuse(o, digits, "prefetch -1");
    o = fine, o.batch = 104, o.drop_last = true;
    refuse(o, digits, "only 103 samples; with drop_last there would be no batch");
    o = fine, o.std = &zero;
    refuse(o, digits, "channel 0 has mean 0 and std 0");
    o = fine, o.mean = &nan_value;
    refuse(o, digits, "mean nan");
    o = fine, o.augment.brightness = 1.5f;
    refuse(o, digits, "brightness 1.5, not in 0..1");
    o = fine, o.augment.contrast = -0.5f;
    refuse(o, digits, "contrast -0.5");
    o = fine, o.augment.saturation = NAN;
    refuse(o, digits, "saturation nan");
    o = fine, o.augment.saturation = 0.5f;
    refuse(o, digits, "saturation needs 3 channels");
    o = fine, o.augment.hue = 0.1f;
    refuse(o, digits, "hue needs 3 channels");
    o = fine, o.augment.hue = 0.6f;
    refuse(o, digits, "hue 0.6, not in 0..0.5");
    o = fine, o.augment.crop_pad = 29;
    refuse(o, digits, "crop_pad 29, not in 0..28");
    o = fine, o.augment.crop_area[0] = 0.5f, o.augment.crop_area[1] = 0.25f;
    refuse(o, digits, "crop_area 0.5..0.25, not within");
    o = fine, o.augment.crop_area[0] = o.augment.crop_area[1] = 1;
    refuse(o, digits, "crop_aspect 0..0, not within 0.1..10");
    refuse(o, signals, "crop_area is for pictures");
    o.augment.crop_pad = 1;
    refuse(o, digits, "crop_area cannot be combined with crop_pad");
    o = fine, o.augment.cutout = 29;
    refuse(o, digits, "cutout 29, not in 0..28");
    o = fine, o.augment.noise = 1;
    refuse(o, digits, "noise is for real values");
    o = fine, o.augment.flip = true;
    refuse(o, signals, "only noise");
    o = fine, o.augment.cutout = 1;
    refuse(o, signals, "only noise");
    o = fine, o.augment.saturation = 0.5f;
    refuse(o, signals, "only noise");
    o = fine, o.augment.hue = 0.1f;
    refuse(o, signals, "only noise");
    qat_dataset_close(signals);
}
END_TEST

/* A square of 4 x 4 in the middle, fewer pixels at an edge; everywhere else the picture stays. */
START_TEST(test_cutout)
{
    enum { SIDE = 9, VALUES = 3 * SIDE * SIDE };
    uint8_t values[VALUES], scratch[VALUES];
    int least = VALUES, most = 0;
    for (int index = 0; index < 300; index++) {
        int cut = 0, rows = 0;
        for (int i = 0; i < VALUES; i++)
            values[i] = i % 2 ? 99 : 102; /* one more of these: the mean is 101 */
        qat_augment_u8(&(qat_augment){.cutout = 4}, values, SIDE, SIDE, 3, 1, 0, index, scratch);
        for (int y = 0; y < SIDE; y++) {
            int const before = cut;
            for (int i = 3 * SIDE * y; i < 3 * SIDE * (y + 1); i++) {
                cut += values[i] == 101;
                ck_assert(values[i] == 101 || values[i] == (i % 2 ? 99 : 102));
            }
            rows += cut > before;
        }
        ck_assert(rows >= 2 && rows <= 4 && cut % (3 * rows) == 0);
        least = cut / 3 < least ? cut / 3 : least;
        most = cut / 3 > most ? cut / 3 : most;
    }
    ck_assert_int_eq(least, 4);
    ck_assert_int_eq(most, 16);
}
END_TEST

/*
 * A broken picture is reported when its batch is due, by whichever thread it was decoded. The next
 * call continues.
 */
START_TEST(test_error_in_a_thread)
{
    static const char picture[] = "P5\n1 1\n255\nx";
    for (char c = 'a'; c < 'k'; c++) {
        char name[] = "train/one/?.pgm";
        name[10] = c;
        test_temp_write(folder, name, picture, c == 'e' ? 5 : sizeof picture - 1);
    }
    qat_dataset *d = open_set(&(qat_dataset_options){.kind = "folder", .path = folder});
    for (int threads = 1; threads <= 4; threads++) {
        qat_loader_options const o = {.batch = 2, .threads = threads, .prefetch = 4};
        qat_loader *loader = create(d, &o);
        for (int b = 0; b < 15; b++) {
            const qat_batch *batch;
            qat_error err = {0};
            qat_status const st = qat_loader_next(loader, &batch, &err);
            ck_assert_int_eq(st, b % 5 == 2 ? QAT_ERR_FORMAT : QAT_OK);
            ck_assert(st == QAT_OK || (batch == NULL && strstr(err.message, "train/one/e.pgm")));
            ck_assert(st != QAT_OK || (batch->index == b % 5 && batch->epoch == b / 5));
        }
        ck_assert_int_eq(qat_loader_seek(loader, 0, 2, NULL), QAT_OK);
        const qat_batch *batch;
        ck_assert_int_eq(qat_loader_next(loader, &batch, NULL), QAT_ERR_FORMAT);
        qat_loader_free(loader);
    }
    qat_dataset_close(d);
}
END_TEST

/* A loader that is given no limit has that of its data set. */
START_TEST(test_memory_of_the_data_set)
{
    for (uint64_t mib = 1; mib <= 4; mib += 3) {
        qat_dataset *d = open_set(
            &(qat_dataset_options){.kind = "shapes", .train_count = 64, .memory = mib << 20});
        qat_loader_options const o = {.batch = 64, .threads = 1, .prefetch = 1};
        qat_loader *loader = NULL;
        qat_error err = {0};
        qat_status const st = qat_loader_create(&loader, d, &o, &err);
        ck_assert_int_eq(st, mib == 1 ? QAT_ERR_LIMIT : QAT_OK);
        ck_assert(st == QAT_OK || strstr(err.message, "data.memory allows 1 MiB"));
        qat_loader_free(loader);
        qat_dataset_close(d);
    }
}
END_TEST

START_TEST(test_out_of_memory)
{
    static const char picture[] = "P5\n1 1\n255\nx";
    qat_loader_options const o = {.batch = 2, .shuffle = true, .threads = 2, .prefetch = 2};
    bool failed;
    long n = 0;
    for (char c = 'a'; c < 'f'; c++) {
        char name[] = "train/one/?.pgm";
        name[10] = c;
        test_temp_write(folder, name, picture, sizeof picture - 1);
    }
    qat_dataset *d = open_set(&(qat_dataset_options){.kind = "folder", .path = folder});
    do { /* allocations of the threads as well: files are read in them */
        qat_loader *loader;
        const qat_batch *batch;
        test_fail_alloc_after(n++);
        qat_status st = qat_loader_create(&loader, d, &o, NULL);
        for (int b = 0; b < 4 && !st; b++)
            st = qat_loader_next(loader, &batch, NULL);
        failed = test_fail_alloc_stop();
        ck_assert(st == QAT_OK || (failed && st == QAT_ERR_NOMEM));
        qat_loader_free(loader);
    } while (failed && n < 1000);
    ck_assert_int_gt(n, 6);
    ck_assert(!failed);
    qat_dataset_close(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loader");
    TCase *tc = tcase_create("loader");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_every_sample_once);
    tcase_add_test(tc, test_drop_last);
    tcase_add_test(tc, test_normalised);
    tcase_add_test(tc, test_threads_pictures);
    tcase_add_test(tc, test_threads_signals);
    tcase_add_test(tc, test_real_values);
    tcase_add_test(tc, test_seek);
    tcase_add_test(tc, test_parts);
    tcase_add_test(tc, test_free_early);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_cutout);
    tcase_add_test(tc, test_error_in_a_thread);
    tcase_add_test(tc, test_memory_of_the_data_set);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

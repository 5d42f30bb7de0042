/** Cartoon faces: the same for the same seed, with attributes that go together, ages, and targets
 * in batches. */
#include "common/suite.h"
#include "datasets/procedural/face.h"
#include "qat/dataset.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

/* Of the first 40 training pictures of seed 1. */
static const unsigned long pinned_crc = 0x03143762;

enum { SIDE = 48, BYTES = SIDE * SIDE * 3, VALUES = FACE_COUNT + 1 };

static qat_dataset *open_set(const qat_dataset_options *o, qat_split split)
{
    qat_dataset *d;
    qat_error err;
    ck_assert_msg(qat_dataset_open(&d, o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

static qat_dataset *open_faces(int count, uint64_t seed)
{
    qat_dataset_options const o = {.kind = "faces", .seed = seed, .train_count = count};
    return open_set(&o, QAT_SPLIT_TRAIN);
}

static bool equal_at(const qat_dataset *a, const qat_dataset *b, int i)
{
    uint8_t x[BYTES], y[BYTES];
    int label;
    ck_assert_int_eq(qat_dataset_get(a, i, x, &label, NULL), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(b, i, y, &label, NULL), QAT_OK);
    ck_assert_int_eq(label, 0);
    return !memcmp(x, y, BYTES) &&
           !memcmp(qat_dataset_targets(a, i), qat_dataset_targets(b, i), VALUES * sizeof(float));
}

START_TEST(faces_are_a_function_of_their_seed_and_number)
{
    qat_dataset *a = open_faces(130, 3), *b = open_faces(90, 3), *other = open_faces(1, 4);
    for (int i = 0; i < 90; i++)
        ck_assert(equal_at(a, b, i));
    ck_assert(!equal_at(a, other, 0));
    qat_dataset_close(a);
    qat_dataset_close(b);
    qat_dataset_close(other);
}
END_TEST

static void check_together(const float *has)
{
    ck_assert(has[FACE_dark_hair] + has[FACE_blond_hair] + has[FACE_grey_hair] <= 1);
    ck_assert(has[FACE_glasses] + has[FACE_sunglasses] <= 1);
    ck_assert(has[FACE_sunglasses] + has[FACE_closed_eyes] <= 1);
    ck_assert(has[FACE_hat] + has[FACE_bald] <= 1);
    ck_assert(has[FACE_bangs] + has[FACE_hat] + has[FACE_bald] <= 1);
}

/*
 * A change of the faces changes every result that was measured on them. It must not happen by
 * accident.
 */
START_TEST(faces_are_pinned)
{
    uint8_t values[BYTES];
    qat_dataset *d = open_faces(40, 1);
    unsigned long crc = crc32(0, NULL, 0);
    int label;
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(qat_dataset_get(d, i, values, &label, NULL), QAT_OK);
        crc = crc32(crc, values, BYTES);
    }
    ck_assert_msg(crc == pinned_crc, "0x%08lx", crc);
    qat_dataset_close(d);
}
END_TEST

START_TEST(attributes_and_ages_are_spread)
{
    enum { COUNT = 1000 };
    qat_dataset *d = open_faces(COUNT, 1);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    float sums[VALUES] = {0};
    ck_assert(info->has_targets && info->classes == FACE_COUNT && FACE_COUNT >= 20);
    ck_assert_str_eq(info->labels[FACE_closed_eyes], "closed eyes");
    for (int i = 0; i < COUNT; i++) {
        const float *t = qat_dataset_targets(d, i);
        check_together(t);
        ck_assert(t[FACE_COUNT] >= FACE_YOUNGEST && t[FACE_COUNT] < FACE_OLDEST);
        for (int k = 0; k < VALUES; k++)
            sums[k] += t[k] / COUNT;
    }
    for (int k = 0; k < FACE_COUNT; k++)
        ck_assert_msg(sums[k] > 0.05f && sums[k] < 0.6f, "%s: %g", info->labels[k],
                      (double)sums[k]);
    ck_assert_float_eq_tol(sums[FACE_COUNT], (FACE_YOUNGEST + FACE_OLDEST) / 2.0f, 3);
    qat_dataset_close(d);
}
END_TEST

START_TEST(batches_bring_their_targets)
{
    qat_dataset *d = open_faces(10, 2);
    qat_loader *loader;
    qat_loader_options const o = {.batch = 4,
                                  .shuffle = true,
                                  .seed = 5,
                                  .threads = 2,
                                  .prefetch = 2,
                                  .augment = {.flip = true}};
    const qat_batch *batch;
    float sum = 0, expected = 0;
    ck_assert_int_eq(qat_loader_create(&loader, d, &o, NULL), QAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(qat_loader_next(loader, &batch, NULL), QAT_OK);
        for (int k = 0; k < batch->count; k++)
            sum += batch->targets[k * VALUES + FACE_COUNT];
    }
    for (int i = 0; i < 10; i++)
        expected += qat_dataset_targets(d, i)[FACE_COUNT];
    ck_assert_float_eq_tol(sum, expected, 1e-3);
    qat_loader_free(loader);
    qat_dataset_close(d);
}
END_TEST

START_TEST(faces_of_impossible_sizes_are_refused)
{
    static const struct {
        qat_dataset_options o;
        const char *says;
    } cases[] = {{{.kind = "faces", .height = 64, .width = 32}, "faces of 64 x 32 x 3"},
                 {{.kind = "faces", .height = 31}, "faces of 31 x 31 x 3"},
                 {{.kind = "faces", .channels = 1}, "faces of 48 x 48 x 1"}};
    qat_dataset *d;
    qat_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(qat_dataset_open(&d, &cases[i].o, QAT_SPLIT_TEST, &err), QAT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(err.message, cases[i].says));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faces");
    TCase *tc = tcase_create("faces");
    tcase_add_test(tc, faces_are_a_function_of_their_seed_and_number);
    tcase_add_test(tc, faces_are_pinned);
    tcase_add_test(tc, attributes_and_ages_are_spread);
    tcase_add_test(tc, batches_bring_their_targets);
    tcase_add_test(tc, faces_of_impossible_sizes_are_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/* Random parts of pictures by scale and aspect: their sizes, places, pixels and classes. */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "datasets/loader/window.h"
#include "evaluate/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 64, PART = 32 };

static qat_augment crop_of(float area, float most_area, float aspect, float most_aspect)
{
    return (qat_augment){.crop_area = {area, most_area}, .crop_aspect = {aspect, most_aspect}};
}

/* Sizes keep what was drawn, to the rounding of the sides; every extreme comes up. */
START_TEST(sizes_are_in_range)
{
    enum { HEIGHT = 480, WIDTH = 640 };
    qat_augment const a = crop_of(0.08f, 0.5f, 0.75f, 4 / 3.0f);
    qat_rng rng = qat_rng_at(1, 2, 3);
    double least[2] = {9, 9}, most[2] = {0, 0};
    int lowest = 0, rightmost = 0, topmost = HEIGHT, leftmost = WIDTH;
    for (int i = 0; i < 4000; i++) {
        qat_window w;
        if (!qat_window_try(&w, &rng, &a, HEIGHT, WIDTH))
            continue;
        double const is[2] = {(double)w.height * w.width / (HEIGHT * WIDTH),
                              (double)w.width / w.height};
        ck_assert(w.top >= 0 && w.left >= 0 && w.height > 0 && w.width > 0);
        ck_assert(w.top + w.height <= HEIGHT && w.left + w.width <= WIDTH);
        for (int k = 0; k < 2; k++) {
            least[k] = fmin(least[k], is[k]);
            most[k] = fmax(most[k], is[k]);
        }
        lowest = w.top + w.height > lowest ? w.top + w.height : lowest;
        rightmost = w.left + w.width > rightmost ? w.left + w.width : rightmost;
        topmost = w.top < topmost ? w.top : topmost;
        leftmost = w.left < leftmost ? w.left : leftmost;
    }
    ck_assert(least[0] > 0.079 && least[0] < 0.085 && most[0] > 0.495 && most[0] < 0.503);
    ck_assert(least[1] > 0.745 && least[1] < 0.755 && most[1] > 1.32 && most[1] < 1.342);
    ck_assert(lowest > HEIGHT - 3 && rightmost > WIDTH - 3 && topmost < 3 && leftmost < 3);
}
END_TEST

START_TEST(what_never_fits_is_the_middle)
{
    qat_augment const square = crop_of(1, 1, 1, 1), high = crop_of(0.1f, 1, 0.5f, 0.5f);
    qat_rng rng = qat_rng_at(1, 2, 3);
    qat_window w;
    for (int i = 0; i < 100; i++)
        ck_assert(!qat_window_try(&w, &rng, &square, 48, 64));
    w = qat_window_middle(&square, 48, 64);
    ck_assert(w.top == 0 && w.left == 8 && w.height == 48 && w.width == 48);
    w = qat_window_middle(&square, 64, 33);
    ck_assert(w.top == 15 && w.left == 0 && w.height == 33 && w.width == 33);
    w = qat_window_middle(&high, 64, 64);
    ck_assert(w.top == 0 && w.left == 16 && w.height == 64 && w.width == 32);
    w = qat_window_middle(&square, 1, 1);
    ck_assert(w.height == 1 && w.width == 1);
}
END_TEST

/** Two pictures of class 1 and 0 whose pixels say where they are. */
static void write_pictures(void)
{
    static uint8_t bytes[32 + SIDE * SIDE * 3];
    int const head = snprintf((char *)bytes, 32, "P6\n%d %d\n255\n", SIDE, SIDE);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < SIDE * SIDE; i++) {
            uint8_t *pixel = bytes + head + 3 * i;
            pixel[0] = (uint8_t)(i / SIDE);
            pixel[1] = (uint8_t)(i % SIDE);
            pixel[2] = (uint8_t)which;
        }
        test_temp_write(folder, which ? "one.ppm" : "zero.ppm", bytes,
                        (size_t)(head + SIDE * SIDE * 3));
    }
    test_temp_write(folder, "train.txt", "zero.ppm 1\none.ppm 0\n", 21);
}

/** A part of exactly the sample's size, so that its pixels are the picture's. */
static void check_part(const uint8_t *v, int label, bool places[SIDE + 1][SIDE + 1])
{
    int const top = v[0], left = v[1];
    ck_assert(top <= SIDE - PART && left <= SIDE - PART);
    for (int i = 0; i < PART * PART; i++)
        ck_assert(v[3 * i] == top + i / PART && v[3 * i + 1] == left + i % PART &&
                  v[3 * i + 2] == 1 - label);
    places[top][left] = true;
}

START_TEST(parts_are_the_pictures_pixels)
{
    qat_dataset_options const o = {.kind = "list", .path = folder, .height = PART, .width = PART};
    qat_loader_options const l = {
        .batch = 2, .threads = 2, .prefetch = 2, .augment = crop_of(0.25f, 0.25f, 1, 1)};
    static bool places[SIDE + 1][SIDE + 1];
    qat_dataset *d;
    qat_loader *loader;
    qat_error err = {0};
    int found = 0;
    write_pictures();
    ck_assert_msg(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err) == QAT_OK, "%s", err.message);
    ck_assert_msg(qat_loader_create(&loader, d, &l, &err) == QAT_OK, "%s", err.message);
    for (int epoch = 0; epoch < 100; epoch++) {
        const qat_batch *b;
        ck_assert_msg(qat_loader_next(loader, &b, &err) == QAT_OK, "%s", err.message);
        for (int i = 0; i < 2; i++)
            check_part(b->bytes + i * PART * PART * 3, b->labels[i], places);
    }
    for (int i = 0; i < (SIDE + 1) * (SIDE + 1); i++)
        found += places[i / (SIDE + 1)][i % (SIDE + 1)];
    ck_assert_int_gt(found, 150);
    qat_loader_free(loader);
    qat_dataset_close(d);
}
END_TEST

/** Least and most as float32 has them. */
static void check_interval(const float found[2], float least, float most)
{
    ck_assert(found[0] == least && found[1] == most);
}

START_TEST(recipes_ask_for_parts)
{
    static const char *const texts[] = {"[data]\ncrop_area = 0.25\n",
                                        "[data]\ncrop_area = 0.1, 0.5\ncrop_aspect = 1\n", ""};
    float const wanted[][4] = {{0.25f, 1, 0.75f, 1.3333333333f}, {0.1f, 0.5f, 1, 1}, {0}};
    for (int i = 0; i < 3; i++) {
        qat_recipe *r;
        ck_assert_int_eq(qat_recipe_parse(&r, texts[i], "r.ini", NULL, 0, NULL), QAT_OK);
        qat_augment const a = qat_training_loader(r).augment;
        check_interval(a.crop_area, wanted[i][0], wanted[i][1]);
        check_interval(a.crop_aspect, wanted[i][2], wanted[i][3]);
        qat_recipe_free(r);
    }
}
END_TEST

/* A recipe's central crop leaves only the middle half of a picture. */
START_TEST(recipes_ask_for_a_central_crop)
{
    char set[TEST_PATH_MAX + 16];
    const char *sets[] = {set, "data.kind=list", "data.height=32", "data.central_crop=0.5"};
    static uint8_t v[PART * PART * 3];
    qat_recipe *r;
    qat_dataset *d;
    qat_error err = {0};
    int label;
    write_pictures();
    snprintf(set, sizeof set, "data.path=%s", folder);
    ck_assert_msg(!qat_recipe_parse(&r, "", "r.ini", sets, 4, &err), "%s", err.message);
    ck_assert_msg(!qat_recipe_open_data(&d, r, NULL, QAT_SPLIT_TRAIN, &err), "%s", err.message);
    ck_assert_int_eq(qat_dataset_get(d, 0, v, &label, NULL), QAT_OK);
    for (int i = 0; i < PART * PART; i++)
        ck_assert(v[3 * i] == SIDE / 4 + i / PART && v[3 * i + 1] == SIDE / 4 + i % PART);
    qat_dataset_close(d);
    qat_recipe_free(r);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
    static uint8_t pixels[SIDE * SIDE], values[PART * PART];
    qat_picture const picture = {pixels, SIDE, SIDE};
    qat_augment const a = crop_of(0.1f, 1, 1, 1);
    qat_error err;
    test_fail_alloc_after(0);
    qat_status const st = qat_augment_part(&a, &picture, values, PART, PART, 1, 1, 2, 3, &err);
    ck_assert(test_fail_alloc_stop());
    ck_assert_int_eq(st, QAT_ERR_NOMEM);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("windows");
    TCase *tc = tcase_create("windows");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, sizes_are_in_range);
    tcase_add_test(tc, what_never_fits_is_the_middle);
    tcase_add_test(tc, parts_are_the_pictures_pixels);
    tcase_add_test(tc, recipes_ask_for_parts);
    tcase_add_test(tc, recipes_ask_for_a_central_crop);
    tcase_add_test(tc, no_memory_is_an_error);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/** Pictures that come row by row, as on a device, beside those that are read as a whole. */
#include "common/suite.h"
#include "datasets/pictures/picture.h"
#include "infer/kernels/picture_filter.h"

#include <check.h>
#include <string.h>

enum { MOST_SIDE = 70 };

/** Bring a picture to a size as a whole, and row by row. Both are refused, or the same. */
static void read_both(const uint8_t *pixels, int height, int width, const qat_image_size *size)
{
    enum { MOST = 40 };
    uint8_t whole[MOST * MOST] = {0}, rows[MOST * MOST] = {0};
    uint32_t sums[3 * MOST];
    qk_picture const p = {.height = size->height,
                          .width = size->width,
                          .channels = 1,
                          .resize_short = size->resize_short,
                          .central_crop = (int32_t)(1e6 * size->central_crop)};
    qk_picture_state s = {.sums = sums};
    uint8_t copy[MOST_SIDE * MOST_SIDE];
    qat_picture picture = {copy, height, width};
    memcpy(copy, pixels, (size_t)(height * width));
    qat_status const st = qat_image_fit(&picture, "a picture", size, whole, NULL);
    int const refused = qk_picture_start(&p, &s, height, width, QK_GREY);
    ck_assert_int_eq(refused, st ? -1 : 0);
    int is_there = refused;
    for (int y = 0; y < height && !refused; y++)
        is_there = (p.central_crop ? qk_picture_filter_row
                                   : qk_picture_row)(&p, &s, pixels + y * width, rows);
    ck_assert(is_there);
    ck_assert_mem_eq(whole, rows, sizeof whole);
}

START_TEST(rows_give_the_same_picture)
{
    static uint8_t pixels[MOST_SIDE * MOST_SIDE];
    uint32_t state = 1;
    for (int trial = 0; trial < 300; trial++) {
        int r[6];
        for (size_t i = 0; i < sizeof pixels + 6; i++) {
            state = state * 1664525u + 1013904223u;
            if (i < 6)
                r[i] = (int)(state >> 16);
            else
                pixels[i - 6] = (uint8_t)(state >> 24);
        }
        qat_image_size const size = {.height = 1 + r[0] % 40,
                                     .width = 1 + r[1] % 40,
                                     .channels = 1,
                                     .central_crop = trial % 3 == 0 ? (1 + r[2] % 8) / 8.0 : 0,
                                     .resize_short = trial % 3 == 1 ? 1 + r[3] % 60 : 0};
        read_both(pixels, 1 + r[4] % MOST_SIDE, 1 + r[5] % MOST_SIDE, &size);
    }
}
END_TEST

START_TEST(sides_have_limits)
{
    qk_picture p = {.height = 1, .width = 1, .channels = 1, .resize_short = 1 << 16};
    qk_side rows, columns;
    ck_assert_int_eq(qk_picture_sides(&p, 1, 1 << 12, &rows, &columns), 0);
    ck_assert_int_eq(columns.to, 1 << 28);
    ck_assert_int_eq(qk_picture_sides(&p, 1, (1 << 12) + 1, &rows, &columns), -1);
    p.resize_short = 0;
    ck_assert_int_eq(qk_picture_sides(&p, 1, 1 << 20, &rows, &columns), 0);
    ck_assert_int_eq(qk_picture_sides(&p, 1, (1 << 20) + 1, &rows, &columns), -1);
    ck_assert_int_eq(qk_picture_sides(&p, 0, 1, &rows, &columns), -1);
    ck_assert_int_eq(qk_picture_sides(&p, 1, -1, &rows, &columns), -1);
    p.central_crop = 1; /* a millionth of 3 pixels is still one */
    ck_assert_int_eq(qk_picture_sides(&p, 3, 3, &rows, &columns), 0);
    ck_assert_int_eq(rows.from, 1);
    ck_assert_int_eq(rows.begin, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("picture rows");
    TCase *tc = tcase_create("picture rows");
    tcase_add_test(tc, rows_give_the_same_picture);
    tcase_add_test(tc, sides_have_limits);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

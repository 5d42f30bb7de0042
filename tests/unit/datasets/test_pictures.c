/** Pictures that a list names, and how a central crop brings a picture to its size. */
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"

#include <check.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[TEST_PATH_MAX];

/** A grey picture; values row by row. */
static void write_pgm(const char *name, int height, int width, const uint8_t *values)
{
    uint8_t bytes[4096];
    int const head = snprintf((char *)bytes, sizeof bytes, "P5\n%d %d\n255\n", width, height);
    memcpy(bytes + head, values, (size_t)(height * width));
    test_temp_write(folder, name, bytes, (size_t)(head + height * width));
}

static void write_text(const char *name, const char *text)
{
    test_temp_write(folder, name, text, strlen(text));
}

static qat_dataset_options grey_list(const char *name)
{
    return (qat_dataset_options){.kind = "list",
                                 .path = name ? test_temp_path(path, folder, name) : folder,
                                 .height = 1,
                                 .width = 1,
                                 .channels = 1};
}

/* ------------------------------------------------------------------ lists */

START_TEST(a_list_names_pictures_and_classes)
{
    qat_dataset_options const o = grey_list("list.txt");
    qat_dataset *d;
    qat_error err = {0};
    uint8_t value;
    int label;
    write_pgm("pictures/a.pgm", 1, 1, (const uint8_t[]){11});
    write_pgm("with space.pgm", 1, 1, (const uint8_t[]){22});
    write_text("list.txt", "pictures/a.pgm 3\r\n\n  \nwith space.pgm\t 0");
    ck_assert_msg(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_dataset_info_of(d)->count, 2);
    ck_assert_int_eq(qat_dataset_info_of(d)->classes, 4);
    ck_assert_int_eq(qat_dataset_get(d, 0, &value, &label, &err), QAT_OK);
    ck_assert(value == 11 && label == 3);
    ck_assert_int_eq(qat_dataset_get(d, 1, &value, &label, &err), QAT_OK);
    ck_assert(value == 22 && label == 0);
    qat_dataset_close(d);
}
END_TEST

START_TEST(a_folder_holds_a_list_for_each_split)
{
    qat_dataset_options const o = grey_list(NULL);
    qat_dataset *d;
    uint8_t value;
    int label;
    write_pgm("a.pgm", 1, 1, (const uint8_t[]){1});
    write_pgm("b.pgm", 1, 1, (const uint8_t[]){2});
    write_text("train.txt", "a.pgm 0\n");
    write_text("test.txt", "b.pgm 1\n");
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(d, 0, &value, &label, NULL), QAT_OK);
    ck_assert_int_eq(value, 1);
    qat_dataset_close(d);
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, NULL), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(d, 0, &value, &label, NULL), QAT_OK);
    ck_assert_int_eq(value, 2);
    qat_dataset_close(d);
}
END_TEST

/** Lists that are refused, and what the message says. */
static const struct {
    const char *text, *says;
} wrong[] = {{"", "no picture is listed"},
             {"\n\n", "no picture is listed"},
             {"a.pgm 1\nb.pgm\n", "list.txt:2: \"b.pgm\""},
             {"a.pgm 1x", "list.txt:1"},
             {"a.pgm -1", "list.txt:1"},
             {"a.pgm 65536", "list.txt:1"},
             {"7", "list.txt:1"}};

START_TEST(a_wrong_list_is_refused)
{
    qat_dataset_options const o = grey_list("list.txt");
    qat_dataset *d;
    qat_error err = {0};
    write_text("list.txt", wrong[_i].text);
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, wrong[_i].says) != NULL, "\"%s\"", err.message);
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(a_missing_list_or_picture_is_named)
{
    qat_dataset_options const o = grey_list("list.txt");
    qat_dataset *d;
    qat_error err = {0};
    uint8_t value;
    int label;
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "list.txt"));
    write_text("list.txt", "absent.pgm 1\n");
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, &err), QAT_OK);
    ck_assert_int_eq(qat_dataset_get(d, 0, &value, &label, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "absent.pgm"));
    qat_dataset_close(d);
}
END_TEST

START_TEST(the_largest_picture_is_an_option)
{
    qat_dataset_options o = grey_list("list.txt");
    qat_dataset *d;
    qat_error err = {0};
    qat_picture p;
    uint8_t value;
    int label;
    write_pgm("a.pgm", 2, 3, (const uint8_t[6]){0});
    write_text("list.txt", "a.pgm 0\n");
    for (o.max_pixels = 5; o.max_pixels <= 6; o.max_pixels++) {
        qat_status const wanted = o.max_pixels == 5 ? QAT_ERR_FORMAT : QAT_OK;
        ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TEST, NULL), QAT_OK);
        ck_assert_int_eq(qat_dataset_get(d, 0, &value, &label, &err), wanted);
        qat_dataset_close(d);
    }
    ck_assert_ptr_nonnull(strstr(err.message, "a.pgm: 2 x 3 pixels, more than the 5 allowed"));
    test_temp_path(path, folder, "a.pgm");
    ck_assert_int_eq(qat_picture_read_within(&p, path, 1, 5, &err), QAT_ERR_FORMAT);
    ck_assert_int_eq(qat_picture_read_within(&p, path, 1, -1, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(p.pixels);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    qat_dataset_options o = grey_list("list.txt");
    o.central_crop = 0.5;
    bool failed;
    long n = 0;
    write_pgm("a.pgm", 4, 4, (const uint8_t[16]){0});
    write_text("list.txt", "a.pgm 0\n");
    do {
        qat_dataset *d = NULL;
        uint8_t value;
        int label;
        test_fail_alloc_after(n++);
        qat_status st = qat_dataset_open(&d, &o, QAT_SPLIT_TEST, NULL);
        if (!st)
            st = qat_dataset_get(d, 0, &value, &label, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "allocation %ld: status %d", n, st);
        qat_dataset_close(d);
    } while (failed);
    ck_assert_int_gt(n, 5);
}
END_TEST

/* ------------------------------------------------------------------ the central crop */

/** Read a grey picture, cut and brought to height x width. */
static void read_cropped(const char *name, int height, int width, double crop, uint8_t *values)
{
    qat_error err = {0};
    qat_image_size const size = {
        .height = height, .width = width, .channels = 1, .central_crop = crop};
    ck_assert_msg(qat_image_read(test_temp_path(path, folder, name), &size, values, &err) == QAT_OK,
                  "%s", err.message);
}

/** 2 x 6 pixels, half of 2 x 2 of the middle: the largest square is 2 wide, its half 1. */
START_TEST(the_crop_has_the_shape_of_the_output)
{
    uint8_t one, two[2];
    write_pgm("wide.pgm", 2, 6, (const uint8_t[]){0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
    read_cropped("wide.pgm", 1, 1, 0.5, &one); /* row (2 - 1) / 2, column (6 - 1) / 2 */
    ck_assert_int_eq(one, 2);
    read_cropped("wide.pgm", 1, 2, 0.5, two); /* 1 x 2 at row 0, column 2 */
    ck_assert(two[0] == 2 && two[1] == 3);
    read_cropped("wide.pgm", 1, 2, 1.0, two); /* 2 x 4: columns 1..4, both rows averaged */
    ck_assert_int_eq(two[0], 7); /* rows average to 6 .. 9: (3 * 6 + 3 * 7 + 8) / 7 = 6.7 */
    ck_assert_int_eq(two[1], 8); /* (7 + 3 * 8 + 3 * 9) / 7 = 8.3 */
}
END_TEST

/** Four pixels to two: triangles of reach 2, weights 3, 3, 1 of 7. */
START_TEST(a_reduction_averages)
{
    uint8_t two[2], four[4];
    write_pgm("line.pgm", 1, 4, (const uint8_t[]){0, 70, 140, 210});
    qat_image_size const half = {.height = 1, .width = 2, .channels = 1, .central_crop = 1.0};
    qat_image_size const same = {.height = 1, .width = 4, .channels = 1, .central_crop = 1.0};
    /* 1 x 2 of 1 x 4: the largest rectangle of that shape is 1 x 2 itself */
    ck_assert_int_eq(qat_image_read(test_temp_path(path, folder, "line.pgm"), &half, two, NULL),
                     QAT_OK);
    ck_assert(two[0] == 70 && two[1] == 140);
    ck_assert_int_eq(qat_image_read(test_temp_path(path, folder, "line.pgm"), &same, four, NULL),
                     QAT_OK);
    ck_assert(four[0] == 0 && four[1] == 70 && four[2] == 140 && four[3] == 210);
    write_pgm(
        "square.pgm", 4, 4,
        (const uint8_t[]){0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210, 0, 70, 140, 210});
    uint8_t corner[4];
    read_cropped("square.pgm", 2, 2, 1.0, corner);
    ck_assert(corner[0] == 50 && corner[1] == 160 && corner[2] == 50 && corner[3] == 160);
}
END_TEST

/** Equal pixels stay what they are, whatever the sizes: weights add up to one. */
START_TEST(a_plain_picture_stays_plain)
{
    uint8_t from[31 * 17], to[40 * 40];
    for (int value = 0; value < 256; value += 51) {
        memset(from, value, sizeof from);
        write_pgm("plain.pgm", 31, 17, from);
        for (int side = 1; side <= 40; side += 13) {
            read_cropped("plain.pgm", side, side, 0.875, to);
            for (int i = 0; i < side * side; i++)
                ck_assert_int_eq(to[i], value);
        }
    }
}
END_TEST

/** 0.7 of 15 is 10.5, so 11. In float64 it is a little less. */
START_TEST(the_share_is_rounded_half_up)
{
    uint8_t from[15 * 15], to[11 * 11];
    for (int i = 0; i < 15 * 15; i++)
        from[i] = (uint8_t)i;
    write_pgm("square.pgm", 15, 15, from);
    read_cropped("square.pgm", 11, 11, 0.7, to);
    for (int i = 0; i < 11 * 11; i++)
        ck_assert_int_eq(to[i], from[(i / 11 + 2) * 15 + i % 11 + 2]);
}
END_TEST

START_TEST(a_share_beyond_one_is_refused)
{
    uint8_t value;
    qat_error err = {0};
    qat_image_size size = {.height = 1, .width = 1, .channels = 1, .central_crop = 1.5};
    write_pgm("a.pgm", 1, 1, (const uint8_t[]){1});
    ck_assert_int_eq(qat_image_read(test_temp_path(path, folder, "a.pgm"), &size, &value, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "central crop of 1.5"));
}
END_TEST

/* ------------------------------------------------------------------ files that are cut */

/** How a JPEG is cut into scans and intervals. */
enum { ONE_SCAN, RESTARTS, THREE_SCANS, PROGRESSIVE, CLIPPED, JPEG_KINDS };

static size_t put(uint8_t *to, size_t at, const void *bytes, size_t count)
{
    memcpy(to + at, bytes, count);
    return at + count;
}

/** A scan of one component's coefficients from..to: 64 blocks; restarts after every 8. */
static size_t put_scan(uint8_t *to, size_t at, int component, int from, int last, bool restarts)
{
    uint8_t const scan[] = {0xff,          0xda,          0, 8, 1, (uint8_t)component, 0,
                            (uint8_t)from, (uint8_t)last, 0};
    int const bits = last == 63 && from == 0 ? 2 : 1;
    at = put(to, at, scan, sizeof scan);
    for (int i = 0; i < 8; i++) {
        memset(to + at, 0, (size_t)bits);
        at += (size_t)bits;
        if (restarts && i < 7)
            at = put(to, at, (uint8_t[]){0xff, (uint8_t)(0xd0 + i)}, 2);
    }
    return at;
}

/** 64 x 64 grey pixels: one quantization table of ones, one code of one bit for "the same as
 * before" and for "no more", so that 64 blocks are 16 bytes 0. */
static size_t make_jpeg_of(int kind, uint8_t *to)
{
    int const components = kind == THREE_SCANS ? 3 : 1;
    size_t at = put(to, 0, (uint8_t[]){0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}, 7);
    memset(to + at, 1, 64);
    at += 64;
    uint8_t const frame[] = {0xff, kind == PROGRESSIVE ? 0xc2 : 0xc0,
                             0,    (uint8_t)(8 + 3 * components),
                             8,    0,
                             64,   0,
                             64,   (uint8_t)components};
    at = put(to, at, frame, sizeof frame);
    for (int i = 1; i <= components; i++)
        at = put(to, at, (uint8_t[]){(uint8_t)i, 0x11, 0}, 3);
    for (int ac = 0; ac < 2; ac++) {
        at = put(to, at, (uint8_t[]){0xff, 0xc4, 0, 20, (uint8_t)(ac << 4), 1}, 6);
        memset(to + at, 0, 16); /* no longer codes; the one code's value, 0 */
        at += 16;
    }
    if (kind == RESTARTS)
        at = put(to, at, (uint8_t[]){0xff, 0xdd, 0, 4, 0, 8}, 6);
    if (kind == PROGRESSIVE)
        at = put_scan(to, at, 1, 0, 0, false);
    for (int i = 1; i < components; i++)
        at = put_scan(to, at, i, 0, 63, false);
    at = put_scan(to, at, components, kind == PROGRESSIVE, 63, kind == RESTARTS);
    return put(to, at, (uint8_t[]){0xff, 0xd9}, 2);
}

static size_t make_jpeg(uint8_t *to)
{
    return make_jpeg_of(ONE_SCAN, to);
}

/** 64 x 64 pixels of 24 bits. */
static size_t make_bmp(uint8_t *to)
{
    size_t const bytes = 54 + 64 * 64 * 3;
    static const uint8_t head[54] = {'B', 'M', 0x36, 0x30, 0, 0, 0, 0,  0, 0, 54, 0, 0, 0, 40,
                                     0,   0,   0,    64,   0, 0, 0, 64, 0, 0, 0,  1, 0, 24};
    memset(to, 200, bytes);
    memcpy(to, head, sizeof head);
    return bytes;
}

static size_t make_pgm(uint8_t *to)
{
    int const head = sprintf((char *)to, "P5 64 64 255\n");
    memset(to + head, 200, 64 * 64);
    return (size_t)head + 64 * 64;
}

static size_t make_png(uint8_t *to)
{
    static uint8_t pixels[64 * 64];
    png_alloc_size_t bytes = 1 << 14;
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = 64, .height = 64, .format = PNG_FORMAT_GRAY};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i >> 3);
    ck_assert(png_image_write_to_memory(&image, to, &bytes, 0, pixels, 0, NULL));
    return bytes;
}

/** A build without libjpeg-turbo refuses JPEG: test_no_jpeg. */
static bool is_readable(const char *name)
{
    static const uint8_t start[] = {0xff, 0xd8, 0xff};
    qat_picture p;
    test_temp_write(folder, "start.jpg", start, sizeof start);
    test_temp_path(path, folder, "start.jpg");
    bool const jpeg = qat_picture_read(&p, path, 1, NULL) != QAT_ERR_UNSUPPORTED;
    free(p.pixels);
    if (jpeg || strcmp(name, "a.jpg") != 0)
        return true;
    test_skip("JPEG pictures", "a build without libjpeg-turbo");
    return false;
}

static const struct {
    const char *name;
    size_t (*make)(uint8_t *to);
    size_t spare; /* bytes at the end that it can do without */
} formats[] = {{"a.jpg", make_jpeg, 2},
               {"a.bmp", make_bmp, 0},
               {"a.pgm", make_pgm, 0},
               {"a.png", make_png, 0}};

/**
 * A file in which one byte of the picture is missing is refused; the missing part is not filled in.
 */
START_TEST(a_cut_picture_is_refused)
{
    static uint8_t bytes[1 << 14], values[64 * 64];
    qat_error err = {0};
    size_t const whole = formats[_i].make(bytes);
    const char *name = formats[_i].name;
    qat_image_size const size = {.height = 64, .width = 64, .channels = 1};
    if (!is_readable(name))
        return;
    ck_assert_uint_le(whole, sizeof bytes);
    test_temp_write(folder, name, bytes, whole);
    test_temp_path(path, folder, name);
    ck_assert_msg(qat_image_read(path, &size, values, &err) == QAT_OK, "%s", err.message);
    size_t const needed = whole - formats[_i].spare;
    for (size_t n = 0; n<needed; n += n> 300 && n + 300 < needed ? 97 : 1) {
        test_temp_write(folder, name, bytes, n);
        ck_assert_msg(qat_image_read(path, &size, values, &err) == QAT_ERR_FORMAT,
                      "%s: %zu of %zu bytes are taken for a picture", name, n, needed);
        ck_assert_ptr_nonnull(strstr(err.message, name));
    }
    ck_assert_ptr_nonnull(strstr(err.message, "truncated"));
}
END_TEST

/**
 * A picture of 16 x 8 grey pixels, with steps of 8. There is a code of each length up to 8: 0 for a
 * difference of 0, 10 and 11111110 for one of eight bits. Each AC code says "no more". The first
 * block is 255 and more; the second (bits 10 00000000 0, across the last two bytes) is 128. If
 * these bytes are missing and are filled with 0s or 1s, the second block is white too.
 */
static size_t make_clipped_jpeg(uint8_t *to)
{
    static const uint8_t frame[] = {0xff, 0xc0, 0, 11, 8, 0, 8, 0, 16, 1, 1, 0x11, 0};
    static const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0xbf, 0xd0, 0x03};
    size_t at = put(to, 0, (uint8_t[]){0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}, 7);
    memset(to + at, 8, 64);
    at = put(to, at + 64, frame, sizeof frame);
    for (int ac = 0; ac < 2; ac++) {
        uint8_t const lengths[16] = {1, 1, 1, 1, 1, 1, 1, 1}, no_more[8] = {0};
        uint8_t const bits[8] = {0, 8, 1, 2, 3, 4, 5, 8};
        at = put(to, at, (uint8_t[]){0xff, 0xc4, 0, 27, (uint8_t)(ac << 4)}, 5);
        at = put(to, at, lengths, sizeof lengths);
        at = put(to, at, ac ? no_more : bits, sizeof bits);
    }
    at = put(to, at, scan, sizeof scan);
    return put(to, at, (uint8_t[]){0xff, 0xd9}, 2);
}

/**
 * A JPEG may lack its end marker, or half of it, however the picture is stored. It may lack nothing
 * else.
 */
START_TEST(a_jpeg_may_lack_its_end)
{
    static uint8_t bytes[1024], values[2][64 * 64];
    qat_error err = {0};
    qat_image_size const size = {.height = 64, .width = 64, .channels = 1};
    size_t const whole = _i == CLIPPED ? make_clipped_jpeg(bytes) : make_jpeg_of(_i, bytes);
    if (!is_readable("a.jpg"))
        return;
    test_temp_path(path, folder, "a.jpg");
    for (size_t n = 0; n <= whole; n++) {
        bool const enough = n + 2 >= whole;
        test_temp_write(folder, "a.jpg", bytes, n);
        qat_status const st = qat_image_read(path, &size, values[n < whole], &err);
        ck_assert_msg(st == (enough ? QAT_OK : QAT_ERR_FORMAT), "%zu of %zu bytes: %s", n, whole,
                      err.message);
    }
    ck_assert_mem_eq(values[0], values[1], sizeof values[0]);
}
END_TEST

/** Bytes after the picture in its file are ignored. */
START_TEST(bytes_behind_a_picture_are_left_alone)
{
    static uint8_t bytes[1 << 15], values[64 * 64];
    qat_error err = {0};
    size_t const whole = formats[_i].make(bytes);
    qat_image_size const size = {.height = 64, .width = 64, .channels = 1};
    if (!is_readable(formats[_i].name))
        return;
    for (size_t more = 1; more < 300; more += 13) {
        test_temp_write(folder, formats[_i].name, bytes, whole + more);
        ck_assert_msg(qat_image_read(test_temp_path(path, folder, formats[_i].name), &size, values,
                                     &err) == QAT_OK,
                      "%s", err.message);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pictures");
    TCase *tc = tcase_create("files");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, a_list_names_pictures_and_classes);
    tcase_add_test(tc, a_folder_holds_a_list_for_each_split);
    tcase_add_loop_test(tc, a_wrong_list_is_refused, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tc, a_missing_list_or_picture_is_named);
    tcase_add_test(tc, the_largest_picture_is_an_option);
    tcase_add_test(tc, every_allocation_may_fail);
    tcase_add_test(tc, the_crop_has_the_shape_of_the_output);
    tcase_add_test(tc, a_reduction_averages);
    tcase_add_test(tc, a_plain_picture_stays_plain);
    tcase_add_test(tc, the_share_is_rounded_half_up);
    tcase_add_test(tc, a_share_beyond_one_is_refused);
    tcase_add_loop_test(tc, a_cut_picture_is_refused, 0, (int)(sizeof formats / sizeof *formats));
    tcase_add_loop_test(tc, a_jpeg_may_lack_its_end, 0, JPEG_KINDS);
    tcase_add_loop_test(tc, bytes_behind_a_picture_are_left_alone, 0,
                        (int)(sizeof formats / sizeof *formats));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/** BMP and PNM, and files that are no pictures: values known by construction, and broken files. */
#include "common/decode.h"
#include "common/suite.h"
#include "common/temp.h"

#include <stdio.h>

/* ------------------------------------------------------------------ PNM */

#define PNM(text) text, sizeof(text) - 1

static const struct {
    const char *bytes;
    size_t count;
    int height, width;
    bool colour;
    uint8_t values[12];
} pnms[] = {
    {PNM("P1 3 2 101\n0 1 0"), 2, 3, false, {0, 255, 0, 255, 0, 255}},
    {PNM("P1\n# a comment\n2 1 # another\n0#\n1"), 1, 2, false, {255, 0}},
    {PNM("P2 3 1 15 0 15 8"), 1, 3, false, {0, 255, 136}},
    {PNM("P2 2 1 65535 65535 255"), 1, 2, false, {255, 0}},
    {PNM("P3 1 2 255 1 2 3 4 5 6\n"), 2, 1, true, {1, 2, 3, 4, 5, 6}},
    {PNM("P4 10 2 \x80\x40\x7f\xbf"),
     2,
     10,
     false,
     {0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 255, 0}},
    {PNM("P5 2 2 255 \x00\x01\xfe\xff"), 2, 2, false, {0, 1, 254, 255}},
    {PNM("P5\t#c\n2\r1\v3\n\x01\x03"), 1, 2, false, {85, 255}},
    {PNM("P5 2 1 65535 \x12\xff\xff\x00"), 1, 2, false, {0x12, 0xff}},
    {PNM("P5 3 1 4095 \x00\x00\x0f\xff\x08\x00"), 1, 3, false, {0, 255, 128}},
    {PNM("P6 1 2 255\n\x01\x02\x03\x04\x05\x06trailing"), 2, 1, true, {1, 2, 3, 4, 5, 6}},
    {PNM("P6 1 1 300 \x00\x00\x01\x2c\x00\x01"), 1, 1, true, {0, 255, 1}},
};

START_TEST(pnm_values)
{
    int const channels = pnms[_i].colour ? 3 : 1, other = pnms[_i].colour ? 1 : 3;
    int const n = pnms[_i].height * pnms[_i].width;
    uint8_t *own =
        test_decoded(pnms[_i].bytes, pnms[_i].count, pnms[_i].height, pnms[_i].width, channels);
    uint8_t *as_other =
        test_decoded(pnms[_i].bytes, pnms[_i].count, pnms[_i].height, pnms[_i].width, other);
    for (int i = 0; i < n * channels && i < 12; i++)
        ck_assert_int_eq(own[i], pnms[_i].values[i]);
    for (int i = 0; i < n; i++) {
        int const rgb[3] = {own[channels * i], own[channels * i + channels / 2],
                            own[channels * i + channels - 1]};
        if (other == 1)
            ck_assert_int_eq(as_other[i], test_grey(rgb));
        for (int c = 0; other == 3 && c < 3; c++)
            ck_assert_int_eq(as_other[3 * i + c], own[i]);
    }
    free(own);
    free(as_other);
}
END_TEST

static const struct {
    const char *bytes;
    size_t count;
    const char *says;
} bad_pnms[] = {
    {PNM("P5 x 1 255 a"), "width"},
    {PNM("P5 -1 1 255 a"), "width"},
    {PNM("P5 99999999999 1 255 a"), "width"},
    {PNM("P5 1 . 255 a"), "height"},
    {PNM("P5 0 1 255 a"), "1 x 0 pixels; a side must be in"},
    {PNM("P5 1 1 0 a"), "maxval"},
    {PNM("P5 1 1 65536 a"), "maxval"},
    {PNM("P5 1 1 255a"), "no white space after its header"},
    {PNM("P5 1 1 254 \xff"), "a value is not in 0..maxval"},
    {PNM("P5 1 1 4000 \x0f\xff"), "a value is not in 0..maxval"},
    {PNM("P2 1 1 9 10"), "a value is not in 0..maxval"},
    {PNM("P2 2 1 9 1 x"), "a value is not in 0..maxval"},
    {PNM("P1 3 1 012"), "neither 0 nor 1"},
    {PNM("P6 20000 20000 255 abc"), "20000 x 20000 pixels, more than the 178956970 allowed"},
    {PNM("P6 10000 10000 255 abc"), "truncated"},
    {PNM("P3 10000 10000 255 1 2 3"), "truncated"},
    {PNM("P1 10000 10000 1"), "truncated"},
    {PNM("P4 10000 10000 1"), "truncated"},
    {PNM("P5 2000000000 2000000000 65535 a"), "a side must be in 1..1000000"},
    {PNM("P5 #"), "truncated"},
    {PNM("P7\nWIDTH 1"), "a PAM file; these formats can be read: PNG, JPEG, BMP, PNM"},
    {PNM("P52"), "not a picture; these formats can be read: PNG, JPEG, BMP, PNM"},
};

START_TEST(a_broken_pnm_is_refused)
{
    test_refused(bad_pnms[_i].bytes, bad_pnms[_i].count, bad_pnms[_i].says);
}
END_TEST

START_TEST(a_cut_pnm_is_refused)
{
    static const char trailing[] = "trailing";
    size_t spare = strstr(pnms[_i].bytes, trailing) ? sizeof trailing - 1 : 0;
    while (pnms[_i].bytes[pnms[_i].count - 1 - spare] == '\n')
        spare++;
    for (size_t n = 0; n + spare < pnms[_i].count; n++) {
        bool const number = pnms[_i].bytes[1] == '2' || pnms[_i].bytes[1] == '3';
        if (number && n + 5 > pnms[_i].count) /* "25" is a number, too */
            continue;
        test_refused(pnms[_i].bytes, n, n > 2 ? "truncated" : "");
    }
}
END_TEST

/** 16 bits of grey into three channels: the upper byte, three times. */
START_TEST(wide_grey_becomes_three_channels)
{
    enum { SIDE = 300 };
    static uint8_t file[64 + 2 * SIDE * SIDE];
    size_t const head = (size_t)sprintf((char *)file, "P5\n%d %d\n65535\n", SIDE, SIDE);
    for (size_t i = 0; i < 2 * SIDE * SIDE; i++)
        file[head + i] = (uint8_t)(i * 37 >> 2);
    uint8_t *pixels = test_decoded(file, head + 2 * SIDE * SIDE, SIDE, SIDE, 3);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        for (size_t c = 0; c < 3; c++)
            ck_assert_int_eq(pixels[3 * i + c], file[head + 2 * i]);
    free(pixels);
}
END_TEST

/* ------------------------------------------------------------------ BMP */

enum { BMP_WIDTH = 5, BMP_HEIGHT = 3, OS2 = 12, WINDOWS = 40, V4 = 108 };

static uint8_t bmp[4096];
static size_t bmp_count;

static void put(size_t at, uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        bmp[at + i] = (uint8_t)(value >> (8 * i));
}

/** A kind of BMP, and the masks of its bit fields. */
static const struct bmp_kind {
    int header, bits;
    bool top_down;
    uint32_t masks[3]; /* 0: none are stored */
} bmps[] = {{WINDOWS, 1, false, {0}},
            {WINDOWS, 2, false, {0}},
            {WINDOWS, 4, false, {0}},
            {WINDOWS, 8, true, {0}},
            {OS2, 4, false, {0}},
            {OS2, 24, false, {0}},
            {WINDOWS, 16, false, {0}},
            {WINDOWS, 16, true, {0xf800, 0x7e0, 0x1f}},
            {WINDOWS, 24, false, {0}},
            {WINDOWS, 24, true, {0}},
            {WINDOWS, 32, false, {0}},
            {V4, 32, false, {0xff000000, 0xff0000, 0xff00}},
            {V4, 32, true, {0x3ff00000, 0xffc00, 0x3ff}},
            {V4, 24, false, {0}}};

static uint32_t bmp_stored(int y, int x, int bits)
{
    uint32_t const value =
        ((uint32_t)y * 1103515245u + (uint32_t)x * 40503u + (uint32_t)(y * x) * 65537u) *
        2654435761u;
    return bits == 32 ? value : value & ((UINT32_C(1) << bits) - 1);
}

static uint32_t bmp_palette(uint32_t i)
{
    return (i * 5 & 255) << 16 | (255 - i) << 8 | (i * i & 255); /* 0xRRGGBB */
}

static void put_pixel(size_t row, int x, int bits, uint32_t value)
{
    if (bits >= 8)
        put(row + (size_t)(x * bits / 8), value, (size_t)bits / 8);
    else
        bmp[row + (size_t)(x * bits / 8)] |= (uint8_t)(value << (8 - bits - x * bits % 8));
}

static void put_headers(const struct bmp_kind *k, size_t pixels)
{
    bool const os2 = k->header == OS2;
    memcpy(bmp, "BM", 2);
    put(10, (uint32_t)pixels, 4);
    put(14, (uint32_t)k->header, 4);
    put(18, BMP_WIDTH, os2 ? 2 : 4);
    put(os2 ? 20 : 22, k->top_down ? (uint32_t)-BMP_HEIGHT : BMP_HEIGHT, os2 ? 2 : 4);
    put(os2 ? 24 : 28, (uint32_t)k->bits, 2);
    put(30, k->masks[0] ? 3 : 0, os2 ? 0 : 4);
    for (size_t i = 0; i < 3; i++)
        put(54 + 4 * i, k->masks[i], k->masks[0] ? 4 : 0);
}

static void make_bmp(const struct bmp_kind *k)
{
    size_t const start = 14 + (size_t)k->header, entry = k->header == OS2 ? 3 : 4;
    size_t const colours = k->bits <= 8 ? (size_t)1 << k->bits : 0;
    size_t const pixels = start + colours * entry + (k->header == WINDOWS && k->masks[0] ? 12 : 0);
    size_t const stride = (size_t)((BMP_WIDTH * k->bits + 31) / 32 * 4);
    memset(bmp, 0, sizeof bmp);
    put_headers(k, pixels);
    for (uint32_t i = 0; i < colours; i++)
        put(start + i * entry, bmp_palette(i), 3);
    for (int y = 0; y < BMP_HEIGHT; y++)
        for (int x = 0; x < BMP_WIDTH; x++)
            put_pixel(pixels + (size_t)(k->top_down ? y : BMP_HEIGHT - 1 - y) * stride, x, k->bits,
                      bmp_stored(y, x, k->bits));
    bmp_count = pixels + (BMP_HEIGHT - 1) * stride + (size_t)((BMP_WIDTH * k->bits + 7) / 8);
}

/** A field as 8 bits: its upper ones, or fewer repeated until they are 8. */
static int widened(uint32_t pixel, uint32_t mask)
{
    int bits = 0;
    uint32_t value = 0, all = 0;
    for (int i = 31; i >= 0; i--)
        if (mask >> i & 1) {
            value = value << 1 | (pixel >> i & 1);
            bits++;
        }
    if (bits >= 8)
        return (int)(value >> (bits - 8));
    for (int have = 0; have < 8; have++)
        all = all << 1 | (value >> (bits - 1 - have % bits) & 1);
    return (int)all;
}

static void bmp_expected(const struct bmp_kind *k, int y, int x, int rgb[3])
{
    static const uint32_t usual16[] = {0x7c00, 0x3e0, 0x1f}, usual[] = {0xff0000, 0xff00, 0xff};
    uint32_t const value = bmp_stored(y, x, k->bits);
    uint32_t const pixel = k->bits <= 8 ? bmp_palette(value) : value;
    const uint32_t *masks = k->masks[0] ? k->masks : k->bits == 16 ? usual16 : usual;
    for (int c = 0; c < 3; c++)
        rgb[c] = widened(pixel, masks[c]);
}

START_TEST(bmp_values)
{
    make_bmp(&bmps[_i]);
    uint8_t *colour = test_decoded(bmp, bmp_count, BMP_HEIGHT, BMP_WIDTH, 3);
    uint8_t *grey = test_decoded(bmp, bmp_count, BMP_HEIGHT, BMP_WIDTH, 1);
    for (int i = 0; i < BMP_HEIGHT * BMP_WIDTH; i++) {
        int rgb[3];
        bmp_expected(&bmps[_i], i / BMP_WIDTH, i % BMP_WIDTH, rgb);
        for (int c = 0; c < 3; c++)
            ck_assert_msg(colour[3 * i + c] == rgb[c], "pixel %d, channel %d: %d instead of %d", i,
                          c, colour[3 * i + c], rgb[c]);
        ck_assert_int_eq(grey[i], test_grey(rgb));
    }
    free(colour);
    free(grey);
}
END_TEST

START_TEST(a_cut_bmp_is_refused)
{
    make_bmp(&bmps[_i]);
    for (size_t n = 0; n < bmp_count; n++)
        test_refused(bmp, n, n >= 70 ? "truncated" : "");
}
END_TEST

/** One number of the header changed. */
static const struct {
    size_t kind, at, bytes;
    uint32_t value;
    const char *says;
} bad_bmps[] = {
    {8, 14, 4, 39, "unknown size of its header"},
    {8, 14, 4, 125, "unknown size of its header"},
    {8, 14, 4, 0xffffffff, "unknown size of its header"},
    {8, 10, 4, 53, "its pixels begin inside the header"},
    {8, 10, 4, 0xffffffff, "truncated"},
    {8, 18, 4, 0, "3 x 0 pixels"},
    {8, 18, 4, 0x80000000, "3 x -2147483648 pixels"},
    {8, 22, 4, 0x80000000, "2147483648 x 5 pixels"},
    {8, 22, 4, 1000000, "truncated"},
    {8, 18, 4, 100000000, "3 x 100000000 pixels; a side"},
    {8, 28, 2, 0, "must have 1, 2, 4, 8, 16, 24 or 32 bits"},
    {8, 28, 2, 64, "must have 1, 2, 4, 8, 16, 24 or 32 bits"},
    {3, 30, 4, 1, "run-length coding"},
    {8, 30, 4, 3, "bit fields are for 16 or 32 bits"},
    {3, 46, 4, 7, "a pixel is not in the palette"},
    {7, 54, 4, 0, "the mask of a bit field is 0 or has gaps"},
    {7, 58, 4, 0x50, "the mask of a bit field is 0 or has gaps"},
    {6, 30, 4, 3, "no room for the masks"},
};

START_TEST(a_broken_bmp_is_refused)
{
    make_bmp(&bmps[bad_bmps[_i].kind]);
    put(bad_bmps[_i].at, bad_bmps[_i].value, bad_bmps[_i].bytes);
    test_refused(bmp, bmp_count, bad_bmps[_i].says);
}
END_TEST

/* ------------------------------------------------------------------ other formats */

static const struct {
    const char *bytes;
    size_t count;
    const char *says;
} others[] = {
    {PNM("GIF89a\1\0\1\0"), ": a GIF file; these formats can be read: PNG, JPEG, BMP, PNM"},
    {PNM("RIFF\0\0\0\0WEBPVP8 "), ": a WebP file;"},
    {PNM("II*\0\x08\0\0\0"), ": a TIFF file;"},
    {PNM("8BPS\0\1"), ": a Photoshop file;"},
    {PNM("\0\0\0\x18"
         "ftypheic"),
     ": a HEIC or AVIF file;"},
    {PNM("#?RADIANCE\n"), ": an HDR file;"},
    {PNM("\0"), ": not a picture;"},
    {PNM("\xff\xd8"), ": not a picture;"},
    {PNM("hello"), ": not a picture; these formats can be read: PNG, JPEG, BMP, PNM"},
};

START_TEST(other_files_are_refused)
{
    test_refused(others[_i].bytes, others[_i].count, others[_i].says);
}
END_TEST

/** A Softimage PIC of 133 bytes with the name of a PNG. */
START_TEST(a_name_does_not_decide)
{
    uint8_t pic[133] = {0x53, 0x80, 0xf6, 0x34};
    char path[TEST_PATH_MAX];
    qat_picture p;
    qat_error err = {0};
    memcpy(pic + 88, "PICT\0\4\0\4", 8);
    test_temp_write(folder, "cat.png", pic, sizeof pic);
    test_temp_path(path, folder, "cat.png");
    ck_assert_int_eq(qat_picture_read(&p, path, 3, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, "cat.png: a PIC file; these formats can be read: PNG, "),
                  "%s", err.message);
    test_temp_write(folder, "cat.png", "P5 1 1 255 a", 12);
    ck_assert_int_eq(qat_picture_read_within(&p, path, 1, 1, &err), QAT_OK);
    ck_assert_int_eq(p.pixels[0], 'a');
    free(p.pixels);
}
END_TEST

START_TEST(endings_of_pictures)
{
    static const char *const yes[] = {"a.png", "a.b.PNG", ".jpg", "x.JpEg", "a.pbm", "a.pnm"};
    static const char *const no[] = {"png", "a.pn", "a.pngs", "a.gif", "a.", "", "a. ", "a.png "};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        ck_assert_msg(qat_picture_has_ending(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        ck_assert_msg(!qat_picture_has_ending(no[i]), "%s", no[i]);
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    Suite *suite = suite_create("bmp, pnm");
    TCase *tc = tcase_create("formats");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_loop_test(tc, pnm_values, 0, COUNT(pnms));
    tcase_add_loop_test(tc, a_broken_pnm_is_refused, 0, COUNT(bad_pnms));
    tcase_add_loop_test(tc, a_cut_pnm_is_refused, 0, COUNT(pnms));
    tcase_add_test(tc, wide_grey_becomes_three_channels);
    tcase_add_loop_test(tc, bmp_values, 0, COUNT(bmps));
    tcase_add_loop_test(tc, a_cut_bmp_is_refused, 0, COUNT(bmps));
    tcase_add_loop_test(tc, a_broken_bmp_is_refused, 0, COUNT(bad_bmps));
    tcase_add_loop_test(tc, other_files_are_refused, 0, COUNT(others));
    tcase_add_test(tc, a_name_does_not_decide);
    tcase_add_test(tc, endings_of_pictures);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

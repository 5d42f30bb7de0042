/**
 * PNG: every colour type and depth, written by libpng, compared with values that are known by
 * construction.
 */
#include "common/decode.h"
#include "common/suite.h"

#include <png.h>
#include <zlib.h>

enum { HEIGHT = 13, WIDTH = 19, MOST = 1 << 16 };

static uint8_t file[MOST];
static size_t count;

static const struct {
    int type, depth;
} kinds[] = {
    {PNG_COLOR_TYPE_GRAY, 1},        {PNG_COLOR_TYPE_GRAY, 2},       {PNG_COLOR_TYPE_GRAY, 4},
    {PNG_COLOR_TYPE_GRAY, 8},        {PNG_COLOR_TYPE_GRAY, 16},      {PNG_COLOR_TYPE_GRAY_ALPHA, 8},
    {PNG_COLOR_TYPE_GRAY_ALPHA, 16}, {PNG_COLOR_TYPE_RGB, 8},        {PNG_COLOR_TYPE_RGB, 16},
    {PNG_COLOR_TYPE_RGB_ALPHA, 8},   {PNG_COLOR_TYPE_RGB_ALPHA, 16}, {PNG_COLOR_TYPE_PALETTE, 1},
    {PNG_COLOR_TYPE_PALETTE, 2},     {PNG_COLOR_TYPE_PALETTE, 4},    {PNG_COLOR_TYPE_PALETTE, 8}};
enum { KINDS = sizeof kinds / sizeof *kinds };
/** Each kind plain and interlaced, without and with a tRNS chunk. */
enum { INTERLACED = 1, TRANSPARENT = 2, WAYS = 4 };

/** The stored value of a channel: all depths, both ends of the range. */
static int stored(int y, int x, int c, int depth)
{
    unsigned int const mixed = (unsigned int)(y * 977 + x * 3571 + c * 15731 + y * x * 131);
    return (x == 0 ? 0 : x == 1 ? 0xffff : (int)(mixed & 0xffff)) & ((1 << depth) - 1);
}

static png_color palette_at(int i)
{
    return (png_color){(png_byte)(255 - i), (png_byte)(i * 7), (png_byte)(i * i)};
}

static void keep(png_structp png, png_bytep bytes, size_t n)
{
    (void)png;
    ck_assert_uint_le(count + n, MOST);
    memcpy(file + count, bytes, n);
    count += n;
}

static void set_palette(png_structp png, png_infop info, int depth)
{
    png_color palette[256];
    for (int i = 0; i < 256; i++)
        palette[i] = palette_at(i);
    png_set_PLTE(png, info, palette, 1 << depth);
}

static void set_transparency(png_structp png, png_infop info, int type)
{
    png_byte alpha[2] = {0, 128};
    png_color_16 colour = {0};
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, alpha, 2, NULL);
    else if (!(type & PNG_COLOR_MASK_ALPHA))
        png_set_tRNS(png, info, NULL, 0, &colour);
}

static void write_row(png_structp png, int y, int type, int depth)
{
    uint8_t row[WIDTH * 8];
    size_t at = 0;
    int const n = type == PNG_COLOR_TYPE_RGB_ALPHA    ? 4
                  : type == PNG_COLOR_TYPE_RGB        ? 3
                  : type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                      : 1;
    for (int x = 0; x < WIDTH; x++)
        for (int c = 0; c < n; c++) {
            if (depth == 16)
                row[at++] = (uint8_t)(stored(y, x, c, depth) >> 8);
            row[at++] = (uint8_t)stored(y, x, c, depth);
        }
    png_write_row(png, row);
}

static void write_png(int type, int depth, int way)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    count = 0;
    png_set_write_fn(png, NULL, keep, NULL);
    png_set_IHDR(png, info, WIDTH, HEIGHT, depth, type,
                 way & INTERLACED ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (type == PNG_COLOR_TYPE_PALETTE)
        set_palette(png, info, depth);
    if (way & TRANSPARENT)
        set_transparency(png, info, type);
    png_set_gAMA(png, info, 0.1); /* is not applied */
    png_write_info(png, info);
    png_set_packing(png);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int y = 0; y < HEIGHT; y++)
            write_row(png, y, type, depth);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

/** What docs/preprocessing.md says of a pixel. */
static void expected(int y, int x, int type, int depth, int rgb[3])
{
    static const int factors[] = {[1] = 255, [2] = 85, [4] = 17, [8] = 1};
    for (int c = 0; c < 3; c++) {
        int const value = stored(y, x, type & PNG_COLOR_MASK_COLOR ? c : 0, depth);
        rgb[c] = depth == 16 ? value >> 8 : value * factors[depth];
    }
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color const colour = palette_at(stored(y, x, 0, depth));
        rgb[0] = colour.red;
        rgb[1] = colour.green;
        rgb[2] = colour.blue;
    }
}

START_TEST(every_kind_gives_its_values)
{
    int const type = kinds[_i / WAYS].type, depth = kinds[_i / WAYS].depth;
    write_png(type, depth, _i % WAYS);
    uint8_t *colour = test_decoded(file, count, HEIGHT, WIDTH, 3);
    uint8_t *grey = test_decoded(file, count, HEIGHT, WIDTH, 1);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int rgb[3];
            size_t const at = (size_t)(y * WIDTH + x);
            expected(y, x, type, depth, rgb);
            for (size_t c = 0; c < 3; c++)
                ck_assert_msg(colour[3 * at + c] == rgb[c],
                              "type %d depth %d way %d: %d instead of %d at %d, %d", type, depth,
                              _i % WAYS, colour[3 * at + c], rgb[c], y, x);
            ck_assert_int_eq(grey[at], test_grey(rgb));
        }
    free(colour);
    free(grey);
}
END_TEST

START_TEST(a_cut_png_is_refused)
{
    write_png(kinds[_i / WAYS].type, kinds[_i / WAYS].depth, _i % WAYS);
    test_cut_refused(file, count, 0);
}
END_TEST

/* ------------------------------------------------------------------ broken files */

static void put4(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/** Change the header of the file and its CRC. */
static void set_header(uint32_t height, uint32_t width, int depth, int type)
{
    put4(file + 16, width);
    put4(file + 20, height);
    file[24] = (uint8_t)depth;
    file[25] = (uint8_t)type;
    put4(file + 29, (uint32_t)crc32(0, file + 12, 17));
}

START_TEST(a_size_is_checked_before_memory_is_taken)
{
    write_png(PNG_COLOR_TYPE_RGB, 8, 0);
    set_header(26500, 26500, 8, PNG_COLOR_TYPE_RGB);
    test_refused(file, count, "26500 x 26500 pixels, more than the 178956970 allowed");
    set_header(0x7fffffff, 0x7fffffff, 16, PNG_COLOR_TYPE_RGB_ALPHA);
    test_refused(file, count, "2147483647 x 2147483647 pixels; a side must be in 1..1000000");
    set_header(1, 1000001, 1, PNG_COLOR_TYPE_GRAY);
    test_refused(file, count, "1 x 1000001 pixels");
    set_header(0, 5, 8, PNG_COLOR_TYPE_RGB);
    test_refused(file, count, "broken PNG");
    set_header(10000, 10000, 8, PNG_COLOR_TYPE_RGB); /* 300 MB, which 1 kB cannot hold */
    test_refused(file, count, "truncated");
}
END_TEST

START_TEST(a_limit_is_kept)
{
    qat_picture p;
    qat_error err;
    write_png(PNG_COLOR_TYPE_RGB, 8, 0);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, HEIGHT * WIDTH - 1, &err),
                     QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "13 x 19 pixels, more than the 246 allowed"));
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, HEIGHT * WIDTH, &err), QAT_OK);
    free(p.pixels);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, 0, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, (1 << 28) + 1, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(test_decode_within(&p, file, count, 2, 1000, &err), QAT_ERR_ARGUMENT);
}
END_TEST

START_TEST(damage_is_refused)
{
    write_png(PNG_COLOR_TYPE_RGB, 8, 0);
    for (size_t at = 33 + 16; at < count - 12; at += 61) { /* after IHDR and gAMA */
        file[at] ^= 0x55;
        test_refused(file, count, ""); /* broken, or truncated where a length is damaged */
        file[at] ^= 0x55;
    }
    set_header(HEIGHT + 1, WIDTH, 8, PNG_COLOR_TYPE_RGB);
    test_refused(file, count, "broken PNG");
    set_header(HEIGHT, WIDTH, 3, PNG_COLOR_TYPE_RGB);
    test_refused(file, count, "broken PNG");
}
END_TEST

/** A text chunk that would unpack to 64 MB is skipped, and so is a broken one. */
START_TEST(other_chunks_are_not_unpacked)
{
    static uint8_t zeros[1 << 16], longer[MOST];
    uint8_t chunk[2048] = "\0\0\0\0zTXtkey\0";
    uLongf packed = sizeof chunk - 64;
    ck_assert_int_eq(compress2(chunk + 13, &packed, zeros, sizeof zeros, 9), Z_OK);
    write_png(PNG_COLOR_TYPE_RGB, 8, 0);
    size_t const head = 33, n = 12 + 5 + (size_t)packed;
    put4(chunk, (uint32_t)n - 12);
    put4(chunk + n - 4, (uint32_t)crc32(0, chunk + 4, (uInt)n - 8));
    memcpy(longer, file, head);
    memcpy(longer + head, chunk, n);
    memcpy(longer + head + n, file + head, count - head);
    free(test_decoded(longer, count + n, HEIGHT, WIDTH, 3));
    longer[head + 20] ^= 0xff;
    put4(longer + head + n - 4, (uint32_t)crc32(0, longer + head + 4, (uInt)n - 8));
    free(test_decoded(longer, count + n, HEIGHT, WIDTH, 3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("png");
    TCase *tc = tcase_create("png");
    tcase_add_loop_test(tc, every_kind_gives_its_values, 0, KINDS * WAYS);
    tcase_add_loop_test(tc, a_cut_png_is_refused, 0, KINDS * WAYS);
    tcase_add_test(tc, a_size_is_checked_before_memory_is_taken);
    tcase_add_test(tc, a_limit_is_kept);
    tcase_add_test(tc, damage_is_refused);
    tcase_add_test(tc, other_chunks_are_not_unpacked);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * Writes seeds of a target that reads pictures: small ones of each kind that its format has.
 *
 * usage: seed_pictures fuzz_png|fuzz_jpeg|fuzz_bmp|fuzz_pnm FOLDER
 */
#include "fuzz/seeds/seed.h"

#include "fuzz/fuzz.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { HEIGHT = 11, WIDTH = 19, MOST = 1 << 15 };

static uint8_t file[MOST];
static size_t count;

static void put(const void *bytes, size_t n)
{
    fuzz_require(count + n <= MOST, "room for a seed");
    memcpy(file + count, bytes, n);
    count += n;
}

static void put_number(uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put(&(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

static void finish(const char *folder, const char *name)
{
    seed_write(folder, name, file, count);
    count = 0;
}

static void noise(uint8_t *bytes, size_t n, int mask)
{
    uint64_t x = 7;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((i * 3 + fuzz_below(&x, 40)) & (unsigned int)mask);
}

/* ------------------------------------------------------------------ PNG */

static void keep(png_structp png, png_bytep bytes, size_t n)
{
    (void)png;
    put(bytes, n);
}

static void png(const char *folder, int type, int depth, int interlaced, int transparent)
{
    uint8_t row[WIDTH * 8];
    png_color palette[256] = {{1, 2, 3}, {200, 100, 50}};
    png_byte alpha[2] = {0, 9};
    png_color_16 colour = {0};
    char name[64];
    png_structp p = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(p);
    png_set_write_fn(p, NULL, keep, NULL);
    png_set_IHDR(p, info, WIDTH, HEIGHT, depth, type, interlaced, 0, 0);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(p, info, palette, 1 << depth);
    if (transparent)
        png_set_tRNS(p, info, type == PNG_COLOR_TYPE_PALETTE ? alpha : NULL, 2, &colour);
    png_write_info(p, info);
    png_set_packing(p);
    for (int pass = png_set_interlace_handling(p); pass > 0; pass--)
        for (int y = 0; y < HEIGHT; y++) {
            noise(row, sizeof row, depth < 8 ? (1 << depth) - 1 : 255);
            png_write_row(p, row);
        }
    png_write_end(p, info);
    png_destroy_write_struct(&p, &info);
    snprintf(name, sizeof name, "type%d_%dbits%s%s", type, depth, interlaced ? "_adam7" : "",
             transparent ? "_trns" : "");
    finish(folder, name);
}

static void pngs(const char *folder)
{
    static const struct {
        int type, depth;
    } kinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                 {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int way = 0; way < (kinds[i].type & 4 ? 2 : 4); way++)
            png(folder, kinds[i].type, kinds[i].depth, way & 1, way >> 1);
}

/* ------------------------------------------------------------------ JPEG */

struct jpeg_way {
    const char *name;
    J_COLOR_SPACE from, to;
    int h, v, progressive, restart, arithmetic;
};

static void jpeg(const char *folder, const struct jpeg_way *w)
{
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    uint8_t row[WIDTH * 4], *bytes = NULL;
    unsigned long n = 0;
    JSAMPROW rows[] = {row};
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &n);
    j.image_height = HEIGHT;
    j.image_width = WIDTH;
    j.input_components = w->from == JCS_GRAYSCALE ? 1 : w->from == JCS_CMYK ? 4 : 3;
    j.in_color_space = w->from;
    jpeg_set_defaults(&j);
    jpeg_set_colorspace(&j, w->to);
    jpeg_set_quality(&j, 50, TRUE);
    if (w->progressive)
        jpeg_simple_progression(&j);
    j.comp_info[0].h_samp_factor = w->h;
    j.comp_info[0].v_samp_factor = w->v;
    j.arith_code = w->arithmetic;
    j.optimize_coding = !w->arithmetic;
    j.restart_interval = (unsigned int)w->restart;
    jpeg_start_compress(&j, TRUE);
    for (int y = 0; y < HEIGHT; y++) {
        noise(row, sizeof row, 255);
        jpeg_write_scanlines(&j, rows, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    put(bytes, n);
    free(bytes);
    finish(folder, w->name);
}

static void jpegs(const char *folder)
{
    static const struct jpeg_way ways[] = {
        {"grey", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, 0, 0, 0},
        {"grey_progressive", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, 1, 0, 0},
        {"444", JCS_RGB, JCS_YCbCr, 1, 1, 0, 0, 0},
        {"422", JCS_RGB, JCS_YCbCr, 2, 1, 0, 0, 0},
        {"440", JCS_RGB, JCS_YCbCr, 1, 2, 0, 0, 0},
        {"420", JCS_RGB, JCS_YCbCr, 2, 2, 0, 0, 0},
        {"411", JCS_RGB, JCS_YCbCr, 4, 1, 0, 0, 0},
        {"420_progressive", JCS_RGB, JCS_YCbCr, 2, 2, 1, 0, 0},
        {"420_restarts", JCS_RGB, JCS_YCbCr, 2, 2, 0, 1, 0},
        {"progressive_restarts", JCS_RGB, JCS_YCbCr, 1, 1, 1, 1, 0},
        {"rgb", JCS_RGB, JCS_RGB, 1, 1, 0, 0, 0},
        {"cmyk", JCS_CMYK, JCS_CMYK, 1, 1, 0, 0, 0},
        {"ycck_progressive", JCS_CMYK, JCS_YCCK, 1, 1, 1, 0, 0},
        {"arithmetic", JCS_RGB, JCS_YCbCr, 1, 1, 0, 0, 1}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        jpeg(folder, &ways[i]);
}

/* ------------------------------------------------------------------ BMP, PNM */

static void bmp(const char *folder, uint32_t header, uint32_t bits, int down, uint32_t red)
{
    uint8_t rest[2048];
    char name[64];
    uint32_t const colours = bits <= 8 ? 1u << bits : 0, entry = header == 12 ? 3 : 4;
    uint32_t const masks = red && header == 40 ? 12 : 0, blank = header > 40 ? header - 40 : 0;
    noise(rest, sizeof rest, 255);
    put("BM\0\0\0\0\0\0\0\0", 10);
    put_number(14 + header + masks + colours * entry, 4);
    put_number(header, 4);
    put_number(WIDTH, header == 12 ? 2 : 4);
    put_number(down ? (uint32_t)-HEIGHT : HEIGHT, header == 12 ? 2 : 4);
    put_number(1, 2);
    put_number(bits, 2);
    put_number(red ? 3 : 0, header == 12 ? 0 : 4);
    put_number(0, header == 12 ? 0 : 20 - 8);
    put_number(0, header == 12 ? 0 : 8);
    for (uint32_t i = 0; i < 3; i++)
        put_number(red >> (bits / 3 * i), red ? 4 : 0);
    put((uint8_t[128]){0}, blank > 12 && red ? blank - 12 : blank);
    put(rest, colours * entry);
    put(rest, (WIDTH * bits + 31) / 32 * 4 * HEIGHT);
    snprintf(name, sizeof name, "header%u_%ubits%s%s", header, bits, down ? "_down" : "",
             red ? "_masks" : "");
    finish(folder, name);
}

static void bmps(const char *folder)
{
    static const uint32_t bits[] = {1, 2, 4, 8, 16, 24, 32};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        bmp(folder, 40, bits[i], 0, 0);
        bmp(folder, 108, bits[i], 1, 0);
        if (bits[i] != 16 && bits[i] != 32)
            bmp(folder, 12, bits[i], 0, 0);
    }
    bmp(folder, 40, 16, 0, 0x7c00);
    bmp(folder, 108, 32, 1, 0x3ff00000);
}

static void pnms(const char *folder)
{
    static const struct {
        const char *name, *bytes;
        size_t n;
    } seeds[] = {{"p1", "P1 3 2 101\n0 1 0", 16},
                 {"p2", "P2\n# c\n3 1 15 0 15 8\n", 21},
                 {"p3", "P3 1 2 255 1 2 3 4 5 6\n", 23},
                 {"p4", "P4 10 2 \x80\x40\x7f\xbf", 12},
                 {"p5", "P5 2 2 255 \x00\x01\xfe\xff", 15},
                 {"p5_wide", "P5 2 1 65535 \x12\xff\xff\x00", 17},
                 {"p5_maxval", "P5 2 1 300 \x00\x0f\x01\x00", 15},
                 {"p6", "P6 1 2 255\n\x01\x02\x03\x04\x05\x06", 17},
                 {"p6_maxval", "P6 1 1 7 \x01\x02\x03", 12}};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        seed_write(folder, seeds[i].name, (const uint8_t *)seeds[i].bytes, seeds[i].n);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *target;
        void (*write)(const char *folder);
    } targets[] = {
        {"fuzz_png", pngs}, {"fuzz_jpeg", jpegs}, {"fuzz_bmp", bmps}, {"fuzz_pnm", pnms}};
    for (size_t i = 0; argc == 3 && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(argv[1], targets[i].target) == 0) {
            targets[i].write(argv[2]);
            return 0;
        }
    fprintf(stderr, "usage: seed_pictures fuzz_png|fuzz_jpeg|fuzz_bmp|fuzz_pnm FOLDER\n");
    return 2;
}

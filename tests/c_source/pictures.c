/**
 * Writes a C program that gives pictures to a network written as C source, and compares the inputs
 * that NAME_picture makes of them with those that qat-run makes of picture files:
 *
 *     pictures MODEL.qm NAME > check.c
 *
 * The program has `int check_input(void)`, which returns 0 or the number of the first picture
 * whose input differs. Pixels are bytes of a fixed sequence, a row at a time, so a small device can
 * hold them; with -DWHOLE a picture is in memory. The files are written to the current folder.
 */
#include "qat/dataset.h"
#include "qat/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GREY = 1, RGB565 = 2, RGB = 3, RGB565_BIG = 4, MOST_WIDTH = 260, MOST_PIXELS = 40000 };

typedef struct picture {
    int height, width, format;
} picture;

static const picture pictures[] = {
    {24, 20, RGB},        {48, 40, RGB},    {7, 5, RGB},        {5, 7, GREY},
    {61, 83, RGB},        {61, 83, GREY},   {61, 83, RGB565},   {61, 83, RGB565_BIG},
    {120, 160, RGB},      {160, 120, GREY}, {160, 120, RGB565}, {1, 1, RGB},
    {1, MOST_WIDTH, RGB}, {150, 1, GREY},   {25, 21, RGB565},   {26, 20, RGB565_BIG},
};
enum { PICTURES = sizeof pictures / sizeof *pictures };

static int bytes_of(int format)
{
    return format == RGB565_BIG ? 2 : format;
}

static void fill(uint8_t *to, size_t n, uint32_t *state)
{
    for (size_t i = 0; i < n; i++) {
        *state = *state * 1664525u + 1013904223u;
        to[i] = (uint8_t)(*state >> 24);
    }
}

static uint32_t digest_of(const uint8_t *bytes, size_t n)
{
    uint32_t d = 2166136261u;
    for (size_t i = 0; i < n; i++)
        d = (d ^ bytes[i]) * 16777619u;
    return d;
}

/* ------------------------------------------------------------------ a file */

static void put(FILE *f, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(v >> (8 * i) & 255), f);
}

/** A BMP of 16 bits a pixel: 5 of red, 6 of green, 5 of blue, rows from the top. */
static void write_bmp(FILE *f, const picture *p, const uint8_t *pixels)
{
    int const start = 14 + 40 + 12, row = (2 * p->width + 3) / 4 * 4;
    fputs("BM", f);
    put(f, (uint32_t)(start + row * p->height), 4);
    put(f, 0, 4);
    put(f, (uint32_t)start, 4);
    put(f, 40, 4);
    put(f, (uint32_t)p->width, 4);
    put(f, (uint32_t)-p->height, 4);
    put(f, 1, 2);
    put(f, 16, 2);
    put(f, 3, 4); /* bit fields */
    for (int i = 0; i < 5; i++)
        put(f, 0, 4);
    put(f, 0xf800, 4);
    put(f, 0x07e0, 4);
    put(f, 0x001f, 4);
    int const big = p->format == RGB565_BIG;
    for (int y = 0; y < p->height; y++) {
        for (int x = 0; x < p->width; x++, pixels += 2) {
            fputc(pixels[big], f);
            fputc(pixels[!big], f);
        }
        put(f, 0, row - 2 * p->width);
    }
}

static void write_file(const char *path, const picture *p, const uint8_t *pixels)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        abort();
    if (bytes_of(p->format) == 2) {
        write_bmp(f, p, pixels);
    } else {
        fprintf(f, "P%d\n%d %d\n255\n", p->format == GREY ? 5 : 6, p->width, p->height);
        fwrite(pixels, (size_t)p->format, (size_t)p->height * (size_t)p->width, f);
    }
    if (fclose(f))
        abort();
}

/* ------------------------------------------------------------------ the program */

/** What qat-run makes of it: its digest, or 0 if it refuses the picture. */
static uint32_t expected_of(const qi_preprocessing *p, const picture *from, int number)
{
    static uint8_t pixels[3 * MOST_PIXELS];
    uint32_t state = (uint32_t)number, digest = 0;
    char path[32];
    qat_error err;
    size_t const n = (size_t)p->height * (size_t)p->width * (size_t)p->channels;
    uint8_t *values = calloc(n, 1);
    qat_image_size const size = {.height = p->height,
                                 .width = p->width,
                                 .channels = p->channels,
                                 .central_crop = p->central_crop / 1e6,
                                 .resize_short = p->resize_short,
                                 .order_bgr = p->channel_order == 2};
    if (!values)
        abort();
    fill(pixels, (size_t)(from->height * from->width * bytes_of(from->format)), &state);
    snprintf(path, sizeof path, "picture_%d", number);
    write_file(path, from, pixels);
    if (!qat_image_read(path, &size, values, &err))
        digest = digest_of(values, n);
    free(values);
    return digest;
}

static void print_program(const char *name, const qi_preprocessing *p)
{
    int const n = PICTURES;
    printf("#include \"%s.h\"\n\n#ifndef MEMORY_AND\n#define MEMORY_AND\n#endif\n\n"
           "static const int32_t pictures[%d][3] = {\n",
           name, n);
    for (int i = 0; i < n; i++)
        printf("    {%d, %d, %d},\n", pictures[i].height, pictures[i].width, pictures[i].format);
    printf("};\nstatic const uint32_t wanted[%d] = {\n", n);
    for (int i = 0; i < n; i++)
        printf("    0x%08xu,\n", (unsigned)expected_of(p, &pictures[i], i + 1));
    printf("};\n#ifdef WHOLE\nstatic uint8_t pixels[%d];\n#else\nstatic uint8_t pixels[%d];\n"
           "#endif\nstatic uint8_t in[%d];\n\n",
           3 * MOST_PIXELS, 3 * MOST_WIDTH, p->height * p->width * p->channels);
    printf("static void fill(uint8_t *to, uint32_t n, uint32_t *state)\n{\n"
           "    for (uint32_t i = 0; i < n; i++) {\n"
           "        *state = *state * 1664525u + 1013904223u;\n"
           "        to[i] = (uint8_t)(*state >> 24);\n    }\n}\n\n"
           "static uint32_t digest(void)\n{\n    uint32_t d = 2166136261u;\n"
           "    for (uint32_t i = 0; i < sizeof in; i++)\n        d = (d ^ in[i]) * 16777619u;\n"
           "    return d;\n}\n\n");
    printf("static int take(const int32_t *p, uint32_t state)\n{\n"
           "    uint32_t const bytes = (uint32_t)(p[1] * (p[2] == 4 ? 2 : p[2]));\n"
           "    int is_there = 0;\n"
           "#ifdef WHOLE\n    fill(pixels, bytes * (uint32_t)p[0], &state);\n"
           "    (void)is_there;\n"
           "    return %s_picture(MEMORY_AND pixels, p[0], p[1], p[2], in);\n#else\n"
           "    if (%s_picture_start(MEMORY_AND p[0], p[1], p[2]))\n        return -1;\n"
           "    for (int32_t y = 0; y < p[0]; y++) {\n        fill(pixels, bytes, &state);\n"
           "        is_there = %s_picture_row(MEMORY_AND pixels, in);\n    }\n"
           "    return is_there ? 0 : 1;\n#endif\n}\n\n",
           name, name, name);
    printf("int check_input(void);\nint check_input(void)\n{\n"
           "    for (int i = 0; i < %d; i++) {\n"
           "        int const status = take(pictures[i], (uint32_t)i + 1);\n"
           "        if (status != (wanted[i] ? 0 : -1) || (wanted[i] && digest() != wanted[i]))\n"
           "            return i + 1;\n    }\n    return 0;\n}\n",
           n);
}

int main(int argc, char **argv)
{
    qi_host *host = NULL;
    qat_error err;
    qi_host_options const options = {.limits = QI_NO_LIMITS};
    if (argc != 3) {
        fprintf(stderr, "usage: pictures MODEL.qm NAME\n");
        return 2;
    }
    if (qi_host_open(&host, argv[1], &options, &err) != QAT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    print_program(argv[2], qi_model_preprocessing(qi_host_model(host)));
    qi_host_close(host);
    return 0;
}

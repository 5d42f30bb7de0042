/**
 * draw_pictures FOLDER: writes a small data set of PNG files, FOLDER/train/CLASS/N.png and
 * FOLDER/val/CLASS/N.png. The pictures are in colour and have several sizes, none of them square.
 * The seven classes are kinds of stripes under noise; a small network confuses some of them. The
 * files are the same on every machine.
 */
#include <png.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

enum { CLASSES = 7, TRAIN = 24, TEST = 12, SIDE_MAX = 64 };

static const char *const names[CLASSES] = {"across", "apart",   "down",  "falling",
                                           "fine",   "leaning", "rising"};
/* Phase for each pixel to the right and down, in 256ths of a period. */
static const int steps[CLASSES][2] = {{0, 40}, {12, 12}, {40, 0},  {28, 28},
                                      {64, 9}, {36, 9},  {28, -28}};
static const int sizes[][2] = {{26, 40}, {34, 24}, {22, 31}, {47, 29}}; /* height, width */

/** A number in 0..n-1. */
static int draw(uint32_t *state, int n)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)((*state >> 8) % (uint32_t)n);
}

/** 0..255..0 over a period of 256. */
static int wave(int phase)
{
    int const p = phase & 255;
    return p < 128 ? 2 * p : 511 - 2 * p;
}

static void fill(uint8_t *pixels, int class, int height, int width, uint32_t *state)
{
    int const start = draw(state, 256), contrast = 40 + draw(state, 60), tint = draw(state, 3);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                int const phase = start + x * steps[class][0] + y * steps[class][1];
                int const value =
                    70 + wave(phase) * contrast / 255 + 25 * (c == tint) + draw(state, 90) - 45;
                *pixels++ = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
            }
}

static int write_picture(const char *path, int class, uint32_t seed)
{
    uint8_t pixels[SIDE_MAX * SIDE_MAX * 3];
    uint32_t state = seed;
    const int *size = sizes[draw(&state, (int)(sizeof sizes / sizeof *sizes))];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = PNG_FORMAT_RGB,
                       .height = (png_uint_32)size[0],
                       .width = (png_uint_32)size[1]};
    fill(pixels, class, size[0], size[1], &state);
    return png_image_write_to_file(&image, path, 0, pixels, 0, NULL);
}

static int write_class(const char *split, int class, int count, uint32_t seed)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", split, names[class]);
    (void)mkdir(path, 0777);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/%d.png", split, names[class], i);
        if (!write_picture(path, class, seed + (uint32_t)(1000 * class + i)))
            return fprintf(stderr, "draw_pictures: cannot write %s\n", path), 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const splits[] = {"train", "val"};
    static const int counts[] = {TRAIN, TEST};
    char path[512];
    if (argc != 2)
        return fprintf(stderr, "usage: draw_pictures FOLDER\n"), 2;
    (void)mkdir(argv[1], 0777);
    for (int s = 0; s < 2; s++) {
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], splits[s]);
        (void)mkdir(path, 0777);
        for (int class = 0; class < CLASSES; class ++)
            if (!write_class(path, class, counts[s], 7919u * (uint32_t)(s + 1)))
                return 1;
    }
    return 0;
}

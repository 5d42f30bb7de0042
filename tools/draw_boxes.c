#include "tools/draw_boxes.h"

#include "base/files/file.h"

#include "qat/dataset.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHANNELS = 3 };

/**
 * Colours that differ from each other and from most pictures; more classes start again at the
 * first.
 */
static const uint8_t colours[][CHANNELS] = {{0, 255, 0},   {255, 0, 255}, {255, 255, 0},
                                            {0, 255, 255}, {255, 64, 0},  {64, 96, 255}};

static const uint8_t *colour_of(int class)
{
    return colours[class % (int)(sizeof colours / sizeof *colours)];
}

/** Rows and columns of pixels, both ends included. */
struct frame {
    int top, left, bottom, right;
};

static int pixel_of(float share, int side)
{
    float const at = share * (float)side;
    return !(at >= 0) ? 0 : at >= (float)side ? side - 1 : (int)at;
}

static struct frame frame_of(const float *box, const qat_picture *p)
{
    return (struct frame){pixel_of(box[0], p->height), pixel_of(box[1], p->width),
                          pixel_of(box[2], p->height), pixel_of(box[3], p->width)};
}

static bool on_border(const struct frame *f, int y, int x, int thick)
{
    return y < f->top + thick || y > f->bottom - thick || x < f->left + thick ||
           x > f->right - thick;
}

static void draw_frame(const qat_picture *p, const struct frame *f, const uint8_t *colour)
{
    int const shorter = p->height < p->width ? p->height : p->width;
    int const thick = 1 + shorter / 200;
    for (int y = f->top; y <= f->bottom; y++)
        for (int x = f->left; x <= f->right; x++)
            if (on_border(f, y, x, thick))
                memcpy(p->pixels + ((size_t)y * (size_t)p->width + (size_t)x) * CHANNELS, colour,
                       CHANNELS);
}

/** Draw the worst boxes first, so that the best are on top. */
static void draw_all(const qat_detections *found, double least, const qat_picture *p)
{
    double const bound = least < 0 ? DRAW_LEAST_PERCENT / 100.0F : least;
    for (int i = found->rows - 1; i >= 0; i--) {
        if (!found->used[i] || !((double)found->scores[i] >= bound))
            continue;
        struct frame const f = frame_of(found->boxes + 4 * (size_t)i, p);
        draw_frame(p, &f, colour_of((int)found->classes[i]));
    }
}

/** palette: the colours of which the pixels are numbers; NULL: the pixels are RGB. */
static qat_status write_png(const qat_picture *p, const uint8_t *palette, unsigned n,
                            const char *path, qat_error *err)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = palette ? PNG_FORMAT_RGB_COLORMAP : PNG_FORMAT_RGB,
                       .colormap_entries = n,
                       .width = (png_uint_32)p->width,
                       .height = (png_uint_32)p->height};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *bytes = malloc(size);
    qat_status st;
    if (!bytes)
        st = qat_out_of_memory(err, path);
    else if (!png_image_write_to_memory(&image, bytes, &size, 0, p->pixels, 0, palette))
        st = qat_fail(err, QAT_ERR_IO, "%s: cannot write: %s", path, image.message);
    else
        st = qat_file_write_atomic(path, bytes, size, err);
    free(bytes);
    return st;
}

/** "dir/name.png" for "any/where/name.jpg". */
static qat_status path_of(char path[1024], const char *picture, const char *dir, qat_error *err)
{
    const char *slash = strrchr(picture, '/'), *name = slash ? slash + 1 : picture;
    const char *dot = strrchr(name, '.');
    int const n = snprintf(path, 1024, "%s/%.*s.png", dir,
                           dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
    return n > 0 && n < 1024 ? QAT_OK
                             : qat_fail(err, QAT_ERR_ARGUMENT, "%s: the path is too long", dir);
}

/* ------------------------------------------------------------------ what must not be lost */

struct draw_item {
    char *picture, *target;
};

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return !stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

qat_status draw_list_add(draw_list *l, const char *picture, const char *dir, qat_error *err)
{
    char path[1024];
    qat_status const st = path_of(path, picture, dir, err);
    if (st)
        return st;
    if (is_same_file(picture, path))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s would be overwritten by what is drawn: give another folder for --draw",
                        picture);
    struct draw_item *more = realloc(l->items, (l->n + 1) * sizeof *more);
    if (!more)
        return qat_out_of_memory(err, picture);
    l->items = more;
    struct draw_item *item = &more[l->n++];
    *item = (struct draw_item){strdup(picture), strdup(path)};
    return item->picture && item->target ? QAT_OK : qat_out_of_memory(err, picture);
}

static int by_target(const void *a, const void *b)
{
    return strcmp(((const struct draw_item *)a)->target, ((const struct draw_item *)b)->target);
}

qat_status draw_list_check(draw_list *l, qat_error *err)
{
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_target);
    for (size_t i = 1; i < l->n; i++)
        if (!by_target(&l->items[i - 1], &l->items[i]))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%.300s: two pictures would be drawn there, %.300s and %.300s",
                            l->items[i].target, l->items[i - 1].picture, l->items[i].picture);
    return QAT_OK;
}

void draw_list_free(draw_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].picture);
        free(l->items[i].target);
    }
    free(l->items);
    *l = (draw_list){0};
}

/* ------------------------------------------------------------------ boxes */

qat_status draw_boxes(const qat_detections *found, double least, const char *picture,
                      const char *dir, int max_pixels, qat_error *err)
{
    char path[1024];
    qat_picture p = {0};
    qat_status st = path_of(path, picture, dir, err);
    if (!st)
        st = qat_picture_read_within(&p, picture, CHANNELS, max_pixels, err);
    if (!st) {
        draw_all(found, least, &p);
        st = write_png(&p, NULL, 0, path, err);
    }
    free(p.pixels);
    return st;
}

/* ------------------------------------------------------------------ classes of pixels */

/** The mask in the picture's size, each pixel the nearest one's class. */
static qat_status spread(const int32_t *classes, int64_t height, int64_t width, qat_picture *p,
                         qat_error *err)
{
    uint8_t *to = malloc((size_t)p->height * (size_t)p->width);
    if (!to)
        return qat_out_of_memory(err, "a mask");
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++) {
            int64_t const from_y = (2 * y + 1) * height / (2 * (int64_t)p->height);
            int64_t const from_x = (2 * x + 1) * width / (2 * (int64_t)p->width);
            to[y * p->width + x] = (uint8_t)classes[from_y * width + from_x];
        }
    free(p->pixels);
    p->pixels = to;
    return QAT_OK;
}

qat_status draw_mask(const qi_model *model, const void *codes, const char *picture, const char *dir,
                     int max_pixels, qat_error *err)
{
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, 0));
    uint8_t palette[DRAW_CLASSES][CHANNELS] = {{0}}; /* class 0 is black */
    char path[1024];
    qat_picture p = {0};
    int32_t *classes = NULL;
    qat_status st = path_of(path, picture, dir, err);
    if (!st && t->dims[3] > DRAW_CLASSES)
        st = qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: %d classes, but a mask has at most %d", path,
                      (int)t->dims[3], DRAW_CLASSES);
    if (!st)
        st = qat_picture_read_within(&p, picture, CHANNELS, max_pixels, err);
    if (!st && !(classes = malloc((size_t)t->dims[1] * (size_t)t->dims[2] * sizeof *classes)))
        st = qat_out_of_memory(err, path);
    if (!st) {
        qat_pixels_of(model, codes, classes);
        st = spread(classes, t->dims[1], t->dims[2], &p, err);
    }
    for (int c = 1; c < DRAW_CLASSES; c++)
        memcpy(palette[c], colour_of(c - 1), CHANNELS);
    if (!st)
        st = write_png(&p, palette[0], DRAW_CLASSES, path, err);
    free(classes);
    free(p.pixels);
    return st;
}

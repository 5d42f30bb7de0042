/** Brings pictures to the size of a network: the resize and crop of docs/preprocessing.md. */
#include "datasets/pictures/image_filter.h"
#include "datasets/pictures/picture.h"
#include "infer/kernels/picture.h"
#include "qat/dataset.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 1 << 16 };

/* ------------------------------------------------------------------ bilinear */

/** Blend the rows between which an output row lies, at some columns. */
static void blend(const uint8_t *lower, const uint8_t *upper, const uint32_t weight[2],
                  const qk_between *columns, int n, int channels, uint8_t *to)
{
    for (int x = 0; x < n; x++) {
        const qk_between *h = &columns[x];
        size_t const a = (size_t)h->lower * (size_t)channels,
                     b = (size_t)h->upper * (size_t)channels;
        for (size_t k = 0; k < (size_t)channels; k++) {
            uint32_t const top = lower[a + k] * h->weight[0] + lower[b + k] * h->weight[1];
            uint32_t const bottom = upper[a + k] * h->weight[0] + upper[b + k] * h->weight[1];
            *to++ = qk_pixel_of(top * weight[0] + bottom * weight[1]);
        }
    }
}

/** As qk_picture_row does, of any number of channels, a strip of columns at a time. */
static void resize(const uint8_t *from, const qk_side *rows, const qk_side *columns, uint8_t *to,
                   int to_h, int to_w, int channels)
{
    enum { STRIP = 512 };
    qk_between pairs[STRIP];
    size_t const row = (size_t)columns->from * (size_t)channels;
    for (int x = 0; x < to_w; x += STRIP) {
        int const n = to_w - x < STRIP ? to_w - x : STRIP;
        for (int i = 0; i < n; i++)
            pairs[i] = qk_between_of(columns, x + i);
        for (int y = 0; y < to_h; y++) {
            qk_between const v = qk_between_of(rows, y);
            blend(from + (size_t)v.lower * row, from + (size_t)v.upper * row, v.weight, pairs, n,
                  channels, to + ((size_t)y * (size_t)to_w + (size_t)x) * (size_t)channels);
        }
    }
}

void qat_image_resize(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h, int to_w,
                      int channels)
{
    resize(from, &(qk_side){.from = from_h, .to = to_h}, &(qk_side){.from = from_w, .to = to_w}, to,
           to_h, to_w, channels);
}

/* ------------------------------------------------------------------ sizes */

static qk_picture settings_of(const qat_image_size *size)
{
    int const crop = (int)(size->central_crop * 1e6 + 0.5);
    return (qk_picture){.height = size->height,
                        .width = size->width,
                        .channels = size->channels,
                        .resize_short = size->central_crop > 0 ? 0 : size->resize_short,
                        .central_crop = size->central_crop > 0 && !crop ? 1 : crop};
}

static qat_status does_not_fit(const qat_image_size *size, const char *path, const qk_side *rows,
                               const qk_side *columns, qat_error *err)
{
    if (rows->to < size->height || columns->to < size->width)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: %d x %d with the short side at %d, too small for a crop of %d x %d",
                        path, (int)rows->to, (int)columns->to, size->resize_short, size->height,
                        size->width);
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: %d x %d pixels with the short side at %d, a side of more than %d", path,
                    (int)rows->from, (int)columns->from, size->resize_short, QK_MOST_RESIZED);
}

/** Cut the part out, in place, and resize it with prefiltering. */
static qat_status cut_and_filter(qat_picture *p, const char *path, const qk_picture *settings,
                                 const qk_side *rows, const qk_side *columns, uint8_t *values,
                                 qat_error *err)
{
    size_t const channels = (size_t)settings->channels, row = (size_t)columns->from * channels;
    for (int y = 0; y < rows->from; y++)
        memmove(p->pixels + (size_t)y * row,
                p->pixels +
                    ((size_t)(rows->begin + y) * (size_t)p->width + (size_t)columns->begin) *
                        channels,
                row);
    p->height = rows->from;
    p->width = columns->from;
    if (qat_image_resize_filtered(p->pixels, p->height, p->width, values, settings->height,
                                  settings->width, settings->channels))
        return QAT_OK;
    return qat_out_of_memory(err, path);
}

static void swap_red_blue(uint8_t *values, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, values += 3) {
        uint8_t const red = values[0];
        values[0] = values[2];
        values[2] = red;
    }
}

static qat_status check_size(const char *path, const qat_image_size *s, qat_error *err)
{
    if (s->channels != 1 && s->channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %d channels asked for, must be 1 or 3", path,
                        s->channels);
    if (s->height < 1 || s->width < 1 || s->height > MAX_SIDE || s->width > MAX_SIDE ||
        s->resize_short < 0 || s->resize_short > MAX_SIDE)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: size %d x %d (short side %d) asked for, must be in 1..%d", path,
                        s->height, s->width, s->resize_short, MAX_SIDE);
    if (!(s->central_crop >= 0.0 && s->central_crop <= 1.0))
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: a central crop of %g, must be in 0..1", path,
                        s->central_crop);
    return QAT_OK;
}

void qat_image_least(const qat_image_size *size, bool part, int *height, int *width)
{
    double const share = size->central_crop > 0 ? size->central_crop : 1;
    int const times = part ? 2 : 1;
    *height = *width = 0;
    if (!size->jpeg_scale)
        return;
    *height = (int)ceil(times * size->height / share);
    *width = (int)ceil(times * size->width / share);
    if (size->resize_short && !part && !(size->central_crop > 0))
        *height = *width = size->resize_short;
}

qat_status qat_image_fit(qat_picture *p, const char *path, const qat_image_size *size,
                         uint8_t *values, qat_error *err)
{
    qat_status st = check_size(path, size, err);
    if (st)
        return st;
    qk_side rows, columns;
    qk_picture const settings = settings_of(size);
    if (qk_picture_sides(&settings, p->height, p->width, &rows, &columns))
        return does_not_fit(size, path, &rows, &columns, err);
    if (settings.central_crop)
        st = cut_and_filter(p, path, &settings, &rows, &columns, values, err);
    else
        resize(p->pixels, &rows, &columns, values, size->height, size->width, size->channels);
    if (!st && size->order_bgr && size->channels == 3)
        swap_red_blue(values, (size_t)size->height * (size_t)size->width);
    return st;
}

qat_status qat_image_read(const char *path, const qat_image_size *size, uint8_t *values,
                          qat_error *err)
{
    qat_picture p = {0};
    int height = 0, width = 0;
    qat_status st = check_size(path, size, err);
    if (!st)
        qat_image_least(size, false, &height, &width);
    if (!st)
        st =
            qat_picture_read_scaled(&p, path, size->channels, size->max_pixels, height, width, err);
    if (!st)
        st = qat_image_fit(&p, path, size, values, err);
    free(p.pixels);
    return st;
}

qat_status qat_image_load(const char *path, int height, int width, int channels, int resize_short,
                          bool order_bgr, uint8_t *values, qat_error *err)
{
    qat_image_size const size = {.height = height,
                                 .width = width,
                                 .channels = channels,
                                 .resize_short = resize_short,
                                 .order_bgr = order_bgr};
    return qat_image_read(path, &size, values, err);
}

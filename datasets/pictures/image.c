/** Brings pictures to the size of a network: the resize and crop of docs/preprocessing.md. */
#include "datasets/pictures/image_filter.h"
#include "datasets/pictures/picture.h"
#include "qat/dataset.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FRACTION_BITS = 11, ONE = 1 << FRACTION_BITS };
enum { MAX_PIXELS = 1 << 28, MAX_SIDE = 1 << 16 };

/** The two input pixels of an output pixel: near * (ONE - weight) + far * weight. */
typedef struct tap {
    int near, far, weight;
} tap;

/**
 * Half-pixel centres: output pixel i of `to` has its centre at (i + 1/2) from / to - 1/2 in the
 * input, which is n / 2to with n = (2i + 1) from - to. The floor of this is the near pixel. The
 * rest, rounded to 11 bits (half up), is the weight of the far pixel. Both stay inside the picture.
 */
static tap tap_of(int i, int from, int to)
{
    int64_t const n = (2 * (int64_t)i + 1) * from - to;
    int64_t const two_to = 2 * (int64_t)to;
    if (n <= 0)
        return (tap){0, 0, 0};
    int const near = (int)(n / two_to);
    if (near >= from - 1)
        return (tap){from - 1, from - 1, 0};
    int const weight = (int)((n % two_to * ONE + to) / two_to);
    return (tap){near, near + 1, weight};
}

void qat_image_resize(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h, int to_w,
                      int channels)
{
    size_t const stride = (size_t)from_w * (size_t)channels;
    for (int y = 0; y < to_h; y++) {
        tap const v = tap_of(y, from_h, to_h);
        const uint8_t *top = from + (size_t)v.near * stride;
        const uint8_t *bottom = from + (size_t)v.far * stride;
        for (int x = 0; x < to_w; x++) {
            tap const h = tap_of(x, from_w, to_w);
            const uint8_t *a = top + (size_t)h.near * (size_t)channels;
            const uint8_t *b = top + (size_t)h.far * (size_t)channels;
            const uint8_t *c = bottom + (size_t)h.near * (size_t)channels;
            const uint8_t *d = bottom + (size_t)h.far * (size_t)channels;
            for (int k = 0; k < channels; k++) {
                int const upper = a[k] * (ONE - h.weight) + b[k] * h.weight;
                int const lower = c[k] * (ONE - h.weight) + d[k] * h.weight;
                int const sum = upper * (ONE - v.weight) + lower * v.weight; /* < 2^30 */
                *to++ = (uint8_t)((sum + (1 << (2 * FRACTION_BITS - 1))) >> (2 * FRACTION_BITS));
            }
        }
    }
}

/* ------------------------------------------------------------------ sizes */

/** The size at which the short side is `shorter`; the long side is rounded half up. */
static void fit_short(int h, int w, int shorter, int64_t *to_h, int64_t *to_w)
{
    int64_t const least = h < w ? h : w, most = h < w ? w : h;
    int64_t const longer = (2 * most * shorter + least) / (2 * least);
    *to_h = h <= w ? shorter : longer;
    *to_w = h <= w ? longer : shorter;
}

/** to may be from. */
static void crop_centre(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h,
                        int to_w, int channels)
{
    size_t const row = (size_t)to_w * (size_t)channels;
    int const top = (from_h - to_h) / 2, left = (from_w - to_w) / 2;
    for (int y = 0; y < to_h; y++)
        memmove(to + (size_t)y * row,
                from + ((size_t)(top + y) * (size_t)from_w + (size_t)left) * (size_t)channels, row);
}

static qat_status resize_and_crop(const qat_picture *p, const char *path, int height, int width,
                                  int channels, int resize_short, uint8_t *values, qat_error *err)
{
    int64_t h, w;
    fit_short(p->height, p->width, resize_short, &h, &w);
    if (h < height || w < width)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "%s: %lld x %lld with the short side at %d, too small for a crop of %d x %d", path,
            (long long)h, (long long)w, resize_short, height, width);
    if (h > MAX_PIXELS / w)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: resized to %lld x %lld pixels, more than %d",
                        path, (long long)h, (long long)w, MAX_PIXELS);
    uint8_t *resized = malloc((size_t)h * (size_t)w * (size_t)channels);
    if (!resized)
        return qat_out_of_memory(err, path);
    qat_image_resize(p->pixels, p->height, p->width, resized, (int)h, (int)w, channels);
    crop_centre(resized, (int)h, (int)w, values, height, width, channels);
    free(resized);
    return QAT_OK;
}

static void swap_red_blue(uint8_t *values, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, values += 3) {
        uint8_t const red = values[0];
        values[0] = values[2];
        values[2] = red;
    }
}

/** A share of a side, rounded half up. */
static int share_of(double side, double share)
{
    int const pixels = (int)(side * share + 0.5);
    return pixels > 0 ? pixels : 1;
}

/**
 * Crop to the middle share of the largest centred rectangle with the aspect of `size`, in place.
 */
static void crop_share(qat_picture *p, const qat_image_size *size)
{
    double const h = p->height, w = p->width, ratio = (double)size->width / size->height;
    int const height = share_of(w > h * ratio ? h : w / ratio, size->central_crop);
    int const width = share_of(w > h * ratio ? h * ratio : w, size->central_crop);
    crop_centre(p->pixels, p->height, p->width, p->pixels, height, width, size->channels);
    p->height = height;
    p->width = width;
}

/** Crop the middle of the picture, and resize it with prefiltering. */
static qat_status crop_and_filter(qat_picture *p, const char *path, const qat_image_size *size,
                                  uint8_t *values, qat_error *err)
{
    crop_share(p, size);
    if (qat_image_resize_filtered(p->pixels, p->height, p->width, values, size->height, size->width,
                                  size->channels))
        return QAT_OK;
    return qat_out_of_memory(err, path);
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
    int const height = size->height, width = size->width, channels = size->channels;
    qat_status st = check_size(path, size, err);
    if (st)
        return st;
    if (size->central_crop > 0.0)
        st = crop_and_filter(p, path, size, values, err);
    else if (size->resize_short)
        st = resize_and_crop(p, path, height, width, channels, size->resize_short, values, err);
    else
        qat_image_resize(p->pixels, p->height, p->width, values, height, width, channels);
    if (!st && size->order_bgr && channels == 3)
        swap_red_blue(values, (size_t)height * (size_t)width);
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

/** Reads picture files: finds the format, checks sizes, brings pictures to 1 or 3 channels. */
#include "datasets/pictures/picture.h"

#include "base/files/file.h"
#include "infer/kernels/picture.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 30 };

/* ------------------------------------------------------------------ for the readers */

qat_status qat_picture_truncated(const qat_picture_file *file, qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: truncated, the file ends before the picture does (%zu bytes)", file->path,
                    file->count);
}

qat_status qat_picture_broken(const qat_picture_file *file, const char *name, const char *what,
                              qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT, "%s: broken %s (%s)", file->path, name, what);
}

qat_status qat_picture_set_size(qat_picture *p, const qat_picture_file *file, int64_t height,
                                int64_t width, qat_error *err)
{
    if (height < 1 || width < 1 || height > QAT_PICTURE_MAX_SIDE || width > QAT_PICTURE_MAX_SIDE)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %lld x %lld pixels; a side must be in 1..%d",
                        file->path, (long long)height, (long long)width, QAT_PICTURE_MAX_SIDE);
    if (height * width > file->max_pixels)
        return qat_fail(
            err, QAT_ERR_FORMAT, "%s: %lld x %lld pixels, more than the %lld allowed (max_pixels)",
            file->path, (long long)height, (long long)width, (long long)file->max_pixels);
    p->height = (int)height;
    p->width = (int)width;
    return QAT_OK;
}

qat_status qat_picture_allocate(qat_picture *p, const qat_picture_file *file, int stored_channels,
                                int64_t least_bytes, qat_error *err)
{
    int const channels = stored_channels > file->channels ? stored_channels : file->channels;
    if ((uint64_t)file->count < (uint64_t)least_bytes)
        return qat_picture_truncated(file, err);
    p->pixels = malloc((size_t)p->height * (size_t)p->width * (size_t)channels);
    return p->pixels ? QAT_OK : qat_out_of_memory(err, file->path);
}

void qat_picture_set_channels(qat_picture *p, int stored_channels, int channels)
{
    size_t const n = (size_t)p->height * (size_t)p->width;
    uint8_t *v = p->pixels;
    if (stored_channels == 3 && channels == 1) {
        for (size_t i = 0; i < n; i++)
            v[i] = qk_luma(v + 3 * i);
    } else if (stored_channels == 1 && channels == 3) {
        for (size_t i = n; i-- > 0;)
            v[3 * i] = v[3 * i + 1] = v[3 * i + 2] = v[i];
    }
}

/* ------------------------------------------------------------------ files */

static qat_status check_wanted(const qat_picture_file *file, qat_error *err)
{
    if (file->channels != 1 && file->channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %d channels asked for, must be 1 or 3",
                        file->path, file->channels);
    if (file->max_pixels < 1 || file->max_pixels > QAT_PICTURE_MOST_PIXELS)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: a limit of %lld pixels, must be in 1..%d",
                        file->path, (long long)file->max_pixels, QAT_PICTURE_MOST_PIXELS);
    return QAT_OK;
}

qat_status qat_picture_decode(qat_picture *picture, const qat_picture_file *file, qat_error *err)
{
    *picture = (qat_picture){0};
    qat_status const st = check_wanted(file, err);
    if (st)
        return st;
    if (file->count == 0)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: empty file", file->path);
    const qat_picture_format *format = qat_picture_format_of(file->bytes, file->count);
    return format ? format->read(picture, file, err) : qat_picture_unknown(file, err);
}

qat_status qat_picture_read_scaled(qat_picture *picture, const char *path, int channels,
                                   int max_pixels, int least_height, int least_width,
                                   qat_error *err)
{
    qat_picture_file file = {.path = path,
                             .channels = channels,
                             .least_height = least_height,
                             .least_width = least_width,
                             .max_pixels = max_pixels ? max_pixels : QAT_PICTURE_MAX_PIXELS};
    uint8_t *bytes;
    *picture = (qat_picture){0};
    qat_status st = qat_file_read(path, MAX_FILE_BYTES, &bytes, &file.count, err);
    file.bytes = bytes;
    if (!st)
        st = qat_picture_decode(picture, &file, err);
    free(bytes);
    return st;
}

qat_status qat_picture_read_within(qat_picture *picture, const char *path, int channels,
                                   int max_pixels, qat_error *err)
{
    return qat_picture_read_scaled(picture, path, channels, max_pixels, 0, 0, err);
}

qat_status qat_mask_read(qat_picture *mask, const char *path, int max_pixels, qat_error *err)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    qat_picture_file file = {.path = path,
                             .channels = 1,
                             .max_pixels = max_pixels ? max_pixels : QAT_PICTURE_MAX_PIXELS};
    uint8_t *bytes;
    *mask = (qat_picture){0};
    qat_status st = qat_file_read(path, MAX_FILE_BYTES, &bytes, &file.count, err);
    file.bytes = bytes;
    if (!st)
        st = check_wanted(&file, err);
    if (!st && (file.count < sizeof png || memcmp(bytes, png, sizeof png) != 0))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: not a PNG, as masks are", path);
    if (!st)
        st = qat_picture_read_png_mask(mask, &file, err);
    free(bytes);
    return st;
}

qat_status qat_picture_read(qat_picture *picture, const char *path, int channels, qat_error *err)
{
    return qat_picture_read_within(picture, path, channels, 0, err);
}

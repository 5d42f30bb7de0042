/**
 * Pictures with masks: path/train/images/<name>.<ending> with path/train/masks/<name>.png, and
 * path/val or path/test in the same form. A mask's pixels are numbers of classes: indices of a
 * palette, or grey. Pictures and masks are read when the set is opened; a picture is resized
 * bilinearly, its mask to the nearest pixel:
 *
 *     class(y, x) = stored(floor((y + 1/2) stored height / height), likewise x)
 */
#include "datasets/pictures/picture.h"
#include "datasets/readers/files.h"
#include "datasets/readers/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MASK_VALUES = 256, DEFAULT_IGNORE = 255 };

/** What all samples of a set are read with. */
typedef struct reading {
    const char *images, *masks; /* folders */
    int classes;                /* all below this */
    int ignore;                 /* the value that is not known; -1: none */
    int largest;                /* class so far */
    int max_pixels;
} reading;

static qat_status check_options(const qat_dataset_options *o, qat_error *err)
{
    if (o->classes > MASK_VALUES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: classes %d, but masks have at most %d",
                        o->classes, MASK_VALUES);
    if (o->resize_short || o->central_crop > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: %s would cut off a part of the pictures, but not of their masks",
                        o->resize_short ? "resize_short" : "central_crop");
    return QAT_OK;
}

/** "masks/name.png" of "name.jpg", in the arena. */
static const char *mask_of(qat_arena *arena, const char *masks, const char *picture)
{
    const char *dot = strrchr(picture, '.');
    int const stem = dot ? (int)(dot - picture) : (int)strlen(picture);
    size_t const bytes = strlen(masks) + (size_t)stem + sizeof "/.png";
    char *path = qat_arena_take(arena, bytes);
    if (path)
        (void)snprintf(path, bytes, "%s/%.*s.png", masks, stem, picture);
    return path;
}

/** Keep the mask, resized, as targets. */
static qat_status keep_mask(const qat_dataset *d, reading *r, const char *path,
                            const qat_picture *mask, float *targets, qat_error *err)
{
    int64_t const height = d->info.height, width = d->info.width;
    for (int y = 0; y < mask->height; y++)
        for (int x = 0; x < mask->width; x++) {
            int const v = mask->pixels[(size_t)y * (size_t)mask->width + (size_t)x];
            if (v != r->ignore && v >= r->classes)
                return qat_fail(err, QAT_ERR_FORMAT,
                                "%s: class %d of the pixel in row %d, column %d is not in 0..%d%s",
                                path, v, y, x, r->classes - 1,
                                r->ignore < 0 ? "" : ", and not data.ignore");
            if (v != r->ignore && v > r->largest)
                r->largest = v;
        }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t const from_y = (2 * y + 1) * mask->height / (2 * height);
            int64_t const from_x = (2 * x + 1) * mask->width / (2 * width);
            int const v = mask->pixels[from_y * mask->width + from_x];
            if (v != r->ignore) /* targets are NaN so far */
                targets[y * width + x] = (float)v;
        }
    return QAT_OK;
}

static qat_status read_sample(qat_dataset *d, reading *r, const char *name, int i, qat_error *err)
{
    const qat_dataset_info *info = &d->info;
    qat_picture picture = {0}, mask = {0};
    const char *path = qat_dataset_join(&d->arena, r->images, name);
    const char *mask_path = mask_of(&d->arena, r->masks, name);
    if (!path || !mask_path)
        return qat_out_of_memory(err, r->images);
    qat_status st = qat_picture_read_within(&picture, path, info->channels, r->max_pixels, err);
    if (!st)
        st = qat_mask_read(&mask, mask_path, r->max_pixels, err);
    if (!st && (mask.height != picture.height || mask.width != picture.width))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %d x %d pixels, but its picture %s has %d x %d",
                      mask_path, mask.height, mask.width, path, picture.height, picture.width);
    if (!st) {
        qat_image_resize(picture.pixels, picture.height, picture.width,
                         (uint8_t *)d->values + (size_t)i * d->sample_bytes, info->height,
                         info->width, info->channels);
        d->labels[i] = 0;
        st = keep_mask(d, r, mask_path, &mask, d->targets + (size_t)i * (size_t)info->n_targets,
                       err);
    }
    free(picture.pixels);
    free(mask.pixels);
    return st;
}

/** Read `count` of the pictures, spread evenly over all. */
static qat_status read_samples(qat_dataset *d, const qat_dataset_options *o, reading *r,
                               const qat_names *pictures, qat_error *err)
{
    int const count = d->info.count;
    qat_status st = qat_files_set_shape(d, o, err);
    if (!st)
        st = qat_dataset_allocate(d, err);
    if (!st)
        st = qat_dataset_allocate_values(d, QAT_TARGETS_PIXELS,
                                         (size_t)d->info.height * (size_t)d->info.width, err);
    for (int i = 0; i < count && !st; i++)
        st = read_sample(d, r, pictures->at[(int64_t)i * pictures->count / count], i, err);
    return st;
}

static qat_status masks_open(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                             qat_error *err)
{
    const char *folder = NULL;
    qat_names pictures = {0};
    reading r = {.classes = o->classes ? o->classes : MASK_VALUES,
                 .ignore = o->ignore > 0   ? o->ignore - 1
                           : o->ignore < 0 ? -1
                                           : DEFAULT_IGNORE,
                 .max_pixels = o->max_pixels};
    qat_status st = check_options(o, err);
    if (!st)
        st = qat_folder_of_split(d, o->path, "images and masks are in", o->split > 0, split,
                                 &folder, err);
    if (st)
        return st;
    r.images = qat_dataset_join(&d->arena, folder, "images");
    r.masks = qat_dataset_join(&d->arena, folder, "masks");
    if (!r.images || !r.masks)
        return qat_out_of_memory(err, folder);
    st = qat_folder_list(&d->arena, r.images, qat_picture_has_ending, &pictures, &d->ignored, err);
    if (!st && !pictures.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: no pictures (%s)", r.images, qat_picture_endings);
    if (st)
        return st;
    d->info.count = qat_dataset_limit(pictures.count, qat_split_count(o, split));
    st = read_samples(d, o, &r, &pictures, err);
    d->info.classes = o->classes ? o->classes : r.largest + 1;
    return st ? st : qat_files_class_names(d, o->path, "classes.txt", err);
}

const qat_dataset_kind qat_kind_masks = {.name = "masks",
                                         .needs_path = true,
                                         .resizes = true,
                                         .open = masks_open,
                                         .get = qat_dataset_get_kept,
                                         .splits = true};

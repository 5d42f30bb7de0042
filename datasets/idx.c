/**
 * IDX files, the format of MNIST and its successors, plain or gzip. All numbers are big-endian:
 *
 *     images  0 magic 0x00000803   4 count   8 height   12 width   16 pixels, u8
 *     labels  0 magic 0x00000801   4 count   8 labels, u8
 */
#include "base/file.h"
#include "datasets/dataset_kind.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES_MAGIC = 0x803, LABELS_MAGIC = 0x801, IMAGES_HEADER = 16, LABELS_HEADER = 8 };

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

typedef struct idx_file {
    const char *path;
    uint8_t *bytes;
    size_t length;
} idx_file;

/** Read a file, check its magic number, and check that it contains its whole header. */
static qat_status idx_read(idx_file *f, qat_dataset *dataset, const char *folder, const char *name,
                           uint32_t magic, size_t header, qat_error *err)
{
    qat_status st = qat_dataset_find(dataset, folder, name, &f->path, err);
    if (!st)
        st = qat_file_read(f->path, SIZE_MAX / 4, &f->bytes, &f->length, err);
    if (st)
        return st;
    if (f->length >= 4 && big_endian(f->bytes) != magic)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: magic number 0x%08x, expected 0x%08x (IDX, %s)",
                        f->path, big_endian(f->bytes), magic,
                        magic == IMAGES_MAGIC ? "u8 images" : "u8 labels");
    if (f->length < header)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated: %zu bytes are less than the header",
                        f->path, f->length);
    return QAT_OK;
}

/** Check that the length is header + items. */
static qat_status check_length(const idx_file *f, uint64_t items, size_t header, qat_error *err)
{
    uint64_t const found = f->length - header;
    if (found == items)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT, "%s: %s, the header says %llu bytes of data, found %llu",
                    f->path, found < items ? "truncated" : "too long", (unsigned long long)items,
                    (unsigned long long)found);
}

static qat_status check_images(qat_dataset *dataset, const idx_file *f, qat_error *err)
{
    int64_t const count = big_endian(f->bytes + 4);
    int64_t const hwc[3] = {big_endian(f->bytes + 8), big_endian(f->bytes + 12), 1};
    qat_status st = qat_dataset_set_shape(dataset, f->path, count, hwc, QAT_SAMPLE_U8, err);
    if (st)
        return st;
    return check_length(f, (uint64_t)count * dataset->sample_bytes, IMAGES_HEADER, err);
}

static int64_t label_at(const void *labels, int64_t index)
{
    return ((const uint8_t *)labels)[index];
}

static qat_status check_labels(qat_dataset *dataset, const idx_file *f, const char *images,
                               int classes, qat_error *err)
{
    uint32_t const count = big_endian(f->bytes + 4);
    qat_status st = check_length(f, count, LABELS_HEADER, err);
    if (!st && count != (uint32_t)dataset->info.count)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s holds %u labels, but %s holds %d images", f->path,
                      count, images, dataset->info.count);
    if (!st)
        st = qat_dataset_set_classes(dataset, f->path, f->bytes + LABELS_HEADER, label_at, count,
                                     classes, err);
    return st;
}

static qat_status keep(qat_dataset *dataset, const idx_file *images, const idx_file *labels,
                       int limit, qat_error *err)
{
    dataset->info.count = qat_dataset_limit(dataset->info.count, limit);
    qat_status st = qat_dataset_allocate(dataset, err);
    if (st)
        return st;
    size_t const count = (size_t)dataset->info.count;
    memcpy(dataset->values, images->bytes + IMAGES_HEADER, count * dataset->sample_bytes);
    for (size_t i = 0; i < count; i++)
        dataset->labels[i] = labels->bytes[LABELS_HEADER + i];
    return QAT_OK;
}

static qat_status idx_open(qat_dataset *dataset, const qat_dataset_options *options,
                           qat_split split, qat_error *err)
{
    bool const train = split == QAT_SPLIT_TRAIN;
    idx_file images = {0}, labels = {0};
    qat_status st = idx_read(&images, dataset, options->path,
                             train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte",
                             IMAGES_MAGIC, IMAGES_HEADER, err);
    if (!st)
        st = idx_read(&labels, dataset, options->path,
                      train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", LABELS_MAGIC,
                      LABELS_HEADER, err);
    if (!st)
        st = check_images(dataset, &images, err);
    if (!st)
        st = check_labels(dataset, &labels, images.path, options->classes, err);
    if (!st)
        st = keep(dataset, &images, &labels, qat_split_count(options, split), err);
    free(images.bytes);
    free(labels.bytes);
    return st;
}

const qat_dataset_kind qat_kind_idx = {
    .name = "idx", .needs_path = true, .open = idx_open, .get = qat_dataset_get_kept};

/**
 * IDX files, the format of MNIST and its successors, plain or gzip. All numbers are big-endian:
 *
 *     images  0 magic 0x00000803   4 count   8 height   12 width   16 pixels, u8
 *     labels  0 magic 0x00000801   4 count   8 labels, u8
 */
#include "base/files/file.h"
#include "datasets/dataset_kind.h"
#include "datasets/readers/files.h"

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

/** Check that the length is header + items. */
static qat_status check_length(const idx_file *f, uint64_t length, uint64_t items, size_t header,
                               qat_error *err)
{
    uint64_t const found = length - header;
    if (found == items)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT, "%s: %s, the header says %llu bytes of data, found %llu",
                    f->path, found < items ? "truncated" : "too long", (unsigned long long)items,
                    (unsigned long long)found);
}

/** Set the data set's shape from the header of the images; *items: bytes that follow it. */
static qat_status take_shape(qat_dataset *dataset, const idx_file *f, const uint8_t *start,
                             uint64_t *items, qat_error *err)
{
    int64_t const count = big_endian(start + 4);
    int64_t const hwc[3] = {big_endian(start + 8), big_endian(start + 12), 1};
    qat_status const st = qat_dataset_set_shape(dataset, f->path, count, hwc, QAT_SAMPLE_U8, err);
    *items = (uint64_t)count * dataset->sample_bytes;
    return st;
}

/** Check the start of a file, with its whole header; *items: bytes that follow it. */
static qat_status check_start(qat_dataset *dataset, const idx_file *f, const uint8_t *start,
                              const qat_file_look *look, uint32_t magic, size_t header,
                              uint64_t *items, qat_error *err)
{
    if (look->once)
        return qat_fail(err, QAT_ERR_IO, "%s: not a regular file", f->path);
    if (look->count >= 4 && big_endian(start) != magic)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: magic number 0x%08x, expected 0x%08x (IDX, %s)",
                        f->path, big_endian(start), magic,
                        magic == IMAGES_MAGIC ? "u8 images" : "u8 labels");
    if (look->count < header)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: truncated: %zu bytes are less than the header",
                        f->path, look->count);
    *items = magic == LABELS_MAGIC ? big_endian(start + 4) : 0;
    qat_status const st =
        magic == IMAGES_MAGIC ? take_shape(dataset, f, start, items, err) : QAT_OK;
    return st || !look->exact ? st : check_length(f, look->size, *items, header, err);
}

/**
 * Read a file after its header is checked: it must not be longer than the header says, and there
 * must be room for the file and for the samples, at most `limit`, that are copied from it.
 */
static qat_status idx_read(idx_file *f, qat_dataset *dataset, const char *folder, const char *name,
                           uint32_t magic, size_t header, int limit, qat_error *err)
{
    uint8_t start[IMAGES_HEADER];
    uint64_t items = 0;
    qat_file_look look;
    qat_status st = qat_dataset_find(dataset, folder, name, &f->path, err);
    if (!st)
        st = qat_file_look_at(f->path, start, header, &look, err);
    if (!st)
        st = check_start(dataset, f, start, &look, magic, header, &items, err);
    uint64_t const samples = (uint64_t)qat_dataset_limit(dataset->info.count, limit);
    uint64_t const kept = magic == IMAGES_MAGIC ? samples * dataset->sample_bytes : 0;
    if (!st)
        st = qat_dataset_hold(dataset, f->path, header + items + kept, err);
    if (!st)
        qat_dataset_release(dataset, header + items + kept);
    if (!st)
        st = qat_dataset_read(dataset, f->path, header + items, &f->bytes, &f->length, err);
    return st ? st : check_length(f, f->length, items, header, err);
}

static int64_t label_at(const void *labels, int64_t index)
{
    return ((const uint8_t *)labels)[index];
}

static qat_status check_labels(qat_dataset *dataset, const idx_file *f, const char *images,
                               int classes, qat_error *err)
{
    uint32_t const count = big_endian(f->bytes + 4);
    qat_status st = QAT_OK;
    if (count != (uint32_t)dataset->info.count)
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
    int const limit = qat_split_count(options, split);
    idx_file images = {0}, labels = {0};
    qat_status st = idx_read(&images, dataset, options->path,
                             train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte",
                             IMAGES_MAGIC, IMAGES_HEADER, limit, err);
    if (!st)
        st = idx_read(&labels, dataset, options->path,
                      train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", LABELS_MAGIC,
                      LABELS_HEADER, limit, err);
    if (!st)
        st = check_labels(dataset, &labels, images.path, options->classes, err);
    if (!st)
        st = keep(dataset, &images, &labels, limit, err);
    if (!st)
        st = qat_files_class_names(dataset, options->path, "classes.txt", err);
    free(images.bytes);
    free(labels.bytes);
    qat_dataset_release(dataset, images.length + labels.length);
    return st;
}

const qat_dataset_kind qat_kind_idx = {
    .name = "idx", .needs_path = true, .open = idx_open, .get = qat_dataset_get_kept};

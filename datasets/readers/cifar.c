/**
 * The binary versions of CIFAR, plain or gzip. A file is a sequence of records:
 *
 *     label bytes, of which the last is the class   red plane, 32 x 32   green plane   blue plane
 *
 * A file of class names, one per line, is optional.
 */
#include "base/files/file.h"
#include "datasets/readers/files.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    MAX_BATCHES = 99,
};

typedef struct cifar {
    const char *title;
    size_t label_bytes;
    int classes;
    bool numbered; /* TRAIN_1.bin and so on, as many as there are; otherwise TRAIN.bin */
    const char *train, *test, *names;
} cifar;

static size_t record_bytes(const cifar *kind)
{
    return kind->label_bytes + 3 * PLANE;
}

static int class_of(const cifar *kind, const uint8_t *record)
{
    return record[kind->label_bytes - 1];
}

typedef struct batch_file {
    const char *path;
    uint8_t *bytes;
    size_t length, records;
} batch_file;

static qat_status read_batch(const cifar *kind, qat_dataset *dataset, batch_file *f, qat_error *err)
{
    size_t length;
    size_t const record = record_bytes(kind);
    qat_status st = qat_dataset_read(dataset, f->path, SIZE_MAX / 4, &f->bytes, &length, err);
    f->length = length;
    if (st)
        return st;
    if (length == 0 || length % record)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: truncated or not a %s file: %zu bytes are not a multiple of the "
                        "record size %zu",
                        f->path, kind->title, length, record);
    f->records = length / record;
    for (size_t i = 0; i < f->records && !st; i++)
        st = qat_dataset_check_label(f->path, (int64_t)i, class_of(kind, f->bytes + i * record),
                                     kind->classes, err);
    return st;
}

/**
 * Read every file of the split. *count is set also on failure, because these files must be freed.
 * Numbered files end before the first number that is missing; the first one must exist.
 */
static qat_status read_split(const cifar *kind, qat_dataset *dataset, const char *folder,
                             qat_split split, batch_file *files, int *count, qat_error *err)
{
    const char *base = split == QAT_SPLIT_TRAIN ? kind->train : kind->test;
    bool const numbered = split == QAT_SPLIT_TRAIN && kind->numbered;
    char name[32];
    qat_status st = QAT_OK;
    (void)snprintf(name, sizeof name, "%s.bin", base);
    for (*count = 0; !st && *count < (numbered ? MAX_BATCHES : 1); ++*count) {
        batch_file *f = &files[*count];
        if (numbered)
            (void)snprintf(name, sizeof name, "%s_%d.bin", base, *count + 1);
        st = qat_dataset_find(dataset, folder, name, &f->path, err);
        if (st == QAT_ERR_IO && *count > 0)
            return QAT_OK;
        if (!st)
            st = read_batch(kind, dataset, f, err);
    }
    return st;
}

/** Convert planes to interleaved pixels. */
static void take_planes(const uint8_t *planes, uint8_t *values)
{
    for (int p = 0; p < PLANE; p++) {
        for (int c = 0; c < 3; c++)
            values[3 * p + c] = planes[c * PLANE + p];
    }
}

static qat_status keep(const cifar *kind, qat_dataset *dataset, const batch_file *files,
                       int file_count, int limit, qat_error *err)
{
    int64_t const hwc[3] = {SIDE, SIDE, 3};
    int64_t count = 0;
    for (int f = 0; f < file_count; f++)
        count += (int64_t)files[f].records;
    qat_status st = qat_dataset_set_shape(dataset, files[0].path, count, hwc, QAT_SAMPLE_U8, err);
    if (st)
        return st;
    dataset->info.count = qat_dataset_limit((int)count, limit);
    dataset->info.classes = kind->classes;
    st = qat_dataset_allocate(dataset, err);
    int taken = 0;
    for (int f = 0; f < file_count && !st; f++) {
        for (size_t i = 0; i < files[f].records && taken < dataset->info.count; i++, taken++) {
            const uint8_t *record = files[f].bytes + i * record_bytes(kind);
            dataset->labels[taken] = class_of(kind, record);
            take_planes(record + kind->label_bytes,
                        (uint8_t *)dataset->values + (size_t)taken * dataset->sample_bytes);
        }
    }
    return st;
}

static qat_status open_kind(const cifar *kind, qat_dataset *dataset,
                            const qat_dataset_options *options, qat_split split, qat_error *err)
{
    batch_file files[MAX_BATCHES] = {{0}};
    int count;
    qat_status st = read_split(kind, dataset, options->path, split, files, &count, err);
    if (!st)
        st = keep(kind, dataset, files, count, qat_split_count(options, split), err);
    for (int f = 0; f < count; f++) {
        free(files[f].bytes);
        qat_dataset_release(dataset, files[f].length);
    }
    if (!st)
        st = qat_files_class_names(dataset, options->path, kind->names, err);
    return st;
}

static qat_status cifar10_open(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_split split, qat_error *err)
{
    static const cifar kind = {.title = "CIFAR-10",
                               .label_bytes = 1,
                               .classes = 10,
                               .numbered = true,
                               .train = "data_batch",
                               .test = "test_batch",
                               .names = "batches.meta.txt"};
    return open_kind(&kind, dataset, options, split, err);
}

const qat_dataset_kind qat_kind_cifar10 = {
    .name = "cifar10", .needs_path = true, .open = cifar10_open, .get = qat_dataset_get_kept};

/** A record has the number of its superclass, which is not used, before that of its class. */
static qat_status cifar100_open(qat_dataset *dataset, const qat_dataset_options *options,
                                qat_split split, qat_error *err)
{
    static const cifar kind = {.title = "CIFAR-100",
                               .label_bytes = 2,
                               .classes = 100,
                               .train = "train",
                               .test = "test",
                               .names = "fine_label_names.txt"};
    return open_kind(&kind, dataset, options, split, err);
}

const qat_dataset_kind qat_kind_cifar100 = {
    .name = "cifar100", .needs_path = true, .open = cifar100_open, .get = qat_dataset_get_kept};

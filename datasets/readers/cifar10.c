/**
 * CIFAR-10's binary version, plain or gzip: data_batch_1.bin, data_batch_2.bin and so on, and
 * test_batch.bin. A file is a sequence of records:
 *
 *     0 label, 0..9   1 red plane, 32 x 32   1025 green plane   2049 blue plane   (3073 bytes)
 *
 * batches.meta.txt is optional. It has the ten class names, one per line.
 */
#include "base/files/file.h"
#include "datasets/readers/files.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, CLASSES = 10, MAX_BATCHES = 99 };
enum { META_MAX = 4096 };

typedef struct batch_file {
    const char *path;
    uint8_t *bytes;
    size_t length, records;
} batch_file;

static qat_status read_batch(qat_dataset *dataset, batch_file *f, qat_error *err)
{
    size_t length;
    qat_status st = qat_dataset_read(dataset, f->path, SIZE_MAX / 4, &f->bytes, &length, err);
    f->length = length;
    if (st)
        return st;
    if (length == 0 || length % RECORD)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: truncated or not a CIFAR-10 file: %zu bytes are not a multiple of the "
                        "record size %d",
                        f->path, length, RECORD);
    f->records = length / RECORD;
    for (size_t i = 0; i < f->records && !st; i++)
        st = qat_dataset_check_label(f->path, (int64_t)i, f->bytes[i * RECORD], CLASSES, err);
    return st;
}

/**
 * Read every file of the split. *count is set also on failure, because these files must be freed.
 * The training set ends before the first data_batch that is missing; the first one must exist.
 */
static qat_status read_split(qat_dataset *dataset, const char *folder, qat_split split,
                             batch_file *files, int *count, qat_error *err)
{
    bool const train = split == QAT_SPLIT_TRAIN;
    char name[32] = "test_batch.bin";
    qat_status st = QAT_OK;
    for (*count = 0; !st && *count < (train ? MAX_BATCHES : 1); ++*count) {
        batch_file *f = &files[*count];
        if (train)
            (void)snprintf(name, sizeof name, "data_batch_%d.bin", *count + 1);
        st = qat_dataset_find(dataset, folder, name, &f->path, err);
        if (st == QAT_ERR_IO && *count > 0)
            return QAT_OK;
        if (!st)
            st = read_batch(dataset, f, err);
    }
    return st;
}

/** Convert planes to interleaved pixels. */
static void take_record(const uint8_t *record, uint8_t *values, int32_t *label)
{
    *label = record[0];
    for (int p = 0; p < PLANE; p++) {
        for (int c = 0; c < 3; c++)
            values[3 * p + c] = record[1 + c * PLANE + p];
    }
}

static qat_status keep(qat_dataset *dataset, const batch_file *files, int file_count, int limit,
                       qat_error *err)
{
    int64_t const hwc[3] = {SIDE, SIDE, 3};
    int64_t count = 0;
    for (int f = 0; f < file_count; f++)
        count += (int64_t)files[f].records;
    qat_status st = qat_dataset_set_shape(dataset, files[0].path, count, hwc, QAT_SAMPLE_U8, err);
    if (st)
        return st;
    dataset->info.count = qat_dataset_limit((int)count, limit);
    dataset->info.classes = CLASSES;
    st = qat_dataset_allocate(dataset, err);
    int taken = 0;
    for (int f = 0; f < file_count && !st; f++) {
        for (size_t i = 0; i < files[f].records && taken < dataset->info.count; i++, taken++)
            take_record(files[f].bytes + i * RECORD,
                        (uint8_t *)dataset->values + (size_t)taken * dataset->sample_bytes,
                        &dataset->labels[taken]);
    }
    return st;
}

/** Cut text into its lines, without empty ones. Returns their number, at most max. */
static int split_lines(char *text, const char **lines, int max)
{
    int count = 0;
    for (char *at = text; *at && count < max;) {
        size_t const length = strcspn(at, "\r\n");
        bool const last = at[length] == '\0';
        at[length] = '\0';
        if (length)
            lines[count++] = at;
        at += length + !last;
    }
    return count;
}

static qat_status read_labels(qat_dataset *dataset, const char *folder, qat_error *err)
{
    const char **labels = qat_arena_array(&dataset->arena, CLASSES + 1, sizeof *labels);
    char *path = qat_dataset_join(&dataset->arena, folder, "batches.meta.txt");
    if (!labels || !path)
        return qat_out_of_memory(err, "class names");
    if (access(path, F_OK) != 0)
        return QAT_OK;
    uint8_t *bytes;
    size_t length;
    qat_status st = qat_file_read(path, META_MAX, &bytes, &length, err);
    if (!st)
        st = qat_files_check_text(path, bytes, length, err);
    char *text = st ? NULL : qat_arena_string(&dataset->arena, (const char *)bytes);
    free(bytes);
    if (st)
        return st;
    if (!text)
        return qat_out_of_memory(err, "class names");
    int const found = split_lines(text, labels, CLASSES + 1);
    if (found != CLASSES)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %s %d lines, expected %d class names", path,
                        found > CLASSES ? "more than" : "only", found > CLASSES ? CLASSES : found,
                        CLASSES);
    dataset->info.labels = labels;
    return QAT_OK;
}

static qat_status cifar10_open(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_split split, qat_error *err)
{
    batch_file files[MAX_BATCHES] = {{0}};
    int count;
    qat_status st = read_split(dataset, options->path, split, files, &count, err);
    if (!st)
        st = keep(dataset, files, count, qat_split_count(options, split), err);
    for (int f = 0; f < count; f++) {
        free(files[f].bytes);
        qat_dataset_release(dataset, files[f].length);
    }
    if (!st)
        st = read_labels(dataset, options->path, err);
    return st;
}

const qat_dataset_kind qat_kind_cifar10 = {
    .name = "cifar10", .needs_path = true, .open = cifar10_open, .get = qat_dataset_get_kept};

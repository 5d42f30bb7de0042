/** Are there pictures that cannot be read? Found before the first step, and left out if wanted. */
#include "datasets/dataset_kind.h"

#include "base/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, PATH_LENGTH = 4096 }; /* samples between two calls of tick */

void qat_file_path(qat_file_name name, char *path, size_t max)
{
    (void)snprintf(path, max, "%s%s%s", name.folder, *name.folder ? "/" : "", name.name);
}

/* ------------------------------------------------------------------ first and last bytes */

static bool ends_with(FILE *file, const uint8_t *end, size_t n)
{
    uint8_t found[16];
    return fseek(file, -(long)n, SEEK_END) == 0 && fread(found, 1, n, file) == n &&
           memcmp(found, end, n) == 0;
}

/** Is it as long as the head of a WAV file says? */
static bool holds_sound(FILE *file, const uint8_t head[12])
{
    int64_t const size =
        (int64_t)head[4] | (int64_t)head[5] << 8 | (int64_t)head[6] << 16 | (int64_t)head[7] << 24;
    return memcmp(head + 8, "WAVE", 4) == 0 && size && fseek(file, 0, SEEK_END) == 0 &&
           ftell(file) >= size + 8;
}

/** Does it begin and end as a PNG, a JPEG or a WAV file? Closes the file. */
static bool looks_whole(FILE *file)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10}, jpeg[] = {0xff, 0xd8, 0xff};
    static const uint8_t png_end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    static const uint8_t jpeg_end[] = {0xff, 0xd9};
    uint8_t start[12] = {0};
    if (!file)
        return false;
    bool good = fread(start, 1, sizeof start, file) == sizeof start;
    if (good && memcmp(start, "RIFF", 4) == 0)
        good = holds_sound(file, start);
    else if (good && memcmp(start, png, sizeof png) == 0)
        good = ends_with(file, png_end, sizeof png_end);
    else
        good = good && memcmp(start, jpeg, sizeof jpeg) == 0 &&
               ends_with(file, jpeg_end, sizeof jpeg_end);
    (void)fclose(file);
    return good;
}

/** The same of the file, or the part of a file, that a sample is in. */
static bool sample_looks_whole(const qat_dataset *d, int index)
{
    qat_file_name const name = d->kind->file(d, index);
    char path[PATH_LENGTH];
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (!d->kind->bytes) {
        qat_file_path(name, path, sizeof path);
        return looks_whole(fopen(path, "rb"));
    }
    bool const good = d->kind->bytes(d, index, &bytes, &count, NULL) == QAT_OK && count &&
                      looks_whole(fmemopen(bytes, count, "rb"));
    free(bytes);
    return good;
}

/* ------------------------------------------------------------------ all samples */

/** A chunk of samples, each looked at by some thread. */
typedef struct chunk {
    const qat_dataset *dataset;
    bool decode;
    int first;
    qat_status status[CHUNK];
    qat_error errors[CHUNK];
    int height[CHUNK], width[CHUNK]; /* 0: not decoded */
} chunk;

static void look_at(void *context, int tile, int thread)
{
    chunk *c = context;
    int const index = c->first + tile;
    qat_picture picture = {0};
    (void)thread;
    c->status[tile] = QAT_OK;
    c->height[tile] = c->width[tile] = 0;
    if (!c->decode && sample_looks_whole(c->dataset, index))
        return;
    c->status[tile] = qat_dataset_picture(c->dataset, index, &picture, &c->errors[tile]);
    if (!c->status[tile]) {
        c->height[tile] = picture.height;
        c->width[tile] = picture.width;
    }
    free(picture.pixels);
}

/** A file may be broken, or too large; no memory is another matter. */
static bool is_fault(qat_status status)
{
    return status == QAT_ERR_IO || status == QAT_ERR_FORMAT || status == QAT_ERR_UNSUPPORTED ||
           status == QAT_ERR_LIMIT;
}

static void widen(int range[2], int side)
{
    range[0] = side && (!range[0] || side < range[0]) ? side : range[0];
    range[1] = side > range[1] ? side : range[1];
}

static qat_status add_faults(const chunk *c, int n, qat_faults *faults, qat_error *err)
{
    for (int i = 0; i < n; i++) {
        widen(faults->height, c->height[i]);
        widen(faults->width, c->width[i]);
        if (!c->status[i])
            continue;
        if (!is_fault(c->status[i]))
            return qat_fail(err, c->status[i], "%s", c->errors[i].message);
        if (faults->count < QAT_FAULTS_TOLD)
            memcpy(faults->told[faults->count], c->errors[i].message, sizeof *faults->told);
        faults->samples[faults->count++] = c->first + i;
    }
    return QAT_OK;
}

qat_status qat_dataset_check(const qat_dataset *dataset, bool decode,
                             bool (*tick)(void *context, int64_t done, int64_t total),
                             void *context, qat_faults *faults, qat_error *err)
{
    int const count = dataset->info.count;
    *faults = (qat_faults){0};
    if (!dataset->kind->file)
        return QAT_OK;
    chunk *c = malloc(sizeof *c);
    faults->samples = malloc((size_t)count * sizeof *faults->samples);
    qat_status st = c && faults->samples ? QAT_OK : qat_out_of_memory(err, dataset->info.name);
    for (int first = 0; !st && first < count; first += CHUNK) {
        int const n = count - first < CHUNK ? count - first : CHUNK;
        c->dataset = dataset;
        c->decode = decode;
        c->first = first;
        qat_parallel(n, look_at, c);
        st = add_faults(c, n, faults, err);
        if (!st && tick && !tick(context, first + n, count))
            st = qat_fail(err, QAT_ERR_STATE, "%s: stopped while its %ss were checked",
                          dataset->info.name, qat_dataset_unit(&dataset->info));
    }
    free(c);
    if (st)
        qat_faults_free(faults);
    return st;
}

void qat_faults_free(qat_faults *faults)
{
    free(faults->samples);
    faults->samples = NULL;
    faults->count = 0;
}

qat_status qat_dataset_skip(qat_dataset *dataset, const qat_faults *faults, qat_error *err)
{
    int const count = dataset->info.count;
    int n = 0, next = 0;
    if (!faults->count)
        return QAT_OK;
    if (faults->count >= count)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: none of its %d %ss can be read; %.300s",
                        dataset->info.name, count, qat_dataset_unit(&dataset->info),
                        faults->told[0]);
    int *kept = malloc((size_t)count * sizeof *kept);
    if (!kept)
        return qat_out_of_memory(err, dataset->info.name);
    for (int i = 0; i < count; i++) {
        if (next < faults->count && faults->samples[next] == i)
            next++;
        else
            kept[n++] = i;
    }
    qat_dataset_keep(dataset, kept, n);
    dataset->info.skipped += faults->count;
    free(kept);
    return QAT_OK;
}

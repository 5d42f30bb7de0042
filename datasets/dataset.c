#include "base/files/file.h"
#include "base/options.h"
#include "base/rng.h"
#include "datasets/dataset_kind.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SAMPLE_VALUES = 1 << 28, MAX_CLASSES = 65536 };

#define ENTRY(name) &qat_kind_##name,
static const qat_dataset_kind *const kinds[] = {QAT_DATASET_KINDS(ENTRY)};
#undef ENTRY

int qat_dataset_kinds(void)
{
    return (int)(sizeof kinds / sizeof *kinds);
}

const char *qat_dataset_kind_name(int i)
{
    return kinds[i]->name;
}

bool qat_dataset_kind_needs_path(int i)
{
    return kinds[i]->needs_path;
}

bool qat_dataset_kind_resizes(int i)
{
    return kinds[i]->resizes;
}

bool qat_dataset_kind_has_objects(int i)
{
    return kinds[i]->objects != NULL;
}

bool qat_dataset_kind_has_targets(int i)
{
    return kinds[i]->has_targets;
}

const char *qat_split_name(qat_split split)
{
    static const char *const names[] = {"train", "test", "validation"};
    return names[split];
}

int qat_split_count(const qat_dataset_options *options, qat_split split)
{
    return split == QAT_SPLIT_TRAIN ? options->train_count : options->test_count;
}

int qat_dataset_limit(int count, int limit)
{
    return limit > 0 && limit < count ? limit : count;
}

int qat_dataset_width(const qat_dataset_options *options, int otherwise)
{
    return options->width ? options->width : options->height ? options->height : otherwise;
}

char *qat_dataset_join(qat_arena *arena, const char *folder, const char *name)
{
    size_t const bytes = strlen(folder) + strlen(name) + 2;
    char *path = qat_arena_take(arena, bytes);
    if (path)
        (void)snprintf(path, bytes, "%s/%s", folder, name);
    return path;
}

qat_status qat_dataset_find(qat_dataset *dataset, const char *folder, const char *name,
                            const char **path, qat_error *err)
{
    char *plain = qat_dataset_join(&dataset->arena, folder, name);
    char *packed = plain ? qat_arena_take(&dataset->arena, strlen(plain) + 4) : NULL;
    if (!packed)
        return qat_out_of_memory(err, name);
    strcpy(packed, plain);
    strcat(packed, ".gz");
    *path = access(plain, F_OK) == 0 ? plain : packed;
    if (*path == packed && access(packed, F_OK) != 0)
        return qat_fail(err, QAT_ERR_IO, "cannot open %s: there is no such file, and no %s.gz",
                        plain, name);
    return QAT_OK;
}

qat_status qat_dataset_set_shape(qat_dataset *dataset, const char *source, int64_t count,
                                 const int64_t hwc[3], qat_sample_type type, qat_error *err)
{
    int64_t values = 1;
    if (count < 1 || count > INT32_MAX)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %lld samples, not in 1..2147483647", source,
                        (long long)count);
    for (int i = 0; i < 3; i++) {
        if (hwc[i] < 1 || hwc[i] > MAX_SAMPLE_VALUES / values)
            return qat_fail(err, QAT_ERR_FORMAT,
                            "%s: impossible sample size %lld x %lld x %lld (at most %d values)",
                            source, (long long)hwc[0], (long long)hwc[1], (long long)hwc[2],
                            MAX_SAMPLE_VALUES);
        values *= hwc[i];
    }
    qat_dataset_info *info = &dataset->info;
    info->count = (int)count;
    info->height = (int)hwc[0];
    info->width = (int)hwc[1];
    info->channels = (int)hwc[2];
    info->type = type;
    info->min = 0;
    info->max = 255;
    dataset->sample_bytes = (size_t)values * (type == QAT_SAMPLE_F32 ? sizeof(float) : 1);
    return QAT_OK;
}

/* ------------------------------------------------------------------ limits */

qat_status qat_dataset_hold(qat_dataset *dataset, const char *source, uint64_t bytes,
                            qat_error *err)
{
    uint64_t const left = dataset->memory - dataset->held;
    if (bytes <= left) {
        dataset->held += bytes;
        return QAT_OK;
    }
    return qat_fail(err, QAT_ERR_LIMIT,
                    "%s: the data would take %llu MiB of memory, but data.memory allows %llu MiB "
                    "(--max-memory where there is no recipe)",
                    source, qat_mib(bytes > UINT64_MAX / 2 ? bytes : dataset->held + bytes),
                    qat_mib(dataset->memory));
}

void qat_dataset_release(qat_dataset *dataset, uint64_t bytes)
{
    dataset->held -= bytes;
}

qat_status qat_dataset_read(qat_dataset *dataset, const char *path, uint64_t most, uint8_t **bytes,
                            size_t *count, qat_error *err)
{
    uint64_t const left = dataset->memory - dataset->held;
    uint8_t start[1];
    qat_file_look look;
    qat_status st = qat_file_look_at(path, start, sizeof start, &look, err);
    if (!st)
        st = qat_dataset_hold(dataset, path, look.size, err);
    if (st)
        return st;
    st = qat_file_read(path, (size_t)(most < left ? most : left), bytes, count, err);
    qat_dataset_release(dataset, look.size);
    if (st == QAT_ERR_LIMIT && left < most)
        return qat_dataset_hold(dataset, path, left + 1, err); /* names the limit that was met */
    dataset->held += *count; /* at most what was left; 0 after an error */
    return st;
}

/* ------------------------------------------------------------------ memory */

qat_status qat_dataset_allocate(qat_dataset *dataset, qat_error *err)
{
    size_t const count = (size_t)dataset->info.count;
    uint64_t const bytes = (uint64_t)count * (dataset->sample_bytes + sizeof *dataset->labels);
    qat_status const st = qat_dataset_hold(dataset, dataset->info.name, bytes, err);
    if (st)
        return st;
    if (dataset->sample_bytes <= SIZE_MAX / count && !dataset->undrawn)
        dataset->values = qat_aligned_alloc(count * dataset->sample_bytes);
    dataset->labels = qat_arena_array(&dataset->arena, count, sizeof *dataset->labels);
    if ((!dataset->values && !dataset->undrawn) || !dataset->labels)
        return qat_out_of_memory(err, "samples");
    return QAT_OK;
}

qat_status qat_dataset_allocate_values(qat_dataset *dataset, qat_target_kind kind, size_t each,
                                       qat_error *err)
{
    size_t const n = (size_t)dataset->info.count * each;
    if (each < 1 || each > MAX_SAMPLE_VALUES)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %zu targets of a sample, not in 1..%d",
                        dataset->info.name, each, MAX_SAMPLE_VALUES);
    qat_status const st =
        qat_dataset_hold(dataset, dataset->info.name, n * sizeof *dataset->targets, err);
    if (st)
        return st;
    dataset->info.targets = kind;
    dataset->info.n_targets = (int)each;
    if (dataset->undrawn)
        return QAT_OK;
    dataset->targets = qat_arena_array(&dataset->arena, n, sizeof *dataset->targets);
    if (!dataset->targets)
        return qat_out_of_memory(err, "targets");
    for (size_t i = 0; i < n; i++)
        dataset->targets[i] = NAN;
    return QAT_OK;
}

qat_status qat_dataset_allocate_targets(qat_dataset *dataset, int attributes,
                                        const char *const *names, bool value, qat_error *err)
{
    qat_status const st =
        qat_dataset_allocate_values(dataset, QAT_TARGETS_ATTRIBUTES, (size_t)attributes + 1, err);
    if (st)
        return st;
    dataset->info.classes = attributes;
    dataset->info.labels = names;
    dataset->info.has_targets = true;
    dataset->info.has_value = value;
    return QAT_OK;
}

qat_status qat_dataset_get_kept(const qat_dataset *dataset, int index, void *values, int *label,
                                qat_error *err)
{
    (void)err;
    const char *all = dataset->values;
    memcpy(values, all + (size_t)index * dataset->sample_bytes, dataset->sample_bytes);
    *label = dataset->labels[index];
    return QAT_OK;
}

/** Real values: the range of those that are kept. */
static void find_range(qat_dataset *d)
{
    size_t const n = (size_t)d->info.count * (d->sample_bytes / sizeof(float));
    const float *v = d->values;
    d->info.min = d->info.max = v[0];
    for (size_t i = 0; i < n; i++) {
        d->info.min = v[i] < d->info.min ? v[i] : d->info.min;
        d->info.max = v[i] > d->info.max ? v[i] : d->info.max;
    }
}

void qat_keep_items(void *items, size_t size, const int *kept, int n)
{
    char *at = items;
    for (int i = 0; items && i < n; i++)
        if (kept[i] != i)
            memcpy(at + (size_t)i * size, at + (size_t)kept[i] * size, size);
}

void qat_dataset_keep(qat_dataset *d, const int *kept, int n)
{
    if (kept) {
        qat_keep_items(d->values, d->sample_bytes, kept, n);
        qat_keep_items(d->labels, sizeof *d->labels, kept, n);
        qat_keep_items(d->targets, (size_t)d->info.n_targets * sizeof *d->targets, kept, n);
    }
    if (kept && d->kind->keep)
        d->kind->keep(d, kept, n);
    d->info.count = n;
    if (d->values && d->info.type == QAT_SAMPLE_F32)
        find_range(d);
}

qat_status qat_dataset_thin_out(qat_dataset *d, int limit, qat_error *err)
{
    int const count = d->info.count, n = qat_dataset_limit(count, limit);
    int *kept = n < count ? malloc((size_t)n * sizeof *kept) : NULL;
    if (n == count)
        return QAT_OK;
    if (!kept)
        return qat_out_of_memory(err, d->info.name);
    for (int i = 0; i < n; i++)
        kept[i] = (int)((int64_t)i * count / n);
    qat_dataset_keep(d, kept, n);
    free(kept);
    return QAT_OK;
}

const float *qat_dataset_targets(const qat_dataset *dataset, int index)
{
    size_t const values = (size_t)dataset->info.n_targets;
    return dataset->targets ? dataset->targets + (size_t)index * values : NULL;
}

const qat_objects *qat_dataset_objects(const qat_dataset *dataset, int index)
{
    return dataset->info.has_objects ? dataset->kind->objects(dataset, index) : NULL;
}

static qat_status not_drawn(const qat_dataset *dataset, int index, qat_error *err)
{
    return qat_fail(err, QAT_ERR_STATE, "%s: sample %d was not drawn", dataset->info.name, index);
}

qat_status qat_dataset_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                               qat_error *err)
{
    const qat_dataset_info *info = &dataset->info;
    int label;
    if (dataset->undrawn)
        return not_drawn(dataset, index, err);
    if (dataset->kind->picture)
        return dataset->kind->picture(dataset, index, picture, err);
    *picture = (qat_picture){malloc(dataset->sample_bytes), info->height, info->width};
    if (!picture->pixels)
        return qat_out_of_memory(err, info->name);
    return dataset->kind->get(dataset, index, picture->pixels, &label, err);
}

int qat_dataset_label(const qat_dataset *dataset, int index)
{
    return dataset->labels ? dataset->labels[index] : 0;
}

qat_status qat_dataset_get_resized(const qat_dataset *dataset, int index, void *values, int *label,
                                   qat_error *err)
{
    const qat_dataset_info *info = &dataset->info;
    qat_picture p = {0};
    qat_status const st = qat_dataset_picture(dataset, index, &p, err);
    *label = 0;
    if (!st)
        qat_image_resize(p.pixels, p.height, p.width, values, info->height, info->width,
                         info->channels);
    free(p.pixels);
    return st;
}

qat_status qat_dataset_get_sound(const qat_dataset *dataset, int index, void *values, int *label,
                                 qat_error *err)
{
    int const frames = dataset->info.height;
    int16_t *samples = malloc(qat_wave_samples(frames) * sizeof *samples);
    if (!samples)
        return qat_out_of_memory(err, dataset->info.name);
    qat_status const st = dataset->kind->sound(dataset, index, samples, err);
    *label = qat_dataset_label(dataset, index);
    if (!st)
        qat_wave_codes(samples, frames, values);
    free(samples);
    return st;
}

qat_status qat_dataset_check_label(const char *file, int64_t index, int64_t label, int classes,
                                   qat_error *err)
{
    if (label >= 0 && label < classes)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT, "%s: label %lld of sample %lld is not in 0..%d", file,
                    (long long)label, (long long)index, classes - 1);
}

qat_status qat_dataset_set_classes(qat_dataset *dataset, const char *file, const void *labels,
                                   int64_t (*label_at)(const void *labels, int64_t index),
                                   int64_t count, int wanted, qat_error *err)
{
    int64_t largest = 0;
    if (wanted < 0 || wanted > MAX_CLASSES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: classes %d, not in 0..%d", wanted,
                        MAX_CLASSES);
    for (int64_t i = 0; i < count; i++) {
        int64_t const label = label_at(labels, i);
        int const bound = wanted ? wanted : MAX_CLASSES;
        qat_status st = qat_dataset_check_label(file, i, label, bound, err);
        if (st)
            return st;
        if (label > largest)
            largest = label;
    }
    dataset->info.classes = wanted ? wanted : (int)largest + 1;
    return QAT_OK;
}

/** "idx fashion-mnist/train": the kind, the last part of the path, the split. */
static const char *make_name(qat_dataset *dataset, const char *path, qat_split split)
{
    size_t end = path ? strlen(path) : 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t const bytes = strlen(dataset->kind->name) + (end - start) + 16;
    char *name = qat_arena_take(&dataset->arena, bytes);
    if (name)
        (void)snprintf(name, bytes, "%s%s%.*s/%s", dataset->kind->name, end > start ? " " : "",
                       (int)(end - start), path ? path + start : "", qat_split_name(split));
    return name;
}

static qat_status find_kind(const qat_dataset_options *options, const qat_dataset_kind **kind,
                            qat_error *err)
{
    const char *name = options->kind ? options->kind : "";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name) == 0)
            *kind = kinds[i];
    }
    if (!*kind)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: unknown kind '%s' (have %s)", name,
                        QAT_DATASET_KINDS_TEXT);
    if ((*kind)->needs_path && (!options->path || !options->path[0]))
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: kind %s needs a path", name);
    if (options->train_count < 0 || options->test_count < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: negative count (train %d, test %d)",
                        options->train_count, options->test_count);
    if (!(options->split >= 0 && options->split < 1))
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: split %g, not in 0..1, without 1",
                        options->split);
    if (!(options->validation >= 0 && options->validation < 1))
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: validation %g, not in 0..1, without 1",
                        options->validation);
    if (options->split > 0 && !(*kind)->splits)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: split %g: data of kind %s have a test split already", options->split,
                        name);
    return QAT_OK;
}

/** The training or test samples, which may be a part of all that there are. */
static qat_status open_whole(qat_dataset *d, const qat_dataset_options *options, qat_split split,
                             qat_error *err)
{
    qat_dataset_options all = *options;
    if (!(options->split > 0))
        return d->kind->open(d, options, split, err);
    all.train_count = all.test_count = 0;
    qat_status const st = d->kind->open(d, &all, QAT_SPLIT_TRAIN, err);
    return st ? st : qat_dataset_take_part(d, options, split, err);
}

/** The samples of one split; without a validation split, it is empty. */
static qat_status open_split(qat_dataset *d, const qat_dataset_options *options, qat_split split,
                             qat_error *err)
{
    qat_dataset_options part = {.split = 1 - options->validation,
                                .seed = qat_hash(options->seed, qat_hash_name("validation"))};
    bool const is_test = split == QAT_SPLIT_TEST;
    bool const validates =
        options->validation > 0 && d->kind->validates && d->kind->validates(options);
    qat_status const st =
        open_whole(d, options, validates || is_test ? split : QAT_SPLIT_TRAIN, err);
    d->split = split;
    if (st || is_test || validates || (split == QAT_SPLIT_TRAIN && !(options->validation > 0)))
        return st;
    return qat_dataset_take_part(d, &part, split, err);
}

/**
 * Resize pictures that are kept in memory to the size in options. Signals and real values are not
 * resized.
 */
static qat_status resize_kept(qat_dataset *d, const qat_dataset_options *o, qat_error *err)
{
    qat_dataset_info const old = d->info;
    int64_t const hwc[3] = {o->height ? o->height : old.height, qat_dataset_width(o, old.width),
                            old.channels};
    if (d->kind->resizes || old.type != QAT_SAMPLE_U8 || old.height == 1 ||
        (hwc[0] == old.height && hwc[1] == old.width))
        return QAT_OK;
    const uint8_t *from = d->values;
    size_t const bytes = d->sample_bytes;
    qat_status st = qat_dataset_set_shape(d, old.name, old.count, hwc, QAT_SAMPLE_U8, err);
    if (!st)
        st = qat_dataset_hold(d, old.name, (uint64_t)old.count * d->sample_bytes, err);
    if (d->undrawn)
        return st;
    uint8_t *to = st ? NULL : qat_aligned_alloc((size_t)old.count * d->sample_bytes);
    if (!st && !to)
        st = qat_out_of_memory(err, old.name);
    for (int i = 0; !st && i < old.count; i++)
        qat_image_resize(from + (size_t)i * bytes, old.height, old.width,
                         to + (size_t)i * d->sample_bytes, (int)hwc[0], (int)hwc[1], old.channels);
    if (st)
        return st;
    qat_aligned_free(d->values);
    qat_dataset_release(d, (uint64_t)old.count * bytes);
    d->values = to;
    return QAT_OK;
}

/** Samples with objects become samples with the labels of these. */
static qat_status keep_presence(qat_dataset *d, qat_error *err)
{
    qat_dataset_info *info = &d->info;
    size_t const classes = (size_t)info->classes;
    qat_status const st = qat_dataset_allocate_values(d, QAT_TARGETS_LABELS, classes, err);
    if (st)
        return st;
    if (!d->undrawn)
        memset(d->targets, 0, (size_t)info->count * classes * sizeof *d->targets);
    for (int i = 0; !d->undrawn && i < info->count; i++) {
        const qat_objects *o = qat_dataset_objects(d, i);
        for (int k = 0; k < o->count; k++)
            d->targets[(size_t)i * classes + (size_t)o->truth[k].label] = 1;
    }
    info->has_objects = false;
    return QAT_OK;
}

/** Mean and standard deviation of the real values that samples have; 0 and 1 of none. */
static void find_targets(qat_dataset *d)
{
    size_t const n = (size_t)d->info.count * (size_t)d->info.n_targets;
    double sum = 0, squares = 0, known = 0;
    for (size_t i = 0; i < n; i++) {
        known += !isnan(d->targets[i]);
        sum += isnan(d->targets[i]) ? 0 : (double)d->targets[i];
    }
    double const mean = known > 0 ? sum / known : 0;
    for (size_t i = 0; i < n; i++) {
        double const off = isnan(d->targets[i]) ? 0 : (double)d->targets[i] - mean;
        squares += off * off;
    }
    d->info.target_mean = (float)mean;
    d->info.target_deviation = squares > 0 ? (float)sqrt(squares / known) : 1;
}

qat_status qat_dataset_open(qat_dataset **dataset, const qat_dataset_options *options,
                            qat_split split, qat_error *err)
{
    const qat_dataset_kind *kind = NULL;
    qat_dataset_options o;
    *dataset = NULL;
    qat_status st =
        qat_options_copy(&o, sizeof o, options, QAT_SIZE_UP_TO(qat_dataset_options, words),
                         "qat_dataset_options", err);
    if (!st)
        st = find_kind(&o, &kind, err);
    if (st)
        return st;
    qat_dataset *d = calloc(1, sizeof *d);
    if (!d)
        return qat_out_of_memory(err, "data set");
    d->kind = kind;
    d->undrawn = o.undrawn && !kind->needs_path;
    d->jpeg_scale = o.jpeg_scale;
    d->info.target_deviation = 1;
    d->memory = o.memory ? o.memory : QAT_DEFAULT_DATA_MEMORY;
    d->info.name = make_name(d, kind->needs_path ? o.path : NULL, split);
    if (!d->info.name)
        st = qat_out_of_memory(err, "data set");
    if (!st)
        st = open_split(d, &o, split, err);
    if (!st)
        st = resize_kept(d, &o, err);
    if (!st && d->info.has_objects && o.presence)
        st = keep_presence(d, err);
    if (!st && d->info.targets == QAT_TARGETS_VALUES && !d->undrawn)
        find_targets(d);
    if (st) {
        qat_dataset_close(d);
        return st;
    }
    *dataset = d;
    return QAT_OK;
}

void qat_dataset_close(qat_dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->kind->close)
        dataset->kind->close(dataset);
    qat_aligned_free(dataset->values);
    qat_arena_free(&dataset->arena);
    free(dataset);
}

const qat_dataset_info *qat_dataset_info_of(const qat_dataset *dataset)
{
    return &dataset->info;
}

qat_status qat_dataset_get(const qat_dataset *dataset, int index, void *values, int *label,
                           qat_error *err)
{
    if (index < 0 || index >= dataset->info.count)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: sample %d, not in 0..%d", dataset->info.name,
                        index, dataset->info.count - 1);
    if (dataset->undrawn)
        return not_drawn(dataset, index, err);
    return dataset->kind->get(dataset, index, values, label, err);
}

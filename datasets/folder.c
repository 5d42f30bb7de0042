/**
 * A folder of pictures: path/train/<class>/<picture>, and path/val or path/test likewise. A class's
 * number is its folder's rank in the byte order of the names, taken from path/train where there is
 * one, so that a class that is missing from the test pictures does not shift the others. Pictures
 * are decoded when they are asked for.
 */
#include "datasets/dataset_kind.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_CLASSES = 65536, DEFAULT_SIDE = 32, DEFAULT_CHANNELS = 3 };

/** Names of a folder's entries, sorted; in the arena. */
typedef struct names {
    const char **at;
    int count, capacity;
} names;

typedef struct folder_set {
    const char **paths; /* one a sample */
    int32_t *labels;
    int capacity;
    int resize_short;
    double central_crop;
} folder_set;

static bool is_folder(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

static bool is_picture(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".bmp", ".tga",
                                          ".gif", ".psd", ".ppm",  ".pgm", ".pnm"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++) {
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    }
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Append to a list that doubles in the arena (what it leaves behind is freed with it). */
static bool append(qat_arena *arena, names *list, const char *name)
{
    if (list->count == list->capacity) {
        int const capacity = list->capacity ? 2 * list->capacity : 64;
        const char **grown = qat_arena_array(arena, (size_t)capacity, sizeof *grown);
        if (!grown)
            return false;
        if (list->count)
            memcpy(grown, list->at, (size_t)list->count * sizeof *grown);
        list->at = grown;
        list->capacity = capacity;
    }
    list->at[list->count] = qat_arena_string(arena, name);
    return list->at[list->count++] != NULL;
}

/** The sub-folders of a folder, or its pictures. Hidden entries are passed over. */
static qat_status list_folder(qat_arena *arena, const char *path, bool folders, names *list,
                              qat_error *err)
{
    qat_status st = QAT_OK;
    *list = (names){0};
    errno = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return qat_fail(err, errno == ENOMEM ? QAT_ERR_NOMEM : QAT_ERR_IO, "cannot open %s: %s",
                        path, strerror(errno));
    for (struct dirent *e; !st && (errno = 0, e = readdir(dir));) {
        if (e->d_name[0] == '.' || (!folders && !is_picture(e->d_name)))
            continue;
        char *full = folders ? qat_dataset_join(arena, path, e->d_name) : NULL;
        bool const wanted = !folders || (full && is_folder(full));
        if ((folders && !full) || (wanted && !append(arena, list, e->d_name)))
            st = qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to list", path);
    }
    if (!st && errno)
        st = qat_fail(err, QAT_ERR_IO, "cannot list %s: %s", path, strerror(errno));
    (void)closedir(dir);
    if (!st && list->count)
        qsort(list->at, (size_t)list->count, sizeof *list->at, by_bytes);
    return st;
}

static qat_status list_classes(qat_dataset *dataset, const char *path, names *classes,
                               qat_error *err)
{
    qat_status st = list_folder(&dataset->arena, path, true, classes, err);
    if (!st && classes->count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: empty, no folder for any class", path);
    if (!st && classes->count > MAX_CLASSES)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %d folders, at most %d classes", path,
                      classes->count, MAX_CLASSES);
    return st;
}

/** path/train; path/val or, where there is no val, path/test. */
static qat_status split_folder(qat_dataset *dataset, const char *path, qat_split split,
                               const char **folder, qat_error *err)
{
    const char *train = qat_dataset_join(&dataset->arena, path, "train");
    const char *val = qat_dataset_join(&dataset->arena, path, "val");
    const char *test = qat_dataset_join(&dataset->arena, path, "test");
    if (!train || !val || !test)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to list", path);
    *folder = split == QAT_SPLIT_TRAIN ? train : is_folder(val) ? val : test;
    if (is_folder(*folder))
        return QAT_OK;
    if (split == QAT_SPLIT_TRAIN)
        return qat_fail(err, QAT_ERR_IO, "%s: no such folder", train);
    return qat_fail(err, QAT_ERR_IO, "%s: no folder val or test", path);
}

/** Make room for `more` samples. */
static bool reserve(qat_dataset *dataset, folder_set *set, int more)
{
    int const used = dataset->info.count;
    if (more > INT32_MAX / 2 - used)
        return false;
    if (used + more <= set->capacity)
        return true;
    int const capacity = 2 * (used + more);
    const char **paths = qat_arena_array(&dataset->arena, (size_t)capacity, sizeof *paths);
    int32_t *labels = qat_arena_array(&dataset->arena, (size_t)capacity, sizeof *labels);
    if (!paths || !labels)
        return false;
    if (used) {
        memcpy(paths, set->paths, (size_t)used * sizeof *paths);
        memcpy(labels, set->labels, (size_t)used * sizeof *labels);
    }
    set->paths = paths;
    set->labels = labels;
    set->capacity = capacity;
    return true;
}

/** Add the pictures of one class's folder. */
static qat_status add_class(qat_dataset *dataset, folder_set *set, const char *folder,
                            const char *class_name, int label, qat_error *err)
{
    names pictures;
    const char *path = qat_dataset_join(&dataset->arena, folder, class_name);
    if (!path)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to list", folder);
    qat_status st = list_folder(&dataset->arena, path, false, &pictures, err);
    if (st)
        return st;
    if (pictures.count == 0)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: no pictures (.png .jpg .jpeg .bmp .tga .gif .psd .ppm .pgm .pnm)",
                        path);
    if (!reserve(dataset, set, pictures.count))
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory for %d pictures", path, pictures.count);
    for (int i = 0; i < pictures.count; i++) {
        const char *full = qat_dataset_join(&dataset->arena, path, pictures.at[i]);
        if (!full)
            return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to list", path);
        set->paths[dataset->info.count] = full;
        set->labels[dataset->info.count++] = label;
    }
    return QAT_OK;
}

/** Every class of the split's folder, numbered as in `classes`. */
static qat_status add_classes(qat_dataset *dataset, folder_set *set, const char *folder,
                              const names *classes, qat_error *err)
{
    names here;
    qat_status st = list_classes(dataset, folder, &here, err);
    for (int i = 0; i < here.count && !st; i++) {
        const char **found = bsearch(&here.at[i], classes->at, (size_t)classes->count,
                                     sizeof *classes->at, by_bytes);
        if (!found)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: class folder %s is not in train", folder,
                            here.at[i]);
        st = add_class(dataset, set, folder, here.at[i], (int)(found - classes->at), err);
    }
    return st;
}

/** Keep `limit` samples, spread evenly over all so that every class stays. */
static void thin_out(folder_set *set, int *count, int limit)
{
    int const keep = qat_dataset_limit(*count, limit);
    for (int i = 0; i < keep; i++) {
        int const from = (int)((int64_t)i * *count / keep);
        set->paths[i] = set->paths[from];
        set->labels[i] = set->labels[from];
    }
    *count = keep;
}

static qat_status set_shape(qat_dataset *dataset, const qat_dataset_options *o, qat_error *err)
{
    int const channels = o->channels ? o->channels : DEFAULT_CHANNELS;
    int64_t const hwc[3] = {o->height ? o->height : DEFAULT_SIDE,
                            o->width ? o->width : DEFAULT_SIDE, channels};
    if (channels != 1 && channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: channels %d, must be 1 or 3", channels);
    if (o->resize_short && (o->resize_short < hwc[0] || o->resize_short < hwc[1]))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: resize_short %d is less than the size %lld x %lld", o->resize_short,
                        (long long)hwc[0], (long long)hwc[1]);
    return qat_dataset_set_shape(dataset, o->path, dataset->info.count, hwc, QAT_SAMPLE_U8, err);
}

static qat_status folder_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    const char *folder = NULL;
    names classes = {0};
    folder_set *set = qat_arena_take(&dataset->arena, sizeof *set);
    const char *train = qat_dataset_join(&dataset->arena, options->path, "train");
    if (!set || !train)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to list", options->path);
    qat_status st = split_folder(dataset, options->path, split, &folder, err);
    if (!st)
        st = list_classes(dataset, is_folder(train) ? train : folder, &classes, err);
    if (!st)
        st = add_classes(dataset, set, folder, &classes, err);
    if (st)
        return st;
    thin_out(set, &dataset->info.count, qat_split_count(options, split));
    dataset->info.classes = classes.count;
    dataset->info.labels = classes.at;
    dataset->own = set;
    set->resize_short = options->resize_short;
    set->central_crop = options->central_crop;
    return set_shape(dataset, options, err);
}

static qat_status folder_get(const qat_dataset *dataset, int index, void *values, int *label,
                             qat_error *err)
{
    const folder_set *set = dataset->own;
    const qat_dataset_info *info = &dataset->info;
    qat_image_size const size = {.height = info->height,
                                 .width = info->width,
                                 .channels = info->channels,
                                 .central_crop = set->central_crop,
                                 .resize_short = set->resize_short};
    *label = set->labels[index];
    return qat_image_read(set->paths[index], &size, values, err);
}

const qat_dataset_kind qat_kind_folder = {
    .name = "folder", .needs_path = true, .resizes = true, .open = folder_open, .get = folder_get};

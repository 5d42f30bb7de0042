/**
 * A folder of pictures: path/train/<class>/<picture>, and path/val or path/test in the same form.
 * The number of a class is the rank of its folder's name in byte order. The names are taken from
 * path/train if it exists, so that a class without test pictures does not shift the others.
 * Pictures are decoded when they are requested.
 */
#include "datasets/pictures/picture.h"
#include "datasets/readers/files.h"
#include "datasets/readers/listing.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 65536 };

static qat_status list_classes(qat_dataset *dataset, const char *path, qat_names *classes,
                               qat_ignored *ignored, qat_error *err)
{
    qat_status st = qat_folder_list(&dataset->arena, path, NULL, classes, ignored, err);
    if (!st && classes->count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: empty; expected one folder per class", path);
    if (!st && classes->count > MAX_CLASSES)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %d folders, but at most %d classes are possible",
                      path, classes->count, MAX_CLASSES);
    return st;
}

/** Make room for `more` samples. */
static bool reserve(qat_dataset *dataset, int *capacity, int more)
{
    qat_files *files = dataset->own;
    int const used = dataset->info.count;
    if (more > INT32_MAX / 2 - used)
        return false;
    if (used + more <= *capacity)
        return true;
    size_t const wanted = 2 * ((size_t)used + (size_t)more);
    const char **paths = qat_arena_array(&dataset->arena, wanted, sizeof *paths);
    int32_t *labels = qat_arena_array(&dataset->arena, wanted, sizeof *labels);
    if (!paths || !labels)
        return false;
    if (used) {
        memcpy(paths, files->paths, (size_t)used * sizeof *paths);
        memcpy(labels, dataset->labels, (size_t)used * sizeof *labels);
    }
    files->paths = paths;
    dataset->labels = labels;
    *capacity = (int)wanted;
    return true;
}

static qat_status no_pictures(const char *path, const qat_ignored *ignored, qat_error *err)
{
    char others[256];
    qat_ignored_text(ignored, others, sizeof others);
    return qat_fail(err, QAT_ERR_FORMAT, "%.200s: no pictures (%s)%s%s", path, qat_picture_endings,
                    *others ? ", but " : "", others);
}

/** Add the pictures of one class's folder. */
static qat_status add_class(qat_dataset *dataset, int *capacity, const char *folder,
                            const char *class_name, int label, qat_error *err)
{
    qat_files *files = dataset->own;
    qat_names pictures;
    const char *path = qat_dataset_join(&dataset->arena, folder, class_name);
    if (!path)
        return qat_out_of_memory(err, folder);
    qat_ignored ignored = {0};
    qat_status st =
        qat_folder_list(&dataset->arena, path, qat_picture_has_ending, &pictures, &ignored, err);
    if (st)
        return st;
    qat_ignored_join(&dataset->ignored, &ignored);
    if (pictures.count == 0)
        return no_pictures(path, &ignored, err);
    if (!reserve(dataset, capacity, pictures.count))
        return qat_out_of_memory(err, path);
    for (int i = 0; i < pictures.count; i++) {
        const char *full = qat_dataset_join(&dataset->arena, path, pictures.at[i]);
        if (!full)
            return qat_out_of_memory(err, path);
        files->paths[dataset->info.count] = full;
        dataset->labels[dataset->info.count++] = label;
    }
    return QAT_OK;
}

/** Add every class in the folder of the split, numbered as in `classes`. */
static qat_status add_classes(qat_dataset *dataset, const char *folder, const qat_names *classes,
                              qat_error *err)
{
    qat_names here;
    int capacity = 0;
    qat_status st = list_classes(dataset, folder, &here, &dataset->ignored, err);
    for (int i = 0; i < here.count && !st; i++) {
        const char **found = bsearch(&here.at[i], classes->at, (size_t)classes->count,
                                     sizeof *classes->at, qat_names_order);
        if (!found)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: the class folder %s does not exist in train",
                            folder, here.at[i]);
        st = add_class(dataset, &capacity, folder, here.at[i], (int)(found - classes->at), err);
    }
    return st;
}

/** Keep `limit` samples, spread evenly over all, so that every class stays. */
static void thin_out(qat_dataset *dataset, int limit)
{
    qat_files *files = dataset->own;
    int const count = dataset->info.count, keep = qat_dataset_limit(count, limit);
    for (int i = 0; i < keep; i++) {
        int const from = (int)((int64_t)i * count / keep);
        files->paths[i] = files->paths[from];
        dataset->labels[i] = dataset->labels[from];
    }
    dataset->info.count = keep;
}

static qat_status folder_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    const char *folder = NULL;
    qat_names classes = {0};
    qat_files *files = qat_files_create(dataset, options);
    const char *train = qat_dataset_join(&dataset->arena, options->path, "train");
    if (!files || !train)
        return qat_out_of_memory(err, options->path);
    files->root = qat_arena_string(&dataset->arena, options->path);
    if (!files->root)
        return qat_out_of_memory(err, options->path);
    qat_status st = qat_folder_of_split(dataset, options->path, "the folders of the classes are in",
                                        options->split > 0, split, &folder, err);
    if (!st)
        st =
            list_classes(dataset, qat_files_is_folder(train) ? train : folder, &classes, NULL, err);
    if (!st)
        st = add_classes(dataset, folder, &classes, err);
    if (st)
        return st;
    thin_out(dataset, qat_split_count(options, split));
    dataset->info.classes = classes.count;
    dataset->info.labels = classes.at;
    return qat_files_set_shape(dataset, options, err);
}

const qat_dataset_kind qat_kind_folder = {.name = "folder",
                                          .needs_path = true,
                                          .resizes = true,
                                          .open = folder_open,
                                          .get = qat_files_get,
                                          .splits = true,
                                          .picture = qat_files_picture,
                                          .file = qat_files_file,
                                          .keep = qat_files_keep};

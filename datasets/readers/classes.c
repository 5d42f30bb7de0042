#include "datasets/readers/classes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 65536 };

/** Leave out the names that begin with `_`. */
static void leave_plain(qat_names *names)
{
    int n = 0;
    for (int i = 0; i < names->count; i++)
        if (*names->at[i] != '_')
            names->at[n++] = names->at[i];
    names->count = n;
}

qat_status qat_classes_list(qat_dataset *dataset, const char *path, bool plain, qat_names *classes,
                            qat_ignored *ignored, qat_error *err)
{
    qat_status st = qat_folder_list(&dataset->arena, path, NULL, classes, ignored, err);
    if (!st && plain)
        leave_plain(classes);
    if (!st && classes->count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: empty; expected one folder per class", path);
    if (!st && classes->count > MAX_CLASSES)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %d folders, but at most %d classes are possible",
                      path, classes->count, MAX_CLASSES);
    return st;
}

/** Make room for `more` samples. */
static bool reserve(qat_dataset *dataset, qat_class_files *of, int more)
{
    int const used = dataset->info.count;
    if (more > INT32_MAX / 2 - used)
        return false;
    if (used + more <= of->capacity)
        return true;
    size_t const wanted = 2 * ((size_t)used + (size_t)more);
    const char **paths = qat_arena_array(&dataset->arena, wanted, sizeof *paths);
    int32_t *labels = qat_arena_array(&dataset->arena, wanted, sizeof *labels);
    if (!paths || !labels)
        return false;
    if (used) {
        memcpy(paths, of->files->paths, (size_t)used * sizeof *paths);
        memcpy(labels, dataset->labels, (size_t)used * sizeof *labels);
    }
    of->files->paths = paths;
    dataset->labels = labels;
    of->capacity = (int)wanted;
    return true;
}

static qat_status no_files(const qat_class_files *of, const char *path, const qat_ignored *ignored,
                           qat_error *err)
{
    char others[256];
    qat_ignored_text(ignored, others, sizeof others);
    return qat_fail(err, QAT_ERR_FORMAT, "%.200s: no %s (%s)%s%s", path, of->what, of->endings,
                    *others ? ", but " : "", others);
}

qat_status qat_classes_add(qat_dataset *dataset, qat_class_files *of, const char *folder,
                           const char *class_name, int label, qat_class_skips *skips, void *context,
                           qat_error *err)
{
    qat_names names;
    const char *path = qat_dataset_join(&dataset->arena, folder, class_name);
    if (!path)
        return qat_out_of_memory(err, folder);
    qat_ignored ignored = {0};
    qat_status const st = qat_folder_list(&dataset->arena, path, of->wanted, &names, &ignored, err);
    if (st)
        return st;
    qat_ignored_join(&dataset->ignored, &ignored);
    if (names.count == 0)
        return no_files(of, path, &ignored, err);
    if (!reserve(dataset, of, names.count))
        return qat_out_of_memory(err, path);
    for (int i = 0; i < names.count; i++) {
        if (skips && skips(context, class_name, names.at[i]))
            continue;
        const char *full = qat_dataset_join(&dataset->arena, path, names.at[i]);
        if (!full)
            return qat_out_of_memory(err, path);
        of->files->paths[dataset->info.count] = full;
        dataset->labels[dataset->info.count++] = label;
    }
    return QAT_OK;
}

int qat_classes_find(const qat_names *classes, const char *name)
{
    const char **found = classes->count ? bsearch(&name, classes->at, (size_t)classes->count,
                                                  sizeof *classes->at, qat_names_order)
                                        : NULL;
    return found ? (int)(found - classes->at) : -1;
}

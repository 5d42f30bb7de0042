/** Lists folders: the names in them, and the folder of a split. */
#include "datasets/readers/listing.h"
#include "datasets/readers/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int qat_names_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool qat_names_add(qat_arena *arena, qat_names *list, const char *name)
{
    if (list->count == list->capacity) { /* old copies are freed with the arena */
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

/** An entry that is not listed. */
static bool count_ignored(qat_arena *arena, const char *path, const char *name,
                          qat_ignored *ignored)
{
    char *full = ignored ? qat_dataset_join(arena, path, name) : NULL;
    if (full && qat_files_is_folder(full))
        ignored->folders++;
    else if (full)
        qat_ignored_add(ignored, name);
    return !ignored || full;
}

qat_status qat_folder_list(qat_arena *arena, const char *path, qat_named *wanted_name,
                           qat_names *list, qat_ignored *ignored, qat_error *err)
{
    bool const folders = !wanted_name;
    qat_status st = QAT_OK;
    *list = (qat_names){0};
    errno = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return qat_fail(err, errno == ENOMEM ? QAT_ERR_NOMEM : QAT_ERR_IO, "cannot open %s: %s",
                        path, strerror(errno));
    for (struct dirent *e; !st && (errno = 0, e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        char *full = folders ? qat_dataset_join(arena, path, e->d_name) : NULL;
        bool const wanted = folders ? full && qat_files_is_folder(full) : wanted_name(e->d_name);
        bool const good = wanted ? qat_names_add(arena, list, e->d_name)
                                 : count_ignored(arena, path, e->d_name, ignored);
        if ((folders && !full) || !good)
            st = qat_out_of_memory(err, path);
    }
    if (!st && errno)
        st = qat_fail(err, QAT_ERR_IO, "cannot list %s: %s", path, strerror(errno));
    (void)closedir(dir);
    if (!st && list->count)
        qsort(list->at, (size_t)list->count, sizeof *list->at, qat_names_order);
    return st;
}

/** If options.split makes the splits: path/train or, if that does not exist, path. */
static qat_status undivided_folder(const char *path, const char *train, const char *val,
                                   const char *test, const char **folder, qat_error *err)
{
    bool const has_val = qat_files_is_folder(val);
    *folder = qat_files_is_folder(train) ? train : path;
    if (has_val || qat_files_is_folder(test))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s is there already: data.split would make another test split",
                        has_val ? val : test);
    return QAT_OK;
}

qat_status qat_folder_of_split(qat_dataset *dataset, const char *path, const char *what,
                               bool undivided, qat_split split, const char **folder, qat_error *err)
{
    const char *train = qat_dataset_join(&dataset->arena, path, "train");
    const char *val = qat_dataset_join(&dataset->arena, path, "val");
    const char *test = qat_dataset_join(&dataset->arena, path, "test");
    if (!train || !val || !test)
        return qat_out_of_memory(err, path);
    if (undivided)
        return undivided_folder(path, train, val, test, folder, err);
    *folder = split == QAT_SPLIT_TRAIN ? train : qat_files_is_folder(val) ? val : test;
    if (qat_files_is_folder(*folder))
        return QAT_OK;
    if (!qat_files_is_folder(path))
        return qat_fail(err, QAT_ERR_IO, "%s: no such folder", path);
    if (split == QAT_SPLIT_TRAIN)
        return qat_fail(
            err, QAT_ERR_FORMAT,
            "%s: no such folder; if %s %.200s itself, data.split = 0.8 trains on 80 %% of the "
            "samples and tests on the others",
            train, what, path);
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: no folder val or test; data.split = 0.8 trains on 80 %% of the samples "
                    "and tests on the others",
                    path);
}

/**
 * A folder of pictures: path/train/<class>/<picture>, and path/val or path/test in the same form.
 * The number of a class is the rank of its folder's name in byte order. The names are taken from
 * path/train if it exists, so that a class without test pictures does not shift the others.
 * ImageNet's test pictures lie in one folder; path/val.txt or path/LOC_val_solution.csv then names
 * their classes.
 * Pictures are decoded when they are requested.
 */
#include "datasets/pictures/picture.h"
#include "datasets/readers/classes.h"
#include "datasets/readers/flat.h"

#include <string.h>

/** Add every class in the folder of the split, numbered as in `classes`. */
static qat_status add_classes(qat_dataset *dataset, const char *folder, const qat_names *classes,
                              qat_error *err)
{
    qat_names here;
    qat_class_files of = {.wanted = qat_picture_has_ending,
                          .what = "pictures",
                          .endings = qat_picture_endings,
                          .files = dataset->own};
    qat_status st = qat_classes_list(dataset, folder, false, &here, &dataset->ignored, err);
    for (int i = 0; !st && i < here.count; i++) {
        int const label = qat_classes_find(classes, here.at[i]);
        if (label < 0)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: the class folder %s does not exist in train",
                            folder, here.at[i]);
        st = qat_classes_add(dataset, &of, folder, here.at[i], label, NULL, NULL, err);
    }
    return st;
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
        st = qat_classes_list(dataset, qat_files_is_folder(train) ? train : folder, false, &classes,
                              NULL, err);
    const char *list = NULL;
    if (!st && split != QAT_SPLIT_TRAIN && !(options->split > 0))
        st = qat_flat_find(dataset, options->path, folder, &list, err);
    if (!st)
        st = list ? qat_flat_add(dataset, list, folder, &classes, err)
                  : add_classes(dataset, folder, &classes, err);
    if (!st)
        st = qat_dataset_thin_out(dataset, qat_split_count(options, split), err);
    if (st)
        return st;
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

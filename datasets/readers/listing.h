/** Lists folders: the names in them, and the folder of a split. */
#ifndef QAT_DATASETS_LISTING_H
#define QAT_DATASETS_LISTING_H

#include "datasets/dataset_kind.h"

/** The names of a folder's entries, sorted by their bytes; in the arena. */
typedef struct qat_names {
    const char **at;
    int count, capacity;
} qat_names;

/** Append a copy of a name; false: out of memory. */
bool qat_names_add(qat_arena *arena, qat_names *list, const char *name);

/** Compares two names, for qsort and bsearch over qat_names.at. */
int qat_names_order(const void *a, const void *b);

/** Is a file of this name wanted? */
typedef bool qat_named(const char *name);

/**
 * List a folder's files whose names are wanted; wanted NULL: its subfolders. Hidden entries are
 * passed over; other entries that are not listed are counted, unless ignored is NULL.
 */
qat_status qat_folder_list(qat_arena *arena, const char *path, qat_named *wanted, qat_names *list,
                           qat_ignored *ignored, qat_error *err);

/**
 * The folder of a split: path/train; path/val or, if that does not exist, path/test. undivided
 * (options.split makes the splits): path/train or, if that does not exist, path.
 * @param what  for a message, before "PATH itself": "the folders of the classes are in"
 */
qat_status qat_folder_of_split(qat_dataset *dataset, const char *path, const char *what,
                               bool undivided, qat_split split, const char **folder,
                               qat_error *err);

#endif

/** Folders that hold a folder for each class: folders of pictures, of sounds. */
#ifndef QAT_DATASETS_CLASSES_H
#define QAT_DATASETS_CLASSES_H

#include "datasets/readers/files.h"
#include "datasets/readers/listing.h"

/** What the folders of classes hold. */
typedef struct qat_class_files {
    qat_named *wanted;          /* which files */
    const char *what, *endings; /* for messages: "pictures", ".png .jpg" */
    qat_files *files;           /* their paths; the labels are the data set's */
    int capacity;
} qat_class_files;

/**
 * The names of the folders in path, sorted, but for those that begin with `_`, if `plain`. None, or
 * too many, are an error. The entries that are no folders are counted, unless ignored is NULL.
 */
qat_status qat_classes_list(qat_dataset *dataset, const char *path, bool plain, qat_names *classes,
                            qat_ignored *ignored, qat_error *err);

/**
 * Add the files of folder/class_name as samples of the class `label`: behind info.count, which
 * rises. None are an error.
 * @param skips  leaves a file out; NULL: none
 */
typedef bool qat_class_skips(void *context, const char *class_name, const char *file);
qat_status qat_classes_add(qat_dataset *dataset, qat_class_files *of, const char *folder,
                           const char *class_name, int label, qat_class_skips *skips, void *context,
                           qat_error *err);

/** The number of a class by its name; -1: there is none. */
int qat_classes_find(const qat_names *classes, const char *name);

#endif

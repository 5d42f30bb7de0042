/** Sets of labelled pictures in files, decoded when they are asked for: folders and lists. */
#ifndef QAT_DATASETS_FILES_H
#define QAT_DATASETS_FILES_H

#include "datasets/dataset_kind.h"

/** A data set's `own`; its labels are in dataset->labels. */
typedef struct qat_files {
    const char **paths; /* one a sample; in the arena */
    int resize_short;
    double central_crop;
} qat_files;

bool qat_files_is_folder(const char *path);

/** The folder that a file lies in; in the arena, or NULL. */
char *qat_files_folder_of(qat_arena *arena, const char *file);
/** At least so many lines a text has. */
int qat_files_count_lines(const char *text);

/** An empty set as `own`, with options' way to a picture's size; NULL: no memory. */
qat_files *qat_files_create(qat_dataset *dataset, const qat_dataset_options *options);

/** Height, width and channels of options; info.count is known. */
qat_status qat_files_set_shape(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_error *err);

/** As qat_dataset_kind's. */
qat_status qat_files_get(const qat_dataset *dataset, int index, void *values, int *label,
                         qat_error *err);
qat_status qat_files_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                             qat_error *err);

#endif

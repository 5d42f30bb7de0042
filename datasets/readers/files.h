/**
 * Sets of labelled picture files (folders and lists), which are decoded when they are requested.
 */
#ifndef QAT_DATASETS_FILES_H
#define QAT_DATASETS_FILES_H

#include "datasets/dataset_kind.h"

/** A data set's `own`; its labels are in dataset->labels. */
typedef struct qat_files {
    const char **paths; /* one per sample; in the arena */
    const char *root;   /* what a name in a digest leaves out; NULL: nothing */
    int resize_short;
    double central_crop;
    int max_pixels; /* 0: the default */
    bool jpeg_scale;
} qat_files;

bool qat_files_is_folder(const char *path);

/**
 * Does a name stay below the folder that it is relative to? An absolute one does not, and neither
 * does one with a part "..". A stranger's annotations name pictures of their own folder only.
 */
bool qat_files_stays_below(const char *name);

/** The folder in which a file lies; in the arena, or NULL. */
char *qat_files_folder_of(qat_arena *arena, const char *file);
/** An upper limit for the number of lines of a text. */
int qat_files_count_lines(const char *text);

/**
 * Hold what the lines of a text take that names a picture in each: its path in the arena, behind
 * `folder`, its label, and its place in the lists.
 */
qat_status qat_files_hold_lines(qat_dataset *dataset, const char *source, const char *text,
                                const char *folder, qat_error *err);

/** Is it a text? A byte 0 would end it in the middle, and its rest would be lost without a word. */
qat_status qat_files_check_text(const char *path, const uint8_t *text, size_t bytes,
                                qat_error *err);

/** How many lines with a name of a class folder/name has; 0 if it is not there. */
qat_status qat_files_count_classes(const char *folder, const char *name, int *count,
                                   qat_error *err);

/**
 * If folder/name is there, its lines are the names of the classes, info.classes of them; empty
 * lines do not count.
 */
qat_status qat_files_class_names(qat_dataset *dataset, const char *folder, const char *name,
                                 qat_error *err);

/** Make an empty set as `own`, with the picture size from options; NULL: no memory. */
qat_files *qat_files_create(qat_dataset *dataset, const qat_dataset_options *options);

/** Set height, width and channels from options; info.count must be known. */
qat_status qat_files_set_shape(qat_dataset *dataset, const qat_dataset_options *options,
                               qat_error *err);

/** See qat_dataset_kind. */
qat_status qat_files_get(const qat_dataset *dataset, int index, void *values, int *label,
                         qat_error *err);
qat_status qat_files_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                             qat_error *err);
qat_file_name qat_files_file(const qat_dataset *dataset, int index);
void qat_files_keep(qat_dataset *dataset, const int *kept, int n);

#endif

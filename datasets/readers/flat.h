/** A folder of pictures without folders of classes, whose classes a list names. */
#ifndef QAT_DATASETS_FLAT_H
#define QAT_DATASETS_FLAT_H

#include "datasets/readers/files.h"
#include "datasets/readers/listing.h"

/**
 * The list beside a folder of test pictures, path/val.txt or path/LOC_val_solution.csv, in the
 * arena. *list is NULL where `folder` has folders of classes, or where there is no list.
 */
qat_status qat_flat_find(qat_dataset *dataset, const char *path, const char *folder,
                         const char **list, qat_error *err);

/**
 * Add the pictures that a list names as samples. A line is the picture's name, a comma or white
 * space, and its class: the name of a class, or its number. What follows is ignored. A name without
 * an ending is that of a .JPEG.
 */
qat_status qat_flat_add(qat_dataset *dataset, const char *list, const char *folder,
                        const qat_names *classes, qat_error *err);

#endif

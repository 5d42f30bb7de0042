/** Reads COCO's annotation files, the parts about boxes: https://cocodataset.org/#format-data */
#ifndef QAT_DATASETS_COCO_JSON_H
#define QAT_DATASETS_COCO_JSON_H

#include "datasets/dataset_kind.h"

typedef struct qat_coco_picture {
    const char *file_name;
    qat_objects objects;
} qat_coco_picture;

/**
 * About the most bytes that jansson takes for the values of a JSON text, which comes in pieces. A
 * text of one million bytes may become forty million in memory, so a reader checks this first.
 */
typedef struct qat_json_memory {
    uint64_t bytes;
    bool value_follows; /* after white space */
} qat_json_memory;

/** Count the next piece of the text. */
void qat_json_memory_add(qat_json_memory *memory, const uint8_t *text, size_t count);

/** Pictures are in the file's order, classes by rising category id. All memory is in the data set's
 *  arena. */
typedef struct qat_coco_file {
    qat_coco_picture *pictures;
    int n_pictures, most_objects, empty_boxes;
    const char *const *labels; /* [n_classes]; with one_class "object" */
    int n_classes;
} qat_coco_file;

/**
 * Read an annotation file. Boxes without area are ignored (COCO has some). These are errors: ids
 * that exist twice or do not exist, invalid sizes and boxes, boxes outside their picture. The
 * message names the file and the place in it, or the id of the image, category or annotation, and
 * the value.
 */
qat_status qat_coco_read(qat_coco_file *file, qat_dataset *dataset, const char *path,
                         bool one_class, qat_error *err);

#endif

/** COCO's annotation files: https://cocodataset.org/#format-data, the parts about boxes. */
#ifndef QAT_DATASETS_COCO_JSON_H
#define QAT_DATASETS_COCO_JSON_H

#include "base/arena.h"
#include "qat/dataset.h"

typedef struct qat_coco_picture {
    const char *file_name;
    qat_objects objects;
} qat_coco_picture;

/** Pictures in the file's order; classes by rising category id. All in the arena. */
typedef struct qat_coco_file {
    qat_coco_picture *pictures;
    int n_pictures, most_objects;
    const char *const *labels; /* [n_classes]; with one_class "object" */
    int n_classes;
} qat_coco_file;

/**
 * Read an annotation file. Boxes without area are passed over (COCO has some). Errors name the file
 * and the place in it, or the image, category or annotation by its id, and the value: ids that are
 * given twice or that nothing has, sizes and boxes that are none, boxes outside their picture.
 */
qat_status qat_coco_read(qat_coco_file *file, qat_arena *arena, const char *path, bool one_class,
                         qat_error *err);

#endif

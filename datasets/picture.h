/** A decoded picture of any size. */
#ifndef QAT_DATASETS_PICTURE_H
#define QAT_DATASETS_PICTURE_H

#include "qat/status.h"

#include <stdint.h>

typedef struct qat_picture {
    uint8_t *pixels; /* [height, width, channels]; free() */
    int height, width;
} qat_picture;

/** Decode a file into 1 or 3 channels; an error names it, and there may be pixels to free after
 * one. */
qat_status qat_picture_read(qat_picture *picture, const char *path, int channels, qat_error *err);

#endif

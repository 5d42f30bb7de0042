/** What a tf.train.Example says of a picture: a protocol buffer, as TFRecords of pictures hold. */
#ifndef QAT_DATASETS_EXAMPLE_H
#define QAT_DATASETS_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Pointers into the message. NULL, or label -1: not there. */
typedef struct qat_example {
    const uint8_t *picture; /* image/encoded, or image */
    size_t picture_bytes;
    const char *name; /* image/filename, or file_name; not ended by 0 */
    size_t name_bytes;
    int64_t label; /* image/class/label, or label */
} qat_example;

/** Read a message. Returns false if it is no Example. */
bool qat_example_read(qat_example *example, const uint8_t *bytes, size_t count);

#endif

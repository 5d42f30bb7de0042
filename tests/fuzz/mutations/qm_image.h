/**
 * Takes a .qm file apart into its header and five sections, and puts them together again. The
 * sections may have any content. Offsets, counts, padding, file_bytes and CRC come out right;
 * everything else stays as it is. With this you can make files that are broken in one place only.
 */
#ifndef QAT_TESTS_QM_IMAGE_H
#define QAT_TESTS_QM_IMAGE_H

#include "infer/model/qm_layout.h"

typedef enum qm_part { QM_TENSORS, QM_NODES, QM_INTS, QM_STRINGS, QM_DATA, QM_PARTS } qm_part;

enum { QM_IMAGE_BYTES = 1 << 16 };

/** Records of a section; bytes that make no whole record are dropped. */
typedef struct qm_section {
    uint8_t bytes[QM_IMAGE_BYTES];
    size_t count;
} qm_section;

typedef struct qm_image {
    uint8_t header[QM_HEADER_BYTES];
    qm_section part[QM_PARTS];
} qm_image;

/** Bytes of one record: 64, 48, 4, 1, 1. */
size_t qm_record_bytes(qm_part part);
uint8_t *qm_record(qm_image *image, qm_part part, size_t index);
uint32_t qm_get(const uint8_t *p);
void qm_put(uint8_t *p, uint32_t value);

/** Take apart what of a file is there; 0: not even a header, or other records than long ones. */
int qm_split(qm_image *image, const uint8_t *file, size_t size);
/** Put together and seal; the size, 0: more than most bytes. */
size_t qm_join(const qm_image *image, uint8_t *file, size_t most);
/** Append n records, zeros where from is NULL; index of the first, or -1: no room. */
long qm_append(qm_image *image, qm_part part, const uint8_t *from, size_t n);
/** Make room for one record before index, filled with a copy of record from; 0: no room. */
int qm_insert_copy(qm_image *image, qm_part part, size_t index, size_t from);
void qm_remove(qm_image *image, qm_part part, size_t index);

/** Make magic, version, file_bytes and CRC those of the bytes that are there. */
void qm_seal(uint8_t *file, size_t size);

#endif

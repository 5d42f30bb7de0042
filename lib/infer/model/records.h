/**
 * Tensors and nodes of a file with short or compact records (docs/qm-format.md), as the long
 * records that all other files have. So only one reader knows what a field means.
 */
#ifndef QI_RECORDS_H
#define QI_RECORDS_H

#include "infer/model/model.h"

/** A walk over the records of a section, first to last. */
typedef struct qm_walk {
    const uint8_t *at, *end; /* the next record, and the end of the section */
    uint32_t form;           /* QM_FLAG_SHORT, QM_FLAG_COMPACT or 0: long records */
    uint32_t data; /* compact tensors: where the next constant may begin; the reader sets it */
    uint32_t ints; /* compact nodes: where the next range of ints begins */
    int is_bad;    /* a record was cut off, or a number is no number */
} qm_walk;

/** The form of a file's records, as of qm_walk. */
static inline uint32_t qm_form(const uint8_t *qm)
{
    return qm_u32(qm + QM_AT_FLAGS) & (QM_FLAG_SHORT | QM_FLAG_COMPACT);
}

/** The bytes of one tensor and of one node in such a file; of compact records the fewest. */
uint32_t qm_tensor_record_bytes(uint32_t form);
uint32_t qm_node_record_bytes(uint32_t form);

/** Begin a walk over the tensors or the nodes. The sections of the file are in their places. */
qm_walk qm_walk_tensors(const uint8_t *qm);
qm_walk qm_walk_nodes(const uint8_t *qm);
/**
 * The next record: where it lies in the file, or made in room of one that is not long. Walk as many
 * as the file has. NULL: the record is malformed. Of a compact tensor, QM_TENSOR_DATA is not an
 * offset but its place: 0, or 1 + the offset.
 */
const uint8_t *qm_next_tensor(qm_walk *walk, uint8_t room[QM_TENSOR_BYTES]);
const uint8_t *qm_next_node(qm_walk *walk, uint8_t room[QM_NODE_BYTES]);

#endif

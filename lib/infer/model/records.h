/**
 * Tensors and nodes of a file with short records (docs/qm-format.md, "Short records"), as the
 * records that all other files have. So only one reader knows what a field means.
 */
#ifndef QI_RECORDS_H
#define QI_RECORDS_H

#include "infer/model/model.h"

/** The bytes of one tensor and of one node in this file. */
static inline uint32_t qm_tensor_record_bytes(const uint8_t *qm)
{
    return qm_u32(qm + QM_AT_FLAGS) & QM_FLAG_SHORT ? QM_SHORT_TENSOR_BYTES : QM_TENSOR_BYTES;
}
static inline uint32_t qm_node_record_bytes(const uint8_t *qm)
{
    return qm_u32(qm + QM_AT_FLAGS) & QM_FLAG_SHORT ? QM_SHORT_NODE_BYTES : QM_NODE_BYTES;
}

/**
 * The record of a tensor or node: where it lies in the file, or made of a short one in room.
 * @param index  one that the file has
 */
const uint8_t *qm_tensor_record(const uint8_t *qm, int32_t index, uint8_t room[QM_TENSOR_BYTES]);
const uint8_t *qm_node_record(const uint8_t *qm, int32_t index, uint8_t room[QM_NODE_BYTES]);

#endif

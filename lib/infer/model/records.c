#include "infer/model/records.h"
#include "infer/kernels/parts/memory.h"

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/** The size is left 0: it follows from the other fields. */
static void expand_tensor(const uint8_t *p, uint8_t record[QM_TENSOR_BYTES])
{
    uint8_t const kind = p[QM_SHORT_TENSOR_KIND] & 15;
    int32_t const zero_point = (int16_t)(p[QM_SHORT_TENSOR_ZERO_POINT] |
                                         (uint16_t)(p[QM_SHORT_TENSOR_ZERO_POINT + 1] << 8));
    memset(record, 0, QM_TENSOR_BYTES);
    record[QM_TENSOR_TYPE] = p[QM_SHORT_TENSOR_TYPE];
    record[QM_TENSOR_KIND] = kind;
    record[QM_TENSOR_RANK] = p[QM_SHORT_TENSOR_RANK];
    record[QM_TENSOR_BITS] = p[QM_SHORT_TENSOR_BITS];
    memcpy(record + QM_TENSOR_DIMS, p + QM_SHORT_TENSOR_DIMS, 4 * sizeof(int32_t));
    put_u32(record + QM_TENSOR_ZERO_POINT, (uint32_t)zero_point);
    memcpy(record + QM_TENSOR_SCALE, p + QM_SHORT_TENSOR_SCALE, sizeof(uint32_t));
    put_u32(record + QM_TENSOR_CHANNEL_SCALES, UINT32_MAX);
    put_u32(record + QM_TENSOR_SOURCE_INDEX, UINT32_MAX);
    memcpy(record + (kind == QI_STATE ? QM_TENSOR_NEXT : QM_TENSOR_DATA), p + QM_SHORT_TENSOR_DATA,
           sizeof(uint32_t));
    record[QM_TENSOR_BORDER] = p[QM_SHORT_TENSOR_KIND] >> 4;
    record[QM_TENSOR_PACKING] = p[QM_SHORT_TENSOR_PACKING];
    record[QM_TENSOR_LISTED] = p[QM_SHORT_TENSOR_LISTED];
}

const uint8_t *qm_tensor_record(const uint8_t *qm, int32_t index, uint8_t room[QM_TENSOR_BYTES])
{
    size_t const bytes = qm_tensor_record_bytes(qm);
    const uint8_t *p = qm + QM_HEADER_BYTES + (size_t)index * bytes;
    if (bytes == QM_TENSOR_BYTES)
        return p;
    expand_tensor(p, room);
    return room;
}

/** A range that begins where the one before ends. */
static uint32_t put_range(uint8_t *to, uint32_t first, uint32_t count)
{
    put_u32(to, first);
    put_u32(to + 4, count);
    return first + count;
}

static void expand_node(const uint8_t *p, uint8_t record[QM_NODE_BYTES])
{
    uint32_t const n_inputs = p[QM_SHORT_NODE_N_INPUTS] | (uint32_t)p[QM_SHORT_NODE_N_INPUTS + 1]
                                                              << 8;
    uint32_t const reserved = p[QM_SHORT_NODE_RESERVED] | (uint32_t)p[QM_SHORT_NODE_RESERVED + 1]
                                                              << 8;
    uint32_t first = qm_u32(p + QM_SHORT_NODE_FIRST);
    memset(record, 0, QM_NODE_BYTES);
    memcpy(record + QM_NODE_OP, p + QM_SHORT_NODE_OP, sizeof(uint32_t));
    first = put_range(record + QM_NODE_INPUTS, first, n_inputs);
    first = put_range(record + QM_NODE_OUTPUTS, first, p[QM_SHORT_NODE_N_OUTPUTS]);
    put_range(record + QM_NODE_PARAMS, first, p[QM_SHORT_NODE_N_PARAMS]);
    put_u32(record + QM_NODE_ROUNDING, p[QM_SHORT_NODE_ROUNDING] | reserved << 8);
    put_u32(record + QM_NODE_FRACTION, p[QM_SHORT_NODE_FRACTION]);
    memcpy(record + QM_NODE_MAX_ACCUMULATOR, p + QM_SHORT_NODE_MAX_ACCUMULATOR, sizeof(int64_t));
}

const uint8_t *qm_node_record(const uint8_t *qm, int32_t index, uint8_t room[QM_NODE_BYTES])
{
    size_t const bytes = qm_node_record_bytes(qm);
    const uint8_t *p = qm + qm_u32(qm + QM_AT_NODES) + (size_t)index * bytes;
    if (bytes == QM_NODE_BYTES)
        return p;
    expand_node(p, room);
    return room;
}

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

/* ------------------------------------------------------------------ compact records */

static uint8_t take_byte(qm_walk *w)
{
    if (w->at < w->end)
        return *w->at++;
    w->is_bad = 1;
    return 0;
}

/**
 * Take a number: seven bits a byte, the lowest first; bytes but the last have 128 added. The last
 * byte of several is not 0, so each number has one form.
 */
static uint32_t take_u32(qm_walk *w)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        uint32_t const byte = take_byte(w), part = byte & 127;
        value |= part << shift;
        if (byte >= 128)
            continue;
        w->is_bad |= (!byte && shift) || (part << shift) >> shift != part;
        return value;
    }
    w->is_bad = 1;
    return 0;
}

static void copy_bytes(qm_walk *w, uint8_t *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = take_byte(w);
}

/** An optional number; without it the field is -1. */
static uint32_t take_index(qm_walk *w, unsigned is_there)
{
    return is_there ? take_u32(w) : UINT32_MAX;
}

/** bits, zero_point and scale: tensors of codes have all of them, tensors of integers at most a
 * scale. */
static void expand_quantization(qm_walk *w, uint8_t *record, unsigned fields)
{
    uint8_t const type = record[QM_TENSOR_TYPE];
    int const has_codes = qi_type_has_codes(type);
    record[QM_TENSOR_BITS] = has_codes ? take_byte(w) : (uint8_t)(8 * qi_type_bytes(type));
    copy_bytes(w, record + QM_TENSOR_ZERO_POINT, has_codes ? 2 : 0);
    if (record[QM_TENSOR_ZERO_POINT + 1] & 0x80)
        record[QM_TENSOR_ZERO_POINT + 2] = record[QM_TENSOR_ZERO_POINT + 3] = 0xff;
    put_u32(record + QM_TENSOR_SCALE, QM_COMPACT_NO_SCALE);
    copy_bytes(w, record + QM_TENSOR_SCALE, has_codes || fields & QM_COMPACT_SCALE ? 4 : 0);
}

static const uint8_t *expand_compact_tensor(qm_walk *w, uint8_t *record)
{
    unsigned const head = take_byte(w), fields = take_byte(w);
    unsigned const kind = head >> QM_COMPACT_KIND_AT & 3;
    unsigned const rank = (head >> QM_COMPACT_RANK_AT & 3) + 1;
    memset(record, 0, QM_TENSOR_BYTES);
    record[QM_TENSOR_TYPE] = head & ((1u << QM_COMPACT_KIND_AT) - 1);
    record[QM_TENSOR_KIND] = (uint8_t)kind;
    record[QM_TENSOR_RANK] = (uint8_t)rank;
    for (unsigned d = 0; d < QI_MAX_RANK; d++)
        put_u32(record + QM_TENSOR_DIMS + 4 * d, d < rank ? take_u32(w) : 1);
    put_u32(record + QM_TENSOR_NAME, head & QM_COMPACT_NAMED ? take_u32(w) : 0);
    expand_quantization(w, record, fields);
    copy_bytes(w, record + QM_TENSOR_RANGE_MIN, fields & QM_COMPACT_RANGE ? 8 : 0);
    put_u32(record + QM_TENSOR_CHANNEL_SCALES, take_index(w, fields & QM_COMPACT_CHANNEL_SCALES));
    put_u32(record + QM_TENSOR_SOURCE_INDEX, take_index(w, fields & QM_COMPACT_SOURCE_INDEX));
    copy_bytes(w, record + QM_TENSOR_BORDER, fields & QM_COMPACT_BORDER ? 1 : 0);
    copy_bytes(w, record + QM_TENSOR_PACKING, fields & QM_COMPACT_PACKING ? 2 : 0);
    if (kind != QI_ACTIVATION)
        put_u32(record + (kind == QI_STATE ? QM_TENSOR_NEXT : QM_TENSOR_DATA), take_u32(w));
    return w->is_bad || fields > QM_COMPACT_FIELDS ? NULL : record;
}

static const uint8_t *expand_compact_node(qm_walk *w, uint8_t *record)
{
    memset(record, 0, QM_NODE_BYTES);
    put_u32(record + QM_NODE_OP, take_u32(w));
    put_u32(record + QM_NODE_NAME, take_u32(w));
    w->ints = put_range(record + QM_NODE_INPUTS, w->ints, take_u32(w));
    w->ints = put_range(record + QM_NODE_OUTPUTS, w->ints, take_u32(w));
    w->ints = put_range(record + QM_NODE_PARAMS, w->ints, take_u32(w));
    unsigned const how = take_byte(w);
    put_u32(record + QM_NODE_ROUNDING, how & ((1u << QM_COMPACT_FRACTION_AT) - 1));
    put_u32(record + QM_NODE_FRACTION, how >> QM_COMPACT_FRACTION_AT & 15);
    copy_bytes(w, record + QM_NODE_MAX_ACCUMULATOR, how & QM_COMPACT_ACCUMULATES ? 8 : 0);
    return w->is_bad ? NULL : record;
}

/* ------------------------------------------------------------------ walks */

uint32_t qm_tensor_record_bytes(uint32_t form)
{
    return form == QM_FLAG_COMPACT ? QM_COMPACT_TENSOR_BYTES
           : form                  ? QM_SHORT_TENSOR_BYTES
                                   : QM_TENSOR_BYTES;
}

uint32_t qm_node_record_bytes(uint32_t form)
{
    return form == QM_FLAG_COMPACT ? QM_COMPACT_NODE_BYTES
           : form                  ? QM_SHORT_NODE_BYTES
                                   : QM_NODE_BYTES;
}

static qm_walk walk_section(const uint8_t *qm, int section, int next)
{
    return (qm_walk){
        .at = qm + qm_u32(qm + section), .end = qm + qm_u32(qm + next), .form = qm_form(qm)};
}

qm_walk qm_walk_tensors(const uint8_t *qm)
{
    return walk_section(qm, QM_AT_TENSORS, QM_AT_NODES);
}

qm_walk qm_walk_nodes(const uint8_t *qm)
{
    return walk_section(qm, QM_AT_NODES, QM_AT_INTS);
}

const uint8_t *qm_next_tensor(qm_walk *walk, uint8_t room[QM_TENSOR_BYTES])
{
    const uint8_t *p = walk->at;
    if (walk->form == QM_FLAG_COMPACT)
        return expand_compact_tensor(walk, room);
    walk->at += qm_tensor_record_bytes(walk->form);
    if (!walk->form)
        return p;
    expand_tensor(p, room);
    return room;
}

const uint8_t *qm_next_node(qm_walk *walk, uint8_t room[QM_NODE_BYTES])
{
    const uint8_t *p = walk->at;
    if (walk->form == QM_FLAG_COMPACT)
        return expand_compact_node(walk, room);
    walk->at += qm_node_record_bytes(walk->form);
    if (!walk->form)
        return p;
    expand_node(p, room);
    return room;
}

void qi_record_bytes(const qi_model *model, uint32_t *tensors, uint32_t *nodes)
{
    uint8_t room[QM_TENSOR_BYTES];
    qm_walk walk = qm_walk_tensors(model->qm);
    for (int32_t i = 0; i < model->n_tensors; i++) {
        const uint8_t *record = walk.at;
        (void)qm_next_tensor(&walk, room);
        tensors[i] = (uint32_t)(walk.at - record);
    }
    walk = qm_walk_nodes(model->qm);
    for (int32_t i = 0; i < model->n_nodes; i++) {
        const uint8_t *record = walk.at;
        (void)qm_next_node(&walk, room);
        nodes[i] = (uint32_t)(walk.at - record);
    }
}

#include "convert/qm_records.h"

#include "infer/model/qm_layout.h"

#include <string.h>

static uint8_t kind_of(const qat_qtensor *t)
{
    return t->data ? QI_CONSTANT : t->is_state ? QI_STATE : QI_ACTIVATION;
}

/* ------------------------------------------------------------------ long records */

static void write_range(qat_writer *w, uint32_t first, int count)
{
    qat_write_u32(w, first);
    qat_write_u32(w, (uint32_t)count);
}

static void write_long_tensor(qat_writer *w, const qat_qtensor *t, const qm_tensor_place *place)
{
    qat_write_u32(w, place->name);
    qat_write_u8(w, (uint8_t)t->type);
    qat_write_u8(w, kind_of(t));
    qat_write_u8(w, (uint8_t)t->rank);
    qat_write_u8(w, (uint8_t)t->bits);
    for (int i = 0; i < QI_MAX_RANK; i++)
        qat_write_u32(w, (uint32_t)t->dims[i]);
    qat_write_u32(w, (uint32_t)t->zero_point);
    qat_write_f32(w, place->scale);
    qat_write_u32(w, (uint32_t)place->scales);
    qat_write_u32(w, (uint32_t)t->source_index);
    qat_write_u32(w, place->data);
    qat_write_u32(w, place->bytes);
    qat_write_f32(w, t->range_min);
    qat_write_f32(w, t->range_max);
    qat_write_u8(w, (uint8_t)t->border);
    qat_write_u8(w, place->packing);
    qat_write_u8(w, place->listed);
    qat_write_u8(w, 0); /* reserved */
    qat_write_u32(w, t->is_state ? (uint32_t)t->next : 0);
}

static void write_long_node(qat_writer *w, const qat_qop *op, const qm_node_place *place)
{
    qat_write_u32(w, place->op);
    qat_write_u32(w, place->name);
    write_range(w, place->inputs, op->n_inputs);
    write_range(w, place->outputs, op->n_outputs);
    write_range(w, place->params, op->n_params);
    qat_write_u32(w, (uint32_t)op->rounding);
    qat_write_u32(w, (uint32_t)op->fraction);
    qat_write_u64(w, (uint64_t)op->max_accumulator);
}

/* ------------------------------------------------------------------ short records */

static void write_short_tensor(qat_writer *w, const qat_qtensor *t, const qm_tensor_place *place)
{
    qat_write_u8(w, (uint8_t)t->type);
    qat_write_u8(w, (uint8_t)(kind_of(t) + 16 * (int)t->border));
    qat_write_u8(w, (uint8_t)t->rank);
    qat_write_u8(w, (uint8_t)t->bits);
    for (int i = 0; i < QI_MAX_RANK; i++)
        qat_write_u32(w, (uint32_t)t->dims[i]);
    qat_write_u16(w, (uint16_t)t->zero_point);
    qat_write_u8(w, place->packing);
    qat_write_u8(w, place->listed);
    qat_write_f32(w, place->scale);
    qat_write_u32(w, t->is_state ? (uint32_t)t->next : place->data);
}

static void write_short_node(qat_writer *w, const qat_qop *op, const qm_node_place *place)
{
    qat_write_u32(w, place->op);
    qat_write_u32(w, place->inputs);
    qat_write_u16(w, (uint16_t)op->n_inputs);
    qat_write_u8(w, (uint8_t)op->n_outputs);
    qat_write_u8(w, (uint8_t)op->n_params);
    qat_write_u8(w, (uint8_t)op->rounding);
    qat_write_u8(w, (uint8_t)op->fraction);
    qat_write_u16(w, 0);
    qat_write_u64(w, (uint64_t)op->max_accumulator);
}

/* ------------------------------------------------------------------ compact records */

static void write_number(qat_writer *w, uint32_t value)
{
    for (; value >= 128; value >>= 7)
        qat_write_u8(w, (uint8_t)(value | 128));
    qat_write_u8(w, (uint8_t)value);
}

static bool is_zero(float value)
{
    static const float zero;
    return memcmp(&value, &zero, sizeof value) == 0; /* not -0 */
}

/**
 * Which fields a compact record has. They do not depend on the values of parameters, nor on the
 * bits of weights: so the size of a file is known before its network is trained.
 */
static int fields_of(const qat_qtensor *t, const qm_tensor_place *place)
{
    bool const has_codes = qi_type_has_codes((int)t->type);
    bool const has_range = !place->is_bare && !(is_zero(t->range_min) && is_zero(t->range_max));
    bool const has_source = !place->is_bare && t->source_index >= 0;
    bool const may_be_packed = t->data && qi_type_bytes((int)t->type) == 1;
    return (!has_codes && place->scale != 1.0f ? QM_COMPACT_SCALE : 0) |
           (has_range ? QM_COMPACT_RANGE : 0) |
           (place->scales >= 0 ? QM_COMPACT_CHANNEL_SCALES : 0) |
           (has_source ? QM_COMPACT_SOURCE_INDEX : 0) | (t->border ? QM_COMPACT_BORDER : 0) |
           (may_be_packed || place->packing ? QM_COMPACT_PACKING : 0);
}

static void write_fields(qat_writer *w, int fields, const qat_qtensor *t,
                         const qm_tensor_place *place)
{
    if (qi_type_has_codes((int)t->type)) {
        qat_write_u8(w, (uint8_t)t->bits);
        qat_write_u16(w, (uint16_t)t->zero_point);
    }
    if (qi_type_has_codes((int)t->type) || fields & QM_COMPACT_SCALE)
        qat_write_f32(w, place->scale);
    if (fields & QM_COMPACT_RANGE) {
        qat_write_f32(w, t->range_min);
        qat_write_f32(w, t->range_max);
    }
    if (fields & QM_COMPACT_CHANNEL_SCALES)
        write_number(w, (uint32_t)place->scales);
    if (fields & QM_COMPACT_SOURCE_INDEX)
        write_number(w, (uint32_t)t->source_index);
    if (fields & QM_COMPACT_BORDER)
        qat_write_u8(w, (uint8_t)t->border);
    if (fields & QM_COMPACT_PACKING) {
        qat_write_u8(w, place->packing);
        qat_write_u8(w, place->listed);
    }
}

static void write_compact_tensor(qat_writer *w, const qat_qtensor *t, const qm_tensor_place *place)
{
    int const fields = fields_of(t, place);
    int const head = (int)t->type | kind_of(t) << QM_COMPACT_KIND_AT |
                     (t->rank - 1) << QM_COMPACT_RANK_AT | (place->name ? QM_COMPACT_NAMED : 0);
    qat_write_u8(w, (uint8_t)head);
    qat_write_u8(w, (uint8_t)fields);
    for (int d = 0; d < t->rank; d++)
        write_number(w, (uint32_t)t->dims[d]);
    if (place->name)
        write_number(w, place->name);
    write_fields(w, fields, t, place);
    if (t->data)
        write_number(w, place->follows ? 0 : place->data + 1);
    else if (t->is_state)
        write_number(w, (uint32_t)t->next);
}

static void write_compact_node(qat_writer *w, const qat_qop *op, const qm_node_place *place)
{
    int const how = (int)op->rounding | op->fraction << QM_COMPACT_FRACTION_AT |
                    (op->max_accumulator ? QM_COMPACT_ACCUMULATES : 0);
    write_number(w, place->op);
    write_number(w, place->name);
    write_number(w, (uint32_t)op->n_inputs);
    write_number(w, (uint32_t)op->n_outputs);
    write_number(w, (uint32_t)op->n_params);
    qat_write_u8(w, (uint8_t)how);
    if (op->max_accumulator)
        qat_write_u64(w, (uint64_t)op->max_accumulator);
}

/* ------------------------------------------------------------------ any form */

static const struct {
    void (*tensor)(qat_writer *, const qat_qtensor *, const qm_tensor_place *);
    void (*node)(qat_writer *, const qat_qop *, const qm_node_place *);
} forms[] = {
    [QM_LONG] = {write_long_tensor, write_long_node},
    [QM_SHORT] = {write_short_tensor, write_short_node},
    [QM_COMPACT] = {write_compact_tensor, write_compact_node},
};

void qm_write_tensor(qat_writer *w, qm_record_form form, const qat_qtensor *t,
                     const qm_tensor_place *place)
{
    forms[form].tensor(w, t, place);
}

void qm_write_node(qat_writer *w, qm_record_form form, const qat_qop *op,
                   const qm_node_place *place)
{
    forms[form].node(w, op, place);
}

/**
 * Writes a FlatBuffer from front to back. First comes a table with room for its offsets, then the
 * things to which they lead. Every field takes four bytes, and every vtable comes before its table.
 */
#include "common/tflite_build.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 12 };

/** A table being written: where it is, and where each of its fields is; 0: not there. */
struct table {
    size_t at, slot[MAX_FIELDS];
};

static void put_u16(qat_writer *w, size_t value)
{
    qat_write_u16(w, (uint16_t)value);
}

/** A table whose fields are those of the bit mask, all zero. */
static struct table put_table(qat_writer *w, unsigned fields)
{
    struct table t = {0};
    size_t next = 4;
    qat_write_align(w, 4);
    size_t const vtable = w->count;
    put_u16(w, 4 + 2 * MAX_FIELDS);
    size_t const size_at = w->count;
    put_u16(w, 0);
    for (int i = 0; i < MAX_FIELDS; i++) {
        int const here = fields >> i & 1u;
        put_u16(w, here ? next : 0);
        t.slot[i] = here ? next : 0;
        next += here ? 4 : 0;
    }
    qat_write_align(w, 4);
    t.at = w->count;
    w->bytes[size_at] = (uint8_t)next;
    qat_write_u32(w, (uint32_t)(t.at - vtable));
    for (size_t i = 4; i < next; i += 4)
        qat_write_u32(w, 0);
    return t;
}

static void set(qat_writer *w, const struct table *t, int field, uint32_t value)
{
    qat_patch_u32(w, t->at + t->slot[field], value);
}

/** Lead an offset to what is written next. */
static void lead(qat_writer *w, size_t slot)
{
    qat_write_align(w, 4);
    qat_patch_u32(w, slot, (uint32_t)(w->count - slot));
}

static void lead_field(qat_writer *w, const struct table *t, int field)
{
    lead(w, t->at + t->slot[field]);
}

static void put_bytes(qat_writer *w, const struct table *t, int field, const void *bytes, size_t n)
{
    lead_field(w, t, field);
    qat_write_u32(w, (uint32_t)n);
    qat_write_bytes(w, bytes, n);
    qat_write_u8(w, 0);
}

static void put_ints(qat_writer *w, const struct table *t, int field, const int *values, int n)
{
    lead_field(w, t, field);
    qat_write_u32(w, (uint32_t)n);
    for (int i = 0; i < n; i++)
        qat_write_u32(w, (uint32_t)values[i]);
}

/** A vector of n offsets to tables, not led anywhere yet; the place of the first. */
static size_t put_tables(qat_writer *w, const struct table *t, int field, int n)
{
    lead_field(w, t, field);
    qat_write_u32(w, (uint32_t)n);
    size_t const first = w->count;
    for (int i = 0; i < n; i++)
        qat_write_u32(w, 0);
    return first;
}

/** A table that an offset of such a vector leads to; its own place, behind its vtable. */
static struct table put_item(qat_writer *w, size_t slot, unsigned fields)
{
    struct table const t = put_table(w, fields);
    qat_patch_u32(w, slot, (uint32_t)(t.at - slot));
    return t;
}

static struct table put_subtable(qat_writer *w, const struct table *of, int field, unsigned fields)
{
    return put_item(w, of->at + of->slot[field], fields);
}

/* ------------------------------------------------------------------ the schema's tables */

static void put_quantization(qat_writer *w, const struct table *tensor, const build_tensor *t,
                             uint32_t scales)
{
    struct table const q = put_subtable(w, tensor, 4, 1u << 2 | 1u << 3);
    lead_field(w, &q, 2);
    qat_write_u32(w, scales);
    for (uint32_t i = 0; i < scales; i++)
        qat_write_f32(w, t->scale);
    lead_field(w, &q, 3);
    qat_write_u32(w, scales);
    for (uint32_t i = 0; i < scales; i++)
        qat_write_u64(w, (uint64_t)t->zero_point);
}

/** Its constant is in the buffer of its own number + 1. */
static void put_tensor(qat_writer *w, size_t slot, const build_model *m, int index)
{
    const build_tensor *t = &m->tensors[index];
    int const scales = m->n_scales && m->scales_of == index ? m->n_scales : 1;
    unsigned const quantized = t->scale != 0 ? 1u << 4 : 0;
    struct table const table =
        put_item(w, slot,
                 1u | 1u << 1 | 1u << 2 | 1u << 3 | quantized | (t->variable ? 1u << 5 : 0) |
                     (t->sparse ? 1u << 6 : 0));
    set(w, &table, 1, (uint32_t)t->type);
    set(w, &table, 2, t->data ? (uint32_t)index + 1 : 0);
    if (t->variable)
        set(w, &table, 5, 1);
    put_ints(w, &table, 0, t->dims, t->rank);
    put_bytes(w, &table, 3, t->name, strlen(t->name));
    if (quantized)
        put_quantization(w, &table, t, (uint32_t)scales);
    if (t->sparse)
        put_subtable(w, &table, 6, 0);
}

static void put_options(qat_writer *w, const struct table *op, const build_op *o)
{
    unsigned fields = o->n_ints ? 1 : 0;
    for (int i = 0; i < o->n_options; i++)
        fields |= 1u << o->options[i].field;
    struct table const t = put_subtable(w, op, 4, fields);
    for (int i = 0; i < o->n_options; i++)
        set(w, &t, o->options[i].field, o->options[i].bits);
    if (o->n_ints)
        put_ints(w, &t, 0, o->ints, o->n_ints);
}

static void put_op(qat_writer *w, size_t slot, const build_op *o, int index)
{
    unsigned const options = o->n_options || o->n_ints ? 1u << 4 : 0;
    struct table const t =
        put_item(w, slot,
                 1u | 1u << 1 | 1u << 2 | 1u << 3 | options | (o->custom_bytes ? 1u << 5 : 0) |
                     (o->n_intermediates ? 1u << 8 : 0));
    set(w, &t, 0, (uint32_t)index);
    set(w, &t, 3, (uint32_t)o->options_type);
    put_ints(w, &t, 1, o->inputs, o->n_inputs);
    put_ints(w, &t, 2, o->outputs, o->n_outputs);
    if (options)
        put_options(w, &t, o);
    if (o->n_intermediates)
        put_ints(w, &t, 8, o->intermediates, o->n_intermediates);
    if (o->custom_bytes)
        put_bytes(w, &t, 5, o->custom_options, o->custom_bytes);
}

static void put_subgraph(qat_writer *w, size_t slot, const build_model *m)
{
    struct table const t = put_item(w, slot, 0xf);
    put_ints(w, &t, 1, m->inputs, m->n_inputs);
    put_ints(w, &t, 2, m->outputs, m->n_outputs);
    size_t const tensors = put_tables(w, &t, 0, m->n_tensors);
    for (int i = 0; i < m->n_tensors; i++)
        put_tensor(w, tensors + 4 * (size_t)i, m, i);
    size_t const ops = put_tables(w, &t, 3, m->n_ops);
    for (int i = 0; i < m->n_ops; i++)
        put_op(w, ops + 4 * (size_t)i, &m->ops[i], i);
}

/**
 * Store the operator's number in two fields, as newer files do. If the number does not fit into the
 * old one-byte field, that field says so.
 */
static void put_codes(qat_writer *w, const struct table *root, const build_model *m)
{
    size_t const codes = put_tables(w, root, 1, m->n_ops);
    for (int i = 0; i < m->n_ops; i++) {
        const build_op *o = &m->ops[i];
        struct table const t =
            put_item(w, codes + 4 * (size_t)i, 1u << 3 | (o->custom ? 1u << 1 : 0));
        set(w, &t, 3, (uint32_t)o->code);
        if (o->custom)
            put_bytes(w, &t, 1, o->custom, strlen(o->custom));
    }
}

static void put_buffers(qat_writer *w, const struct table *root, const build_model *m)
{
    size_t const buffers = put_tables(w, root, 4, m->n_tensors + 1);
    put_item(w, buffers, 0);
    for (int i = 0; i < m->n_tensors; i++) {
        const build_tensor *t = &m->tensors[i];
        struct table const b = put_item(w, buffers + 4 * (size_t)i + 4, t->data ? 1 : 0);
        if (t->data)
            put_bytes(w, &b, 0, t->data, t->bytes);
    }
}

uint8_t *build_tflite(const build_model *m, size_t *count)
{
    qat_writer w = {0};
    int const subgraphs = m->subgraphs ? m->subgraphs : 1;
    qat_write_u32(&w, 0);
    qat_write_bytes(&w, "TFL3", 4);
    struct table const root = put_item(&w, 0, 1u | 1u << 1 | 1u << 2 | 1u << 4);
    set(&w, &root, 0, m->version ? (uint32_t)m->version : 3);
    put_codes(&w, &root, m);
    size_t const graphs = put_tables(&w, &root, 2, subgraphs);
    for (int i = 0; i < subgraphs; i++)
        put_subgraph(&w, graphs + 4 * (size_t)i, m);
    put_buffers(&w, &root, m);
    *count = w.count;
    return w.bytes;
}

/* ------------------------------------------------------------------ FlexBuffers */

uint8_t *build_flex_map(const build_number *numbers, int n, size_t *count)
{
    enum { FLOAT = 3, MAP = 9, WIDTH_4 = 2, MAX_KEYS = 32 };
    qat_writer w = {0};
    size_t keys[MAX_KEYS];
    for (int i = 0; i < n; i++) {
        keys[i] = w.count;
        qat_write_bytes(&w, numbers[i].key, strlen(numbers[i].key) + 1);
    }
    qat_write_align(&w, 4);
    qat_write_u32(&w, (uint32_t)n);
    size_t const first_key = w.count;
    for (int i = 0; i < n; i++)
        qat_write_u32(&w, (uint32_t)(w.count - keys[i]));
    qat_write_u32(&w, (uint32_t)(w.count - first_key));
    qat_write_u32(&w, 4);
    qat_write_u32(&w, (uint32_t)n);
    size_t const map = w.count;
    for (int i = 0; i < n; i++)
        qat_write_f32(&w, numbers[i].value);
    for (int i = 0; i < n; i++)
        qat_write_u8(&w, FLOAT << 2 | WIDTH_4);
    qat_write_u16(&w, (uint16_t)(w.count - map));
    qat_write_u8(&w, MAP << 2 | WIDTH_4);
    qat_write_u8(&w, 2);
    *count = w.count;
    return w.bytes;
}

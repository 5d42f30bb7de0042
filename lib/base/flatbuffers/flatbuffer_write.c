#include "base/flatbuffers/flatbuffer_write.h"

#include <string.h>

static fbw_table put_table(qat_writer *w, unsigned fields)
{
    fbw_table t = {0};
    size_t next = 4;
    int count = 0;
    for (int i = 0; i < FBW_MAX_FIELDS; i++)
        if (fields >> i & 1u) {
            t.slot[i] = next;
            next += 4;
            count = i + 1;
        }
    qat_write_align(w, 4);
    size_t const vtable = w->count;
    qat_write_u16(w, (uint16_t)(4 + 2 * count));
    qat_write_u16(w, (uint16_t)next);
    for (int i = 0; i < count; i++)
        qat_write_u16(w, (uint16_t)t.slot[i]);
    qat_write_align(w, 4);
    t.at = w->count;
    qat_write_u32(w, (uint32_t)(t.at - vtable));
    for (size_t i = 4; i < next; i += 4)
        qat_write_u32(w, 0);
    return t;
}

fbw_table fbw_item(qat_writer *w, size_t slot, unsigned fields)
{
    fbw_table const t = put_table(w, fields);
    qat_patch_u32(w, slot, (uint32_t)(t.at - slot));
    return t;
}

fbw_table fbw_root(qat_writer *w, const char identifier[4], unsigned fields)
{
    qat_write_u32(w, 0);
    qat_write_bytes(w, identifier, 4);
    return fbw_item(w, 0, fields);
}

fbw_table fbw_subtable(qat_writer *w, const fbw_table *of, int field, unsigned fields)
{
    return fbw_item(w, of->at + of->slot[field], fields);
}

void fbw_set(qat_writer *w, const fbw_table *t, int field, uint32_t value)
{
    qat_patch_u32(w, t->at + t->slot[field], value);
}

void fbw_vector(qat_writer *w, const fbw_table *t, int field, size_t count, size_t alignment)
{
    size_t const slot = t->at + t->slot[field];
    qat_write_align(w, 4);
    while (!w->failed && (w->count + 4) % alignment)
        qat_write_u32(w, 0);
    qat_patch_u32(w, slot, (uint32_t)(w->count - slot));
    qat_write_u32(w, (uint32_t)count);
}

void fbw_bytes(qat_writer *w, const fbw_table *t, int field, const void *bytes, size_t n)
{
    fbw_vector(w, t, field, n, 4);
    qat_write_bytes(w, bytes, n);
    qat_write_u8(w, 0);
}

void fbw_text(qat_writer *w, const fbw_table *t, int field, const char *text)
{
    fbw_bytes(w, t, field, text, strlen(text));
}

void fbw_ints(qat_writer *w, const fbw_table *t, int field, const int *values, int n)
{
    fbw_vector(w, t, field, (size_t)n, 4);
    for (int i = 0; i < n; i++)
        qat_write_u32(w, (uint32_t)values[i]);
}

size_t fbw_tables(qat_writer *w, const fbw_table *t, int field, int n)
{
    fbw_vector(w, t, field, (size_t)n, 4);
    size_t const first = w->count;
    for (int i = 0; i < n; i++)
        qat_write_u32(w, 0);
    return first;
}

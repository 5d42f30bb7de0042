#include "base/flatbuffers/flatbuffer.h"

#include <string.h>

enum { VTABLE_HEADER = 4, NO_FIELD = 0 };

/** A little-endian number of up to 8 bytes at a place that is known to be inside. */
static uint64_t number_at(const fb_file *file, size_t at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)file->bytes[at + i] << (8 * i);
    return value;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** Do `bytes` bytes at `at` lie inside the file? If not, the file is bad. */
static bool inside(fb_file *file, size_t at, size_t bytes, const char *what)
{
    if (at <= file->count && bytes <= file->count - at)
        return true;
    if (!file->bad) {
        file->bad = true;
        file->bad_at = at;
        file->bad_what = what;
    }
    return false;
}

/** Follow the u32 offset stored at `at`; 0 if it does not lead forwards into the file. */
static size_t follow(fb_file *file, size_t at, const char *what)
{
    if (!inside(file, at, 4, what))
        return 0;
    uint64_t const target = at + number_at(file, at, 4);
    if (target == at || target > file->count) {
        inside(file, file->count, 1, what);
        return 0;
    }
    return (size_t)target;
}

/** The table at `at`, with its vtable checked; absent if it is not inside. */
static fb_table table_of(fb_file *file, size_t at)
{
    fb_table const none = {0};
    if (!at || !inside(file, at, 4, "a table"))
        return none;
    int64_t const vtable = (int64_t)at - (int32_t)(uint32_t)number_at(file, at, 4);
    if (vtable < 0 || !inside(file, (size_t)vtable, VTABLE_HEADER, "a vtable")) {
        inside(file, file->count, 1, "a vtable");
        return none;
    }
    uint32_t const bytes = (uint32_t)number_at(file, (size_t)vtable, 2);
    if (bytes < VTABLE_HEADER || !inside(file, (size_t)vtable, bytes, "a vtable")) {
        inside(file, file->count, 1, "a vtable");
        return none;
    }
    return (fb_table){file, at, (size_t)vtable, bytes};
}

fb_table fb_root(fb_file *file, const char *identifier)
{
    if (!inside(file, 0, 8, "the header") || memcmp(file->bytes + 4, identifier, 4) != 0) {
        inside(file, file->count, 1, "the file's identifier");
        return (fb_table){0};
    }
    return table_of(file, follow(file, 0, "the root table"));
}

/** The place of a field of `bytes` bytes, or 0 if it is absent (or not inside). */
static size_t field_at(const fb_table *table, int field, size_t bytes)
{
    size_t const entry = VTABLE_HEADER + 2 * (size_t)field;
    if (!table->file || entry + 2 > table->vtable_bytes)
        return NO_FIELD;
    size_t const offset = (size_t)number_at(table->file, table->vtable + entry, 2);
    if (!offset || !inside(table->file, table->at + offset, bytes, "a field"))
        return NO_FIELD;
    return table->at + offset;
}

bool fb_has(const fb_table *table, int field)
{
    return field_at(table, field, 1) != NO_FIELD;
}

static uint64_t scalar(const fb_table *table, int field, size_t bytes, uint64_t absent)
{
    size_t const at = field_at(table, field, bytes);
    return at ? number_at(table->file, at, bytes) : absent;
}

uint8_t fb_u8(const fb_table *table, int field, uint8_t absent)
{
    return (uint8_t)scalar(table, field, 1, absent);
}

int32_t fb_i32(const fb_table *table, int field, int32_t absent)
{
    return (int32_t)(uint32_t)scalar(table, field, 4, (uint32_t)absent);
}

uint64_t fb_u64(const fb_table *table, int field, uint64_t absent)
{
    return scalar(table, field, 8, absent);
}

float fb_f32(const fb_table *table, int field, float absent)
{
    size_t const at = field_at(table, field, 4);
    return at ? float_of((uint32_t)number_at(table->file, at, 4)) : absent;
}

/** The place to which an offset field refers; 0 if the field is absent. */
static size_t target_of(const fb_table *table, int field, const char *what)
{
    size_t const at = field_at(table, field, 4);
    return at ? follow(table->file, at, what) : 0;
}

fb_table fb_subtable(const fb_table *table, int field)
{
    size_t const at = target_of(table, field, "a table");
    return at ? table_of(table->file, at) : (fb_table){0};
}

fb_vector fb_items(const fb_table *table, int field, size_t item_bytes)
{
    size_t const at = target_of(table, field, "a vector");
    if (!at || !inside(table->file, at, 4, "a vector"))
        return (fb_vector){0};
    uint64_t const count = number_at(table->file, at, 4);
    if (count > (table->file->count - (at + 4)) / item_bytes) {
        inside(table->file, table->file->count, 1, "a vector's items");
        return (fb_vector){0};
    }
    return (fb_vector){table->file, at + 4, (uint32_t)count};
}

fb_vector fb_string(const fb_table *table, int field)
{
    return fb_items(table, field, 1);
}

fb_table fb_table_at(const fb_vector *vector, uint32_t i)
{
    if (i >= vector->count)
        return (fb_table){0};
    return table_of(vector->file, follow(vector->file, vector->at + 4 * (size_t)i, "a table"));
}

int32_t fb_i32_at(const fb_vector *vector, uint32_t i)
{
    return i < vector->count
               ? (int32_t)(uint32_t)number_at(vector->file, vector->at + 4 * (size_t)i, 4)
               : 0;
}

int64_t fb_i64_at(const fb_vector *vector, uint32_t i)
{
    return i < vector->count ? (int64_t)number_at(vector->file, vector->at + 8 * (size_t)i, 8) : 0;
}

float fb_f32_at(const fb_vector *vector, uint32_t i)
{
    return i < vector->count
               ? float_of((uint32_t)number_at(vector->file, vector->at + 4 * (size_t)i, 4))
               : 0.0f;
}

const uint8_t *fb_bytes(const fb_vector *vector)
{
    return vector->count ? vector->file->bytes + vector->at : NULL;
}

/**
 * A bounded reader of FlatBuffers: tables, vectors and strings inside one block of bytes.
 *
 *     file:    u32 offset of the root table, 4 characters that name the schema
 *     offset:  u32, forwards from where it is stored
 *     table:   i32 distance back to its vtable, then its fields
 *     vtable:  u16 its bytes, u16 the table's bytes, then a u16 for each field: where it lies in
 *              the table, 0: not there, so that the schema's default holds
 *     vector:  u32 count, then the items
 *     string:  a vector of bytes with a 0 after it
 *
 * Nothing is trusted: every access is checked against the size of the block, and none needs
 * alignment. An access outside the block gives 0 (or an absent table or an empty vector) and marks
 * the file as bad, which it stays. So a parser may check once after several reads.
 */
#ifndef QAT_BASE_FLATBUFFER_H
#define QAT_BASE_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fb_file {
    const uint8_t *bytes;
    size_t count;
    bool bad;
    size_t bad_at;        /* place of the first bad access, */
    const char *bad_what; /* and what was read there */
} fb_file;

/** A table. file NULL: an absent table, whose fields all have their defaults. */
typedef struct fb_table {
    fb_file *file;
    size_t at, vtable;
    uint32_t vtable_bytes;
} fb_table;

/** A vector, known to lie inside the file; count 0 if it is absent. */
typedef struct fb_vector {
    fb_file *file;
    size_t at; /* of its first item */
    uint32_t count;
} fb_vector;

/** The root table of a file with this identifier (4 characters). */
fb_table fb_root(fb_file *file, const char *identifier);

/** Is field number `field` of the schema's table stored? */
bool fb_has(const fb_table *table, int field);

/** Scalars: the stored value, or the schema's default. */
uint8_t fb_u8(const fb_table *table, int field, uint8_t absent);
int32_t fb_i32(const fb_table *table, int field, int32_t absent);
uint64_t fb_u64(const fb_table *table, int field, uint64_t absent);
float fb_f32(const fb_table *table, int field, float absent);

fb_table fb_subtable(const fb_table *table, int field);
/** A vector whose items take item_bytes each. */
fb_vector fb_items(const fb_table *table, int field, size_t item_bytes);
/** A string: count bytes, without a final 0. */
fb_vector fb_string(const fb_table *table, int field);

/** Item i < count of a vector of tables, or of numbers. */
fb_table fb_table_at(const fb_vector *vector, uint32_t i);
int32_t fb_i32_at(const fb_vector *vector, uint32_t i);
int64_t fb_i64_at(const fb_vector *vector, uint32_t i);
float fb_f32_at(const fb_vector *vector, uint32_t i);
/** The bytes of a vector of bytes; NULL if it is empty. */
const uint8_t *fb_bytes(const fb_vector *vector);

#endif

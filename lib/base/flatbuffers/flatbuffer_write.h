/**
 * A writer of FlatBuffers, from front to back: first a table with room for its offsets, then the
 * things to which they lead. Every field takes four bytes, and every vtable comes before its table
 * (flatbuffer.h draws the format). Failed allocations are those of the writer.
 */
#ifndef QAT_BASE_FLATBUFFER_WRITE_H
#define QAT_BASE_FLATBUFFER_WRITE_H

#include "base/bytes.h"

enum { FBW_MAX_FIELDS = 12 };

/** A table being written: where it lies, and where each of its fields is; 0: not there. */
typedef struct fbw_table {
    size_t at, slot[FBW_MAX_FIELDS];
} fbw_table;

/** Begin a file. Fields are a bit mask of the schema's numbers; all are 0 until they are set. */
fbw_table fbw_root(qat_writer *w, const char identifier[4], unsigned fields);
/** A table that the offset at `slot` leads to; or a field of another table. */
fbw_table fbw_item(qat_writer *w, size_t slot, unsigned fields);
fbw_table fbw_subtable(qat_writer *w, const fbw_table *of, int field, unsigned fields);

void fbw_set(qat_writer *w, const fbw_table *t, int field, uint32_t value);
/** Begin a vector. Its items come next, and lie at a multiple of `alignment`. */
void fbw_vector(qat_writer *w, const fbw_table *t, int field, size_t count, size_t alignment);
/** Bytes, or the characters of a string, with a 0 after them. */
void fbw_bytes(qat_writer *w, const fbw_table *t, int field, const void *bytes, size_t n);
void fbw_text(qat_writer *w, const fbw_table *t, int field, const char *text);
void fbw_ints(qat_writer *w, const fbw_table *t, int field, const int *values, int n);
/** A vector of n offsets to tables; the place of the first, for fbw_item. Each takes four bytes. */
size_t fbw_tables(qat_writer *w, const fbw_table *t, int field, int n);

#endif

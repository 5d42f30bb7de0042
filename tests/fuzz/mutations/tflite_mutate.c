/**
 * Mutations that know where things are in a .tflite file. They walk through the file along the
 * schema's tables and remember every place: numbers, items of vectors, entries of vtables, counts
 * of vectors, offsets. Then some of these change in place. Nothing moves, so the rest stays
 * readable.
 */
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------------ the schema */

enum table { MODEL, CODE, SUBGRAPH, TENSOR, QUANTIZATION, BUFFER, OPERATOR, OPTIONS, NO_TABLE };

/** What a field holds: a number of so many bytes, a vector of such, a table, a vector of tables. */
enum kind { NOTHING, NUMBER, VECTOR, SUBTABLE, SUBTABLES };

static const struct field {
    uint8_t kind, bytes, table;
} schema[NO_TABLE][7] = {
    [MODEL] = {{NUMBER, 4, 0},
               {SUBTABLES, 4, CODE},
               {SUBTABLES, 4, SUBGRAPH},
               {VECTOR, 1, 0},
               {SUBTABLES, 4, BUFFER}},
    [CODE] = {{NUMBER, 1, 0}, {VECTOR, 1, 0}, {NUMBER, 4, 0}, {NUMBER, 4, 0}},
    [SUBGRAPH] = {{SUBTABLES, 4, TENSOR},
                  {VECTOR, 4, 0},
                  {VECTOR, 4, 0},
                  {SUBTABLES, 4, OPERATOR},
                  {VECTOR, 1, 0}},
    [TENSOR] = {{VECTOR, 4, 0},
                {NUMBER, 1, 0},
                {NUMBER, 4, 0},
                {VECTOR, 1, 0},
                {SUBTABLE, 4, QUANTIZATION},
                {NUMBER, 1, 0}},
    [QUANTIZATION] = {{VECTOR, 4, 0},
                      {VECTOR, 4, 0},
                      {VECTOR, 4, 0},
                      {VECTOR, 8, 0},
                      {NUMBER, 1, 0},
                      {NOTHING, 0, 0},
                      {NUMBER, 4, 0}},
    [BUFFER] = {{VECTOR, 1, 0}, {NUMBER, 8, 0}, {NUMBER, 8, 0}},
    [OPERATOR] = {{NUMBER, 4, 0},
                  {VECTOR, 4, 0},
                  {VECTOR, 4, 0},
                  {NUMBER, 1, 0},
                  {SUBTABLE, 4, OPTIONS},
                  {VECTOR, 1, 0}},
    /* whichever options: booleans and enumerations have one byte, most others four */
    [OPTIONS] = {{NUMBER, 4, 0},
                 {NUMBER, 4, 0},
                 {NUMBER, 4, 0},
                 {NUMBER, 4, 0},
                 {NUMBER, 4, 0},
                 {NUMBER, 4, 0},
                 {NUMBER, 4, 0}},
};

/* ------------------------------------------------------------------ the walk */

enum place_kind { PLACE_NUMBERS, PLACE_VTABLE, PLACE_COUNT, PLACE_OFFSET, PLACE_KINDS };
enum { MOST_PLACES = 4096, MOST_DEPTH = 8 };

/**
 * count numbers of `bytes` bytes in a row, in this field of a table. An offset to a table: which
 * table it leads to, field 0; to a vector: the field's number and 1.
 */
struct place {
    size_t at, count;
    uint8_t kind, bytes, table, field;
};

struct walk {
    uint8_t *data;
    size_t size;
    size_t n;
    struct place places[MOST_PLACES];
};

static uint64_t get(const struct walk *w, size_t at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes && at + (size_t)i < w->size; i++)
        value |= (uint64_t)w->data[at + (size_t)i] << (8 * i);
    return value;
}

static void put(struct walk *w, size_t at, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes && at + (size_t)i < w->size; i++)
        w->data[at + (size_t)i] = (uint8_t)(value >> (8 * i));
}

static bool inside(const struct walk *w, size_t at, size_t bytes)
{
    return at <= w->size && bytes <= w->size - at;
}

static void note(struct walk *w, struct place place)
{
    if (place.count && w->n < MOST_PLACES)
        w->places[w->n++] = place;
}

static void walk_table(struct walk *w, size_t at, int table, int depth);

/** Follow the offset at `at` to a table. */
static void walk_offset(struct walk *w, size_t at, int table, int depth)
{
    size_t const target = at + (size_t)get(w, at, 4);
    note(w, (struct place){at, 1, PLACE_OFFSET, 4, (uint8_t)table, 0});
    if (inside(w, target, 4) && depth < MOST_DEPTH)
        walk_table(w, target, table, depth + 1);
}

static void walk_vector(struct walk *w, size_t at, const struct field *f, int table, int field,
                        int depth)
{
    size_t const start = at + (size_t)get(w, at, 4);
    note(w, (struct place){at, 1, PLACE_OFFSET, 4, (uint8_t)table, (uint8_t)(field + 1)});
    if (!inside(w, start, 4))
        return;
    size_t const there = (w->size - start - 4) / f->bytes;
    size_t const stated = (size_t)get(w, start, 4), count = stated < there ? stated : there;
    note(w, (struct place){start, 1, PLACE_COUNT, 4, (uint8_t)table, (uint8_t)field});
    if (f->kind == VECTOR)
        note(w, (struct place){start + 4, count, PLACE_NUMBERS, f->bytes, (uint8_t)table,
                               (uint8_t)field});
    for (size_t i = 0; f->kind == SUBTABLES && i < count && w->n < MOST_PLACES; i++)
        walk_offset(w, start + 4 + 4 * i, f->table, depth);
}

static void walk_field(struct walk *w, size_t at, int table, int field, int depth)
{
    const struct field *f = &schema[table][field];
    if (!inside(w, at, f->bytes))
        return;
    if (f->kind == NUMBER)
        note(w, (struct place){at, 1, PLACE_NUMBERS, f->bytes, (uint8_t)table, (uint8_t)field});
    else if (f->kind == SUBTABLE)
        walk_offset(w, at, f->table, depth);
    else if (f->kind != NOTHING)
        walk_vector(w, at, f, table, field, depth);
}

static void walk_table(struct walk *w, size_t at, int table, int depth)
{
    size_t const vtable = at - (size_t)(int64_t)(int32_t)get(w, at, 4);
    if (!inside(w, vtable, 4))
        return;
    size_t const fields = (size_t)get(w, vtable, 2) / 2;
    note(w, (struct place){vtable, 2, PLACE_VTABLE, 2, (uint8_t)table, 0});
    for (size_t i = 0; i < 7 && i + 2 < fields; i++) {
        size_t const entry = vtable + 4 + 2 * i, offset = (size_t)get(w, entry, 2);
        note(w, (struct place){entry, 1, PLACE_VTABLE, 2, (uint8_t)table, (uint8_t)i});
        if (offset)
            walk_field(w, at + offset, table, (int)i, depth);
    }
}

/* ------------------------------------------------------------------ changes */

/** Some place of a kind, or NULL after a few tries. */
static const struct place *some_place(const struct walk *w, uint64_t *x, int kind)
{
    for (int i = 0; i < 32 && w->n; i++) {
        const struct place *p = &w->places[fuzz_below(x, w->n)];
        if (p->kind == kind)
            return p;
    }
    return NULL;
}

static size_t some_item(const struct place *p, uint64_t *x)
{
    return p->at + p->bytes * fuzz_below(x, p->count);
}

/** A number becomes another, or that of another place of its kind. */
static void change_number(struct walk *w, uint64_t *x)
{
    const struct place *p = some_place(w, x, PLACE_NUMBERS), *q = some_place(w, x, PLACE_NUMBERS);
    if (!p || !q)
        return;
    size_t const at = some_item(p, x);
    int const bytes = p->table == OPTIONS && fuzz_below(x, 2) ? 1 : p->bytes;
    if (q->bytes == p->bytes && fuzz_below(x, 4) == 0)
        put(w, at, bytes, get(w, some_item(q, x), bytes));
    else
        put(w, at, bytes, (uint64_t)(int64_t)(int32_t)fuzz_number(x, (uint32_t)get(w, at, bytes)));
}

/** A field vanishes, or lies elsewhere. */
static void change_vtable(struct walk *w, uint64_t *x)
{
    const struct place *p = some_place(w, x, PLACE_VTABLE);
    if (p)
        put(w, some_item(p, x), 2,
            fuzz_below(x, 2) ? 0 : fuzz_number(x, (uint32_t)get(w, p->at, 2)));
}

static void change_count(struct walk *w, uint64_t *x)
{
    const struct place *p = some_place(w, x, PLACE_COUNT);
    if (p)
        put(w, p->at, 4, fuzz_number(x, (uint32_t)get(w, p->at, 4)));
}

/** Make an offset lead to the place of another one of its kind, or anywhere. */
static void change_offset(struct walk *w, uint64_t *x)
{
    const struct place *p = some_place(w, x, PLACE_OFFSET), *q = NULL;
    for (int i = 0; p && i < 32; i++) {
        q = some_place(w, x, PLACE_OFFSET);
        if (q && q != p && q->table == p->table && q->field == p->field)
            break;
    }
    if (!p || !q)
        return;
    uint64_t const target = q->at + get(w, q->at, 4);
    put(w, p->at, 4,
        fuzz_below(x, 8) ? target - p->at : fuzz_number(x, (uint32_t)get(w, p->at, 4)));
}

/** A dimension, everywhere: in all shapes, and in all constants of integers. */
static void change_dim(struct walk *w, uint64_t *x)
{
    const struct place *p = NULL;
    for (int i = 0; i < 64 && !(p && p->table == TENSOR && p->field == 0); i++)
        p = some_place(w, x, PLACE_NUMBERS);
    if (!p || p->table != TENSOR || p->field != 0)
        return;
    uint64_t const old = get(w, some_item(p, x), 4), dim = 1 + fuzz_below(x, 20);
    for (size_t i = 0; i < w->n; i++) {
        const struct place *q = &w->places[i];
        for (size_t j = 0;
             q->kind == PLACE_NUMBERS && q->table == TENSOR && q->field == 0 && j < q->count; j++)
            if (get(w, q->at + 4 * j, 4) == old)
                put(w, q->at + 4 * j, 4, dim);
    }
}

/** A shape of another rank: its count, and the count's own place stay consistent. */
static void change_rank(struct walk *w, uint64_t *x)
{
    const struct place *p = NULL;
    for (int i = 0; i < 64 && !(p && p->table == TENSOR && p->field == 0); i++)
        p = some_place(w, x, PLACE_COUNT);
    if (p && p->table == TENSOR && p->field == 0)
        put(w, p->at, 4, fuzz_below(x, 6));
}

/** Another builtin operator: the larger of its two code fields counts. */
static void change_code(struct walk *w, uint64_t *x)
{
    enum { MOST_CODE = 160, NEWER_CODE = 3 };
    const struct place *p = NULL;
    uint64_t const code = fuzz_below(x, MOST_CODE);
    for (int i = 0; i < 64 && !(p && p->table == CODE && p->bytes <= 4); i++)
        p = some_place(w, x, PLACE_NUMBERS);
    if (p && p->table == CODE && (p->field == 0 || p->field == NEWER_CODE))
        put(w, p->at, p->bytes, code);
}

/* ------------------------------------------------------------------ repair */

/** Where field `field` of the table at `at` lies; 0: absent. */
static size_t field_of(const struct walk *w, size_t at, size_t field)
{
    size_t const vtable = at - (size_t)(int64_t)(int32_t)get(w, at, 4);
    if (!inside(w, vtable, 4) || 4 + 2 * field + 2 > get(w, vtable, 2))
        return 0;
    size_t const offset = (size_t)get(w, vtable + 4 + 2 * field, 2);
    return offset ? at + offset : 0;
}

/** Where the thing begins that field `field` leads to; 0: nowhere. */
static size_t target_of(const struct walk *w, size_t at, size_t field)
{
    size_t const from = field_of(w, at, field);
    return from ? from + (size_t)get(w, from, 4) : 0;
}

/** Bytes that the shape of the tensor at `at` and its type stand for. */
static uint64_t stated_bytes(const struct walk *w, size_t at)
{
    enum { SHAPE = 0, TYPE = 1, UINT8 = 3, INT64 = 4, INT8 = 9 };
    size_t const shape = target_of(w, at, SHAPE), type_at = field_of(w, at, TYPE);
    uint64_t const type = type_at ? get(w, type_at, 1) : 0, rank = shape ? get(w, shape, 4) : 0;
    uint64_t bytes = type == UINT8 || type == INT8 ? 1 : type == INT64 ? 8 : 4;
    for (uint64_t i = 0; i < rank && i < 8; i++)
        bytes *= get(w, shape + 4 + 4 * i, 4);
    return bytes;
}

/**
 * Make each constant's vector of bytes as long as its shape says, if the file has so many bytes.
 */
static void repair_constants(struct walk *w, size_t buffers)
{
    enum { BUFFER_FIELD = 2, DATA = 0 };
    for (size_t i = 0; buffers && i < w->n; i++) {
        const struct place *p = &w->places[i];
        if (p->kind != PLACE_OFFSET || p->table != TENSOR || p->field)
            continue;
        size_t const tensor = p->at + (size_t)get(w, p->at, 4);
        size_t const from = field_of(w, tensor, BUFFER_FIELD);
        uint64_t const index = from ? get(w, from, 4) : 0, bytes = stated_bytes(w, tensor);
        if (!index || index >= get(w, buffers, 4))
            continue;
        size_t const entry = buffers + 4 + 4 * (size_t)index;
        size_t const data = target_of(w, entry + (size_t)get(w, entry, 4), DATA);
        if (data && inside(w, data + 4, (size_t)bytes))
            put(w, data, 4, bytes);
    }
}

/* ------------------------------------------------------------------ the mutator */

static void (*const changes[])(struct walk *, uint64_t *) = {
    change_number, change_number, change_number, change_number, change_number,
    change_dim,    change_dim,    change_rank,   change_code,   change_vtable,
    change_count,  change_offset, change_offset};

static void walk_file(struct walk *w, uint8_t *data, size_t size)
{
    w->data = data;
    w->size = size;
    w->n = 0;
    if (size >= 8)
        walk_table(w, (size_t)get(w, 0, 4), MODEL, 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    enum { MODEL_BUFFERS = 4 };
    static struct walk w;
    uint64_t x = seed;
    if (fuzz_below(&x, 12) == 0)
        return LLVMFuzzerMutate(data, size, most);
    walk_file(&w, data, size);
    if (!w.n)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t n = 1 + fuzz_below(&x, 3); n > 0; n--)
        changes[fuzz_below(&x, sizeof changes / sizeof *changes)](&w, &x);
    if (fuzz_below(&x, 4))
        repair_constants(&w, target_of(&w, (size_t)get(&w, 0, 4), MODEL_BUFFERS));
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    (void)a, (void)a_size, (void)b, (void)b_size, (void)out, (void)most, (void)seed;
    return 0; /* two files of absolute places do not mix */
}

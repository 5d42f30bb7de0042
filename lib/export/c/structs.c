#include "export/c/structs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ types */

/** A type of integers. */
typedef struct integer {
    const char *name;
    size_t bytes; /* 0: as a pointer */
    bool is_signed;
} integer;

static const integer integers[] = {
    {"int8_t", 1, true},    {"uint8_t", 1, false},  {"int16_t", 2, true},
    {"uint16_t", 2, false}, {"int32_t", 4, true},   {"uint32_t", 4, false},
    {"int64_t", 8, true},   {"uint64_t", 8, false}, {"int", sizeof(int), true},
    {"size_t", 0, false},   {"ptrdiff_t", 0, true},
};

static const integer *integer_of(co_span type)
{
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (co_span_is(type, integers[i].name))
            return &integers[i];
    return NULL;
}

/** A member of a struct. */
typedef struct member {
    co_span type, name;
    bool is_pointer;
    size_t count;  /* values: 1, or those of an array */
    size_t column; /* values of an array's last dimension */
} member;

/** Where a reader is in the body of a struct. */
typedef struct members {
    const co_pieces *p;
    co_span code;
    co_span type;
    bool is_bad;
} members;

static int64_t constant(const co_pieces *p, co_span name, bool *is_bad);

/** The value of tokens up to a sign that ends them: numbers, names, + - * and <<, from the left. */
static int64_t expression(const co_pieces *p, co_span *code, const char *ends, bool *is_bad)
{
    int64_t value = 0;
    char sign = '+';
    for (co_span t = co_token(code); t.n && !strchr(ends, *t.at); t = co_token(code)) {
        bool const is_number = *t.at >= '0' && *t.at <= '9';
        if (!is_number && !co_is_identifier(t)) {
            sign = *t.at;
            continue;
        }
        int64_t const x = is_number ? strtoll(t.at, NULL, 0) : constant(p, t, is_bad);
        if (sign == '<')
            value = x >= 0 && x < 63 ? value << x : 0;
        else
            value = sign == '*' ? value * x : sign == '-' ? value - x : value + x;
    }
    return value;
}

/** The value of a constant of an enum. */
static int64_t constant(const co_pieces *p, co_span name, bool *is_bad)
{
    const co_piece *piece = co_piece_of(p, name);
    co_span code = piece ? piece->code : (co_span){NULL, 0};
    int64_t value = 0;
    while (code.n && *code.at != '{')
        code = (co_span){code.at + 1, code.n - 1};
    (void)co_token(&code);
    for (co_span t = co_token(&code); t.n && *t.at != '}'; t = co_token(&code), value++) {
        co_span after = code;
        co_span const sign = co_token(&after);
        bool const is_set = sign.n && *sign.at == '=';
        if (is_set) {
            code = after;
            value = expression(p, &code, ",}", is_bad);
        } else {
            code = after;
        }
        if (t.n == name.n && memcmp(t.at, name.at, t.n) == 0)
            return value;
    }
    *is_bad = true;
    return 0;
}

static void read_array(members *m, member *to, co_span *rest)
{
    for (co_span after = *rest, t = co_token(&after); t.n && *t.at == '['; t = co_token(&after)) {
        int64_t const n = expression(m->p, &after, "]", &m->is_bad);
        m->is_bad = m->is_bad || n < 1 || n > 1 << 16;
        to->column = (size_t)(m->is_bad ? 1 : n);
        to->count *= to->column;
        *rest = after;
    }
}

/** The next member; false at the end. */
static bool next_member(members *m, member *to)
{
    co_span t = co_token(&m->code);
    while (t.n && (co_span_is(t, "const") || co_span_is(t, "struct") || *t.at == ','))
        t = co_token(&m->code);
    if (t.n && *t.at == ';') {
        m->type.n = 0;
        return next_member(m, to);
    }
    if (!t.n || *t.at == '}')
        return false;
    *to = (member){.count = 1, .column = 1};
    if (!m->type.n) {
        m->type = t;
        t = co_token(&m->code);
    }
    for (; t.n && *t.at == '*'; t = co_token(&m->code))
        to->is_pointer = true;
    to->type = m->type;
    to->name = t;
    m->is_bad = m->is_bad || !co_is_identifier(t);
    read_array(m, to, &m->code);
    return !m->is_bad;
}

static bool members_of(members *m, const co_pieces *p, co_span type)
{
    const co_piece *piece = co_piece_of(p, type);
    *m = (members){.p = p, .code = piece ? piece->code : (co_span){NULL, 0}};
    bool const is_struct =
        co_span_is(co_token(&m->code), "typedef") && co_span_is(co_token(&m->code), "struct");
    while (is_struct && m->code.n)
        if (*co_token(&m->code).at == '{')
            return true;
    return false;
}

/** Size and alignment of one value of a member, where a pointer has so many bytes; 0: its type is
 * not understood. */
static size_t size_with(const co_pieces *p, const member *m, size_t pointer, size_t *alignment)
{
    const integer *i = integer_of(m->type);
    members inner;
    member field;
    size_t size = 0;
    *alignment = m->is_pointer || (i && !i->bytes) ? pointer : i ? i->bytes : 1;
    if (m->is_pointer || i)
        return *alignment;
    if (!members_of(&inner, p, m->type))
        return 0;
    while (next_member(&inner, &field)) {
        size_t each;
        size_t const bytes = size_with(p, &field, pointer, &each);
        if (!bytes)
            return 0;
        size = (size + each - 1) / each * each + bytes * field.count;
        *alignment = each > *alignment ? each : *alignment;
    }
    return inner.is_bad ? 0 : (size + *alignment - 1) / *alignment * *alignment;
}

/** On this machine. */
static size_t size_of(const co_pieces *p, const member *m, size_t *alignment)
{
    return size_with(p, m, sizeof(void *), alignment);
}

size_t co_device_bytes(const co_pieces *p, const char *type)
{
    member const m = {.type = {type, strlen(type)}};
    size_t alignment;
    return size_with(p, &m, 4, &alignment);
}

/* ------------------------------------------------------------------ writing */

static int64_t value_of(const integer *i, const uint8_t *at)
{
    uint64_t bits = 0;
    size_t const bytes = i->bytes ? i->bytes : sizeof(void *);
    memcpy(&bits, at, bytes); /* little-endian, as the engine needs it */
    if (i->is_signed && bytes < 8 && bits >> (8 * bytes - 1))
        bits |= UINT64_MAX << (8 * bytes);
    return (int64_t)bits;
}

static void write_integer(qat_writer *w, int64_t value)
{
    if (value == INT32_MIN)
        qat_write_text(w, "INT32_MIN");
    else if (value > INT32_MAX || value < INT32_MIN)
        qat_write_text(w, "INT64_C(%lld)", (long long)value);
    else
        qat_write_text(w, "%lld", (long long)value);
}

static void write_value(qat_writer *w, const co_pieces *p, const member *m, const uint8_t *at,
                        const co_pointers *pointers);

/** The values of all members between braces. */
static void write_members(qat_writer *w, const co_pieces *p, co_span type, const uint8_t *values,
                          const co_pointers *pointers)
{
    members all;
    member m;
    size_t at = 0;
    bool const is_struct = members_of(&all, p, type);
    qat_write_text(w, "{");
    for (bool is_first = true; is_struct && next_member(&all, &m); is_first = false) {
        size_t alignment;
        size_t const size = size_of(p, &m, &alignment);
        at = (at + alignment - 1) / alignment * alignment;
        qat_write_text(w, is_first ? "" : ", ");
        write_value(w, p, &m, values + at, pointers);
        at += size * m.count;
    }
    qat_write_text(w, "}");
}

static void write_one(qat_writer *w, const co_pieces *p, const member *m, const uint8_t *at,
                      const co_pointers *pointers)
{
    const integer *i = integer_of(m->type);
    const void *address;
    if (m->is_pointer) {
        memcpy(&address, at, sizeof address);
        pointers->write(pointers->context, w, address, m->type);
    } else if (i) {
        write_integer(w, value_of(i, at));
    } else {
        write_members(w, p, m->type, at, pointers);
    }
}

static void write_value(qat_writer *w, const co_pieces *p, const member *m, const uint8_t *at,
                        const co_pointers *pointers)
{
    size_t alignment;
    size_t const size = size_of(p, m, &alignment);
    bool const is_array = m->count > 1 || m->column > 1, is_table = m->count > m->column;
    qat_write_text(w, is_table ? "{{" : is_array ? "{" : "");
    for (size_t k = 0; k < m->count; k++) {
        bool const is_row = k && k % m->column == 0;
        qat_write_text(w, is_row ? "}, {" : k ? ", " : "");
        write_one(w, p, m, at + k * size, pointers);
    }
    qat_write_text(w, is_table ? "}}" : is_array ? "}" : "");
}

/** The comment behind a value: the member's name, and those of its own members. */
static void write_names(qat_writer *w, const co_pieces *p, const member *m)
{
    members inner;
    member field;
    qat_write_text(w, " /* %.*s", (int)m->name.n, m->name.at);
    bool const has_members = !m->is_pointer && members_of(&inner, p, m->type);
    for (bool is_first = true; has_members && next_member(&inner, &field); is_first = false)
        qat_write_text(w, "%s%.*s", is_first ? ": " : ", ", (int)field.name.n, field.name.at);
    qat_write_text(w, " */\n");
}

qat_status co_write_struct(qat_writer *w, const co_pieces *p, const char *type, const void *values,
                           size_t bytes, const co_pointers *pointers, qat_error *err)
{
    members all;
    member m = {.type = {type, strlen(type)}};
    size_t at = 0, alignment;
    if (size_of(p, &m, &alignment) != bytes || !members_of(&all, p, m.type))
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "the declaration of %s is not understood", type);
    qat_write_text(w, "{\n");
    while (next_member(&all, &m)) {
        size_t const size = size_of(p, &m, &alignment);
        at = (at + alignment - 1) / alignment * alignment;
        qat_write_text(w, "    ");
        write_value(w, p, &m, (const uint8_t *)values + at, pointers);
        qat_write_text(w, ",");
        write_names(w, p, &m);
        at += size * m.count;
    }
    qat_write_text(w, "}");
    return QAT_OK;
}

/* ------------------------------------------------------------------ multipliers */

typedef struct visitor {
    const co_pieces *p;
    co_multiplier_fn *visit;
    void *context;
} visitor;

/**
 * Is the member a multiplier or its shift? mult_step and the like say where arrays have them, and
 * `multiplier` of a depthwise layer is a number of channels.
 */
static bool is_multiplier(const member *m)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)m->name.n, m->name.at);
    return co_span_is(m->type, "int32_t") && !m->is_pointer && m->count == 1 &&
           (strstr(name, "mult") || strstr(name, "shift")) && !strstr(name, "_step") &&
           strcmp(name, "multiplier") != 0;
}

static void visit_members(const visitor *v, co_span type, const char *before, const uint8_t *values)
{
    members all;
    member m;
    size_t at = 0;
    if (!members_of(&all, v->p, type))
        return;
    while (next_member(&all, &m)) {
        char path[128];
        size_t alignment;
        size_t const size = size_of(v->p, &m, &alignment);
        at = (at + alignment - 1) / alignment * alignment;
        snprintf(path, sizeof path, "%s%s%.*s", before, *before ? "." : "", (int)m.name.n,
                 m.name.at);
        if (is_multiplier(&m))
            v->visit(v->context, path, values + at);
        else if (!m.is_pointer && m.count == 1)
            visit_members(v, m.type, path, values + at);
        at += size * m.count;
    }
}

void co_each_multiplier(const co_pieces *p, const char *type, const void *values,
                        co_multiplier_fn *visit, void *context)
{
    visitor const v = {p, visit, context};
    visit_members(&v, (co_span){type, strlen(type)}, "", values);
}

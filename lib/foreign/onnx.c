/**
 * Reads .onnx files: protobuf messages of the schema onnx.proto, unpacked by protobuf-c.
 *
 * Files come from strangers. So the depth of messages within messages is measured before protobuf-c
 * unpacks them, because it calls itself for each; and all that it allocates comes from a budget.
 */
#include "base/bytes.h"
#include "base/files/file.h"
#include "foreign/graph.h"
#include <onnx.pb-c.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ memory */

/** The bytes that may still be taken. Each block knows its own size. */
typedef struct budget {
    uint64_t left;
    bool exceeded;
} budget;

enum { HEADER = 16 };

static void *budget_alloc(void *data, size_t size)
{
    budget *b = data;
    if (size > b->left || b->left - size < HEADER) {
        b->exceeded = true;
        return NULL;
    }
    uint8_t *block = malloc(size + HEADER);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof size);
    b->left -= size + HEADER;
    return block + HEADER;
}

static void budget_free(void *data, void *memory)
{
    budget *b = data;
    size_t size;
    if (!memory)
        return;
    uint8_t *block = (uint8_t *)memory - HEADER;
    memcpy(&size, block, sizeof size);
    b->left += size + HEADER;
    free(block);
}

/* ------------------------------------------------------------------ depth */

static bool read_varint(qat_reader *r, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t const byte = qat_read_u8(r);
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (r->bad || !(byte & 0x80))
            return !r->bad;
    }
    return false;
}

static const ProtobufCMessageDescriptor *submessage(const ProtobufCMessageDescriptor *of,
                                                    uint64_t field)
{
    const ProtobufCFieldDescriptor *f =
        field <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(of, (unsigned)field) : NULL;
    return f && f->type == PROTOBUF_C_TYPE_MESSAGE ? f->descriptor : NULL;
}

/** Are there at most `most` messages within each other? Broken bytes are left to protobuf-c. */
static bool is_shallow(const ProtobufCMessageDescriptor *of, const void *bytes, size_t count,
                       int most)
{
    qat_reader r = qat_reader_of(bytes, count);
    uint64_t tag, n;
    if (most <= 0)
        return false;
    while (r.at < r.end && read_varint(&r, &tag)) {
        switch (tag & 7) {
        case 0:
            if (!read_varint(&r, &n))
                return true;
            break;
        case 1:
            (void)qat_read_bytes(&r, 8);
            break;
        case 5:
            (void)qat_read_bytes(&r, 4);
            break;
        case 2: {
            if (!read_varint(&r, &n) || n > (uint64_t)(r.end - r.at))
                return true;
            const void *inner = qat_read_bytes(&r, (size_t)n);
            const ProtobufCMessageDescriptor *sub = submessage(of, tag >> 3);
            if (sub && !is_shallow(sub, inner, (size_t)n, most - 1))
                return false;
            break;
        }
        default:
            return true;
        }
        if (r.bad)
            return true;
    }
    return true;
}

/* ------------------------------------------------------------------ the state of a reader */

typedef struct reader {
    qat_foreign_graph *graph;
    qat_arena *arena;
    const char *name;   /* for messages */
    const char *path;   /* NULL: no files beside it */
    uint64_t memory;    /* left for the arena */
    const char **names; /* of all values, sorted; n of them */
    int n_names;
    qat_error *err;
} reader;

static qat_status no_memory(const reader *r)
{
    return qat_fail(r->err, QAT_ERR_LIMIT,
                    "%s: reading this network takes more memory than is allowed, or than there is",
                    r->name);
}

static void *take(reader *r, size_t count, size_t size)
{
    if (count > r->memory / (size ? size : 1))
        return NULL;
    void *memory = qat_arena_array(r->arena, count, size);
    r->memory -= memory ? count * size : 0;
    return memory;
}

static const char *text_of(reader *r, const char *text)
{
    size_t const n = text ? strlen(text) : 0;
    char *copy = take(r, n + 1, 1);
    if (copy && n)
        memcpy(copy, text, n);
    return copy;
}

/* ------------------------------------------------------------------ constants */

/** How the values of a type are stored. */
typedef struct storage {
    qat_foreign_type type;
    int bytes; /* of one value in raw_data, or of two */
    bool is_pair;
} storage;

enum { TYPE_UINT4 = 21, TYPE_INT4 = 22 }; /* which older copies of ONNX's schema do not name */

static storage storage_of(int type)
{
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return (storage){QAT_FOREIGN_FLOAT, 4, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return (storage){QAT_FOREIGN_FLOAT, 8, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
        return (storage){QAT_FOREIGN_FLOAT, 2, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return (storage){QAT_FOREIGN_INT, 8, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        return (storage){QAT_FOREIGN_INT, 4, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
        return (storage){QAT_FOREIGN_INT, 2, false};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
        return (storage){QAT_FOREIGN_INT, 1, false};
    case TYPE_UINT4:
    case TYPE_INT4:
        return (storage){QAT_FOREIGN_INT, 1, true};
    default:
        return (storage){QAT_FOREIGN_OTHER, 0, false};
    }
}

static float float_of_u32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float raw_float(int type, qat_reader *r)
{
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
        return qat_read_f32(r);
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE)
        return (float)qat_read_f64(r);
    uint16_t const bits = qat_read_u16(r);
    return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ? qat_half(bits)
                                                          : float_of_u32((uint32_t)bits << 16);
}

static int64_t raw_int(int type, qat_reader *r)
{
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
        return (int32_t)qat_read_u32(r);
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        return qat_read_u32(r);
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
        return (int16_t)qat_read_u16(r);
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
        return qat_read_u16(r);
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
        return (int8_t)qat_read_u8(r);
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
        return qat_read_u8(r);
    default:
        return (int64_t)qat_read_u64(r);
    }
}

/** Value i of bytes that hold two each, the first in the lower half. */
static int64_t half_byte(int type, uint8_t byte, size_t i)
{
    int const four = i & 1 ? byte >> 4 : byte & 15;
    return type == TYPE_INT4 && four > 7 ? four - 16 : four;
}

/** Value i of a list of floats or integers that is not raw. */
static float listed_float(const Onnx__TensorProto *p, size_t i)
{
    if (p->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
        return p->float_data[i];
    if (p->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE)
        return (float)p->double_data[i];
    uint32_t const bits = (uint32_t)p->int32_data[i];
    return p->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ? qat_half((uint16_t)bits)
                                                                  : float_of_u32(bits << 16);
}

static int64_t listed_int(const Onnx__TensorProto *p, size_t i)
{
    switch (p->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return p->int64_data[i];
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        return (int64_t)p->uint64_data[i];
    case TYPE_UINT4:
    case TYPE_INT4:
        return half_byte(p->data_type, (uint8_t)p->int32_data[i / 2], i);
    default:
        return p->int32_data[i];
    }
}

static size_t listed(const Onnx__TensorProto *p)
{
    switch (p->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return p->n_float_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return p->n_double_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return p->n_int64_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        return p->n_uint64_data;
    default:
        return p->n_int32_data;
    }
}

/** Is it a plain name, of a file in the same folder? */
static bool is_plain(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 200;
}

/** Read `count` bytes at `offset` of a file in the model's folder. */
static qat_status read_beside(reader *r, const char *location, uint64_t offset, void *to,
                              size_t count)
{
    char path[4096];
    struct stat is;
    const char *slash = strrchr(r->path, '/');
    int const folder = slash ? (int)(slash + 1 - r->path) : 0;
    snprintf(path, sizeof path, "%.*s%s", folder, r->path, location);
    bool const is_there = !stat(path, &is);
    if (is_there && !S_ISREG(is.st_mode))
        return qat_fail(r->err, QAT_ERR_IO, "%s: cannot read: not a file", path);
    FILE *file = is_there ? fopen(path, "rb") : NULL;
    if (!file)
        return qat_file_fail(r->err, "read", path, errno);
    bool const good = offset <= INT64_MAX && !fseeko(file, (off_t)offset, SEEK_SET) &&
                      fread(to, 1, count, file) == count;
    fclose(file);
    return good ? QAT_OK
                : qat_fail(r->err, QAT_ERR_FORMAT, "%s: %zu bytes at %llu of '%.80s' are not there",
                           r->name, count, (unsigned long long)offset, location);
}

/** The bytes of a constant in a file of its own; the caller frees them. */
static qat_status external_bytes(reader *r, const Onnx__TensorProto *p, size_t count,
                                 uint8_t **bytes)
{
    const char *location = "";
    uint64_t offset = 0, length = count;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = p->external_data[i];
        if (!e->key || !e->value)
            continue;
        if (!strcmp(e->key, "location"))
            location = e->value;
        else if (!strcmp(e->key, "offset"))
            offset = strtoull(e->value, NULL, 10);
        else if (!strcmp(e->key, "length"))
            length = strtoull(e->value, NULL, 10);
    }
    if (!r->path || !is_plain(location))
        return qat_fail(r->err, QAT_ERR_UNSUPPORTED,
                        "%s: a constant lies in the file '%.80s': only a file in the folder of the "
                        "model is read",
                        r->name, location);
    if (length != count)
        return qat_fail(r->err, QAT_ERR_FORMAT,
                        "%s: constant '%.80s' has %llu bytes in '%.80s', but its shape needs %zu",
                        r->name, p->name ? p->name : "", (unsigned long long)length, location,
                        count);
    *bytes = count < r->memory ? malloc(count + 1) : NULL;
    return *bytes ? read_beside(r, location, offset, *bytes, count) : no_memory(r);
}

static qat_status wrong_count(const reader *r, const Onnx__TensorProto *p, size_t count)
{
    return qat_fail(r->err, QAT_ERR_FORMAT,
                    "%s: constant '%.80s' does not hold the %zu values of its shape", r->name,
                    p->name ? p->name : "", count);
}

static qat_status shape_of(reader *r, const Onnx__TensorProto *p, qat_foreign_tensor *t)
{
    if (p->n_dims > QAT_FOREIGN_RANK)
        return qat_fail(r->err, QAT_ERR_UNSUPPORTED,
                        "%s: constant '%.80s' has %zu dimensions, but at most %d are possible",
                        r->name, p->name ? p->name : "", p->n_dims, QAT_FOREIGN_RANK);
    t->rank = (int)p->n_dims;
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (p->dims[i] < 0 || (p->dims[i] && t->count > (size_t)INT32_MAX / (size_t)p->dims[i]))
            return qat_fail(r->err, QAT_ERR_LIMIT,
                            "%s: constant '%.80s' has a dimension of %lld: too many values",
                            r->name, p->name ? p->name : "", (long long)p->dims[i]);
        t->dims[i] = p->dims[i];
        t->count *= (size_t)p->dims[i];
    }
    return QAT_OK;
}

/** Copy the values: from `raw` bytes, or from the message's lists. */
static qat_status copy_values(reader *r, const Onnx__TensorProto *p, const uint8_t *raw,
                              size_t bytes, bool is_raw, qat_foreign_tensor *t)
{
    qat_reader in = qat_reader_of(raw, bytes);
    if (t->type == QAT_FOREIGN_FLOAT) {
        float *values = take(r, t->count, sizeof *values);
        for (size_t i = 0; values && i < t->count; i++)
            values[i] = is_raw ? raw_float(p->data_type, &in) : listed_float(p, i);
        t->floats = values;
        return values ? QAT_OK : no_memory(r);
    }
    int64_t *values = take(r, t->count, sizeof *values);
    bool const is_pair = storage_of(p->data_type).is_pair;
    for (size_t i = 0; values && i < t->count; i++)
        values[i] = !is_raw   ? listed_int(p, i)
                    : is_pair ? half_byte(p->data_type, raw[i / 2], i)
                              : raw_int(p->data_type, &in);
    t->ints = values;
    return values ? QAT_OK : no_memory(r);
}

static qat_status fill(reader *r, const Onnx__TensorProto *p, qat_foreign_tensor *t)
{
    storage const how = storage_of(p->data_type);
    size_t const items = how.is_pair ? (t->count + 1) / 2 : t->count;
    size_t const bytes = items * (size_t)how.bytes;
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        uint8_t *beside = NULL;
        qat_status st = external_bytes(r, p, bytes, &beside);
        if (!st) {
            r->memory -= bytes;
            st = copy_values(r, p, beside, bytes, true, t);
            r->memory += bytes;
        }
        free(beside);
        return st;
    }
    bool const is_raw = p->has_raw_data && (p->raw_data.len || !listed(p));
    if (is_raw ? p->raw_data.len != bytes : listed(p) != items)
        return wrong_count(r, p, t->count);
    return copy_values(r, p, p->raw_data.data, is_raw ? bytes : 0, is_raw, t);
}

static qat_status read_tensor(reader *r, const Onnx__TensorProto *p,
                              const qat_foreign_tensor **tensor)
{
    qat_foreign_tensor *t = take(r, 1, sizeof *t);
    *tensor = t;
    if (!t)
        return no_memory(r);
    t->type = storage_of(p->data_type).type;
    t->stored = p->data_type;
    qat_status const st = shape_of(r, p, t);
    return st || t->type == QAT_FOREIGN_OTHER ? st : fill(r, p, t);
}

/* ------------------------------------------------------------------ names */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_names(const Onnx__GraphProto *g)
{
    size_t n = g->n_initializer + g->n_input + g->n_output;
    for (size_t i = 0; i < g->n_node; i++)
        n += g->node[i]->n_input + g->node[i]->n_output;
    return n;
}

static void add_name(const char **names, size_t *n, const char *name)
{
    if (name && *name)
        names[(*n)++] = name;
}

/** Make the list of values: every name once, sorted. */
static qat_status collect_names(reader *r, const Onnx__GraphProto *g)
{
    size_t const most = count_names(g);
    size_t n = 0, unique = 0;
    if (most > QAT_FOREIGN_NAMES_MAX)
        return qat_fail(r->err, QAT_ERR_LIMIT,
                        "%s: %zu names of values, but at most %d are possible", r->name, most,
                        QAT_FOREIGN_NAMES_MAX);
    const char **names = take(r, most + 1, sizeof *names);
    if (!names)
        return no_memory(r);
    for (size_t i = 0; i < g->n_initializer; i++)
        add_name(names, &n, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_input; i++)
        add_name(names, &n, g->input[i]->name);
    for (size_t i = 0; i < g->n_output; i++)
        add_name(names, &n, g->output[i]->name);
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            add_name(names, &n, g->node[i]->input[k]);
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            add_name(names, &n, g->node[i]->output[k]);
    }
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++)
        if (!unique || strcmp(names[unique - 1], names[i]) != 0)
            names[unique++] = names[i];
    r->names = names;
    r->n_names = (int)unique;
    r->graph->n_values = (int)unique;
    r->graph->values = take(r, unique + 1, sizeof *r->graph->values);
    if (!r->graph->values)
        return no_memory(r);
    for (size_t i = 0; i < unique; i++) {
        r->graph->values[i].name = text_of(r, names[i]);
        r->graph->values[i].rank = -1;
        for (int d = 0; d < QAT_FOREIGN_RANK; d++)
            r->graph->values[i].dims[d] = -1;
        if (!r->graph->values[i].name)
            return no_memory(r);
    }
    return QAT_OK;
}

/** The value with this name; -1: the name is empty. */
static int value_of(const reader *r, const char *name)
{
    if (!name || !*name)
        return -1;
    const char **found =
        bsearch(&name, r->names, (size_t)r->n_names, sizeof *r->names, compare_names);
    return found ? (int)(found - r->names) : -1;
}

static int *values_of(reader *r, char **names, size_t n)
{
    int *values = take(r, n + 1, sizeof *values);
    for (size_t i = 0; values && i < n; i++)
        values[i] = value_of(r, names[i]);
    return values;
}

/* ------------------------------------------------------------------ nodes */

static qat_status read_attr(reader *r, const Onnx__AttributeProto *p, qat_foreign_attr *a)
{
    a->name = text_of(r, p->name);
    a->kind = QAT_FOREIGN_ATTR_OTHER;
    if (!a->name)
        return no_memory(r);
    switch (p->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        a->kind = QAT_FOREIGN_ATTR_INT;
        a->i = p->i;
        return QAT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        a->kind = QAT_FOREIGN_ATTR_FLOAT;
        a->f = p->f;
        return QAT_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: {
        char *text = take(r, p->s.len + 1, 1);
        if (!text)
            return no_memory(r);
        if (p->s.len)
            memcpy(text, p->s.data, p->s.len);
        a->kind = QAT_FOREIGN_ATTR_TEXT;
        a->text = text;
        return QAT_OK;
    }
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS: {
        int64_t *ints = take(r, p->n_ints + 1, sizeof *ints);
        if (!ints)
            return no_memory(r);
        if (p->n_ints)
            memcpy(ints, p->ints, p->n_ints * sizeof *ints);
        a->kind = QAT_FOREIGN_ATTR_INTS;
        a->ints = ints;
        a->n = p->n_ints;
        return QAT_OK;
    }
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: {
        float *floats = take(r, p->n_floats + 1, sizeof *floats);
        if (!floats)
            return no_memory(r);
        if (p->n_floats)
            memcpy(floats, p->floats, p->n_floats * sizeof *floats);
        a->kind = QAT_FOREIGN_ATTR_FLOATS;
        a->floats = floats;
        a->n = p->n_floats;
        return QAT_OK;
    }
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        if (!p->t)
            return QAT_OK;
        a->kind = QAT_FOREIGN_ATTR_TENSOR;
        return read_tensor(r, p->t, &a->tensor);
    default:
        return QAT_OK;
    }
}

static qat_status read_node(reader *r, const Onnx__NodeProto *p, qat_foreign_node *n)
{
    if (p->n_input > QAT_FOREIGN_INPUTS_MAX || p->n_output > QAT_FOREIGN_INPUTS_MAX ||
        p->n_attribute > QAT_FOREIGN_INPUTS_MAX)
        return qat_fail(r->err, QAT_ERR_LIMIT,
                        "%s: node '%.80s': more than %d inputs, outputs or attributes", r->name,
                        p->name ? p->name : "", QAT_FOREIGN_INPUTS_MAX);
    qat_foreign_attr *attrs = take(r, p->n_attribute + 1, sizeof *attrs);
    *n = (qat_foreign_node){.op = text_of(r, p->op_type),
                            .domain = text_of(r, p->domain),
                            .name = text_of(r, p->name),
                            .n_inputs = (int)p->n_input,
                            .n_outputs = (int)p->n_output,
                            .n_attrs = (int)p->n_attribute,
                            .inputs = values_of(r, p->input, p->n_input),
                            .outputs = values_of(r, p->output, p->n_output),
                            .attrs = attrs};
    if (!n->op || !n->domain || !n->name || !n->inputs || !n->outputs || !attrs)
        return no_memory(r);
    if (!strcmp(n->domain, "ai.onnx"))
        n->domain = "";
    qat_status st = QAT_OK;
    for (int i = 0; i < n->n_attrs && !st; i++)
        st = read_attr(r, p->attribute[i], &attrs[i]);
    return st;
}

/* ------------------------------------------------------------------ graphs */

static qat_status read_constants(reader *r, const Onnx__GraphProto *g)
{
    qat_status st = QAT_OK;
    for (size_t i = 0; i < g->n_initializer && !st; i++) {
        int const value = value_of(r, g->initializer[i]->name);
        if (value >= 0)
            st = read_tensor(r, g->initializer[i], &r->graph->values[value].constant);
    }
    return st;
}

static void read_input_shape(const Onnx__ValueInfoProto *p, qat_foreign_value *v)
{
    const Onnx__TypeProto__Tensor *t =
        p->type && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? p->type->tensor_type
                                                                              : NULL;
    v->is_input = true;
    v->is_other = p->type && !t && p->type->value_case != ONNX__TYPE_PROTO__VALUE__NOT_SET;
    v->stored = t ? t->elem_type : 0;
    if (!t || !t->shape || t->shape->n_dim > QAT_FOREIGN_RANK)
        return;
    v->rank = (int)t->shape->n_dim;
    for (int i = 0; i < v->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
        bool const known = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        v->dims[i] = known && d->dim_value > 0 ? d->dim_value : -1;
    }
}

static qat_status read_ends(reader *r, const Onnx__GraphProto *g)
{
    qat_foreign_graph *to = r->graph;
    to->inputs = take(r, g->n_input + 1, sizeof *to->inputs);
    to->outputs = take(r, g->n_output + 1, sizeof *to->outputs);
    if (!to->inputs || !to->outputs)
        return no_memory(r);
    for (size_t i = 0; i < g->n_input; i++) {
        int const value = value_of(r, g->input[i]->name);
        if (value < 0 || to->values[value].constant)
            continue;
        read_input_shape(g->input[i], &to->values[value]);
        to->inputs[to->n_inputs++] = value;
    }
    for (size_t i = 0; i < g->n_output; i++)
        to->outputs[to->n_outputs++] = value_of(r, g->output[i]->name);
    return QAT_OK;
}

static qat_status read_graph(reader *r, const Onnx__ModelProto *m)
{
    const Onnx__GraphProto *g = m->graph;
    if (!g)
        return qat_fail(r->err, QAT_ERR_FORMAT, "%s: not an ONNX model: it has no graph", r->name);
    if (g->n_node > QAT_FOREIGN_NODES_MAX)
        return qat_fail(r->err, QAT_ERR_LIMIT, "%s: %zu nodes, but at most %d are possible",
                        r->name, g->n_node, QAT_FOREIGN_NODES_MAX);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if (!domain || !*domain || !strcmp(domain, "ai.onnx"))
            r->graph->opset = (int)(m->opset_import[i]->version & INT32_MAX);
    }
    r->graph->nodes = take(r, g->n_node + 1, sizeof *r->graph->nodes);
    r->graph->n_nodes = (int)g->n_node;
    qat_status st = r->graph->nodes ? collect_names(r, g) : no_memory(r);
    if (!st)
        st = read_constants(r, g);
    for (size_t i = 0; i < g->n_node && !st; i++)
        st = read_node(r, g->node[i], &r->graph->nodes[i]);
    return st ? st : read_ends(r, g);
}

/** Unpack a message within the budget. */
static qat_status unpack(ProtobufCMessage **message, const ProtobufCMessageDescriptor *of,
                         ProtobufCAllocator *allocator, const void *bytes, size_t count,
                         const char *name, qat_error *err)
{
    const budget *b = allocator->allocator_data;
    if (!is_shallow(of, bytes, count, QAT_FOREIGN_DEPTH_MAX))
        return qat_fail(err, QAT_ERR_LIMIT, "%s: more than %d messages within each other", name,
                        QAT_FOREIGN_DEPTH_MAX);
    *message = protobuf_c_message_unpack(of, allocator, count, bytes);
    if (*message)
        return QAT_OK;
    if (b->exceeded)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "%s: reading this network takes more memory than is allowed", name);
    return qat_fail(err, QAT_ERR_FORMAT, "%s: not an ONNX file, or it is cut off", name);
}

static void forget(ProtobufCMessage *message, ProtobufCAllocator *allocator)
{
    if (message)
        protobuf_c_message_free_unpacked(message, allocator);
}

static qat_status parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                        const char *name, const char *path, uint64_t memory, qat_error *err)
{
    uint64_t const limit = memory ? memory : QAT_FOREIGN_DEFAULT_MEMORY;
    budget b = {.left = limit};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &b};
    ProtobufCMessage *message = NULL;
    *graph = calloc(1, sizeof **graph);
    if (!*graph)
        return qat_out_of_memory(err, name);
    reader r = {.graph = *graph, .arena = &(*graph)->arena, .name = name, .path = path, .err = err};
    qat_status st =
        unpack(&message, &onnx__model_proto__descriptor, &allocator, bytes, count, name, err);
    if (!st) {
        r.memory = b.left;
        (*graph)->source = text_of(&r, name);
        st = (*graph)->source ? read_graph(&r, (const Onnx__ModelProto *)message) : no_memory(&r);
    }
    forget(message, &allocator);
    (*graph)->room = r.memory;
    if (st) {
        qat_foreign_free(*graph);
        *graph = NULL;
    }
    return st;
}

qat_status qat_onnx_parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                          const char *name, uint64_t memory, qat_error *err)
{
    return parse(graph, bytes, count, name, NULL, memory, err);
}

qat_status qat_onnx_read(qat_foreign_graph **graph, const char *path, uint64_t memory,
                         qat_error *err)
{
    uint64_t const limit = memory ? memory : QAT_FOREIGN_DEFAULT_MEMORY;
    uint8_t *bytes = NULL;
    size_t count = 0;
    *graph = NULL;
    qat_status st =
        qat_file_read(path, (size_t)(limit < SIZE_MAX ? limit : SIZE_MAX - 1), &bytes, &count, err);
    if (!st)
        st = parse(graph, bytes, count, path, path, limit - count + 1, err);
    free(bytes);
    return st;
}

qat_status qat_onnx_parse_tensor(const qat_foreign_tensor **tensor, qat_arena *arena,
                                 const void *bytes, size_t count, const char *name, qat_error *err)
{
    budget b = {.left = QAT_FOREIGN_DEFAULT_MEMORY};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &b};
    ProtobufCMessage *message = NULL;
    reader r = {.arena = arena, .name = name, .memory = b.left, .err = err};
    qat_status st =
        unpack(&message, &onnx__tensor_proto__descriptor, &allocator, bytes, count, name, err);
    if (!st)
        st = read_tensor(&r, (const Onnx__TensorProto *)message, tensor);
    forget(message, &allocator);
    return st;
}

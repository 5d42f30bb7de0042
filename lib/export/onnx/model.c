/** Builds protobuf messages of the schema onnx.proto, and packs them by protobuf-c. */
#include "export/onnx/model.h"

#include "base/rng.h"
#include "base/shown.h"
#include "qat/version.h"
#include <onnx.pb-c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t onnx_type_bytes(onnx_type type)
{
    return type == ONNX_S64 || type == ONNX_DOUBLE  ? 8
           : type == ONNX_FLOAT || type == ONNX_S32 ? 4
           : type == ONNX_S16                       ? 2
                                                    : 1;
}

qat_status onnx_begin(onnx_model *m, const qat_write_options *options, qat_error *err)
{
    if (options->struct_size > sizeof *options)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_write_options: of a later version of the library");
    m->opset = options->opset ? options->opset : ONNX_OPSET_DEFAULT;
    if (m->opset < ONNX_OPSET_MIN || m->opset > ONNX_OPSET_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "opset %d: %d to %d can be written", m->opset,
                        ONNX_OPSET_MIN, ONNX_OPSET_MAX);
    return QAT_OK;
}

void *onnx_take(onnx_model *m, size_t count, size_t size)
{
    void *memory = m->failed ? NULL : qat_arena_array(&m->arena, count ? count : 1, size);
    m->failed |= !memory;
    return memory;
}

static char *text_of(onnx_model *m, const char *text)
{
    size_t const n = strlen(text) + 1;
    char *copy = onnx_take(m, n, 1);
    return copy ? memcpy(copy, text, n) : NULL;
}

/** The memory doubles whenever the count is a power of two. */
static void append(onnx_model *m, void ***items, size_t *count, void *item)
{
    if (!item || m->failed)
        return;
    if ((*count & (*count - 1)) == 0) {
        void **more = onnx_take(m, *count ? 2 * *count : 1, sizeof *more);
        if (!more)
            return;
        if (*count)
            memcpy(more, *items, *count * sizeof *more);
        *items = more;
    }
    (*items)[(*count)++] = item;
}

static void add_to(onnx_model *m, onnx_list *list, void *item)
{
    append(m, &list->items, &list->count, item);
}

/* ------------------------------------------------------------------ names */

/** The place of a name in the table, or the free one where it belongs. */
static const char **place_of(const char **names, size_t capacity, const char *name)
{
    size_t i = qat_hash_name(name) & (capacity - 1);
    while (names[i] && strcmp(names[i], name) != 0)
        i = (i + 1) & (capacity - 1);
    return &names[i];
}

static void grow_names(onnx_model *m)
{
    size_t const capacity = m->names_capacity ? 2 * m->names_capacity : 256;
    const char **names = onnx_take(m, capacity, sizeof *names);
    if (!names)
        return;
    for (size_t i = 0; i < m->names_capacity; i++)
        if (m->names[i])
            *place_of(names, capacity, m->names[i]) = m->names[i];
    m->names = names;
    m->names_capacity = capacity;
}

enum { NAME_MAX_BYTES = 256 };

const char *onnx_name(onnx_model *m, const char *wanted)
{
    char shown[NAME_MAX_BYTES - 24], name[NAME_MAX_BYTES];
    if (2 * m->n_names >= m->names_capacity)
        grow_names(m);
    if (m->failed)
        return "";
    qat_shown(shown, sizeof shown, *wanted ? wanted : "value", false);
    snprintf(name, sizeof name, "%s", shown);
    for (size_t k = m->n_names; *place_of(m->names, m->names_capacity, name); k++)
        snprintf(name, sizeof name, "%s_%zu", shown, k);
    char *copy = text_of(m, name);
    *place_of(m->names, m->names_capacity, name) = copy;
    m->n_names++;
    return copy ? copy : "";
}

/* ------------------------------------------------------------------ nodes */

onnx_node *onnx_add(onnx_model *m, const char *op, const char *const *inputs)
{
    onnx_node *node = onnx_take(m, 1, sizeof *node);
    if (!node)
        return NULL;
    onnx__node_proto__init(node);
    node->op_type = text_of(m, op);
    while (*inputs)
        onnx_input(m, node, *inputs++);
    add_to(m, &m->nodes, node);
    return node;
}

void onnx_microsoft(onnx_model *m, onnx_node *node)
{
    m->microsoft = true;
    if (node)
        node->domain = text_of(m, "com.microsoft");
}

void onnx_input(onnx_model *m, onnx_node *node, const char *value)
{
    if (node)
        append(m, (void ***)&node->input, &node->n_input, text_of(m, value));
}

static Onnx__AttributeProto *attribute(onnx_model *m, onnx_node *node, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = node ? onnx_take(m, 1, sizeof *a) : NULL;
    if (!a)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = text_of(m, name);
    a->has_type = true;
    a->type = type;
    append(m, (void ***)&node->attribute, &node->n_attribute, a);
    return a;
}

void onnx_attr_int(onnx_model *m, onnx_node *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (a) {
        a->has_i = true;
        a->i = value;
    }
}

void onnx_attr_float(onnx_model *m, onnx_node *node, const char *name, float value)
{
    Onnx__AttributeProto *a =
        attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (a) {
        a->has_f = true;
        a->f = value;
    }
}

void onnx_attr_text(onnx_model *m, onnx_node *node, const char *name, const char *value)
{
    Onnx__AttributeProto *a =
        attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (a) {
        a->has_s = true;
        a->s = (ProtobufCBinaryData){strlen(value), (uint8_t *)text_of(m, value)};
    }
}

void onnx_attr_ints(onnx_model *m, onnx_node *node, const char *name, int n, const int64_t *values)
{
    Onnx__AttributeProto *a = attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *ints = a ? onnx_take(m, (size_t)n, sizeof *ints) : NULL;
    if (ints) {
        memcpy(ints, values, (size_t)n * sizeof *ints);
        a->n_ints = (size_t)n;
        a->ints = ints;
    }
}

const char *onnx_output(onnx_model *m, onnx_node *node, const char *name)
{
    if (node) {
        append(m, (void ***)&node->output, &node->n_output, text_of(m, name));
        node->name = text_of(m, name);
    }
    return name;
}

const char *onnx_apply(onnx_model *m, const char *op, const char *wanted, const char *a,
                       const char *b)
{
    const char *const inputs[] = {a, b, NULL};
    return onnx_output(m, onnx_add(m, op, inputs), onnx_name(m, wanted));
}

/* ------------------------------------------------------------------ constants */

static void pack_halves(uint8_t *to, const uint8_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i / 2] |= (uint8_t)((from[i] & 15) << (i % 2 * 4));
}

const char *onnx_constant(onnx_model *m, const char *wanted, onnx_type type, int rank,
                          const int64_t *dims, const void *values)
{
    bool const halves = type == ONNX_U4 || type == ONNX_S4;
    const char *name = onnx_name(m, wanted);
    Onnx__TensorProto *t = onnx_take(m, 1, sizeof *t);
    int64_t *copy = onnx_take(m, (size_t)rank, sizeof *copy);
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    size_t const bytes = halves ? (count + 1) / 2 : count * onnx_type_bytes(type);
    uint8_t *data = onnx_take(m, bytes, 1);
    if (!t || !copy || !data)
        return name;
    if (halves)
        pack_halves(data, values, count);
    else
        memcpy(data, values, bytes);
    if (rank)
        memcpy(copy, dims, (size_t)rank * sizeof *copy);
    onnx__tensor_proto__init(t);
    t->name = text_of(m, name);
    t->has_data_type = t->has_raw_data = true;
    t->data_type = (int32_t)type;
    t->n_dims = (size_t)rank;
    t->dims = copy;
    t->raw_data = (ProtobufCBinaryData){bytes, data};
    add_to(m, &m->constants, t);
    return name;
}

const char *onnx_scalar(onnx_model *m, const char *wanted, onnx_type type, const void *value)
{
    return onnx_constant(m, wanted, type, 0, NULL, value);
}

const char *onnx_vector(onnx_model *m, const char *wanted, onnx_type type, int64_t n,
                        const void *values)
{
    return onnx_constant(m, wanted, type, 1, &n, values);
}

/* ------------------------------------------------------------------ the model's ends */

static Onnx__TensorShapeProto__Dimension *dimension(onnx_model *m, bool batch, int64_t value)
{
    Onnx__TensorShapeProto__Dimension *d = onnx_take(m, 1, sizeof *d);
    if (!d)
        return NULL;
    onnx__tensor_shape_proto__dimension__init(d);
    if (batch) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = text_of(m, "N");
    } else {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = value;
    }
    return d;
}

void onnx_end(onnx_model *m, bool is_output, const char *name, onnx_type type, int rank,
              const int64_t *dims)
{
    struct {
        Onnx__ValueInfoProto info;
        Onnx__TypeProto type;
        Onnx__TypeProto__Tensor tensor;
        Onnx__TensorShapeProto shape;
    } *all = onnx_take(m, 1, sizeof *all);
    if (!all)
        return;
    onnx__value_info_proto__init(&all->info);
    onnx__type_proto__init(&all->type);
    onnx__type_proto__tensor__init(&all->tensor);
    onnx__tensor_shape_proto__init(&all->shape);
    all->info.name = text_of(m, name);
    all->info.type = &all->type;
    all->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    all->type.tensor_type = &all->tensor;
    all->tensor.has_elem_type = true;
    all->tensor.elem_type = (int32_t)type;
    all->tensor.shape = &all->shape;
    for (int i = 0; i < rank; i++)
        append(m, (void ***)&all->shape.dim, &all->shape.n_dim,
               dimension(m, m->batched && i == 0, dims[i]));
    add_to(m, is_output ? &m->outputs : &m->inputs, &all->info);
}

void onnx_metadata(onnx_model *m, const char *key, const char *text)
{
    Onnx__StringStringEntryProto *entry = onnx_take(m, 1, sizeof *entry);
    if (!entry)
        return;
    onnx__string_string_entry_proto__init(entry);
    entry->key = text_of(m, key);
    entry->value = text_of(m, text);
    add_to(m, &m->metadata, entry);
}

/** The version of the format that goes with a version of the operators. */
static int64_t ir_version(int opset)
{
    return opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7;
}

void onnx_metadata_text(onnx_model *m, const char *key, qat_writer *text)
{
    bool const empty = !text->count && !text->failed;
    qat_write_u8(text, 0);
    m->failed |= text->failed;
    if (!m->failed && !empty)
        onnx_metadata(m, key, (const char *)text->bytes);
    qat_writer_free(text);
}

void onnx_tell_state(qat_writer *text, const char *input, const char *output, int32_t first)
{
    qat_write_text(text, "%s%s %s %d", text->count ? "\n" : "", input, output, (int)first);
}

qat_status onnx_pack(onnx_model *m, const char *description, uint8_t **bytes, size_t *count,
                     qat_error *err)
{
    char domain[] = "", microsoft[] = "com.microsoft", producer[] = "qat", version[] = QAT_VERSION;
    char graph_name[] = "qat", *about = text_of(m, description);
    Onnx__OperatorSetIdProto sets[2], *imports[] = {&sets[0], &sets[1]};
    Onnx__GraphProto graph;
    Onnx__ModelProto model;
    *bytes = NULL;
    *count = 0;
    onnx__operator_set_id_proto__init(&sets[0]);
    onnx__operator_set_id_proto__init(&sets[1]);
    onnx__graph_proto__init(&graph);
    onnx__model_proto__init(&model);
    sets[0].domain = domain;
    sets[1].domain = microsoft;
    sets[0].has_version = sets[1].has_version = true;
    sets[0].version = m->opset;
    sets[1].version = 1;
    graph.name = graph_name;
    graph.n_node = m->nodes.count;
    graph.node = (Onnx__NodeProto **)m->nodes.items;
    graph.n_initializer = m->constants.count;
    graph.initializer = (Onnx__TensorProto **)m->constants.items;
    graph.n_input = m->inputs.count;
    graph.input = (Onnx__ValueInfoProto **)m->inputs.items;
    graph.n_output = m->outputs.count;
    graph.output = (Onnx__ValueInfoProto **)m->outputs.items;
    model.has_ir_version = true;
    model.ir_version = ir_version(m->opset);
    model.n_opset_import = m->microsoft ? 2 : 1;
    model.opset_import = imports;
    model.producer_name = producer;
    model.producer_version = version;
    model.doc_string = about;
    model.graph = &graph;
    model.n_metadata_props = m->metadata.count;
    model.metadata_props = (Onnx__StringStringEntryProto **)m->metadata.items;
    size_t const size = m->failed ? 0 : onnx__model_proto__get_packed_size(&model);
    if (size > INT32_MAX)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "the model has %zu bytes as ONNX, but such a file has at most 2^31 - 1",
                        size);
    *bytes = m->failed ? NULL : malloc(size);
    if (!*bytes)
        return qat_out_of_memory(err, "writing ONNX");
    *count = onnx__model_proto__pack(&model, *bytes);
    return QAT_OK;
}

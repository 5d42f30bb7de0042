#include "convert/tflite/model.h"
#include "convert/tflite/codes.h"

#include <stdio.h>
#include <string.h>

enum { SCHEMA_VERSION = 3 };

/** The state of parsing. */
struct parser {
    tfl_model *model;
    fb_vector buffers, codes;
    uint32_t subgraph;
    qat_error *err;
};

/** The error if anything read so far was outside the file. */
static qat_status check_bad(const struct parser *p)
{
    const fb_file *f = &p->model->file;
    if (!f->bad)
        return QAT_OK;
    return qat_fail(p->err, QAT_ERR_FORMAT,
                    "malformed: %s at byte %zu of %zu does not lie inside the file", f->bad_what,
                    f->bad_at, f->count);
}

static qat_status check_count(const struct parser *p, const char *what, uint32_t count,
                              uint32_t most)
{
    if (count <= most)
        return QAT_OK;
    return qat_fail(p->err, QAT_ERR_UNSUPPORTED, "%u %s; at most %u are supported", count, what,
                    most);
}

static void copy_text(char *to, size_t max, const fb_vector *text)
{
    size_t const n = text->count < max - 1 ? text->count : max - 1;
    if (n)
        memcpy(to, fb_bytes(text), n);
    to[n] = 0;
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)to[i] < ' ')
            to[i] = to[i] ? '?' : '_';
}

/* ------------------------------------------------------------------ tensors */

/** Find the bytes of a buffer: in its vector, or (files above 2 GB) after the FlatBuffer. */
static qat_status find_data(const struct parser *p, tfl_tensor *t, uint32_t buffer)
{
    fb_table const table = fb_table_at(&p->buffers, buffer);
    fb_vector const data = fb_items(&table, BUFFER_DATA, 1);
    uint64_t const offset = fb_u64(&table, BUFFER_OFFSET, 0), size = fb_u64(&table, BUFFER_SIZE, 0);
    const fb_file *f = &p->model->file;
    t->data = fb_bytes(&data);
    t->data_bytes = data.count;
    if (offset <= 1)
        return QAT_OK;
    if (offset > f->count || size > f->count - offset)
        return qat_fail(p->err, QAT_ERR_FORMAT, "malformed: buffer %u lies outside the file",
                        buffer);
    t->data = size ? f->bytes + offset : NULL;
    t->data_bytes = (size_t)size;
    return QAT_OK;
}

static qat_status parse_tensor(const struct parser *p, int index, const fb_table *table)
{
    tfl_tensor *t = &p->model->tensors[index];
    fb_vector const shape = fb_items(table, TENSOR_SHAPE, 4), name = fb_string(table, TENSOR_NAME);
    fb_table const q = fb_subtable(table, TENSOR_QUANTIZATION);
    uint32_t const buffer = (uint32_t)fb_i32(table, TENSOR_BUFFER, 0);
    copy_text(t->name, sizeof t->name, &name);
    t->type = fb_u8(table, TENSOR_TYPE, 0);
    t->scales = fb_items(&q, QUANTIZATION_SCALE, 4);
    t->zero_points = fb_items(&q, QUANTIZATION_ZERO_POINT, 8);
    t->quantized_dimension = fb_i32(&q, QUANTIZATION_DIMENSION, 0);
    t->variable = fb_u8(table, TENSOR_IS_VARIABLE, 0) != 0;
    t->sparse = fb_has(table, TENSOR_SPARSITY);
    if (shape.count > TFL_MAX_RANK)
        return qat_fail(p->err, QAT_ERR_UNSUPPORTED, "tensor %d (%s) has rank %u", index, t->name,
                        shape.count);
    t->rank = (int)shape.count;
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = fb_i32_at(&shape, (uint32_t)i);
    if (buffer >= p->buffers.count && buffer > 0)
        return qat_fail(p->err, QAT_ERR_FORMAT, "malformed: tensor %d (%s) names buffer %u of %u",
                        index, t->name, buffer, p->buffers.count);
    return buffer ? find_data(p, t, buffer) : QAT_OK;
}

static qat_status parse_tensors(const struct parser *p, const fb_table *subgraph)
{
    tfl_model *m = p->model;
    fb_vector const tensors = fb_items(subgraph, SUBGRAPH_TENSORS, 4);
    qat_status st = check_count(p, "tensors", tensors.count, TFL_MAX_TENSORS);
    if (st)
        return st;
    m->n_tensors = (int)tensors.count;
    m->tensors = qat_arena_array(&m->arena, tensors.count + 1, sizeof *m->tensors);
    if (!m->tensors)
        return qat_out_of_memory(p->err, NULL);
    for (int i = 0; !st && i < m->n_tensors; i++) {
        fb_table const table = fb_table_at(&tensors, (uint32_t)i);
        st = parse_tensor(p, i, &table);
        if (!st)
            st = check_bad(p);
    }
    return st;
}

/* ------------------------------------------------------------------ operators */

/** Parse a list of tensors, all of which must exist; -1 is an absent one, if that is allowed. */
static qat_status parse_indices(const struct parser *p, const char *what, const fb_vector *v,
                                bool may_be_absent, int **indices, int *count)
{
    int32_t const lowest = may_be_absent ? -1 : 0;
    qat_status const st = check_count(p, what, v->count, TFL_MAX_OPERANDS);
    if (st)
        return st;
    *count = (int)v->count;
    *indices = qat_arena_array(&p->model->arena, v->count + 1, sizeof **indices);
    if (!*indices)
        return qat_out_of_memory(p->err, NULL);
    for (int i = 0; i < *count; i++) {
        int32_t const index = fb_i32_at(v, (uint32_t)i);
        if (index < lowest || index >= p->model->n_tensors)
            return qat_fail(p->err, QAT_ERR_FORMAT,
                            "malformed: one of the %s is tensor %d; the file has %d tensors", what,
                            (int)index, p->model->n_tensors);
        (*indices)[i] = (int)index;
    }
    return QAT_OK;
}

/** Find the operator: the larger of the two code fields (the older one is a byte). */
static qat_status find_code(const struct parser *p, tfl_op *op, uint32_t index)
{
    if (index >= p->codes.count)
        return qat_fail(p->err, QAT_ERR_FORMAT,
                        "malformed: an operator names operator code %u of %u", index,
                        p->codes.count);
    fb_table const table = fb_table_at(&p->codes, index);
    int const older = (int8_t)fb_u8(&table, CODE_DEPRECATED, 0);
    int const newer = fb_i32(&table, CODE_BUILTIN, 0);
    fb_vector const custom = fb_string(&table, CODE_CUSTOM);
    op->code = older > newer ? older : newer;
    op->name = tfl_op_name(op->code);
    if (op->name && (op->code != TFL_CUSTOM || !custom.count))
        return QAT_OK;
    size_t const bytes = op->name && custom.count < QAT_NAME_MAX ? custom.count + 1 : QAT_NAME_MAX;
    char *name = qat_arena_take(&p->model->arena, bytes);
    if (!name)
        return qat_out_of_memory(p->err, NULL);
    if (op->name)
        copy_text(name, bytes, &custom);
    else
        snprintf(name, bytes, "number %d", op->code);
    op->name = name;
    return QAT_OK;
}

static qat_status parse_op(const struct parser *p, tfl_op *op, const fb_table *table)
{
    fb_vector const inputs = fb_items(table, OPERATOR_INPUTS, 4);
    fb_vector const outputs = fb_items(table, OPERATOR_OUTPUTS, 4);
    fb_vector const intermediates = fb_items(table, OPERATOR_INTERMEDIATES, 4);
    op->options_type = fb_u8(table, OPERATOR_OPTIONS_TYPE, TFL_NO_OPTIONS);
    if (op->options_type != TFL_NO_OPTIONS)
        op->options = fb_subtable(table, OPERATOR_OPTIONS);
    op->custom_options = fb_items(table, OPERATOR_CUSTOM_OPTIONS, 1);
    qat_status st = find_code(p, op, (uint32_t)fb_i32(table, OPERATOR_CODE, 0));
    if (!st)
        st = parse_indices(p, "inputs of an operator", &inputs, true, &op->inputs, &op->n_inputs);
    if (!st)
        st = parse_indices(p, "outputs of an operator", &outputs, false, &op->outputs,
                           &op->n_outputs);
    if (!st)
        st = parse_indices(p, "intermediates of an operator", &intermediates, true,
                           &op->intermediates, &op->n_intermediates);
    return st ? st : check_bad(p);
}

static qat_status parse_ops(const struct parser *p, const fb_table *subgraph)
{
    tfl_model *m = p->model;
    fb_vector const ops = fb_items(subgraph, SUBGRAPH_OPERATORS, 4);
    qat_status st = check_count(p, "operators", ops.count, TFL_MAX_OPS);
    if (st)
        return st;
    m->n_ops = (int)ops.count;
    m->ops = qat_arena_array(&m->arena, ops.count + 1, sizeof *m->ops);
    if (!m->ops)
        return qat_out_of_memory(p->err, NULL);
    for (int i = 0; !st && i < m->n_ops; i++) {
        fb_table const table = fb_table_at(&ops, (uint32_t)i);
        st = parse_op(p, &m->ops[i], &table);
    }
    return st;
}

/* ------------------------------------------------------------------ the file */

static qat_status parse_subgraph(const struct parser *p, const fb_table *subgraph)
{
    tfl_model *m = p->model;
    fb_vector const inputs = fb_items(subgraph, SUBGRAPH_INPUTS, 4);
    fb_vector const outputs = fb_items(subgraph, SUBGRAPH_OUTPUTS, 4);
    qat_status st = parse_tensors(p, subgraph);
    if (!st)
        st = parse_indices(p, "inputs of the model", &inputs, false, &m->inputs, &m->n_inputs);
    if (!st)
        st = parse_indices(p, "outputs of the model", &outputs, false, &m->outputs, &m->n_outputs);
    if (!st && p->subgraph == 0 && (!m->n_inputs || !m->n_outputs))
        st = qat_fail(p->err, QAT_ERR_FORMAT, "the model has %d inputs and %d outputs", m->n_inputs,
                      m->n_outputs);
    return st ? st : parse_ops(p, subgraph);
}

static qat_status parse_root(struct parser *p, const fb_table *root)
{
    fb_vector const subgraphs = fb_items(root, MODEL_SUBGRAPHS, 4);
    fb_vector const description = fb_string(root, MODEL_DESCRIPTION);
    int const version = fb_i32(root, MODEL_VERSION, 0);
    qat_status st = check_bad(p);
    if (st)
        return st;
    if (version != SCHEMA_VERSION)
        return qat_fail(p->err, QAT_ERR_UNSUPPORTED, "schema version %d; only 3 is supported",
                        version);
    if (p->subgraph >= subgraphs.count)
        return qat_fail(p->err, QAT_ERR_FORMAT, "malformed: no subgraph %u, but %u subgraphs",
                        p->subgraph, subgraphs.count);
    p->buffers = fb_items(root, MODEL_BUFFERS, 4);
    p->codes = fb_items(root, MODEL_OPERATOR_CODES, 4);
    fb_table const subgraph = fb_table_at(&subgraphs, p->subgraph);
    p->model->description = qat_arena_take(&p->model->arena, QAT_NAME_MAX);
    if (!p->model->description)
        return qat_out_of_memory(p->err, NULL);
    copy_text(p->model->description, QAT_NAME_MAX, &description);
    st = parse_subgraph(p, &subgraph);
    return st ? st : check_bad(p);
}

qat_status tfl_model_parse(tfl_model *model, const void *bytes, size_t count, qat_error *err)
{
    return tfl_model_parse_subgraph(model, bytes, count, 0, err);
}

qat_status tfl_model_parse_subgraph(tfl_model *model, const void *bytes, size_t count,
                                    uint32_t subgraph, qat_error *err)
{
    *model = (tfl_model){.file = {.bytes = bytes, .count = count}};
    struct parser p = {.model = model, .subgraph = subgraph, .err = err};
    if (count < 8 || memcmp((const uint8_t *)bytes + 4, "TFL3", 4) != 0)
        return qat_fail(err, QAT_ERR_FORMAT, "not a .tflite file: no TFL3 at byte 4");
    fb_table const root = fb_root(&model->file, "TFL3");
    return parse_root(&p, &root);
}

void tfl_model_free(tfl_model *model)
{
    qat_arena_free(&model->arena);
    *model = (tfl_model){0};
}

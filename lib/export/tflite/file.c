#include "export/tflite/file.h"

#include "base/shown.h"
#include "qat/graph.h"

#include <string.h>

enum { SCHEMA_VERSION = 3, BUFFER_ALIGNMENT = 16 };
enum { MODEL_METADATA = 6, MODEL_SIGNATURES = 7, SUBGRAPH_NAME = 4 };
enum { METADATA_NAME, METADATA_BUFFER };
enum { SIGNATURE_INPUTS, SIGNATURE_OUTPUTS, SIGNATURE_KEY, SIGNATURE_SUBGRAPH = 4 };
enum { MAP_NAME, MAP_TENSOR };

/* ------------------------------------------------------------------ collecting */

qat_status tfo_file_init(tfo_file *f, int max_tensors, int max_operators, int n_inputs,
                         int n_outputs, qat_error *err)
{
    *f = (tfo_file){.max_tensors = max_tensors,
                    .max_operators = max_operators,
                    .max_buffers = max_tensors + TFO_METADATA + 1,
                    .n_buffers = 1,
                    .n_inputs = n_inputs,
                    .n_outputs = n_outputs};
    f->tensors = qat_arena_array(&f->arena, (size_t)max_tensors, sizeof *f->tensors);
    f->operators = qat_arena_array(&f->arena, (size_t)max_operators, sizeof *f->operators);
    f->buffers = qat_arena_array(&f->arena, (size_t)f->max_buffers, sizeof *f->buffers);
    f->inputs = qat_arena_array(&f->arena, (size_t)n_inputs, sizeof *f->inputs);
    f->outputs = qat_arena_array(&f->arena, (size_t)n_outputs, sizeof *f->outputs);
    bool const good = f->tensors && f->operators && f->buffers && f->inputs && f->outputs;
    return good ? QAT_OK : qat_out_of_memory(err, NULL);
}

void tfo_file_free(tfo_file *f)
{
    qat_arena_free(&f->arena);
}

int tfo_add_tensor(tfo_file *f, const char *name, const tfo_tensor *tensor)
{
    if (f->n_tensors == f->max_tensors) {
        f->failed = true;
        return 0;
    }
    tfo_tensor *t = &f->tensors[f->n_tensors];
    *t = *tensor;
    qat_shown(t->name, sizeof t->name, name, false);
    return f->n_tensors++;
}

int tfo_add_buffer(tfo_file *f, const void *data, size_t bytes)
{
    for (int i = f->n_buffers - 1; i > 0; i--)
        if (f->buffers[i].data == data && f->buffers[i].bytes == bytes)
            return i;
    if (!data || f->n_buffers == f->max_buffers) {
        f->failed = true;
        return 0;
    }
    f->buffers[f->n_buffers] = (tfo_buffer){data, bytes};
    return f->n_buffers++;
}

tfo_operator *tfo_add_operator(tfo_file *f, int code, int n_inputs, const int *inputs, int output)
{
    int *copy = qat_arena_array(&f->arena, (size_t)n_inputs, sizeof *copy);
    if (!copy || f->n_operators == f->max_operators) {
        f->failed = true;
        return NULL;
    }
    memcpy(copy, inputs, (size_t)n_inputs * sizeof *copy);
    tfo_operator *op = &f->operators[f->n_operators++];
    *op = (tfo_operator){
        .code = code, .version = 1, .n_inputs = n_inputs, .inputs = copy, .output = output};
    return op;
}

/* ------------------------------------------------------------------ operators' codes */

/** The number of the operator's code: one code for each pair of operator and version. */
static int code_of(const tfo_file *f, int i, int *codes, int *n_codes)
{
    const tfo_operator *op = &f->operators[i];
    for (int c = 0; c < *n_codes; c++)
        if (f->operators[codes[c]].code == op->code &&
            f->operators[codes[c]].version == op->version)
            return c;
    codes[*n_codes] = i;
    return (*n_codes)++;
}

static void put_codes(qat_writer *w, const fbw_table *root, const tfo_file *f, const int *codes,
                      int n_codes)
{
    size_t const first = fbw_tables(w, root, MODEL_OPERATOR_CODES, n_codes);
    for (int i = 0; i < n_codes; i++) {
        const tfo_operator *op = &f->operators[codes[i]];
        fbw_table const t =
            fbw_item(w, first + 4 * (size_t)i,
                     1u << CODE_DEPRECATED | 1u << CODE_VERSION | 1u << CODE_BUILTIN);
        int const older = op->code < TFL_PLACEHOLDER ? op->code : TFL_PLACEHOLDER;
        fbw_set(w, &t, CODE_DEPRECATED, (uint32_t)older);
        fbw_set(w, &t, CODE_VERSION, (uint32_t)op->version);
        fbw_set(w, &t, CODE_BUILTIN, (uint32_t)op->code);
    }
}

/* ------------------------------------------------------------------ the subgraph */

static void put_quantization(qat_writer *w, const fbw_table *tensor, const tfo_tensor *t)
{
    fbw_table const q = fbw_subtable(w, tensor, TENSOR_QUANTIZATION,
                                     1u << QUANTIZATION_SCALE | 1u << QUANTIZATION_ZERO_POINT |
                                         1u << QUANTIZATION_DIMENSION);
    fbw_set(w, &q, QUANTIZATION_DIMENSION, (uint32_t)t->dimension);
    fbw_vector(w, &q, QUANTIZATION_SCALE, (size_t)t->n_scales, 4);
    for (int i = 0; i < t->n_scales; i++)
        qat_write_f32(w, t->scales ? t->scales[i] : t->scale);
    fbw_vector(w, &q, QUANTIZATION_ZERO_POINT, (size_t)t->n_scales, 8);
    for (int i = 0; i < t->n_scales; i++)
        qat_write_u64(w, (uint64_t)(int64_t)t->zero_point);
}

static void put_tensor(qat_writer *w, size_t slot, const tfo_tensor *t)
{
    unsigned const fields = 1u << TENSOR_SHAPE | 1u << TENSOR_TYPE | 1u << TENSOR_BUFFER |
                            1u << TENSOR_NAME | (t->n_scales ? 1u << TENSOR_QUANTIZATION : 0) |
                            (t->variable ? 1u << TENSOR_IS_VARIABLE : 0);
    fbw_table const table = fbw_item(w, slot, fields);
    fbw_set(w, &table, TENSOR_TYPE, (uint32_t)t->type);
    fbw_set(w, &table, TENSOR_BUFFER, (uint32_t)t->buffer);
    fbw_ints(w, &table, TENSOR_SHAPE, t->dims, t->rank);
    fbw_text(w, &table, TENSOR_NAME, t->name);
    if (t->variable)
        fbw_set(w, &table, TENSOR_IS_VARIABLE, 1);
    if (t->n_scales)
        put_quantization(w, &table, t);
}

static void put_options(qat_writer *w, const fbw_table *op, const tfo_operator *o)
{
    unsigned fields = 0;
    for (int i = 0; i < o->n_options; i++)
        fields |= 1u << o->options[i].field;
    fbw_table const t = fbw_subtable(w, op, OPERATOR_OPTIONS, fields);
    for (int i = 0; i < o->n_options; i++)
        fbw_set(w, &t, o->options[i].field, o->options[i].bits);
}

static void put_intermediates(qat_writer *w, const fbw_table *op, const tfo_operator *o)
{
    int all[TFO_INTERMEDIATES];
    for (int i = 0; i < o->n_intermediates; i++)
        all[i] = o->intermediate;
    fbw_ints(w, op, OPERATOR_INTERMEDIATES, all, o->n_intermediates);
}

static void put_operator(qat_writer *w, size_t slot, const tfo_operator *o, int code)
{
    unsigned const options =
        o->options_type ? 1u << OPERATOR_OPTIONS_TYPE | 1u << OPERATOR_OPTIONS : 0;
    unsigned const scales = o->n_intermediates ? 1u << OPERATOR_INTERMEDIATES : 0;
    fbw_table const t = fbw_item(w, slot,
                                 1u << OPERATOR_CODE | 1u << OPERATOR_INPUTS |
                                     1u << OPERATOR_OUTPUTS | options | scales);
    fbw_set(w, &t, OPERATOR_CODE, (uint32_t)code);
    fbw_ints(w, &t, OPERATOR_INPUTS, o->inputs, o->n_inputs);
    fbw_ints(w, &t, OPERATOR_OUTPUTS, &o->output, 1);
    if (o->n_intermediates)
        put_intermediates(w, &t, o);
    if (!options)
        return;
    fbw_set(w, &t, OPERATOR_OPTIONS_TYPE, (uint32_t)o->options_type);
    put_options(w, &t, o);
}

static void put_subgraph(qat_writer *w, const fbw_table *root, const tfo_file *f, const int *code)
{
    size_t const slot = fbw_tables(w, root, MODEL_SUBGRAPHS, 1);
    fbw_table const t =
        fbw_item(w, slot,
                 1u << SUBGRAPH_TENSORS | 1u << SUBGRAPH_INPUTS | 1u << SUBGRAPH_OUTPUTS |
                     1u << SUBGRAPH_OPERATORS | 1u << SUBGRAPH_NAME);
    fbw_ints(w, &t, SUBGRAPH_INPUTS, f->inputs, f->n_inputs);
    fbw_ints(w, &t, SUBGRAPH_OUTPUTS, f->outputs, f->n_outputs);
    fbw_text(w, &t, SUBGRAPH_NAME, "main");
    size_t const tensors = fbw_tables(w, &t, SUBGRAPH_TENSORS, f->n_tensors);
    for (int i = 0; i < f->n_tensors; i++)
        put_tensor(w, tensors + 4 * (size_t)i, &f->tensors[i]);
    size_t const operators = fbw_tables(w, &t, SUBGRAPH_OPERATORS, f->n_operators);
    for (int i = 0; i < f->n_operators; i++)
        put_operator(w, operators + 4 * (size_t)i, &f->operators[i], code[i]);
}

/* ------------------------------------------------------------------ the rest */

static void put_buffers(qat_writer *w, const fbw_table *root, const tfo_file *f)
{
    size_t const first = fbw_tables(w, root, MODEL_BUFFERS, f->n_buffers);
    for (int i = 0; i < f->n_buffers; i++) {
        const tfo_buffer *b = &f->buffers[i];
        fbw_table const t = fbw_item(w, first + 4 * (size_t)i, b->data ? 1u << BUFFER_DATA : 0);
        if (!b->data)
            continue;
        fbw_vector(w, &t, BUFFER_DATA, b->bytes, BUFFER_ALIGNMENT);
        qat_write_bytes(w, b->data, b->bytes);
    }
}

static void put_metadata(qat_writer *w, const fbw_table *root, const tfo_file *f)
{
    size_t const first = fbw_tables(w, root, MODEL_METADATA, f->n_metadata);
    for (int i = 0; i < f->n_metadata; i++) {
        fbw_table const t =
            fbw_item(w, first + 4 * (size_t)i, 1u << METADATA_NAME | 1u << METADATA_BUFFER);
        fbw_set(w, &t, METADATA_BUFFER, (uint32_t)f->metadata[i].buffer);
        fbw_text(w, &t, METADATA_NAME, f->metadata[i].name);
    }
}

static void put_maps(qat_writer *w, const fbw_table *signature, int field, const tfo_file *f,
                     const int *tensors, int n)
{
    size_t const first = fbw_tables(w, signature, field, n);
    for (int i = 0; i < n; i++) {
        fbw_table const t = fbw_item(w, first + 4 * (size_t)i, 1u << MAP_NAME | 1u << MAP_TENSOR);
        fbw_set(w, &t, MAP_TENSOR, (uint32_t)tensors[i]);
        fbw_text(w, &t, MAP_NAME, f->tensors[tensors[i]].name);
    }
}

/** The one signature, under the name that TensorFlow gives to a model's only one. */
static void put_signature(qat_writer *w, const fbw_table *root, const tfo_file *f)
{
    size_t const slot = fbw_tables(w, root, MODEL_SIGNATURES, 1);
    fbw_table const t = fbw_item(w, slot,
                                 1u << SIGNATURE_INPUTS | 1u << SIGNATURE_OUTPUTS |
                                     1u << SIGNATURE_KEY | 1u << SIGNATURE_SUBGRAPH);
    put_maps(w, &t, SIGNATURE_INPUTS, f, f->inputs, f->n_inputs);
    put_maps(w, &t, SIGNATURE_OUTPUTS, f, f->outputs, f->n_outputs);
    fbw_text(w, &t, SIGNATURE_KEY, "serving_default");
}

/** Refuse what would be too large, before it takes memory. */
static qat_status check_size(const tfo_file *f, size_t most, qat_error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < f->n_buffers; i++)
        bytes += f->buffers[i].bytes;
    if (bytes <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "its constants take %zu bytes; a .tflite file holds at most %zu", bytes, most);
}

qat_status tfo_file_write(const tfo_file *f, qat_writer *w, size_t most, qat_error *err)
{
    qat_arena arena = {0};
    int n_codes = 0;
    qat_status const st = check_size(f, most, err);
    int *codes = qat_arena_array(&arena, 2 * (size_t)f->n_operators, sizeof *codes);
    if (!st && codes) {
        int *code = codes + f->n_operators;
        for (int i = 0; i < f->n_operators; i++)
            code[i] = code_of(f, i, codes, &n_codes);
        fbw_table const root =
            fbw_root(w, "TFL3",
                     1u << MODEL_VERSION | 1u << MODEL_OPERATOR_CODES | 1u << MODEL_SUBGRAPHS |
                         1u << MODEL_DESCRIPTION | 1u << MODEL_BUFFERS | 1u << MODEL_METADATA |
                         1u << MODEL_SIGNATURES);
        fbw_set(w, &root, MODEL_VERSION, SCHEMA_VERSION);
        put_codes(w, &root, f, codes, n_codes);
        put_subgraph(w, &root, f, code);
        fbw_text(w, &root, MODEL_DESCRIPTION, f->description);
        put_buffers(w, &root, f);
        put_metadata(w, &root, f);
        put_signature(w, &root, f);
    }
    qat_arena_free(&arena);
    if (st)
        return st;
    if (!codes || w->failed)
        return qat_out_of_memory(err, NULL);
    return w->count <= most
               ? QAT_OK
               : qat_fail(err, QAT_ERR_UNSUPPORTED,
                          "the file would take %zu bytes; a .tflite file holds at most %zu",
                          w->count, most);
}

/** Reads float .tflite files. The schema's tables are read by convert/tflite/model.c. */
#include "foreign/tflite.h"

#include "base/bytes.h"
#include "base/files/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 13, NODES_AN_OPERAND = 2, NODES_AN_OP = 4 };

/* ------------------------------------------------------------------ saying no */

qat_status tf_refuse(tf_reader *r, const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    const tfl_op *op = r->op;
    return qat_fail(r->err, QAT_ERR_UNSUPPORTED, "%s: op %d (%s, writes %.60s): %s",
                    r->graph->source, (int)(op - r->model->ops), op->name,
                    op->n_outputs ? r->model->tensors[op->outputs[0]].name : "nothing", why);
}

static void *take(tf_reader *r, size_t count, size_t size)
{
    void *memory =
        count <= r->memory / size ? qat_arena_array(&r->graph->arena, count, size) : NULL;
    r->memory -= memory ? count * size : 0;
    r->full = r->full || !memory;
    return memory;
}

static char *text_of(tf_reader *r, const char *text)
{
    size_t const n = strlen(text) + 1;
    char *copy = take(r, n, 1);
    return copy ? memcpy(copy, text, n) : NULL;
}

/* ------------------------------------------------------------------ inputs of an operator */

const tfl_tensor *tf_tensor(const tf_reader *r, int i)
{
    int const tensor = tf_input(r, i);
    return tensor < 0 ? NULL : &r->model->tensors[tensor];
}

int tf_input(const tf_reader *r, int i)
{
    return i < r->op->n_inputs ? r->op->inputs[i] : -1;
}

qat_status tf_ints(tf_reader *r, int i, const char *what, int64_t *to, int most, int *n)
{
    int const value = tf_input(r, i);
    const qat_foreign_tensor *c = value < 0 ? NULL : r->graph->values[value].constant;
    if (!c || c->type != QAT_FOREIGN_INT || c->count > (size_t)most)
        return tf_refuse(r, "its %s are not at most %d constant integers", what, most);
    for (size_t k = 0; k < c->count; k++)
        to[k] = c->ints[k];
    *n = (int)c->count;
    return QAT_OK;
}

/* ------------------------------------------------------------------ nodes */

int tf_value(tf_reader *r)
{
    if (r->graph->n_values == r->most_values) {
        r->full = true;
        return r->most_values - 1;
    }
    qat_foreign_value *v = &r->graph->values[r->graph->n_values];
    *v = (qat_foreign_value){.name = r->graph->source, .rank = -1};
    return r->graph->n_values++;
}

static qat_foreign_attr *add_attr(tf_reader *r, const char *name, qat_foreign_kind kind)
{
    qat_foreign_attr *a = &r->attrs[r->n_attrs++];
    *a = (qat_foreign_attr){.name = name, .kind = kind};
    return a;
}

void tf_attr_int(tf_reader *r, const char *name, int64_t value)
{
    add_attr(r, name, QAT_FOREIGN_ATTR_INT)->i = value;
}

void tf_attr_real(tf_reader *r, const char *name, float value)
{
    add_attr(r, name, QAT_FOREIGN_ATTR_FLOAT)->f = value;
}

void tf_attr_text(tf_reader *r, const char *name, const char *value)
{
    add_attr(r, name, QAT_FOREIGN_ATTR_TEXT)->text = value;
}

void tf_attr_ints(tf_reader *r, const char *name, int n, const int64_t *values)
{
    int64_t *ints = take(r, (size_t)n + 1, sizeof *ints);
    qat_foreign_attr *a = add_attr(r, name, QAT_FOREIGN_ATTR_INTS);
    if (ints)
        memcpy(ints, values, (size_t)n * sizeof *ints);
    a->ints = ints;
    a->n = ints ? (size_t)n : 0;
}

static int *list_of(tf_reader *r, int n, const int *values)
{
    int *list = take(r, (size_t)n + 1, sizeof *list);
    if (list && n)
        memcpy(list, values, (size_t)n * sizeof *list);
    return list;
}

void tf_node(tf_reader *r, const char *op, const char *part, int n_inputs, const int *inputs,
             int n_outputs, const int *outputs)
{
    char name[QAT_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s%s%s", r->name, *part ? "/" : "", part);
    qat_foreign_attr *attrs = take(r, (size_t)r->n_attrs + 1, sizeof *attrs);
    qat_foreign_node const n = {.op = op,
                                .domain = "",
                                .name = text_of(r, name),
                                .n_inputs = n_inputs,
                                .n_outputs = n_outputs,
                                .n_attrs = r->n_attrs,
                                .inputs = list_of(r, n_inputs, inputs),
                                .outputs = list_of(r, n_outputs, outputs),
                                .attrs = attrs};
    if (attrs)
        memcpy(attrs, r->attrs, (size_t)r->n_attrs * sizeof *attrs);
    r->n_attrs = 0;
    if (r->graph->n_nodes < r->most_nodes)
        r->graph->nodes[r->graph->n_nodes++] = n;
    else
        r->full = true;
}

int tf_between(tf_reader *r, const char *op, const char *part, int input)
{
    int const output = tf_value(r);
    tf_node(r, op, part, 1, &input, 1, &output);
    return output;
}

/* ------------------------------------------------------------------ tensors */

static bool is_float(int type)
{
    return type == TFL_FLOAT32 || type == TFL_FLOAT16;
}

/** 0: a type that float networks do not have. */
static size_t bytes_of(int type)
{
    switch (type) {
    case TFL_FLOAT16:
        return 2;
    case TFL_FLOAT32:
    case TFL_INT32:
        return 4;
    case TFL_INT64:
        return 8;
    case TFL_BOOL:
        return 1;
    default:
        return 0;
    }
}

static qat_status wrong_tensor(tf_reader *r, const tfl_tensor *t, const char *why)
{
    return qat_fail(r->err, QAT_ERR_FORMAT, "%s: tensor %d (%.60s): %s", r->graph->source,
                    (int)(t - r->model->tensors), t->name, why);
}

static void copy_values(qat_foreign_tensor *c, int type, qat_reader *in, float *floats,
                        int64_t *ints)
{
    for (size_t i = 0; i < c->count; i++) {
        if (floats)
            floats[i] = type == TFL_FLOAT16 ? qat_read_f16(in) : qat_read_f32(in);
        else
            ints[i] = type == TFL_INT64   ? (int64_t)qat_read_u64(in)
                      : type == TFL_INT32 ? (int32_t)qat_read_u32(in)
                                          : qat_read_u8(in);
    }
    c->floats = floats;
    c->ints = ints;
}

static qat_status read_constant(tf_reader *r, const tfl_tensor *t,
                                const qat_foreign_tensor **constant)
{
    qat_foreign_tensor *c = take(r, 1, sizeof *c);
    if (!c)
        return QAT_OK; /* full */
    *c = (qat_foreign_tensor){.type = is_float(t->type) ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT,
                              .rank = t->rank,
                              .count = 1};
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0 || (t->dims[i] && c->count > (size_t)(INT32_MAX / t->dims[i])))
            return wrong_tensor(r, t, "its shape has too many values");
        c->dims[i] = t->dims[i];
        c->count *= (size_t)t->dims[i];
    }
    if (c->count * bytes_of(t->type) != t->data_bytes)
        return wrong_tensor(r, t, "it does not hold the values of its shape");
    qat_reader in = qat_reader_of(t->data, t->data_bytes);
    float *floats = c->type == QAT_FOREIGN_FLOAT ? take(r, c->count, sizeof *floats) : NULL;
    int64_t *ints = c->type == QAT_FOREIGN_INT ? take(r, c->count, sizeof *ints) : NULL;
    if (!floats && !ints)
        return QAT_OK;
    copy_values(c, t->type, &in, floats, ints);
    *constant = c;
    return QAT_OK;
}

static qat_status read_tensor(tf_reader *r, int i)
{
    const tfl_tensor *t = &r->model->tensors[i];
    qat_foreign_value *v = &r->graph->values[i];
    *v = (qat_foreign_value){.name = text_of(r, t->name), .rank = t->rank};
    for (int k = 0; k < t->rank; k++)
        v->dims[k] = t->dims[k];
    if (t->sparse)
        return wrong_tensor(r, t, "sparse tensors are not supported");
    return t->data && bytes_of(t->type) ? read_constant(r, t, &v->constant) : QAT_OK;
}

static qat_status read_tensors(tf_reader *r)
{
    const tfl_model *m = r->model;
    qat_foreign_graph *g = r->graph;
    size_t most = 0;
    for (int i = 0; i < m->n_ops; i++)
        most += NODES_AN_OP + NODES_AN_OPERAND * (size_t)(m->ops[i].n_inputs + m->ops[i].n_outputs);
    r->most_nodes = (int)(most < QAT_FOREIGN_NODES_MAX ? most : QAT_FOREIGN_NODES_MAX);
    r->most_values = m->n_tensors + (int)most;
    g->nodes = take(r, most + 1, sizeof *g->nodes);
    g->values = take(r, (size_t)m->n_tensors + most + 1, sizeof *g->values);
    g->n_values = m->n_tensors;
    qat_status st = QAT_OK;
    for (int i = 0; i < m->n_tensors && g->values && !r->full && !st; i++)
        st = read_tensor(r, i);
    return st;
}

/* ------------------------------------------------------------------ operators */

/** Of names that were joined with ";", the layer's own: what is before "/Conv2D" and the like. */
static bool layer_name(const char *joined, char name[QAT_NAME_MAX])
{
    static const char *const ends[] = {"/Conv2D",  "/depthwise",        "/MatMul",
                                       "/BiasAdd", "/separable_conv2d", "/conv2d_transpose"};
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        const char *end = strstr(joined, ends[e]);
        const char *begin = end;
        while (begin && begin > joined && begin[-1] != ';')
            begin--;
        if (end && end > begin) {
            snprintf(name, QAT_NAME_MAX, "%.*s", (int)(end - begin), begin);
            return true;
        }
    }
    return false;
}

static void name_op(tf_reader *r)
{
    const tfl_op *op = r->op;
    const tfl_tensor *weights = tf_tensor(r, 1);
    const char *out = op->n_outputs ? r->model->tensors[op->outputs[0]].name : op->name;
    bool const has_weights = weights && weights->data && is_float(weights->type);
    if (has_weights && (layer_name(out, r->name) || layer_name(weights->name, r->name)))
        return;
    snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(out, ";"), out);
}

static qat_status check_types(tf_reader *r)
{
    const tfl_op *op = r->op;
    for (int i = 0; i < op->n_inputs + op->n_outputs; i++) {
        int const tensor = i < op->n_inputs ? op->inputs[i] : op->outputs[i - op->n_inputs];
        const tfl_tensor *t = tensor < 0 ? NULL : &r->model->tensors[tensor];
        if (t && !bytes_of(t->type))
            return tf_refuse(r,
                             "tensor %d (%.40s) is %s; networks that are trained hold floats "
                             "(qat-import takes quantized ones)",
                             tensor, t->name, tfl_type_name(t->type));
    }
    return QAT_OK;
}

static qat_status read_op(tf_reader *r)
{
    const tf_operator *o = tf_operator_of(r->op->code);
    qat_status const st = check_types(r);
    if (st || !o)
        return st ? st : tf_refuse(r, "this operator is not supported in float networks");
    if (r->op->n_inputs < o->min_inputs || r->op->n_inputs > o->max_inputs || !r->op->n_outputs)
        return tf_refuse(r, "it has %d inputs and %d outputs", r->op->n_inputs, r->op->n_outputs);
    for (int i = 0; i < o->min_inputs; i++)
        if (tf_input(r, i) < 0)
            return tf_refuse(r, "it has no input %d", i);
    name_op(r);
    return o->read(r);
}

static qat_status read_model(tf_reader *r)
{
    const tfl_model *m = r->model;
    qat_foreign_graph *g = r->graph;
    g->opset = OPSET;
    g->channels_last = true;
    qat_status st = read_tensors(r);
    g->inputs = list_of(r, m->n_inputs, m->inputs);
    g->outputs = list_of(r, m->n_outputs, m->outputs);
    g->n_inputs = m->n_inputs;
    g->n_outputs = m->n_outputs;
    for (int i = 0; i < m->n_inputs && !st && !r->full; i++)
        g->values[m->inputs[i]].is_input = true;
    for (int i = 0; i < m->n_ops && !st && !r->full; i++) {
        r->op = &m->ops[i];
        st = read_op(r);
    }
    if (!st && m->file.bad)
        st = qat_fail(r->err, QAT_ERR_FORMAT, "%s: malformed: %s at byte %zu is not in the file",
                      g->source, m->file.bad_what, m->file.bad_at);
    if (!st && r->full)
        st = qat_fail(r->err, QAT_ERR_LIMIT,
                      "%s: reading this network takes more memory than is allowed", g->source);
    g->room = r->memory;
    return st;
}

qat_status qat_float_tflite_parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                                  const char *name, uint64_t memory, qat_error *err)
{
    tfl_model model = {0};
    qat_error why = {0};
    *graph = calloc(1, sizeof **graph);
    if (!*graph)
        return qat_out_of_memory(err, name);
    tf_reader r = {.model = &model,
                   .graph = *graph,
                   .memory = memory ? memory : QAT_FOREIGN_DEFAULT_MEMORY,
                   .err = err};
    (*graph)->source = text_of(&r, name);
    qat_status st = tfl_model_parse(&model, bytes, count, &why);
    if (st)
        st = qat_fail(err, st, "%s: %s", name, why.message);
    else
        st = (*graph)->source ? read_model(&r) : qat_out_of_memory(err, name);
    tfl_model_free(&model);
    if (st) {
        qat_foreign_free(*graph);
        *graph = NULL;
    }
    return st;
}

qat_status qat_float_tflite_read(qat_foreign_graph **graph, const char *path, uint64_t memory,
                                 qat_error *err)
{
    uint64_t const limit = memory ? memory : QAT_FOREIGN_DEFAULT_MEMORY;
    uint8_t *bytes = NULL;
    size_t count = 0;
    *graph = NULL;
    qat_status st =
        qat_file_read(path, (size_t)(limit < SIZE_MAX ? limit : SIZE_MAX - 1), &bytes, &count, err);
    if (!st)
        st = qat_float_tflite_parse(graph, bytes, count, path, limit - count + 1, err);
    free(bytes);
    return st;
}

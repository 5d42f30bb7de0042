/** Goes through the nodes of a foreign network, in their order, and adds them to a graph. */
#include "foreign/build.h"
#include "base/files/file.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ saying no */

qat_status fv_refuse(const builder *b, const char *format, ...)
{
    char message[320];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return qat_fail(b->err, QAT_ERR_UNSUPPORTED, "%s: node '%.80s' (%.40s): %s", b->from->source,
                    *b->node->name ? b->node->name : b->name, b->node->op, message);
}

qat_status fv_graph_error(const builder *b)
{
    qat_error inner = {0};
    qat_status const st = qat_graph_check(b->graph, &inner);
    if (!st && b->full) {
        (void)fv_refuse(b, "constants and parameters take more memory than is allowed");
        return QAT_ERR_LIMIT;
    }
    if (!st)
        return qat_out_of_memory(b->err, b->from->source);
    (void)fv_refuse(b, "%s", inner.message);
    return st == QAT_ERR_NOMEM ? st : QAT_ERR_UNSUPPORTED;
}

/* ------------------------------------------------------------------ attributes */

const qat_foreign_attr *fv_attr(const builder *b, const char *name)
{
    for (int i = 0; i < b->node->n_attrs; i++)
        if (!strcmp(b->node->attrs[i].name, name))
            return &b->node->attrs[i];
    return NULL;
}

/** The attribute, if it is of this kind. One of another kind is noted. */
static const qat_foreign_attr *attr_of(builder *b, const char *name, qat_foreign_kind kind)
{
    const qat_foreign_attr *a = fv_attr(b, name);
    if (a && a->kind != kind)
        b->wrong_attr = name;
    return a && a->kind == kind ? a : NULL;
}

int64_t fv_attr_int(builder *b, const char *name, int64_t otherwise)
{
    const qat_foreign_attr *a = attr_of(b, name, QAT_FOREIGN_ATTR_INT);
    return a ? a->i : otherwise;
}

double fv_attr_real(builder *b, const char *name, double otherwise)
{
    const qat_foreign_attr *a = attr_of(b, name, QAT_FOREIGN_ATTR_FLOAT);
    return a ? (double)a->f : otherwise;
}

const char *fv_attr_text(builder *b, const char *name, const char *otherwise)
{
    const qat_foreign_attr *a = attr_of(b, name, QAT_FOREIGN_ATTR_TEXT);
    return a ? a->text : otherwise;
}

int fv_attr_ints(builder *b, const char *name, int64_t *to, int most)
{
    const qat_foreign_attr *a = attr_of(b, name, QAT_FOREIGN_ATTR_INTS);
    if (!a)
        return 0;
    for (int i = 0; i < most && (size_t)i < a->n; i++)
        to[i] = a->ints[i];
    return a->n < INT32_MAX ? (int)a->n : INT32_MAX;
}

/* ------------------------------------------------------------------ inputs, outputs */

fv *fv_input(const builder *b, int i)
{
    int const value = i < b->node->n_inputs ? b->node->inputs[i] : -1;
    return value < 0 ? NULL : &b->values[value];
}

static const char *input_name(const builder *b, int i)
{
    int const value = i < b->node->n_inputs ? b->node->inputs[i] : -1;
    return value < 0 ? "" : b->from->values[value].name;
}

qat_status fv_data(const builder *b, int i, fv **value)
{
    *value = fv_input(b, i);
    if (*value && (*value)->node)
        return QAT_OK;
    return fv_refuse(b, *value ? "its input %d, '%.80s', is a constant" : "it has no input %d%s", i,
                     *value ? input_name(b, i) : "");
}

qat_status fv_floats(const builder *b, int i, const char *what, const qat_foreign_tensor **constant)
{
    const fv *v = fv_input(b, i);
    *constant = v ? v->constant : NULL;
    if (!v)
        return QAT_OK;
    if (!v->constant)
        return fv_refuse(b, "its %s, '%.80s', is computed; only constants are possible", what,
                         input_name(b, i));
    if (v->constant->type != QAT_FOREIGN_FLOAT)
        return fv_refuse(b, "its %s, '%.80s', does not hold floats", what, input_name(b, i));
    return QAT_OK;
}

qat_status fv_ints(builder *b, int i, const char *attribute, int64_t *to, int most, int *n)
{
    const fv *v = i < 0 ? NULL : fv_input(b, i);
    *n = -1;
    if (v && (!v->constant || v->constant->type != QAT_FOREIGN_INT))
        return fv_refuse(b, "its %s, '%.80s', are not known integers", attribute, input_name(b, i));
    if (v) {
        *n = (int)v->constant->count;
        for (int k = 0; k < *n && k < most; k++)
            to[k] = v->constant->ints[k];
    } else if (fv_attr(b, attribute)) {
        *n = fv_attr_ints(b, attribute, to, most);
    }
    return *n > most
               ? fv_refuse(b, "%s: %d numbers, but at most %d are possible", attribute, *n, most)
               : QAT_OK;
}

qat_status fv_axis(const builder *b, int64_t axis, int rank, int *result)
{
    *result = (int)(axis < 0 ? axis + rank : axis);
    return axis < -rank || axis >= rank
               ? fv_refuse(b, "axis %lld of %d dimensions", (long long)axis, rank)
               : QAT_OK;
}

void fv_output(builder *b, int i, const fv *value)
{
    int const at = i < b->node->n_outputs ? b->node->outputs[i] : -1;
    if (at >= 0)
        b->values[at] = *value;
}

void fv_output_constant(builder *b, int i, const qat_foreign_tensor *constant)
{
    fv const v = {.constant = constant};
    fv_output(b, i, &v);
}

void *fv_take(builder *b, qat_arena *arena, size_t count, size_t size)
{
    if (count > b->room / size) {
        b->full = true;
        return NULL;
    }
    b->room -= count * size;
    return qat_arena_array(arena, count, size);
}

qat_foreign_tensor *fv_constant(builder *b, qat_foreign_type type, int rank, const int64_t *dims)
{
    qat_foreign_tensor *t = fv_take(b, &b->arena, 1, sizeof *t);
    if (!t)
        return NULL;
    *t = (qat_foreign_tensor){.type = type, .rank = rank, .count = 1};
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        if (dims[i] < 0 || (dims[i] && t->count > (size_t)(INT32_MAX / dims[i]))) {
            b->full = true;
            return NULL;
        }
        t->count *= (size_t)dims[i];
    }
    if (type == QAT_FOREIGN_FLOAT)
        t->floats = fv_take(b, &b->arena, t->count, sizeof *t->floats);
    else
        t->ints = fv_take(b, &b->arena, t->count, sizeof *t->ints);
    return t->floats || t->ints ? t : NULL;
}

/* ------------------------------------------------------------------ names */

static bool is_legal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_-./:+@", c);
}

enum { OWN_NAME_MAX = 64 }; /* room for a part behind it */

/** A name as the graph allows it. Of a long one the end stays, which tells more. */
static void clean(const char *from, char to[OWN_NAME_MAX])
{
    while (*from == '/')
        from++;
    size_t const n = strlen(from);
    from += n >= OWN_NAME_MAX ? n - OWN_NAME_MAX + 1 : 0;
    size_t i = 0;
    for (; from[i]; i++)
        to[i] = from[i] && is_legal(from[i]) ? from[i] : '_';
    to[i] = 0;
}

static bool is_taken(const builder *b, const char *name)
{
    static const char *const own[] = {"input", "label", "loss", "probabilities"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name))
            return true;
    return qat_graph_find(b->graph, name) != NULL;
}

static void unique(builder *b, const char *name)
{
    snprintf(b->name, sizeof b->name, "%s", *name ? name : "node");
    for (int i = 2; is_taken(b, b->name) && i < QAT_FOREIGN_NODES_MAX; i++)
        snprintf(b->name, sizeof b->name, "%.64s.%d", *name ? name : "node", i);
}

/** The node's own name, or else that of its first output. */
static void name_node(builder *b)
{
    char name[OWN_NAME_MAX];
    const qat_foreign_node *n = b->node;
    int const out = n->n_outputs ? n->outputs[0] : -1;
    clean(*n->name ? n->name : out >= 0 ? b->from->values[out].name : n->op, name);
    unique(b, name);
}

/** Did an exporter make the name, of the operator and a number? "node_Conv_12", "Conv_3", "n7" */
static bool says_nothing(const builder *b)
{
    const char *at = b->node->name;
    at += !strncmp(at, "node_", 5) ? 5 : 0;
    at += !strncmp(at, b->node->op, strlen(b->node->op)) ? strlen(b->node->op) : *at == 'n';
    return !at[strspn(at, "_0123456789")];
}

void fv_name_after(builder *b, int input)
{
    static const char end[] = ".weight";
    char name[OWN_NAME_MAX];
    const char *weights = input_name(b, input);
    size_t const n = strlen(weights), m = sizeof end - 1;
    if (!says_nothing(b) || n <= m || strcmp(weights + n - m, end) != 0)
        return;
    clean(weights, name);
    name[strlen(name) - m] = 0;
    unique(b, name);
}

/* ------------------------------------------------------------------ nodes, parameters */

qat_node *fv_add_all(builder *b, const char *op, const char *part, int n, qat_node *const *inputs,
                     const char *attrs)
{
    char name[QAT_NAME_MAX], base[QAT_NAME_MAX];
    snprintf(base, sizeof base, "%.70s%s%.16s", b->name, *part ? "/" : "", part);
    snprintf(name, sizeof name, "%s", base);
    for (int i = 2; is_taken(b, name) && i < QAT_FOREIGN_NODES_MAX; i++)
        snprintf(name, sizeof name, "%.84s%d", base, i);
    return qat_apply(b->graph, op, name, attrs, n, inputs);
}

qat_node *fv_add(builder *b, const char *op, const char *part, qat_node *a, const char *attrs, ...)
{
    char text[256];
    va_list args;
    va_start(args, attrs);
    qat_vformat(text, sizeof text, attrs, args);
    va_end(args);
    return fv_add_all(b, op, part, 1, &a, text);
}

qat_node *fv_add2(builder *b, const char *op, const char *part, qat_node *a, qat_node *other,
                  const char *attrs)
{
    qat_node *const inputs[] = {a, other};
    return fv_add_all(b, op, part, 2, inputs, attrs);
}

float *fv_param(builder *b, const qat_node *node, int i)
{
    qat_foreign_params *p = b->params;
    const qat_node *param = node->inputs[node->n_data + i];
    if (p->count == p->capacity) {
        int const wanted = p->capacity ? 2 * p->capacity : 64;
        qat_foreign_param *more = qat_arena_array(&p->arena, (size_t)wanted, sizeof *more);
        if (!more)
            return NULL;
        if (p->count)
            memcpy(more, p->at, (size_t)p->count * sizeof *more);
        p->at = more;
        p->capacity = wanted;
    }
    float *values = fv_take(b, &p->arena, qat_shape_count(&param->shape), sizeof *values);
    const char *name = qat_arena_string(&p->arena, param->name);
    if (!values || !name)
        return NULL;
    p->at[p->count++] = (qat_foreign_param){name, param->shape, values};
    return values;
}

void qat_foreign_params_free(qat_foreign_params *params)
{
    qat_arena_free(&params->arena);
    *params = (qat_foreign_params){0};
}

int qat_foreign_fill(const qat_foreign_params *params, qat_graph *graph)
{
    int filled = 0;
    for (int i = 0; i < params->count; i++) {
        const qat_foreign_param *p = &params->at[i];
        qat_node *node = qat_graph_find(graph, p->name);
        if (!node || !node->is_param || !qat_shape_equal(&node->shape, &p->shape))
            continue;
        memcpy(node->value, p->values, qat_shape_count(&p->shape) * sizeof *p->values);
        filled++;
    }
    return filled;
}

/* ------------------------------------------------------------------ which nodes, which head */

/** Mark what leads to the first output; it is an error if an order is wrong. */
static qat_status find_needed(builder *b)
{
    const qat_foreign_graph *g = b->from;
    bool *value = qat_arena_array(&b->arena, (size_t)g->n_values + 1, sizeof *value);
    if (!value || g->n_outputs < 1 || g->outputs[0] < 0)
        return qat_fail(b->err, value ? QAT_ERR_FORMAT : QAT_ERR_NOMEM,
                        "%s: the network has no output", g->source);
    value[g->outputs[0]] = true;
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        const qat_foreign_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_outputs; k++)
            b->needed[i] |= n->outputs[k] >= 0 && value[n->outputs[k]];
        for (int k = 0; b->needed[i] && k < n->n_inputs; k++)
            if (n->inputs[k] >= 0)
                value[n->inputs[k]] = true;
    }
    return QAT_OK;
}

/** The last needed node that has weights: Gemm, MatMul, Conv with a constant. */
static void find_head(builder *b)
{
    b->head_node = -1;
    for (int i = b->from->n_nodes - 1; i >= 0 && b->options->head > 0 && b->head_node < 0; i--) {
        const qat_foreign_node *n = &b->from->nodes[i];
        bool const layer =
            !strcmp(n->op, "Gemm") || !strcmp(n->op, "MatMul") || !strcmp(n->op, "Conv");
        if (b->needed[i] && layer && n->n_inputs > 1)
            b->head_node = i;
    }
}

bool fv_is_head(const builder *b)
{
    return b->number == b->head_node;
}

static qat_status begin(builder *b, qat_node *input)
{
    const qat_foreign_graph *g = b->from;
    int first = -1;
    for (int i = 0; i < g->n_inputs && first < 0; i++)
        first = g->inputs[i];
    for (int i = 0; i < g->n_values; i++)
        b->values[i].constant = g->values[i].constant;
    if (first < 0)
        return qat_fail(b->err, QAT_ERR_FORMAT, "%s: the network has no input", g->source);
    if (g->values[first].is_other)
        return qat_fail(b->err, QAT_ERR_UNSUPPORTED,
                        "%s: its input '%.60s' is a sequence or an optional; data are tensors",
                        g->source, g->values[first].name);
    return fv_place_input(b, &g->values[first], input, &b->values[first]);
}

/* ------------------------------------------------------------------ all nodes */

static fv_build *operator_of(const char *op)
{
    static const fv_operator *const tables[] = {
        fv_layer_operators,       fv_product_operators, fv_pool_operators,
        fv_elementwise_operators, fv_binary_operators,  fv_shape_operators,
        fv_part_operators,        fv_pad_operators,     fv_resize_operators};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const fv_operator *o = tables[t]; o->op; o++)
            if (!strcmp(o->op, op))
                return o->build;
    return NULL;
}

static qat_status check_inputs(const builder *b)
{
    for (int i = 0; i < b->node->n_inputs; i++) {
        const fv *v = fv_input(b, i);
        if (!v || v->node || v->constant)
            continue;
        const qat_foreign_value *f = &b->from->values[b->node->inputs[i]];
        return fv_refuse(b,
                         f->is_input ? "its input '%.80s' is a second input of the network; one is "
                                       "possible"
                                     : "nothing before it computes its input '%.80s'",
                         f->name);
    }
    return QAT_OK;
}

static qat_status build_node(builder *b)
{
    bool folded = false;
    b->wrong_attr = NULL;
    name_node(b);
    if (b->node->n_outputs < 1 || b->node->outputs[0] < 0)
        return fv_refuse(b, "its first output has no name");
    if (*b->node->domain)
        return fv_refuse(b, "operators of the domain '%.60s' are not supported", b->node->domain);
    qat_status st = check_inputs(b);
    if (!st)
        st = fv_fold(b, &folded);
    fv_build *build = operator_of(b->node->op);
    if (!st && !folded)
        st = build ? build(b) : fv_refuse(b, "this operator is not supported");
    if (b->wrong_attr)
        return fv_refuse(b, "attribute %s is of another kind", b->wrong_attr);
    qat_error ignored;
    return !st && qat_graph_check(b->graph, &ignored) ? fv_graph_error(b) : st;
}

static qat_status finish(builder *b, qat_node **last)
{
    fv *out = &b->values[b->from->outputs[0]];
    b->node = b->from->n_nodes ? &b->from->nodes[b->from->n_nodes - 1] : NULL;
    if (fv_is_empty(out))
        return qat_fail(b->err, QAT_ERR_UNSUPPORTED, "%s: its output has no values",
                        b->from->source);
    if (!out->node || !b->node)
        return qat_fail(b->err, QAT_ERR_UNSUPPORTED, "%s: its output does not depend on its input",
                        b->from->source);
    snprintf(b->name, sizeof b->name, "output");
    bool const is_row = out->rank <= 2 || out->rank > 4 || b->from->channels_last ||
                        fv_is_stack(out) || fv_count(out) == out->dims[1];
    return is_row ? fv_row(b, out, true, last) : fv_picture(b, out, last);
}

static qat_status build_all(builder *b, qat_node *input, qat_node **last)
{
    const qat_foreign_graph *g = b->from;
    b->values = qat_arena_array(&b->arena, (size_t)g->n_values + 1, sizeof *b->values);
    b->needed = qat_arena_array(&b->arena, (size_t)g->n_nodes + 1, sizeof *b->needed);
    if (!b->values || !b->needed)
        return qat_out_of_memory(b->err, g->source);
    qat_status st = find_needed(b);
    if (!st)
        find_head(b);
    if (!st)
        st = begin(b, input);
    for (int i = 0; i < g->n_nodes && !st; i++) {
        b->node = &g->nodes[i];
        b->number = i;
        if (b->needed[i])
            st = build_node(b);
    }
    if (!st && b->options->head > 0 && b->head_node < 0)
        st = qat_fail(b->err, QAT_ERR_UNSUPPORTED,
                      "%s: model.head: the network has no last layer with weights", g->source);
    return st ? st : finish(b, last);
}

qat_status qat_foreign_build(const qat_foreign_graph *from, qat_graph *graph, qat_node *input,
                             const qat_foreign_options *options, qat_node **last,
                             qat_foreign_params *params, qat_error *err)
{
    builder b = {.from = from,
                 .options = options,
                 .graph = graph,
                 .params = params,
                 .room = from->room,
                 .err = err};
    *last = NULL;
    qat_status const st = build_all(&b, input, last);
    qat_arena_free(&b.arena);
    return st;
}

qat_status qat_foreign_open(const char *path, uint64_t memory, qat_graph *graph, qat_node *input,
                            const qat_foreign_options *options, qat_node **last,
                            qat_foreign_params *params, qat_error *err)
{
    qat_foreign_graph *from = NULL;
    *last = NULL;
    uint8_t start[8] = {0};
    qat_file_look look = {0};
    qat_status st = qat_file_look_at(path, start, sizeof start, &look, err);
    if (!st)
        st = memcmp(start + 4, "TFL3", 4) ? qat_onnx_read(&from, path, memory, err)
                                          : qat_float_tflite_read(&from, path, memory, err);
    if (!st)
        st = qat_foreign_build(from, graph, input, options, last, params, err);
    qat_foreign_free(from);
    return st;
}

void qat_foreign_free(qat_foreign_graph *graph)
{
    if (!graph)
        return;
    qat_arena_free(&graph->arena);
    free(graph);
}

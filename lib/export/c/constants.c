/** Constants: arrays of the C file, or places in a file of their own. */
#include "export/c/out.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 16 }; /* in the file of weights */

bool co_is_narrow(const qi_tensor *t)
{
    return t->is_packed && t->packing == QI_PACKING_NARROW;
}

/** Its values in the file: packed codes are bytes, and narrow integers have a byte each. */
static const char *element_of(const qi_tensor *t)
{
    return co_is_narrow(t) ? "int8_t" : t->is_packed ? "uint8_t" : co_type_of(t);
}

static size_t element_bytes(const qi_tensor *t)
{
    return t->is_packed ? 1 : qi_type_bytes(t->type);
}

static bool is_needed(const co *o, int32_t tensor)
{
    return o->constants[tensor].name[0];
}

/** The constant that holds the byte at an address and most bytes behind it, or -1. */
static int32_t constant_at(const co *o, const void *address, co_span type)
{
    const uint8_t *at = address;
    int32_t found = -1;
    size_t most = 0;
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++) {
        const qi_tensor *t = qi_tensor_at(o->model, i);
        const uint8_t *first = t->data;
        if (!is_needed(o, i) || at < first || at >= first + t->bytes)
            continue;
        /* of one place, the one of this type */
        size_t const behind = (size_t)(first + t->bytes - at) * 2 + co_span_is(type, element_of(t));
        if (behind > most) {
            most = behind;
            found = i;
        }
    }
    return found;
}

/** Has a constant the same bytes, of the same type? A file may share bytes in other ways, too. */
static bool has_array(const co *o, const qi_tensor *t)
{
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++) {
        const qi_tensor *other = qi_tensor_at(o->model, i);
        if (is_needed(o, i) && other->data == t->data && other->bytes == t->bytes &&
            strcmp(element_of(other), element_of(t)) == 0)
            return true;
    }
    return false;
}

/** A constant whose bytes another one has already needs no array. */
static void name_constant(co *o, int32_t layer, const char *role, int32_t tensor)
{
    const qi_tensor *t = qi_tensor_at(o->model, tensor);
    co_constant *c = &o->constants[tensor];
    if (t->kind != QI_CONSTANT || is_needed(o, tensor) || has_array(o, t))
        return;
    snprintf(c->name, sizeof c->name, "%s_%d", role, (int)layer + 1);
    c->layer = layer;
    c->at = (o->weights.count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!o->options.separate_weights)
        return;
    qat_write_align(&o->weights, ALIGNMENT);
    qat_write_bytes(&o->weights, t->data, t->bytes);
}

void co_name_constants(co *o)
{
    for (int32_t n = 0; n < qi_node_count(o->model); n++) {
        const qi_node *node = o->layers[n].node;
        const qi_op *op = qi_op_named(node->kernel->name);
        for (int32_t i = 0; i < node->n_inputs; i++) {
            char role[24] = "x";
            if (op->inputs[1] == NULL && i) /* concat: x, repeated */
                snprintf(role, sizeof role, "x%d", (int)i);
            else if (i < QI_OP_INPUTS && op->inputs[i])
                snprintf(role, sizeof role, "%s", op->inputs[i]);
            name_constant(o, n, role, node->inputs[i]);
        }
    }
}

/* ------------------------------------------------------------------ arrays */

static void write_values(co *o, const qi_tensor *t)
{
    enum { WIDTH = 96 };
    size_t const count = t->bytes / element_bytes(t);
    int const type = co_is_narrow(t) ? QI_S8 : t->is_packed ? QI_U8 : t->type;
    size_t column = 0;
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int64_t const value = qi_value_at(type, t->data, i);
        int const n =
            value == INT32_MIN
                ? snprintf(text, sizeof text, "INT32_MIN,")
                : snprintf(text, sizeof text,
                           value > INT32_MAX || value < INT32_MIN ? "INT64_C(%lld)," : "%lld,",
                           (long long)value);
        bool const is_new = column == 0 || column + (size_t)n + 1 > WIDTH;
        qat_write_text(&o->c, "%s%s", is_new ? "\n    " : " ", text);
        column = is_new ? 4 + (size_t)n : column + 1 + (size_t)n;
    }
}

static void write_array(co *o, int32_t tensor)
{
    const qi_tensor *t = qi_tensor_at(o->model, tensor);
    qat_write_text(&o->c, "static const %s %s[%zu] %s_SECTION = {", element_of(t),
                   o->constants[tensor].name, t->bytes / element_bytes(t), o->upper);
    if (!o->only_sizes)
        write_values(o, t);
    qat_write_text(&o->c, "\n};\n\n");
}

void co_write_constants(co *o, int32_t layer)
{
    for (int32_t i = 0; i < qi_tensor_count(o->model) && !o->options.separate_weights; i++)
        if (is_needed(o, i) && o->constants[i].layer == layer)
            write_array(o, i);
}

/* ------------------------------------------------------------------ pointers */

void co_write_pointer(void *context, qat_writer *w, const void *address, co_span type)
{
    co *o = context;
    int32_t const tensor = address ? constant_at(o, address, type) : -1;
    if (tensor < 0) {
        qat_write_text(w, "NULL");
        return;
    }
    const qi_tensor *t = qi_tensor_at(o->model, tensor);
    const co_constant *c = &o->constants[tensor];
    size_t const at = (size_t)((const uint8_t *)address - (const uint8_t *)t->data);
    bool const is_same = co_span_is(type, element_of(t)) || co_span_is(type, "void");
    if (o->options.separate_weights)
        qat_write_text(w, "%s_AT(%.*s, %zu)", o->upper, (int)type.n, type.at, c->at + at);
    else if (is_same)
        qat_write_text(w, at ? "%s + %zu" : "%s", c->name, at / element_bytes(t));
    else
        qat_write_text(w, at ? "(const %.*s *)%s + %zu" : "(const %.*s *)%s", (int)type.n, type.at,
                       c->name, at / element_bytes(t));
}

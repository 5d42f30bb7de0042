/** Builds a network layer by layer from the [layer.NAME] sections of a recipe, in order. */
#include "base/arena.h"
#include "base/number.h"
#include "base/words.h"
#include "networks/network.h"
#include "recipe/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS_MAX = 32, ATTRS_TEXT_MAX = 512, VALUE_TEXT_MAX = 256 };

/** The layers built so far, to which names in `input =` refer. */
typedef struct stack {
    const qat_net *net;
    qat_node **ends; /* by layer of the recipe */
    int count;
    qat_node *input;
} stack;

static const qat_recipe_entry *find_entry(const qat_recipe_layer *layer, const char *key)
{
    for (int i = 0; i < layer->n_entries; i++)
        if (!strcmp(layer->entries[i].key, key))
            return &layer->entries[i];
    return NULL;
}

static const char *entry_value(const qat_recipe_layer *layer, const char *key)
{
    const qat_recipe_entry *entry = find_entry(layer, key);
    return entry ? entry->value : NULL;
}

static bool is_shorthand(const char *key)
{
    static const char *const own[] = {"op", "input", "bias", "batch_norm", "activation"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(key, own[i]))
            return true;
    return false;
}

static const char *nearest_attribute(const qat_op *op, const char *key)
{
    const char *best = "op";
    int distance = qat_name_distance(key, best);
    static const char *const own[] = {"input", "bias", "batch_norm", "activation"};
    for (int i = 0; i < 4 + QAT_MAX_ATTRS; i++) {
        if (i >= 4 && (!op->attrs || !op->attrs[i - 4].name))
            break;
        const char *name = i < 4 ? own[i] : op->attrs[i - 4].name;
        if (qat_name_distance(key, name) < distance) {
            distance = qat_name_distance(key, name);
            best = name;
        }
    }
    return best;
}

static bool has_attribute(const qat_op *op, const char *key)
{
    for (const qat_attr_def *a = op->attrs; a && a->name; a++)
        if (!strcmp(a->name, key))
            return true;
    return false;
}

/**
 * The entry that a graph error is about: the attribute that the message quotes, or NULL for the
 * section.
 */
static const qat_recipe_entry *entry_of_error(const qat_recipe_layer *layer, const char *message)
{
    for (int i = 0; i < layer->n_entries; i++) {
        char quoted[QAT_NAME_MAX];
        snprintf(quoted, sizeof quoted, "attribute '%.80s'", layer->entries[i].key);
        if (strstr(message, quoted))
            return &layer->entries[i];
    }
    return NULL;
}

/** Fail because a layer is wrong. The message has its place, "[layer.NAME]" and the text. */
static qat_status wrong(const stack *s, const qat_recipe_layer *layer,
                        const qat_recipe_entry *entry, qat_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static qat_status wrong(const stack *s, const qat_recipe_layer *layer,
                        const qat_recipe_entry *entry, qat_error *err, const char *format, ...)
{
    char where[QAT_RECIPE_WHERE_MAX], message[320];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    qat_recipe_entry_where(s->net->recipe, layer, entry, where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: [layer.%s]: %s", where, layer->name, message);
}

/** If the graph has an error, return it with file and line before it. */
static qat_status graph_error(const stack *s, const qat_recipe_layer *layer, qat_error *err)
{
    qat_error inner;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_status const st = qat_graph_check(s->net->graph, &inner);
    if (!st)
        return QAT_OK;
    qat_recipe_entry_where(s->net->recipe, layer, entry_of_error(layer, inner.message), where);
    return qat_fail(err, st == QAT_ERR_NOMEM ? st : QAT_ERR_ARGUMENT, "%s: %s", where,
                    inner.message);
}

/** The one of two names that is nearer; as near: a. "" is farther than any. */
static const char *nearer(const char *name, const char *a, const char *b)
{
    return *a && qat_edit_distance(name, a) <= qat_edit_distance(name, b) ? a : b;
}

static qat_status find_op(const stack *s, const qat_recipe_layer *layer, const qat_op **op,
                          qat_error *err)
{
    const qat_registry *registry = qat_graph_registry(s->net->graph);
    const char *name = entry_value(layer, "op");
    if (!name)
        return wrong(s, layer, NULL, err, "there is no op");
    *op = qat_net_cell_named(name);
    if (!*op)
        *op = qat_registry_find(registry, name);
    if (*op)
        return QAT_OK;
    const char *nearest = "";
    for (int i = 0; i < qat_registry_count(registry); i++)
        nearest = nearer(name, nearest, qat_registry_at(registry, i)->name);
    for (int i = 0; qat_net_cell_at(i); i++)
        nearest = nearer(name, nearest, qat_net_cell_at(i)->name);
    return wrong(s, layer, find_entry(layer, "op"), err, "unknown op %s; the nearest is %s", name,
                 nearest);
}

static qat_node *layer_end(const stack *s, const char *name, size_t length)
{
    const qat_recipe *r = s->net->recipe;
    if (length == strlen(QAT_INPUT_NAME) && !memcmp(name, QAT_INPUT_NAME, length))
        return s->input;
    for (int i = 0; i < s->count; i++)
        if (strlen(r->layers[i].name) == length && !memcmp(r->layers[i].name, name, length))
            return s->ends[i];
    return NULL;
}

/** Turn "a, b" into nodes. Without the key, the input is the layer before. */
static qat_status find_inputs(const stack *s, const qat_recipe_layer *layer, qat_node **inputs,
                              int *count, qat_error *err)
{
    const qat_recipe_entry *entry = find_entry(layer, "input");
    *count = 0;
    if (!entry) {
        inputs[(*count)++] = s->count ? s->ends[s->count - 1] : s->input;
        return QAT_OK;
    }
    for (const char *p = entry->value; *p;) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        size_t const whole = n;
        while (n && qat_is_blank(p[n - 1]))
            n--;
        if (!n)
            break;
        qat_node *end = layer_end(s, p, n);
        if (!end)
            return wrong(s, layer, entry, err, "input '%.*s' is not a layer above this one", (int)n,
                         p);
        if (*count == INPUTS_MAX)
            return wrong(s, layer, entry, err, "more than %d inputs", INPUTS_MAX);
        inputs[(*count)++] = end;
        p += whole;
    }
    return QAT_OK;
}

/** Copy without the blanks around commas, cut to fit: "1, 2" becomes the one value "1,2". */
static void squeeze(const char *text, char value[VALUE_TEXT_MAX])
{
    size_t n = 0;
    for (; *text && n + 1 < VALUE_TEXT_MAX; text++) {
        bool const blank = *text == ' ' || *text == '\t';
        size_t const skip = blank ? strspn(text, " \t") : 0;
        if (blank && ((n && value[n - 1] == ',') || text[skip] == ','))
            continue;
        value[n++] = *text;
    }
    value[n] = 0;
}

/** Collect the entries that are attributes of the op as "name=value name=value". */
static qat_status attribute_text(const stack *s, const qat_recipe_layer *layer, const qat_op *op,
                                 char text[ATTRS_TEXT_MAX], qat_error *err)
{
    char value[VALUE_TEXT_MAX];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < layer->n_entries; i++) {
        const qat_recipe_entry *e = &layer->entries[i];
        if (is_shorthand(e->key))
            continue;
        if (!has_attribute(op, e->key))
            return wrong(s, layer, e, err, "op %s has no attribute %s; the nearest key is %s",
                         op->name, e->key, nearest_attribute(op, e->key));
        squeeze(e->value, value);
        if (!*value || strpbrk(value, " \t="))
            return wrong(s, layer, e, err, "%s = '%s': expected one value", e->key, e->value);
        at += (size_t)snprintf(text + at, ATTRS_TEXT_MAX - at, "%s=%s ", e->key, value);
        if (at >= ATTRS_TEXT_MAX)
            return wrong(s, layer, NULL, err, "attributes are too long");
    }
    return QAT_OK;
}

/** Read a yes/no key. */
static qat_status wants(const stack *s, const qat_recipe_layer *layer, const char *key, bool *yes,
                        qat_error *err)
{
    const char *value = entry_value(layer, key);
    *yes = false;
    if (!value || qat_recipe_parse_bool(yes, value))
        return QAT_OK;
    return wrong(s, layer, find_entry(layer, key), err, "%s = %s: expected yes or no", key, value);
}

static qat_status apply_shorthands(const stack *s, const qat_recipe_layer *layer, qat_node **x,
                                   qat_error *err)
{
    char name[QAT_NAME_MAX];
    bool bias = false, norm = false;
    qat_status st = wants(s, layer, "bias", &bias, err);
    if (!st)
        st = wants(s, layer, "batch_norm", &norm, err);
    if (st)
        return st;
    if (bias) {
        snprintf(name, sizeof name, "%s/bias", layer->name);
        *x = qat_apply1(s->net->graph, "bias", name, "", *x);
    }
    if (norm) {
        snprintf(name, sizeof name, "%s/bn", layer->name);
        *x = qat_net_batch_norm(s->net, *x, name);
    }
    const char *activation = entry_value(layer, "activation");
    if (activation && strcmp(activation, "none")) {
        snprintf(name, sizeof name, "%s/%.40s", layer->name, activation);
        *x = qat_apply1(s->net->graph, activation, name, "", *x);
    }
    return graph_error(s, layer, err);
}

static qat_status add_layer(stack *s, const qat_recipe_layer *layer, qat_error *err)
{
    const qat_op *op = NULL;
    qat_node *inputs[INPUTS_MAX];
    char attrs[ATTRS_TEXT_MAX];
    int count = 0;
    qat_status st = find_op(s, layer, &op, err);
    if (!st)
        st = find_inputs(s, layer, inputs, &count, err);
    if (!st)
        st = attribute_text(s, layer, op, attrs, err);
    if (st)
        return st;
    bool const cell = qat_net_cell_named(op->name) != NULL;
    if (cell && count != 1)
        return wrong(s, layer, find_entry(layer, "input"), err, "%d inputs for one %s", count,
                     op->name);
    qat_node *x = cell ? qat_net_cell(s->net, op->name, layer->name, attrs, inputs[0])
                       : qat_apply(s->net->graph, op->name, layer->name, attrs, count, inputs);
    st = graph_error(s, layer, err);
    if (!st)
        st = apply_shorthands(s, layer, &x, err);
    if (!st)
        s->ends[s->count++] = x;
    return st;
}

qat_status qat_net_layers(const qat_net *net, qat_node *x, qat_node **last, qat_error *err)
{
    const qat_recipe *r = net->recipe;
    *last = NULL;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(r, "model", "arch", where);
    if (!r->n_layers)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: arch = layers, but there is no [layer.NAME] section", where);
    qat_arena arena = {0};
    stack s = {.net = net, .input = x};
    s.ends = qat_arena_array(&arena, (size_t)r->n_layers, sizeof(qat_node *));
    qat_status st = s.ends ? QAT_OK : qat_out_of_memory(err, r->source);
    for (int i = 0; i < r->n_layers && !st; i++)
        st = add_layer(&s, &r->layers[i], err);
    if (!st)
        *last = s.ends[r->n_layers - 1];
    int outputs;
    const char *second = qat_net_second(net, &outputs);
    for (int i = 0; i < r->n_layers && !st; i++)
        if (outputs && !strcmp(r->layers[i].name, second))
            *net->second = s.ends[i];
    qat_arena_free(&arena);
    return st;
}

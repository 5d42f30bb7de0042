/**
 * Reads recipes: .ini files, parsed by inih and checked against the table in keys.c.
 *
 * inih does not report line numbers. It silently cuts lines of more than 199 characters in two, and
 * section names after 49. So this file gives inih the lines one by one. It counts them, refuses
 * lines and names that inih would cut, and sees a section before its first key.
 */
#include "recipe/reader.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/number.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTION_NAME_MAX = 49, RECIPE_BYTES_MAX = 1 << 20 };

/**
 * Names are found by comparing them one by one, so their number is limited: a text of a stranger
 * must not take minutes. A text in a checkpoint is longer than its file was, because it has every
 * key.
 */
enum { TEXT_BYTES_MAX = 4 * RECIPE_BYTES_MAX, LAYERS_MAX = 8192, ENTRIES_MAX = 64 };

/** The state while a text is read. The first error stays. */
typedef struct parse {
    qat_recipe *recipe;
    const char *at; /* rest of the text */
    int line;       /* number of the last line given to inih */
    qat_status status;
    qat_error *err;
} parse;

/* ------------------------------------------------------------------ unknown names */

static qat_status unknown_key(const char *section, const char *name, const char *where,
                              qat_error *err)
{
    const qat_key *key = qat_nearest_key(section, name);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: unknown key %s.%s; the nearest is %s.%s", where,
                    section, name, key ? key->section : "?", key ? key->name : "?");
}

/** The error for an unknown section in --set, which names section and key together. */
static qat_status unknown_section(const char *section, const char *name, const char *where,
                                  qat_error *err)
{
    const qat_key *key = qat_nearest_key(section, name);
    if (!strncmp(section, "quant.layer.", 12))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: unknown section [%s]; a layer's key is quant.layer %s.%s", where,
                        section, section + 12, name);
    if (key)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: unknown section [%s]; the nearest key is %s.%s",
                        where, section, key->section, key->name);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: unknown section [%s]; the nearest is [%s]", where,
                    section, qat_nearest_section(section));
}

static bool known_section(const char *section)
{
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(keys[i].section, section))
            return true;
    return false;
}

/* ------------------------------------------------------------------ layers */

static const char *layer_name(const char *section)
{
    return !strncmp(section, "layer.", 6) && section[6] ? section + 6 : NULL;
}

static qat_recipe_layer *find_named(qat_recipe_layer *layers, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(layers[i].name, name))
            return &layers[i];
    return NULL;
}

static qat_recipe_layer *find_layer(qat_recipe *r, const char *name)
{
    return find_named(r->layers, r->n_layers, name);
}

/**
 * Make room for one more element of an array in the arena, by doubling and copying. NULL: out of
 * memory.
 */
static void *grow(qat_arena *arena, void *old, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return old;
    int const wanted = *capacity ? 2 * *capacity : 8;
    void *bigger = qat_arena_array(arena, (size_t)wanted, size);
    if (!bigger)
        return NULL;
    if (count)
        memcpy(bigger, old, (size_t)count * size);
    *capacity = wanted;
    return bigger;
}

static qat_status add_layer(qat_recipe *r, const char *name, int line, const char *where,
                            qat_error *err)
{
    const qat_recipe_layer *same = find_layer(r, name);
    if (same)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: section [layer.%s] is already in line %d",
                        where, name, same->line);
    for (const char *c = name; *c; c++)
        if (!qat_is_letter(*c) && !qat_is_digit(*c) && !strchr("_-.", *c))
            return qat_fail(
                err, QAT_ERR_ARGUMENT,
                "%s: the layer name '%s' may only have letters, digits, '_', '-' and '.'", where,
                name);
    if (!strcmp(name, QAT_INPUT_NAME) || !strcmp(name, QAT_LABEL_NAME) ||
        !strcmp(name, QAT_LOSS_NAME))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: a layer cannot be called '%s': this name belongs to %s", where, name,
                        "the network itself");
    if (r->n_layers == LAYERS_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: more than %d sections [layer.NAME]", where,
                        LAYERS_MAX);
    qat_arena *arena = &r->private_->arena;
    qat_recipe_layer *layers =
        grow(arena, r->layers, r->n_layers, &r->private_->layers_capacity, sizeof *layers);
    char *copy = qat_arena_string(arena, name);
    if (!layers || !copy)
        return qat_out_of_memory(err, where);
    r->layers = layers;
    r->layers[r->n_layers++] = (qat_recipe_layer){.name = copy, .line = line};
    return QAT_OK;
}

/** A section [quant.layer PATTERN]; from --set, such a section may be new. */
static qat_status add_quant_layer(qat_recipe *r, const char *pattern, int line, const char *where,
                                  qat_error *err)
{
    qat_arena *arena = &r->private_->arena;
    const qat_recipe_layer *same = find_named(r->quant_layers, r->n_quant_layers, pattern);
    if (same && line)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: section [quant.layer %s] is already in line %d",
                        where, pattern, same->line);
    if (same)
        return QAT_OK;
    if (r->n_quant_layers == QAT_QUANT_LAYERS_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: more than %d sections [quant.layer PATTERN]",
                        where, QAT_QUANT_LAYERS_MAX);
    if (strpbrk(pattern, "]\r\n") || qat_is_blank(pattern[strlen(pattern) - 1]))
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "%s: the pattern '%s' of a section [quant.layer ...] contains ']' or a line "
            "break, or ends with a blank",
            where, pattern);
    qat_recipe_layer *layers = grow(arena, r->quant_layers, r->n_quant_layers,
                                    &r->private_->quant_layers_capacity, sizeof *layers);
    char *copy = qat_arena_string(arena, pattern);
    if (!layers || !copy)
        return qat_out_of_memory(err, where);
    r->quant_layers = layers;
    r->quant_layers[r->n_quant_layers++] = (qat_recipe_layer){.name = copy, .line = line};
    return QAT_OK;
}

static qat_recipe_entry *find_entry(qat_recipe_layer *layer, const char *key)
{
    for (int i = 0; i < layer->n_entries; i++)
        if (!strcmp(layer->entries[i].key, key))
            return &layer->entries[i];
    return NULL;
}

static qat_status set_entry(qat_recipe *r, qat_recipe_layer *layer, const char *key,
                            const char *value, int line, const char *where, qat_error *err)
{
    qat_arena *arena = &r->private_->arena;
    qat_recipe_entry *entry = find_entry(layer, key);
    if (entry && line)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s was already set in line %d", where, key,
                        entry->line);
    qat_status const st = qat_recipe_check_line(key, value, where, err);
    if (st)
        return st;
    if (!entry && layer->n_entries == ENTRIES_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s: more than %d keys in one section", where,
                        key, ENTRIES_MAX);
    char *key_copy = qat_arena_string(arena, key), *value_copy = qat_arena_string(arena, value);
    if (!entry) {
        qat_recipe_entry *entries =
            grow(arena, layer->entries, layer->n_entries, &layer->capacity, sizeof *entries);
        if (entries) {
            layer->entries = entries;
            entry = &entries[layer->n_entries];
        }
    }
    if (!entry || !key_copy || !value_copy)
        return qat_out_of_memory(err, where);
    layer->n_entries += entry == &layer->entries[layer->n_entries];
    *entry = (qat_recipe_entry){key_copy, value_copy, line};
    return QAT_OK;
}

/* ------------------------------------------------------------------ one key */

/**
 * Check that a section made by --set could be in a file: the recipe is written into checkpoints and
 * read from there.
 */
static qat_status check_pattern(const char *pattern, const char *where, qat_error *err)
{
    enum { PREFIX = sizeof "quant.layer " - 1 };
    size_t const n = strlen(pattern);
    if (PREFIX + n > SECTION_NAME_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: the pattern has %zu characters, but at most %d are possible", where, n,
                        SECTION_NAME_MAX - PREFIX);
    if (strstr(pattern, " ;") || strstr(pattern, "\t;"))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: the pattern contains ' ;', which starts a comment", where);
    return QAT_OK;
}

/** Is it a word that can stand before the '=' of a line? Attributes of ops are such words. */
static bool is_key_word(const char *name)
{
    const char *at = name;
    while (qat_is_letter(*at) || qat_is_digit(*at) || *at == '_' || *at == '-')
        at++;
    return at > name && !*at;
}

/** Set a key of a section [quant.layer PATTERN], after checking it. */
static qat_status set_quant_layer_key(qat_recipe *r, const char *pattern, const char *name,
                                      const char *value, int line, const char *where,
                                      qat_error *err)
{
    qat_quant_layer tried = qat_quant_layer_defaults(pattern);
    qat_status st = qat_quant_layer_set(&tried, name, value, where, err);
    if (!st && !line)
        st = check_pattern(pattern, where, err);
    if (!st && !line)
        st = add_quant_layer(r, pattern, 0, where, err);
    return st ? st
              : set_entry(r, find_named(r->quant_layers, r->n_quant_layers, pattern), name, value,
                          line, where, err);
}

/** Set a key. line 0: from --set, which may replace what the file says. */
static qat_status set_key(qat_recipe *r, const char *section, const char *name, const char *value,
                          int line, const char *where, qat_error *err)
{
    const char *layer_of = layer_name(section);
    if (layer_of) {
        qat_recipe_layer *layer = find_layer(r, layer_of);
        if (!layer)
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s: there is no section [%s]", where, section);
        if (!is_key_word(name))
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s: '%s' cannot be the name of a key", where,
                            name);
        return set_entry(r, layer, name, value, line, where, err);
    }
    const char *pattern = qat_quant_layer_pattern(section);
    if (pattern)
        return set_quant_layer_key(r, pattern, name, value, line, where, err);
    if (!known_section(section))
        return unknown_section(section, name, where, err);
    int const index = qat_recipe_find_key(section, name);
    if (index < 0)
        return unknown_key(section, name, where, err);
    if (line && r->private_->line_of[index])
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s.%s was already set in line %d", where,
                        section, name, r->private_->line_of[index]);
    r->private_->line_of[index] = line;
    r->private_->given[index] = true;
    int n;
    return qat_recipe_set_value(r, &qat_recipe_keys(&n)[index], value, where, err);
}

/* ------------------------------------------------------------------ lines for inih */

static void where_text(const parse *p, char *text, size_t max)
{
    snprintf(text, max, "%s:%d", p->recipe->source, p->line);
}

/** Handle a line "[name]": a known section, or a new layer. */
static qat_status begin_section(parse *p, const char *line, size_t length)
{
    char where[256], name[SECTION_NAME_MAX + 1];
    where_text(p, where, sizeof where);
    const char *end = memchr(line, ']', length);
    if (!end)
        return qat_fail(p->err, QAT_ERR_ARGUMENT, "%s: the ] of the section is missing", where);
    size_t const n = (size_t)(end - line) - 1;
    if (n > SECTION_NAME_MAX)
        return qat_fail(p->err, QAT_ERR_ARGUMENT,
                        "%s: the section name has %zu characters, but at most %d are possible",
                        where, n, SECTION_NAME_MAX);
    memcpy(name, line + 1, n);
    name[n] = 0;
    if (layer_name(name))
        return add_layer(p->recipe, layer_name(name), p->line, where, p->err);
    if (qat_quant_layer_pattern(name))
        return add_quant_layer(p->recipe, qat_quant_layer_pattern(name), p->line, where, p->err);
    if (!known_section(name))
        return qat_fail(p->err, QAT_ERR_ARGUMENT, "%s: unknown section [%s]; the nearest is [%s]",
                        where, name, qat_nearest_section(name));
    return QAT_OK;
}

/**
 * inih's fgets. It removes leading blanks, because inih would take such a line as a continuation of
 * the last value.
 */
static char *next_line(char *buffer, int room, void *stream)
{
    parse *p = stream;
    if (p->status || !*p->at)
        return NULL;
    p->line++;
    size_t const whole = strcspn(p->at, "\n");
    const char *line = p->at;
    size_t length = whole;
    p->at += whole + (p->at[whole] == '\n');
    if (length && line[length - 1] == '\r')
        length--;
    if (length >= (size_t)room || length > QAT_RECIPE_LINE_MAX) {
        p->status = qat_fail(p->err, QAT_ERR_ARGUMENT,
                             "%s:%d: the line has %zu characters, but at most %d are possible",
                             p->recipe->source, p->line, length,
                             room - 1 < QAT_RECIPE_LINE_MAX ? room - 1 : QAT_RECIPE_LINE_MAX);
        return NULL;
    }
    while (length && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    if (length && *line == '[')
        p->status = begin_section(p, line, length);
    memcpy(buffer, line, length);
    buffer[length] = 0;
    return p->status ? NULL : buffer;
}

static int on_key(void *user, const char *section, const char *name, const char *value)
{
    parse *p = user;
    char where[256];
    where_text(p, where, sizeof where);
    if (!p->status && !*section)
        p->status = qat_fail(p->err, QAT_ERR_ARGUMENT, "%s: '%s' comes before the first [section]",
                             where, name);
    if (!p->status)
        p->status = set_key(p->recipe, section, name, value, p->line, where, p->err);
    return !p->status;
}

/* ------------------------------------------------------------------ whole recipes */

static qat_status set_defaults(qat_recipe *r, qat_error *err)
{
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    qat_status st = QAT_OK;
    for (int i = 0; i < n && !st; i++)
        st = qat_recipe_set_value(r, &keys[i], keys[i].initial, "default", err);
    return st;
}

static qat_status apply_set(qat_recipe *r, const char *set, qat_error *err)
{
    char where[256], path[128];
    snprintf(where, sizeof where, "--set %.200s", set);
    size_t const n = strcspn(set, "=");
    if (!set[n] || n >= sizeof path)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: expected section.key=value", where);
    memcpy(path, set, n);
    path[n] = 0;
    char *dot = strrchr(path, '.');
    if (!dot || dot == path || !dot[1])
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: expected section.key=value", where);
    *dot = 0;
    return set_key(r, path, dot + 1, set + n + 1, 0, where, err);
}

static qat_status parse_text(qat_recipe *r, const char *text, qat_error *err)
{
    parse p = {.recipe = r, .at = text, .err = err};
    qat_c_locale const locale = qat_c_locale_enter(); /* which characters are blanks */
    int const bad_line = ini_parse_stream(next_line, &p, on_key, &p);
    qat_c_locale_leave(locale);
    if (!p.status && bad_line)
        p.status = qat_fail(err, bad_line < 0 ? QAT_ERR_NOMEM : QAT_ERR_ARGUMENT,
                            "%s:%d: expected [section], key = value, or a comment (; or #)",
                            r->source, bad_line);
    return p.status;
}

static qat_recipe *recipe_new(const char *name)
{
    qat_recipe *r = calloc(1, sizeof *r);
    struct qat_recipe_private *private_ = calloc(1, sizeof *private_);
    if (r && private_) {
        r->private_ = private_;
        r->source = qat_arena_string(&private_->arena, name);
        if (r->source)
            return r;
    }
    if (private_)
        qat_arena_free(&private_->arena);
    free(private_);
    free(r);
    return NULL;
}

void qat_recipe_free(qat_recipe *recipe)
{
    if (!recipe)
        return;
    qat_arena_free(&recipe->private_->arena);
    free(recipe->private_);
    free(recipe);
}

qat_status qat_recipe_parse(qat_recipe **recipe, const char *text, const char *name,
                            const char *const *sets, int n_sets, qat_error *err)
{
    *recipe = NULL;
    if (strnlen(text, TEXT_BYTES_MAX + 1) > TEXT_BYTES_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: a recipe of more than %d bytes", name,
                        TEXT_BYTES_MAX);
    qat_recipe *r = recipe_new(name);
    if (!r)
        return qat_out_of_memory(err, name);
    qat_status st = set_defaults(r, err);
    if (!st)
        st = parse_text(r, text, err);
    for (int i = 0; i < n_sets && !st; i++)
        st = apply_set(r, sets[i], err);
    if (!st)
        st = qat_recipe_apply_arch(r, err);
    if (!st)
        st = qat_recipe_check(r, err);
    if (st)
        qat_recipe_free(r);
    else
        *recipe = r;
    return st;
}

qat_status qat_recipe_load(qat_recipe **recipe, const char *path, const char *const *sets,
                           int n_sets, qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    *recipe = NULL;
    qat_status st = qat_file_read(path, RECIPE_BYTES_MAX, &bytes, &count, err);
    if (!st && memchr(bytes, 0, count))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "%s: not a text file (it contains a byte 0)", path);
    if (!st)
        st = qat_recipe_parse(recipe, (const char *)bytes, path, sets, n_sets, err);
    free(bytes);
    return st;
}

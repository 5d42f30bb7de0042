/** Writes a recipe as canonical text, compares two recipes, and expands paths with ${QAT_DATA}. */
#include "recipe/reader.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_layers(qat_writer *w, const char *prefix, const qat_recipe_layer *layers,
                         int count)
{
    for (int i = 0; i < count; i++) {
        const qat_recipe_layer *layer = &layers[i];
        qat_write_text(w, "\n[%s%s]\n", prefix, layer->name);
        for (int k = 0; k < layer->n_entries; k++)
            qat_write_text(w, "%s = %s\n", layer->entries[k].key, layer->entries[k].value);
    }
}

/**
 * Does the key not change the result: threads, how often what is saved, and where? Paths of plugins
 * are such keys, too: a checkpoint names plugins in a section of its own, never a path to load.
 */
static bool is_conduct(const qat_key *k)
{
    return k->free_on_resume && (k->type != QAT_KEY_TEXT || !strcmp(k->section, "output") ||
                                 !strcmp(k->section, "plugin"));
}

/**
 * A key that is younger than the format. A checkpoint has it only with a value other than the
 * default, so the bytes of all others are those of older versions.
 */
static bool is_young(const qat_key *k)
{
    static const struct {
        const char *section, *name;
    } young[] = {{"train", "shards"},
                 {"train", "sync_batch_norm"},
                 {"train", "asynchronous"},
                 {"data", "jpeg_scale"}};
    bool found = false;
    for (size_t i = 0; i < sizeof young / sizeof *young; i++)
        found |= !strcmp(k->section, young[i].section) && !strcmp(k->name, young[i].name);
    return found;
}

static qat_status write_recipe(const qat_recipe *recipe, bool conduct, char **text, qat_error *err)
{
    qat_writer w = {0};
    char value[QAT_RECIPE_VALUE_MAX];
    const char *section = "";
    int n;
    const qat_key *k = qat_recipe_keys(&n);
    for (int i = 0; i < n; i++, k++) {
        qat_recipe_get_text(recipe, k, value, sizeof value);
        if (!conduct && (is_conduct(k) || (is_young(k) && !strcmp(value, k->initial))))
            continue;
        if (strcmp(section, k->section))
            qat_write_text(&w, "%s[%s]\n", i ? "\n" : "", section = k->section);
        qat_write_text(&w, "%s =%s%s\n", k->name, *value ? " " : "", value);
    }
    write_layers(&w, "layer.", recipe->layers, recipe->n_layers);
    write_layers(&w, "quant.layer ", recipe->quant_layers, recipe->n_quant_layers);
    qat_write_u8(&w, 0);
    *text = w.failed ? NULL : (char *)w.bytes;
    if (!w.failed)
        return QAT_OK;
    qat_writer_free(&w);
    return qat_out_of_memory(err, recipe->source);
}

qat_status qat_recipe_write(const qat_recipe *recipe, char **text, qat_error *err)
{
    return write_recipe(recipe, true, text, err);
}

qat_status qat_recipe_write_run(const qat_recipe *recipe, char **text, qat_error *err)
{
    return write_recipe(recipe, false, text, err);
}

static qat_status same_sections(const char *prefix, const qat_recipe_layer *then, int n_then,
                                const qat_recipe_layer *now, int n_now, qat_error *err)
{
    if (n_then != n_now)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "the checkpoint's recipe has %d sections [%s...], this one has %d: it is "
                        "not the same run",
                        n_then, prefix, n_now);
    for (int i = 0; i < n_now; i++) {
        const qat_recipe_layer *a = &then[i], *b = &now[i];
        bool same = !strcmp(a->name, b->name) && a->n_entries == b->n_entries;
        for (int k = 0; same && k < a->n_entries; k++)
            same = !strcmp(a->entries[k].key, b->entries[k].key) &&
                   !strcmp(a->entries[k].value, b->entries[k].value);
        if (!same)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "[%s%s] differs from the checkpoint's recipe: it is not the same run",
                            prefix, b->name);
    }
    return QAT_OK;
}

/** Long values may begin alike, so the message shows where they differ. */
static qat_status other_value(const qat_key *k, const char *then, const char *now, qat_error *err)
{
    enum { SHOWN = 100 };
    size_t same = 0;
    while (then[same] && then[same] == now[same])
        same++;
    size_t const from =
        same > SHOWN / 2 && strlen(then) + strlen(now) > SHOWN ? same - SHOWN / 2 : 0;
    const char *cut = from ? "..." : "";
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "%s.%s is '%s%.*s', but in the checkpoint's recipe '%s%.*s': it is not the same run",
        k->section, k->name, cut, SHOWN, now + from, cut, SHOWN, then + from);
}

qat_status qat_recipe_same_run(const qat_recipe *then, const qat_recipe *now, qat_error *err)
{
    char a[QAT_RECIPE_VALUE_MAX], b[QAT_RECIPE_VALUE_MAX];
    int n;
    const qat_key *k = qat_recipe_keys(&n);
    for (int i = 0; i < n; i++, k++) {
        qat_recipe_get_text(then, k, a, sizeof a);
        qat_recipe_get_text(now, k, b, sizeof b);
        if (!k->free_on_resume && strcmp(a, b))
            return other_value(k, a, b, err);
    }
    qat_status const st =
        same_sections("layer.", then->layers, then->n_layers, now->layers, now->n_layers, err);
    return st ? st
              : same_sections("quant.layer ", then->quant_layers, then->n_quant_layers,
                              now->quant_layers, now->n_quant_layers, err);
}

qat_status qat_expand_path(const char *path, char *text, size_t max, qat_error *err)
{
    static const char name[] = "${QAT_DATA}";
    const char *from_environment = getenv("QAT_DATA");
    const char *data = from_environment && *from_environment ? from_environment : QAT_DATA_DEFAULT;
    const char *found = strstr(path, name);
    int n = 0;
    if (!found && strstr(path, "${"))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: ${QAT_DATA} is the only variable that is replaced", path);
    if (found)
        n = snprintf(text, max, "%.*s%s%s", (int)(found - path), path, data,
                     found + sizeof name - 1);
    else
        n = snprintf(text, max, "%s", path);
    if (n < 0 || (size_t)n >= max)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: the path is too long", path);
    return QAT_OK;
}

/** One key of a recipe by its name: its value as text, as a number; a new value. */
#include "recipe/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Index of "section.name" in the table, or -1. */
static int find(const char *key)
{
    char section[64];
    const char *dot = strrchr(key, '.');
    if (!dot || (size_t)(dot - key) >= sizeof section)
        return -1;
    snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
    return qat_recipe_find_key(section, dot + 1);
}

const char *qat_recipe_get(const qat_recipe *recipe, const char *key,
                           char text[QAT_RECIPE_VALUE_MAX])
{
    int n;
    int const index = find(key);
    if (index < 0)
        return NULL;
    qat_recipe_get_text(recipe, &qat_recipe_keys(&n)[index], text, QAT_RECIPE_VALUE_MAX);
    return text;
}

double qat_recipe_number(const qat_recipe *recipe, const char *key)
{
    int n;
    int const index = find(key);
    const qat_key *k = index < 0 ? NULL : &qat_recipe_keys(&n)[index];
    const void *value = (const char *)recipe + (k ? k->offset : 0);
    if (!k)
        return NAN;
    return k->type == QAT_KEY_BOOL     ? *(const bool *)value
           : k->type == QAT_KEY_CHOICE ? *(const int *)value
           : k->type == QAT_KEY_INT || k->type == QAT_KEY_BYTES || k->type == QAT_KEY_MIB ||
                   k->type == QAT_KEY_COUNT
               ? (double)*(const int64_t *)value
           : k->type == QAT_KEY_REAL ? *(const double *)value
                                     : NAN;
}

qat_status qat_recipe_reset(qat_recipe *recipe, const char *section, qat_error *err)
{
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < n; i++) {
        if (strcmp(keys[i].section, section) != 0)
            continue;
        st = qat_recipe_set_value(recipe, &keys[i], keys[i].initial, "default", err);
        recipe->private_->given[i] = false;
        recipe->private_->line_of[i] = 0;
    }
    return st;
}

/* ------------------------------------------------------------------ settings */

/** Settings that are told also where they are the defaults. */
static bool is_main(const qat_key *key)
{
    static const char *const names[] = {"data.kind",
                                        "model.arch",
                                        "train.epochs",
                                        "train.batch",
                                        "train.optimizer",
                                        "train.lr",
                                        "train.schedule",
                                        "train.seed",
                                        "train.weight_decay",
                                        "quant.enabled",
                                        "quant.layout",
                                        "quant.weight_bits",
                                        "quant.activation_bits"};
    char name[64];
    snprintf(name, sizeof name, "%s.%s", key->section, key->name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

qat_status qat_recipe_tell_settings(const qat_recipe *recipe, qat_recipe_setting_fn *fn,
                                    void *context, qat_error *err)
{
    qat_recipe *defaults;
    int n;
    const qat_key *k = qat_recipe_keys(&n);
    qat_status st = qat_recipe_parse(&defaults, "", "default", NULL, 0, err);
    for (int i = 0; !st && i < n; i++, k++) {
        qat_recipe_setting s = {.yes_or_no = k->type == QAT_KEY_BOOL};
        char initial[QAT_RECIPE_VALUE_MAX];
        snprintf(s.name, sizeof s.name, "%s.%s", k->section, k->name);
        qat_recipe_get_text(recipe, k, s.value, sizeof s.value);
        qat_recipe_get_text(defaults, k, initial, sizeof initial);
        s.number = k->type == QAT_KEY_CHOICE ? NAN : qat_recipe_number(recipe, s.name);
        if (!k->free_on_resume && (is_main(k) || strcmp(s.value, initial) != 0))
            st = fn(context, &s, err);
    }
    qat_recipe_free(defaults);
    return st;
}

/** Keys that nobody gave have their defaults again, whatever the network's name had set. */
static qat_status reset_rest(qat_recipe *recipe, qat_error *err)
{
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    qat_status st = QAT_OK;
    for (int i = 0; i < n && !st; i++)
        if (!recipe->private_->given[i] && !keys[i].free_on_resume)
            st = qat_recipe_set_value(recipe, &keys[i], keys[i].initial, "default", err);
    return st;
}

qat_status qat_recipe_set(qat_recipe *recipe, const char *key, const char *value, qat_error *err)
{
    int n;
    int const index = find(key);
    if (index < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: there is no key %s", recipe->source, key);
    qat_recipe const before = *recipe;
    struct qat_recipe_private *p = recipe->private_;
    bool const given = p->given[index];
    int const line = p->line_of[index];
    p->given[index] = true;
    p->line_of[index] = 0;
    qat_status st = reset_rest(recipe, err);
    if (!st)
        st = qat_recipe_set_value(recipe, &qat_recipe_keys(&n)[index], value, recipe->source, err);
    if (!st)
        st = qat_recipe_apply_arch(recipe, err);
    if (!st)
        st = qat_recipe_check(recipe, err);
    if (!st)
        return QAT_OK;
    *recipe = before;
    p->given[index] = given;
    p->line_of[index] = line;
    return st;
}

const char *qat_recipe_source(const qat_recipe *recipe)
{
    return recipe->source;
}

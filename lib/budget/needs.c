/**
 * What a device needs, by the export of the network with random weights, and whether the budget can
 * be kept at all.
 *
 * Bytes of weights follow from their bits; everything else in the file does not depend on them, but
 * on the bits of outputs that are concatenated. ram.c has the RAM.
 */
#include "budget/search.h"

#include "base/words.h"
#include "deploy/device.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET_MAX = 256, ALL_BITS = 8, ROOM = BUDGET_PATTERN_MAX - 1 };

/* ------------------------------------------------------------------ the recipe of a choice */

/** Characters that a line "[quant.layer NAME]" cannot keep, or that mean something in a pattern. */
static char plain(char c)
{
    return strchr("]*?[\\;=\r\n\t", c) ? '?' : c;
}

static bool is_unique(const budget_network *net, const char *pattern, const char *name)
{
    int n = 0;
    for (int i = 0; i < net->n_layers; i++)
        n += qat_matches(pattern, net->layers[i].name);
    return n == 1 && qat_matches(pattern, name);
}

bool budget_pattern_of(const budget_network *net, const char *name,
                       char pattern[BUDGET_PATTERN_MAX])
{
    size_t const n = strlen(name);
    for (size_t head = n > ROOM ? ROOM / 2 : n;; head--) {
        size_t const tail = n > ROOM ? ROOM - 1 - head : 0;
        size_t at = 0;
        for (size_t i = 0; i < head; i++)
            pattern[at++] = plain(name[i]);
        if (n > ROOM)
            pattern[at++] = '*';
        for (size_t i = 0; i < tail; i++)
            pattern[at++] = plain(name[n - tail + i]);
        pattern[at] = 0;
        if (is_unique(net, pattern, name))
            return true;
        if (n <= ROOM || head == 0)
            return false;
    }
}

typedef struct set_list {
    char (*text)[SET_MAX];
    const char **at;
    int n;
} set_list;

static qat_status add_setting(set_list *s, const budget_network *net, int item, const char *key,
                              const char *value, qat_error *err)
{
    char pattern[BUDGET_PATTERN_MAX];
    const char *name = net->layers[net->tensors[item].layer].name;
    if (!budget_pattern_of(net, name, pattern))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "no section [quant.layer] can name layer %s alone: name it in budget.keep",
                        name);
    snprintf(s->text[s->n], SET_MAX, "quant.layer %s.%s=%s", pattern, key, value);
    s->at[s->n] = s->text[s->n];
    s->n++;
    return QAT_OK;
}

static qat_status add_choice(set_list *s, const budget_network *net, int item, int bits,
                             qat_error *err)
{
    char text[16];
    snprintf(text, sizeof text, "%d", bits);
    return add_setting(s, net, item, net->tensors[item].weights ? "weight_bits" : "activation_bits",
                       text, err);
}

/** Weights with 8 bits. A scheme that is kept may have fewer at most, so they are by min and max.
 */
static qat_status add_bytes(set_list *s, const budget_network *net, int item, qat_error *err)
{
    qat_status const st = net->tensors[item].narrows
                              ? add_setting(s, net, item, "weight_ranges", "ema", err)
                              : QAT_OK;
    return st ? st : add_choice(s, net, item, ALL_BITS, err);
}

qat_status budget_recipe_of(qat_recipe **made, const qat_recipe *recipe, const budget_network *net,
                            const int *choice, budget_bits bits, qat_error *err)
{
    size_t const room = 2 * (size_t)net->n_items + 1;
    set_list s = {.text = calloc(room, sizeof *s.text), .at = calloc(room, sizeof *s.at)};
    char *text = NULL;
    *made = NULL;
    qat_status st = s.text && s.at ? QAT_OK : qat_out_of_memory(err, recipe->source);
    for (int i = 0; !st && i < net->n_items; i++) {
        const budget_tensor *t = &net->tensors[i];
        if (t->weights && bits == BUDGET_BYTE_WEIGHTS)
            st = add_bytes(&s, net, i, err);
        else if (!t->kept)
            st = add_choice(&s, net, i, net->items[i].bits[choice[i]], err);
    }
    if (!st)
        st = qat_recipe_write(recipe, &text, err);
    if (!st)
        st = qat_recipe_parse(made, text, recipe->source, s.at, s.n, err);
    if (!st)
        st = qat_recipe_reset(*made, "budget", err);
    free(text);
    free(s.text);
    free(s.at);
    return st;
}

/* ------------------------------------------------------------------ the file of a choice */

/** The size of the .qm, all weights with 8 bits. */
static qat_status file_of(int64_t *bytes, const qat_budget *b, const budget_meter *m,
                          const int *choice, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(m->data);
    const qat_task *task = m->input.task;
    const char *first = task->first_label ? task->first_label(b->recipe) : NULL;
    bool const labelled = info->labels && task->units;
    int const count = labelled ? m->input.classes + (first != NULL) : 0;
    const char **labels = calloc((size_t)count + 1, sizeof *labels);
    qat_recipe *recipe = NULL;
    *bytes = 0;
    if (!labels)
        return qat_out_of_memory(err, "budget");
    for (int i = 0; i < count; i++)
        labels[i] = first && i == 0 ? first : info->labels[i - (first != NULL)];
    qat_status st = budget_recipe_of(&recipe, b->recipe, &b->net, choice, BUDGET_BYTE_WEIGHTS, err);
    if (!st)
        st = qat_device_file_of(bytes, recipe, m->plugins, m->float_graph, &m->input, labels, count,
                                err);
    qat_recipe_free(recipe);
    free(labels);
    return st;
}

qat_status budget_other_flash(int64_t *bytes, const qat_budget *b, const budget_meter *m,
                              const int *choice, qat_error *err)
{
    budget_export *known = budget_export_of(b, choice);
    if (!known)
        return qat_out_of_memory(err, "budget");
    *bytes = known->other;
    if (known->other >= 0)
        return QAT_OK;
    qat_status const st = file_of(bytes, b, m, choice, err);
    for (int i = 0; i < b->net.n_items; i++)
        if (b->net.tensors[i].weights)
            *bytes -=
                budget_packed_bytes(&b->net.shapes[b->net.tensors[i].layer], ALL_BITS, 0, false);
    if (!st)
        known->other = *bytes;
    return st;
}

/* ------------------------------------------------------------------ the least */

/** "conv1 2, conv2 2, ...": the bits of a choice, cut to fit. */
static void bits_text(const budget_network *net, const int *choice, char *text, size_t max)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < net->n_items && at < max; i++) {
        const budget_item *item = &net->items[i];
        const budget_tensor *t = &net->tensors[i];
        if (t->weights || item->n > 1)
            at += (size_t)snprintf(text + at, max - at, "%s%s%s %d%s", at ? ", " : "",
                                   net->layers[t->layer].name, t->weights ? "" : "'s output",
                                   item->bits[choice[i]], t->kept ? " (kept)" : "");
    }
    if (at >= max && max > 4)
        strcpy(text + max - 4, "...");
}

static qat_status check_limit(const qat_budget *b, const char *key, int64_t limit, int64_t least,
                              const char *unit, const int *choice, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX], bits[240];
    if (!limit || least <= limit)
        return QAT_OK;
    qat_recipe_where(b->recipe, "budget", key, where);
    bits_text(&b->net, choice, bits, sizeof bits);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: budget.%s = %lld: the least that is possible is %lld%s, with bits %s",
                    where, key, (long long)limit, (long long)least, unit, bits);
}

/**
 * Find the choice that makes the smallest file. Outputs of the fewest bits may be what makes it
 * larger: those of a kept layer, which they are concatenated with, are then requantized. So outputs
 * of the most bits are tried, too, if macs_bits allows them.
 */
static qat_status find_least(qat_budget *b, const budget_meter *m, int *choice, qat_error *err)
{
    const budget_item *items = b->net.items;
    int const n = b->net.n_items;
    int64_t few, many;
    int64_t const most = budget_sums_of(items, n, choice).bytes; /* all are 0 */
    qat_status st = budget_other_flash(&many, b, m, choice, err);
    budget_least(items, n, b->least);
    if (!st)
        st = budget_other_flash(&few, b, m, b->least, err);
    if (st)
        return st;
    for (int i = 0; i < n; i++)
        if (b->net.tensors[i].weights)
            choice[i] = b->least[i];
    b->most_flash = most + many;
    b->other_flash = few;
    if (many > few || budget_sums_of(items, n, choice).macs_bits > b->limits.macs_bits)
        return QAT_OK;
    memcpy(b->least, choice, (size_t)n * sizeof *choice);
    b->other_flash = many;
    return QAT_OK;
}

static qat_status check_limits(qat_budget *b, const budget_meter *m, int *choice, qat_error *err)
{
    const qat_recipe *r = b->recipe;
    const budget_item *items = b->net.items;
    int const n = b->net.n_items;
    b->limits.macs_bits = r->budget.macs_bits ? r->budget.macs_bits : BUDGET_NO_LIMIT;
    qat_status st = find_least(b, m, choice, err);
    if (st)
        return st;
    int64_t const least = budget_sums_of(items, n, b->least).bytes + b->other_flash;
    b->limits.bytes = r->budget.flash ? r->budget.flash - b->other_flash : BUDGET_NO_LIMIT;
    st = check_limit(b, "flash", r->budget.flash, least, " bytes", b->least, err);
    budget_least(items, n, choice);
    int64_t const macs_bits = budget_sums_of(items, n, choice).macs_bits;
    return st ? st : check_limit(b, "macs_bits", r->budget.macs_bits, macs_bits, "", choice, err);
}

qat_status budget_check_needs(qat_budget *b, const budget_meter *m, qat_error *err)
{
    size_t const room = (size_t)b->net.n_items + 1;
    int *choice = calloc(room, sizeof *choice);
    b->least = calloc(room, sizeof *b->least);
    qat_status st =
        choice && b->least ? budget_check_ram(b, m, err) : qat_out_of_memory(err, "budget");
    if (!st)
        st = check_limits(b, m, choice, err);
    free(choice);
    return st;
}

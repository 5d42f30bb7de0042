/** Writes what a search found: the recipe with the choice, tables, numbers. */
#include "budget/search.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS_MOST = 8 };

static qat_status save(const qat_budget *b, const char *name, qat_writer *w, qat_error *err)
{
    char path[BUDGET_PATH_MAX];
    qat_status st = budget_path_in(path, b->dir, name, err);
    if (!st)
        st = w->failed ? qat_out_of_memory(err, path)
                       : qat_file_write_atomic(path, w->bytes, w->count, err);
    qat_writer_free(w);
    return st;
}

/* ------------------------------------------------------------------ budget.ini */

static void write_losses(qat_writer *w, const char *what, const double losses[BITS_MOST + 1])
{
    const char *comma = "";
    qat_write_text(w, "; %s: loss added with ", what);
    for (int bits = BITS_MOST; bits >= 2; bits--)
        if (!isnan(losses[bits])) {
            qat_write_text(w, "%s%d bits %.6g", comma, bits, losses[bits]);
            comma = ", ";
        }
    qat_write_text(w, "\n");
}

/** What is known of a layer, as comments. */
static void write_layer(qat_writer *w, const qat_budget_layer *l)
{
    qat_write_text(w, "; %s\n", l->op);
    if (l->weight_bits)
        qat_write_text(w, "; %lld weights in %lld bytes, %lld multiply-adds, macs_bits %lld\n",
                       (long long)l->weights, (long long)l->bytes, (long long)l->macs,
                       (long long)l->macs_bits);
    if (l->weight_bits && !l->weights_kept)
        write_losses(w, "weights", l->weight_loss);
    if (l->activation_bits && !l->activations_kept)
        write_losses(w, "output", l->activation_loss);
}

static void write_limit(qat_writer *w, const char *name, int64_t limit)
{
    if (limit)
        qat_write_text(w, "; budget: %s = %lld\n", name, (long long)limit);
}

static void write_head(qat_writer *w, const qat_budget *b)
{
    const char *source = strrchr(b->recipe->source, '/');
    qat_write_text(w, "; The bits of each layer, chosen by qat-train --budget from %.120s\n",
                   source ? source + 1 : b->recipe->source);
    write_limit(w, "flash", b->recipe->budget.flash);
    write_limit(w, "ram", b->recipe->budget.ram);
    write_limit(w, "macs_bits", b->recipe->budget.macs_bits);
    qat_write_text(w, "; chosen: flash %lld bytes (weights %lld, all else %lld), macs_bits %lld\n",
                   (long long)b->chosen.flash, (long long)(b->chosen.flash - b->other_flash),
                   (long long)b->other_flash, (long long)b->chosen.macs_bits);
    if (b->ram.ram < b->ram.ram_before)
        qat_write_text(w,
                       "; RAM: %zu bytes with qat-export --ram %lld, otherwise %zu; that adds "
                       "about %lld bytes to the file\n",
                       b->ram.ram, (long long)b->recipe->budget.ram, b->ram.ram_before,
                       (long long)budget_flash_for_ram(b, &b->ram));
    qat_write_text(w, "; loss added: predicted %.6g, simulated %.6g, before fine-tuning\n",
                   b->chosen.predicted, b->chosen.simulated);
}

/** The layer that a section [quant.layer PATTERN] is for, if it was made for it. */
static const qat_budget_layer *layer_of(const qat_budget *b, const char *line, size_t length)
{
    static const char prefix[] = "[quant.layer ";
    char pattern[BUDGET_PATTERN_MAX];
    size_t const n = sizeof prefix - 1;
    for (int i = 0; length > n && !strncmp(line, prefix, n) && i < b->net.n_layers; i++)
        if (budget_pattern_of(&b->net, b->net.layers[i].name, pattern) &&
            strlen(pattern) == length - n - 1 && !strncmp(line + n, pattern, length - n - 1))
            return &b->net.layers[i];
    return NULL;
}

/**
 * Write the lines of a recipe's text that are not those of the defaults. Both texts have the same
 * keys in the same order, until sections of layers begin.
 */
static void write_keys(qat_writer *w, const qat_budget *b, const char *text, const char *defaults)
{
    const char *head = text, *gap = "";
    size_t head_n = 0; /* characters of a section's line that is not written yet */
    bool layers = false;
    while (*text) {
        size_t const n = strcspn(text, "\n"), d = strcspn(defaults, "\n");
        bool const same = n == d && !strncmp(text, defaults, n);
        if (*text == '[') {
            const qat_budget_layer *layer = layer_of(b, text, n);
            layers = layers || !same;
            head = text;
            head_n = n;
            gap = "\n";
            if (layers && layer) {
                qat_write_text(w, "\n");
                write_layer(w, layer);
                gap = "";
            }
        } else if (n && (layers || !same)) {
            if (head_n)
                qat_write_text(w, "%s%.*s\n", gap, (int)head_n, head);
            head_n = 0;
            qat_write_text(w, "%.*s\n", (int)n, text);
        }
        text += n + (text[n] == '\n');
        defaults += d + (defaults[d] == '\n');
    }
}

/** The recipe that was written must be the one that was chosen. */
static qat_status check(const qat_recipe *chosen, const qat_writer *w, qat_error *err)
{
    qat_recipe *read = NULL;
    char *text = w->failed ? NULL : strndup((const char *)w->bytes, w->count);
    if (!text)
        return qat_out_of_memory(err, "budget.ini");
    qat_status st = qat_recipe_parse(&read, text, "budget.ini", NULL, 0, err);
    if (!st)
        st = qat_recipe_same_run(chosen, read, err);
    qat_recipe_free(read);
    free(text);
    return st;
}

static qat_status write_recipe(const qat_budget *b, qat_error *err)
{
    qat_writer w = {0};
    qat_recipe *chosen = NULL, *plain = NULL;
    char *text = NULL, *defaults = NULL;
    qat_status st = budget_recipe_of(&chosen, b->recipe, &b->net, b->choice, BUDGET_CHOSEN, err);
    if (!st)
        st = qat_recipe_parse(&plain, "", "default", NULL, 0, err);
    if (!st)
        st = qat_recipe_write(chosen, &text, err);
    if (!st)
        st = qat_recipe_write(plain, &defaults, err);
    if (!st) {
        write_head(&w, b);
        write_keys(&w, b, text, defaults);
        st = check(chosen, &w, err);
    }
    if (!st)
        st = save(b, "budget.ini", &w, err);
    qat_writer_free(&w);
    qat_recipe_free(chosen);
    qat_recipe_free(plain);
    free(text);
    free(defaults);
    return st;
}

/* ------------------------------------------------------------------ tables */

/** A cell of CSV: in quotes if it needs them. */
static void write_cell(qat_writer *w, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        qat_write_text(w, "%s", text);
        return;
    }
    qat_write_u8(w, '"');
    for (; *text; text++) {
        if (*text == '"')
            qat_write_u8(w, '"');
        qat_write_u8(w, (uint8_t)*text);
    }
    qat_write_u8(w, '"');
}

static void write_all_losses(qat_writer *w, const double losses[BITS_MOST + 1])
{
    for (int bits = 2; bits <= BITS_MOST; bits++) {
        qat_write_u8(w, ',');
        if (!isnan(losses[bits]))
            qat_write_text(w, "%.9g", losses[bits]);
    }
}

static qat_status write_layers(const qat_budget *b, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w, "layer,op,weights,multiply_adds,weight_bits,activation_bits,weights_kept,"
                       "activations_kept,bytes,macs_bits,loss");
    for (int k = 0; k < 2; k++)
        for (int bits = 2; bits <= BITS_MOST; bits++)
            qat_write_text(&w, ",%s_loss_%d", k ? "activation" : "weight", bits);
    qat_write_text(&w, "\n");
    for (int i = 0; i < b->net.n_layers; i++) {
        const qat_budget_layer *l = &b->net.layers[i];
        write_cell(&w, l->name);
        qat_write_u8(&w, ',');
        write_cell(&w, l->op);
        qat_write_text(&w, ",%lld,%lld,%d,%d,%d,%d,%lld,%lld,%.9g", (long long)l->weights,
                       (long long)l->macs, l->weight_bits, l->activation_bits, l->weights_kept,
                       l->activations_kept, (long long)l->bytes, (long long)l->macs_bits, l->loss);
        write_all_losses(&w, l->weight_loss);
        write_all_losses(&w, l->activation_loss);
        qat_write_text(&w, "\n");
    }
    return save(b, "budget.csv", &w, err);
}

static qat_status write_curve(const qat_budget *b, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w, "flash,macs_bits,predicted_loss,simulated_loss\n");
    for (int i = 0; i < b->n_points; i++)
        qat_write_text(&w, "%lld,%lld,%.9g,%.9g\n", (long long)b->points[i].flash,
                       (long long)b->points[i].macs_bits, b->points[i].predicted,
                       b->points[i].simulated);
    return save(b, "curve.csv", &w, err);
}

static qat_status write_numbers(const qat_budget *b, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w,
                   "{\"flash\": %lld, \"ram\": %zu, \"flash_for_ram\": %lld, \"macs_bits\": %lld, "
                   "\"predicted_loss\": %.9g, \"simulated_loss\": %.9g}\n",
                   (long long)b->chosen.flash, b->ram.ram,
                   (long long)budget_flash_for_ram(b, &b->ram), (long long)b->chosen.macs_bits,
                   b->chosen.predicted, b->chosen.simulated);
    return save(b, "budget.json", &w, err);
}

/** A run continues with the bits with which it was begun, or not at all. */
static qat_status check_same(const qat_budget *b, qat_error *err)
{
    qat_recipe *chosen = NULL, *begun = NULL;
    qat_error why;
    if (access(b->recipe_path, F_OK))
        return QAT_OK;
    qat_status st = qat_recipe_load(&begun, b->recipe_path, NULL, 0, err);
    if (!st)
        st = budget_recipe_of(&chosen, b->recipe, &b->net, b->choice, BUDGET_CHOSEN, err);
    if (!st && qat_recipe_same_run(begun, chosen, &why))
        st = qat_fail(err, QAT_ERR_STATE,
                      "%.300s: the run there was begun with another choice (%.300s): continue it "
                      "with the budget and the settings that it had, or name another folder",
                      b->recipe_path, why.message);
    qat_recipe_free(begun);
    qat_recipe_free(chosen);
    return st;
}

qat_status budget_write(const qat_budget *b, bool resume, qat_error *err)
{
    qat_status st = resume ? check_same(b, err) : QAT_OK;
    if (!st)
        st = write_layers(b, err);
    if (!st)
        st = write_curve(b, err);
    if (!st)
        st = write_numbers(b, err);
    return st ? st : write_recipe(b, err); /* last: it says that the search is done */
}

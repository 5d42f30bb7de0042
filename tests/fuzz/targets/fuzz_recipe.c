/**
 * Fuzz target: recipes, and what `qat-train --dry-run` does with them.
 *
 * Parts: the lines of --set, and the text. If a recipe is accepted, it is written and read again,
 * its network is built and its costs are counted. If the network is small, the needs of a device
 * are computed. Options: bit 0: if a program draws the data, they are opened.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_network.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"
#include "recipe/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS, TEXT, PARTS };
enum { MOST_SETS = 8 };

static void ignore(void *context, const char *text)
{
    size_t *letters = context;
    *letters += strlen(text);
}

/** Cut a text into its lines, at most MOST_SETS. */
static int cut_lines(char *text, const char *lines[MOST_SETS])
{
    int n = 0;
    while (*text && n < MOST_SETS) {
        lines[n++] = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = 0;
    }
    return n;
}

/**
 * A recipe that was written and read again is the same, so a second writing gives the same text.
 */
static void write_again(const qat_recipe *r)
{
    qat_error err = {0};
    qat_recipe *again = NULL;
    char *text = NULL, *second = NULL;
    fuzz_require(qat_recipe_write(r, &text, &err) == QAT_OK, "an accepted recipe can be written");
    fuzz_require(qat_recipe_parse(&again, text, "written", NULL, 0, &err) == QAT_OK,
                 "what is written is accepted");
    fuzz_require(qat_recipe_write(again, &second, &err) == QAT_OK, "and written again");
    fuzz_require(strcmp(text, second) == 0, "with the same text");
    fuzz_require(qat_recipe_same_run(r, again, &err) == QAT_OK, "as the same run");
    free(text);
    free(second);
    qat_recipe_free(again);
}

/** Drawn data, of which only a few samples are made. */
static void open_data(const qat_recipe *r)
{
    qat_dataset *data = NULL;
    qat_error err = {0};
    if (qat_dataset_kind_needs_path(r->data.kind) || r->data.train_count > 64 ||
        r->data.train_count < 1)
        return;
    qat_status const st = qat_recipe_open_data(&data, r, NULL, QAT_SPLIT_TRAIN, &err);
    fuzz_check_status(st, &err);
    if (!st)
        fuzz_check_status(qat_recipe_check_batch(r, qat_dataset_info_of(data), &err), &err);
    qat_dataset_close(data);
}

static void ask_network(const qat_recipe *r, qat_graph *graph, const qat_input_info *input)
{
    size_t letters = 0;
    qat_log const log = {ignore, &letters};
    qat_layer_cost *costs = NULL;
    qat_device_needs needs;
    qat_error err = {0};
    int64_t bytes;
    int count = 0;
    fuzz_require(qat_network_costs(graph, (qat_layout)r->quant.layout, &costs, &count, &err) ==
                     QAT_OK,
                 "a network has costs");
    fuzz_require(count > 0 && costs[count - 1].parameters >= 0 && costs[count - 1].macs >= 0 &&
                     costs[count - 1].ram >= 0,
                 "costs are not negative");
    free(costs);
    if (fuzz_network_is_small(graph)) {
        fuzz_check_status(qat_device_qm_bytes_of(&bytes, r, fuzz_no_plugins(), graph, input, &err),
                          &err);
        fuzz_check_status(qat_device_needs_of(&needs, r, fuzz_no_plugins(), graph, input, &err),
                          &err);
    }
    fuzz_check_status(qat_freeze_params(graph, r->train.freeze, &log, &err), &err);
}

static void dry_run(const qat_recipe *r)
{
    qat_input_info input;
    qat_graph *graph = NULL;
    qat_error err = {0};
    qat_status st = fuzz_input(&input, r, &err);
    if (!st)
        st = qat_network_build(&graph, fuzz_registry(), r, &input, &err);
    fuzz_check_status(st, &err);
    if (!st)
        ask_network(r, graph, &input);
    qat_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    const char *sets[MOST_SETS];
    size_t letters = 0;
    qat_log const log = {ignore, &letters};
    qat_recipe *r = NULL;
    qat_error err = {0};
    fuzz_parts_read(&p, data, size, PARTS);
    char *lines = fuzz_parts_text(&p, SETS), *text = fuzz_parts_text(&p, TEXT);
    int const n = cut_lines(lines, sets);
    qat_status const st = qat_recipe_parse(&r, text, "r.ini", sets, n, &err);
    fuzz_check_status(st, &err);
    fuzz_require((st == QAT_OK) == (r != NULL), "a recipe exactly where nothing is wrong");
    if (r) {
        fuzz_check_status(qat_recipe_tell_idle(r, &log, &err), &err);
        write_again(r);
        dry_run(r);
        if (p.options & 1)
            open_data(r);
    }
    qat_recipe_free(r);
    free(lines);
    free(text);
    return 0;
}

/* ------------------------------------------------------------------ mutations */

enum { MOST_WORDS = 600 };

/** Words of a recipe: sections, keys, choices, ops, attributes. */
static const char *const *words_of_recipes(void)
{
    static const char *words[MOST_WORDS + 1];
    static char pool[1 << 14];
    size_t n = 0, used = 0;
    int keys;
    const qat_key *key = qat_recipe_keys(&keys);
    static const char *const more[] = {"[layer.a]\nop = conv2d\n",
                                       "[layer.b]\nop = relu\n",
                                       "[quant.layer *]\n",
                                       "\n[budget]\nflash = 32K\n",
                                       "K",
                                       "M",
                                       "G",
                                       "op = ",
                                       "input = ",
                                       "input",
                                       "same",
                                       "valid",
                                       "never",
                                       "auto",
                                       " epochs",
                                       "%",
                                       " ;",
                                       "#",
                                       "yes",
                                       "no",
                                       "${QAT_DATA}",
                                       "\n[model]\narch = layers\n"};
    if (words[0])
        return words;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        words[n++] = more[i];
    for (int i = 0; i < keys && n < MOST_WORDS / 2; i++)
        words[n++] = key[i].name;
    for (int i = 0; i < qat_registry_count(fuzz_registry()) && n < MOST_WORDS; i++)
        words[n++] = qat_registry_at(fuzz_registry(), i)->name;
    for (int i = 0; i < keys; i++)
        for (const char *c = key[i].choices; c && *c && n < MOST_WORDS;) {
            size_t const length = strcspn(c, "|");
            if (used + length + 1 > sizeof pool)
                break;
            words[n++] = memcpy(pool + used, c, length);
            used += length + 1; /* the pool is zero */
            c += length + (c[length] == '|');
        }
    return words;
}

/** A line "name = initial value" of some key, with its section before it. */
static size_t put_key(uint8_t *text, size_t size, size_t most, bool as_set, uint64_t *x)
{
    int keys;
    const qat_key *all = qat_recipe_keys(&keys), *key = &all[fuzz_below(x, (size_t)keys)];
    char line[512];
    int const n = snprintf(line, sizeof line, as_set ? "%s.%s=%.100s\n" : "\n[%s]\n%s = %.100s\n",
                           key->section, key->name, key->initial);
    return fuzz_replace(text, size, most, size, 0, line, (size_t)n);
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    if (fuzz_below(x, 6) == 0)
        size = put_key(bytes, size, most, part == SETS, x);
    return fuzz_text_mutate(bytes, size, most, x, words_of_recipes());
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    return fuzz_parts_mutate(data, size, most, seed, PARTS, mutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    return fuzz_parts_cross(a, a_size, b, b_size, out, most, seed, PARTS);
}

/**
 * Searches the bits of each layer under a budget.
 *
 *     recipe -> network -> layers and items -> does anything fit? -> losses of single items
 *            -> the best choice, the curve -> budget.ini
 */
#include "budget/search.h"

#include "base/bytes.h"
#include "base/checksums/sha256.h"
#include "base/files/file.h"
#include "budget/override.h"
#include "fakequant/ops.h"
#include "recipe/archs.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 512, HEX_MAX = 33 };

/* ------------------------------------------------------------------ what can be searched */

/** A limit on what layers read would make the bits of an activation depend on its readers. */
static bool limits_inputs(const qat_recipe *r)
{
    bool found = r->quant.input_bits != 0;
    for (int i = 0; i < r->n_quant_layers; i++)
        for (int k = 0; k < r->quant_layers[i].n_entries; k++)
            found |= !strcmp(r->quant_layers[i].entries[k].key, "input_bits");
    return found;
}

/** What can be refused before anything is opened. */
static qat_status check_recipe(const qat_recipe *r, qat_error *err)
{
    if (!r->budget.flash && !r->budget.ram && !r->budget.macs_bits)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: there is no budget: set budget.flash, budget.ram or budget.macs_bits",
                        r->source);
    if (!r->quant.enabled)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: quant.enabled = no: a float network has no bits to choose", r->source);
    if (r->quant.activation_bits > 8)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: the bits of a network with %d-bit activations cannot be searched; "
                        "give those of its weights by [quant.layer]",
                        r->source, (int)r->quant.activation_bits);
    if (r->budget.activation_bits.n && limits_inputs(r))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: input_bits cannot be combined with budget.activation_bits: the search "
                        "would choose the bits that input_bits fixes; remove one of them",
                        r->source);
    if (r->model.steps)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: the bits of a network with a state (model.steps) cannot be searched; "
                        "give them by [quant.layer]",
                        r->source);
    return QAT_OK;
}

static qat_status check_weights(const qat_recipe *r, qat_error *err)
{
    if (qat_net_has_weights(r))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: a budget is searched for trained weights: name a checkpoint by train.init",
                    r->source);
}

qat_status budget_path_in(char path[BUDGET_PATH_MAX], const char *dir, const char *name,
                          qat_error *err)
{
    if (strlen(dir) + sizeof "/sensitivity.csv" > BUDGET_PATH_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "the folder %.200s... is too long", dir);
    snprintf(path, BUDGET_PATH_MAX, "%s/%s", dir, name);
    return QAT_OK;
}

/* ------------------------------------------------------------------ the table */

static void hex_of(const uint8_t digest[32], char hex[HEX_MAX])
{
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static bool is_quantizer(const qat_node *node)
{
    return node->op == &qat_op_fake_quant || node->op == &qat_op_fake_quant_weights;
}

/** Mark the ops that make the loss of quantized values, from the loss back to these. */
static void mark_loss(const qat_node *node, bool *marked)
{
    if (!node->op || is_quantizer(node) || marked[node->index])
        return;
    marked[node->index] = true;
    for (int i = 0; i < node->n_inputs; i++)
        mark_loss(node->inputs[i], marked);
}

static void write_settings(qat_writer *w, const budget_meter *m, const bool *of_loss)
{
    char match[QAT_RECIPE_VALUE_MAX];
    for (int i = 0; i < qat_graph_nodes(m->simulated); i++) {
        const qat_node *node = qat_graph_node(m->simulated, i);
        const budget_override *o = m->overrides[i];
        if (!of_loss[i] && !is_quantizer(node))
            continue;
        qat_write_text(w, "%s %s %d", node->name, node->op->name,
                       !o                                 ? 0
                       : budget_override_has_all_codes(o) ? 2
                                                          : 1);
        for (int k = 0; node->op->attrs && node->op->attrs[k].name; k++)
            qat_write_text(w, " %.9g", node->attrs[k]);
        qat_write_text(w, "\n");
    }
    qat_write_text(w, "%s\n", qat_recipe_get(m->recipe, "detect.match_iou", match));
}

/** Everything about quantization and loss that is measured, as a digest. */
static qat_status digest_settings(const budget_meter *m, uint8_t digest[32], qat_error *err)
{
    qat_writer w = {0};
    bool *of_loss = calloc((size_t)qat_graph_nodes(m->simulated) + 1, sizeof *of_loss);
    if (!of_loss)
        return qat_out_of_memory(err, "budget");
    mark_loss(budget_loss_of(m->simulated), of_loss);
    write_settings(&w, m, of_loss);
    free(of_loss);
    qat_sha256(w.bytes, w.failed ? 0 : w.count, digest);
    bool const failed = w.failed;
    qat_writer_free(&w);
    return failed ? qat_out_of_memory(err, "budget") : QAT_OK;
}

static qat_status open_table(budget_table *table, const qat_budget *b, const budget_meter *m,
                             qat_error *err)
{
    char head[HEAD_MAX], path[BUDGET_PATH_MAX], network[HEX_MAX], settings[HEX_MAX];
    uint8_t digest[32];
    qat_status st = *b->recipe->budget.table
                        ? qat_expand_path(b->recipe->budget.table, path, sizeof path, err)
                        : budget_path_in(path, b->dir, "sensitivity.csv", err);
    if (!st)
        st = budget_meter_digest(m, digest, err);
    if (st)
        return st;
    hex_of(digest, network);
    st = digest_settings(m, digest, err);
    if (st)
        return st;
    hex_of(digest, settings);
    snprintf(head, sizeof head, "# network %s, %.200s, samples %lld, settings %s", network,
             qat_dataset_info_of(m->data)->name, (long long)m->samples, settings);
    bool const is_shared = *b->recipe->budget.table; /* then it is not this folder's to replace */
    return budget_table_open(table, path, head, m->options->overwrite && !is_shared, err);
}

/* ------------------------------------------------------------------ solving */

/** A choice, or none: then nothing was found that fits. */
typedef struct solution {
    int *choice; /* the caller's room */
    bool is_there;
    budget_sums sums;
    int64_t other; /* bytes of the file that are not weights, */
    int64_t added; /* and those that make it fit budget.ram */
    int64_t least; /* the smallest file seen that fits budget.ram, if none fits both; or 0 */
} solution;

static int64_t file_bytes(const solution *s)
{
    return s->sums.bytes + s->other + s->added;
}

/** Take the solution's choice if it keeps within both limits. */
static qat_status take(const qat_budget *b, const budget_meter *m, int64_t flash, solution *s,
                       qat_error *err)
{
    qat_ram_plan plan = {0};
    bool does_fit = false;
    s->sums = budget_sums_of(b->net.items, b->net.n_items, s->choice);
    qat_status st = budget_other_flash(&s->other, b, m, s->choice, err);
    if (!st)
        st = budget_find_ram(&plan, &does_fit, b, m, s->choice, err);
    s->added = budget_flash_for_ram(b, &plan);
    s->is_there = does_fit && file_bytes(s) <= flash;
    if (does_fit && (!s->least || file_bytes(s) < s->least))
        s->least = file_bytes(s);
    return st;
}

/** Take the choice that makes the smallest file, or that with the fewest bits, if that fits. */
static qat_status take_least(const qat_budget *b, const budget_meter *m, int64_t flash, solution *s,
                             qat_error *err)
{
    memcpy(s->choice, b->least, (size_t)b->net.n_items * sizeof *s->choice);
    qat_status const st = take(b, m, flash, s, err);
    if (st || s->is_there)
        return st;
    budget_least(b->net.items, b->net.n_items, s->choice);
    return take(b, m, flash, s, err);
}

/**
 * Solve with so many bytes for the file without what makes it fit the RAM. If the choice makes more
 * of the file that is not weights than was thought, it is solved again with as many bytes less; so
 * a choice that makes less of it may be missed. If the choice needs too much RAM, it is solved
 * again without such choices.
 */
static qat_status solve_plain(qat_budget *b, const budget_meter *m, int64_t flash, solution *s,
                              qat_error *err)
{
    int64_t thought = b->other_flash;
    qat_status st = QAT_OK;
    s->is_there = false;
    while (!st && !s->is_there) {
        budget_limits limits = b->limits;
        limits.bytes = flash == BUDGET_NO_LIMIT ? flash : flash - thought;
        st = budget_solve(b->net.items, b->net.n_items, &limits, s->choice, &s->sums, err);
        if (st == QAT_ERR_ARGUMENT) /* nothing fits */
            return QAT_OK;
        if (!st)
            st = budget_other_flash(&s->other, b, m, s->choice, err);
        if (!st && s->sums.bytes + s->other > flash)
            thought = s->other; /* larger than before: so this ends */
        else if (!st)
            st = budget_fit_or_cut(b, m, s->choice, &s->is_there, &s->added, err);
    }
    return st;
}

/** Keep a solution that fits if it is the best one so far. */
static void keep_better(const qat_budget *b, const solution *s, int64_t flash, solution *best)
{
    if (!s->is_there || file_bytes(s) > flash ||
        (best->is_there && s->sums.loss >= best->sums.loss))
        return;
    int *const room = best->choice;
    memcpy(room, s->choice, (size_t)b->net.n_items * sizeof *room);
    *best = *s;
    best->choice = room;
}

/**
 * Solve with so many bytes for the whole file. What makes a choice fit the RAM adds to the file. If
 * that is too much, either the weights have as many bytes less, or an activation has fewer bits
 * than in this choice: both are tried, until no better choice is left. If nothing fits, it is one
 * of the least choices.
 */
static qat_status solve_within(qat_budget *b, const budget_meter *m, int64_t flash, solution *best,
                               qat_error *err)
{
    size_t const room = (size_t)b->net.n_items + 1;
    int *choice = calloc(room, sizeof *choice), *less = calloc(room, sizeof *less);
    qat_status st = choice && less ? QAT_OK : qat_out_of_memory(err, "budget");
    bool more = true;
    best->is_there = false;
    while (!st && more) {
        solution s = {.choice = choice}, t = {.choice = less};
        st = solve_plain(b, m, flash, &s, err);
        more = !st && s.is_there && file_bytes(&s) > flash &&
               !(best->is_there && s.sums.loss >= best->sums.loss);
        keep_better(b, &s, flash, best);
        if (more)
            st = solve_plain(b, m, flash - s.added, &t, err);
        keep_better(b, &t, flash, best);
        more = more && !st && budget_cut_activations(b, choice);
    }
    budget_forget_flash_cuts(b);
    free(choice);
    free(less);
    if (best->is_there)
        return st == QAT_ERR_LIMIT ? QAT_OK : st;
    return st ? st : take_least(b, m, flash, best, err);
}

static qat_status measure_point(qat_budget *b, budget_meter *m, budget_table *table,
                                const solution *s, qat_budget_point *point, qat_error *err)
{
    *point = (qat_budget_point){.flash = s->sums.bytes + s->other,
                                .macs_bits = s->sums.macs_bits,
                                .predicted = (double)s->sums.loss * BUDGET_LOSS_UNIT};
    return budget_simulate(b, m, table, s->choice, &point->simulated, err);
}

static void tell_of_gap(const budget_meter *m, int64_t flash, const qat_error *err)
{
    char text[QAT_ERROR_MESSAGE_MAX + 64];
    if (!m->options->log)
        return;
    snprintf(text, sizeof text, "curve.csv: nothing is found for %lld bytes of flash: %s",
             (long long)flash, err->message);
    m->options->log->line(m->options->log->context, text);
}

/**
 * Solve for sizes of flash from the least to the largest that is of use. A size is left out if
 * nothing is found for it: the smallest file may need too much RAM.
 */
static qat_status find_curve(qat_budget *b, budget_meter *m, budget_table *table, int *choice,
                             qat_error *err)
{
    const budget_item *items = b->net.items;
    int const n = b->net.n_items;
    qat_status st = QAT_OK;
    int64_t const least = budget_sums_of(items, n, b->least).bytes + b->other_flash;
    int64_t const most =
        (b->most_flash > least ? b->most_flash : least) + budget_flash_for_ram(b, &b->ram);
    for (int i = 0; !st && i < BUDGET_POINTS; i++) {
        int64_t const flash = least + (most - least) * i / (BUDGET_POINTS - 1);
        solution s = {.choice = choice};
        st = solve_within(b, m, flash, &s, err);
        if (st == QAT_ERR_LIMIT) { /* too hard: the choice itself is there */
            tell_of_gap(m, flash, err);
            st = QAT_OK;
            s.is_there = false;
        }
        bool const is_new = !b->n_points || b->points[b->n_points - 1].flash < file_bytes(&s);
        if (st || !s.is_there || !is_new)
            continue;
        st = measure_point(b, m, table, &s, &b->points[b->n_points], err);
        b->points[b->n_points++].flash = file_bytes(&s);
    }
    return st;
}

static qat_status refuse(const qat_budget *b, const solution *s, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX], least[96] = "";
    qat_recipe_where(b->recipe, "budget", "ram", where);
    if (s->least)
        snprintf(least, sizeof least,
                 "; the smallest file that was found to fit budget.ram has %lld bytes",
                 (long long)s->least);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: no choice of bits was found that fits both budget.ram = %lld and "
                    "budget.flash = %lld%s",
                    where, (long long)b->recipe->budget.ram, (long long)b->recipe->budget.flash,
                    least);
}

static qat_status choose(qat_budget *b, budget_meter *m, budget_table *table, qat_error *err)
{
    int64_t const flash = b->recipe->budget.flash;
    bool does_fit;
    solution s = {.choice = b->choice};
    int *choice = calloc((size_t)b->net.n_items + 1, sizeof *choice);
    qat_status st = choice ? QAT_OK : qat_out_of_memory(err, "budget");
    if (!st)
        st = solve_within(b, m, flash ? flash : BUDGET_NO_LIMIT, &s, err);
    if (!st && !s.is_there)
        st = refuse(b, &s, err);
    if (!st)
        st = measure_point(b, m, table, &s, &b->chosen, err);
    if (!st)
        st = budget_find_ram(&b->ram, &does_fit, b, m, b->choice, err);
    if (!st)
        st = find_curve(b, m, table, choice, err);
    b->other_flash = s.other;
    if (!st)
        budget_network_choose(&b->net, b->choice);
    free(choice);
    return st;
}

/* ------------------------------------------------------------------ the search */

/** Does a choice fit both limits? Nothing is measured yet, so no choice loses anything. */
static qat_status check_both(qat_budget *b, const budget_meter *m, qat_error *err)
{
    const qat_recipe *r = b->recipe;
    if (!r->budget.flash || !r->budget.ram)
        return QAT_OK;
    solution s = {.choice = calloc((size_t)b->net.n_items + 1, sizeof *s.choice)};
    qat_status st =
        s.choice ? solve_within(b, m, r->budget.flash, &s, err) : qat_out_of_memory(err, "budget");
    if (!st && !s.is_there)
        st = refuse(b, &s, err);
    free(s.choice);
    return st;
}

/** Open the network, and find out whether anything fits. Its weights are not needed for that. */
static qat_status open_network(qat_budget *b, budget_meter *m, const qat_budget_options *options,
                               qat_error *err)
{
    qat_status st = budget_meter_open(m, b->recipe, options, err);
    if (!st)
        st = budget_network_find(&b->net, b->recipe, m->float_graph, m->simulated, m->wanted, err);
    if (!st)
        st = budget_check_needs(b, m, err);
    return st ? st : check_both(b, m, err);
}

static qat_status search(qat_budget *b, budget_meter *m, const qat_budget_options *options,
                         qat_error *err)
{
    budget_table table = {0};
    qat_status st = open_network(b, m, options, err);
    if (!st)
        st = check_weights(b->recipe, err);
    if (!st)
        st = budget_meter_prepare(m, &b->net, err);
    b->choice = st ? NULL : calloc((size_t)b->net.n_items + 1, sizeof *b->choice);
    if (!st && !b->choice)
        st = qat_out_of_memory(err, "budget");
    if (!st)
        st = qat_make_dirs(b->dir, err);
    if (!st)
        st = open_table(&table, b, m, err);
    if (!st)
        st = budget_measure(b, m, &table, err);
    if (!st)
        st = choose(b, m, &table, err);
    if (!st)
        st = budget_write(b, options->resume, err);
    budget_table_free(&table);
    return st;
}

static qat_status open_budget(qat_budget **budget, const qat_recipe *recipe,
                              const qat_budget_options *options, qat_error *err)
{
    if (options->struct_size > sizeof *options)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_budget_options: of a later version of the library");
    qat_status const st = check_recipe(recipe, err);
    if (st)
        return st;
    qat_budget *b = *budget = calloc(1, sizeof *b);
    if (b)
        b->exports = calloc(1, sizeof *b->exports);
    if (!b || !b->exports)
        return qat_out_of_memory(err, "budget");
    const char *dir = options->dir ? options->dir : recipe->output.dir;
    b->recipe = recipe;
    snprintf(b->dir, sizeof b->dir, "%s", dir);
    return budget_path_in(b->recipe_path, dir, "budget.ini", err);
}

qat_status qat_budget_check(const qat_recipe *recipe, const qat_budget_options *options,
                            qat_error *err)
{
    budget_meter meter = {0};
    qat_budget *b = NULL;
    qat_status st = open_budget(&b, recipe, options, err);
    if (!st)
        st = open_network(b, &meter, options, err);
    budget_meter_close(&meter);
    qat_budget_free(b);
    return st;
}

qat_status qat_budget_search(qat_budget **budget, const qat_recipe *recipe,
                             const qat_budget_options *options, qat_error *err)
{
    budget_meter meter = {0};
    *budget = NULL;
    qat_status st = open_budget(budget, recipe, options, err);
    if (!st)
        st = search(*budget, &meter, options, err);
    budget_meter_close(&meter);
    if (*budget)
        (*budget)->recipe = NULL; /* the caller's */
    if (st) {
        qat_budget_free(*budget);
        *budget = NULL;
    }
    return st;
}

void qat_budget_free(qat_budget *b)
{
    if (!b)
        return;
    budget_network_free(&b->net);
    free(b->choice);
    free(b->least);
    free(b->cuts);
    budget_exports_free(b->exports);
    free(b);
}

/* ------------------------------------------------------------------ the result */

int qat_budget_layers(const qat_budget *b)
{
    return b->net.n_layers;
}

const qat_budget_layer *qat_budget_layer_at(const qat_budget *b, int i)
{
    return &b->net.layers[i];
}

const qat_budget_point *qat_budget_chosen(const qat_budget *b)
{
    return &b->chosen;
}

int64_t qat_budget_other_flash(const qat_budget *b)
{
    return b->other_flash;
}

const qat_ram_plan *qat_budget_ram(const qat_budget *b)
{
    return &b->ram;
}

int qat_budget_points(const qat_budget *b)
{
    return b->n_points;
}

const qat_budget_point *qat_budget_point_at(const qat_budget *b, int i)
{
    return &b->points[i];
}

const char *qat_budget_recipe(const qat_budget *b)
{
    return b->recipe_path;
}

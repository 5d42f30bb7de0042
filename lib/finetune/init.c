#include "finetune/init.h"

#include "autograd/loops/batch_norm.h"
#include "base/bytes.h"
#include "evaluate/data.h"
#include "finetune/pattern.h"
#include "finetune/torch_layout.h"
#include "finetune/weights_file.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 320 };

/** What happened to the parameters, as lists of names. */
typedef struct account {
    qat_writer skipped, missing, unused, shapes;
    int n_skipped, n_missing, n_unused, n_shapes, n_taken;
    size_t values; /* number of values taken */
} account;

/* ------------------------------------------------------------------ names */

/**
 * The network's name for a name in the file. "OLD:NEW, ..." replaces OLD at the beginning by NEW;
 * the first match counts.
 */
static void map_name(const char *map, const char *from, char to[2 * QAT_NAME_MAX])
{
    char rule[QAT_PATTERN_MAX];
    snprintf(to, 2 * QAT_NAME_MAX, "%s", from);
    while (qat_list_next(&map, rule)) {
        size_t const n = strcspn(rule, ":");
        if (strncmp(rule, from, n))
            continue;
        snprintf(to, 2 * QAT_NAME_MAX, "%s%s", rule + n + (rule[n] == ':'), from + n);
        return;
    }
}

static bool any_begins_with(const qat_weights_file *file, const char *start, size_t n)
{
    for (int i = 0; i < file->count; i++)
        if (!strncmp(file->tensors[i].name, start, n))
            return true;
    return false;
}

static qat_status check_map(const char *map, const qat_weights_file *file, const char *path,
                            qat_error *err)
{
    char rule[QAT_PATTERN_MAX];
    while (qat_list_next(&map, rule)) {
        size_t const n = strcspn(rule, ":");
        if (!rule[n])
            return qat_fail(err, QAT_ERR_ARGUMENT, "train.init_map: '%s' is not OLD:NEW", rule);
        if (!any_begins_with(file, rule, n))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "train.init_map: '%s': no tensor of %s begins with '%.*s'", rule, path,
                            (int)n, rule);
    }
    return QAT_OK;
}

/** Give the file's tensors the network's names. No two may get the same name. */
static qat_status rename_all(qat_weights_file *file, const qat_recipe *r, qat_error *err)
{
    char name[2 * QAT_NAME_MAX];
    qat_status st = check_map(r->train.init_map, file, r->train.init, err);
    for (int i = 0; i < file->count && !st; i++) {
        qat_named_tensor *t = &file->tensors[i];
        map_name(r->train.init_map, t->name, name);
        size_t const bytes = strlen(name) + 1;
        if (bytes > sizeof t->name)
            st = qat_fail(
                err, QAT_ERR_ARGUMENT,
                "%s: train.init_map turns '%s' into '%s': a name has at most %d characters",
                r->train.init, t->name, name, QAT_NAME_MAX - 1);
        else
            memcpy(t->name, name, bytes);
        if (!st && qat_weights_find(file, t->name) != t)
            st = qat_fail(err, QAT_ERR_ARGUMENT,
                          "%s: two tensors would be called '%s' (train.init_map)", r->train.init,
                          name);
    }
    return st;
}

/* ------------------------------------------------------------------ layouts */

/** Does the file have the layout that the recipe names? */
static qat_status check_layout(const qat_weights_file *file, const qat_recipe *r, const char *path,
                               qat_error *err)
{
    const char *theirs = file->is_npz ? qat_torch_name_in(file) : NULL;
    if (r->train.init_layout == QAT_INIT_LAYOUT_PYTORCH && !file->is_npz)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: train.init_layout = pytorch works with .npz files only, and this is a "
                        "checkpoint: leave the key out (model.convention = pytorch keeps the "
                        "network)",
                        path);
    if (r->train.init_layout == QAT_INIT_LAYOUT_AUTO && theirs)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: '%s' is a name of PyTorch's, whose weights have another order: set "
                        "train.init_layout = pytorch; or qat, if their order is the one that "
                        "qat-inspect shows",
                        path, theirs);
    return QAT_OK;
}

/* ------------------------------------------------------------------ values */

static void note(qat_writer *list, int *count, const char *name)
{
    qat_write_text(list, "%s%s", *count ? ", " : "", name);
    ++*count;
}

static void note_shape(account *a, const qat_node *node, const qat_named_tensor *t)
{
    char line[QAT_NAME_MAX + 160], here[64], there[64];
    snprintf(line, sizeof line, "%s is %s, here %s", node->name, qat_shape_text(&t->shape, there),
             qat_shape_text(&node->shape, here));
    qat_write_text(&a->shapes, "%s%s", a->n_shapes++ ? "; " : "", line);
}

static qat_status check_finite(const qat_named_tensor *t, const char *path, qat_error *err)
{
    for (size_t i = 0; i < qat_shape_count(&t->shape); i++)
        if (!isfinite(t->values[i]))
            return qat_fail(err, QAT_ERR_NUMERIC, "%s: %s[%zu] is %g", path, t->name, i,
                            (double)t->values[i]);
    return QAT_OK;
}

static qat_status take(account *a, qat_node *node, const qat_named_tensor *t, const char *path,
                       qat_error *err)
{
    size_t const n = qat_shape_count(&node->shape);
    if (!qat_shape_equal(&node->shape, &t->shape)) {
        note_shape(a, node, t);
        return QAT_OK;
    }
    memcpy(node->value, t->values, n * sizeof *node->value);
    a->n_taken++;
    a->values += n;
    return check_finite(t, path, err);
}

/** Must a file of weights contain this parameter? Constants of a rewrite need not be there. */
static bool is_own(const qat_node *node)
{
    size_t const n = strlen(node->name);
    bool const constant = !node->trainable && n > 5 && !strcmp(node->name + n - 5, "/ones");
    return node->is_param && !constant && !qat_is_quantizer_state(node->name);
}

static bool matches_any(const qat_graph *graph, const char *pattern)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (is_own(node) && qat_pattern_matches(pattern, node->name))
            return true;
    }
    return false;
}

/** A pattern that matches nothing is an error. */
static qat_status check_skip(const qat_graph *graph, const char *patterns, qat_error *err)
{
    char pattern[QAT_PATTERN_MAX];
    while (qat_list_next(&patterns, pattern))
        if (!matches_any(graph, pattern))
            return qat_fail(err, QAT_ERR_ARGUMENT, "train.init_skip: no parameter matches '%s'",
                            pattern);
    return QAT_OK;
}

static qat_status take_all(account *a, qat_graph *graph, const qat_weights_file *file,
                           const qat_recipe *r, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < qat_graph_nodes(graph) && !st; i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (!is_own(node))
            continue;
        const qat_named_tensor *t = qat_weights_find(file, node->name);
        if (qat_patterns_match(r->train.init_skip, node->name))
            note(&a->skipped, &a->n_skipped, node->name);
        else if (!t)
            note(&a->missing, &a->n_missing, node->name);
        else
            st = take(a, node, t, r->train.init, err);
    }
    return st;
}

static void note_unused(account *a, const qat_graph *graph, const qat_weights_file *file)
{
    for (int i = 0; i < file->count; i++) {
        const qat_node *node = qat_graph_find(graph, file->tensors[i].name);
        if (!node || !is_own(node))
            note(&a->unused, &a->n_unused, file->tensors[i].name);
    }
}

/* ------------------------------------------------------------------ batch norm's averages */

static bool ends_with(const char *name, const char *end)
{
    size_t const n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/** The name with `to` in place of the ending `from`. */
static const char *sibling(const char *name, const char *from, const char *to,
                           char out[2 * QAT_NAME_MAX])
{
    snprintf(out, 2 * QAT_NAME_MAX, "%.*s%s", (int)(strlen(name) - strlen(from)), name, to);
    return out;
}

static const char *const average_ends[] = {"/ema_mean", "/ema_variance"};

/** Are these averages no longer the initial ones, which are all 0 (mean) or all 1 (variance)? */
static bool has_averages(const qat_weights_file *file, const char *name, float initial)
{
    const qat_named_tensor *t = qat_weights_find(file, name);
    for (size_t i = 0; t && i < qat_shape_count(&t->shape); i++)
        if (t->values[i] != initial)
            return true;
    return false;
}

/**
 * A count of 0 beside real averages is no count. Old PyTorch files have none, and PyTorch fills in
 * 0 when it loads them. Such a count becomes QAT_BN_WARM_STEPS, which keeps the averages. This must
 * come before a bias goes into the mean, because initial averages then look like real ones.
 */
static void mend_counts(const qat_weights_file *file, const char *skip)
{
    char name[2 * QAT_NAME_MAX];
    for (int i = 0; i < file->count; i++) {
        const qat_named_tensor *steps = &file->tensors[i];
        if (!ends_with(steps->name, "/ema_steps") || steps->values[0] != 0)
            continue;
        for (int k = 0; k < 2; k++)
            if (!qat_patterns_match(skip,
                                    sibling(steps->name, "/ema_steps", average_ends[k], name)) &&
                has_averages(file, name, (float)k))
                steps->values[0] = QAT_BN_WARM_STEPS;
    }
}

/**
 * Keep the averages that a file gives without a count. While ema_steps is 0, the first batch would
 * replace them. So ema_steps becomes QAT_BN_WARM_STEPS. A count in the file stays, also 0.
 */
static void warm_averages(qat_graph *graph, const qat_weights_file *file, const char *skip)
{
    char name[2 * QAT_NAME_MAX];
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        for (int k = 0; k < 2; k++) {
            const qat_node *node = qat_graph_node(graph, i);
            if (!ends_with(node->name, average_ends[k]) || !qat_weights_find(file, node->name) ||
                qat_patterns_match(skip, node->name))
                continue;
            const qat_node *steps =
                qat_graph_find(graph, sibling(node->name, average_ends[k], "/ema_steps", name));
            const qat_named_tensor *count = qat_weights_find(file, name);
            bool const counted = count && count->values[0] == 0;
            if (steps && steps->is_param && steps->value[0] == 0 && !counted)
                steps->value[0] = QAT_BN_WARM_STEPS;
        }
}

/* ------------------------------------------------------------------ PyTorch's layout */

static qat_status bring_into_layout(qat_weights_file *file, const qat_graph *float_graph,
                                    const qat_recipe *r, const char *path, const qat_log *log,
                                    qat_error *err)
{
    bool const theirs = r->train.init_layout == QAT_INIT_LAYOUT_PYTORCH;
    qat_status st = theirs ? qat_torch_rename(file, float_graph, r, log, err) : QAT_OK;
    if (!st)
        mend_counts(file, r->train.init_skip);
    return st || !theirs ? st : qat_torch_convert(file, float_graph, r, path, err);
}

/* ------------------------------------------------------------------ telling */

static void tell(const qat_log *log, const char *path, const char *what, int count,
                 const qat_writer *names)
{
    qat_writer w = {0};
    if (!log || !count)
        return;
    qat_write_text(&w, "init %s: %d %s: %.*s", path, count, what, (int)names->count,
                   (const char *)names->bytes);
    qat_write_u8(&w, 0);
    if (!w.failed)
        log->line(log->context, (const char *)w.bytes);
    qat_writer_free(&w);
}

static void tell_all(const account *a, const qat_log *log, const char *path)
{
    char text[640];
    snprintf(text, sizeof text, "init %s: %d parameters taken, %zu values", path, a->n_taken,
             a->values);
    if (log)
        log->line(log->context, text);
    tell(log, path, "skipped (train.init_skip)", a->n_skipped, &a->skipped);
    tell(log, path, "not in the file; they keep their initial values", a->n_missing, &a->missing);
    tell(log, path, "in the file, but not in the network", a->n_unused, &a->unused);
}

/**
 * As many complete items of a list as fit, and how many more there are; `comma` separates items.
 */
static void first_of(const qat_writer *list, char comma, int count, char text[NAMES_MAX])
{
    size_t n = list->count;
    int left = 0;
    if (n >= NAMES_MAX) {
        n = NAMES_MAX - 32;
        while (n && list->bytes[n] != comma)
            n--;
        left = count;
        for (size_t i = 0; i <= n; i++)
            left -= list->bytes[i] == comma;
    }
    int const end = snprintf(text, NAMES_MAX, "%.*s", (int)n, (const char *)list->bytes);
    if (left)
        snprintf(text + end, NAMES_MAX - (size_t)end, "%s%d more", n ? " and " : "", left);
}

static qat_status judge(const account *a, const char *path, qat_error *err)
{
    char names[NAMES_MAX];
    if (a->skipped.failed || a->missing.failed || a->unused.failed || a->shapes.failed)
        return qat_out_of_memory(err, path);
    if (a->n_shapes)
        first_of(&a->shapes, ';', a->n_shapes, names);
    else
        first_of(&a->unused, ',', a->n_unused, names);
    if (a->n_shapes)
        return qat_fail(
            err, QAT_ERR_SHAPE,
            "%s: %d tensors have another shape in the file (train.init_skip leaves them out): %s",
            path, a->n_shapes, names);
    if (!a->n_taken && a->n_skipped)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: train.init_skip leaves out every tensor of this file that the network "
                        "has",
                        path);
    if (!a->n_taken)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: no tensor of this file is in the network; in the file: %s", path,
                        names);
    return QAT_OK;
}

static void account_free(account *a)
{
    qat_writer_free(&a->skipped);
    qat_writer_free(&a->missing);
    qat_writer_free(&a->unused);
    qat_writer_free(&a->shapes);
}

qat_status qat_init_from_file(qat_graph *training, const qat_graph *float_graph,
                              const qat_recipe *recipe, const qat_log *log, qat_error *err)
{
    char path[512];
    account a = {0};
    qat_weights_file file;
    if (!*recipe->train.init)
        return QAT_OK;
    qat_status st = qat_expand_path(recipe->train.init, path, sizeof path, err);
    if (!st)
        st = qat_weights_read(&file, path, qat_data_memory(recipe), err);
    if (st)
        return st;
    st = check_layout(&file, recipe, path, err);
    if (!st)
        st = rename_all(&file, recipe, err);
    if (!st)
        st = bring_into_layout(&file, float_graph, recipe, path, log, err);
    if (!st)
        st = check_skip(training, recipe->train.init_skip, err);
    if (!st)
        st = take_all(&a, training, &file, recipe, err);
    if (!st) {
        warm_averages(training, &file, recipe->train.init_skip);
        note_unused(&a, training, &file);
        st = judge(&a, path, err);
    }
    if (!st)
        tell_all(&a, log, path);
    account_free(&a);
    qat_weights_free(&file);
    return st;
}

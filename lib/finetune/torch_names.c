/** Translate PyTorch's names to this project's: by name, or by order. */
#include "finetune/torch_layout.h"

#include "base/bytes.h"
#include "base/number.h"
#include "finetune/pattern.h"
#include "networks/torchvision.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ parts of a name */

typedef enum role { WEIGHT, BIAS, MEAN, VARIANCE, STEPS, ROLES } role;

static const char *const role_words[ROLES] = {"weight", "bias", "running_mean", "running_var",
                                              "num_batches_tracked"};

/** The role of a name's last part, and the module before it; ROLES: not a name of PyTorch's. */
static role role_of(const char *name, char module[QAT_NAME_MAX])
{
    const char *dot = strrchr(name, '.'), *word = dot ? dot + 1 : name;
    snprintf(module, QAT_NAME_MAX, "%.*s", dot ? (int)(dot - name) : 0, name);
    for (int r = 0; r < ROLES; r++)
        if (!strcmp(word, role_words[r]))
            return (role)r;
    return ROLES;
}

const char *qat_torch_name_in(const qat_weights_file *file)
{
    for (int i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name, *slash = strrchr(name, '/');
        char module[QAT_NAME_MAX];
        role const r = role_of(slash ? slash + 1 : name, module);
        bool const own = r == BIAS && (slash || !strchr(name, '.')); /* conv1/bias/bias */
        if (r != ROLES && !own)
            return name;
    }
    return NULL;
}

/** The tensor "<module>.<word of role>". */
static const qat_named_tensor *part_of(const qat_weights_file *file, const char *module, role r)
{
    char name[QAT_NAME_MAX + 32];
    snprintf(name, sizeof name, "%s%s%s", module, *module ? "." : "", role_words[r]);
    return qat_weights_find(file, name);
}

static const qat_node *param_of(const qat_graph *graph, const char *layer, const char *end)
{
    char name[QAT_NAME_MAX + 32];
    snprintf(name, sizeof name, "%s%s", layer, end);
    return qat_graph_find(graph, name);
}

/** The name that the parameter of a role has in a layer. */
static const char *end_of(role r, bool batch_norm)
{
    switch (r) {
    case WEIGHT:
        return batch_norm ? "/gamma" : "/weights";
    case BIAS:
        return batch_norm ? "/beta" : "/bias/bias";
    case MEAN:
        return "/ema_mean";
    case VARIANCE:
        return "/ema_variance";
    default:
        return "/ema_steps";
    }
}

/* ------------------------------------------------------------------ modules */

/** A module of the file that has a weight, or a layer of the network that has one. */
typedef struct module {
    char name[QAT_NAME_MAX];
    bool batch_norm;
    qat_shape shape; /* of its weight */
    const qat_node *param;
} module;

typedef struct modules {
    module *items;
    int count;
} modules;

static bool is_batch_norm(const qat_weights_file *file, const char *name)
{
    return part_of(file, name, MEAN) != NULL;
}

static bool modules_of_file(modules *m, const qat_weights_file *file)
{
    m->items = calloc((size_t)file->count + 1, sizeof *m->items);
    for (int i = 0; m->items && i < file->count; i++) {
        module *to = &m->items[m->count];
        if (role_of(file->tensors[i].name, to->name) != WEIGHT)
            continue;
        to->batch_norm = is_batch_norm(file, to->name);
        to->shape = file->tensors[i].shape;
        m->count++;
    }
    return m->items != NULL;
}

static bool modules_of_graph(modules *m, const qat_graph *graph)
{
    static const char *const ends[] = {"/weights", "/gamma"};
    int const n = qat_graph_nodes(graph);
    m->items = calloc((size_t)n + 1, sizeof *m->items);
    for (int i = 0; m->items && i < n; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        size_t const length = strlen(node->name);
        for (int k = 0; node->is_param && k < 2; k++) {
            size_t const end = strlen(ends[k]);
            if (length <= end || strcmp(node->name + length - end, ends[k]) != 0)
                continue;
            module *to = &m->items[m->count++];
            snprintf(to->name, sizeof to->name, "%.*s", (int)(length - end), node->name);
            to->batch_norm = k == 1;
            to->shape = node->shape;
            to->param = node;
        }
    }
    return m->items != NULL;
}

/* ------------------------------------------------------------------ by name */

/** The network's name for a module: translated from torchvision's, else with '/' for '.'. */
static void layer_name(const qat_recipe *r, const char *name, char layer[QAT_NAME_MAX])
{
    if (qat_torchvision_name(r, name, layer))
        return;
    snprintf(layer, QAT_NAME_MAX, "%s", name);
    for (char *c = layer; *c; c++)
        *c = *c == '.' ? '/' : *c;
}

/** Is there a layer of that name for the module? */
static bool has_place(const qat_graph *graph, const qat_recipe *r, const module *m)
{
    char layer[QAT_NAME_MAX];
    layer_name(r, m->name, layer);
    return param_of(graph, layer, end_of(WEIGHT, m->batch_norm)) != NULL;
}

/** Does some module of the file go to the layer? */
static bool is_given(const modules *of_file, const qat_recipe *r, const module *wanted)
{
    char layer[QAT_NAME_MAX];
    for (int i = 0; i < of_file->count; i++) {
        layer_name(r, of_file->items[i].name, layer);
        if (of_file->items[i].batch_norm == wanted->batch_norm && !strcmp(layer, wanted->name))
            return true;
    }
    return false;
}

/** Are there still modules without a layer, and layers without weights? */
static bool names_fail(const modules *theirs, const modules *ours, const qat_graph *graph,
                       const qat_recipe *r)
{
    bool unplaced = false, missing = false;
    for (int i = 0; i < theirs->count; i++)
        unplaced |= !has_place(graph, r, &theirs->items[i]);
    for (int i = 0; i < ours->count; i++)
        missing |= !qat_patterns_match(r->train.init_skip, ours->items[i].param->name) &&
                   !is_given(theirs, r, &ours->items[i]);
    return unplaced && missing;
}

/* ------------------------------------------------------------------ by order */

static bool fits(const qat_graph *graph, const qat_recipe *r, const module *theirs,
                 const module *ours)
{
    qat_shape const shape = qat_torch_shape(graph, ours->param, &theirs->shape);
    return theirs->batch_norm == ours->batch_norm &&
           (qat_patterns_match(r->train.init_skip, ours->param->name) ||
            qat_shape_equal(&shape, &ours->shape));
}

/** "layer1.0.conv2" and "layer1.0.conv10": the first parts that differ are a word and a number, and
 *  the numbers rise. */
static bool is_numbered_before(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] && a[same] == b[same])
        same++;
    while (same && qat_is_digit(a[same - 1])) /* 1 and 10 begin alike */
        same--;
    char *end_a, *end_b;
    if (!qat_is_digit(a[same]) || !qat_is_digit(b[same]))
        return false;
    long const x = strtol(a + same, &end_a, 10), y = strtol(b + same, &end_b, 10);
    return x < y && (!*end_a || *end_a == '.') && (!*end_b || *end_b == '.');
}

/** Do modules that could be confused have names that give their order? */
static bool order_is_certain(const modules *m)
{
    for (int i = 0; i < m->count; i++)
        for (int k = i + 1; k < m->count; k++)
            if (m->items[i].batch_norm == m->items[k].batch_norm &&
                qat_shape_equal(&m->items[i].shape, &m->items[k].shape) &&
                !is_numbered_before(m->items[i].name, m->items[k].name))
                return false;
    return true;
}

static bool order_decides(const modules *theirs, const modules *ours, const qat_graph *graph,
                          const qat_recipe *r)
{
    bool equal = theirs->count == ours->count && order_is_certain(theirs);
    for (int i = 0; equal && i < ours->count; i++)
        equal = fits(graph, r, &theirs->items[i], &ours->items[i]);
    return equal;
}

/* ------------------------------------------------------------------ reporting */

static void write_modules(qat_writer *w, const modules *m)
{
    char shape[64];
    for (int i = 0; i < m->count; i++)
        qat_write_text(w, "%s%s%s %s", i ? ", " : "", m->items[i].name,
                       m->items[i].batch_norm ? " (batch norm)" : "",
                       qat_shape_text(&m->items[i].shape, shape));
}

static void tell(const qat_log *log, qat_writer *w)
{
    qat_write_u8(w, 0);
    if (log && !w->failed)
        log->line(log->context, (const char *)w->bytes);
    qat_writer_free(w);
}

/** Write both lists to the log, and the beginning of each to the error. */
static qat_status fail_with_lists(const modules *theirs, const modules *ours, const qat_recipe *r,
                                  const qat_log *log, qat_error *err)
{
    const char *path = r->train.init;
    qat_writer file = {0}, network = {0}, a = {0}, b = {0};
    write_modules(&file, theirs);
    write_modules(&network, ours);
    qat_write_u8(&file, 0);
    qat_write_u8(&network, 0);
    bool const ok = !file.failed && !network.failed;
    if (ok) {
        qat_write_text(&a, "init %s: in the file: %s", path, (const char *)file.bytes);
        qat_write_text(&b, "init %s: in the network: %s", path, (const char *)network.bytes);
        tell(log, &a);
        tell(log, &b);
        qat_fail(
            err, QAT_ERR_ARGUMENT,
            "%.150s: neither names nor order show which module of the file is which layer: use "
            "train.init_map = OLD:NEW, ..., or leave layers out with train.init_skip; in the "
            "file: %.70s...; in the network: %.70s...",
            path, (const char *)file.bytes, (const char *)network.bytes);
    }
    qat_writer_free(&file);
    qat_writer_free(&network);
    return ok ? QAT_ERR_ARGUMENT : qat_out_of_memory(err, path);
}

static void tell_order(const modules *theirs, const modules *ours, const qat_recipe *r,
                       const qat_log *log)
{
    qat_writer w = {0};
    qat_write_text(&w, "init %s: PyTorch's names, matched by their order: ", r->train.init);
    for (int i = 0; i < ours->count; i++)
        qat_write_text(&w, "%s%s -> %s", i ? ", " : "", theirs->items[i].name, ours->items[i].name);
    tell(log, &w);
}

static void tell_names(const qat_recipe *r, const qat_log *log)
{
    qat_writer w = {0};
    qat_write_text(&w, "init %s: PyTorch's names, matched by %s", r->train.init,
                   qat_torchvision_has(r) ? "those of torchvision's network" : "name");
    tell(log, &w);
}

/* ------------------------------------------------------------------ renaming */

/** NULL: the module has no partner by order. */
static const char *partner_of(const modules *theirs, const modules *ours, const char *name)
{
    for (int i = 0; i < theirs->count; i++)
        if (!strcmp(theirs->items[i].name, name))
            return ours->items[i].name;
    return NULL;
}

/** Rename all at once, because some are looked up by the old names of others. */
static qat_status rename_tensors(qat_weights_file *file, const modules *theirs, const modules *ours,
                                 const qat_graph *graph, const qat_recipe *r, qat_error *err)
{
    qat_status st = QAT_OK;
    char(*names)[2 * QAT_NAME_MAX] = calloc((size_t)file->count + 1, sizeof *names);
    if (!names)
        return qat_out_of_memory(err, r->train.init);
    for (int i = 0; i < file->count; i++) {
        char name[QAT_NAME_MAX], layer[QAT_NAME_MAX];
        role const what = role_of(file->tensors[i].name, name);
        const char *partner = ours ? partner_of(theirs, ours, name) : NULL;
        bool const batch_norm = is_batch_norm(file, name);
        layer_name(r, name, layer);
        snprintf(names[i], sizeof names[i], "%s%s", partner ? partner : layer,
                 end_of(what, batch_norm || param_of(graph, layer, "/gamma")));
        if (what == ROLES || qat_graph_find(graph, file->tensors[i].name))
            snprintf(names[i], sizeof names[i], "%s", file->tensors[i].name);
    }
    for (int i = 0; i < file->count && !st; i++) {
        size_t const bytes = strlen(names[i]) + 1;
        if (bytes > QAT_NAME_MAX)
            st = qat_fail(err, QAT_ERR_ARGUMENT, "%s: the name '%s' is too long", r->train.init,
                          names[i]);
        else
            memcpy(file->tensors[i].name, names[i], bytes);
        if (!st && qat_weights_find(file, names[i]) != &file->tensors[i])
            st = qat_fail(err, QAT_ERR_ARGUMENT, "%s: two tensors become '%s'", r->train.init,
                          names[i]);
    }
    free(names);
    return st;
}

qat_status qat_torch_rename(qat_weights_file *file, const qat_graph *graph, const qat_recipe *r,
                            const qat_log *log, qat_error *err)
{
    modules theirs = {0}, ours = {0};
    qat_status st = modules_of_file(&theirs, file) && modules_of_graph(&ours, graph)
                        ? QAT_OK
                        : qat_out_of_memory(err, r->train.init);
    bool const by_order = !st && names_fail(&theirs, &ours, graph, r);
    if (by_order && (*r->train.init_map || !order_decides(&theirs, &ours, graph, r)))
        st = fail_with_lists(&theirs, &ours, r, log, err);
    if (!st)
        st = rename_tensors(file, &theirs, by_order ? &ours : NULL, graph, r, err);
    if (!st && by_order)
        tell_order(&theirs, &ours, r, log);
    else if (!st)
        tell_names(r, log);
    free(theirs.items);
    free(ours.items);
    return st;
}

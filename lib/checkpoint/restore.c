/** Makes a checkpoint runnable. */
#include "checkpoint/restore.h"

#include "checkpoint/checkpoint.h"
#include "evaluate/data.h"
#include "plugin/plugin_names.h"
#include "recipe/recipe.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

static qat_status load(qat_restored *r, const char *path, qat_error *err)
{
    r->path = strdup(path);
    qat_status st = r->path ? qat_checkpoint_load(&r->checkpoint, path, err)
                            : qat_out_of_memory(err, "checkpoint");
    if (!st)
        st = qat_recipe_parse(&r->recipe, r->checkpoint->recipe, path, NULL, 0, err);
    if (!st) { /* limits are the machine's, whatever the file says */
        r->checkpoint->quant.fraction = qat_recipe_fraction(r->recipe);
        r->recipe->data.memory = QAT_DEFAULT_DATA_MEMORY >> 20;
        r->recipe->data.max_pixels = QAT_PICTURE_MAX_PIXELS;
    }
    return st;
}

static qat_status check_plugins(qat_restored *r, const qat_plugins *given, qat_error *err)
{
    return qat_check_plugins(r->checkpoint, r->recipe, r->path, given, &r->warning, err);
}

/** Open the files given. If there are none, look first whether the checkpoint needs some. */
static qat_status open_ops(qat_restored *r, const char *const *files, int n, qat_error *err)
{
    qat_status st = n ? QAT_OK : check_plugins(r, NULL, err);
    if (!st)
        st = qat_open_registry_files(&r->registry, &r->plugins, files, n, err);
    return st || !n ? st : check_plugins(r, r->plugins, err);
}

static qat_status read_graph(qat_restored *r, qat_error *err)
{
    qat_status st =
        qat_graph_read(&r->float_graph, r->registry, r->checkpoint->graph, r->path, err);
    if (!st &&
        (!qat_graph_find(r->float_graph, QAT_INPUT_NAME) || qat_graph_outputs(r->float_graph) < 1))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: its graph has no node %s, or no output", r->path,
                      QAT_INPUT_NAME);
    if (st)
        return st;
    const qat_task *task = qat_task_of_graph(r->float_graph);
    if (*r->checkpoint->task && strcmp(r->checkpoint->task, task->name) != 0)
        return qat_fail(err, QAT_ERR_STATE, "%s: its task %s is not known: name its plugin",
                        r->path, r->checkpoint->task);
    qat_checkpoint_set_task(r->checkpoint, task);
    st = qat_task_open(&r->checkpoint->input, r->float_graph, r->recipe, err);
    if (!st)
        st = qat_central_crop_of(&r->checkpoint->input.central_crop, r->recipe, err);
    if (st)
        return st;
    qat_checkpoint_swap_averages(r->checkpoint);
    return QAT_OK;
}

/** Hand over, or free after a failure. */
static qat_status finish(qat_restored **restored, qat_restored *r, qat_status st)
{
    *restored = st ? NULL : r;
    if (st)
        qat_restored_free(r);
    return st;
}

qat_status qat_restore(qat_restored **restored, const char *path, const char *const *plugins,
                       int n_plugins, qat_error *err)
{
    qat_restored *r = calloc(1, sizeof *r);
    *restored = NULL;
    if (!r)
        return qat_out_of_memory(err, path);
    qat_status st = load(r, path, err);
    if (!st)
        st = open_ops(r, plugins, n_plugins, err);
    if (!st)
        qat_registry_set_memory(r->registry, QI_DEFAULT_MEMORY);
    if (!st)
        st = read_graph(r, err);
    return finish(restored, r, st);
}

qat_status qat_restore_with(qat_restored **restored, const char *path, qat_registry *registry,
                            qat_plugins *plugins, qat_error *err)
{
    qat_restored *r = calloc(1, sizeof *r);
    *restored = NULL;
    if (!r)
        return qat_out_of_memory(err, path);
    r->borrows = true;
    r->registry = registry;
    r->plugins = plugins;
    qat_status st = load(r, path, err);
    if (!st)
        st = check_plugins(r, plugins, err);
    if (!st)
        st = read_graph(r, err);
    return finish(restored, r, st);
}

qat_status qat_restored_limit(qat_restored *restored, const qi_limits *limits, qat_error *err)
{
    uint64_t const most = limits->macs ? limits->macs : QI_DEFAULT_MACS;
    qat_network_size size;
    qat_status const st = qat_network_size_of(restored->float_graph, &size, err);
    if (limits->memory) {
        qat_registry_set_memory(restored->registry, limits->memory);
        restored->recipe->data.memory = (int64_t)((limits->memory - 1) >> 20) + 1;
    }
    if (st || (uint64_t)size.macs <= most)
        return st;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "%s: its network has %lld multiply-adds for one sample, but %llu are allowed "
                    "(--max-macs)",
                    restored->path, (long long)size.macs, (unsigned long long)most);
}

bool qat_restored_use_raw(qat_restored *restored)
{
    bool const averaged = qat_checkpoint_swap_averages(restored->checkpoint);
    restored->raw_parameters ^= averaged;
    return averaged;
}

static void forget_sets(qat_restored *r)
{
    for (int i = 0; i < r->n_sets; i++)
        free(r->sets[i]);
    free(r->sets);
    r->sets = NULL;
    r->n_sets = 0;
}

static qat_status remember_sets(qat_restored *r, const char *const *sets, int n_sets,
                                qat_error *err)
{
    forget_sets(r);
    r->sets = calloc((size_t)n_sets + 1, sizeof(char *));
    if (!r->sets)
        return qat_out_of_memory(err, "--set");
    for (; r->n_sets < n_sets; r->n_sets++) {
        r->sets[r->n_sets] = strdup(sets[r->n_sets]);
        if (!r->sets[r->n_sets])
            return qat_out_of_memory(err, "--set");
    }
    return QAT_OK;
}

/** Check that the key of quant. may be chosen after training. */
static qat_status check_set(const char *set, qat_error *err)
{
    static const char *const keys[] = {"quant.layout=", "quant.profile=", "quant.weight_bits=",
                                       "quant.activation_bits=", "quant.fraction="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strncmp(set, keys[i], strlen(keys[i])))
            return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "--set %s: after training only quant.layout, quant.profile, quant.weight_bits, "
                    "quant.activation_bits and quant.fraction can be set",
                    set);
}

qat_status qat_restored_set_quant(qat_restored *restored, const char *const *sets, int n_sets,
                                  qat_error *err)
{
    qat_checkpoint *c = restored->checkpoint;
    qat_recipe *recipe = NULL;
    qat_status st = QAT_OK;
    for (int i = 0; i < n_sets && !st; i++)
        st = check_set(sets[i], err);
    if (!st)
        st = qat_recipe_parse(&recipe, c->recipe, "the checkpoint's recipe", sets, n_sets, err);
    if (!st)
        st = remember_sets(restored, sets, n_sets, err);
    if (st) {
        qat_recipe_free(recipe);
        return st;
    }
    c->quant.layout = (qat_layout)recipe->quant.layout;
    c->quant.weight_bits = (int)recipe->quant.weight_bits;
    c->quant.activation_bits = (int)recipe->quant.activation_bits;
    c->profile = (qat_profile)recipe->quant.profile;
    c->quant.fraction = qat_recipe_fraction(recipe);
    qat_recipe_free(recipe);
    return QAT_OK;
}

void qat_restored_free(qat_restored *restored)
{
    if (!restored)
        return;
    forget_sets(restored);
    free(restored->path);
    free(restored->warning);
    if (restored->checkpoint)
        qat_task_close(&restored->checkpoint->input);
    qat_graph_free(restored->float_graph);
    if (!restored->borrows) {
        qat_registry_free(restored->registry);
        qat_plugins_free(restored->plugins);
    }
    qat_recipe_free(restored->recipe);
    qat_checkpoint_free(restored->checkpoint);
    free(restored);
}

/* ------------------------------------------------------------------ questions */

const char *qat_restored_warning(const qat_restored *r)
{
    return r->warning;
}

const qat_checkpoint *qat_restored_checkpoint(const qat_restored *r)
{
    return r->checkpoint;
}

qat_recipe *qat_restored_recipe(const qat_restored *r)
{
    return r->recipe;
}

const qat_plugins *qat_restored_plugins(const qat_restored *r)
{
    return r->plugins;
}

const qat_registry *qat_restored_registry(const qat_restored *r)
{
    return r->registry;
}

const qat_graph *qat_restored_graph(const qat_restored *r)
{
    return r->float_graph;
}

qat_status qat_restored_read_graph(const qat_restored *r, qat_graph **graph, int max_batch,
                                   qat_plan plan, qat_error *err)
{
    qat_status const st =
        qat_graph_read(graph, r->registry, r->checkpoint->graph, "checkpoint", err);
    return st ? st : qat_restored_plan(r, graph, max_batch, plan, err);
}

qat_status qat_restored_plan(const qat_restored *r, qat_graph **graph, int max_batch, qat_plan plan,
                             qat_error *err)
{
    qat_status st = qat_graph_plan(*graph, max_batch, plan, err);
    if (!st)
        st = qat_checkpoint_params(r->checkpoint, *graph, err);
    if (st) {
        qat_graph_free(*graph);
        *graph = NULL;
    }
    return st;
}

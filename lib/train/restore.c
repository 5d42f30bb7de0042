/** Makes a checkpoint runnable. */
#include "qat/train.h"

#include "base/bytes.h"
#include "train/data.h"
#include "train/detector.h"

#include <stdlib.h>
#include <string.h>

static qat_status join_paths(char **text, const char *const *paths, int count, qat_error *err)
{
    qat_writer w = {0};
    for (int i = 0; i < count; i++)
        qat_write_text(&w, "%s%s", i ? "," : "", paths[i]);
    qat_write_u8(&w, 0);
    *text = w.failed ? NULL : (char *)w.bytes;
    if (!w.failed)
        return QAT_OK;
    qat_writer_free(&w);
    return qat_fail(err, QAT_ERR_NOMEM, "plugins: out of memory");
}

static qat_status open_ops(qat_restored *r, const char *const *plugins, int n_plugins,
                           qat_error *err)
{
    char *paths = NULL;
    qat_status st = n_plugins ? join_paths(&paths, plugins, n_plugins, err) : QAT_OK;
    if (!st)
        st = qat_open_registry(&r->registry, &r->plugins, paths ? paths : r->recipe->plugin.path,
                               err);
    free(paths);
    return st;
}

qat_status qat_restore(qat_restored **restored, const char *path, const char *const *plugins,
                       int n_plugins, qat_error *err)
{
    qat_restored *r = calloc(1, sizeof *r);
    *restored = NULL;
    if (!r)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: out of memory", path);
    r->path = strdup(path);
    qat_status st = r->path ? qat_checkpoint_load(&r->checkpoint, path, err)
                            : qat_out_of_memory(err, "checkpoint");
    if (!st)
        st = qat_recipe_parse(&r->recipe, r->checkpoint->recipe, path, NULL, 0, err);
    if (!st)
        st = open_ops(r, plugins, n_plugins, err);
    if (!st)
        st = qat_graph_read(&r->float_graph, r->registry, r->checkpoint->graph, path, err);
    if (!st &&
        (!qat_graph_find(r->float_graph, QAT_INPUT_NAME) || qat_graph_outputs(r->float_graph) < 1))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: its graph has no node %s, or no output", path,
                      QAT_INPUT_NAME);
    if (!st)
        st = qat_detector_create(&r->detector, r->float_graph, r->recipe,
                                 r->checkpoint->input.classes, err);
    if (!st)
        st = qat_central_crop_of(&r->checkpoint->input.central_crop, r->recipe, err);
    if (st) {
        qat_restored_free(r);
        return st;
    }
    r->checkpoint->input.detector = r->detector;
    qat_checkpoint_swap_averages(r->checkpoint);
    *restored = r;
    return QAT_OK;
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
    static const char *const keys[] = {
        "quant.layout=", "quant.profile=", "quant.weight_bits=", "quant.activation_bits="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strncmp(set, keys[i], strlen(keys[i])))
            return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "--set %s: after training only quant.layout, quant.profile, quant.weight_bits "
                    "and quant.activation_bits can be set",
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
    qat_recipe_free(recipe);
    return QAT_OK;
}

void qat_restored_free(qat_restored *restored)
{
    if (!restored)
        return;
    forget_sets(restored);
    free(restored->path);
    qat_detector_free(restored->detector);
    qat_graph_free(restored->float_graph);
    qat_registry_free(restored->registry);
    qat_plugins_free(restored->plugins);
    qat_recipe_free(restored->recipe);
    qat_checkpoint_free(restored->checkpoint);
    free(restored);
}

/** Saves the state of a training run to a checkpoint, and restores it. */
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "plugin/plugin_names.h"
#include "recipe/recipe.h"
#include "train/agree.h"
#include "train/board.h"
#include "train/first_look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Copy a text, which the checkpoint owns; everything else in it is copied too. */
static qat_status copy_text(char **to, const char *text, size_t n, qat_error *err)
{
    *to = malloc(n + 1);
    if (!*to)
        return qat_out_of_memory(err, "checkpoint");
    memcpy(*to, text, n);
    (*to)[n] = 0;
    return QAT_OK;
}

static qat_status copy_values(qat_named_tensor *t, const qat_node *node, const float *values,
                              qat_error *err)
{
    size_t const n = qat_shape_count(&node->shape);
    snprintf(t->name, sizeof t->name, "%s", node->name);
    t->shape = node->shape;
    t->values = malloc((n + 1) * sizeof *t->values);
    if (!t->values)
        return qat_out_of_memory(err, "checkpoint");
    memcpy(t->values, values, n * sizeof *t->values);
    return QAT_OK;
}

qat_status qat_trainer_check_size(const qat_trainer *t, qat_error *err)
{
    uint64_t bytes = 0;
    int const slots = qat_optimizer_slots(t->optimizer);
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        uint64_t const each = sizeof(float) * (uint64_t)qat_shape_count(&node->shape);
        bytes += node->is_param ? each : 0;
        for (int s = 0; s < slots; s++)
            bytes += qat_optimizer_slot(t->optimizer, node, s) ? each : 0;
    }
    if (bytes <= QAT_CHECKPOINT_MAX_BYTES)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: the parameters and what train.optimizer keeps of them have %llu bytes, "
                    "but a checkpoint has at most %d",
                    t->recipe->source, (unsigned long long)bytes, QAT_CHECKPOINT_MAX_BYTES);
}

static qat_status copy_params(qat_checkpoint *c, const qat_trainer *t, qat_error *err)
{
    int const nodes = qat_graph_nodes(t->training);
    c->params = calloc(2 * (size_t)nodes + 1, sizeof *c->params);
    if (!c->params)
        return qat_out_of_memory(err, "checkpoint");
    qat_status st = QAT_OK;
    for (int i = 0; i < nodes && !st; i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        if (node->is_param)
            st = copy_values(&c->params[c->n_params++], node, node->value, err);
    }
    return st || !t->quant_log ? st : qat_quant_log_save(t->quant_log, c, err);
}

static qat_status copy_slots(qat_checkpoint *c, const qat_trainer *t, qat_error *err)
{
    int const nodes = qat_graph_nodes(t->training);
    c->n_slots = qat_optimizer_slots(t->optimizer);
    c->averaged = t->recipe->train.average_decay > 0;
    c->optimizer_steps = qat_optimizer_steps(t->optimizer);
    c->slots = calloc((size_t)nodes * (size_t)c->n_slots + 1, sizeof *c->slots);
    if (!c->slots)
        return qat_out_of_memory(err, "checkpoint");
    qat_status st = QAT_OK;
    for (int i = 0; i < nodes && !st; i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        for (int s = 0; s < c->n_slots && !st; s++) {
            const float *values = qat_optimizer_slot(t->optimizer, node, s);
            if (values)
                st = copy_values(&c->slots[c->n_slot_tensors++], node, values, err);
        }
    }
    return st;
}

static qat_status copy_labels(qat_checkpoint *c, const qat_trainer *t, qat_error *err)
{
    const char *const *labels = qat_dataset_info_of(t->train_data)->labels;
    if (!labels || !t->input.task->units)
        return QAT_OK;
    c->labels = calloc((size_t)c->input.classes, sizeof *c->labels);
    if (!c->labels)
        return qat_out_of_memory(err, "checkpoint");
    qat_status st = QAT_OK;
    for (int i = 0; i < c->input.classes && !st; i++)
        st = copy_text(&c->labels[i], labels[i], strlen(labels[i]), err);
    return st;
}

/** Which plugins took part: only their names and digests, no paths. */
static qat_status copy_plugins(qat_checkpoint *c, const qat_trainer *t, qat_error *err)
{
    int n;
    const qat_plugin_file *files = qat_plugins_files(t->plugins, &n);
    if (n > QAT_CHECKPOINT_MAX_PLUGINS)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%d plugins, but a checkpoint names at most %d", n,
                        QAT_CHECKPOINT_MAX_PLUGINS);
    c->plugins = calloc((size_t)n + 1, sizeof *c->plugins);
    if (!c->plugins)
        return qat_out_of_memory(err, "checkpoint");
    if (n)
        memcpy(c->plugins, files, (size_t)n * sizeof *files);
    c->n_plugins = n;
    return QAT_OK;
}

static void copy_progress(qat_checkpoint *c, const qat_trainer *t)
{
    c->input = t->input;
    c->quantized = t->recipe->quant.enabled;
    c->quant = t->quant;
    c->profile = (qat_profile)t->recipe->quant.profile;
    c->step = t->step;
    c->loss_sum = t->tally.loss_sum;
    c->loss_count = t->tally.losses;
    c->sample_count = t->tally.samples;
    c->correct_count = t->tally.correct;
    c->gradient_norm = t->tally.gradient_norm;
    c->float_accuracy = t->float_accuracy;
    c->integer_accuracy = t->integer_accuracy;
    c->simulated_accuracy = t->simulated_accuracy;
    c->last_loss = t->last_loss;
    c->plateau = t->plateau;
    if (t->teacher)
        memcpy(c->teacher, qat_teacher_digest(t->teacher), sizeof c->teacher);
}

const qat_node *qat_trainer_nonfinite(const qat_trainer *t)
{
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        size_t const n = node->is_param ? qat_shape_count(&node->shape) : 0;
        float sum = 0; /* sum of x - x: 0 for every finite x, else NaN */
        for (size_t k = 0; k < n; k++)
            sum += node->value[k] - node->value[k];
        if (sum != 0 || isnan(sum))
            return node;
    }
    return NULL;
}

qat_status qat_trainer_state_bytes(const qat_trainer *t, qat_writer *w, qat_error *err)
{
    qat_checkpoint *c = qat_checkpoint_new();
    if (!c)
        return qat_out_of_memory(err, "checkpoint");
    copy_progress(c, t);
    qat_status st = qat_recipe_write_run(t->recipe, &c->recipe, err);
    if (!st)
        st = copy_text(&c->graph, t->graph_text, strlen(t->graph_text), err);
    if (!st)
        st = copy_text(&c->log, t->log.text.count ? (const char *)t->log.text.bytes : "",
                       t->log.text.count, err);
    if (!st)
        st = copy_labels(c, t, err);
    if (!st)
        st = copy_plugins(c, t, err);
    if (!st)
        st = qat_trainer_copy_digests(c, t, err);
    if (!st)
        st = copy_params(c, t, err);
    if (!st)
        st = copy_slots(c, t, err);
    if (!st)
        st = qat_checkpoint_bytes(c, w, t->checkpoint_path, err);
    qat_checkpoint_free(c);
    return st;
}

/**
 * What waits goes first: once last.ckpt is on disk, all that should be kept of earlier steps is,
 * too, and a run that is killed then misses nothing.
 */
qat_status qat_trainer_save(qat_trainer *t, qat_error *err)
{
    qat_writer w = {0};
    qat_kept const kept = qat_trainer_kept(t);
    if (!qat_trainer_leads(t)) {
        t->saved_step = t->step;
        return QAT_OK;
    }
    qat_status st = qat_trainer_state_bytes(t, &w, err);
    if (st) {
        qat_writer_free(&w);
        return st;
    }
    st = qat_trainer_write_waiting(t, err);
    if (!st)
        st = qat_file_write_atomic(t->checkpoint_path, w.bytes, w.count, err);
    if (!st) {
        t->saved_step = t->step;
        st = qat_trainer_keep(t, kept, err);
    }
    if (st == QAT_ERR_IO && qat_trainer_let_wait(t, kept, &w))
        st = qat_out_of_memory(err, t->checkpoint_path);
    qat_writer_free(&w);
    return st;
}

/* ------------------------------------------------------------------ back */

static qat_status restore_slots(qat_trainer *t, const qat_checkpoint *c, qat_error *err)
{
    int next = 0;
    if (c->n_slots != qat_optimizer_slots(t->optimizer))
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %d optimizer slots, but %d are needed",
                        t->checkpoint_path, c->n_slots, qat_optimizer_slots(t->optimizer));
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        for (int s = 0; s < c->n_slots; s++) {
            float *values = qat_optimizer_slot(t->optimizer, node, s);
            if (!values)
                continue;
            const qat_named_tensor *from = next < c->n_slot_tensors ? &c->slots[next++] : NULL;
            if (!from || strcmp(from->name, node->name) ||
                !qat_shape_equal(&from->shape, &node->shape))
                return qat_fail(err, QAT_ERR_FORMAT, "%s: the optimizer's state of %s is missing",
                                t->checkpoint_path, node->name);
            memcpy(values, from->values, qat_shape_count(&node->shape) * sizeof *values);
        }
    }
    qat_optimizer_set_steps(t->optimizer, c->optimizer_steps);
    return QAT_OK;
}

/** Add what to do instead: a run can only be resumed with the same recipe. */
static void hint_at_init(qat_error *err)
{
    size_t const n = err ? strlen(err->message) : 0;
    if (err)
        snprintf(err->message + n, sizeof err->message - n,
                 "; to continue with other settings, start a run in another folder from these "
                 "weights: train.init (qat-train --init)");
}

static qat_status same_run(const qat_trainer *t, const qat_checkpoint *c, qat_error *err)
{
    qat_recipe *then = NULL;
    qat_status st = qat_recipe_parse(&then, c->recipe, t->checkpoint_path, NULL, 0, err);
    if (!st)
        st = qat_recipe_same_run(then, t->recipe, err);
    if (st == QAT_ERR_ARGUMENT)
        hint_at_init(err);
    qat_recipe_free(then);
    if (!st && strcmp(c->graph, t->graph_text))
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "%s: the network or the size of the data differs from the checkpoint's",
                      t->checkpoint_path);
    return st;
}

/** Tell if a plugin has the name of one of the run's, but another content: it was built again. */
static qat_status tell_plugins(const qat_trainer *t, const qat_checkpoint *c, qat_error *err)
{
    char *warning = NULL;
    qat_error ignored;
    qat_status const st =
        qat_check_plugins(c, t->recipe, t->checkpoint_path, t->plugins, &warning, &ignored);
    if (!st && warning && t->options->log)
        t->options->log->line(t->options->log->context, warning);
    free(warning);
    return st == QAT_ERR_NOMEM ? qat_out_of_memory(err, t->checkpoint_path) : QAT_OK;
}

/** Does the teacher have the same answers, wherever its file is now? */
static qat_status same_teacher(const qat_trainer *t, const qat_checkpoint *c, qat_error *err)
{
    static const uint8_t none[sizeof c->teacher] = {0};
    const char *path = t->recipe->distill.teacher;
    const uint8_t *now = t->teacher ? qat_teacher_digest(t->teacher) : none;
    if (!memcmp(c->teacher, now, sizeof none))
        return QAT_OK;
    if (!t->teacher)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s was started with a distill.teacher: it is not the same run",
                        t->checkpoint_path);
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "%s was started with a distill.teacher other than %s, or with none: it is not the same run",
        t->checkpoint_path, path);
}

static void restore_progress(qat_trainer *t, const qat_checkpoint *c)
{
    t->step = c->step;
    t->saved_step = c->step;
    t->tally = (qat_tally){c->loss_sum, c->loss_count, c->sample_count, c->correct_count,
                           c->gradient_norm};
    t->float_accuracy = c->float_accuracy;
    if (t->input.chosen)
        *t->input.chosen = c->input.attributes.low;
    t->integer_accuracy = c->integer_accuracy;
    t->simulated_accuracy = c->simulated_accuracy;
    t->last_loss = c->last_loss;
    t->plateau = c->plateau;
    qat_trainer_apply_plateau(t);
}

qat_status qat_trainer_resume(qat_trainer *t, qat_error *err)
{
    qat_checkpoint *c = NULL;
    bool const there = access(t->checkpoint_path, F_OK) == 0;
    bool const leads = qat_trainer_leads(t);
    qat_status st = there && leads ? qat_run_lock(&t->lock, t->dir, err) : QAT_OK;
    if (!st)
        st = qat_checkpoint_load(&c, t->checkpoint_path, err);
    if (!st)
        st = same_run(t, c, err);
    if (!st)
        st = qat_trainer_same_data(t, c, err);
    if (!st)
        st = same_teacher(t, c, err);
    if (!st)
        st = tell_plugins(t, c, err);
    if (!st)
        st = qat_checkpoint_params(c, t->training, err);
    if (!st)
        st = restore_slots(t, c, err);
    if (!st) {
        qat_checkpoint_set_task(c, t->input.task);
        restore_progress(t, c);
        qat_trainer_set_bits(t, t->step > 0 ? t->step - 1 : 0, false);
        st = qat_loader_seek(t->loader, c->step / t->plan.per_epoch,
                             (int)(c->step % t->plan.per_epoch), err);
    }
    if (!st && t->ranks)
        st = qat_trainer_agree(t, st, err);
    if (!st && leads)
        st = qat_run_remove_temporaries(t->dir, err);
    if (!st)
        st = qat_trainer_read_best(t, err);
    if (!st)
        st = qat_trainer_open_logs(t, c->log, err);
    if (!st)
        st = qat_trainer_open_quant_log(t, c, err);
    if (!st && leads)
        st = qat_board_open(t, err);
    qat_checkpoint_free(c);
    return st;
}

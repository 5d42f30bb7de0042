/** Sets up a training run: data, graphs, optimizer, schedule. */
#include "train/agree.h"
#include "train/asynchronous.h"
#include "train/board.h"

#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "fakequant/bits.h"
#include "finetune/init.h"
#include "networks/network.h"
#include "recipe/recipe.h"
#include "task/task.h"
#include "train/first_look.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double qat_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double qat_trainer_seconds(const qat_trainer *t)
{
    return t->seconds_before + qat_clock() - t->started;
}

bool qat_trainer_leads(const qat_trainer *t)
{
    return !t->ranks || t->ranks->rank == 0;
}

/* ------------------------------------------------------------------ folder */

/** Refuse to replace a finished or interrupted run by accident. */
static qat_status spare_checkpoints(const qat_trainer *t, qat_error *err)
{
    char name[QAT_RUN_PATH_MAX] = "";
    if (!t->options->resume && !t->options->overwrite)
        qat_run_find(t->dir, name);
    if (!*name)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_STATE,
                    "%s/%s already exists: continue that run (--resume), start again in its place "
                    "(--overwrite), or name another folder",
                    t->dir, name);
}

/** Refuse to remove a file from which the run starts. */
static qat_status spare_source(const qat_trainer *t, const char *key, const char *file,
                               qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_status const st = qat_expand_path(file, path, sizeof path, err);
    if (st || !*path || !qat_run_owns(t->dir, path))
        return st;
    return qat_fail(err, QAT_ERR_STATE,
                    "%s = %.180s is a checkpoint in %.180s, which --overwrite would remove: name "
                    "another folder, or move the file",
                    key, file, t->dir);
}

static qat_status spare_sources(const qat_trainer *t, qat_error *err)
{
    if (!t->options->overwrite)
        return QAT_OK;
    qat_status const st = spare_source(t, "train.init", t->recipe->train.init, err);
    return st ? st : spare_source(t, "distill.teacher", t->recipe->distill.teacher, err);
}

static qat_status set_paths(qat_trainer *t, qat_error *err)
{
    t->dir = t->options->dir ? t->options->dir : t->recipe->output.dir;
    if (!*t->dir)
        return qat_fail(err, QAT_ERR_ARGUMENT, "output.dir is empty: name a folder");
    qat_status st = qat_run_path(t->checkpoint_path, t->dir, "last.ckpt", err);
    if (!st)
        st = spare_checkpoints(t, err);
    return st ? st : spare_sources(t, err);
}

/**
 * Make the folder and remove its old checkpoints, so that all checkpoints in it belong to this run.
 */
static qat_status start_folder(qat_trainer *t, qat_error *err)
{
    if (!qat_trainer_leads(t))
        return qat_trainer_open_logs(t, NULL, err);
    qat_status st = qat_make_dirs(t->dir, err);
    if (!st)
        st = qat_run_lock(&t->lock, t->dir, err);
    if (!st)
        st = qat_run_remove_temporaries(t->dir, err);
    if (!st)
        st = qat_run_remove_checkpoints(t->dir, err);
    if (!st)
        st = qat_trainer_open_logs(t, NULL, err);
    if (!st)
        st = qat_trainer_open_quant_log(t, NULL, err);
    return st ? st : qat_board_open(t, err);
}

/* ------------------------------------------------------------------ data */

/** Set least and most; one number is also used for `otherwise`. */
static void set_interval(float interval[2], const qat_real_list *list, double otherwise)
{
    interval[0] = (float)list->v[0];
    interval[1] = (float)(list->n > 1 ? list->v[1] : otherwise);
}

static qat_augment augmentation(const qat_recipe *r)
{
    qat_augment a = {.crop_pad = (int)r->data.crop_pad,
                     .flip = r->data.flip,
                     .brightness = (float)r->data.brightness,
                     .contrast = (float)r->data.contrast,
                     .saturation = (float)r->data.saturation,
                     .hue = (float)r->data.hue,
                     .cutout = (int)r->data.cutout,
                     .noise = (float)r->data.noise,
                     .time_shift = (int)r->data.time_shift,
                     .gain = (float)r->data.gain,
                     .background = (float)r->data.background,
                     .background_chance = (float)r->data.background_chance,
                     .ssd_expand = (float)r->data.ssd_expand,
                     .ssd_crop = r->data.ssd_crop};
    if (r->data.crop_area.v[0] < 1) {
        set_interval(a.crop_area, &r->data.crop_area, 1);
        set_interval(a.crop_aspect, &r->data.crop_aspect, r->data.crop_aspect.v[0]);
    }
    return a;
}

qat_loader_options qat_training_loader(const qat_recipe *r)
{
    return (qat_loader_options){.batch = (int)r->train.batch,
                                .shuffle = true,
                                .drop_last = true,
                                .seed = (uint64_t)r->train.seed,
                                .augment = augmentation(r),
                                .threads = (int)r->data.threads,
                                .prefetch = (int)r->data.prefetch,
                                .memory = qat_data_memory(r)};
}

static qat_status open_data(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_status st = qat_trainer_open_data(t, err);
    if (!st)
        st = qat_input_info_of(&t->input, t->registry, r, qat_dataset_info_of(t->train_data), err);
    if (!st)
        st = qat_input_check(&t->input, t->test_data, err);
    if (r->data.validation > 0)
        t->input.chosen = &t->input.attributes.low;
    if (!st)
        st = qat_recipe_check_batch(r, qat_dataset_info_of(t->train_data), err);
    if (st)
        return st;
    qat_loader_options const o = qat_training_loader(r);
    return qat_open_loader(&t->loader, t->train_data, &t->input, &o, err);
}

/* ------------------------------------------------------------------ shards */

/** The shards of this process: its own of each batch, or all of its own batches. */
static qat_status cut_batch(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    bool const apart = r->train.asynchronous;
    qat_status const st = qat_shards_create(&t->shards, apart ? 1 : (int)r->train.shards,
                                            (int)r->train.batch, apart ? NULL : t->ranks, err);
    if (!st && (apart || !r->train.sync_batch_norm))
        qat_shards_split_batch_norm(t->shards);
    return st;
}

/** Cut the batch, and let the loader prepare this process's samples only. */
static qat_status open_shards(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    bool const cut = r->train.shards > 1 || t->ranks;
    qat_status st = r->train.asynchronous ? qat_async_open(t, err) : QAT_OK;
    if (!st && cut)
        st = cut_batch(t, err);
    if (st)
        return st;
    t->n_graphs = cut ? qat_shards_own(t->shards) : 1;
    t->graphs = calloc((size_t)t->n_graphs, sizeof(qat_graph *));
    if (!t->graphs)
        return qat_out_of_memory(err, "train.shards");
    if (cut && !t->async) {
        qat_samples const own = qat_shards_all_samples(t->shards);
        qat_loader_take_samples(t->loader, own.begin, own.end);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ schedule */

static int64_t at_least_one(int64_t steps)
{
    return steps < 1 ? 1 : steps;
}

static void plan_schedule(qat_trainer *t)
{
    const qat_recipe *r = t->recipe;
    int64_t const n = t->plan.per_epoch, total = t->plan.total;
    qat_schedule *s = &t->schedule;
    *s = (qat_schedule){.kind = (qat_schedule_kind)r->train.schedule,
                        .rate = r->train.lr,
                        .factor = r->train.factor,
                        .final_rate = r->train.final_lr,
                        .power = r->train.power,
                        .every = at_least_one(qat_steps_resolve(&r->train.every, n, total, n)),
                        .n_milestones = r->train.milestones.n,
                        .total = total,
                        .warmup = qat_steps_resolve(&r->train.warmup, n, total, 0)};
    for (int i = 0; i < s->n_milestones; i++)
        s->milestones[i] = qat_steps_resolve(&r->train.milestones.v[i], n, total, 0);
}

static void plan_plateaus(qat_trainer *t)
{
    const qat_recipe *r = t->recipe;
    bool const drops = r->train.schedule == QAT_SCHEDULE_PLATEAU;
    bool const of_loss = (drops || r->train.stop_patience) && r->train.plateau_on == 1;
    t->patience = (qat_patience){.of_loss = of_loss,
                                 .less = of_loss || t->input.task->less_is_better,
                                 .threshold = r->train.plateau_threshold,
                                 .drop = drops ? r->train.plateau_patience : 0,
                                 .stop = r->train.stop_patience};
}

void qat_trainer_apply_plateau(qat_trainer *t)
{
    t->schedule.drops = t->plateau.drops;
    if (t->plateau.ended)
        t->plan.total = t->step;
}

static qat_status plan_run(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_plan_of_run *p = &t->plan;
    p->per_epoch = qat_loader_batches(t->loader);
    double const steps = r->train.epochs * (double)p->per_epoch;
    p->total = r->train.steps ? r->train.steps : (int64_t)floor(steps + 0.5);
    bool const only_init = r->train.epochs == 0 && qat_net_has_weights(r);
    if (p->total < 1 && !only_init)
        return qat_fail(
            err, QAT_ERR_ARGUMENT, "train.epochs = %g is less than one step%s", r->train.epochs,
            r->train.epochs > 0 ? "" : ": without training, weights come from a file (train.init)");
    int64_t const n = p->per_epoch, total = p->total;
    p->quant_log_every =
        at_least_one(qat_steps_resolve(&r->quant.range_log_every, n, total, INT64_MAX));
    p->eval_every = at_least_one(qat_steps_resolve(&r->train.eval_every, n, total, n));
    p->log_every = at_least_one(qat_steps_resolve(&r->train.log_every, n, total, p->eval_every));
    p->checkpoint_every = at_least_one(qat_steps_resolve(&r->train.checkpoint_every, n, total, n));
    plan_schedule(t);
    plan_plateaus(t);
    return QAT_OK;
}

static qat_status plan_quantization(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    const qat_quant_options *q = &t->quant;
    qat_status const st = qat_recipe_quant_options(&t->quant, r, t->registry, &t->input,
                                                   t->plan.per_epoch, t->plan.total, err);
    t->quant.least_weight_bits = qat_least_bits(q->weight_stages, q->n_weight_stages, 0);
    t->quant.least_activation_bits =
        qat_least_bits(q->activation_stages, q->n_activation_stages, 0);
    t->plan.quant_start = INT64_MAX;
    if (r->quant.enabled)
        t->plan.quant_start =
            q->weight_delay < q->activation_delay ? q->weight_delay : q->activation_delay;
    return st;
}

static void tell_bits(const qat_trainer *t, int64_t step, const char *of, int least)
{
    char text[128];
    if (!t->options->log)
        return;
    if (least)
        snprintf(text, sizeof text, "step %lld: %s have at least %d bits", (long long)step, of,
                 least);
    else
        snprintf(text, sizeof text, "step %lld: %s have the bits of the model", (long long)step,
                 of);
    t->options->log->line(t->options->log->context, text);
}

void qat_trainer_set_bits(qat_trainer *t, int64_t step, bool starts)
{
    qat_quant_options *q = &t->quant;
    int const weights = qat_least_bits(q->weight_stages, q->n_weight_stages, step);
    int const activations = qat_least_bits(q->activation_stages, q->n_activation_stages, step);
    if (!t->recipe->quant.enabled ||
        (weights == q->least_weight_bits && activations == q->least_activation_bits))
        return;
    if (starts && weights != q->least_weight_bits)
        tell_bits(t, step, "weights", weights);
    if (starts && activations != q->least_activation_bits)
        tell_bits(t, step, "activations", activations);
    q->least_weight_bits = weights;
    q->least_activation_bits = activations;
    for (int i = 0; i < t->n_graphs; i++) /* the first one has the parameters of all */
        qat_set_least_bits(t->graphs[i], weights, activations, starts && i == 0);
    qat_set_least_bits(t->simulated_eval, weights, activations, false);
    if (t->integer_eval)
        qat_set_least_bits(t->integer_eval, weights, activations, false);
}

/* ------------------------------------------------------------------ graphs */

/** Make the graph that evaluations freeze, if the quantized network can become an integer one. */
static qat_status build_integers(qat_trainer *t, const qat_graph *built, qat_error *err)
{
    qat_error why = {0};
    qat_status const st = qat_check_integers(built, &t->quant, &why);
    if (st == QAT_ERR_UNSUPPORTED) {
        qat_trainer_tell_simulated(t, why.message);
        return QAT_OK;
    }
    return st ? qat_fail(err, st, "%s", why.message)
              : qat_create_eval_graph(&t->integer_eval, built, &t->quant, err);
}

/** A run that is continued has its network in the checkpoint, if it came from a file. */
static qat_status network_of_checkpoint(const qat_trainer *t, qat_graph **graph, qat_error *err)
{
    qat_checkpoint *c = NULL;
    qat_status st = qat_checkpoint_load(&c, t->checkpoint_path, err);
    if (!st)
        st = qat_graph_read(graph, t->registry, c->graph, t->checkpoint_path, err);
    qat_checkpoint_free(c);
    return st;
}

/** The graph of shard i of this process. */
static qat_status build_training(qat_trainer *t, int i, const qat_graph *built, qat_error *err)
{
    return t->recipe->quant.enabled
               ? qat_create_training_graph(&t->graphs[i], built, &t->quant, err)
               : qat_graph_clone(&t->graphs[i], built, err);
}

/** Build the float graph once; the others are made from it. Its text is for the checkpoint. */
static qat_status build_graphs(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_graph *built = NULL;
    bool const kept = t->options->resume && qat_net_is_imported(r);
    qat_status st = kept ? network_of_checkpoint(t, &built, err)
                         : qat_network_build(&built, t->registry, r, &t->input, err);
    if (!st)
        st = qat_training_fits(built, t->options->memory, err);
    if (!st)
        st = qat_task_open(&t->input, built, r, err);
    if (!st)
        st = qat_graph_write(built, &t->graph_text, err);
    if (!st)
        st = qat_graph_clone(&t->float_eval, built, err);
    for (int i = 0; !st && i < t->n_graphs; i++)
        st = build_training(t, i, built, err);
    if (!st && r->quant.enabled)
        st = qat_create_eval_graph(&t->simulated_eval, built, &t->quant, err);
    if (!st && r->quant.enabled)
        qat_simulate_integers(t->simulated_eval, true);
    if (!st && r->quant.enabled)
        st = build_integers(t, built, err);
    if (!st)
        t->training = t->graphs[0];
    qat_graph_free(built);
    return st;
}

/** The most samples that a graph of this process is fed at once. */
static int largest_part(const qat_trainer *t)
{
    int most = t->shards ? 0 : (int)t->recipe->train.batch;
    for (int i = 0; t->shards && i < t->n_graphs; i++) {
        qat_samples const s = qat_shards_samples(t->shards, i);
        most = s.end - s.begin > most ? s.end - s.begin : most;
    }
    return most;
}

/** Find the loss. A teacher may add to it; the graph in the checkpoint does not have this part. */
static qat_status find_loss(qat_trainer *t, qat_error *err)
{
    t->loss = qat_graph_find(t->training, QAT_LOSS_NAME);
    if (!*t->recipe->distill.teacher)
        return QAT_OK;
    qat_status const st = qat_teacher_open(&t->teacher, t->recipe, &t->input, largest_part(t),
                                           t->registry, t->plugins, t->options->log, err);
    if (st)
        return st;
    qat_status joined = QAT_OK;
    for (int i = t->n_graphs - 1; !joined && i >= 0; i--) {
        t->loss = qat_teacher_join(t->teacher, t->graphs[i]);
        joined = qat_graph_check(t->graphs[i], err);
    }
    return joined;
}

static qat_status plan_training(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < t->n_graphs; i++)
        st = qat_freeze_params(t->graphs[i], r->train.freeze, i ? NULL : t->options->log, err);
    if (st)
        return st;
    return t->shards ? qat_shards_plan(t->shards, t->graphs, QAT_PLAN_TRAIN, err)
                     : qat_graph_plan(t->training, (int)r->train.batch, QAT_PLAN_TRAIN, err);
}

static qat_status plan_graphs(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    int const batch = (int)r->train.eval_batch;
    qat_status st = plan_training(t, err);
    if (!st)
        st = qat_graph_plan(t->float_eval, batch, QAT_PLAN_EVAL, err);
    if (!st && t->integer_eval)
        st = qat_graph_plan(t->integer_eval, 1, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    qat_graph_init_params(t->training, (uint64_t)r->train.seed);
    qat_graph_init_params(t->float_eval,
                          0); /* parameters that training does not have: a rewrite's constants */
    if (t->integer_eval)
        qat_graph_init_params(t->integer_eval, 0);
    if (t->options->resume)
        return QAT_OK;
    st = qat_net_is_imported(r)
             ? qat_net_fill_imported(t->training, r, &t->input, t->options->log, err)
             : QAT_OK;
    return st ? st : qat_init_from_file(t->training, t->float_eval, r, t->options->log, err);
}

/** Open the plugins that the user gave, or those that his recipe names. */
static qat_status open_plugins(qat_trainer *t, qat_error *err)
{
    const qat_train_options *o = t->options;
    return o->n_plugins
               ? qat_open_registry_files(&t->registry, &t->plugins, o->plugins, o->n_plugins, err)
               : qat_open_registry(&t->registry, &t->plugins, t->recipe->plugin.path, err);
}

qat_status qat_trainer_open(qat_trainer *t, const qat_recipe *recipe,
                            const qat_train_options *options, qat_error *err)
{
    *t = (qat_trainer){.recipe = recipe,
                       .options = options,
                       .ranks = options->ranks && options->ranks->count > 1 ? options->ranks : NULL,
                       .saved_step = -1,
                       .lock = -1,
                       .best = {.step = -1},
                       .retry_at = INFINITY,
                       .log = {.fd = -1},
                       .times = {.fd = -1},
                       .waits = {.fd = -1}};
    t->started = qat_clock();
    qat_status st = qat_board_check(recipe, err);
    if (!st)
        st = set_paths(t, err);
    if (!st)
        st = open_plugins(t, err);
    if (!st)
        st = open_data(t, err);
    if (!st)
        st = open_shards(t, err);
    if (!st)
        st = plan_run(t, err);
    if (!st)
        qat_registry_set_memory(t->registry, options->memory);
    if (!st)
        st = plan_quantization(t, err);
    if (!st)
        st = build_graphs(t, err);
    if (!st)
        st = find_loss(t, err);
    if (!st)
        st = plan_graphs(t, err);
    if (!st)
        st = qat_trainer_open_optimizer(t, err);
    if (!st)
        st = qat_trainer_check_size(t, err);
    if (!st && t->async)
        st = qat_async_check_memory(t, err);
    if (!st && options->resume)
        st = qat_trainer_resume(t, err);
    if (!st)
        st = qat_trainer_check_pictures(t, err);
    if (t->ranks && !t->agreed)
        st = qat_trainer_agree(t, st, err);
    if (!st && !options->resume)
        st = start_folder(t, err);
    return st || !t->async ? st : qat_async_begin(t, err);
}

void qat_trainer_close(qat_trainer *t)
{
    qat_trainer_free_waiting(t);
    qat_quant_log_close(t->quant_log);
    qat_board_close(t->board);
    qat_log_close(&t->log);
    qat_log_close(&t->times);
    qat_log_close(&t->waits);
    if (t->lock >= 0)
        (void)close(t->lock);
    qat_loader_free(t->loader);
    qat_dataset_close(t->train_data);
    qat_dataset_close(t->test_data);
    qat_data_digest_free(&t->digests[QAT_SPLIT_TRAIN]);
    qat_data_digest_free(&t->digests[QAT_SPLIT_TEST]);
    qat_optimizer_free(t->optimizer);
    qat_teacher_free(t->teacher);
    for (int i = 0; t->graphs && i < t->n_graphs; i++)
        qat_graph_free(t->graphs[i]);
    free(t->graphs);
    qat_shards_free(t->shards);
    qat_async_close(t->async);
    qat_graph_free(t->float_eval);
    qat_graph_free(t->integer_eval);
    qat_graph_free(t->simulated_eval);
    qat_task_close(&t->input);
    free(t->graph_text);
    qat_registry_free(t->registry);
    qat_plugins_free(t->plugins);
}

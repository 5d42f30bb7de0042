/** One step of training: the samples of this process go through its graphs, one for each shard. */
#include "base/number.h"
#include "networks/network.h"
#include "recipe/recipe.h"
#include "task/task.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ samples */

/** Samples [begin, end) of what the loader prepared for this process. */
static qat_batch part_of(const qat_trainer *t, const qat_batch *batch, int begin, int end)
{
    const qat_dataset_info *info = qat_dataset_info_of(t->train_data);
    size_t const values = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
    size_t const at = (size_t)begin;
    qat_batch part = *batch;
    part.count = end - begin;
    part.bytes = batch->bytes ? batch->bytes + at * values : NULL;
    part.real = batch->real + at * values;
    part.labels = batch->labels + at;
    part.objects = batch->objects ? batch->objects + at : NULL;
    part.targets = batch->targets ? batch->targets + at * (size_t)batch->n_targets : NULL;
    return part;
}

/** The samples of graph i. */
static qat_batch samples_of(const qat_trainer *t, const qat_batch *batch, int i)
{
    if (!t->shards)
        return *batch;
    int const first = qat_shards_all_samples(t->shards).begin;
    qat_samples const samples = qat_shards_samples(t->shards, i);
    return part_of(t, batch, samples.begin - first, samples.end - first);
}

static qat_status feed(const qat_trainer *t, const qat_batch *batch, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < t->n_graphs; i++) {
        qat_batch const part = samples_of(t, batch, i);
        st = qat_feed_graph(t->graphs[i], &part, part.count, err);
        if (!st && t->input.task->feed)
            st = t->input.task->feed(&t->input, t->recipe, t->graphs[i], &part, err);
        if (!st && t->teacher)
            st = qat_teacher_answer(t->teacher, t->graphs[i], &part, err);
    }
    return st;
}

/* ------------------------------------------------------------------ passes */

static qat_status forward(const qat_trainer *t, const qat_run *run, qat_error *err)
{
    if (t->shards) {
        qat_shards_forward(t->shards, run);
        return qat_shards_status(t->shards, err);
    }
    qat_graph_forward(t->training, run);
    return qat_graph_run_status(t->training, err);
}

static qat_status backward(const qat_trainer *t, const qat_run *run, qat_error *err)
{
    if (t->shards) {
        qat_shards_backward(t->shards, t->loss, run);
        return qat_shards_status(t->shards, err);
    }
    qat_graph_backward(t->training, t->loss, run);
    return QAT_OK;
}

static qat_status update(const qat_trainer *t, const qat_run *run, qat_error *err)
{
    if (t->shards) {
        qat_shards_update(t->shards, run);
        return qat_shards_status(t->shards, err);
    }
    qat_graph_update(t->training, run);
    return QAT_OK;
}

/* ------------------------------------------------------------------ what came of it */

static qat_status loss_not_finite(const qat_trainer *t, double loss, qat_error *err)
{
    char what[256], value[32];
    const qat_node *where = NULL;
    for (int i = 0; !where && i < t->n_graphs; i++)
        where = qat_graph_find_nonfinite(t->graphs[i]);
    qat_format(value, sizeof value, isnan(loss) ? "NaN" : "%g", loss);
    snprintf(what, sizeof what, "the loss is %s; the first layer with such a value is %s", value,
             where ? where->name : QAT_LOSS_NAME);
    return qat_trainer_not_finite(t, t->step + 1, what, err);
}

static qat_status param_not_finite(const qat_trainer *t, const qat_node *param, double loss,
                                   qat_error *err)
{
    char what[256];
    qat_format(what, sizeof what, "parameter %s is not finite after this step (its loss was %g)",
               param->name, loss);
    return qat_trainer_not_finite(t, t->step + 1, what, err);
}

/** Count this process's answers: how many are known, and how many are right. */
static void count_answers(const qat_trainer *t, const qat_batch *batch, qat_outcome *o)
{
    for (int i = 0; t->input.task->count && i < t->n_graphs; i++) {
        qat_batch const part = samples_of(t, batch, i);
        int64_t known = 0, right = 0;
        t->input.task->count(&t->input, t->graphs[i], &part, &known, &right);
        o->known += (double)known;
        o->right += (double)right;
    }
}

void qat_trainer_add_to_tally(qat_trainer *t, const qat_outcome *o)
{
    t->tally.loss_sum += o->loss;
    t->tally.losses++;
    if (t->patience.of_loss)
        qat_plateau_add_loss(&t->plateau, o->loss);
    t->tally.samples += (int64_t)o->known;
    t->tally.correct += (int64_t)o->right;
}

/** Add up over the ranks: the counts, and who wants to stop. */
static qat_status join_outcome(qat_trainer *t, qat_outcome *o, qat_error *err)
{
    double counts[] = {o->known, o->right, t->ranks && qat_trainer_wants_stop(t)};
    qat_status const st = t->shards ? qat_shards_add_up(t->shards, counts, 3, err) : QAT_OK;
    o->known = counts[0];
    o->right = counts[1];
    t->stop_agreed = counts[2] > 0;
    return st;
}

/** An epoch may have batches that other ranks take. */
static qat_status next_batch(qat_trainer *t, const qat_batch **batch, qat_error *err)
{
    qat_status st = QAT_OK;
    do
        st = qat_loader_next(t->loader, batch, err);
    while (!st && (*batch)->count == 0 && t->async);
    return st;
}

qat_status qat_trainer_compute(qat_trainer *t, const qat_run *run, qat_outcome *o, qat_error *err)
{
    const qat_batch *batch = NULL;
    qat_status st = next_batch(t, &batch, err);
    if (!st)
        st = feed(t, batch, err);
    if (!st)
        st = forward(t, run, err);
    if (st)
        return st;
    *o = (qat_outcome){.loss = t->loss->value[0]};
    if (!isfinite(o->loss))
        return loss_not_finite(t, o->loss, err);
    st = backward(t, run, err);
    if (!st)
        count_answers(t, batch, o);
    return st;
}

qat_run qat_trainer_run(const qat_trainer *t)
{
    return (qat_run){
        .mode = QAT_MODE_TRAIN, .step = t->step, .seed = (uint64_t)t->recipe->train.seed};
}

void qat_trainer_descend(qat_trainer *t)
{
    if (qat_trainer_row_due(t, t->step + 1))
        t->tally.gradient_norm = qat_optimizer_gradient_norm(t->optimizer);
    qat_optimizer_step(t->optimizer, qat_schedule_at(&t->schedule, t->step));
}

qat_status qat_trainer_end_step(qat_trainer *t, double loss, qat_error *err)
{
    const qat_node *bad = qat_trainer_nonfinite(t);
    if (bad)
        return param_not_finite(t, bad, loss, err);
    t->step++;
    return QAT_OK;
}

qat_status qat_trainer_step(qat_trainer *t, qat_error *err)
{
    qat_outcome o;
    qat_run const run = qat_trainer_run(t);
    qat_trainer_set_bits(t, t->step, true);
    qat_status st = qat_trainer_compute(t, &run, &o, err);
    if (st)
        return st;
    qat_trainer_descend(t);
    st = update(t, &run, err);
    if (!st)
        st = join_outcome(t, &o, err);
    if (st)
        return st;
    qat_trainer_add_to_tally(t, &o);
    return qat_trainer_end_step(t, o.loss, err);
}

/**
 * Keeps checkpoints beside last.ckpt: best.ckpt of the best evaluation, and step-N.ckpt, the last
 * output.keep ones. If the file system allows it, they are second names of the same file, and take
 * space only after last.ckpt was replaced.
 *
 * best.ckpt itself contains its score. So last.ckpt, the state of a run, does not depend on which
 * others are kept.
 */
#include "checkpoint/checkpoint.h"
#include "train/trainer.h"

#include "base/files/file.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int past(const qat_bits_stage *stages, int n, int64_t step)
{
    int count = 0;
    while (count < n && stages[count].until < step)
        count++;
    return count;
}

/** How many stages of bits had ended when the last of so many steps ran. */
static int stages_past(const qat_trainer *t, int64_t step)
{
    const qat_quant_options *q = &t->quant;
    return past(q->weight_stages, q->n_weight_stages, step) +
           past(q->activation_stages, q->n_activation_stages, step);
}

/** The evaluation that counts for a step: on integers, else in simulation, else in float. */
static qat_mark mark_of(const qat_trainer *t, int64_t step, const qat_accuracy *in_float,
                        const qat_accuracy *simulated, const qat_accuracy *integer)
{
    qat_evaluated const as = integer->n > 0     ? QAT_EVALUATED_INTEGER
                             : simulated->n > 0 ? QAT_EVALUATED_SIMULATED
                                                : QAT_EVALUATED_FLOAT;
    const qat_accuracy *of[] = {in_float, simulated, integer};
    return (qat_mark){.step = in_float->n > 0 ? step : -1,
                      .stage = stages_past(t, step),
                      .as = as,
                      .task = in_float->task,
                      .score = qat_score(of[as])};
}

static qat_mark mark_now(const qat_trainer *t)
{
    return mark_of(t, t->step, &t->float_accuracy, &t->simulated_accuracy, &t->integer_accuracy);
}

/** Compare two evaluations. The network that is nearer to deployment wins, whatever its score: a
 *  float network is better than its integers, but a device does not run it; nor one of more bits.
 */
static bool exceeds(const qat_mark *a, const qat_mark *b)
{
    if (a->step < 0 || b->step < 0 || a->as != b->as)
        return a->step >= 0 && (b->step < 0 || a->as > b->as);
    if (a->stage != b->stage)
        return a->stage > b->stage;
    return qat_score_is_better(a->task, a->score, b->score);
}

/** Does this step end such an interval? The last step always does. */
static bool due(const qat_trainer *t, int64_t every)
{
    return t->step == t->plan.total || (every != INT64_MAX && t->step % every == 0);
}

/** Was there an evaluation in this step? */
static bool evaluated(const qat_trainer *t)
{
    return t->step > 0 && !t->tally.losses && due(t, t->plan.eval_every);
}

/** Is this step's row still to be written, because its evaluation was interrupted? */
static bool interrupted(const qat_trainer *t)
{
    return t->tally.losses && (due(t, t->plan.eval_every) || due(t, t->plan.log_every));
}

bool qat_trainer_is_best(const qat_trainer *t)
{
    qat_mark const now = mark_now(t);
    return t->recipe->output.best && evaluated(t) && exceeds(&now, &t->best);
}

qat_status qat_trainer_read_best(qat_trainer *t, qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_checkpoint *c = NULL;
    qat_status st = qat_run_path(path, t->dir, "best.ckpt", err);
    if (st || !t->recipe->output.best || access(path, F_OK))
        return st;
    st = qat_checkpoint_load(&c, path, err);
    if (!st)
        qat_checkpoint_set_task(c, t->input.task);
    if (!st)
        t->best =
            mark_of(t, c->step, &c->float_accuracy, &c->simulated_accuracy, &c->integer_accuracy);
    qat_checkpoint_free(c);
    return st;
}

qat_kept qat_trainer_kept(const qat_trainer *t)
{
    bool const best = qat_trainer_is_best(t);
    bool const was_best = t->recipe->output.best && t->best.step == t->step; /* before a resume */
    bool const regular = due(t, t->plan.checkpoint_every) || best || was_best;
    return (qat_kept){.best = best, .step = t->recipe->output.keep && regular && !interrupted(t)};
}

static void name_of_step(char name[64], int64_t step)
{
    snprintf(name, 64, "step-%lld.ckpt", (long long)step);
}

static qat_status prune(const qat_trainer *t, int64_t step, qat_error *err)
{
    return qat_run_prune(t->dir, step, t->recipe->output.keep, err);
}

static qat_status keep_as(const qat_trainer *t, const char *name, qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_status const st = qat_run_path(path, t->dir, name, err);
    return st ? st : qat_file_copy_atomic(t->checkpoint_path, path, err);
}

qat_status qat_trainer_keep(qat_trainer *t, qat_kept as, qat_error *err)
{
    if (!qat_trainer_leads(t))
        return QAT_OK;
    char name[64];
    qat_status st = as.best ? keep_as(t, "best.ckpt", err) : QAT_OK;
    if (!st && as.best)
        t->best = mark_now(t);
    if (st || !as.step)
        return st;
    name_of_step(name, t->step);
    st = keep_as(t, name, err);
    return st ? st : prune(t, t->step, err);
}

/* ------------------------------------------------------------------ waiting */

/** Take the first of a list out of it, and free it. */
static void remove_first(qat_waiting **list)
{
    qat_waiting *w = *list;
    *list = w->next;
    qat_writer_free(&w->bytes);
    free(w);
}

/** What a newer checkpoint makes superfluous: an older best one, and steps beyond the last `keep`.
 */
static void drop_older(qat_trainer *t, qat_kept newer)
{
    int64_t steps = newer.step;
    for (const qat_waiting *w = t->waiting; w; w = w->next)
        steps += w->as.step;
    qat_waiting **at = &t->waiting;
    while (*at) {
        qat_waiting *w = *at;
        w->as.best &= !newer.best;
        if (w->as.step && steps > t->recipe->output.keep) {
            w->as.step = false;
            steps--;
        }
        if (w->as.best || w->as.step)
            at = &w->next;
        else
            remove_first(at);
    }
}

qat_status qat_trainer_let_wait(qat_trainer *t, qat_kept as, qat_writer *bytes)
{
    if (!as.best && !as.step)
        return QAT_OK;
    qat_waiting *w = malloc(sizeof *w);
    if (!w)
        return QAT_ERR_NOMEM;
    *w = (qat_waiting){.as = as, .step = t->step, .bytes = *bytes};
    *bytes = (qat_writer){0};
    if (as.best)
        t->best = mark_now(t);
    drop_older(t, as);
    qat_waiting **end = &t->waiting;
    while (*end)
        end = &(*end)->next;
    *end = w;
    return QAT_OK;
}

static qat_status write_as(const qat_trainer *t, const qat_waiting *w, const char *name,
                           qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_status const st = qat_run_path(path, t->dir, name, err);
    return st ? st : qat_file_write_atomic(path, w->bytes.bytes, w->bytes.count, err);
}

qat_status qat_trainer_write_waiting(qat_trainer *t, qat_error *err)
{
    qat_status st = QAT_OK;
    while (!st && t->waiting) {
        const qat_waiting *w = t->waiting;
        char name[64];
        name_of_step(name, w->step);
        st = w->as.best ? write_as(t, w, "best.ckpt", err) : QAT_OK;
        if (!st && w->as.step)
            st = write_as(t, w, name, err);
        if (!st && w->as.step)
            st = prune(t, w->step, err);
        if (!st)
            remove_first(&t->waiting);
    }
    return st;
}

void qat_trainer_free_waiting(qat_trainer *t)
{
    while (t->waiting)
        remove_first(&t->waiting);
}

/**
 * Keeps checkpoints beside last.ckpt: best.ckpt of the best evaluation, and step-N.ckpt, the last
 * output.keep ones. If the file system allows it, they are second names of the same file, and take
 * space only after last.ckpt was replaced.
 *
 * best.ckpt itself contains its score. So last.ckpt, the state of a run, does not depend on which
 * others are kept.
 */
#include "train/trainer.h"

#include "base/file.h"

#include <stdio.h>
#include <unistd.h>

/** The evaluation that counts for a step: on integers, else in simulation, else in float. */
static qat_mark mark_of(int64_t step, const qat_accuracy *in_float, const qat_accuracy *simulated,
                        const qat_accuracy *integer)
{
    qat_evaluated const as = integer->n > 0     ? QAT_EVALUATED_INTEGER
                             : simulated->n > 0 ? QAT_EVALUATED_SIMULATED
                                                : QAT_EVALUATED_FLOAT;
    const qat_accuracy *of[] = {in_float, simulated, integer};
    return (qat_mark){
        .step = in_float->n > 0 ? step : -1, .as = as, .score = qat_accuracy_score(of[as])};
}

static qat_mark mark_now(const qat_trainer *t)
{
    return mark_of(t->step, &t->float_accuracy, &t->simulated_accuracy, &t->integer_accuracy);
}

/** Compare two evaluations. The network that is nearer to deployment wins, whatever its score: a
 *  float network is better than its integers, but a device does not run it. */
static bool exceeds(const qat_mark *a, const qat_mark *b)
{
    if (a->step < 0 || b->step < 0 || a->as != b->as)
        return a->step >= 0 && (b->step < 0 || a->as > b->as);
    return a->score > b->score;
}

/** Was there an evaluation in this step? */
static bool evaluated(const qat_trainer *t)
{
    int64_t const every = t->plan.eval_every;
    return t->step > 0 && !t->tally.losses &&
           (t->step == t->plan.total || (every != INT64_MAX && t->step % every == 0));
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
        t->best =
            mark_of(c->step, &c->float_accuracy, &c->simulated_accuracy, &c->integer_accuracy);
    qat_checkpoint_free(c);
    return st;
}

static qat_status keep_as(const qat_trainer *t, const char *name, qat_error *err)
{
    char path[QAT_RUN_PATH_MAX];
    qat_status const st = qat_run_path(path, t->dir, name, err);
    return st ? st : qat_file_copy_atomic(t->checkpoint_path, path, err);
}

static qat_status keep_best(qat_trainer *t, qat_error *err)
{
    qat_status const st = keep_as(t, "best.ckpt", err);
    if (!st)
        t->best = mark_now(t);
    return st;
}

qat_status qat_trainer_keep(qat_trainer *t, qat_error *err)
{
    char name[64];
    int64_t const keep = t->recipe->output.keep;
    qat_status st = qat_trainer_is_best(t) ? keep_best(t, err) : QAT_OK;
    if (st || !keep)
        return st;
    snprintf(name, sizeof name, "step-%lld.ckpt", (long long)t->step);
    st = keep_as(t, name, err);
    return st ? st : qat_run_prune(t->dir, t->step, keep, err);
}

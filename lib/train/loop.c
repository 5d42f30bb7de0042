/** The training loop. */
#include "base/number.h"
#include "base/options.h"
#include "networks/network.h"
#include "recipe/recipe.h"
#include "task/task.h"
#include "train/asynchronous.h"
#include "train/board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_SECONDS = 10 }; /* after a checkpoint could not be written */

/* ------------------------------------------------------------------ telling */

static void tell(const qat_trainer *t, qat_train_progress *p)
{
    if (!t->options->progress)
        return;
    p->samples_per_second = t->samples_per_second;
    if (t->samples_per_second > 0)
        p->eta = (double)(t->plan.total - t->step) * (double)t->recipe->train.batch /
                 t->samples_per_second;
    t->options->progress(t->options->context, p);
}

/** Percent of the batches since the last row, if the task judges answers during training. */
static double tallied_accuracy(const qat_trainer *t)
{
    const qat_tally *y = &t->tally;
    if (!t->input.task->count)
        return NAN;
    return y->samples ? 100.0 * (double)y->correct / (double)y->samples : 0;
}

/** The progress between two rows. */
static qat_train_progress tallied(const qat_trainer *t, qat_event event)
{
    const qat_tally *y = &t->tally;
    return (qat_train_progress){.event = event,
                                .step = t->step,
                                .steps = t->plan.total,
                                .epoch = (double)t->step / (double)t->plan.per_epoch,
                                .lr = qat_schedule_at(&t->schedule, t->step > 0 ? t->step - 1 : 0),
                                .loss = y->losses ? y->loss_sum / (double)y->losses : 0,
                                .gradient_norm = y->gradient_norm,
                                .accuracy = tallied_accuracy(t),
                                .seconds = qat_trainer_seconds(t)};
}

bool qat_trainer_wants_stop(const qat_trainer *t)
{
    return t->options->stop && t->options->stop(t->options->context);
}

/** Ranks that share every step all stop after the same one: that in which the first was asked. */
static bool asked_to_stop(const qat_trainer *t)
{
    bool const agrees = t->ranks && !t->async;
    return t->stop_agreed || (!agrees && qat_trainer_wants_stop(t));
}

/** Called during evaluation; returns false if the run must stop. */
static bool eval_tick(void *context, int64_t done, int64_t total)
{
    qat_trainer *t = context;
    qat_train_progress p = tallied(t, QAT_EVENT_EVAL);
    p.done = done;
    p.total = total;
    tell(t, &p);
    if (t->step < t->plan.total) /* the last evaluation is finished */
        t->stopped = t->stopped || asked_to_stop(t);
    return !t->stopped;
}

const char *qat_trainer_kept_text(const qat_trainer *t, char *text, size_t max)
{
    if (t->saved_step >= 0)
        snprintf(text, max, "the checkpoint of step %lld stays: %s", (long long)t->saved_step,
                 t->checkpoint_path);
    else
        snprintf(text, max, "no checkpoint was written yet");
    return text;
}

/** Warn about a file that cannot be written now. The run continues, and writing is tried again. */
static void warn(const qat_trainer *t, const qat_error *what)
{
    char text[1024], kept[QAT_RUN_PATH_MAX + 64];
    qat_train_progress p = tallied(t, QAT_EVENT_WARNING);
    snprintf(text, sizeof text, "step %lld: %.400s; %s; training continues", (long long)t->step,
             what->message, qat_trainer_kept_text(t, kept, sizeof kept));
    p.message = text;
    tell(t, &p);
}

/** The error at the end of a run whose checkpoint cannot be written. */
static qat_status not_saved(const qat_trainer *t, qat_status st, const qat_error *what,
                            qat_error *err)
{
    char kept[QAT_RUN_PATH_MAX + 64];
    return qat_fail(err, st, "step %lld: %.400s; %s", (long long)t->step, what->message,
                    qat_trainer_kept_text(t, kept, sizeof kept));
}

/* ------------------------------------------------------------------ when */

/**
 * After `step` steps, is it time for something that happens `every` steps? At the end of the run it
 * always is.
 */
static bool due_at(const qat_trainer *t, int64_t step, int64_t every)
{
    return step == t->plan.total || (every != INT64_MAX && step % every == 0);
}

static bool due(const qat_trainer *t, int64_t every)
{
    return due_at(t, t->step, every);
}

bool qat_trainer_row_due(const qat_trainer *t, int64_t step)
{
    return due_at(t, step, t->plan.eval_every) || due_at(t, step, t->plan.log_every);
}

/* ------------------------------------------------------------------ one step */

qat_status qat_trainer_not_finite(const qat_trainer *t, int64_t step, const char *what,
                                  qat_error *err)
{
    char kept[QAT_RUN_PATH_MAX + 64];
    return qat_fail(err, QAT_ERR_NUMERIC, "step %lld: %.300s; %.300s", (long long)step, what,
                    qat_trainer_kept_text(t, kept, sizeof kept));
}

static void measure_speed(qat_trainer *t, double seconds)
{
    double const now = (double)t->recipe->train.batch / (seconds > 1e-9 ? seconds : 1e-9);
    double const old = t->samples_per_second;
    t->samples_per_second = old > 0 ? 1 / (0.98 / old + 0.02 / now) : now;
}

/* ------------------------------------------------------------------ rows and checkpoints */

/** Evaluate the networks of this step on the test split. A score that is not finite ends the run
 *  before anything is saved. */
static qat_status evaluate(qat_trainer *t, qat_train_progress *row, qat_error *err)
{
    qat_error inner = {0};
    qat_status const st = qat_trainer_evaluate(t, eval_tick, row, &inner);
    if (st == QAT_ERR_NUMERIC)
        return qat_trainer_not_finite(t, t->step, inner.message, err);
    return st ? qat_fail(err, st, "%s", inner.message) : QAT_OK;
}

/**
 * A row was added to a log. If the file could not be written (warned once), it is written later.
 */
static qat_status logged(qat_trainer *t, qat_status st, const qat_error *what, qat_error *err)
{
    if (st == QAT_ERR_IO && !t->log_behind)
        warn(t, what);
    t->log_behind = st == QAT_ERR_IO;
    return st && !t->log_behind ? qat_fail(err, st, "%s", what->message) : QAT_OK;
}

static qat_status log_row(qat_trainer *t, const qat_train_progress *row, qat_error *err)
{
    qat_error inner = {0};
    qat_status st = qat_board_row(t->board, row, err);
    if (st)
        return st;
    st = qat_trainer_log_row(t, row, &inner);
    return logged(t, st, &inner, err);
}

/** Write rows of quant.csv if they are due. */
static qat_status log_quantization(qat_trainer *t, qat_error *err)
{
    qat_error inner = {0};
    if (!t->quant_log || !due(t, t->plan.quant_log_every))
        return QAT_OK;
    qat_status const st = qat_quant_log_rows(t->quant_log, t->step, &inner);
    return logged(t, st, &inner, err);
}

/** How many changes of quantization are past, and whether there are more to come. */
static int64_t stage_of(const qat_trainer *t, bool *last)
{
    int64_t changes[QAT_QUANT_CHANGES], stage = 0;
    int const n = qat_quant_changes(t->training, changes);
    *last = true;
    for (int i = 0; i < n; i++) {
        stage += t->step > changes[i];
        *last &= t->step > changes[i] || changes[i] == INT64_MAX;
    }
    return stage;
}

/** Check whether this evaluation brought an improvement. */
static void look_for_plateau(qat_trainer *t, const qat_train_progress *row)
{
    char text[96];
    bool last;
    int64_t const stage = stage_of(t, &last);
    const qat_accuracy *tested = row->integer.n     ? &row->integer
                                 : row->simulated.n ? &row->simulated
                                                    : &row->in_float;
    if (!t->patience.drop && !t->patience.stop)
        return;
    qat_plateau_see(&t->plateau, &t->patience, qat_main_figure(tested), stage, last);
    qat_trainer_apply_plateau(t);
    if (!t->plateau.ended || !t->options->log)
        return;
    snprintf(text, sizeof text, "step %lld: no improvement in %lld evaluations, the run ends",
             (long long)t->step, (long long)t->plateau.since);
    t->options->log->line(t->options->log->context, text);
}

static qat_status write_row(qat_trainer *t, qat_error *err)
{
    bool const evaluates = due(t, t->plan.eval_every);
    if (!qat_trainer_row_due(t, t->step))
        return QAT_OK;
    qat_train_progress row = tallied(t, QAT_EVENT_ROW);
    qat_status st = evaluates ? evaluate(t, &row, err) : QAT_OK;
    if (st || (evaluates && !row.evaluated))
        return st;    /* a resumed run repeats an interrupted evaluation */
    if (t->step == 0) /* nothing was trained yet: no loss */
        row.loss = row.accuracy = row.gradient_norm = NAN;
    row.seconds = qat_trainer_seconds(t);
    st = qat_trainer_log_waits(t, err);
    if (!st)
        st = log_row(t, &row, err);
    if (st)
        return st;
    if (t->step > 0)
        t->last_loss = row.loss;
    t->tally = (qat_tally){0};
    tell(t, &row);
    if (row.evaluated && t->step > 0)
        look_for_plateau(t, &row);
    return QAT_OK;
}

static bool ends(const qat_trainer *t)
{
    return t->stopped || t->step == t->plan.total;
}

/**
 * Write the checkpoint. If that fails, the previous one stays; there is a warning, and writing is
 * soon tried again. At the end of the run it is an error.
 */
static qat_status save(qat_trainer *t, qat_error *err)
{
    qat_error inner = {0};
    qat_status const st = qat_trainer_save(t, &inner);
    qat_train_progress p = tallied(t, QAT_EVENT_CHECKPOINT);
    p.path = t->checkpoint_path;
    t->retry_at = st == QAT_ERR_IO ? qat_clock() + RETRY_SECONDS : INFINITY;
    if (!st)
        tell(t, &p);
    if (st != QAT_ERR_IO || ends(t))
        return st ? not_saved(t, st, &inner, err) : QAT_OK;
    warn(t, &inner);
    return QAT_OK;
}

static qat_status save_if_due(qat_trainer *t, qat_error *err)
{
    bool const saves = t->stopped || due(t, t->plan.checkpoint_every) || qat_trainer_is_best(t) ||
                       qat_clock() >= t->retry_at;
    return saves ? save(t, err) : QAT_OK;
}

/**
 * For a resumed run: finish what the interruption left undone in its last step. The row may be
 * missing, best.ckpt and step-N.ckpt as well: a kill may come between any two files.
 */
static qat_status finish_step(qat_trainer *t, qat_error *err)
{
    bool const unwritten = t->tally.losses > 0 && qat_trainer_row_due(t, t->step);
    if (t->step == 0 || t->step != t->saved_step)
        return QAT_OK;
    qat_status st = unwritten ? write_row(t, err) : QAT_OK;
    if (st)
        return st;
    if (t->stopped || (unwritten && due(t, t->plan.checkpoint_every)) || qat_trainer_is_best(t))
        return save(t, err);
    st = qat_trainer_keep(t, qat_trainer_kept(t), err);
    return st == QAT_ERR_IO ? save(t, err) : st; /* which warns, and tries again later */
}

/**
 * If a run begins with weights from a file, its first row is for step 0: the accuracy before any
 * training. With train.epochs = 0 the run ends here, and the checkpoint is written.
 */
static qat_status evaluate_init(qat_trainer *t, qat_error *err)
{
    if (t->step > 0 || !qat_net_has_weights(t->recipe) || qat_trainer_last_row(t) >= 0)
        return QAT_OK;
    qat_status st = write_row(t, err);
    if (!st && (t->stopped || t->plan.total == 0))
        st = save(t, err);
    return st;
}

static qat_status run_steps(qat_trainer *t, qat_error *err)
{
    qat_status st = finish_step(t, err);
    if (!st)
        st = evaluate_init(t, err);
    while (!st && !t->stopped && t->step < t->plan.total) {
        double const before = qat_clock();
        st = t->async ? qat_async_step(t, err) : qat_trainer_step(t, err);
        if (st)
            break;
        measure_speed(t, qat_clock() - before);
        qat_train_progress p = tallied(t, QAT_EVENT_STEP);
        tell(t, &p);
        st = write_row(t, err);
        if (!st)
            st = log_quantization(t, err);
        t->stopped = t->stopped || asked_to_stop(t);
        if (!st)
            st = save_if_due(t, err);
    }
    if (!st && !t->stopped)
        qat_board_end(t->board);
    return st ? st : qat_trainer_flush_logs(t, err);
}

/** The training of this process. */
static qat_status run(qat_trainer *t, qat_error *err)
{
    if (qat_async_works(t))
        return qat_async_work(t, err);
    qat_status const st = run_steps(t, err);
    return st || !t->async ? st : qat_async_end(t, err);
}

/** Report where a resumed run continues. */
static void tell_of_resuming(const qat_trainer *t)
{
    char text[128];
    bool const done = t->step == t->plan.total && t->tally.losses == 0;
    if (!t->options->resume || !t->options->log)
        return;
    snprintf(text, sizeof text,
             done ? "step %lld of %lld: nothing left to do" : "continuing at step %lld of %lld",
             (long long)t->step, (long long)t->plan.total);
    t->options->log->line(t->options->log->context, text);
}

/** Let somebody look at the training graph. */
static void tell_of_beginning(const qat_trainer *t)
{
    qat_train_progress p = tallied(t, QAT_EVENT_BEGIN);
    p.training = t->training;
    tell(t, &p);
}

static void warn_of(const qat_trainer *t, const char *text)
{
    qat_train_progress p = tallied(t, QAT_EVENT_WARNING);
    p.message = text;
    tell(t, &p);
}

/** Warn if a delay is longer than the run but not "never". */
static void tell_of_delay(const qat_trainer *t, const char *what, int64_t delay)
{
    char text[160];
    if (!t->recipe->quant.enabled || delay < t->plan.total || delay == INT64_MAX)
        return;
    snprintf(text, sizeof text, "quantization of %s starts at step %lld, but the run ends at %lld",
             what, (long long)delay, (long long)t->plan.total);
    warn_of(t, text);
}

/** Warn if bits would still fall after the run. */
static void tell_of_bits(const qat_trainer *t, const char *key, const qat_bits_stage *stages, int n)
{
    char text[160];
    if (!t->recipe->quant.enabled || !n || stages[n - 1].until < t->plan.total)
        return;
    snprintf(text, sizeof text,
             "quant.%s ends at step %lld, but the run ends at %lld: the model has more bits", key,
             (long long)stages[n - 1].until, (long long)t->plan.total);
    warn_of(t, text);
}

/** Warn if the learning rate or the end of the run wait for something that cannot happen. */
static void tell_of_schedule(const qat_trainer *t)
{
    const qat_schedule *s = &t->schedule;
    char text[160];
    if (s->n_milestones && s->milestones[s->n_milestones - 1] >= t->plan.total) {
        snprintf(text, sizeof text, "train.milestones has step %lld, but the run ends at %lld",
                 (long long)s->milestones[s->n_milestones - 1], (long long)t->plan.total);
        warn_of(t, text);
    }
    tell_of_bits(t, "weight_bits_schedule", t->quant.weight_stages, t->quant.n_weight_stages);
    tell_of_bits(t, "activation_bits_schedule", t->quant.activation_stages,
                 t->quant.n_activation_stages);
    if ((t->patience.drop || t->patience.stop) && t->plan.eval_every >= t->plan.total) {
        snprintf(
            text, sizeof text,
            "a plateau cannot be seen: train.eval_every is %lld steps, and the run ends at %lld",
            (long long)t->plan.eval_every, (long long)t->plan.total);
        warn_of(t, text);
    }
}

/** Quantization begins before the observed ranges have settled, in a run that is too short to make
 *  up for it. */
static void tell_of_few_steps(const qat_trainer *t)
{
    enum { RUN = 5, START = 4 }; /* in lengths of the average; a share of the run */
    int64_t const total = t->plan.total, start = t->quant.activation_delay;
    double const memory = 1 / (1 - t->quant.ema_decay);
    char text[256];
    if (!t->recipe->quant.enabled || (double)total >= RUN * memory || (double)start >= memory ||
        start >= total / START || *t->recipe->train.init || t->options->resume)
        return;
    qat_format(text, sizeof text,
               "quantization begins at step %lld of %lld, but ranges are averages over some %.0f "
               "steps (quant.ema_decay = %g): quant.quant_delay = 50%% lets them settle first",
               (long long)start, (long long)total, memory, t->quant.ema_decay);
    warn_of(t, text);
}

/** Let the task look at what a network learned. */
static qat_status look_at(const qat_trainer *t, const char *network, const qat_accuracy *a,
                          qat_error *err)
{
    char text[400] = "";
    qat_status const st = t->input.task->remark(text, sizeof text, network, a, t->test_data, err);
    size_t const n = strlen(text);
    if (st || !n)
        return st;
    snprintf(text + n, sizeof text - n, "%s",
             t->plan.quant_start < t->plan.total / 4
                 ? "; try quant.quant_delay = 50%, more train.epochs or a lower train.lr"
                 : "; try more train.epochs or a lower train.lr");
    warn_of(t, text);
    return QAT_OK;
}

static qat_status tell_of_result(const qat_trainer *t, qat_error *err)
{
    if (t->stopped || t->step < t->plan.total || !t->input.task->remark || !qat_trainer_leads(t))
        return QAT_OK;
    qat_status const st = look_at(t, "float", &t->float_accuracy, err);
    return st || !t->integer_accuracy.n ? st : look_at(t, "quantized", &t->integer_accuracy, err);
}

qat_status qat_train(const qat_recipe *recipe, const qat_train_options *options,
                     qat_train_result *result, qat_error *err)
{
    qat_trainer t;
    qat_train_result ignored;
    result = result ? result : &ignored;
    *result = (qat_train_result){0};
    qat_train_options own;
    qat_status st =
        qat_options_copy(&own, sizeof own, options, QAT_SIZE_UP_TO(qat_train_options, memory),
                         "qat_train_options", err);
    if (st)
        return st;
    st = qat_trainer_open(&t, recipe, &own, err);
    int64_t const begun = t.step;
    if (!st) {
        tell_of_resuming(&t);
        tell_of_delay(&t, "weights", t.quant.weight_delay);
        tell_of_delay(&t, "activations", t.quant.activation_delay);
        tell_of_schedule(&t);
        tell_of_few_steps(&t);
        tell_of_beginning(&t);
        st = run(&t, err);
        if (!st && t.step > begun)
            st = tell_of_result(&t, err);
    }
    result->step = t.step;
    result->steps = t.plan.total;
    result->float_accuracy = t.float_accuracy;
    result->integer_accuracy = t.integer_accuracy;
    result->simulated_accuracy = t.simulated_accuracy;
    result->classes = t.input.classes;
    result->loss = t.last_loss;
    result->seconds = t.step > begun ? qat_trainer_seconds(&t) : t.seconds_before;
    memcpy(result->checkpoint, t.checkpoint_path, sizeof result->checkpoint);
    qat_trainer_close(&t);
    return st;
}

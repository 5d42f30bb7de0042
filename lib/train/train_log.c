/**
 * log.csv has the numbers of the run, and the checkpoint contains it. times.csv has the times; it
 * is separate, so that the same run gives the same log.csv and the same checkpoint.
 */
#include "train/asynchronous.h"
#include "train/board.h"

#include "base/files/file.h"
#include "base/number.h"
#include "checkpoint/checkpoint.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char times_header[] = "step,seconds,samples_per_second\n";
static const char waits_header[] = "step,rank,seconds_waited,bytes_sent\n";

enum {
    TIMES_MAX = 1 << 28
}; /* limit for the bytes of an old times.csv; beyond it, times start at 0 again */

/* ------------------------------------------------------------------ opening */

/** NULL: the logs stay in memory. What a run does next follows from them, in all ranks. */
static const char *log_dir(const qat_trainer *t)
{
    return qat_trainer_leads(t) ? t->dir : NULL;
}

/** The length of the old rows up to `step`, complete lines only; *second: in the last one's second
 *  column. */
static size_t rows_until(const char *text, const char *header, int64_t step, double *second)
{
    size_t const n = strlen(header);
    const char *at = text + n, *end;
    if (strncmp(text, header, n) != 0)
        return 0;
    for (; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char *comma;
        if (strtoll(at, &comma, 10) > step || *comma != ',')
            break;
        *second = qat_number_of(comma + 1, NULL);
    }
    return (size_t)(at - text);
}

/** A run that continues keeps its times. If they are lost, times start at 0 again. */
static qat_status open_times(qat_trainer *t, qat_error *err)
{
    char path[sizeof t->times.path];
    uint8_t *old = NULL;
    size_t count = 0;
    double seconds = 0;
    (void)snprintf(path, sizeof path, "%s/times.csv", t->dir);
    if (t->step > 0 && log_dir(t) && !qat_file_read(path, TIMES_MAX, &old, &count, NULL))
        count = rows_until((const char *)old, times_header, t->step, &seconds);
    t->seconds_before = isfinite(seconds) ? seconds : 0;
    qat_status st =
        qat_log_open(&t->times, log_dir(t), "times.csv", count ? (char *)old : times_header,
                     count ? count : sizeof times_header - 1, err);
    free(old);
    return st ? st : qat_log_flush(&t->times, err);
}

/** The figures of a task that are columns: of the float network, on integers, simulated. */
static void write_columns(qat_writer *w, const qat_figure *f)
{
    qat_write_text(w, "float_%s,integer_%s,simulated_%s,", f->column, f->column, f->column);
}

static char *header_of(const qat_task *task)
{
    qat_writer w = {0};
    qat_write_text(&w, "step,epoch,lr,loss,train_accuracy,");
    write_columns(&w, &task->figures[task->main]);
    if (task->logs_both)
        write_columns(&w, &task->figures[task->also]);
    qat_write_text(&w, "gradient_norm\n");
    qat_write_u8(&w, 0);
    if (w.failed)
        qat_writer_free(&w);
    return (char *)w.bytes;
}

/** Check the columns: a log from an older version has others. */
static qat_status same_columns(const qat_trainer *t, const char *text, const char *expected,
                               qat_error *err)
{
    if (!strncmp(text, expected, strlen(expected)))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: its log has other columns: an older version of this program began the "
                    "run. Start a run in another folder with these weights: train.init (qat-train "
                    "--init)",
                    t->checkpoint_path);
}

/** As times.csv, a run that continues keeps its rows. */
static qat_status open_waits(qat_trainer *t, qat_error *err)
{
    char path[sizeof t->waits.path];
    uint8_t *old = NULL;
    size_t count = 0;
    double ignored;
    const char *header = t->async ? qat_async_header : waits_header;
    (void)snprintf(path, sizeof path, "%s/ranks.csv", t->dir);
    if (t->step > 0 && log_dir(t) && !qat_file_read(path, TIMES_MAX, &old, &count, NULL))
        count = rows_until((const char *)old, header, t->step, &ignored);
    qat_status const st =
        qat_log_open(&t->waits, log_dir(t), "ranks.csv", count ? (char *)old : header,
                     count ? count : strlen(header), err);
    free(old);
    return st ? st : qat_log_flush(&t->waits, err);
}

qat_status qat_trainer_open_logs(qat_trainer *t, const char *text, qat_error *err)
{
    char *header = header_of(t->input.task);
    qat_status st = header ? QAT_OK : qat_out_of_memory(err, "log.csv");
    if (!st && text)
        st = same_columns(t, text, header, err);
    text = text ? text : header;
    if (!st)
        st = qat_log_open(&t->log, log_dir(t), "log.csv", text, strlen(text), err);
    free(header);
    if (!st)
        st = qat_log_flush(&t->log, err);
    if (!st)
        st = open_times(t, err);
    return st || !t->ranks ? st : open_waits(t, err);
}

qat_status qat_trainer_open_quant_log(qat_trainer *t, const qat_checkpoint *from, qat_error *err)
{
    if (!t->recipe->quant.enabled || t->plan.quant_log_every == INT64_MAX || !qat_trainer_leads(t))
        return QAT_OK;
    qat_status const st = qat_quant_log_open(&t->quant_log, t->training, t->dir, from, err);
    if (!st && from)
        qat_quant_log_restore(t->quant_log, from);
    return st;
}

/* ------------------------------------------------------------------ rows */

int64_t qat_trainer_last_row(const qat_trainer *t)
{
    const char *text = (const char *)t->log.text.bytes;
    size_t at = t->log.text.count;
    for (at = at ? at - 1 : 0; at > 0 && text[at - 1] != '\n';)
        at--;
    return at ? strtoll(text + at, NULL, 10) : -1;
}

/** A column that may be empty. */
static void write_figure(qat_writer *w, double figure)
{
    qat_write_text(w, isnan(figure) ? "," : ",%.6g", figure);
}

static void write_figures(qat_writer *w, const qat_train_progress *row, int figure)
{
    write_figure(w, qat_figure_of(&row->in_float, figure));
    write_figure(w, qat_figure_of(&row->integer, figure));
    write_figure(w, qat_figure_of(&row->simulated, figure));
}

qat_status qat_trainer_log_row(qat_trainer *t, const qat_train_progress *row, qat_error *err)
{
    qat_writer *w = &t->log.text;
    const qat_task *task = t->input.task;
    qat_write_text(w, "%lld,%.9g,%.9g,", (long long)row->step, row->epoch, row->lr);
    if (!isnan(row->loss))
        qat_write_text(w, "%.17g", row->loss);
    write_figure(w, row->accuracy);
    write_figures(w, row, task->main);
    if (task->logs_both)
        write_figures(w, row, task->also);
    qat_write_text(w, ",");
    if (!isnan(row->gradient_norm))
        qat_write_text(w, "%.9g", row->gradient_norm);
    qat_write_text(w, "\n");
    qat_write_text(&t->times.text, "%lld,%.2f,%.6g\n", (long long)row->step, row->seconds,
                   t->samples_per_second);
    return qat_trainer_flush_logs(t, err);
}

/** How long each of the ranks has waited that share every step. */
static qat_status log_shared_waits(qat_trainer *t, qat_error *err)
{
    int const n = t->ranks->count;
    double *of_ranks = calloc(2 * (size_t)n, sizeof *of_ranks);
    if (!of_ranks)
        return qat_out_of_memory(err, "ranks.csv");
    qat_shards_cost const own = qat_shards_take_cost(t->shards);
    of_ranks[2 * t->ranks->rank] = own.waited;
    of_ranks[2 * t->ranks->rank + 1] = (double)own.bytes;
    qat_status const st = qat_shards_add_up(t->shards, of_ranks, 2 * n, err);
    for (int rank = 0; !st && rank < n; rank++)
        qat_write_text(&t->waits.text, "%lld,%d,%.3f,%.0f\n", (long long)t->step, rank,
                       of_ranks[2 * rank], of_ranks[2 * rank + 1]);
    free(of_ranks);
    return st;
}

qat_status qat_trainer_log_waits(qat_trainer *t, qat_error *err)
{
    if (t->async)
        qat_async_write_rows(t, &t->waits.text);
    return t->ranks && !t->async ? log_shared_waits(t, err) : QAT_OK;
}

qat_status qat_trainer_flush_logs(qat_trainer *t, qat_error *err)
{
    qat_status st = qat_log_flush(&t->log, err);
    if (!st && t->ranks)
        st = qat_log_flush(&t->waits, err);
    if (!st)
        st = qat_log_flush(&t->times, err);
    if (!st && t->quant_log)
        st = qat_quant_log_flush(t->quant_log, err);
    return st ? st : qat_board_flush(t->board, err);
}

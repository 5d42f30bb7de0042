/** The results: gathers them from the jobs' folders and writes the three tables. */
#include "tools/sweep/sweep.h"

#include "base/files/file.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** Seconds of training: the second column of the last line of times.csv. */
static double seconds_of(const char *dir)
{
    char path[SWEEP_PATH_MAX];
    double seconds = -1;
    uint8_t *bytes = NULL;
    size_t count;
    snprintf(path, sizeof path, "%.900s/times.csv", dir);
    if (qat_file_read(path, (size_t)1 << 30, &bytes, &count, NULL))
        return -1;
    for (const char *line = (const char *)bytes; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *comma = line + strcspn(line, ",\n");
        char *end = NULL;
        double const number = *comma == ',' ? qat_number_of(comma + 1, &end) : -1;
        if (end && end != comma + 1) /* not the title of the column */
            seconds = number;
    }
    free(bytes);
    return seconds;
}

/** The size of the exported model, once it is evaluated. */
static qat_status collect_size(const sweep_job *job, qat_results *r, int row, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    struct stat model, evaluation;
    snprintf(path, sizeof path, "%.900s/eval-qm.out", job->dir);
    if (stat(path, &evaluation))
        return QAT_OK;
    snprintf(path, sizeof path, "%.900s/model.qm", job->dir);
    return stat(path, &model) ? QAT_OK
                              : qat_results_set(r, row, "qm_bytes", (double)model.st_size, err);
}

static qat_status collect_job(const sweep_job *job, qat_results *r, int row, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    snprintf(path, sizeof path, "%.900s/eval-qm.out", job->dir);
    qat_status st = qat_results_read(r, row, path, err);
    snprintf(path, sizeof path, "%.900s/eval.out", job->dir);
    if (!st)
        st = qat_results_read(r, row, path, err);
    if (!st)
        st = collect_size(job, r, row, err);
    snprintf(path, sizeof path, "%.900s/bench.out", job->dir);
    if (!st)
        st = qat_results_read_latency(r, row, path, err);
    snprintf(path, sizeof path, "%.900s/bench-float.out", job->dir);
    if (!st)
        st = qat_results_read_latency(r, row, path, err);
    snprintf(path, sizeof path, "%.900s/budget.json", job->dir);
    if (!st && job->budgeted)
        st = qat_results_read(r, row, path, err);
    snprintf(path, sizeof path, "%.900s/train.out", job->dir);
    FILE *trained = fopen(path, "r");
    if (trained)
        fclose(trained);
    if (!st && trained && seconds_of(job->dir) >= 0)
        st = qat_results_set(r, row, "train_seconds", seconds_of(job->dir), err);
    return st;
}

qat_status sweep_collect(const sweep *s, qat_results *r, qat_error *err)
{
    qat_status st = QAT_OK;
    qat_results_init(r, &s->grid, s->seeds);
    for (int i = 0; i < s->n_jobs && !st; i++)
        st = collect_job(&s->jobs[i], r, i, err);
    return st;
}

/* ------------------------------------------------------------------ columns */

/** Is the column printed by default? Not if it is a count, or repeats what top-1 says. */
static bool is_usual(const char *name)
{
    static const char *const left_out[] = {"n", "multiply_adds", "train_seconds"};
    size_t const n = strlen(name);
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        if (!strcmp(name, left_out[i]))
            return false;
    return n < 4 || strcmp(name + n - 4, "top5") != 0;
}

static qat_status choose_columns(const sweep *s, const qat_results *r, const char *names,
                                 int *columns, int *n, qat_error *err)
{
    char known[256] = "", name[64];
    *n = 0;
    for (int i = 0; i < r->n_columns; i++) {
        size_t const used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", r->columns[i]);
        if (!names && is_usual(r->columns[i]))
            columns[(*n)++] = i;
    }
    for (const char *at = names; at && *at && r->n_columns;) {
        size_t const length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        int const column = qat_results_column(r, name);
        if (column < 0 && sweep_unfinished(s))
            fprintf(stderr,
                    "qat-sweep: --columns %s: no run has this column yet; the columns so far: %s\n",
                    name, known);
        else if (column < 0 || *n == QAT_RESULTS_MAX_COLUMNS)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "--columns %s: no such column; the columns are %s", name, known);
        else
            columns[(*n)++] = column;
        at += length + (at[length] == ',');
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ files */

static qat_status save(const sweep *s, const char *name, const char *text, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    snprintf(path, sizeof path, "%.900s/%s", s->out, name);
    return qat_file_write_atomic(path, text, strlen(text), err);
}

static qat_status save_table(const sweep *s, const qat_results *r, const char *names, int baseline,
                             qat_error *err)
{
    int columns[QAT_RESULTS_MAX_COLUMNS], n;
    char *text = NULL;
    qat_status st = choose_columns(s, r, names, columns, &n, err);
    if (!st)
        st = qat_results_markdown(r, columns, n, baseline, &text, err);
    if (!st) {
        fputs(text, stdout);
        st = save(s, "results.md", text, err);
    }
    free(text);
    return st;
}

/** Has the results.csv that is there lines below its title? */
static bool has_results(const sweep *s)
{
    char path[SWEEP_PATH_MAX];
    uint8_t *bytes = NULL;
    size_t count = 0;
    snprintf(path, sizeof path, "%.900s/results.csv", s->out);
    if (qat_file_read(path, (size_t)1 << 30, &bytes, &count, NULL))
        return false;
    const uint8_t *title = memchr(bytes, '\n', count);
    bool const found = title && title - bytes + 1 < (ptrdiff_t)count;
    free(bytes);
    return found;
}

qat_status sweep_check_table(const sweep *s, const qat_results *r, qat_error *err)
{
    if (r->n_columns || !has_results(s))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "none of these runs is in %.300s, and its results.csv has others: --table "
                    "needs the recipes and --set of the sweep that made them",
                    s->out);
}

qat_status sweep_report(const sweep *s, const qat_results *r, const char *columns, int baseline,
                        qat_error *err)
{
    char *csv = NULL, *json = NULL;
    qat_status st = qat_results_csv(r, &csv, err);
    if (!st)
        st = qat_results_json(r, baseline, &json, err);
    if (!st)
        st = save(s, "results.csv", csv, err);
    if (!st)
        st = save(s, "results.json", json, err);
    if (!st)
        st = save_table(s, r, columns, baseline, err);
    free(csv);
    free(json);
    return st;
}

/** The results: columns that are added as they are read, and statistics over seeds. */
#include "tools/sweep/results.h"

#include "base/files/file.h"
#include "base/number.h"
#include "qat/task.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void qat_results_init(qat_results *r, const qat_sweep_grid *grid, int seeds)
{
    *r = (qat_results){.grid = grid, .seeds = seeds};
}

void qat_results_free(qat_results *r)
{
    qat_arena_free(&r->arena);
    *r = (qat_results){0};
}

int qat_results_rows(const qat_results *r)
{
    return qat_sweep_grid_cells(r->grid) * r->seeds;
}

int qat_results_column(const qat_results *r, const char *name)
{
    for (int i = 0; i < r->n_columns; i++)
        if (!strcmp(r->columns[i], name))
            return i;
    return -1;
}

static qat_status add_column(qat_results *r, const char *name, qat_error *err)
{
    int const rows = qat_results_rows(r);
    if (r->n_columns == QAT_RESULTS_MAX_COLUMNS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%.80s: more than %d columns", name,
                        QAT_RESULTS_MAX_COLUMNS);
    const char *own = qat_arena_string(&r->arena, name);
    double *values = qat_arena_array(&r->arena, (size_t)rows, sizeof *values);
    if (!own || !values)
        return qat_out_of_memory(err, name);
    for (int i = 0; i < rows; i++)
        values[i] = NAN;
    r->columns[r->n_columns] = own;
    r->values[r->n_columns++] = values;
    return QAT_OK;
}

qat_status qat_results_set(qat_results *r, int row, const char *name, double value, qat_error *err)
{
    int column = qat_results_column(r, name);
    qat_status const st = column < 0 ? add_column(r, name, err) : QAT_OK;
    if (!st)
        r->values[column < 0 ? r->n_columns - 1 : column][row] = value;
    return st;
}

/* ------------------------------------------------------------------ reading */

/** Parse the JSON object at *at and move *at past it. NULL without an error: there is no more. */
static qat_status next_object(json_t **object, const char **at, const char *path, qat_error *err)
{
    json_error_t why;
    *object = NULL;
    *at += strspn(*at, " \t\r\n");
    if (!**at)
        return QAT_OK;
    qat_c_locale const locale = qat_c_locale_enter();
    *object = json_loads(*at, JSON_DISABLE_EOF_CHECK, &why);
    qat_c_locale_leave(locale);
    if (!json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        return qat_fail(err, QAT_ERR_FORMAT, "%.300s: not a JSON object: %.100s", path, why.text);
    }
    *at += why.position;
    return QAT_OK;
}

static qat_status take_numbers(qat_results *r, int row, json_t *object, qat_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        qat_status const st = json_is_number(value)
                                  ? qat_results_set(r, row, key, json_number_value(value), err)
                                  : QAT_OK;
        if (st)
            return st;
    }
    return QAT_OK;
}

static qat_status take_latency(qat_results *r, int row, json_t *object, qat_error *err)
{
    char name[40];
    json_t *ms = json_object_get(object, "min_ms"), *macs = json_object_get(object, "macs");
    const char *network = json_string_value(json_object_get(object, "network"));
    snprintf(name, sizeof name, "%sms_%d", network && !strcmp(network, "float") ? "float_" : "",
             (int)json_integer_value(json_object_get(object, "threads")));
    qat_status st =
        json_is_number(ms) ? qat_results_set(r, row, name, json_number_value(ms), err) : QAT_OK;
    if (!st && json_is_number(macs))
        st = qat_results_set(r, row, "multiply_adds", json_number_value(macs), err);
    return st;
}

typedef qat_status take_fn(qat_results *r, int row, json_t *object, qat_error *err);

static qat_status read_objects(qat_results *r, int row, const char *path, take_fn *take,
                               qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count;
    json_t *object;
    if (access(path, F_OK))
        return QAT_OK;
    qat_status st = qat_file_read(path, (size_t)1 << 26, &bytes, &count, err);
    const char *at = (const char *)bytes;
    while (!st) {
        st = next_object(&object, &at, path, err);
        if (st || !object)
            break;
        st = take(r, row, object, err);
        json_decref(object);
    }
    free(bytes);
    return st;
}

qat_status qat_results_read(qat_results *r, int row, const char *path, qat_error *err)
{
    return read_objects(r, row, path, take_numbers, err);
}

qat_status qat_results_read_latency(qat_results *r, int row, const char *path, qat_error *err)
{
    return read_objects(r, row, path, take_latency, err);
}

/* ------------------------------------------------------------------ statistics */

qat_spread qat_results_spread(const qat_results *r, int cell, int column)
{
    double x[QAT_RESULTS_MAX_SEEDS];
    int n = 0;
    for (int i = 0; i < r->seeds; i++)
        if (!isnan(r->values[column][cell * r->seeds + i]))
            x[n++] = r->values[column][cell * r->seeds + i];
    return qat_spread_of(x, n);
}

qat_paired qat_results_compare(const qat_results *r, int cell, int baseline, int column)
{
    double x[QAT_RESULTS_MAX_SEEDS], y[QAT_RESULTS_MAX_SEEDS];
    const double *mine = r->values[column] + cell * r->seeds;
    const double *other = r->values[column] + baseline * r->seeds;
    int n = 0;
    for (int i = 0; i < r->seeds; i++)
        if (!isnan(mine[i]) && !isnan(other[i])) {
            x[n] = mine[i];
            y[n++] = other[i];
        }
    return qat_paired_test(x, y, n);
}

const char *qat_results_title(const char *column)
{
    for (int t = 0; t < qat_tasks(NULL); t++) {
        const qat_task *task = qat_task_at(NULL, t);
        for (int i = 0; i < task->n_figures; i++)
            if (task->figures[i].kind != QAT_FIGURE_REAL &&
                !strcmp(column, task->figures[i].column))
                return task->figures[i].name;
    }
    return NULL;
}

int qat_results_is_share(const char *column)
{
    const char *part = column;
    while (part && !qat_results_title(part)) { /* what follows the next _ */
        const char *end = strchr(part, '_');
        part = end ? end + 1 : NULL;
    }
    return part != NULL;
}

/**
 * Results for other programs: CSV with a line per run, and JSON with everything, statistics
 * included.
 */
#include "base/bytes.h"
#include "base/number.h"
#include "base/shown.h"
#include "tools/sweep/results.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ CSV */

static bool is_known(const qat_results *r, int row)
{
    for (int i = 0; i < r->n_columns; i++)
        if (!isnan(r->values[i][row]))
            return true;
    return false;
}

static void write_row(qat_writer *w, const qat_results *r, int row)
{
    for (int i = 0; i < r->grid->n_axes; i++) {
        qat_write_csv(w, qat_sweep_grid_value(r->grid, row / r->seeds, i));
        qat_write_text(w, ",");
    }
    qat_write_text(w, "%d", row % r->seeds + 1);
    for (int i = 0; i < r->n_columns; i++)
        if (isnan(r->values[i][row]))
            qat_write_text(w, ",");
        else
            qat_write_text(w, ",%.9g", r->values[i][row]);
    qat_write_text(w, "\n");
}

qat_status qat_results_csv(const qat_results *r, char **text, qat_error *err)
{
    qat_writer w = {0};
    for (int i = 0; i < r->grid->n_axes; i++) {
        qat_write_csv(&w, r->grid->axes[i].key);
        qat_write_text(&w, ",");
    }
    qat_write_text(&w, "seed");
    for (int i = 0; i < r->n_columns; i++)
        qat_write_text(&w, ",%s", r->columns[i]);
    qat_write_text(&w, "\n");
    for (int row = 0; row < qat_results_rows(r); row++)
        if (is_known(r, row))
            write_row(&w, r, row);
    qat_write_u8(&w, 0);
    *text = w.failed ? NULL : (char *)w.bytes;
    if (!w.failed)
        return QAT_OK;
    qat_writer_free(&w);
    return qat_out_of_memory(err, "the table");
}

/* ------------------------------------------------------------------ JSON */

/** A JSON number; null if it is not finite, because JSON has no such numbers. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *run_of(const qat_results *r, int row)
{
    json_t *run = json_object();
    json_object_set_new(run, "seed", json_integer(row % r->seeds + 1));
    for (int i = 0; i < r->n_columns; i++)
        if (!isnan(r->values[i][row]))
            json_object_set_new(run, r->columns[i], number(r->values[i][row]));
    return run;
}

static json_t *statistics_of(const qat_results *r, int cell, int baseline, int column)
{
    qat_spread const s = qat_results_spread(r, cell, column);
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer(s.n));
    json_object_set_new(object, "mean", number(s.mean));
    json_object_set_new(object, "deviation", number(s.deviation));
    if (baseline >= 0 && baseline != cell) {
        qat_paired const test = qat_results_compare(r, cell, baseline, column);
        json_object_set_new(object, "pairs", json_integer(test.difference.n));
        json_object_set_new(object, "difference", number(test.difference.mean));
        json_object_set_new(object, "difference_deviation", number(test.difference.deviation));
        json_object_set_new(object, "t", number(test.t));
        json_object_set_new(object, "p", number(test.p));
    }
    return object;
}

static json_t *cell_of(const qat_results *r, int cell, int baseline)
{
    char name[QAT_SWEEP_NAME_MAX] = "";
    json_t *object = json_object(), *settings = json_object(), *runs = json_array();
    json_t *statistics = json_object();
    qat_sweep_grid_name(r->grid, cell, name, NULL);
    for (int i = 0; i < r->grid->n_axes; i++)
        json_object_set_new(settings, r->grid->axes[i].key,
                            json_string(qat_sweep_grid_value(r->grid, cell, i)));
    for (int row = cell * r->seeds; row < (cell + 1) * r->seeds; row++)
        if (is_known(r, row))
            json_array_append_new(runs, run_of(r, row));
    for (int i = 0; i < r->n_columns; i++)
        json_object_set_new(statistics, r->columns[i], statistics_of(r, cell, baseline, i));
    json_object_set_new(object, "cell", json_string(name));
    json_object_set_new(object, "settings", settings);
    json_object_set_new(object, "runs", runs);
    json_object_set_new(object, "statistics", statistics);
    return object;
}

qat_status qat_results_json(const qat_results *r, int baseline, char **text, qat_error *err)
{
    char name[QAT_SWEEP_NAME_MAX];
    json_t *all = json_object(), *cells = json_array();
    json_object_set_new(all, "seeds", json_integer(r->seeds));
    if (baseline >= 0 && !qat_sweep_grid_name(r->grid, baseline, name, NULL))
        json_object_set_new(all, "baseline", json_string(name));
    for (int cell = 0; cell < qat_sweep_grid_cells(r->grid); cell++)
        json_array_append_new(cells, cell_of(r, cell, baseline));
    json_object_set_new(all, "cells", cells);
    qat_c_locale const locale = qat_c_locale_enter();
    *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    qat_c_locale_leave(locale);
    json_decref(all);
    return *text ? QAT_OK : qat_out_of_memory(err, "the results");
}

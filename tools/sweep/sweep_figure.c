/** Columns of the results by their names: their values, units and titles in plots. */
#include "base/checksums/crc32c.h"
#include "base/number.h"
#include "tools/sweep/sweep_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double unit_of(const char *name)
{
    if (qat_results_is_share(name))
        return 100;
    return strcmp(name, "multiply_adds") ? 1 : 1e-6;
}

/** The value of a setting in a cell, as a number. */
static qat_status number_of_setting(const sweep *s, int cell, int axis, double *value,
                                    qat_error *err)
{
    const char *text = qat_sweep_grid_value(&s->grid, cell, axis);
    char *end;
    *value = qat_number_of(text, &end);
    if (end != text && !*end && isfinite(*value))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s = %.80s is not a number and cannot be on an axis",
                    s->grid.axes[axis].key, text);
}

qat_status sweep_check_axis(const sweep *s, const char *name, qat_error *err)
{
    int const axis = qat_sweep_grid_axis_of(&s->grid, name);
    qat_status st = QAT_OK;
    double value;
    for (int cell = 0; axis >= 0 && cell < qat_sweep_grid_cells(&s->grid) && !st; cell++)
        st = number_of_setting(s, cell, axis, &value, err);
    return st;
}

static qat_status unknown(const sweep *s, const qat_results *r, const char *name, qat_error *err)
{
    char columns[200] = "";
    for (int i = 0; i < r->n_columns; i++) {
        size_t const used = strlen(columns);
        snprintf(columns + used, sizeof columns - used, "%s%s", i ? ", " : "", r->columns[i]);
    }
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%.80s is neither a column of %.150s/results.csv (%s) nor a setting", name,
                    s->out, columns);
}

qat_status sweep_figure(const sweep *s, const qat_results *r, int row, const char *name,
                        double *value, qat_error *err)
{
    int const column = qat_results_column(r, name);
    int const axis = qat_sweep_grid_axis_of(&s->grid, name);
    if (column >= 0) {
        *value = unit_of(name) * r->values[column][row];
        return QAT_OK;
    }
    if (axis < 0)
        return unknown(s, r, name, err);
    return number_of_setting(s, row / s->seeds, axis, value, err);
}

const char *sweep_network_of(const char *name, const char **figure)
{
    bool const of_float = !strncmp(name, "float_", 6);
    *figure = of_float ? name + 6 : name;
    return of_float ? "float" : "integer";
}

/** The title of a column that float and integer networks have. net "": of either network. */
static bool network_title(const char *figure, const char *net, char *text, size_t max)
{
    const char *comma = *net ? ", " : "";
    const char *const accuracy = qat_results_title(figure);
    int threads;
    if (accuracy)
        snprintf(text, max, "%s%s%s%s [%%]", accuracy, comma, net, *net ? " network" : "");
    else if (sscanf(figure, "ms_%d", &threads) == 1)
        snprintf(text, max, "latency%s%s, %d thread%s [ms]", comma, net, threads,
                 threads > 1 ? "s" : "");
    else
        return false;
    return true;
}

void sweep_title_of_both(const char *figure, char *text, size_t max)
{
    if (!network_title(figure, "", text, max))
        sweep_title(figure, text, max);
}

void sweep_title(const char *name, char *text, size_t max)
{
    const char *figure, *net = sweep_network_of(name, &figure);
    if (network_title(figure, net, text, max))
        return;
    if (!strcmp(name, "train_seconds"))
        snprintf(text, max, "time of training [s]");
    else if (!strcmp(name, "qm_bytes"))
        snprintf(text, max, "size of the .qm [bytes]");
    else if (!strcmp(name, "multiply_adds"))
        snprintf(text, max, "multiply-adds [million]");
    else
        snprintf(text, max, "%s%s", name, qat_results_is_share(name) ? " [%]" : "");
}

void sweep_title_without_unit(const char *name, char *text, size_t max)
{
    sweep_title(name, text, max);
    char *unit = strstr(text, " [");
    if (unit)
        *unit = 0;
}

void sweep_plot_title(const sweep *s, char *text, size_t max)
{
    const char *path = qat_sweep_grid_value(&s->grid, 0, 0);
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    int const stem = (int)strcspn(base, ".");
    if (s->grid.axes[0].n > 1)
        snprintf(text, max, "%d recipes, %d seed%s", s->grid.axes[0].n, s->seeds,
                 s->seeds > 1 ? "s: means and deviations" : "");
    else
        snprintf(text, max, "%.*s, %d seed%s", stem, base, s->seeds,
                 s->seeds > 1 ? "s: means and deviations" : "");
}

void sweep_plot_path(const sweep *s, const char *kind, const char *spec, char *path, size_t max)
{
    size_t const used = (size_t)snprintf(path, max, "%.600s/%s-", s->out, kind);
    snprintf(path + used, max - used, "%.200s", spec);
    for (char *c = path + used; *c; c++)
        if (strchr("/:+ {}|*?\\\"'<>", *c))
            *c = '_';
    size_t const n = strlen(spec), end = strlen(path);
    if (n > 200) /* what is cut makes the name another one */
        snprintf(path + end, max - end, "-%08x", (unsigned)qat_crc32c(spec, n));
}

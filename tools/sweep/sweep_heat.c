/** Heat maps of the results: two settings across and down, one value in each field. */
#include "tools/sweep/sweep_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 64 };

typedef struct spec {
    char value[NAME_LENGTH], other[NAME_LENGTH]; /* other "": plot the value itself */
    int across, down;                            /* axes of the grid */
} spec;

static qat_status axis_named(const sweep *s, const char *key, int *axis, qat_error *err)
{
    *axis = qat_sweep_grid_axis_of(&s->grid, key);
    if (*axis < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s is not a setting of this sweep", key);
    return QAT_OK;
}

static qat_status parse(spec *p, const sweep *s, const char *text, qat_error *err)
{
    char across[NAME_LENGTH] = "", down[NAME_LENGTH] = "", end;
    *p = (spec){0};
    if (sscanf(text, "%63[^:,]:%63[^:,],%63[^,],%63[^,]%c", p->value, p->other, across, down,
               &end) != 4) {
        p->other[0] = 0;
        if (sscanf(text, "%63[^:,],%63[^,],%63[^,]%c", p->value, across, down, &end) != 3)
            return qat_fail(err, QAT_ERR_ARGUMENT, "expected VALUE[:OTHER],KEY,KEY");
    }
    if (!strcmp(across, down))
        return qat_fail(err, QAT_ERR_ARGUMENT, "expected two different settings, not %s twice",
                        down);
    qat_status const st = axis_named(s, across, &p->across, err);
    return st ? st : axis_named(s, down, &p->down, err);
}

qat_status sweep_check_heat(const sweep *s, const char *text, qat_error *err)
{
    spec p;
    return parse(&p, s, text, err);
}

/* ------------------------------------------------------------------ fields */

static qat_status value_of(const spec *p, const sweep *s, const qat_results *r, int row,
                           double *value, qat_error *err)
{
    double other = 0;
    qat_status st = sweep_figure(s, r, row, p->value, value, err);
    if (!st && p->other[0])
        st = sweep_figure(s, r, row, p->other, &other, err);
    if (!st && p->other[0])
        *value = 100 * (*value - other) / other;
    return st;
}

static qat_status mean_of(const spec *p, const sweep *s, const qat_results *r, int cell,
                          double *mean, qat_error *err)
{
    double sum = 0, value;
    int n = 0;
    for (int row = cell * s->seeds; row < (cell + 1) * s->seeds; row++) {
        qat_status const st = value_of(p, s, r, row, &value, err);
        if (st)
            return st;
        if (isfinite(value)) {
            sum += value;
            n++;
        }
    }
    *mean = n ? sum / n : NAN;
    return QAT_OK;
}

/** How many cells apart two neighbouring values of an axis are. */
static int stride_of(const sweep *s, int axis)
{
    int stride = 1;
    for (int i = axis + 1; i < s->grid.n_axes; i++)
        stride *= s->grid.axes[i].n;
    return stride;
}

static qat_status fill(double *values, const spec *p, const sweep *s, const qat_results *r,
                       int first, qat_error *err)
{
    int const columns = s->grid.axes[p->across].n, rows = s->grid.axes[p->down].n;
    qat_status st = QAT_OK;
    bool any = false;
    for (int i = 0; i < rows * columns && !st; i++) {
        int const cell =
            first + i / columns * stride_of(s, p->down) + i % columns * stride_of(s, p->across);
        st = mean_of(p, s, r, cell, &values[i], err);
        any |= !st && !isnan(values[i]);
    }
    return st || any ? st : qat_fail(err, QAT_ERR_STATE, "nothing to plot yet");
}

/* ------------------------------------------------------------------ maps */

/** ", key=value" for each setting that has several values and is not an axis of the map. */
static void other_settings(const spec *p, const sweep *s, int cell, char *text, size_t max)
{
    text[0] = 0;
    for (int i = 0; i < s->grid.n_axes; i++) {
        size_t const used = strlen(text);
        if (i != p->across && i != p->down && s->grid.axes[i].n > 1)
            snprintf(text + used, max - used, ", %s=%s", s->grid.axes[i].key,
                     qat_sweep_grid_value(&s->grid, cell, i));
    }
}

static void title_values(const spec *p, char *text, size_t max)
{
    char title[128], other[128];
    sweep_title_without_unit(p->value, title, sizeof title);
    sweep_title_without_unit(p->other, other, sizeof other);
    if (p->other[0])
        snprintf(text, max, "change of %s against %s [%%]", title, other);
    else
        sweep_title(p->value, text, max);
}

static qat_status write_map(const spec *p, const sweep *s, const char *text, int first,
                            const double *values, qat_error *err)
{
    const qat_sweep_grid_axis *across = &s->grid.axes[p->across], *down = &s->grid.axes[p->down];
    char path[SWEEP_PATH_MAX], name[256 + QAT_SWEEP_NAME_MAX], more[QAT_SWEEP_NAME_MAX];
    char title[400], value_title[300];
    plot_heat const heat = {title,   across->key,    down->key,    value_title, across->n,
                            down->n, across->values, down->values, values};
    other_settings(p, s, first, more, sizeof more);
    snprintf(name, sizeof name, "%.255s%s", text, more); /* parse() takes no longer text */
    sweep_plot_path(s, "heat", name, path, sizeof path);
    sweep_plot_title(s, name, 128);
    snprintf(title, sizeof title, "%.*s%.256s", (int)strcspn(name, ":"), name, more);
    title_values(p, value_title, sizeof value_title);
    return plot_heat_write(&heat, path, err);
}

static qat_status draw_maps(double *values, const spec *p, const sweep *s, const qat_results *r,
                            const char *text, qat_error *err)
{
    qat_status st = QAT_OK;
    bool any = false;
    for (int cell = 0; cell < qat_sweep_grid_cells(&s->grid) && !st; cell++) {
        if (qat_sweep_grid_index(&s->grid, cell, p->across) ||
            qat_sweep_grid_index(&s->grid, cell, p->down))
            continue;
        st = fill(values, p, s, r, cell, err);
        if (!st)
            st = write_map(p, s, text, cell, values, err);
        any |= !st;
        st = st == QAT_ERR_STATE ? QAT_OK : st;
    }
    return st || any ? st : qat_fail(err, QAT_ERR_STATE, "nothing to plot yet");
}

qat_status sweep_heat(const sweep *s, const qat_results *r, const char *text, qat_error *err)
{
    spec p;
    double *values = calloc((size_t)qat_sweep_grid_cells(&s->grid), sizeof *values);
    qat_status st = values ? parse(&p, s, text, err) : qat_out_of_memory(err, "a heat map");
    if (!st)
        st = draw_maps(values, &p, s, r, text, err);
    free(values);
    return st;
}

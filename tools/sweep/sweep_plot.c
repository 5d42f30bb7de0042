/** Curve plots of the results: parse a SPEC, sort the cells into curves. */
#include "tools/sweep/sweep_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 8, MOST_KEYS = 8, NAME_MAX_ = 64 };

typedef struct pair {
    char x[NAME_MAX_], y[NAME_MAX_];
    char key[NAME_MAX_], value[NAME_MAX_]; /* only cells with this setting; key "": all cells */
} pair;

typedef struct spec {
    bool log_x;
    int n_pairs, n_keys;
    pair pairs[MOST_PAIRS];
    int keys[MOST_KEYS]; /* axes of the grid */
} spec;

/* ------------------------------------------------------------------ the text */

static const char *parse_pair(spec *p, const char *at)
{
    pair *new = &p->pairs[p->n_pairs++];
    int used = 0;
    if (sscanf(at, "%63[^,+/],%63[^,+/@]%n", new->x, new->y, &used) != 2 || !used)
        return NULL;
    at += used;
    if (*at != '@')
        return at;
    used = 0;
    return sscanf(at, "@%63[^=]=%63[^+/]%n", new->key, new->value, &used) == 2 && used ? at + used
                                                                                       : NULL;
}

static qat_status check_settings(const spec *p, const sweep *s, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < p->n_pairs && !st; i++) {
        const pair *of = &p->pairs[i];
        if (of->key[0] && qat_sweep_grid_axis_of(&s->grid, of->key) < 0)
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s is not a setting of this sweep", of->key);
        st = sweep_check_axis(s, of->x, err);
        if (!st)
            st = sweep_check_axis(s, of->y, err);
    }
    return st;
}

static qat_status parse_key(spec *p, const sweep *s, const char **at, qat_error *err)
{
    char key[NAME_MAX_] = "";
    int used = 0;
    if (p->n_keys == MOST_KEYS || sscanf(*at, "/%63[^/]%n", key, &used) != 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "at most %d keys are allowed after '/'", MOST_KEYS);
    int const axis = qat_sweep_grid_axis_of(&s->grid, key);
    if (axis < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s is not a setting of this sweep", key);
    p->keys[p->n_keys++] = axis;
    *at += used;
    return QAT_OK;
}

static qat_status parse(spec *p, const sweep *s, const char *text, qat_error *err)
{
    qat_status st = QAT_OK;
    *p = (spec){.log_x = !strncmp(text, "log:", 4)};
    const char *at = parse_pair(p, text + (p->log_x ? 4 : 0));
    while (at && *at == '+' && p->n_pairs < MOST_PAIRS)
        at = parse_pair(p, at + 1);
    if (!at || (*at && *at != '/'))
        return qat_fail(err, QAT_ERR_ARGUMENT, "expected [log:]X,Y[@KEY=VALUE][+X,Y...][/KEY...]");
    while (*at && !st)
        st = parse_key(p, s, &at, err);
    return st ? st : check_settings(p, s, err);
}

qat_status sweep_check_plot(const sweep *s, const char *text, qat_error *err)
{
    spec p;
    return parse(&p, s, text, err);
}

/* ------------------------------------------------------------------ curves */

typedef struct drawing {
    plot_curve curves[PLOT_MAX_CURVES];
    int n;
    int first_cell;                  /* the first cell of the pair that has a point; -1: none yet */
    bool varies[QAT_SWEEP_MAX_AXES]; /* which axes change among the points of a pair */
    qat_arena arena;
} drawing;

static const char *name_of(const pair *of, bool of_y)
{
    return of_y ? of->y : of->x;
}

/** Do the pairs have different columns as Y (or as X)? */
static bool differ(const spec *p, bool of_y)
{
    bool several = false;
    for (int i = 1; i < p->n_pairs; i++)
        several |= strcmp(name_of(&p->pairs[i], of_y), name_of(&p->pairs[0], of_y)) != 0;
    return several;
}

/** Are all Y (or X) the same column, of float and integer networks? */
static bool is_of_both(const spec *p, bool of_y)
{
    const char *first, *figure;
    bool same = differ(p, of_y);
    sweep_network_of(name_of(&p->pairs[0], of_y), &first);
    for (int i = 1; i < p->n_pairs; i++) {
        sweep_network_of(name_of(&p->pairs[i], of_y), &figure);
        same &= !strcmp(first, figure);
    }
    return same;
}

/**
 * Name a curve: the title of Y, or of X, if the curves differ in it; then "key = value" of each
 * key, without its section.
 */
static void name_curve(char name[160], const spec *p, const sweep *s, const pair *of, int cell)
{
    name[0] = 0;
    const char *figure;
    if (is_of_both(p, true))
        snprintf(name, 160, "%s", sweep_network_of(of->y, &figure));
    else if (differ(p, true))
        sweep_title_without_unit(of->y, name, 160);
    else if (differ(p, false))
        sweep_title_without_unit(of->x, name, 160);
    for (int i = 0; i < p->n_keys; i++) {
        size_t const used = strlen(name);
        const char *key = s->grid.axes[p->keys[i]].key, *dot = strrchr(key, '.');
        snprintf(name + used, 160 - used, "%s%s = %s", used ? ", " : "", dot ? dot + 1 : key,
                 qat_sweep_grid_value(&s->grid, cell, p->keys[i]));
    }
}

/** Which choice of the keys' values a cell has. */
static int choice_of(const spec *p, const sweep *s, int cell)
{
    int choice = 0;
    for (int i = 0; i < p->n_keys; i++)
        choice =
            choice * s->grid.axes[p->keys[i]].n + qat_sweep_grid_index(&s->grid, cell, p->keys[i]);
    return choice;
}

/**
 * The curve with this name and pair. It is added if it does not exist; NULL: too many, or no
 * memory.
 */
static plot_curve *curve_of(drawing *d, const char *name, int first, int cells)
{
    for (int i = first; i < d->n; i++)
        if (!strcmp(d->curves[i].name, name))
            return &d->curves[i];
    if (d->n == PLOT_MAX_CURVES)
        return NULL;
    plot_curve *c = &d->curves[d->n];
    *c = (plot_curve){.x = qat_arena_array(&d->arena, (size_t)cells, sizeof(double)),
                      .y = qat_arena_array(&d->arena, (size_t)cells, sizeof(double)),
                      .deviation = qat_arena_array(&d->arena, (size_t)cells, sizeof(double))};
    snprintf(c->name, sizeof c->name, "%s", name);
    d->n += c->x && c->y && c->deviation;
    return c->x && c->y && c->deviation ? c : NULL;
}

/** Mean and standard deviation of a column, over the seeds that have both columns. */
static qat_status spreads(const sweep *s, const qat_results *r, const pair *of, int cell,
                          qat_spread *x, qat_spread *y, qat_error *err)
{
    double xs[QAT_RESULTS_MAX_SEEDS], ys[QAT_RESULTS_MAX_SEEDS];
    qat_status st = QAT_OK;
    int n = 0;
    for (int row = cell * s->seeds; row < (cell + 1) * s->seeds && !st; row++) {
        st = sweep_figure(s, r, row, of->x, &xs[n], err);
        if (!st)
            st = sweep_figure(s, r, row, of->y, &ys[n], err);
        n += !st && isfinite(xs[n]) && isfinite(ys[n]);
    }
    *x = qat_spread_of(xs, n);
    *y = qat_spread_of(ys, n);
    return st;
}

/** Does the cell belong to the pair? */
static bool belongs(const sweep *s, const pair *of, int cell)
{
    return !of->key[0] ||
           !strcmp(of->value,
                   qat_sweep_grid_value(&s->grid, cell, qat_sweep_grid_axis_of(&s->grid, of->key)));
}

static void note_settings(drawing *d, const sweep *s, int cell)
{
    if (d->first_cell < 0)
        d->first_cell = cell;
    for (int i = 0; i < s->grid.n_axes; i++)
        d->varies[i] |= qat_sweep_grid_index(&s->grid, cell, i) !=
                        qat_sweep_grid_index(&s->grid, d->first_cell, i);
}

static qat_status add_point(drawing *d, const spec *p, const sweep *s, const qat_results *r,
                            const pair *of, int first, int cell, qat_error *err)
{
    char name[160];
    qat_spread x, y;
    qat_status const st = spreads(s, r, of, cell, &x, &y, err);
    if (st || !x.n)
        return st;
    if (p->log_x && x.mean <= 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s = %g cannot be on a logarithmic axis", of->x,
                        x.mean);
    name_curve(name, p, s, of, cell);
    plot_curve *c = curve_of(d, name, first, qat_sweep_grid_cells(&s->grid));
    if (!c)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "more than %d curves", PLOT_MAX_CURVES);
    c->colour = p->n_keys ? choice_of(p, s, cell) : (int)(of - p->pairs);
    c->dashes = p->n_keys ? (int)(of - p->pairs) : 0;
    note_settings(d, s, cell);
    int at = c->n++;
    for (; at > 0 && c->x[at - 1] > x.mean; at--) {
        c->x[at] = c->x[at - 1];
        c->y[at] = c->y[at - 1];
        c->deviation[at] = c->deviation[at - 1];
    }
    c->x[at] = x.mean;
    c->y[at] = y.mean;
    c->deviation[at] = y.deviation;
    return QAT_OK;
}

static qat_status add_pair(drawing *d, const spec *p, const sweep *s, const qat_results *r,
                           const pair *of, qat_error *err)
{
    int const first = d->n;
    qat_status st = QAT_OK;
    d->first_cell = -1;
    for (int cell = 0; cell < qat_sweep_grid_cells(&s->grid) && !st; cell++)
        if (belongs(s, of, cell))
            st = add_point(d, p, s, r, of, first, cell, err);
    return st;
}

/* ------------------------------------------------------------------ the plot */

/** Join the titles of all pairs' columns, each once. */
static void join_titles(const spec *p, bool of_y, char *text, size_t max)
{
    char title[128];
    const char *figure;
    text[0] = 0;
    if (is_of_both(p, of_y)) {
        sweep_network_of(name_of(&p->pairs[0], of_y), &figure);
        sweep_title_of_both(figure, text, max);
        return;
    }
    for (int i = 0; i < p->n_pairs; i++) {
        size_t const used = strlen(text);
        sweep_title(name_of(&p->pairs[i], of_y), title, sizeof title);
        if (!strstr(text, title))
            snprintf(text + used, max - used, "%s%s", used ? " / " : "", title);
    }
}

/** Does at most one setting change along a curve? */
static bool is_line(const drawing *d, const spec *p, const sweep *s)
{
    int changing = 0;
    for (int i = 0; i < s->grid.n_axes; i++)
        changing += d->varies[i];
    for (int i = 0; i < p->n_keys; i++)
        changing -= d->varies[p->keys[i]];
    return changing <= 1;
}

static qat_status write_plot(const drawing *d, const spec *p, const sweep *s, const char *text,
                             qat_error *err)
{
    char path[SWEEP_PATH_MAX], title[128], x_title[400], y_title[400];
    plot_curves const curves = {title, x_title,   y_title, p->log_x, is_line(d, p, s),
                                d->n,  d->curves, NULL,    0};
    sweep_plot_title(s, title, sizeof title);
    join_titles(p, false, x_title, sizeof x_title);
    join_titles(p, true, y_title, sizeof y_title);
    sweep_plot_path(s, "plot", text, path, sizeof path);
    if (!d->n)
        return qat_fail(err, QAT_ERR_STATE, "nothing to plot yet");
    return plot_curves_write(&curves, path, err);
}

qat_status sweep_plot(const sweep *s, const qat_results *r, const char *text, qat_error *err)
{
    spec p;
    drawing *d = calloc(1, sizeof *d);
    qat_status st = d ? parse(&p, s, text, err) : qat_out_of_memory(err, "a plot");
    for (int i = 0; !st && i < p.n_pairs; i++)
        st = add_pair(d, &p, s, r, &p.pairs[i], err);
    if (!st)
        st = write_plot(d, &p, s, text, err);
    if (d)
        qat_arena_free(&d->arena);
    free(d);
    return st;
}

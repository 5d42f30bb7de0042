/** Figures as pictures. */
#include "tools/figures/figures.h"
#include "tools/plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most classes in a confusion matrix, curves in a picture, and points of values. */
enum { CLASSES_SHOWN = 24, CURVES_SHOWN = 10, VALUES_SHOWN = 2000 };

static void path_of(char path[1024], const figures_run *run, const char *dir, const char *name)
{
    snprintf(path, 1024, "%.900s/%s%s", dir, run->prefix, name);
}

/** The unit's place: how many units come first by this measure, or are equal and before it. */
static int place_of(const double *measure, int n, int unit)
{
    int before = 0;
    for (int k = 0; k < n; k++)
        before += measure[k] < measure[unit] || (measure[k] == measure[unit] && k < unit);
    return before;
}

/** The units of the least measures, in their own order; returns how many, at most `most`. */
static int choose(int *chosen, const double *measure, int n, int most)
{
    int count = 0;
    for (int k = 0; k < n; k++)
        if (n <= most || place_of(measure, n, k) < most)
            chosen[count++] = k;
    return count;
}

/* ------------------------------------------------------------------ confusion */

static qat_status draw_confusion(const figures_run *run, const char *dir, qat_error *err)
{
    const figures *f = run->of;
    double *right = malloc((size_t)f->n_units * sizeof *right);
    double values[CLASSES_SHOWN * CLASSES_SHOWN];
    const char *names[CLASSES_SHOWN];
    int chosen[CLASSES_SHOWN];
    char path[1024], title[128] = "Answers for the samples of each class";
    if (!right)
        return qat_out_of_memory(err, "figures");
    for (int k = 0; k < f->n_units; k++)
        right[k] = -(double)(f->counts[k].is + f->counts[k].said - 2 * f->counts[k].right);
    int const n = choose(chosen, right, f->n_units, CLASSES_SHOWN);
    free(right);
    if (n < f->n_units)
        snprintf(title, sizeof title,
                 "Answers for the samples of each class: the %d of %d classes "
                 "that are wrong most often",
                 n, f->n_units);
    for (int i = 0; i < n; i++) {
        const int64_t *row = f->confusion + (size_t)chosen[i] * (size_t)f->n_units;
        int64_t const samples = f->counts[chosen[i]].is;
        names[i] = f->units[chosen[i]].name;
        for (int k = 0; k < n; k++)
            values[i * n + k] = samples ? 100 * (double)row[chosen[k]] / (double)samples : NAN;
    }
    path_of(path, run, dir, "confusion");
    plot_heat const heat = {.title = title,
                            .x_title = "class that the network answers",
                            .y_title = "true class",
                            .value_title = "share of the class's samples (%)",
                            .columns = n,
                            .rows = n,
                            .column_names = names,
                            .row_names = names,
                            .values = values};
    return plot_heat_write(&heat, path, err);
}

/* ------------------------------------------------------------------ curves */

/** Two ends of a line for comparison. */
static double ends[2] = {0, 1};

typedef struct picture {
    const char *name, *title, *x_title, *y_title;
    bool roc;
} picture;

/** The points of a unit's curve, with the one before all thresholds. */
static qat_status set_points(plot_curve *to, const figures_unit *u, bool roc, qat_error *err)
{
    const qat_curve *c = &u->curve;
    double *x = malloc(2 * (c->n + 1) * sizeof *x), *y = x + c->n + 1;
    if (!x)
        return qat_out_of_memory(err, "figures");
    to->x = x;
    to->y = y;
    to->n = (int)c->n + 1;
    to->unmarked = true;
    x[0] = 0;
    y[0] = !roc;
    for (size_t k = 0; k < c->n; k++) {
        double const hits = (double)c->at[k].hits, misses = (double)c->at[k].misses;
        x[k + 1] = roc ? misses / (double)c->misses : hits / (double)c->hits;
        y[k + 1] = roc ? hits / (double)c->hits : hits / (hits + misses);
    }
    return QAT_OK;
}

static qat_status draw_curves(const figures_run *run, const picture *p, const char *dir,
                              qat_error *err)
{
    const figures *f = run->of;
    plot_curve curves[CURVES_SHOWN + 2] = {0};
    double *areas = malloc((size_t)f->n_units * sizeof *areas);
    int chosen[CURVES_SHOWN], n = 0;
    char path[1024];
    qat_status st = areas ? QAT_OK : qat_out_of_memory(err, "figures");
    for (int k = 0; !st && k < f->n_units; k++) {
        areas[k] = p->roc ? f->units[k].auc : f->units[k].ap;
        areas[k] = areas[k] < 0 ? 2 : areas[k]; /* not known: last */
    }
    int const units = st ? 0 : choose(chosen, areas, f->n_units, CURVES_SHOWN);
    for (int i = -1; i < units && !st; i++) {
        const figures_unit *u = i < 0 ? &f->all : &f->units[chosen[i]];
        double const area = p->roc ? u->auc : u->ap;
        if (area < 0 || !u->curve.misses || (i < 0 && f->n_units == 1))
            continue;
        plot_curve *c = &curves[n++];
        c->colour = i < 0 ? 6 : i % 6;
        c->dashes = i < 0 ? 0 : i / 6;
        snprintf(c->name, sizeof c->name, "%.24s: %s %.4f", i < 0 ? "all together" : u->name,
                 p->roc ? "AUC" : "AP", area);
        st = set_points(c, u, p->roc, err);
    }
    free(areas);
    if (!st && n) {
        if (p->roc)
            curves[n] = (plot_curve){.name = "by chance",
                                     .n = 2,
                                     .x = ends,
                                     .y = ends,
                                     .colour = 6,
                                     .dashes = 2,
                                     .unmarked = true};
        plot_curves const plot = {.title = p->title,
                                  .x_title = p->x_title,
                                  .y_title = p->y_title,
                                  .joined = true,
                                  .n = n + p->roc,
                                  .curves = curves};
        path_of(path, run, dir, p->name);
        st = plot_curves_write(&plot, path, err);
    }
    for (int i = 0; i < n; i++)
        free(curves[i].x);
    return st;
}

/* ------------------------------------------------------------------ calibration and values */

static qat_status draw_reliability(const figures_run *run, const char *dir, qat_error *err)
{
    double x[QAT_BINS], y[QAT_BINS], largest;
    plot_curve curves[2] = {{.x = x, .y = y},
                            {.name = "as sure as right",
                             .n = 2,
                             .x = ends,
                             .y = ends,
                             .colour = 6,
                             .dashes = 2,
                             .unmarked = true}};
    char path[1024];
    for (int k = 0; k < QAT_BINS; k++) {
        const qat_bin *b = &run->of->bins[k];
        if (b->n) {
            x[curves[0].n] = b->sure / (double)b->n;
            y[curves[0].n++] = (double)b->right / (double)b->n;
        }
    }
    if (!curves[0].n)
        return QAT_OK;
    snprintf(curves[0].name, sizeof curves[0].name, "answers; error %.4f",
             qat_bins_error(run->of->bins, &largest));
    path_of(path, run, dir, "reliability");
    plot_curves const plot = {.title = "Reliability: are answers as often right as they are sure?",
                              .x_title = "mean probability of the answers (share)",
                              .y_title = "answers that are right (share)",
                              .joined = true,
                              .n = 2,
                              .curves = curves};
    return plot_curves_write(&plot, path, err);
}

static qat_status draw_values(const figures_run *run, int unit, const char *dir, qat_error *err)
{
    const figures *f = run->of;
    size_t const step = f->n / VALUES_SHOWN + 1;
    double *x = malloc(2 * (VALUES_SHOWN + 1) * sizeof *x), *y = x + VALUES_SHOWN + 1;
    double least = INFINITY, most = -INFINITY;
    char path[1024], name[32];
    int n = 0;
    if (!x)
        return qat_out_of_memory(err, "figures");
    for (size_t i = 0; i < f->n; i += step) {
        double const truth = (double)f->truth[i * (size_t)f->n_units + (size_t)unit];
        if (isnan(truth))
            continue;
        x[n] = truth;
        y[n++] = figures_score(f, i, unit);
        least = fmin(least, truth);
        most = fmax(most, truth);
    }
    double line[2] = {least, most};
    plot_curve const whole[] = {
        {.name = "samples", .n = n, .x = x, .y = y},
        {.name = "right", .n = 2, .x = line, .y = line, .colour = 1, .dashes = 1}};
    plot_curves const plot = {.title = "Answers for the samples",
                              .x_title = "true value (its own unit)",
                              .y_title = "answer (the same unit)",
                              .n = 2,
                              .curves = whole};
    snprintf(name, sizeof name, f->n_units > 1 ? "values_%d" : "values", unit);
    path_of(path, run, dir, name);
    qat_status const st = n ? plot_curves_write(&plot, path, err) : QAT_OK;
    free(x);
    return st;
}

qat_status figures_draw(const figures_run *run, const char *dir, qat_error *err)
{
    static const picture roc = {"roc", "ROC: hits against false alarms, over all thresholds",
                                "others that are taken for hits (share)",
                                "hits that are found (share)", true};
    static const picture precision = {
        "precision_recall", "Precision against recall, over all thresholds",
        "recall: hits that are found (share)", "precision: found that are hits (share)", false};
    const figures *f = run->of;
    qat_status st = QAT_OK;
    for (int k = 0; k < f->n_units && k < CURVES_SHOWN && f->kind == QAT_SCORES_VALUES && !st; k++)
        st = draw_values(run, k, dir, err);
    if (f->kind == QAT_SCORES_VALUES)
        return st;
    st = f->confusion ? draw_confusion(run, dir, err) : QAT_OK;
    if (!st && f->kind != QAT_SCORES_RANKED)
        st = draw_reliability(run, dir, err);
    if (!st)
        st = draw_curves(run, &roc, dir, err);
    return st ? st : draw_curves(run, &precision, dir, err);
}

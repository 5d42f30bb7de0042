/** Charts over the steps of a run: loss and figures of log.csv, ranges and scales of quant.csv. */
#include "tools/report/report.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 60, MOST_RANGES = 12, MOST_TENSORS = 2000 };

/** Curves with room for their points. */
struct chart {
    plot_curve curves[PLOT_MAX_CURVES];
    plot_curves plot;
};

/** A column of the rows whose `tensor` is this one (NULL: of all rows), over the steps. */
static qat_status add(struct chart *chart, const report_table *t, const char *tensor, int column,
                      const char *name, double divisor, qat_error *err)
{
    int const step = report_column(t, "step"), of = report_column(t, "tensor");
    if (column < 0 || step < 0 || chart->plot.n == PLOT_MAX_CURVES)
        return QAT_OK;
    plot_curve *curve = &chart->curves[chart->plot.n];
    double *room = calloc(3 * (size_t)t->rows + 3, sizeof *room);
    if (!room)
        return qat_out_of_memory(err, "curves");
    *curve = (plot_curve){.x = room, .y = room + t->rows, .deviation = room + 2 * (size_t)t->rows};
    snprintf(curve->name, sizeof curve->name, "%.150s", name);
    for (int i = 0; i < t->rows; i++) {
        double const x = report_value(t, i, step), y = report_value(t, i, column) / divisor;
        if (isnan(x) || !isfinite(y) || (tensor && strcmp(report_cell(t, i, of), tensor) != 0))
            continue;
        curve->x[curve->n] = x;
        curve->deviation[curve->n] = NAN;
        curve->y[curve->n++] = y;
    }
    int const every = curve->n / MOST_POINTS + 1, last = curve->n - 1;
    int kept = 0;
    for (int i = 0; i < curve->n; i++)
        if (i % every == 0 || i == last) {
            curve->x[kept] = curve->x[i];
            curve->y[kept++] = curve->y[i];
        }
    curve->n = kept;
    curve->colour = chart->plot.n % 7;
    curve->dashes = chart->plot.n / 7;
    if (kept)
        chart->plot.n++;
    else
        free(room);
    return QAT_OK;
}

/** Write the chart, unless it is empty, and free its points. */
static qat_status draw(qat_writer *page, struct chart *chart, qat_status st, qat_error *err)
{
    chart->plot.curves = chart->curves;
    chart->plot.joined = true;
    chart->plot.x_title = "training step";
    if (!st && chart->plot.n)
        st = html_curves(page, &chart->plot, err);
    for (int i = 0; i < chart->plot.n; i++)
        free(chart->curves[i].x);
    return st;
}

/** Mark where quantization begins, if the curves reach so far. */
static void mark_start(struct chart *chart, const report_run *run)
{
    const qat_checkpoint *c = qat_restored_checkpoint(run->inspected.restored);
    if (!qat_checkpoint_quantized(c))
        return;
    const qat_quant_options *q = qat_checkpoint_quant(c);
    chart->plot.mark = fmin((double)q->weight_delay, (double)q->activation_delay);
    for (int i = 0; i < chart->plot.n; i++)
        if (chart->curves[i].n && chart->curves[i].x[0] <= chart->plot.mark &&
            chart->curves[i].x[chart->curves[i].n - 1] >= chart->plot.mark)
            chart->plot.mark_name = "quantized from here";
}

static qat_status draw_column(qat_writer *page, const report_run *runs, int n, const char *column,
                              const char *title, const char *unit, qat_error *err)
{
    struct chart chart = {.plot = {.title = title, .y_title = unit}};
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < n; i++)
        st = add(&chart, &runs[i].log, NULL, report_column(&runs[i].log, column),
                 n > 1 ? runs[i].name : column, 1, err);
    if (n == 1)
        mark_start(&chart, runs);
    return draw(page, &chart, st, err);
}

/** Were the runs evaluated on samples taken from the training data? */
static bool validated(const report_run *runs, int n)
{
    char text[QAT_RECIPE_VALUE_MAX];
    bool all = true;
    for (int i = 0; i < n; i++) {
        const char *share = qat_recipe_get(qat_restored_recipe(runs[i].inspected.restored),
                                           "data.validation", text);
        all = all && share && qat_number_of(share, NULL) > 0;
    }
    return all;
}

/** The three networks' figure in one chart: of one run, or the integers' of several. */
static qat_status draw_figure(qat_writer *page, const report_run *runs, int n,
                              const qat_figure *figure, qat_error *err)
{
    static const char *const networks[] = {"float", "simulated", "integer"};
    char title[160], unit[160], column[160];
    struct chart chart = {.plot = {.title = title, .y_title = unit}};
    qat_status st = QAT_OK;
    snprintf(title, sizeof title, "%.80s on %s data%s", tool_shown(figure->name),
             validated(runs, n) ? "validation" : "test", n > 1 ? ", integers" : "");
    snprintf(unit, sizeof unit, "%.80s [%s]", tool_shown(figure->name),
             figure->kind == QAT_FIGURE_REAL ? "its own unit" : "%");
    for (int i = 0; !st && i < n; i++)
        for (int k = n > 1 ? 2 : 0; !st && k < 3; k++) {
            snprintf(column, sizeof column, "%s_%.100s", networks[k], figure->column);
            st = add(&chart, &runs[i].log, NULL, report_column(&runs[i].log, column),
                     n > 1 ? runs[i].name : networks[k], 1, err);
        }
    if (n == 1)
        mark_start(&chart, runs);
    return draw(page, &chart, st, err);
}

const qat_figure *report_figure(const report_run *run)
{
    const qat_accuracy *a =
        qat_checkpoint_accuracy(qat_restored_checkpoint(run->inspected.restored), QAT_JUDGED_FLOAT);
    return a->task ? &a->task->figures[a->task->main] : NULL;
}

qat_status report_curves(qat_writer *page, const report_run *runs, int n, qat_error *err)
{
    const qat_accuracy *a = qat_checkpoint_accuracy(
        qat_restored_checkpoint(runs->inspected.restored), QAT_JUDGED_FLOAT);
    const qat_figure *figure = report_figure(runs);
    bool const nats = figure && !strcmp(figure->column, "top1");
    qat_status st = draw_column(page, runs, n, "loss", "loss in training",
                                nats ? "loss [nats]" : "loss [sum of the task's terms]", err);
    if (st || !figure)
        return st;
    st = draw_figure(page, runs, n, figure, err);
    return st || !a->task->logs_both
               ? st
               : draw_figure(page, runs, n, &a->task->figures[a->task->also], err);
}

/* ------------------------------------------------------------------ quantizers */

static qat_status draw_range(qat_writer *page, const report_run *run, int row, qat_error *err)
{
    const report_table *t = &run->quant;
    const char *tensor = report_cell(t, row, report_column(t, "tensor"));
    char title[300];
    struct chart chart = {.plot = {.title = title, .y_title = "real value [units of the tensor]"}};
    snprintf(title, sizeof title, "range of %.200s", tool_shown(tensor));
    qat_status st = add(&chart, t, tensor, report_column(t, "max"), "max", 1, err);
    if (!st)
        st = add(&chart, t, tensor, report_column(t, "min"), "min", 1, err);
    mark_start(&chart, run);
    return draw(page, &chart, st, err);
}

qat_status report_ranges(qat_writer *page, const report_run *run, int charts, qat_error *err)
{
    const report_table *t = &run->quant;
    int const of = report_column(t, "tensor"), kind = report_column(t, "kind");
    int const scale = report_column(t, "scale_max");
    char title[] = "scales of all tensors, as multiples of their first";
    struct chart scales = {.plot = {.title = title, .y_title = "scale / first scale [1]"}};
    qat_status st = QAT_OK;
    int ranges = 0, left = 0;
    html_element(page, "h3", "Ranges and scales over time");
    if (of < 0 || kind < 0 || scale < 0 || !t->rows) {
        html_element(page, "p", "The run has no quant.csv: quant.range_log_every writes it.");
        return QAT_OK;
    }
    for (int i = 0; !st && i < t->rows && left < MOST_TENSORS; i++) {
        const char *tensor = report_cell(t, i, of);
        int first = 0;
        while (strcmp(report_cell(t, first, of), tensor) != 0)
            first++;
        if (first < i)
            continue;
        double const from = report_value(t, i, scale);
        if (from > 0)
            st = add(&scales, t, tensor, scale, tensor, from, err);
        if (!st && ranges < charts && ranges < MOST_RANGES &&
            !strcmp(report_cell(t, i, kind), "activation")) {
            ranges++;
            st = draw_range(page, run, i, err);
        } else {
            left++;
        }
    }
    mark_start(&scales, run);
    st = draw(page, &scales, st, err);
    if (left)
        qat_write_text(page,
                       "<p>%d tensors have no chart of their range here: quant.csv has them."
                       "</p>\n",
                       left);
    return st;
}

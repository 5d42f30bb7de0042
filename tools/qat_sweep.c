/** qat-sweep: trains, quantizes, exports and evaluates many runs, and prints one table. */
#include "tools/sweep/sweep.h"
#include "tools/sweep/sweep_plot.h"

#include "base/files/file.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tool_list sets, plots, heats;
static const char *out, *baseline_text, *columns, *seconds;
static int64_t seeds = 1, slots = 1, threads, verify = 1000;
static bool bench, predict, only_table;

static const tool_option options[] = {
    {"--set", TOOL_LIST, &sets, "SECTION.KEY=V[,V...]",
     "a setting for all runs; with several values, an axis of the grid\n"
     "(repeatable). Put a value that contains commas in braces:\n"
     "model.filters={8,16},{16,32}",
     0, 0},
    {"--out", TOOL_TEXT, &out, "DIR", "folder for everything that the sweep writes", 0, 0},
    {"--seeds", TOOL_INT, &seeds, "N", "train each cell with train.seed = 1..N (default 1)", 1,
     QAT_RESULTS_MAX_SEEDS},
    {"--jobs", TOOL_INT, &slots, "N", "how many runs to train side by side (default 1)", 1, 256},
    {"--threads", TOOL_INT, &threads, "N", "threads of each run, instead of train.threads", 1,
     TOOL_THREADS_MAX},
    {"--verify", TOOL_INT, &verify, "N", "verify each export on N samples (default 1000)", 1,
     INT32_MAX},
    {"--bench", TOOL_FLAG, &bench, NULL,
     "at the end, time each .qm and its float network, with 1 and 2 threads, one\n"
     "after the other",
     0, 0},
    {"--seconds", TOOL_TEXT, &seconds, "S", "seconds of each such measurement (default 1)", 0, 0},
    {"--baseline", TOOL_TEXT, &baseline_text, "CELL",
     "compare all cells with this one, seed by seed; give its name, or settings\n"
     "that only it has: KEY=VALUE[,KEY=VALUE...]",
     0, 0},
    {"--columns", TOOL_TEXT, &columns, "NAME[,NAME...]", "columns of the printed table", 0, 0},
    {"--plot", TOOL_LIST, &plots, "[log:]X,Y[@KEY=VALUE][+X,Y...][/KEY...]",
     "draw Y against X; both are columns or settings. @KEY=VALUE: only cells\n"
     "with that setting. /KEY: one curve for each of its values. log:\n"
     "logarithmic x axis. Files: DIR/plot-*.png and .svg (repeatable)",
     0, 0},
    {"--heat", TOOL_LIST, &heats, "VALUE[:OTHER],KEY,KEY",
     "draw a heat map of a column over two settings; with OTHER, of its relative\n"
     "change against that column. Files: DIR/heat-*.png and .svg (repeatable)",
     0, 0},
    {"--predict", TOOL_FLAG, &predict, NULL,
     "search the bits of each cell within its budget (qat-train --budget --dry-run)\n"
     "and train nothing",
     0, 0},
    {"--table", TOOL_FLAG, &only_table, NULL,
     "run nothing, print the table of the runs that are there", 0, 0},
    {0}};

static const tool me = {
    "qat-sweep",
    "RECIPE.ini... --out DIR [--set SECTION.KEY=V[,V...]]... [--seeds N]\n"
    "                 [--jobs N] [--threads N] [--verify N] [--bench [--seconds S] | --predict]\n"
    "                 [--baseline CELL] [--columns NAME[,NAME...]] [--table]\n"
    "                 [--plot [log:]X,Y[@KEY=VALUE][+X,Y...][/KEY...]]... [--heat "
    "VALUE[:OTHER],KEY,KEY]...",
    "Trains every recipe with every combination of settings and every seed. Exports and evaluates "
    "the\n"
    "results and prints a table: mean and standard deviation over seeds, and differences to a "
    "baseline\n"
    "with a paired t-test. A second call continues the sweep; finished runs are not repeated.",
    options,
    1,
    TOOL_LIST_MAX};

/** Refuse a setting that an option of the sweep makes. */
static void check_key(const sweep *s, const char *key, const char *instead)
{
    if (qat_sweep_grid_axis_of(&s->grid, key) >= 0)
        tool_usage(&me, "--set %s: %s sets this key", key, instead);
}

static void set_grid(sweep *s, const tool_list *recipes)
{
    qat_error err;
    if (qat_sweep_grid_add_values(&s->grid, "recipe", recipes->items, recipes->count, &err))
        tool_usage(&me, "%s", err.message);
    for (int i = 0; i < sets.count; i++)
        if (qat_sweep_grid_add(&s->grid, sets.items[i], &err))
            tool_usage(&me, "--set %s", err.message);
    check_key(s, "train.seed", "--seeds");
    check_key(s, "output.dir", "--out");
    if (s->grid.n_axes == QAT_SWEEP_MAX_AXES)
        tool_usage(&me, "more than %d settings", QAT_SWEEP_MAX_AXES - 1);
    if (qat_sweep_grid_cells(&s->grid) > QAT_SWEEP_MAX_CELLS / s->seeds)
        tool_usage(&me, "%d cells with %d seeds are more than the limit of %d runs",
                   qat_sweep_grid_cells(&s->grid), s->seeds, QAT_SWEEP_MAX_CELLS);
}

static int find_baseline(const sweep *s)
{
    qat_error err;
    int cell = -1;
    if (baseline_text && qat_sweep_grid_find(&s->grid, baseline_text, &cell, &err))
        tool_usage(&me, "--baseline %s", err.message);
    return cell;
}

static void check_seconds(void)
{
    char *end;
    double const v = seconds ? qat_number_of(seconds, &end) : 1;
    if (!seconds)
        return;
    if (!bench)
        tool_usage(&me, "--seconds is the time of each measurement of --bench, which is not given");
    if (end == seconds || *end || !(v > 0 && v <= 1e6))
        tool_usage(&me, "--seconds %s: expected a number above 0, at most 1000000", seconds);
}

static void check_plots(const sweep *s)
{
    qat_error err;
    for (int i = 0; i < plots.count; i++)
        if (sweep_check_plot(s, plots.items[i], &err))
            tool_usage(&me, "--plot %s: %s", plots.items[i], err.message);
    for (int i = 0; i < heats.count; i++)
        if (sweep_check_heat(s, heats.items[i], &err))
            tool_usage(&me, "--heat %s: %s", heats.items[i], err.message);
}

typedef qat_status plot_fn(const sweep *s, const qat_results *r, const char *spec, qat_error *err);

/**
 * Draw a plot. While runs are unfinished, columns may be missing; such a plot is drawn in a later
 * call.
 */
static qat_status draw(const sweep *s, const qat_results *r, const char *option,
                       const tool_list *specs, plot_fn *plot, qat_error *err)
{
    qat_error why;
    for (int i = 0; i < specs->count; i++) {
        qat_status const st = plot(s, r, specs->items[i], &why);
        if ((st == QAT_ERR_ARGUMENT || st == QAT_ERR_STATE) && sweep_unfinished(s))
            fprintf(stderr, "%s: %s %s: not drawn yet: %s\n", me.name, option,
                    tool_shown(specs->items[i]), tool_shown(why.message));
        else if (st)
            return qat_fail(err, st, "%s %.150s: %.300s", option, specs->items[i], why.message);
    }
    return QAT_OK;
}

static qat_status tables(const sweep *s, int baseline, qat_error *err)
{
    qat_results r;
    qat_status st = sweep_collect(s, &r, err);
    if (!st && only_table)
        st = sweep_check_table(s, &r, err);
    if (!st)
        st = sweep_report(s, &r, columns, baseline, err);
    if (!st)
        st = draw(s, &r, "--plot", &plots, sweep_plot, err);
    if (!st)
        st = draw(s, &r, "--heat", &heats, sweep_heat, err);
    qat_results_free(&r);
    return st;
}

static qat_status work(sweep *s, int baseline, qat_error *err)
{
    int failed = 0;
    bool stopped = false;
    qat_status st = qat_make_dirs(s->out, err);
    if (!st && !only_table)
        st = sweep_lock(s->out, err);
    if (!st && !only_table)
        st = sweep_run(s, &failed, &stopped, err);
    if (!st)
        st = tables(s, baseline, err);
    if (!st && stopped)
        st = qat_fail(err, QAT_ERR_STATE, "stopped; run the same command again to continue");
    if (!st && failed)
        st = qat_fail(err, QAT_ERR_STATE,
                      "%d of %d runs failed; run the same command again to repeat them", failed,
                      s->n_jobs);
    return st;
}

int main(int argc, char **argv)
{
    tool_list recipes;
    qat_error err;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &recipes);
    if (!out)
        tool_usage(&me, "--out DIR is missing");
    if (bench && predict)
        tool_usage(&me, "--predict trains nothing that --bench could measure");
    if (strlen(out) > 250)
        tool_usage(&me, "--out %.80s...: the path is too long", out);
    sweep s = {.out = out,
               .seeds = (int)seeds,
               .slots = (int)slots,
               .threads = (int)threads,
               .verify = (int)verify,
               .bench = bench,
               .predict = predict,
               .bench_seconds = seconds ? seconds : "1"};
    check_seconds();
    set_grid(&s, &recipes);
    check_plots(&s);
    int const baseline = find_baseline(&s);
    qat_status st = sweep_prepare(&s, &err);
    if (st == QAT_ERR_ARGUMENT) {
        sweep_free(&s);
        tool_usage(&me, "%s", err.message);
    }
    if (!st)
        st = work(&s, baseline, &err);
    sweep_free(&s);
    return st ? tool_failed(&me, &err) : 0;
}

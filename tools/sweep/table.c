/**
 * Writes results as a Markdown table, a line per cell. Fractions are shown in percent, and their
 * differences in points.
 */
#include "base/bytes.h"
#include "tools/sweep/results.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/** Is there a column for this axis? Yes for the recipe, and for settings with several values. */
static bool is_shown(const qat_sweep_grid *grid, int axis)
{
    return axis == 0 || grid->axes[axis].n > 1;
}

static void write_cell(qat_writer *w, const char *text)
{
    for (const char *at = text; *at; at++)
        qat_write_text(w, *at == '|' ? "\\%c" : "%c", *at);
}

static void write_head(qat_writer *w, const qat_results *r, const int *columns, int n, int baseline)
{
    int count = 1;
    for (int i = 0; i < r->grid->n_axes; i++)
        if (is_shown(r->grid, i)) {
            qat_write_text(w, "| %s ", r->grid->axes[i].key);
            count++;
        }
    qat_write_text(w, "| seeds ");
    for (int i = 0; i < n; i++) {
        const char *name = r->columns[columns[i]];
        const char *unit = qat_results_is_share(name) ? " [%]" : "";
        qat_write_text(w, "| %s%s ", name, unit);
        if (baseline >= 0)
            qat_write_text(w, "| %s - baseline | t | p ", name);
        count += baseline >= 0 ? 4 : 1;
    }
    qat_write_text(w, "|\n");
    for (int i = 0; i < count; i++)
        qat_write_text(w, "|---");
    qat_write_text(w, "|\n");
}

/** Write a number with so many digits, or up to the point. */
static void write_number(qat_writer *w, double x, int digits, bool sign)
{
    bool const whole = fabs(x) >= pow(10, digits) - 0.5; /* %g would write an exponent */
    if (whole)
        qat_write_text(w, sign ? "%+.0f" : "%.0f", x);
    else
        qat_write_text(w, sign ? "%+.*g" : "%.*g", digits, x);
}

/**
 * Write `x` or `x ± deviation`: fractions in percent with two decimals, other numbers with four
 * digits or up to the point.
 */
static void write_spread(qat_writer *w, qat_spread s, bool share, bool sign)
{
    if (!s.n) {
        qat_write_text(w, "| missing ");
        return;
    }
    double const unit = share ? 100 : 1;
    qat_write_text(w, "| ");
    if (share)
        qat_write_text(w, sign ? "%+.2f" : "%.2f", unit * s.mean);
    else
        write_number(w, s.mean, 4, sign);
    if (s.n > 1 && share)
        qat_write_text(w, " ± %.2f", unit * s.deviation);
    else if (s.n > 1) {
        qat_write_text(w, " ± ");
        write_number(w, s.deviation, 2, false);
    }
    qat_write_text(w, " ");
}

static void write_comparison(qat_writer *w, const qat_results *r, int cell, int baseline,
                             int column)
{
    qat_paired const test = qat_results_compare(r, cell, baseline, column);
    if (cell == baseline) {
        qat_write_text(w, "| baseline | | ");
        return;
    }
    write_spread(w, test.difference, qat_results_is_share(r->columns[column]), true);
    if (isnan(test.t))
        qat_write_text(w, "| | ");
    else
        qat_write_text(w, "| %.2f | %.3g ", test.t, test.p);
}

/** How many seeds have any of the given columns. */
static int seeds_done(const qat_results *r, int cell, const int *columns, int n)
{
    int done = 0;
    for (int seed = 0; seed < r->seeds; seed++) {
        bool any = false;
        for (int i = 0; i < n; i++)
            any |= !isnan(r->values[columns[i]][cell * r->seeds + seed]);
        done += any;
    }
    return done;
}

static void write_line(qat_writer *w, const qat_results *r, int cell, const int *columns, int n,
                       int baseline)
{
    for (int i = 0; i < r->grid->n_axes; i++)
        if (is_shown(r->grid, i)) {
            qat_write_text(w, "| ");
            write_cell(w, qat_sweep_grid_value(r->grid, cell, i));
            qat_write_text(w, " ");
        }
    qat_write_text(w, "| %d of %d ", seeds_done(r, cell, columns, n), r->seeds);
    for (int i = 0; i < n; i++) {
        bool const share = qat_results_is_share(r->columns[columns[i]]);
        write_spread(w, qat_results_spread(r, cell, columns[i]), share, false);
        if (baseline >= 0)
            write_comparison(w, r, cell, baseline, columns[i]);
    }
    qat_write_text(w, "|\n");
}

qat_status qat_results_markdown(const qat_results *r, const int *columns, int n, int baseline,
                                char **text, qat_error *err)
{
    qat_writer w = {0};
    write_head(&w, r, columns, n, baseline);
    for (int cell = 0; cell < qat_sweep_grid_cells(r->grid); cell++)
        write_line(&w, r, cell, columns, n, baseline);
    qat_write_u8(&w, 0);
    *text = w.failed ? NULL : (char *)w.bytes;
    if (!w.failed)
        return QAT_OK;
    qat_writer_free(&w);
    return qat_out_of_memory(err, "the table");
}

/**
 * Plots as PNG and SVG, drawn with cairo: curves, heat maps and histograms with titled axes. A
 * build without cairo returns an error when a plot is asked for.
 */
#ifndef QAT_TOOLS_PLOT_H
#define QAT_TOOLS_PLOT_H

#include "base/bytes.h"
#include "qat/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { PLOT_MAX_CURVES = 24 };

/** Points, joined by lines in the order given. */
typedef struct plot_curve {
    char name[160]; /* shown in the legend; "": not shown */
    int n;
    double *x, *y;     /* borrowed */
    double *deviation; /* standard deviation of y, drawn as a vertical bar; NaN, or no array: none;
                          borrowed */
    int colour;        /* curves with the same number have the same colour and marks, */
    int dashes;    /* but different lines: 0 solid with filled marks; 1, 2 dashed with open marks */
    bool unmarked; /* only the line, without marks */
} plot_curve;

typedef struct plot_curves {
    const char *title, *x_title, *y_title; /* titles of axes name their units */
    bool log_x;                            /* all x > 0 */
    bool joined;                           /* join the points by lines */
    int n;
    const plot_curve *curves;
    const char *mark_name; /* NULL: no mark */
    double mark;           /* an x to mark with a line and this name */
} plot_curves;

typedef struct plot_heat {
    const char *title, *x_title, *y_title, *value_title;
    int columns, rows;
    const char *const *column_names, *const *row_names;
    const double *values; /* [rows][columns]; NaN: missing */
} plot_heat;

/** How many values lie in each of n intervals of equal width. */
typedef struct plot_histogram {
    const char *title, *x_title;
    int n;
    const int64_t *counts;
    double low, high; /* ends of the first and last interval */
    double mark;      /* a number to mark with a line and its name (where zero is); NaN: none */
    const char *mark_name;
} plot_histogram;

/** Write path.png and path.svg. */
qat_status plot_curves_write(const plot_curves *p, const char *path, qat_error *err);
qat_status plot_heat_write(const plot_heat *p, const char *path, qat_error *err);
qat_status plot_histogram_write(const plot_histogram *p, const char *path, qat_error *err);

/** Append the plot as SVG. */
qat_status plot_curves_svg(const plot_curves *p, qat_writer *svg, qat_error *err);
qat_status plot_heat_svg(const plot_heat *p, qat_writer *svg, qat_error *err);
qat_status plot_histogram_svg(const plot_histogram *p, qat_writer *svg, qat_error *err);

#endif

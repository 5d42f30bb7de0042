/**
 * Drawing functions of all plots. Lengths are points; y grows downwards.
 */
#ifndef QAT_TOOLS_PLOT_DRAW_H
#define QAT_TOOLS_PLOT_DRAW_H

#include "tools/plot/plot.h"

#include <cairo.h>

/** How large a plot is drawn. */
typedef struct plot_size {
    double width, height;
} plot_size;

/** Of plots in files; and of those in a page, which a phone shows too: there letters must be large.
 */
static const plot_size plot_file_size = {840, 540}, plot_page_size = {540, 360};

typedef void plot_drawer(cairo_t *c, const void *plot, plot_size size);

typedef struct plot_colour {
    double red, green, blue;
} plot_colour;

/** The area between the axes, where the data are drawn. */
typedef struct plot_area {
    double left, top, right, bottom;
} plot_area;

/**
 * Which point of a text lies at (x, y): 0 is its left or top end, 0.5 the middle, 1 its right or
 * bottom end.
 */
typedef struct plot_anchor {
    double x, y;
} plot_anchor;

void plot_set_colour(cairo_t *c, plot_colour colour);
void plot_text(cairo_t *c, double x, double y, plot_anchor anchor, double size, const char *text);
/** Draw text upwards along a vertical axis, centred. */
void plot_text_upwards(cairo_t *c, double x, double y, double size, const char *text);
double plot_text_width(cairo_t *c, double size, const char *text);
void plot_line(cairo_t *c, double x0, double y0, double x1, double y1, double width);

/** The same before there is something to draw on. */
double plot_text_width_alone(double size, const char *text);

/** Draw the plot once for each kind of file. */
qat_status plot_write(plot_drawer *draw, const void *plot, const char *path, qat_error *err);
/** Draw the plot as SVG of this size, behind what svg holds. */
qat_status plot_svg(plot_drawer *draw, const void *plot, plot_size size, qat_writer *svg,
                    qat_error *err);

#endif

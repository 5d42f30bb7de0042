/**
 * The frame of a plot with numbers on both axes: ticks at round numbers, titles, and the position
 * of a point.
 */
#ifndef QAT_TOOLS_PLOT_FRAME_H
#define QAT_TOOLS_PLOT_FRAME_H

#include "tools/plot/plot_draw.h"
#include "tools/plot/ticks.h"

enum { PLOT_TEXT = 13, PLOT_TITLE = 15 };

typedef struct plot_frame {
    plot_size size; /* of all, with the titles */
    plot_area area;
    qat_ticks x, y;
    const char *title, *x_title, *y_title; /* titles of axes name their units */
} plot_frame;

double plot_x_at(const plot_frame *f, double x);
double plot_y_at(const plot_frame *f, double y);
/** Draw ticks with pale lines across, the box around them, and the titles in black. */
void plot_frame_draw(cairo_t *c, const plot_frame *f);

#endif

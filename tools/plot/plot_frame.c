/** Plot frames: ticks at round numbers, and titles of the axes. */
#include "tools/plot/plot_frame.h"

#include <stdio.h>

static const plot_colour black = {0, 0, 0}, pale = {0.87, 0.87, 0.87};

double plot_x_at(const plot_frame *f, double x)
{
    return f->area.left + qat_ticks_position(&f->x, x) * (f->area.right - f->area.left);
}

double plot_y_at(const plot_frame *f, double y)
{
    return f->area.bottom - qat_ticks_position(&f->y, y) * (f->area.bottom - f->area.top);
}

static void tick_label(char text[32], const qat_ticks *t, int i)
{
    if (t->logarithmic)
        snprintf(text, 32, "%g", t->at[i]);
    else
        snprintf(text, 32, "%.*f", t->digits, t->at[i] == 0 ? 0 : t->at[i]);
}

static void draw_ticks(cairo_t *c, const plot_frame *f)
{
    char text[32];
    for (int i = 0; i < f->x.n; i++) {
        double const x = plot_x_at(f, f->x.at[i]);
        plot_set_colour(c, pale);
        plot_line(c, x, f->area.top, x, f->area.bottom, 1);
        plot_set_colour(c, black);
        plot_line(c, x, f->area.bottom, x, f->area.bottom + 5, 1);
        tick_label(text, &f->x, i);
        plot_text(c, x, f->area.bottom + 9, (plot_anchor){0.5, 0}, PLOT_TEXT, text);
    }
    for (int i = 0; i < f->y.n; i++) {
        double const y = plot_y_at(f, f->y.at[i]);
        plot_set_colour(c, pale);
        plot_line(c, f->area.left, y, f->area.right, y, 1);
        plot_set_colour(c, black);
        plot_line(c, f->area.left - 5, y, f->area.left, y, 1);
        tick_label(text, &f->y, i);
        plot_text(c, f->area.left - 9, y, (plot_anchor){1, 0.5}, PLOT_TEXT, text);
    }
}

void plot_frame_draw(cairo_t *c, const plot_frame *f)
{
    double const middle_x = (f->area.left + f->area.right) / 2;
    double const middle_y = (f->area.top + f->area.bottom) / 2;
    draw_ticks(c, f);
    cairo_rectangle(c, f->area.left, f->area.top, f->area.right - f->area.left,
                    f->area.bottom - f->area.top);
    cairo_set_line_width(c, 1);
    cairo_stroke(c);
    plot_text(c, f->size.width / 2, 18, (plot_anchor){0.5, 0}, PLOT_TITLE, f->title);
    plot_text(c, middle_x, f->size.height - 14, (plot_anchor){0.5, 1}, PLOT_TEXT, f->x_title);
    plot_text_upwards(c, 20, middle_y, PLOT_TEXT, f->y_title);
}

/** Histograms: one bar per interval, linear axes, one marked number. */
#include "tools/plot/plot_frame.h"

#include <math.h>

static const plot_colour bars = {0, 0.45, 0.70}, marked = {0.84, 0.37, 0}, black = {0, 0, 0};

static int64_t most_of(const plot_histogram *p)
{
    int64_t most = 1;
    for (int i = 0; i < p->n; i++)
        most = p->counts[i] > most ? p->counts[i] : most;
    return most;
}

static void draw_bars(cairo_t *c, const plot_frame *f, const plot_histogram *p)
{
    double const width = (p->high - p->low) / p->n;
    plot_set_colour(c, bars);
    for (int i = 0; i < p->n; i++) {
        double const left = plot_x_at(f, p->low + width * i);
        double const right = plot_x_at(f, p->low + width * (i + 1));
        double const top = plot_y_at(f, (double)p->counts[i]);
        cairo_rectangle(c, left, top, right - left, f->area.bottom - top);
    }
    cairo_fill(c);
}

static void draw_mark(cairo_t *c, const plot_frame *f, const plot_histogram *p)
{
    if (isnan(p->mark))
        return;
    double const x = plot_x_at(f, p->mark);
    plot_set_colour(c, marked);
    plot_line(c, x, f->area.top, x, f->area.bottom, 1);
    plot_text(c, x + 5, f->area.top + 6, (plot_anchor){0, 0}, PLOT_TEXT, p->mark_name);
    plot_set_colour(c, black);
}

/** Ticks of an axis that runs from exactly low to exactly high. */
static qat_ticks ticks_between(double low, double high)
{
    qat_ticks t = qat_ticks_linear(low, high);
    int n = 0;
    for (int i = 0; i < t.n; i++)
        if (t.at[i] >= low && t.at[i] <= high)
            t.at[n++] = t.at[i];
    t.n = n;
    t.low = low;
    t.high = high;
    return t;
}

static void draw(cairo_t *c, const void *plot, plot_size size)
{
    const plot_histogram *p = plot;
    plot_frame const f = {.size = size,
                          .area = {96, 48, size.width - 26, size.height - 66},
                          .x = ticks_between(p->low, p->high),
                          .y = qat_ticks_linear(0, (double)most_of(p)),
                          .title = p->title,
                          .x_title = p->x_title,
                          .y_title = "number of values"};
    plot_frame_draw(c, &f);
    draw_bars(c, &f, p);
    draw_mark(c, &f, p);
}

qat_status plot_histogram_write(const plot_histogram *p, const char *path, qat_error *err)
{
    return plot_write(draw, p, path, err);
}

qat_status plot_histogram_svg(const plot_histogram *p, qat_writer *svg, qat_error *err)
{
    return plot_svg(draw, p, plot_page_size, svg, err);
}

/**
 * Curve plots: a frame with ticks at round numbers, points joined by lines, and a legend on the
 * right.
 */
#include "tools/plot/plot_frame.h"

#include <math.h>
#include <stddef.h>

/** The colours of Okabe and Ito; colour-blind readers can tell them apart. */
static const plot_colour colours[] = {{0, 0.45, 0.70},    {0.84, 0.37, 0}, {0, 0.62, 0.45},
                                      {0.80, 0.47, 0.65}, {0.90, 0.62, 0}, {0.34, 0.71, 0.91},
                                      {0.25, 0.25, 0.25}};
enum { COLOURS = sizeof colours / sizeof colours[0], SHAPES = 4, MARK_TEXT = 11 };

static const plot_colour black = {0, 0, 0}, white = {1, 1, 1};

/* ------------------------------------------------------------------ frame */

static void widen(double *least, double *largest, double x)
{
    *least = fmin(*least, x);
    *largest = fmax(*largest, x);
}

static double deviation_at(const plot_curve *curve, int i)
{
    return curve->deviation ? curve->deviation[i] : NAN;
}

static void set_ticks(plot_frame *f, const plot_curves *p)
{
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->curves[i].n; k++) {
            const plot_curve *curve = &p->curves[i];
            double const d = isnan(deviation_at(curve, k)) ? 0 : deviation_at(curve, k);
            widen(&x0, &x1, curve->x[k]);
            widen(&y0, &y1, curve->y[k] - d);
            widen(&y0, &y1, curve->y[k] + d);
        }
    f->x = p->log_x ? qat_ticks_logarithmic(x0, x1) : qat_ticks_linear(x0, x1);
    f->y = qat_ticks_linear(y0, y1);
}

/* ------------------------------------------------------------------ curves */

static void draw_mark(cairo_t *c, double x, double y, const plot_curve *curve)
{
    double const r = 4.5;
    switch (curve->colour % SHAPES) {
    case 0:
        cairo_arc(c, x, y, r, 0, 6.283185307179586);
        break;
    case 1:
        cairo_rectangle(c, x - r, y - r, 2 * r, 2 * r);
        break;
    case 2:
        cairo_move_to(c, x, y - 1.3 * r);
        cairo_line_to(c, x + 1.2 * r, y + r);
        cairo_line_to(c, x - 1.2 * r, y + r);
        break;
    default:
        cairo_move_to(c, x, y - 1.4 * r);
        cairo_line_to(c, x + 1.4 * r, y);
        cairo_line_to(c, x, y + 1.4 * r);
        cairo_line_to(c, x - 1.4 * r, y);
        break;
    }
    cairo_close_path(c);
    if (!curve->dashes) {
        cairo_fill(c);
        return;
    }
    plot_set_colour(c, white);
    cairo_fill_preserve(c);
    plot_set_colour(c, colours[curve->colour % COLOURS]);
    cairo_set_line_width(c, 1.5);
    cairo_stroke(c);
}

/** Draw the path in the style of the curve. */
static void draw_path(cairo_t *c, const plot_curve *curve)
{
    static const double patterns[][2] = {{6, 4}, {2, 3}};
    int const pattern = (curve->dashes - 1) % 2;
    cairo_set_dash(c, patterns[pattern < 0 ? 0 : pattern], curve->dashes ? 2 : 0, 0);
    cairo_set_line_width(c, 1.5);
    cairo_stroke(c);
    cairo_set_dash(c, NULL, 0, 0);
}

/** Draw the mean and its deviation as an I. */
static void draw_bar(cairo_t *c, const plot_frame *f, double x, double y, double deviation)
{
    double const up = plot_y_at(f, y + deviation), down = plot_y_at(f, y - deviation),
                 at = plot_x_at(f, x);
    if (isnan(deviation))
        return;
    plot_line(c, at, up, at, down, 1);
    plot_line(c, at - 4, up, at + 4, up, 1);
    plot_line(c, at - 4, down, at + 4, down, 1);
}

static void draw_curve(cairo_t *c, const plot_frame *f, const plot_curve *curve, bool joined)
{
    plot_set_colour(c, colours[curve->colour % COLOURS]);
    for (int i = 0; joined && i < curve->n; i++)
        cairo_line_to(c, plot_x_at(f, curve->x[i]), plot_y_at(f, curve->y[i]));
    draw_path(c, curve);
    for (int i = 0; i < curve->n; i++) {
        draw_bar(c, f, curve->x[i], curve->y[i], deviation_at(curve, i));
        if (!curve->unmarked)
            draw_mark(c, plot_x_at(f, curve->x[i]), plot_y_at(f, curve->y[i]), curve);
    }
}

/* ------------------------------------------------------------------ legend */

/** Names of curves: right of the plot in files, below it in pages. */
typedef struct legend {
    double left, top, width; /* width: of a column */
    int columns, rows;
} legend;

enum { LEGEND_LINE = 29, LEGEND_ROW = 19 }; /* of a name: its line's width; its height */

static legend legend_of(const plot_curves *p)
{
    legend l = {.columns = 1};
    for (int i = 0; i < p->n; i++) {
        const char *name = p->curves[i].name;
        l.rows += name[0] != 0;
        if (name[0])
            l.width = fmax(l.width, LEGEND_LINE + 11 + plot_text_width_alone(PLOT_TEXT, name));
    }
    return l;
}

/** As many columns as there is room for. A single curve is named by the plot's title. */
static legend legend_below(const plot_curves *p, plot_size plot)
{
    legend l = legend_of(p);
    double const room = plot.width - 24;
    if (l.rows < 2)
        l.rows = 0;
    l.columns = (int)fmax(1, fmin(floor(room / fmax(l.width, 1)), l.rows));
    l.rows = (l.rows + l.columns - 1) / l.columns;
    l.left = 12;
    l.top = plot.height + 4;
    return l;
}

static void draw_legend(cairo_t *c, const legend *l, const plot_curves *p)
{
    int place = 0;
    for (int i = 0; i < p->n; i++) {
        double const x = l->left + l->width * (place % l->columns);
        double const y = l->top + LEGEND_ROW * (place / l->columns);
        if (!p->curves[i].name[0])
            continue;
        place++;
        plot_set_colour(c, colours[p->curves[i].colour % COLOURS]);
        if (p->joined) {
            cairo_move_to(c, x, y);
            cairo_line_to(c, x + 22, y);
            draw_path(c, &p->curves[i]);
        }
        if (!p->curves[i].unmarked)
            draw_mark(c, x + 11, y, &p->curves[i]);
        plot_set_colour(c, black);
        plot_text(c, x + LEGEND_LINE, y, (plot_anchor){0, 0.5}, PLOT_TEXT, p->curves[i].name);
    }
}

/* ------------------------------------------------------------------ plots */

static void draw_vertical(cairo_t *c, const plot_frame *f, const plot_curves *p)
{
    double const at = plot_x_at(f, p->mark);
    bool const right = 2 * at > f->area.left + f->area.right;
    plot_set_colour(c, black);
    plot_line(c, at, f->area.top - 12, at, f->area.bottom, 1);
    plot_text(c, right ? at - 5 : at + 5, f->area.top - 4, (plot_anchor){right ? 1 : 0, 1},
              MARK_TEXT, p->mark_name);
}

/** Everything but the legend; `right` is its room. */
static plot_frame draw_plot(cairo_t *c, const plot_curves *p, plot_size size, double right)
{
    plot_frame f = {.size = size,
                    .area = {82, 48, size.width - 26 - right, size.height - 66},
                    .title = p->title,
                    .x_title = p->x_title,
                    .y_title = p->y_title};
    set_ticks(&f, p);
    plot_frame_draw(c, &f);
    for (int i = 0; i < p->n; i++)
        draw_curve(c, &f, &p->curves[i], p->joined);
    if (p->mark_name)
        draw_vertical(c, &f, p);
    return f;
}

static void draw(cairo_t *c, const void *plot, plot_size size)
{
    legend l = legend_of(plot);
    plot_frame const f = draw_plot(c, plot, size, fmin(l.width, size.width / 2));
    l.left = f.area.right + 14;
    l.top = f.area.top + 10;
    draw_legend(c, &l, plot);
}

static void draw_in_page(cairo_t *c, const void *plot, plot_size size)
{
    legend const l = legend_below(plot, plot_page_size);
    (void)draw_plot(c, plot, plot_page_size, 0);
    if (l.rows)
        draw_legend(c, &l, plot);
}

qat_status plot_curves_write(const plot_curves *p, const char *path, qat_error *err)
{
    return plot_write(draw, p, path, err);
}

qat_status plot_curves_svg(const plot_curves *p, qat_writer *svg, qat_error *err)
{
    plot_size size = plot_page_size;
    size.height += LEGEND_ROW * legend_below(p, size).rows;
    return plot_svg(draw_in_page, p, size, svg, err);
}

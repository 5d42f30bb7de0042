/**
 * Heat maps: one field per value, darker for lower values, with the number written in it; the scale
 * is on the right.
 */
#include "tools/plot/plot_draw.h"
#include "tools/plot/ticks.h"

#include <math.h>
#include <stdio.h>

enum { TEXT = 13, TITLE = 15, SCALE_STEPS = 128 };

typedef struct frame {
    plot_size size;
    plot_area area;
    qat_ticks scale;
} frame;

/** A colour between dark blue (0) and pale yellow (1), through green. */
static plot_colour colour_at(double share)
{
    static const plot_colour stops[] = {{0.15, 0.20, 0.48}, {0.20, 0.55, 0.60}, {0.98, 0.97, 0.75}};
    int const k = share < 0.5 ? 0 : 1;
    double const u = 2 * share - k;
    return (plot_colour){stops[k].red + u * (stops[k + 1].red - stops[k].red),
                         stops[k].green + u * (stops[k + 1].green - stops[k].green),
                         stops[k].blue + u * (stops[k + 1].blue - stops[k].blue)};
}

static qat_ticks scale_of(const plot_heat *p)
{
    double least = INFINITY, largest = -INFINITY;
    for (int i = 0; i < p->rows * p->columns; i++)
        if (!isnan(p->values[i])) {
            least = fmin(least, p->values[i]);
            largest = fmax(largest, p->values[i]);
        }
    return qat_ticks_linear(least, largest);
}

static void fill(cairo_t *c, double x, double y, double width, double height)
{
    cairo_rectangle(c, x, y, width, height);
    cairo_fill(c);
}

/** The size at which a text is no wider than this. */
static double fitting(cairo_t *c, const char *text, double width)
{
    double const wide = plot_text_width(c, TEXT, text);
    return wide > width ? TEXT * width / wide : TEXT;
}

static void draw_field(cairo_t *c, const frame *f, const plot_heat *p, int row, int column)
{
    char text[32];
    double const value = p->values[row * p->columns + column];
    double const width = (f->area.right - f->area.left) / p->columns;
    double const height = (f->area.bottom - f->area.top) / p->rows;
    double const x = f->area.left + column * width, y = f->area.top + row * height;
    double const share = isnan(value) ? 1 : qat_ticks_position(&f->scale, value);
    double const ink = share < 0.55 ? 1 : 0;
    plot_set_colour(c, isnan(value) ? (plot_colour){0.93, 0.93, 0.93} : colour_at(share));
    fill(c, x, y, width - 1, height - 1);
    plot_set_colour(c, (plot_colour){ink, ink, ink});
    int const digits = f->scale.digits > 0 ? f->scale.digits + 1 : 2;
    if (isnan(value))
        snprintf(text, sizeof text, "missing");
    else
        snprintf(text, sizeof text, "%.*f", digits, value);
    plot_text(c, x + width / 2, y + height / 2, (plot_anchor){0.5, 0.5},
              fitting(c, text, width - 6), text);
}

static void draw_names(cairo_t *c, const frame *f, const plot_heat *p)
{
    double const width = (f->area.right - f->area.left) / p->columns;
    double const height = (f->area.bottom - f->area.top) / p->rows;
    plot_set_colour(c, (plot_colour){0, 0, 0});
    for (int i = 0; i < p->columns; i++)
        plot_text(c, f->area.left + (i + 0.5) * width, f->area.bottom + 9, (plot_anchor){0.5, 0},
                  fitting(c, p->column_names[i], width - 6), p->column_names[i]);
    for (int i = 0; i < p->rows; i++)
        plot_text(c, f->area.left - 9, f->area.top + (i + 0.5) * height, (plot_anchor){1, 0.5},
                  fitting(c, p->row_names[i], f->area.left - 44), p->row_names[i]);
    plot_text(c, f->size.width / 2, 18, (plot_anchor){0.5, 0}, TITLE, p->title);
    plot_text(c, (f->area.left + f->area.right) / 2, f->size.height - 14, (plot_anchor){0.5, 1},
              TEXT, p->x_title);
    plot_text_upwards(c, 20, (f->area.top + f->area.bottom) / 2, TEXT, p->y_title);
}

static void draw_scale(cairo_t *c, const frame *f, const plot_heat *p)
{
    double const x = f->area.right + 24, height = f->area.bottom - f->area.top;
    char text[32];
    for (int i = 0; i < SCALE_STEPS; i++) {
        plot_set_colour(c, colour_at((i + 0.5) / SCALE_STEPS));
        fill(c, x, f->area.bottom - (i + 1) * height / SCALE_STEPS, 18, height / SCALE_STEPS + 0.5);
    }
    plot_set_colour(c, (plot_colour){0, 0, 0});
    for (int i = 0; i < f->scale.n; i++) {
        double const y = f->area.bottom - qat_ticks_position(&f->scale, f->scale.at[i]) * height;
        plot_line(c, x + 18, y, x + 22, y, 1);
        snprintf(text, sizeof text, "%.*f", f->scale.digits,
                 f->scale.at[i] == 0 ? 0 : f->scale.at[i]);
        plot_text(c, x + 26, y, (plot_anchor){0, 0.5}, TEXT, text);
    }
    plot_text_upwards(c, f->size.width - 18, (f->area.top + f->area.bottom) / 2, TEXT,
                      p->value_title);
}

static double widest_name(cairo_t *c, const plot_heat *p, plot_size size)
{
    double widest = 0;
    for (int i = 0; i < p->rows; i++)
        widest = fmax(widest, plot_text_width(c, TEXT, p->row_names[i]));
    return fmin(widest, size.width / 3);
}

static void draw(cairo_t *c, const void *plot, plot_size size)
{
    const plot_heat *p = plot;
    frame const f = {.size = size,
                     .area = {52 + widest_name(c, p, size), 48, size.width - 134, size.height - 66},
                     .scale = scale_of(p)};
    for (int row = 0; row < p->rows; row++)
        for (int column = 0; column < p->columns; column++)
            draw_field(c, &f, p, row, column);
    draw_names(c, &f, p);
    draw_scale(c, &f, p);
}

qat_status plot_heat_write(const plot_heat *p, const char *path, qat_error *err)
{
    return plot_write(draw, p, path, err);
}

qat_status plot_heat_svg(const plot_heat *p, qat_writer *svg, qat_error *err)
{
    return plot_svg(draw, p, plot_file_size, svg, err);
}

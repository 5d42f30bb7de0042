/** Surfaces, texts and lines that all plots use. */
#include "tools/plot/plot_draw.h"

#include "base/files/file.h"

#include <cairo-svg.h>
#include <stdio.h>

enum { PNG_PIXELS = 2 }; /* PNG pixels in one point */

void plot_set_colour(cairo_t *c, plot_colour colour)
{
    cairo_set_source_rgb(c, colour.red, colour.green, colour.blue);
}

static cairo_text_extents_t measure(cairo_t *c, double size, const char *text)
{
    cairo_text_extents_t e;
    cairo_select_font_face(c, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, size);
    cairo_text_extents(c, text, &e);
    return e;
}

double plot_text_width(cairo_t *c, double size, const char *text)
{
    return measure(c, size, text).x_advance;
}

double plot_text_width_alone(double size, const char *text)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *c = cairo_create(surface);
    double const width = plot_text_width(c, size, text);
    cairo_destroy(c);
    cairo_surface_destroy(surface);
    return width;
}

void plot_text(cairo_t *c, double x, double y, plot_anchor anchor, double size, const char *text)
{
    double const width = plot_text_width(c, size, text);
    double const height =
        0.73 * size; /* height of capitals: texts in a row then share a base line */
    cairo_move_to(c, x - anchor.x * width, y + (1 - anchor.y) * height);
    cairo_show_text(c, text);
    cairo_new_path(c);
}

void plot_text_upwards(cairo_t *c, double x, double y, double size, const char *text)
{
    cairo_save(c);
    cairo_translate(c, x, y);
    cairo_rotate(c, -1.5707963267948966);
    plot_text(c, 0, 0, (plot_anchor){0.5, 0.5}, size, text);
    cairo_restore(c);
}

void plot_line(cairo_t *c, double x0, double y0, double x1, double y1, double width)
{
    cairo_set_line_width(c, width);
    cairo_move_to(c, x0, y0);
    cairo_line_to(c, x1, y1);
    cairo_stroke(c);
}

/* ------------------------------------------------------------------ files */

static void paint(cairo_surface_t *surface, plot_drawer *draw, const void *plot, plot_size size)
{
    cairo_t *c = cairo_create(surface);
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    draw(c, plot, size);
    cairo_destroy(c);
}

/** Takes what cairo writes. */
static cairo_status_t collect(void *writer, const unsigned char *bytes, unsigned count)
{
    qat_writer *w = writer;
    qat_write_bytes(w, bytes, count);
    return w->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/** The surface is complete: write the file, and free both. */
static qat_status finish(cairo_surface_t *surface, cairo_status_t status, const char *file,
                         qat_writer *w, qat_error *err)
{
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    qat_status const st =
        status == CAIRO_STATUS_SUCCESS
            ? qat_file_write_atomic(file, w->bytes, w->count, err)
            : qat_fail(err, QAT_ERR_IO, "%.400s: %s", file, cairo_status_to_string(status));
    qat_writer_free(w);
    return st;
}

qat_status plot_svg(plot_drawer *draw, const void *plot, plot_size size, qat_writer *svg,
                    qat_error *err)
{
    cairo_surface_t *surface =
        cairo_svg_surface_create_for_stream(collect, svg, size.width, size.height);
    paint(surface, draw, plot, size);
    cairo_surface_finish(surface);
    cairo_status_t const status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status == CAIRO_STATUS_SUCCESS
               ? QAT_OK
               : qat_fail(err, QAT_ERR_IO, "a plot: %s", cairo_status_to_string(status));
}

qat_status plot_write(plot_drawer *draw, const void *plot, const char *path, qat_error *err)
{
    plot_size const size = plot_file_size;
    char file[1024];
    qat_writer w = {0};
    snprintf(file, sizeof file, "%.1000s.png", path);
    cairo_surface_t *png = cairo_image_surface_create(
        CAIRO_FORMAT_RGB24, PNG_PIXELS * (int)size.width, PNG_PIXELS * (int)size.height);
    cairo_surface_set_device_scale(png, PNG_PIXELS, PNG_PIXELS);
    paint(png, draw, plot, size);
    qat_status const st =
        finish(png, cairo_surface_write_to_png_stream(png, collect, &w), file, &w, err);
    if (st)
        return st;
    snprintf(file, sizeof file, "%.1000s.svg", path);
    cairo_surface_t *svg =
        cairo_svg_surface_create_for_stream(collect, &w, size.width, size.height);
    paint(svg, draw, plot, size);
    return finish(svg, CAIRO_STATUS_SUCCESS, file, &w, err);
}

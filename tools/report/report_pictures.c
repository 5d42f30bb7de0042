/** The worst answers with their pictures: boxes drawn into them, classes of pixels beside them. */
#include "tools/report/report.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 96, MOST_BOXED_SIDE = 160 }; /* in pixels; of pictures with boxes */

/** Of classes of pixels and of boxes; more classes begin again behind the first, the background. */
static const uint8_t colours[][3] = {{32, 32, 32},   {0, 114, 178},   {213, 94, 0},
                                     {0, 158, 115},  {204, 121, 167}, {230, 159, 0},
                                     {86, 180, 233}, {240, 228, 66}};
enum { COLOURS = sizeof colours / sizeof *colours };

static const uint8_t *colour_of(int class_)
{
    static const uint8_t unknown[] = {255, 255, 255};
    return class_ < 0 ? unknown : class_ ? colours[1 + (class_ - 1) % (COLOURS - 1)] : colours[0];
}

/* ------------------------------------------------------------------ PNG */

static void write_base64(qat_writer *page, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t const three = (uint32_t)bytes[i] << 16 |
                               (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < n ? bytes[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            qat_write_u8(page,
                         i + (size_t)k > n ? '=' : (uint8_t)digits[three >> (18 - 6 * k) & 63]);
    }
}

/** Pixels of one or three channels as a PNG, in the page's bytes. */
static void write_png(qat_writer *page, const uint8_t *pixels, int height, int width, int channels)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *png = malloc(size);
    qat_write_text(page, "data:image/png;base64,");
    if (png && png_image_write_to_memory(&image, png, &size, 0, pixels, 0, NULL))
        write_base64(page, png, size);
    else
        page->failed = true;
    free(png);
}

/** A picture of which every step-th pixel of every step-th row is shown. */
struct reduced {
    int step, height, width, channels;
    uint8_t *pixels; /* owned */
};

static struct reduced reduce(const qat_input_info *input, const uint8_t *pixels, int side)
{
    int const longer = input->width > input->height ? input->width : input->height;
    struct reduced r = {.step = (longer + side - 1) / side, .channels = input->channels};
    r.width = (input->width + r.step - 1) / r.step;
    r.height = (input->height + r.step - 1) / r.step;
    r.pixels = malloc((size_t)r.width * (size_t)r.height * (size_t)r.channels + 1);
    for (int y = 0; r.pixels && y < r.height; y++)
        for (int x = 0; x < r.width; x++)
            memcpy(r.pixels + (y * r.width + x) * r.channels,
                   pixels + ((size_t)y * (size_t)r.step * (size_t)input->width +
                             (size_t)x * (size_t)r.step) *
                                (size_t)r.channels,
                   (size_t)r.channels);
    return r;
}

static void write_image(qat_writer *page, const char *what, const uint8_t *pixels, int height,
                        int width, int channels)
{
    qat_write_text(page, "<img alt=\"%s\" src=\"", what);
    write_png(page, pixels, height, width, channels);
    qat_write_text(page, "\">");
}

/* ------------------------------------------------------------------ one answer */

/** The picture with its boxes: dashed those that are there, solid those that were found. */
static void write_boxed(qat_writer *page, const report_wrong *w, const struct reduced *r)
{
    double const width = r->width, height = r->height;
    qat_write_text(page,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
                   "aria-label=\"the picture and its boxes\"><image width=\"%d\" height=\"%d\" "
                   "href=\"",
                   r->width, r->height, r->width, r->height);
    write_png(page, r->pixels, r->height, r->width, r->channels);
    qat_write_text(page, "\"/>");
    for (int i = 0; i < w->n_boxes; i++) {
        const report_box *b = &w->boxes[i];
        const uint8_t *c = colour_of(b->class_ + 1);
        double const top = fmax(0, (double)b->at.ymin), left = fmax(0, (double)b->at.xmin);
        double const high = fmax(0, fmin(1, (double)b->at.ymax) - top);
        double const wide = fmax(0, fmin(1, (double)b->at.xmax) - left);
        qat_write_text(page,
                       "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" ",
                       left * width, top * height, wide * width, high * height);
        if (b->score < 0)
            qat_write_text(page, "stroke=\"#fff\" stroke-dasharray=\"4 3\" stroke-width=\"1.5\"/>");
        else
            qat_write_text(page, "stroke=\"#%02x%02x%02x\" stroke-width=\"1.5\"/>", c[0], c[1],
                           c[2]);
    }
    qat_write_text(page, "</svg>");
}

/** Classes of pixels in their colours. */
static void write_classes(qat_writer *page, const char *what, const int32_t *classes,
                          const qat_input_info *input)
{
    size_t const n = (size_t)input->height * (size_t)input->width;
    uint8_t *rgb = malloc(3 * n + 1);
    qat_input_info const as = {.height = input->height, .width = input->width, .channels = 3};
    for (size_t i = 0; rgb && i < n; i++)
        memcpy(rgb + 3 * i, colour_of(classes[i]), 3);
    struct reduced const r = rgb ? reduce(&as, rgb, MOST_SIDE) : (struct reduced){0};
    if (r.pixels)
        write_image(page, what, r.pixels, r.height, r.width, 3);
    else
        page->failed = true;
    free(r.pixels);
    free(rgb);
}

static void write_pictures(qat_writer *page, const report_wrong *w, const qat_input_info *input)
{
    struct reduced const r = reduce(input, w->pixels, w->boxes ? MOST_BOXED_SIDE : MOST_SIDE);
    if (!r.pixels)
        page->failed = true;
    else if (w->boxes)
        write_boxed(page, w, &r);
    else
        write_image(page, "the picture", r.pixels, r.height, r.width, r.channels);
    free(r.pixels);
    if (!w->said || !w->is)
        return;
    write_classes(page, "the answer", w->said, input);
    write_classes(page, "the true classes", w->is, input);
}

static void write_words(qat_writer *page, const report_wrong *w, const qat_accuracy *a)
{
    char text[400];
    int there = 0, found = 0;
    for (int i = 0; i < w->n_boxes; i++) {
        there += w->boxes[i].score < 0;
        found += w->boxes[i].score >= 0;
    }
    qat_write_text(page, "<figcaption>sample %d: ", w->sample);
    if (isfinite(w->figure)) {
        const qat_figure *figure = &a->task->figures[a->task->main];
        snprintf(text, sizeof text, "%.80s %.4g%s", figure->name, w->figure,
                 figure->kind == QAT_FIGURE_REAL ? "" : " %");
        html_text(page, text);
    }
    if (w->words.count) {
        snprintf(text, sizeof text, "%.*s", (int)(w->words.count > 390 ? 390 : w->words.count),
                 (const char *)w->words.bytes);
        html_text(page, text);
    }
    if (w->boxes)
        qat_write_text(page, "; %d there, %d found", there, found);
    qat_write_text(page, "</figcaption>");
}

/* ------------------------------------------------------------------ all of them */

/** What is shown, and by what "worst" is meant. */
static const char *explanation(const report_answers *a)
{
    const report_wrong *w = &a->worst[0];
    if (a->figures.kind == QAT_SCORES_ONE_OF)
        return "Wrong ones, the surest first; margin: how much higher the answer's score is than "
               "that of the right class.";
    if (a->figures.kind == QAT_SCORES_VALUES)
        return "Those that are furthest from the true values, each in root mean squares of its "
               "errors.";
    if (a->figures.n)
        return "Wrong ones, the surest first.";
    if (w->boxes)
        return "Pictures that are worst if each is judged alone. Boxes that are there are white "
               "and "
               "dashed; those that were found, with a score of 0.3 or more, have their class's "
               "colour.";
    return w->said ? "Samples that are worst if each is judged alone: the picture, the answer, and "
                     "the true classes (white: not known)."
                   : "Samples that are worst if each is judged alone.";
}

void report_worst(qat_writer *page, const report_run *run)
{
    const report_answers *a = &run->answers;
    const qat_input_info *input =
        qat_checkpoint_input(qat_restored_checkpoint(run->inspected.restored));
    bool const pictures = input->channels == 1 || input->channels == 3;
    html_element(page, "h3", "Worst answers");
    html_element(page, "p", explanation(a));
    qat_write_text(page, "<div class=\"worst\">\n");
    for (int i = 0; i < a->n_worst; i++) {
        const report_wrong *w = &a->worst[i];
        qat_write_text(page, "<figure%s>", w->boxes || w->said ? " class=\"large\"" : "");
        if (pictures && w->pixels)
            write_pictures(page, w, input);
        write_words(page, w, &a->accuracy);
        qat_write_text(page, "</figure>\n");
    }
    qat_write_text(page, "</div>\n");
}

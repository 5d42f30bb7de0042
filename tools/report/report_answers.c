/** How the integer model answers a classifier's test data: confusion, and the worst answers. */
#include "tools/report/report.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWN = 20, MOST_PAIRS = 20, MOST_SIDE = 96 };

/* ------------------------------------------------------------------ answering */

/** Keep a wrong answer among the worst, which fall. */
static void keep(report_answers *a, report_wrong wrong)
{
    int at = a->n_worst < REPORT_WORST ? a->n_worst++ : REPORT_WORST;
    for (; at > 0 && a->worst[at - 1].margin < wrong.margin; at--)
        if (at < REPORT_WORST)
            a->worst[at] = a->worst[at - 1];
    if (at < REPORT_WORST)
        a->worst[at] = wrong;
}

static qat_status find_worst(report_answers *a, const qat_dataset *data, qat_error *err)
{
    const figures *f = &a->figures;
    const qat_dataset_info *info = qat_dataset_info_of(data);
    qat_status st = QAT_OK;
    double p;
    int label;
    for (size_t i = 0; i < f->n; i++) {
        const float *scores = f->scores + i * (size_t)f->n_units;
        int const said = figures_answer(f, i, &p), is = (int)f->truth[i];
        if (said != is)
            keep(a, (report_wrong){.margin = (double)scores[said] - (double)scores[is],
                                   .is = is,
                                   .said = said,
                                   .sample = (int)i});
    }
    for (int i = 0; i < a->n_worst && info->type == QAT_SAMPLE_U8 && !st; i++) {
        report_wrong *w = &a->worst[i];
        w->pixels = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels + 1);
        st = w->pixels ? qat_dataset_get(data, w->sample, w->pixels, &label, err)
                       : qat_out_of_memory(err, "pictures");
    }
    return st;
}

qat_status report_answer(report_answers *a, const qi_host *host, const qat_restored *c,
                         int64_t samples, qat_error *err)
{
    qat_input_info input = *qat_checkpoint_input(qat_restored_checkpoint(c));
    qat_dataset *data = NULL;
    qat_accuracy accuracy;
    if (qat_task_of(&input)->scored != QAT_SCORES_ONE_OF || input.classes > REPORT_CLASSES)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "Only the answers of classifiers of at most %d classes are told here.",
                        REPORT_CLASSES);
    qat_status st = qat_recipe_open_data(&data, qat_restored_recipe(c), NULL, QAT_SPLIT_TEST, err);
    if (!st)
        st = figures_begin(&a->figures, &input, qat_dataset_info_of(data)->labels, err);
    if (!st)
        st = qat_evaluate_model(host, &input, data, samples, NULL, NULL, &accuracy, err);
    if (!st)
        st = figures_end(&a->figures, err);
    if (!st)
        st = find_worst(a, data, err);
    qat_dataset_close(data);
    return st;
}

void report_answers_free(report_answers *a)
{
    for (int i = 0; i < a->n_worst; i++)
        free(a->worst[i].pixels);
    figures_free(&a->figures);
}

/* ------------------------------------------------------------------ pictures */

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

/** Every step-th pixel of every step-th row, as a PNG in the page. */
static void write_picture(qat_writer *page, const qat_input_info *input, const uint8_t *pixels)
{
    int const longer = input->width > input->height ? input->width : input->height;
    int const step = (longer + MOST_SIDE - 1) / MOST_SIDE, c = input->channels;
    int const w = (input->width + step - 1) / step, h = (input->height + step - 1) / step;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
                       .width = (png_uint_32)w,
                       .height = (png_uint_32)h};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *small = malloc((size_t)w * (size_t)h * (size_t)c), *png = malloc(size);
    for (int y = 0; small && y < h; y++)
        for (int x = 0; x < w; x++)
            for (int k = 0; k < c; k++)
                small[(y * w + x) * c + k] = pixels[(y * step * input->width + x * step) * c + k];
    if (small && png && png_image_write_to_memory(&image, png, &size, 0, small, 0, NULL)) {
        qat_write_text(page, "<img alt=\"the picture\" src=\"data:image/png;base64,");
        write_base64(page, png, size);
        qat_write_text(page, "\">");
    }
    free(small);
    free(png);
}

/* ------------------------------------------------------------------ the sections */

static const char *class_name(const report_run *run, int i, char text[64])
{
    const char *label = qat_checkpoint_label(qat_restored_checkpoint(run->inspected.restored), i);
    if (label)
        snprintf(text, 64, "%.60s", tool_shown(label));
    else
        snprintf(text, 64, "%d", i);
    return text;
}

static void write_worst(qat_writer *page, const report_run *run)
{
    const report_answers *a = &run->answers;
    const qat_input_info *input =
        qat_checkpoint_input(qat_restored_checkpoint(run->inspected.restored));
    bool const pictures =
        input->type == QAT_SAMPLE_U8 && (input->channels == 1 || input->channels == 3);
    char is[64], said[64], text[200];
    html_element(page, "h3", "Worst answers");
    qat_write_text(page, "<p>Wrong ones, the surest first; margin: how much higher the answer's "
                         "score is than that of the right class.</p>\n<div class=\"worst\">\n");
    for (int i = 0; i < a->n_worst; i++) {
        const report_wrong *w = &a->worst[i];
        qat_write_text(page, "<figure>");
        if (pictures)
            write_picture(page, input, w->pixels);
        snprintf(text, sizeof text, "sample %d: says %s, is %s; margin %.3g", w->sample,
                 class_name(run, w->said, said), class_name(run, w->is, is), w->margin);
        html_element(page, "figcaption", text);
        qat_write_text(page, "</figure>\n");
    }
    qat_write_text(page, "</div>\n");
}

/** All classes, with a row for each true one. */
static qat_status draw_confusion(qat_writer *page, const report_run *run, qat_error *err)
{
    static const char title[] = "true class against answer, share of the true class";
    const figures *f = &run->answers.figures;
    char names[MOST_DRAWN][64];
    const char *pointers[MOST_DRAWN], *heads[MOST_DRAWN + 1] = {"is, says"};
    double values[MOST_DRAWN * MOST_DRAWN];
    qat_writer svg = {0};
    for (int i = 0; i < f->n_units; i++) {
        int64_t const all = f->counts[i].is;
        heads[i + 1] = pointers[i] = class_name(run, i, names[i]);
        for (int k = 0; k < f->n_units; k++)
            values[i * f->n_units + k] =
                all ? 100.0 * (double)f->confusion[i * f->n_units + k] / (double)all : NAN;
    }
    plot_heat const p = {.title = title,
                         .x_title = "answer [class]",
                         .y_title = "true class",
                         .value_title = "share of the true class [%]",
                         .columns = f->n_units,
                         .rows = f->n_units,
                         .column_names = pointers,
                         .row_names = pointers,
                         .values = values};
    qat_status const st = plot_heat_svg(&p, &svg, err);
    if (!st)
        html_figure(page, &svg, title, true);
    else
        html_element(page, "h4", title);
    qat_writer_free(&svg);
    html_table(page, heads, f->n_units + 1);
    for (int i = 0; i < f->n_units; i++) {
        qat_write_text(page, "<tr>");
        html_element(page, "td", names[i]);
        for (int k = 0; k < f->n_units; k++)
            qat_write_text(page, "<td>%lld</td>", (long long)f->confusion[i * f->n_units + k]);
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    return st == QAT_ERR_UNSUPPORTED ? QAT_OK : st;
}

/** The pairs of classes that are taken for each other most often. */
static void write_pairs(qat_writer *page, const report_run *run)
{
    static const char *const heads[] = {"is", "says", "samples"};
    const figures *f = &run->answers.figures;
    int64_t before = INT64_MAX;
    int after = 0;
    char name[64];
    html_table(page, heads, 3);
    for (int n = 0; n < MOST_PAIRS; n++) {
        int best = -1;
        for (int i = 0; i < f->n_units * f->n_units; i++) {
            bool const told = f->confusion[i] > before || (f->confusion[i] == before && i < after);
            if (i / f->n_units != i % f->n_units && !told && f->confusion[i] &&
                (best < 0 || f->confusion[i] > f->confusion[best]))
                best = i;
        }
        if (best < 0)
            break;
        before = f->confusion[best];
        after = best + 1;
        qat_write_text(page, "<tr>");
        html_element(page, "td", class_name(run, best / f->n_units, name));
        html_element(page, "td", class_name(run, best % f->n_units, name));
        qat_write_text(page, "<td>%lld</td></tr>\n", (long long)before);
    }
    html_table_end(page);
}

qat_status report_confusion(qat_writer *page, const report_run *run, qat_error *err)
{
    const figures *f = &run->answers.figures;
    qat_status st = QAT_OK;
    int64_t right = 0;
    html_element(page, "h3", "Confusion");
    if (*run->why_no_answers.message || !f->n) {
        html_element(page, "p",
                     *run->why_no_answers.message ? run->why_no_answers.message
                                                  : "Nothing was answered.");
        return QAT_OK;
    }
    for (int i = 0; i < f->n_units; i++)
        right += f->counts[i].right;
    qat_write_text(page,
                   "<p>The integer model answers %lld of %lld samples of the test data "
                   "rightly.</p>\n",
                   (long long)right, (long long)f->n);
    qat_write_text(page, "<p>");
    figures_tell(page, f);
    qat_write_text(page, "</p>\n");
    if (f->n_units <= MOST_DRAWN)
        st = draw_confusion(page, run, err);
    else
        write_pairs(page, run);
    if (run->answers.n_worst)
        write_worst(page, run);
    return st;
}

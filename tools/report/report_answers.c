/** How the integer model answers a classifier's test data: confusion, and the worst answers. */
#include "tools/report/report.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWN = 20, MOST_PAIRS = 20, MOST_SIDE = 96 };

/* ------------------------------------------------------------------ answering */

/** The codes of a sample: pixels are codes already. */
static const void *codes_of(const qi_tensor *in, const qat_batch *batch, size_t n, uint8_t *room)
{
    int32_t lo, hi;
    float scale;
    if (batch->bytes)
        return batch->bytes;
    memcpy(&scale, &in->scale_bits, sizeof scale);
    qat_code_range(in->type == QI_S8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, in->bits, false, &lo,
                   &hi);
    qat_qparams const p = qat_given_qparams(scale, in->zero_point, lo, hi);
    for (size_t i = 0; i < n; i++)
        room[i] = (uint8_t)qat_code(&p, batch->real[i]);
    return room;
}

/** Keep a wrong answer among the worst, which fall. */
static qat_status keep(report_answers *a, report_wrong wrong, const uint8_t *pixels, size_t n,
                       qat_error *err)
{
    int at = a->n_worst < REPORT_WORST ? a->n_worst++ : REPORT_WORST - 1;
    if (at == REPORT_WORST - 1 && a->worst[at].margin >= wrong.margin && a->worst[at].pixels)
        return QAT_OK;
    free(a->worst[at].pixels);
    for (; at > 0 && a->worst[at - 1].margin < wrong.margin; at--)
        a->worst[at] = a->worst[at - 1];
    wrong.pixels = malloc(n + 1);
    a->worst[at] = wrong;
    if (!wrong.pixels)
        return qat_out_of_memory(err, "pictures");
    if (pixels)
        memcpy(wrong.pixels, pixels, n);
    return QAT_OK;
}

static qat_status judge(report_answers *a, const qi_tensor *out, const void *codes, int is,
                        int64_t sample, const qat_batch *batch, size_t n, qat_error *err)
{
    float scale;
    int said = 0;
    memcpy(&scale, &out->scale_bits, sizeof scale);
    if (is < 0 || is >= a->classes)
        return QAT_OK;
    for (int i = 1; i < a->classes; i++)
        if (qi_value_at(out->type, codes, (size_t)i) > qi_value_at(out->type, codes, (size_t)said))
            said = i;
    a->counts[is * a->classes + said]++;
    a->n++;
    a->right += said == is;
    int64_t const margin =
        qi_value_at(out->type, codes, (size_t)said) - qi_value_at(out->type, codes, (size_t)is);
    return said == is ? QAT_OK
                      : keep(a,
                             (report_wrong){.margin = (double)scale * (double)margin,
                                            .is = is,
                                            .said = said,
                                            .sample = sample},
                             batch->bytes, batch->bytes ? n : 0, err);
}

/** Does the model take one sample, and answer with a code for each class? */
static bool is_classifier(const qi_model *model, const qat_input_info *input)
{
    if (qi_input_count(model) != 1 || qi_output_count(model) != 1 || input->classes < 2 ||
        input->classes > REPORT_CLASSES || input->channels > QAT_CHANNEL_VALUES)
        return false;
    const qi_tensor *in = qi_tensor_at(model, qi_input_at(model, 0));
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    size_t const samples = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    return (in->type == QI_U8 || in->type == QI_S8) && in->bytes == samples &&
           (out->type == QI_U8 || out->type == QI_S8) && out->bytes == (size_t)input->classes;
}

static qat_status answer_all(report_answers *a, const qi_host *host, qat_loader *loader, int64_t n,
                             tool_buffers *b, qat_error *err)
{
    const qi_model *model = qi_host_model(host);
    const qi_tensor *in = qi_tensor_at(model, qi_input_at(model, 0));
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    qat_status st = QAT_OK;
    for (int64_t i = 0; !st && i < n; i++) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (st)
            break;
        const void *inputs[] = {codes_of(in, batch, in->bytes, b->in[0])};
        qi_host_run_visit(host, NULL, inputs, b->out, NULL, NULL);
        st = judge(a, out, b->out[0], batch->labels[0], i, batch, in->bytes, err);
    }
    return st;
}

qat_status report_answer(report_answers *a, const qi_host *host, const qat_restored *c,
                         int64_t samples, qat_error *err)
{
    const qat_input_info *input = qat_checkpoint_input(qat_restored_checkpoint(c));
    qat_loader_options const o = {
        .batch = 1, .mean = input->mean, .std = input->std, .threads = 1, .prefetch = 1};
    qat_dataset *data = NULL;
    qat_loader *loader = NULL;
    tool_buffers buffers = {0};
    if (!is_classifier(qi_host_model(host), input))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "Only the answers of classifiers of at most %d classes are told here.",
                        REPORT_CLASSES);
    a->classes = input->classes;
    a->counts = calloc((size_t)a->classes * (size_t)a->classes, sizeof *a->counts);
    qat_status st = a->counts ? QAT_OK : qat_out_of_memory(err, "confusion");
    if (!st)
        st = qat_recipe_open_data(&data, qat_restored_recipe(c), NULL, QAT_SPLIT_TEST, err);
    if (!st && (qat_dataset_info_of(data)->has_objects || qat_dataset_info_of(data)->n_targets))
        st = qat_fail(err, QAT_ERR_UNSUPPORTED, "Only the answers of classifiers are told here.");
    if (!st)
        st = qat_loader_create(&loader, data, &o, err);
    if (!st)
        st = tool_buffers_create(&buffers, qi_host_model(host), err);
    if (!st) {
        int64_t const all = qat_dataset_info_of(data)->count;
        st = answer_all(a, host, loader, samples < all ? samples : all, &buffers, err);
    }
    tool_buffers_free(&buffers);
    qat_loader_free(loader);
    qat_dataset_close(data);
    return st;
}

void report_answers_free(report_answers *a)
{
    for (int i = 0; i < a->n_worst; i++)
        free(a->worst[i].pixels);
    free(a->counts);
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
        snprintf(text, sizeof text, "sample %lld: says %s, is %s; margin %.3g",
                 (long long)w->sample, class_name(run, w->said, said), class_name(run, w->is, is),
                 w->margin);
        html_element(page, "figcaption", text);
        qat_write_text(page, "</figure>\n");
    }
    qat_write_text(page, "</div>\n");
}

/** All classes, with a row for each true one. */
static qat_status draw_confusion(qat_writer *page, const report_run *run, qat_error *err)
{
    static const char title[] = "true class against answer, share of the true class";
    const report_answers *a = &run->answers;
    char names[MOST_DRAWN][64];
    const char *pointers[MOST_DRAWN], *heads[MOST_DRAWN + 1] = {"is, says"};
    double values[MOST_DRAWN * MOST_DRAWN];
    qat_writer svg = {0};
    for (int i = 0; i < a->classes; i++) {
        int64_t all = 0;
        heads[i + 1] = pointers[i] = class_name(run, i, names[i]);
        for (int k = 0; k < a->classes; k++)
            all += a->counts[i * a->classes + k];
        for (int k = 0; k < a->classes; k++)
            values[i * a->classes + k] =
                all ? 100.0 * (double)a->counts[i * a->classes + k] / (double)all : NAN;
    }
    plot_heat const p = {.title = title,
                         .x_title = "answer [class]",
                         .y_title = "true class",
                         .value_title = "share of the true class [%]",
                         .columns = a->classes,
                         .rows = a->classes,
                         .column_names = pointers,
                         .row_names = pointers,
                         .values = values};
    qat_status const st = plot_heat_svg(&p, &svg, err);
    if (!st)
        html_figure(page, &svg, title, true);
    else
        html_element(page, "h4", title);
    qat_writer_free(&svg);
    html_table(page, heads, a->classes + 1);
    for (int i = 0; i < a->classes; i++) {
        qat_write_text(page, "<tr>");
        html_element(page, "td", names[i]);
        for (int k = 0; k < a->classes; k++)
            qat_write_text(page, "<td>%lld</td>", (long long)a->counts[i * a->classes + k]);
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    return st == QAT_ERR_UNSUPPORTED ? QAT_OK : st;
}

/** The pairs of classes that are taken for each other most often. */
static void write_pairs(qat_writer *page, const report_run *run)
{
    static const char *const heads[] = {"is", "says", "samples"};
    const report_answers *a = &run->answers;
    int64_t before = INT64_MAX;
    int after = 0;
    char name[64];
    html_table(page, heads, 3);
    for (int n = 0; n < MOST_PAIRS; n++) {
        int best = -1;
        for (int i = 0; i < a->classes * a->classes; i++) {
            bool const told = a->counts[i] > before || (a->counts[i] == before && i < after);
            if (i / a->classes != i % a->classes && !told && a->counts[i] &&
                (best < 0 || a->counts[i] > a->counts[best]))
                best = i;
        }
        if (best < 0)
            break;
        before = a->counts[best];
        after = best + 1;
        qat_write_text(page, "<tr>");
        html_element(page, "td", class_name(run, best / a->classes, name));
        html_element(page, "td", class_name(run, best % a->classes, name));
        qat_write_text(page, "<td>%lld</td></tr>\n", (long long)before);
    }
    html_table_end(page);
}

qat_status report_confusion(qat_writer *page, const report_run *run, qat_error *err)
{
    const report_answers *a = &run->answers;
    qat_status st = QAT_OK;
    html_element(page, "h3", "Confusion");
    if (*run->why_no_answers.message || !a->n) {
        html_element(page, "p",
                     *run->why_no_answers.message ? run->why_no_answers.message
                                                  : "Nothing was answered.");
        return QAT_OK;
    }
    qat_write_text(page,
                   "<p>The integer model answers %lld of %lld samples of the test data "
                   "rightly.</p>\n",
                   (long long)a->right, (long long)a->n);
    if (a->classes <= MOST_DRAWN)
        st = draw_confusion(page, run, err);
    else
        write_pairs(page, run);
    if (a->n_worst)
        write_worst(page, run);
    return st;
}

#include "board/worst.h"

#include "base/shown.h"
#include "board/events.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE_MAX = 256, LABEL_MAX = 64 }; /* of a picture, in pixels; of a label in the table */

/* ------------------------------------------------------------------ looking on */

static const qat_task *task_of(const qat_worst *w)
{
    return qat_task_of(w->input);
}

bool qat_worst_possible(const qat_input_info *input)
{
    const qat_task *task = qat_task_of(input);
    return task->scores && task->scored != QAT_SCORES_NONE && task->scored != QAT_SCORES_RANKED;
}

/** How far a classifier's answer is from the true class, and which one it is. */
static void judge_class(const qat_worst *w, int n, qat_bad_answer *a)
{
    int best = -1;
    a->is = (int)w->truth[0];
    a->said = 0;
    for (int k = 0; k < n; k++) {
        a->said = w->scores[k] > w->scores[a->said] ? k : a->said;
        if (k != a->is && (best < 0 || w->scores[k] > w->scores[best]))
            best = k;
    }
    a->by = best < 0 ? 0 : (double)w->scores[best] - (double)w->scores[a->is];
}

/** The distance from all that is known to be true. */
static void judge_values(const qat_worst *w, int n, qat_bad_answer *a)
{
    a->is = a->said = -1;
    a->by = 0;
    for (int k = 0; k < n; k++)
        if (!isnan(w->truth[k]))
            a->by += fabs((double)w->scores[k] - (double)w->truth[k]);
}

/** Keep it among the worst, in falling order; of equal ones the first stays. */
static void keep(qat_worst *w, const qat_bad_answer *a)
{
    int at = w->n < QAT_WORST ? w->n++ : QAT_WORST;
    for (; at > 0 && w->at[at - 1].by < a->by; at--)
        if (at < QAT_WORST)
            w->at[at] = w->at[at - 1];
    if (at < QAT_WORST)
        w->at[at] = *a;
}

static qat_status see(void *context, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    qat_worst *w = context;
    const qat_task *task = task_of(w);
    int const n = task->n_scores(w->input);
    qat_status st = QAT_OK;
    for (int i = 0; i < count && !st; i++) {
        qat_bad_answer a = {.sample = w->seen++};
        st = task->scores(w->input, outputs, batch, i, w->scores, w->truth, err);
        if (st)
            break;
        if (task->scored == QAT_SCORES_ONE_OF)
            judge_class(w, n, &a);
        else
            judge_values(w, n, &a);
        keep(w, &a);
    }
    return st;
}

qat_status qat_worst_open(qat_worst *w, const qat_input_info *input, qat_error *err)
{
    size_t const n = (size_t)qat_task_of(input)->n_scores(input) + 1;
    *w = (qat_worst){.witness = {see, w}, .input = input};
    w->scores = calloc(n, sizeof *w->scores);
    w->truth = calloc(n, sizeof *w->truth);
    return w->scores && w->truth ? QAT_OK : qat_out_of_memory(err, "tensorboard");
}

void qat_worst_close(qat_worst *w)
{
    free(w->scores);
    free(w->truth);
    w->scores = w->truth = NULL;
}

void qat_worst_begin(qat_worst *w)
{
    w->n = 0;
    w->seen = 0;
}

/* ------------------------------------------------------------------ pictures */

static bool has_pictures(const qat_dataset_info *info)
{
    return info->type == QAT_SAMPLE_U8 && (info->channels == 1 || info->channels == 3) &&
           info->height > 1;
}

/** Keep every step-th pixel of every step-th row, in place. */
static void make_smaller(uint8_t *pixels, const qat_dataset_info *info, int step, png_image *image)
{
    int const c = info->channels, w = (info->width + step - 1) / step,
              h = (info->height + step - 1) / step;
    uint8_t *to = pixels;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int k = 0; k < c; k++)
                *to++ = pixels[((size_t)y * (size_t)info->width + (size_t)x) * (size_t)step *
                                   (size_t)c +
                               (size_t)k];
    image->width = (png_uint_32)w;
    image->height = (png_uint_32)h;
}

static qat_status write_picture(const qat_worst *w, const qat_dataset *data, int i, int64_t step,
                                qat_writer *to, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(data);
    int const longer = info->width > info->height ? info->width : info->height;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = info->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    char tag[32];
    int label;
    uint8_t *pixels = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels);
    if (!pixels)
        return qat_out_of_memory(err, "tensorboard");
    qat_status st = qat_dataset_get(data, (int)w->at[i].sample, pixels, &label, err);
    if (!st)
        make_smaller(pixels, info, (longer + SIDE_MAX - 1) / SIDE_MAX, &image);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *png = st ? NULL : malloc(size);
    if (!st && (!png || !png_image_write_to_memory(&image, png, &size, 0, pixels, 0, NULL)))
        st = qat_out_of_memory(err, "tensorboard"); /* nothing else can fail in memory */
    (void)snprintf(tag, sizeof tag, "worst/%d", i + 1);
    if (!st)
        qat_event_png(to, step, tag, (int)image.height, (int)image.width, info->channels, png,
                      size);
    free(png);
    free(pixels);
    return st;
}

/* ------------------------------------------------------------------ the table */

/** A class by its name, as a cell of Markdown. */
static const char *class_name(const qat_dataset_info *info, int class, char text[LABEL_MAX])
{
    if (info->labels && class < info->classes && info->labels[class])
        qat_shown(text, LABEL_MAX, info->labels[class], false);
    else
        (void)snprintf(text, LABEL_MAX, "%d", class);
    for (char *c = text; *c; c++)
        *c = *c == '|' ? '/' : *c;
    return text;
}

static qat_status write_table(const qat_worst *w, const qat_dataset *data, int64_t step,
                              qat_writer *to, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(data);
    bool const classes = task_of(w)->scored == QAT_SCORES_ONE_OF;
    qat_writer text = {0};
    qat_write_text(&text, classes ? "| | sample | true | answer | score beyond the true one |\n"
                                    "|---|---|---|---|---|\n"
                                  : "| | sample | distance |\n|---|---|---|\n");
    for (int i = 0; i < w->n; i++) {
        const qat_bad_answer *a = &w->at[i];
        char is[LABEL_MAX], said[LABEL_MAX];
        qat_write_text(&text, "| %d | %lld ", i + 1, (long long)a->sample);
        if (classes)
            qat_write_text(&text, "| %s | %s ", class_name(info, a->is, is),
                           class_name(info, a->said, said));
        qat_write_text(&text, "| %.4g |\n", a->by);
    }
    qat_write_u8(&text, 0);
    if (!text.failed)
        qat_event_text(to, step, "worst/table", (const char *)text.bytes);
    qat_status const st = text.failed ? qat_out_of_memory(err, "tensorboard") : QAT_OK;
    qat_writer_free(&text);
    return st;
}

qat_status qat_worst_write(const qat_worst *w, const qat_dataset *data, int64_t step,
                           qat_writer *to, qat_error *err)
{
    qat_status st = w->n ? write_table(w, data, step, to, err) : QAT_OK;
    bool const pictures = has_pictures(qat_dataset_info_of(data));
    for (int i = 0; i < w->n && pictures && !st; i++)
        st = write_picture(w, data, i, step, to, err);
    return st;
}

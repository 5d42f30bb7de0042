/** Judges each sample of an evaluation by itself, and keeps the answers to the worst ones. */
#include "tools/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BOXES = 100 };
static const double LEAST_SCORE = 0.3; /* of boxes that are drawn */

struct watch {
    report_answers *answers;
    qat_input_info input;
    qat_witness witness;
    int seen;
};

/* ------------------------------------------------------------------ one sample of a batch */

static qat_outputs outputs_at(const qat_outputs *of, size_t i)
{
    qat_outputs one = *of;
    for (int k = 0; k < of->n; k++) {
        qat_output *o = &one.at[k];
        size_t const bytes = o->type == QI_S16 ? 2 : 1;
        o->real = o->real ? o->real + i * o->n : NULL;
        o->codes = o->codes ? (const uint8_t *)o->codes + i * o->n * bytes : NULL;
    }
    return one;
}

static qat_batch batch_at(const qat_batch *of, const qat_input_info *input, size_t i)
{
    size_t const values = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    qat_batch one = *of;
    one.count = 1;
    one.bytes = of->bytes ? of->bytes + i * values : NULL;
    one.real = of->real ? of->real + i * values : NULL;
    one.labels = of->labels ? of->labels + i : NULL;
    one.objects = of->objects ? of->objects + i : NULL;
    one.targets = of->targets ? of->targets + i * (size_t)of->n_targets : NULL;
    return one;
}

/** The task's figure of one sample; NaN: it has none. */
static qat_status judge(const qat_input_info *input, const qat_outputs *outputs,
                        const qat_batch *batch, double *figure, qat_error *err)
{
    const qat_task *task = qat_task_of(input);
    qat_accuracy accuracy = {.n = 1, .task = task};
    void *pass = NULL;
    qat_status st = task->begin(&pass, input, err);
    if (!st)
        st = task->add(pass, outputs, batch, 1, err);
    if (!st)
        st = task->judge(pass, &accuracy, err);
    task->end(pass);
    *figure = st ? NAN : qat_main_figure(&accuracy);
    return st;
}

/* ------------------------------------------------------------------ what is kept of it */

static qat_status keep_boxes(report_wrong *w, const qat_outputs *outputs,
                             const qat_objects *objects, qat_error *err)
{
    const void *codes[QAT_MAX_OUTPUTS];
    qat_detections d;
    for (int k = 0; k < outputs->n; k++)
        codes[k] = outputs->at[k].codes;
    qat_status const st = qat_detect(&d, outputs->model, codes, err);
    if (st)
        return st;
    w->boxes = calloc((size_t)objects->count + MOST_BOXES + 1, sizeof *w->boxes);
    for (int i = 0; w->boxes && i < objects->count; i++)
        w->boxes[w->n_boxes++] = (report_box){objects->truth[i].box, -1, objects->truth[i].label};
    for (int i = 0; w->boxes && i < d.rows && i < MOST_BOXES; i++) {
        const float *b = d.boxes + 4 * (size_t)i;
        if (d.used[i] && (double)d.scores[i] >= LEAST_SCORE)
            w->boxes[w->n_boxes++] =
                (report_box){{b[0], b[1], b[2], b[3]}, (double)d.scores[i], (int)d.classes[i]};
    }
    qat_detections_free(&d);
    return w->boxes ? QAT_OK : qat_out_of_memory(err, "boxes");
}

static qat_status keep_classes(report_wrong *w, const qat_outputs *outputs, const qat_batch *batch,
                               qat_error *err)
{
    size_t const pixels = (size_t)batch->n_targets;
    w->said = calloc(pixels + 1, sizeof *w->said);
    w->is = calloc(pixels + 1, sizeof *w->is);
    if (!w->said || !w->is)
        return qat_out_of_memory(err, "classes of pixels");
    qat_pixels_of(outputs->model, outputs->at[0].codes, w->said);
    for (size_t i = 0; i < pixels; i++)
        w->is[i] = batch->targets[i] >= 0 ? (int32_t)batch->targets[i] : -1;
    return QAT_OK;
}

static qat_status keep(report_wrong *w, const qat_input_info *input, const qat_outputs *outputs,
                       const qat_batch *batch, qat_error *err)
{
    size_t const values = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    if (batch->bytes && !(w->pixels = malloc(values + 1)))
        return qat_out_of_memory(err, "pictures");
    if (batch->bytes)
        memcpy(w->pixels, batch->bytes, values);
    if (batch->objects)
        return keep_boxes(w, outputs, batch->objects, err);
    return qat_has_pixels(outputs->model) ? keep_classes(w, outputs, batch, err) : QAT_OK;
}

static qat_status see(void *context, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    struct watch *w = context;
    const qat_task *task = qat_task_of(&w->input);
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < count; i++) {
        qat_outputs const o = outputs_at(outputs, (size_t)i);
        qat_batch const b = batch_at(batch, &w->input, (size_t)i);
        report_wrong *kept;
        double figure;
        st = judge(&w->input, &o, &b, &figure, err);
        double const how_wrong = task->less_is_better ? figure : -figure;
        bool const perfect = task->figures[task->main].kind != QAT_FIGURE_REAL && how_wrong <= -100;
        if (!st && isfinite(figure) && !perfect &&
            report_keep(w->answers, how_wrong, w->seen + i, &kept)) {
            kept->figure = figure;
            st = keep(kept, &w->input, &o, &b, err);
        }
    }
    w->seen += count;
    return st;
}

qat_status report_watch(report_answers *a, qat_input_info *input, void **state, qat_error *err)
{
    struct watch *w = calloc(1, sizeof *w);
    *state = w;
    if (!w)
        return qat_out_of_memory(err, "answers");
    *w = (struct watch){.answers = a, .input = *input, .witness = {see, w}};
    input->witness = &w->witness;
    return QAT_OK;
}

/**
 * The task of detectors: the boxes of objects in a picture, each with a class and a score. The body
 * of such a network makes the outputs and the loss itself (networks/ssd.c). detector.c has anchors,
 * targets and the epilogue, findings.c judges.
 */
#include "task/detector.h"

#include "networks/network.h"
#include "recipe/recipe.h"
#include "task/certified_file.h"

#include <stdlib.h>

enum { COORDINATES = 4 };

static const qat_figure figures[] = {
    [QAT_AP] = {.name = "AP@[.5:.95]", .column = "ap", .kind = QAT_FIGURE_SHARE, .optional = true},
    [QAT_AP50] = {.name = "AP50", .column = "ap50", .kind = QAT_FIGURE_SHARE, .optional = true},
    [QAT_AP50_LOW] = {.name = "AP50, low",
                      .column = "ap50_low",
                      .kind = QAT_FIGURE_SHARE,
                      .optional = true},
    [QAT_AP50_HIGH] = {.name = "AP50, high",
                       .column = "ap50_high",
                       .kind = QAT_FIGURE_SHARE,
                       .optional = true},
    [QAT_PRECISION] = {.name = "precision", .column = "precision", .kind = QAT_FIGURE_SHARE},
    [QAT_RECALL] = {.name = "recall", .column = "recall", .kind = QAT_FIGURE_SHARE},
};

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->has_objects || (recipe && qat_net_arch_of(recipe)->detects);
}

/** Check that only detectors get data with boxes. */
static qat_status check(qat_input_info *input, const qat_recipe *recipe,
                        const qat_dataset_info *data, qat_error *err)
{
    const qat_net_arch *arch = qat_net_arch_of(recipe);
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(recipe, "model", "arch", where);
    if (data->has_objects == arch->detects)
        return QAT_OK;
    if (!data->has_objects)
        return qat_fail(
            err, QAT_ERR_UNSUPPORTED,
            "%s: model.arch = %s learns boxes, but %s has none: use data.kind = coco or scenes",
            where, arch->name, data->name);
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "%s: %s has pictures with boxes, not with a class; model.arch = %s is not a detector",
        where, data->name, arch->name);
}

static qat_status open(void **state, const qat_graph *graph, const qat_recipe *recipe,
                       const qat_input_info *input, qat_error *err)
{
    qat_detector *detector;
    qat_status const st = qat_detector_create(&detector, graph, recipe, input->classes, err);
    *state = detector;
    return st;
}

static const char *background(const qat_recipe *recipe)
{
    return recipe->detect.classification == 1 ? "background" : NULL;
}

/* ------------------------------------------------------------------ judging */

typedef struct pass {
    const qat_detector *detector;
    qat_findings *findings;
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->detector = input->state;
    return qat_findings_create(&p->findings, input->classes, err);
}

static void end(void *of)
{
    if (of)
        qat_findings_free(((pass *)of)->findings);
    free(of);
}

/** The epilogue of a model finds the boxes of sample i. */
static qat_status add_detections(const pass *p, const qat_outputs *o, const qat_objects *objects,
                                 size_t i, qat_error *err)
{
    const void *const codes[] = {qat_output_codes(&o->at[0], i), qat_output_codes(&o->at[1], i)};
    qat_detections d;
    qat_status st = qat_detect(&d, o->model, codes, err);
    if (st)
        return st;
    st = qat_findings_add_detections(p->findings, objects, &d, err);
    qat_detections_free(&d);
    return st;
}

static qat_status add(void *to, const qat_outputs *o, const qat_batch *batch, int count,
                      qat_error *err)
{
    const pass *p = to;
    size_t const n = o->at[0].n;
    float *real = malloc((n + o->at[1].n) * sizeof *real);
    qat_status st = real ? QAT_OK : qat_out_of_memory(err, "evaluation");
    for (size_t i = 0; !st && i < (size_t)count; i++) {
        if (o->model) {
            st = add_detections(p, o, &batch->objects[i], i, err);
            continue;
        }
        qat_output_real(&o->at[0], i, real);
        qat_output_real(&o->at[1], i, real + n);
        st = qat_findings_choose(p->findings, p->detector, &batch->objects[i], real, real + n, err);
    }
    free(real);
    return st;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    return qat_findings_judge(((const pass *)of)->findings, accuracy, err);
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "AP50 ");
    qat_text_add_figure(text, a, QAT_AP50);
    if (a->figures[QAT_AP50_LOW] >= 0)
        qat_text_add(text, " (95 %% interval %.2f .. %.2f)", qat_figure_of(a, QAT_AP50_LOW),
                     qat_figure_of(a, QAT_AP50_HIGH));
    qat_text_add(text, "  AP@[.5:.95] ");
    qat_text_add_figure(text, a, QAT_AP);
    qat_text_add(text, "  precision %.2f %%, recall %.2f %%", qat_figure_of(a, QAT_PRECISION),
                 qat_figure_of(a, QAT_RECALL));
    qat_text_add_count(text, a, "picture");
}

/** Without any object there are no average precisions. */
static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    const double *f = a->figures;
    if (f[QAT_AP50] >= 0)
        qat_text_add(text, ", \"%sap50\": %.6g", prefix, f[QAT_AP50]);
    if (f[QAT_AP50_LOW] >= 0)
        qat_text_add(text, ", \"%sap50_interval\": [%.6g, %.6g]", prefix, f[QAT_AP50_LOW],
                     f[QAT_AP50_HIGH]);
    if (f[QAT_AP] >= 0)
        qat_text_add(text, ", \"%sap\": %.6g", prefix, f[QAT_AP]);
    qat_text_add(text, ", \"%sprecision\": %.6g, \"%srecall\": %.6g", prefix, f[QAT_PRECISION],
                 prefix, f[QAT_RECALL]);
}

/* ------------------------------------------------------------------ models */

static bool of_model(qat_input_info *input, const qi_model *model)
{
    input->classes = qat_detector_classes(model);
    return qat_is_detector(model) && qi_output_count(model) == 2;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    int const classes = qat_detector_classes(model);
    qat_text_add(text, ": boxes of %d class%s", classes, classes == 1 ? "" : "es");
}

static void tell_box(qat_text *text, const qat_answer *a, const qat_detections *d, int i)
{
    const float *box = d->boxes + COORDINATES * (size_t)i;
    int const class = (int)d->classes[i];
    double const y = (double)box[0], x = (double)box[1], bottom = (double)box[2],
                 right = (double)box[3], score = (double)d->scores[i];
    if (a->json)
        qat_text_add(text, "{\"class\": %d, \"label\": ", class);
    else
        qat_text_add(text, "  %.3f  class %d ", score, class);
    qat_text_add_label(text, a->model, class + d->label_offset, a->json);
    if (a->json)
        qat_text_add(text, ", \"score\": %.9g, \"box\": [%.9g, %.9g, %.9g, %.9g]}", score, y, x,
                     bottom, right);
    else
        qat_text_add(text, "  rows %.3f..%.3f, columns %.3f..%.3f of the picture\n", y, bottom, x,
                     right);
}

static qat_status answer(qat_text *text, const qat_answer *a, qat_error *err)
{
    qat_detections d;
    int n = 0;
    qat_status const st = qat_detect(&d, a->model, a->outputs, err);
    if (st)
        return st;
    qat_text_add(text, a->json ? ", \"found\": [" : ":\n");
    for (int i = 0; i < d.rows; i++) {
        if (!d.used[i] || (double)d.scores[i] < a->least)
            continue;
        if (n++ && a->json)
            qat_text_add(text, ", ");
        tell_box(text, a, &d, i);
    }
    if (a->json)
        qat_text_add(text, "]}\n");
    qat_detections_free(&d);
    return QAT_OK;
}

const qat_task qat_task_boxes = {
    .name = "boxes",
    .network = "detector",
    .units = "classes",
    .target = QAT_TARGET_CLASSES_NAME,
    .missing = "no boxes, but the network finds some",
    .unwanted = "pictures with boxes, but the network finds none",
    .no_top = "for a detector all boxes are printed",
    .implied = true,
    .n_kept = 4,
    .main = QAT_AP50,
    .also = QAT_AP,
    .n_figures = 6,
    .figures = figures,
    .takes = takes,
    .input = check,
    .open = open,
    .close = qat_detector_free,
    .feed = qat_feed_targets,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = end,
    .tell = tell,
    .tell_json = tell_json,
    .first_label = background,
    .finish = qat_detector_finish,
    .certify = qat_certify_boxes,
    .answers = qat_is_detector,
    .of_model = of_model,
    .limit = qat_detector_limit,
    .tell_epilogue = tell_epilogue,
    .answer = answer,
};

/**
 * The task of segmentation: a class for every pixel. The network's last layer has a score for each
 * class at each pixel, [height, width, classes] with the input's height and width; a pixel's answer
 * is the class of the highest score, of equal ones the first. The loss is softmax_cross_entropy,
 * the mean over the pixels that are known. Others (data.ignore) count nowhere.
 *
 *     IoU of a class = pixels that are it and are said to be / pixels that are it or are said to be
 *     mIoU           = the mean over the classes that are somewhere, or are said somewhere
 */
#include "task/attributes.h"
#include "task/certified_file.h"

#include "qat/border.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char target[] = "target_pixels";
enum { MIOU, PIXEL_ACCURACY };

static const qat_figure figures[] = {
    [MIOU] = {.name = "mIoU", .column = "miou", .kind = QAT_FIGURE_SHARE, .optional = true},
    [PIXEL_ACCURACY] = {.name = "pixel accuracy",
                        .column = "pixel_accuracy",
                        .kind = QAT_FIGURE_SHARE,
                        .optional = true},
};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->targets == QAT_TARGETS_PIXELS;
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    const qat_input_info *in = net->input;
    const qat_shape *s = &net->last->shape;
    char text[64];
    qat_status const st = qat_value_settings(net, "classes of pixels", err);
    if (st)
        return st;
    if (s->rank != 4 || s->dims[1] != in->height || s->dims[2] != in->width ||
        s->dims[3] != in->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: the last layer, %s, gives %s, but %d classes of pixels need "
                        "[1, %d, %d, %d]",
                        net->recipe->source, net->last->name, qat_shape_text(s, text), in->classes,
                        in->height, in->width, in->classes);
    qat_graph_output(net->graph, net->last);
    qat_apply2(net->graph, "softmax_cross_entropy", QAT_LOSS_NAME, "", net->last,
               qat_graph_input(net->graph, target, QAT_SHAPE(1, in->height, in->width)));
    return qat_graph_check(net->graph, err);
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    size_t const n = (size_t)batch->count * (size_t)batch->n_targets;
    memcpy(qat_graph_find(graph, target)->value, batch->targets, n * sizeof *batch->targets);
    return QAT_OK;
}

static size_t best_of(const float *scores, size_t classes)
{
    size_t best = 0;
    for (size_t c = 1; c < classes; c++)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

static void count_batch(const qat_input_info *input, const qat_graph *graph, const qat_batch *batch,
                        int64_t *known, int64_t *right)
{
    size_t const classes = (size_t)input->classes;
    size_t const n = (size_t)batch->count * (size_t)batch->n_targets;
    const float *scores = qat_graph_output_at(graph, 0)->value, *truth = batch->targets;
    *known = *right = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(truth[i]))
            continue;
        *known += 1;
        *right += best_of(scores + i * classes, classes) == (size_t)truth[i];
    }
}

/* ------------------------------------------------------------------ judging */

/** Pixels of one class. */
typedef struct tally {
    int64_t is, said, both;
} tally;

typedef struct pass {
    size_t classes;
    int64_t n;
    float *scores; /* of one sample */
    size_t room;   /* values of scores */
    tally of[];    /* [classes] */
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    size_t const classes = (size_t)input->classes;
    pass *p = calloc(1, sizeof *p + classes * sizeof *p->of);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->classes = classes;
    return QAT_OK;
}

static void end(void *of)
{
    if (of)
        free(((pass *)of)->scores);
    free(of);
}

static qat_status add_sample(pass *p, const float *truth, size_t pixels, qat_error *err)
{
    for (size_t i = 0; i < pixels; i++) {
        const float *scores = p->scores + i * p->classes;
        for (size_t c = 0; c < p->classes; c++)
            if (!isfinite(scores[c]))
                return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer is not finite");
        if (isnan(truth[i]))
            continue;
        size_t const is = (size_t)truth[i], said = best_of(scores, p->classes);
        p->of[is].is++;
        p->of[said].said++;
        p->of[is].both += is == said;
    }
    p->n++;
    return QAT_OK;
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    const qat_output *out = &outputs->at[0];
    size_t const pixels = (size_t)batch->n_targets;
    if (out->n != pixels * p->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "evaluation: the network answers %zu scores, but samples have %zu pixels "
                        "of %zu classes",
                        out->n, pixels, p->classes);
    if (out->n > p->room) {
        float *scores = realloc(p->scores, out->n * sizeof *scores);
        if (!scores)
            return qat_out_of_memory(err, "evaluation");
        p->scores = scores;
        p->room = out->n;
    }
    for (int i = 0; i < count; i++) {
        qat_output_real(out, (size_t)i, p->scores);
        qat_status const st = add_sample(p, batch->targets + (size_t)i * pixels, pixels, err);
        if (st)
            return st;
    }
    return QAT_OK;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    double sum = 0, classes = 0, known = 0, right = 0;
    for (size_t c = 0; c < p->classes; c++) {
        const tally *t = &p->of[c];
        int64_t const either = t->is + t->said - t->both;
        known += (double)t->is;
        right += (double)t->both;
        classes += either > 0;
        sum += either ? (double)t->both / (double)either : 0;
    }
    *accuracy = (qat_accuracy){.n = p->n,
                               .task = &qat_task_segmentation,
                               .figures = {[MIOU] = classes > 0 ? sum / classes : -1,
                                           [PIXEL_ACCURACY] = known > 0 ? right / known : -1}};
    return QAT_OK;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "mIoU ");
    qat_text_add_figure(text, a, MIOU);
    qat_text_add(text, "  pixel accuracy ");
    qat_text_add_figure(text, a, PIXEL_ACCURACY);
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    if (a->figures[MIOU] >= 0)
        qat_text_add(text, ", \"%smiou\": %.6g, \"%spixel_accuracy\": %.6g", prefix,
                     a->figures[MIOU], prefix, a->figures[PIXEL_ACCURACY]);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    return qat_qgraph_set_epilogue(graph, QAT_PIXELS_EPILOGUE, 1, graph->outputs, 0, NULL, err);
}

static qat_status certify(const qat_certified_file *f, const qi_epilogue *e)
{
    qat_status const st = qat_certify_text(f, "epilogue", 0, e->name, QAT_PIXELS_EPILOGUE);
    return st ? st : qat_certify_outputs(f, e, 1, 1);
}

static const qi_tensor *scores_of(const qi_model *model)
{
    return qi_tensor_at(model, qi_output_at(model, 0));
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    if (!qat_has_pixels(model))
        return false;
    input->classes = (int)scores_of(model)->dims[3];
    return true;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    const qi_tensor *t = scores_of(model);
    qat_text_add(text, ": one of %d classes for each of %d x %d pixels", (int)t->dims[3],
                 (int)t->dims[1], (int)t->dims[2]);
}

/** Tell how many pixels each class has. */
static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    const qi_tensor *t = scores_of(asked->model);
    size_t const pixels = (size_t)t->dims[1] * (size_t)t->dims[2], classes = (size_t)t->dims[3];
    int32_t *of = malloc(pixels * sizeof *of);
    int64_t *counts = calloc(classes, sizeof *counts);
    if (!of || !counts) {
        free(of);
        free(counts);
        return qat_out_of_memory(err, "an answer");
    }
    qat_pixels_of(asked->model, asked->outputs[0], of);
    for (size_t i = 0; i < pixels; i++)
        counts[of[i]]++;
    const char *comma = "";
    qat_text_add(text, asked->json ? ", \"pixels\": [" : ":");
    for (size_t c = 0; c < classes; c++) {
        if (!counts[c])
            continue;
        qat_text_add(text, asked->json ? "%s{\"class\": %d, \"label\": " : "%s %d ", comma, (int)c);
        qat_text_add_label(text, asked->model, (int)c, asked->json);
        if (asked->json)
            qat_text_add(text, ", \"count\": %lld}", (long long)counts[c]);
        else
            qat_text_add(text, " (%lld pixels)", (long long)counts[c]);
        comma = asked->json ? ", " : ",";
    }
    qat_text_add(text, asked->json ? "]}\n" : "\n");
    free(of);
    free(counts);
    return QAT_OK;
}

const qat_task qat_task_segmentation = {
    .name = "segmentation",
    .network = "segmentation",
    .units = "classes",
    .target = target,
    .missing = "samples without classes of their pixels, but the network answers some",
    .unwanted = "samples with a class for each pixel, but the network answers none",
    .no_top = "a segmentation answers a class for each pixel",
    .checks_loaders = true,
    .main = MIOU,
    .also = PIXEL_ACCURACY,
    .logs_both = true,
    .n_figures = 2,
    .figures = figures,
    .takes = takes,
    .ends = add_ends,
    .feed = feed,
    .count = count_batch,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = end,
    .tell = tell,
    .tell_json = tell_json,
    .finish = finish,
    .certify = certify,
    .answers = qat_has_pixels,
    .of_model = of_model,
    .tell_epilogue = tell_epilogue,
    .answer = answer,
};

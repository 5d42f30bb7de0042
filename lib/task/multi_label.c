/**
 * The task of labels: a sample has some of several labels, each for itself. The network's last
 * layer has an output for each, whose logistic is the label's score. The loss is
 * sigmoid_cross_entropy.
 *
 * A label is said where its score is at least a threshold, 1/2 unless a validation split chooses
 * it: each evaluation on one notes the threshold at which the F1 of all labels together is best
 * (attributes.low). Other evaluations, and the .qm, use what was noted.
 */
#include "base/figures/curve.h"
#include "task/attributes.h"
#include "task/certified_file.h"

#include "base/words.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPILOGUE "multi_label"
static const char target[] = "target_labels";
enum { AP, AUC, F1 };

static const qat_figure figures[] = {
    [AP] = {.name = "mean AP", .column = "mean_ap", .kind = QAT_FIGURE_SHARE, .optional = true},
    [AUC] = {.name = "mean AUC", .column = "mean_auc", .kind = QAT_FIGURE_SHARE, .optional = true},
    [F1] = {.name = "mean F1", .column = "mean_f1", .kind = QAT_FIGURE_SHARE, .optional = true},
};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->targets == QAT_TARGETS_LABELS;
}

static qat_status set_input(qat_input_info *input, const qat_recipe *r,
                            const qat_dataset_info *data, qat_error *err)
{
    input->attributes = (qat_attributes){.low = 0.5F, .width = 1};
    return QAT_OK;
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_graph *g = net->graph;
    qat_node *logits;
    qat_status st = qat_task_logits(net, &logits, err);
    if (!st)
        st = qat_value_settings(net, "several labels", err);
    if (st)
        return st;
    qat_node *scores = qat_apply1(g, "logistic", "scores", "", net->last);
    if (scores)
        qat_graph_output(g, scores);
    qat_apply2(g, "sigmoid_cross_entropy", QAT_LOSS_NAME, "", net->last,
               qat_graph_input(g, target, QAT_SHAPE(1, net->input->classes)));
    return qat_graph_check(g, err);
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    size_t const n = (size_t)batch->count * (size_t)batch->n_targets;
    memcpy(qat_graph_find(graph, target)->value, batch->targets, n * sizeof *batch->targets);
    return QAT_OK;
}

/** Each label counts: is the score on the right side of 1/2? */
static void count_batch(const qat_input_info *input, const qat_graph *graph, const qat_batch *batch,
                        int64_t *known, int64_t *right)
{
    const float *scores = qat_graph_output_at(graph, 0)->value, *truth = batch->targets;
    *known = *right = 0;
    for (int i = 0; i < batch->count * batch->n_targets; i++) {
        *known += !isnan(truth[i]);
        *right += !isnan(truth[i]) && (scores[i] > 0.5F) == (truth[i] > 0.5F);
    }
}

/* ------------------------------------------------------------------ judging */

typedef struct pass {
    size_t labels, n, capacity;
    double threshold;
    float *chosen;
    float *rows; /* each row: scores [labels], what is true [labels] */
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->labels = (size_t)input->classes;
    p->threshold = (double)input->attributes.low;
    p->chosen = input->chosen;
    return QAT_OK;
}

static void end(void *of)
{
    if (of)
        free(((pass *)of)->rows);
    free(of);
}

static qat_status grow(pass *p, size_t count, qat_error *err)
{
    size_t const capacity = 2 * p->capacity + count;
    if (p->n + count <= p->capacity)
        return QAT_OK;
    float *rows = realloc(p->rows, capacity * 2 * p->labels * sizeof *rows);
    if (!rows)
        return qat_out_of_memory(err, "evaluation");
    p->rows = rows;
    p->capacity = capacity;
    return QAT_OK;
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    if (outputs->at[0].n != p->labels || (size_t)batch->n_targets != p->labels)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "evaluation: the network answers %zu labels, but samples have %d",
                        outputs->at[0].n, batch->n_targets);
    qat_status const st = grow(p, (size_t)count, err);
    for (size_t i = 0; !st && i < (size_t)count; i++) {
        float *row = p->rows + p->n++ * 2 * p->labels;
        qat_output_real(&outputs->at[0], i, row);
        memcpy(row + p->labels, batch->targets + i * p->labels, p->labels * sizeof *row);
        for (size_t k = 0; k < p->labels; k++)
            if (!isfinite(row[k]))
                return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer is not finite");
    }
    return st;
}

/** What is known of the labels first .. end - 1. Returns how many. */
static size_t known_of(const pass *p, size_t first, size_t end, qat_scored *known)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const float *scores = p->rows + i * 2 * p->labels, *truth = scores + p->labels;
        for (size_t k = first; k < end; k++)
            if (!isnan(truth[k]))
                known[n++] = (qat_scored){(double)scores[k], truth[k] > 0.5F};
    }
    return n;
}

/** F1 of what is said at the threshold. */
static double f1_at(const qat_curve *c, double threshold)
{
    qat_threshold said = {0};
    for (size_t k = 0; k < c->n && c->at[k].score >= threshold; k++)
        said = c->at[k];
    return 2 * (double)said.hits / ((double)said.hits + (double)said.misses + (double)c->hits);
}

/** Means over the labels of which there is a hit; AUC: and a miss. */
static qat_status judge_labels(const pass *p, double threshold, qat_scored *known,
                               double figure[F1 + 1], qat_error *err)
{
    double n[F1 + 1] = {0};
    for (size_t k = 0; k < p->labels; k++) {
        qat_curve c;
        qat_status const st = qat_curve_of(&c, known, known_of(p, k, k + 1, known), err);
        if (st)
            return st;
        double const of[] = {qat_curve_ap(&c), qat_curve_auc(&c),
                             c.hits ? f1_at(&c, threshold) : -1};
        qat_curve_free(&c);
        for (int i = 0; i <= F1; i++) {
            n[i] += of[i] >= 0;
            figure[i] += of[i] >= 0 ? of[i] : 0;
        }
    }
    for (int i = 0; i <= F1; i++)
        figure[i] = n[i] > 0 ? figure[i] / n[i] : -1;
    return QAT_OK;
}

static qat_status choose(const pass *p, qat_scored *known, double *threshold, qat_error *err)
{
    qat_curve c;
    qat_status const st = qat_curve_of(&c, known, known_of(p, 0, p->labels, known), err);
    if (!st && qat_curve_best_f1(&c, threshold) >= 0)
        *p->chosen = (float)*threshold;
    qat_curve_free(&c);
    return st;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    qat_accuracy a = {.n = (int64_t)p->n, .task = &qat_task_multi_label};
    qat_scored *known = malloc((p->n * p->labels + 1) * sizeof *known);
    double threshold = p->threshold;
    qat_status st = known ? QAT_OK : qat_out_of_memory(err, "evaluation");
    if (!st && p->chosen)
        st = choose(p, known, &threshold, err);
    if (!st)
        st = judge_labels(p, threshold, known, a.figures, err);
    free(known);
    if (!st)
        *accuracy = a;
    return st;
}

static int n_scores(const qat_input_info *input)
{
    return input->classes;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    size_t const labels = (size_t)input->classes;
    qat_output_real(&outputs->at[0], (size_t)i, to);
    memcpy(truth, batch->targets + (size_t)i * labels, labels * sizeof *truth);
    return QAT_OK;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    for (int i = 0; i <= F1; i++) {
        qat_text_add(text, "%s%s ", i ? "  " : "", figures[i].name);
        qat_text_add_figure(text, a, i);
    }
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    for (int i = 0; i <= F1; i++)
        if (a->figures[i] >= 0)
            qat_text_add(text, ", \"%s%s\": %.9g", prefix, figures[i].column, a->figures[i]);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    int32_t const params[] = {qat_task_bits(input->attributes.low)};
    return qat_qgraph_set_epilogue(graph, EPILOGUE, 1, graph->outputs, 1, params, err);
}

static qat_status certify(const qat_certified_file *f, const qi_epilogue *e)
{
    double const expected[] = {(double)qat_checkpoint_input(f->c)->attributes.low};
    qat_status st = qat_certify_text(f, "epilogue", 0, e->name, EPILOGUE);
    if (!st)
        st = qat_certify_outputs(f, e, 1, 1);
    return st ? st : qat_certify_params(f, e, expected, 0, 1, 0);
}

static bool answers(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    return e->name && strcmp(e->name, EPILOGUE) == 0 && e->n_inputs == 1 && e->n_params == 1 &&
           e->inputs[0] == qi_output_at(model, 0) &&
           qi_type_has_codes((qi_type)qi_tensor_at(model, e->inputs[0])->type);
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    if (!answers(model))
        return false;
    memcpy(&input->attributes.low, &qi_model_epilogue(model)->params[0], sizeof(float));
    input->classes = (int)qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0)));
    return true;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    qat_input_info input = {0};
    of_model(&input, model);
    qat_text_add(text, ": %d label%s, each said at a score of %.6g or more", input.classes,
                 qat_plural(input.classes), (double)input.attributes.low);
}

/** JSON has all labels, a line those that are said. */
static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    bool const json = asked->json;
    qat_output const o = qat_output_of_model(asked->model, 0, asked->outputs[0]);
    qat_input_info input = {0};
    float *scores = malloc((o.n + 1) * sizeof *scores);
    int said = 0;
    if (!scores)
        return qat_out_of_memory(err, "an answer");
    of_model(&input, asked->model);
    qat_output_real(&o, 0, scores);
    qat_text_add(text, json ? ", \"labels\": [" : ":");
    for (int k = 0; k < (int)o.n; k++) {
        bool const is_said = scores[k] >= input.attributes.low;
        if (!json && !is_said)
            continue;
        qat_text_add(text, !said++ ? "" : json ? ", " : ",");
        if (json)
            qat_text_add(text, "{\"class\": %d, \"label\": ", k);
        else if (qi_label_count(asked->model))
            qat_text_add(text, " ");
        else
            qat_text_add(text, " %d", k);
        qat_text_add_label(text, asked->model, k, json);
        if (json)
            qat_text_add(text, ", \"score\": %.9g, \"said\": %s}", (double)scores[k],
                         is_said ? "true" : "false");
        else
            qat_text_add(text, " %.2f", (double)scores[k]);
    }
    qat_text_add(text, json ? "]}\n" : said ? "\n" : " none\n");
    free(scores);
    return QAT_OK;
}

const qat_task qat_task_multi_label = {
    .name = "multi_label",
    .network = "network of labels",
    .units = "labels",
    .target = target,
    .missing = "samples without labels that may occur together, but the network answers such",
    .unwanted = "samples with labels that may occur together, but the network answers none",
    .no_top = "a network of labels says each one separately",
    .checks_loaders = true,
    .main = AP,
    .also = F1,
    .logs_both = true,
    .n_figures = 3,
    .figures = figures,
    .takes = takes,
    .input = set_input,
    .ends = add_ends,
    .feed = feed,
    .count = count_batch,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = end,
    .scored = QAT_SCORES_EACH,
    .n_scores = n_scores,
    .scores = scores,
    .tell = tell,
    .tell_json = tell_json,
    .finish = finish,
    .certify = certify,
    .answers = answers,
    .of_model = of_model,
    .tell_epilogue = tell_epilogue,
    .answer = answer,
};

/**
 * The task of attributes and a value: each sample has some of several attributes, and perhaps a
 * real value. Two heads read the features that a classifier's logits would read:
 *
 *     features - fully connected, A - logistic          scores of A attributes, each for itself
 *              \ fully connected, K [- logistic]        a value = low + width sum of the K
 *
 * The loss is sigmoid_cross_entropy(attributes) + value_weight times the loss of the value. The
 * targets of the value, with s = (value - low) / width steps:
 *
 *     ordered         K steps: t[k] = s - k, within 0..1, sigmoid_cross_entropy: the k-th output is
 *                     the probability that the value lies above its step
 *     smooth_l1, l2   K = 1: t = s
 *
 * The ordered targets also sum to s, so the value is read in the same way from all three.
 */
#include "task/attributes.h"

#include "base/number.h"
#include "base/words.h"
#include "recipe/recipe.h"
#include "task/certified_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char target_attributes[] = "target_attributes", target_value[] = "target_value";

static const qat_figure figures[] = {
    [QAT_CATEGORY_AP] = {.name = "category AP",
                         .column = "category_ap",
                         .kind = QAT_FIGURE_SHARE,
                         .optional = true},
    [QAT_WITHIN] = {.name = "values right",
                    .column = "within",
                    .kind = QAT_FIGURE_SHARE,
                    .optional = true},
    [QAT_MEAN_ERROR] = {.name = "mean error",
                        .column = "mean_error",
                        .kind = QAT_FIGURE_REAL,
                        .optional = true},
};

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->has_targets;
}

bool qat_value_is_ordered(const qat_recipe *recipe)
{
    return recipe->attributes.value == QAT_VALUE_ORDERED;
}

int qat_value_outputs(const qat_recipe *recipe)
{
    return recipe->attributes.value == QAT_VALUE_NONE ? 0
           : qat_value_is_ordered(recipe)             ? (int)recipe->attributes.steps
                                                      : 1;
}

qat_attributes qat_value_range(const qat_recipe *r)
{
    double const range = r->attributes.high - r->attributes.low;
    return (qat_attributes){.outputs = qat_value_outputs(r),
                            .low = (float)r->attributes.low,
                            .width = (float)(range / (double)r->attributes.steps)};
}

/** Data without a value have no head for one. */
static qat_status set_input(qat_input_info *input, const qat_recipe *r,
                            const qat_dataset_info *data, qat_error *err)
{
    input->attributes = qat_value_range(r);
    input->attributes.count = data->classes;
    if (!data->has_value)
        input->attributes.outputs = 0;
    return QAT_OK;
}

static int value_outputs(const qat_input_info *input)
{
    return input->attributes.outputs;
}

/* ------------------------------------------------------------------ the network */

static qat_node *target(const qat_net_ends *net, const char *name, int values)
{
    return qat_graph_input(net->graph, name, QAT_SHAPE(1, values));
}

qat_node *qat_value_answer(const qat_net_ends *net, qat_node *logits)
{
    return qat_value_is_ordered(net->recipe)
               ? qat_apply1(net->graph, "logistic", "steps", "", logits)
               : logits;
}

qat_node *qat_value_loss(const qat_net_ends *net, const char *name, qat_node *logits,
                         const char *of)
{
    static const char *const ops[] = {"sigmoid_cross_entropy", "smooth_l1_loss", "l2_loss"};
    return qat_apply2(net->graph, ops[net->recipe->attributes.value], name, "", logits,
                      target(net, of, net->input->attributes.outputs));
}

static void add_losses(const qat_net_ends *net)
{
    char weight[48];
    qat_node *attributes = qat_apply2(
        net->graph, "sigmoid_cross_entropy", net->second ? "loss/attributes" : QAT_LOSS_NAME, "",
        net->last, target(net, target_attributes, net->input->attributes.count));
    if (!net->second)
        return;
    qat_format(weight, sizeof weight, "weight=%.17g", net->recipe->attributes.value_weight);
    qat_apply2(net->graph, "loss_sum", QAT_LOSS_NAME, weight, attributes,
               qat_value_loss(net, "loss/value", net->second, target_value));
}

qat_status qat_value_settings(const qat_net_ends *net, const char *what, qat_error *err)
{
    const qat_recipe *r = net->recipe;
    const struct {
        bool given;
        const char *section, *key, *value;
    } keys[] = {{r->model.output != 0, "model", "output", " = softmax"},
                {r->train.label_smoothing > 0, "train", "label_smoothing", ""},
                {net->auxiliary != NULL, "model", "auxiliary", ""}};
    char where[QAT_RECIPE_WHERE_MAX];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!keys[i].given)
            continue;
        qat_recipe_where(r, keys[i].section, keys[i].key, where);
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: %s.%s%s is for classifiers, but these data have %s", where,
                        keys[i].section, keys[i].key, keys[i].value, what);
    }
    return QAT_OK;
}

/** Check that the network has the second head, with the right number of outputs. */
static qat_status check_value(const qat_net_ends *net, qat_error *err)
{
    int const outputs = net->input->attributes.outputs;
    char text[64], where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(net->recipe, "attributes", "value", where);
    if (!outputs || (net->second && qat_shape_channels(&net->second->shape) == outputs))
        return QAT_OK;
    if (!net->second)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: the network has no second head: add a layer named value, or set "
                        "attributes.value = none",
                        where);
    return qat_fail(err, QAT_ERR_SHAPE, "%s: the layer value gives %s, but %d outputs need [1, %d]",
                    net->recipe->source, qat_shape_text(&net->second->shape, text), outputs,
                    outputs);
}

/** First the scores, then the outputs from which the value is read. */
static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_graph *g = net->graph;
    qat_node *logits, *value = net->second;
    qat_status st = qat_task_logits(net, &logits, err);
    if (!st)
        st = qat_value_settings(net, "attributes", err);
    if (!st)
        st = check_value(net, err);
    if (st)
        return st;
    qat_node *scores = qat_apply1(g, "logistic", "scores", "", net->last);
    if (scores)
        qat_graph_output(g, scores);
    qat_node *answer = value ? qat_value_answer(net, value) : NULL;
    if (answer)
        qat_graph_output(g, answer);
    add_losses(net);
    return qat_graph_check(g, err);
}

/* ------------------------------------------------------------------ a step */

void qat_value_targets(const qat_attributes *a, bool ordered, float value, float *targets)
{
    float const s = (value - a->low) / a->width;
    for (int k = 0; k < a->outputs; k++) {
        float const t = s - (float)k;
        targets[k] = !ordered || isnan(t) ? t : t < 0 ? 0 : t > 1 ? 1 : t;
    }
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    const qat_attributes *a = &input->attributes;
    qat_node *attributes = qat_graph_find(graph, target_attributes);
    qat_node *value = qat_graph_find(graph, target_value);
    size_t const count = (size_t)a->count, outputs = (size_t)a->outputs;
    for (size_t i = 0; i < (size_t)batch->count; i++) {
        const float *targets = batch->targets + i * (count + 1);
        memcpy(attributes->value + i * count, targets, count * sizeof *targets);
        if (value)
            qat_value_targets(a, qat_value_is_ordered(recipe), targets[count],
                              value->value + i * outputs);
    }
    return QAT_OK;
}

/** Each attribute counts: is the score on the right side of 1/2? */
static void count_batch(const qat_input_info *input, const qat_graph *graph, const qat_batch *batch,
                        int64_t *known, int64_t *right)
{
    const float *scores = qat_graph_output_at(graph, 0)->value;
    int const count = input->attributes.count;
    *known = *right = 0;
    for (int i = 0; i < batch->count; i++)
        for (int k = 0; k < count; k++) {
            float const t = batch->targets[i * (count + 1) + k];
            *known += !isnan(t);
            *right += !isnan(t) && (scores[i * count + k] > 0.5f) == (t > 0.5f);
        }
}

static int n_scores(const qat_input_info *input)
{
    return input->attributes.count;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    size_t const n = (size_t)input->attributes.count;
    qat_output_real(&outputs->at[0], (size_t)i, to);
    memcpy(truth, batch->targets + (size_t)i * (n + 1), n * sizeof *truth);
    return QAT_OK;
}

/* ------------------------------------------------------------------ telling figures */

/** With values, the mean of both figures. */
static double score(const qat_accuracy *a)
{
    double const ap = qat_figure_of(a, QAT_CATEGORY_AP), within = qat_figure_of(a, QAT_WITHIN);
    return isnan(within) ? ap : (ap + within) / 2;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "category AP ");
    qat_text_add_figure(text, a, QAT_CATEGORY_AP);
    if (a->figures[QAT_WITHIN] >= 0)
        qat_text_add(text, "  values right %.2f %%  mean error %.2f", qat_figure_of(a, QAT_WITHIN),
                     a->figures[QAT_MEAN_ERROR]);
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    if (a->figures[QAT_CATEGORY_AP] >= 0)
        qat_text_add(text, ", \"%scategory_ap\": %.6g", prefix, a->figures[QAT_CATEGORY_AP]);
    if (a->figures[QAT_WITHIN] >= 0)
        qat_text_add(text, ", \"%swithin\": %.6g, \"%smean_error\": %.6g", prefix,
                     a->figures[QAT_WITHIN], prefix, a->figures[QAT_MEAN_ERROR]);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    const qat_attributes *a = &input->attributes;
    int32_t const params[] = {qat_task_bits(a->low), qat_task_bits(a->width)};
    return qat_qgraph_set_epilogue(graph, QAT_ATTRIBUTES_EPILOGUE, a->outputs ? 2 : 1,
                                   graph->outputs, 2, params, err);
}

/** By the recipe alone; how many outputs there are says the checkpoint. */
qat_status qat_value_certify(const qat_certified_file *f, const qi_epilogue *e, const char *name,
                             int n)
{
    const qat_recipe *r = f->recipe;
    double const range = r->attributes.high - r->attributes.low;
    double const expected[] = {(double)(float)r->attributes.low,
                               (double)(float)(range / (double)r->attributes.steps)};
    qat_status st = qat_certify_text(f, "epilogue", 0, e->name, name);
    if (!st)
        st = qat_certify_outputs(f, e, n, n);
    return st ? st : qat_certify_params(f, e, expected, 0, 2, 0);
}

static qat_status certify(const qat_certified_file *f, const qi_epilogue *e)
{
    return qat_value_certify(f, e, "attributes",
                             qat_checkpoint_input(f->c)->attributes.outputs ? 2 : 1);
}

static bool answers(const qi_model *model)
{
    qat_attributes a;
    return qat_attributes_of_model(&a, model);
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    bool const is_one = qat_attributes_of_model(&input->attributes, model);
    input->classes = input->attributes.count;
    return is_one;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    qat_attributes a;
    qat_attributes_of_model(&a, model);
    qat_text_add(text, ": %d attribute%s", a.count, qat_plural(a.count));
    if (a.outputs)
        qat_text_add(text, ", and a value of %g + %g * the sum of %d", (double)a.low,
                     (double)a.width, a.outputs);
}

/** JSON has all attributes, a line those with a score of 1/2 or more. */
static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    bool const json = asked->json;
    qat_output const scores = qat_output_of_model(asked->model, 0, asked->outputs[0]);
    qat_attributes a;
    float *real = malloc((scores.n + 1) * sizeof *real);
    int found = 0;
    if (!real)
        return qat_out_of_memory(err, "an answer");
    qat_output_real(&scores, 0, real);
    qat_attributes_of_model(&a, asked->model);
    qat_text_add(text, json ? ", \"attributes\": [" : ":");
    for (int i = 0; i < a.count; i++) {
        double const s = (double)real[i];
        if (!json && (float)s < 0.5f)
            continue;
        qat_text_add(text, !found++ ? "" : json ? ", " : ",");
        if (json)
            qat_text_add(text, "{\"attribute\": %d, \"label\": ", i);
        else
            qat_text_add(text, " ");
        qat_text_add_label(text, asked->model, i, json);
        qat_text_add(text, json ? ", \"score\": %.9g}" : " %.2f", s);
    }
    if (json)
        qat_text_add(text, "]");
    else if (!found && !a.outputs)
        qat_text_add(text, " none");
    if (a.outputs) {
        qat_output const v = qat_output_of_model(asked->model, 1, asked->outputs[1]);
        double const value = (double)qat_attributes_value(
            &a, qat_sum_of_codes(v.type, v.scale, v.zero_point, v.codes, v.n));
        qat_text_add(text, json ? ", \"value\": " : found ? "; value " : " value ");
        qat_text_add(text, json ? "%.9g" : "%.1f", value);
    }
    qat_text_add(text, json ? "}\n" : "\n");
    free(real);
    return QAT_OK;
}

const qat_task qat_task_attributes = {
    .name = "attributes",
    .network = "network of attributes",
    .units = "attributes",
    .target = target_attributes,
    .second = "value",
    .missing = "samples with a class each, but the network answers attributes",
    .unwanted = "samples with attributes, but the network answers none",
    .no_top = "a model with attributes answers each one separately",
    .checks_loaders = true,
    .implied = true,
    .n_kept = 3,
    .main = QAT_CATEGORY_AP,
    .also = QAT_WITHIN,
    .logs_both = true,
    .n_figures = 3,
    .figures = figures,
    .takes = takes,
    .input = set_input,
    .second_outputs = value_outputs,
    .ends = add_ends,
    .feed = feed,
    .count = count_batch,
    .begin = qat_answers_begin,
    .add = qat_answers_add_outputs,
    .judge = qat_answers_judge,
    .end = qat_answers_end,
    .scored = QAT_SCORES_EACH,
    .n_scores = n_scores,
    .scores = scores,
    .score = score,
    .tell = tell,
    .tell_json = tell_json,
    .finish = finish,
    .certify = certify,
    .answers = answers,
    .of_model = of_model,
    .tell_epilogue = tell_epilogue,
    .answer = answer,
};

/**
 * The task of anomalies: the network learns to give its input back, of normal samples alone: those
 * of class 0. A sample's score is how far it is from that,
 *
 *     score = mean of the squares of (reconstruction - input)
 *
 * Both are outputs, so a .qm's answers are judged and told without anything beside them.
 */
#include "base/figures/curve.h"
#include "task/attributes.h"
#include "task/certified_file.h"

#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPILOGUE "anomaly"
static const char target[] = "target_normal";
enum { NORMAL = 0 }; /* the class */
enum { AUC };

static const qat_figure figures[] = {
    [AUC] = {.name = "AUC", .column = "auc", .kind = QAT_FIGURE_SHARE, .optional = true}};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return recipe ? recipe->model.task == QAT_TASK_ANOMALY
                  : data->classes && !data->has_objects && !data->n_targets;
}

static qat_status set_input(qat_input_info *input, const qat_recipe *r,
                            const qat_dataset_info *data, qat_error *err)
{
    int64_t const n = (int64_t)data->height * data->width * data->channels;
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(r, "model", "task", where);
    if (!takes(NULL, data))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.task = anomaly, but samples of %s have no class", where,
                        data->name);
    input->classes = (int)n; /* of a named network's last layer */
    return QAT_OK;
}

/** The number of values of one sample. */
static size_t values_of(const qat_node *node)
{
    size_t n = 1;
    for (int i = 1; i < node->shape.rank; i++)
        n *= (size_t)node->shape.dims[i];
    return n;
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_node *input = qat_graph_find(net->graph, QAT_INPUT_NAME), *last = net->last;
    qat_status const st = qat_value_settings(net, "anomalies", err);
    if (st)
        return st;
    if (values_of(last) != values_of(input))
        return qat_fail(err, QAT_ERR_SHAPE,
                        "the last layer, %s, must give as many values as the input has: %zu, not "
                        "%zu",
                        last->name, values_of(input), values_of(last));
    qat_graph_output(net->graph, last);
    qat_graph_output(net->graph, qat_apply1(net->graph, "flatten", "original", "", input));
    qat_node *wanted = qat_graph_input(net->graph, target, last->shape);
    qat_apply2(net->graph, "l2_loss", QAT_LOSS_NAME, "", last, wanted);
    return qat_graph_check(net->graph, err);
}

/** Other samples than normal ones have no known target. */
static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    qat_node *node = qat_graph_find(graph, target);
    size_t const n = values_of(node);
    for (size_t i = 0; i < (size_t)batch->count; i++)
        for (size_t j = i * n; j < (i + 1) * n; j++)
            node->value[j] = batch->labels[i] == NORMAL ? batch->real[j] : NAN;
    return QAT_OK;
}

/* ------------------------------------------------------------------ judging */

typedef struct pass {
    qat_scored *samples;
    size_t n, capacity;
} pass;

/** The score of sample i, from its two outputs. */
static qat_status score_of(const qat_output outputs[2], size_t i, double *score, qat_error *err)
{
    size_t const n = outputs[0].n;
    float *real = malloc(2 * n * sizeof *real);
    double sum = 0;
    if (!real)
        return qat_out_of_memory(err, "a score");
    qat_output_real(&outputs[0], i, real);
    qat_output_real(&outputs[1], i, real + n);
    for (size_t j = 0; j < n; j++)
        sum += ((double)real[j] - (double)real[n + j]) * ((double)real[j] - (double)real[n + j]);
    free(real);
    *score = sum / (double)n;
    return QAT_OK;
}

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    *to = calloc(1, sizeof(pass));
    return *to ? QAT_OK : qat_out_of_memory(err, "evaluation");
}

static void end(void *of)
{
    if (of)
        free(((pass *)of)->samples);
    free(of);
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    if (p->n + (size_t)count > p->capacity) {
        size_t const capacity = 2 * p->capacity + (size_t)count;
        qat_scored *samples = realloc(p->samples, capacity * sizeof *samples);
        if (!samples)
            return qat_out_of_memory(err, "evaluation");
        p->samples = samples;
        p->capacity = capacity;
    }
    for (int i = 0; i < count; i++) {
        qat_scored *s = &p->samples[p->n++];
        qat_status const st = score_of(outputs->at, (size_t)i, &s->score, err);
        if (st)
            return st;
        if (!isfinite(s->score))
            return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer is not finite");
        s->hit = batch->labels[i] != NORMAL;
    }
    return QAT_OK;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    qat_curve curve;
    qat_status const st = qat_curve_of(&curve, p->samples, p->n, err);
    if (!st)
        *accuracy = (qat_accuracy){.n = (int64_t)p->n,
                                   .task = &qat_task_anomaly,
                                   .figures = {[AUC] = qat_curve_auc(&curve)}};
    qat_curve_free(&curve);
    return st;
}

static int n_scores(const qat_input_info *input)
{
    return 1;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    double score = 0;
    qat_status const st = score_of(outputs->at, (size_t)i, &score, err);
    *to = (float)score;
    *truth = batch->labels[i] != NORMAL;
    return st;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "AUC ");
    qat_text_add_figure(text, a, AUC);
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    if (a->figures[AUC] >= 0)
        qat_text_add(text, ", \"%sauc\": %.6g", prefix, a->figures[AUC]);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    return qat_qgraph_set_epilogue(graph, EPILOGUE, 2, graph->outputs, 0, NULL, err);
}

static qat_status certify(const qat_certified_file *f, const qi_epilogue *e)
{
    qat_status const st = qat_certify_text(f, "epilogue", 0, e->name, EPILOGUE);
    return st ? st : qat_certify_outputs(f, e, 2, 2);
}

static bool answers(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    if (!e->name || strcmp(e->name, EPILOGUE) != 0 || e->n_inputs != 2 || e->n_params != 0 ||
        qi_output_count(model) != 2)
        return false;
    const qi_tensor *t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = qi_tensor_at(model, e->inputs[i]);
        if (e->inputs[i] != qi_output_at(model, i) || !qi_type_has_codes((qi_type)t[i]->type))
            return false;
    }
    return qat_tensor_values(t[0]) == qat_tensor_values(t[1]);
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    if (!answers(model))
        return false;
    input->classes = (int)qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0)));
    return true;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    qat_text_add(text, ": the mean of %zu squares",
                 qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0))));
}

static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    double score;
    qat_output const outputs[2] = {qat_output_of_model(asked->model, 0, asked->outputs[0]),
                                   qat_output_of_model(asked->model, 1, asked->outputs[1])};
    qat_status const st = score_of(outputs, 0, &score, err);
    if (!st)
        qat_text_add(text, asked->json ? ", \"score\": %.9g}\n" : ": score %.4g\n", score);
    return st;
}

const qat_task qat_task_anomaly = {
    .name = "anomaly",
    .network = "autoencoder",
    .target = target,
    .missing = "samples without a class, but the network tells class 0 from the others",
    .unwanted = "samples with a class each, but the network does not tell class 0 from the others",
    .no_top = "an autoencoder answers one score",
    .by_recipe = true,
    .main = AUC,
    .also = -1,
    .n_figures = 1,
    .figures = figures,
    .takes = takes,
    .input = set_input,
    .ends = add_ends,
    .feed = feed,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = end,
    .scored = QAT_SCORES_RANKED,
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

/**
 * The task of a value: each sample has a real number, an age for example, and nothing else. The
 * network's last layer is what the head of a value is for attributes (attributes.c): K outputs,
 *
 *     value = low + width * sum of the K
 */
#include "task/attributes.h"
#include "task/certified_file.h"

#include "qat/border.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPILOGUE "value"
static const char target[] = "target_alone";
enum { MEAN_ERROR, WITHIN };

static const qat_figure figures[] = {
    [MEAN_ERROR] = {.name = "mean error",
                    .column = "mean_error",
                    .kind = QAT_FIGURE_REAL,
                    .optional = true},
    [WITHIN] = {.name = "values right",
                .column = "within",
                .kind = QAT_FIGURE_SHARE,
                .optional = true},
};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->has_value && !data->classes;
}

static qat_status set_input(qat_input_info *input, const qat_recipe *r,
                            const qat_dataset_info *data, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(r, "attributes", "value", where);
    input->attributes = qat_value_range(r);
    input->classes = input->attributes.outputs; /* of a named network's last layer */
    if (input->classes)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: attributes.value = none, but %s has nothing else to learn", where,
                    data->name);
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_node *logits;
    qat_status st = qat_task_logits(net, &logits, err);
    if (!st)
        st = qat_value_settings(net, "a value", err);
    if (st)
        return st;
    qat_node *answer = qat_value_answer(net, logits);
    if (answer)
        qat_graph_output(net->graph, answer);
    qat_value_loss(net, QAT_LOSS_NAME, logits, target);
    return qat_graph_check(net->graph, err);
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    const qat_attributes *a = &input->attributes;
    qat_node *node = qat_graph_find(graph, target);
    for (int i = 0; i < batch->count; i++)
        qat_value_targets(a, qat_value_is_ordered(recipe),
                          batch->targets[(i + 1) * batch->n_targets - 1],
                          node->value + (size_t)i * (size_t)a->outputs);
    return QAT_OK;
}

/* ------------------------------------------------------------------ judging */

typedef struct pass {
    qat_attributes value;
    double within, sum; /* sum: of the distances */
    int64_t n, known, near;
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->value = input->attributes;
    p->within = (double)input->within;
    return QAT_OK;
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    if (!batch->targets)
        return qat_fail(err, QAT_ERR_SHAPE, "evaluation: samples without a value");
    for (int i = 0; i < count; i++) {
        float const wanted = batch->targets[(i + 1) * batch->n_targets - 1];
        float const sum = qat_output_sum(&outputs->at[0], (size_t)i);
        double const off = fabs((double)qat_attributes_value(&p->value, sum) - (double)wanted);
        p->n++;
        if (isnan(wanted))
            continue;
        p->known++;
        p->near += off <= p->within;
        p->sum += off;
    }
    return QAT_OK;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    double const known = (double)p->known;
    if (!isfinite(p->sum))
        return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer is not finite");
    *accuracy = (qat_accuracy){.n = p->n,
                               .task = &qat_task_value,
                               .figures = {[MEAN_ERROR] = p->known ? p->sum / known : -1,
                                           [WITHIN] = p->known ? (double)p->near / known : -1}};
    return QAT_OK;
}

static int n_scores(const qat_input_info *input)
{
    return 1;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    *to = qat_attributes_value(&input->attributes, qat_output_sum(&outputs->at[0], (size_t)i));
    *truth = batch->targets[(i + 1) * batch->n_targets - 1];
    return QAT_OK;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "mean error ");
    qat_text_add_figure(text, a, MEAN_ERROR);
    qat_text_add(text, "  values right ");
    qat_text_add_figure(text, a, WITHIN);
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    if (a->figures[MEAN_ERROR] >= 0)
        qat_text_add(text, ", \"%smean_error\": %.6g, \"%swithin\": %.6g", prefix,
                     a->figures[MEAN_ERROR], prefix, a->figures[WITHIN]);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    int32_t const params[] = {qat_task_bits(input->attributes.low),
                              qat_task_bits(input->attributes.width)};
    return qat_qgraph_set_epilogue(graph, EPILOGUE, 1, graph->outputs, 2, params, err);
}

static qat_status certify(const qat_certified_file *f, const qi_epilogue *e)
{
    return qat_value_certify(f, e, EPILOGUE, 1);
}

static bool answers(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    return e->name && strcmp(e->name, EPILOGUE) == 0 && e->n_inputs == 1 && e->n_params == 2 &&
           e->inputs[0] == qi_output_at(model, 0) &&
           qi_type_has_codes((qi_type)qi_tensor_at(model, e->inputs[0])->type);
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    qat_attributes *a = &input->attributes;
    if (!answers(model))
        return false;
    *a = (qat_attributes){.outputs =
                              (int)qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0)))};
    memcpy(&a->low, &qi_model_epilogue(model)->params[0], sizeof a->low);
    memcpy(&a->width, &qi_model_epilogue(model)->params[1], sizeof a->width);
    input->classes = a->outputs;
    return true;
}

static void tell_epilogue(qat_text *text, const qi_model *model)
{
    qat_input_info input = {0};
    of_model(&input, model);
    qat_text_add(text, ": %g + %g * the sum of %d", (double)input.attributes.low,
                 (double)input.attributes.width, input.attributes.outputs);
}

static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    qat_input_info input = {0};
    qat_output const v = qat_output_of_model(asked->model, 0, asked->outputs[0]);
    of_model(&input, asked->model);
    qat_text_add(text, asked->json ? ", \"value\": %.9g}\n" : ": value %.4g\n",
                 (double)qat_attributes_value(&input.attributes, qat_output_sum(&v, 0)));
    return QAT_OK;
}

const qat_task qat_task_value = {
    .name = "value",
    .network = "network of a value",
    .units = "outputs of a value",
    .target = target,
    .missing = "samples without a value alone, but the network answers one",
    .unwanted = "samples with a value alone, but the network answers none",
    .no_top = "a model of a value answers one number",
    .checks_loaders = true,
    .less_is_better = true,
    .main = MEAN_ERROR,
    .also = WITHIN,
    .logs_both = true,
    .n_figures = 2,
    .figures = figures,
    .takes = takes,
    .input = set_input,
    .ends = add_ends,
    .feed = feed,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = free,
    .scored = QAT_SCORES_VALUES,
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

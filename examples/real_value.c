/**
 * A task of one's own: one real value for each sample, such as an age, learned with the squared
 * error. docs/adding-a-task.md goes through it. The value is low + width * the network's output.
 *
 *     libqat=$(pkg-config --cflags --libs libqat)
 *     cc -std=c11 -shared -fPIC real_value.c -o libreal_value.so $libqat
 */
#include "qat/plugin.h"
#include "qat/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPILOGUE "real_value"
static const char target[] = "target_real_value";
enum { LOW = 0, WIDTH = 100, RMSE = 0 };

static const qat_figure figures[] = {
    [RMSE] = {.name = "RMSE", .column = "rmse", .kind = QAT_FIGURE_REAL, .optional = true}};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    (void)recipe; /* a recipe that names this plugin wants its task */
    return data->has_value;
}

static qat_status set_input(qat_input_info *input, const qat_recipe *recipe,
                            const qat_dataset_info *data, qat_error *err)
{
    (void)recipe, (void)data, (void)err;
    input->attributes = (qat_attributes){.outputs = 1, .low = LOW, .width = WIDTH};
    return QAT_OK;
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_node *last = net->last;
    if (last->shape.rank != 2 || last->shape.dims[1] != 1)
        return qat_fail(err, QAT_ERR_SHAPE, "the last layer, %s, must give one value", last->name);
    qat_graph_output(net->graph, last);
    qat_node *wanted = qat_graph_input(net->graph, target, last->shape);
    qat_apply2(net->graph, "l2_loss", QAT_LOSS_NAME, "", last, wanted);
    return qat_graph_check(net->graph, err);
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    const qat_attributes *a = &input->attributes;
    qat_node *node = qat_graph_find(graph, target);
    (void)recipe, (void)err;
    for (int i = 0; i < batch->count; i++)
        node->value[i] = (batch->targets[(i + 1) * batch->n_targets - 1] - a->low) / a->width;
    return QAT_OK;
}

/* ------------------------------------------------------------------ judging */

typedef struct pass {
    qat_attributes value;
    double squares;
    int64_t n, known;
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->value = input->attributes;
    return QAT_OK;
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    (void)err;
    for (int i = 0; i < count; i++) {
        float const wanted = batch->targets[(i + 1) * batch->n_targets - 1];
        float out;
        qat_output_real(&outputs->at[0], (size_t)i, &out);
        double const off = (double)qat_attributes_value(&p->value, out) - (double)wanted;
        p->n++;
        p->known += !isnan(wanted);
        p->squares += isnan(wanted) ? 0 : off * off;
    }
    return QAT_OK;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err);

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    (void)classes;
    qat_text_add(text, "RMSE ");
    qat_text_add_figure(text, a, RMSE);
    qat_text_add(text, "  (%lld samples)", (long long)a->n);
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    double const rmse = qat_figure_of(a, RMSE);
    if (!isnan(rmse))
        qat_text_add(text, ", \"%srmse\": %.6g", prefix, rmse);
}

/* ------------------------------------------------------------------ models */

static qat_status finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    float const numbers[] = {input->attributes.low, input->attributes.width};
    int32_t params[2];
    memcpy(params, numbers, sizeof params);
    return qat_qgraph_set_epilogue(graph, EPILOGUE, 1, graph->outputs, 2, params, err);
}

static bool answers(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    return e->name && strcmp(e->name, EPILOGUE) == 0 && e->n_params == 2 &&
           qi_output_count(model) == 1 &&
           qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0))) == 1;
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    float numbers[2] = {0};
    bool const mine = answers(model);
    if (mine)
        memcpy(numbers, e->params, sizeof numbers);
    input->classes = 1;
    input->attributes = (qat_attributes){.outputs = 1, .low = numbers[0], .width = numbers[1]};
    return mine;
}

static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    const qi_tensor *t = qi_tensor_at(asked->model, qi_output_at(asked->model, 0));
    qat_input_info input = {0};
    float out;
    (void)err;
    of_model(&input, asked->model);
    qat_border_dequantize(t, asked->outputs[0], &out);
    qat_text_add(text, asked->json ? ", \"value\": %.6g}\n" : ": value %.4g\n",
                 (double)qat_attributes_value(&input.attributes, out));
    return QAT_OK;
}

static const qat_task real_value = {
    .name = "real_value",
    .network = "regression",
    .target = target,
    .missing = "samples without a value, but the network answers one",
    .unwanted = "samples with a value, but the network answers none",
    .no_top = "this model answers one value",
    .less_is_better = true,
    .main = RMSE,
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
    .end = free,
    .tell = tell,
    .tell_json = tell_json,
    .finish = finish,
    .answers = answers,
    .of_model = of_model,
    .answer = answer,
};

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    double const rmse = p->known ? sqrt(p->squares / (double)p->known) : -1;
    if (!isfinite(rmse))
        return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: the error is not finite");
    *accuracy = (qat_accuracy){.n = p->n, .task = &real_value, .figures = {[RMSE] = rmse}};
    return QAT_OK;
}

const qat_plugin qat_plugin_entry = {
    .version = QAT_PLUGIN_VERSION,
    .name = "real_value",
    .tasks = (const qat_task *const[]){&real_value},
    .n_tasks = 1,
};

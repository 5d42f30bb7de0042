/**
 * The task of regression: each sample has real values, in a unit of their own, of any number. The
 * network's last layer gives as many,
 *
 *     value = low + width * output        low, width: mean and deviation of the training values
 *
 * and so a code q of a .qm stands for low + width * scale * (q - zero_point). The loss is that of
 * (value - low) / width: half the square (l2), the absolute value (l1), or Huber's.
 */
#include "task/attributes.h"
#include "task/certified_file.h"

#include "base/number.h"
#include "base/words.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPILOGUE "regression"
static const char target[] = "target_values";
enum { R2, MAE, RMSE };

static const qat_figure figures[] = {
    [R2] = {.name = "R2", .column = "r2", .kind = QAT_FIGURE_REAL},
    [MAE] = {.name = "mean absolute error", .column = "mae", .kind = QAT_FIGURE_REAL},
    [RMSE] = {.name = "root mean squared error", .column = "rmse", .kind = QAT_FIGURE_REAL},
};

/* ------------------------------------------------------------------ data and network */

static bool takes(const qat_recipe *recipe, const qat_dataset_info *data)
{
    return data->targets == QAT_TARGETS_VALUES;
}

static qat_status set_input(qat_input_info *input, const qat_recipe *r,
                            const qat_dataset_info *data, qat_error *err)
{
    input->classes = data->n_targets; /* of a named network's last layer */
    input->attributes = (qat_attributes){.low = data->target_mean, .width = data->target_deviation};
    return QAT_OK;
}

/** The number of values of one sample. */
static size_t values_of(const qat_node *node)
{
    return qat_shape_count(&node->shape) / (size_t)node->shape.dims[0];
}

static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    const qat_recipe *r = net->recipe;
    qat_node *last = net->last;
    char beta[48] = "";
    qat_status const st = qat_value_settings(net, "real values", err);
    if (st)
        return st;
    if (values_of(last) != (size_t)net->input->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "the last layer, %s, must give as many values as a sample has: %d, not %zu",
                        last->name, net->input->classes, values_of(last));
    qat_graph_output(net->graph, last);
    qat_node *wanted = qat_graph_input(net->graph, target, last->shape);
    if (r->regression.loss)
        qat_format(beta, sizeof beta, "beta=%.17g",
                   r->regression.loss == 1 ? 1e-6 : r->regression.delta);
    qat_apply2(net->graph, r->regression.loss ? "smooth_l1_loss" : "l2_loss", QAT_LOSS_NAME, beta,
               last, wanted);
    return qat_graph_check(net->graph, err);
}

static qat_status feed(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                       const qat_batch *batch, qat_error *err)
{
    const qat_attributes *a = &input->attributes;
    qat_node *node = qat_graph_find(graph, target);
    size_t const n = (size_t)batch->count * (size_t)batch->n_targets;
    for (size_t i = 0; i < n; i++)
        node->value[i] = (batch->targets[i] - a->low) / a->width;
    return QAT_OK;
}

/* ------------------------------------------------------------------ judging */

/** What is known of one value of the samples: sums for its variance and errors. */
typedef struct tally {
    double n, mean, squares; /* squares: of the distances from the mean */
    double absolute, error;  /* error: squares of the distances from the answers */
} tally;

typedef struct pass {
    qat_attributes values;
    size_t each;
    int64_t n;
    float *real;   /* [each] */
    tally tally[]; /* [each] */
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    size_t const each = (size_t)input->classes;
    pass *p = calloc(1, sizeof *p + each * sizeof *p->tally);
    *to = p;
    if (p)
        p->real = malloc((each + 1) * sizeof *p->real);
    if (!p || !p->real)
        return qat_out_of_memory(err, "evaluation");
    p->values = input->attributes;
    p->each = each;
    return QAT_OK;
}

static void end(void *of)
{
    if (of)
        free(((pass *)of)->real);
    free(of);
}

static void add_one(tally *t, double wanted, double answered)
{
    double const before = wanted - t->mean, off = wanted - answered;
    t->n++;
    t->mean += before / t->n;
    t->squares += before * (wanted - t->mean);
    t->absolute += fabs(off);
    t->error += off * off;
}

static double value_of(const qat_attributes *a, float output)
{
    return (double)(a->low + a->width * output);
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    pass *p = to;
    if (outputs->at[0].n != p->each || (size_t)batch->n_targets != p->each)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "evaluation: the network answers %zu values, but samples have %d",
                        outputs->at[0].n, batch->n_targets);
    for (size_t i = 0; i < (size_t)count; i++) {
        const float *wanted = batch->targets + i * p->each;
        qat_output_real(&outputs->at[0], i, p->real);
        for (size_t k = 0; k < p->each; k++) {
            if (!isfinite(p->real[k]))
                return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer is not finite");
            if (!isnan(wanted[k]))
                add_one(&p->tally[k], (double)wanted[k], value_of(&p->values, p->real[k]));
        }
        p->n++;
    }
    return QAT_OK;
}

static int n_scores(const qat_input_info *input)
{
    return input->classes;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    size_t const each = (size_t)input->classes;
    qat_output_real(&outputs->at[0], (size_t)i, to);
    for (size_t k = 0; k < each; k++)
        to[k] = (float)value_of(&input->attributes, to[k]);
    memcpy(truth, batch->targets + (size_t)i * each, each * sizeof *truth);
    return QAT_OK;
}

/** R2 is the mean over the values; of a value that is always the same it is 1 or 0. */
static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const pass *p = of;
    double r2 = 0, absolute = 0, error = 0, n = 0, judged = 0;
    for (size_t k = 0; k < p->each; k++) {
        const tally *t = &p->tally[k];
        if (t->n > 0)
            r2 += t->squares > 0 ? 1 - t->error / t->squares : t->error == 0;
        judged += t->n > 0;
        n += t->n;
        absolute += t->absolute;
        error += t->error;
    }
    if (!(n > 0))
        return qat_fail(err, QAT_ERR_FORMAT, "evaluation: no value of any sample is known");
    *accuracy = (qat_accuracy){
        .n = p->n,
        .task = &qat_task_regression,
        .figures = {[R2] = r2 / judged, [MAE] = absolute / n, [RMSE] = sqrt(error / n)}};
    return QAT_OK;
}

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "R2 %.4f  mean absolute error %.6g  root mean squared error %.6g",
                 a->figures[R2], a->figures[MAE], a->figures[RMSE]);
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    qat_text_add(text, ", \"%sr2\": %.9g, \"%smae\": %.9g, \"%srmse\": %.9g", prefix,
                 a->figures[R2], prefix, a->figures[MAE], prefix, a->figures[RMSE]);
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
    const qat_attributes *a = &qat_checkpoint_input(f->c)->attributes;
    double const expected[] = {(double)a->low, (double)a->width};
    qat_status st = qat_certify_text(f, "epilogue", 0, e->name, EPILOGUE);
    if (!st)
        st = qat_certify_outputs(f, e, 1, 1);
    return st ? st : qat_certify_params(f, e, expected, 0, 2, 0);
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
    memcpy(&a->low, &qi_model_epilogue(model)->params[0], sizeof a->low);
    memcpy(&a->width, &qi_model_epilogue(model)->params[1], sizeof a->width);
    input->classes = (int)qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0)));
    return true;
}

/** What a code stands for, in the values' own unit. */
static void tell_epilogue(qat_text *text, const qi_model *model)
{
    qat_input_info input = {0};
    of_model(&input, model);
    const qat_attributes *a = &input.attributes;
    qat_output const o = qat_output_of_model(model, 0, NULL);
    qat_text_add(text, ": %d value%s of %g + %g * output, or %g + %g * (code - %d)", input.classes,
                 qat_plural(input.classes), (double)a->low, (double)a->width, (double)a->low,
                 (double)(a->width * o.scale), (int)o.zero_point);
}

static qat_status answer(qat_text *text, const qat_answer *asked, qat_error *err)
{
    qat_input_info input = {0};
    qat_output const o = qat_output_of_model(asked->model, 0, asked->outputs[0]);
    float *real = malloc((o.n + 1) * sizeof *real);
    if (!real)
        return qat_out_of_memory(err, "an answer");
    of_model(&input, asked->model);
    qat_output_real(&o, 0, real);
    qat_text_add(text, asked->json ? ", \"values\": [" : ": value%s", qat_plural((int)o.n));
    for (size_t k = 0; k < o.n; k++) {
        double const v = value_of(&input.attributes, real[k]);
        qat_text_add(text, asked->json ? "%s%.9g" : "%s%.6g",
                     !asked->json ? " "
                     : k          ? ", "
                                  : "",
                     v);
    }
    qat_text_add(text, asked->json ? "]}\n" : "\n");
    free(real);
    return QAT_OK;
}

const qat_task qat_task_regression = {
    .name = "regression",
    .network = "regression",
    .units = "values",
    .target = target,
    .missing = "samples without real values, but the network answers some",
    .unwanted = "samples with real values, but the network answers none",
    .no_top = "a regression answers real values",
    .checks_loaders = true,
    .main = R2,
    .also = MAE,
    .logs_both = true,
    .n_figures = 3,
    .figures = figures,
    .takes = takes,
    .input = set_input,
    .ends = add_ends,
    .feed = feed,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = end,
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

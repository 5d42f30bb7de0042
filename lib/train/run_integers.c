/**
 * The network of a training run on the integer engine. It is made as an export makes it:
 *
 *     parameters as in a checkpoint of this step (their averages, if parameters are averaged) ->
 *     batch norm's averages computed again, if the recipe says so -> freeze -> input table ->
 *     epilogue -> .qm -> engine
 *
 * So the figures equal those of the .qm that qat-export makes from this step.
 */
#include "deploy/calibrate.h"
#include "deploy/integer_model.h"
#include "evaluate/evaluate.h"
#include "recipe/recipe.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

/** The parameters that a checkpoint of this step holds for evaluation. */
static qat_status set_params(const void *context, qat_graph *graph, qat_error *err)
{
    (void)err;
    qat_graph_init_params(graph, 0);
    qat_trainer_eval_params(context, graph);
    return QAT_OK;
}

static qat_status reestimate(const qat_trainer *t, qat_error *err)
{
    int64_t const batches = t->recipe->quant.bn_reestimate;
    qat_graph *float_graph = NULL;
    if (batches < 1)
        return QAT_OK;
    qat_status st = qat_graph_clone(&float_graph, t->float_eval, err);
    qat_reestimation const from = {.float_graph = float_graph,
                                   .quant = &t->quant,
                                   .recipe = t->recipe,
                                   .input = &t->input,
                                   .data = t->train_data,
                                   .set_params = set_params,
                                   .context = t};
    if (!st)
        st = qat_reestimate_bn(&from, batches, t->integer_eval, err);
    qat_graph_free(float_graph);
    return st;
}

/** The bytes of a .qm. Labels and known answers are left out: no figure depends on them. */
static qat_status write_model(const qat_trainer *t, uint8_t **qm, size_t *bytes, qat_error *err)
{
    qat_qm_metadata const metadata = {.preprocessing = qat_preprocessing_of(&t->input)};
    qat_qgraph *graph = NULL;
    qat_status st = qat_freeze_network(&graph, t->integer_eval, &t->input,
                                       (qat_profile)t->recipe->quant.profile, NULL, err);
    if (!st)
        st = qat_finish_network(graph, &t->input, err);
    if (!st)
        st = qat_qm_write(graph, &metadata, qm, bytes, err);
    qat_qgraph_free(graph);
    return st;
}

/** The network of this step in the engine, and its input as qat-eval finds it in a .qm. */
static qat_status open_model(const qat_trainer *t, qi_host **host, qat_input_info *input,
                             qat_error *err)
{
    qi_host_options const options = {
        .custom = qat_plugins_kernels(t->plugins), .threads = 1, .limits = QI_NO_LIMITS};
    uint8_t *qm = NULL;
    size_t bytes = 0;
    qat_status st = write_model(t, &qm, &bytes, err);
    if (!st)
        st = qi_host_open_bytes(host, qm, bytes, "the engine", &options, err);
    free(qm);
    if (!st)
        st = qat_input_info_of_model(input, t->registry, qi_host_model(*host), err);
    input->within = t->input.within;
    input->chosen = t->input.chosen;
    input->witness = t->input.witness;
    return st;
}

qat_status qat_trainer_evaluate_integers(qat_trainer *t, qat_tick *tick, qat_accuracy *accuracy,
                                         qat_error *why, qat_error *err)
{
    qi_host *host = NULL;
    qat_input_info input = {0};
    *accuracy = (qat_accuracy){0};
    qat_trainer_eval_params(t, t->integer_eval);
    qat_status st = reestimate(t, err);
    if (st)
        return st;
    st = open_model(t, &host, &input, why);
    if (st == QAT_ERR_NOMEM)
        st = qat_fail(err, st, "%s", why->message);
    else if (st) /* this network, at this step, has no integers */
        st = QAT_OK;
    else
        st = qat_evaluate_model_among(qat_trainer_judges(t), (int)t->recipe->data.threads, host,
                                      &input, t->test_data, 0, tick, t, accuracy, err);
    qi_host_close(host);
    return st;
}

/** The graphs that are exported: of evaluation, with their parameters, and of integers. */
#include "deploy/deploy.h"

#include "checkpoint/restore.h"
#include "deploy/calibrate.h"
#include "deploy/integer_model.h"
#include "integer/quant_ops.h"
#include "recipe/recipe.h"

static qat_status set_params(const void *context, qat_graph *graph, qat_error *err)
{
    return qat_checkpoint_params(context, graph, err);
}

/** Refuse what would have to know that steps share their weights. */
static qat_status check_steps(const qat_restored *r, const qat_deploy_options *o, int64_t batches,
                              qat_error *err)
{
    if (r->recipe->model.steps && o->calibrate)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "a network with a state cannot be calibrated (--ptq): train it with "
                        "quantization");
    if (r->recipe->model.steps && batches > 0)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "a network with a state cannot have its batch norm's averages computed "
                        "again (--reestimate-bn)");
    return QAT_OK;
}

/** Compute batch norm's averages again if options or recipe ask for it. */
static qat_status reestimate(const qat_restored *r, const qat_deploy_options *o, qat_graph *eval,
                             qat_error *err)
{
    int64_t const batches = o->bn_reestimate ? o->bn_reestimate : r->recipe->quant.bn_reestimate;
    qat_reestimation const from = {.float_graph = r->float_graph,
                                   .quant = &r->checkpoint->quant,
                                   .recipe = r->recipe,
                                   .input = &r->checkpoint->input,
                                   .set_params = set_params,
                                   .context = r->checkpoint};
    qat_status const st = check_steps(r, o, batches, err);
    return !st && batches > 0 ? qat_reestimate_bn(&from, batches, eval, err) : st;
}

qat_status qat_restored_eval_graph(const qat_restored *restored, const qat_deploy_options *options,
                                   int max_batch, qat_graph **eval, qat_error *err)
{
    return qat_restored_eval_and_folded(restored, options, max_batch, eval, NULL, err);
}

qat_status qat_restored_eval_and_folded(const qat_restored *restored,
                                        const qat_deploy_options *options, int max_batch,
                                        qat_graph **eval, qat_graph **folded, qat_error *err)
{
    const qat_checkpoint *c = restored->checkpoint;
    *eval = NULL;
    if (folded)
        *folded = NULL;
    if (options->calibrate) {
        qat_status const refused = check_steps(restored, options, 0, err);
        return refused ? refused
                       : qat_calibrated_eval_graph(restored, options, max_batch, eval, folded, err);
    }
    if (!c->quantized)
        return qat_fail(err, QAT_ERR_STATE,
                        "the checkpoint is from a float run: no activation range was observed; "
                        "calibrate it on data (--ptq)");
    qat_quant_options quant = c->quant;
    quant.profile = qat_deploy_profile(restored, options);
    quant.forward = qat_deploy_forward(restored);
    qat_status st = qat_create_eval_graph(eval, restored->float_graph, &quant, err);
    if (!st)
        st = qat_graph_plan(*eval, max_batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_checkpoint_params(c, *eval, err);
    if (!st)
        st = reestimate(restored, options, *eval, err);
    if (st) {
        qat_graph_free(*eval);
        *eval = NULL;
    }
    return st;
}

qat_profile qat_deploy_profile(const qat_restored *r, const qat_deploy_options *o)
{
    return o->has_profile ? o->profile : r->checkpoint->profile;
}

qat_forward qat_deploy_forward(const qat_restored *r)
{
    return r->recipe->quant.forward == QAT_FORWARD_FAKE_QUANT ? QAT_FORWARD_FAKE_QUANT
                                                              : QAT_FORWARD_SIMULATED;
}

/** Fractional bits of sums, at most, in a layer with these overrides; NULL: none. */
static int fraction_of(const qat_quant_options *q, qat_profile profile, const qat_quant_layer *l)
{
    int const weights = l && l->weight_bits ? l->weight_bits : q->weight_bits;
    int const given = l && l->activation_bits ? l->activation_bits : q->activation_bits;
    int const most = l && l->input_bits ? l->input_bits : q->input_bits;
    return qat_wanted_fraction(q, profile, false, most && most < given ? most : given, weights);
}

qat_profile qat_restored_prefer_profile(const qat_restored *r, qat_profile preferred)
{
    const qat_quant_options *q = &r->checkpoint->quant;
    qat_profile const trained = r->checkpoint->profile;
    bool keeps = q->activation_bits > 8 && preferred != QAT_PROFILE_TFLITE;
    for (int i = -1; i < q->n_layers && !keeps; i++) {
        const qat_quant_layer *l = i < 0 ? NULL : &q->layers[i];
        keeps =
            !(l && l->is_float == 1) && fraction_of(q, trained, l) > fraction_of(q, preferred, l);
    }
    return keeps ? trained : preferred;
}

/**
 * Check that the network can become integers. After calibration all ranges are observed, whatever
 * the recipe says.
 */
qat_status qat_deploy_check_integers(const qat_restored *r, const qat_deploy_options *o,
                                     qat_error *err)
{
    const qat_quant_options *quant = &r->checkpoint->quant;
    qat_quant_options const observed = qat_quant_observed(quant);
    return qat_check_integers(r->float_graph, o->calibrate ? &observed : quant, err);
}

qat_status qat_restored_freeze(const qat_restored *restored, const qat_deploy_options *options,
                               qat_graph *eval, qat_qgraph **graph, qat_error *err)
{
    *graph = NULL;
    qat_status const st = qat_deploy_check_integers(restored, options, err);
    return st ? st
              : qat_freeze_network(graph, eval, &restored->checkpoint->input,
                                   qat_deploy_profile(restored, options), options->log, err);
}

qat_status qat_restored_read_step(const qat_restored *r, qat_graph **graph, qat_error *err)
{
    qat_input_info input = r->checkpoint->input;
    if (!r->recipe->model.steps)
        return qat_restored_read_graph(r, graph, 1, QAT_PLAN_KEEP, err);
    qat_status const st = qat_network_build_step(graph, r->registry, r->recipe, &input, err);
    return st ? st : qat_restored_plan(r, graph, 1, QAT_PLAN_KEEP, err);
}

#include "train/certified_source.h"

#include <string.h>

static bool is_average(const char *name)
{
    const char *part = strrchr(name, '/');
    return part && (!strcmp(part, "/ema_mean") || !strcmp(part, "/ema_variance"));
}

static const float *values_of(const void *context, const char *name, size_t *count)
{
    const qat_certified_source *t = context;
    const qat_checkpoint *c = t->checkpoint;
    if (t->eval && (!t->averages_only || is_average(name)))
        return qat_certify_graph_values(t->eval, name, count);
    for (int i = 0; i < c->n_params; i++)
        if (strcmp(c->params[i].name, name) == 0) {
            *count = qat_shape_count(&c->params[i].shape);
            return c->params[i].values;
        }
    return NULL;
}

void qat_certified_source_of(qat_certified_source *t, const qat_restored *restored,
                             const qat_deploy_options *options, const qat_graph *eval,
                             const qat_graph *folded)
{
    const qat_checkpoint *c = restored->checkpoint;
    const qat_input_info *in = &c->input;
    int64_t const anew =
        options->bn_reestimate ? options->bn_reestimate : restored->recipe->quant.bn_reestimate;
    bool const calibrated = options->calibrate != NULL;
    *t = (qat_certified_source){
        .checkpoint = c,
        .eval = calibrated || anew > 0 ? eval : NULL,
        .averages_only = !calibrated,
        .text = calibrated ? "the calibrated network"
                : anew > 0 ? "the checkpoint, with batch norm's averages computed again"
                           : "the checkpoint"};
    t->source =
        (qat_certify_source){.graph = calibrated ? folded : restored->float_graph,
                             .quant = calibrated ? qat_quant_observed(&c->quant) : c->quant,
                             .profile = options->has_profile ? options->profile : c->profile,
                             .values = values_of,
                             .context = t,
                             .channels = in->type == QAT_SAMPLE_U8 ? in->channels : 0,
                             .mean = in->mean,
                             .std = in->std};
}

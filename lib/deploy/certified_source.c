#include "deploy/certified_source.h"
#include "checkpoint/restore.h"
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ values */

static bool ends_in(const char *name, const char *end)
{
    size_t const n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/** The average of a trained parameter: the last of its optimizer's slots. */
static const float *average_of(const qat_checkpoint *c, const char *name)
{
    for (int i = c->n_slots - 1; c->averaged && i < c->n_slot_tensors; i += c->n_slots)
        if (strcmp(c->slots[i].name, name) == 0)
            return c->slots[i].values;
    return NULL;
}

const float *qat_certified_parameter(const qat_certified_source *s, const char *name, size_t *count)
{
    const qat_checkpoint *c = s->checkpoint;
    bool const averaged = !s->raw_parameters && !ends_in(name, "/q/learned");
    for (int i = 0; i < c->n_params; i++)
        if (strcmp(c->params[i].name, name) == 0) {
            const float *average = averaged ? average_of(c, name) : NULL;
            *count = qat_shape_count(&c->params[i].shape);
            return average ? average : c->params[i].values;
        }
    return NULL;
}

static const float *values_of(const void *context, const char *name, size_t *count)
{
    const qat_certified_source *s = context;
    bool const average = ends_in(name, "/ema_mean") || ends_in(name, "/ema_variance");
    if (s->eval && (!s->averages_only || average))
        return qat_certify_graph_values(s->eval, name, count);
    return qat_certified_parameter(s, name, count);
}

/* ------------------------------------------------------------------ opening */

static qat_status read_again(qat_certified_source *s, const qat_restored *r, qat_error *err)
{
    const char *const *sets = (const char *const *)r->sets;
    qat_status st = qat_checkpoint_load(&s->checkpoint, r->path, err);
    if (!st && memcmp(s->checkpoint->digest, r->checkpoint->digest, sizeof r->checkpoint->digest))
        st = qat_fail(err, QAT_ERR_STATE,
                      "%s was replaced while it was exported: run the export again", r->path);
    if (!st)
        st = qat_recipe_parse(&s->recipe, s->checkpoint->recipe, r->path, sets, r->n_sets, err);
    if (!st && r->one_step)
        return qat_network_build_step(&s->float_graph, r->registry, s->recipe,
                                      &s->checkpoint->input, err);
    return st ? st
              : qat_graph_read(&s->float_graph, r->registry, s->checkpoint->graph, r->path, err);
}

/** The checkpoint's quantization, with what was set for this export. */
static qat_quant_options quant_of(const qat_certified_source *s, const qat_restored *r)
{
    qat_quant_options q = s->checkpoint->quant;
    q.fraction = qat_recipe_fraction(s->recipe);
    if (r->n_sets) {
        q.layout = (qat_layout)s->recipe->quant.layout;
        q.weight_bits = (int)s->recipe->quant.weight_bits;
        q.activation_bits = (int)s->recipe->quant.activation_bits;
    }
    return s->calibrated ? qat_quant_observed(&q) : q;
}

static qat_profile profile_of(const qat_certified_source *s, const qat_restored *r,
                              const qat_deploy_options *o)
{
    if (o->has_profile)
        return o->profile;
    return r->n_sets ? (qat_profile)s->recipe->quant.profile : s->checkpoint->profile;
}

/** New averages that were asked for differ from the checkpoint's. */
static qat_status check_anew(const qat_certified_source *s, qat_error *err)
{
    bool any = false, differ = false;
    for (int i = 0; i < s->checkpoint->n_params; i++) {
        const qat_named_tensor *p = &s->checkpoint->params[i];
        size_t count = 0;
        if (!ends_in(p->name, "/ema_mean"))
            continue;
        const float *now = qat_certify_graph_values(s->eval, p->name, &count);
        if (!now || count != qat_shape_count(&p->shape))
            continue;
        any = true;
        differ |= memcmp(now, p->values, count * sizeof *now) != 0;
    }
    if (!any || differ)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "export refused: batch norm's averages were to be taken anew, but all of them "
                    "are still the checkpoint's");
}

/** What the graphs of a calibrated network are made of: weights and biases before they were clipped
 *  and corrected, so that the engine must not be far worse for it. */
static const float *before_correction(const qat_certified_source *s, const char *name,
                                      size_t *count)
{
    const float *values =
        s->calibrated ? qat_certify_graph_values(s->source.graph, name, count) : NULL;
    return values ? values : s->source.values(s, name, count);
}

/** The parameters of a planned graph. What the source does not hold keeps its initial value. */
static void set_parameters(const qat_certified_source *s, qat_graph *graph)
{
    qat_graph_init_params(graph, 0);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        size_t count = 0;
        const float *values = node->is_param ? before_correction(s, node->name, &count) : NULL;
        if (values && count == qat_shape_count(&node->shape))
            memcpy(node->value, values, count * sizeof *values);
    }
}

/** The network in float, and by fake quantization alone: no code that the integers have. */
static qat_status make_graphs(qat_certified_source *s, const qat_registry *registry, qat_error *err)
{
    char *text = NULL;
    qat_quant_options quant = s->source.quant;
    quant.forward = QAT_FORWARD_FAKE_QUANT;
    qat_status st = qat_graph_write(s->source.graph, &text, err);
    if (!st)
        st = qat_graph_read(&s->real, registry, text, "certificate", err);
    free(text);
    if (!st)
        st = qat_create_training_graph(&s->simulated, s->source.graph, &quant, err);
    if (!st)
        st = qat_graph_plan(s->real, QAT_CERTIFY_BATCH, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_graph_plan(s->simulated, QAT_CERTIFY_BATCH, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    set_parameters(s, s->real);
    set_parameters(s, s->simulated);
    return QAT_OK;
}

qat_status qat_certified_source_open(qat_certified_source *s, const qat_restored *restored,
                                     const qat_deploy_options *options, const qat_graph *eval,
                                     const qat_graph *folded, qat_error *err)
{
    *s = (qat_certified_source){.raw_parameters = restored->raw_parameters,
                                .calibrated = options->calibrate != NULL};
    qat_status const st = read_again(s, restored, err);
    if (st)
        return st;
    const qat_input_info *in = &s->checkpoint->input;
    int64_t const anew =
        options->bn_reestimate ? options->bn_reestimate : s->recipe->quant.bn_reestimate;
    s->eval = s->calibrated || anew > 0 ? eval : NULL;
    s->averages_only = !s->calibrated;
    s->text = s->calibrated ? "the calibrated network"
              : anew > 0    ? "the checkpoint, with batch norm's averages computed again"
                            : "the checkpoint";
    s->source = (qat_certify_source){.graph = s->calibrated ? folded : s->float_graph,
                                     .quant = quant_of(s, restored),
                                     .profile = profile_of(s, restored, options),
                                     .values = values_of,
                                     .context = s,
                                     .channels = in->type != QAT_SAMPLE_F32 ? in->channels : 0,
                                     .mean = in->mean,
                                     .std = in->std};
    qat_status const made = make_graphs(s, restored->registry, err);
    return !made && !s->calibrated && anew > 0 ? check_anew(s, err) : made;
}

void qat_certified_source_close(qat_certified_source *s)
{
    qat_graph_free(s->simulated);
    qat_graph_free(s->real);
    qat_graph_free(s->float_graph);
    qat_recipe_free(s->recipe);
    qat_checkpoint_free(s->checkpoint);
    *s = (qat_certified_source){0};
}

/**
 * Post-training quantization: runs the functions of ptq.h on calibration data.
 *
 *     checkpoint -> float graph -> folded -> [equalized] -> eval graph
 *     data, twice:          extents, histograms -> ranges -> [weights clipped]
 *     data, once a layer:   [biases corrected]
 *     data, once more:      [the means of corrected layers compared, for an export]
 *
 * The samples are a random choice, the same in every pass.
 */
#include "deploy/calibrate.h"
#include "deploy/deploy.h"

#include "certify/certify.h"
#include "checkpoint/restore.h"
#include "evaluate/data.h"
#include "qat/ptq.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <string.h>

enum { CALIBRATION_SAMPLES = 1000 };

typedef struct calibration {
    const qat_restored *restored;
    const qat_deploy_options *options;
    qat_dataset *data;
    qat_loader *loader;
    int64_t samples; /* samples per pass */
    qat_graph *folded, *eval;
    qat_calibrator *calibrator;
    qat_bias_correction *correction;
    bool certifies;        /* an export: ranges are compared with the float network's values */
    cert_extents *extents; /* of these; NULL: not in this pass */
    cert_means *means;     /* of corrected layers */
    int layer;             /* layer whose bias is measured */
    qat_status status;     /* of what a pass did */
    qat_error *err;
} calibration;

/* ------------------------------------------------------------------ data */

static const char *data_spec(const qat_deploy_options *o)
{
    return strcmp(o->calibrate, "recipe") ? o->calibrate : NULL;
}

static qat_status open_data(calibration *c, int batch, qat_error *err)
{
    const qat_restored *r = c->restored;
    int64_t const wanted =
        c->options->calibration_samples > 0 ? c->options->calibration_samples : CALIBRATION_SAMPLES;
    qat_loader_options const o = {.batch = batch,
                                  .shuffle = true,
                                  .seed = (uint64_t)r->recipe->train.seed,
                                  .threads = 1,
                                  .prefetch = 4};
    qat_status st =
        qat_recipe_open_data(&c->data, r->recipe, data_spec(c->options), QAT_SPLIT_TRAIN, err);
    if (st)
        return st;
    int64_t const there = qat_dataset_info_of(c->data)->count;
    c->samples = wanted < there ? wanted : there;
    return qat_open_loader(&c->loader, c->data, &r->checkpoint->input, &o, err);
}

/** What a pass does with a batch that both graphs have received. */
typedef void pass_fn(calibration *c);

static qat_status run_pass(calibration *c, pass_fn *fn, qat_error *err)
{
    qat_status st = qat_loader_seek(c->loader, 0, 0, err);
    for (int64_t done = 0; done < c->samples && !st;) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(c->loader, &batch, err);
        if (st)
            break;
        int64_t const left = c->samples - done;
        int const count = batch->count < left ? batch->count : (int)left;
        st = qat_feed_graph(c->eval, batch, count, err);
        if (!st)
            st = qat_feed_graph(c->folded, batch, count, err);
        if (!st)
            fn(c);
        done += count;
    }
    return st ? st : c->status;
}

/* ------------------------------------------------------------------ graphs */

qat_status qat_restored_float(const qat_restored *restored, qat_graph **graph, qat_error *err)
{
    const qat_checkpoint *c = restored->checkpoint;
    qat_status st = qat_graph_read(graph, restored->registry, c->graph, "checkpoint", err);
    if (!st)
        st = qat_graph_plan(*graph, 1, QAT_PLAN_EVAL, err);
    if (!st)
        st = qat_checkpoint_params(c, *graph, err);
    if (st) {
        qat_graph_free(*graph);
        *graph = NULL;
    }
    return st;
}

/** The folded weights and biases, computed again from the network before it was folded. */
static qat_status certify_folding(const calibration *c, const qat_graph *graph, qat_error *err)
{
    qat_error inner = {0};
    qat_certify_source const original = {.graph = graph,
                                         .quant = c->restored->checkpoint->quant,
                                         .values = qat_certify_graph_values,
                                         .context = graph};
    qat_status const st = cert_folded_graph(&original, c->folded, &inner);
    return st ? qat_fail(err, st, "export refused: %s", inner.message) : QAT_OK;
}

static qat_status make_graphs(calibration *c, int max_batch, qat_error *err)
{
    qat_graph *graph = NULL;
    qat_status st = qat_restored_float(c->restored, &graph, err);
    if (!st)
        st = qat_fold_batch_norm(&c->folded, graph, max_batch, err);
    if (!st)
        st = certify_folding(c, graph, err);
    qat_graph_free(graph);
    if (!st && c->options->equalize)
        st = qat_equalize(c->folded, &c->options->report->equalized, err);
    qat_quant_options options = qat_quant_observed(&c->restored->checkpoint->quant);
    options.profile = qat_deploy_profile(c->restored, c->options);
    options.forward = qat_deploy_forward(c->restored);
    if (!st)
        st = qat_create_eval_graph(&c->eval, c->folded, &options, err);
    if (!st)
        st = qat_graph_plan(c->eval, max_batch, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_init_params(c->eval, 0);
        qat_graph_copy_params(c->eval, c->folded);
    }
    return st;
}

/* ------------------------------------------------------------------ passes */

static const qat_estimator *estimator_of(const calibration *c)
{
    return c->options->estimator ? c->options->estimator : qat_estimator_find("minmax");
}

static bool is_minmax(const calibration *c)
{
    return strcmp(estimator_of(c)->name, "minmax") == 0;
}

static void note_extents(calibration *c)
{
    qat_calibrator_extents(c->calibrator);
    if (c->extents)
        cert_extents_batch(c->extents);
}

/** The ranges that were committed, against what the float network's values were. */
static qat_status certify_ranges(const calibration *c, const qat_estimator *e, qat_error *err)
{
    qat_error inner = {0};
    if (!c->extents)
        return QAT_OK;
    qat_status const st =
        cert_extents_check(c->extents, c->eval, e->name, c->options->estimator_parameter, &inner);
    return st ? qat_fail(err, st, "export refused: %s", inner.message) : QAT_OK;
}

static void count_values(calibration *c)
{
    qat_calibrator_count(c->calibrator);
    if (c->extents && !c->status && !is_minmax(c))
        c->status = cert_extents_count(c->extents, c->err);
}

static qat_status find_ranges(calibration *c, qat_error *err)
{
    const qat_estimator *e = estimator_of(c);
    qat_quant_options const quant = qat_quant_observed(&c->restored->checkpoint->quant);
    qat_status st = qat_calibrator_create(&c->calibrator, c->eval, err);
    if (!st && c->certifies)
        st = cert_extents_create(&c->extents, c->folded, &quant, err);
    if (!st)
        st = run_pass(c, note_extents, err);
    if (!st)
        st = run_pass(c, count_values, err);
    if (!st)
        qat_calibrator_commit(c->calibrator, e, c->options->estimator_parameter);
    if (!st)
        st = certify_ranges(c, e, err);
    return st ? st : qat_clip_weights(c->eval, e, c->options->estimator_parameter, err);
}

static void measure_bias(calibration *c)
{
    qat_bias_correction_measure(c->correction, c->layer);
}

static void note_means(calibration *c)
{
    cert_means_batch(c->means);
}

/** One more pass: the corrected layers have the float network's means. */
static qat_status certify_biases(calibration *c, qat_error *err)
{
    qat_error inner = {0};
    if (!c->certifies)
        return QAT_OK;
    qat_status st = cert_means_create(&c->means, c->folded, c->eval, &inner);
    if (!st)
        st = run_pass(c, note_means, &inner);
    if (!st)
        st = cert_means_check(c->means, &inner);
    return st ? qat_fail(err, st, "export refused: %s", inner.message) : QAT_OK;
}

static qat_status correct_biases(calibration *c, qat_error *err)
{
    qat_ptq_report *report = c->options->report;
    qat_status st = qat_bias_correction_create(&c->correction, c->folded, c->eval, err);
    if (st)
        return st;
    report->corrected = qat_bias_correction_layers(c->correction);
    for (c->layer = 0; c->layer < report->corrected && !st; c->layer++) {
        st = run_pass(c, measure_bias, err);
        if (st)
            break;
        double const change = qat_bias_correction_apply(c->correction, c->layer);
        report->largest_correction =
            change > report->largest_correction ? change : report->largest_correction;
    }
    return st ? st : certify_biases(c, err);
}

static qat_status calibrate(calibration *c, int max_batch, qat_error *err)
{
    qat_status st = open_data(c, max_batch, err);
    if (!st)
        st = make_graphs(c, max_batch, err);
    if (!st)
        st = find_ranges(c, err);
    if (!st && c->options->correct_bias)
        st = correct_biases(c, err);
    if (st)
        return st;
    c->options->report->samples = c->samples;
    snprintf(c->options->report->data, sizeof c->options->report->data, "%s",
             qat_dataset_info_of(c->data)->name);
    return QAT_OK;
}

qat_status qat_calibrated_eval_graph(const qat_restored *restored,
                                     const qat_deploy_options *options, int max_batch,
                                     qat_graph **eval, qat_graph **folded, qat_error *err)
{
    qat_ptq_report ignored;
    qat_deploy_options o = *options;
    calibration c = {.restored = restored, .options = &o, .certifies = folded != NULL, .err = err};
    o.report = o.report ? o.report : &ignored;
    *o.report = (qat_ptq_report){0};
    qat_status const st = calibrate(&c, max_batch, err);
    *eval = st ? NULL : c.eval;
    if (st)
        qat_graph_free(c.eval);
    if (folded)
        *folded = st ? NULL : c.folded;
    if (st || !folded)
        qat_graph_free(c.folded);
    cert_extents_free(c.extents);
    cert_means_free(c.means);
    qat_calibrator_free(c.calibrator);
    qat_bias_correction_free(c.correction);
    qat_loader_free(c.loader);
    qat_dataset_close(c.data);
    return st;
}

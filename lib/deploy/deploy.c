/** Makes a verified .qm file from a checkpoint. */
#include "deploy/deploy.h"

#include "checkpoint/restore.h"
#include "deploy/calibrate.h"
#include "deploy/certified_source.h"
#include "deploy/integer_model.h"
#include "evaluate/data.h"
#include "recipe/recipe.h"

#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERIFY_BATCH = 50 };

/* ------------------------------------------------------------------ metadata */

/** What the first score belongs to, if it is not a class; NULL: it is one. */
static const char *first_label(const qat_restored *r)
{
    const qat_task *task = qat_task_of(&r->checkpoint->input);
    return task->first_label ? task->first_label(r->recipe) : NULL;
}

/** Labels with the first one; free() them. */
static const char **all_labels(const qat_restored *r)
{
    const qat_checkpoint *c = r->checkpoint;
    size_t const n = (size_t)c->input.classes;
    const char **labels = calloc(n + 1, sizeof *labels);
    if (labels)
        labels[0] = first_label(r);
    for (size_t i = 0; labels && c->labels && i < n; i++)
        labels[i + 1] = c->labels[i];
    return labels;
}

static void fill_metadata(qat_qm_metadata *m, const qat_restored *r, const char *const *labels)
{
    const qat_checkpoint *c = r->checkpoint;
    const qat_input_info *in = &c->input;
    m->description = *r->recipe->model.name ? r->recipe->model.name : "trained by qat-train";
    m->labels = (const char *const *)c->labels;
    m->n_labels = c->labels ? in->classes : 0;
    if (c->labels && first_label(r)) {
        m->labels = labels;
        m->n_labels++;
    }
    memcpy(m->digest, c->digest, sizeof m->digest);
    m->preprocessing = qat_preprocessing_of(in);
}

static void describe(qat_deploy_result *result, const qat_deploy_feed *f, const char *why)
{
    if (f->data)
        snprintf(result->verified_on, sizeof result->verified_on, "%s",
                 qat_dataset_info_of(f->data)->name);
    else
        snprintf(result->verified_on, sizeof result->verified_on, "seeded random bytes (%.500s)",
                 why);
}

/** Add the epilogue if the network has one. */
static qat_status finish(const void *context, qat_qgraph *graph, qat_error *err)
{
    const qat_restored *r = context;
    return qat_finish_network(graph, &r->checkpoint->input, err);
}

/** Everything in the file that is not its graph, which qat_export has certified. */
static qat_status certify_rest(const qat_certified_source *source, const qi_host *host,
                               const char *path, const qat_deploy_feed *f,
                               qat_deploy_result *result, qat_error *err)
{
    qat_error inner = {0};
    const qat_dataset *labelled = f->options->data ? NULL : f->data;
    qat_sample_type const type = source->checkpoint->input.type;
    const qat_task *task = qat_task_of_graph(source->float_graph);
    if (task->finish && !task->certify)
        qat_certify_leave_out(&result->certificate, "the epilogue", task->name);
    qat_status st = qat_certify_file(source, qi_host_model(host), labelled, &inner);
    if (!st && type == QAT_SAMPLE_U8)
        st = qat_certify_pictures(source, qi_host_model(host), path, &result->certificate,
                                  &result->input_codes, &inner);
    if (!st && type == QAT_SAMPLE_F32) /* of a sound, the bytes are the features themselves */
        st = qat_certify_rows(source, qi_host_model(host), &result->input_codes, &inner);
    return st == QAT_ERR_MISMATCH ? qat_fail(err, st, "export refused: %s", inner.message)
           : st                   ? qat_fail(err, st, "%s", inner.message)
                                  : QAT_OK;
}

/** Compare the model of one step with that of whole sequences, on the data of these. */
static qat_status compare_stream(const qat_deploy_feed *of, const qi_host *step,
                                 qat_streamed *result, qat_error *err)
{
    const qat_restored *r = of->whole->restored;
    qat_deploy_options alone = *of->options;
    qat_deploy_feed f = {.batch = of->batch};
    char why[512];
    alone.ranks = NULL;
    qat_status st = qat_feed_open(&f, r, &alone, why, err);
    if (!st)
        st = qat_deploy_compare_stream(of->whole->host, step, (int)r->recipe->model.steps, &f,
                                       result, err);
    qat_feed_close(&f);
    return st;
}

static qat_status deploy(const qat_restored *restored, const char *path,
                         const qat_deploy_options *options, const qat_whole *whole,
                         qat_deploy_result *result, qat_error *err);

/** Export the network of one step. What was compared and on what is told of whole sequences. */
static qat_status deploy_step(const qat_deploy_feed *f, const qi_host *host, const char *path,
                              qat_deploy_result *result, qat_error *err)
{
    qat_deploy_result made;
    qat_restored step = *f->restored;
    qat_checkpoint checkpoint = *step.checkpoint;
    qat_whole const whole = {host, f->restored};
    qat_deploy_options alone = *f->options; /* rank 0 does it */
    alone.ranks = NULL;
    alone.log = NULL; /* the model of whole sequences has told it */
    step.checkpoint = &checkpoint;
    step.one_step = true;
    qat_status st = qat_network_build_step(&step.float_graph, step.registry, step.recipe,
                                           &checkpoint.input, err);
    if (!st)
        st = deploy(&step, path, &alone, &whole, &made, err);
    qat_graph_free(step.float_graph);
    if (st)
        return st;
    result->certificate = made.certificate;
    result->streamed = made.streamed;
    result->qm_bytes = made.qm_bytes;
    result->arena_bytes = made.arena_bytes;
    return QAT_OK;
}

/** Certify what was made, and write it. */
static qat_status certify_and_write(const qat_certified_source *source,
                                    const qat_export_result *made, const char *path,
                                    const qat_deploy_feed *f, const qi_kernel_list *kernels,
                                    qat_deploy_result *result, qat_error *err)
{
    qi_host *host = NULL;
    qi_host_options const options = {.custom = kernels, .limits = QI_NO_LIMITS};
    qat_status st = qi_host_open_bytes(&host, made->qm, made->qm_bytes,
                                       "the engine refuses the model: model", &options, err);
    if (!st)
        st = certify_rest(source, host, path, f, result, err);
    if (!st && f->whole)
        st = compare_stream(f, host, &result->streamed, err);
    if (!st && f->restored->recipe->model.steps > 0 && !f->whole)
        st = deploy_step(f, host, path, result, err);
    else if (!st)
        st = f->options->write ? f->options->write(f->options->write_context, host, path, err)
                               : qat_deploy_write(path, made, err);
    qi_host_close(host);
    return st;
}

/**
 * The training graph of a network that was trained on integers, with the parameters of the eval
 * graph; NULL: it was not, or its integers are not those that were trained.
 */
static qat_status make_integers(qat_graph **graph, const qat_restored *r,
                                const qat_deploy_options *o, const qat_graph *eval, int batch,
                                qat_error *err)
{
    const qat_checkpoint *c = r->checkpoint;
    *graph = NULL;
    if (r->recipe->quant.forward != QAT_FORWARD_INTEGER || o->calibrate ||
        qat_deploy_profile(r, o) != c->profile)
        return QAT_OK;
    qat_quant_options quant = c->quant;
    quant.forward = QAT_FORWARD_INTEGER;
    quant.profile = c->profile;
    qat_status st = qat_create_training_graph(graph, r->float_graph, &quant, err);
    if (!st)
        st = qat_graph_plan(*graph, batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_checkpoint_params(c, *graph, err);
    if (!st)
        qat_graph_copy_params(*graph, eval);
    return st;
}

static qat_status export_verified(const qat_restored *r, const char *path,
                                  const qat_deploy_options *o, qat_deploy_feed *f, qat_graph *eval,
                                  const qat_certified_source *source, qat_deploy_result *result,
                                  qat_error *err)
{
    const qat_input_info *in = &r->checkpoint->input;
    bool const is_first = !o->ranks || !o->ranks->rank;
    qat_export_options e = {.profile = qat_deploy_profile(r, o),
                            .channels = qat_takes_bytes(in) ? in->channels : 0,
                            .mean = in->mean,
                            .std = in->std,
                            .kernels = qat_plugins_kernels(r->plugins),
                            .max_batch = f->batch,
                            .next = f->data ? qat_feed_next : NULL,
                            .next_context = f,
                            .random_samples = o->samples > 0 && o->samples < QAT_RANDOM_SAMPLES
                                                  ? (int)o->samples
                                                  : QAT_RANDOM_SAMPLES,
                            .seed = (uint64_t)r->recipe->train.seed,
                            .log = o->log,
                            .finish = finish,
                            .finish_context = r,
                            .certify = &source->source,
                            .certify_real = is_first ? source->real : NULL,
                            .certify_simulated = is_first ? source->simulated : NULL,
                            .certify_batch = QAT_CERTIFY_BATCH,
                            .certify_samples = QAT_CERTIFY_SAMPLES,
                            .ranks = f->data ? o->ranks : NULL};
    qat_export_result exported = {0};
    const char **labels = all_labels(r);
    if (!labels)
        return qat_out_of_memory(err, "export");
    fill_metadata(&e.metadata, r, labels);
    qat_status st = make_integers(&e.integers, r, o, eval, f->batch, err);
    if (!st)
        st = qat_export(&exported, eval, &e, err);
    qat_graph_free(e.integers);
    free(labels);
    result->compare = exported.compare;
    result->certificate = exported.certificate;
    result->samples = exported.samples;
    result->qm_bytes = (int64_t)exported.qm_bytes;
    result->arena_bytes = (int64_t)exported.arena_bytes;
    if (!st && is_first)
        st = certify_and_write(source, &exported, path, f, e.kernels, result, err);
    free(exported.qm);
    return st;
}

/** Warn if the run ended before quantization started. */
static void tell_of_float_run(const qat_checkpoint *c, const qat_deploy_options *o)
{
    char text[160];
    int64_t const w = c->quant.weight_delay, a = c->quant.activation_delay;
    int64_t const start = w < a ? w : a;
    if (o->calibrate || !o->log || c->step > start || start == INT64_MAX)
        return;
    snprintf(
        text, sizeof text,
        "trained in float until the end: quantization starts at step %lld, but this is step %lld",
        (long long)start, (long long)c->step);
    o->log->line(o->log->context, text);
}

static qat_status deploy(const qat_restored *restored, const char *path,
                         const qat_deploy_options *options, const qat_whole *whole,
                         qat_deploy_result *result, qat_error *err)
{
    qat_deploy_feed f = {.batch = qat_batch_that_fits(restored->float_graph, VERIFY_BATCH),
                         .whole = whole};
    qat_graph *eval = NULL, *folded = NULL;
    qat_certified_source against;
    qat_network_size size = {0};
    char why[512] = "";
    *result = (qat_deploy_result){0};
    qat_status st = qat_deploy_spare_checkpoints(path, err);
    if (!st)
        st = qat_deploy_check_integers(restored, options, err);
    if (!st)
        st = qat_restored_eval_and_folded(restored, options, f.batch, &eval, &folded, err);
    if (!st)
        st = qat_feed_open(&f, restored, options, why, err);
    if (!st) {
        tell_of_float_run(restored->checkpoint, options);
        describe(result, &f, why);
        st = qat_certified_source_open(&against, restored, options, eval, folded, err);
        result->certified_against = against.text;
        if (!st && folded)
            st = qat_certify_calibration(&against, options, folded, f.batch, eval, err);
        if (!st)
            st = export_verified(restored, path, options, &f, eval, &against, result, err);
        qat_certified_source_close(&against);
    }
    if (!st)
        st = qat_network_size_of(restored->float_graph, &size, err);
    result->float_bytes = size.parameters * (int64_t)sizeof(float);
    qat_feed_close(&f);
    qat_graph_free(folded);
    qat_graph_free(eval);
    return st;
}

qat_status qat_deploy(const qat_restored *restored, const char *path,
                      const qat_deploy_options *options, qat_deploy_result *result, qat_error *err)
{
    qat_deploy_options own;
    *result = (qat_deploy_result){0};
    qat_status const st =
        qat_options_copy(&own, sizeof own, options, QAT_SIZE_UP_TO(qat_deploy_options, context),
                         "qat_deploy_options", err);
    return st ? st : deploy(restored, path, &own, NULL, result, err);
}

/** Makes a verified .qm file from a checkpoint. */
#include "base/file.h"
#include "base/sha256.h"
#include "train/attributes.h"
#include "train/calibrate.h"
#include "train/certified_source.h"
#include "train/data.h"
#include "train/detector.h"
#include "train/integer_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERIFY_BATCH = 50, RANDOM_SAMPLES = 200 };

/** Gives verification data to the exporter. */
typedef struct feed {
    qat_dataset *data;
    qat_loader *loader;
    const qat_deploy_options *options;
    int64_t done, total;
    int batch; /* samples per batch */
    bool pixels;
    const void *input[1];
} feed;

/* ------------------------------------------------------------------ graphs */

static bool takes_pixels(const qat_restored *r)
{
    return qat_takes_pixels(&r->checkpoint->input);
}

static qat_status set_params(const void *context, qat_graph *graph, qat_error *err)
{
    return qat_checkpoint_params(context, graph, err);
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
    return batches > 0 ? qat_reestimate_bn(&from, batches, eval, err) : QAT_OK;
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
    if (options->calibrate)
        return qat_calibrated_eval_graph(restored, options, max_batch, eval, folded, err);
    if (!c->quantized)
        return qat_fail(err, QAT_ERR_STATE,
                        "the checkpoint is from a float run: no activation range was observed; "
                        "calibrate it on data (--ptq)");
    qat_status st = qat_create_eval_graph(eval, restored->float_graph, &c->quant, err);
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

static qat_profile profile_of(const qat_restored *r, const qat_deploy_options *o)
{
    return o->has_profile ? o->profile : r->checkpoint->profile;
}

/**
 * Check that the network can become integers. After calibration all ranges are observed, whatever
 * the recipe says.
 */
static qat_status check_integers(const qat_restored *r, const qat_deploy_options *o, qat_error *err)
{
    const qat_quant_options *quant = &r->checkpoint->quant;
    qat_quant_options const observed = qat_quant_observed(quant);
    return qat_check_integers(r->float_graph, o->calibrate ? &observed : quant, err);
}

qat_status qat_restored_freeze(const qat_restored *restored, const qat_deploy_options *options,
                               qat_graph *eval, qat_qgraph **graph, qat_error *err)
{
    *graph = NULL;
    qat_status const st = check_integers(restored, options, err);
    return st ? st
              : qat_freeze_network(graph, eval, &restored->checkpoint->input,
                                   profile_of(restored, options), options->log, err);
}

/* ------------------------------------------------------------------ verification data */

/** Open the requested data, or the recipe's. If there are none, set `why`. */
static qat_status feed_open(feed *f, const qat_restored *r, const qat_deploy_options *o,
                            char why[512], qat_error *err)
{
    qat_error inner = {0};
    qat_loader_options const loader = {.batch = f->batch, .threads = 1, .prefetch = 4};
    f->options = o;
    f->pixels = takes_pixels(r);
    qat_status st = qat_recipe_open_data(&f->data, r->recipe, o->data, QAT_SPLIT_TEST, &inner);
    if (st && st != QAT_ERR_NOMEM && !o->data) {
        snprintf(why, 512, "%s", inner.message);
        return QAT_OK;
    }
    if (!st)
        st = qat_open_loader(&f->loader, f->data, &r->checkpoint->input, &loader, &inner);
    if (st)
        return qat_fail(err, st, "%s", inner.message);
    f->total = qat_dataset_info_of(f->data)->count;
    if (o->samples > 0 && o->samples < f->total)
        f->total = o->samples;
    return QAT_OK;
}

static void feed_close(feed *f)
{
    qat_loader_free(f->loader);
    qat_dataset_close(f->data);
}

static qat_status feed_next(void *context, int max_batch, qat_export_batch *out, qat_error *err)
{
    feed *f = context;
    const qat_batch *batch = NULL;
    *out = (qat_export_batch){0};
    if (f->options->tick && !f->options->tick(f->options->context, f->done, f->total))
        return qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples",
                        (long long)f->done, (long long)f->total);
    if (f->done >= f->total)
        return QAT_OK;
    qat_status const st = qat_loader_next(f->loader, &batch, err);
    if (st)
        return st;
    int64_t const left = f->total - f->done;
    out->count = batch->count < left ? batch->count : (int)left;
    f->input[0] = f->pixels ? (const void *)batch->bytes : (const void *)batch->real;
    out->inputs = f->input;
    f->done += out->count;
    return QAT_OK;
}

/* ------------------------------------------------------------------ metadata */

/** Labels of a detector whose first score belongs to the background; free() them. */
static const char **background_labels(const qat_restored *r)
{
    const qat_checkpoint *c = r->checkpoint;
    size_t const n = (size_t)c->input.classes;
    const char **labels = calloc(n + 1, sizeof *labels);
    if (labels)
        labels[0] = "background";
    for (size_t i = 0; labels && c->labels && i < n; i++)
        labels[i + 1] = c->labels[i];
    return labels;
}

static void fill_metadata(qat_qm_metadata *m, const qat_restored *r,
                          const char *const *with_background)
{
    const qat_checkpoint *c = r->checkpoint;
    const qat_input_info *in = &c->input;
    m->description = *r->recipe->model.name ? r->recipe->model.name : "trained by qat-train";
    m->labels = (const char *const *)c->labels;
    m->n_labels = c->labels ? in->classes : 0;
    if (c->labels && r->detector && r->detector->rules.background) {
        m->labels = with_background;
        m->n_labels++;
    }
    memcpy(m->digest, c->digest, sizeof m->digest);
    m->preprocessing = qat_preprocessing_of(in);
}

static void describe(qat_deploy_result *result, const feed *f, const char *why)
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
static qat_status certify_rest(const qat_certified_source *source, const qat_export_result *made,
                               const char *path, const feed *f, const qi_kernel_list *kernels,
                               qat_deploy_result *result, qat_error *err)
{
    char message[QI_HOST_MESSAGE_MAX];
    qi_host host;
    qat_error inner = {0};
    qi_host_options const options = {.custom = kernels};
    const qat_dataset *labelled = f->options->data ? NULL : f->data;
    bool const pixels = source->checkpoint->input.type == QAT_SAMPLE_U8;
    qi_status const opened =
        qi_host_open_bytes(&host, made->qm, made->qm_bytes, "model", &options, message);
    if (opened)
        return qat_fail(err, opened == QI_ERR_NOMEM ? QAT_ERR_NOMEM : QAT_ERR_FORMAT,
                        "the engine refuses the model: %s", message);
    qat_status st = qat_certify_file(source, host.model, labelled, &inner);
    if (!st)
        st = pixels ? qat_certify_pictures(source, host.model, path, &result->certificate,
                                           &result->input_codes, &inner)
                    : qat_certify_rows(source, host.model, &result->input_codes, &inner);
    qi_host_close(&host);
    return st == QAT_ERR_MISMATCH ? qat_fail(err, st, "export refused: %s", inner.message)
           : st                   ? qat_fail(err, st, "%s", inner.message)
                                  : QAT_OK;
}

/** Does the file hold the bytes that were certified? */
static qat_status check_written(const char *path, const qat_certificate *c, qat_error *err)
{
    uint8_t *bytes = NULL, digest[32];
    size_t count = 0;
    qat_status const st = qat_file_read(path, SIZE_MAX, &bytes, &count, err);
    if (st)
        return st;
    qat_sha256(bytes, count, digest);
    free(bytes);
    return memcmp(digest, c->sha256, sizeof digest) == 0
               ? QAT_OK
               : qat_fail(err, QAT_ERR_MISMATCH,
                          "export refused: the bytes that were written are not those that were "
                          "certified");
}

static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/** Written beside the target, read back, and only then given the target's name. */
static qat_status write_certified(const char *target, const qat_export_result *made, qat_error *err)
{
    qat_export_result const exported = *made;
    size_t const room = strlen(target) + 32;
    char *path = malloc(room);
    qat_status st = path ? QAT_OK : qat_out_of_memory(err, "export");
    if (!st) {
        snprintf(path, room, is_special(target) ? "%s" : "%s.%ld.new", target, (long)getpid());
        st = qat_file_write_atomic(path, exported.qm, exported.qm_bytes, err);
    }
    if (!st && !is_special(target)) {
        st = check_written(path, &exported.certificate, err);
        if (!st && rename(path, target))
            st = qat_fail(err, QAT_ERR_IO, "%s: cannot be replaced", target);
        if (st)
            (void)unlink(path);
    }
    free(path);
    return st;
}

static qat_status export_verified(const qat_restored *r, const char *path,
                                  const qat_deploy_options *o, feed *f, qat_graph *eval,
                                  const qat_certified_source *source, qat_deploy_result *result,
                                  qat_error *err)
{
    const qat_input_info *in = &r->checkpoint->input;
    qat_export_options e = {.profile = profile_of(r, o),
                            .channels = takes_pixels(r) ? in->channels : 0,
                            .mean = in->mean,
                            .std = in->std,
                            .kernels = qat_plugins_kernels(r->plugins),
                            .max_batch = f->batch,
                            .next = f->data ? feed_next : NULL,
                            .next_context = f,
                            .random_samples = o->samples > 0 && o->samples < RANDOM_SAMPLES
                                                  ? (int)o->samples
                                                  : RANDOM_SAMPLES,
                            .seed = (uint64_t)r->recipe->train.seed,
                            .log = o->log,
                            .finish = finish,
                            .finish_context = r,
                            .certify = &source->source,
                            .certify_real = source->real,
                            .certify_simulated = source->simulated,
                            .certify_batch = QAT_CERTIFY_BATCH,
                            .certify_samples = QAT_CERTIFY_SAMPLES};
    qat_export_result exported = {0};
    const char **labels = background_labels(r);
    if (!labels)
        return qat_out_of_memory(err, "export");
    fill_metadata(&e.metadata, r, labels);
    qat_status st = qat_export(&exported, eval, &e, err);
    free(labels);
    result->compare = exported.compare;
    result->certificate = exported.certificate;
    result->samples = exported.samples;
    result->qm_bytes = (int64_t)exported.qm_bytes;
    result->arena_bytes = (int64_t)exported.arena_bytes;
    if (!st)
        st = certify_rest(source, &exported, path, f, e.kernels, result, err);
    if (!st)
        st = write_certified(path, &exported, err);
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

/**
 * The output may replace an older .qm, but not a checkpoint: neither the exported one, by any path
 * or link, nor another.
 */
static qat_status spare_checkpoints(const char *path, qat_error *err)
{
    uint8_t start[8];
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return QAT_OK;
    FILE *file = fopen(path, "rb");
    size_t const n = file ? fread(start, 1, sizeof start, file) : 0;
    if (file)
        fclose(file);
    if (!qat_checkpoint_magic(start, n))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s is a checkpoint; it would be overwritten: give another name for the model",
                    path);
}

qat_status qat_deploy(const qat_restored *restored, const char *path,
                      const qat_deploy_options *options, qat_deploy_result *result, qat_error *err)
{
    feed f = {.batch = qat_batch_that_fits(restored->float_graph, VERIFY_BATCH)};
    qat_graph *eval = NULL, *folded = NULL;
    qat_certified_source against;
    qat_network_size size = {0};
    char why[512] = "";
    *result = (qat_deploy_result){0};
    qat_status st = spare_checkpoints(path, err);
    if (!st)
        st = check_integers(restored, options, err);
    if (!st)
        st = qat_restored_eval_and_folded(restored, options, f.batch, &eval, &folded, err);
    if (!st)
        st = feed_open(&f, restored, options, why, err);
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
    feed_close(&f);
    qat_graph_free(folded);
    qat_graph_free(eval);
    return st;
}

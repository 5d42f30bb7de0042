/** Export: freeze, add the input table, make the known-answer test, write, verify. */
#include "base/rng.h"
#include "convert/convert.h"
#include "convert/verify.h"
#include "qat/quantizer.h"

#include <stdlib.h>
#include <string.h>

/** The buffers of an export: inputs in both forms, for a batch. */
struct exporter {
    const qat_export_options *options;
    qat_graph *eval;
    qat_qgraph *graph;
    qat_verifier *verifier;
    qat_certify_signal *signal; /* NULL: not asked for */
    int n_inputs;
    size_t *counts;      /* by graph input: values per sample */
    qi_type *types;      /* of its codes, before the table is added */
    qat_qparams *params; /* parameters of the codes of each input */
    float *pixel_values; /* [channels * 256], or NULL */
    void **codes;        /* by input: what the engine gets, max_batch samples */
    float **real;        /* by input: what the eval graph gets */
};

static bool takes_pixels(const struct exporter *e, int input)
{
    return input == 0 && e->options->channels > 0;
}

static qat_status check_options(const qat_export_options *o, qat_error *err)
{
    if (o->max_batch < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "export: max_batch is %d, at least 1 is needed",
                        o->max_batch);
    if (o->channels > 0 && (!o->mean || !o->std))
        return qat_fail(err, QAT_ERR_ARGUMENT, "export: %d channels without mean and std",
                        o->channels);
    if (!o->next && o->random_samples < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "export: neither verification data nor random samples to verify with");
    return QAT_OK;
}

/* ------------------------------------------------------------------ buffers */

static qat_status allocate(struct exporter *e, qat_error *err)
{
    size_t const n = (size_t)e->graph->n_inputs, batch = (size_t)e->options->max_batch;
    e->n_inputs = e->graph->n_inputs;
    e->counts = calloc(n + 1, sizeof *e->counts);
    e->params = calloc(n + 1, sizeof *e->params);
    e->types = calloc(n + 1, sizeof *e->types);
    e->codes = calloc(n + 1, sizeof *e->codes);
    e->real = calloc(n + 1, sizeof *e->real);
    if (!e->counts || !e->types || !e->params || !e->codes || !e->real)
        return qat_out_of_memory(err, "export");
    for (size_t i = 0; i < n; i++) {
        const qat_qtensor *t = &e->graph->tensors[e->graph->inputs[i]];
        e->counts[i] = qat_qtensor_count(t);
        e->types[i] = t->type;
        e->codes[i] = calloc(batch, qat_qtensor_bytes(t));
        e->real[i] = calloc(batch * e->counts[i], sizeof *e->real[i]);
        if (!e->codes[i] || !e->real[i])
            return qat_out_of_memory(err, "export");
    }
    return QAT_OK;
}

static void release(struct exporter *e)
{
    for (int i = 0; i < e->n_inputs; i++) {
        if (e->codes)
            free(e->codes[i]);
        if (e->real)
            free(e->real[i]);
    }
    free(e->counts);
    free(e->types);
    free(e->params);
    free(e->codes);
    free(e->real);
    free(e->pixel_values);
    qat_verifier_free(e->verifier);
    qat_certify_signal_free(e->signal);
    qat_qgraph_free(e->graph);
}

/** The parameters of the codes of each graph input, before the table is added. */
static qat_qparams code_params(const qat_qtensor *t)
{
    return qat_stored_qparams(t->type, t->bits, t->scale, t->zero_point);
}

static qat_status make_graph(struct exporter *e, qat_error *err)
{
    const qat_export_options *o = e->options;
    qat_status st = qat_freeze(&e->graph, e->eval, o->profile, o->log, err);
    if (!st)
        st = allocate(e, err);
    for (int i = 0; !st && i < e->n_inputs; i++)
        e->params[i] = code_params(&e->graph->tensors[e->graph->inputs[i]]);
    if (st || o->channels <= 0)
        return st;
    st = qat_qgraph_add_input_table(e->graph, o->channels, o->mean, o->std, err);
    if (st)
        return st;
    e->pixel_values = calloc((size_t)o->channels * 256, sizeof *e->pixel_values);
    if (!e->pixel_values)
        return qat_out_of_memory(err, "export");
    qat_pixel_values(o->channels, o->mean, o->std, e->pixel_values);
    return QAT_OK;
}

/* ------------------------------------------------------------------ inputs in both forms */

static void set_pixels(struct exporter *e, const uint8_t *pixels, size_t count)
{
    size_t const channels = (size_t)e->options->channels;
    for (size_t i = 0; i < count; i++) {
        ((uint8_t *)e->codes[0])[i] = pixels[i];
        e->real[0][i] = e->pixel_values[i % channels * 256 + pixels[i]];
    }
}

static void set_reals(struct exporter *e, int input, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        e->real[input][i] = values[i];
        qat_store_code(e->types[input], e->codes[input], i, qat_code(&e->params[input], values[i]));
    }
}

static void set_inputs(struct exporter *e, const qat_export_batch *batch)
{
    for (int i = 0; i < e->n_inputs; i++) {
        size_t const count = (size_t)batch->count * e->counts[i];
        if (takes_pixels(e, i))
            set_pixels(e, batch->inputs[i], count);
        else
            set_reals(e, i, batch->inputs[i], count);
    }
}

/** Set random pixels and codes, all equally likely; a function of (seed, stream, input) only. */
static void set_random_inputs(struct exporter *e, uint64_t stream, int samples)
{
    for (int i = 0; i < e->n_inputs; i++) {
        qat_rng rng = qat_rng_at(e->options->seed, stream, (uint64_t)i);
        const qat_qparams *p = &e->params[i];
        size_t const channels = takes_pixels(e, i) ? (size_t)e->options->channels : 1;
        for (size_t j = 0; j < (size_t)samples * e->counts[i]; j++) {
            if (takes_pixels(e, i)) {
                uint8_t const pixel = (uint8_t)qat_rng_below(&rng, 256);
                ((uint8_t *)e->codes[i])[j] = pixel;
                e->real[i][j] = e->pixel_values[j % channels * 256 + pixel];
            } else {
                int32_t const code =
                    p->lo + (int32_t)qat_rng_below(&rng, (uint32_t)(p->hi - p->lo + 1));
                qat_store_code(e->types[i], e->codes[i], j, code);
                e->real[i][j] = qat_real_of(p, code);
            }
        }
    }
}

/* ------------------------------------------------------------------ writing */

static qat_status write_model(struct exporter *e, qat_export_result *result, qat_error *err)
{
    set_random_inputs(e, qat_hash_name("known-answer test"), 1);
    return qat_qm_write_answered(e->graph, &e->options->metadata, e->options->kernels,
                                 (const void *const *)e->codes, &result->qm, &result->qm_bytes,
                                 &result->arena_bytes, err);
}

static qat_status certify(const struct exporter *e, qat_export_result *result, qat_error *err)
{
    qat_error inner = {0};
    if (!e->options->certify)
        return QAT_OK;
    qat_status const st = qat_certify(&result->certificate, result->qm, result->qm_bytes,
                                      e->options->kernels, e->options->certify, &inner);
    return st ? qat_fail(err, st, "export refused: %s", inner.message) : QAT_OK;
}

/* ------------------------------------------------------------------ verifying */

static qat_status judge_layers(const struct exporter *e, qat_error *err)
{
    qat_error layer = {0};
    qat_status const st = qat_verifier_judge(e->verifier, &layer);
    return st ? qat_fail(err, st, "export refused: %s", layer.message) : QAT_OK;
}

/** The first samples of a batch, until there are enough. */
static qat_status compare_signal(struct exporter *e, int samples, qat_export_result *result,
                                 qat_error *err)
{
    const qat_export_options *o = e->options;
    int64_t const left = o->certify_samples - result->certificate.signal_samples;
    int n = samples < o->certify_batch ? samples : o->certify_batch;
    n = n < left ? n : (int)left;
    if (!e->signal || n < 1)
        return QAT_OK;
    qat_status const st = qat_certify_signal_batch(e->signal, (const void *const *)e->codes,
                                                   (const float *const *)e->real, n, err);
    result->certificate.signal_samples += n;
    return st;
}

static qat_status judge_signal(const struct exporter *e, qat_export_result *result, qat_error *err)
{
    qat_error inner = {0};
    if (!e->signal)
        return QAT_OK;
    qat_status const st = qat_certify_signal_judge(e->signal, &result->certificate, &inner);
    return st ? qat_fail(err, st, "export refused: %s", inner.message) : QAT_OK;
}

static qat_status judge_bytes(const qat_export_result *result, qat_error *err)
{
    const qat_compare *c = &result->compare;
    if (c->differing)
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "export refused: %lld of %lld bytes differ between the engine and the "
                        "exact evaluation, first in %s",
                        (long long)c->differing, (long long)c->bytes, c->first);
    if (!c->trained_differing)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "export refused: %lld of %lld bytes differ between the engine and the training "
                    "graph on integers",
                    (long long)c->trained_differing, (long long)c->trained_bytes);
}

static qat_status verify_batch(struct exporter *e, int samples, qat_export_result *result,
                               qat_error *err)
{
    qat_status const st = qat_verifier_batch(e->verifier, (const void *const *)e->codes,
                                             (const float *const *)e->real, samples, err);
    qat_status const compared = st ? st : compare_signal(e, samples, result, err);
    result->samples += samples;
    result->compare = *qat_verifier_result(e->verifier);
    if (!st && judge_bytes(result, err))
        return QAT_ERR_MISMATCH;
    return compared ? compared : judge_layers(e, err);
}

static qat_status verify_random(struct exporter *e, qat_export_result *result, qat_error *err)
{
    qat_status st = QAT_OK;
    uint64_t const stream = qat_hash_name("verification");
    for (int done = 0, n; !st && done < e->options->random_samples; done += n) {
        int const left = e->options->random_samples - done;
        n = left < e->options->max_batch ? left : e->options->max_batch;
        set_random_inputs(e, qat_hash(stream, (uint64_t)done), n);
        st = verify_batch(e, n, result, err);
    }
    return st;
}

/** Add what the other ranks found. One that found a mistake has ended all of them. */
static qat_status join_ranks(const struct exporter *e, qat_export_result *result, qat_error *err)
{
    if (!e->options->ranks)
        return QAT_OK;
    qat_status const st = qat_verifier_join(e->verifier, e->options->ranks, result->qm,
                                            result->qm_bytes, &result->samples, err);
    result->compare = *qat_verifier_result(e->verifier);
    return st;
}

static qat_status verify_data(struct exporter *e, qat_export_result *result, qat_error *err)
{
    const qat_export_options *o = e->options;
    for (;;) {
        qat_export_batch batch = {0};
        qat_status st = o->next(o->next_context, o->max_batch, &batch, err);
        if (!st && batch.count > o->max_batch)
            st = qat_fail(err, QAT_ERR_ARGUMENT, "export: a batch of %d; the limit is %d",
                          batch.count, o->max_batch);
        if (st)
            return st;
        if (batch.count <= 0)
            break;
        set_inputs(e, &batch);
        st = verify_batch(e, batch.count, result, err);
        if (st)
            return st;
    }
    qat_status const st = join_ranks(e, result, err);
    return st || result->samples > 0
               ? st
               : qat_fail(err, QAT_ERR_STATE, "export: the verification data holds no sample");
}

static size_t float_bytes(const qat_graph *graph)
{
    size_t values = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (node->is_param && node->trainable && !qat_is_learned_range(node->name))
            values += qat_shape_count(&node->shape);
    }
    return values * sizeof(float);
}

qat_status qat_export(qat_export_result *result, qat_graph *eval, const qat_export_options *options,
                      qat_error *err)
{
    struct exporter e = {.options = options, .eval = eval};
    *result = (qat_export_result){0};
    qat_status st = check_options(options, err);
    if (!st)
        st = make_graph(&e, err);
    if (!st && options->finish)
        st = options->finish(options->finish_context, e.graph, err);
    if (!st)
        st = write_model(&e, result, err);
    if (!st)
        st = certify(&e, result, err);
    if (!st)
        st = qat_verifier_create(&e.verifier, e.graph, eval, result->qm, result->qm_bytes,
                                 options->kernels, qat_graph_registry(eval), options->max_batch,
                                 err);
    if (!st)
        e.verifier->rounds = qat_graph_quant_options(eval)->profile == options->profile;
    if (!st && options->integers)
        qat_verifier_watch_integers(e.verifier, options->integers);
    if (!st && options->certify_real)
        st = qat_certify_signal_create(&e.signal, result->qm, result->qm_bytes, options->kernels,
                                       options->certify_real, options->certify_simulated, err);
    if (!st)
        st = options->next ? verify_data(&e, result, err) : verify_random(&e, result, err);
    if (!st)
        st = judge_signal(&e, result, err);
    result->float_bytes = float_bytes(eval);
    release(&e);
    if (st) {
        free(result->qm);
        *result = (qat_export_result){.samples = result->samples, .compare = result->compare};
    }
    return st;
}

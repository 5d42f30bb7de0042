/**
 * Compares a model that takes one frame a run with the model of whole sequences, which is verified
 * against the exact evaluation: every byte of every tensor, in every step.
 *
 *     whole:   input -> .. "gru/z/q", .. "gru/z@1/q", .. "gru/z@2/q"     one run
 *     stream:  frame -> .. "gru/z/q"                                     one run a step
 */
#include "deploy/deploy.h"

#include "base/arena.h"
#include "base/rng.h"
#include "qat/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 2 * QAT_NAME_MAX };

typedef struct stream {
    const qi_model *whole, *step;
    int steps, t;
    qat_arena memory;
    int *partner;         /* by step and tensor of the stream: the tensor of the whole, or -1 */
    uint8_t **values;     /* by tensor of the whole: its last bytes */
    qat_streamed *result; /* bytes and differing */
    char *first;          /* where the first difference is */
} stream;

static int find(const qi_model *model, const char *name)
{
    for (int i = 0; i < qi_tensor_count(model); i++)
        if (strcmp(qi_tensor_at(model, i)->name, name) == 0 &&
            qi_tensor_at(model, i)->kind == QI_ACTIVATION)
            return i;
    return -1;
}

/** The copy of a tensor in step t: "@t" stands behind the node's name, before what was added. */
static int find_copy(const qi_model *whole, const char *name, int t)
{
    char copy[NAME];
    int found = -1;
    for (const char *p = name + strlen(name); found < 0 && p > name; p--) {
        if (*p && *p != '/')
            continue;
        snprintf(copy, sizeof copy, "%.*s@%d%s", (int)(p - name), name, t, p);
        found = find(whole, copy);
    }
    return found;
}

/** A node that has no copy runs in the last step alone. */
static qat_status find_partners(stream *s, const qi_node *node, int tensor, qat_error *err)
{
    const qi_tensor *of = qi_tensor_at(s->step, tensor);
    int const n = qi_tensor_count(s->step), all = find(s->whole, of->name);
    bool again = false;
    if (node->inputs[0] == qi_input_at(s->step, 0) && s->steps > 1 && all >= 0 &&
        qi_tensor_at(s->whole, all)->bytes == (size_t)s->steps * of->bytes) {
        for (int t = 0; t < s->steps; t++) /* a table in front of the whole, and of each frame */
            s->partner[t * n + tensor] = all;
        return QAT_OK;
    }
    for (int t = s->steps - 1; t >= 0; t--) {
        int partner = t ? find_copy(s->whole, of->name, t) : -1;
        again |= partner >= 0;
        if (partner < 0 && (t == 0 ? again || s->steps == 1 : t == s->steps - 1 && !again))
            partner = find(s->whole, of->name);
        if (partner >= 0 && qi_tensor_at(s->whole, partner)->bytes != of->bytes)
            partner = -1;
        s->partner[t * n + tensor] = partner;
    }
    if (s->partner[(s->steps - 1) * n + tensor] >= 0)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_MISMATCH,
        "export refused: the model of whole sequences has no tensor %s in its last step", of->name);
}

static qat_status open_stream(stream *s, qat_error *err)
{
    size_t const n = (size_t)qi_tensor_count(s->step), all = (size_t)qi_tensor_count(s->whole);
    s->partner = qat_arena_array(&s->memory, n * (size_t)s->steps, sizeof *s->partner);
    s->values = qat_arena_array(&s->memory, all, sizeof *s->values);
    if (!s->partner || !s->values)
        return qat_out_of_memory(err, "export");
    for (size_t i = 0; i < all; i++) {
        s->values[i] = qat_arena_array(&s->memory, qi_tensor_at(s->whole, (int)i)->bytes, 1);
        if (!s->values[i])
            return qat_out_of_memory(err, "export");
    }
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qi_node_count(s->step); i++)
        for (int k = 0; !st && k < qi_node_at(s->step, i)->n_outputs; k++)
            st = find_partners(s, qi_node_at(s->step, i), qi_node_at(s->step, i)->outputs[k], err);
    return st;
}

static void keep(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    stream *s = context;
    memcpy(s->values[tensor], data, qi_tensor_at(model, tensor)->bytes);
}

static bool is_input(const qi_model *model, int tensor)
{
    return tensor == qi_input_at(model, 0);
}

static void compare(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    stream *s = context;
    const qi_tensor *t = qi_tensor_at(model, tensor);
    int const partner =
        is_input(model, tensor) ? -1 : s->partner[s->t * qi_tensor_count(model) + tensor];
    const uint8_t *bytes = data;
    if (partner < 0)
        return;
    const uint8_t *expected = s->values[partner];
    if (qi_tensor_at(s->whole, partner)->bytes > t->bytes) /* of all frames */
        expected += (size_t)s->t * t->bytes;
    s->result->bytes += (int64_t)t->bytes;
    for (size_t i = 0; i < t->bytes; i++) {
        if (bytes[i] == expected[i])
            continue;
        if (!s->result->differing++)
            snprintf(s->first, NAME + 64, "%s, sample %lld, step %d, value %zu", t->name,
                     (long long)s->result->samples, s->t, i);
    }
}

/** One sample in both ways. */
static void run_sample(stream *s, const qi_host *whole, const qi_host *step, const void *codes,
                       void *const *outputs)
{
    const void *in[1] = {codes};
    size_t const bytes = qi_tensor_at(s->step, qi_input_at(s->step, 0))->bytes;
    qi_host_reset(whole, NULL);
    qi_host_run_visit(whole, NULL, in, outputs, keep, s);
    qi_host_reset(step, NULL);
    for (s->t = 0; s->t < s->steps; s->t++) {
        in[0] = (const uint8_t *)codes + (size_t)s->t * bytes;
        qi_host_run_visit(step, NULL, in, outputs, compare, s);
    }
    s->result->samples++;
}

static qat_qparams params_of(const qi_tensor *t)
{
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return qat_stored_qparams((qi_type)t->type, t->bits, scale, t->zero_point);
}

/** Samples of the data, or, without any, random ones. */
static qat_status run_samples(stream *s, const qi_host *whole, const qi_host *step,
                              qat_deploy_feed *f, void *codes, void *const *outputs, qat_error *err)
{
    const qi_tensor *in = qi_tensor_at(s->whole, qi_input_at(s->whole, 0));
    qat_qparams const p = params_of(in);
    size_t const n = qat_tensor_values(in);
    qat_status st = QAT_OK;
    for (int i = 0; !f->data && i < QAT_RANDOM_SAMPLES; i++) {
        qat_rng rng = qat_rng_at(1, qat_hash_name("stream"), (uint64_t)i);
        for (size_t k = 0; k < n; k++)
            qat_store_code((qi_type)in->type, codes, k,
                           p.lo + (int32_t)qat_rng_below(&rng, (uint32_t)(p.hi - p.lo + 1)));
        run_sample(s, whole, step, codes, outputs);
    }
    while (f->data && !st) {
        qat_export_batch batch = {0};
        st = qat_feed_next(f, f->batch, &batch, err);
        if (st || batch.count <= 0)
            break;
        for (int i = 0; i < batch.count; i++) {
            size_t const from = (size_t)i * n;
            for (size_t k = 0; k < n; k++)
                qat_store_code((qi_type)in->type, codes, k,
                               f->pixels
                                   ? ((const uint8_t *)batch.inputs[0])[from + k]
                                   : qat_code(&p, ((const float *)batch.inputs[0])[from + k]));
            run_sample(s, whole, step, codes, outputs);
        }
    }
    return st;
}

qat_status qat_deploy_compare_stream(const qi_host *whole, const qi_host *step, int steps,
                                     qat_deploy_feed *f, qat_streamed *result, qat_error *err)
{
    char first[NAME + 64] = "";
    stream s = {.whole = qi_host_model(whole),
                .step = qi_host_model(step),
                .steps = steps,
                .result = result,
                .first = first};
    *result = (qat_streamed){.steps = steps};
    size_t const n = qi_tensor_at(s.whole, qi_input_at(s.whole, 0))->bytes;
    int const n_outputs = qi_output_count(s.whole);
    uint8_t *codes = qat_arena_array(&s.memory, n, 1);
    void **outputs = qat_arena_array(&s.memory, (size_t)n_outputs, sizeof *outputs);
    qat_status st = codes && outputs ? QAT_OK : qat_out_of_memory(err, "export");
    if (!st && (qi_input_count(s.whole) != 1 || qi_input_count(s.step) != 1 ||
                n != (size_t)steps * qi_tensor_at(s.step, qi_input_at(s.step, 0))->bytes ||
                qi_output_count(s.step) != n_outputs))
        st = qat_fail(err, QAT_ERR_MISMATCH,
                      "export refused: %d frames of the model are not one sequence", steps);
    for (int i = 0; !st && i < n_outputs; i++) {
        size_t const bytes = qi_tensor_at(s.whole, qi_output_at(s.whole, i))->bytes;
        outputs[i] = qat_arena_array(&s.memory, bytes, 1);
        st = outputs[i] ? QAT_OK : qat_out_of_memory(err, "export");
    }
    if (!st)
        st = open_stream(&s, err);
    if (!st)
        st = run_samples(&s, whole, step, f, codes, outputs, err);
    if (!st && result->differing)
        st = qat_fail(
            err, QAT_ERR_MISMATCH,
            "export refused: frame by frame, %lld of %lld bytes differ from the run of the "
            "whole sequence, first in %s",
            (long long)result->differing, (long long)result->bytes, first);
    qat_arena_free(&s.memory);
    return st;
}

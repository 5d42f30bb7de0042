/**
 * The lanes of the verifier: the engine runs samples, and visits compare each tensor that it
 * writes.
 */
#include "base/parallel.h"
#include "convert/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The state of a visit. */
struct visit {
    const qat_verifier *verifier;
    struct qat_lane *lane;
    int sample, order;
    const qi_host *other; /* NULL: the verifier's host */
};

/* ------------------------------------------------------------------ comparing */

/** Note where a lane found its first difference, and the two codes. */
static void note_first(const struct visit *at, int tensor, size_t i, int32_t exact, int32_t engine)
{
    const qat_qtensor *t = &at->verifier->graph->tensors[tensor];
    struct qat_lane *lane = at->lane;
    char name[48] = "engine";
    if (at->other)
        snprintf(name, sizeof name, "engine (%s, threads %d)", qi_host_isa(at->other),
                 qi_host_threads(at->other));
    lane->first_at = (int64_t)at->sample * at->verifier->graph->n_tensors + at->order;
    snprintf(lane->counts.first, sizeof lane->counts.first,
             "%s, sample %lld, value %zu: exact evaluation %d, %s %d", t->name,
             (long long)(at->verifier->samples + at->sample), i, (int)exact, name, (int)engine);
}

static void compare_exact(const struct visit *at, int tensor, const void *engine)
{
    const qat_verifier *v = at->verifier;
    size_t const count = v->tensors[tensor].count, bytes = v->tensors[tensor].bytes;
    const qat_qtensor *t = &v->graph->tensors[tensor];
    const uint8_t *exact =
        (const uint8_t *)qat_exact_tensor(v->exact, tensor) + (size_t)at->sample * bytes;
    const uint8_t *given = engine;
    struct qat_lane *lane = at->lane;
    lane->counts.bytes += at->other ? 0 : (int64_t)bytes;
    if (memcmp(exact, engine, bytes) == 0)
        return;
    for (size_t i = 0; i < bytes; i++) {
        size_t const value = i / (bytes / count);
        if (exact[i] == given[i])
            continue;
        if (lane->first_at < 0)
            note_first(at, tensor, value, qat_load_code(t->type, exact, value),
                       qat_load_code(t->type, engine, value));
        lane->counts.differing++;
    }
}

/** The simulation's code of value i. codes: of a simulation that rounds as the integers do. */
static int32_t simulated_code(const struct qat_watched *w, qi_type type, const uint8_t *codes,
                              size_t i)
{
    return codes ? qat_load_code(type, codes, i) : qat_code(&w->params, w->real[i]);
}

static void compare_simulation(const struct visit *at, int tensor, const void *engine)
{
    const qat_verifier *v = at->verifier;
    const qat_qtensor *t = &v->graph->tensors[tensor];
    const struct qat_watched *w = &v->tensors[tensor];
    qat_qparams p;
    const uint8_t *codes = w->bytes == w->count ? qat_integer_codes(w->simulated, &p) : NULL;
    size_t const first = (size_t)at->sample * w->count;
    qat_compare *counts = &at->lane->counts;
    int64_t differing = 0, far = 0;
    for (size_t i = 0; i < w->count; i++) {
        int const quanta =
            abs(simulated_code(w, t->type, codes, first + i) - qat_load_code(t->type, engine, i));
        differing += quanta != 0;
        far += quanta > 1;
        if (quanta > counts->simulated_max_quanta)
            counts->simulated_max_quanta = quanta;
    }
    counts->simulated_bytes += (int64_t)w->count;
    counts->simulated_differing += differing;
    counts->simulated_far += far;
    if (w->is_output) {
        counts->output_bytes += (int64_t)w->count;
        counts->output_simulated_differing += differing;
    }
}

/** Nodes of values that no integers are computed for, such as inputs, have no codes. */
static void compare_trained(const struct visit *at, int tensor, const uint8_t *engine)
{
    const struct qat_watched *w = &at->verifier->tensors[tensor];
    qat_qparams p;
    const uint8_t *codes = w->trained ? qat_integer_codes(w->trained, &p) : NULL;
    if (!codes || w->bytes != w->count)
        return;
    codes += (size_t)at->sample * w->count;
    for (size_t i = 0; i < w->count; i++)
        at->lane->counts.trained_differing += codes[i] != engine[i];
    at->lane->counts.trained_bytes += (int64_t)w->count;
}

static void visit_tensor(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct visit *at = context;
    const struct qat_watched *w = &at->verifier->tensors[tensor];
    const qat_qtensor *t = &at->verifier->graph->tensors[tensor];
    if (!w->compared)
        return;
    at->order++;
    at->lane->visits++;
    compare_exact(at, tensor, data);
    if (at->verifier->simulate && w->simulated)
        compare_simulation(at, tensor, data);
    if (at->verifier->integers && at->verifier->simulate)
        compare_trained(at, tensor, data);
    for (size_t i = 0; i < w->count; i++)
        at->lane->seen[tensor][(uint8_t)qat_load_code(t->type, data, i)] = 1;
}

/** Set the inputs of one sample in its lane. */
static void point_inputs(const qat_verifier *v, struct qat_lane *lane, int sample)
{
    for (int i = 0; i < v->graph->n_inputs; i++) {
        size_t const bytes = qat_qtensor_bytes(&v->graph->tensors[v->graph->inputs[i]]);
        lane->inputs[i] = (const uint8_t *)v->inputs[i] + (size_t)sample * bytes;
    }
}

static void visit_other(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct visit *at = context;
    if (!at->verifier->tensors[tensor].compared)
        return;
    at->order++;
    compare_exact(at, tensor, data);
}

/** Run one sample of the batch on each of the other hosts if the first host found no difference. */
static void run_others(qat_verifier *v)
{
    struct qat_lane *lane = &v->lanes[0];
    const qi_host *host;
    for (int i = 0; i < QAT_VERIFY_LANES; i++)
        if (v->lanes[i].counts.differing)
            return;
    for (int i = 0; (host = qat_other_host(v->others, i)); i++) {
        struct visit at = {.verifier = v, .lane = lane, .sample = i % v->batch, .other = host};
        point_inputs(v, lane, at.sample);
        qi_host_reset(host, NULL);
        qi_host_run_visit(host, NULL, lane->inputs, v->no_outputs, visit_other, &at);
    }
}

static void run_lane(void *context, int tile, int thread)
{
    qat_verifier *v = context;
    struct qat_lane *lane = &v->lanes[tile];
    for (int sample = tile; sample < v->batch; sample += QAT_VERIFY_LANES) {
        struct visit at = {.verifier = v, .lane = lane, .sample = sample};
        point_inputs(v, lane, sample);
        qi_host_reset(v->host, lane->arena);
        qi_host_run_visit(v->host, lane->arena, lane->inputs, v->no_outputs, visit_tensor, &at);
    }
}

/* ------------------------------------------------------------------ all lanes */

void qat_compare_add(qat_compare *sum, const qat_compare *c)
{
    sum->bytes += c->bytes;
    sum->differing += c->differing;
    sum->simulated_bytes += c->simulated_bytes;
    sum->simulated_differing += c->simulated_differing;
    sum->simulated_far += c->simulated_far;
    sum->trained_bytes += c->trained_bytes;
    sum->trained_differing += c->trained_differing;
    sum->output_bytes += c->output_bytes;
    sum->output_simulated_differing += c->output_simulated_differing;
    if (c->simulated_max_quanta > sum->simulated_max_quanta)
        sum->simulated_max_quanta = c->simulated_max_quanta;
}

/**
 * Add the counts of all lanes for this batch. The first difference is that of the lowest sample.
 */
static int64_t add_lanes(qat_verifier *v)
{
    qat_compare *sum = &v->result;
    bool const had_first = sum->first[0] != 0;
    int64_t visits = 0, first_at = -1;
    for (int i = 0; i < QAT_VERIFY_LANES; i++) {
        struct qat_lane *lane = &v->lanes[i];
        const qat_compare *c = &lane->counts;
        visits += lane->visits;
        qat_compare_add(sum, c);
        if (!had_first && lane->first_at >= 0 && (first_at < 0 || lane->first_at < first_at)) {
            first_at = lane->first_at;
            memcpy(sum->first, c->first, sizeof sum->first);
        }
    }
    return visits;
}

int64_t qat_verify_lanes(qat_verifier *v)
{
    for (int i = 0; i < QAT_VERIFY_LANES; i++) {
        v->lanes[i].counts = (qat_compare){0};
        v->lanes[i].visits = 0;
        v->lanes[i].first_at = -1;
    }
    qat_parallel(QAT_VERIFY_LANES, run_lane, v);
    run_others(v);
    return add_lanes(v);
}

int qat_verifier_codes(const qat_verifier *v, int tensor)
{
    int distinct = 0;
    for (int code = 0; code < QAT_VERIFY_CODES; code++) {
        bool seen = false;
        for (int i = 0; i < QAT_VERIFY_LANES; i++)
            seen |= v->lanes[i].seen[tensor][code] != 0;
        distinct += seen;
    }
    return distinct;
}

/**
 * The comparison that a model must pass before it is written: the engine, sample by sample, against
 * the exact evaluation, every byte of every tensor that an op writes; the exact evaluation, layer
 * by layer, against the float layers (layers.c); and beside it the ordinary float32 simulation of
 * the whole network, whose differences are counted, not judged.
 *
 * Samples are dealt to a fixed number of lanes, each with its own arena and its own counts, which
 * are added in the lanes' order: the result does not depend on the number of threads.
 */
#include "base/arena.h"
#include "base/parallel.h"
#include "convert/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, CODES = 256 };

/** What is known of one tensor of the integer graph. */
struct watched {
    bool compared;  /* an op writes it */
    bool is_output; /* of the graph */
    size_t count;   /* values, one byte each */
    /* simulation: the real values that fake_quant rounds, batch samples, or NULL; its parameters */
    const float *real;
    qat_qparams params;
};

/** One lane's arena and counts. */
struct lane {
    void *arena;
    const void **inputs;    /* one sample's */
    uint8_t (*seen)[CODES]; /* by tensor: codes that occurred, as bytes */
    int64_t visits;         /* compared tensors visited, samples counted */
    int64_t first_at;       /* sample * tensors + order of the first difference, or -1 */
    qat_compare counts;
};

struct qat_verifier {
    const qat_qgraph *graph;
    qat_graph *eval;
    qat_exact *exact;
    qat_layers *layers; /* NULL where eval is */
    qi_host host;
    qat_other_hosts *others;
    int max_batch, n_compared;
    int64_t samples;
    struct watched *tensors;
    struct lane lanes[LANES];
    qat_compare result;
    void **no_outputs; /* NULL for each: visits see every tensor */
    bool simulate;     /* in the present batch */
    int batch;
    const void *const *inputs;
};

/** Where a visit of the engine finds itself. */
struct visit {
    const qat_verifier *verifier;
    struct lane *lane;
    int sample, order;
    const qi_host *other; /* NULL: the verifier's host */
};

/* ------------------------------------------------------------------ creating */

static void watch_outputs(qat_verifier *v)
{
    const qat_qgraph *graph = v->graph;
    for (int i = 0; i < graph->n_tensors; i++)
        v->tensors[i].count = qat_qtensor_count(&graph->tensors[i]);
    for (int i = 0; i < graph->n_ops; i++)
        for (int j = 0; j < graph->ops[i].n_outputs; j++)
            v->tensors[graph->ops[i].outputs[j]].compared = true;
    for (int i = 0; i < graph->n_outputs; i++)
        v->tensors[graph->outputs[i]].is_output = true;
    for (int i = 0; i < graph->n_tensors; i++)
        v->n_compared += v->tensors[i].compared;
}

/** The engine's model must be the one made from this graph: its tensors first, of equal sizes
 *  (channel scales follow behind). */
static qat_status check_model(const qat_verifier *v, qat_error *err)
{
    const qat_qgraph *graph = v->graph;
    const qi_model *model = v->host.model;
    if (qi_tensor_count(model) < graph->n_tensors || qi_input_count(model) != graph->n_inputs)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "verify: the model has %d tensors and %d inputs, the graph %d and %d",
                        (int)qi_tensor_count(model), (int)qi_input_count(model), graph->n_tensors,
                        graph->n_inputs);
    for (int i = 0; i < graph->n_tensors; i++) {
        size_t const bytes = qi_tensor_at(model, i)->bytes;
        if (bytes != qat_qtensor_bytes(&graph->tensors[i]))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "verify: tensor %d (%s) has %zu bytes in the model, %zu in the graph",
                            i, graph->tensors[i].name, bytes,
                            qat_qtensor_bytes(&graph->tensors[i]));
    }
    for (int i = graph->n_tensors; i < qi_tensor_count(model); i++)
        if (qi_tensor_at(model, i)->kind != QI_CONSTANT)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "verify: the model's tensor %d is an activation, but not in the graph",
                            i);
    return QAT_OK;
}

/** Find each compared tensor's node in the eval graph, by name. */
static qat_status watch_simulation(qat_verifier *v, qat_error *err)
{
    for (int i = 0; v->eval && i < v->graph->n_tensors; i++) {
        struct watched *w = &v->tensors[i];
        const qat_node *node =
            w->compared ? qat_graph_find(v->eval, v->graph->tensors[i].name) : NULL;
        const qat_node *quantizer = node ? qat_quantizer_of(node) : NULL;
        if (!quantizer)
            continue;
        w->real = node == quantizer ? node->inputs[0]->value : node->value;
        qat_status const st = qat_node_qparams(quantizer, &w->params, err);
        if (st)
            return st;
    }
    return QAT_OK;
}

static qat_status allocate(qat_verifier *v, qat_error *err)
{
    const qat_qgraph *graph = v->graph;
    v->tensors = calloc((size_t)graph->n_tensors + 1, sizeof *v->tensors);
    v->no_outputs = calloc((size_t)graph->n_outputs + 1, sizeof *v->no_outputs);
    bool ok = v->tensors && v->no_outputs;
    for (int i = 0; ok && i < LANES; i++) {
        struct lane *lane = &v->lanes[i];
        lane->arena = qat_aligned_alloc(v->host.arena_bytes);
        lane->inputs = calloc((size_t)graph->n_inputs + 1, sizeof *lane->inputs);
        lane->seen = calloc((size_t)graph->n_tensors + 1, sizeof *lane->seen);
        ok = lane->arena && lane->inputs && lane->seen;
    }
    return ok ? QAT_OK : qat_fail(err, QAT_ERR_NOMEM, "verify: out of memory");
}

qat_status qat_verifier_create(qat_verifier **verifier, const qat_qgraph *graph, qat_graph *eval,
                               const void *qm, size_t qm_bytes, const qi_kernel_list *kernels,
                               const qat_registry *registry, int max_batch, qat_error *err)
{
    char message[QI_HOST_MESSAGE_MAX];
    *verifier = NULL;
    qat_verifier *v = calloc(1, sizeof *v);
    if (!v)
        return qat_fail(err, QAT_ERR_NOMEM, "verify: out of memory");
    v->graph = graph;
    v->eval = eval;
    v->max_batch = max_batch;
    qat_status st = QAT_OK;
    qi_host_options const options = {.custom = kernels};
    qi_status const opened = qi_host_open_bytes(&v->host, qm, qm_bytes, "model", &options, message);
    if (opened)
        st = qat_fail(err, opened == QI_ERR_NOMEM ? QAT_ERR_NOMEM : QAT_ERR_FORMAT,
                      "the engine refuses the model: %s", message);
    if (!st)
        st = qat_other_hosts_open(&v->others, qm, qm_bytes, kernels, err);
    if (!st)
        st = check_model(v, err);
    if (!st)
        st = allocate(v, err);
    if (!st) {
        watch_outputs(v);
        st = watch_simulation(v, err);
    }
    if (!st)
        st = qat_exact_create(&v->exact, graph, registry, max_batch, err);
    if (!st && eval)
        st = qat_layers_create(&v->layers, graph, eval, err);
    if (st) {
        qat_verifier_free(v);
        return st;
    }
    *verifier = v;
    return QAT_OK;
}

void qat_verifier_free(qat_verifier *v)
{
    if (!v)
        return;
    for (int i = 0; i < LANES; i++) {
        qat_aligned_free(v->lanes[i].arena);
        free(v->lanes[i].inputs);
        free(v->lanes[i].seen);
    }
    qat_exact_free(v->exact);
    qat_layers_free(v->layers);
    qi_host_close(&v->host);
    qat_other_hosts_close(v->others);
    free(v->no_outputs);
    free(v->tensors);
    free(v);
}

/* ------------------------------------------------------------------ comparing */

static void compare_exact(const struct visit *at, int tensor, const uint8_t *engine)
{
    const qat_verifier *v = at->verifier;
    const qat_qtensor *t = &v->graph->tensors[tensor];
    size_t const count = v->tensors[tensor].count;
    const uint8_t *exact =
        (const uint8_t *)qat_exact_tensor(v->exact, tensor) + (size_t)at->sample * count;
    struct lane *lane = at->lane;
    char engine_name[64] = "engine";
    lane->counts.bytes += at->other ? 0 : (int64_t)count;
    if (memcmp(exact, engine, count) == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (exact[i] == engine[i])
            continue;
        if (lane->first_at < 0) {
            if (at->other)
                snprintf(engine_name, sizeof engine_name, "engine (%s, threads %d)", at->other->isa,
                         at->other->threads);
            lane->first_at = (int64_t)at->sample * v->graph->n_tensors + at->order;
            snprintf(lane->counts.first, sizeof lane->counts.first,
                     "%s, sample %lld, value %zu: exact evaluation %d, %s %d", t->name,
                     (long long)(v->samples + at->sample), i, qat_qtensor_code(t, exact[i]),
                     engine_name, qat_qtensor_code(t, engine[i]));
        }
        lane->counts.differing++;
    }
}

static void compare_simulation(const struct visit *at, int tensor, const uint8_t *engine)
{
    const qat_verifier *v = at->verifier;
    const qat_qtensor *t = &v->graph->tensors[tensor];
    const struct watched *w = &v->tensors[tensor];
    const float *real = w->real + (size_t)at->sample * w->count;
    qat_compare *counts = &at->lane->counts;
    int64_t differing = 0;
    for (size_t i = 0; i < w->count; i++) {
        int const quanta = abs(qat_code(&w->params, real[i]) - qat_qtensor_code(t, engine[i]));
        differing += quanta != 0;
        if (quanta > counts->simulated_max_quanta)
            counts->simulated_max_quanta = quanta;
    }
    counts->simulated_bytes += (int64_t)w->count;
    counts->simulated_differing += differing;
    if (w->is_output) {
        counts->output_bytes += (int64_t)w->count;
        counts->output_simulated_differing += differing;
    }
}

static void visit_tensor(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct visit *at = context;
    const struct watched *w = &at->verifier->tensors[tensor];
    const uint8_t *engine = data;
    if (!w->compared)
        return;
    at->order++;
    at->lane->visits++;
    compare_exact(at, tensor, engine);
    if (at->verifier->simulate && w->real)
        compare_simulation(at, tensor, engine);
    for (size_t i = 0; i < w->count; i++)
        at->lane->seen[tensor][engine[i]] = 1;
}

/** One sample's inputs, in its lane. */
static void point_inputs(const qat_verifier *v, struct lane *lane, int sample)
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

/** One sample of the batch by each of the other hosts, where the first found no difference. */
static void run_others(qat_verifier *v)
{
    struct lane *lane = &v->lanes[0];
    const qi_host *host;
    for (int i = 0; i < LANES; i++)
        if (v->lanes[i].counts.differing)
            return;
    for (int i = 0; (host = qat_other_host(v->others, i)); i++) {
        struct visit at = {.verifier = v, .lane = lane, .sample = i % v->batch, .other = host};
        point_inputs(v, lane, at.sample);
        qi_host_run_visit(host, NULL, lane->inputs, v->no_outputs, visit_other, &at);
    }
}

static void run_lane(void *context, int tile, int thread)
{
    qat_verifier *v = context;
    struct lane *lane = &v->lanes[tile];
    for (int sample = tile; sample < v->batch; sample += LANES) {
        struct visit at = {.verifier = v, .lane = lane, .sample = sample};
        point_inputs(v, lane, sample);
        qi_host_run_visit(&v->host, lane->arena, lane->inputs, v->no_outputs, visit_tensor, &at);
    }
}

/** The layers one by one, then the network as a whole, which leaves its values for the visits. */
static qat_status run_simulation(qat_verifier *v, const float *const *real, int batch,
                                 qat_error *err)
{
    qat_status const st = qat_graph_set_batch(v->eval, batch, err);
    if (st)
        return st;
    int input = 0;
    for (int i = 0; i < qat_graph_nodes(v->eval); i++) {
        qat_node *node = qat_graph_node(v->eval, i);
        if (qat_node_is_input(node))
            memcpy(node->value, real[input++], qat_shape_count(&node->shape) * sizeof *node->value);
    }
    qat_layers_batch(v->layers, v->exact, batch);
    qat_graph_forward(v->eval, &(qat_run){.mode = QAT_MODE_EVAL});
    return QAT_OK;
}

/** Add the lanes' counts of this batch; the first difference is the first of the lowest sample. */
static int64_t add_lanes(qat_verifier *v)
{
    qat_compare *sum = &v->result;
    bool const had_first = sum->first[0] != 0;
    int64_t visits = 0, first_at = -1;
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &v->lanes[i];
        const qat_compare *c = &lane->counts;
        visits += lane->visits;
        sum->bytes += c->bytes;
        sum->differing += c->differing;
        sum->simulated_bytes += c->simulated_bytes;
        sum->simulated_differing += c->simulated_differing;
        sum->output_bytes += c->output_bytes;
        sum->output_simulated_differing += c->output_simulated_differing;
        if (c->simulated_max_quanta > sum->simulated_max_quanta)
            sum->simulated_max_quanta = c->simulated_max_quanta;
        if (!had_first && lane->first_at >= 0 && (first_at < 0 || lane->first_at < first_at)) {
            first_at = lane->first_at;
            memcpy(sum->first, c->first, sizeof sum->first);
        }
    }
    return visits;
}

qat_status qat_verifier_batch(qat_verifier *v, const void *const *inputs,
                              const float *const *real_inputs, int batch, qat_error *err)
{
    if (batch < 1 || batch > v->max_batch)
        return qat_fail(err, QAT_ERR_ARGUMENT, "verify: a batch of %d; the limit is %d", batch,
                        v->max_batch);
    qat_status st = qat_exact_run(v->exact, inputs, batch, err);
    v->simulate = v->eval && real_inputs;
    if (!st && v->simulate)
        st = run_simulation(v, real_inputs, batch, err);
    if (st)
        return st;
    v->inputs = inputs;
    v->batch = batch;
    for (int i = 0; i < LANES; i++) {
        v->lanes[i].counts = (qat_compare){0};
        v->lanes[i].visits = 0;
        v->lanes[i].first_at = -1;
    }
    qat_parallel(LANES, run_lane, v);
    run_others(v);
    int64_t const visits = add_lanes(v);
    v->samples += batch;
    if (visits != (int64_t)v->n_compared * batch)
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "verify: the engine wrote %lld tensors for %d samples of %d tensors",
                        (long long)visits, batch, v->n_compared);
    return QAT_OK;
}

int qat_verifier_codes(const qat_verifier *v, int tensor)
{
    int distinct = 0;
    for (int code = 0; code < CODES; code++) {
        bool seen = false;
        for (int i = 0; i < LANES; i++)
            seen |= v->lanes[i].seen[tensor][code] != 0;
        distinct += seen;
    }
    return distinct;
}

int qat_verifier_layers(const qat_verifier *v)
{
    return v->layers ? qat_layers_count(v->layers) : 0;
}

const qat_layer_check *qat_verifier_layer(const qat_verifier *v, int i)
{
    return qat_layers_at(v->layers, i);
}

qat_status qat_verifier_judge(const qat_verifier *v, qat_error *err)
{
    for (int i = 0; i < qat_verifier_layers(v); i++) {
        const qat_layer_check *c = qat_verifier_layer(v, i);
        if (c->quanta > c->bound)
            return qat_fail(err, QAT_ERR_MISMATCH,
                            "%s (op %s), sample %lld, value %zu: the float layer gives %g, the "
                            "integers code %d, %.2f quanta away; its roundings explain %.2f",
                            c->tensor, c->op, (long long)c->sample, c->value, (double)c->real,
                            (int)c->code, c->quanta, c->bound);
    }
    return QAT_OK;
}

static void find_furthest(qat_verifier *v)
{
    qat_compare *r = &v->result;
    r->layers = 0;
    for (int i = 0; i < qat_verifier_layers(v); i++) {
        const qat_layer_check *c = qat_verifier_layer(v, i);
        if (isinf(c->bound))
            continue;
        r->layers++;
        if (c->quanta <= r->layers_max_quanta)
            continue;
        r->layers_max_quanta = c->quanta;
        snprintf(r->layers_furthest, sizeof r->layers_furthest, "%s", c->tensor);
    }
}

const qat_compare *qat_verifier_result(qat_verifier *v)
{
    qat_compare *r = &v->result;
    find_furthest(v);
    r->tensors = r->tensors_large = r->tensors_varied = 0;
    for (int i = 0; v->samples > 0 && i < v->graph->n_tensors; i++) {
        if (!v->tensors[i].compared)
            continue;
        r->tensors++;
        int const half = 1 << (v->graph->tensors[i].bits - 1);
        int const enough = half < 64 ? half : 64;
        if ((int64_t)v->tensors[i].count * v->samples < enough)
            continue;
        r->tensors_large++;
        r->tensors_varied += qat_verifier_codes(v, i) >= enough;
    }
    return r;
}

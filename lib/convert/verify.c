/**
 * The comparison that a model must pass before it is written. (1) The engine against the exact
 * evaluation, sample by sample, every byte of every tensor that an op writes (verify_lanes.c). (2)
 * The exact evaluation against the float layers, layer by layer (layers.c). (3) The ordinary
 * float32 simulation of the whole network; its differences are counted but cause no error. (4) What
 * was trained on integers: the training graph runs once more, and every byte must be the engine's.
 */
#include "convert/verify.h"

#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ creating */

static void watch_outputs(qat_verifier *v)
{
    const qat_qgraph *graph = v->graph;
    for (int i = 0; i < graph->n_tensors; i++) {
        v->tensors[i].count = qat_qtensor_count(&graph->tensors[i]);
        v->tensors[i].bytes = qat_qtensor_bytes(&graph->tensors[i]);
    }
    for (int i = 0; i < graph->n_ops; i++)
        for (int j = 0; j < graph->ops[i].n_outputs; j++)
            v->tensors[graph->ops[i].outputs[j]].compared = true;
    for (int i = 0; i < graph->n_outputs; i++)
        v->tensors[graph->outputs[i]].is_output = true;
    for (int i = 0; i < graph->n_tensors; i++)
        v->n_compared += v->tensors[i].compared;
}

/**
 * Check that the engine's model was made from this graph: it has the graph's tensors first, with
 * equal sizes (channel scales follow).
 */
static qat_status check_model(const qat_verifier *v, qat_error *err)
{
    const qat_qgraph *graph = v->graph;
    const qi_model *model = qi_host_model(v->host);
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
                            "verify: tensor %d is an activation in the model, but not in the graph",
                            i);
    return QAT_OK;
}

/** Find the node in the eval graph for each compared tensor, by name. */
static qat_status watch_simulation(qat_verifier *v, qat_error *err)
{
    for (int i = 0; v->eval && i < v->graph->n_tensors; i++) {
        struct qat_watched *w = &v->tensors[i];
        const qat_node *node =
            w->compared ? qat_graph_find(v->eval, v->graph->tensors[i].name) : NULL;
        const qat_node *quantizer = node ? qat_quantizer_of(node) : NULL;
        if (!quantizer)
            continue;
        w->simulated = node;
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
    for (int i = 0; ok && i < QAT_VERIFY_LANES; i++) {
        struct qat_lane *lane = &v->lanes[i];
        lane->arena = qat_aligned_alloc(qi_host_sizes(v->host).host_arena);
        lane->inputs = calloc((size_t)graph->n_inputs + 1, sizeof *lane->inputs);
        lane->seen = calloc((size_t)graph->n_tensors + 1, sizeof *lane->seen);
        ok = lane->arena && lane->inputs && lane->seen;
    }
    return ok ? QAT_OK : qat_out_of_memory(err, "verify");
}

qat_status qat_verifier_create(qat_verifier **verifier, const qat_qgraph *graph, qat_graph *eval,
                               const void *qm, size_t qm_bytes, const qi_kernel_list *kernels,
                               const qat_registry *registry, int max_batch, qat_error *err)
{
    *verifier = NULL;
    qat_verifier *v = calloc(1, sizeof *v);
    if (!v)
        return qat_out_of_memory(err, "verify");
    v->graph = graph;
    v->eval = eval;
    v->max_batch = max_batch;
    v->rounds = true;
    qat_status st = qat_engine_open(&v->host, qm, qm_bytes, kernels, NULL, err);
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
    for (int i = 0; i < QAT_VERIFY_LANES; i++) {
        qat_aligned_free(v->lanes[i].arena);
        free(v->lanes[i].inputs);
        free(v->lanes[i].seen);
    }
    qat_exact_free(v->exact);
    qat_layers_free(v->layers);
    qi_host_close(v->host);
    qat_other_hosts_close(v->others);
    free(v->no_outputs);
    free(v->tensors);
    free(v);
}

void qat_verifier_watch_integers(qat_verifier *v, qat_graph *training)
{
    v->integers = training;
    for (int i = 0; i < v->graph->n_tensors; i++)
        if (v->tensors[i].compared)
            v->tensors[i].trained = qat_graph_find(training, v->graph->tensors[i].name);
}

/** Set the inputs of a graph that has those of the eval graph, by their names. It may have others.
 */
static qat_status set_inputs(const qat_verifier *v, qat_graph *graph, const float *const *real,
                             int batch, qat_error *err)
{
    qat_status const st = qat_graph_set_batch(graph, batch, err);
    int input = 0;
    for (int i = 0; !st && i < qat_graph_nodes(v->eval); i++) {
        const qat_node *of = qat_graph_node(v->eval, i);
        if (!qat_node_is_input(of))
            continue;
        const qat_node *node = qat_graph_find(graph, of->name);
        memcpy(node->value, real[input++], qat_shape_count(&node->shape) * sizeof *node->value);
    }
    return st;
}

/**
 * Compare the layers one by one. Then run the network as a whole, whose values the visits compare.
 */
static qat_status run_simulation(qat_verifier *v, const float *const *real, int batch,
                                 qat_error *err)
{
    qat_status const st = set_inputs(v, v->eval, real, batch, err);
    if (st)
        return st;
    qat_layers_batch(v->layers, v->exact, batch);
    qat_simulate_integers(v->eval, v->rounds);
    qat_graph_forward(v->eval, &(qat_run){.mode = QAT_MODE_EVAL});
    qat_simulate_integers(v->eval, false);
    return qat_graph_run_status(v->eval, err);
}

static qat_status run_integers(qat_verifier *v, const float *const *real, int batch, qat_error *err)
{
    qat_status const st = set_inputs(v, v->integers, real, batch, err);
    if (st)
        return st;
    qat_graph_forward(v->integers, &(qat_run){.mode = QAT_MODE_EVAL});
    return qat_graph_run_status(v->integers, err);
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
    if (!st && v->simulate && v->integers)
        st = run_integers(v, real_inputs, batch, err);
    if (st)
        return st;
    v->inputs = inputs;
    v->batch = batch;
    int64_t const visits = qat_verify_lanes(v);
    v->samples += batch;
    if (visits != (int64_t)v->n_compared * batch)
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "verify: the engine wrote %lld tensors for %d samples of %d tensors",
                        (long long)visits, batch, v->n_compared);
    return QAT_OK;
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
    r->layers_values = r->layers_differing = r->layers_far = 0;
    for (int i = 0; i < qat_verifier_layers(v); i++) {
        const qat_layer_check *c = qat_verifier_layer(v, i);
        if (isinf(c->bound))
            continue;
        r->layers++;
        r->layers_values += c->values;
        r->layers_differing += c->differing;
        r->layers_far += c->far;
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
        int const bits = v->graph->tensors[i].bits; /* 32 and 64 of positions */
        int const enough = bits < 7 ? 1 << (bits - 1) : 64;
        if ((int64_t)v->tensors[i].count * v->samples < enough)
            continue;
        r->tensors_large++;
        r->tensors_varied += qat_verifier_codes(v, i) >= enough;
    }
    return r;
}

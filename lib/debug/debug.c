/** Opens the networks that are compared, and gives them the data. */
#include "debug/debug.h"

#include "base/files/file.h"
#include "base/words.h"
#include "checkpoint/restore.h"
#include "deploy/calibrate.h"
#include "deploy/integer_model.h"
#include "evaluate/evaluate.h"
#include "layer/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ networks */

qat_status debug_make_model(qi_host **host, const qat_restored *r, const qat_deploy_options *o,
                            qat_graph *eval, qat_error *err)
{
    qat_qgraph *graph = NULL;
    qat_qm_metadata const metadata = {.description = ""};
    uint8_t *bytes = NULL;
    size_t count = 0;
    qi_host_options const options = {.custom = qat_plugins_kernels(r->plugins),
                                     .limits = QI_NO_LIMITS};
    qat_status st = qat_restored_freeze(r, o, eval, &graph, err);
    if (!st)
        st = qat_finish_network(graph, &r->checkpoint->input, err);
    if (!st)
        st = qat_qm_write(graph, &metadata, &bytes, &count, err);
    if (!st)
        st = qi_host_open_bytes(host, bytes, count, "the model of the checkpoint", &options, err);
    free(bytes);
    qat_qgraph_free(graph);
    return st;
}

/** The reference: a float network and its simulation. */
static qat_status open_reference(qat_debug *d, const qat_restored *r, const qat_deploy_options *o,
                                 qat_error *err)
{
    qat_status const st =
        qat_restored_eval_and_folded(r, o, d->batch, &d->simulated, &d->folded, err);
    if (st)
        return st;
    if (!d->folded)
        return qat_restored_read_graph(r, &d->real, d->batch, QAT_PLAN_KEEP, err);
    d->real = d->folded;
    return QAT_OK;
}

static qat_status open_networks(qat_debug *d, const qat_debug_source *s, qat_error *err)
{
    qat_deploy_options const none = {0}, *o = s->deploy ? s->deploy : &none;
    const qat_restored *reference = s->against ? s->against : s->checkpoint;
    qat_graph *eval = NULL;
    qat_status st = reference ? open_reference(d, reference, o, err) : QAT_OK;
    d->input = reference ? &reference->checkpoint->input : NULL;
    d->calibrated = o->calibrate != NULL;
    d->corrected = o->correct_bias;
    d->trained = reference && !d->calibrated &&
                 reference->checkpoint->step > reference->checkpoint->quant.weight_delay;
    d->host = s->model;
    if (st || d->host)
        return st;
    if (reference != s->checkpoint)
        st = qat_restored_eval_graph(s->checkpoint, o, d->batch, &eval, err);
    if (!st)
        st = debug_make_model(&d->made, s->checkpoint, o, eval ? eval : d->simulated, err);
    d->host = d->made;
    qat_graph_free(eval);
    return st;
}

/* ------------------------------------------------------------------ tensors */

static qat_status add_tensor(qat_debug *d, int index, qat_error *err)
{
    const qi_tensor *t = qi_tensor_at(d->model, index);
    debug_tensor *of = &d->tensors[index];
    of->t = t;
    of->index = index;
    if (!qat_real_is_activation(t))
        return QAT_OK;
    of->count = qat_real_count(t);
    of->channels = t->dims[t->rank - 1];
    of->reference[0] = INFINITY;
    of->reference[1] = -INFINITY;
    of->engine = calloc(of->count * (size_t)d->batch, sizeof *of->engine);
    of->of = calloc((size_t)of->channels, sizeof *of->of);
    if (!of->engine || !of->of)
        return qat_out_of_memory(err, "debugger");
    for (int c = 0; c < of->channels; c++) {
        of->of[c].least = INFINITY;
        of->of[c].most = -INFINITY;
    }
    return QAT_OK;
}

static qat_status view_init(const qat_debug *d, debug_view *v, qat_graph *graph, qat_error *err)
{
    size_t const nodes = (size_t)qat_graph_nodes(graph);
    v->graph = graph;
    v->of = calloc((size_t)d->n_tensors + 1, sizeof *v->of);
    v->tensor = malloc((nodes + 1) * sizeof *v->tensor);
    if (!v->of || !v->tensor)
        return qat_out_of_memory(err, "debugger");
    for (size_t i = 0; i < nodes; i++)
        v->tensor[i] = -1;
    return QAT_OK;
}

static void view_pair(const qat_debug *d, debug_view *v, int tensor, const qat_node *node)
{
    const debug_tensor *t = &d->tensors[tensor];
    size_t const count = node ? qat_shape_count(&node->shape) / (size_t)node->shape.dims[0] : 0;
    if (!node || !t->engine || count != t->count)
        return;
    v->of[tensor] = node;
    v->tensor[node->index] = tensor;
}

/** "conv1/relu/q" is the float node "conv1/relu"; pools and reshapes have the node's own name. */
static const qat_node *float_node(const qat_graph *graph, const char *tensor)
{
    char name[QAT_NAME_MAX];
    const qat_node *node =
        qat_without_end(tensor, "/q", name, sizeof name) ? qat_graph_find(graph, name) : NULL;
    return node && (node->op || qat_node_is_input(node)) ? node : NULL;
}

static qat_status open_views(qat_debug *d, qat_error *err)
{
    qat_status st = view_init(d, &d->by_own, d->own.graph, err);
    if (!st && d->real)
        st = view_init(d, &d->by_real, d->real, err);
    if (!st && d->simulated)
        st = view_init(d, &d->by_simulated, d->simulated, err);
    for (int i = 0; !st && i < d->n_tensors; i++) {
        debug_tensor *t = &d->tensors[i];
        view_pair(d, &d->by_own, i, d->own.of[i]);
        if (!d->real || !t->engine)
            continue;
        view_pair(d, &d->by_real, i, float_node(d->real, t->t->name));
        view_pair(d, &d->by_simulated, i, qat_graph_find(d->simulated, t->t->name));
        if (!d->by_real.of[i] || qat_node_is_input(d->by_real.of[i]))
            continue;
        t->real = calloc(t->count * (size_t)d->batch, sizeof *t->real);
        if (!t->real)
            st = qat_out_of_memory(err, "debugger");
    }
    return st;
}

/* ------------------------------------------------------------------ layers */

/** A layer for each op whose output can be compared. */
static qat_status add_layers(qat_debug *d, qat_error *err)
{
    size_t const n = (size_t)qi_node_count(d->model) + 1;
    d->layers = calloc(n, sizeof *d->layers);
    d->ops = calloc(n, sizeof *d->ops);
    d->order = calloc(n, sizeof *d->order);
    d->numbers = calloc(n, sizeof *d->numbers);
    if (!d->layers || !d->ops || !d->order || !d->numbers)
        return qat_out_of_memory(err, "debugger");
    for (int32_t i = 0; i < qi_node_count(d->model); i++) {
        const qi_node *op = qi_node_at(d->model, i);
        const qi_tensor *y = qi_tensor_at(d->model, op->outputs[0]);
        if (!qat_real_is_activation(y))
            continue;
        qat_debug_layer *layer = &d->layers[d->n_layers];
        snprintf(d->numbers[i], sizeof d->numbers[i], "op %d", (int)i);
        layer->name = *op->name ? op->name : d->numbers[i];
        layer->op = op->kernel->name;
        layer->tensor = y->name;
        d->order[d->n_layers] = d->n_layers;
        d->ops[d->n_layers++] = op;
    }
    return QAT_OK;
}

static qat_status check_model(const qat_debug *d, qat_error *err)
{
    const qi_model *m = d->model;
    if (qi_state_count(m))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "a model with states cannot be compared layer by layer: its values depend "
                        "on the steps before");
    if (qi_input_count(m) != 1 || qi_tensor_at(m, qi_input_at(m, 0))->type > QI_S8)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "a model with %d input%s, or with one that is not 8-bit codes, cannot be "
                        "compared on data",
                        (int)qi_input_count(m), qat_plural(qi_input_count(m)));
    return QAT_OK;
}

/** The values of all tensors are kept, of a batch. */
static qat_status check_memory(const qat_debug *d, const qat_registry *registry, qat_error *err)
{
    uint64_t const most = qat_registry_memory(registry);
    uint64_t bytes = 0;
    for (int i = 0; i < d->n_tensors; i++)
        bytes += 2 * sizeof(float) * (uint64_t)d->batch *
                 (uint64_t)qat_real_count(qi_tensor_at(d->model, i));
    if (most == 0 || bytes <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_LIMIT,
                    "the values of all layers for %d samples take %llu MiB, but %llu MiB are "
                    "allowed (--max-memory)",
                    d->batch, qat_mib(bytes), qat_mib(most));
}

static qat_status create(qat_debug *d, const qat_debug_source *s, qat_error *err)
{
    const qat_restored *given = s->checkpoint ? s->checkpoint : s->against;
    const qat_registry *registry = s->registry ? s->registry : given ? given->registry : NULL;
    if (!registry || (!s->model && !s->checkpoint))
        return qat_fail(err, QAT_ERR_ARGUMENT, "debugger: there is no %s",
                        registry ? "model and no checkpoint" : "registry of ops");
    d->batch = DEBUG_BATCH;
    qat_status st = open_networks(d, s, err);
    if (st)
        return st;
    d->model = qi_host_model(d->host);
    d->n_tensors = qi_tensor_count(d->model);
    d->tensors = calloc((size_t)d->n_tensors + 1, sizeof *d->tensors);
    if (!d->tensors)
        return qat_out_of_memory(err, "debugger");
    st = check_model(d, err);
    if (!st)
        st = check_memory(d, registry, err);
    for (int i = 0; !st && i < d->n_tensors; i++)
        st = add_tensor(d, i, err);
    if (!st)
        st = qat_real_graph_create(&d->own, d->model, registry, d->batch, err);
    if (!st)
        st = open_views(d, err);
    if (!st)
        st = add_layers(d, err);
    if (!st && s->dump)
        st = debug_read_dump(d, s->dump, qat_registry_memory(registry), err);
    return st;
}

qat_status qat_debug_create(qat_debug **debug, const qat_debug_source *source, qat_error *err)
{
    qat_debug *d = calloc(1, sizeof *d);
    *debug = NULL;
    if (!d)
        return qat_out_of_memory(err, "debugger");
    qat_status const st = create(d, source, err);
    if (st)
        qat_debug_free(d);
    else
        *debug = d;
    return st;
}

static void view_free(debug_view *v)
{
    free(v->of);
    free(v->tensor);
}

void qat_debug_free(qat_debug *d)
{
    if (!d)
        return;
    for (int i = 0; d->tensors && i < d->n_tensors; i++) {
        free(d->tensors[i].engine);
        free(d->tensors[i].real);
        free(d->tensors[i].foreign);
        free(d->tensors[i].of);
    }
    view_free(&d->by_own);
    view_free(&d->by_real);
    view_free(&d->by_simulated);
    qat_real_graph_free(&d->own);
    if (d->real != d->folded)
        qat_graph_free(d->real);
    qat_graph_free(d->folded);
    qat_graph_free(d->simulated);
    qi_host_close(d->made);
    free(d->tensors);
    free(d->layers);
    free(d->ops);
    free(d->order);
    free(d->numbers);
    free(d);
}

/* ------------------------------------------------------------------ running */

/** Where the engine's values of a sample go. */
struct keep {
    qat_debug *d;
    int sample;
};

static void keep(void *context, const qi_model *model, int32_t index, const void *data)
{
    const struct keep *at = context;
    debug_tensor *t = &at->d->tensors[index];
    if (!t->engine)
        return;
    float *values = t->engine + (size_t)at->sample * t->count;
    float const scale = qat_real_scale(t->t);
    for (size_t i = 0; i < t->count; i++) {
        int32_t const code = (int32_t)qi_value_at(t->t->type, data, i);
        values[i] = scale * (float)(code - t->t->zero_point);
        t->seen[(uint32_t)code % DEBUG_CODES] = 1;
    }
}

static qat_status run_batch(qat_debug *d, qat_input_coder *coder, const qat_batch *batch, int count,
                            qat_error *err)
{
    const uint8_t *codes = qat_input_coder_codes(coder, batch, count);
    size_t const bytes = qi_tensor_at(d->model, qi_input_at(d->model, 0))->bytes;
    void **outputs = calloc((size_t)qi_output_count(d->model) + 1, sizeof *outputs);
    if (!outputs)
        return qat_out_of_memory(err, "debugger");
    for (int i = 0; i < count; i++) {
        const void *in[1] = {codes + (size_t)i * bytes};
        qi_host_run_visit(d->host, NULL, in, outputs, keep, &(struct keep){d, i});
    }
    free(outputs);
    qat_status const st = debug_compare_batch(d, batch->real, count, err);
    d->samples += count;
    return st;
}

static qat_status run_data(qat_debug *d, qat_input_coder *coder, qat_loader *loader, int64_t total,
                           qat_tick *tick, void *context, qat_error *err)
{
    qat_status st = QAT_OK;
    while (!st && d->samples < total) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (st)
            break;
        int64_t const left = total - d->samples;
        st = run_batch(d, coder, batch, batch->count < left ? batch->count : (int)left, err);
        if (!st && tick && !tick(context, d->samples, total))
            st = qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples",
                          (long long)d->samples, (long long)total);
    }
    return st;
}

qat_status qat_debug_run(qat_debug *d, const qat_input_info *input, const qat_dataset *data,
                         int64_t samples, qat_tick *tick, void *context, qat_error *err)
{
    const qi_tensor *in = qi_tensor_at(d->model, qi_input_at(d->model, 0));
    qat_loader_options const o = {.batch = d->batch, .threads = 1, .prefetch = 4};
    qat_loader *loader = NULL;
    qat_input_coder coder = {0};
    int64_t total = qat_dataset_info_of(data)->count;
    if (samples > 0 && samples < total)
        total = samples;
    if (d->dumped && d->dumped < total)
        total = d->dumped;
    if (d->samples)
        return qat_fail(err, QAT_ERR_STATE, "these networks have been compared already");
    qat_status st = d->input ? qat_input_equal(d->input, input, err) : QAT_OK;
    if (!st)
        st = qat_input_coder_init(&coder, input, (qi_type)in->type, in->bits, qat_real_scale(in),
                                  in->zero_point, in->bytes, d->batch, err);
    if (!st)
        st = qat_open_loader(&loader, data, input, &o, err);
    if (!st)
        st = run_data(d, &coder, loader, total, tick, context, err);
    if (!st)
        st = debug_judge(d, err);
    qat_loader_free(loader);
    free(coder.codes);
    return st;
}

/* ------------------------------------------------------------------ questions */

const qi_model *qat_debug_model(const qat_debug *d)
{
    return d->model;
}

int64_t qat_debug_samples(const qat_debug *d)
{
    return d->samples;
}

int qat_debug_layers(const qat_debug *d)
{
    return d->n_layers;
}

const qat_debug_layer *qat_debug_layer_at(const qat_debug *d, int i)
{
    return &d->layers[i];
}

int qat_debug_worst(const qat_debug *d, int rank)
{
    return d->order[rank];
}

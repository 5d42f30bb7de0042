/** Time the runs of a model, and its layers. */
#include "tools/bench/bench.h"

#include "tools/common/roof.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_RUNS = 5, MOST_ROOFS = 16 };
static const double layer_seconds = 1;

/** The product of matrices that a convolution (of each group) or a fully connected layer is. */
static void find_product(const qi_model *model, const qi_node *node, bench_layer *layer)
{
    if (node->kernel->products != QI_PRODUCTS_ROWS)
        return;
    const qi_tensor *w = qi_tensor_at(model, node->inputs[1]);
    layer->n = w->dims[0];
    layer->k = (int64_t)w->bytes / w->dims[0];
    layer->rows = layer->macs > 0 ? (int64_t)(layer->macs / (double)w->bytes) : 0;
    layer->window_h = w->rank == 4 ? w->dims[1] : 1;
    layer->window_w = w->rank == 4 ? w->dims[2] : 1;
}

/* ------------------------------------------------------------------ runs */

/** A model and its buffers. */
typedef struct runner {
    const qi_host *host;
    const qi_model *model;
    tool_buffers buffers;
} runner;

static void fill_inputs(void *context, qat_rng *rng)
{
    const runner *r = context;
    for (int32_t i = 0; i < qi_input_count(r->model); i++) {
        size_t const bytes = qi_tensor_at(r->model, qi_input_at(r->model, i))->bytes;
        for (size_t k = 0; k < bytes; k += 8) {
            uint64_t const word = qat_rng_next(rng);
            memcpy((uint8_t *)r->buffers.in[i] + k, &word, bytes - k < 8 ? bytes - k : 8);
        }
    }
}

static void run_visited(const runner *r, qi_visit *visit, void *context)
{
    const void *const *in = (const void *const *)r->buffers.in;
    qi_host_run_visit(r->host, NULL, in, r->buffers.out, visit, context);
}

static void run_once(void *context)
{
    run_visited(context, NULL, NULL);
}

/* ------------------------------------------------------------------ layers */

/** State while the nodes of one run are visited. */
typedef struct stopwatch {
    bench_layer *layers;
    double since; /* when the previously visited tensor ended */
    int32_t skip; /* visits left that do not end a layer (inputs, second outputs) */
    int32_t node; /* the node that is running */
} stopwatch;

static void lap(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    stopwatch *w = context;
    (void)tensor;
    (void)data;
    if (w->skip) {
        w->skip--;
    } else {
        double const ms = 1e3 * (tool_now() - w->since);
        bench_layer *layer = &w->layers[w->node];
        layer->ms = layer->ms > 0 && layer->ms < ms ? layer->ms : ms;
        w->skip = qi_node_at(model, w->node++)->n_outputs - 1;
    }
    w->since = tool_now();
}

static void time_layers(const runner *r, int64_t runs, bench_layer *layers)
{
    double const end = tool_now() + layer_seconds;
    for (int64_t i = 0; i < LEAST_RUNS || (i < runs && tool_now() < end); i++) {
        stopwatch w = {.layers = layers, .since = tool_now(), .skip = qi_input_count(r->model)};
        run_visited(r, lap, &w);
    }
}

/* ------------------------------------------------------------------ all of it */

/** GMAC/s of each instruction sequence of this build; each is measured on first use. */
typedef struct roofs {
    double gmacs[MOST_ROOFS];
} roofs;

/** The roof of the named sequence. If the name is NULL or unknown: of the fastest one in use. */
static double roof_of(roofs *known, const bench_result *b, const char *sequence)
{
    const tool_roof *roof;
    for (int i = 0; sequence && i < MOST_ROOFS && (roof = tool_roof_at(i)); i++) {
        if (strcmp(roof->isa, qi_host_isa(b->host)) != 0 || strcmp(roof->sequence, sequence) != 0)
            continue;
        if (known->gmacs[i] <= 0)
            known->gmacs[i] = tool_roof_measure(roof);
        return known->gmacs[i];
    }
    return b->roof;
}

/** How many processors node i keeps busy. A scalar kernel of the core uses one thread. */
static int processors_of(const bench_result *b, int32_t i)
{
    int const both = qi_host_threads(b->host) < b->cores ? qi_host_threads(b->host) : b->cores;
    return qi_host_node_is_fast(b->host, i) ? both : 1;
}

static void count_macs(bench_result *b)
{
    const qi_model *model = b->model;
    roofs known = {{0}};
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        bench_layer *layer = &b->layers[i];
        double const roof = roof_of(&known, b, qi_host_node_sequence(b->host, i));
        layer->macs = (double)qi_node_multiply_adds(model, qi_node_at(model, i));
        find_product(model, qi_node_at(model, i), layer);
        layer->roof_ms = roof > 0 ? 1e-6 * layer->macs / (roof * processors_of(b, i)) : 0;
        b->macs += layer->macs;
        b->roof_ms += layer->roof_ms;
    }
}

static qat_status measure(runner *r, bench_result *b, const bench_protocol *p, qat_error *err)
{
    b->layers = calloc((size_t)qi_node_count(b->model) + 1, sizeof *b->layers);
    if (!b->layers)
        return qat_out_of_memory(err, NULL);
    const tool_roof *roof = tool_roof_of(qi_host_isa(b->host), &b->roof);
    b->sequence = roof ? roof->sequence : NULL;
    count_macs(b);
    bench_subject const subject = {fill_inputs, run_once, r};
    qat_status const st = bench_time(&b->times, &subject, p, err);
    if (!st)
        time_layers(r, b->times.runs, b->layers);
    return st;
}

qat_status bench_measure(bench_result *b, tool_model *m, const bench_protocol *p, qat_error *err)
{
    runner r = {.host = m->host, .model = m->model};
    *b = (bench_result){.host = m->host, .model = m->model, .cores = bench_cores()};
    qat_status st = tool_buffers_create(&r.buffers, m->model, err);
    if (!st)
        st = measure(&r, b, p, err);
    tool_buffers_free(&r.buffers);
    return st;
}

void bench_result_free(bench_result *b)
{
    free(b->layers);
    *b = (bench_result){0};
}

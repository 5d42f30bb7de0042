/**
 * Latency of a checkpoint's float network, for comparison with the integer engine. It times the
 * forward pass of the training library. Batch norm is folded into weights and biases, because the
 * engine has it folded too.
 */
#include "tools/bench/bench.h"

#include "base/parallel.h"

#include <stdlib.h>

/** Plan the same graph for evaluation, where values share memory. */
static qat_status plan_anew(qat_graph **graph, const qat_graph *from, const qat_registry *registry,
                            qat_error *err)
{
    char *text = NULL;
    qat_status st = qat_graph_write(from, &text, err);
    if (!st)
        st = qat_graph_read(graph, registry, text, "folded", err);
    if (!st)
        st = qat_graph_plan(*graph, 1, QAT_PLAN_EVAL, err);
    if (!st) {
        qat_graph_init_params(*graph, 0);
        qat_graph_copy_params(*graph, from);
    }
    free(text);
    return st;
}

static qat_status fold(qat_graph **graph, const qat_restored *restored, qat_error *err)
{
    qat_graph *trained = NULL, *folded = NULL;
    qat_status st = qat_restored_read_graph(restored, &trained, 1, QAT_PLAN_EVAL, err);
    if (!st)
        st = qat_fold_batch_norm(&folded, trained, 1, err);
    if (!st)
        st = plan_anew(graph, folded, qat_restored_registry(restored), err);
    qat_graph_free(folded);
    qat_graph_free(trained);
    return st;
}

/**
 * Fill the inputs with values near [-1, 1], as pixels have. Labels stay 0 if the graph has them.
 */
static void fill(void *context, qat_rng *rng)
{
    qat_node *input = qat_graph_node(context, 0);
    for (size_t i = 0; i < qat_shape_count(&input->shape); i++)
        input->value[i] = (qat_real)(2 * qat_rng_uniform(rng) - 1);
}

static void run(void *context)
{
    qat_graph_forward(context, &(qat_run){.mode = QAT_MODE_EVAL});
}

static qat_status measure(bench_float *r, const qat_restored *restored, const bench_protocol *p,
                          qat_error *err)
{
    qat_graph *graph = NULL;
    qat_network_size size;
    qat_status st = qat_network_size_of(qat_restored_graph(restored), &size, err);
    if (!st)
        st = fold(&graph, restored, err);
    if (!st) {
        bench_subject const subject = {fill, run, graph};
        r->macs = (double)size.macs;
        st = bench_time(&r->times, &subject, p, err);
    }
    qat_graph_free(graph);
    return st;
}

qat_status bench_measure_float(bench_float *r, const char *path, const tool_run *how,
                               const bench_protocol *p, qat_error *err)
{
    qat_restored *restored = NULL;
    *r = (bench_float){.threads = (int)how->threads, .cores = bench_cores()};
    qat_set_threads(r->threads);
    qat_status st = tool_restore(&restored, path, how->plugins, err);
    if (!st)
        st = measure(r, restored, p, err);
    qat_restored_free(restored);
    return st;
}

/** Writes a .qm with a known-answer test, and checks that the test passes. */
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

/** The engine's answers to some inputs, one buffer per output, of all steps. */
struct answers {
    const qat_qgraph *graph;
    size_t steps;
    uint8_t **outputs;
};

static void free_answers(struct answers *a)
{
    for (int i = 0; a->outputs && i < a->graph->n_outputs; i++)
        free(a->outputs[i]);
    free(a->outputs);
}

static qat_status alloc_answers(struct answers *a, qat_error *err)
{
    bool good = (a->outputs = calloc((size_t)a->graph->n_outputs + 1, sizeof *a->outputs)) != NULL;
    for (int i = 0; good && i < a->graph->n_outputs; i++)
        good = (a->outputs[i] = calloc(
                    a->steps, qat_qtensor_bytes(&a->graph->tensors[a->graph->outputs[i]]))) != NULL;
    return good ? QAT_OK : qat_out_of_memory(err, "known-answer test");
}

qat_status qat_engine_open(qi_host **host, const void *qm, size_t count,
                           const qi_kernel_list *kernels, const char *isa, qat_error *err)
{
    qi_host_options const how = {.struct_size = sizeof how,
                                 .custom = kernels,
                                 .isa = isa,
                                 .limits = QI_NO_LIMITS,
                                 .keep_packed = isa && strcmp(isa, "scalar") == 0};
    return qi_host_open_bytes(host, qm, count, "the engine refuses the model: model", &how, err);
}

/**
 * Check that the model's outputs have the sizes of the graph's, because that many bytes are
 * written.
 */
static qat_status check_outputs(const struct answers *a, const qi_model *model, qat_error *err)
{
    const qat_qgraph *graph = a->graph;
    bool same = qi_output_count(model) == graph->n_outputs;
    for (int i = 0; same && i < graph->n_outputs; i++)
        same = qi_tensor_at(model, qi_output_at(model, i))->bytes ==
               qat_qtensor_bytes(&graph->tensors[graph->outputs[i]]);
    return same ? QAT_OK
                : qat_fail(err, QAT_ERR_MISMATCH,
                           "the known-answer test fails: the outputs of the model are not the "
                           "graph's");
}

/** Run all steps of a host whose states are reset. */
static qat_status run_steps(const struct answers *a, qi_host *host, const void *const *inputs,
                            qat_error *err)
{
    const qat_qgraph *g = a->graph;
    const void **in = calloc((size_t)g->n_inputs + 1, sizeof *in);
    void **out = calloc((size_t)g->n_outputs + 1, sizeof *out);
    bool const good = in && out;
    for (size_t step = 0; step < a->steps && good; step++) {
        for (int i = 0; i < g->n_inputs; i++)
            in[i] =
                (const uint8_t *)inputs[i] + step * qat_qtensor_bytes(&g->tensors[g->inputs[i]]);
        for (int i = 0; i < g->n_outputs; i++)
            out[i] = a->outputs[i] + step * qat_qtensor_bytes(&g->tensors[g->outputs[i]]);
        qi_host_run(host, in, out);
    }
    free(in);
    free(out);
    return good ? QAT_OK : qat_out_of_memory(err, "known-answer test");
}

/** Run the engine, in the fastest way here, on a model that has no known-answer test yet. */
static qat_status answer(struct answers *a, const void *qm, size_t count,
                         const qi_kernel_list *kernels, const void *const *inputs, qat_error *err)
{
    qi_host *host = NULL;
    qat_status st = qat_engine_open(&host, qm, count, kernels, NULL, err);
    if (st)
        return st;
    st = check_outputs(a, qi_host_model(host), err);
    if (!st)
        st = run_steps(a, host, inputs, err);
    qi_host_close(host);
    return st;
}

/** Check that the final file opens and passes its own test on the core's kernels. */
static qat_status self_test(const uint8_t *qm, size_t count, const qi_kernel_list *kernels,
                            size_t *arena_bytes, qat_error *err)
{
    qi_host *host = NULL;
    qat_status st = qat_engine_open(&host, qm, count, kernels, "scalar", err);
    if (st)
        return st;
    st = qi_host_self_test(host, "the known-answer test fails: model", err);
    *arena_bytes = qi_host_sizes(host).arena;
    qi_host_close(host);
    return st;
}

qat_status qat_qm_write_answered(const qat_qgraph *graph, const qat_qm_metadata *metadata,
                                 const qi_kernel_list *kernels, const void *const *inputs,
                                 uint8_t **bytes, size_t *count, size_t *arena_bytes,
                                 qat_error *err)
{
    size_t const steps = metadata->kat_steps ? (size_t)metadata->kat_steps : 1;
    struct answers a = {.graph = graph, .steps = steps};
    qat_qm_metadata m = *metadata;
    uint8_t *draft = NULL;
    size_t draft_bytes = 0;
    m.kat_inputs = m.kat_outputs = NULL;
    m.kat_steps = 0;
    qat_status st = alloc_answers(&a, err);
    if (!st)
        st = qat_qm_write(graph, &m, &draft, &draft_bytes, err);
    if (!st)
        st = answer(&a, draft, draft_bytes, kernels, inputs, err);
    free(draft);
    m.kat_inputs = inputs;
    m.kat_steps = metadata->kat_steps;
    m.kat_outputs = (const void *const *)a.outputs;
    if (!st)
        st = qat_qm_write(graph, &m, bytes, count, err);
    if (!st)
        st = self_test(*bytes, *count, kernels, arena_bytes, err);
    free_answers(&a);
    return st;
}

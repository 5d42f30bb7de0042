/** Evaluates an integer graph over a data set, by the exact evaluation. */
#include "evaluate/evaluate.h"

#include "base/words.h"

#include <stdlib.h>

typedef struct exact_state {
    qat_exact *exact;
    const qat_qgraph *graph;
    qat_input_coder coder;
} exact_state;

static qat_status exact_batch(void *state, const qat_batch *batch, int count, qat_outputs *outputs,
                              qat_error *err)
{
    exact_state *s = state;
    const void *in[1] = {qat_input_coder_codes(&s->coder, batch, count)};
    qat_status const st = qat_exact_run(s->exact, in, count, err);
    for (; !st && outputs->n < s->graph->n_outputs; outputs->n++)
        outputs->at[outputs->n] = qat_output_of_exact(s->exact, s->graph, outputs->n);
    return st;
}

qat_status qat_evaluate_exact(const qat_qgraph *graph, const qat_registry *registry,
                              const qat_input_info *input, const qat_dataset *data, int batch,
                              int64_t limit, qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err)
{
    qat_evaluation const p = {input, data, batch, limit, tick, context, NULL, 1};
    exact_state s = {.graph = graph};
    *accuracy = (qat_accuracy){0};
    if (graph->n_inputs != 1 || graph->n_outputs < 1 || graph->n_outputs > QAT_MAX_OUTPUTS)
        return qat_fail(
            err, QAT_ERR_UNSUPPORTED,
            "evaluation: a model with %d input%s and %d output%s, but there must be 1, and 1 to %d",
            graph->n_inputs, qat_plural(graph->n_inputs), graph->n_outputs,
            qat_plural(graph->n_outputs), QAT_MAX_OUTPUTS);
    const qat_qtensor *in = &graph->tensors[graph->inputs[0]];
    qat_status st = qat_input_coder_init(&s.coder, input, in->type, in->bits, in->scale,
                                         in->zero_point, qat_qtensor_count(in), batch, err);
    if (!st)
        st = qat_exact_create(&s.exact, graph, registry, batch, err);
    if (!st)
        st = qat_evaluation_run(&p, exact_batch, &s, accuracy, err);
    qat_exact_free(s.exact);
    free(s.coder.codes);
    return st;
}

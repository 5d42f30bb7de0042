/** Evaluates a float graph over a data set. */
#include "evaluate/evaluate.h"

#include <string.h>

qat_status qat_feed_graph(qat_graph *graph, const qat_batch *batch, int count, qat_error *err)
{
    qat_node *input = qat_graph_find(graph, QAT_INPUT_NAME);
    qat_node *label = qat_graph_find(graph, QAT_LABEL_NAME);
    qat_status const st = qat_graph_set_batch(graph, count, err);
    if (st)
        return st;
    memcpy(input->value, batch->real, qat_shape_count(&input->shape) * sizeof *input->value);
    for (int i = 0; label && i < count; i++)
        label->value[i] = (float)batch->labels[i];
    return QAT_OK;
}

static qat_status graph_batch(void *state, const qat_batch *batch, int count, qat_outputs *outputs,
                              qat_error *err)
{
    qat_graph *graph = state;
    qat_status const st = qat_feed_graph(graph, batch, count, err);
    if (st)
        return st;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(graph, &run);
    for (; outputs->n < qat_graph_outputs(graph); outputs->n++) {
        const qat_node *out = qat_graph_output_at(graph, outputs->n);
        outputs->at[outputs->n] = (qat_output){.name = out->name,
                                               .n = qat_shape_count(&out->shape) / (size_t)count,
                                               .real = out->value};
    }
    return qat_graph_run_status(graph, err);
}

qat_status qat_evaluate_graph(qat_graph *graph, const qat_input_info *input,
                              const qat_dataset *data, int batch, int64_t limit, qat_tick *tick,
                              void *context, qat_accuracy *accuracy, qat_error *err)
{
    return qat_evaluate_graph_among(NULL, 1, graph, input, data, batch, limit, tick, context,
                                    accuracy, err);
}

qat_status qat_evaluate_graph_among(const qat_ranks *ranks, int threads, qat_graph *graph,
                                    const qat_input_info *input, const qat_dataset *data, int batch,
                                    int64_t limit, qat_tick *tick, void *context,
                                    qat_accuracy *accuracy, qat_error *err)
{
    qat_evaluation const p = {input, data, batch, limit, tick, context, ranks, threads};
    *accuracy = (qat_accuracy){0};
    if (!qat_graph_find(graph, QAT_INPUT_NAME) || !qat_graph_outputs(graph))
        return qat_fail(err, QAT_ERR_ARGUMENT, "the graph has no node %s, or no output",
                        QAT_INPUT_NAME);
    if (qat_graph_outputs(graph) > QAT_MAX_OUTPUTS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "evaluation: the graph has %d outputs, but there may be at most %d",
                        qat_graph_outputs(graph), QAT_MAX_OUTPUTS);
    return qat_evaluation_run(&p, graph_batch, graph, accuracy, err);
}

/** Evaluates a float graph over a data set. */
#include "train/evaluate.h"

#include <math.h>
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

typedef struct graph_state {
    qat_graph *graph;
    qat_accuracy *accuracy;
    const qat_detector *detector; /* or NULL */
    qat_findings *findings;
    qat_answers *answers; /* if the network has attributes, else NULL */
} graph_state;

/** Find the boxes of a batch from the values of the outputs. */
static qat_status find_boxes(const graph_state *s, const qat_batch *batch, int count,
                             qat_error *err)
{
    const qat_node *codes = qat_graph_output_at(s->graph, 0);
    const qat_node *scores = qat_graph_output_at(s->graph, 1);
    size_t const n = (size_t)codes->shape.dims[1];
    size_t const k = (size_t)qat_shape_channels(&scores->shape);
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < (size_t)count; i++)
        st = qat_findings_choose(s->findings, s->detector, &batch->objects[i],
                                 codes->value + i * n * 4, scores->value + i * n * k, err);
    return st;
}

/** Check the scores of a batch: NaN and infinity would be ranked but mean nothing. */
static qat_status check_scores(const qat_node *out, int count, int classes, qat_error *err)
{
    for (int i = 0; i < count * classes; i++)
        if (!isfinite(out->value[i]))
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "evaluation: the score of class %d is %s (output %s)", i % classes,
                            isnan(out->value[i]) ? "NaN" : "infinite", out->name);
    return QAT_OK;
}

static qat_status graph_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    graph_state *s = state;
    qat_status const st = qat_feed_graph(s->graph, batch, count, err);
    if (st)
        return st;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(s->graph, &run);
    if (s->detector)
        return find_boxes(s, batch, count, err);
    if (s->answers)
        return qat_answers_add_graph(s->answers, s->graph, batch, count, err);
    const qat_node *out = qat_graph_output_at(s->graph, 0);
    int const classes = qat_shape_channels(&out->shape);
    qat_accuracy_add(s->accuracy, out->value, count, classes, batch->labels);
    return check_scores(out, count, classes, err);
}

qat_status qat_evaluate_graph(qat_graph *graph, const qat_input_info *input,
                              const qat_dataset *data, int batch, int64_t limit, qat_tick *tick,
                              void *context, qat_accuracy *accuracy, qat_error *err)
{
    qat_evaluation const p = {input, data, batch, limit, tick, context};
    graph_state s = {.graph = graph, .accuracy = accuracy, .detector = input->detector};
    *accuracy = (qat_accuracy){0};
    if (!qat_graph_find(graph, QAT_INPUT_NAME) || !qat_graph_outputs(graph))
        return qat_fail(err, QAT_ERR_ARGUMENT, "the graph has no node %s, or no output",
                        QAT_INPUT_NAME);
    qat_status const st = qat_evaluation_check(data, input->detector != NULL, err);
    if (!st && input->attributes.count)
        return qat_evaluation_answers(&p, graph_batch, &s, &s.answers, accuracy, err);
    if (st || !input->detector)
        return st ? st : qat_evaluation_run(&p, graph_batch, &s, err);
    return qat_evaluation_boxes(&p, graph_batch, &s, &s.findings, input->classes, accuracy, err);
}

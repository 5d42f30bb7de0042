/** Evaluates an integer graph over a data set, by the exact evaluation. */
#include "train/evaluate.h"

#include "base/words.h"

#include <stdlib.h>

typedef struct exact_state {
    qat_exact *exact;
    const qat_qgraph *graph;
    qat_input_coder coder;
    qat_accuracy *accuracy;
    const qat_detector *detector; /* or NULL */
    qat_findings *findings;
    float *real[2];       /* outputs of a detector for one sample */
    qat_answers *answers; /* if the network has attributes, else NULL */
} exact_state;

/** Sample i of output o as real numbers. */
static void decode_output(const exact_state *s, int o, size_t i)
{
    qat_codes const codes = qat_codes_of_exact(s->exact, s->graph, o);
    qat_codes_to_real(&codes, i, s->real[o]);
}

static qat_status find_exact_boxes(const exact_state *s, const qat_batch *batch, int count,
                                   qat_error *err)
{
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < (size_t)count; i++) {
        decode_output(s, 0, i);
        decode_output(s, 1, i);
        st = qat_findings_choose(s->findings, s->detector, &batch->objects[i], s->real[0],
                                 s->real[1], err);
    }
    return st;
}

static qat_status add_exact_answers(const exact_state *s, const qat_batch *batch, int count,
                                    qat_error *err)
{
    qat_codes const scores = qat_codes_of_exact(s->exact, s->graph, 0);
    qat_codes const value = qat_codes_of_exact(s->exact, s->graph, 1);
    return qat_answers_add_codes(s->answers, &scores, &value, batch, count, err);
}

static qat_status exact_detector(exact_state *s, const qat_detector *detector, qat_error *err)
{
    s->detector = detector;
    for (int o = 0; detector && o < 2; o++) {
        s->real[o] =
            calloc(qat_qtensor_count(&s->graph->tensors[s->graph->outputs[o]]), sizeof *s->real[o]);
        if (!s->real[o])
            return qat_out_of_memory(err, "evaluation");
    }
    return QAT_OK;
}

static qat_status exact_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    exact_state *s = state;
    const void *in[1] = {qat_input_coder_bytes(&s->coder, batch, count)};
    qat_status const st = qat_exact_run(s->exact, in, count, err);
    if (st)
        return st;
    if (s->detector)
        return find_exact_boxes(s, batch, count, err);
    if (s->answers)
        return add_exact_answers(s, batch, count, err);
    const qat_qtensor *out = &s->graph->tensors[s->graph->outputs[0]];
    qat_accuracy_add_codes(s->accuracy, qat_exact_tensor(s->exact, s->graph->outputs[0]), out->type,
                           count, out->dims[out->rank - 1], batch->labels);
    return QAT_OK;
}

qat_status qat_evaluate_exact(const qat_qgraph *graph, const qat_registry *registry,
                              const qat_input_info *input, const qat_dataset *data, int batch,
                              int64_t limit, qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err)
{
    qat_evaluation const p = {input, data, batch, limit, tick, context};
    exact_state s = {.graph = graph, .accuracy = accuracy};
    *accuracy = (qat_accuracy){0};
    if (graph->n_inputs != 1 || graph->n_outputs < 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "a model with %d input%s and %d output%s",
                        graph->n_inputs, qat_plural(graph->n_inputs), graph->n_outputs,
                        qat_plural(graph->n_outputs));
    const qat_qtensor *in = &graph->tensors[graph->inputs[0]];
    qat_status st = qat_input_coder_init(&s.coder, input, in->type, in->bits, in->scale,
                                         in->zero_point, qat_qtensor_count(in), batch, err);
    if (!st)
        st = qat_exact_create(&s.exact, graph, registry, batch, err);
    if (!st)
        st = qat_evaluation_check(data, input->detector != NULL, err);
    if (!st)
        st = exact_detector(&s, input->detector, err);
    if (!st && s.detector)
        st = qat_evaluation_boxes(&p, exact_batch, &s, &s.findings, input->classes, accuracy, err);
    else if (!st && input->attributes.count)
        st = qat_evaluation_answers(&p, exact_batch, &s, &s.answers, accuracy, err);
    else if (!st)
        st = qat_evaluation_run(&p, exact_batch, &s, err);
    free(s.real[0]);
    free(s.real[1]);
    qat_exact_free(s.exact);
    free(s.coder.codes);
    return st;
}

/**
 * Adds the answers of a batch: from the values of a float graph, or from the codes of integer
 * models.
 */
#include "train/attributes.h"

#include <stdlib.h>
#include <string.h>

static const float *targets_of(const qat_batch *batch, int i, int count)
{
    return batch->targets + (size_t)i * ((size_t)count + 1);
}

static float sum_of(const float *values, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += (double)values[k];
    return (float)sum;
}

qat_status qat_answers_add_graph(qat_answers *answers, const qat_graph *graph,
                                 const qat_batch *batch, int count, qat_error *err)
{
    const qat_node *scores = qat_graph_output_at(graph, 0);
    const qat_node *value = qat_graph_outputs(graph) > 1 ? qat_graph_output_at(graph, 1) : NULL;
    int const n = qat_shape_channels(&scores->shape);
    int const outputs = value ? qat_shape_channels(&value->shape) : 0;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < count; i++) {
        float const sum = value ? sum_of(value->value + (size_t)i * (size_t)outputs, outputs) : 0;
        st = qat_answers_add(answers, scores->value + (size_t)i * (size_t)n, sum,
                             targets_of(batch, i, n), err);
    }
    return st;
}

void qat_codes_to_real(const qat_codes *c, size_t i, float *real)
{
    const uint8_t *codes = (const uint8_t *)c->codes + i * c->n;
    for (size_t k = 0; k < c->n; k++)
        real[k] = qat_sum_of_codes(c->type, c->scale, c->zero_point, codes + k, 1);
}

static float value_sum(const qat_codes *c, int i)
{
    return qat_sum_of_codes(c->type, c->scale, c->zero_point,
                            (const uint8_t *)c->codes + (size_t)i * c->n, c->n);
}

qat_status qat_answers_add_codes(qat_answers *answers, const qat_codes *scores,
                                 const qat_codes *value, const qat_batch *batch, int count,
                                 qat_error *err)
{
    float *real = malloc(scores->n * sizeof *real);
    qat_status st = real ? QAT_OK : qat_out_of_memory(err, "evaluation");
    for (int i = 0; !st && i < count; i++) {
        qat_codes_to_real(scores, (size_t)i, real);
        st = qat_answers_add(answers, real, value->n ? value_sum(value, i) : 0,
                             targets_of(batch, i, (int)scores->n), err);
    }
    free(real);
    return st;
}

qat_codes qat_codes_of_exact(const qat_exact *exact, const qat_qgraph *graph, int output)
{
    if (output >= graph->n_outputs)
        return (qat_codes){0};
    const qat_qtensor *t = &graph->tensors[graph->outputs[output]];
    return (qat_codes){.codes = qat_exact_tensor(exact, graph->outputs[output]),
                       .n = qat_qtensor_count(t),
                       .type = t->type,
                       .scale = t->scale,
                       .zero_point = t->zero_point};
}

qat_codes qat_codes_of_model(const qi_model *model, int output, const void *codes)
{
    if (output >= (int)qi_output_count(model))
        return (qat_codes){0};
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, output));
    qat_codes c = {.codes = codes,
                   .n = qat_tensor_values(t),
                   .type = (qi_type)t->type,
                   .zero_point = t->zero_point};
    memcpy(&c.scale, &t->scale_bits, sizeof c.scale);
    return c;
}

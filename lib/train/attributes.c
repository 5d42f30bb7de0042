/** Makes the targets of the heads from a sample's targets, and the epilogue of the .qm. */
#include "train/attributes.h"

#include <math.h>
#include <string.h>

qat_attributes qat_attributes_of(const qat_recipe *r, const qat_dataset_info *data)
{
    double const range = r->attributes.high - r->attributes.low;
    return (qat_attributes){.count = data->classes,
                            .outputs = data->has_value ? qat_net_value_outputs(r) : 0,
                            .low = (float)r->attributes.low,
                            .width = (float)(range / (double)r->attributes.steps)};
}

void qat_value_targets(const qat_attributes *a, bool ordered, float value, float *targets)
{
    float const s = (value - a->low) / a->width;
    for (int k = 0; k < a->outputs; k++) {
        float const t = s - (float)k;
        targets[k] = !ordered || isnan(t) ? t : t < 0 ? 0 : t > 1 ? 1 : t;
    }
}

void qat_feed_attributes(const qat_attributes *a, bool ordered, qat_graph *graph,
                         const qat_batch *batch)
{
    qat_node *attributes = qat_graph_find(graph, QAT_TARGET_ATTRIBUTES_NAME);
    qat_node *value = qat_graph_find(graph, QAT_TARGET_VALUE_NAME);
    size_t const count = (size_t)a->count, outputs = (size_t)a->outputs;
    for (size_t i = 0; i < (size_t)batch->count; i++) {
        const float *targets = batch->targets + i * (count + 1);
        memcpy(attributes->value + i * count, targets, count * sizeof *targets);
        if (value)
            qat_value_targets(a, ordered, targets[count], value->value + i * outputs);
    }
}

void qat_count_attributes(const qat_attributes *a, const qat_graph *graph, const qat_batch *batch,
                          int64_t *known, int64_t *right)
{
    const float *scores = qat_graph_output_at(graph, 0)->value;
    *known = *right = 0;
    for (int i = 0; i < batch->count; i++)
        for (int k = 0; k < a->count; k++) {
            float const t = batch->targets[i * (a->count + 1) + k];
            *known += !isnan(t);
            *right += !isnan(t) && (scores[i * a->count + k] > 0.5f) == (t > 0.5f);
        }
}

static int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

qat_status qat_attributes_finish(const qat_attributes *a, qat_qgraph *graph, qat_error *err)
{
    int32_t const params[] = {bits_of(a->low), bits_of(a->width)};
    return qat_qgraph_set_epilogue(graph, QAT_ATTRIBUTES_EPILOGUE, a->outputs ? 2 : 1,
                                   graph->outputs, 2, params, err);
}

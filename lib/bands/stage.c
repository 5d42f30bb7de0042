/** Stages: which ops can be run in bands together. */
#include "bands/bands.h"

int qat_stage_output(const qat_qgraph *graph, const qat_stage *stage)
{
    return graph->ops[stage->last].outputs[0];
}

int32_t qat_stage_bands(const qat_qgraph *graph, const qat_stage *stage)
{
    int32_t const height = graph->tensors[qat_stage_output(graph, stage)].dims[1];
    return (height + stage->rows - 1) / stage->rows;
}

static bool is_one_of(int tensor, const int *tensors, int n)
{
    for (int i = 0; i < n; i++)
        if (tensors[i] == tensor)
            return true;
    return false;
}

bool qat_is_result(const qat_qgraph *graph, int tensor)
{
    const qat_qepilogue *e = &graph->epilogue;
    bool is_result = is_one_of(tensor, graph->outputs, graph->n_outputs) ||
                     is_one_of(tensor, e->inputs, e->n_inputs);
    for (int i = 0; !is_result && i < graph->n_tensors; i++)
        is_result = graph->tensors[i].is_state && graph->tensors[i].next == tensor;
    return is_result;
}

/** Does anything but ops first .. last need the tensor? */
static bool is_needed_outside(const qat_qgraph *graph, int tensor, int first, int last)
{
    bool needed = qat_is_result(graph, tensor);
    for (int i = 0; !needed && i < graph->n_ops; i++)
        needed = (i < first || i > last) &&
                 is_one_of(tensor, graph->ops[i].inputs, graph->ops[i].n_inputs);
    return needed;
}

/** Does an op of the stage need all rows of the tensor at once? */
static bool is_needed_whole(const qat_qgraph *graph, int tensor, int first, int last)
{
    bool needed = false;
    for (int i = first; i <= last; i++)
        for (int k = 0; k < graph->ops[i].n_inputs; k++)
            needed = needed || (graph->ops[i].inputs[k] == tensor &&
                                !qat_input_has_rows(graph, &graph->ops[i], k));
    return needed;
}

bool qat_stage_is_valid(const qat_qgraph *graph, int first, int last)
{
    for (int i = first; i <= last; i++) {
        int const y = graph->ops[i].outputs[0];
        if (!qat_op_has_rows(graph, &graph->ops[i]) || is_needed_whole(graph, y, first, last) ||
            (i < last && is_needed_outside(graph, y, first, last)))
            return false;
    }
    return true;
}

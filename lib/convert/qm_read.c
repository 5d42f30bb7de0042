/**
 * Makes an integer graph from a model that the engine has opened, and so validated. qat-inspect
 * shows it, and the exact evaluation of a file runs it. The reverse of qm_write.c.
 */
#include "convert/convert.h"
#include "convert/qm_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/**
 * The number of tensors without those at the end that only hold channel scales. In the graph,
 * scales are a member of their tensor.
 */
static int32_t tensors_of_graph(const qi_model *model)
{
    int32_t first_scales = qi_tensor_count(model);
    for (int32_t i = 0; i < qi_tensor_count(model); i++) {
        int32_t const scales = qi_tensor_at(model, i)->channel_scales;
        if (scales >= 0 && scales < first_scales)
            first_scales = scales;
    }
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *node = qi_node_at(model, i);
        for (int32_t j = 0; j < node->n_inputs; j++)
            if (node->inputs[j] >= first_scales)
                return qi_tensor_count(
                    model); /* another program laid the file out: keep all tensors */
        for (int32_t j = 0; j < node->n_outputs; j++)
            if (node->outputs[j] >= first_scales)
                return qi_tensor_count(model);
    }
    for (int32_t i = 0; i < qi_input_count(model); i++)
        if (qi_input_at(model, i) >= first_scales)
            return qi_tensor_count(model);
    const qi_epilogue *e = qi_model_epilogue(model);
    for (int32_t i = 0; i < e->n_inputs; i++)
        if (e->inputs[i] >= first_scales)
            return qi_tensor_count(model);
    return first_scales;
}

static bool are_same_bytes(const qi_tensor *a, const qi_tensor *b)
{
    return a->data && a->data == b->data && a->bytes == b->bytes;
}

/** A constant's numbers: those that an earlier tensor of the graph has, or the model's. */
static void *data_of(const qat_qgraph *graph, const qi_model *model, const qi_tensor *from)
{
    for (int i = 0; i < graph->n_tensors; i++)
        if (are_same_bytes(qi_tensor_at(model, i), from))
            return graph->tensors[i].data;
    return (void *)from->data;
}

static float *scales_of(const qat_qgraph *graph, const qi_model *model, const qi_tensor *scales)
{
    for (int i = 0; i < graph->n_tensors; i++) {
        int32_t const s = qi_tensor_at(model, i)->channel_scales;
        if (s >= 0 && are_same_bytes(qi_tensor_at(model, s), scales))
            return graph->tensors[i].channel_scales;
    }
    return (void *)scales->data;
}

/**
 * Append a tensor. The graph has one copy of a constant, however many tensors share it: its tensors
 * have the numbers of the model's.
 */
static qat_status append(qat_qgraph *graph, qat_qtensor *t, const qi_model *model,
                         const qi_tensor *from, qat_error *err)
{
    const qi_tensor *scales =
        from->channel_scales >= 0 ? qi_tensor_at(model, from->channel_scales) : NULL;
    uint8_t *unpacked = NULL;
    if (from->kind == QI_CONSTANT)
        t->data = data_of(graph, model, from);
    if (t->data == from->data && from->is_packed) {
        t->data = unpacked = malloc(qi_unpacked_bytes(from));
        if (!unpacked)
            return qat_out_of_memory(err, "reading a model");
        qi_unpack(from, unpacked);
    }
    if (scales) {
        t->channel_scales = scales_of(graph, model, scales);
        t->n_channels = scales->dims[0];
    }
    int const index = qat_qgraph_tensor(graph, t, err);
    free(unpacked);
    return index < 0 ? err->status : QAT_OK;
}

static qat_status read_tensor(qat_qgraph *graph, const qi_model *model, int32_t index,
                              qat_error *err)
{
    const qi_tensor *from = qi_tensor_at(model, index);
    qat_qtensor t = {.type = (qi_type)from->type,
                     .bits = from->bits,
                     .rank = from->rank,
                     .scale = float_of(from->scale_bits),
                     .zero_point = from->zero_point,
                     .range_min = float_of(from->range_bits[0]),
                     .range_max = float_of(from->range_bits[1]),
                     .source_index = from->source_index,
                     .border = (qi_border)from->border,
                     .is_state = from->kind == QI_STATE,
                     .next = from->kind == QI_STATE ? from->next : 0};
    snprintf(t.name, sizeof t.name, "%s", from->name);
    memcpy(t.dims, from->dims, sizeof t.dims);
    return append(graph, &t, model, from, err);
}

static qat_status read_io(qat_qgraph *graph, const qi_model *model, qat_error *err)
{
    int32_t const n_in = qi_input_count(model), n_out = qi_output_count(model);
    int *io = calloc((size_t)n_in + (size_t)n_out, sizeof *io);
    if (!io)
        return qat_out_of_memory(err, "reading a model");
    for (int32_t i = 0; i < n_in; i++)
        io[i] = qi_input_at(model, i);
    for (int32_t i = 0; i < n_out; i++)
        io[n_in + i] = qi_output_at(model, i);
    qat_status const st = qat_qgraph_set_io(graph, n_in, io, n_out, io + n_in, err);
    free(io);
    return st;
}

/** Name the constants whose names the file does not store. */
static qat_status name_constants(qat_qgraph *graph, qat_error *err)
{
    qm_reader *readers = NULL;
    qat_status const st = qm_readers_find(&readers, graph, err);
    for (int i = 0; !st && i < graph->n_tensors; i++)
        if (!*graph->tensors[i].name)
            (void)qm_name_of(&readers[i], &graph->tensors[i], graph->tensors[i].name);
    free(readers);
    return st;
}

static qat_status read_graph(qat_qgraph *graph, const qi_model *model, qat_error *err)
{
    qat_status st = QAT_OK;
    int32_t const n_tensors = tensors_of_graph(model);
    for (int32_t i = 0; !st && i < n_tensors; i++)
        st = read_tensor(graph, model, i, err);
    for (int32_t i = 0; !st && i < qi_node_count(model); i++) {
        const qi_node *n = qi_node_at(model, i);
        int const op = qat_qgraph_op(graph, n->kernel->name, n->name, (qi_rounding)n->rounding,
                                     n->n_inputs, n->inputs, n->n_outputs, n->outputs, n->n_params,
                                     n->params, n->max_accumulator, err);
        if (op < 0)
            st = err->status;
        else
            graph->ops[op].fraction = n->fraction;
    }
    if (!st)
        st = name_constants(graph, err);
    if (!st)
        st = read_io(graph, model, err);
    const qi_epilogue *e = qi_model_epilogue(model);
    if (!st && e->name)
        st = qat_qgraph_set_epilogue(graph, e->name, e->n_inputs, e->inputs, e->n_params, e->params,
                                     err);
    return st;
}

qat_status qat_qm_read(qat_qgraph **graph, const qi_model *model, qat_error *err)
{
    qat_error ignored;
    if (!err)
        err = &ignored;
    *graph = NULL;
    qat_qgraph *read = qat_qgraph_new();
    if (!read)
        return qat_out_of_memory(err, "reading a model");
    qat_status const st = read_graph(read, model, err);
    if (st)
        qat_qgraph_free(read);
    else
        *graph = read;
    return st;
}

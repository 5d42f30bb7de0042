/**
 * The integer graph: tensors and ops in growing arrays, with indices as edges. It is the content of
 * a .qm file in memory. qat_freeze and the readers build it; the exact evaluation and the writer
 * read it.
 */
#include "base/arena.h"
#include "integer/quant_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A graph and its memory, in one allocation. */
struct owner {
    qat_qgraph graph;
    qat_arena memory;
};

qat_qgraph *qat_qgraph_new(void)
{
    struct owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->graph.memory = &owner->memory;
    return &owner->graph;
}

void qat_qgraph_free(qat_qgraph *graph)
{
    if (graph)
        qat_arena_free(graph->memory);
    free(graph);
}

void qat_qgraph_clear(qat_qgraph *graph)
{
    qat_arena_back(graph->memory, (qat_arena_mark){0});
    *graph = (qat_qgraph){.memory = graph->memory};
}

/**
 * Make room for one more item: returns the array, moved if necessary, or NULL (the items stay
 * valid).
 */
static void *grow(qat_qgraph *graph, void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    if (*capacity > INT32_MAX / 2)
        return NULL;
    int const more = *capacity ? 2 * *capacity : 16;
    void *moved = qat_arena_array(graph->memory, (size_t)more, size);
    if (!moved)
        return NULL;
    if (count)
        memcpy(moved, items, (size_t)count * size);
    *capacity = more;
    return moved;
}

/** An array in the graph's memory: itself if it lies there, or a copy (NULL: out of memory). */
static void *kept(const qat_qgraph *graph, void *from, size_t bytes)
{
    if (!from || qat_arena_holds(graph->memory, from))
        return from;
    void *copy = qat_arena_take(graph->memory, bytes);
    return copy ? memcpy(copy, from, bytes) : NULL;
}

int qat_qgraph_tensor(qat_qgraph *graph, const qat_qtensor *tensor, qat_error *err)
{
    if (tensor->rank < 1 || tensor->rank > QI_MAX_RANK) {
        qat_fail(err, QAT_ERR_SHAPE, "tensor %s: rank %d is not in 1..%d", tensor->name,
                 tensor->rank, QI_MAX_RANK);
        return -1;
    }
    size_t const scale_bytes = (size_t)tensor->n_channels * sizeof *tensor->channel_scales;
    void *data = kept(graph, tensor->data, qat_qtensor_bytes(tensor));
    float *scales = kept(graph, tensor->channel_scales, scale_bytes);
    qat_qtensor *moved =
        grow(graph, graph->tensors, graph->n_tensors, &graph->tensors_capacity, sizeof *moved);
    if (!moved || (tensor->data && !data) || (tensor->channel_scales && !scales)) {
        qat_out_of_memory(err, tensor->name);
        return -1;
    }
    graph->tensors = moved;
    qat_qtensor *t = &moved[graph->n_tensors];
    *t = *tensor;
    t->data = data;
    t->channel_scales = scales;
    for (int i = t->rank; i < QI_MAX_RANK; i++)
        t->dims[i] = 1;
    return graph->n_tensors++;
}

int qat_qgraph_constant_s32(qat_qgraph *graph, const char *name, int rows, int columns,
                            const int32_t *values, qat_error *err)
{
    qat_qtensor t = {.type = QI_S32,
                     .bits = 32,
                     .rank = columns > 1 ? 2 : 1,
                     .dims = {rows, columns},
                     .scale = 1.0f,
                     .data = (void *)values, /* copied */
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return qat_qgraph_tensor(graph, &t, err);
}

/** Copy indices, each of which must be an existing tensor. */
static qat_status copy_indices(int **copy, const qat_qgraph *graph, const char *name, int count,
                               const int *indices, qat_error *err)
{
    *copy = NULL;
    for (int i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= graph->n_tensors)
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s: tensor %d of %d does not exist", name,
                            indices[i], graph->n_tensors);
    *copy = qat_arena_array(graph->memory, (size_t)count, sizeof **copy);
    if (!*copy)
        return qat_out_of_memory(err, name);
    if (count)
        memcpy(*copy, indices, (size_t)count * sizeof **copy);
    return QAT_OK;
}

int qat_qgraph_op(qat_qgraph *graph, const char *op, const char *name, qi_rounding rounding,
                  int n_inputs, const int *inputs, int n_outputs, const int *outputs, int n_params,
                  const int32_t *params, int64_t max_accumulator, qat_error *err)
{
    if (strlen(op) >= QAT_QOP_NAME_MAX || n_params < 0 || n_params > QI_MAX_PARAMS) {
        qat_fail(err, QAT_ERR_ARGUMENT, "%s: op %s: its name or its %d parameters are too many",
                 name, op, n_params);
        return -1;
    }
    qat_qop *moved = grow(graph, graph->ops, graph->n_ops, &graph->ops_capacity, sizeof *moved);
    if (!moved) {
        qat_out_of_memory(err, name);
        return -1;
    }
    graph->ops = moved;
    qat_qop *q = &moved[graph->n_ops];
    *q = (qat_qop){.n_inputs = n_inputs,
                   .n_outputs = n_outputs,
                   .rounding = rounding,
                   .n_params = n_params,
                   .max_accumulator = max_accumulator};
    snprintf(q->op, sizeof q->op, "%s", op);
    snprintf(q->name, sizeof q->name, "%s", name);
    if (n_params)
        memcpy(q->params, params, (size_t)n_params * sizeof *params);
    qat_status st = copy_indices(&q->inputs, graph, name, n_inputs, inputs, err);
    if (!st)
        st = copy_indices(&q->outputs, graph, name, n_outputs, outputs, err);
    return st ? -1 : graph->n_ops++;
}

qat_status qat_qgraph_set_io(qat_qgraph *graph, int n_inputs, const int *inputs, int n_outputs,
                             const int *outputs, qat_error *err)
{
    int *in = NULL, *out = NULL;
    qat_status st = copy_indices(&in, graph, "graph inputs", n_inputs, inputs, err);
    if (!st)
        st = copy_indices(&out, graph, "graph outputs", n_outputs, outputs, err);
    if (st)
        return st;
    graph->inputs = in;
    graph->outputs = out;
    graph->n_inputs = n_inputs;
    graph->n_outputs = n_outputs;
    return QAT_OK;
}

qat_status qat_qgraph_set_epilogue(qat_qgraph *graph, const char *name, int n_inputs,
                                   const int *inputs, int n_params, const int32_t *params,
                                   qat_error *err)
{
    qat_qepilogue *e = &graph->epilogue;
    if (!*name || strlen(name) >= sizeof e->name)
        return qat_fail(err, QAT_ERR_ARGUMENT, "epilogue: its name \"%s\" has not 1..%d bytes",
                        name, QAT_QOP_NAME_MAX - 1);
    if (n_inputs < 1 || n_inputs > QAT_EPILOGUE_INPUTS_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "epilogue %s: %d inputs are not in 1..%d", name,
                        n_inputs, QAT_EPILOGUE_INPUTS_MAX);
    if (n_params < 0 || n_params > QI_MAX_PARAMS)
        return qat_fail(err, QAT_ERR_ARGUMENT, "epilogue %s: %d parameters are not in 0..%d", name,
                        n_params, QI_MAX_PARAMS);
    for (int i = 0; i < n_inputs; i++)
        if (inputs[i] < 0 || inputs[i] >= graph->n_tensors)
            return qat_fail(err, QAT_ERR_ARGUMENT, "epilogue %s: tensor %d of %d does not exist",
                            name, inputs[i], graph->n_tensors);
    *e = (qat_qepilogue){.n_inputs = n_inputs, .n_params = n_params};
    snprintf(e->name, sizeof e->name, "%s", name);
    memcpy(e->inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    if (n_params)
        memcpy(e->params, params, (size_t)n_params * sizeof *params);
    return QAT_OK;
}

size_t qat_qtensor_count(const qat_qtensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->dims[i];
    return count;
}

size_t qat_qtensor_bytes(const qat_qtensor *tensor)
{
    return qat_qtensor_count(tensor) * qi_type_bytes(tensor->type);
}

bool qat_qop_accumulates(const qat_qop *op)
{
    const qi_op *row = qi_op_named(op->op);
    qi_products const products = row ? row->kernel->products : QI_PRODUCTS_NONE;
    return products != QI_PRODUCTS_NONE && products != QI_PRODUCTS_POOL &&
           products != QI_PRODUCTS_RECURRENT && op->n_inputs == 5;
}

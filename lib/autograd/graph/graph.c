/** Graphs: nodes, names, outputs, and the first error. apply.c applies ops. */
#include "autograd/graph/core.h"
#include "base/rng.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *qat_core_fail(qat_graph *graph, qat_status status, const char *format, ...)
{
    if (graph->error.status)
        return NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(graph->error.message, sizeof graph->error.message, format, args);
    va_end(args);
    graph->error.status = status;
    return NULL;
}

void *qat_core_no_memory(qat_graph *graph, const char *what)
{
    if (!graph->error.status)
        qat_out_of_memory(&graph->error, what);
    return NULL;
}

qat_status qat_graph_create(qat_graph **graph, const qat_registry *registry, qat_error *err)
{
    *graph = calloc(1, sizeof **graph);
    if (!*graph)
        return qat_out_of_memory(err, "graph");
    (*graph)->registry = registry;
    return QAT_OK;
}

void qat_graph_free(qat_graph *graph)
{
    if (!graph)
        return;
    if (graph->backend)
        graph->backend->free(graph->backend_context);
    qat_aligned_free(graph->memory);
    qat_arena_free(&graph->arena);
    free(graph->nodes);
    free(graph->outputs);
    free(graph);
}

const qat_registry *qat_graph_registry(const qat_graph *graph)
{
    return graph->registry;
}

qat_status qat_graph_check(const qat_graph *graph, qat_error *err)
{
    if (!graph->error.status)
        return QAT_OK;
    return qat_fail(err, graph->error.status, "%s", graph->error.message);
}

qat_status qat_graph_annotate(qat_graph *graph, const void *bytes, size_t count)
{
    void *copy = qat_arena_take(&graph->arena, count);
    if (!copy) {
        qat_core_no_memory(graph, "annotation");
        return QAT_ERR_NOMEM;
    }
    if (count)
        memcpy(copy, bytes, count);
    graph->annotation = copy;
    return QAT_OK;
}

const void *qat_graph_annotation(const qat_graph *graph)
{
    return graph->annotation;
}

/* ------------------------------------------------------------------ names */

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-./:+@", c));
}

static bool name_good(qat_graph *graph, const char *name)
{
    if (!name || !*name) {
        qat_core_fail(graph, QAT_ERR_ARGUMENT, "a node has no name");
        return false;
    }
    if (strlen(name) >= QAT_NAME_MAX) {
        qat_core_fail(graph, QAT_ERR_ARGUMENT, "node name '%.80s...' is longer than %d characters",
                      name, QAT_NAME_MAX - 1);
        return false;
    }
    for (const char *c = name; *c; c++)
        if (!name_char(*c)) {
            qat_core_fail(graph, QAT_ERR_ARGUMENT,
                          "node name '%s': only letters, digits and _-./:+@ are allowed", name);
            return false;
        }
    return true;
}

static core_node **bucket_of(const qat_graph *graph, const char *name)
{
    return (core_node **)&graph->buckets[qat_hash_name(name) % CORE_BUCKETS];
}

qat_node *qat_graph_find(const qat_graph *graph, const char *name)
{
    core_node *at = *bucket_of(graph, name);
    while (at && strcmp(at->node.name, name) != 0)
        at = at->next;
    return at ? &at->node : NULL;
}

/* ------------------------------------------------------------------ nodes */

core_node *qat_core_new_node(qat_graph *graph, const char *name)
{
    if (!name_good(graph, name))
        return NULL;
    if (graph->planned)
        return qat_core_fail(graph, QAT_ERR_STATE,
                             "node '%s' is added to a graph that is already planned", name);
    if (qat_graph_find(graph, name))
        return qat_core_fail(graph, QAT_ERR_ARGUMENT, "there are two nodes named '%s'", name);
    core_node *node = qat_arena_take(&graph->arena, sizeof *node);
    char *copy = qat_arena_string(&graph->arena, name);
    if (!node || !copy)
        return qat_core_no_memory(graph, name);
    node->node.name = copy;
    node->node.graph = graph;
    node->last_consumer = -1;
    node->first_writer = -1;
    return node;
}

/**
 * A list with room for one more: the list itself, or a larger copy; NULL if memory is exhausted.
 */
static void *with_room(void *list, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    int const more = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(list, (size_t)more * size);
    if (grown)
        *capacity = more;
    return grown;
}

qat_node *qat_core_append(qat_graph *graph, core_node *node)
{
    if (graph->count == CORE_MAX_NODES)
        return qat_core_fail(graph, QAT_ERR_ARGUMENT, "a graph has more than %d nodes",
                             CORE_MAX_NODES);
    core_node **nodes =
        with_room(graph->nodes, graph->count, &graph->capacity, sizeof(core_node *));
    if (!nodes)
        return qat_core_no_memory(graph, node->node.name);
    graph->nodes = nodes;
    core_node **bucket = bucket_of(graph, node->node.name);
    node->next = *bucket;
    *bucket = node;
    node->node.index = graph->count;
    graph->nodes[graph->count++] = node;
    for (int i = 0; i < node->node.n_inputs; i++) {
        core_of(node->node.inputs[i])->consumers++;
        core_of(node->node.inputs[i])->last_consumer = node->node.index;
    }
    return &node->node;
}

qat_node *qat_graph_input(qat_graph *graph, const char *name, qat_shape shape)
{
    char why[128];
    core_node *node = graph->error.status ? NULL : qat_core_new_node(graph, name);
    if (!node)
        return NULL;
    if (qat_core_shape_bad(&shape, why))
        return qat_core_fail(graph, QAT_ERR_SHAPE, "input '%s': %s", name, why);
    node->node.shape = node->built = qat_shape_of(shape.dims, shape.rank);
    return qat_core_append(graph, node);
}

static qat_status check_init(const qat_param_def *def, qat_error *err)
{
    if (def->init == QAT_INIT_CONSTANT && !isfinite(def->scale))
        return qat_fail(err, QAT_ERR_NUMERIC, "initial value %g is not finite", def->scale);
    if (def->init == QAT_INIT_HE && def->fan_in < 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "fan_in %d is below 1", def->fan_in);
    if (def->init == QAT_INIT_GLOROT &&
        (def->fan_in < 0 || def->fan_out < 0 || (int64_t)def->fan_in + def->fan_out < 1))
        return qat_fail(err, QAT_ERR_ARGUMENT, "fan_in %d and fan_out %d have no sum above 0",
                        def->fan_in, def->fan_out);
    if ((unsigned)def->init > QAT_INIT_GLOROT)
        return qat_fail(err, QAT_ERR_ARGUMENT, "unknown init rule %d", (int)def->init);
    return QAT_OK;
}

qat_node *qat_graph_param(qat_graph *graph, const qat_param_def *def)
{
    char why[128];
    qat_error err;
    core_node *node = graph->error.status ? NULL : qat_core_new_node(graph, def->name);
    if (!node)
        return NULL;
    if (qat_core_shape_bad(&def->shape, why))
        return qat_core_fail(graph, QAT_ERR_SHAPE, "parameter '%s': %s", def->name, why);
    if (check_init(def, &err))
        return qat_core_fail(graph, err.status, "parameter '%s': %s", def->name, err.message);
    const char *slash = strrchr(node->node.name, '/');
    node->node.shape = node->built = qat_shape_of(def->shape.dims, def->shape.rank);
    node->node.is_param = true;
    node->node.trainable = def->trainable;
    node->node.decay = def->decay;
    node->node.init = *def;
    node->node.init.shape = node->built;
    if (def->init != QAT_INIT_CONSTANT)
        node->node.init.scale = 0;
    node->node.init.name = slash ? slash + 1 : node->node.name;
    return qat_core_append(graph, node);
}

void qat_graph_want_gradient(qat_graph *graph, qat_node *input)
{
    if (!input)
        qat_core_fail(graph, QAT_ERR_ARGUMENT, "the gradient of a NULL node was asked for");
    else if (graph->planned)
        qat_core_fail(graph, QAT_ERR_STATE, "the gradient of '%s' was asked for after planning",
                      input->name);
    else if (input->op || input->is_param)
        qat_core_fail(graph, QAT_ERR_ARGUMENT,
                      "the gradient of '%s' was asked for, but it is not an input", input->name);
    else
        core_of(input)->wanted = true;
}

/* ------------------------------------------------------------------ access */

void qat_graph_output(qat_graph *graph, qat_node *node)
{
    if (graph->error.status)
        return;
    if (!node || node->graph != graph) {
        qat_core_fail(graph, QAT_ERR_ARGUMENT, "output %d is %s", graph->n_outputs,
                      node ? "another graph's node" : "NULL");
        return;
    }
    if (graph->planned) {
        qat_core_fail(graph, QAT_ERR_STATE, "output '%s' was marked after planning", node->name);
        return;
    }
    qat_node **outputs =
        with_room(graph->outputs, graph->n_outputs, &graph->outputs_capacity, sizeof(qat_node *));
    if (!outputs) {
        qat_core_no_memory(graph, node->name);
        return;
    }
    graph->outputs = outputs;
    graph->outputs[graph->n_outputs++] = node;
    core_of(node)->is_output = true;
}

int qat_graph_outputs(const qat_graph *graph)
{
    return graph->n_outputs;
}

qat_node *qat_graph_output_at(const qat_graph *graph, int i)
{
    return graph->outputs[i];
}

int qat_graph_nodes(const qat_graph *graph)
{
    return graph->count;
}

qat_node *qat_graph_node(const qat_graph *graph, int i)
{
    return &graph->nodes[i]->node;
}

int qat_node_consumers(const qat_node *node)
{
    return core_of(node)->consumers;
}

bool qat_node_is_op(const qat_node *node, const char *op)
{
    return node && node->op && strcmp(node->op->name, op) == 0;
}

bool qat_node_is_input(const qat_node *node)
{
    return !node->op && !node->is_param;
}

#include "node_test.h"
#include "base/files/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ reading */

static const qat_foreign_tensor *read_tensor(qat_arena *arena, const char *folder, const char *kind,
                                             int i)
{
    char path[2048];
    uint8_t *bytes = NULL;
    size_t count = 0;
    const qat_foreign_tensor *tensor = NULL;
    qat_error err;
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    if (!qat_file_read(path, (size_t)1 << 30, &bytes, &count, &err) &&
        qat_onnx_parse_tensor(&tensor, arena, bytes, count, path, &err))
        tensor = NULL;
    free(bytes);
    return tensor && tensor->type != QAT_FOREIGN_OTHER ? tensor : NULL;
}

/** Does the network only move values, so that integers may be floats? */
static bool only_moves(const qat_foreign_graph *g)
{
    static const char *const moves[] = {"Concat",  "Expand", "Flatten",   "Gather",   "Identity",
                                        "MaxPool", "Pad",    "Reshape",   "Slice",    "Split",
                                        "Squeeze", "Resize", "Transpose", "Unsqueeze"};
    bool good = true;
    for (int i = 0; good && i < g->n_nodes; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof moves / sizeof *moves; k++)
            found = found || !strcmp(g->nodes[i].op, moves[k]);
        good = found;
    }
    return good;
}

/** Small integers as floats. */
static const qat_foreign_tensor *as_floats(node_test *t, const qat_foreign_tensor *from)
{
    if (!from || from->type != QAT_FOREIGN_INT)
        return from;
    qat_foreign_tensor *to = qat_arena_array(&t->arena, 1, sizeof *to);
    float *values = qat_arena_array(&t->arena, from->count + 1, sizeof *values);
    *to = *from;
    to->type = QAT_FOREIGN_FLOAT;
    to->floats = values;
    for (size_t i = 0; i < from->count; i++) {
        if (from->ints[i] > 1 << 24 || from->ints[i] < -(1 << 24))
            return from;
        values[i] = (float)from->ints[i];
    }
    return to;
}

qat_status node_test_read(node_test *t, const char *folder, qat_error *err)
{
    char path[2048];
    *t = (node_test){.folder = folder};
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    qat_status const st = qat_onnx_read(&t->graph, path, 0, err);
    if (st)
        return st;
    for (; t->n_inputs < NODE_TEST_TENSORS && t->n_inputs < t->graph->n_inputs; t->n_inputs++)
        t->inputs[t->n_inputs] = read_tensor(&t->arena, folder, "input", t->n_inputs);
    for (; t->n_outputs < NODE_TEST_TENSORS && t->n_outputs < t->graph->n_outputs; t->n_outputs++)
        t->outputs[t->n_outputs] = read_tensor(&t->arena, folder, "output", t->n_outputs);
    if (t->n_inputs && only_moves(t->graph)) {
        t->inputs[0] = as_floats(t, t->inputs[0]);
        t->outputs[0] = t->n_outputs ? as_floats(t, t->outputs[0]) : NULL;
    }
    return QAT_OK;
}

void node_test_free(node_test *t)
{
    qat_foreign_free(t->graph);
    qat_arena_free(&t->arena);
}

bool node_test_floats(const qat_foreign_tensor *tensor)
{
    bool good = tensor && tensor->type == QAT_FOREIGN_FLOAT;
    for (size_t i = 0; good && i < tensor->count; i++)
        good = fabs((double)tensor->floats[i]) < 1e30;
    return good;
}

/* ------------------------------------------------------------------ several inputs as parts */

static qat_foreign_attr ints_of(node_test *t, const char *name, int n, const int64_t *values)
{
    int64_t *copy = qat_arena_array(&t->arena, (size_t)n + 1, sizeof *copy);
    memcpy(copy, values, (size_t)n * sizeof *copy);
    return (qat_foreign_attr){
        .name = name, .kind = QAT_FOREIGN_ATTR_INTS, .n = (size_t)n, .ints = copy};
}

/** A node with values of the graph. */
static qat_foreign_node node_of(node_test *t, const char *op, int input, int n_outputs,
                                const int *outputs, int n_attrs, const qat_foreign_attr *attrs)
{
    int *numbers = qat_arena_array(&t->arena, (size_t)n_outputs + 1, sizeof *numbers);
    qat_foreign_attr *copy = qat_arena_array(&t->arena, (size_t)n_attrs, sizeof *copy);
    numbers[0] = input;
    memcpy(numbers + 1, outputs, (size_t)n_outputs * sizeof *numbers);
    memcpy(copy, attrs, (size_t)n_attrs * sizeof *copy);
    return (qat_foreign_node){.op = op,
                              .domain = "",
                              .name = "part",
                              .n_inputs = 1,
                              .n_outputs = n_outputs,
                              .n_attrs = n_attrs,
                              .inputs = numbers,
                              .outputs = numbers + 1,
                              .attrs = copy};
}

/** Put a Split in front of the network, whose parts, reshaped, are its inputs. */
static void split_data(node_test *t, const qat_foreign_tensor *all, const int64_t *lengths)
{
    qat_foreign_graph *g = t->graph;
    int const n = t->n_inputs, data = g->n_values;
    qat_foreign_node *nodes =
        qat_arena_array(&t->arena, (size_t)(g->n_nodes + 1 + n), sizeof *nodes);
    qat_foreign_value *values =
        qat_arena_array(&t->arena, (size_t)(g->n_values + 1 + n), sizeof *values);
    int *inputs = qat_arena_array(&t->arena, 1, sizeof *inputs), parts[NODE_TEST_TENSORS];
    memcpy(values, g->values, (size_t)g->n_values * sizeof *values);
    values[data] = (qat_foreign_value){.name = "data", .is_input = true, .rank = all->rank};
    memcpy(values[data].dims, all->dims, sizeof all->dims);
    for (int i = 0; i < n; i++) {
        parts[i] = data + 1 + i;
        values[parts[i]] = (qat_foreign_value){.name = "part"};
        qat_foreign_attr const shape = ints_of(t, "shape", t->inputs[i]->rank, t->inputs[i]->dims);
        nodes[1 + i] = node_of(t, "Reshape", parts[i], 1, &g->inputs[i], 1, &shape);
    }
    qat_foreign_attr const attrs[] = {
        {.name = "axis", .kind = QAT_FOREIGN_ATTR_INT, .i = t->is_batch},
        ints_of(t, "split", n, lengths)};
    nodes[0] = node_of(t, "Split", data, n, parts, 2, attrs);
    memcpy(nodes + 1 + n, g->nodes, (size_t)g->n_nodes * sizeof *nodes);
    *inputs = data;
    g->nodes = nodes;
    g->values = values;
    g->inputs = inputs;
    g->n_nodes += 1 + n;
    g->n_values += 1 + n;
    g->n_inputs = t->n_inputs = 1;
    t->inputs[0] = all;
}

/** The inputs as parts of one array: of samples along dimension 1, or of one sample. */
static bool feed_parts(node_test *t)
{
    const qat_foreign_tensor *first = t->inputs[0];
    int64_t lengths[NODE_TEST_TENSORS];
    bool good = t->n_inputs > 1 && t->n_inputs == t->graph->n_inputs && first &&
                (!t->is_batch || first->rank > 1);
    qat_foreign_tensor *all = qat_arena_array(&t->arena, 1, sizeof *all);
    *all = (qat_foreign_tensor){.type = QAT_FOREIGN_FLOAT, .rank = 1};
    for (int i = 0; good && i < t->n_inputs; i++) {
        const qat_foreign_tensor *x = t->inputs[i];
        good = node_test_floats(x) && x->count > 0 && (!t->is_batch || x->rank == first->rank);
        for (int d = 0; good && t->is_batch && d < x->rank; d++)
            good = d == 1 || x->dims[d] == first->dims[d];
        if (!good)
            return false;
        lengths[i] = t->is_batch ? x->dims[1] : (int64_t)x->count;
        all->count += x->count;
    }
    if (!good)
        return false;
    if (t->is_batch) {
        all->rank = first->rank;
        memcpy(all->dims, first->dims, sizeof all->dims);
    }
    all->dims[t->is_batch] = 0;
    for (int i = 0; i < t->n_inputs; i++)
        all->dims[t->is_batch] += lengths[i];
    float *to = qat_arena_array(&t->arena, all->count, sizeof *to);
    all->floats = to;
    size_t const samples = t->is_batch ? (size_t)all->dims[0] : 1;
    for (size_t b = 0; b < samples; b++)
        for (int i = 0; i < t->n_inputs; i++) {
            size_t const n = t->inputs[i]->count / samples;
            memcpy(to, t->inputs[i]->floats + b * n, n * sizeof *to);
            to += n;
        }
    split_data(t, all, lengths);
    return true;
}

/* ------------------------------------------------------------------ ways */

/** Give the inputs behind the first their values as constants. */
static bool feed_constants(node_test *t)
{
    for (int i = 1; i < t->n_inputs && i < t->graph->n_inputs; i++)
        if (t->inputs[i])
            t->graph->values[t->graph->inputs[i]].constant = t->inputs[i];
    if (!t->n_inputs || !t->inputs[0] || (t->is_batch && t->inputs[0]->rank < 1))
        return false;
    qat_foreign_value *first = &t->graph->values[t->graph->inputs[0]];
    first->rank = t->inputs[0]->rank;
    memcpy(first->dims, t->inputs[0]->dims, sizeof first->dims);
    return true;
}

static const char *const ways[] = {"a batch, of computed inputs", "one sample, of computed inputs",
                                   "a batch", "one sample"};

void node_test_feed_all(node_test *t)
{
    for (int i = 0; i < t->n_inputs; i++)
        t->graph->values[t->graph->inputs[i]].constant = t->inputs[i];
}

const char *node_test_way(int way)
{
    return way < (int)(sizeof ways / sizeof *ways) ? ways[way] : NULL;
}

bool node_test_feed(node_test *t, int way)
{
    t->is_batch = way % 2 == 0;
    return way < 2 ? feed_parts(t) : feed_constants(t);
}

/** Pictures and signals; other data are rows in the file's order. */
static bool is_picture(const node_test *t)
{
    return t->is_batch && (t->inputs[0]->rank == 3 || t->inputs[0]->rank == 4);
}

void node_test_sizes(const node_test *t, qat_foreign_options *o)
{
    const qat_foreign_tensor *x = t->inputs[0];
    size_t const samples = t->is_batch && x->dims[0] ? (size_t)x->dims[0] : 1;
    *o = (qat_foreign_options){
        .height = 1, .width = 1, .channels = (int)(x->count / samples), .bn_momentum = 0.9};
    if (is_picture(t)) {
        o->channels = (int)x->dims[1];
        o->height = x->rank == 4 ? (int)x->dims[2] : 1;
        o->width = (int)x->dims[x->rank - 1];
    }
}

void node_test_write(const node_test *t, qat_node *input)
{
    const qat_foreign_tensor *x = t->inputs[0];
    size_t const n = t->is_batch ? (size_t)x->dims[0] : 1;
    size_t const c = is_picture(t) ? (size_t)x->dims[1] : 1, pixels = x->count / n / c;
    for (size_t b = 0; b < n; b++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++)
                input->value[(b * pixels + p) * c + k] = x->floats[(b * c + k) * pixels + p];
}

/** Networks of other frameworks' files are built and run. */
#include "fuzz/fuzz_foreign.h"
#include "fuzz/fuzz.h"
#include "qat/qat.h"

#include <string.h>

enum { SIDE_MAX = 16, ROW_MAX = 4096 };

/** Sizes of data that the file's first input takes, if they are small. */
static qat_foreign_options sizes_of(const qat_foreign_graph *g)
{
    qat_foreign_options o = {.height = 4, .width = 4, .channels = 3, .bn_momentum = 0.9};
    const qat_foreign_value *v = g->n_inputs ? &g->values[g->inputs[0]] : NULL;
    bool const last = g->channels_last;
    int *const to[] = {last ? &o.height : &o.channels, last ? &o.width : &o.height,
                       last ? &o.channels : &o.width};
    if (!v || v->rank < 1)
        return o;
    o.height = 1;
    o.width = 1;
    if (v->rank == 1 || v->rank > 4 || v->dims[0] % 4 == 3) { /* a row; of one sample or of many */
        o.channels = 1;
        for (int i = v->rank > 4 && v->dims[0] % 2; i < v->rank; i++)
            o.channels *= v->dims[i] > 0 && v->dims[i] <= SIDE_MAX && o.channels < ROW_MAX
                              ? (int)v->dims[i]
                              : 1;
        return o;
    }
    for (int i = 1; i < v->rank; i++) {
        int *size = v->rank == 3 && i == 2 ? (last ? &o.channels : &o.width)
                    : v->rank == 3 && last ? &o.width
                                           : to[i - 1];
        *size = v->dims[i] > 0 && v->dims[i] <= SIDE_MAX ? (int)v->dims[i] : 3;
    }
    return o;
}

static void run(qat_graph *graph, qat_node *input, qat_node *last, const qat_foreign_params *params)
{
    qat_error err;
    qat_graph_output(graph, last);
    if (qat_graph_plan(graph, 2, QAT_PLAN_EVAL, &err))
        return;
    qat_graph_init_params(graph, 1);
    fuzz_require(qat_foreign_fill(params, graph) == params->count, "every value has its parameter");
    for (size_t i = 0; i < qat_shape_count(&input->shape); i++)
        input->value[i] = (float)(i % 7) - 3;
    qat_network_size size;
    if (!qat_network_size_of(graph, &size, &err) && size.macs < 10000000)
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
}

static void build(const qat_foreign_graph *from, int head)
{
    qat_registry *registry = NULL;
    qat_graph *graph = NULL;
    qat_node *last = NULL;
    qat_foreign_params params = {0};
    qat_error err = {0};
    qat_foreign_options o = sizes_of(from);
    o.head = head;
    fuzz_require(qat_registry_create(&registry, &err) == QAT_OK, "there is a registry");
    qat_registry_set_memory(registry, FUZZ_FOREIGN_MEMORY);
    fuzz_require(qat_graph_create(&graph, registry, &err) == QAT_OK, "there is a graph");
    qat_node *input = qat_graph_input(graph, "input", QAT_SHAPE(1, o.height, o.width, o.channels));
    qat_status const st = qat_foreign_build(from, graph, input, &o, &last, &params, &err);
    fuzz_require((st == QAT_OK) == (last != NULL), "a node exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (!st)
        run(graph, input, last, &params);
    qat_foreign_params_free(&params);
    qat_graph_free(graph);
    qat_registry_free(registry);
}

void fuzz_foreign(const qat_foreign_graph *from)
{
    build(from, 0);
    build(from, 5);
}

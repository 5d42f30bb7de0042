#include "common/foreign_made.h"
#include "qat/qat.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { SAMPLES = 2 };

const float made_counted[32] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

void made_begin(made_network *n, int rank, const int64_t *dims)
{
    *n = (made_network){.graph = {.source = "made", .opset = 18, .room = 1 << 28}};
    n->values[0] = (qat_foreign_value){.name = "x", .is_input = true, .rank = rank};
    memcpy(n->values[0].dims, dims, (size_t)rank * sizeof *dims);
    n->graph.n_values = 1;
}

int made_constant(made_network *n, int rank, const int64_t *dims, const float *floats,
                  const int64_t *ints)
{
    int const i = n->graph.n_values++;
    qat_foreign_tensor *t = &n->constants[i];
    *t = (qat_foreign_tensor){.type = floats ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT,
                              .rank = rank,
                              .count = 1,
                              .floats = floats,
                              .ints = ints};
    for (int d = 0; d < rank; d++) {
        t->dims[d] = dims[d];
        t->count *= (size_t)dims[d];
    }
    n->values[i] = (qat_foreign_value){.name = "c", .constant = t};
    return i;
}

int made_list(made_network *n, int64_t count, const int64_t *ints)
{
    return made_constant(n, 1, &count, NULL, ints);
}

int made_node(made_network *n, const char *op, int a, int b, int c)
{
    int const i = n->graph.n_nodes++, out = n->graph.n_values++;
    int const wires[] = {a, b, c, out};
    memcpy(n->wires[i], wires, sizeof wires);
    n->values[out] = (qat_foreign_value){.name = "y"};
    n->nodes[i] = (qat_foreign_node){.op = op,
                                     .domain = "",
                                     .name = op,
                                     .n_inputs = c >= 0   ? 3
                                                 : b >= 0 ? 2
                                                          : 1,
                                     .n_outputs = 1,
                                     .inputs = n->wires[i],
                                     .outputs = &n->wires[i][3],
                                     .attrs = n->attrs[i]};
    return n->output = out;
}

void made_attr(made_network *n, qat_foreign_attr a)
{
    qat_foreign_node *last = &n->nodes[n->graph.n_nodes - 1];
    n->attrs[n->graph.n_nodes - 1][last->n_attrs++] = a;
}

void made_int(made_network *n, const char *name, int64_t i)
{
    made_attr(n, (qat_foreign_attr){.name = name, .kind = QAT_FOREIGN_ATTR_INT, .i = i});
}

void made_text(made_network *n, const char *name, const char *t)
{
    made_attr(n, (qat_foreign_attr){.name = name, .kind = QAT_FOREIGN_ATTR_TEXT, .text = t});
}

void made_ints(made_network *n, const char *name, size_t count, const int64_t *ints)
{
    made_attr(n, (qat_foreign_attr){
                     .name = name, .kind = QAT_FOREIGN_ATTR_INTS, .n = count, .ints = ints});
}

/* ------------------------------------------------------------------ running them */

struct built {
    qat_registry *registry;
    qat_graph *graph;
    qat_node *last;
    qat_foreign_params params;
};

static void release(struct built *b)
{
    qat_foreign_params_free(&b->params);
    qat_graph_free(b->graph);
    qat_registry_free(b->registry);
}

static qat_status build(made_network *n, int h, int w, int c, struct built *b, qat_error *err)
{
    qat_foreign_options const o = {.height = h, .width = w, .channels = c, .bn_momentum = 0.9};
    n->graph.nodes = n->nodes;
    n->graph.values = n->values;
    n->graph.inputs = &n->input;
    n->graph.outputs = &n->output;
    n->graph.n_inputs = n->graph.n_outputs = 1;
    ck_assert_int_eq(qat_registry_create(&b->registry, err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&b->graph, b->registry, err), QAT_OK);
    qat_node *input = qat_graph_input(b->graph, "input", QAT_SHAPE(1, h, w, c));
    return qat_foreign_build(&n->graph, b->graph, input, &o, &b->last, &b->params, err);
}

void made_refuses(made_network *n, int h, int w, int c, const char *words)
{
    struct built b = {0};
    qat_error err = {0};
    ck_assert_int_ne(build(n, h, w, c, &b, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' has no '%s'", err.message, words);
    release(&b);
}

void made_gives(made_network *n, int h, int w, int c, const float *x, int count, const float *want,
                float more)
{
    struct built b = {0};
    qat_error err = {0};
    int const each = h * w * c;
    ck_assert_msg(!build(n, h, w, c, &b, &err), "%s", err.message);
    qat_graph_output(b.graph, b.last);
    ck_assert_msg(!qat_graph_plan(b.graph, SAMPLES, QAT_PLAN_EVAL, &err), "%s", err.message);
    qat_graph_init_params(b.graph, 1);
    ck_assert_int_eq(qat_foreign_fill(&b.params, b.graph), b.params.count);
    for (int i = 0; i < SAMPLES * each; i++)
        qat_graph_find(b.graph, "input")->value[i] = x[i % each] + (float)(i / each);
    qat_graph_forward(b.graph, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_uint_eq(qat_shape_count(&b.last->shape), (size_t)(SAMPLES * count));
    for (int i = 0; i < (isnan(more) ? 1 : SAMPLES) * count; i++)
        ck_assert_float_eq_tol(b.last->value[i], want[i % count] + (i >= count ? more : 0), 1e-5F);
    release(&b);
}

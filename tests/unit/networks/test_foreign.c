/** Files of other frameworks: limits, refusals, a small network. The files are written here, field
 * by field. */
#include "base/bytes.h"
#include "common/suite.h"
#include "foreign/foreign.h"
#include "qat/qat.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ protobuf */

static void varint(qat_writer *w, uint64_t v)
{
    for (; v > 127; v >>= 7)
        qat_write_u8(w, (uint8_t)(v | 128));
    qat_write_u8(w, (uint8_t)v);
}

static void number(qat_writer *w, int field, uint64_t v)
{
    varint(w, (uint64_t)field << 3);
    varint(w, v);
}

static void bytes(qat_writer *w, int field, const void *at, size_t n)
{
    varint(w, (uint64_t)field << 3 | 2);
    varint(w, n);
    qat_write_bytes(w, at, n);
}

static void text(qat_writer *w, int field, const char *t)
{
    bytes(w, field, t, strlen(t));
}

/** Append a message as a field, and free it. */
static void message(qat_writer *w, int field, qat_writer *m)
{
    bytes(w, field, m->bytes, m->count);
    qat_writer_free(m);
    *m = (qat_writer){0};
}

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 }; /* fields of a GraphProto */

static qat_writer node_of(const char *op, const char *in, const char *in2, const char *out)
{
    qat_writer n = {0};
    text(&n, 1, in);
    if (in2)
        text(&n, 1, in2);
    text(&n, 2, out);
    text(&n, 3, "the node");
    text(&n, 4, op);
    return n;
}

static void add_value(qat_writer *g, int field, const char *name)
{
    qat_writer v = {0};
    text(&v, 1, name);
    message(g, field, &v);
}

static qat_writer floats_of(const char *name, int rank, const int64_t *dims, int n,
                            const float *values)
{
    qat_writer t = {0};
    for (int i = 0; i < rank; i++)
        number(&t, 1, (uint64_t)dims[i]);
    number(&t, 2, 1);
    text(&t, 8, name);
    bytes(&t, 9, values, (size_t)n * sizeof *values);
    return t;
}

static qat_status parse(qat_writer *graph, qat_foreign_graph **to, qat_error *err)
{
    qat_writer m = {0};
    message(&m, 7, graph);
    qat_status const st = qat_onnx_parse(to, m.bytes, m.count, "made.onnx", 0, err);
    qat_writer_free(&m);
    return st;
}

static void refuses(qat_writer *graph, const char *words)
{
    qat_foreign_graph *g = NULL;
    qat_error err = {0};
    ck_assert_int_ne(parse(graph, &g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' has no '%s'", err.message, words);
    ck_assert_ptr_null(g);
}

/* ------------------------------------------------------------------ limits */

START_TEST(too_many_nodes)
{
    qat_writer g = {0};
    for (int i = 0; i <= QAT_FOREIGN_NODES_MAX; i++) {
        qat_writer n = {0};
        message(&g, NODE, &n);
    }
    refuses(&g, "32768");
}
END_TEST

START_TEST(too_many_names)
{
    qat_writer g = {0};
    for (int i = 0; i <= QAT_FOREIGN_NAMES_MAX; i++)
        add_value(&g, OUTPUT, "y");
    refuses(&g, "524288");
}
END_TEST

START_TEST(too_many_inputs)
{
    qat_writer g = {0}, n = {0};
    for (int i = 0; i <= QAT_FOREIGN_INPUTS_MAX; i++)
        text(&n, 1, "x");
    message(&g, NODE, &n);
    refuses(&g, "4096");
}
END_TEST

START_TEST(too_many_dimensions)
{
    int64_t const dims[QAT_FOREIGN_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    float const value = 1;
    qat_writer g = {0}, t = floats_of("w", QAT_FOREIGN_RANK + 1, dims, 1, &value);
    message(&g, INITIALIZER, &t);
    refuses(&g, "at most 8");
}
END_TEST

/** A graph in an attribute of a node of a graph ... */
START_TEST(too_deep)
{
    qat_writer g = {0};
    for (int i = 0; i < QAT_FOREIGN_DEPTH_MAX; i++) {
        qat_writer a = {0}, n = {0};
        message(&a, 6, &g);
        message(&n, 5, &a);
        message(&g, NODE, &n);
    }
    refuses(&g, "32 messages");
}
END_TEST

START_TEST(constants_must_be_complete)
{
    int64_t const dims[] = {2, 2}, large[] = {65536, 65536}, negative[] = {-1};
    float const values[] = {1, 2, 3};
    const struct {
        int rank;
        const int64_t *dims;
        const char *words;
    } cases[] = {{2, dims, "the 4 values"}, {2, large, "too many"}, {1, negative, "too many"}};
    for (int i = 0; i < 3; i++) {
        qat_writer g = {0}, t = floats_of("w", cases[i].rank, cases[i].dims, 3, values);
        message(&g, INITIALIZER, &t);
        refuses(&g, cases[i].words);
    }
}
END_TEST

START_TEST(memory_is_limited)
{
    qat_writer m = {0}, g = {0};
    qat_foreign_graph *to = NULL;
    qat_error err = {0};
    for (int i = 0; i < 1000; i++)
        add_value(&g, OUTPUT, "y");
    message(&m, 7, &g);
    ck_assert_int_eq(qat_onnx_parse(&to, m.bytes, m.count, "made.onnx", 20000, &err),
                     QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "more memory"));
    qat_writer_free(&m);
}
END_TEST

/* ------------------------------------------------------------------ networks */

static qat_registry *registry;

/** Build what the graph says for pictures of 2 x 3 with 2 channels. */
static qat_status build(qat_writer *graph, int head, qat_graph **made, qat_node **last,
                        qat_foreign_params *params, qat_error *err)
{
    qat_foreign_options const o = {
        .height = 2, .width = 3, .channels = 2, .head = head, .bn_momentum = 0.9};
    qat_foreign_graph *from = NULL;
    *made = NULL;
    *last = NULL;
    qat_status st = parse(graph, &from, err);
    if (!st)
        st = qat_graph_create(made, registry, err);
    if (!st)
        st = qat_foreign_build(from, *made, qat_graph_input(*made, "input", QAT_SHAPE(1, 2, 3, 2)),
                               &o, last, params, err);
    qat_foreign_free(from);
    return st;
}

static void cannot_build(qat_writer *graph, const char *words)
{
    qat_graph *made;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    ck_assert_int_ne(build(graph, 0, &made, &last, &params, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' has no '%s'", err.message, words);
    qat_foreign_params_free(&params);
    qat_graph_free(made);
}

START_TEST(what_cannot_be_taken_is_named)
{
    static const char *const cases[][2] = {
        {"Frobnicate", "node 'the node' (Frobnicate): this operator is not supported"},
        {"Concat", "node 'the node' (Concat): it has no input 1"},
        {"Gemm", "node 'the node' (Gemm): "},
    };
    for (int i = 0; i < 3; i++) {
        qat_writer g = {0}, n = node_of(cases[i][0], "x", i == 1 ? "nothing" : NULL, "y");
        message(&g, NODE, &n);
        add_value(&g, INPUT, "x");
        add_value(&g, OUTPUT, "y");
        cannot_build(&g, i == 1 ? "nothing before it computes its input 'nothing'" : cases[i][1]);
    }
}
END_TEST

/** Flatten and multiply: the weights' rows follow the order in memory. */
static qat_writer flat_network(void)
{
    int64_t const dims[] = {12, 2};
    float w[24];
    for (int i = 0; i < 24; i++)
        w[i] = i % 2 ? 1 : (float)(i / 2);
    qat_writer g = {0}, a = node_of("Flatten", "x", NULL, "flat"),
               b = node_of("MatMul", "flat", "w", "y"), t = floats_of("w", 2, dims, 24, w);
    message(&g, NODE, &a);
    message(&g, NODE, &b);
    message(&g, INITIALIZER, &t);
    add_value(&g, INPUT, "x");
    add_value(&g, OUTPUT, "y");
    return g;
}

START_TEST(flattened_pictures_keep_the_files_order)
{
    qat_graph *made;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    qat_writer g = flat_network();
    ck_assert_msg(build(&g, 0, &made, &last, &params, &err) == QAT_OK, "%s", err.message);
    qat_graph_output(made, last);
    ck_assert_int_eq(qat_graph_plan(made, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(made, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, made), params.count);
    float *x = qat_graph_find(made, "input")->value;
    for (int i = 0; i < 12; i++)
        x[i] = 0;
    x[1 * 6 + 2 * 2 + 1] = 1; /* row 1, column 2, channel 1: value 1 * 6 + 1 * 3 + 2 in NCHW */
    qat_graph_forward(made, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_int_eq((int)last->value[0], 11);
    ck_assert_int_eq((int)last->value[1], 1);
    qat_foreign_params_free(&params);
    qat_graph_free(made);
}
END_TEST

START_TEST(a_new_head_has_no_values)
{
    qat_graph *made;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    qat_writer g = flat_network();
    ck_assert_msg(build(&g, 7, &made, &last, &params, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_shape_channels(&last->shape), 7);
    ck_assert_int_eq(params.count, 0);
    qat_foreign_params_free(&params);
    qat_graph_free(made);
}
END_TEST

int main(void)
{
    qat_foreign_graph *g = NULL;
    qat_error err = {0};
    if (qat_onnx_parse(&g, "", 0, "empty", 0, &err) == QAT_ERR_UNSUPPORTED) {
        puts("SKIP foreign: this build has no protobuf-c");
        return 0;
    }
    if (qat_registry_create(&registry, &err))
        return 1;
    Suite *suite = suite_create("foreign");
    TCase *tc = tcase_create("foreign");
    tcase_add_test(tc, too_many_nodes);
    tcase_add_test(tc, too_many_names);
    tcase_add_test(tc, too_many_inputs);
    tcase_add_test(tc, too_many_dimensions);
    tcase_add_test(tc, too_deep);
    tcase_add_test(tc, constants_must_be_complete);
    tcase_add_test(tc, memory_is_limited);
    tcase_add_test(tc, what_cannot_be_taken_is_named);
    tcase_add_test(tc, flattened_pictures_keep_the_files_order);
    tcase_add_test(tc, a_new_head_has_no_values);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

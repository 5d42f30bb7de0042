/** Files of other frameworks: limits, refusals, a small network. The files are written here, field
 * by field. */
#include "common/onnx_build.h"
#include "common/suite.h"
#include "common/temp.h"
#include "foreign/foreign.h"
#include "qat/qat.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static qat_status parse(qat_writer *graph, qat_foreign_graph **to, qat_error *err)
{
    qat_writer m = {0};
    onnx_message(&m, 7, graph);
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
        onnx_message(&g, ONNX_NODE, &n);
    }
    refuses(&g, "32768");
}
END_TEST

START_TEST(too_many_names)
{
    qat_writer g = {0};
    for (int i = 0; i <= QAT_FOREIGN_NAMES_MAX; i++)
        onnx_value(&g, ONNX_OUTPUT, "y");
    refuses(&g, "524288");
}
END_TEST

START_TEST(too_many_inputs)
{
    qat_writer g = {0}, n = {0};
    for (int i = 0; i <= QAT_FOREIGN_INPUTS_MAX; i++)
        onnx_text(&n, 1, "x");
    onnx_message(&g, ONNX_NODE, &n);
    refuses(&g, "4096");
}
END_TEST

START_TEST(too_many_dimensions)
{
    int64_t const dims[QAT_FOREIGN_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    float const value = 1;
    qat_writer g = {0}, t = onnx_floats("w", QAT_FOREIGN_RANK + 1, dims, 1, &value);
    onnx_message(&g, ONNX_INITIALIZER, &t);
    refuses(&g, "at most 8");
}
END_TEST

/** A graph in an attribute of a node of a graph ... */
START_TEST(too_deep)
{
    qat_writer g = {0};
    for (int i = 0; i < QAT_FOREIGN_DEPTH_MAX; i++) {
        qat_writer a = {0}, n = {0};
        onnx_message(&a, 6, &g);
        onnx_message(&n, 5, &a);
        onnx_message(&g, ONNX_NODE, &n);
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
        qat_writer g = {0}, t = onnx_floats("w", cases[i].rank, cases[i].dims, 3, values);
        onnx_message(&g, ONNX_INITIALIZER, &t);
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
        onnx_value(&g, ONNX_OUTPUT, "y");
    onnx_message(&m, 7, &g);
    ck_assert_int_eq(qat_onnx_parse(&to, m.bytes, m.count, "made.onnx", 20000, &err),
                     QAT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "more memory"));
    qat_writer_free(&m);
}
END_TEST

/* ------------------------------------------------------------------ networks */

static qat_registry *registry;
static uint64_t room; /* for building; 0: as much as the file leaves */

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
    if (!st && room)
        from->room = room;
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
        qat_writer g = {0}, n = onnx_node(cases[i][0], "x", i == 1 ? "nothing" : NULL, "y");
        onnx_message(&g, ONNX_NODE, &n);
        onnx_value(&g, ONNX_INPUT, "x");
        onnx_value(&g, ONNX_OUTPUT, "y");
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
    qat_writer g = {0}, a = onnx_node("Flatten", "x", NULL, "flat"),
               b = onnx_node("MatMul", "flat", "w", "y"), t = onnx_floats("w", 2, dims, 24, w);
    onnx_message(&g, ONNX_NODE, &a);
    onnx_message(&g, ONNX_NODE, &b);
    onnx_message(&g, ONNX_INITIALIZER, &t);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "y");
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

/* ------------------------------------------------------------------ nodes that are refused */

enum { FLOAT = 1, INT = 2, TEXT = 3, FLOATS = 6, INTS = 7 }; /* types of an AttributeProto */

/** An attribute of this type: integers, or no value at all. */
static void add_attr(qat_writer *node, const char *name, int type, int n, const int64_t *values)
{
    qat_writer a = {0};
    onnx_text(&a, 1, name);
    for (int i = 0; i < n; i++)
        onnx_number(&a, type == INT ? 3 : 8, (uint64_t)values[i]);
    onnx_number(&a, 20, (uint64_t)type);
    onnx_message(node, 5, &a);
}

/** A graph of one node whose input is x, of constants w and v, and of output y. */
static qat_writer graph_of(qat_writer *node)
{
    qat_writer g = {0};
    onnx_message(&g, ONNX_NODE, node);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "y");
    return g;
}

START_TEST(a_first_output_needs_a_name)
{
    qat_writer g = {0}, n = onnx_node("Split", "x", NULL, "");
    onnx_text(&n, 2, "second");
    onnx_message(&g, ONNX_NODE, &n);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "second");
    cannot_build(&g, "node 'the node' (Split): its first output has no name");
}
END_TEST

START_TEST(attributes_have_their_kind)
{
    int64_t const one = 1;
    const struct {
        const char *op, *attr;
        int type;
    } cases[] = {{"Softmax", "axis", FLOAT},       {"Softmax", "axis", INTS},
                 {"LeakyRelu", "alpha", INT},      {"Transpose", "perm", INT},
                 {"AveragePool", "auto_pad", INT}, {"Constant", "value_floats", INTS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[128];
        qat_writer n = onnx_node(cases[i].op, "x", NULL, "y");
        if (!strcmp(cases[i].op, "Constant")) {
            n.count = 0;
            onnx_text(&n, 2, "y");
            onnx_text(&n, 3, "the node");
            onnx_text(&n, 4, "Constant");
        }
        if (!strcmp(cases[i].op, "AveragePool"))
            add_attr(&n, "kernel_shape", INTS, 2, (const int64_t[]){1, 1});
        add_attr(&n, cases[i].attr, cases[i].type, cases[i].type != FLOAT, &one);
        qat_writer g = graph_of(&n);
        snprintf(words, sizeof words, "node 'the node' (%s): attribute %s is of another",
                 cases[i].op, cases[i].attr);
        cannot_build(&g, words);
    }
}
END_TEST

START_TEST(pools_say_their_window)
{
    qat_writer n = onnx_node("MaxPool", "x", NULL, "y"), g = graph_of(&n);
    cannot_build(&g, "no attribute kernel_shape");
}
END_TEST

START_TEST(parts_of_a_split_add_up)
{
    qat_writer n = onnx_node("Split", "x", NULL, "y");
    onnx_text(&n, 2, "z");
    add_attr(&n, "axis", INT, 1, (const int64_t[]){3});
    add_attr(&n, "split", INTS, 2, (const int64_t[]){1, 1});
    qat_writer g = graph_of(&n);
    cannot_build(&g, "its parts have 2 of the 3 positions");
}
END_TEST

START_TEST(batches_are_limited)
{
    qat_writer g = {0}, v = {0}, t = {0}, tensor = {0}, shape = {0},
               n = onnx_node("Relu", "x", NULL, "y");
    for (int i = 0; i < 4; i++) {
        qat_writer d = {0};
        onnx_number(&d, 1, (uint64_t)(const int64_t[]){65537, 2, 2, 3}[i]);
        onnx_message(&shape, 1, &d);
    }
    onnx_number(&tensor, 1, 1);
    onnx_message(&tensor, 2, &shape);
    onnx_message(&t, 1, &tensor);
    onnx_text(&v, 1, "x");
    onnx_message(&v, 2, &t);
    onnx_message(&g, ONNX_NODE, &n);
    onnx_message(&g, ONNX_INPUT, &v);
    onnx_value(&g, ONNX_OUTPUT, "y");
    cannot_build(&g, "a batch of 65537");
}
END_TEST

START_TEST(clip_needs_bounds_in_order)
{
    float const infinity = INFINITY;
    qat_writer n = onnx_node("Clip", "x", "w", "y"), g = graph_of(&n),
               t = onnx_floats("w", 0, NULL, 1, &infinity);
    onnx_message(&g, ONNX_INITIALIZER, &t);
    cannot_build(&g, "a min of inf");
}
END_TEST

START_TEST(constants_of_other_shapes_are_not_added)
{
    float const values[6] = {1, 2, 3, 4, 5, 6};
    int64_t const dims[] = {2, 3}, other[] = {3, 2};
    qat_writer n = onnx_node("Add", "w", "v", "y"), g = graph_of(&n),
               w = onnx_floats("w", 2, dims, 6, values), v = onnx_floats("v", 2, other, 6, values);
    onnx_message(&g, ONNX_INITIALIZER, &w);
    onnx_message(&g, ONNX_INITIALIZER, &v);
    cannot_build(&g, "of constants of different shapes");
}
END_TEST

/* ------------------------------------------------------------------ memory */

/** A chain in which each node doubles a constant: 2^40 values. */
START_TEST(constants_that_grow_are_refused)
{
    float const value = 1;
    int64_t const one = 1;
    qat_writer g = {0}, w = onnx_floats("c0", 1, &one, 1, &value);
    onnx_message(&g, ONNX_INITIALIZER, &w);
    for (int i = 0; i < 40; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "c%d", i);
        snprintf(to, sizeof to, "c%d", i + 1);
        qat_writer n = onnx_node("Concat", from, from, to);
        add_attr(&n, "axis", INT, 1, (const int64_t[]){0});
        onnx_message(&g, ONNX_NODE, &n);
    }
    qat_writer n = onnx_node("Add", "x", "c40", "y");
    onnx_message(&g, ONNX_NODE, &n);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "y");
    room = 1 << 20;
    cannot_build(&g, "(Concat): constants and parameters take more memory than is allowed");
    room = 0;
}
END_TEST

START_TEST(parameters_are_counted)
{
    qat_writer g = flat_network();
    room = 140; /* of 24 values and, after a flatten, 12 positions, of 4 bytes each */
    cannot_build(&g, "(MatMul): constants and parameters take more memory than is allowed");
    room = 0;
}
END_TEST

/* ------------------------------------------------------------------ values */

/** Build, run on 0, 1, 2 ... in the order of memory, and compare the answers. */
static void answers(qat_writer *graph, int n, const float *want)
{
    qat_graph *made;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    ck_assert_msg(build(graph, 0, &made, &last, &params, &err) == QAT_OK, "%s", err.message);
    qat_graph_output(made, last);
    ck_assert_int_eq(qat_graph_plan(made, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(made, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, made), params.count);
    for (int i = 0; i < 12; i++)
        qat_graph_find(made, "input")->value[i] = (float)i;
    qat_graph_forward(made, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_uint_eq(qat_shape_count(&last->shape), (size_t)n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(last->value[i] == want[i], "value %d is %g, expected %g", i,
                      (double)last->value[i], (double)want[i]);
    qat_foreign_params_free(&params);
    qat_graph_free(made);
}

/** x + w of 2 channels, which stand at dimension 1, as files before opset 7 say it. */
START_TEST(older_sums_have_an_axis)
{
    float const w[] = {100, 200};
    int64_t const two = 2;
    float want[12];
    qat_writer n = onnx_node("Add", "x", "w", "y");
    add_attr(&n, "broadcast", INT, 1, (const int64_t[]){1});
    add_attr(&n, "axis", INT, 1, (const int64_t[]){1});
    qat_writer g = graph_of(&n), t = onnx_floats("w", 1, &two, 2, w);
    onnx_message(&g, ONNX_INITIALIZER, &t);
    for (int i = 0; i < 12; i++)
        want[i] = (float)i + w[i % 2];
    answers(&g, 12, want);
}
END_TEST

/** An axis at which the constant does not fit is not looked at, however large it is. */
START_TEST(older_sums_have_an_axis_within_the_input)
{
    float const w[] = {100, 200};
    int64_t const dims[] = {1, 2, 1, 1};
    float want[12];
    for (int64_t less = 0; less < 8; less++) {
        qat_writer n = onnx_node("Add", "x", "w", "y");
        add_attr(&n, "axis", INT, 1, (const int64_t[]){INT64_MAX - less});
        qat_writer g = graph_of(&n), t = onnx_floats("w", 4, dims, 2, w);
        onnx_message(&g, ONNX_INITIALIZER, &t);
        for (int i = 0; i < 12; i++)
            want[i] = (float)i + w[i % 2];
        answers(&g, 12, want);
    }
}
END_TEST

/** Gather of the last position of the last dimension, and Concat along it, counted from the end. */
START_TEST(axes_count_from_the_end)
{
    qat_writer a = onnx_node("Gather", "x", "i", "part"), i = {0};
    add_attr(&a, "axis", INT, 1, (const int64_t[]){-1});
    onnx_number(&i, 1, 1); /* dims */
    onnx_number(&i, 2, 7); /* int64 */
    onnx_text(&i, 8, "i");
    onnx_bytes(&i, 9, &(int64_t){2}, 8);
    qat_writer g = {0}, c = onnx_node("Concat", "part", "x", "y");
    add_attr(&c, "axis", INT, 1, (const int64_t[]){-1});
    onnx_message(&g, ONNX_NODE, &a);
    onnx_message(&g, ONNX_NODE, &c);
    onnx_message(&g, ONNX_INITIALIZER, &i);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "y");
    answers(&g, 16, (const float[]){4, 5, 0, 1, 2, 3, 4, 5, 10, 11, 6, 7, 8, 9, 10, 11});
}
END_TEST

/** The loss must find a softmax behind which dimensions are renamed. */
START_TEST(a_softmax_behind_a_reshape_is_the_last_node)
{
    qat_graph *made;
    qat_node *last;
    qat_foreign_params params = {0};
    qat_error err = {0};
    qat_writer g = {0}, a = onnx_node("GlobalAveragePool", "x", NULL, "mean"),
               b = onnx_node("Softmax", "mean", NULL, "soft"),
               c = onnx_node("Flatten", "soft", NULL, "y");
    add_attr(&b, "axis", INT, 1, (const int64_t[]){1});
    onnx_message(&g, ONNX_NODE, &a);
    onnx_message(&g, ONNX_NODE, &b);
    onnx_message(&g, ONNX_NODE, &c);
    onnx_value(&g, ONNX_INPUT, "x");
    onnx_value(&g, ONNX_OUTPUT, "y");
    ck_assert_msg(build(&g, 0, &made, &last, &params, &err) == QAT_OK, "%s", err.message);
    ck_assert_str_eq(last->op->name, "softmax");
    ck_assert_int_eq(last->shape.rank, 2);
    qat_foreign_params_free(&params);
    qat_graph_free(made);
}
END_TEST

/* ------------------------------------------------------------------ constants in other files */

/** A model beside a file of constants: 4 bytes that nobody wants, then 24 floats. */
static qat_status read_with(const char *location, const char *offset, const char *length,
                            qat_foreign_graph **g, qat_error *err)
{
    const char *const entries[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    char path[TEST_PATH_MAX];
    float values[25];
    int64_t const dims[] = {12, 2};
    for (int i = 0; i < 25; i++)
        values[i] = (float)i;
    test_temp_write(folder, "weights", values, sizeof values);
    qat_writer graph = {0}, m = {0}, t = {0}, n = onnx_node("MatMul", "x", "w", "y");
    onnx_number(&t, 1, (uint64_t)dims[0]);
    onnx_number(&t, 1, (uint64_t)dims[1]);
    onnx_number(&t, 2, 1);
    onnx_text(&t, 8, "w");
    for (int i = 0; i < 3; i++) {
        qat_writer e = {0};
        onnx_text(&e, 1, entries[i][0]);
        onnx_text(&e, 2, entries[i][1]);
        onnx_message(&t, 13, &e);
    }
    onnx_number(&t, 14, 1);
    onnx_message(&graph, ONNX_NODE, &n);
    onnx_message(&graph, ONNX_INITIALIZER, &t);
    onnx_message(&m, 7, &graph);
    test_temp_write(folder, "model.onnx", m.bytes, m.count);
    qat_status const st =
        qat_onnx_read(g, test_temp_path(path, folder, "model.onnx"), m.count + 4096 + 2 * 96, err);
    qat_writer_free(&m);
    return st;
}

START_TEST(constants_in_other_files)
{
    const struct {
        const char *location, *offset, *length, *words;
    } cases[] = {{"weights", "4", "96", NULL},
                 {"../weights", "4", "96", "only a file in the folder"},
                 {"/etc/passwd", "4", "96", "only a file in the folder"},
                 {"none", "4", "96", "none"},
                 {"folder", "4", "96", "folder: cannot read: not a file"},
                 {".", "4", "96", "only a file in the folder"},
                 {"weights", "8", "96", "96 bytes at 8 of 'weights' are not there"},
                 {"weights", "18446744073709551615", "96", "are not there"},
                 {"weights", "4", "92", "92 bytes in 'weights', but its shape needs 96"}};
    char path[TEST_PATH_MAX];
    ck_assert_int_eq(mkdir(test_temp_path(path, folder, "folder"), 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_foreign_graph *g = NULL;
        qat_error err = {0};
        qat_status const st =
            read_with(cases[i].location, cases[i].offset, cases[i].length, &g, &err);
        ck_assert_msg((st == QAT_OK) == !cases[i].words, "case %zu: %s", i, err.message);
        if (st) {
            ck_assert_msg(strstr(err.message, cases[i].words) != NULL, "%s", err.message);
            continue;
        }
        for (int v = 0; v < g->n_values; v++)
            if (g->values[v].constant)
                for (int k = 0; k < 24; k++)
                    ck_assert_int_eq((int)g->values[v].constant->floats[k], k + 1);
        qat_foreign_free(g);
    }
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
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
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
    tcase_add_test(tc, a_first_output_needs_a_name);
    tcase_add_test(tc, attributes_have_their_kind);
    tcase_add_test(tc, pools_say_their_window);
    tcase_add_test(tc, parts_of_a_split_add_up);
    tcase_add_test(tc, batches_are_limited);
    tcase_add_test(tc, clip_needs_bounds_in_order);
    tcase_add_test(tc, constants_of_other_shapes_are_not_added);
    tcase_add_test(tc, constants_that_grow_are_refused);
    tcase_add_test(tc, parameters_are_counted);
    tcase_add_test(tc, older_sums_have_an_axis);
    tcase_add_test(tc, older_sums_have_an_axis_within_the_input);
    tcase_add_test(tc, axes_count_from_the_end);
    tcase_add_test(tc, a_softmax_behind_a_reshape_is_the_last_node);
    tcase_add_test(tc, constants_in_other_files);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

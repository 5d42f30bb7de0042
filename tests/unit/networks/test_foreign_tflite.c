/** Float .tflite files that are made here: what they compute, their layers' names, refusals. */
#include "common/suite.h"
#include "common/tflite_build.h"
#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"
#include "foreign/foreign.h"
#include "qat/qat.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { GATHER_ND = 107, CONV = 0, SUM = 1, SOFT = 4, OPS = 5, TENSORS = 11 };

/** [1, 2, 3, 2] -> conv 1x1, ReLU6 -> + itself scaled -> row in the file's order -> 2 outputs. */
static float const weights[] = {1, 0, 0, 2}, bias[] = {0, 1}, factors[] = {1, 10};
static float rows[24];
static int32_t const row_shape[] = {-1, 12};
#define T(name, rank, ...) name, TFL_FLOAT32, rank, {__VA_ARGS__}, 0, 0
static const build_tensor tensors[TENSORS] = {
    {T("x", 4, 1, 2, 3, 2), NULL, 0, 0, 0},
    {T("model/conv/Conv2D", 4, 2, 1, 1, 2), weights, sizeof weights, 0, 0},
    {T("model/conv/bias", 1, 2), bias, sizeof bias, 0, 0},
    {T("model/act/Relu6;model/bn/Norm;model/conv/Conv2D", 4, 1, 2, 3, 2), NULL, 0, 0, 0},
    {T("factors", 4, 1, 1, 1, 2), factors, sizeof factors, 0, 0},
    {T("model/scaled/mul", 4, 1, 2, 3, 2), NULL, 0, 0, 0},
    {"shape", TFL_INT32, 1, {2}, 0, 0, row_shape, sizeof row_shape, 0, 0},
    {T("row", 2, 1, 12), NULL, 0, 0, 0},
    {T("model/dense/MatMul", 2, 2, 12), rows, sizeof rows, 0, 0},
    {T("Identity", 2, 1, 2), NULL, 0, 0, 0},
    {T("soft", 2, 1, 2), NULL, 0, 0, 0}};
static const build_op ops[OPS] = {
    {.code = TFL_CONV_2D,
     .n_inputs = 3,
     .inputs = {0, 1, 2},
     .n_outputs = 1,
     .outputs = {3},
     .options_type = TFL_OPTIONS_CONV_2D,
     .n_options = 3,
     .options = {{CONV_STRIDE_W, 1}, {CONV_STRIDE_H, 1}, {CONV_ACTIVATION, TFL_ACT_RELU6}}},
    {.code = TFL_MUL,
     .n_inputs = 2,
     .inputs = {3, 4},
     .n_outputs = 1,
     .outputs = {5},
     .options_type = TFL_OPTIONS_MUL},
    {.code = TFL_RESHAPE, .n_inputs = 2, .inputs = {5, 6}, .n_outputs = 1, .outputs = {7}},
    {.code = TFL_FULLY_CONNECTED,
     .n_inputs = 3,
     .inputs = {7, 8, -1},
     .n_outputs = 1,
     .outputs = {9},
     .options_type = TFL_OPTIONS_FULLY_CONNECTED},
    {.code = TFL_SOFTMAX,
     .n_inputs = 1,
     .inputs = {9},
     .n_outputs = 1,
     .outputs = {10},
     .options_type = TFL_OPTIONS_SOFTMAX,
     .n_options = 1,
     .options = {{SOFTMAX_BETA, 0x3f800000}}}};

/** A copy that a test may change. */
static struct network {
    build_tensor tensors[TENSORS];
    build_op ops[OPS];
    build_model model;
} net;

static void begin(int n_ops)
{
    memcpy(net.tensors, tensors, sizeof tensors);
    memcpy(net.ops, ops, sizeof ops);
    net.model = (build_model){.n_tensors = TENSORS,
                              .tensors = net.tensors,
                              .n_ops = n_ops,
                              .ops = net.ops,
                              .n_inputs = 1,
                              .n_outputs = 1,
                              .outputs = {ops[n_ops - 1].outputs[0]}};
}

static qat_registry *registry;
static qat_graph *graph;
static qat_node *last;
static qat_foreign_params params;
static qat_error err;

static qat_status build(int head, uint64_t memory)
{
    qat_foreign_options const o = {.height = 2, .width = 3, .channels = 2, .head = head};
    qat_foreign_graph *from;
    size_t count;
    uint8_t *bytes = build_tflite(&net.model, &count);
    err = (qat_error){0};
    qat_status st = qat_float_tflite_parse(&from, bytes, count, "made.tflite", memory, &err);
    ck_assert((st == QAT_OK) == (from != NULL));
    if (!st)
        st = qat_graph_create(&graph, registry, &err);
    if (!st)
        st = qat_foreign_build(from, graph, qat_graph_input(graph, "input", QAT_SHAPE(1, 2, 3, 2)),
                               &o, &last, &params, &err);
    qat_foreign_free(from);
    free(bytes);
    return st;
}

static void end(void)
{
    qat_foreign_params_free(&params);
    qat_graph_free(graph);
    graph = NULL;
}

static void refuses(const char *words)
{
    ck_assert_int_ne(build(0, 0), QAT_OK);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' has no '%s'", err.message, words);
    end();
}

/* ------------------------------------------------------------------ values */

START_TEST(values_lie_in_the_files_order)
{
    float const want[] = {0, 30, 2, 60, 4, 60, 6, 60, 6, 60, 6, 60}; /* of x = 0, 1 ... 11 */
    begin(SOFT);
    for (int i = 0; i < 24; i++)
        rows[i] = i == 1 || i == 12 + 4; /* values 1 and 4 of the row */
    ck_assert_msg(!build(0, 0), "%s", err.message);
    qat_graph_output(graph, last);
    ck_assert_int_eq(qat_graph_plan(graph, 1, QAT_PLAN_KEEP, &err), QAT_OK);
    qat_graph_init_params(graph, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, graph), params.count);
    for (int i = 0; i < 12; i++)
        qat_graph_find(graph, "input")->value[i] = (float)i;
    qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_int_eq((int)last->value[0], (int)want[1]);
    ck_assert_int_eq((int)last->value[1], (int)want[4]);
    const qat_node *scaled = qat_graph_find(graph, "model/scaled/mul");
    ck_assert_ptr_nonnull(scaled);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq((int)scaled->value[i], (int)want[i]);
    end();
}
END_TEST

START_TEST(layers_have_their_own_names)
{
    begin(OPS);
    ck_assert_msg(!build(0, 0), "%s", err.message);
    ck_assert_ptr_nonnull(qat_graph_find(graph, "model/conv"));
    ck_assert_ptr_nonnull(qat_graph_find(graph, "model/dense"));
    ck_assert_str_eq(last->op->name, "softmax");
    end();
}
END_TEST

START_TEST(a_new_head_has_its_outputs)
{
    begin(OPS);
    ck_assert_msg(!build(7, 0), "%s", err.message);
    ck_assert_int_eq(qat_shape_channels(&last->shape), 7);
    ck_assert_int_eq(params.count, 3); /* of the convolution, its bias, the factors */
    end();
}
END_TEST

START_TEST(halves_become_floats)
{
    static uint16_t const half[] = {0x3c00, 0, 0, 0x4000}; /* 1, 0, 0, 2 */
    begin(SOFT);
    net.tensors[1].type = TFL_FLOAT16;
    net.tensors[1].data = half;
    net.tensors[1].bytes = sizeof half;
    ck_assert_msg(!build(0, 0), "%s", err.message);
    ck_assert_int_eq(memcmp(params.at[0].values, weights, sizeof weights), 0);
    end();
}
END_TEST

/* ------------------------------------------------------------------ refusals */

START_TEST(what_cannot_be_taken_is_named)
{
    begin(SOFT);
    net.tensors[1].type = TFL_INT8;
    refuses("op 0 (CONV_2D, writes model/act/Relu6");
    refuses("tensor 1 (model/conv/Conv2D) is int8");
    begin(SOFT);
    net.ops[SUM].code = GATHER_ND;
    refuses("op 1 (GATHER_ND, writes model/scaled/mul): this operator is not supported");
    begin(SOFT);
    net.ops[CONV].n_inputs = 1;
    refuses("it has 1 inputs");
    begin(SOFT);
    net.ops[CONV].inputs[1] = -1;
    refuses("it has no input 1");
    begin(SOFT);
    net.tensors[0].dims[1] = 5;
    refuses("its input 'x' is [1, 5, 3, 2], but the data have height 2");
    begin(OPS);
    net.ops[SOFT].n_options = 0;
    refuses("beta = 0");
    begin(SOFT);
    net.ops[CONV].options[2].bits = 5;
    refuses("the activation 5 is not supported");
}
END_TEST

/* ------------------------------------------------------------------ parts */

/** STRIDED_SLICE, SLICE or CONCATENATION of x, [1, 2, 3, 2], with three constants of 4 numbers. */
static void begin_parts(build_op *op, build_tensor made[5], const int64_t of[3][4])
{
    static build_tensor const x = {T("x", 4, 1, 2, 3, 2), NULL, 0, 0, 0};
    static build_tensor const numbers = {"numbers", TFL_INT64, 1, {4}, 0, 0, NULL, 32, 0, 0};
    made[0] = made[4] = x;
    made[4].name = "y";
    for (int i = 0; i < 3; i++) {
        made[1 + i] = numbers;
        made[1 + i].data = of[i];
    }
    net.model = (build_model){.n_tensors = 5,
                              .tensors = made,
                              .n_ops = 1,
                              .ops = op,
                              .n_inputs = 1,
                              .n_outputs = 1,
                              .outputs = {4}};
}

/** All of a dimension, from its end to its beginning. */
START_TEST(masks_follow_the_stride)
{
    build_op op = {.code = TFL_STRIDED_SLICE,
                   .n_inputs = 4,
                   .inputs = {0, 1, 2, 3},
                   .n_outputs = 1,
                   .outputs = {4},
                   .options_type = TFL_OPTIONS_STRIDED_SLICE,
                   .n_options = 2,
                   .options = {{SLICE_BEGIN_MASK, 15}, {SLICE_END_MASK, 15}}};
    static const int64_t of[3][4] = {{0, 0, 1, 0}, {0, 0, 2, 0}, {1, 1, -1, 1}};
    build_tensor made[5];
    begin_parts(&op, made, of);
    ck_assert_msg(!build(0, 0), "%s", err.message);
    qat_graph_output(graph, last);
    ck_assert_int_eq(qat_graph_plan(graph, 1, QAT_PLAN_KEEP, &err), QAT_OK);
    for (int i = 0; i < 12; i++)
        qat_graph_find(graph, "input")->value[i] = (float)i;
    qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_uint_eq(qat_shape_count(&last->shape), 12);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq((int)last->value[i], i / 6 * 6 + (2 - i / 2 % 3) * 2 + i % 2);
    end();
}
END_TEST

START_TEST(positions_are_within_32_bits)
{
    static const int64_t far[3][4] = {{0, 0, INT64_MAX, 0}, {1, 2, 3, 2}, {1, 1, 1, 1}};
    build_op op = {.code = TFL_STRIDED_SLICE,
                   .n_inputs = 4,
                   .inputs = {0, 1, 2, 3},
                   .n_outputs = 1,
                   .outputs = {4},
                   .options_type = TFL_OPTIONS_STRIDED_SLICE,
                   .n_options = 1,
                   .options = {{SLICE_SHRINK_MASK, 4}}};
    build_tensor made[5];
    begin_parts(&op, made, far);
    refuses("position 9223372036854775807 of dimension 2");
    op = (build_op){
        .code = TFL_SLICE, .n_inputs = 3, .inputs = {0, 1, 2}, .n_outputs = 1, .outputs = {4}};
    refuses("3 positions from 9223372036854775807 on in dimension 2");
    op = (build_op){.code = TFL_CONCATENATION,
                    .n_inputs = 2,
                    .n_outputs = 1,
                    .outputs = {4},
                    .options_type = TFL_OPTIONS_CONCATENATION,
                    .n_options = 1,
                    .options = {{CONCATENATION_AXIS, (uint32_t)-5}}};
    refuses("axis -5 of 4 dimensions");
}
END_TEST

START_TEST(constants_must_be_complete)
{
    begin(SOFT);
    net.tensors[1].bytes = 12;
    refuses("tensor 1 (model/conv/Conv2D): it does not hold the values of its shape");
    begin(SOFT);
    net.tensors[1].dims[0] = INT32_MAX;
    refuses("too many values");
    begin(SOFT);
    net.tensors[1].sparse = 1;
    refuses("sparse");
}
END_TEST

START_TEST(memory_is_limited)
{
    begin(OPS);
    ck_assert_int_eq(build(0, 2000), QAT_ERR_LIMIT);
    ck_assert_msg(strstr(err.message, "more memory") != NULL, "%s", err.message);
    end();
}
END_TEST

int main(void)
{
    qat_error failed = {0};
    if (qat_registry_create(&registry, &failed))
        return 1;
    Suite *suite = suite_create("foreign_tflite");
    TCase *tc = tcase_create("foreign_tflite");
    tcase_add_test(tc, values_lie_in_the_files_order);
    tcase_add_test(tc, layers_have_their_own_names);
    tcase_add_test(tc, a_new_head_has_its_outputs);
    tcase_add_test(tc, halves_become_floats);
    tcase_add_test(tc, what_cannot_be_taken_is_named);
    tcase_add_test(tc, masks_follow_the_stride);
    tcase_add_test(tc, positions_are_within_32_bits);
    tcase_add_test(tc, constants_must_be_complete);
    tcase_add_test(tc, memory_is_limited);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

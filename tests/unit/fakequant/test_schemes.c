/*
 * Binary, ternary and incremental weights, worked by hand: values, codes, gradients, what is frozen
 * when, and which layers with them are refused.
 */
#include "common/quantizer_bench.h"
#include "common/suite.h"
#include "fakequant/schemes.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

static void forward_at(int64_t step)
{
    qat_run const run = bench_train_at(step);
    qat_graph_forward(g, &run);
}

static void expect_values(const struct bench *b, const float *expected)
{
    for (size_t i = 0; i < bench_count(b); i++)
        ck_assert_msg(fabsf(b->q->value[i] - expected[i]) <= 1e-6f, "value %zu is %g, not %g", i,
                      (double)b->q->value[i], (double)expected[i]);
}

static void expect_codes(const struct bench *b, const int *expected)
{
    uint8_t codes[64];
    bool const int8 = qat_attr(b->q, "layout") == (double)QAT_LAYOUT_INT8;
    qat_quantizer_codes(b->q, codes);
    for (size_t i = 0; i < bench_count(b); i++)
        ck_assert_int_eq(int8 ? (int8_t)codes[i] : codes[i], expected[i]);
}

/* ------------------------------------------------------------------ one magnitude a group */

static const struct by_hand {
    const char *op, *attrs;
    float x[12], y[12];
    int codes[12]; /* of fgq: not asked for */
} by_hand[] = {
    {"bwn_weights",
     "layout=int8",
     {1, -2, 3, 0, -4, 2, 0, -0.5f, 1, 0.5f, 0, -1},
     {2, -2, 2, 2, -2, 2, 0.5f, -0.5f, 0.5f, 0.5f, 0.5f, -0.5f},
     {1, -1, 1, 1, -1, 1, 1, -1, 1, 1, 1, -1}},
    {"bwn_weights",
     "",
     {1, -2, 3, 0, -4, 2, 0, -0.5f, 1, 0.5f, 0, -1},
     {1.25f, -1.25f, 1.25f, 1.25f, -1.25f, 1.25f, 1.25f, -1.25f, 1.25f, 1.25f, 1.25f, -1.25f},
     {3, 1, 3, 3, 1, 3, 3, 1, 3, 3, 3, 1}},
    /* thresholds 0.7 * 4.8 / 6 = 0.56 and 0.7 * 9 / 6 = 1.05 */
    {"twn_weights",
     "layout=int8",
     {1, -0.2f, 0.6f, -2, 0.5f, -0.5f, 1, 1, 1, -2, 2, -2},
     {1.2f, 0, 1.2f, -1.2f, 0, 0, 0, 0, 0, -2, 2, -2},
     {1, 0, 1, -1, 0, 0, 0, 0, 0, -1, 1, -1}},
    /* of all: 0.7 * 13.8 / 12 = 0.805 */
    {"twn_weights",
     "",
     {1, -0.2f, 0.6f, -2, 0.5f, -0.5f, 1, 1, 1, -2, 2, -2},
     {1.5f, 0, 0, -1.5f, 0, 0, 1.5f, 1.5f, 1.5f, -1.5f, 1.5f, -1.5f},
     {3, 2, 2, 1, 2, 2, 3, 3, 3, 1, 3, 1}},
    /* sums squared by counts: 9, 8, 8.33, 7.56 | 1, 2 ||  1, 1.125, .75, .5625 | 0 */
    {"fgq_weights",
     "layout=int8",
     {3, -1, 1, 0.5f, 1, -1, 0.5f, 0, -1, 0, 0, 0},
     {3, 0, 0, 0, 1, -1, 0.75f, 0, -0.75f, 0, 0, 0},
     {0}},
};

START_TEST(test_values)
{
    const struct by_hand *h = &by_hand[_i];
    struct bench const b = bench_build(h->op, h->attrs, true, QAT_SHAPE(2, 6));
    memcpy(b.x->value, h->x, sizeof h->x);
    forward_at(0);
    expect_values(&b, h->y);
    if (strcmp(h->op, "fgq_weights") != 0)
        expect_codes(&b, h->codes);
}
END_TEST

/* All gradients pass, those of large weights too; before the delay nothing is changed. */
START_TEST(test_gradients)
{
    static const char *const ops[] = {"bwn_weights", "twn_weights", "fgq_weights"};
    float up[12];
    struct bench const b = bench_build(ops[_i], "layout=int8 delay=1", true, QAT_SHAPE(2, 6));
    bench_fill(&b, 3, -5, 5);
    bench_random(up, 12, 4);
    for (int step = 0; step < 2; step++) {
        qat_run const run = bench_train_at(step);
        qat_graph_forward(g, &run);
        ck_assert_int_eq(memcmp(b.q->value, b.x->value, sizeof up) == 0, step == 0);
        bench_backward(&b, up, &run);
        ck_assert_mem_eq(b.x->grad, up, sizeof up);
    }
}
END_TEST

/* Activations that stay float: values and gradients pass. */
START_TEST(test_float_activation)
{
    float up[12];
    struct bench const b = bench_build("float_activation", "", false, QAT_SHAPE(2, 6));
    bench_fill(&b, 3, -5, 5);
    bench_random(up, 12, 4);
    qat_run const run = bench_train_at(0);
    qat_graph_forward(g, &run);
    bench_backward(&b, up, &run);
    ck_assert_mem_eq(b.q->value, b.x->value, sizeof up);
    ck_assert_mem_eq(b.x->grad, up, sizeof up);
}
END_TEST

/* A tensor of zeros has a scale all the same. */
START_TEST(test_zeros)
{
    static const char *const ops[] = {"bwn_weights", "twn_weights", "fgq_weights", "inq_weights"};
    qat_qparams p;
    struct bench const b = bench_build(ops[_i], "layout=int8 bits=4", true, QAT_SHAPE(1, 6));
    memset(b.x->value, 0, 6 * sizeof(float));
    bench_observe(&b);
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_float_gt(p.scale, 0);
    expect_values(&b, (const float[6]){0});
}
END_TEST

/* Weights whose magnitude is no normal number of float32 are 0: codes have a scale all the same. */
START_TEST(test_tiny)
{
    static const char *const ops[] = {"bwn_weights", "twn_weights", "inq_weights"};
    qat_qparams p;
    struct bench const b = bench_build(ops[_i], "layout=int8 bits=4", true, QAT_SHAPE(1, 6));
    for (int i = 0; i < 6; i++)
        b.x->value[i] = i % 2 ? -1e-40F : 1e-40F;
    bench_observe(&b);
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_float_ge(p.scale, FLT_MIN);
    if (strcmp(ops[_i], "inq_weights") == 0)
        return; /* its weights are free until the first stage */
    expect_values(&b, (const float[6]){0});
    expect_codes(&b, (const int[6]){0});
}
END_TEST

/* ------------------------------------------------------------------ stages */

/* Three bits: max 1.4, n1 = floor(log2(4/3 1.4)) = 0, n2 = -1: values 0, 1/2, 1. */
static const float start[] = {1.4f, -0.74f, 0.76f, 0.24f, -0.26f, 1, -0.1f, 0.6f};
static const float powers[] = {1, -0.5f, 1, 0, -0.5f, 1, 0, 0.5f};

static struct bench stages_bench(void)
{
    struct bench const b =
        bench_build("inq_weights", "bits=3 layout=int8 stage1=1 stage2=2 stage3=3 stage4=4", true,
                    QAT_SHAPE(1, 8));
    memcpy(b.x->value, start, sizeof start);
    return b;
}

/** One step, after which the optimizer would have moved every weight a little. */
static void step_and_move(const struct bench *b, int64_t step)
{
    qat_run const run = bench_train_at(step);
    qat_graph_forward(g, &run);
    for (size_t i = 0; i < bench_count(b); i++)
        b->x->value[i] *= 1.001f;
    qat_graph_update(g, &run);
}

/* 4, 6, 7, 8 of 8 weights, the largest first: 1.4, 1, .76, .74 | .6, .26 | .24 | .1 */
START_TEST(test_stages)
{
    static const int stage_of[] = {1, 1, 1, 3, 2, 1, 4, 2};
    float up[8], once[8];
    struct bench const b = stages_bench();
    bench_random(up, 8, 5);
    for (int step = 0; step < 6; step++) {
        qat_run const run = bench_train_at(step);
        memcpy(once, b.x->value, sizeof once);
        step_and_move(&b, step);
        bench_backward(&b, up, &run);
        forward_at(step + 1);
        for (int i = 0; i < 8; i++) {
            bool const frozen = step + 1 >= stage_of[i];
            ck_assert_float_eq(b.q->value[i], frozen ? powers[i] : b.x->value[i]);
            ck_assert_float_eq(b.x->value[i], frozen ? powers[i] : once[i] * 1.001f);
            ck_assert_float_eq(b.x->grad[i], frozen ? 0 : up[i]);
        }
    }
    expect_codes(&b, (const int[]){2, -1, 2, 0, -1, 2, 0, 1});
}
END_TEST

/* What is free in evaluation stays as it is; weights that have grown take the largest power. */
START_TEST(test_late_weights)
{
    struct bench const b = stages_bench();
    step_and_move(&b, 0);
    b.x->value[6] = 9;
    qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_float_eq(b.q->value[6], 9);
    step_and_move(&b, 3);
    forward_at(4);
    ck_assert_float_eq(b.q->value[6], 1);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static void refused(const char *op, const char *attrs, qat_shape shape, const char *message)
{
    qat_param_def const def = {.name = "x", .shape = shape};
    qat_apply1(g, op, "q", attrs, qat_graph_param(g, &def));
    ck_assert_int_ne(qat_graph_check(g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
}

START_TEST(test_refusals)
{
    static const struct {
        const char *op, *attrs;
        qat_shape shape;
        const char *message;
    } cases[] = {
        {"inq_weights", "bits=6", {2, {4, 4}}, "x: inq needs 2 to 5 bits, but weight_bits = 6"},
        {"fgq_weights", "bits=4", {2, {4, 1}}, "x: fgq groups input channels"},
        {"fgq_weights", "axis=3", {4, {1, 3, 3, 8}}, "x: fgq groups input channels"},
        {"bwn_weights", "axis=2", {2, {4, 4}}, "axis 2 of a tensor of rank 2"},
        {"inq_weights", "bits=4 axis=2", {2, {4, 4}}, "axis 2 of a tensor of rank 2"},
    };
    refused(cases[_i].op, cases[_i].attrs, cases[_i].shape, cases[_i].message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schemes");
    TCase *tc = tcase_create("schemes");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_loop_test(tc, test_values, 0, sizeof by_hand / sizeof *by_hand);
    tcase_add_loop_test(tc, test_gradients, 0, 3);
    tcase_add_test(tc, test_float_activation);
    tcase_add_loop_test(tc, test_zeros, 0, 4);
    tcase_add_loop_test(tc, test_tiny, 0, 3);
    tcase_add_test(tc, test_stages);
    tcase_add_test(tc, test_late_weights);
    tcase_add_loop_test(tc, test_refusals, 0, 5);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

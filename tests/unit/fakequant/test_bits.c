/*
 * Bits that fall: which are in force when, what becomes of learned values, fixed ranges, shared
 * ranges and frozen weights. Expected numbers are worked by hand.
 */
#include "common/quantizer_bench.h"
#include "common/suite.h"
#include "fakequant/bits.h"
#include "fakequant/quantizer.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(test_stages)
{
    static const qat_bits_stage stages[] = {{8, 10}, {4, 20}};
    ck_assert_int_eq(qat_least_bits(stages, 2, 0), 8);
    ck_assert_int_eq(qat_least_bits(stages, 2, 9), 8);
    ck_assert_int_eq(qat_least_bits(stages, 2, 10), 4);
    ck_assert_int_eq(qat_least_bits(stages, 2, 19), 4);
    ck_assert_int_eq(qat_least_bits(stages, 2, 20), 0);
    ck_assert_int_eq(qat_least_bits(stages, 0, 0), 0);
}
END_TEST

static int bits_of(const struct bench *b)
{
    return (int)qat_attr(b->q, "bits");
}

/* A quantizer has what the stage wants if that is more than its own, and at the end its own. */
START_TEST(test_own_bits)
{
    static const char *const ops[] = {"fake_quant_weights", "ema_grid_weights", "bwn_weights",
                                      "fake_quant", "tqt"};
    bool const weights = _i < 3;
    struct bench const b = bench_build(ops[_i], "bits=3", weights, QAT_SHAPE(2, 4));
    static const int least[] = {8, 4, 2, 3, 5, 0}, expected[] = {8, 4, 3, 3, 5, 3};
    for (int i = 0; i < 6; i++) {
        qat_set_least_bits(g, weights ? least[i] : 7, weights ? 7 : least[i], false);
        ck_assert_int_eq(bits_of(&b), expected[i]);
    }
}
END_TEST

/* 16-bit activations keep their bits. */
START_TEST(test_wide)
{
    struct bench const b = bench_build("fake_quant", "bits=16 layout=int8", false, QAT_SHAPE(2, 4));
    qat_set_least_bits(g, 8, 8, false);
    ck_assert_int_eq(bits_of(&b), 16);
}
END_TEST

/* Layout int8: P = 127, 7, 1. The step keeps its relation to 2 mean|x| / sqrt(P). */
START_TEST(test_lsq_weights)
{
    struct bench const b =
        bench_build("lsq_weights", "bits=2 layout=int8 learn=1", true, QAT_SHAPE(2, 8));
    qat_set_least_bits(g, 8, 0, false);
    bench_fill(&b, 3, -1, 1);
    bench_observe(&b);
    bench_learned(&b)[0] = 0.01f;
    bench_learned(&b)[1] = 0.02f;
    qat_set_least_bits(g, 4, 0, true);
    for (int c = 0; c < 2; c++)
        ck_assert_float_eq_tol(bench_learned(&b)[c], (float)(0.01 * (c + 1) * sqrt(127.0 / 7)),
                               1e-6f);
    qat_set_least_bits(g, 0, 0, true);
    for (int c = 0; c < 2; c++) {
        qat_qparams p;
        ck_assert_int_eq(qat_quantizer_qparams(b.q, c, &p, &err), QAT_OK);
        ck_assert_float_eq_tol(p.scale, (float)(0.01 * (c + 1) * sqrt(127.0)), 1e-6f);
        ck_assert_int_eq(p.hi, 1);
    }
    qat_set_least_bits(g, 0, 0, true); /* nothing changes */
    ck_assert_float_eq_tol(bench_learned(&b)[0], (float)(0.01 * sqrt(127.0)), 1e-6f);
}
END_TEST

/* With two ends, lsq starts from the ends: n = 255 and 15 steps between them. The lower end stays.
 */
START_TEST(test_lsq_two_ends)
{
    struct bench const b = bench_build("lsq", "bits=4 learn=1", false, QAT_SHAPE(2, 8));
    qat_set_least_bits(g, 0, 8, false);
    bench_fill(&b, 4, -1, 1);
    bench_observe(&b);
    bench_learned(&b)[0] = 0.01f;
    bench_learned(&b)[1] = -0.75f;
    qat_set_least_bits(g, 0, 0, true);
    ck_assert_float_eq_tol(bench_learned(&b)[0], 0.17f, 1e-6f);
    ck_assert_float_eq(bench_learned(&b)[1], -0.75f);
}
END_TEST

/* Ends that are learned stay where they are, so steps grow. */
START_TEST(test_learned_ends)
{
    static const char *const ops[] = {"tqt_weights", "pact"};
    bool const weights = _i == 0;
    struct bench const b =
        bench_build(ops[_i], "bits=4 layout=int8 learn=1", weights, QAT_SHAPE(1, 8));
    qat_set_least_bits(g, 8, 8, false);
    bench_fill(&b, 5, weights ? -1 : 0, 1);
    bench_observe(&b);
    bench_learned(&b)[0] = 0.5f;
    qat_qparams before, after;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &before, &err), QAT_OK);
    qat_set_least_bits(g, 0, 0, true);
    ck_assert_float_eq(bench_learned(&b)[0], 0.5f);
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &after, &err), QAT_OK);
    ck_assert_float_eq_tol(after.scale / before.scale, weights ? 16 : 255 / 15.0f, 1e-4f);
}
END_TEST

/* The two nodes of a class share their step: it is rescaled once. */
START_TEST(test_shared)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(2, 8));
    qat_node *first = qat_apply1(g, "lsq", "q", "bits=2 learn=1 commits=0", x);
    double attrs[QAT_MAX_ATTRS];
    memcpy(attrs, first->attrs, sizeof attrs);
    attrs[QZ_COMMITS] = 1;
    qat_node *const inputs[] = {x, first->inputs[QZ_RANGE], first->inputs[QZ_LEARNED]};
    qat_node *second = qat_apply_values(g, first->op, "q2", attrs, 3, inputs);
    ck_assert_int_eq(qat_graph_plan(g, 2, QAT_PLAN_TRAIN_KEEP, &err), QAT_OK);
    qat_graph_init_params(g, 1);
    qat_set_least_bits(g, 0, 4, false);
    for (int i = 0; i < 16; i++)
        x->value[i] = (float)i;
    qat_run const run = bench_train_at(0);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
    qat_node_learned(second)->value[0] = 0.5f;
    qat_set_least_bits(g, 0, 0, true);
    ck_assert_float_eq_tol(qat_node_learned(first)->value[0], (float)(0.5 * sqrt(15.0 / 3)), 1e-6f);
}
END_TEST

/* tanh: [-1, 1) in 4 and in 8 bits; zero points 8 and 128, or 0 in layout int8. */
START_TEST(test_fixed_range)
{
    bool const int8 = _i == 1;
    char attrs[96];
    qat_qparams const four = qat_fixed_qparams(-1, 1, int8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, 4);
    qat_qparams const eight =
        qat_fixed_qparams(-1, 1, int8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, 8);
    snprintf(attrs, sizeof attrs, "bits=4 layout=%s kind=given scale=%.9g zero_point=%d",
             int8 ? "int8" : "uint8", (double)four.scale, four.zero_point);
    struct bench const b = bench_build("fake_quant", attrs, false, QAT_SHAPE(1, 4));
    for (int i = 0; i < 2; i++) {
        const qat_qparams *expected = i ? &four : &eight;
        qat_qparams p;
        qat_set_least_bits(g, 0, i ? 0 : 8, false);
        ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
        ck_assert_float_eq(p.scale, expected->scale);
        ck_assert_int_eq(p.zero_point, expected->zero_point);
        ck_assert_int_eq(p.hi, expected->hi);
    }
}
END_TEST

/* Codes of more bits are not followed; when the bits change, all weights are free. */
START_TEST(test_frozen)
{
    struct bench const b = bench_build("ema_grid_weights",
                                       "bits=3 layout=int8 freezes=1 freeze_share=0.5 "
                                       "threshold=0.4 last_threshold=0.4",
                                       true, QAT_SHAPE(1, 2));
    const qat_node *frozen = b.q->inputs[2], *rows = b.q->inputs[3];
    ck_assert_str_eq(frozen->name, "q/frozen");
    qat_set_least_bits(g, 4, 0, false);
    for (int step = 0; step < 8; step++) {
        qat_run const run = bench_train_at(step);
        if (step == 4)
            qat_set_least_bits(g, 0, 0, true);
        b.x->value[0] = step % 2;
        b.x->value[1] = 3;
        qat_graph_forward(g, &run);
        qat_graph_update(g, &run);
        ck_assert_int_eq(rows->value[4] > 0, step >= 4);
        ck_assert_int_eq(frozen->value[0] > 0, step >= 6);
    }
    qat_set_least_bits(g, 4, 0, true);
    ck_assert_float_eq(frozen->value[0], 0);
    ck_assert_float_eq(rows->value[4], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bits");
    TCase *tc = tcase_create("bits");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_test(tc, test_stages);
    tcase_add_loop_test(tc, test_own_bits, 0, 5);
    tcase_add_test(tc, test_wide);
    tcase_add_test(tc, test_lsq_weights);
    tcase_add_test(tc, test_lsq_two_ends);
    tcase_add_loop_test(tc, test_learned_ends, 0, 2);
    tcase_add_test(tc, test_shared);
    tcase_add_loop_test(tc, test_fixed_range, 0, 2);
    tcase_add_test(tc, test_frozen);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/*
 * Quantizers, worked by hand: where learned ranges start, the phases of a run, channels of zeros,
 * the plain scheme with the same ops, and the table.
 */
#include "base/rng.h"
#include "common/quantizer_bench.h"
#include "common/suite.h"
#include "fakequant/ops.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ where learning starts */

/* tqt starts at the ends it saw: hi is the largest |x|; learned in log2. */
START_TEST(test_tqt_start)
{
    static const float x[] = {-0.5f, 0.25f, 1.5f, 0, 0.75f, -1};
    struct bench const b = bench_build("tqt", "bits=4 learn=1", false, QAT_SHAPE(1, 6));
    memcpy(b.x->value, x, sizeof x);
    bench_observe(&b);
    ck_assert_float_eq_tol(bench_learned(&b)[0], (float)log2(1.5 * 16 / 15), 1e-6f);
    ck_assert_float_eq_tol(bench_learned(&b)[1], (float)log2(1.0 * 16 / 15), 1e-6f);
    qat_qparams p;
    ck_assert_int_eq(qat_node_qparams(b.q, &p, &err), QAT_OK);
    ck_assert_float_eq_tol(p.scale, 2.5f / 15, 1e-6f);
    ck_assert_int_eq(p.zero_point, 6);
    ck_assert_float_eq(qat_real_of(&p, p.zero_point), 0);
}
END_TEST

START_TEST(test_powers_of_two)
{
    qat_grid grid = {.bits = 8, .hi = 255, .power_of_two = true};
    static const double scales[][2] = {
        {0.25, 0.25}, {0.2500001, 0.5}, {3, 4}, {4, 4}, {1e-3, 0x1p-9}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        ck_assert_double_eq(qat_grid_scale(&grid, scales[i][0]), scales[i][1]);
    qat_qparams const p = qat_range_qparams(&grid, -0.9f, 2.9f);
    int exponent;
    ck_assert_float_eq(frexpf(p.scale, &exponent), 0.5f);
    ck_assert_float_le(p.min, -0.9f + p.scale / 2);
    ck_assert_float_ge(p.max, 2.9f);
    ck_assert(qat_grid_scale(&grid, 0) > 0);
    ck_assert(qat_grid_scale(&grid, -1) > 0);
    ck_assert(isfinite(qat_grid_scale(&grid, INFINITY)));
}
END_TEST

/* A channel of zeros has no scale to round; its code of 0 is that of all channels. */
START_TEST(test_zeros_by_powers_of_two)
{
    qat_grid const grid = {
        .bits = 8, .lo = -127, .hi = 127, .symmetric = true, .power_of_two = true};
    qat_qparams const p = qat_range_qparams(&grid, 0, 0);
    ck_assert_int_eq(p.zero_point, 0);
    ck_assert_int_eq(qat_code(&p, 0), 0);
    ck_assert_int_eq(qat_range_qparams(&grid, -1, 0.5f).zero_point, 0);
}
END_TEST

/* lo - a / s on a tie: half away from zero, on the layout's own codes (docs/arithmetic.md, 16). */
START_TEST(test_zero_point_ties)
{
    qat_grid const unsigned_codes = {.bits = 5, .hi = 31, .power_of_two = true};
    qat_grid const signed_codes = {.bits = 5, .lo = -16, .hi = 15, .power_of_two = true};
    ck_assert_int_eq(qat_scale_qparams(&unsigned_codes, 1, -15.5).zero_point, 16);
    ck_assert_int_eq(qat_scale_qparams(&signed_codes, 1, -15.5).zero_point, -1);
    ck_assert_int_eq(qat_range_qparams(&signed_codes, -15.5f, 15.5f).zero_point, -1);
}
END_TEST

/* ------------------------------------------------------------------ phases */

/*
 * The run is float until delay. It observes until learn, and the learned values follow. From then
 * on only the learned values count.
 */
START_TEST(test_phases)
{
    struct bench const b = bench_build("tqt", "delay=1 learn=2 decay=0.5", false, QAT_SHAPE(1, 4));
    const float *range = b.q->inputs[QZ_RANGE]->value;
    qat_qparams p;
    float up[] = {1, 1, 1, 1};
    ck_assert_int_eq(qat_node_qparams(b.q, &p, &err), QAT_ERR_STATE);
    for (int step = 0; step < 2; step++) {
        float const high = step ? 8 : 4;
        memcpy(b.x->value, (const float[]){0.3f, 1, 2, high}, 4 * sizeof(float));
        qat_run const run = bench_train_at(step);
        qat_graph_forward(g, &run);
        bench_backward(&b, up, &run);
        ck_assert_float_eq(bench_learned_grad(&b)[0], 0); /* not yet */
        ck_assert_int_eq(b.q->value[0] == 0.3f, step == 0);
        qat_graph_update(g, &run);
    }
    ck_assert_float_eq(range[QZ_MAX], 6); /* (4 + 8) / 2 */
    ck_assert_float_eq(range[QZ_STEPS], 2);
    ck_assert_float_eq_tol(bench_learned(&b)[0], (float)log2(6.0 * 256 / 255), 1e-6f);
    bench_learned(&b)[0] = 1; /* as if the optimizer had moved it */
    memcpy(b.x->value, (const float[]){0.3f, 1, 2, 100}, 4 * sizeof(float));
    qat_run const run = bench_train_at(2);
    qat_graph_forward(g, &run);
    ck_assert_float_eq_tol(b.q->value[3], 2 * 255.0f / 256, 1e-6f);
    bench_backward(&b, up, &run);
    ck_assert_float_gt(bench_learned_grad(&b)[0], 0);
    qat_graph_update(g, &run);
    ck_assert_float_eq(range[QZ_STEPS], 2);
    qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_float_eq_tol(b.q->value[3], 2 * 255.0f / 256, 1e-6f);
}
END_TEST

/* An optimizer may give learned values that are not allowed. update repairs them. */
START_TEST(test_limits)
{
    struct bench const b = bench_build("lsq", "bits=4 learn=1", false, QAT_SHAPE(1, 4));
    memcpy(b.x->value, (const float[]){-1, 1, 2, 3}, 4 * sizeof(float));
    bench_observe(&b);
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    bench_learned(&b)[0] = -3;
    bench_learned(&b)[1] = 2;
    qat_graph_update(g, &run);
    ck_assert_float_gt(bench_learned(&b)[0], 0);
    ck_assert_float_eq(bench_learned(&b)[1], 0);
}
END_TEST

/** The largest difference of y from x, in the first n values from `from` on. */
static float largest_error(const struct bench *b, size_t from, size_t n)
{
    float most = 0;
    for (size_t i = from; i < from + n; i++)
        most = fmaxf(most, fabsf(b->q->value[i] - b->x->value[i]));
    return most;
}

/* A channel of zeros has no range to learn when learning begins: it is observed until it has
 * another value, and learns from then on. The others learn meanwhile. */
START_TEST(test_channel_of_zeros)
{
    static const char *const ops[] = {"tqt_weights", "lsq_weights", "tqt_full_weights",
                                      "lsq_full_weights"};
    bool const full = _i >= 2;
    struct bench const b =
        bench_build(ops[_i], full ? "bits=7 layout=int8 learn=1" : "layout=int8 learn=1", true,
                    QAT_SHAPE(2, 8));
    float up[16];
    qat_qparams p;
    qat_run const run = bench_train_at(1);
    bench_fill(&b, 5, -1, 1);
    memset(b.x->value, 0, 8 * sizeof(float));
    bench_observe(&b);
    bench_random(up, 16, 6);
    qat_graph_forward(g, &run);
    ck_assert_float_eq(largest_error(&b, 0, 8), 0);
    bench_backward(&b, up, &run);
    ck_assert_float_eq(bench_learned_grad(&b)[0], 0);
    ck_assert_float_ne(bench_learned_grad(&b)[1], 0);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(b.x->grad[i], up[i]); /* so that it can leave 0 */
    float const other = bench_learned(&b)[1] += 0.5f;
    memcpy(b.x->value, (const float[]){0.1f, -0.2f, 0, 0.05f, 0.2f, 0.1f, 0, 0}, 8 * sizeof(float));
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert(p.scale < 0.03f); /* of the values it has now, as export would see them */
    ck_assert_int_eq(p.lo, full ? -64 : -127);
    qat_graph_update(g, &run);
    ck_assert_float_eq(bench_learned(&b)[1], other);
    float const begun = bench_learned(&b)[0];
    b.x->value[0] = 3; /* beyond the range it began with: cut, and pulled at */
    qat_graph_forward(g, &run);
    ck_assert_float_lt(b.q->value[0], 2);
    ck_assert_float_lt(largest_error(&b, 1, 7), 0.01f);
    bench_backward(&b, up, &run);
    ck_assert_float_ne(bench_learned_grad(&b)[0], 0);
    qat_graph_update(g, &run);
    ck_assert_float_eq(bench_learned(&b)[0], begun);
}
END_TEST

/* Codes -2..1: no value of the range is cut; an end lies on its code. */
START_TEST(test_range_with_all_codes)
{
    qat_grid const grid = {.bits = 2, .lo = -2, .hi = 1, .weights = true, .symmetric = true};
    static const struct {
        float min, max, scale;
    } cases[] = {{-2, 0.5f, 1}, {-1, 1, 1}, {-1, 0, 0.5f}, {0, 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_qparams const p = qat_range_qparams(&grid, cases[i].min, cases[i].max);
        ck_assert_float_eq(p.scale, cases[i].scale);
        ck_assert_int_eq(p.zero_point, 0);
        ck_assert_int_eq(p.lo, -2);
        ck_assert_int_eq(p.hi, 1);
    }
    qat_qparams const empty = qat_range_qparams(&grid, 0, 0);
    ck_assert_float_eq(empty.scale, 1);
    ck_assert_int_eq(empty.zero_point, 0);
}
END_TEST

/* Nor has an empty range of int8 weights another Z if scales are powers of two. */
START_TEST(test_tiny_range)
{
    static const float tiny[] = {0, 1e-45F, 1e-40F, 1e-37F, 2e-36F, 1e-31F, 1};
    qat_grid const grid = {
        .bits = 8, .lo = -127, .hi = 127, .weights = true, .symmetric = true, .power_of_two = _i};
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        qat_qparams const p = qat_range_qparams(&grid, -tiny[i], tiny[i]);
        ck_assert_int_eq(p.zero_point, 0);
        ck_assert_int_eq(p.lo, -127);
        ck_assert(p.scale >= FLT_MIN && (tiny[i] < 1e-36F) == (qat_is_empty_range(&p)));
    }
}
END_TEST

/* tqt_full starts with the largest value as its lowest code, tqt as its highest. */
START_TEST(test_start_with_all_codes)
{
    static const char *const ops[] = {"tqt_weights", "tqt_full_weights"};
    struct bench const b =
        bench_build(ops[_i], "bits=2 layout=int8 learn=1", true, QAT_SHAPE(1, 4));
    qat_qparams p;
    memcpy(b.x->value, (const float[]){-2, -1, 0.5f, 1}, 4 * sizeof(float));
    bench_observe(&b);
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_float_eq(p.scale, _i ? 1 : 2);
}
END_TEST

/* Likewise an activation: the first batch with another value is the first of its average. */
START_TEST(test_activation_of_zeros)
{
    static const char *const ops[] = {"tqt", "lsq"};
    struct bench const b = bench_build(ops[_i], "learn=1 decay=0.99", false, QAT_SHAPE(2, 8));
    const float *range = b.q->inputs[QZ_RANGE]->value;
    memset(b.x->value, 0, 16 * sizeof(float));
    bench_observe(&b);
    qat_run const run = bench_train_at(1);
    bench_fill(&b, 5, -1, 1);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
    ck_assert_float_lt(range[QZ_MIN], -0.5f);
    ck_assert_float_gt(range[QZ_MAX], 0.5f);
    qat_graph_forward(g, &run);
    ck_assert_float_lt(largest_error(&b, 0, 16), 0.01f);
    float up[16];
    bench_random(up, 16, 6);
    bench_backward(&b, up, &run);
    ck_assert_float_ne(bench_learned_grad(&b)[0], 0);
}
END_TEST

/* ------------------------------------------------------------------ the plain scheme, once more */

/** Steps of two nodes on the same x: values, gradients and ranges must be the same bits. */
static void expect_twins(const char *a, const char *a_attrs, const char *b, const char *b_attrs,
                         bool weights)
{
    qat_shape const shape = QAT_SHAPE(6, 3, 3, 41);
    qat_param_def const def = {.name = "x", .shape = shape, .trainable = true};
    qat_node *x = weights ? qat_graph_param(g, &def) : qat_graph_input(g, "x", shape);
    if (!weights)
        qat_graph_want_gradient(g, x);
    qat_node *q[2] = {qat_apply1(g, a, "a", a_attrs, x), qat_apply1(g, b, "b", b_attrs, x)};
    qat_node *loss[2] = {qat_apply1(g, "l2_loss", "la", "", q[0]),
                         qat_apply1(g, "l2_loss", "lb", "", q[1])};
    ck_assert_msg(qat_graph_plan(g, 6, QAT_PLAN_TRAIN_KEEP, &err) == QAT_OK, "%s", err.message);
    qat_graph_init_params(g, 3);
    size_t const n = qat_shape_count(&shape);
    static float grad[6 * 9 * 41];
    qat_rng rng = qat_rng_at(3, 4, 5);
    for (int step = 0; step < 4; step++) {
        for (size_t i = 0; i < n; i++)
            x->value[i] = (float)(qat_rng_uniform(&rng) * 3 - 1) * (float)(1 + step % 3);
        qat_run const run = bench_train_at(step);
        qat_graph_forward(g, &run);
        ck_assert_mem_eq(q[0]->value, q[1]->value, n * sizeof(float));
        qat_graph_backward(g, loss[0], &run);
        memcpy(grad, x->grad, n * sizeof(float));
        qat_graph_backward(g, loss[1], &run);
        ck_assert_mem_eq(x->grad, grad, n * sizeof(float));
        qat_graph_update(g, &run);
        qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_EVAL});
        ck_assert_mem_eq(q[0]->value, q[1]->value, n * sizeof(float));
    }
}

START_TEST(test_plain_activations)
{
    static const char *const scheme[] = {"bits=8", "bits=4 layout=int8", "bits=8 delay=2"};
    char attrs[64];
    snprintf(attrs, sizeof attrs, "%s decay=0.7", scheme[_i]);
    expect_twins("fake_quant", attrs, "ema_grid", attrs, false);
}
END_TEST

START_TEST(test_plain_weights)
{
    static const char *const scheme[] = {"bits=8", "bits=4 layout=int8",
                                         "bits=8 layout=int8 axis=3",
                                         "bits=5 layout=int8 per_tensor=1", "bits=8 symmetric=1"};
    expect_twins("fake_quant_weights", scheme[_i], "ema_grid_weights", scheme[_i], true);
}
END_TEST

/* ------------------------------------------------------------------ the table */

START_TEST(test_table)
{
    static const char *const names[] = {"ema", "tqt", "lsq"};
    for (int i = 0; i < 3; i++)
        for (int weights = 0; weights < 2; weights++) {
            const qat_op *op = qat_find_quantizer(registry, names[i], weights != 0);
            ck_assert_ptr_nonnull(op);
            ck_assert_int_eq(op->quant->quantizer->weights, weights);
        }
    ck_assert_ptr_eq(qat_find_quantizer(registry, "ema", false), &qat_op_fake_quant);
    ck_assert_ptr_eq(qat_find_quantizer(registry, "ema", true), &qat_op_fake_quant_weights);
    ck_assert_ptr_nonnull(qat_find_quantizer(registry, "pact", false));
    ck_assert_ptr_null(qat_find_quantizer(registry, "pact", true));
    ck_assert_ptr_null(qat_find_quantizer(registry, "relu", false));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantizers");
    TCase *tc = tcase_create("quantizers");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_test(tc, test_tqt_start);
    tcase_add_test(tc, test_powers_of_two);
    tcase_add_test(tc, test_zeros_by_powers_of_two);
    tcase_add_test(tc, test_zero_point_ties);
    tcase_add_test(tc, test_phases);
    tcase_add_test(tc, test_limits);
    tcase_add_loop_test(tc, test_channel_of_zeros, 0, 4);
    tcase_add_test(tc, test_range_with_all_codes);
    tcase_add_loop_test(tc, test_tiny_range, 0, 2);
    tcase_add_loop_test(tc, test_start_with_all_codes, 0, 2);
    tcase_add_loop_test(tc, test_activation_of_zeros, 0, 2);
    tcase_add_loop_test(tc, test_plain_activations, 0, 3);
    tcase_add_loop_test(tc, test_plain_weights, 0, 5);
    tcase_add_test(tc, test_table);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/*
 * Gradients of learned ranges are compared with the published formulas, written here once more in
 * double; with finite differences of a function whose rounding errors are constants; and with
 * values worked by hand.
 */
#include "common/quantizer_bench.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_near(double got, double expected, double size, const char *what)
{
    ck_assert_msg(fabs(got - expected) <= 1e-5 * (fabs(expected) + size), "%s: %.9g, expected %.9g",
                  what, got, expected);
}

/* ------------------------------------------------------------------ the published formulas */

/** Sums of one published gradient over values and upstream gradients. */
struct published {
    double scale; /* d loss / d learned value 0 */
    double dx[4096];
};

/** Jain et al. eq. 4-8: n, p the lowest and highest multiple of s. */
static void reference_tqt(double s, double n, double p, const float *x, const float *up,
                          size_t values, struct published *r)
{
    r->scale = 0;
    for (size_t i = 0; i < values; i++) {
        double const u = (double)x[i] / s, rounded = floor(u + 0.5);
        bool const low = rounded<n, high = rounded> p;
        double const by_log = s * log(2.0) * (low ? n : high ? p : rounded - u);
        r->scale += (double)up[i] * by_log;
        r->dx[i] = low || high ? 0 : (double)up[i];
    }
}

/** Esser et al. eq. 3, 5 and section 2.2, for one step size of `values` values. */
static void reference_lsq(double s, double qn, double qp, double features, const float *x,
                          const float *up, size_t values, struct published *r)
{
    r->scale = 0;
    for (size_t i = 0; i < values; i++) {
        double const u = (double)x[i] / s;
        bool const low = u <= -qn, high = u >= qp;
        double const by_step = low ? -qn : high ? qp : floor(u + 0.5) - u;
        r->scale += (double)up[i] * by_step / sqrt(features * qp);
        r->dx[i] = low || high ? 0 : (double)up[i];
    }
}

static void expect_published(const struct bench *b, const struct published *r, int k, size_t from,
                             size_t values)
{
    expect_near((double)bench_learned_grad(b)[k], r->scale, 1e-2, "learned");
    for (size_t i = 0; i < values; i++)
        ck_assert_msg(fabs((double)b->x->grad[from + i] - r->dx[i]) < 1e-7, "dx[%zu] is %g, not %g",
                      from + i, (double)b->x->grad[from + i], r->dx[i]);
}

enum { CHANNELS = 3, INNER = 75 };

/* Weights in layout int8: a threshold, or step, for each channel; with and without powers of two,
 * with and without the lowest code. */
START_TEST(test_symmetric_weights)
{
    static const int all_bits[] = {8, 4, 3, 2};
    bool const tqt = _i % 2 == 0, powers = _i / 2 % 2 == 0, full = _i / 4 % 2 == 0;
    int const bits = all_bits[_i / 8];
    char attrs[96], op[32];
    float up[CHANNELS * INNER];
    struct published r;
    double const half = ldexp(1, bits - 1), lowest = full && bits < 8 ? -half : 1 - half;
    snprintf(attrs, sizeof attrs, "bits=%d layout=int8 learn=1 power_of_two=%d", bits, powers);
    snprintf(op, sizeof op, "%s%s_weights", tqt ? "tqt" : "lsq", full ? "_full" : "");
    struct bench const b = bench_build(op, attrs, true, QAT_SHAPE(CHANNELS, INNER));
    bench_fill(&b, 5, -1, 1);
    bench_observe(&b);
    for (int c = 0; c < CHANNELS; c++) /* somewhere inside the weights: some are clipped */
        bench_learned(&b)[c] =
            tqt ? -0.7f - 0.4f * (float)c : (0.3f + 0.2f * (float)c) / (float)half;
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    bench_random(up, CHANNELS * INNER, 6);
    bench_backward(&b, up, &run);
    for (int c = 0; c < CHANNELS; c++) {
        double const l = (double)bench_learned(&b)[c], step = tqt ? exp2(l) / half : l;
        double const s = powers ? exp2(ceil(log2(step))) : step;
        const float *x = b.x->value + (size_t)c * INNER, *u = up + (size_t)c * INNER;
        qat_qparams p;
        ck_assert_int_eq(qat_quantizer_qparams(b.q, c, &p, &err), QAT_OK);
        ck_assert_int_eq(p.zero_point, 0);
        ck_assert_int_eq(p.lo, (int)lowest);
        expect_near((double)p.scale, s, 0, "scale");
        if (tqt)
            reference_tqt(s, lowest, half - 1, x, u, INNER, &r);
        else
            reference_lsq(s, -lowest, half - 1, INNER, x, u, INNER, &r);
        if (!tqt)
            r.scale *= s / step; /* the power of two's factor */
        expect_published(&b, &r, c, (size_t)c * INNER, INNER);
    }
}
END_TEST

/* Behind a ReLU: the unsigned forms of both papers; the lower end stays 0. */
START_TEST(test_unsigned_activation)
{
    bool const tqt = _i % 2 == 0, powers = _i / 2 % 2 == 0;
    int const bits = _i / 4 ? 4 : 8;
    char attrs[96];
    float up[4 * 60];
    struct published r;
    double const codes = ldexp(1, bits);
    snprintf(attrs, sizeof attrs, "bits=%d learn=1 power_of_two=%d", bits, powers);
    struct bench const b = bench_build(tqt ? "tqt" : "lsq", attrs, false, QAT_SHAPE(4, 60));
    bench_fill(&b, 7, -1, 3);
    for (size_t i = 0; i < bench_count(&b); i++)
        b.x->value[i] = b.x->value[i] > 0 ? b.x->value[i] : 0;
    bench_observe(&b);
    bench_learned(&b)[0] = tqt ? 1.1f : (float)(2.1 / codes);
    bench_learned(&b)[1] = 0;
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    bench_random(up, bench_count(&b), 8);
    for (size_t i = 0; i < bench_count(&b);
         i++) /* at 0 itself the papers differ; a ReLU has no gradient */
        up[i] = b.x->value[i] > 0 ? up[i] : 0;
    bench_backward(&b, up, &run);
    double const l = (double)bench_learned(&b)[0], step = tqt ? exp2(l) / codes : l;
    double const s = powers ? exp2(ceil(log2(step))) : step;
    if (tqt)
        reference_tqt(s, 0, codes - 1, b.x->value, up, bench_count(&b), &r);
    else
        reference_lsq(s, 0, codes - 1, 60, b.x->value, up, bench_count(&b), &r);
    if (!tqt)
        r.scale *= s / step;
    expect_published(&b, &r, 0, 0, bench_count(&b));
    ck_assert_float_eq(bench_learned_grad(&b)[1], 0);
    qat_qparams p;
    ck_assert_int_eq(qat_node_qparams(b.q, &p, &err), QAT_OK);
    ck_assert_int_eq(p.zero_point, 0);
    ck_assert_float_eq(p.min, 0);
}
END_TEST

/* ------------------------------------------------------------------ differences of a surrogate */

/** How two learned values become s and the lower end. */
static void scale_and_end(bool tqt, int bits, bool powers, double rounding, const double v[2],
                          double *s, double *a)
{
    *s = tqt ? (exp2(v[0]) + exp2(v[1])) / ldexp(1, bits) : v[0];
    *a = tqt ? -exp2(v[1]) : v[1];
    if (powers)
        *s *= rounding; /* frozen: 2^ceil(log2 s) / s where the gradient is taken */
}

struct surrogate {
    bool tqt, powers;
    int bits, lo, hi;
    double rounding;
    double error[512]; /* frozen: round(x / s) - x / s */
    int side[512];     /* frozen: -1 below the range, 1 above it */
    const float *x, *up;
    size_t n;
};

/** sum of up y, with y = a, a + steps s, or s (x / s + error): smooth, as sides stay what they are.
 */
static double surrogate_loss(const struct surrogate *t, const double v[2])
{
    double s, a, sum = 0;
    scale_and_end(t->tqt, t->bits, t->powers, t->rounding, v, &s, &a);
    for (size_t i = 0; i < t->n; i++) {
        double const inside = (double)t->x[i] + t->error[i] * s, above = a + (t->hi - t->lo) * s;
        sum += (double)t->up[i] * (t->side[i] < 0 ? a : t->side[i] > 0 ? above : inside);
    }
    return sum;
}

/** Which side of the range x is on: by what it rounds to (tqt), or by itself (lsq). */
static int side_of(const struct surrogate *t, double x, double s, double a)
{
    double const low = a / s, high = low + t->hi - t->lo, q = t->tqt ? floor(x / s + 0.5) : x / s;
    if (t->tqt)
        return q < low ? -1 : q > high;
    return q <= low ? -1 : q >= high;
}

/* Two ends, the lower one a whole number of steps below 0, so that nudging moves nothing. Weights
 * (codes from 1) and activations. */
START_TEST(test_two_ends)
{
    bool const tqt = _i % 2 == 0, powers = _i / 2 % 2 == 0, weights = _i / 4 != 0;
    char attrs[96], op[32];
    float up[200];
    struct surrogate t = {
        .tqt = tqt, .powers = powers, .bits = 4, .lo = weights, .hi = 15, .up = up};
    snprintf(attrs, sizeof attrs, "bits=4 learn=1 power_of_two=%d", powers);
    snprintf(op, sizeof op, "%s%s", tqt ? "tqt" : "lsq", weights ? "_weights" : "");
    struct bench const b = bench_build(op, attrs, weights, QAT_SHAPE(2, 100));
    bench_fill(&b, 11, -2, 4);
    bench_observe(&b);
    /* tqt: ends 3 and 1, s = 4 / 16; with powers 1.75 and 1: s = 2.75 / 16, up to 1 / 4 */
    double const upper = powers ? log2(1.75) : log2(3.0);
    double const v[2] = {tqt ? upper : powers ? 0.17 : 0.25, tqt ? 0 : -1};
    bench_learned(&b)[0] = (float)v[0];
    bench_learned(&b)[1] = (float)v[1];
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    bench_random(up, 200, 12);
    bench_backward(&b, up, &run);
    qat_qparams p;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_float_eq_tol(p.scale, 0.25f, 1e-7f);
    ck_assert_int_eq(p.zero_point, weights ? 5 : 4);
    double s, a;
    scale_and_end(tqt, 4, false, 1, v, &s, &a);
    t.rounding = 0.25 / s;
    t.x = b.x->value;
    t.n = bench_count(&b);
    for (size_t i = 0; i < t.n; i++) {
        t.error[i] = floor((double)t.x[i] / 0.25 + 0.5) - (double)t.x[i] / 0.25;
        t.side[i] = side_of(&t, (double)t.x[i], 0.25, -1);
    }
    for (int k = 0; k < 2; k++) {
        double const h = 1e-6;
        double const above[2] = {v[0] + (k == 0) * h, v[1] + (k == 1) * h};
        double const below[2] = {v[0] - (k == 0) * h, v[1] - (k == 1) * h};
        double const slope = (surrogate_loss(&t, above) - surrogate_loss(&t, below)) / (2 * h);
        size_t const features = weights ? 200 : 100;
        double const factor = tqt ? 1 : 1 / sqrt((double)features * (t.hi - t.lo));
        char what[64];
        snprintf(what, sizeof what, "%s value %d", op, k);
        expect_near((double)bench_learned_grad(&b)[k], slope * factor, 1e-2, what);
    }
}
END_TEST

/* The same two ends for lsq, by its own definition of inside. */
START_TEST(test_lsq_two_ends)
{
    float up[200];
    struct bench const b = bench_build("lsq", "bits=4 learn=1", false, QAT_SHAPE(2, 100));
    bench_fill(&b, 11, -2, 4);
    bench_observe(&b);
    double const s = 0.25, a = -1, steps = 15;
    bench_learned(&b)[0] = (float)s;
    bench_learned(&b)[1] = (float)a;
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    bench_random(up, 200, 12);
    bench_backward(&b, up, &run);
    double by_step = 0, by_end = 0;
    for (size_t i = 0; i < 200; i++) {
        double const x = (double)b.x->value[i], u = x / s;
        bool const low = x <= a, high = x >= a + steps * s;
        by_step += (double)up[i] * (low ? 0 : high ? steps : floor(u + 0.5) - u);
        by_end += (double)up[i] * (low || high);
    }
    expect_near((double)bench_learned_grad(&b)[0], by_step / sqrt(100 * steps), 1e-3, "step");
    expect_near((double)bench_learned_grad(&b)[1], by_end / sqrt(100 * steps), 1e-3, "lower end");
}
END_TEST

/* pact by hand, 2 bits: the end t is 3, and only what lies beyond it moves it. */
START_TEST(test_pact)
{
    static const float one[] = {0, 0.4f, 1.4f, 2.7f, 3.4f, 5, 9, 1},
                       up[] = {1, 2, 4, 8, 16, 32, 64, 128};
    bool const two_ends = _i == 1;
    struct bench const b = bench_build("pact", "bits=2 learn=1", false, QAT_SHAPE(1, 8));
    memcpy(b.x->value, one, sizeof one);
    if (two_ends)
        b.x->value[1] = -9;
    bench_observe(&b);
    ck_assert_float_eq(bench_learned(&b)[0], 9);
    bench_learned(&b)[0] = two_ends ? 4.5f : 3; /* s = 3, Z = 2: -6, -3, 0, 3; or s = 1 */
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    static const float y[2][8] = {{0, 0, 1, 3, 3, 3, 3, 1}, {0, -6, 0, 3, 3, 3, 3, 0}};
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(b.q->value[i], y[_i][i]);
    bench_backward(&b, up, &run);
    /* above 3.5, or above 4.5: 5 and 9; below -7.5: -9 */
    ck_assert_float_eq(bench_learned_grad(&b)[0], 32 + 64 - (two_ends ? 2 : 0));
    ck_assert_float_eq(b.x->grad[6], 0);
    ck_assert_float_eq(b.x->grad[4], 16);
    ck_assert(qat_node_learned(b.q)->decay);
}
END_TEST

/* A scale that is rounded up by a factor moves by that factor. */
START_TEST(test_pact_powers_of_two)
{
    static const float x[] = {0, 1, 9, 10}, up[] = {1, 2, 4, 8};
    struct bench const b =
        bench_build("pact", "bits=2 learn=1 power_of_two=1", false, QAT_SHAPE(1, 4));
    memcpy(b.x->value, x, sizeof x);
    bench_observe(&b);
    bench_learned(&b)[0] = 4.5f; /* s: 1.5, up to 2, of codes 0..3 */
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    ck_assert_float_eq(b.q->value[3], 6);
    bench_backward(&b, up, &run);
    ck_assert_float_eq_tol(bench_learned_grad(&b)[0], 12 * 2 / 1.5f, 1e-5f);
}
END_TEST

/* Weights inside the range are drawn to their codes, by 2 lambda (w - y); lambda rises. */
START_TEST(test_dampening)
{
    static const float x[] = {-5, -1.1f, 0.2f, 0.9f, 1.6f, 4}, up[6] = {0};
    static const double share[] = {0, 0.5, 1, 1};
    struct bench const b = bench_build(
        "lsq_weights", "bits=3 layout=int8 learn=1 dampen=0.25 dampened=20", true, QAT_SHAPE(1, 6));
    memcpy(b.x->value, x, sizeof x);
    bench_observe(&b);
    bench_learned(&b)[0] = 1; /* y: -3, -1, 0, 1, 2, 3 */
    qat_run const run = bench_train_at(10 * _i);
    qat_graph_forward(g, &run);
    bench_backward(&b, up, &run);
    static const double distance[] = {0, -0.1, 0.2, -0.1, -0.4, 0};
    for (int i = 0; i < 6 && _i > 0; i++)
        ck_assert_double_eq_tol((double)b.x->grad[i], 2 * 0.25 * share[_i] * distance[i], 1e-6);
    for (int i = 0; i < 6 && _i == 0; i++)
        ck_assert_float_eq(b.x->grad[i], 0);
}
END_TEST

/* ------------------------------------------------------------------ by hand */

/* 3 bits, symmetric: codes -3..3. */
START_TEST(test_by_hand)
{
    static const float x[] = {-5, -1.1f, 0.2f, 0.9f, 1.6f, 4};
    static const float up[] = {1, 1, 1, 1, 1, 2};
    struct bench const b =
        bench_build("lsq_weights", "bits=3 layout=int8 learn=1", true, QAT_SHAPE(1, 6));
    memcpy(b.x->value, x, sizeof x);
    bench_observe(&b);
    /* mean |x| = 12.8 / 6, P = 3 */
    ck_assert_float_eq_tol(bench_learned(&b)[0], (float)(2 * 12.8 / 6 / sqrt(3.0)), 1e-6f);
    bench_learned(&b)[0] = 1;
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    static const float y[] = {-3, -1, 0, 1, 2, 3};
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(b.q->value[i], y[i]);
    bench_backward(&b, up, &run);
    /* -3 + 0.1 - 0.2 + 0.1 + 0.4 + 2 * 3 = 3.4, by sqrt(6 * 3) */
    ck_assert_float_eq_tol(bench_learned_grad(&b)[0], (float)(3.4 / sqrt(18.0)), 1e-6f);
    static const float dx[] = {0, 1, 1, 1, 1, 0};
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(b.x->grad[i], dx[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantizer gradients");
    TCase *tc = tcase_create("gradients");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_loop_test(tc, test_symmetric_weights, 0, 32);
    tcase_add_loop_test(tc, test_unsigned_activation, 0, 8);
    tcase_add_loop_test(tc, test_two_ends, 0, 8);
    tcase_add_test(tc, test_lsq_two_ends);
    tcase_add_loop_test(tc, test_pact, 0, 2);
    tcase_add_test(tc, test_pact_powers_of_two);
    tcase_add_loop_test(tc, test_dampening, 0, 4);
    tcase_add_test(tc, test_by_hand);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

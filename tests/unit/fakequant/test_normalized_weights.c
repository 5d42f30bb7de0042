/*
 * Weights by dorefa, weight_norm and apot: values and codes worked by hand, gradients against
 * finite differences of a function in double whose rounding errors are constants, and what is
 * refused.
 */
#include "base/parallel.h"
#include "common/quantizer_bench.h"
#include "common/suite.h"
#include "qat/quantizer.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void forward_at(int64_t step)
{
    qat_run const run = bench_train_at(step);
    qat_graph_forward(g, &run);
}

static void expect_values(const struct bench *b, const double *expected, double tolerance)
{
    for (size_t i = 0; i < bench_count(b); i++)
        ck_assert_msg(fabs((double)b->q->value[i] - expected[i]) <= tolerance,
                      "value %zu is %.9g, not %.9g", i, (double)b->q->value[i], expected[i]);
}

/** The codes are those of the values. */
static void expect_codes(const struct bench *b)
{
    uint8_t codes[512];
    bool const int8 = qat_attr(b->q, "layout") == (double)QAT_LAYOUT_INT8;
    int const per_channel = (int)bench_count(b) / qat_quantizer_channels(b->q);
    qat_quantizer_codes(b->q, codes);
    for (int i = 0; i < (int)bench_count(b); i++) {
        qat_qparams p;
        ck_assert_int_eq(qat_quantizer_qparams(b->q, i / per_channel, &p, &err), QAT_OK);
        int const code = int8 ? (int8_t)codes[i] : codes[i];
        ck_assert_int_ge(code, p.lo);
        ck_assert_int_le(code, p.hi);
        ck_assert_float_eq(qat_real_of(&p, code), b->q->value[i]);
    }
}

/* ------------------------------------------------------------------ by hand */

/* m = 3, n = 3: codes -3, -1, 1, 3 of scale 1. tanh(3) = 0.99505: borders at tanh(w) = 0,
 * +-0.66337, w = +-0.79883. */
START_TEST(test_dorefa)
{
    static const float x[] = {3, 0.80f, 0.79f, 0, -0.1f, -0.79f, -0.80f, -2};
    static const double y[] = {3, 3, 1, 1, -1, -1, -3, -3};
    struct bench const b =
        bench_build("dorefa_weights", _i ? "bits=2 layout=int8" : "bits=2", true, QAT_SHAPE(1, 8));
    memcpy(b.x->value, x, sizeof x);
    forward_at(0);
    expect_values(&b, y, 0);
    expect_codes(&b);
    qat_qparams p;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_int_eq(p.hi - p.zero_point, 3); /* of three bits */
    ck_assert_int_eq(p.lo, _i ? -3 : 1);
}
END_TEST

/* mu = 1, sigma = sqrt(10 / 6): with 2 bits S = 1.22400636 sigma = 1.58019. Borders at 1 +- S / 2.
 */
START_TEST(test_weight_norm)
{
    static const float x[] = {3, -1, 1, 1, 2, 0}, other[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
    double const s = 1.22400636 * sqrt(10.0 / 6);
    double const y[] = {s, -s, 0, 0, s, -s, 0, 0, 0, 0, 0, 0};
    struct bench const b =
        bench_build("weight_norm_weights", "bits=2 layout=int8", true, QAT_SHAPE(2, 6));
    memcpy(b.x->value, x, sizeof x);
    memcpy(b.x->value + 6, other, sizeof other); /* all alike: nothing is left */
    forward_at(0);
    expect_values(&b, y, 1e-6);
    expect_codes(&b);
}
END_TEST

/* 4 bits: levels 0 1 2 3 4 6 8 10. mu = 0, sigma = 1 / D by the last two, so S = 1. */
START_TEST(test_apot)
{
    static const float x[] = {0.49f, 0.51f, -3.4f, 4.9f, 5.1f, -6.9f, -7.1f, 8.9f, 9.1f, 0};
    static const double y[] = {0, 1, -3, 4, 6, -6, -8, 8, 10, 0};
    enum { N = 28, OTHERS = 10 };
    double const size = N / (0.26279134 * 0.26279134);
    struct bench const b =
        bench_build("apot_weights", _i ? "bits=4 layout=int8" : "bits=4", true, QAT_SHAPE(1, N));
    double sum = 0, squares = 0;
    memset(b.x->value, 0, N * sizeof(float));
    for (int i = 0; i < OTHERS; i++) {
        b.x->value[i] = x[i];
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    /* p + q = -sum, p^2 + q^2 = size - squares */
    double const half = -sum / 2, apart = sqrt((size - squares) / 2 - half * half);
    b.x->value[N - 2] = (float)(half + apart);
    b.x->value[N - 1] = (float)(half - apart);
    forward_at(0);
    for (int i = 0; i < N - 2; i++)
        ck_assert_double_eq_tol((double)b.q->value[i], i < OTHERS ? y[i] : 0, 1e-5);
    ck_assert_double_eq_tol((double)b.q->value[N - 1], -8, 1e-5);
    expect_codes(&b);
    qat_qparams p;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_int_eq(p.hi - p.zero_point, 15); /* of five bits */
}
END_TEST

/* A channel of one weight has no mean to lose. */
START_TEST(test_single_weights)
{
    static const double y[] = {-2, 0.25, 0};
    struct bench const b =
        bench_build("weight_norm_weights", "bits=4 layout=int8", true, QAT_SHAPE(3, 1));
    for (int i = 0; i < 3; i++)
        b.x->value[i] = (float)y[i];
    forward_at(0);
    expect_values(&b, y, 1e-7);
    expect_codes(&b);
}
END_TEST

static const char *const ops[] = {"dorefa_weights", "weight_norm_weights", "apot_weights"};

START_TEST(test_zeros_and_delay)
{
    static const double none[6] = {0};
    struct bench const b =
        bench_build(ops[_i], "bits=3 layout=int8 delay=1", true, QAT_SHAPE(2, 3));
    memset(b.x->value, 0, 6 * sizeof(float));
    forward_at(1);
    expect_values(&b, none, 0);
    expect_codes(&b);
    bench_fill(&b, 1, -1, 1);
    forward_at(0);
    ck_assert_mem_eq(b.q->value, b.x->value, 6 * sizeof(float));
    b.x->value[4] = NAN;
    forward_at(1);
    ck_assert(isnan(b.q->value[4]));
}
END_TEST

/* The table has the step with the least squared error: there E(x c) = D E(c^2). */
START_TEST(test_steps)
{
    char attrs[32];
    int const bits = _i, most = (1 << (bits - 1)) - 1;
    snprintf(attrs, sizeof attrs, "bits=%d layout=int8", bits);
    struct bench const b = bench_build("weight_norm_weights", attrs, true, QAT_SHAPE(1, 2));
    b.x->value[0] = 1;
    b.x->value[1] = -1;
    qat_qparams p;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    double up = 0, down = 0;
    for (int k = 1; k <= most; k++) {
        double const from = (k - 0.5) * (double)p.scale;
        up += exp(-from * from / 2) / sqrt(2 * acos(-1)) * 2;
        down += (2 * k - 1) * erfc(from / sqrt(2));
    }
    ck_assert_double_eq_tol(up / down, (double)p.scale, 1e-6 * (double)p.scale);
}
END_TEST

/* ------------------------------------------------------------------ gradients */

enum { CHANNELS = 3, INNER = 12, WEIGHTS = CHANNELS * INNER };

/** y of a channel with given rounding errors (in values normalised), or y itself if there are none:
 *  then the errors are what is left in *kept. */
struct reference {
    int op; /* of ops */
    bool keeps;
    int bits;
    double errors[INNER];
    int clipped[INNER]; /* not dorefa: the code at an end, else 0 */
};

static void reference_dorefa(struct reference *r, const double *x, double *y)
{
    double const n = ldexp(1, r->bits) - 1;
    double most = 0;
    for (int i = 0; i < INNER; i++)
        most = fmax(most, fabs(x[i]));
    for (int i = 0; i < INNER; i++) {
        double const share = tanh(x[i]) / tanh(most);
        if (!r->keeps)
            r->errors[i] = 2 * floor(n * (share / 2 + 0.5) + 0.5) / n - 1 - share;
        y[i] = most * (share + r->errors[i]);
    }
}

/** The code of u: a whole number up to most, or the nearest sum of powers of two. */
static double reference_code(const struct reference *r, double u, double most)
{
    static const int levels[][8] = {{0, 1}, {0, 1, 2, 4}, {0, 1, 2, 3, 4, 6, 8, 10}};
    if (r->op == 1)
        return fmax(-most, fmin(most, floor(u + 0.5)));
    int best = 0;
    for (int i = 0; i < 1 << (r->bits - 1); i++)
        if (fabs(fabs(u) - levels[r->bits - 2][i]) < fabs(fabs(u) - best))
            best = levels[r->bits - 2][i];
    return u < 0 ? -best : best;
}

static void reference_norm(struct reference *r, const double *x, double *y)
{
    static const double steps[][3] = {{1.22400636, 0.65076970, 0.35341132},
                                      {1.22400636, 0.51812721, 0.26279134}};
    static const double ends[][3] = {{1, 3, 7}, {1, 4, 10}};
    double const most = ends[r->op - 1][r->bits - 2], margin = r->op == 1 ? 0.5 : 0;
    double mean = 0, squares = 0;
    for (int i = 0; i < INNER; i++)
        mean += x[i] / INNER;
    for (int i = 0; i < INNER; i++)
        squares += (x[i] - mean) * (x[i] - mean) / INNER;
    double const s = steps[r->op - 1][r->bits - 2] * sqrt(squares);
    for (int i = 0; i < INNER; i++) {
        double const u = (x[i] - mean) / s, code = reference_code(r, u, most);
        if (!r->keeps) {
            r->clipped[i] = u < -most - margin ? (int)-most : u > most + margin ? (int)most : 0;
            r->errors[i] = code - u;
        }
        y[i] = s * (r->clipped[i] ? r->clipped[i] : u + r->errors[i]);
    }
}

static double reference_loss(struct reference *r, const double *x, const float *up)
{
    double y[INNER], loss = 0;
    (r->op == 0 ? reference_dorefa : reference_norm)(r, x, y);
    for (int i = 0; i < INNER; i++)
        loss += (double)up[i] * y[i];
    return loss;
}

/* Every weight of three channels is moved a little. */
START_TEST(test_gradients)
{
    int const op = _i % 3, bits = 2 + _i / 3;
    char attrs[32];
    float up[WEIGHTS];
    snprintf(attrs, sizeof attrs, "bits=%d layout=int8", bits);
    struct bench const b = bench_build(ops[op], attrs, true, QAT_SHAPE(CHANNELS, INNER));
    bench_fill(&b, 11, -1, 1.4);
    b.x->value[5] = 4; /* clipped by weight_norm */
    bench_random(up, WEIGHTS, 12);
    qat_run const run = bench_train_at(0);
    qat_graph_forward(g, &run);
    bench_backward(&b, up, &run);
    expect_codes(&b);
    for (int c = 0; c < CHANNELS; c++) {
        struct reference r = {.op = op, .bits = bits};
        double x[INNER], y[INNER];
        double const step = 1e-6;
        for (int i = 0; i < INNER; i++)
            x[i] = (double)b.x->value[c * INNER + i];
        (op == 0 ? reference_dorefa : reference_norm)(&r, x, y);
        r.keeps = true;
        for (int i = 0; i < INNER; i++) {
            double const at = x[i];
            ck_assert_double_eq_tol((double)b.q->value[c * INNER + i], y[i], 1e-5);
            x[i] = at + step;
            double const more = reference_loss(&r, x, up + c * INNER);
            x[i] = at - step;
            double const less = reference_loss(&r, x, up + c * INNER);
            x[i] = at;
            ck_assert_double_eq_tol((double)b.x->grad[c * INNER + i], (more - less) / (2 * step),
                                    1e-5);
        }
    }
}
END_TEST

/* One group for all; any number of threads gives the same bits. */
START_TEST(test_threads)
{
    float up[WEIGHTS], values[WEIGHTS], grads[WEIGHTS];
    struct bench const b =
        bench_build(ops[_i], "bits=4 layout=int8 axis=1", true, QAT_SHAPE(CHANNELS, INNER));
    bench_fill(&b, 13, -1, 1);
    bench_random(up, WEIGHTS, 14);
    qat_run const run = bench_train_at(0);
    for (int threads = 1; threads <= 4; threads++) {
        qat_set_threads(threads);
        qat_graph_forward(g, &run);
        bench_backward(&b, up, &run);
        if (threads == 1) {
            memcpy(values, b.q->value, sizeof values);
            memcpy(grads, b.x->grad, sizeof grads);
        }
        ck_assert_mem_eq(b.q->value, values, sizeof values);
        ck_assert_mem_eq(b.x->grad, grads, sizeof grads);
    }
}
END_TEST

START_TEST(test_refused)
{
    qat_param_def const def = {.name = "x", .shape = QAT_SHAPE(2, 3)};
    qat_apply1(g, "dorefa_weights", "q", "bits=8", qat_graph_param(g, &def));
    ck_assert_int_ne(qat_graph_check(g, &err), QAT_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "x: dorefa needs 2 to 7 bits"));
}
END_TEST

START_TEST(test_refused_apot)
{
    qat_param_def const def = {.name = "x", .shape = QAT_SHAPE(2, 3)};
    qat_apply1(g, "apot_weights", "q", "bits=6", qat_graph_param(g, &def));
    ck_assert_int_ne(qat_graph_check(g, &err), QAT_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "x: apot needs 2 to 5 bits, but weight_bits = 6"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("normalized weights");
    TCase *tc = tcase_create("normalized weights");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_loop_test(tc, test_dorefa, 0, 2);
    tcase_add_test(tc, test_weight_norm);
    tcase_add_loop_test(tc, test_apot, 0, 2);
    tcase_add_test(tc, test_single_weights);
    tcase_add_loop_test(tc, test_zeros_and_delay, 0, 3);
    tcase_add_loop_test(tc, test_steps, 2, 9);
    tcase_add_loop_test(tc, test_gradients, 0, 9);
    tcase_add_loop_test(tc, test_threads, 0, 3);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_refused_apot);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

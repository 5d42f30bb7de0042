/*
 * Learned ranges: gradients against the published formulas, written here once more in double, and
 * against differences of a surrogate whose rounding errors are frozen; hand-worked cases; the
 * phases of a run; the plain scheme by the same ops.
 */
#include "base/rng.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/range.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *g;
static qat_error err;

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
}

static void teardown(void)
{
    qat_graph_free(g);
    qat_registry_free(registry);
}

static qat_run train_at(int64_t step)
{
    return (qat_run){.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
}

/* ------------------------------------------------------------------ one node under test */

/** A quantizer behind x, an input whose gradient is wanted or a parameter. */
struct bench {
    qat_node *x, *q;
};

static struct bench build(const char *op, const char *attrs, bool weights, qat_shape shape)
{
    struct bench b;
    qat_param_def const def = {.name = "x", .shape = shape, .trainable = true};
    b.x = weights ? qat_graph_param(g, &def) : qat_graph_input(g, "x", shape);
    if (!weights)
        qat_graph_want_gradient(g, b.x);
    b.q = qat_apply1(g, op, "q", attrs, b.x);
    qat_apply1(g, "l2_loss", "loss", "", b.q); /* so that there are gradients */
    ck_assert_msg(qat_graph_plan(g, shape.dims[0], QAT_PLAN_TRAIN_KEEP, &err) == QAT_OK, "%s",
                  err.message);
    qat_graph_init_params(g, 3);
    return b;
}

static size_t count(const struct bench *b)
{
    return qat_shape_count(&b->q->shape);
}

static void fill(const struct bench *b, uint64_t seed, double lo, double hi)
{
    qat_rng rng = qat_rng_at(seed, 1, 2);
    for (size_t i = 0; i < count(b); i++)
        b->x->value[i] = (float)(lo + (hi - lo) * qat_rng_uniform(&rng));
}

/** Upstream gradients of the node's own choice: backward is called on the node itself. */
static void backward(const struct bench *b, const float *upstream, const qat_run *run)
{
    qat_node *learned = qat_node_learned(b->q);
    memset(b->x->grad, 0, count(b) * sizeof(float));
    if (learned)
        memset(learned->grad, 0, qat_shape_count(&learned->shape) * sizeof(float));
    memcpy(b->q->grad, upstream, count(b) * sizeof(float));
    b->q->op->backward(b->q, run);
}

/** Observe one batch at step 0, so that learning can begin at step 1. */
static void observe(const struct bench *b)
{
    qat_run const run = train_at(0);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
}

static float *learned_of(const struct bench *b)
{
    return qat_node_learned(b->q)->value;
}

static const float *learned_grad(const struct bench *b)
{
    return qat_node_learned(b->q)->grad;
}

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
    expect_near((double)learned_grad(b)[k], r->scale, 1e-2, "learned");
    for (size_t i = 0; i < values; i++)
        ck_assert_msg(fabs((double)b->x->grad[from + i] - r->dx[i]) < 1e-7, "dx[%zu] is %g, not %g",
                      from + i, (double)b->x->grad[from + i], r->dx[i]);
}

static void random_upstream(float *up, size_t n, uint64_t seed)
{
    qat_rng rng = qat_rng_at(seed, 9, 9);
    for (size_t i = 0; i < n; i++)
        up[i] = (float)(2 * qat_rng_uniform(&rng) - 1);
}

enum { CHANNELS = 3, INNER = 75 };

/* Weights in layout int8: a threshold, or step, for each channel; with and without powers of two.
 */
START_TEST(test_symmetric_weights)
{
    static const int all_bits[] = {8, 4, 3};
    bool const tqt = _i % 2 == 0, powers = _i / 2 % 2 == 0;
    int const bits = all_bits[_i / 4];
    char attrs[96];
    float up[CHANNELS * INNER];
    struct published r;
    double const half = ldexp(1, bits - 1);
    snprintf(attrs, sizeof attrs, "bits=%d layout=int8 learn=1 power_of_two=%d", bits, powers);
    struct bench const b =
        build(tqt ? "tqt_weights" : "lsq_weights", attrs, true, QAT_SHAPE(CHANNELS, INNER));
    fill(&b, 5, -1, 1);
    observe(&b);
    for (int c = 0; c < CHANNELS; c++) /* somewhere inside the weights: some are clipped */
        learned_of(&b)[c] = tqt ? -0.7f - 0.4f * (float)c : (0.3f + 0.2f * (float)c) / (float)half;
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    random_upstream(up, CHANNELS * INNER, 6);
    backward(&b, up, &run);
    for (int c = 0; c < CHANNELS; c++) {
        double const l = (double)learned_of(&b)[c], step = tqt ? exp2(l) / half : l;
        double const s = powers ? exp2(ceil(log2(step))) : step;
        const float *x = b.x->value + (size_t)c * INNER, *u = up + (size_t)c * INNER;
        qat_qparams p;
        ck_assert_int_eq(qat_quantizer_qparams(b.q, c, &p, &err), QAT_OK);
        ck_assert_int_eq(p.zero_point, 0);
        expect_near((double)p.scale, s, 0, "scale");
        if (tqt)
            reference_tqt(s, 1 - half, half - 1, x, u, INNER, &r);
        else
            reference_lsq(s, half - 1, half - 1, INNER, x, u, INNER, &r);
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
    struct bench const b = build(tqt ? "tqt" : "lsq", attrs, false, QAT_SHAPE(4, 60));
    fill(&b, 7, -1, 3);
    for (size_t i = 0; i < count(&b); i++)
        b.x->value[i] = b.x->value[i] > 0 ? b.x->value[i] : 0;
    observe(&b);
    learned_of(&b)[0] = tqt ? 1.1f : (float)(2.1 / codes);
    learned_of(&b)[1] = 0;
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    random_upstream(up, count(&b), 8);
    for (size_t i = 0; i < count(&b);
         i++) /* at 0 itself the papers differ; a ReLU has no gradient */
        up[i] = b.x->value[i] > 0 ? up[i] : 0;
    backward(&b, up, &run);
    double const l = (double)learned_of(&b)[0], step = tqt ? exp2(l) / codes : l;
    double const s = powers ? exp2(ceil(log2(step))) : step;
    if (tqt)
        reference_tqt(s, 0, codes - 1, b.x->value, up, count(&b), &r);
    else
        reference_lsq(s, 0, codes - 1, 60, b.x->value, up, count(&b), &r);
    if (!tqt)
        r.scale *= s / step;
    expect_published(&b, &r, 0, 0, count(&b));
    ck_assert_float_eq(learned_grad(&b)[1], 0);
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
    struct bench const b = build(op, attrs, weights, QAT_SHAPE(2, 100));
    fill(&b, 11, -2, 4);
    observe(&b);
    /* tqt: ends 3 and 1, s = 4 / 16; with powers 1.75 and 1: s = 2.75 / 16, up to 1 / 4 */
    double const upper = powers ? log2(1.75) : log2(3.0);
    double const v[2] = {tqt ? upper : powers ? 0.17 : 0.25, tqt ? 0 : -1};
    learned_of(&b)[0] = (float)v[0];
    learned_of(&b)[1] = (float)v[1];
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    random_upstream(up, 200, 12);
    backward(&b, up, &run);
    qat_qparams p;
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert_float_eq_tol(p.scale, 0.25f, 1e-7f);
    ck_assert_int_eq(p.zero_point, weights ? 5 : 4);
    double s, a;
    scale_and_end(tqt, 4, false, 1, v, &s, &a);
    t.rounding = 0.25 / s;
    t.x = b.x->value;
    t.n = count(&b);
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
        char what[48];
        snprintf(what, sizeof what, "%s value %d", op, k);
        expect_near((double)learned_grad(&b)[k], slope * factor, 1e-2, what);
    }
}
END_TEST

/* The same two ends for lsq, by its own definition of inside. */
START_TEST(test_lsq_two_ends)
{
    float up[200];
    struct bench const b = build("lsq", "bits=4 learn=1", false, QAT_SHAPE(2, 100));
    fill(&b, 11, -2, 4);
    observe(&b);
    double const s = 0.25, a = -1, steps = 15;
    learned_of(&b)[0] = (float)s;
    learned_of(&b)[1] = (float)a;
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    random_upstream(up, 200, 12);
    backward(&b, up, &run);
    double by_step = 0, by_end = 0;
    for (size_t i = 0; i < 200; i++) {
        double const x = (double)b.x->value[i], u = x / s;
        bool const low = x <= a, high = x >= a + steps * s;
        by_step += (double)up[i] * (low ? 0 : high ? steps : floor(u + 0.5) - u);
        by_end += (double)up[i] * (low || high);
    }
    expect_near((double)learned_grad(&b)[0], by_step / sqrt(100 * steps), 1e-3, "step");
    expect_near((double)learned_grad(&b)[1], by_end / sqrt(100 * steps), 1e-3, "lower end");
}
END_TEST

/* ------------------------------------------------------------------ by hand */

/* 3 bits, symmetric: codes -3..3. */
START_TEST(test_by_hand)
{
    static const float x[] = {-5, -1.1f, 0.2f, 0.9f, 1.6f, 4};
    static const float up[] = {1, 1, 1, 1, 1, 2};
    struct bench const b =
        build("lsq_weights", "bits=3 layout=int8 learn=1", true, QAT_SHAPE(1, 6));
    memcpy(b.x->value, x, sizeof x);
    observe(&b);
    /* mean |x| = 12.8 / 6, P = 3 */
    ck_assert_float_eq_tol(learned_of(&b)[0], (float)(2 * 12.8 / 6 / sqrt(3.0)), 1e-6f);
    learned_of(&b)[0] = 1;
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    static const float y[] = {-3, -1, 0, 1, 2, 3};
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(b.q->value[i], y[i]);
    backward(&b, up, &run);
    /* -3 + 0.1 - 0.2 + 0.1 + 0.4 + 2 * 3 = 3.4, by sqrt(6 * 3) */
    ck_assert_float_eq_tol(learned_grad(&b)[0], (float)(3.4 / sqrt(18.0)), 1e-6f);
    static const float dx[] = {0, 1, 1, 1, 1, 0};
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(b.x->grad[i], dx[i]);
}
END_TEST

/* tqt starts at the ends it saw: hi is the largest |x|; learned in log2. */
START_TEST(test_tqt_start)
{
    static const float x[] = {-0.5f, 0.25f, 1.5f, 0, 0.75f, -1};
    struct bench const b = build("tqt", "bits=4 learn=1", false, QAT_SHAPE(1, 6));
    memcpy(b.x->value, x, sizeof x);
    observe(&b);
    ck_assert_float_eq_tol(learned_of(&b)[0], (float)log2(1.5 * 16 / 15), 1e-6f);
    ck_assert_float_eq_tol(learned_of(&b)[1], (float)log2(1.0 * 16 / 15), 1e-6f);
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

/* ------------------------------------------------------------------ phases */

/* Float until delay; observed until learn, learned values following; then they alone decide. */
START_TEST(test_phases)
{
    struct bench const b = build("tqt", "delay=1 learn=2 decay=0.5", false, QAT_SHAPE(1, 4));
    const float *range = b.q->inputs[QZ_RANGE]->value;
    qat_qparams p;
    float up[] = {1, 1, 1, 1};
    ck_assert_int_eq(qat_node_qparams(b.q, &p, &err), QAT_ERR_STATE);
    for (int step = 0; step < 2; step++) {
        float const high = step ? 8 : 4;
        memcpy(b.x->value, (const float[]){0.3f, 1, 2, high}, 4 * sizeof(float));
        qat_run const run = train_at(step);
        qat_graph_forward(g, &run);
        backward(&b, up, &run);
        ck_assert_float_eq(learned_grad(&b)[0], 0); /* not yet */
        ck_assert_int_eq(b.q->value[0] == 0.3f, step == 0);
        qat_graph_update(g, &run);
    }
    ck_assert_float_eq(range[QZ_MAX], 6); /* (4 + 8) / 2 */
    ck_assert_float_eq(range[QZ_STEPS], 2);
    ck_assert_float_eq_tol(learned_of(&b)[0], (float)log2(6.0 * 256 / 255), 1e-6f);
    learned_of(&b)[0] = 1; /* as if the optimizer had moved it */
    memcpy(b.x->value, (const float[]){0.3f, 1, 2, 100}, 4 * sizeof(float));
    qat_run const run = train_at(2);
    qat_graph_forward(g, &run);
    ck_assert_float_eq_tol(b.q->value[3], 2 * 255.0f / 256, 1e-6f);
    backward(&b, up, &run);
    ck_assert_float_gt(learned_grad(&b)[0], 0);
    qat_graph_update(g, &run);
    ck_assert_float_eq(range[QZ_STEPS], 2);
    qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_EVAL});
    ck_assert_float_eq_tol(b.q->value[3], 2 * 255.0f / 256, 1e-6f);
}
END_TEST

/* What an optimizer may do to learned values, update mends. */
START_TEST(test_limits)
{
    struct bench const b = build("lsq", "bits=4 learn=1", false, QAT_SHAPE(1, 4));
    memcpy(b.x->value, (const float[]){-1, 1, 2, 3}, 4 * sizeof(float));
    observe(&b);
    qat_run const run = train_at(1);
    qat_graph_forward(g, &run);
    learned_of(&b)[0] = -3;
    learned_of(&b)[1] = 2;
    qat_graph_update(g, &run);
    ck_assert_float_gt(learned_of(&b)[0], 0);
    ck_assert_float_eq(learned_of(&b)[1], 0);
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
    static const char *const ops[] = {"tqt_weights", "lsq_weights"};
    struct bench const b = build(ops[_i], "layout=int8 learn=1", true, QAT_SHAPE(2, 8));
    float up[16];
    qat_qparams p;
    qat_run const run = train_at(1);
    fill(&b, 5, -1, 1);
    memset(b.x->value, 0, 8 * sizeof(float));
    observe(&b);
    random_upstream(up, 16, 6);
    qat_graph_forward(g, &run);
    ck_assert_float_eq(largest_error(&b, 0, 8), 0);
    backward(&b, up, &run);
    ck_assert_float_eq(learned_grad(&b)[0], 0);
    ck_assert_float_ne(learned_grad(&b)[1], 0);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(b.x->grad[i], up[i]); /* so that it can leave 0 */
    float const other = learned_of(&b)[1] += 0.5f;
    memcpy(b.x->value, (const float[]){0.1f, -0.2f, 0, 0.05f, 0.2f, 0.1f, 0, 0}, 8 * sizeof(float));
    ck_assert_int_eq(qat_quantizer_qparams(b.q, 0, &p, &err), QAT_OK);
    ck_assert(p.scale < 0.02f); /* of the values it has now, as export would see them */
    qat_graph_update(g, &run);
    ck_assert_float_eq(learned_of(&b)[1], other);
    float const begun = learned_of(&b)[0];
    b.x->value[0] = 3; /* beyond the range it began with: cut, and pulled at */
    qat_graph_forward(g, &run);
    ck_assert_float_lt(b.q->value[0], 2);
    ck_assert_float_lt(largest_error(&b, 1, 7), 0.01f);
    backward(&b, up, &run);
    ck_assert_float_ne(learned_grad(&b)[0], 0);
    qat_graph_update(g, &run);
    ck_assert_float_eq(learned_of(&b)[0], begun);
}
END_TEST

/* Likewise an activation: the first batch with another value is the first of its average. */
START_TEST(test_activation_of_zeros)
{
    static const char *const ops[] = {"tqt", "lsq"};
    struct bench const b = build(ops[_i], "learn=1 decay=0.99", false, QAT_SHAPE(2, 8));
    const float *range = b.q->inputs[QZ_RANGE]->value;
    memset(b.x->value, 0, 16 * sizeof(float));
    observe(&b);
    qat_run const run = train_at(1);
    fill(&b, 5, -1, 1);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
    ck_assert_float_lt(range[QZ_MIN], -0.5f);
    ck_assert_float_gt(range[QZ_MAX], 0.5f);
    qat_graph_forward(g, &run);
    ck_assert_float_lt(largest_error(&b, 0, 16), 0.01f);
    float up[16];
    random_upstream(up, 16, 6);
    backward(&b, up, &run);
    ck_assert_float_ne(learned_grad(&b)[0], 0);
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
        qat_run const run = train_at(step);
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
    ck_assert_ptr_null(qat_find_quantizer(registry, "relu", false));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantizers");
    TCase *tc = tcase_create("quantizers");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_symmetric_weights, 0, 12);
    tcase_add_loop_test(tc, test_unsigned_activation, 0, 8);
    tcase_add_loop_test(tc, test_two_ends, 0, 8);
    tcase_add_test(tc, test_lsq_two_ends);
    tcase_add_test(tc, test_by_hand);
    tcase_add_test(tc, test_tqt_start);
    tcase_add_test(tc, test_powers_of_two);
    tcase_add_test(tc, test_phases);
    tcase_add_test(tc, test_limits);
    tcase_add_loop_test(tc, test_channel_of_zeros, 0, 2);
    tcase_add_loop_test(tc, test_activation_of_zeros, 0, 2);
    tcase_add_loop_test(tc, test_plain_activations, 0, 3);
    tcase_add_loop_test(tc, test_plain_weights, 0, 5);
    tcase_add_test(tc, test_table);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/**
 * Ops with arithmetic that only imported models have: transpose_conv2d, maximum, minimum, prelu,
 * div, squared_difference, compare, l2_normalization. They run on random shapes and codes and are
 * compared with their formulas. Also what they refuse.
 */
#include "common/suite.h"
#include "infer/arithmetic/fixedpoint.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 300, MOST_VALUES = 1 << 14 };

static int32_t limited(int64_t code, int32_t lo, int32_t hi)
{
    return (int32_t)(code < lo ? lo : code > hi ? hi : code);
}

/* ------------------------------------------------------------------ two inputs, broadcast */

/** y of shape dims; a and b have some of these dims as 1, or lack the first ones. */
struct binary {
    uint64_t seed;
    int rank_a, rank_b;
    int32_t y_dims[4], a_dims[4], b_dims[4];
    codes_of ca, cb, cy;
    uint8_t a[MOST_VALUES], b[MOST_VALUES], got[MOST_VALUES];
};

/** Of dims [4], the last `rank`, some of them 1. */
static void stretch_some(uint64_t *seed, const int32_t *dims, int rank, int32_t *out)
{
    for (int d = 0; d < rank; d++)
        out[d] = test_random(seed) % 3 ? dims[4 - rank + d] : 1;
}

static int32_t aligned(const int32_t *dims, int rank, int d)
{
    return d < 4 - rank ? 1 : dims[d - (4 - rank)];
}

static struct binary *binary_new(int number)
{
    struct binary *v = calloc(1, sizeof *v);
    ck_assert_ptr_nonnull(v);
    v->seed = (uint64_t)number * 101 + 9;
    int32_t dims[4];
    for (int d = 0; d < 4; d++)
        dims[d] = test_random_in(&v->seed, 1, 6);
    v->rank_a = test_random_in(&v->seed, 1, 4);
    v->rank_b = test_random_in(&v->seed, 1, 4);
    stretch_some(&v->seed, dims, v->rank_a, v->a_dims);
    stretch_some(&v->seed, dims, v->rank_b, v->b_dims);
    for (int d = 0; d < 4; d++) {
        int32_t const a = aligned(v->a_dims, v->rank_a, d), b = aligned(v->b_dims, v->rank_b, d);
        v->y_dims[d] = a > b ? a : b;
    }
    v->ca = random_codes(&v->seed);
    v->cb = random_codes(&v->seed);
    v->cy = random_codes(&v->seed);
    return v;
}

/** Code of an operand under output position at. */
static int32_t operand(const uint8_t *codes, codes_of c, const int32_t *dims, int rank,
                       const int32_t at[4])
{
    size_t i = 0;
    for (int d = 0; d < 4; d++) {
        int32_t const n = aligned(dims, rank, d);
        i = i * (size_t)n + (size_t)(n == 1 ? 0 : at[d]);
    }
    return code_at(codes, i, c);
}

typedef int32_t pair_fn(const struct binary *v, const int32_t *params, int32_t a, int32_t b);

static void binary_check(struct binary *v, const char *op, qi_rounding rounding, int n_params,
                         const int32_t *params, pair_fn *expected)
{
    qat_qgraph *g = qat_qgraph_new();
    qat_error err;
    ck_assert_ptr_nonnull(g);
    fill_codes(v->a, product_of(v->a_dims, v->rank_a), v->ca, &v->seed);
    fill_codes(v->b, product_of(v->b_dims, v->rank_b), v->cb, &v->seed);
    int const inputs[] = {net_activation(g, v->ca, v->rank_a, v->a_dims),
                          net_activation(g, v->cb, v->rank_b, v->b_dims)};
    int const y = net_activation(g, v->cy, 4, v->y_dims);
    net_op(g, op, rounding, 2, inputs, y, n_params, params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, inputs, 1, &y, &err), QAT_OK);
    static int kept;
    net_run_kept(g, (const void *[]){v->a, v->b}, (void *[]){v->got}, op, kept++);
    int32_t at[4];
    size_t i = 0;
    for (at[0] = 0; at[0] < v->y_dims[0]; at[0]++)
        for (at[1] = 0; at[1] < v->y_dims[1]; at[1]++)
            for (at[2] = 0; at[2] < v->y_dims[2]; at[2]++)
                for (at[3] = 0; at[3] < v->y_dims[3]; at[3]++, i++) {
                    int32_t const a = operand(v->a, v->ca, v->a_dims, v->rank_a, at);
                    int32_t const b = operand(v->b, v->cb, v->b_dims, v->rank_b, at);
                    ck_assert_int_eq(code_at(v->got, i, v->cy), expected(v, params, a, b));
                }
    qat_qgraph_free(g);
    free(v);
}

static int32_t larger(const struct binary *v, const int32_t *params, int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(const struct binary *v, const int32_t *params, int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/** Codes of y's type and bits, on another zero point. */
static codes_of alike(struct binary *v)
{
    codes_of c;
    do
        c = random_codes(&v->seed);
    while (c.type != v->cy.type || c.bits != v->cy.bits);
    return c;
}

static void check_selection(int number, const char *op, pair_fn *expected)
{
    struct binary *v = binary_new(number);
    v->ca = alike(v);
    v->cb = alike(v);
    binary_check(v, op, QI_ROUND_NONE, 0, NULL, expected);
}

static void trial_maximum(int number)
{
    check_selection(number, "maximum", larger);
}

static void trial_minimum(int number)
{
    check_selection(number, "minimum", smaller);
}

static int32_t prelu(const struct binary *v, const int32_t *p, int32_t a, int32_t b)
{
    int32_t const x = a - v->ca.zero_point, alpha = b - v->cb.zero_point;
    int32_t const y = x >= 0 ? qi_requantize(x, p[0], p[1]) : qi_requantize(x * alpha, p[2], p[3]);
    return limited((int64_t)y + v->cy.zero_point, p[4], p[5]);
}

static void trial_prelu(int number)
{
    struct binary *v = binary_new(number);
    int32_t const params[] = {test_random_in(&v->seed, 1 << 30, INT32_MAX),
                              test_random_in(&v->seed, -3, 3),
                              test_random_in(&v->seed, 1 << 30, INT32_MAX),
                              test_random_in(&v->seed, -12, 2),
                              test_random_in(&v->seed, codes_lo(v->cy), v->cy.zero_point),
                              test_random_in(&v->seed, v->cy.zero_point, codes_hi(v->cy))};
    binary_check(v, "prelu", QI_ROUND_TWICE, 6, params, prelu);
}

/** The formula, which is within half a code and a part in a million of the real quotient. */
static int32_t quotient(const struct binary *v, const int32_t *p, int32_t a, int32_t b)
{
    int64_t const x = a - v->ca.zero_point, y = b - v->cb.zero_point, z = v->cy.zero_point;
    if (!y)
        return x > 0 ? p[3] : x < 0 ? p[2] : limited(z, p[2], p[3]);
    int over;
    int64_t const n = y < 0 ? -x : x;
    int32_t const inverse = qi_reciprocal_q12((uint32_t)(y < 0 ? -y : y), &over);
    int headroom = 0;
    while (n && n * (INT64_C(2) << headroom) >= INT32_MIN &&
           n * (INT64_C(2) << headroom) <= INT32_MAX)
        headroom++;
    int32_t const steps = qi_srdhm((int32_t)(n * (INT64_C(1) << headroom)), inverse);
    int const bits = over + 19 + headroom - p[1];
    int32_t const code = !n || bits > 31 ? 0 : qi_rdbp(qi_srdhm(steps, p[0]), bits);
    double const real = ldexp((double)n / (double)(y < 0 ? -y : y) * p[0], p[1] - 31);
    ck_assert_double_le(fabs(code - real), 0.5 + 1e-6 * (1 + fabs(real)));
    return limited(code + z, p[2], p[3]);
}

static void trial_div(int number)
{
    struct binary *v = binary_new(number);
    int32_t const params[] = {test_random_in(&v->seed, 1 << 30, INT32_MAX),
                              test_random_in(&v->seed, number % 2 ? -31 : 4, number % 3 ? 9 : 23),
                              test_random_in(&v->seed, codes_lo(v->cy), v->cy.zero_point),
                              test_random_in(&v->seed, v->cy.zero_point, codes_hi(v->cy))};
    binary_check(v, "div", QI_ROUND_TWICE, 4, params, quotient);
}

/** Of squared_difference and compare: params: left_shift, then (mult, shift) of both. */
static int32_t on_common_scale(codes_of c, int32_t q, const int32_t *params, int side)
{
    return qi_requantize((q - c.zero_point) * (1 << params[0]), params[1 + 2 * side],
                         params[2 + 2 * side]);
}

static void random_scales(struct binary *v, int32_t *params, int most_left)
{
    params[0] = test_random_in(&v->seed, 0, most_left);
    for (int side = 0; side < 2; side++) {
        params[1 + 2 * side] = test_random_in(&v->seed, 1 << 30, INT32_MAX);
        params[2 + 2 * side] = test_random_in(&v->seed, -9, 0);
    }
}

static int32_t squared_difference(const struct binary *v, const int32_t *p, int32_t a, int32_t b)
{
    int64_t const d = (int64_t)on_common_scale(v->ca, a, p, 0) - on_common_scale(v->cb, b, p, 1);
    int32_t const y = qi_requantize(qi_saturate_i64(d * d), p[5], p[6]);
    return limited((int64_t)y + v->cy.zero_point, p[7], p[8]);
}

static void trial_squared_difference(int number)
{
    struct binary *v = binary_new(number);
    int32_t params[9];
    random_scales(v, params, number % 2 ? 7 : 20); /* 20: squares that do not fit */
    params[5] = test_random_in(&v->seed, 1 << 30, INT32_MAX);
    params[6] = test_random_in(&v->seed, -20, 2);
    params[7] = test_random_in(&v->seed, codes_lo(v->cy), v->cy.zero_point);
    params[8] = test_random_in(&v->seed, v->cy.zero_point, codes_hi(v->cy));
    binary_check(v, "squared_difference", QI_ROUND_TWICE, 9, params, squared_difference);
}

static int32_t comparison(const struct binary *v, const int32_t *p, int32_t a, int32_t b)
{
    int32_t const x = on_common_scale(v->ca, a, p + 1, 0), y = on_common_scale(v->cb, b, p + 1, 1);
    bool const answers[] = {x == y, x != y, x > y, x >= y, x < y, x <= y};
    return answers[p[0]];
}

static void trial_compare(int number)
{
    struct binary *v = binary_new(number);
    int32_t params[6] = {number % 6};
    random_scales(v, params + 1, 8);
    v->cy = (codes_of){QI_U8, 1, 0};
    if (number % 2) { /* equal values */
        v->cb = v->ca;
        memcpy(params + 4, params + 2, 2 * sizeof *params);
    }
    binary_check(v, "compare", QI_ROUND_NONE, 6, params, comparison);
}

/* ------------------------------------------------------------------ l2_normalization */

/** Rows against the formula, and against the real numbers that it stands for. */
static void trial_l2_normalization(int number)
{
    uint64_t seed = (uint64_t)number + 5;
    bool const is_signed = number & 1;
    codes_of const y = {is_signed ? QI_S8 : QI_U8, 8, is_signed ? 0 : 128};
    codes_of x = {y.type, test_random(&seed) % 3 ? 8 : test_random_in(&seed, 2, 7), 0};
    x.zero_point = test_random_in(&seed, codes_lo(x), codes_hi(x));
    int32_t const dims[] = {test_random_in(&seed, 1, 5), test_random_in(&seed, 1, 60)};
    size_t const depth = (size_t)dims[1];
    uint8_t in[300], got[300];
    fill_codes(in, product_of(dims, 2), x, &seed);
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const from = net_activation(g, x, 2, dims), to = net_activation(g, y, 2, dims);
    net_op(g, "l2_normalization", QI_ROUND_NONE, 1, &from, to, 0, NULL, 0);
    net_io(g, from, to);
    net_run(g, (const void *[]){in}, (void *[]){got});
    for (size_t r = 0; r < (size_t)dims[0]; r++) {
        int32_t sum = 0, mult;
        int shift;
        for (size_t i = 0; i < depth; i++) {
            int32_t const d = code_at(in, r * depth + i, x) - x.zero_point;
            sum += d * d;
        }
        qi_inv_sqrt_multiplier(sum, &mult, &shift);
        for (size_t i = 0; i < depth; i++) {
            int32_t const d = code_at(in, r * depth + i, x) - x.zero_point;
            int32_t const code = code_at(got, r * depth + i, y) - y.zero_point;
            int32_t const want =
                is_signed ? qi_requantize(d, mult, shift + 7) : qi_requantize(128 * d, mult, shift);
            ck_assert_int_eq(code, limited(want, -128, 127));
            double const real = sum ? 128.0 * d / sqrt((double)sum) : 0.0;
            ck_assert(fabs(fmin(real, 127.0) - code) <= 0.75);
        }
    }
    qat_qgraph_free(g);
}

/* ------------------------------------------------------------------ transpose_conv2d */

struct transposed {
    uint64_t seed;
    codes_of cx, cw, cy;
    int32_t x[4], w[4], y[4], params[6];
    int32_t bias[8], mult[8], shift[8];
    int n_mult;
    uint8_t in[MOST_VALUES], got[MOST_VALUES];
    const uint8_t *weights;
    int64_t acc[MOST_VALUES];
};

static struct transposed *transposed_new(int number)
{
    struct transposed *v = calloc(1, sizeof *v);
    ck_assert_ptr_nonnull(v);
    uint64_t *seed = &v->seed;
    *seed = (uint64_t)number * 53 + 1;
    v->cx = random_codes(seed);
    v->cw = random_codes(seed);
    v->cy = random_codes(seed);
    v->x[0] = v->y[0] = test_random_in(seed, 1, 2);
    v->x[3] = v->w[3] = test_random_in(seed, 1, 9);
    v->w[0] = v->y[3] = test_random_in(seed, 1, 8);
    for (int d = 1; d < 3; d++) {
        v->x[d] = test_random_in(seed, 1, 6);
        v->w[d] = test_random_in(seed, 1, 5);
        v->params[d - 1] = test_random_in(seed, 1, 4);
        v->params[d + 1] = test_random_in(seed, 0, v->w[d] - 1);
        v->y[d] = test_random_in(seed, 1, v->x[d] * v->params[d - 1] + 3); /* any relation */
    }
    v->params[4] = test_random_in(seed, codes_lo(v->cy), v->cy.zero_point);
    v->params[5] = test_random_in(seed, v->cy.zero_point, codes_hi(v->cy));
    v->n_mult = test_random(seed) & 1 ? v->w[0] : 1;
    for (int o = 0; o < v->w[0]; o++) {
        v->bias[o] = test_random_in(seed, -3000, 3000);
        v->mult[o] = test_random_in(seed, 1 << 30, INT32_MAX);
        v->shift[o] = test_random_in(seed, -12, -5);
    }
    return v;
}

static int32_t difference(const uint8_t *codes, size_t i, codes_of c)
{
    return code_at(codes, i, c) - c.zero_point;
}

/** Every input value to the outputs that it reaches. */
static void scatter(struct transposed *v, int n, int iy, int ix)
{
    const int32_t *p = v->params;
    for (int ky = 0; ky < v->w[1]; ky++)
        for (int kx = 0; kx < v->w[2]; kx++) {
            int const oy = iy * p[0] - p[2] + ky, ox = ix * p[1] - p[3] + kx;
            if (oy < 0 || oy >= v->y[1] || ox < 0 || ox >= v->y[2])
                continue;
            for (int o = 0; o < v->w[0]; o++)
                for (int c = 0; c < v->x[3]; c++) {
                    int const x = ((n * v->x[1] + iy) * v->x[2] + ix) * v->x[3] + c;
                    int const w = ((o * v->w[1] + ky) * v->w[2] + kx) * v->w[3] + c;
                    int const y = ((n * v->y[1] + oy) * v->y[2] + ox) * v->y[3] + o;
                    v->acc[y] += difference(v->in, (size_t)x, v->cx) *
                                 difference(v->weights, (size_t)w, v->cw);
                }
        }
}

/** D sum |w - Z| + |bias| of the worst channel. */
static int64_t bound_of(const struct transposed *v)
{
    int64_t const up = codes_hi(v->cx) - v->cx.zero_point;
    int64_t const down = v->cx.zero_point - codes_lo(v->cx), widest = up > down ? up : down;
    size_t const depth = product_of(v->w + 1, 3);
    int64_t most = 0;
    for (int o = 0; o < v->w[0]; o++) {
        int64_t sum = 0;
        for (size_t i = 0; i < depth; i++)
            sum += abs(difference(v->weights, (size_t)o * depth + i, v->cw));
        sum = sum * widest + abs(v->bias[o]);
        most = sum > most ? sum : most;
    }
    return most;
}

static void transposed_graph(struct transposed *v, qat_qgraph *g)
{
    int const x = net_activation(g, v->cx, 4, v->x), y = net_activation(g, v->cy, 4, v->y);
    int const w = net_constant(g, v->cw, 4, v->w, &v->seed, &v->weights);
    int const inputs[] = {x, w, net_s32(g, v->w[0], 1, v->bias), net_s32(g, v->n_mult, 1, v->mult),
                          net_s32(g, v->n_mult, 1, v->shift)};
    net_op(g, "transpose_conv2d", QI_ROUND_TWICE, 5, inputs, y, 6, v->params, bound_of(v));
    net_io(g, x, y);
}

static void trial_transpose_conv(int number)
{
    struct transposed *v = transposed_new(number);
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    transposed_graph(v, g);
    fill_codes(v->in, product_of(v->x, 4), v->cx, &v->seed);
    net_run_kept(g, (const void *[]){v->in}, (void *[]){v->got}, "transpose_conv2d", number);
    for (int n = 0; n < v->x[0]; n++)
        for (int iy = 0; iy < v->x[1]; iy++)
            for (int ix = 0; ix < v->x[2]; ix++)
                scatter(v, n, iy, ix);
    for (size_t i = 0; i < product_of(v->y, 4); i++) {
        int const o = (int)(i % (size_t)v->y[3]), m = v->n_mult > 1 ? o : 0;
        int32_t const acc = (int32_t)(v->acc[i] + v->bias[o]);
        int64_t const code = (int64_t)qi_requantize(acc, v->mult[m], v->shift[m]);
        ck_assert_int_eq(code_at(v->got, i, v->cy),
                         limited(code + v->cy.zero_point, v->params[4], v->params[5]));
    }
    qat_qgraph_free(g);
    free(v);
}

/* ------------------------------------------------------------------ refusals */

static void try_transposed(const struct transposed *v, qi_status expected)
{
    struct transposed changed = *v;
    qat_qgraph *g = qat_qgraph_new();
    qi_host *host = NULL;
    ck_assert_ptr_nonnull(g);
    transposed_graph(&changed, g);
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

#define TRY_TRANSPOSED(expected, ...)                                                              \
    do {                                                                                           \
        *v = *good;                                                                                \
        __VA_ARGS__;                                                                               \
        try_transposed(v, expected);                                                               \
    } while (0)

START_TEST(test_transpose_conv_refused)
{
    struct transposed *good = calloc(1, sizeof *good), *v = calloc(1, sizeof *v);
    ck_assert(good && v);
    *good = (struct transposed){.seed = 1,
                                .cx = {QI_U8, 8, 100},
                                .cw = {QI_S8, 8, 0},
                                .cy = {QI_U8, 8, 3},
                                .x = {1, 4, 4, 3},
                                .w = {5, 3, 3, 3},
                                .y = {1, 8, 8, 5},
                                .params = {2, 2, 0, 0, 0, 255},
                                .mult = {1 << 30},
                                .shift = {-8},
                                .n_mult = 1};
    TRY_TRANSPOSED(QI_OK, (void)v);
    for (int i = 0; i < 2; i++) {
        TRY_TRANSPOSED(QI_ERR_PARAM, v->params[i] = 0);
        TRY_TRANSPOSED(QI_ERR_PARAM, v->params[i] = 65536);
        TRY_TRANSPOSED(QI_OK, v->params[2 + i] = 2);
        TRY_TRANSPOSED(QI_ERR_PARAM, v->params[2 + i] = 3);
        TRY_TRANSPOSED(QI_ERR_PARAM, v->params[2 + i] = -1);
    }
    TRY_TRANSPOSED(QI_ERR_PARAM, v->params[4] = 200; v->params[5] = 100);
    TRY_TRANSPOSED(QI_ERR_PARAM, v->params[5] = 256);
    TRY_TRANSPOSED(QI_ERR_PARAM, v->mult[0] = -1);
    TRY_TRANSPOSED(QI_ERR_PARAM, v->shift[0] = 32);
    TRY_TRANSPOSED(QI_ERR_SHAPE, v->x[3] = 2);
    TRY_TRANSPOSED(QI_ERR_SHAPE, v->y[3] = 4);
    TRY_TRANSPOSED(QI_ERR_SHAPE, v->y[0] = 2);
    TRY_TRANSPOSED(QI_OK, v->y[1] = 100);
    free(good);
    free(v);
}
END_TEST

/** A node of two inputs, or one, that a test may spoil. */
struct node {
    const char *op;
    int n_inputs, n_params;
    codes_of a, b, y;
    int32_t a_dims[2], b_dims[2], y_dims[2], params[9];
    qi_rounding rounding;
};

static void try_node(const struct node *v, qi_status expected)
{
    qat_qgraph *g = qat_qgraph_new();
    qat_error err;
    qi_host *host = NULL;
    ck_assert_ptr_nonnull(g);
    int const inputs[] = {net_activation(g, v->a, 2, v->a_dims),
                          net_activation(g, v->b, 2, v->b_dims)};
    int const y = net_activation(g, v->y, 2, v->y_dims);
    net_op(g, v->op, v->rounding, v->n_inputs, inputs, y, v->n_params, v->params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, inputs, 1, &y, &err), QAT_OK);
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

#define TRY(expected, ...)                                                                         \
    do {                                                                                           \
        struct node v = good;                                                                      \
        __VA_ARGS__;                                                                               \
        try_node(&v, expected);                                                                    \
    } while (0)

static const codes_of u8 = {QI_U8, 8, 5}, s32 = {QI_S32, 32, 0};

START_TEST(test_selection_refused)
{
    static const char *const ops[] = {"maximum", "minimum"};
    struct node const good = {ops[_i], 2, 0, u8, u8, u8, {3, 4}, {1, 4}, {3, 4}, {0}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.a.zero_point = 6);
    TRY(QI_OK, v.b.zero_point = 6);
    TRY(QI_ERR_SHAPE, v.b.bits = 7);
    TRY(QI_ERR_SHAPE, v.y.type = QI_S8);
    TRY(QI_ERR_SHAPE, v.a = v.b = v.y = s32);
    TRY(QI_ERR_SHAPE, v.b_dims[0] = 2);
    TRY(QI_ERR_SHAPE, v.y_dims[0] = 1);
    TRY(QI_ERR_SHAPE, v.n_inputs = 1);
    TRY(QI_ERR_PARAM, v.n_params = 1);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
}
END_TEST

START_TEST(test_squared_difference_refused)
{
    struct node const good = {"squared_difference",
                              2,
                              9,
                              u8,
                              u8,
                              u8,
                              {3, 4},
                              {1, 4},
                              {3, 4},
                              {7, 1 << 30, 0, 1 << 30, 0, 1 << 30, -9, 0, 255},
                              QI_ROUND_TWICE};
    codes_of const s16 = {QI_S16, 16, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_ERR_SHAPE, v.a = v.b = v.y = s16; v.params[0] = 0);
    TRY(QI_ERR_PARAM, v.params[0] = 21);
    TRY(QI_ERR_PARAM, v.params[8] = 256);
}
END_TEST

START_TEST(test_compare_refused)
{
    struct node const good = {"compare",     2,      6,      u8,     u8,
                              {QI_U8, 1, 0}, {3, 4}, {1, 4}, {3, 4}, {5, 8, 1 << 30, 0, 1 << 30, 0},
                              QI_ROUND_NONE};
    TRY(QI_OK, (void)v);
    TRY(QI_ERR_PARAM, v.params[0] = 6);
    TRY(QI_ERR_PARAM, v.params[0] = -1);
    TRY(QI_ERR_PARAM, v.params[1] = 21);
    TRY(QI_ERR_PARAM, v.params[2] = -1);
    TRY(QI_ERR_PARAM, v.params[5] = 32);
    TRY(QI_ERR_SHAPE, v.y.bits = 8);
    TRY(QI_ERR_SHAPE, v.y = s32);
    TRY(QI_ERR_SHAPE, v.a = s32);
    TRY(QI_ERR_SHAPE, v.y_dims[0] = 1);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
}
END_TEST

START_TEST(test_prelu_refused)
{
    struct node const good = {
        "prelu",       2,      6,      u8,     {QI_U8, 8, 77},
        {QI_U8, 8, 3}, {3, 4}, {1, 4}, {3, 4}, {1 << 30, 0, 1 << 30, -7, 0, 255},
        QI_ROUND_TWICE};
    TRY(QI_OK, (void)v);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_NONE);
    TRY(QI_ERR_PARAM, v.n_params = 5);
    for (int i = 0; i < 4; i += 2) {
        TRY(QI_ERR_PARAM, v.params[i] = -1);
        TRY(QI_ERR_PARAM, v.params[i + 1] = 32);
        TRY(QI_ERR_PARAM, v.params[i + 1] = -32);
    }
    TRY(QI_ERR_PARAM, v.params[4] = -1);
    TRY(QI_ERR_PARAM, v.params[5] = 256);
    TRY(QI_ERR_SHAPE, v.b = s32);
    TRY(QI_ERR_SHAPE, v.b_dims[1] = 3);
}
END_TEST

START_TEST(test_div_refused)
{
    codes_of const s16 = {QI_S16, 16, 0};
    struct node const good = {
        "div", 2, 4, u8, u8, u8, {3, 4}, {1, 4}, {3, 4}, {1 << 30, 23, 0, 255}, QI_ROUND_TWICE};
    TRY(QI_OK, (void)v);
    TRY(QI_ERR_PARAM, v.params[1] = 24);
    TRY(QI_ERR_PARAM, v.params[1] = -32);
    TRY(QI_ERR_PARAM, v.params[0] = -1);
    TRY(QI_ERR_PARAM, v.params[3] = 256);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_NONE);
    TRY(QI_ERR_SHAPE, v.a = s32);
    TRY(QI_OK, v.a = v.b = v.y = s16; v.params[1] = 15);
    TRY(QI_ERR_PARAM, v.a = v.b = v.y = s16; v.params[1] = 16);
}
END_TEST

START_TEST(test_l2_normalization_refused)
{
    struct node const good = {
        "l2_normalization", 1, 0, u8, u8, {QI_U8, 8, 128}, {3, 4}, {1, 1}, {3, 4}, {0}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.a.bits = 4);
    TRY(QI_ERR_PARAM, v.y.zero_point = 127);
    TRY(QI_ERR_SHAPE, v.y = (codes_of){QI_S8, 8, 0});
    TRY(QI_ERR_SHAPE, v.y = (codes_of){QI_U8, 7, 127});
    TRY(QI_ERR_SHAPE, v.y_dims[1] = 5);
    TRY(QI_OK, v.a_dims[1] = v.y_dims[1] = 33025);
    TRY(QI_ERR_SHAPE, v.a_dims[1] = v.y_dims[1] = 33026);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
}
END_TEST

/** Each on TRIALS numbers, which seed it. */
static const net_trial trials[] = {{"maximum", trial_maximum},
                                   {"minimum", trial_minimum},
                                   {"prelu", trial_prelu},
                                   {"div", trial_div},
                                   {"squared_difference", trial_squared_difference},
                                   {"compare", trial_compare},
                                   {"l2_normalization", trial_l2_normalization},
                                   {"transpose_conv", trial_transpose_conv}};

START_TEST(test_trials)
{
    net_try(&trials[_i], TRIALS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_imported");
    TCase *tcase = tcase_create("ops");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, test_trials, 0, (int)(sizeof trials / sizeof trials[0]));
    tcase_add_test(tcase, test_transpose_conv_refused);
    tcase_add_loop_test(tcase, test_selection_refused, 0, 2);
    tcase_add_test(tcase, test_squared_difference_refused);
    tcase_add_test(tcase, test_compare_refused);
    tcase_add_test(tcase, test_prelu_refused);
    tcase_add_test(tcase, test_div_refused);
    tcase_add_test(tcase, test_l2_normalization_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

/**
 * Compares resize_nearest and resize_bilinear on random sizes with their formulas. For uint8 these
 * are float32: the engine's integers give what this processor's float32 gives. The test prints how
 * many values of uint8 resize_bilinear differ; none may. The core computes them, and then a host
 * with every instruction set that runs here, on one and on three threads.
 */
#include "common/suite.h"
#include "infer/arithmetic/binary32.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 400, MOST_VALUES = 40000, MOST_CHANNELS = 70 };

/* ------------------------------------------------------------------ float32 in integers */

static float real_of(qi_binary32 a)
{
    return ldexpf((float)a.mant, a.exp);
}

/** A number with few or many significant bits, of either sign, not far from 1. */
static qi_binary32 random_binary32(uint64_t *seed)
{
    int const bits = test_random_in(seed, 1, 24);
    int32_t const mant = test_random_in(seed, -(1 << bits) + 1, (1 << bits) - 1);
    return qi_b32_round(mant, test_random_in(seed, -40, 2));
}

START_TEST(test_binary32)
{
    uint64_t seed = 11;
    for (int i = 0; i < 200000; i++) {
        qi_binary32 const a = random_binary32(&seed), b = random_binary32(&seed);
        volatile float const x = real_of(a), y = real_of(b);
        volatile float const sum = x + y, difference = x - y, product = x * y;
        ck_assert(real_of(qi_b32_add(a, b)) == sum);
        ck_assert(real_of(qi_b32_sub(a, b)) == difference);
        ck_assert(real_of(qi_b32_mul(a, b)) == product);
        ck_assert(fabsf(x) >= 1e9f || qi_b32_floor(a) == (int32_t)floorf(x));
        ck_assert(fabsf(x) >= 1e9f || qi_b32_ceil(a) == (int32_t)ceilf(x));
        ck_assert(x < 0 || x >= 1e9f || qi_b32_nearest(a) == (int32_t)roundf(x));
    }
}
END_TEST

START_TEST(test_binary32_quotients)
{
    uint64_t seed = 12;
    for (int i = 0; i < 200000; i++) {
        int32_t const most = i % 2 ? 65535 : 300;
        int32_t const a = test_random_in(&seed, 0, most), b = test_random_in(&seed, 1, most);
        volatile float const quotient = (float)a / (float)b;
        ck_assert(real_of(qi_b32_divide(a, b)) == quotient);
    }
    for (int32_t a = 0; a <= 512; a++)
        for (int32_t b = 1; b <= 512; b++) {
            volatile float const quotient = (float)a / (float)b;
            ck_assert(real_of(qi_b32_divide(a, b)) == quotient);
        }
    for (int64_t v = (INT64_C(1) << 24) - 3; v < (INT64_C(1) << 26); v += 1 + v / 100000)
        ck_assert(real_of(qi_b32_round(v, 0)) == (float)v);
}
END_TEST

/* ------------------------------------------------------------------ the ops */

struct trial {
    uint64_t seed;
    codes_of c;
    int32_t x[4], y[4], params[2];
    uint8_t in[MOST_VALUES], got[MOST_VALUES], of_host[MOST_VALUES];
};

static int32_t random_side(uint64_t *seed)
{
    return test_random(seed) % 4 ? test_random_in(seed, 1, 12) : test_random_in(seed, 1, 70);
}

static struct trial *trial_new(int number, codes_of c)
{
    struct trial *t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    t->seed = (uint64_t)number * 31 + 7;
    t->c = c;
    t->x[0] = t->y[0] = test_random_in(&t->seed, 1, 2);
    for (int d = 1; d < 3; d++) {
        t->x[d] = random_side(&t->seed);
        t->y[d] = random_side(&t->seed);
    }
    size_t const in = product_of(t->x, 3), out = product_of(t->y, 3);
    size_t const most = MOST_VALUES / (in > out ? in : out);
    t->x[3] = t->y[3] =
        test_random_in(&t->seed, 1, most < MOST_CHANNELS ? (int32_t)most : MOST_CHANNELS);
    t->params[0] = test_random_in(&t->seed, 0, 1);
    t->params[1] = test_random_in(&t->seed, 0, 1);
    fill_codes(t->in, product_of(t->x, 4), t->c, &t->seed);
    return t;
}

/** Compare what a host gives with what the core gave. All but `scalar` have drivers. */
static void run_host(struct trial *t, const uint8_t *qm, size_t count,
                     const qi_host_options *options)
{
    qat_error err;
    qi_host *host = NULL;
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "net", options, &err), "%s", err.message);
    memset(t->of_host, 0xa5, product_of(t->y, 4));
    qi_host_run(host, (const void *[]){t->in}, (void *[]){t->of_host});
    ck_assert_msg(memcmp(t->of_host, t->got, product_of(t->y, 4)) == 0, "%s, %d threads",
                  options->isa, options->threads);
    ck_assert_int_eq(qi_host_node_is_fast(host, 0), strcmp(options->isa, "scalar") != 0);
    qi_host_close(host);
}

static void run_hosts(struct trial *t, const qat_qgraph *g)
{
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    for (int i = 0; qi_isa_name(i); i++)
        for (int threads = 1; threads < 4 && qi_isa_runs_here(qi_isa_name(i)); threads += 2)
            run_host(t, qm, count, &(qi_host_options){.isa = qi_isa_name(i), .threads = threads});
    free(qm);
}

static void trial_run_by(struct trial *t, const char *op, qi_rounding rounding)
{
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, t->c, 4, t->x), y = net_activation(g, t->c, 4, t->y);
    net_op(g, op, rounding, 1, &x, y, 2, t->params, 0);
    net_io(g, x, y);
    net_run(g, (const void *[]){t->in}, (void *[]){t->got});
    run_hosts(t, g);
    qat_qgraph_free(g);
}

static void trial_run(struct trial *t, const char *op)
{
    trial_run_by(t, op, QI_ROUND_NONE);
}

static int32_t input_at(const struct trial *t, int n, int y, int x, int c)
{
    const int32_t *d = t->x;
    return code_at(t->in, (size_t)(((n * d[1] + y) * d[2] + x) * d[3] + c), t->c);
}

/** The value of every output, in order. */
typedef int32_t expected_fn(const struct trial *t, int n, int y, int x, int c);

static int64_t differing(const struct trial *t, expected_fn *expected)
{
    int64_t count = 0;
    size_t i = 0;
    for (int n = 0; n < t->y[0]; n++)
        for (int y = 0; y < t->y[1]; y++)
            for (int x = 0; x < t->y[2]; x++)
                for (int c = 0; c < t->y[3]; c++, i++)
                    count += code_at(t->got, i, t->c) != expected(t, n, y, x, c);
    return count;
}

static float ratio(const struct trial *t, int d)
{
    if (t->params[0] && t->y[d] > 1)
        return (float)(t->x[d] - 1) / (float)(t->y[d] - 1);
    return (float)t->x[d] / (float)t->y[d];
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int nearest_at(const struct trial *t, int d, int i)
{
    float const place = ((float)i + (t->params[1] ? 0.5f : 0.0f)) * ratio(t, d);
    return least((int)(t->params[0] ? roundf(place) : floorf(place)), t->x[d] - 1);
}

static int32_t expected_nearest(const struct trial *t, int n, int y, int x, int c)
{
    return input_at(t, n, nearest_at(t, 1, y), nearest_at(t, 2, x), c);
}

static void trial_nearest(int number)
{
    uint64_t seed = (uint64_t)number;
    struct trial *t = trial_new(number, random_codes(&seed));
    trial_run(t, "resize_nearest");
    ck_assert_int_eq(differing(t, expected_nearest), 0);
    free(t);
}

/** Two rows (or columns) and the position between them. */
struct between {
    int lower, upper;
    float place;
};

static struct between between_at(const struct trial *t, int d, int i)
{
    struct between b;
    b.place = t->params[1] ? ((float)i + 0.5f) * ratio(t, d) - 0.5f : (float)i * ratio(t, d);
    b.lower = (int)fmaxf(floorf(b.place), 0.0f);
    b.upper = least((int)ceilf(b.place), t->x[d] - 1);
    return b;
}

static int32_t expected_u8(const struct trial *t, int n, int y, int x, int c)
{
    struct between const v = between_at(t, 1, y), h = between_at(t, 2, x);
    float const fy = v.place - (float)v.lower, fx = h.place - (float)h.lower;
    float const gy = 1.0f - fy, gx = 1.0f - fx;
    float const a = (float)input_at(t, n, v.lower, h.lower, c) * gy * gx;
    float const b = (float)input_at(t, n, v.upper, h.lower, c) * fy * gx;
    float const d = (float)input_at(t, n, v.lower, h.upper, c) * gy * fx;
    float const e = (float)input_at(t, n, v.upper, h.upper, c) * fy * fx;
    return (int32_t)(a + b + d + e + 0.5f);
}

/** Random pictures, and pictures of two codes, which lie on ties; corners aligned, or centres. */
START_TEST(test_bilinear_u8)
{
    int64_t values = 0, wrong = 0;
    for (int i = 0; i < TRIALS; i++) {
        struct trial *t = trial_new(i, (codes_of){QI_U8, 8, 77});
        t->params[1] = t->params[0] ? 0 : t->params[1];
        if (i % 3 == 0)
            for (size_t k = 0; k < product_of(t->x, 4); k++)
                t->in[k] = t->in[k] & 1 ? 255 : 254;
        trial_run(t, "resize_bilinear");
        values += (int64_t)product_of(t->y, 4);
        wrong += differing(t, expected_u8);
        free(t);
    }
    printf("uint8 resize_bilinear against float32: %lld values, %lld differ\n", (long long)values,
           (long long)wrong);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/** 10 fractional bits, as TensorFlow Lite's int8 kernel. */
static int32_t fixed_ratio(const struct trial *t, int d)
{
    int const align = t->params[0] && t->y[d] > 1;
    int const in = t->x[d] - align, out = t->y[d] - align;
    return (1024 * in + out / 2) / out;
}

static int64_t fixed_place(const struct trial *t, int d, int i, int *lower, int *upper)
{
    int32_t const r = fixed_ratio(t, d);
    int32_t const place = t->params[1] ? i * r + r / 2 - 512 : i * r;
    *lower = place < 0 ? 0 : least(place / 1024, t->x[d] - 1);
    *upper = least((place + 1023) / 1024, t->x[d] - 1);
    return place - 1024 * *lower;
}

static int32_t expected_s8(const struct trial *t, int n, int y, int x, int c)
{
    int y0, y1, x0, x1;
    int64_t const fy = fixed_place(t, 1, y, &y0, &y1), fx = fixed_place(t, 2, x, &x0, &x1);
    int64_t const sum = input_at(t, n, y0, x0, c) * (1024 - fy) * (1024 - fx) +
                        input_at(t, n, y1, x0, c) * fy * (1024 - fx) +
                        input_at(t, n, y0, x1, c) * (1024 - fy) * fx +
                        input_at(t, n, y1, x1, c) * fy * fx;
    return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

static void trial_bilinear_s8(int number)
{
    struct trial *t = trial_new(number, (codes_of){QI_S8, 8, -7});
    t->params[1] = t->params[0] ? 0 : t->params[1];
    trial_run(t, "resize_bilinear");
    ck_assert_int_eq(differing(t, expected_s8), 0);
    free(t);
}

/** Roundings ONCE and EVEN: the position as it is, in double, whose errors are far below 1e-9. */
static double exact_at(const struct trial *t, int d, int i, int *lower, int *upper)
{
    int const align = t->params[0] && t->y[d] > 1;
    double const r = (double)(t->x[d] - align) / (t->y[d] - align);
    double const place = t->params[1] ? (i + 0.5) * r - 0.5 : i * r, whole = round(place);
    double const floor_ = fabs(place - whole) < 1e-9 ? whole : floor(place);
    *lower = (int)fmax(floor_, 0);
    *upper = least(*lower + 1, t->x[d] - 1);
    return fmax(place - *lower, 0); /* before the first pixel there is nothing else */
}

static double exact_sum(const struct trial *t, int n, int y, int x, int c)
{
    int y0, y1, x0, x1;
    double const fy = exact_at(t, 1, y, &y0, &y1), fx = exact_at(t, 2, x, &x0, &x1);
    return input_at(t, n, y0, x0, c) * (1 - fy) * (1 - fx) +
           input_at(t, n, y1, x0, c) * fy * (1 - fx) + input_at(t, n, y0, x1, c) * (1 - fy) * fx +
           input_at(t, n, y1, x1, c) * fy * fx;
}

static int32_t expected_once(const struct trial *t, int n, int y, int x, int c)
{
    return (int32_t)floor(exact_sum(t, n, y, x, c) + 0.5 + 1e-9);
}

static int32_t expected_even(const struct trial *t, int n, int y, int x, int c)
{
    double const up = floor(exact_sum(t, n, y, x, c) + 0.5 + 1e-9);
    int const is_tie = fabs(up - exact_sum(t, n, y, x, c) - 0.5) < 1e-9;
    return (int32_t)up - (is_tie && (int32_t)up % 2);
}

static void trial_bilinear_exact(int number, qi_rounding rounding, expected_fn *expected)
{
    uint64_t seed = (uint64_t)number;
    struct trial *t = trial_new(number, random_codes(&seed));
    t->params[1] = t->params[0] ? 0 : t->params[1];
    trial_run_by(t, "resize_bilinear", rounding);
    ck_assert_int_eq(differing(t, expected), 0);
    free(t);
}

static void trial_bilinear_once(int number)
{
    trial_bilinear_exact(number, QI_ROUND_ONCE, expected_once);
}

static void trial_bilinear_even(int number)
{
    trial_bilinear_exact(number, QI_ROUND_EVEN, expected_even);
}

/* ------------------------------------------------------------------ refusals */

struct sizes {
    const char *op;
    int rank;
    int32_t x[4], y[4], params[2];
    codes_of cx, cy;
};

static void try_sizes(const struct sizes *v, qi_status expected)
{
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, v->cx, v->rank, v->x);
    int const y = net_activation(g, v->cy, v->rank, v->y);
    net_op(g, v->op, QI_ROUND_NONE, 1, &x, y, 2, v->params, 0);
    net_io(g, x, y);
    qi_host *host = NULL;
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

#define TRY(expected, ...)                                                                         \
    do {                                                                                           \
        struct sizes v = good;                                                                     \
        __VA_ARGS__;                                                                               \
        try_sizes(&v, expected);                                                                   \
    } while (0)

START_TEST(test_refused)
{
    static const char *const ops[] = {"resize_nearest", "resize_bilinear"};
    codes_of const c = {QI_U8, 8, 5}, s32 = {QI_S32, 32, 0};
    struct sizes const good = {
        .op = ops[_i], .rank = 4, .x = {1, 4, 5, 3}, .y = {1, 9, 7, 3}, .cx = c, .cy = c};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.params[0] = 1);
    TRY(QI_OK, v.params[1] = 1);
    TRY(_i ? QI_ERR_PARAM : QI_OK, v.params[0] = v.params[1] = 1);
    TRY(QI_ERR_PARAM, v.params[0] = 2);
    TRY(QI_ERR_PARAM, v.params[1] = -1);
    TRY(QI_ERR_SHAPE, v.y[0] = 2);
    TRY(QI_ERR_SHAPE, v.y[3] = 4);
    TRY(QI_ERR_SHAPE, v.rank = 3);
    TRY(QI_ERR_SHAPE, v.cy.zero_point = 6);
    TRY(QI_ERR_SHAPE, v.cx = v.cy = s32);
    TRY(QI_OK, v.y[1] = 65535);
    TRY(QI_ERR_SHAPE, v.y[1] = 65536);
    TRY(QI_ERR_SHAPE, v.y[2] = 65536);
    TRY(QI_ERR_SHAPE, v.x[1] = 65536);
}
END_TEST

/** Each on TRIALS numbers, which seed it. */
static const net_trial trials[] = {{"nearest", trial_nearest},
                                   {"bilinear_s8", trial_bilinear_s8},
                                   {"bilinear_once", trial_bilinear_once},
                                   {"bilinear_even", trial_bilinear_even}};

START_TEST(test_trials)
{
    net_try(&trials[_i], TRIALS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_resize");
    TCase *tcase = tcase_create("resize");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, test_trials, 0, (int)(sizeof trials / sizeof trials[0]));
    tcase_add_test(tcase, test_binary32);
    tcase_add_test(tcase, test_binary32_quotients);
    tcase_add_test(tcase, test_bilinear_u8);
    tcase_add_loop_test(tcase, test_refused, 0, 2);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

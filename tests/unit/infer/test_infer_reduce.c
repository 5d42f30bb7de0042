/**
 * reduce, sum, select, cast and log_softmax: by hand and by formulas, and what they refuse.
 * TensorFlow Lite's own results are in test_import_ops.
 */
#include "common/suite.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { MOST_INPUTS = 3 };

static const codes_of u8 = {QI_U8, 8, 5}, s8 = {QI_S8, 8, -3}, s16 = {QI_S16, 16, 0},
                      s32 = {QI_S32, 32, 0}, s64 = {QI_S64, 64, 0}, truth = {QI_U8, 1, 0};

/** A node of one op, which a test may spoil. */
struct node {
    const char *op;
    int n_inputs;
    codes_of x[MOST_INPUTS], y;
    int rank;
    int32_t x_dims[MOST_INPUTS][4], y_dims[4];
    int n_params;
    int32_t params[8];
    qi_rounding rounding;
};

static qat_qgraph *graph_of(const struct node *v)
{
    qat_qgraph *g = qat_qgraph_new();
    qat_error err;
    int inputs[MOST_INPUTS];
    ck_assert_ptr_nonnull(g);
    for (int i = 0; i < v->n_inputs; i++)
        inputs[i] = net_activation(g, v->x[i], v->rank, v->x_dims[i]);
    int const y = net_activation(g, v->y, v->rank, v->y_dims);
    net_op(g, v->op, v->rounding, v->n_inputs, inputs, y, v->n_params, v->params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, v->n_inputs, inputs, 1, &y, &err), QAT_OK);
    return g;
}

static void try_node(const struct node *v, qi_status expected)
{
    qi_host *host = NULL;
    qat_qgraph *g = graph_of(v);
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

static void run_node(const struct node *v, const void *a, const void *b, const void *c, void *y)
{
    qat_qgraph *g = graph_of(v);
    net_run(g, (const void *[]){a, b, c}, (void *[]){y});
    qat_qgraph_free(g);
}

#define TRY(expected, ...)                                                                         \
    do {                                                                                           \
        struct node v = good;                                                                      \
        __VA_ARGS__;                                                                               \
        try_node(&v, expected);                                                                    \
    } while (0)

/* ------------------------------------------------------------------ reduce */

START_TEST(test_reduce)
{
    static const int8_t x[] = {1, -7, 3, 9, -128, 0}; /* [2,3] */
    static const int16_t wide[] = {1, -700, 3, 900, -32768, 0};
    int8_t y[3];
    int16_t wide_y[1];
    struct node v = {"reduce", 1, {s8}, s8, 2, {{2, 3}}, {1, 3}, 2, {1, QI_LARGEST}, 0};
    run_node(&v, x, NULL, NULL, y);
    ck_assert_mem_eq(y, ((const int8_t[]){9, -7, 3}), 3);
    v.params[1] = QI_SMALLEST;
    run_node(&v, x, NULL, NULL, y);
    ck_assert_mem_eq(y, ((const int8_t[]){1, -128, 0}), 3);
    v = (struct node){"reduce", 1, {s8}, s8, 2, {{2, 3}}, {2, 1}, 2, {2, QI_LARGEST}, 0};
    run_node(&v, x, NULL, NULL, y);
    ck_assert_mem_eq(y, ((const int8_t[]){3, 9}), 2);
    v = (struct node){"reduce", 1, {s16}, s16, 2, {{2, 3}}, {1, 1}, 2, {3, QI_SMALLEST}, 0};
    run_node(&v, wide, NULL, NULL, wide_y);
    ck_assert_int_eq(*wide_y, -32768);
}
END_TEST

START_TEST(test_reduce_refused)
{
    struct node const good = {"reduce", 1, {s8}, s8, 2, {{2, 3}}, {1, 3}, 2, {1, 0}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.x[0] = v.y = truth);
    TRY(QI_ERR_PARAM, v.params[0] = 0);
    TRY(QI_ERR_PARAM, v.params[0] = 4);
    TRY(QI_ERR_PARAM, v.params[1] = 2);
    TRY(QI_ERR_PARAM, v.params[1] = -1);
    TRY(QI_ERR_PARAM, v.n_params = 1);
    TRY(QI_ERR_SHAPE, v.y_dims[1] = 2);
    TRY(QI_ERR_SHAPE, v.y.zero_point++);
    TRY(QI_ERR_SHAPE, v.x[0] = v.y = s32);
}
END_TEST

/* ------------------------------------------------------------------ sum */

/** A float32 as the parameters have it. */
static void split(float real, int32_t *params)
{
    int exponent;
    params[0] = (int32_t)ldexpf(frexpf(real, &exponent), 24);
    params[1] = params[0] ? exponent - 24 : 0;
}

/** Every third of 16-bit codes. */
START_TEST(test_sum)
{
    enum { N = 300, OUT = 3 };
    uint64_t seed = (uint64_t)_i + 3;
    bool const wide = _i % 3 == 2;
    codes_of const of_x = wide ? s16 : _i % 2 ? s8 : u8;
    struct node v = {"sum", 1, {of_x}, wide ? s16 : s8, 2, {{N, OUT}}, {1, OUT}, 7, {1}, 0};
    float const scale = ldexpf((float)test_random_in(&seed, 1 << 20, 1 << 24), -24 - _i % 13);
    float const bias = (float)test_random_in(&seed, -5000000, 5000000) / 65536.0f;
    uint8_t x[N * OUT];
    int16_t wide_x[N * OUT], wide_y[OUT];
    int8_t y[OUT];
    split(scale, v.params + 1);
    split(_i % 5 ? bias : 0.0f, v.params + 3);
    v.params[5] = -100;
    v.params[6] = 120;
    if (!wide)
        fill_codes(x, sizeof x, v.x[0], &seed);
    for (int i = 0; i < N * OUT && wide; i++)
        wide_x[i] = (int16_t)test_random_in(&seed, INT16_MIN, INT16_MAX);
    run_node(&v, wide ? (void *)wide_x : (void *)x, NULL, NULL, wide ? (void *)wide_y : (void *)y);
    for (int i = 0; i < OUT; i++) {
        int32_t sum = 0;
        for (int j = 0; j < N; j++)
            sum += wide ? wide_x[j * OUT + i] : code_at(x, (size_t)(j * OUT + i), v.x[0]);
        float const scaled = (float)sum * scale;
        float const code = roundf(scaled + (_i % 5 ? bias : 0.0f)) + (float)v.y.zero_point;
        ck_assert_int_eq(wide ? wide_y[i] : y[i], (int)fminf(fmaxf(code, -100), 120));
    }
}
END_TEST

START_TEST(test_sum_refused)
{
    struct node const good = {
        "sum", 1, {s8}, u8, 2, {{2, 3}}, {1, 3}, 7, {1, 1 << 23, -23, -(1 << 23), -20, 0, 255}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.params[1] = v.params[3] = 0);
    TRY(QI_ERR_PARAM, v.params[0] = 4);
    TRY(QI_ERR_PARAM, v.params[1] = (1 << 23) - 1);
    TRY(QI_ERR_PARAM, v.params[1] = 1 << 24);
    TRY(QI_ERR_PARAM, v.params[3] = INT32_MIN);
    TRY(QI_ERR_PARAM, v.params[2] = 201);
    TRY(QI_ERR_PARAM, v.params[4] = -201);
    TRY(QI_ERR_PARAM, v.params[6] = 256);
    TRY(QI_OK, v.x[0] = v.y = s16);
    TRY(QI_ERR_SHAPE, v.x[0] = s16);
    TRY(QI_ERR_OVERFLOW, v.x[0] = v.y = s16; v.x_dims[0][0] = 65536);
    TRY(QI_ERR_SHAPE, v.y_dims[0] = 2);
    TRY(QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
}
END_TEST

/* ------------------------------------------------------------------ select, cast */

START_TEST(test_select)
{
    static const uint8_t condition[] = {1, 0};
    static const int8_t a[] = {1, 2, 3}, b[] = {-1, -2, -3, -4, -5, -6};
    static const int16_t wide[] = {300};
    int8_t y[6];
    int16_t wide_y[2];
    struct node v = {"select", 3, {truth, s8, s8}, s8, 2, {{2, 1}, {1, 3}, {2, 3}}, {2, 3}, 0,
                     {0},      0};
    run_node(&v, condition, a, b, y);
    ck_assert_mem_eq(y, ((const int8_t[]){1, 2, 3, -4, -5, -6}), 6);
    v = (struct node){"select", 3, {truth, s16, s16}, s16, 2, {{2, 1}, {1, 1}, {1, 1}}, {2, 1}, 0,
                      {0},      0};
    run_node(&v, condition, wide, (const int16_t[]){-7}, wide_y);
    ck_assert_int_eq(wide_y[0], 300);
    ck_assert_int_eq(wide_y[1], -7);
}
END_TEST

START_TEST(test_select_refused)
{
    struct node const good = {
        "select", 3, {truth, s8, s8}, s8, 2, {{2, 1}, {1, 3}, {2, 3}}, {2, 3}, 0, {0}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.x[1].zero_point++);
    TRY(QI_OK, v.x[1] = v.x[2] = v.y = s64);
    TRY(QI_ERR_SHAPE, v.x[0] = u8);
    TRY(QI_ERR_SHAPE, v.x[0] = s8);
    TRY(QI_ERR_SHAPE, v.x[1] = u8);
    TRY(QI_ERR_SHAPE, v.x[2].bits = 7);
    TRY(QI_ERR_SHAPE, v.x_dims[0][0] = 3);
    TRY(QI_ERR_SHAPE, v.y_dims[1] = 1);
    TRY(QI_ERR_SHAPE, v.n_inputs = 2);
    TRY(QI_ERR_PARAM, v.n_params = 1);
}
END_TEST

START_TEST(test_cast)
{
    static const int32_t x[] = {0, 1, -1, 127, 128, 65536, INT32_MIN, 300};
    static const int8_t low[] = {0, 1, -1, 127, -128, 0, 0, 44};
    static const uint8_t truths[] = {0, 1, 1, 1, 1, 1, 1, 1};
    int8_t bytes[8];
    int64_t wide[8];
    struct node v = {"cast", 1, {s32}, s8, 1, {{8}}, {8}, 0, {0}, 0};
    run_node(&v, x, NULL, NULL, bytes);
    ck_assert_mem_eq(bytes, low, 8);
    v.y = truth;
    run_node(&v, x, NULL, NULL, bytes);
    ck_assert_mem_eq(bytes, truths, 8);
    v.y = s64;
    run_node(&v, x, NULL, NULL, wide);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(wide[i], x[i]);
    v.x[0] = s8;
    run_node(&v, low, NULL, NULL, wide);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(wide[i], low[i]);
}
END_TEST

START_TEST(test_cast_refused)
{
    struct node const good = {"cast", 1, {u8}, s16, 1, {{8}}, {8}, 0, {0}, 0};
    TRY(QI_OK, (void)v);
    TRY(QI_ERR_SHAPE, v.y.bits = 15);
    TRY(QI_ERR_SHAPE, v.y = (codes_of){QI_S8, 2, 0});
    TRY(QI_ERR_SHAPE, v.y_dims[0] = 7);
    TRY(QI_ERR_PARAM, v.n_params = 1);
}
END_TEST

/* ------------------------------------------------------------------ log_softmax */

static const codes_of log_codes = {QI_S8, 8, 127};

/** Scale 2^-5: mult 2^30, shift 22 (2^-5 2^26 = 2^21); the reverse is 2^-21. */
#define LOG_SOFTMAX(n)                                                                             \
    {                                                                                              \
        "log_softmax", 1, {s8}, log_codes, 2, {{2, n}}, {2, n}, 5,                                 \
            {1 << 30, 22, -(31 << 4), 1 << 30, -20}, 0                                             \
    }

START_TEST(test_log_softmax)
{
    enum { N = 40 };
    uint64_t seed = (uint64_t)_i;
    struct node const v = LOG_SOFTMAX(N);
    int8_t x[2 * N], y[2 * N];
    for (int i = 0; i < 2 * N; i++)
        x[i] = (int8_t)test_random_in(&seed, _i % 3 ? -128 : 90, 127);
    run_node(&v, x, NULL, NULL, y);
    for (int row = 0; row < 2 * N; row += N) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += exp(x[row + i] / 32.0);
        for (int i = 0; i < N; i++) {
            double const real = (x[row + i] / 32.0 - log(sum)) * 16 + 127;
            ck_assert_double_le(fabs(fmax(real, -128) - y[row + i]), 0.51);
        }
    }
}
END_TEST

START_TEST(test_log_softmax_refused)
{
    struct node const good = LOG_SOFTMAX(4);
    TRY(QI_OK, (void)v);
    TRY(QI_OK, v.x_dims[0][1] = v.y_dims[1] = 4095);
    TRY(QI_ERR_SHAPE, v.x_dims[0][1] = v.y_dims[1] = 4096);
    TRY(QI_ERR_SHAPE, v.x[0] = u8);
    TRY(QI_ERR_SHAPE, v.y = (codes_of){QI_U8, 8, 127});
    TRY(QI_ERR_SHAPE, v.y = (codes_of){QI_S8, 7, 63});
    TRY(QI_ERR_PARAM, v.y.zero_point = 126);
    TRY(QI_ERR_PARAM, v.params[1] = 32);
    TRY(QI_ERR_PARAM, v.params[2] = -(31 << 4) - 1);
    TRY(QI_ERR_PARAM, v.params[3] = -1);
    TRY(QI_ERR_PARAM, v.params[4] = 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_reduce");
    TCase *tcase = tcase_create("ops");
    tcase_add_test(tcase, test_reduce);
    tcase_add_test(tcase, test_reduce_refused);
    tcase_add_loop_test(tcase, test_sum, 0, 60);
    tcase_add_test(tcase, test_sum_refused);
    tcase_add_test(tcase, test_select);
    tcase_add_test(tcase, test_select_refused);
    tcase_add_test(tcase, test_cast);
    tcase_add_test(tcase, test_cast_refused);
    tcase_add_loop_test(tcase, test_log_softmax, 0, 12);
    tcase_add_test(tcase, test_log_softmax_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

/**
 * Rounding EVEN, profile onnx: the integers of the engine beside the same formulas in float32, over
 * random layers and over all pairs of codes; what it refuses.
 */
#include "common/suite.h"
#include "infer/arithmetic/binary32.h"
#include "integer/quant_ops.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float random_scale(uint64_t *seed)
{
    return (float)test_random_in(seed, 1, 1 << 24) * 0x1p-28f;
}

static codes_of eight(uint64_t *seed)
{
    bool const is_signed = test_random(seed) & 1;
    int32_t const lowest = is_signed ? -128 : 0;
    return (codes_of){is_signed ? QI_S8 : QI_U8, 8, test_random_in(seed, lowest, lowest + 255)};
}

/* ------------------------------------------------------------------ functions */

static float float_of(qi_binary32 a)
{
    return ldexpf((float)a.mant, a.exp);
}

static qi_binary32 random_b32(uint64_t *seed, int lowest, int highest)
{
    int32_t const mant = test_random_in(seed, 1 << 23, (1 << 24) - 1);
    return (qi_binary32){test_random(seed) & 1 ? mant : -mant,
                         test_random_in(seed, lowest, highest)};
}

START_TEST(test_functions)
{
    uint64_t seed = (uint64_t)_i;
    for (int i = 0; i < 20000; i++) {
        qi_binary32 r = random_b32(&seed, -60, 8), c = random_b32(&seed, -80, 20);
        int32_t const code = test_random_in(&seed, -511, 511);
        if (i % 8 == 0) /* ties, and numbers that cancel */
            r.mant &= ~0xffff, c.mant &= ~0xffff;
        if (i % 8 == 1)
            c = qi_b32_mul(qi_b32_of(-code), r);
        float const want = fmaf((float)code, float_of(r), float_of(c));
        ck_assert_msg(float_of(qi_b32_fma(code, r, c)) == want, "%d * %a + %a", (int)code,
                      (double)float_of(r), (double)float_of(c));
        float const near = float_of(c) < -0x1p30f  ? -0x1p30f
                           : float_of(c) > 0x1p30f ? 0x1p30f
                                                   : float_of(c);
        if (near == float_of(c))
            ck_assert_int_eq(qi_b32_even(c), (int32_t)rintf(near));
    }
    ck_assert_int_eq(qi_b32_even((qi_binary32){(1 << 24) - 1, 8}), INT32_MAX);
    ck_assert_int_eq(qi_b32_even((qi_binary32){1 - (1 << 24), 9}), INT32_MIN);
}
END_TEST

START_TEST(test_requantize)
{
    uint64_t seed = (uint64_t)_i;
    for (int i = 0; i < 20000; i++) {
        int32_t const mult = (i % 3 ? test_random_in(&seed, 1 << 23, (1 << 24) - 1)
                                    : test_random_in(&seed, 1 << 7, (1 << 8) - 1) << 16)
                             << 7;
        int const shift = test_random_in(&seed, -24, 2);
        int32_t const most = i % 5 ? 1 << test_random_in(&seed, 1, 26) : INT32_MAX;
        int32_t const acc = test_random_in(&seed, -most, most);
        float const product = (float)acc * ldexpf((float)(mult >> 7), shift - 24);
        if (fabsf(product) < 0x1p31f)
            ck_assert_int_eq(qi_requantize_even(acc, mult, shift), (int32_t)rintf(product));
    }
    ck_assert_int_eq(qi_requantize_even(5, 1 << 30, 0), 2);
    ck_assert_int_eq(qi_requantize_even(-7, 1 << 30, 0), -4);
}
END_TEST

/* ------------------------------------------------------------------ ops */

/** Set the scales of activations; what reads them was not emitted yet. */
static int scaled(qat_qgraph *g, codes_of c, int rank, const int32_t *dims, uint64_t *seed)
{
    int const t = net_activation(g, c, rank, dims);
    g->tensors[t].scale = random_scale(seed);
    return t;
}

static qat_emit emit_of(qat_qgraph *g, int n, const int *inputs, int output)
{
    return (qat_emit){.graph = g,
                      .profile = QAT_PROFILE_ONNX,
                      .name = "layer",
                      .n_inputs = n,
                      .inputs = inputs,
                      .output = output,
                      .act_min = -INFINITY,
                      .act_max = INFINITY};
}

/** The engine's codes, and those of the exact evaluation. */
static void expect_exact(qat_qgraph *g, int n, const int *inputs, int output, uint64_t *seed)
{
    uint8_t *in[2] = {NULL}, *y;
    qat_exact *exact = NULL;
    qat_error err;
    ck_assert_int_eq(qat_qgraph_set_io(g, n, inputs, 1, &output, &err), QAT_OK);
    for (int i = 0; i < n; i++) {
        const qat_qtensor *t = &g->tensors[inputs[i]];
        codes_of const c = {t->type, t->bits, t->zero_point};
        in[i] = malloc(qat_qtensor_bytes(t));
        fill_codes(in[i], qat_qtensor_bytes(t), c, seed);
    }
    size_t const bytes = qat_qtensor_bytes(&g->tensors[output]);
    y = malloc(bytes);
    net_run(g, (const void *const *)in, (void *[]){y});
    ck_assert_msg(!qat_exact_create(&exact, g, NULL, 1, &err), "%s", err.message);
    ck_assert_msg(!qat_exact_run(exact, (const void *const *)in, 1, &err), "%s", err.message);
    ck_assert_mem_eq(y, qat_exact_tensor(exact, output), bytes);
    qat_exact_free(exact);
    free(in[0]);
    free(in[1]);
    free(y);
    qat_qgraph_free(g);
}

/** Convolutions, in groups too, depthwise ones, fully connected layers; weights of two types. */
START_TEST(test_layers)
{
    uint64_t seed = (uint64_t)_i;
    int const kind = _i % 4, c = 2 * test_random_in(&seed, 1, 20), o = kind == 2 ? c : 36;
    int32_t const dims[] = {1, 5, 6, c}, out[] = {1, 5, 6, o};
    int32_t const flat[] = {3, c}, flat_out[] = {3, o}, matrix[] = {o, c};
    int32_t const weights[] = {kind == 2 ? 1 : o, 3, 3, kind == 1 ? c / 2 : c};
    bool const is_matrix = kind == 3;
    qat_qgraph *g = qat_qgraph_new();
    codes_of const w = test_random(&seed) & 1 ? (codes_of){QI_S8, 8, 0} : eight(&seed);
    float scales[64];
    int32_t bias[64];
    int inputs[3] = {scaled(g, eight(&seed), is_matrix ? 2 : 4, is_matrix ? flat : dims, &seed)};
    int const y = scaled(g, eight(&seed), is_matrix ? 2 : 4, is_matrix ? flat_out : out, &seed);
    inputs[1] = net_constant(g, w, is_matrix ? 2 : 4, is_matrix ? matrix : weights, &seed, NULL);
    for (int i = 0; i < o; i++) {
        scales[i] = random_scale(&seed) / (i % 2 ? 64 : 1024);
        bias[i] = test_random_in(&seed, -5000, 5000);
    }
    g->tensors[inputs[1]].scale = scales[0];
    if (w.zero_point == 0 && w.type == QI_S8) {
        g->tensors[inputs[1]].channel_scales = scales;
        g->tensors[inputs[1]].n_channels = o;
    }
    inputs[2] = net_s32(g, o, 1, bias);
    qat_emit e = emit_of(g, 3, inputs, y);
    qat_window const window = {.stride_h = 1,
                               .stride_w = 1,
                               .dilation_h = 1,
                               .dilation_w = 1,
                               .explicit_pads = true,
                               .pad_top = 1,
                               .pad_left = 1};
    e.act_min = _i % 3 ? -INFINITY : 0;
    qat_status const st = is_matrix   ? qat_emit_fully_connected(&e, NULL)
                          : kind == 2 ? qat_emit_depthwise_conv2d(&e, &window, NULL)
                                      : qat_emit_conv2d(&e, &window, NULL);
    ck_assert_int_eq(st, QAT_OK);
    ck_assert_int_eq(g->ops[g->n_ops - 1].rounding, QI_ROUND_EVEN);
    expect_exact(g, 1, inputs, y, &seed);
}
END_TEST

/** All pairs of codes: a row of 256 against a column of 256. */
static void try_pairs(int number, bool is_mul)
{
    static const int32_t row[] = {1, 256}, column[] = {256, 1}, all[] = {256, 256};
    uint64_t seed = (uint64_t)number;
    static uint8_t bytes[256], y[256][256];
    qat_qgraph *g = qat_qgraph_new();
    qat_error err;
    int const in[] = {scaled(g, eight(&seed), 2, column, &seed),
                      scaled(g, eight(&seed), 2, row, &seed)};
    int const out = scaled(g, eight(&seed), 2, all, &seed);
    qat_qtensor *t = g->tensors;
    t[out].scale = is_mul ? t[in[0]].scale * t[in[1]].scale * 100 : t[in[0]].scale * 2;
    if (number % 4 == 0) /* ties */
        t[in[1]].scale = t[in[0]].scale;
    qat_emit const e = emit_of(g, 2, in, out);
    ck_assert_int_eq(is_mul ? qat_emit_mul(&e, NULL) : qat_emit_add(&e, "add", NULL), QAT_OK);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, in, 1, &out, &err), QAT_OK);
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    net_run(g, (const void *[]){bytes, bytes}, (void *[]){y});
    float const ra = t[in[0]].scale / t[out].scale, rb = t[in[1]].scale / t[out].scale;
    float const za = (float)t[in[0]].zero_point, zb = (float)t[in[1]].zero_point;
    float const zy = (float)t[out].zero_point, m = t[in[0]].scale * t[in[1]].scale / t[out].scale;
    float const second_zero = rb * zb, zeros = fmaf(ra, za, second_zero), c = zy - zeros;
    float const lo = t[out].type == QI_S8 ? -128 : 0, hi = lo + 255;
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < 256; k++) {
            float const a = (float)qat_qtensor_code(&t[in[0]], (uint8_t)i);
            float const b = (float)qat_qtensor_code(&t[in[1]], (uint8_t)k);
            float const product = (a - za) * (b - zb) * m;
            float const value = rintf(is_mul ? product + zy : fmaf(a, ra, fmaf(b, rb, c)));
            float const want = value < lo ? lo : value > hi ? hi : value;
            test_assert_in_loop(qat_qtensor_code(&t[out], y[i][k]) == (int)want,
                                "%d and %d: %d, expected %d", i, k,
                                qat_qtensor_code(&t[out], y[i][k]), (int)want);
        }
    qat_qgraph_free(g);
}

START_TEST(test_pairs)
{
    try_pairs(_i, _i % 2);
}
END_TEST

START_TEST(test_broadcast)
{
    uint64_t seed = (uint64_t)_i;
    static const int32_t dims[] = {1, 4, 5, 6}, one[] = {1, 1, 1, 6};
    qat_qgraph *g = qat_qgraph_new();
    int const in[] = {scaled(g, eight(&seed), 4, dims, &seed),
                      scaled(g, eight(&seed), 4, _i % 2 ? one : dims, &seed)};
    int const y = scaled(g, eight(&seed), 4, dims, &seed);
    qat_emit const e = emit_of(g, 2, in, y);
    ck_assert_int_eq(_i % 3 ? qat_emit_mul(&e, NULL) : qat_emit_add(&e, "add", NULL), QAT_OK);
    expect_exact(g, 2, in, y, &seed);
}
END_TEST

START_TEST(test_mean)
{
    uint64_t seed = (uint64_t)_i;
    int32_t const dims[] = {1, test_random_in(&seed, 1, 9), test_random_in(&seed, 1, 9), 7};
    static const int32_t out[] = {1, 1, 1, 7};
    qat_qgraph *g = qat_qgraph_new();
    int const x = scaled(g, eight(&seed), 4, dims, &seed),
              y = scaled(g, eight(&seed), 4, out, &seed);
    qat_emit const e = emit_of(g, 1, &x, y);
    ck_assert_int_eq(qat_emit_mean(&e, 6, NULL), QAT_OK);
    ck_assert_int_eq(g->ops[0].rounding, QI_ROUND_EVEN);
    expect_exact(g, 1, &x, y, &seed);
}
END_TEST

/** Two tensors of one grid. */
static void one_grid(qat_qgraph *g, const int32_t *dims, const int32_t *out, uint64_t *seed, int *x,
                     int *y)
{
    codes_of const c = eight(seed);
    *x = scaled(g, c, 4, dims, seed);
    *y = net_activation(g, c, 4, out);
    g->tensors[*y].scale = g->tensors[*x].scale;
}

/** Small windows and large ones; at the edge fewer pixels count. */
START_TEST(test_average)
{
    uint64_t seed = (uint64_t)_i;
    int const kernel = _i % 3 == 0 ? 20 : 2 + _i % 3, stride = test_random_in(&seed, 1, 2);
    int32_t const side = kernel + test_random_in(&seed, 1, 5), in[] = {1, side, side, 19};
    int32_t const rows = (side + stride - 1) / stride, out[] = {1, rows, rows, 19};
    qat_qgraph *g = qat_qgraph_new();
    int x, y;
    one_grid(g, in, out, &seed, &x, &y);
    qat_emit const e = emit_of(g, 1, &x, y);
    qat_window const window = {
        .kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
    ck_assert_int_eq(qat_emit_pool(&e, "average_pool2d", &window, NULL), QAT_OK);
    ck_assert_int_eq(g->ops[0].rounding, QI_ROUND_EVEN);
    expect_exact(g, 1, &x, y, &seed);
}
END_TEST

/** The even one of two codes: of 1 and 2, of 2 and 3, and below 0. */
START_TEST(test_average_of_two)
{
    static const int32_t in[] = {1, 1, 2, 1}, out[] = {1, 1, 1, 1};
    static const int8_t pairs[][3] = {{1, 2, 2}, {2, 3, 2}, {-1, -2, -2}, {-1, 0, 0}, {5, 5, 5}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        qat_qgraph *g = qat_qgraph_new();
        codes_of const c = {QI_S8, 8, 1}; /* an odd zero point changes nothing */
        int8_t answer = 0;
        int const x = net_activation(g, c, 4, in), y = net_activation(g, c, 4, out);
        qat_emit const e = emit_of(g, 1, &x, y);
        qat_window const window = {.kernel_h = 1, .kernel_w = 2, .stride_h = 1, .stride_w = 1};
        ck_assert_int_eq(qat_emit_pool(&e, "average_pool2d", &window, NULL), QAT_OK);
        ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 1, &y, NULL), QAT_OK);
        net_run(g, (const void *[]){pairs[i]}, (void *[]){&answer});
        ck_assert_int_eq(answer, pairs[i][2]);
        qat_qgraph_free(g);
    }
}
END_TEST

START_TEST(test_resize)
{
    uint64_t seed = (uint64_t)_i;
    int32_t const in[] = {1, test_random_in(&seed, 1, 9), test_random_in(&seed, 1, 9), 3};
    int32_t const out[] = {1, test_random_in(&seed, 1, 20), test_random_in(&seed, 1, 20), 3};
    int32_t const params[] = {_i % 3 == 0, _i % 3 == 1};
    qat_qgraph *g = qat_qgraph_new();
    int x, y;
    one_grid(g, in, out, &seed, &x, &y);
    net_op(g, "resize_bilinear", QI_ROUND_EVEN, 1, &x, y, 2, params, 0);
    expect_exact(g, 1, &x, y, &seed);
}
END_TEST

/** A change of scale is a table of what two operators of float32 make of each code. */
START_TEST(test_rescale)
{
    uint64_t seed = (uint64_t)_i;
    static const int32_t dims[] = {1, 256};
    uint8_t bytes[256], y[256];
    qat_qgraph *g = qat_qgraph_new();
    int const in = scaled(g, eight(&seed), 2, dims, &seed);
    int const out = scaled(g, eight(&seed), 2, dims, &seed);
    const qat_qtensor *a = &g->tensors[in], *b = &g->tensors[out];
    if (_i % 3 == 0)
        g->tensors[out].scale = 2 * a->scale; /* ties */
    qat_emit const e = emit_of(g, 1, &in, out);
    ck_assert_int_eq(qat_emit_requantize(&e, NULL), QAT_OK);
    ck_assert_str_eq(g->ops[0].op, "table");
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &in, 1, &out, NULL), QAT_OK);
    a = &g->tensors[in], b = &g->tensors[out];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    net_run(g, (const void *[]){bytes}, (void *[]){y});
    int32_t lo, hi;
    qat_tensor_codes(b, &lo, &hi);
    for (int i = 0; i < 256; i++) {
        float const real = a->scale * (float)(qat_qtensor_code(a, bytes[i]) - a->zero_point);
        float const code = rintf(real / b->scale) + (float)b->zero_point;
        ck_assert_int_eq(qat_qtensor_code(b, y[i]), (int)fminf(fmaxf(code, (float)lo), (float)hi));
    }
    qat_qgraph_free(g);
}
END_TEST

/** a - b is a + b', where b' has b's codes from the other end: all pairs. */
START_TEST(test_difference)
{
    static const int32_t row[] = {1, 256}, column[] = {256, 1}, all[] = {256, 256};
    uint64_t seed = (uint64_t)_i;
    static uint8_t bytes[256], turned[256], y[256][256], sums[256][256];
    codes_of const c = eight(&seed);
    for (int k = 0; k < 2; k++) {
        qat_qgraph *g = qat_qgraph_new();
        uint64_t same = (uint64_t)_i + 100;
        int const in[] = {scaled(g, c, 2, column, &same), scaled(g, c, 2, row, &same)};
        int const out = scaled(g, c, 2, all, &same);
        qat_qtensor *t = g->tensors;
        t[out].scale = 2 * t[in[0]].scale;
        int32_t lo, hi;
        qat_tensor_codes(&t[in[1]], &lo, &hi);
        if (k)
            t[in[1]].zero_point = lo + hi - t[in[1]].zero_point;
        qat_emit const e = emit_of(g, 2, in, out);
        ck_assert_int_eq(qat_emit_add(&e, k ? "add" : "sub", NULL), QAT_OK);
        ck_assert_int_eq(qat_qgraph_set_io(g, 2, in, 1, &out, NULL), QAT_OK);
        for (int i = 0; i < 256; i++) {
            bytes[i] = (uint8_t)i;
            turned[i] = (uint8_t)(lo + hi - qat_qtensor_code(&g->tensors[in[1]], (uint8_t)i));
        }
        net_run(g, (const void *[]){bytes, k ? turned : bytes}, (void *[]){k ? sums : y});
        qat_qgraph_free(g);
    }
    ck_assert_mem_eq(y, sums, sizeof y);
}
END_TEST

/* ------------------------------------------------------------------ refused */

/** Refused: 16-bit codes, ops without this rounding, parameters of add that it does not use. */
static void try_op(const char *op, codes_of c, int param, int32_t value, qi_status expected)
{
    static const int32_t dims[] = {1, 4};
    int32_t params[9] = {0, 1 << 30, 0, 1 << 30, 0, 0, 0, c.type == QI_U8 ? 0 : -100, 100};
    qat_qgraph *g = qat_qgraph_new();
    qi_host *host = NULL;
    int const in[] = {net_activation(g, c, 2, dims), net_activation(g, c, 2, dims)};
    int const y = net_activation(g, c, 2, dims);
    qat_error err;
    params[param] = value;
    net_op(g, op, QI_ROUND_EVEN, 2, in, y, 9, params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, in, 1, &y, &err), QAT_OK);
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

START_TEST(test_refused)
{
    codes_of const u8 = {QI_U8, 8, 5}, s16 = {QI_S16, 16, 0};
    try_op("add", u8, 0, 0, QI_OK);
    try_op("add", s16, 0, 0, QI_ERR_PARAM);
    try_op("sub", u8, 0, 0, QI_ERR_PARAM);
    try_op("squared_difference", u8, 0, 0, QI_ERR_PARAM);
    try_op("add", u8, 0, 1, QI_ERR_PARAM);
    try_op("add", u8, 5, 1 << 30, QI_ERR_PARAM);
    try_op("add", u8, 6, 1, QI_ERR_PARAM);
    try_op("add", u8, 1, -1, QI_ERR_PARAM);
    try_op("add", u8, 1, 0, QI_OK);
    try_op("add", u8, 1, 128, QI_ERR_PARAM);
    try_op("add", u8, 3, (1 << 30) - 1, QI_ERR_PARAM);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_even");
    TCase *tcase = tcase_create("even");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, test_functions, 0, 8);
    tcase_add_loop_test(tcase, test_requantize, 0, 8);
    tcase_add_loop_test(tcase, test_layers, 0, 40);
    tcase_add_loop_test(tcase, test_pairs, 0, 24);
    tcase_add_loop_test(tcase, test_broadcast, 0, 12);
    tcase_add_loop_test(tcase, test_mean, 0, 12);
    tcase_add_loop_test(tcase, test_average, 0, 18);
    tcase_add_test(tcase, test_average_of_two);
    tcase_add_loop_test(tcase, test_resize, 0, 24);
    tcase_add_loop_test(tcase, test_rescale, 0, 12);
    tcase_add_loop_test(tcase, test_difference, 0, 8);
    tcase_add_test(tcase, test_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

/**
 * The shared arithmetic against fixedpoint/ of the golden data. Every folder of its index is
 * compared, and all values are equal.
 */
#include "base/files/npy.h"
#include "common/common.h"
#include "common/suite.h"
#include "infer/arithmetic/fixedpoint.h"
#include "infer/kernels/loops/requant_quick.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ loading */

enum { MAX_ARRAYS = 6 };

/** The arrays of one golden folder, in the order asked for. */
typedef struct golden {
    const char *folder;
    qat_npy array[MAX_ARRAYS];
    size_t count; /* values of the first array */
} golden;

/** False, with the skip printed, when the golden data are not there. */
static bool golden_open(golden *g, const char *folder, int n, const char *const *arrays)
{
    memset(g, 0, sizeof *g);
    g->folder = folder;
    for (int i = 0; i < n; i++) {
        char name[256], path[1024];
        snprintf(name, sizeof name, "fixedpoint/%s/%s.npy", folder, arrays[i]);
        if (!test_golden_path(path, sizeof path, name)) {
            test_skip(name, "golden data not there");
            return false;
        }
        qat_error err;
        ck_assert_msg(qat_npy_read(&g->array[i], path, &err) == QAT_OK, "%s", err.message);
    }
    g->count = g->array[0].count;
    ck_assert_uint_gt(g->count, 0);
    return true;
}

static void golden_close(golden *g)
{
    for (int i = 0; i < MAX_ARRAYS; i++)
        qat_npy_free(&g->array[i]);
}

static int64_t at(const golden *g, int array, size_t i)
{
    const qat_npy *a = &g->array[array];
    switch (a->type) {
    case QAT_NPY_U8:
        return ((const uint8_t *)a->data)[i];
    case QAT_NPY_I8:
        return ((const int8_t *)a->data)[i];
    case QAT_NPY_I16:
        return ((const int16_t *)a->data)[i];
    case QAT_NPY_I32:
        return ((const int32_t *)a->data)[i];
    case QAT_NPY_I64:
        return ((const int64_t *)a->data)[i];
    default:
        ck_abort_msg("%s: array %d is not of integers", g->folder, array);
    }
}

static void expect(const golden *g, size_t i, int64_t got, int64_t want)
{
    test_assert_in_loop(got == want,
                        "%s: element %zu, x %" PRId64 ": got %" PRId64 ", expected %" PRId64,
                        g->folder, i, at(g, 0, i % g->count), got, want);
}

/* ------------------------------------------------------------------ functions of one value */

static int64_t exp_quarter(int64_t x, int bits)
{
    return qi_exp_on_quarter((int32_t)x);
}
static int64_t exp_negative(int64_t x, int bits)
{
    return qi_exp_on_negative_values((int32_t)x, bits);
}
static int64_t exp_negative_i16(int64_t x, int bits)
{
    return qi_exp_on_negative_values_i16((int16_t)x, bits);
}
static int64_t logistic(int64_t x, int bits)
{
    return qi_logistic((int32_t)x, bits);
}
static int64_t logistic_i16(int64_t x, int bits)
{
    return qi_logistic_i16((int16_t)x, bits);
}
static int64_t hyperbolic(int64_t x, int bits)
{
    return qi_tanh((int32_t)x, bits);
}
static int64_t hyperbolic_i16(int64_t x, int bits)
{
    return qi_tanh_i16((int16_t)x, bits);
}
static int64_t over_one_plus(int64_t x, int bits)
{
    return qi_one_over_one_plus_x((int32_t)x);
}
static int64_t one_minus_over_one_plus(int64_t x, int bits)
{
    return qi_one_minus_x_over_one_plus_x((int32_t)x);
}
static int64_t mul_pot(int64_t x, int exponent)
{
    return qi_saturating_rounding_mul_pot((int32_t)x, exponent);
}

static const struct unary {
    const char *folder;
    int64_t (*function)(int64_t x, int parameter);
    int parameter;
} unaries[] = {
    {"exp_on_interval_neg_quarter_0", exp_quarter, 0},
    {"exp_on_negative_values_q0", exp_negative, 0},
    {"exp_on_negative_values_q1", exp_negative, 1},
    {"exp_on_negative_values_q2", exp_negative, 2},
    {"exp_on_negative_values_q3", exp_negative, 3},
    {"exp_on_negative_values_q4", exp_negative, 4},
    {"exp_on_negative_values_q5", exp_negative, 5},
    {"exp_on_negative_values_q6", exp_negative, 6},
    {"exp_on_negative_values_i16_q3", exp_negative_i16, 3},
    {"exp_on_negative_values_i16_q4", exp_negative_i16, 4},
    {"logistic_q0", logistic, 0},
    {"logistic_q1", logistic, 1},
    {"logistic_q2", logistic, 2},
    {"logistic_q3", logistic, 3},
    {"logistic_q4", logistic, 4},
    {"logistic_q5", logistic, 5},
    {"logistic_q6", logistic, 6},
    {"logistic_i16_q3", logistic_i16, 3},
    {"logistic_i16_q4", logistic_i16, 4},
    {"tanh_q0", hyperbolic, 0},
    {"tanh_q1", hyperbolic, 1},
    {"tanh_q2", hyperbolic, 2},
    {"tanh_q3", hyperbolic, 3},
    {"tanh_q4", hyperbolic, 4},
    {"tanh_q5", hyperbolic, 5},
    {"tanh_i16_q3", hyperbolic_i16, 3},
    {"tanh_i16_q4", hyperbolic_i16, 4},
    {"one_over_one_plus_x", over_one_plus, 0},
    {"one_minus_x_over_one_plus_x", one_minus_over_one_plus, 0},
    {"sat_rounding_mul_pot/e-8", mul_pot, -8},
    {"sat_rounding_mul_pot/e-5", mul_pot, -5},
    {"sat_rounding_mul_pot/e-4", mul_pot, -4},
    {"sat_rounding_mul_pot/e-1", mul_pot, -1},
    {"sat_rounding_mul_pot/e+0", mul_pot, 0},
    {"sat_rounding_mul_pot/e+1", mul_pot, 1},
    {"sat_rounding_mul_pot/e+2", mul_pot, 2},
    {"sat_rounding_mul_pot/e+4", mul_pot, 4},
    {"sat_rounding_mul_pot/e+5", mul_pot, 5},
    {"sat_rounding_mul_pot/e+7", mul_pot, 7},
    {"sat_rounding_mul_pot/e+16", mul_pot, 16},
};
enum { N_UNARIES = sizeof unaries / sizeof unaries[0] };

START_TEST(test_unary)
{
    const struct unary *u = &unaries[_i];
    golden g;
    if (golden_open(&g, u->folder, 2, (const char *const[]){"x", "out"}))
        for (size_t i = 0; i < g.count; i++)
            expect(&g, i, u->function(at(&g, 0, i), u->parameter), at(&g, 1, i));
    golden_close(&g);
}
END_TEST

/* ------------------------------------------------------------------ functions of two values */

static int64_t srdhm(int64_t a, int64_t b)
{
    return qi_srdhm((int32_t)a, (int32_t)b);
}
static int64_t srdhm_i16(int64_t a, int64_t b)
{
    return qi_srdhm_i16((int16_t)a, (int16_t)b);
}
static int64_t rdbp(int64_t a, int64_t b)
{
    return qi_rdbp((int32_t)a, (int)b);
}
static int64_t rdbp_i16(int64_t a, int64_t b)
{
    return qi_rdbp_i16((int16_t)a, (int)b);
}
static int64_t half_sum(int64_t a, int64_t b)
{
    return qi_rounding_half_sum((int32_t)a, (int32_t)b);
}

static const struct binary {
    const char *folder;
    const char *arrays[3];
    int64_t (*function)(int64_t a, int64_t b);
} binaries[] = {
    {"srdhm_i32", {"a", "b", "out"}, srdhm},
    {"srdhm_i16", {"a", "b", "out"}, srdhm_i16},
    {"rdbp_i32", {"x", "exponent", "out"}, rdbp},
    {"rdbp_i16", {"x", "exponent", "out"}, rdbp_i16},
    {"rounding_half_sum_i32", {"a", "b", "out"}, half_sum},
};
enum { N_BINARIES = sizeof binaries / sizeof binaries[0] };

START_TEST(test_binary)
{
    const struct binary *b = &binaries[_i];
    golden g;
    if (golden_open(&g, b->folder, 3, b->arrays))
        for (size_t i = 0; i < g.count; i++)
            expect(&g, i, b->function(at(&g, 0, i), at(&g, 1, i)), at(&g, 2, i));
    golden_close(&g);
}
END_TEST

/* ------------------------------------------------------------------ multipliers */

START_TEST(test_requantize)
{
    golden g;
    if (golden_open(
            &g, "mbqm_i32", 5,
            (const char *const[]){"x", "multiplier", "shift", "out_double", "out_single"})) {
        size_t differing = 0;
        for (size_t i = 0; i < g.count; i++) {
            int32_t const x = (int32_t)at(&g, 0, i), mult = (int32_t)at(&g, 1, i);
            int const shift = (int)at(&g, 2, i);
            expect(&g, i, qi_requantize(x, mult, shift), at(&g, 3, i));
            expect(&g, i, qi_requantize_half_up(x, mult, shift), at(&g, 4, i));
            differing += at(&g, 3, i) != at(&g, 4, i);
        }
        ck_assert_uint_gt(differing, 0); /* the two rules are told apart by these data */
    }
    golden_close(&g);
}
END_TEST

START_TEST(test_requantize_i64)
{
    golden g;
    if (golden_open(&g, "mbqm_i64", 4, (const char *const[]){"x", "multiplier", "shift", "out"}))
        for (size_t i = 0; i < g.count; i++)
            expect(&g, i, qi_requantize_i64(at(&g, 0, i), (int32_t)at(&g, 1, i), (int)at(&g, 2, i)),
                   at(&g, 3, i));
    golden_close(&g);
}
END_TEST

START_TEST(test_reciprocal)
{
    golden g;
    if (golden_open(&g, "get_reciprocal_q12", 3,
                    (const char *const[]){"x", "out", "num_bits_over_unit"}))
        for (size_t i = 0; i < g.count; i++) {
            int over;
            expect(&g, i, qi_reciprocal_q12((uint32_t)at(&g, 0, i), &over), at(&g, 1, i));
            expect(&g, i, over, at(&g, 2, i));
        }
    golden_close(&g);
}
END_TEST

START_TEST(test_inv_sqrt)
{
    golden g;
    if (golden_open(&g, "inv_sqrt_quantized_multiplier", 3,
                    (const char *const[]){"x", "multiplier", "shift"}))
        for (size_t i = 0; i < g.count; i++) {
            int32_t mult;
            int shift;
            qi_inv_sqrt_multiplier((int32_t)at(&g, 0, i), &mult, &shift);
            expect(&g, i, mult, at(&g, 1, i));
            expect(&g, i, shift, at(&g, 2, i));
        }
    golden_close(&g);
}
END_TEST

/* ------------------------------------------------------------------ whole 8-bit functions */

static const struct code_function {
    const char *folder;
    int32_t (*function)(int32_t q, const qi_input_scaling *in, int32_t lowest, int bits);
    int is_signed;
} code_functions[] = {
    {"logistic_s8", qi_logistic_code, 1},
    {"logistic_u8", qi_logistic_code, 0},
    {"tanh_s8", qi_tanh_code, 1},
    {"tanh_u8", qi_tanh_code, 0},
};
enum { N_CODE_FUNCTIONS = sizeof code_functions / sizeof code_functions[0] };

START_TEST(test_code_function)
{
    const struct code_function *f = &code_functions[_i];
    int32_t const lowest = qi_lowest_code(f->is_signed, 8);
    golden g;
    if (golden_open(&g, f->folder, 5,
                    (const char *const[]){"zero_point", "multiplier", "shift", "input_range_radius",
                                          "out"}))
        for (size_t i = 0; i < g.count; i++) {
            qi_input_scaling const in = {(int32_t)at(&g, 0, i), (int32_t)at(&g, 1, i),
                                         (int32_t)at(&g, 2, i), (int32_t)at(&g, 3, i)};
            for (int32_t j = 0; j < 256; j++)
                expect(&g, i, f->function(lowest + j, &in, lowest, 8),
                       at(&g, 4, i * 256 + (size_t)j));
        }
    golden_close(&g);
}
END_TEST

/* ------------------------------------------------------------------ without golden data */

START_TEST(test_ties)
{
    ck_assert_int_eq(qi_rdbp(-12, 3), -2); /* -1.5: away from zero */
    ck_assert_int_eq(qi_rdbp(12, 3), 2);
    ck_assert_int_eq(qi_rdbp(-11, 3), -1);
    ck_assert_int_eq(qi_rdbp(INT32_MIN, 31), -1);
    ck_assert_int_eq(qi_srdhm(-3, 1 << 30), -1); /* -1.5: upward */
    ck_assert_int_eq(qi_srdhm(3, 1 << 30), 2);
    ck_assert_int_eq(qi_srdhm(INT32_MIN, INT32_MIN), INT32_MAX);
    ck_assert_int_eq(qi_requantize(-6, 1 << 30, -1), -2); /* -3, then -1.5 */
    ck_assert_int_eq(qi_requantize(-5, 1 << 30, -1), -1); /* -2.5 up to -2, then -1 */
    ck_assert_int_eq(qi_requantize_half_up(-6, 1 << 30, -1), -1);
    ck_assert_int_eq(qi_requantize(INT32_MAX, INT32_MAX, 31), INT32_MAX - 1); /* saturated first */
    ck_assert_int_eq(qi_requantize(INT32_MIN, INT32_MAX, 31), -INT32_MAX);
    ck_assert_int_eq(qi_divide_half_away(3, 2), 2);
    ck_assert_int_eq(qi_divide_half_away(-3, 2), -2);
    ck_assert_int_eq(qi_divide_half_away(-4, 3), -1);
}
END_TEST

/* Products of numbers whose halves are the largest, the smallest, and what is beside them. */
START_TEST(test_products)
{
    static const int32_t edges[] = {1, -3, 0x7fff, 0x8000, 0xffff, -0x8001, INT32_MAX, INT32_MIN};
    size_t const n = sizeof edges / sizeof edges[0];
    for (size_t i = 0; i < n * n; i++) {
        int32_t const a = edges[i / n], b = edges[i % n];
        uint32_t const x = (uint32_t)a, y = (uint32_t)b;
        if (a != INT32_MIN || b != INT32_MIN)
            ck_assert_int_eq(qi_srdhm(a, b), ((int64_t)a * b + (1 << 30)) >> 31);
        if (b >= 0 && a % 2 == 0)
            ck_assert_int_eq(qk_high_product(a, b), ((int64_t)a * b + (INT64_C(1) << 31)) >> 32);
        ck_assert_uint_eq(qk_unsigned_high_product(x, y), (uint64_t)x * y >> 32);
    }
}
END_TEST

/* QI_ROUND_ONCE: ties go up, and what is at most 2^-15 below them. */
START_TEST(test_ties_up)
{
    ck_assert_int_eq(qi_requantize_near_ties_up(-6, 1 << 30, -1), -1);
    ck_assert_int_eq(qi_requantize_near_ties_up(6, 1 << 30, -1), 2);
    ck_assert_int_eq(qi_requantize_near_ties_up(3, 1431655765, -2), 1); /* 1/2 - 2^-33 */
    ck_assert_int_eq(qi_requantize_half_up(3, 1431655765, -2), 0);
    ck_assert_int_eq(qi_requantize_near_ties_up((1 << 15) - 1, 1 << 30, -15), 1); /* 1/2 - 2^-16 */
    ck_assert_int_eq(qi_requantize_near_ties_up((1 << 15) - 2, 1 << 30, -15), 1); /* 1/2 - 2^-15 */
    ck_assert_int_eq(qi_requantize_near_ties_up((1 << 15) - 3, 1 << 30, -15), 0);
    ck_assert_int_eq(qi_requantize_near_ties_up(INT32_MAX, INT32_MAX, 31), INT32_MAX);
    ck_assert_int_eq(qi_requantize_near_ties_up(INT32_MIN, INT32_MAX, 31), INT32_MIN);
    ck_assert_int_eq(qi_requantize_near_ties_up(INT32_MIN, INT32_MAX, -31), -1); /* -1 + 2^-31 */
    ck_assert_int_eq(qi_requantize_near_ties_up(INT32_MIN, 1 << 30, -31), 0);    /* -1/2 */
    for (int32_t n = 1; n < 9; n++)
        for (int32_t sum = -40; sum <= 40; sum++) {
            int32_t const up = qi_divide_half_up(sum, n); /* n (up - 1/2) <= sum < n (up + 1/2) */
            ck_assert_int_le(n * (2 * up - 1), 2 * sum);
            ck_assert_int_gt(n * (2 * up + 1), 2 * sum);
            ck_assert_int_eq(qi_divide_half_even(sum, n), (int32_t)rint((double)sum / n));
        }
}
END_TEST

/* What docs/arithmetic.md, section 2, says about rounding once and twice. */
START_TEST(test_twice_is_not_once)
{
    int differ = 0;
    for (int32_t acc = -1000; acc <= 1000; acc++) /* M = 1/8 */
        differ += qi_requantize(acc, 1 << 30, -2) != qi_requantize_half_up(acc, 1 << 30, -2);
    ck_assert_int_eq(differ, 250);
    ck_assert_int_eq(qi_requantize(-12, 1 << 30, -2), -2);
    ck_assert_int_eq(qi_requantize_half_up(-12, 1 << 30, -2), -1);
    ck_assert_int_eq(qi_requantize(3, 1 << 30, -2), 1);
    ck_assert_int_eq(qi_requantize_half_up(3, 1 << 30, -2), 0);
}
END_TEST

/** The nearest integer, half away from zero, of a double computed by the processor. */
static int32_t double_reference(int32_t acc, double m)
{
    double const product = acc * m;
    double whole = (double)(int64_t)product;
    double const rest = product - whole;
    if (rest >= 0.5)
        whole += 1;
    if (rest <= -0.5)
        whole -= 1;
    return whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : (int32_t)whole;
}

/** The shorter way of small processors to an 8-bit code. */
static void check_small_double(int32_t acc, uint64_t significand, int32_t exponent, int32_t value)
{
    int32_t const mult[2] = {(int32_t)(uint32_t)significand, (int32_t)(significand >> 32)};
    qi_requant const r = {
        .mult = mult, .shift = &exponent, .rounding = QI_ROUND_DOUBLE, .lo = -128, .hi = 127};
    if (!qk_is_small_double(&r, 0))
        return;
    qk_small_double const d = qk_small_double_of(&r, 0);
    int const got = (int8_t)qk_small_double_code(&d, acc);
    int const want = value < -128 ? -128 : value > 127 ? 127 : value;
    test_assert_in_loop(got == want, "%" PRId32 " * %" PRIu64 " * 2^(%" PRId32 " - 53): %d, not %d",
                        acc, significand, exponent, got, want);
}

/** (double)acc * significand * 2^(exponent - 53) against the integer form. */
static void check_double(int32_t acc, uint64_t significand, int exponent)
{
    double m = (double)significand;
    for (int e = exponent - 53; e < 0; e++)
        m /= 2;
    for (int e = exponent - 53; e > 0; e--)
        m *= 2;
    int32_t const got = qi_requantize_double(acc, (int64_t)significand, exponent);
    test_assert_in_loop(got == double_reference(acc, m),
                        "acc %" PRId32 ", significand %" PRIu64 ", exponent %d: got %" PRId32
                        ", expected %" PRId32,
                        acc, significand, exponent, got, double_reference(acc, m));
    check_small_double(acc, significand, exponent, got);
}

/** A code, a half, and almost nothing: significands whose products lie beside ties. */
static void check_beside_tie(uint64_t random)
{
    int const m = 1 + (int)(random & 31) % 23;
    uint64_t const twice = 2 * (random >> 5 & 127) + 1; /* of a code and a half */
    uint64_t const least = (twice << m) / 2, acc = least + 1 + (random >> 12) % least;
    uint64_t const significand = (uint64_t)((long double)twice * powl(2, 52 + m) / acc);
    if (acc > INT32_MAX || significand < UINT64_C(1) << 52)
        return;
    for (uint64_t near = significand - 2; near <= significand + 2; near++)
        if (near >> 52 == 1) {
            check_double((int32_t)acc, near, -m);
            check_double(-(int32_t)acc, near, -m);
        }
}

START_TEST(test_double)
{
    static const int32_t edges[] = {0, 1, -1, 2, -2, 3, -3, INT32_MAX, INT32_MIN, 1 << 30, -65537};
    uint64_t const top = UINT64_C(1) << 53;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        for (int exponent = -60; exponent <= 31; exponent++) {
            check_double(edges[i], top / 2, exponent);
            check_double(edges[i], top / 2 + 1, exponent);
            check_double(edges[i], top - 1, exponent);
        }
    uint64_t seed = 1;
    for (int i = 0; i < 1000000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int32_t const acc = (int32_t)(uint32_t)(seed >> 32) >> (seed >> 20 & 31);
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t significand = top / 2 | seed >> 12;
        if (i & 1) /* few bits set: many products lie on ties */
            significand &= ~((UINT64_C(1) << (20 + (seed & 31))) - 1);
        check_double(acc, significand, (int)(seed >> 5 & 63) - 40);
        check_beside_tie(seed >> 10);
    }
    ck_assert_int_eq(qi_requantize_double(INT32_MIN, (int64_t)(top - 1), 1000), INT32_MIN);
    ck_assert_int_eq(qi_requantize_double(5, (int64_t)(top - 1), 1000), INT32_MAX);
    ck_assert_int_eq(qi_requantize_double(INT32_MAX, (int64_t)(top - 1), -1000), 0);
    ck_assert_int_eq(qi_requantize_double(7, 0, 0), 0);
}
END_TEST

START_TEST(test_softmax_row)
{
    /* mult, shift of scale 2^-4: 2^22 = 2^30 2^(23 - 31), so shift 23; diff_min = -31 2^26 / 2^23
     */
    qi_softmax const s = {.mult = 1 << 30, .shift = 23, .diff_min = -248, .lowest = 0, .bits = 8};
    uint8_t const x[4] = {7, 7, 7, 7};
    uint8_t y[4];
    qi_softmax_row(x, y, 4, &s);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(y[i], 64); /* a quarter each */

    uint8_t const peak[3] = {0, 255, 254};
    qi_softmax_row(peak, y, 3, &s);
    ck_assert_uint_eq(y[0], 0);   /* a difference of -255 lies below diff_min */
    ck_assert_uint_eq(y[1], 132); /* 256 / (1 + exp(-1/16)) = 132.0 */
    ck_assert_uint_eq(y[2], 124);

    static uint8_t many[4096]; /* each share is 1/4096: below half a code */
    qi_softmax_row(many, many, sizeof many, &s);
    for (size_t i = 0; i < sizeof many; i++)
        ck_assert_uint_eq(many[i], 0);
}
END_TEST

/* ------------------------------------------------------------------ nothing left out */

static bool covered(const char *folder)
{
    static const char *const others[] = {"mbqm_i32", "mbqm_i64", "get_reciprocal_q12",
                                         "inv_sqrt_quantized_multiplier",
                                         /* takes a double: tested with lib/fakequant */
                                         "quantize_multiplier"};
    for (int i = 0; i < N_UNARIES; i++)
        if (strcmp(unaries[i].folder, folder) == 0)
            return true;
    for (int i = 0; i < N_BINARIES; i++)
        if (strcmp(binaries[i].folder, folder) == 0)
            return true;
    for (int i = 0; i < N_CODE_FUNCTIONS; i++)
        if (strcmp(code_functions[i].folder, folder) == 0)
            return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], folder) == 0)
            return true;
    return false;
}

START_TEST(test_index_covered)
{
    char path[1024], line[512];
    if (!test_golden_path(path, sizeof path, "fixedpoint/index.txt")) {
        test_skip("fixedpoint/index.txt", "golden data not there");
        return;
    }
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, " \r\n")] = 0;
        ck_assert_msg(!*line || covered(line), "no test for golden folder %s", line);
    }
    fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fixedpoint");
    TCase *tcase = tcase_create("goldens");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, test_unary, 0, N_UNARIES);
    tcase_add_loop_test(tcase, test_binary, 0, N_BINARIES);
    tcase_add_test(tcase, test_requantize);
    tcase_add_test(tcase, test_requantize_i64);
    tcase_add_test(tcase, test_reciprocal);
    tcase_add_test(tcase, test_inv_sqrt);
    tcase_add_loop_test(tcase, test_code_function, 0, N_CODE_FUNCTIONS);
    tcase_add_test(tcase, test_index_covered);
    suite_add_tcase(suite, tcase);
    TCase *own = tcase_create("own");
    tcase_set_timeout(own, 120);
    tcase_add_test(own, test_ties);
    tcase_add_test(own, test_products);
    tcase_add_test(own, test_twice_is_not_once);
    tcase_add_test(own, test_ties_up);
    tcase_add_test(own, test_double);
    tcase_add_test(own, test_softmax_row);
    suite_add_tcase(suite, own);
    return test_run_suite(suite);
}

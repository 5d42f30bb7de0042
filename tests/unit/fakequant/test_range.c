/*
 * Quantization parameters: ranges of codes, nudging, the table of a range, ties, tiny and huge
 * ranges.
 */
#include "common/suite.h"
#include "fakequant/range.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

static void check_range(qat_layout layout, int bits, bool weights, int32_t lo, int32_t hi)
{
    int32_t got_lo, got_hi;
    qat_code_range(layout, bits, weights, &got_lo, &got_hi);
    ck_assert_int_eq(got_lo, lo);
    ck_assert_int_eq(got_hi, hi);
}

START_TEST(test_code_ranges)
{
    check_range(QAT_LAYOUT_UINT8, 8, false, 0, 255);
    check_range(QAT_LAYOUT_UINT8, 8, true, 1, 255);
    check_range(QAT_LAYOUT_INT8, 8, false, -128, 127);
    check_range(QAT_LAYOUT_INT8, 8, true, -127, 127);
    check_range(QAT_LAYOUT_UINT8, 2, false, 0, 3);
    check_range(QAT_LAYOUT_UINT8, 2, true, 1, 3);
    check_range(QAT_LAYOUT_INT8, 2, false, -2, 1);
    check_range(QAT_LAYOUT_INT8, 2, true, -1, 1);
    check_range(QAT_LAYOUT_INT8, 5, false, -16, 15);
}
END_TEST

/*
 * The range -10..30 in 8 bits. As it is given, code 128 stands for -10 + 128 * 40 / 255 = 10.078.
 * 0 then lies between codes 63 and 64 (63.75); nudged, it is code 64 exactly, and 0, 128 and 255
 * stand for (q - 64) * 40 / 255.
 */
START_TEST(test_table_of_a_range)
{
    static const int32_t codes[] = {0, 128, 255};
    static const double given[] = {-10, 10.078, 30}, nudged[] = {-10.039, 10.039, 29.961};
    qat_qparams const p = qat_choose_qparams(-10, 30, 0, 255, true);
    ck_assert_int_eq(p.zero_point, 64);
    ck_assert_float_eq(p.scale, 40.0f / 255.0f);
    for (int i = 0; i < 3; i++) {
        double const before = -10 + codes[i] * 40.0 / 255;
        ck_assert_double_eq_tol(before, given[i], 5e-4);
        ck_assert_double_eq_tol(qat_real_of(&p, codes[i]), nudged[i], 5e-4);
        ck_assert_int_eq(qat_code(&p, qat_real_of(&p, codes[i])), codes[i]);
    }
    ck_assert_int_eq(qat_code(&p, -10), 0);
    ck_assert_int_eq(qat_code(&p, 0), 64);
    ck_assert_int_eq(qat_code(&p, 30), 255);
    ck_assert_float_eq(p.min, qat_real_of(&p, 0));
    ck_assert_float_eq(p.max, qat_real_of(&p, 255));
}
END_TEST

START_TEST(test_widening_holds_zero)
{
    qat_qparams const above = qat_choose_qparams(0.2f, 3, 0, 255, true);
    ck_assert_int_eq(above.zero_point, 0);
    ck_assert_float_eq(above.scale, 3.0f / 255);
    qat_qparams const below = qat_choose_qparams(-3, -0.2f, 0, 255, true);
    ck_assert_int_eq(below.zero_point, 255);
    ck_assert_float_eq(below.max, 0);
    /* without widening, TensorFlow's op: the width is kept, the place is not */
    qat_qparams const narrow = qat_choose_qparams(0.2f, 3, 0, 255, false);
    ck_assert_int_eq(narrow.zero_point, 0);
    ck_assert_float_eq_tol(narrow.max, 2.8f, 1e-6f);
}
END_TEST

static void check_empty(qat_qparams p, int32_t zero_point)
{
    float const x[] = {-5, 0, 7};
    float y[3];
    ck_assert_float_eq(p.scale, 1);
    ck_assert_int_eq(p.zero_point, zero_point);
    qat_fake_quant_values(&p, x, y, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_float_eq(y[i], 0);
        ck_assert_int_eq(qat_code(&p, x[i]), zero_point);
    }
}

START_TEST(test_empty_ranges)
{
    check_empty(qat_choose_qparams(0, 0, 0, 255, true), 0);
    check_empty(qat_choose_qparams(0, 0, -128, 127, true), -128);
    check_empty(qat_choose_symmetric(0, 127), 0);
    /* a width whose 255th part is no normal number */
    check_empty(qat_choose_qparams(0, 1e-37f, 0, 255, true), 0);
    check_empty(qat_choose_symmetric(1e-38f, 127), 0);
}
END_TEST

/* Signed codes are the unsigned ones minus 128, at ties of the zero-point too (z = 127.5). */
START_TEST(test_layouts_agree)
{
    static const float ranges[][2] = {{-1, 1}, {-0.3f, 2.7f}, {-127.5f / 128, 127.5f / 128},
                                      {-6, 0}, {0, 6},        {-1e-6f, 3e4f}};
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        qat_qparams const u = qat_choose_qparams(ranges[r][0], ranges[r][1], 0, 255, true);
        qat_qparams const s = qat_choose_qparams(ranges[r][0], ranges[r][1], -128, 127, true);
        ck_assert_float_eq(u.scale, s.scale);
        ck_assert_float_eq(u.min, s.min);
        ck_assert_float_eq(u.max, s.max);
        ck_assert_int_eq(u.zero_point - 128, s.zero_point);
        for (int i = -300; i <= 300; i++) {
            float const x = ranges[r][1] * (float)i / 290;
            ck_assert_int_eq(qat_code(&u, x) - 128, qat_code(&s, x));
        }
    }
    /* 0 halfway between codes 127 and 128, exactly: away from zero */
    ck_assert_int_eq(qat_choose_qparams(-127.5f / 128, 127.5f / 128, 0, 255, true).zero_point, 128);
    ck_assert_int_eq(qat_choose_qparams(-127.5f / 128, 127.5f / 128, -128, 127, true).zero_point,
                     0);
}
END_TEST

/* The examples of docs/arithmetic.md, section 1. */
START_TEST(test_worked_examples)
{
    qat_qparams const eight = qat_choose_qparams(-10, 30, 0, 255, true);
    ck_assert_int_eq(eight.zero_point, 64);
    ck_assert_float_eq_tol(qat_real_of(&eight, 0), -10.039f, 1e-3f);
    ck_assert_float_eq_tol(qat_real_of(&eight, 255), 29.961f, 1e-3f);
    for (int layout = QAT_LAYOUT_UINT8; layout <= QAT_LAYOUT_INT8; layout++) {
        int32_t lo, hi;
        qat_code_range((qat_layout)layout, 5, false, &lo, &hi);
        qat_qparams const tie = qat_choose_qparams(-15.5f, 15.5f, lo, hi, true);
        ck_assert_float_eq(tie.scale, 1);
        ck_assert_int_eq(tie.zero_point, layout == QAT_LAYOUT_UINT8 ? 16 : 0);
    }
}
END_TEST

START_TEST(test_symmetric)
{
    for (int bits = 2; bits <= 8; bits++) {
        int32_t lo, hi;
        qat_code_range(QAT_LAYOUT_INT8, bits, true, &lo, &hi);
        qat_qparams const p = qat_choose_symmetric(0.7f, hi);
        ck_assert_int_eq(p.zero_point, 0);
        ck_assert_int_eq(p.lo, -hi);
        ck_assert_int_eq(p.lo, lo);
        ck_assert_float_eq(p.scale, 1.4f / (float)(2 * hi));
        ck_assert_int_eq(qat_code_per_channel(&p, 0.7f), hi);
        ck_assert_int_eq(qat_code_per_channel(&p, -0.7f), -hi);
        ck_assert_int_eq(qat_code_per_channel(&p, 0), 0);
        ck_assert_int_eq(qat_code_per_channel(&p, 100), hi);
    }
}
END_TEST

/* Ties go up; the code is the floor term plus the zero-point. */
START_TEST(test_ties)
{
    qat_qparams const p = qat_given_qparams(0.5f, 10, 0, 255);
    ck_assert_int_eq(qat_code(&p, 0.25f), 11);
    ck_assert_int_eq(qat_code(&p, -0.25f), 10);
    ck_assert_int_eq(qat_code(&p, -0.75f), 9);
    ck_assert_int_eq(qat_code(&p, -100), 0);
    ck_assert_int_eq(qat_code(&p, 1000), 255);
    ck_assert_int_eq(qat_code(&p, NAN), 10);
    ck_assert_float_eq(p.min, -5);
    ck_assert_float_eq(p.max, 122.5f);
}
END_TEST

START_TEST(test_fixed)
{
    qat_qparams p = qat_fixed_qparams(0, 1, QAT_LAYOUT_INT8, 8);
    ck_assert_float_eq(p.scale, 1.0f / 256);
    ck_assert_int_eq(p.zero_point, -128);
    p = qat_fixed_qparams(0, 1, QAT_LAYOUT_UINT8, 4);
    ck_assert_float_eq(p.scale, 1.0f / 16);
    ck_assert_int_eq(p.zero_point, 0);
    ck_assert_int_eq(p.hi, 15);
    p = qat_fixed_qparams(-1, 1, QAT_LAYOUT_UINT8, 8);
    ck_assert_float_eq(p.scale, 1.0f / 128);
    ck_assert_int_eq(p.zero_point, 128);
    p = qat_fixed_qparams(-1, 1, QAT_LAYOUT_INT8, 8);
    ck_assert_int_eq(p.zero_point, 0);
}
END_TEST

/* Every representable value is its own fake-quantized value, for every width and many ranges. */
START_TEST(test_codes_round_trip)
{
    for (int bits = 2; bits <= 8; bits++)
        for (int r = 1; r < 40; r++) {
            float const min = -(float)r * 0.37f, max = (float)(40 - r) * 0.11f;
            int32_t const hi = (1 << bits) - 1;
            qat_qparams const p = qat_choose_qparams(min, max, 0, hi, true);
            for (int32_t q = 0; q <= hi; q++) {
                float const x = qat_real_of(&p, q);
                float y;
                ck_assert_int_eq(qat_code(&p, x), q);
                qat_fake_quant_values(&p, &x, &y, 1);
                ck_assert_float_eq(y, x);
            }
        }
}
END_TEST

START_TEST(test_extreme_ranges)
{
    qat_qparams const p = qat_choose_qparams(-FLT_MAX, FLT_MAX, 0, 255, true);
    ck_assert(isfinite(p.scale) && p.scale > 0 && isfinite(p.min) && isfinite(p.max));
    ck_assert_int_eq(qat_code(&p, INFINITY), 255);
    ck_assert_int_eq(qat_code(&p, -FLT_MAX), 0);
    ck_assert_int_eq(qat_code(&p, 0), p.zero_point);
}
END_TEST

START_TEST(test_not_a_number_stays)
{
    qat_qparams const p = qat_choose_qparams(-1, 1, 0, 255, true);
    float const x[] = {0.5f, NAN, 2};
    float y[3], dx[3] = {0}, grad[3] = {1, 1, 1};
    qat_fake_quant_values(&p, x, y, 3);
    ck_assert(isnan(y[1]));
    qat_fake_quant_values_per_channel(&p, x, y, 3);
    ck_assert(isnan(y[1]));
    ck_assert_float_eq(y[2], p.max);
    qat_fake_quant_gradient(&p, x, grad, dx, 3);
    ck_assert_float_eq(dx[0], 1);
    ck_assert_float_eq(dx[1], 0);
    ck_assert_float_eq(dx[2], 0);
}
END_TEST

START_TEST(test_intervals)
{
    float x[211];
    for (int i = 0; i < 211; i++)
        x[i] = 1 + (float)((i * 17) % 211);
    x[5] = x[70] = NAN;
    for (size_t n = 0; n <= 211; n++) {
        float min = INFINITY, max = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            min = fminf(min, x[i]);
            max = fmaxf(max, x[i]);
        }
        qat_interval const got = qat_interval_of(x, n);
        ck_assert_float_eq(got.min, min);
        ck_assert_float_eq(got.max, max);
    }
    qat_interval const wide = qat_interval_widen((qat_interval){0.5f, 2});
    ck_assert_float_eq(wide.min, 0);
    ck_assert_float_eq(wide.max, 2);
    qat_interval const nothing = qat_interval_widen(qat_interval_of(x, 0));
    ck_assert_float_eq(nothing.min, 0);
    ck_assert_float_eq(nothing.max, 0);
}
END_TEST

/** 16-bit activations: zero point 0, the larger end is code 32767, and every code comes back. */
START_TEST(test_wide)
{
    static const float ends[][2] = {{-1, 1}, {0, 6}, {-0.3f, 7.1e-3f}, {-2.5f, -0.1f}, {0, 3e-30f}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        float const larger = fmaxf(-ends[i][0], ends[i][1]);
        qat_qparams const p = qat_activation_qparams(ends[i][0], ends[i][1], QAT_LAYOUT_INT8, 16);
        ck_assert_int_eq(p.zero_point, 0);
        ck_assert_int_eq(p.lo, INT16_MIN);
        ck_assert_int_eq(p.hi, INT16_MAX);
        ck_assert_float_eq(p.scale, larger / 32767.0f);
        for (int32_t code = INT16_MIN; code <= INT16_MAX; code++) {
            float const x = qat_real_of(&p, code);
            float y = 0;
            qat_fake_quant_values(&p, &x, &y, 1);
            ck_assert_int_eq(qat_code(&p, x), code);
            ck_assert_float_eq(y, x);
        }
        ck_assert_int_eq(qat_code(&p, 3 * larger), INT16_MAX);
        ck_assert_int_eq(qat_code(&p, -3 * larger), INT16_MIN);
    }
    qat_qparams const none = qat_activation_qparams(0, 0, QAT_LAYOUT_INT8, 16);
    ck_assert_float_eq(none.scale, 1);
    ck_assert_int_eq(none.zero_point, 0);
    qat_qparams const logistic = qat_fixed_qparams(0, 1, QAT_LAYOUT_INT8, 16);
    ck_assert_float_eq(logistic.scale, 0x1p-15f);
    ck_assert_int_eq(logistic.zero_point, 0);
    qat_qparams const narrow = qat_activation_qparams(-1, 3, QAT_LAYOUT_UINT8, 8);
    ck_assert_int_eq(narrow.zero_point, 64);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_code_ranges);
    tcase_add_test(tests, test_table_of_a_range);
    tcase_add_test(tests, test_widening_holds_zero);
    tcase_add_test(tests, test_empty_ranges);
    tcase_add_test(tests, test_layouts_agree);
    tcase_add_test(tests, test_worked_examples);
    tcase_add_test(tests, test_symmetric);
    tcase_add_test(tests, test_ties);
    tcase_add_test(tests, test_fixed);
    tcase_add_test(tests, test_codes_round_trip);
    tcase_add_test(tests, test_extreme_ranges);
    tcase_add_test(tests, test_not_a_number_stays);
    tcase_add_test(tests, test_intervals);
    tcase_add_test(tests, test_wide);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}

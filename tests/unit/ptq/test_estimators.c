/* Histograms and the ranges estimated from them, worked out by hand. */
#include "common/suite.h"
#include "qat/ptq.h"

#include <check.h>
#include <math.h>
#include <string.h>

static qat_histogram histogram;

/** counts[i] values x[i] on the histogram's range. */
static void count(float min, float max, int n, const float *x, const int *counts)
{
    qat_histogram_begin(&histogram, min, max);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < counts[i]; k++)
            qat_histogram_add(&histogram, &x[i], 1);
}

static void estimate(const char *text, qat_code_grid grid, float *min, float *max)
{
    const qat_estimator *e;
    double parameter;
    qat_error err;
    ck_assert_msg(!qat_estimator_parse(text, &e, &parameter, &err), "%s", err.message);
    e->estimate(&histogram, &grid, parameter, min, max);
}

static const qat_code_grid four_codes = {0, 3, false}, signed_codes = {-3, 3, true},
                           all_codes = {-2, 1, true};

START_TEST(test_histogram_bins)
{
    float const x[] = {0, 0.5f, 1, 4095.5f, 4096, -7, 9999, NAN};
    qat_histogram_begin(&histogram, 0, QAT_HISTOGRAM_BINS);
    qat_histogram_add(&histogram, x, 8);
    ck_assert_int_eq(histogram.total, 7);
    ck_assert_int_eq(histogram.counts[0], 3); /* 0, 0.5, and -7 from below */
    ck_assert_int_eq(histogram.counts[1], 1);
    ck_assert_int_eq(histogram.counts[QAT_HISTOGRAM_BINS - 1], 3);
    ck_assert_float_eq(qat_histogram_centre(&histogram, 2), 2.5f);
}
END_TEST

START_TEST(test_minmax)
{
    float min, max;
    count(-2, 6, 2, (const float[]){-2, 6}, (const int[]){1, 1});
    estimate("minmax", four_codes, &min, &max);
    ck_assert_float_eq(min, -2);
    ck_assert_float_eq(max, 6);
}
END_TEST

/** One value in each bin: 99 % may lose 40.96 of 4096 values at either end, so 40. */
START_TEST(test_percentile)
{
    float min, max;
    qat_histogram_begin(&histogram, 0, QAT_HISTOGRAM_BINS);
    for (int i = 0; i < QAT_HISTOGRAM_BINS; i++) {
        float const x = (float)i + 0.25f;
        qat_histogram_add(&histogram, &x, 1);
    }
    estimate("percentile:99", four_codes, &min, &max);
    ck_assert_float_eq(min, 40);
    ck_assert_float_eq(max, 4056);
    estimate("percentile:100", four_codes, &min, &max);
    ck_assert_float_eq(min, 0);
    ck_assert_float_eq(max, 4096);
    estimate("percentile", four_codes, &min, &max); /* 99.99: 0.4 values */
    ck_assert_float_eq(max, 4096);
}
END_TEST

/**
 * Four codes. On [0, 6] their step is 2: a thousand values each of 1 and 3 are off by 1 (2 is hit),
 * in all 2000. On [0, 3], the 32nd of 64 steps, the step is 1 and only the lone 6 is off, by 3: 9.
 */
START_TEST(test_mse)
{
    float min, max;
    count(0, 6, 4, (const float[]){1, 2, 3, 6}, (const int[]){1000, 1000, 1000, 1});
    estimate("mse", four_codes, &min, &max);
    ck_assert_float_eq(min, 0);
    ck_assert_float_eq(max, 3);
    ck_assert_double_eq_tol(qat_histogram_error(&histogram, &four_codes, 0, 6), 2000, 10);
    ck_assert_double_eq_tol(qat_histogram_error(&histogram, &four_codes, 0, 3), 9, 0.1);
}
END_TEST

/** Codes -3..3, values +-1, +-2, +-3 and one -6: [-3, 3] again, both ends together. */
START_TEST(test_mse_symmetric)
{
    float min, max;
    count(-6, 3, 6, (const float[]){-6, -3, -1, 1, 2, 3},
          (const int[]){1, 1000, 1000, 1000, 1000, 1000});
    estimate("mse", signed_codes, &min, &max);
    ck_assert_float_eq(min, -3);
    ck_assert_float_eq(max, 3);
}
END_TEST

/** Codes -2..1: on [-1, 1] the step is 1, and -2 has a code; without it, 1000 values are off by 1.
 */
START_TEST(test_mse_all_codes)
{
    static const qat_code_grid narrow = {-1, 1, true};
    float min, max;
    count(-2, 1, 3, (const float[]){-2, -1, 1}, (const int[]){1000, 1000, 1000});
    estimate("mse", all_codes, &min, &max);
    ck_assert_float_eq(min, -1);
    ck_assert_float_eq(max, 1);
    ck_assert_double_eq_tol(qat_histogram_error(&histogram, &all_codes, -1, 1), 0, 0.1);
    ck_assert_double_eq_tol(qat_histogram_error(&histogram, &narrow, -1, 1), 1000, 2);
}
END_TEST

START_TEST(test_estimator_names)
{
    const qat_estimator *e;
    double parameter;
    qat_error err;
    ck_assert_int_eq(qat_estimator_parse("percentile:99.5", &e, &parameter, &err), QAT_OK);
    ck_assert_str_eq(e->name, "percentile");
    ck_assert_double_eq(parameter, 99.5);
    static const char *const wrong[][2] = {
        {"max", "unknown estimator 'max': expected minmax, percentile[:P] or mse"},
        {"percentile:101", "expected a number in 50..100"},
        {"percentile:x", "expected a number in 50..100"},
        {"mse:3", "takes no number"},
        {"", "unknown estimator ''"}};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(qat_estimator_parse(wrong[i][0], &e, &parameter, &err), QAT_ERR_ARGUMENT);
        ck_assert_msg(strstr(err.message, wrong[i][1]) != NULL, "%s", err.message);
    }
    ck_assert_ptr_null(qat_estimator_at(3));
    ck_assert_ptr_null(qat_estimator_at(-1));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("estimators");
    tcase_add_test(tc, test_histogram_bins);
    tcase_add_test(tc, test_minmax);
    tcase_add_test(tc, test_percentile);
    tcase_add_test(tc, test_mse);
    tcase_add_test(tc, test_mse_symmetric);
    tcase_add_test(tc, test_mse_all_codes);
    tcase_add_test(tc, test_estimator_names);
    Suite *suite = suite_create("estimators");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

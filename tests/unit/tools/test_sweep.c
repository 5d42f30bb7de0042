/** Statistics against known values, and grids of settings. */
#include "common/suite.h"
#include "tools/plot/ticks.h"
#include "tools/sweep/grid.h"
#include "tools/sweep/results.h"
#include "tools/sweep/statistics.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static void close_to(double found, double expected)
{
    ck_assert_double_eq_tol(found, expected, 1e-11);
}

/* I_x(a, 1) = x^a; I_x(1, b) = 1 - (1 - x)^b; I_x(1/2, 1/2) = 2/pi asin(sqrt x);
 * for whole a, b: P(at least a of a + b - 1 throws succeed). */
START_TEST(beta_has_its_closed_forms)
{
    for (double x = 0; x <= 1; x += 0.0625) {
        for (double a = 0.5; a < 40; a *= 1.7) {
            close_to(qat_incomplete_beta(a, 1, x), pow(x, a));
            close_to(qat_incomplete_beta(1, a, x), 1 - pow(1 - x, a));
            close_to(qat_incomplete_beta(a, 3 * a, x), 1 - qat_incomplete_beta(3 * a, a, 1 - x));
        }
        close_to(qat_incomplete_beta(0.5, 0.5, x), 2 / acos(-1) * asin(sqrt(x)));
        close_to(qat_incomplete_beta(2, 3, x),
                 6 * x * x * (1 - x) * (1 - x) + 4 * x * x * x * (1 - x) + x * x * x * x);
    }
    ck_assert(isnan(qat_incomplete_beta(1, 2, NAN)));
}
END_TEST

/* df 1: Cauchy, 1 - 2/pi atan t. df 2: 1 - t / sqrt(2 + t^2). Many: the normal distribution. */
START_TEST(t_has_its_closed_forms_and_table_values)
{
    for (double t = 0; t < 50; t = 1.3 * t + 0.1) {
        close_to(qat_t_two_sided(t, 1), 1 - 2 / acos(-1) * atan(t));
        close_to(qat_t_two_sided(-t, 2), 1 - t / sqrt(2 + t * t));
        ck_assert_double_eq_tol(qat_t_two_sided(t, 1e7), erfc(t / sqrt(2)), 1e-6);
    }
    /* the 97.5 % points of every table, to their three decimals */
    static const double points[][2] = {{3, 3.182}, {4, 2.776}, {9, 2.262}, {29, 2.045}};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(qat_t_two_sided(points[i][1], points[i][0]), 0.05, 5e-5);
    close_to(qat_t_two_sided(INFINITY, 5), 0);
}
END_TEST

START_TEST(spread_of_few)
{
    double const x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    qat_spread const s = qat_spread_of(x, 8);
    close_to(s.mean, 5);
    close_to(s.deviation, sqrt(32.0 / 7));
    ck_assert(isnan(qat_spread_of(x, 1).deviation));
    close_to(qat_spread_of(x, 1).mean, 2);
    ck_assert(isnan(qat_spread_of(x, 0).mean));
}
END_TEST

/* d = 1, 2, 3: mean 2, deviation 1, t = 2 sqrt 3, p = 1 - t / sqrt(2 + t^2) */
START_TEST(pairs)
{
    double const x[] = {11, 22, 33}, y[] = {10, 20, 30}, z[] = {9, 20, 31};
    qat_paired p = qat_paired_test(x, y, 3);
    close_to(p.difference.mean, 2);
    close_to(p.difference.deviation, 1);
    close_to(p.t, 2 * sqrt(3));
    close_to(p.p, 1 - 2 * sqrt(3) / sqrt(14));
    p = qat_paired_test(x, z, 3);
    ck_assert(isinf(p.t) && p.t > 0);
    close_to(p.p, 0);
    p = qat_paired_test(x, x, 3);
    close_to(p.t, 0);
    close_to(p.p, 1);
    ck_assert(isnan(qat_paired_test(x, y, 1).t));
}
END_TEST

static void add(qat_sweep_grid *grid, const char *text)
{
    qat_error err;
    ck_assert_msg(!qat_sweep_grid_add(grid, text, &err), "%s", err.message);
}

START_TEST(cells_of_a_grid)
{
    static const char *const recipes[] = {"recipes/a.ini", "b c.ini"};
    qat_sweep_grid grid = {0};
    char name[QAT_SWEEP_NAME_MAX];
    int cell = -1;
    ck_assert(!qat_sweep_grid_add_values(&grid, "recipe", recipes, 2, NULL));
    add(&grid, "x.k=1,2,{3,4}");
    add(&grid, "x.fixed=7");
    ck_assert_int_eq(qat_sweep_grid_cells(&grid), 6);
    ck_assert_str_eq(qat_sweep_grid_value(&grid, 5, 1), "3,4");
    ck_assert_str_eq(qat_sweep_grid_value(&grid, 3, 0), "b c.ini");
    ck_assert_str_eq(qat_sweep_grid_value(&grid, 3, 2), "7");
    ck_assert(!qat_sweep_grid_name(&grid, 5, name, NULL));
    ck_assert_str_eq(name, "b_c,x.k=3,4");
    ck_assert(!qat_sweep_grid_check_names(&grid, NULL));
    ck_assert(!qat_sweep_grid_find(&grid, "x.k=2,a", &cell, NULL));
    ck_assert_int_eq(cell, 1);
    ck_assert(!qat_sweep_grid_find(&grid, "b_c,x.k=1", &cell, NULL));
    ck_assert_int_eq(cell, 3);
    ck_assert(qat_sweep_grid_find(&grid, "x.k=2", &cell, NULL) == QAT_ERR_ARGUMENT);
    ck_assert(qat_sweep_grid_find(&grid, "x.k=5", &cell, NULL) == QAT_ERR_ARGUMENT);
    add(&grid, "x.path=a/b,a b");
    ck_assert(qat_sweep_grid_check_names(&grid, NULL) == QAT_ERR_ARGUMENT);
    qat_sweep_grid_free(&grid);
}
END_TEST

START_TEST(what_is_no_axis)
{
    static const char *const wrong[] = {"k",      "=1",      "k=",     "k=1,,2", "k=1,",
                                        "k={1,2", "k=1}",    "k={1}2", "k=1,1",  "k=1{2},3",
                                        "k={},1", "k={{1}}", "k=,"};
    qat_sweep_grid grid = {0};
    for (int i = 0; i < (int)(sizeof wrong / sizeof wrong[0]); i++)
        ck_assert_msg(qat_sweep_grid_add(&grid, wrong[i], NULL) == QAT_ERR_ARGUMENT, "%s",
                      wrong[i]);
    add(&grid, "k={1,2}");
    ck_assert_int_eq(qat_sweep_grid_cells(&grid), 1);
    ck_assert(qat_sweep_grid_add(&grid, "k=3", NULL) == QAT_ERR_ARGUMENT);
    qat_sweep_grid_free(&grid);
}
END_TEST

static void ticks_are(qat_ticks t, int n, const double *expected)
{
    ck_assert_int_eq(t.n, n);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(t.at[i], expected[i], 1e-12 * (1 + fabs(expected[i])));
    close_to(qat_ticks_position(&t, expected[0]), 0);
    close_to(qat_ticks_position(&t, expected[n - 1]), 1);
}

START_TEST(ticks_at_round_numbers)
{
    ticks_are(qat_ticks_linear(91.2, 98.9), 6, (double[]){90, 92, 94, 96, 98, 100});
    ticks_are(qat_ticks_linear(-0.03, 0.12), 5, (double[]){-0.05, 0, 0.05, 0.1, 0.15});
    ticks_are(qat_ticks_logarithmic(0.0048, 0.0089), 6,
              (double[]){0.004, 0.005, 0.006, 0.007, 0.008, 0.009});
    ticks_are(qat_ticks_logarithmic(0.8, 11), 6, (double[]){0.5, 1, 2, 5, 10, 20});
    ticks_are(qat_ticks_logarithmic(3, 200000), 7,
              (double[]){1, 10, 100, 1000, 10000, 100000, 1000000});
    ck_assert_int_eq(qat_ticks_linear(0.1, 0.3).digits, 2);
}
END_TEST

/* For all numbers: they are on the axis, and the axis has enough ticks, but not too many. */
START_TEST(ticks_hold_their_numbers)
{
    for (double a = 1e-7; a < 1e7; a *= 1.37)
        for (double ratio = 1; ratio < 1e6; ratio *= 1.9) {
            qat_ticks const log = qat_ticks_logarithmic(a, a * ratio);
            qat_ticks const plain = qat_ticks_linear(-a, a * ratio);
            ck_assert(log.n >= 2 && log.n <= 14);
            ck_assert(plain.n >= 4 && plain.n <= 9);
            ck_assert(log.low <= a * (1 + 1e-6) && log.high >= a * ratio * (1 - 1e-6));
            ck_assert(plain.low <= -a * (1 - 1e-6) && plain.high >= a * ratio * (1 - 1e-6));
            for (int i = 1; i < log.n; i++)
                ck_assert(log.at[i] > log.at[i - 1]);
        }
    ck_assert(qat_ticks_linear(0, 0).n >= 2);
    ck_assert(qat_ticks_linear(5, 5).n >= 2);
}
END_TEST

START_TEST(shares_are_shown_in_percent)
{
    static const char *const shares[] = {
        "top1",      "float_top5",     "ap50",         "float_ap",       "category_ap",
        "precision", "recall",         "float_within", "miou",           "auc",
        "mean_ap",   "float_mean_auc", "mean_f1",      "pixel_accuracy", "ap50_low"};
    static const char *const others[] = {
        "ms_1", "n",   "multiply_adds", "map",        "top1_seconds", "",
        "r2",   "mae", "rmse",          "mean_error", "only_answer"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        ck_assert_msg(qat_results_is_share(shares[i]), "%s", shares[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!qat_results_is_share(others[i]), "%s", others[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep");
    TCase *cases = tcase_create("sweep");
    tcase_add_test(cases, beta_has_its_closed_forms);
    tcase_add_test(cases, t_has_its_closed_forms_and_table_values);
    tcase_add_test(cases, spread_of_few);
    tcase_add_test(cases, pairs);
    tcase_add_test(cases, cells_of_a_grid);
    tcase_add_test(cases, what_is_no_axis);
    tcase_add_test(cases, ticks_at_round_numbers);
    tcase_add_test(cases, ticks_hold_their_numbers);
    tcase_add_test(cases, shares_are_shown_in_percent);
    suite_add_tcase(suite, cases);
    return test_run_suite(suite);
}

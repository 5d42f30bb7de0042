/** Figures from scores and what is true: cases worked by hand; failing memory. */
#include "base/figures/classes.h"
#include "base/figures/curve.h"
#include "common/fail_alloc.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>

/* ------------------------------------------------------------------ curves */

static qat_curve curve_of(const double *scores, const char *hits, size_t n)
{
    qat_scored samples[8];
    qat_curve c;
    for (size_t i = 0; i < n; i++)
        samples[i] = (qat_scored){scores[i], hits[i] == 'h'};
    ck_assert_int_eq(qat_curve_of(&c, samples, n, NULL), QAT_OK);
    return c;
}

/* F1 = 2 hits / (found + all hits). Of the first case, at 0.8: 2 * 2 / (3 + 2). */
START_TEST(curves_by_hand)
{
    static const struct {
        double scores[6];
        const char *hits;
        size_t n;
        double auc, ap, f1, threshold;
    } cases[] = {
        {{0.7, 0.9, 0.6, 0.8}, "hh..", 4, 0.75, (1 + 2.0 / 3) / 2, 4.0 / 5, 0.7},
        {{0.5, 0.9, 0.1, 0.5}, "hhh.", 4, 1.5 / 3, (1 + 2.0 / 3 + 3.0 / 4) / 3, 6.0 / 7, 0.1},
        {{0.5, 0.5, 0.5}, "h.h", 3, 0.5, 2.0 / 3, 4.0 / 5, 0.5},
        {{-2, 3, INFINITY, -INFINITY}, "..h.", 4, 1, 1, 1, INFINITY},
        {{1, 2}, "..", 2, -1, -1, -1, NAN},
        {{1, 2}, "hh", 2, -1, 1, 1, 1},
        {{0}, "", 0, -1, -1, -1, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_curve c = curve_of(cases[i].scores, cases[i].hits, cases[i].n);
        double threshold = NAN;
        ck_assert_double_eq_tol(qat_curve_auc(&c), cases[i].auc, 1e-15);
        ck_assert_double_eq_tol(qat_curve_ap(&c), cases[i].ap, 1e-15);
        ck_assert_double_eq_tol(qat_curve_best_f1(&c, &threshold), cases[i].f1, 1e-15);
        ck_assert(isnan(cases[i].threshold) ? isnan(threshold) : threshold == cases[i].threshold);
        qat_curve_free(&c);
    }
}
END_TEST

START_TEST(equal_scores_share_a_threshold)
{
    qat_curve c = curve_of((double[]){1, 0.0, -0.0, 2, 1}, "h.h.h", 5);
    ck_assert_uint_eq(c.n, 3);
    ck_assert(c.at[0].score == 2 && c.at[0].hits == 0 && c.at[0].misses == 1);
    ck_assert(c.at[1].score == 1 && c.at[1].hits == 2 && c.at[1].misses == 1);
    ck_assert(c.at[2].score == 0 && c.at[2].hits == 3 && c.at[2].misses == 2);
    ck_assert(c.hits == 3 && c.misses == 2);
    qat_curve_free(&c);
}
END_TEST

START_TEST(curves_without_memory)
{
    long n = 0;
    bool failed;
    do {
        qat_scored samples[2] = {{1, true}, {2, false}};
        qat_curve c;
        test_fail_alloc_after(n++);
        qat_status const st = qat_curve_of(&c, samples, 2, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        ck_assert_uint_eq(c.n, failed ? 0 : 2);
        qat_curve_free(&c);
    } while (failed);
}
END_TEST

/* ------------------------------------------------------------------ classes */

START_TEST(counts_by_hand)
{
    qat_counts const c[] = {{4, 3, 2}, {0, 1, 0}, {2, 2, 2}, {1, 0, 0}};
    ck_assert_double_eq_tol(qat_precision_of(&c[0]), 2.0 / 3, 1e-15);
    ck_assert_double_eq_tol(qat_recall_of(&c[0]), 0.5, 1e-15);
    ck_assert_double_eq_tol(qat_f1_of(&c[0]), 4.0 / 7, 1e-15);
    ck_assert(qat_precision_of(&c[3]) == 0 && qat_recall_of(&c[1]) == 0 && qat_f1_of(&c[1]) == 0);
    qat_means const macro = qat_means_of(c, 4, false), weighted = qat_means_of(c, 4, true);
    ck_assert_double_eq_tol(macro.precision, (2.0 / 3 + 1) / 4, 1e-15);
    ck_assert_double_eq_tol(macro.recall, (0.5 + 1) / 4, 1e-15);
    ck_assert_double_eq_tol(weighted.recall, (4 * 0.5 + 2) / 7, 1e-15);
    ck_assert(qat_means_of(c, 0, true).f1 == 0);
}
END_TEST

START_TEST(the_highest_score_and_its_probability)
{
    float const scores[] = {-1000, 1000, 999, 1000};
    ck_assert_int_eq(qat_highest(scores, 4), 1);
    ck_assert_double_eq_tol(exp(1000 - qat_log_sum(scores, 4)), 1 / (2 + exp(-1)), 1e-12);
    ck_assert(qat_log_sum(scores, 1) == -1000);
}
END_TEST

START_TEST(calibration_by_hand)
{
    qat_bin bins[QAT_BINS] = {0}, none[QAT_BINS] = {0};
    double largest;
    qat_bins_add(bins, 0, false);
    qat_bins_add(bins, 1.0 / 15, true); /* the end belongs to the bin */
    qat_bins_add(bins, 0.9, true);
    qat_bins_add(bins, 0.92, false);
    qat_bins_add(bins, 1, true);
    ck_assert(bins[0].n == 2 && bins[0].right == 1 && bins[13].n == 2 && bins[14].n == 1);
    ck_assert_double_eq_tol(qat_bins_error(bins, &largest), ((1 - 1.0 / 15) + (1.82 - 1) + 0) / 5,
                            1e-15);
    ck_assert_double_eq_tol(largest, (1 - 1.0 / 15) / 2, 1e-15);
    ck_assert(qat_bins_error(none, &largest) == -1 && largest == -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("figures");
    TCase *tc = tcase_create("figures");
    tcase_add_test(tc, curves_by_hand);
    tcase_add_test(tc, equal_scores_share_a_threshold);
    tcase_add_test(tc, curves_without_memory);
    tcase_add_test(tc, counts_by_hand);
    tcase_add_test(tc, the_highest_score_and_its_probability);
    tcase_add_test(tc, calibration_by_hand);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

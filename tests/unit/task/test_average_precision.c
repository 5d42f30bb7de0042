/**
 * COCO's figures, the paper's precision and recall, and bootstrap intervals, with cases worked by
 * hand. foreign/coco_compare.sh compares random cases with COCO's own program.
 */
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "qat/detect.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { SIDE = 1000 }; /* pixels */

/* A box from 0 to a share of the height, as wide as the picture: its IoU with a whole one is that
 * share. */
static qat_truth object(float share, int class)
{
    return (qat_truth){{0, 0, share, 1}, class, false, (double)share * SIDE * SIDE};
}

static qat_found found(float share, int class, float score)
{
    return (qat_found){{0, 0, share, 1}, class, score};
}

static qat_coco_figures figures_of(const qat_scored_picture *pictures, int n, int classes)
{
    qat_scored_set const set = {pictures, n, classes};
    qat_coco_figures f;
    qat_error err;
    qat_status const st = qat_average_precision(&f, &set, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return f;
}

static void close_to(double found_, double expected)
{
    ck_assert_double_eq_tol(found_, expected, 1e-14);
}

START_TEST(overlaps_decide_at_each_threshold)
{
    qat_truth const truth = object(1, 0);
    qat_found const f = found(0.71875f, 0, 0.5f); /* correct at 0.5, 0.55, 0.6, 0.65, 0.7 */
    qat_scored_picture const p = {SIDE, SIDE, &truth, 1, &f, 1};
    qat_coco_figures const c = figures_of(&p, 1, 1);
    close_to(c.ap50, 1);
    close_to(c.ap75, 0);
    close_to(c.ap, 0.5);
    close_to(c.ar1, 0.5);
    close_to(c.ap_large, 0.5);
    close_to(c.ap_small, -1);
    qat_scored_picture const none = {SIDE, SIDE, &truth, 1, NULL, 0};
    close_to(figures_of(&none, 1, 1).ap, 0);
    qat_scored_picture const empty = {SIDE, SIDE, NULL, 0, &f, 1};
    close_to(figures_of(&empty, 1, 1).ap, -1);
}
END_TEST

START_TEST(a_box_whose_corners_are_not_numbers_is_wrong)
{
    qat_truth const truth[2] = {object(1, 0), object(1, 0)};
    qat_found const f[2] = {found(NAN, 0, 0.75f), found(1, 0, 0.5f)};
    qat_scored_picture const p = {SIDE, SIDE, truth, 2, f, 2};
    qat_coco_figures const c = figures_of(&p, 1, 1);
    close_to(c.ap, 51 * 0.5 / 101); /* half of the objects are found, with a precision of 1/2 */
    close_to(c.ar1, 0);
}
END_TEST

START_TEST(precision_is_averaged_over_recalls)
{
    /* By score: correct, wrong, correct; two objects in two pictures. Precision 1 up to recall 1/2
     * (51 of the 101 recalls), 2/3 up to 1 (the other 50). */
    qat_truth const truth[2] = {object(1, 0), object(1, 0)};
    qat_found const first[2] = {found(0.25f, 0, 0.75f), found(1, 0, 0.875f)};
    qat_found const second = found(1, 0, 0.5f);
    qat_scored_picture const p[2] = {{SIDE, SIDE, &truth[0], 1, first, 2},
                                     {SIDE, SIDE, &truth[1], 1, &second, 1}};
    qat_coco_figures const c = figures_of(p, 2, 1);
    close_to(c.ap, (51 + 50 * 2.0 / 3) / 101);
    close_to(c.ar1, 1);
}
END_TEST

START_TEST(a_box_found_twice_is_wrong_once)
{
    qat_truth const truth = object(1, 0);
    qat_found const twice[2] = {found(0.9375f, 0, 0.5f), found(1, 0, 0.25f)};
    qat_scored_picture const p = {SIDE, SIDE, &truth, 1, twice, 2};
    qat_scored_set const set = {&p, 1, 1};
    qat_precision_recall r;
    close_to(figures_of(&p, 1, 1).ap50, 1);
    ck_assert_int_eq(qat_precision_and_recall(&r, &set, 0, NULL), QAT_OK);
    close_to(r.precision, 0.5); /* at 0.95 the worse box is the correct one */
    close_to(r.recall, 1);
    ck_assert_int_eq(qat_precision_and_recall(&r, &set, 0.5f, NULL), QAT_OK);
    close_to(r.precision, 0.9);
    close_to(r.recall, 0.9);
    close_to(r.recall_at[9], 0);
    ck_assert_int_eq(qat_precision_and_recall(&r, &set, 0.75f, NULL), QAT_OK);
    close_to(r.precision, 1);
    close_to(r.recall, 0);
}
END_TEST

START_TEST(crowds_and_areas_out_of_range_do_not_count)
{
    qat_truth truth[2] = {object(0.5f, 0), {{0.5f, 0, 1, 1}, 0, true, 1}};
    qat_found const f[3] = {{{0.5f, 0, 0.75f, 1}, 0, 0.875f}, /* in the crowd */
                            {{0.625f, 0, 1, 1}, 0, 0.75f},    /* once more */
                            {{0, 0, 0.5f, 1}, 0, 0.5f}};
    qat_scored_picture p = {SIDE, SIDE, truth, 2, f, 3};
    close_to(figures_of(&p, 1, 1).ap, 1);
    /* An object of 1 pixel now: at 0.5 the first box is on it and the second wrong, up to 0.75 it
     * is the other way round, beyond both are wrong. */
    truth[1].crowd = false;
    close_to(figures_of(&p, 1, 1).ap_large, (6 / 2.0 + 4 / 3.0) / 10);
    truth[0].area = 2000; /* medium: both boxes above are large, and on an object out of range */
    qat_coco_figures const c = figures_of(&p, 1, 1);
    close_to(c.ap_medium, 1);
    close_to(c.ap_large, -1);
}
END_TEST

START_TEST(classes_count_alike_and_those_without_objects_not)
{
    qat_truth const truth[3] = {object(1, 0), object(1, 2), object(0.5f, 2)};
    qat_found const f[3] = {found(1, 0, 0.5f), found(1, 1, 0.75f), found(0.25f, 2, 0.25f)};
    qat_scored_picture const p = {SIDE, SIDE, truth, 3, f, 3};
    qat_coco_figures const c = figures_of(&p, 1, 3);
    close_to(c.ap50, (1 + 51.0 / 101) / 2);
    qat_truth const wrong = object(1, 3);
    qat_scored_picture const bad = {SIDE, SIDE, &wrong, 1, f, 3};
    qat_scored_set const set = {&bad, 1, 3};
    qat_coco_figures none;
    qat_error err;
    ck_assert_int_eq(qat_average_precision(&none, &set, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "object 0 of picture 0 has class 3"));
}
END_TEST

START_TEST(at_most_a_hundred_boxes_count)
{
    qat_truth const truth = object(1, 0);
    qat_found f[101];
    for (int i = 0; i < 101; i++)
        f[i] = found(0.25f, 0, 0.5f);
    f[100] = found(1, 0, 0.5f); /* the last of equal scores */
    qat_scored_picture p = {SIDE, SIDE, &truth, 1, f, 101};
    close_to(figures_of(&p, 1, 1).ap, 0);
    p.found = f + 1;
    p.n_found = 100;
    close_to(figures_of(&p, 1, 1).ap, 0.01);
}
END_TEST

START_TEST(intervals_hold_what_resampling_gives)
{
    qat_truth const truth = object(1, 0);
    qat_found const good = found(1, 0, 0.5f), bad = found(0.25f, 0, 0.5f);
    qat_scored_picture p[40];
    qat_scored_set const set = {p, 40, 1};
    qat_ap_interval a, b;
    for (int i = 0; i < 40; i++)
        p[i] = (qat_scored_picture){SIDE, SIDE, &truth, 1, &good, 1};
    ck_assert_int_eq(qat_ap50_interval(&a, &set, 50, 1, 0.95, NULL), QAT_OK);
    close_to(a.low, 1);
    close_to(a.high, 1);
    for (int i = 0; i < 40; i += 2)
        p[i].found = &bad;
    double const ap50 = figures_of(p, 40, 1).ap50;
    ck_assert_int_eq(qat_ap50_interval(&a, &set, 400, 1, 0.95, NULL), QAT_OK);
    ck_assert(0 < a.low && a.low < ap50 && ap50 < a.high && a.high < 1);
    ck_assert_int_eq(qat_ap50_interval(&b, &set, 400, 1, 0.95, NULL), QAT_OK);
    ck_assert(a.low == b.low && a.high == b.high);
    ck_assert_int_eq(qat_ap50_interval(&b, &set, 400, 1, 0.5, NULL), QAT_OK);
    ck_assert(a.low < b.low && b.high < a.high);
    ck_assert_int_eq(qat_ap50_interval(&b, &set, 0, 1, 0.5, NULL), QAT_ERR_ARGUMENT);

    /* Of 200, a share of 0.025 is the fifth, as one of 0.0245 is; one of 0.0255 is the sixth. */
    qat_ap_interval fifth, sixth;
    ck_assert_int_eq(qat_ap50_interval(&a, &set, 200, 1, 0.95, NULL), QAT_OK);
    ck_assert_int_eq(qat_ap50_interval(&fifth, &set, 200, 1, 0.951, NULL), QAT_OK);
    ck_assert_int_eq(qat_ap50_interval(&sixth, &set, 200, 1, 0.949, NULL), QAT_OK);
    ck_assert(fifth.low < sixth.low && a.low == fifth.low);
}
END_TEST

/* One picture in three has an object: without it a resample has no precision, and does not count.
 */
START_TEST(resamples_without_objects_are_left_out)
{
    qat_truth const truth = object(1, 0);
    qat_found const good = found(1, 0, 0.5f);
    qat_scored_picture p[3] = {[0] = {SIDE, SIDE, &truth, 1, &good, 1}};
    qat_scored_set const set = {p, 3, 1};
    qat_ap_interval a;
    ck_assert_int_eq(qat_ap50_interval(&a, &set, 200, 1, 0.95, NULL), QAT_OK);
    close_to(a.low, 1);
    close_to(a.high, 1);
    p[0].n_truth = 0;
    ck_assert_int_eq(qat_ap50_interval(&a, &set, 200, 1, 0.95, NULL), QAT_OK);
    ck_assert(a.low == -1 && a.high == -1);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
    qat_truth const truth = object(1, 0);
    qat_found const f = found(1, 0, 0.5f);
    qat_scored_picture const p = {SIDE, SIDE, &truth, 1, &f, 1};
    qat_scored_set const set = {&p, 1, 1};
    qat_coco_figures c;
    qat_ap_interval interval;
    bool failed;
    long n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = qat_average_precision(&c, &set, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    } while (failed);
    n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = qat_ap50_interval(&interval, &set, 2, 1, 0.5, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    } while (failed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("average_precision");
    TCase *tc = tcase_create("average_precision");
    tcase_add_test(tc, overlaps_decide_at_each_threshold);
    tcase_add_test(tc, a_box_whose_corners_are_not_numbers_is_wrong);
    tcase_add_test(tc, precision_is_averaged_over_recalls);
    tcase_add_test(tc, a_box_found_twice_is_wrong_once);
    tcase_add_test(tc, crowds_and_areas_out_of_range_do_not_count);
    tcase_add_test(tc, classes_count_alike_and_those_without_objects_not);
    tcase_add_test(tc, at_most_a_hundred_boxes_count);
    tcase_add_test(tc, intervals_hold_what_resampling_gives);
    tcase_add_test(tc, resamples_without_objects_are_left_out);
    tcase_add_test(tc, no_memory_is_an_error);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

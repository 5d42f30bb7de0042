/** Boxes, anchors, matching, mining and choosing, with cases worked by hand. */
#include "autograd/losses/hard_negatives.h"
#include "base/rank.h"
#include "base/rng.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "qat/detect.h"

#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ boxes */

START_TEST(overlap_is_shared_over_covered_area)
{
    qat_box const a = {0, 0, 0.5f, 0.5f}, right = {0, 0.25f, 0.5f, 0.75f};
    qat_box const inside = {0.125f, 0.125f, 0.375f, 0.375f}, apart = {0.5f, 0.5f, 1, 1};
    qat_box const flat = {0.25f, 0, 0.25f, 0.5f};
    ck_assert(qat_box_iou(&a, &a) == 1);
    ck_assert(qat_box_iou(&a, &right) == 0.125f / (0.25f + 0.25f - 0.125f)); /* 1/3 */
    ck_assert(qat_box_iou(&a, &inside) == 0.25f);
    ck_assert(qat_box_iou(&a, &apart) == 0);
    ck_assert(qat_box_iou(&a, &flat) == 0);
    ck_assert(qat_box_covered(&inside, &a) == 1 && qat_box_covered(&a, &inside) == 0.25f);
    ck_assert(qat_box_covered(&flat, &a) == 0);
}
END_TEST

START_TEST(codes_are_offsets_in_anchor_sizes_and_logarithms)
{
    qat_centre_box const anchor = {0.5f, 0.25f, 0.5f, 0.125f};
    qat_box const same = qat_box_corners(&anchor), moved = {0.5f, 0.1875f, 1, 0.4375f};
    qat_centre_box const none = qat_box_encode(&qat_ssd_coder, &anchor, &same);
    qat_centre_box const code = qat_box_encode(&qat_ssd_coder, &anchor, &moved);
    ck_assert(none.y == 0 && none.x == 0 && none.height == 0 && none.width == 0);
    ck_assert(code.y == 5 && code.x == 5);                            /* half an anchor, times 10 */
    ck_assert(code.height == 0 && code.width == (float)(5 * log(2))); /* twice as wide */
}
END_TEST

START_TEST(decoding_undoes_encoding)
{
    qat_rng rng = qat_rng_at(7, 7, 7);
    for (int i = 0; i < 1000; i++) {
        float v[8];
        for (int k = 0; k < 8; k++)
            v[k] = (float)(0.01 + qat_rng_uniform(&rng));
        qat_centre_box const anchor = {v[0], v[1], v[2], v[3]}, object = {v[4], v[5], v[6], v[7]};
        qat_box const box = qat_box_corners(&object);
        qat_centre_box const code = qat_box_encode(&qat_ssd_coder, &anchor, &box);
        qat_box const back = qat_box_decode(&qat_ssd_coder, &anchor, &code);
        ck_assert_float_eq_tol(back.ymin, box.ymin, 1e-6f);
        ck_assert_float_eq_tol(back.xmin, box.xmin, 1e-6f);
        ck_assert_float_eq_tol(back.ymax, box.ymax, 1e-6f);
        ck_assert_float_eq_tol(back.xmax, box.xmax, 1e-6f);
    }
}
END_TEST

/* ------------------------------------------------------------------ anchors */

static qat_anchor_spec mobilenet_300(void)
{
    static const int sides[] = {19, 10, 5, 3, 2, 1};
    qat_anchor_spec spec = qat_anchor_defaults();
    spec.n_layers = 6;
    for (int i = 0; i < 6; i++)
        spec.height[i] = spec.width[i] = sides[i];
    return spec;
}

static void expect_anchor(const qat_centre_box *a, double y, double x, double height, double width)
{
    ck_assert_float_eq_tol(a->y, (float)y, 1e-6f);
    ck_assert_float_eq_tol(a->x, (float)x, 1e-6f);
    ck_assert_float_eq_tol(a->height, (float)height, 1e-6f);
    ck_assert_float_eq_tol(a->width, (float)width, 1e-6f);
}

START_TEST(mobilenet_at_300_has_1917_anchors)
{
    qat_anchor_spec const spec = mobilenet_300();
    qat_centre_box *a;
    ck_assert_int_eq(qat_anchors_count(&spec), 1917);
    ck_assert_int_eq(qat_anchors_per_cell(&spec, 0), 3);
    ck_assert_int_eq(qat_anchors_per_cell(&spec, 1), 6);
    ck_assert_int_eq(qat_anchors_create(&a, &spec, NULL), QAT_OK);
    expect_anchor(&a[0], 0.5 / 19, 0.5 / 19, 0.1, 0.1);
    expect_anchor(&a[1], 0.5 / 19, 0.5 / 19, 0.2 / sqrt(2), 0.2 * sqrt(2));
    expect_anchor(&a[3 * 20 + 2], 1.5 / 19, 1.5 / 19, 0.2 * sqrt(2), 0.2 / sqrt(2));
    expect_anchor(&a[1083], 0.05, 0.05, 0.35, 0.35);
    expect_anchor(&a[1083 + 3], 0.05, 0.05, 0.35 / sqrt(3), 0.35 * sqrt(3));
    expect_anchor(&a[1083 + 6 + 5], 0.05, 0.15, sqrt(0.35 * 0.5), sqrt(0.35 * 0.5));
    expect_anchor(&a[1911], 0.5, 0.5, 0.95, 0.95);
    expect_anchor(&a[1916], 0.5, 0.5, sqrt(0.95), sqrt(0.95));
    free(a);
}
END_TEST

START_TEST(anchor_specs_out_of_range_are_refused)
{
    qat_anchor_spec spec = mobilenet_300();
    qat_centre_box *a;
    qat_error err;
    spec.max_scale = 0.1;
    ck_assert_int_eq(qat_anchors_create(&a, &spec, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "max_scale 0.1"));
    spec = mobilenet_300();
    spec.width[3] = 0;
    ck_assert_int_eq(qat_anchors_create(&a, &spec, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "width 0 (number 3)"));
    spec = mobilenet_300();
    for (int i = 0; i < 6; i++)
        spec.height[i] = spec.width[i] = 4096;
    ck_assert_int_eq(qat_anchors_count(&spec), -1);
    ck_assert_int_eq(qat_anchors_create(&a, &spec, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(a);
    spec = mobilenet_300();
    spec.n_layers = QAT_MAX_ANCHOR_LAYERS + 1;
    ck_assert_int_eq(qat_anchors_count(&spec), -1);
    ck_assert_int_eq(qat_anchors_create(&a, &spec, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "number of layers 9"));
    spec = mobilenet_300();
    spec.height[0] = -spec.height[0];
    ck_assert_int_eq(qat_anchors_count(&spec), -1);
    for (int i = 0; i < 6; i++)
        spec.height[i] = spec.width[i] = INT_MAX;
    ck_assert_int_eq(qat_anchors_count(&spec), -1);
}
END_TEST

/* ------------------------------------------------------------------ matching */

/* Four anchors in a row, a quarter of the picture wide and all of its height. */
static const qat_centre_box row[] = {{0.5f, 0.125f, 1, 0.25f},
                                     {0.5f, 0.375f, 1, 0.25f},
                                     {0.5f, 0.625f, 1, 0.25f},
                                     {0.5f, 0.875f, 1, 0.25f}};

static void expect_match(const qat_truth *truth, int n, int a, int b, int c, int d)
{
    int32_t match[4], best[8];
    ck_assert_int_le(n, 8);
    qat_match_anchors(match, best, row, 4, truth, n, 0.5f);
    ck_assert_int_eq(match[0], a);
    ck_assert_int_eq(match[1], b);
    ck_assert_int_eq(match[2], c);
    ck_assert_int_eq(match[3], d);
}

static qat_truth object(float xmin, float xmax)
{
    return (qat_truth){.box = {0, xmin, 1, xmax}};
}

START_TEST(every_object_gets_its_best_anchor)
{
    enum { NONE = QAT_BACKGROUND };
    qat_truth truth[3] = {object(0.25f, 0.5f), object(0, 0.0625f), object(0, 0)};
    expect_match(truth, 0, NONE, NONE, NONE, NONE);
    expect_match(truth, 1, NONE, 0, NONE, NONE);
    expect_match(truth, 2, 1, 0, NONE, NONE); /* IoU 1/4 only, but the best there is */
    expect_match(truth, 3, 1, 0, NONE, NONE); /* no area: nothing overlaps it */
    truth[0] = object(0, 0.5f);
    expect_match(truth, 1, 0, 0, NONE, NONE); /* 1/2 with both: one is its own, one reaches 0.5 */
    truth[0] = object(0.25f, 0.46875f);
    truth[1] = object(0.28125f, 0.46875f);       /* 7/8 and 3/4 with the same anchor */
    expect_match(truth, 2, NONE, 0, NONE, NONE); /* the second overlaps no other: it goes without */
    truth[0] = object(0, 0.375f);
    truth[1] = object(0, 0.25f); /* 2/3 and 1 with anchor 0; 1/4 of the first with anchor 1 */
    expect_match(truth, 2, 1, 0, NONE, NONE);
}
END_TEST

START_TEST(a_box_that_is_no_number_hides_no_other)
{
    qat_truth truth[2] = {object(NAN, 0.25f), object(0.25f, 0.5f)};
    expect_match(truth, 2, QAT_BACKGROUND, 1, QAT_BACKGROUND, QAT_BACKGROUND);
    truth[1] = object(0, 0.5f); /* 1/2 with both */
    expect_match(truth, 2, 1, 1, QAT_BACKGROUND, QAT_BACKGROUND);
    expect_match(truth, 1, QAT_BACKGROUND, QAT_BACKGROUND, QAT_BACKGROUND, QAT_BACKGROUND);
}
END_TEST

START_TEST(anchors_in_a_crowd_are_left_out)
{
    qat_truth truth[2] = {object(0, 0.625f), object(0.25f, 0.5f)};
    truth[0].crowd = true;
    expect_match(truth, 1, QAT_IGNORED, QAT_IGNORED, QAT_IGNORED, QAT_BACKGROUND);
    expect_match(truth, 2, QAT_IGNORED, 1, QAT_IGNORED, QAT_BACKGROUND);
}
END_TEST

/* ------------------------------------------------------------------ mining */

START_TEST(the_hardest_negatives_are_chosen)
{
    double const loss[] = {0.1, 5, 0.3, 0.2, 9, 0.3, 0.25, 0.05};
    qat_real const class[] = {2, 0, 0, 0, -1, 0, 0, 1};
    static const struct {
        double ratio;
        int least;
        const char *chosen;
    } cases[] = {{0, 0, "10000001"},   {1, 0, "11100001"}, {1.5, 0, "11100101"},
                 {0.4, 1, "11000001"}, {3, 0, "11110111"}, {0, 4, "11100111"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t chosen[8];
        int32_t keys[8];
        int order[16];
        qat_mining const m = {loss, class, 8, cases[i].ratio, cases[i].least, chosen, keys, order};
        ck_assert_int_eq(qat_mine_negatives(&m), 2);
        for (int k = 0; k < 8; k++)
            ck_assert_msg(chosen[k] == cases[i].chosen[k] - '0', "case %zu, anchor %d", i, k);
    }
}
END_TEST

START_TEST(a_loss_that_is_no_number_is_not_hidden)
{
    float const nan[] = {NAN, -NAN};
    for (int i = 0; i < 2; i++) {
        double const loss[] = {1, 5, (double)nan[i], 7};
        qat_real const class[] = {1, 0, 0, 0};
        uint8_t chosen[4];
        int32_t keys[4];
        int order[8];
        qat_mining const m = {loss, class, 4, 1, 0, chosen, keys, order};
        ck_assert_int_eq(qat_mine_negatives(&m), 1);
        ck_assert_int_eq(chosen[2], 1);
    }
}
END_TEST

START_TEST(keys_rank_as_their_reals)
{
    float const rising[] = {-INFINITY, -3.5f, -1e-40f, 0, 1e-40f, 0.25f, 1, INFINITY};
    for (int i = 0; i < 7; i++)
        ck_assert_int_lt(qat_rank_key(rising[i]), qat_rank_key(rising[i + 1]));
    ck_assert_int_eq(qat_rank_key(-0.0f), qat_rank_key(0.0f));
}
END_TEST

/* ------------------------------------------------------------------ choosing */

/* Of row: boxes 0 and 1 moved to overlap by 3/5, box 3 far away. */
static const qat_centre_box moved[4] = {{0, 2.5f, 0, 0}, {0, -5, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};

static int choose(qat_found *found, const float *scores, qat_choice_rules rules)
{
    qat_error err;
    int n;
    qat_status const st =
        qat_choose_boxes(found, &n, &rules, &qat_ssd_coder, row, moved, scores, 4, 2, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return n;
}

static const qat_choice_rules plain = {.max_detections = 4,
                                       .max_classes = 1,
                                       .per_class = 4,
                                       .score_threshold = 0.1f,
                                       .iou_threshold = 0.5f};

/* [box, class]: box 0 and 1 (IoU 3/5) are of unlike classes, 2 is unsure. */
static const float scores[] = {0.75f, 0.5f, 0.25f, 0.875f, 0.0625f, 0.03125f, 0.125f, 0.0625f};

START_TEST(a_box_suppresses_what_overlaps_it)
{
    qat_found f[8];
    ck_assert_int_eq(choose(f, scores, plain), 2);
    ck_assert(f[0].label == 1 && f[0].score == 0.875f && f[0].box.xmin == 0.125f);
    ck_assert(f[1].label == 0 && f[1].score == 0.125f && f[1].box.xmin == 0.75f);
    qat_choice_rules rules = plain;
    rules.iou_threshold = 0.75f;
    ck_assert_int_eq(choose(f, scores, rules), 3);
    rules.max_detections = 1;
    ck_assert_int_eq(choose(f, scores, rules), 1);
    rules = plain;
    rules.score_threshold = 0.125f;
    ck_assert_int_eq(choose(f, scores, rules), 2); /* the threshold itself passes */
    rules.score_threshold = 0.5f;
    ck_assert_int_eq(choose(f, scores, rules), 1);
    rules.max_classes = 2;
    ck_assert_int_eq(choose(f, scores, rules), 2); /* the box's other class with it */
    ck_assert(f[1].label == 0 && f[1].score == 0.25f && f[1].box.xmin == f[0].box.xmin);
}
END_TEST

START_TEST(regular_suppression_is_within_a_class)
{
    qat_found f[8];
    qat_choice_rules rules = plain;
    rules.regular = true;
    ck_assert_int_eq(choose(f, scores, rules), 3);
    ck_assert(f[0].label == 1 && f[0].score == 0.875f);
    ck_assert(f[1].label == 0 && f[1].score == 0.75f);
    ck_assert(f[2].label == 0 && f[2].score == 0.125f);
    rules.per_class = 1;
    ck_assert_int_eq(choose(f, scores, rules), 2);
}
END_TEST

START_TEST(of_equal_scores_the_first_box_wins)
{
    float const equal[] = {0.5f, 0, 0.5f, 0, 0, 0, 0.5f, 0};
    qat_found f[4];
    ck_assert_int_eq(choose(f, equal, plain), 2);
    ck_assert(f[0].box.xmin == 0.0625f && f[1].box.xmin == 0.75f);
}
END_TEST

START_TEST(scores_and_rules_that_make_no_sense_are_refused)
{
    float bad[8] = {0, 0, 0, NAN, 0, 0, 0, 0};
    qat_choice_rules rules = plain;
    qat_found f[4];
    qat_error err;
    int n;
    ck_assert_int_eq(qat_choose_boxes(f, &n, &rules, &qat_ssd_coder, row, moved, bad, 4, 2, &err),
                     QAT_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(err.message, "score 1 of box 1 is"));
    qat_centre_box codes[4] = {{0, 0, 1e9f, 0}};
    ck_assert_int_eq(
        qat_choose_boxes(f, &n, &rules, &qat_ssd_coder, row, codes, scores, 4, 2, &err), QAT_OK);
    codes[2].x = INFINITY;
    ck_assert_int_eq(
        qat_choose_boxes(f, &n, &rules, &qat_ssd_coder, row, codes, scores, 4, 2, &err),
        QAT_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(err.message, "the code of box 2 is 0, inf, 0, 0"));
    rules.iou_threshold = 0;
    ck_assert_int_eq(
        qat_choose_boxes(f, &n, &rules, &qat_ssd_coder, row, moved, scores, 4, 2, &err),
        QAT_ERR_ARGUMENT);
    rules = plain;
    rules.max_detections = 0;
    ck_assert_int_eq(
        qat_choose_boxes(f, &n, &rules, &qat_ssd_coder, row, moved, scores, 4, 2, &err),
        QAT_ERR_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("detect");
    TCase *tc = tcase_create("detect");
    tcase_add_test(tc, overlap_is_shared_over_covered_area);
    tcase_add_test(tc, codes_are_offsets_in_anchor_sizes_and_logarithms);
    tcase_add_test(tc, decoding_undoes_encoding);
    tcase_add_test(tc, mobilenet_at_300_has_1917_anchors);
    tcase_add_test(tc, anchor_specs_out_of_range_are_refused);
    tcase_add_test(tc, every_object_gets_its_best_anchor);
    tcase_add_test(tc, a_box_that_is_no_number_hides_no_other);
    tcase_add_test(tc, anchors_in_a_crowd_are_left_out);
    tcase_add_test(tc, the_hardest_negatives_are_chosen);
    tcase_add_test(tc, a_loss_that_is_no_number_is_not_hidden);
    tcase_add_test(tc, keys_rank_as_their_reals);
    tcase_add_test(tc, a_box_suppresses_what_overlaps_it);
    tcase_add_test(tc, regular_suppression_is_within_a_class);
    tcase_add_test(tc, of_equal_scores_the_first_box_wins);
    tcase_add_test(tc, scores_and_rules_that_make_no_sense_are_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

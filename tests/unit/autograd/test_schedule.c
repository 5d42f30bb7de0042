/** Compares learning rates with closed forms. */
#include "common/suite.h"
#include "qat/graph.h"

#include <check.h>
#include <math.h>

static void assert_rate(const qat_schedule *schedule, int64_t step, double expected)
{
    ck_assert_double_eq_tol(qat_schedule_at(schedule, step), expected, 1e-12);
}

START_TEST(constant)
{
    qat_schedule const s = {.kind = QAT_SCHEDULE_CONSTANT, .rate = 0.3};
    assert_rate(&s, 0, 0.3);
    assert_rate(&s, 1000000, 0.3);
}
END_TEST

START_TEST(staircase)
{
    qat_schedule const s = {
        .kind = QAT_SCHEDULE_STAIRCASE, .rate = 0.8, .factor = 0.5, .every = 10};
    assert_rate(&s, 0, 0.8);
    assert_rate(&s, 9, 0.8);
    assert_rate(&s, 10, 0.4);
    assert_rate(&s, 39, 0.1);
}
END_TEST

START_TEST(exponential)
{
    qat_schedule const s = {
        .kind = QAT_SCHEDULE_EXPONENTIAL, .rate = 0.8, .factor = 0.25, .every = 10};
    assert_rate(&s, 0, 0.8);
    assert_rate(&s, 5, 0.4);
    assert_rate(&s, 10, 0.2);
    assert_rate(&s, 15, 0.1);
}
END_TEST

START_TEST(cosine)
{
    qat_schedule const s = {
        .kind = QAT_SCHEDULE_COSINE, .rate = 1, .final_rate = 0.2, .total = 120};
    assert_rate(&s, 0, 1);
    assert_rate(&s, 40, 0.2 + 0.8 * 0.75); /* cos(pi / 3) = 1/2 */
    assert_rate(&s, 60, 0.6);
    assert_rate(&s, 80, 0.2 + 0.8 * 0.25);
    assert_rate(&s, 120, 0.2);
    assert_rate(&s, 10000, 0.2);
}
END_TEST

START_TEST(polynomial)
{
    qat_schedule s = {.kind = QAT_SCHEDULE_POLYNOMIAL,
                      .rate = 1,
                      .final_rate = 0.2,
                      .power = 1,
                      .total = 110,
                      .warmup = 10};
    assert_rate(&s, 10, 1);
    assert_rate(&s, 35, 0.8); /* a quarter of the way */
    assert_rate(&s, 110, 0.2);
    assert_rate(&s, 5000, 0.2);
    s.power = 2;
    assert_rate(&s, 60, 0.2 + 0.8 / 4);
    s.power = 0.5;
    assert_rate(&s, 85, 0.2 + 0.8 / 2);
}
END_TEST

START_TEST(piecewise)
{
    qat_schedule s = {.kind = QAT_SCHEDULE_PIECEWISE,
                      .rate = 0.1,
                      .factor = 0.1,
                      .n_milestones = 2,
                      .milestones = {32000, 48000}};
    assert_rate(&s, 31999, 0.1);
    assert_rate(&s, 32000, 0.01);
    assert_rate(&s, 47999, 0.01);
    assert_rate(&s, 48000, 0.001);
    s.warmup = 400; /* milestones are moments of the run, whatever came before */
    assert_rate(&s, 399, 0.1);
    assert_rate(&s, 31999, 0.1);
    assert_rate(&s, 32000, 0.01);
    s.n_milestones = 0;
    assert_rate(&s, 90000, 0.1);
}
END_TEST

START_TEST(plateau)
{
    qat_schedule s = {.kind = QAT_SCHEDULE_PLATEAU, .rate = 0.8, .factor = 0.5, .warmup = 4};
    assert_rate(&s, 3, 0.8);
    s.drops = 3;
    assert_rate(&s, 1, 0.4);
    assert_rate(&s, 1000, 0.1);
}
END_TEST

START_TEST(warm_up_rises_to_the_rate_and_shifts_what_follows)
{
    qat_schedule s = {.kind = QAT_SCHEDULE_COSINE, .rate = 1, .total = 130, .warmup = 10};
    assert_rate(&s, 0, 0.1);
    assert_rate(&s, 4, 0.5);
    assert_rate(&s, 9, 1);
    assert_rate(&s, 10, 1);
    assert_rate(&s, 50, 0.75);
    assert_rate(&s, 70, 0.5);
    assert_rate(&s, 130, 0);
    s.kind = QAT_SCHEDULE_STAIRCASE;
    s.factor = 0.1;
    s.every = 20;
    assert_rate(&s, 29, 1);
    assert_rate(&s, 30, 0.1);
    s.kind = QAT_SCHEDULE_CONSTANT;
    assert_rate(&s, 500, 1);
}
END_TEST

START_TEST(empty_fields_divide_nothing_by_zero)
{
    qat_schedule s = {.kind = QAT_SCHEDULE_COSINE, .rate = 1, .final_rate = 0.5};
    assert_rate(&s, 0, 0.5); /* a run of no steps has ended */
    s.warmup = 5;
    assert_rate(&s, 7, 0.5);
    s = (qat_schedule){.kind = QAT_SCHEDULE_STAIRCASE, .rate = 1, .factor = 0.5};
    assert_rate(&s, 2, 0.25);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    tcase_add_test(tc, constant);
    tcase_add_test(tc, staircase);
    tcase_add_test(tc, exponential);
    tcase_add_test(tc, cosine);
    tcase_add_test(tc, polynomial);
    tcase_add_test(tc, piecewise);
    tcase_add_test(tc, plateau);
    tcase_add_test(tc, warm_up_rises_to_the_rate_and_shifts_what_follows);
    tcase_add_test(tc, empty_fields_divide_nothing_by_zero);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

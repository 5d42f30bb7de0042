/*
 * Weights that oscillate are frozen: when, at which code, and what then happens to their values,
 * gradients and parameters. All expected numbers are worked by hand.
 */
#include "common/quantizer_bench.h"
#include "common/suite.h"
#include "fakequant/ops.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { WEIGHTS = 5 };

/* Codes -3..3, s = 1: the last weight keeps the range. m = 1/2. */
#define BY_HALVES "bits=3 layout=int8 freezes=1 freeze_share=0.5 "

static const float *frozen_of(const struct bench *b)
{
    for (int i = 0; i < b->q->n_inputs; i++)
        if (strcmp(b->q->inputs[i]->name, "q/frozen") == 0)
            return b->q->inputs[i]->value;
    return NULL;
}

static void step_with(const struct bench *b, int64_t step, const float *x)
{
    qat_run const run = bench_train_at(step);
    memcpy(b->x->value, x, bench_count(b) * sizeof *x);
    qat_graph_forward(g, &run);
    qat_graph_update(g, &run);
}

static void expect_frozen(const struct bench *b, int weight, int code)
{
    ck_assert_int_eq((int)frozen_of(b)[weight], QAT_FROZEN_ZERO + code);
}

/* The first weight turns at steps 2 and 3: f = 1/2, 3/4. The third turns once: f falls again. The
 * fourth turns as the first does, but is at 2 more often: e = 1.75. */
static const float course[][WEIGHTS] = {
    {0.2f, -1, 0, 2, 3},   {1, 0, 1, 1, 3}, {0.4f, 1, 0, 2, 3},
    {0.9f, 2, 0.1f, 1, 3}, {1, 2, 0, 2, 3},
};

START_TEST(test_when_and_where)
{
    struct bench const b =
        bench_build("ema_grid_weights", BY_HALVES "threshold=0.6 last_threshold=0.6", true,
                    QAT_SHAPE(1, WEIGHTS));
    for (int t = 0; t < 3; t++) {
        step_with(&b, t, course[t]);
        for (int i = 0; i < WEIGHTS; i++)
            ck_assert_float_eq(frozen_of(&b)[i], 0);
    }
    step_with(&b, 3, course[3]);
    expect_frozen(&b, 0, 0); /* e = 0, 1/2, 1/4 */
    expect_frozen(&b, 3, 2); /* e = 2, 3/2, 7/4 */
    static const int free_ones[] = {1, 2, 4};
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(frozen_of(&b)[free_ones[i]], 0);
    /* the parameters stand at these codes, whatever the optimizer does */
    ck_assert_float_eq(b.x->value[0], 0);
    ck_assert_float_eq(b.x->value[3], 2);
    step_with(&b, 4, course[4]);
    ck_assert_float_eq(b.q->value[0], 0);
    ck_assert_float_eq(b.q->value[1], 2);
    ck_assert_float_eq(b.x->value[0], 0);
}
END_TEST

/* From 1 at the delay to 0 at step 10 along half a cosine: 0.75 is passed between steps 3 and 4. */
START_TEST(test_threshold_falls)
{
    struct bench const b =
        bench_build("ema_grid_weights", BY_HALVES "threshold=1 last_threshold=0 dampened=10", true,
                    QAT_SHAPE(1, WEIGHTS));
    static const float frequency[] = {0, 0, 0.5f, 0.75f, 0.875f, 0.9375f};
    static const float other[][WEIGHTS] = {{0, 0, 0, 0, 3}, {1, 0, 0, 0, 3}};
    ck_assert_float_lt(frequency[3], 0.79f); /* (1 + cos(0.3 pi)) / 2 */
    for (int t = 0; t < 5; t++) {
        ck_assert_float_eq(frozen_of(&b)[0], 0);
        step_with(&b, t, other[t % 2]);
    }
    ck_assert_float_gt(frequency[4], 0.66f); /* (1 + cos(0.4 pi)) / 2 */
    ck_assert_float_gt(frozen_of(&b)[0], 0);
}
END_TEST

/* A frozen weight follows the scale, has no gradient of its own, and gives the scale its code. */
START_TEST(test_gradients)
{
    static const float x[WEIGHTS] = {0.2f, -1.2f, 1.4f, 0.6f, 5}, up[WEIGHTS] = {1, 1, 1, 1, 1};
    struct bench const b =
        bench_build("lsq_weights", BY_HALVES "learn=1 dampen=1", true, QAT_SHAPE(1, WEIGHTS));
    float *frozen = (float *)frozen_of(&b);
    step_with(&b, 0, x);
    bench_learned(&b)[0] = 0.5f;
    frozen[0] = QAT_FROZEN_ZERO + 2;
    frozen[4] = QAT_FROZEN_ZERO - 1;
    frozen[2] = QAT_FROZEN_ZERO + 9; /* of more bits: the last code */
    qat_run const run = bench_train_at(1);
    qat_graph_forward(g, &run);
    static const float y[] = {1, -1, 1.5f, 0.5f, -0.5f};
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_float_eq(b.q->value[i], y[i]);
    bench_backward(&b, up, &run);
    /* dy/ds: 2, -2 + 2.4, 3, 1 - 1.2, -1; by sqrt(5 * 3). The draw to codes: 2 (x - y) */
    ck_assert_float_eq_tol(bench_learned_grad(&b)[0], (float)((2 + 0.4 + 3 - 0.2 - 1) / sqrt(15)),
                           1e-6f);
    static const float dx[] = {0, 1 - 0.4f, 0, 1 + 0.2f, 0};
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_float_eq_tol(b.x->grad[i], dx[i], 1e-6f);
    uint8_t codes[WEIGHTS];
    static const int exported[] = {2, -2, 3, 1, -1};
    qat_quantizer_codes(b.q, codes);
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_int_eq((int8_t)codes[i], exported[i]);
}
END_TEST

/* A checkpoint that is no run's may hold any number: then the last code is meant, or none. */
START_TEST(test_any_number)
{
    static const float x[WEIGHTS] = {0, 0, 0, 0, 3};
    struct bench const b =
        bench_build("ema_grid_weights", BY_HALVES "threshold=0", true, QAT_SHAPE(1, WEIGHTS));
    float *frozen = (float *)frozen_of(&b);
    frozen[0] = 1e30f;
    frozen[1] = INFINITY;
    frozen[2] = NAN;
    frozen[3] = 1;
    step_with(&b, 0, x);
    static const float y[] = {3, 3, 0, -3, 3};
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_float_eq(b.q->value[i], y[i]);
    for (int i = 0; i < 4; i++)
        b.q->inputs[3]->value[4 * i + 3] = INFINITY;
    for (int t = 1; t < 4; t++) {
        step_with(&b, t, course[t]);
        for (int i = 0; i < WEIGHTS; i++)
            ck_assert_msg(fabsf(b.q->value[i]) <= 3, "step %d, weight %d: %g", t, i,
                          (double)b.q->value[i]);
    }
}
END_TEST

/* An eval graph has frozen codes, and follows no weight. */
START_TEST(test_without_following)
{
    struct bench const b =
        bench_build("ema_grid_weights", "bits=3 freezes=1", true, QAT_SHAPE(1, WEIGHTS));
    ck_assert_int_eq(b.q->n_inputs, 3);
    for (int t = 0; t < 5; t++)
        step_with(&b, t, course[t]);
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_float_eq(frozen_of(&b)[i], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("freeze");
    TCase *tc = tcase_create("freeze");
    tcase_add_checked_fixture(tc, bench_setup, bench_teardown);
    tcase_add_test(tc, test_when_and_where);
    tcase_add_test(tc, test_threshold_falls);
    tcase_add_test(tc, test_gradients);
    tcase_add_test(tc, test_any_number);
    tcase_add_test(tc, test_without_following);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

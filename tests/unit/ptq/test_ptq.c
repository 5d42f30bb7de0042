/* Post-training quantization: calibrated and clipped ranges, biases that lose their mean error,
 * ranges for comparison. */
#include "common/fail_alloc.h"
#include "common/ptq_network.h"
#include "common/suite.h"
#include "fakequant/ops.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ calibration */

/** minmax is the float network's own extents over all batches, widened to hold 0. */
START_TEST(test_calibrate_minmax)
{
    float least = 0, most = 0;
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const qat_node *y = ptq_run(folded, seed);
        for (size_t k = 0; k < qat_shape_count(&y->shape); k++) {
            least = fminf(least, y->value[k]);
            most = fmaxf(most, y->value[k]);
        }
    }
    /* the input is quantized, as on the device: extents move a little */
    ck_assert_float_eq_tol(ptq_range_param("fc/bias/q/range")[0], least, 0.02f * (most - least));
    ck_assert_float_eq_tol(ptq_range_param("fc/bias/q/range")[1], most, 0.02f * (most - least));
    ck_assert_float_eq(ptq_range_param("conv1/relu/q/range")[0], 0);
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        qat_qparams p;
        if (qat_node_is_op(qat_graph_node(eval, i), "fake_quant"))
            ck_assert_int_eq(qat_node_qparams(qat_graph_node(eval, i), &p, NULL), QAT_OK);
    }
}
END_TEST

START_TEST(test_calibrate_clips)
{
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    float const most = ptq_range_param("conv1/relu/q/range")[1];
    ptq_calibrate("percentile:90");
    ck_assert_float_lt(ptq_range_param("conv1/relu/q/range")[1], most);
    ptq_calibrate("mse");
    ck_assert_float_le(ptq_range_param("conv1/relu/q/range")[1], most);
}
END_TEST

/** Weights of two bits with an outlier: clipped where that costs less, by tensor and by channel. */
START_TEST(test_clip_weights)
{
    qat_error err;
    options.layout = _i ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    options.weight_bits = 2;
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    qat_node *w = qat_graph_find(eval, "fc/weights");
    size_t const n = qat_shape_count(&w->shape);
    for (size_t k = 0; k < n; k++)
        w->value[k] = k % 2 ? 1 : -1;
    w->value[0] = -3;
    MUST(qat_clip_weights(eval, qat_estimator_find("percentile"), 90, &err));
    ck_assert_float_eq(w->value[0], -3); /* it is not for weights */
    MUST(qat_clip_weights(eval, qat_estimator_find("mse"), 0, &err));
    ck_assert_float_gt(w->value[0], -2);
    ck_assert_float_eq_tol(w->value[n - 2], -1, 0.05f);
}
END_TEST

/* ------------------------------------------------------------------ bias correction */

/** Mean of a layer's output by channel, float minus quantized: the largest. */
static double largest_mean_error(const char *name)
{
    double sums[16] = {0};
    const qat_node *x = NULL;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        ptq_run(folded, seed);
        ptq_run(eval, seed);
        x = qat_graph_find(folded, name);
        const qat_node *y = qat_graph_find(eval, name);
        for (size_t k = 0; k < qat_shape_count(&x->shape); k++)
            sums[k % (size_t)x->shape.dims[x->shape.rank - 1]] +=
                (double)x->value[k] - (double)y->value[k];
    }
    double largest = 0;
    int const channels = x->shape.dims[x->shape.rank - 1];
    for (int c = 0; c < channels; c++)
        largest = fmax(largest, fabs(sums[c]));
    return largest / (4 * (double)(qat_shape_count(&x->shape) / (size_t)channels));
}

START_TEST(test_bias_correction)
{
    static const char *const layers[] = {"conv1/bn", "dw2/bn", "conv3/offset", "fc/bias"};
    qat_error err;
    qat_bias_correction *c;
    double before[4];
    options.weight_bits = 3;
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    for (int i = 0; i < 4; i++)
        before[i] = largest_mean_error(layers[i]);
    MUST(qat_bias_correction_create(&c, folded, eval, &err));
    ck_assert_int_eq(qat_bias_correction_layers(c), 4);
    for (int i = 0; i < 4; i++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            ptq_feed(folded, seed);
            ptq_feed(eval, seed);
            qat_bias_correction_measure(c, i);
        }
        ck_assert_double_gt(qat_bias_correction_apply(c, i), 0);
    }
    qat_bias_correction_free(c);
    for (int i = 0; i < 4; i++) {
        ck_assert_double_gt(before[i], 1e-3);
        ck_assert_double_lt(largest_mean_error(layers[i]), 1e-5);
    }
}
END_TEST

/* ------------------------------------------------------------------ ranges for comparison */

/** Each batch by its own extents: as if it alone had been calibrated on. */
START_TEST(test_batch_ranges)
{
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    float const observed = ptq_range_param("conv1/relu/q/range")[2];
    qat_forget_ranges(eval);
    ck_assert_float_eq(observed, 1);
    ck_assert_float_eq(ptq_range_param("conv1/relu/q/range")[2], 0);
    ptq_run(eval, 7);
    const qat_node *q = qat_graph_find(eval, "fc/bias/q");
    float least = 0, most = 0, q_least = 0, q_most = 0;
    for (size_t k = 0; k < qat_shape_count(&q->shape); k++) {
        least = fminf(least, q->inputs[0]->value[k]);
        most = fmaxf(most, q->inputs[0]->value[k]);
        q_least = fminf(q_least, q->value[k]);
        q_most = fmaxf(q_most, q->value[k]);
    }
    float const step = (most - least) / 255;
    ck_assert_float_eq_tol(q_least, least, step);
    ck_assert_float_eq_tol(q_most, most, step);
}
END_TEST

/** FC of weights 2, -3 and bias 0.5 on an input in [-1, 1]: -4.5 .. 5.5; then ReLU. */
START_TEST(test_worst_case_by_hand)
{
    qat_error err;
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 2));
    x = qat_apply1(g, "fully_connected", "one", "units=1", x);
    x = qat_apply1(g, "bias", "one/bias", "", x);
    qat_graph_output(g, x);
    x = qat_apply1(g, "relu", "one/relu", "", x);
    qat_graph_output(g, x);
    options.layout = QAT_LAYOUT_INT8; /* weights -3 and 2 of 127 steps of 3/127: 2 is 1.9843 */
    ptq_make_folded();
    ptq_make_eval();
    memcpy(qat_graph_find(eval, "one/weights")->value, (const float[]){2, -3}, 8);
    qat_graph_find(eval, "one/bias")->inputs[1]->value[0] = 0.5f;
    MUST(qat_worst_case_ranges(eval, &err));
    ck_assert_float_eq_tol(ptq_range_param("one/bias/q/range")[0], -4.5f, 0.06f);
    ck_assert_float_eq_tol(ptq_range_param("one/bias/q/range")[1], 5.5f, 0.06f);
    ck_assert_float_eq(ptq_range_param("one/relu/q/range")[0], 0);
    ck_assert_float_eq_tol(ptq_range_param("one/relu/q/range")[1], 5.5f, 0.06f);
}
END_TEST

/** Where ranges are learned, their ends are not only what was seen. */
START_TEST(test_worst_case_of_learned_ranges)
{
    qat_error err;
    strcpy(options.activation_ranges, "lsq");
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ck_assert_int_eq(qat_worst_case_ranges(eval, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "conv1/relu/q") != NULL, "%s", err.message);
}
END_TEST

/**
 * These ranges contain everything that was observed, in a network with sums, concatenations and
 * pools.
 */
START_TEST(test_worst_case_holds_all)
{
    qat_error err;
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 4, 4, 3));
    qat_node *a = ptq_block(x, "conv2d", "a", "filters=4 kernel=3", "relu6");
    qat_node *b = ptq_block(a, "conv2d", "b", "filters=4 kernel=3", "relu");
    qat_node *both[] = {qat_apply2(g, "add", "sum", "", a, b),
                        qat_apply2(g, "mul", "product", "", a, b),
                        qat_apply2(g, "sub", "difference", "", a, b)};
    x = qat_apply(g, "concat", "join", "", 3, both);
    x = qat_apply1(g, "batch_norm", "own", "", x);
    x = qat_apply1(g, "average_pool2d", "pool", "kernel=2 stride=2", x);
    x = qat_apply1(g, "fully_connected", "fc", "units=3", x);
    qat_graph_output(g, qat_apply1(g, "softmax", "softmax", "", x));
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    float observed[64][2];
    int n = 0;
    for (int i = 0; i < qat_graph_nodes(eval); i++)
        if (strstr(qat_graph_node(eval, i)->name, "/q/range"))
            memcpy(observed[n++], qat_graph_node(eval, i)->value, sizeof observed[0]);
    ck_assert_int_ge(n, 5);
    MUST(qat_worst_case_ranges(eval, &err));
    n = 0;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        const qat_node *node = qat_graph_node(eval, i);
        if (!strstr(node->name, "/q/range"))
            continue;
        ck_assert_float_le(node->value[0], observed[n][0]);
        ck_assert_float_ge(node->value[1], observed[n][1]);
        n++;
    }
}
END_TEST

/* ------------------------------------------------------------------ out of memory */

static qat_status everything(qat_error *err)
{
    qat_calibrator *c = NULL;
    qat_bias_correction *b = NULL;
    qat_equalized result;
    qat_status st = qat_fold_batch_norm(&folded, g, BATCH, err);
    if (!st)
        st = qat_equalize(folded, &result, err);
    if (!st)
        st = qat_create_eval_graph(&eval, folded, &options, err);
    if (!st)
        st = qat_graph_plan(eval, BATCH, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_init_params(eval, 0);
        st = qat_calibrator_create(&c, eval, err);
    }
    if (!st)
        st = qat_clip_weights(eval, qat_estimator_find("mse"), 0, err);
    if (!st)
        st = qat_bias_correction_create(&b, folded, eval, err);
    if (!st)
        st = qat_worst_case_ranges(eval, err);
    qat_calibrator_free(c);
    qat_bias_correction_free(b);
    qat_graph_free(eval);
    qat_graph_free(folded);
    folded = eval = NULL;
    return st;
}

START_TEST(test_no_memory)
{
    qat_error err;
    long n = 0;
    bool failed;
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 2));
    x = qat_apply1(g, "fully_connected", "one", "units=2", x);
    x = qat_apply1(g, "relu", "one/relu", "", x);
    qat_graph_output(g, qat_apply1(g, "fully_connected", "two", "units=2", x));
    MUST(qat_graph_plan(g, BATCH, QAT_PLAN_KEEP, &err));
    qat_graph_init_params(g, 1);
    do {
        test_fail_alloc_after(n++);
        qat_status const st = everything(&err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    } while (failed);
    ck_assert_int_gt(n, 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ptq");
    tcase_add_checked_fixture(tc, ptq_setup, ptq_teardown);
    tcase_add_test(tc, test_calibrate_minmax);
    tcase_add_test(tc, test_calibrate_clips);
    tcase_add_test(tc, test_bias_correction);
    tcase_add_test(tc, test_batch_ranges);
    tcase_add_test(tc, test_worst_case_by_hand);
    tcase_add_test(tc, test_worst_case_of_learned_ranges);
    tcase_add_test(tc, test_worst_case_holds_all);
    tcase_add_test(tc, test_no_memory);
    tcase_add_loop_test(tc, test_clip_weights, 0, 2);
    Suite *suite = suite_create("ptq");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/**
 * The certificate of post-training quantization. Ranges from every estimator, clipped weights and
 * corrected biases are accepted as calibration makes them, in both layouts. If one of them is
 * changed, they are refused.
 */
#include "certify/certify.h"
#include "common/ptq_network.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEEDS = 4 };

static const char *const estimators[] = {"minmax", "percentile:90", "percentile:99", "mse"};
static const char *const ranges[] = {"conv1/relu/q/range", "conv3/relu/q/range", "fc/bias/q/range"};

/* ------------------------------------------------------------------ ranges */

static qat_status certify_ranges(const char *estimator, qat_error *err)
{
    cert_extents *extents = NULL;
    const qat_estimator *e;
    double parameter;
    ck_assert_int_eq(qat_estimator_parse(estimator, &e, &parameter, err), QAT_OK);
    qat_status st = cert_extents_create(&extents, folded, &options, err);
    for (uint64_t seed = 1; !st && seed <= SEEDS; seed++) {
        ptq_feed(folded, seed);
        cert_extents_batch(extents);
    }
    for (uint64_t seed = 1; !st && seed <= SEEDS; seed++) {
        ptq_feed(folded, seed);
        st = cert_extents_count(extents, err);
    }
    if (!st)
        st = cert_extents_check(extents, eval, e->name, parameter, err);
    cert_extents_free(extents);
    return st;
}

/** One end of one range times a factor. */
static void expect_refusal_of_range(const char *estimator, const char *name, int end, float factor)
{
    qat_error err = {0};
    qat_node *range = qat_graph_find(eval, name);
    float const kept = range->value[end];
    if (kept == 0)
        return;
    range->value[end] *= factor;
    ck_assert_msg(certify_ranges(estimator, &err) == QAT_ERR_MISMATCH,
                  "%s: end %d of %s times %g, and nothing noticed", estimator, end, name,
                  (double)factor);
    range->value[end] = kept;
}

START_TEST(test_ranges)
{
    const char *estimator = estimators[_i % 4];
    bool const minmax = strcmp(estimator, "minmax") == 0;
    qat_error err = {0};
    options.layout = _i < 4 ? QAT_LAYOUT_UINT8 : QAT_LAYOUT_INT8;
    options.activation_bits = _i < 4 ? 8 : 5;
    ptq_build_network(_i < 4 ? "relu" : "relu6");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate(estimator);
    ck_assert_msg(certify_ranges(estimator, &err) == QAT_OK, "%s: %s", estimator, err.message);
    for (int i = 0; i < 3; i++)
        for (int end = 0; end < 2; end++) {
            char name[64];
            snprintf(name, sizeof name, "%s", ranges[i]);
            if (!qat_graph_find(eval, name))
                snprintf(name, sizeof name, "%.*s6/q/range", (int)strlen(ranges[i]) - 8, ranges[i]);
            ck_assert_ptr_nonnull(qat_graph_find(eval, name));
            expect_refusal_of_range(estimator, name, end, 0.01f);
            expect_refusal_of_range(estimator, name, end, 0.6f);
            expect_refusal_of_range(estimator, name, end, 2);
            if (strcmp(estimator, "percentile:90") == 0) /* still within the extents */
                expect_refusal_of_range(estimator, name, end, 1.2f);
            if (minmax)
                expect_refusal_of_range(estimator, name, end, 0.999f);
            if (minmax)
                expect_refusal_of_range(estimator, name, end, 1.001f);
        }
}
END_TEST

/**
 * A fifth of the values lies far from the others, which all lie in one bin: the range by
 * percentile:70 is that bin. It may not be three bins. Values that are all equal are their range.
 */
START_TEST(test_far_values)
{
    qat_error err = {0};
    ptq_build_network("relu");
    ptq_make_folded();
    qat_node *weights = qat_graph_find(folded, "fc/weights");
    float *bias = qat_graph_find(folded, "fc/bias/bias")->value;
    bias[0] = _i ? 0.25f : 1e4f;
    for (size_t i = 0; _i && i < qat_shape_count(&weights->shape); i++)
        weights->value[i] = 0;
    for (int i = 1; _i && i < 5; i++)
        bias[i] = bias[0];
    ptq_make_eval();
    ptq_calibrate("percentile:70");
    float *range = qat_graph_find(eval, "fc/bias/q/range")->value;
    ck_assert_float_lt(range[1], 4);
    ck_assert_msg(certify_ranges("percentile:70", &err) == QAT_OK, "%s", err.message);
    range[1] = _i ? 0.2f : 3 * range[1];
    ck_assert_int_eq(certify_ranges("percentile:70", &err), QAT_ERR_MISMATCH);
}
END_TEST

/** A range that is missing, a value that is not finite. */
START_TEST(test_nothing_to_compare)
{
    qat_error err = {0};
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("mse");
    qat_node *range = qat_graph_find(eval, "fc/bias/q/range");
    char const kept = range->name[0];
    ((char *)(uintptr_t)range->name)[0] = '?';
    ck_assert_int_eq(certify_ranges("mse", &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "fc/bias: the calibrated network holds no range"));
    ((char *)(uintptr_t)range->name)[0] = kept;
    qat_graph_find(folded, "fc/bias/bias")->value[0] = NAN;
    ck_assert_int_eq(certify_ranges("mse", &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "not all finite"));
}
END_TEST

/* ------------------------------------------------------------------ weights */

static qat_status certify_weights(bool clips, bool corrects, qat_error *err)
{
    return cert_clipped_weights(folded, eval, &options, clips, corrects, err);
}

static void expect_refusal_of_weight(float *w, float value, const char *what)
{
    qat_error err = {0};
    float const kept = *w;
    *w = value;
    ck_assert_msg(certify_weights(true, true, &err) == QAT_ERR_MISMATCH, "%s: nothing noticed",
                  what);
    *w = kept;
}

/** Everything beyond a share of the largest weight, clipped to it. */
static void expect_refusal_of_clip(const char *name, float share)
{
    qat_error err = {0};
    qat_node *w = qat_graph_find(eval, name), *was = qat_graph_find(folded, name);
    size_t const n = qat_shape_count(&w->shape);
    float largest = 0;
    for (size_t k = 0; k < n; k++)
        largest = fmaxf(largest, fabsf(was->value[k]));
    for (size_t k = 0; k < n; k++)
        w->value[k] = fminf(fmaxf(was->value[k], -share * largest), share * largest);
    ck_assert_msg(certify_weights(true, true, &err) == QAT_ERR_MISMATCH,
                  "%s clipped to %g of its range, and nothing noticed", name, (double)share);
    ck_assert_ptr_nonnull(strstr(err.message, "another range has"));
}

/** By tensor and by channel, of few bits and 8; also weights with zero in the middle by tensor. */
START_TEST(test_clipped_weights)
{
    qat_error err = {0};
    options.layout = _i % 2 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    options.weight_bits = _i < 4 ? 3 : 8;
    options.n_layers = _i % 4 < 2 ? 0 : 1;
    options.layers[0] = qat_quant_layer_defaults("*");
    options.layers[0].symmetric = options.layout == QAT_LAYOUT_UINT8 ? 1 : -1;
    options.layers[0].per_channel = options.layout == QAT_LAYOUT_UINT8 ? -1 : 0;
    ptq_build_network("relu");
    ptq_make_folded();
    qat_graph_find(folded, "fc/weights")->value[5] = -2.5f; /* an outlier */
    ptq_make_eval();
    ck_assert_msg(certify_weights(false, false, &err) == QAT_OK, "%s", err.message);
    MUST(qat_clip_weights(eval, qat_estimator_find("mse"), 0, &err));
    ck_assert_msg(certify_weights(true, false, &err) == QAT_OK, "%d: %s", _i, err.message);
    qat_node *w = qat_graph_find(eval, "fc/weights");
    if (options.weight_bits == 3) /* some are, then */
        ck_assert_int_eq(certify_weights(false, false, &err), QAT_ERR_MISMATCH);
    for (size_t k = 1; k < 20; k += 7) {
        expect_refusal_of_weight(&w->value[k], 1.01f * w->value[k], "a weight further from 0");
        expect_refusal_of_weight(&w->value[k], -w->value[k], "a weight across 0");
        expect_refusal_of_weight(&w->value[k], NAN, "a weight that is no number");
    }
    expect_refusal_of_clip("fc/weights", 0.05f);
    if (options.weight_bits == 3 && options.n_layers)
        expect_refusal_of_clip("fc/weights", 1);
}
END_TEST

/** Parameters of a plugin's layer: which of them share a range only the plugin knows, but none may
 *  be further from 0 than before, or gone. */
START_TEST(test_parameters_of_a_plugin)
{
    static const qat_quant own = {.role = QAT_ROLE_CUSTOM};
    qat_error err = {0};
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    qat_op *op = (qat_op *)(uintptr_t)qat_graph_find(folded, "conv3")->op;
    qat_op const kept = *op;
    qat_op other = kept;
    other.name = "of a plugin";
    other.quant = &own;
    qat_graph_find(folded, "conv3")->op = &other;
    float *w = &qat_graph_find(eval, "conv3/weights")->value[2];
    float const was = *w;
    ck_assert_msg(certify_weights(true, true, &err) == QAT_OK, "%s", err.message);
    *w = 0.9f * was;
    ck_assert_msg(certify_weights(true, true, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(certify_weights(false, true, &err), QAT_ERR_MISMATCH);
    expect_refusal_of_weight(w, 1.1f * was, "a plugin's parameter further from 0");
    expect_refusal_of_weight(w, -0.5f * was, "a plugin's parameter across 0");
    *w = was;
    qat_node *bias = qat_graph_find(eval, "conv1/bn/bias");
    char *name = (char *)(uintptr_t)bias->name;
    name[0] = '?';
    ck_assert_int_eq(certify_weights(true, true, &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "conv1/bn/bias"));
    name[0] = 'c';
    qat_graph_find(folded, "conv3")->op = op;
}
END_TEST

/* ------------------------------------------------------------------ biases */

static void correct_biases(void)
{
    qat_error err;
    qat_bias_correction *c;
    MUST(qat_bias_correction_create(&c, folded, eval, &err));
    for (int i = 0; i < qat_bias_correction_layers(c); i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            ptq_feed(folded, seed);
            ptq_feed(eval, seed);
            qat_bias_correction_measure(c, i);
        }
        qat_bias_correction_apply(c, i);
    }
    qat_bias_correction_free(c);
}

static qat_status certify_biases(qat_error *err)
{
    cert_means *means = NULL;
    qat_status st = cert_means_create(&means, folded, eval, err);
    for (uint64_t seed = 1; !st && seed <= SEEDS; seed++) {
        ptq_feed(folded, seed);
        ptq_feed(eval, seed);
        cert_means_batch(means);
    }
    if (!st)
        st = cert_means_check(means, err);
    cert_means_free(means);
    return st;
}

/** Not corrected, corrected twice, with the wrong sign, by half; one channel or all. */
START_TEST(test_corrected_biases)
{
    static const char *const biases[] = {"conv1/bn/bias", "dw2/bn/bias", "conv3/offset/bias",
                                         "fc/bias/bias"};
    static const float factors[] = {0, 2, -1, 0.5f, 1.05f};
    qat_error err = {0};
    options.layout = _i ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_make_eval();
    ptq_calibrate("minmax");
    ck_assert_int_eq(certify_biases(&err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "conv1/bn, channel 0: its bias was to be corrected"));
    correct_biases();
    ck_assert_msg(certify_biases(&err) == QAT_OK, "%s", err.message);
    ck_assert_msg(certify_weights(false, true, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(certify_weights(false, false, &err), QAT_ERR_MISMATCH);
    for (int i = 0; i < 4; i++) {
        float *is = qat_graph_find(eval, biases[i])->value, kept = is[1];
        float const was = qat_graph_find(folded, biases[i])->value[1];
        ck_assert(kept > was || kept < was);
        for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
            is[1] = was + factors[k] * (kept - was);
            ck_assert_msg(certify_biases(&err) == QAT_ERR_MISMATCH,
                          "%s corrected %g times, and nothing noticed", biases[i],
                          (double)factors[k]);
        }
        is[1] = NAN;
        ck_assert_int_eq(certify_biases(&err), QAT_ERR_MISMATCH);
        ck_assert_int_eq(certify_weights(false, true, &err), QAT_ERR_MISMATCH);
        is[1] = kept;
    }
    qat_graph_find(eval, "conv3/weights")->value[0] *= 0.9f;
    ck_assert_int_eq(certify_weights(false, true, &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "nothing was to change it"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("calibration");
    tcase_add_checked_fixture(tc, ptq_setup, ptq_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_ranges, 0, 8);
    tcase_add_loop_test(tc, test_far_values, 0, 2);
    tcase_add_test(tc, test_nothing_to_compare);
    tcase_add_loop_test(tc, test_clipped_weights, 0, 8);
    tcase_add_test(tc, test_parameters_of_a_plugin);
    tcase_add_loop_test(tc, test_corrected_biases, 0, 2);
    Suite *suite = suite_create("certify calibration");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

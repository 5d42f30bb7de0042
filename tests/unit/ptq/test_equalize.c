/*
 * Before post-training quantization: folding and equalization do not change what the network
 * computes.
 */
#include "common/ptq_network.h"
#include "common/suite.h"
#include "ptq/layer_pairs.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ folding */

START_TEST(test_fold)
{
    ptq_build_network("relu");
    ptq_make_folded();
    ptq_same_function(g, folded);
    for (int i = 0; i < qat_graph_nodes(folded); i++)
        ck_assert(!qat_node_is_op(qat_graph_node(folded, i), "batch_norm"));
    ck_assert(qat_node_is_op(qat_graph_find(folded, "conv1/bn"), "bias"));
    ck_assert(qat_node_is_op(qat_graph_find(folded, "conv3/offset"), "bias"));
    ck_assert_ptr_nonnull(qat_graph_find(folded, "conv1/weights"));
}
END_TEST

/** A batch norm of its own, and weights that two layers share. */
START_TEST(test_fold_odd_ones)
{
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 4, 4, 3));
    x = qat_apply1(g, "batch_norm", "own", "", x);
    qat_node *a = qat_apply1(g, "conv2d", "a", "filters=3 kernel=3", x);
    a = qat_apply1(g, "batch_norm", "a/bn", "", a);
    qat_node *shared[] = {a, qat_graph_find(g, "a/weights")};
    qat_node *b = qat_apply(g, "conv2d", "b", "filters=3 kernel=3", 2, shared);
    b = qat_apply1(g, "bias", "b/bias", "", b);
    b = qat_apply1(g, "batch_norm", "b/bn", "", b);
    qat_graph_output(g, b);
    ptq_make_folded();
    ptq_same_function(g, folded);
    ck_assert(qat_node_is_op(qat_graph_find(folded, "own"), "batch_norm"));
    ck_assert_ptr_nonnull(qat_graph_find(folded, "b/folded"));
}
END_TEST

/* ------------------------------------------------------------------ equalization */

static double range_of(const char *head, int channel, int of_inputs)
{
    const qat_node *node = qat_graph_find(folded, head), *w = qat_weights_of(node);
    double range = 0;
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++) {
        int const c =
            of_inputs ? qat_input_channel(node, i, of_inputs) : qat_output_channel(node, i);
        range = c == channel ? fmax(range, fabs((double)w->value[i])) : range;
    }
    return range;
}

/** Ranges r1 = 1, 100 and r2 = 4, 0.01 become sqrt(r1 r2) = 2, 1 on both sides. */
START_TEST(test_equalize_by_hand)
{
    qat_error err;
    qat_equalized result;
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 2));
    x = qat_apply1(g, "fully_connected", "one", "units=2", x);
    x = qat_apply1(g, "bias", "one/bias", "", x);
    x = qat_apply1(g, "relu", "one/relu", "", x);
    x = qat_apply1(g, "fully_connected", "two", "units=2", x);
    qat_graph_output(g, x);
    ptq_make_folded();
    static const float w1[] = {1, -0.5f, 25, -100}, w2[] = {4, 0.01f, -1, 0.005f}, b[] = {3, -7};
    memcpy(qat_graph_find(folded, "one/weights")->value, w1, sizeof w1);
    memcpy(qat_graph_find(folded, "two/weights")->value, w2, sizeof w2);
    memcpy(qat_graph_find(folded, "one/bias")->inputs[1]->value, b, sizeof b);
    MUST(qat_equalize(folded, &result, &err));
    static const float v1[] = {2, -1, 0.25f, -1}, v2[] = {2, 1, -0.5f, 0.5f}, c[] = {6, -0.07f};
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq_tol(qat_graph_find(folded, "one/weights")->value[i], v1[i], 1e-6f);
        ck_assert_float_eq_tol(qat_graph_find(folded, "two/weights")->value[i], v2[i], 1e-6f);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_float_eq_tol(qat_graph_find(folded, "one/bias")->inputs[1]->value[i], c[i],
                               1e-6f);
    ck_assert_int_eq(result.pairs, 1);
    ck_assert_double_eq_tol(result.worst_ratio, 100, 1e-3);
    ck_assert_double_eq_tol(result.worst_ratio_after, 2, 1e-3);
}
END_TEST

/** Through depthwise layers, pools and flattening; every pair ends up with equal ranges. */
START_TEST(test_equalize_network)
{
    static const struct {
        const char *first, *second;
        int channels;
    } pairs[] = {{"conv1", "dw2", 6}, {"dw2", "conv3", 6}, {"conv3", "fc", 4}};
    qat_error err;
    qat_equalized result;
    ptq_build_network("relu");
    ptq_make_folded();
    MUST(qat_equalize(folded, &result, &err));
    ptq_same_function(g, folded);
    ck_assert_int_eq(result.pairs, 3);
    ck_assert_int_eq(result.behind_bound, 0);
    ck_assert_double_lt(result.worst_ratio_after, result.worst_ratio);
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < pairs[k].channels; c++) {
            double const r1 = range_of(pairs[k].first, c, 0);
            double const r2 = range_of(pairs[k].second, c, pairs[k].channels);
            ck_assert_double_eq_tol(r1 / r2, 1, 3e-3);
        }
}
END_TEST

/** ReLU6 has one bound for all channels, so nothing behind it is changed. */
START_TEST(test_equalize_relu6)
{
    qat_error err;
    qat_equalized result;
    ptq_build_network("relu6");
    ptq_make_folded();
    double const before = range_of("dw2", 1, 0);
    MUST(qat_equalize(folded, &result, &err));
    ck_assert_int_eq(result.pairs, 1); /* conv3 - fc */
    ck_assert_int_eq(result.behind_bound, 2);
    ck_assert_double_eq(range_of("dw2", 1, 0), before);
    ptq_same_function(g, folded);
}
END_TEST

/** The folded network, with the weights of conv3's channel 0 multiplied by a factor. */
static void build_with_channel_0_times(float factor)
{
    ptq_build_network("relu");
    ptq_make_folded();
    for (int i = 0; i < 6; i++)
        qat_graph_find(folded, "conv3/weights")->value[i] *= factor;
}

/** A channel that is always 0, read by an outlier; and one that nobody reads. */
START_TEST(test_equalize_dead_channels)
{
    qat_error err;
    qat_equalized result;
    build_with_channel_0_times(0);
    qat_node *w2 = qat_graph_find(folded, "fc/weights");
    qat_node *b = qat_graph_find(folded, "conv3/offset")->inputs[1];
    b->value[0] = -1;
    w2->value[0] = 1000; /* reads channel 0 */
    for (size_t i = 2; i < qat_shape_count(&w2->shape); i += 4)
        w2->value[i] = 0; /* nothing reads channel 2 */
    float before[BATCH * 5];
    memcpy(before, ptq_run(folded, 9)->value, sizeof before);
    MUST(qat_equalize(folded, &result, &err));
    const float *after = ptq_run(folded, 9)->value;
    for (int i = 0; i < BATCH * 5; i++)
        ck_assert_float_eq_tol(after[i], before[i], 1e-5f);
    ck_assert_float_eq(w2->value[0], 0);
    ck_assert_double_eq(range_of("conv3", 2, 0), 0);
    b->value[0] = 1; /* constant, not 0: what reads it stays */
    w2->value[0] = 1000;
    MUST(qat_equalize(folded, &result, &err));
    ck_assert_float_eq(w2->value[0], 1000);
}
END_TEST

/** Weights that do nothing beside a bias are left alone, and count in no ratio. */
START_TEST(test_equalize_tiny_channels)
{
    qat_error err;
    qat_equalized result;
    build_with_channel_0_times(1e-30f);
    qat_node *w2 = qat_graph_find(folded, "fc/weights");
    qat_node *b = qat_graph_find(folded, "conv3/offset")->inputs[1];
    b->value[0] = 0.5f;
    float const read = w2->value[0];
    MUST(qat_equalize(folded, &result, &err));
    ck_assert_double_lt(range_of("conv3", 0, 0), 1e-25); /* the layer before may scale its inputs */
    ck_assert_float_eq(b->value[0], 0.5f);
    ck_assert_float_eq(w2->value[0], read);
    ck_assert_double_lt(result.worst_ratio, 1e6);
}
END_TEST

/** Two readers, an output in between, and a sum: in none of these cases is there a pair. */
START_TEST(test_no_pairs)
{
    qat_error err;
    qat_equalized result;
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 4, 4, 3));
    qat_node *a = qat_apply1(g, "conv2d", "a", "filters=3 kernel=1", x);
    qat_node *b = qat_apply1(g, "conv2d", "b", "filters=3 kernel=1", a);
    qat_node *c =
        qat_apply1(g, "conv2d", "c", "filters=3 kernel=1", qat_apply2(g, "add", "sum", "", a, b));
    qat_graph_output(g, c);
    qat_graph_output(g, qat_apply1(g, "conv2d", "d", "filters=2 kernel=1", c));
    ptq_make_folded();
    MUST(qat_equalize(folded, &result, &err));
    ck_assert_int_eq(result.pairs, 0);
    ck_assert_double_eq(result.worst_ratio, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("equalize");
    tcase_add_checked_fixture(tc, ptq_setup, ptq_teardown);
    tcase_add_test(tc, test_fold);
    tcase_add_test(tc, test_fold_odd_ones);
    tcase_add_test(tc, test_equalize_tiny_channels);
    tcase_add_test(tc, test_equalize_by_hand);
    tcase_add_test(tc, test_equalize_network);
    tcase_add_test(tc, test_equalize_relu6);
    tcase_add_test(tc, test_equalize_dead_channels);
    tcase_add_test(tc, test_no_pairs);
    Suite *suite = suite_create("equalize");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

/* Networks by their numbers and layer by layer: shapes, costs, and what is refused. */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "unit/networks/network_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_convnet)
{
    qat_graph *g = build("[model]\nfilters = 4, 6\nstrides = 1, 2\nhidden = 5\ndropout = 0.5\n",
                         input_of(9, 9, 1, 3));
    check_shape(g, "input", "[1, 9, 9, 1]");
    check_shape(g, "conv1/relu", "[1, 9, 9, 4]");
    check_shape(g, "conv2/bn", "[1, 5, 5, 6]");
    check_shape(g, "pool", "[1, 1, 1, 6]");
    check_shape(g, "fc1/relu", "[1, 5]");
    check_shape(g, "dropout", "[1, 5]");
    check_shape(g, "logits/bias", "[1, 3]");
    check_shape(g, "loss", "[1]");
    ck_assert_int_eq(qat_graph_outputs(g), 1);
    ck_assert_str_eq(qat_graph_output_at(g, 0)->name, "logits/bias");
    qat_graph_free(g);
}
END_TEST

START_TEST(test_variants)
{
    qat_graph *g = build("[model]\nfilters = 4\nbatch_norm = no\nhead = flatten\n"
                         "activation = relu6\noutput = softmax\n",
                         input_of(8, 8, 1, 3));
    ck_assert_ptr_null(qat_graph_find(g, "conv1/bn"));
    ck_assert_ptr_nonnull(qat_graph_find(g, "conv1/bias"));
    ck_assert_str_eq(qat_graph_find(g, "conv1/relu")->op->name, "relu6");
    check_shape(g, "flatten", "[1, 64]");
    ck_assert_str_eq(qat_graph_output_at(g, 0)->op->name, "softmax");
    ck_assert_str_eq(qat_graph_find(g, "loss")->inputs[0]->name, "logits/bias");
    qat_graph_free(g);
}
END_TEST

START_TEST(test_mlp)
{
    qat_graph *g = build("[model]\narch = mlp\nhidden = 20, 10\n", input_of(4, 4, 1, 3));
    qat_layer_cost const t = totals(g);
    ck_assert_int_eq(t.parameters, 16 * 20 + 20 + 20 * 10 + 10 + 10 * 3 + 3);
    ck_assert_int_eq(t.macs, 16 * 20 + 20 * 10 + 10 * 3);
    /* weights a byte each, bias four bytes a channel, one multiplier and shift a layer */
    ck_assert_int_eq(t.flash, t.macs + 4 * (20 + 10 + 3) + 3 * 8);
    ck_assert_int_eq(t.ram, 16 + 20); /* input and first layer */
    qat_graph_free(g);
}
END_TEST

static const char layers[] = "[model]\narch = layers\n"
                             "[layer.a]\nop = conv2d\nfilters = 4\nbatch_norm = yes\n"
                             "activation = relu\n"
                             "[layer.b]\nop = depthwise_conv2d\nkernel = 3\nbias = yes\n"
                             "[layer.c]\nop = conv2d\ninput = a\nfilters = 4\nkernel = 1\n"
                             "[layer.sum]\nop = add\ninput = b, c\nactivation = relu\n"
                             "[layer.cat]\nop = concat\ninput = sum, a\n"
                             "[layer.pool]\nop = global_average_pool\n"
                             "[layer.out]\nop = fully_connected\nunits = 3\nbias = true\n";

START_TEST(test_layers)
{
    qat_graph *g = build(layers, input_of(6, 6, 2, 3));
    ck_assert_str_eq(qat_graph_find(g, "b")->inputs[0]->name, "a/relu");
    ck_assert_str_eq(qat_graph_find(g, "sum")->inputs[0]->name, "b/bias");
    ck_assert_str_eq(qat_graph_find(g, "sum")->inputs[1]->name, "c");
    check_shape(g, "cat", "[1, 6, 6, 8]");
    ck_assert_str_eq(qat_graph_output_at(g, 0)->name, "out/bias");
    qat_graph_free(g);
}
END_TEST

START_TEST(test_layer_costs)
{
    qat_graph *g = build(layers, input_of(6, 6, 2, 3));
    qat_layer_cost *c;
    int n;
    ck_assert_int_eq(qat_network_costs(g, QAT_LAYOUT_INT8, &c, &n, NULL), QAT_OK);
    ck_assert_int_eq(n, 8);
    ck_assert_str_eq(c[0].op, "conv2d+batch_norm+relu");
    ck_assert_int_eq(c[0].macs, 36 * 4 * 9 * 2);
    ck_assert_int_eq(c[0].parameters, 4 * 9 * 2 + 8);
    ck_assert_int_eq(c[0].flash, 72 + 4 * 4 + 4 * 8); /* int8: multiplier and shift a channel */
    ck_assert_int_eq(c[0].ram, 72 + 144);
    ck_assert_int_eq(c[1].macs, 36 * 4 * 9);
    ck_assert_int_eq(c[1].ram, 144 + 144);       /* a, b */
    ck_assert_int_eq(c[2].ram, 144 + 144 + 144); /* a, b, c */
    ck_assert_int_eq(c[3].ram, 4 * 144);         /* a for cat, b, c, sum */
    ck_assert_str_eq(c[3].op, "add+relu");
    ck_assert_int_eq(c[4].ram, 2 * 144 + 288);
    ck_assert_str_eq(c[7].name, "total");
    ck_assert_int_eq(c[7].ram, 576);
    free(c);
    qat_graph_free(g);
}
END_TEST

/** If two layers share weights, these count once as parameters, and for both layers as codes. */
START_TEST(test_shared_parameters)
{
    qat_graph *g = build("[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 2\n"
                         "[layer.b]\nop = flatten\n[layer.c]\nop = fully_connected\nunits = 3\n",
                         input_of(2, 2, 2, 3));
    qat_layer_cost *c;
    qat_network_size size;
    int n;
    qat_node *const inputs[] = {qat_graph_find(g, "a"), qat_graph_find(g, "a/weights")};
    qat_graph_output(g, qat_apply(g, "conv2d", "again", "filters=2", 2, inputs));
    ck_assert_int_eq(qat_network_costs(g, QAT_LAYOUT_UINT8, &c, &n, NULL), QAT_OK);
    ck_assert_int_eq(c[0].parameters, 2 * 9 * 2);
    ck_assert_str_eq(c[2].name, "again");
    ck_assert_int_eq(c[2].parameters, 0);
    ck_assert_int_eq(c[2].flash, c[0].flash);
    ck_assert_int_eq(c[n - 1].parameters, 36 + 3 * 8);
    ck_assert_int_eq(qat_network_size_of(g, &size, NULL), QAT_OK);
    ck_assert_int_eq(size.parameters, size.training_parameters);
    free(c);
    qat_graph_free(g);
}
END_TEST

START_TEST(test_own_softmax)
{
    qat_graph *g = build("[model]\narch = layers\noutput = softmax\n"
                         "[layer.fc]\nop = fully_connected\nunits = 3\n[layer.p]\nop = softmax\n",
                         input_of(2, 2, 1, 3));
    ck_assert_str_eq(qat_graph_output_at(g, 0)->name, "p");
    ck_assert_str_eq(qat_graph_find(g, "loss")->inputs[0]->name, "fc");
    qat_graph_free(g);
}
END_TEST

START_TEST(test_signals)
{
    qat_graph *g = build("[model]\nfilters = 4, 8\nkernel = 5\n", input_of(1, 64, 3, 2));
    check_shape(g, "conv1/weights", "[4, 1, 5, 3]");
    check_shape(g, "conv2/relu", "[1, 1, 16, 8]");
    qat_graph_free(g);
    g = build("[model]\narch = layers\n[layer.c]\nop = conv2d\nfilters = 4\nkernel = 1\n"
              "kernel_w = 5\nstride = 1\nstride_w = 2\n"
              "[layer.f]\nop = fully_connected\nunits = 2\n",
              input_of(1, 64, 3, 2));
    check_shape(g, "c/weights", "[4, 1, 5, 3]");
    check_shape(g, "c", "[1, 1, 32, 4]");
    qat_graph_free(g);
}
END_TEST

#define L "[model]\narch = layers\n[layer.a]\n"

START_TEST(test_refused_layers)
{
    qat_input_info const in = input_of(6, 6, 2, 3);
    refuse("[model]\narch = layers\n", in, "n.ini:2: arch = layers, but there is no [layer.NAME]");
    refuse(L, in, "n.ini:3: [layer.a]: there is no op");
    refuse(L "op = convd2\n", in, "n.ini:4: [layer.a]: unknown op convd2; the nearest is conv2d");
    refuse(L "op = lstn\n", in, "n.ini:4: [layer.a]: unknown op lstn; the nearest is lstm");
    refuse(L "op = conv2d\nfilter = 4\n", in,
           "n.ini:5: [layer.a]: op conv2d has no attribute filter; the nearest key is filters");
    refuse(L "op = relu\nactivtion = relu\n", in, "the nearest key is activation");
    refuse(L "op = conv2d\n\nfilters = 0\n", in, "n.ini:6: ");
    refuse(L "op = conv2d\nfilters = 4\npadding = some\n", in, "n.ini:6: ");
    refuse(L "op = conv2d\nfilters = 4 5\n", in,
           "n.ini:5: [layer.a]: filters = '4 5': expected one value");
    refuse(L "op = relu\ninput = b\n", in,
           "n.ini:5: [layer.a]: input 'b' is not a layer above this one");
    refuse(L "op = relu\nbias = perhaps\n", in,
           "n.ini:5: [layer.a]: bias = perhaps: expected yes or no");
    refuse(L "op = relu\nactivation = rely\n", in, "n.ini:3: ");
    refuse(L "op = relu\nbias = on\nbatch_norm = off\nactivation = rely\n", in, "'rely'");
    refuse("[layer.a]\nop = relu\n", in, "n.ini:1: a [layer.a] section needs model.arch = layers");
}
END_TEST

START_TEST(test_refused_shapes)
{
    qat_input_info const in = input_of(6, 6, 2, 3);
    refuse(L "op = conv2d\nfilters = 4\nkernel = 9\npadding = valid\n", in, "n.ini:3: ");
    refuse(L "op = fully_connected\nunits = 4\n", in,
           "n.ini: the last layer, a, gives [1, 4], but 3 classes need [1, 3]");
    refuse(L "op = relu\n", in, "n.ini: the last layer, a, gives [1, 6, 6, 2]");
    refuse(L "op = fully_connected\nunits = 3\n[layer.b]\nop = add\ninput = a, input\n", in,
           "n.ini:6: ");
    refuse("[model]\nfilters = 4,5\nstrides = 1,2,3\n", in,
           "n.ini:3: model.strides has 3 numbers: give one, or 2 as in model.filters");
    refuse("[model]\nfilters =\n", in, "n.ini:2: model.filters is empty");
    refuse("[model]\narch = resnet\ndepth = 21\n", in, "n.ini:3: model.depth = 21");
}
END_TEST

START_TEST(test_out_of_memory)
{
    qat_recipe *r;
    qat_input_info const in = input_of(6, 6, 2, 3);
    ck_assert_int_eq(qat_recipe_parse(&r, layers, "n.ini", NULL, 0, NULL), QAT_OK);
    long n = 0;
    bool failed;
    do {
        qat_graph *g = NULL;
        qat_layer_cost *costs = NULL;
        int count;
        test_fail_alloc_after(n++);
        qat_status st = qat_network_build(&g, network_registry, r, &in, NULL);
        if (!st)
            st = qat_network_costs(g, QAT_LAYOUT_INT8, &costs, &count, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(costs);
        qat_graph_free(g);
    } while (failed);
    ck_assert_int_gt(n, 3);
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network");
    TCase *tc = tcase_create("network");
    tcase_add_checked_fixture(tc, network_setup, network_teardown);
    tcase_add_test(tc, test_convnet);
    tcase_add_test(tc, test_variants);
    tcase_add_test(tc, test_mlp);
    tcase_add_test(tc, test_layers);
    tcase_add_test(tc, test_layer_costs);
    tcase_add_test(tc, test_shared_parameters);
    tcase_add_test(tc, test_own_softmax);
    tcase_add_test(tc, test_signals);
    tcase_add_test(tc, test_refused_layers);
    tcase_add_test(tc, test_refused_shapes);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

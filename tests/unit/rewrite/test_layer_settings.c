/*
 * Other settings for single layers: which names match, the bits, schemes and ranges in the training
 * graph and the eval graph, layers that stay in float, and what is refused.
 */
#include "base/words.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "qat/convert.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *net, *made;
static qat_quant_options options;
static qat_error err;

/** image -> stem (bn, relu) -> a, b (convolutions) -> concat -> relu6'd conv -> flatten -> logits.
 */
static void build(void)
{
    qat_node *x = qat_graph_input(net, "image", QAT_SHAPE(1, 6, 6, 2));
    x = qat_apply1(net, "conv2d", "stem", "filters=4 kernel=3", x);
    x = qat_apply1(net, "batch_norm", "stem/bn", "", x);
    x = qat_apply1(net, "relu", "stem/relu", "", x);
    qat_node *a = qat_apply1(net, "conv2d", "block.a", "filters=3 kernel=1", x);
    qat_node *b = qat_apply1(net, "conv2d", "block.b", "filters=3 kernel=3", x);
    a = qat_apply1(net, "max_pool2d", "pool", "kernel=2 stride=1 padding=same", a);
    x = qat_apply(net, "concat", "join", "axis=3", 2, (qat_node *const[]){a, b});
    x = qat_apply1(net, "flatten", "flat", "", x);
    x = qat_apply1(net, "fully_connected", "logits", "units=5", x);
    x = qat_apply1(net, "softmax", "probabilities", "", x);
    qat_graph_output(net, x);
    ck_assert_msg(qat_graph_check(net, &err) == QAT_OK, "%s", err.message);
}

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&net, registry, &err), QAT_OK);
    options = qat_quant_defaults();
    made = NULL;
    build();
}

static void teardown(void)
{
    qat_graph_free(made);
    qat_graph_free(net);
    qat_registry_free(registry);
}

static qat_quant_layer * override(const char *pattern)
{
    options.layers[options.n_layers] = qat_quant_layer_defaults(pattern);
    return &options.layers[options.n_layers++];
}

static void rewrite(bool training)
{
    qat_graph_free(made);
    made = NULL;
    qat_status const st = training ? qat_create_training_graph(&made, net, &options, &err)
                                   : qat_create_eval_graph(&made, net, &options, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
}

static const qat_node *node_of(const char *name)
{
    const qat_node *node = qat_graph_find(made, name);
    ck_assert_msg(node != NULL, "there is no %s", name);
    return node;
}

static int bits_of(const char *name)
{
    return (int)qat_attr(node_of(name), "bits");
}

START_TEST(test_patterns)
{
    ck_assert(qat_matches("conv1", "conv1"));
    ck_assert(!qat_matches("conv1", "conv10"));
    ck_assert(qat_matches("*", ""));
    ck_assert(qat_matches("stage?/*/conv", "stage1/block2/conv"));
    ck_assert(qat_matches("*conv", "convconv"));
    ck_assert(qat_matches("a*b*c", "aXbbYc"));
    ck_assert(!qat_matches("a*b*c", "aXbbY"));
    ck_assert(!qat_matches("?", ""));
}
END_TEST

START_TEST(test_bits)
{
    override("block.*")->weight_bits = 4;
    override("block.b")->activation_bits = 3;
    override("@first")->weight_bits = 7;
    override("@last")->weight_bits = 6;
    override("image")->activation_bits = 5;
    override("probabilities")->activation_bits = 4;
    for (int training = 0; training < 2; training++) {
        rewrite(training != 0);
        ck_assert_int_eq(bits_of("stem/weights/q"), 7);
        ck_assert_int_eq(bits_of("block.a/weights/q"), 4);
        ck_assert_int_eq(bits_of("block.b/weights/q"), 4);
        ck_assert_int_eq(bits_of("logits/weights/q"), 6);
        ck_assert_int_eq(bits_of("image/q"), 5);
        ck_assert_int_eq(bits_of("stem/relu/q"), 8);
        ck_assert_int_eq(bits_of("block.a/q"), 8);
        ck_assert_int_eq(bits_of("block.b/q"), 3);
        ck_assert_int_eq(bits_of("join/q"), 8);
        ck_assert_int_eq(bits_of("probabilities/q"), 4);
        ck_assert_double_eq(qat_attr(node_of("probabilities/q"), "scale"), 1.0 / 16);
        /* a keeps the class's codes, b has others and is brought into it */
        ck_assert_ptr_eq(node_of("block.a/q")->inputs[1], node_of("join/q")->inputs[1]);
        ck_assert_str_eq(node_of("join")->inputs[1]->name, "join/in1/q");
        ck_assert_str_eq(node_of("join/in1/q")->inputs[0]->name, "block.b/q");
        ck_assert_ptr_eq(node_of("join/in1/q")->inputs[1], node_of("join/q")->inputs[1]);
    }
}
END_TEST

/* A tensor that only layers of few bits read has few bits; a bypass keeps all of them. */
START_TEST(test_input_bits)
{
    options.input_bits = 3;
    override("@first")->input_bits = 8;
    override("block.a")->input_bits = 2;
    for (int training = 0; training < 2; training++) {
        rewrite(training != 0);
        ck_assert_int_eq(bits_of("image/q"), 8);
        /* a wants 2 bits of it and b 3, so it has 3 */
        ck_assert_int_eq(bits_of("stem/relu/q"), 3);
        ck_assert_ptr_eq(node_of("block.b")->inputs[0], node_of("stem/relu/q"));
        ck_assert_ptr_eq(node_of("block.a")->inputs[0], node_of("block.a/in/q"));
        ck_assert_int_eq(bits_of("block.a/in/q"), 2);
        ck_assert_ptr_eq(node_of("block.a/in/q")->inputs[0], node_of("stem/relu/q"));
        ck_assert_str_eq(node_of("block.a/in/q")->inputs[1]->name, "block.a/in/q/range");
        /* logits reads them through the concatenation and flatten */
        ck_assert_int_eq(bits_of("block.a/q"), 3);
        ck_assert_int_eq(bits_of("block.b/q"), 3);
        ck_assert_int_eq(bits_of("join/q"), 3);
        ck_assert_ptr_eq(node_of("block.a/q")->inputs[1], node_of("join/q")->inputs[1]);
        ck_assert_ptr_eq(node_of("logits")->inputs[0], node_of("flat"));
        ck_assert_int_eq(bits_of("logits/q"), 8);
    }
}
END_TEST

/* Layers that read a tensor in the same way read one node. */
START_TEST(test_input_bits_are_shared)
{
    override("block.?")->input_bits = 4;
    qat_node *stem = qat_graph_find(net, "stem/relu");
    qat_graph_output(net, qat_apply1(net, "tanh", "bypass", "", stem));
    rewrite(true);
    ck_assert_int_eq(bits_of("stem/relu/q"), 8);
    ck_assert_ptr_eq(node_of("bypass")->inputs[0], node_of("stem/relu/q"));
    ck_assert_ptr_eq(node_of("block.a")->inputs[0], node_of("block.a/in/q"));
    ck_assert_ptr_eq(node_of("block.b")->inputs[0], node_of("block.a/in/q"));
    ck_assert_double_eq(qat_attr(node_of("block.a/in/q"), "commits"), 1);
    ck_assert_ptr_null(qat_graph_find(made, "block.b/in/q"));
    strcpy(override("block.b")->activation_ranges, "lsq");
    rewrite(true);
    ck_assert_ptr_eq(node_of("block.b")->inputs[0], node_of("block.b/in/q"));
    ck_assert_str_eq(node_of("block.b/in/q")->op->name, "lsq");
    ck_assert_str_eq(node_of("stem/relu/q")->op->name, "fake_quant");
}
END_TEST

/* Of several that match, the last one counts. */
START_TEST(test_last_one_wins)
{
    override("*")->weight_bits = 2;
    override("stem")->weight_bits = 5;
    rewrite(true);
    ck_assert_int_eq(bits_of("stem/weights/q"), 5);
    ck_assert_int_eq(bits_of("logits/weights/q"), 2);
}
END_TEST

START_TEST(test_schemes)
{
    override("stem")->symmetric = 1;
    rewrite(true);
    ck_assert_double_eq(qat_attr(node_of("stem/weights/q"), "symmetric"), 1);
    ck_assert_double_eq(qat_attr(node_of("logits/weights/q"), "symmetric"), 0);
    options = qat_quant_defaults();
    options.layout = QAT_LAYOUT_INT8;
    override("stem")->per_channel = 0;
    rewrite(true);
    ck_assert_int_eq(qat_quantizer_channels(node_of("stem/weights/q")), 1);
    ck_assert_int_eq(qat_quantizer_channels(node_of("logits/weights/q")), 5);
}
END_TEST

START_TEST(test_ranges)
{
    strcpy(options.weight_ranges, "lsq");
    strcpy(override("block.a")->weight_ranges, "tqt");
    strcpy(override("stem")->activation_ranges, "tqt");
    override("logits")->power_of_two = 1;
    rewrite(true);
    ck_assert_ptr_eq(node_of("stem/weights/q")->op, &qat_op_lsq_weights);
    ck_assert_ptr_eq(node_of("block.a/weights/q")->op, &qat_op_tqt_weights);
    ck_assert_ptr_eq(node_of("stem/relu/q")->op, &qat_op_tqt);
    ck_assert_ptr_eq(node_of("block.a/q")->op, &qat_op_fake_quant);
    ck_assert_ptr_eq(node_of("logits/q")->op, &qat_op_ema_grid);
    ck_assert_double_eq(qat_attr(node_of("logits/weights/q"), "power_of_two"), 1);
    const qat_node *learned = qat_node_learned(node_of("stem/relu/q"));
    ck_assert_str_eq(learned->name, "stem/relu/q/learned");
    ck_assert(learned->trainable && !learned->decay);
    ck_assert(qat_is_learned_range(learned->name) && qat_is_range(learned->name));
}
END_TEST

/* A class of learned ranges: one range, one set of learned values, one writer. */
START_TEST(test_learned_class)
{
    strcpy(options.activation_ranges, "tqt");
    rewrite(true);
    const qat_node *a = node_of("block.a/q"), *b = node_of("block.b/q"), *c = node_of("join/q");
    ck_assert_ptr_eq(a->inputs[QZ_RANGE], c->inputs[QZ_RANGE]);
    ck_assert_ptr_eq(b->inputs[QZ_RANGE], c->inputs[QZ_RANGE]);
    ck_assert_ptr_eq(qat_node_learned(a), qat_node_learned(c));
    ck_assert_ptr_eq(qat_node_learned(b), qat_node_learned(c));
    ck_assert_double_eq(qat_attr(a, "commits") + qat_attr(b, "commits"), 0);
    ck_assert_double_eq(qat_attr(c, "commits"), 1);
}
END_TEST

START_TEST(test_left_in_float)
{
    char names[100];
    qat_qgraph *graph;
    override("block.?")->is_float = 1;
    rewrite(false);
    ck_assert_ptr_null(qat_graph_find(made, "block.a/q"));
    ck_assert_ptr_null(qat_graph_find(made, "block.b/weights/q"));
    ck_assert_str_eq(node_of("block.a")->inputs[1]->name, "block.a/weights");
    ck_assert_str_eq(node_of("join")->inputs[0]->name, "join/in0/q");
    ck_assert_int_eq(qat_float_layers(net, &options, names, sizeof names, &err), QAT_OK);
    ck_assert_str_eq(names, "block.a, block.b");
    ck_assert_int_eq(qat_graph_plan(made, 2, QAT_PLAN_KEEP, &err), QAT_OK);
    qat_graph_init_params(made, 1);
    for (int i = 0; i < qat_graph_nodes(made); i++) { /* as if every range had been observed */
        qat_node *p = qat_graph_node(made, i);
        if (p->is_param && qat_is_range(p->name))
            memcpy(p->value, (const float[]){-1, 2, 1}, 3 * sizeof(float));
    }
    ck_assert_int_eq(qat_freeze(&graph, made, QAT_PROFILE_PAPER, NULL, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "block."));
    options.n_layers = 0;
    ck_assert_int_eq(qat_float_layers(net, &options, names, sizeof names, &err), QAT_OK);
    ck_assert_str_eq(names, "");
}
END_TEST

static void refuse(const char *message)
{
    ck_assert_int_eq(qat_create_training_graph(&made, net, &options, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, message);
    ck_assert_ptr_null(made);
    options = qat_quant_defaults();
}

START_TEST(test_refused)
{
    strcpy(override("block.c")->where, "my.ini:7");
    refuse("my.ini:7: [quant.layer block.c]: no layer matches; the nearest is block.a");
    override("pool")->activation_bits = 4; /* hands codes on: nothing to set */
    refuse("[quant.layer pool]: it passes on the codes of block.a: set those");
    override("stem")->weight_bits = 9;
    refuse("[quant.layer stem]: weight_bits is 9, which is not in 2..8");
    override("stem")->per_channel = 1;
    refuse("[quant.layer stem]: per_channel = yes needs quant.layout = int8");
    options.layout = QAT_LAYOUT_INT8;
    override("stem")->symmetric = 0;
    refuse("[quant.layer stem]: symmetric = no needs quant.layout = uint8");
    strcpy(override("stem")->weight_ranges, "lsp");
    refuse("[quant.layer stem] weight_ranges = lsp: there is no such quantizer; the nearest is lsq "
           "(of ema, tqt, tqt_full, lsq, lsq_full, bwn, twn, fgq, inq, dorefa, weight_norm, apot)");
    strcpy(options.activation_ranges, "temaa");
    refuse("activation_ranges = temaa: there is no such quantizer; the nearest is ema "
           "(of ema, tqt, lsq, pact, none)");
    options.range_rate = -1;
    refuse("range_rate -1 is not a finite number >= 0");
    options.n_layers = QAT_QUANT_LAYERS_MAX + 1;
    refuse("257 overrides of layers are not in 0..256");
}
END_TEST

START_TEST(test_no_quantizer_in_a_network)
{
    qat_graph *odd;
    ck_assert_int_eq(qat_graph_create(&odd, registry, &err), QAT_OK);
    qat_node *x = qat_graph_input(odd, "x", QAT_SHAPE(1, 4));
    qat_graph_output(odd, qat_apply1(odd, "tqt", "t", "", x));
    ck_assert_int_eq(qat_create_eval_graph(&made, odd, &options, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "node 't' (tqt) cannot be quantized: quantizers are placed by the rewrites");
    qat_graph_free(odd);
}
END_TEST

/* Every allocation fails once. */
START_TEST(test_out_of_memory)
{
    char names[64];
    bool failed;
    strcpy(options.weight_ranges, "lsq");
    override("block.?")->is_float = 1;
    for (long n = 0, which = 0; which < 2; n = failed ? n + 1 : 0, which += !failed) {
        qat_graph *training = NULL;
        test_fail_alloc_after(n);
        qat_status const st = which ? qat_float_layers(net, &options, names, sizeof names, &err)
                                    : qat_create_training_graph(&training, net, &options, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_graph_free(training);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_settings");
    TCase *tc = tcase_create("layer_settings");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_patterns);
    tcase_add_test(tc, test_bits);
    tcase_add_test(tc, test_input_bits);
    tcase_add_test(tc, test_input_bits_are_shared);
    tcase_add_test(tc, test_last_one_wins);
    tcase_add_test(tc, test_schemes);
    tcase_add_test(tc, test_ranges);
    tcase_add_test(tc, test_learned_class);
    tcase_add_test(tc, test_left_in_float);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_no_quantizer_in_a_network);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

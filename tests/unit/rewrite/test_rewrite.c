/*
 * Where the rewrites place nodes. For each small float graph: the nodes of the training graph and
 * of the eval graph, what each one reads, and which of them share a range.
 */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "fakequant/ops.h"
#include "layer/layer.h"
#include "qat/quant.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_registry *registry;
static qat_graph *g, *training, *eval;
static qat_quant_options options;

/* ------------------------------------------------------------------ an op without quant entry, and
 * a custom one with two weights of which the second is quantized */

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void copy_forward(qat_node *node, const qat_run *run)
{
    memcpy(node->value, node->inputs[0]->value, qat_shape_count(&node->shape) * sizeof(float));
}

static int two_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    defs[0] = (qat_param_def){.name = "offset", .shape = QAT_SHAPE(1), .trainable = true};
    defs[1] = (qat_param_def){.name = "gain", .shape = QAT_SHAPE(2, 3), .trainable = true};
    return 2;
}

static const qat_op plain_op = {.name = "plain",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .shape = same_shape,
                                .forward = copy_forward};
static const qat_quant custom_quant = {.role = QAT_ROLE_CUSTOM, .weight_params = 2};
static const qat_op custom_op = {.name = "custom",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .params = two_params,
                                 .shape = same_shape,
                                 .forward = copy_forward,
                                 .quant = &custom_quant};
static const qat_quant table_quant = {.role = QAT_ROLE_TABLE};
static const qat_op table_op = {.name = "table",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .shape = same_shape,
                                .forward = copy_forward,
                                .quant = &table_quant};

/* ------------------------------------------------------------------ fixture */

static void setup(void)
{
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &plain_op, &err), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &custom_op, &err), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &table_op, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
    options = qat_quant_defaults();
    training = eval = NULL;
}

static void teardown(void)
{
    qat_graph_free(training);
    qat_graph_free(eval);
    qat_graph_free(g);
    qat_registry_free(registry);
}

static qat_node *image(void)
{
    return qat_graph_input(g, "image", QAT_SHAPE(1, 8, 8, 4));
}

/** Apply an op; its name is that of the node. */
static qat_node *op(const char *name, const char *op_name, const char *attrs, qat_node *x)
{
    return qat_apply1(g, op_name, name, attrs, x);
}

static void rewrite(void)
{
    qat_error err;
    ck_assert_msg(qat_graph_check(g, &err) == QAT_OK, "%s", err.message);
    ck_assert_msg(qat_create_training_graph(&training, g, &options, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert_msg(qat_create_eval_graph(&eval, g, &options, &err) == QAT_OK, "%s", err.message);
}

/* ------------------------------------------------------------------ expectations */

/** "name=op(input,input)" for one node; false if it is not there or differs. */
static void line_of(const qat_node *node, char line[512])
{
    size_t n = (size_t)snprintf(line, 512, "%s=%s(", node->name, node->op->name);
    for (int i = 0; i < node->n_inputs; i++)
        n += (size_t)snprintf(line + n, 512 - n, "%s%s", i ? "," : "", node->inputs[i]->name);
    snprintf(line + n, 512 - n, ")");
}

/** The graph's ops are exactly these, in this order. */
static void expect(const qat_graph *graph, const char *const *lines)
{
    int k = 0;
    char line[512];
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        if (!qat_graph_node(graph, i)->op)
            continue;
        line_of(qat_graph_node(graph, i), line);
        ck_assert_msg(lines[k] != NULL, "not expected: %s", line);
        ck_assert_str_eq(line, lines[k]);
        k++;
    }
    ck_assert_msg(lines[k] == NULL, "missing: %s", lines[k]);
}
#define EXPECT(graph, ...) expect(graph, (const char *const[]){__VA_ARGS__, NULL})

static const qat_node *node_of(const qat_graph *graph, const char *name)
{
    const qat_node *node = qat_graph_find(graph, name);
    ck_assert_msg(node != NULL, "there is no %s", name);
    return node;
}

static void expect_range(const qat_graph *graph, const char *fake_quant, const char *range)
{
    const qat_node *node = node_of(graph, fake_quant);
    ck_assert_str_eq(node->op->name, "fake_quant");
    ck_assert_int_eq((int)qat_attr(node, "kind"), FQ_OBSERVED);
    ck_assert_str_eq(node->inputs[1]->name, range);
}

static void expect_output(const qat_graph *graph, int i, const char *name)
{
    ck_assert_int_lt(i, qat_graph_outputs(graph));
    ck_assert_str_eq(qat_graph_output_at(graph, i)->name, name);
}

static bool commits(const qat_graph *graph, const char *fake_quant)
{
    return qat_attr(node_of(graph, fake_quant), "commits") != 0;
}

/* ------------------------------------------------------------------ layers */

START_TEST(test_conv)
{
    qat_node *x = op("c", "conv2d", "filters=4", image());
    x = op("c/bias", "bias", "", x);
    qat_graph_output(g, op("c/relu", "relu", "", x));
    rewrite();
    static const char *const lines[] = {
        "image/q=fake_quant(image)",
        "c/weights/q=fake_quant_weights(c/weights)",
        "c=conv2d(image/q,c/weights/q)",
        "c/bias=bias(c,c/bias/bias)",
        "c/relu=relu(c/bias)",
        "c/relu/q=fake_quant(c/relu,c/relu/q/range)",
        NULL,
    };
    expect(training, lines);
    expect(eval, lines);
    expect_output(training, 0, "c/relu/q");
    expect_output(eval, 0, "c/relu/q");
    ck_assert_ptr_null(qat_graph_quant_options(g));
    ck_assert_mem_eq(qat_graph_quant_options(eval), &options, sizeof options);
    ck_assert_mem_eq(qat_graph_quant_options(training), &options, sizeof options);
}
END_TEST

START_TEST(test_conv_bn_two_pass)
{
    qat_node *x = op("c", "conv2d", "filters=4 stride=2", image());
    x = op("bn", "batch_norm", "epsilon=0.01 momentum=0.9", x);
    qat_graph_output(g, op("relu", "relu6", "", x));
    options.weight_delay = 5;
    options.bn_freeze_delay = 50;
    rewrite();
    EXPECT(training, "image/q=fake_quant(image)",
           "c/weights/fold=bn_fold_weights(c/weights,bn/gamma,bn/ema_variance)",
           "c/weights/q=fake_quant_weights(c/weights/fold)", "c=conv2d(image/q,c/weights/q)",
           "c/raw=conv2d(image/q,c/weights)",
           "bn=bn_fold_train(c,bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance,bn/ema_steps,c/raw)",
           "relu=relu6(bn)", "relu/q=fake_quant(relu,relu/q/range)");
    EXPECT(eval, "image/q=fake_quant(image)",
           "bn/bias=bn_fold_bias(bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance)",
           "c/weights/fold=bn_fold_weights(c/weights,bn/gamma,bn/ema_variance)",
           "c/weights/q=fake_quant_weights(c/weights/fold)", "c=conv2d(image/q,c/weights/q)",
           "bn=bias(c,bn/bias)", "relu=relu6(bn)", "relu/q=fake_quant(relu,relu/q/range)");
    const qat_node *bn = node_of(training, "bn");
    ck_assert_double_eq(qat_attr(bn, "epsilon"), 0.01);
    ck_assert_double_eq(qat_attr(bn, "momentum"), 0.9);
    ck_assert_double_eq(qat_attr(bn, "delay"), 5);
    ck_assert_double_eq(qat_attr(bn, "freeze"), 50);
    ck_assert_double_eq(qat_attr(node_of(training, "c/weights/fold"), "delay"), 5);
    ck_assert_double_eq(qat_attr(node_of(training, "c/weights/q"), "delay"), 5);
    ck_assert_double_eq(qat_attr(node_of(eval, "c/weights/fold"), "delay"), 0);
    ck_assert_double_eq(qat_attr(node_of(eval, "c/weights/fold"), "epsilon"), 0.01);
    ck_assert_double_eq(qat_attr(node_of(training, "c/raw"), "stride"), 2);
}
END_TEST

START_TEST(test_conv_bias_bn_one_pass)
{
    qat_node *x = op("c", "conv2d", "filters=4", image());
    x = op("b", "bias", "", x);
    qat_graph_output(g, op("bn", "batch_norm", "", x));
    options.bn_fold = QAT_FOLD_ONE_PASS;
    rewrite();
    EXPECT(training, "image/q=fake_quant(image)",
           "c/weights/fold=bn_fold_weights(c/weights,bn/gamma,bn/ema_variance)",
           "c/weights/q=fake_quant_weights(c/weights/fold)", "c=conv2d(image/q,c/weights/q)",
           "b/bias/fold=bn_fold_weights(b/bias,bn/gamma,bn/ema_variance)", "b=bias(c,b/bias/fold)",
           "bn=bn_fold_train(b,bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance,bn/ema_steps)",
           "bn/q=fake_quant(bn,bn/q/range)");
    EXPECT(eval, "image/q=fake_quant(image)",
           "bn/bias=bn_fold_bias(bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance,b/bias)",
           "c/weights/fold=bn_fold_weights(c/weights,bn/gamma,bn/ema_variance)",
           "c/weights/q=fake_quant_weights(c/weights/fold)", "c=conv2d(image/q,c/weights/q)",
           "bn=bias(c,bn/bias)", "bn/q=fake_quant(bn,bn/q/range)");
}
END_TEST

START_TEST(test_conv_bias_bn_two_pass)
{
    qat_node *x = op("c", "conv2d", "filters=4", image());
    x = op("b", "bias", "", x);
    op("bn", "batch_norm", "", x);
    qat_graph_output(g, qat_graph_find(g, "bn"));
    rewrite();
    const qat_node *bn = node_of(training, "bn");
    ck_assert_str_eq(bn->inputs[FOLDT_RAW]->name, "b/raw");
    EXPECT(training, "image/q=fake_quant(image)",
           "c/weights/fold=bn_fold_weights(c/weights,bn/gamma,bn/ema_variance)",
           "c/weights/q=fake_quant_weights(c/weights/fold)", "c=conv2d(image/q,c/weights/q)",
           "c/raw=conv2d(image/q,c/weights)",
           "b/bias/fold=bn_fold_weights(b/bias,bn/gamma,bn/ema_variance)", "b=bias(c,b/bias/fold)",
           "b/raw=bias(c/raw,b/bias)",
           "bn=bn_fold_train(b,bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance,bn/ema_steps,b/raw)",
           "bn/q=fake_quant(bn,bn/q/range)");
}
END_TEST

START_TEST(test_depthwise_and_fc)
{
    qat_node *x = op("d", "depthwise_conv2d", "multiplier=2", image());
    x = op("d/bn", "batch_norm", "", x);
    x = op("flat", "flatten", "", x);
    x = op("f", "fully_connected", "units=3", x);
    qat_graph_output(g, op("f/bias", "bias", "", x));
    options.layout = QAT_LAYOUT_INT8;
    options.weight_bits = 4;
    options.activation_bits = 5;
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)",
           "d/bn/bias=bn_fold_bias(d/bn/gamma,d/bn/beta,d/bn/ema_mean,d/bn/ema_variance)",
           "d/weights/fold=bn_fold_weights(d/weights,d/bn/gamma,d/bn/ema_variance)",
           "d/weights/q=fake_quant_weights(d/weights/fold)",
           "d=depthwise_conv2d(image/q,d/weights/q)", "d/bn=bias(d,d/bn/bias)",
           "d/bn/q=fake_quant(d/bn,d/bn/q/range)", "flat=flatten(d/bn/q)",
           "f/weights/q=fake_quant_weights(f/weights)", "f=fully_connected(flat,f/weights/q)",
           "f/bias=bias(f,f/bias/bias)", "f/bias/q=fake_quant(f/bias,f/bias/q/range)");
    ck_assert_double_eq(qat_attr(node_of(eval, "d/weights/q"), "axis"), 3);
    ck_assert_double_eq(qat_attr(node_of(eval, "d/weights/fold"), "axis"), 3);
    ck_assert_double_eq(qat_attr(node_of(eval, "f/weights/q"), "axis"), 0);
    ck_assert_double_eq(qat_attr(node_of(eval, "f/weights/q"), "bits"), 4);
    ck_assert_double_eq(qat_attr(node_of(eval, "f/bias/q"), "bits"), 5);
    ck_assert_double_eq(qat_attr(node_of(eval, "f/bias/q"), "layout"), QAT_LAYOUT_INT8);
}
END_TEST

/* ------------------------------------------------------------------ bypasses, several readers */

static void bypass(bool relu)
{
    qat_node *stem = op("stem", "conv2d", "filters=4", image());
    qat_node *x = op("c", "conv2d", "filters=4", stem);
    x = qat_apply2(g, "add", "sum", "", x, stem);
    qat_graph_output(g, relu ? op("sum/relu", "relu", "", x) : x);
    rewrite();
}

START_TEST(test_bypass_without_relu)
{
    bypass(false);
    static const char *const lines[] = {
        "image/q=fake_quant(image)",
        "stem/weights/q=fake_quant_weights(stem/weights)",
        "stem=conv2d(image/q,stem/weights/q)",
        "stem/q=fake_quant(stem,stem/q/range)",
        "c/weights/q=fake_quant_weights(c/weights)",
        "c=conv2d(stem/q,c/weights/q)",
        "c/q=fake_quant(c,c/q/range)",
        "sum=add(c/q,stem/q)",
        "sum/q=fake_quant(sum,sum/q/range)",
        NULL,
    };
    expect(training, lines);
    expect(eval, lines);
}
END_TEST

START_TEST(test_bypass_with_relu)
{
    bypass(true);
    ck_assert_ptr_null(qat_graph_find(eval, "sum/q"));
    ck_assert_str_eq(node_of(eval, "sum/relu")->inputs[0]->name, "sum");
    expect_range(eval, "sum/relu/q", "sum/relu/q/range");
    expect_output(eval, 0, "sum/relu/q");
}
END_TEST

/* A conv read by its ReLU and by somebody else is quantized before the ReLU, which is on its own.
 */
START_TEST(test_relu_is_not_sole_reader)
{
    qat_node *c = op("c", "conv2d", "filters=4", image());
    qat_node *r = op("r", "relu", "", c);
    qat_graph_output(g, qat_apply2(g, "add", "sum", "", r, c));
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "c/weights/q=fake_quant_weights(c/weights)",
           "c=conv2d(image/q,c/weights/q)", "c/q=fake_quant(c,c/q/range)", "r=relu(c/q)",
           "r/q=fake_quant(r,r/q/range)", "sum=add(r/q,c/q)", "sum/q=fake_quant(sum,sum/q/range)");
}
END_TEST

/* A value that is an output of the graph is not fused. */
START_TEST(test_outputs_are_not_fused)
{
    qat_node *c = op("c", "conv2d", "filters=4", image());
    qat_node *r = op("r", "relu", "", c);
    qat_graph_output(g, r);
    qat_graph_output(g, c);
    rewrite();
    expect_output(eval, 0, "r/q");
    expect_output(eval, 1, "c/q");
    ck_assert_str_eq(node_of(eval, "r")->inputs[0]->name, "c/q");
}
END_TEST

/* ------------------------------------------------------------------ classes */

START_TEST(test_concat)
{
    qat_node *in = image();
    qat_node *parts[] = {op("a", "conv2d", "filters=2", in), op("b", "conv2d", "filters=3", in)};
    qat_node *cat = qat_apply(g, "concat", "cat", "", 2, parts);
    qat_graph_output(g, op("c", "conv2d", "filters=4", cat));
    rewrite();
    const qat_graph *both[] = {training, eval};
    for (int i = 0; i < 2; i++) {
        expect_range(both[i], "a/q", "a/q/range");
        expect_range(both[i], "b/q", "a/q/range");
        expect_range(both[i], "cat/q", "a/q/range");
        expect_range(both[i], "c/q", "c/q/range");
        ck_assert(!commits(both[i], "a/q") && !commits(both[i], "b/q"));
        ck_assert(commits(both[i], "cat/q") && commits(both[i], "c/q"));
        ck_assert_str_eq(node_of(both[i], "cat")->inputs[1]->name, "b/q");
    }
}
END_TEST

START_TEST(test_nested_concats)
{
    qat_node *in = image();
    qat_node *a = op("a", "conv2d", "filters=2", in), *b = op("b", "conv2d", "filters=3", in);
    qat_node *c = op("c", "conv2d", "filters=3", in);
    qat_node *p = op("p", "max_pool2d", "kernel=3 stride=1 padding=same", c);
    qat_node *inner = qat_apply2(g, "concat", "inner", "", a, b);
    qat_node *v = op("v", "average_pool2d", "kernel=3 stride=1 padding=same", inner);
    qat_node *parts[] = {v, p, a};
    qat_graph_output(g, qat_apply(g, "concat", "outer", "", 3, parts));
    rewrite();
    const qat_graph *both[] = {training, eval};
    static const char *const members[] = {"a/q", "b/q", "c/q", "inner/q", "v/q", "outer/q"};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 6; k++) {
            expect_range(both[i], members[k], "a/q/range");
            ck_assert_int_eq(commits(both[i], members[k]), k == 5);
        }
        ck_assert_ptr_null(qat_graph_find(both[i], "p/q"));
        ck_assert_str_eq(node_of(both[i], "outer")->inputs[0]->name, "v/q");
        ck_assert_str_eq(node_of(both[i], "outer")->inputs[1]->name, "p");
        ck_assert_str_eq(node_of(both[i], "p")->inputs[0]->name, "c/q");
    }
}
END_TEST

/* Members of fixed range: once per class, whatever number of times they are read. */
START_TEST(test_fixed_members_of_a_concat)
{
    qat_node *in = image();
    qat_node *s = op("s", "logistic", "", op("a", "conv2d", "filters=2", in));
    qat_node *sp = op("sp", "max_pool2d", "kernel=1", s);
    qat_node *parts[] = {in, sp, op("b", "conv2d", "filters=2", in), in, s};
    qat_node *cat = qat_apply(g, "concat", "cat", "", 5, parts);
    qat_graph_output(g, qat_apply2(g, "concat", "again", "", cat, in));
    rewrite();
    const qat_node *concat = node_of(eval, "cat");
    ck_assert_str_eq(concat->inputs[0]->name, "cat/in0/q");
    ck_assert_str_eq(concat->inputs[1]->name, "cat/in1/q");
    ck_assert_str_eq(concat->inputs[2]->name, "b/q");
    ck_assert_str_eq(concat->inputs[3]->name, "cat/in0/q");
    ck_assert_str_eq(concat->inputs[4]->name, "cat/in4/q");
    ck_assert_str_eq(node_of(eval, "again")->inputs[1]->name, "cat/in0/q");
    ck_assert_str_eq(node_of(eval, "cat/in0/q")->inputs[0]->name, "image/q");
    ck_assert_str_eq(node_of(eval, "cat/in1/q")->inputs[0]->name, "sp");
    ck_assert_str_eq(node_of(eval, "cat/in4/q")->inputs[0]->name, "s/q");
    expect_range(eval, "cat/in0/q", "b/q/range");
    expect_range(eval, "again/q", "b/q/range");
    ck_assert(commits(eval, "again/q") && !commits(eval, "cat/q"));
    const qat_node *fixed = node_of(eval, "s/q");
    ck_assert_int_eq((int)qat_attr(fixed, "kind"), FQ_GIVEN);
    ck_assert_int_eq(fixed->n_inputs, 1);
    ck_assert_double_eq(qat_attr(fixed, "scale"), 1.0 / 256);
}
END_TEST

START_TEST(test_same_tensor_twice)
{
    qat_node *a = op("a", "conv2d", "filters=2", image());
    qat_graph_output(g, qat_apply2(g, "concat", "cat", "", a, a));
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "a/weights/q=fake_quant_weights(a/weights)",
           "a=conv2d(image/q,a/weights/q)", "a/q=fake_quant(a,a/q/range)", "cat=concat(a/q,a/q)",
           "cat/q=fake_quant(cat,a/q/range)");
}
END_TEST

START_TEST(test_pools)
{
    qat_node *x = op("c", "conv2d", "filters=4", image());
    x = op("max", "max_pool2d", "", x);
    x = op("mean", "average_pool2d", "", x);
    x = op("all", "global_average_pool", "", x);
    x = op("flat", "flatten", "", x);
    qat_graph_output(g, x);
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "c/weights/q=fake_quant_weights(c/weights)",
           "c=conv2d(image/q,c/weights/q)", "c/q=fake_quant(c,c/q/range)", "max=max_pool2d(c/q)",
           "mean=average_pool2d(max)", "mean/q=fake_quant(mean,c/q/range)",
           "all=global_average_pool(mean/q)", "all/q=fake_quant(all,c/q/range)",
           "flat=flatten(all/q)");
    expect_output(eval, 0, "flat");
    ck_assert(commits(eval, "all/q") && !commits(eval, "c/q"));
}
END_TEST

/* ------------------------------------------------------------------ inputs and outputs */

START_TEST(test_inputs)
{
    qat_node *x = image(), *y = qat_graph_input(g, "other", QAT_SHAPE(1, 8, 8, 4));
    qat_node *label = qat_graph_input(g, "label", QAT_SHAPE(1));
    qat_node *p = op("p", "average_pool2d", "", x);
    qat_node *f1 = op("f1", "fully_connected", "units=3", op("flat", "flatten", "", p));
    qat_node *f2 = op("f2", "fully_connected", "units=3", y);
    qat_node *sum = qat_apply2(g, "add", "sum", "", f1, f2);
    qat_graph_output(g, sum);
    qat_node *cross = qat_apply2(g, "softmax_cross_entropy", "loss", "", sum, label);
    qat_node *rebuilt = qat_apply2(g, "l2_loss", "rebuild", "", f1, f2);
    qat_apply2(g, "add", "total", "", cross, rebuilt);
    options.input_min = -2;
    options.input_max = 3;
    options.activation_delay = 9;
    rewrite();
    const qat_node *q = node_of(training, "image/q");
    ck_assert_int_eq((int)qat_attr(q, "kind"), FQ_RANGE);
    ck_assert_double_eq(qat_attr(q, "min"), -2);
    ck_assert_double_eq(qat_attr(q, "max"), 3);
    ck_assert_double_eq(qat_attr(q, "delay"), 9);
    ck_assert_double_eq(qat_attr(node_of(eval, "image/q"), "delay"), 0);
    /* a pool of an input keeps its range */
    ck_assert_int_eq((int)qat_attr(node_of(eval, "p/q"), "kind"), FQ_RANGE);
    ck_assert_str_eq(node_of(eval, "flat")->inputs[0]->name, "p/q");
    node_of(eval, "other/q");
    /* labels and losses are no codes, and not part of the eval graph */
    ck_assert_ptr_null(qat_graph_find(training, "label/q"));
    ck_assert_ptr_null(qat_graph_find(training, "total/q"));
    ck_assert_str_eq(node_of(training, "loss")->inputs[0]->name, "sum/q");
    ck_assert_str_eq(node_of(training, "loss")->inputs[1]->name, "label");
    ck_assert_str_eq(node_of(training, "rebuild")->inputs[0]->name, "f1/q");
    ck_assert_ptr_null(qat_graph_find(eval, "label"));
    ck_assert_ptr_null(qat_graph_find(eval, "loss"));
    ck_assert_ptr_null(qat_graph_find(eval, "total"));
}
END_TEST

START_TEST(test_input_as_target)
{
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 6));
    qat_node *y = op("f", "fully_connected", "units=6", x);
    qat_graph_output(g, y);
    qat_apply2(g, "l2_loss", "loss", "", y, x);
    rewrite();
    ck_assert_str_eq(node_of(training, "loss")->inputs[0]->name, "f/q");
    ck_assert_str_eq(node_of(training, "loss")->inputs[1]->name, "x");
    ck_assert_str_eq(node_of(training, "f")->inputs[0]->name, "x/q");
}
END_TEST

START_TEST(test_eval_graph_is_pruned)
{
    qat_node *a = op("a", "conv2d", "filters=2", image());
    qat_node *b = op("b", "conv2d", "filters=2", a), *side = op("side", "relu", "", b);
    qat_node *cat = qat_apply2(g, "concat", "cat", "", side, a);
    op("use", "relu", "", cat); /* dead end */
    qat_graph_output(g, op("drop", "dropout", "rate=0.5", a));
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "a/weights/q=fake_quant_weights(a/weights)",
           "a=conv2d(image/q,a/weights/q)", "a/q=fake_quant(a,a/q/range)");
    expect_output(eval, 0, "a/q");
    expect_output(training, 0, "drop");
    expect_range(training, "side/q", "a/q/range");
    ck_assert(commits(eval, "a/q") && !commits(training, "a/q"));
    ck_assert_ptr_null(qat_graph_find(eval, "b/weights"));
}
END_TEST

/* ------------------------------------------------------------------ nodes of their own */

START_TEST(test_standalone_bn)
{
    qat_node *p = op("p", "max_pool2d", "", image());
    qat_node *x = op("bn", "batch_norm", "", p);
    qat_graph_output(g, op("r", "relu", "", x));
    rewrite();
    EXPECT(training, "image/q=fake_quant(image)", "p=max_pool2d(image/q)",
           "bn/ones/fold=bn_fold_weights(bn/ones,bn/gamma,bn/ema_variance)",
           "bn/ones/q=fake_quant_weights(bn/ones/fold)",
           "bn/depthwise=depthwise_conv2d(p,bn/ones/q)",
           "bn=bn_fold_train(bn/depthwise,bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance,"
           "bn/ema_steps,p)",
           "r=relu(bn)", "r/q=fake_quant(r,r/q/range)");
    EXPECT(eval, "image/q=fake_quant(image)", "p=max_pool2d(image/q)",
           "bn/bias=bn_fold_bias(bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance)",
           "bn/ones/fold=bn_fold_weights(bn/ones,bn/gamma,bn/ema_variance)",
           "bn/ones/q=fake_quant_weights(bn/ones/fold)",
           "bn/depthwise=depthwise_conv2d(p,bn/ones/q)", "bn=bias(bn/depthwise,bn/bias)",
           "r=relu(bn)", "r/q=fake_quant(r,r/q/range)");
    const qat_node *ones = node_of(training, "bn/ones");
    ck_assert(ones->is_param && !ones->trainable);
    ck_assert_double_eq(ones->init.scale, 1);
    ck_assert_int_eq(ones->shape.dims[3], 4);
}
END_TEST

/* A bias behind a batch norm, on a vector: a depthwise convolution between two reshapes. */
START_TEST(test_standalone_bias_of_rank_2)
{
    qat_node *x = op("f", "fully_connected", "units=5", qat_graph_input(g, "x", QAT_SHAPE(1, 6)));
    x = op("bn", "batch_norm", "", x);
    x = op("b", "bias", "", x);
    qat_graph_output(g, op("g", "fully_connected", "units=2", x));
    rewrite();
    EXPECT(eval, "x/q=fake_quant(x)",
           "bn/bias=bn_fold_bias(bn/gamma,bn/beta,bn/ema_mean,bn/ema_variance)",
           "f/weights/fold=bn_fold_weights(f/weights,bn/gamma,bn/ema_variance)",
           "f/weights/q=fake_quant_weights(f/weights/fold)", "f=fully_connected(x/q,f/weights/q)",
           "bn=bias(f,bn/bias)", "bn/q=fake_quant(bn,bn/q/range)", "b/rank4=reshape(bn/q)",
           "b/ones/q=fake_quant_weights(b/ones)", "b/depthwise=depthwise_conv2d(b/rank4,b/ones/q)",
           "b=bias(b/depthwise,b/bias)", "b/q=fake_quant(b,b/q/range)", "b/back=reshape(b/q)",
           "g/weights/q=fake_quant_weights(g/weights)", "g=fully_connected(b/back,g/weights/q)",
           "g/q=fake_quant(g,g/q/range)");
    ck_assert_int_eq(node_of(eval, "b/rank4")->shape.rank, 4);
    ck_assert_int_eq(node_of(eval, "b/back")->shape.rank, 2);
    ck_assert_int_eq(node_of(eval, "b/back")->shape.dims[1], 5);
}
END_TEST

START_TEST(test_standalone_of_rank_3)
{
    qat_node *x = op("r", "reshape", "d1=16 d2=16", image());
    x = op("b", "bias", "", x);
    x = op("bn", "batch_norm", "", x);
    qat_graph_output(g, x);
    rewrite();
    const qat_node *back = node_of(training, "bn/q");
    ck_assert_int_eq(back->shape.rank, 4);
    expect_output(training, 0, "b/back");
    ck_assert_int_eq(node_of(training, "b/back")->shape.rank, 3);
    ck_assert_str_eq(node_of(training, "b/raw")->inputs[0]->name, "b/rank4");
    ck_assert_str_eq(node_of(training, "bn")->inputs[FOLDT_RAW]->name, "b/raw");
}
END_TEST

START_TEST(test_softmax_and_tanh)
{
    qat_node *x = op("f", "fully_connected", "units=5", image());
    x = op("t", "tanh", "", x);
    qat_graph_output(g, op("s", "softmax", "", x));
    options.layout = QAT_LAYOUT_INT8;
    options.activation_bits = 6;
    rewrite();
    ck_assert_double_eq(qat_attr(node_of(eval, "t/q"), "scale"), 1.0 / 32);
    ck_assert_double_eq(qat_attr(node_of(eval, "t/q"), "zero_point"), 0);
    ck_assert_double_eq(qat_attr(node_of(eval, "s/q"), "scale"), 1.0 / 64);
    ck_assert_double_eq(qat_attr(node_of(eval, "s/q"), "zero_point"), -32);
    expect_output(eval, 0, "s/q");
}
END_TEST

START_TEST(test_custom_and_table)
{
    qat_node *x = op("t", "table", "", op("k", "custom", "", image()));
    qat_graph_output(g, x);
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "k/gain/q=fake_quant_weights(k/gain)",
           "k=custom(image/q,k/offset,k/gain/q)", "k/q=fake_quant(k,k/q/range)", "t=table(k/q)",
           "t/q=fake_quant(t,t/q/range)");
}
END_TEST

/* Two convolutions with one weight tensor: each has its own fake_quant_weights. */
START_TEST(test_shared_weights)
{
    qat_node *a = op("a", "conv2d", "filters=4", image());
    qat_node *const inputs[] = {a, qat_graph_find(g, "a/weights")};
    qat_graph_output(g, qat_apply(g, "conv2d", "b", "filters=4", 2, inputs));
    rewrite();
    EXPECT(eval, "image/q=fake_quant(image)", "a/weights/q=fake_quant_weights(a/weights)",
           "a=conv2d(image/q,a/weights/q)", "a/q=fake_quant(a,a/q/range)",
           "b/weights/q=fake_quant_weights(a/weights)", "b=conv2d(a/q,b/weights/q)",
           "b/q=fake_quant(b,b/q/range)");
}
END_TEST

/* ------------------------------------------------------------------ refusals */

START_TEST(test_op_without_quant_entry)
{
    qat_error err;
    qat_node *x = op("c", "conv2d", "filters=2", op("odd", "plain", "", image()));
    qat_graph_output(g, x);
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "node 'odd' (plain) cannot be quantized: the op has no quant entry");
    ck_assert_ptr_null(eval);
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_OK);
    EXPECT(training, "odd=plain(image)", "c/weights/q=fake_quant_weights(c/weights)",
           "c=conv2d(odd,c/weights/q)", "c/q=fake_quant(c,c/q/range)");
}
END_TEST

START_TEST(test_no_output)
{
    qat_error err;
    op("c", "conv2d", "filters=2", image());
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, &err), QAT_ERR_STATE);
    ck_assert_str_eq(err.message, "the graph has no outputs marked");
}
END_TEST

static void refuse_options(const char *part)
{
    qat_error err;
    ck_assert_int_eq(qat_create_training_graph(&training, g, &options, &err), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, part) != NULL, "'%s' lacks '%s'", err.message, part);
    ck_assert_ptr_null(training);
    options = qat_quant_defaults();
}

START_TEST(test_bad_options)
{
    qat_graph_output(g, op("c", "conv2d", "filters=2", image()));
    options.weight_bits = 1;
    refuse_options("weight_bits is 1");
    options.activation_bits = 9;
    refuse_options("activation_bits is 9");
    options.ema_decay = 1;
    refuse_options("ema_decay 1");
    options.input_min = 2;
    refuse_options("input range [2, 1]");
    options.weight_delay = -1;
    refuse_options("weight_delay is -1");
    options.weight_delay = 10;
    options.bn_freeze_delay = 9;
    refuse_options("bn_freeze_delay 9 is before weight_delay 10");
}
END_TEST

START_TEST(test_not_twice)
{
    qat_error err;
    qat_graph *again;
    qat_graph_output(g, op("c", "conv2d", "filters=2", image()));
    rewrite();
    ck_assert_int_eq(qat_create_eval_graph(&again, training, &options, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(again);
}
END_TEST

START_TEST(test_parameter_as_data)
{
    qat_error err;
    qat_param_def const def = {.name = "constant", .shape = QAT_SHAPE(1, 8, 8, 4)};
    qat_graph_output(g, qat_apply2(g, "add", "sum", "", image(), qat_graph_param(g, &def)));
    ck_assert_int_eq(qat_graph_check(g, &err), QAT_OK);
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "node 'sum' (add) cannot be quantized: a parameter is its data input");
}
END_TEST

/* ------------------------------------------------------------------ description, text, memory */

/** A net with most kinds of inserted nodes. */
static void build_much(void)
{
    qat_node *in = image();
    qat_node *x = op("c", "conv2d", "filters=4", in);
    x = op("c/bn", "batch_norm", "", x);
    x = op("c/relu", "relu", "", x);
    qat_node *cat = qat_apply2(g, "concat", "cat", "", x, in);
    x = op("bn", "batch_norm", "", op("flat", "flatten", "", cat));
    qat_graph_output(g, op("f", "fully_connected", "units=3", x));
}

static bool has_line(const char *text, const char *begin)
{
    size_t const n = strlen(begin);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, begin, n) == 0)
            return true;
    return false;
}

START_TEST(test_describe_text)
{
    qat_error err;
    char *text;
    build_much();
    rewrite();
    ck_assert_int_eq(qat_graph_describe(training, false, &text, &err), QAT_OK);
    static const char *const marked[] = {"+ image/q ",      "+ c/weights/fold ", "+ c/weights/q ",
                                         "+ c/raw ",        "+ c/bn ",           "+ c/relu/q ",
                                         "+ cat/in1/q ",    "+ cat/q ",          "+ bn/rank4 ",
                                         "+ bn/depthwise ", "+ bn/back ",        "+ f/q "};
    static const char *const unmarked[] = {"  image ", "  c ",    "  c/relu ",
                                           "  cat ",   "  flat ", "  f "};
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++)
        ck_assert_msg(has_line(text, marked[i]), "no line '%s' in\n%s", marked[i], text);
    for (size_t i = 0; i < sizeof unmarked / sizeof *unmarked; i++)
        ck_assert_msg(has_line(text, unmarked[i]), "no line '%s' in\n%s", unmarked[i], text);
    ck_assert_ptr_nonnull(strstr(text, "output 0: f/q"));
    ck_assert_ptr_nonnull(strstr(text, "scale 0.00784313772 zero_point 127"));
    ck_assert_ptr_null(strstr(text, "observed"));
    free(text);
    ck_assert_int_eq(qat_graph_plan(training, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(training, 1);
    ck_assert_int_eq(qat_graph_describe(training, false, &text, &err), QAT_OK);
    ck_assert_ptr_nonnull(strstr(text, "not observed"));
    free(text);
    ck_assert_int_eq(qat_graph_describe(g, false, &text, &err), QAT_OK);
    ck_assert_ptr_null(strchr(text, '+'));
    free(text);
}
END_TEST

START_TEST(test_describe_dot)
{
    qat_error err;
    char *text;
    build_much();
    rewrite();
    ck_assert_int_eq(qat_graph_describe(eval, true, &text, &err), QAT_OK);
    ck_assert(strncmp(text, "digraph qat {", 13) == 0);
    ck_assert_ptr_nonnull(strstr(text, "fillcolor=orange"));
    char edge[64];
    snprintf(edge, sizeof edge, "n%d -> n%d;", node_of(eval, "image/q")->index,
             node_of(eval, "c")->index);
    ck_assert_ptr_nonnull(strstr(text, edge));
    free(text);
}
END_TEST

/* Inserted ops go through the text form, endless delays and exact scales too. */
START_TEST(test_text_and_back)
{
    qat_error err;
    char *text, *again;
    qat_graph *read;
    build_much();
    qat_graph_output(g, op("t", "tanh", "", qat_graph_find(g, "f")));
    options.ema_decay = 1.0 / 3;
    options.input_min = -0.1f;
    rewrite();
    const qat_graph *both[] = {training, eval};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(qat_graph_write(both[i], &text, &err), QAT_OK);
        qat_status const st = qat_graph_read(&read, registry, text, "text", &err);
        ck_assert_msg(st == QAT_OK, "%s", err.message);
        ck_assert_int_eq(qat_graph_write(read, &again, &err), QAT_OK);
        ck_assert_str_eq(text, again);
        ck_assert_int_eq(qat_graph_nodes(read), qat_graph_nodes(both[i]));
        for (int k = 0; k < qat_graph_nodes(read); k++)
            ck_assert_mem_eq(qat_graph_node(read, k)->attrs, qat_graph_node(both[i], k)->attrs,
                             sizeof qat_graph_node(read, k)->attrs);
        free(text);
        free(again);
        qat_graph_free(read);
    }
}
END_TEST

START_TEST(test_nth_allocation_fails)
{
    qat_error err;
    build_much();
    bool failed;
    long n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = _i ? qat_create_training_graph(&training, g, &options, &err)
                                 : qat_create_eval_graph(&training, g, &options, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        ck_assert((training != NULL) == !failed);
        qat_graph_free(training);
        training = NULL;
    } while (failed);
    ck_assert_int_gt(n, 50);
}
END_TEST

START_TEST(test_describe_without_memory)
{
    qat_error err;
    char *text;
    build_much();
    bool failed;
    long n = 0;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = qat_graph_describe(g, _i, &text, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(text);
    } while (failed);
}
END_TEST

START_TEST(test_layers_without_memory)
{
    build_much();
    bool failed;
    long n = 0;
    do {
        qat_arena arena = {0};
        qat_layering layers;
        test_fail_alloc_after(n++);
        bool const found = qat_layering_find(&layers, g, &arena);
        failed = test_fail_alloc_stop();
        ck_assert(found == !failed);
        qat_arena_free(&arena);
    } while (failed);
    ck_assert_int_gt(n, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rewrite");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_conv);
    tcase_add_test(tests, test_conv_bn_two_pass);
    tcase_add_test(tests, test_conv_bias_bn_one_pass);
    tcase_add_test(tests, test_conv_bias_bn_two_pass);
    tcase_add_test(tests, test_depthwise_and_fc);
    tcase_add_test(tests, test_bypass_without_relu);
    tcase_add_test(tests, test_bypass_with_relu);
    tcase_add_test(tests, test_relu_is_not_sole_reader);
    tcase_add_test(tests, test_outputs_are_not_fused);
    tcase_add_test(tests, test_concat);
    tcase_add_test(tests, test_nested_concats);
    tcase_add_test(tests, test_fixed_members_of_a_concat);
    tcase_add_test(tests, test_same_tensor_twice);
    tcase_add_test(tests, test_pools);
    tcase_add_test(tests, test_inputs);
    tcase_add_test(tests, test_input_as_target);
    tcase_add_test(tests, test_eval_graph_is_pruned);
    tcase_add_test(tests, test_standalone_bn);
    tcase_add_test(tests, test_standalone_bias_of_rank_2);
    tcase_add_test(tests, test_standalone_of_rank_3);
    tcase_add_test(tests, test_softmax_and_tanh);
    tcase_add_test(tests, test_custom_and_table);
    tcase_add_test(tests, test_shared_weights);
    tcase_add_test(tests, test_op_without_quant_entry);
    tcase_add_test(tests, test_no_output);
    tcase_add_test(tests, test_bad_options);
    tcase_add_test(tests, test_not_twice);
    tcase_add_test(tests, test_parameter_as_data);
    tcase_add_test(tests, test_describe_text);
    tcase_add_test(tests, test_describe_dot);
    tcase_add_test(tests, test_text_and_back);
    tcase_add_loop_test(tests, test_nth_allocation_fails, 0, 2);
    tcase_add_loop_test(tests, test_describe_without_memory, 0, 2);
    tcase_add_test(tests, test_layers_without_memory);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}

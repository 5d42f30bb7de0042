/* Networks with a name: published sizes, shapes, the keys that a name sets, and what is refused. */
#include "common/suite.h"
#include "networks/network.h"
#include "recipe/recipe.h"
#include "unit/networks/network_build.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Trainable parameters and multiply-adds, in millions, as published; 0: none is. */
static const struct published {
    const char *arch, *more;
    int side, classes;
    double parameters, macs;
} sizes[] = {
    {"mobilenet_v1_1.0_224", "", 224, 1000, 4.23, 569},
    {"mobilenet_v1_1.0_192", "", 192, 1000, 4.23, 418},
    {"mobilenet_v1_1.0_160", "", 160, 1000, 4.23, 291},
    {"mobilenet_v1_1.0_128", "", 128, 1000, 4.23, 186},
    {"mobilenet_v1_0.75_224", "", 224, 1000, 2.6, 325},
    {"mobilenet_v1_0.75_192", "", 192, 1000, 2.6, 239},
    {"mobilenet_v1_0.75_160", "", 160, 1000, 2.6, 166},
    {"mobilenet_v1_0.75_128", "", 128, 1000, 2.6, 107},
    {"mobilenet_v1_0.5_224", "", 224, 1000, 1.34, 150},
    {"mobilenet_v1_0.5_192", "", 192, 1000, 1.34, 110},
    {"mobilenet_v1_0.5_160", "", 160, 1000, 1.34, 77},
    {"mobilenet_v1_0.5_128", "", 128, 1000, 1.34, 49},
    {"mobilenet_v1_0.25_224", "", 224, 1000, 0.47, 41},
    {"mobilenet_v1_0.25_192", "", 192, 1000, 0.47, 30},
    {"mobilenet_v1_0.25_160", "", 160, 1000, 0.47, 21},
    {"mobilenet_v1_0.25_128", "", 128, 1000, 0.47, 14},
    {"mobilenet_v2", "multiplier = 1\n", 224, 1000, 3.5, 300},
    {"inception_v3", "", 299, 1000, 23.8, 0},
    {"resnet20", "", 32, 10, 0.27, 0},
    {"resnet32", "", 32, 10, 0.467, 0}, /* 0.46 without batch norm, as the paper counts */
    {"resnet56", "", 32, 10, 0.85, 0},
    {"resnet18", "", 224, 1000, 11.69, 1814},
    {"resnet34", "", 224, 1000, 21.8, 3664},
    {"resnet18", "convention = pytorch\n", 224, 1000, 11.69, 1814},
    {"resnet34", "convention = pytorch\n", 224, 1000, 21.8, 3664},
    {"resnet50", "convention = pytorch\n", 224, 1000, 25.56, 4089},
    {"resnet101", "convention = pytorch\n", 224, 1000, 44.55, 7801},
    {"resnet152", "convention = pytorch\n", 224, 1000, 60.19, 11514},
    {"mobilenet_v2", "convention = pytorch\n", 224, 1000, 3.5, 301},
    {"resnet50", "", 224, 1000, 25.6, 0},
    {"resnet101", "", 224, 1000, 44.5, 0},
    {"resnet152", "", 224, 1000, 60.2, 0},
};

/** Within 1 %, or within half of the last digit that was published. */
static void check_published(const char *what, double ours, double published, double digit)
{
    double const slack = fmax(0.01 * published, 0.5 * digit);
    ck_assert_msg(published == 0 || fabs(ours - published) <= slack, "%s: %.4f million, not %g",
                  what, ours, published);
}

START_TEST(test_published_sizes)
{
    char text[160];
    const struct published *p = &sizes[_i];
    snprintf(text, sizeof text, "[model]\narch = %s\n%s", p->arch, p->more);
    qat_graph *g = build(text, input_of(p->side, p->side, 3, p->classes));
    qat_layer_cost const t = totals(g);
    printf("%-22s %3d: %9.6f million parameters, %10.6f million multiply-adds\n", p->arch, p->side,
           1e-6 * (double)t.parameters, 1e-6 * (double)t.macs);
    check_published(p->arch, 1e-6 * (double)t.parameters, p->parameters, 0.01);
    check_published(p->arch, 1e-6 * (double)t.macs, p->macs, 1);
    qat_graph_free(g);
}
END_TEST

/**
 * Numbers that are known exactly: He et al.'s count of weights and batch norm, Howard et al.'s 4.23
 * M.
 */
START_TEST(test_exact_sizes)
{
    qat_graph *g = build("[model]\narch = resnet\ndepth = 20\n", input_of(32, 32, 3, 10));
    ck_assert_int_eq(totals(g).parameters, 272474);
    check_shape(g, "stage3/block3/relu", "[1, 8, 8, 64]");
    qat_graph_free(g);
    g = build("[model]\narch = mobilenet_v1_1.0_224\n", input_of(224, 224, 3, 1000));
    ck_assert_int_eq(totals(g).parameters, 4231976);
    ck_assert_int_eq(totals(g).macs, 568740352);
    check_shape(g, "block11/pointwise/relu", "[1, 14, 14, 512]");
    check_shape(g, "block13/pointwise/relu", "[1, 7, 7, 1024]");
    qat_graph_free(g);
    g = build("[model]\narch = mobilenet_v2\nmultiplier = 1\n", input_of(224, 224, 3, 1000));
    ck_assert_int_eq(totals(g).parameters, 3504872);
    check_shape(g, "block14/expand/relu", "[1, 14, 14, 576]");
    check_shape(g, "conv_last/relu", "[1, 7, 7, 1280]");
    qat_graph_free(g);
    g = build("[model]\narch = resnet50\n", input_of(224, 224, 3, 1000));
    ck_assert_int_eq(totals(g).parameters, 25557032);
    check_shape(g, "max_pool", "[1, 56, 56, 64]");
    check_shape(g, "stage2/block1/conv1/relu", "[1, 28, 28, 128]"); /* the stride is the 1x1's */
    check_shape(g, "stage4/block3/relu", "[1, 7, 7, 2048]");
    qat_graph_free(g);
}
END_TEST

START_TEST(test_inception)
{
    qat_graph *g =
        build("[model]\narch = inception_v3\nauxiliary = 0.4\n", input_of(299, 299, 3, 1000));
    check_shape(g, "stem/pool2", "[1, 35, 35, 192]");
    check_shape(g, "mixed1/concat", "[1, 35, 35, 256]");
    check_shape(g, "mixed3/concat", "[1, 35, 35, 288]");
    check_shape(g, "mixed8/concat", "[1, 17, 17, 768]");
    check_shape(g, "mixed9/concat", "[1, 8, 8, 1280]");
    check_shape(g, "mixed11/concat", "[1, 8, 8, 2048]");
    check_shape(g, "mixed8/b2/weights", "[192, 1, 7, 192]");
    check_shape(g, "auxiliary/pool", "[1, 5, 5, 768]");
    check_shape(g, "auxiliary/conv2", "[1, 1, 1, 768]");
    ck_assert_int_eq(qat_graph_find(g, "mixed10/concat")->n_data, 6);
    ck_assert_str_eq(qat_graph_find(g, "loss")->op->name, "loss_sum");
    ck_assert(qat_attr(qat_graph_find(g, "loss"), "weight") == 0.4);
    ck_assert_str_eq(qat_graph_find(g, "loss/own")->inputs[0]->name, "logits/bias");
    ck_assert_int_eq(qat_graph_outputs(g), 1);
    qat_quant_options const options = qat_quant_defaults();
    qat_graph *eval; /* of the network alone */
    ck_assert_int_eq(qat_create_eval_graph(&eval, g, &options, NULL), QAT_OK);
    ck_assert_ptr_nonnull(qat_graph_find(eval, "mixed8/b3/relu/q"));
    ck_assert_ptr_null(qat_graph_find(eval, "auxiliary/conv1/relu"));
    qat_graph_free(eval);
    qat_network_size size;
    ck_assert_int_eq(qat_network_size_of(g, &size, NULL), QAT_OK);
    check_published("inception_v3", 1e-6 * (double)size.parameters, 23.8, 0.1);
    check_published("with auxiliary", 1e-6 * (double)size.training_parameters, 27.2, 0.1);
    qat_graph_free(g);
    g = build("[model]\narch = inception_v3\nauxiliary = 1\nactivation = relu6\n",
              input_of(75, 80, 3, 10));
    check_shape(g, "mixed11/concat", "[1, 1, 1, 2048]");
    check_shape(g, "auxiliary/logits/bias", "[1, 10]");
    qat_graph_free(g);
    g = build("[model]\narch = inception_small\n", input_of(32, 32, 3, 10));
    qat_layer_cost const t = totals(g);
    printf("inception_small: %lld parameters, %lld multiply-adds\n", (long long)t.parameters,
           (long long)t.macs);
    check_shape(g, "mixed1/concat", "[1, 16, 16, 80]");
    check_shape(g, "mixed4/concat", "[1, 8, 8, 192]");
    check_shape(g, "mixed6/concat", "[1, 4, 4, 512]");
    qat_graph_free(g);
}
END_TEST

static qat_net_features features_of(qat_graph *g, const qat_recipe *r, const qat_input_info *in,
                                    qat_net_features (*body)(const qat_net *net, qat_node *x))
{
    qat_node *auxiliary = NULL;
    qat_net const net = {.graph = g, .recipe = r, .input = in, .auxiliary = &auxiliary};
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, in->height, in->width, in->channels));
    return body(&net, x);
}

/** What a detector of 300 x 300 pictures reads. */
static void check_features(qat_net_features (*body)(const qat_net *net, qat_node *x),
                           const char *stride8, const char *stride16, const char *stride32)
{
    qat_recipe *r;
    qat_graph *g;
    char text[64];
    qat_input_info const in = input_of(300, 300, 3, 2);
    ck_assert_int_eq(qat_recipe_parse(&r, "[model]\nmultiplier = 1\n", "n.ini", NULL, 0, NULL),
                     QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, network_registry, NULL), QAT_OK);
    qat_net_features const found = features_of(g, r, &in, body);
    ck_assert_int_eq(qat_graph_check(g, NULL), QAT_OK);
    ck_assert_str_eq(qat_shape_text(&found.stride8->shape, text), stride8);
    ck_assert_str_eq(qat_shape_text(&found.stride16->shape, text), stride16);
    ck_assert_str_eq(qat_shape_text(&found.stride32->shape, text), stride32);
    qat_graph_free(g);
    qat_recipe_free(r);
}

START_TEST(test_features)
{
    check_features(qat_net_mobilenet_v1_body, "[1, 38, 38, 256]", "[1, 19, 19, 512]",
                   "[1, 10, 10, 1024]");
    check_features(qat_net_mobilenet_v2_body, "[1, 38, 38, 192]", "[1, 19, 19, 576]",
                   "[1, 10, 10, 1280]");
}
END_TEST

/** Multipliers that leave no multiple of 8 are rounded: v1's down, v2's to the nearest. */
START_TEST(test_multipliers)
{
    qat_graph *g = build("[model]\narch = mobilenet_v1\nmultiplier = 0.25\nfirst_stride = 1\n",
                         input_of(32, 32, 3, 10));
    check_shape(g, "conv1/relu", "[1, 32, 32, 8]");
    check_shape(g, "block13/pointwise/relu", "[1, 2, 2, 256]");
    qat_graph_free(g);
    g = build("[model]\narch = mobilenet_v2\nmultiplier = 0.35\n", input_of(96, 96, 3, 10));
    check_shape(g, "conv1/relu", "[1, 48, 48, 16]"); /* 11.2: 8 is less than 90 % of it */
    check_shape(g, "block2/expand/relu", "[1, 48, 48, 48]");
    check_shape(g, "block7/project/bn", "[1, 6, 6, 24]"); /* 22.4 */
    check_shape(g, "conv_last/relu", "[1, 3, 3, 1280]");  /* never fewer */
    qat_graph_free(g);
    g = build("[model]\narch = mobilenet_v2\nmultiplier = 1.3\n", input_of(32, 32, 3, 10));
    check_shape(g, "block11/project/bn", "[1, 2, 2, 128]"); /* 124.8 */
    check_shape(g, "conv_last/relu", "[1, 1, 1, 1664]");
    qat_graph_free(g);
    g = build("[model]\narch = resnet50\nwidth = 16\n", input_of(64, 64, 3, 10));
    check_shape(g, "stage4/block3/relu", "[1, 2, 2, 512]");
    qat_graph_free(g);
}
END_TEST

/** Many samples of a small network, few of a large one. */
START_TEST(test_batch_that_fits)
{
    qat_graph *g = build("[model]\narch = resnet20\n", input_of(32, 32, 3, 10));
    ck_assert_int_eq(qat_batch_that_fits(g, 100), 100);
    qat_graph_free(g);
    g = build("[model]\narch = resnet152\n", input_of(224, 224, 3, 1000));
    ck_assert_int_ge(qat_batch_that_fits(g, 100), 1);
    ck_assert_int_le(qat_batch_that_fits(g, 100), 4);
    qat_graph_free(g);
    g = build("[model]\narch = resnet152\n", input_of(2048, 2048, 3, 10));
    ck_assert_int_eq(qat_batch_that_fits(g, 100), 1);
    qat_graph_free(g);
}
END_TEST

/** The table has the names of the key, in its order. */
START_TEST(test_names)
{
    char names[2048] = "";
    int n;
    const qat_net_arch *archs = qat_net_archs(&n);
    for (int i = 0; i < n; i++) {
        size_t const at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i ? "|" : "", archs[i].name);
    }
    ck_assert_str_eq(names, QAT_ARCHS);
}
END_TEST

/** Some names set keys. The recipe that is written out has these keys. */
START_TEST(test_name_decides)
{
    qat_recipe *r, *again;
    qat_error err;
    char *text;
    ck_assert_int_eq(qat_recipe_parse(&r,
                                      "[data]\nkind = folder\npath = x\n[model]\n"
                                      "arch = mobilenet_v1_0.75_160\n",
                                      "n.ini", NULL, 0, &err),
                     QAT_OK);
    ck_assert(r->model.multiplier == 0.75);
    ck_assert_int_eq(r->data.height, 160);
    ck_assert_int_eq(r->data.width, 160);
    ck_assert_int_eq(qat_recipe_write(r, &text, &err), QAT_OK);
    ck_assert_msg(qat_recipe_parse(&again, text, "again", NULL, 0, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert_int_eq(qat_recipe_same_run(r, again, &err), QAT_OK);
    free(text);
    qat_recipe_free(again);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_refused_names)
{
    qat_input_info const in = input_of(32, 32, 3, 10);
    refuse(
        "[model]\narch = mobilenet_v1_0.5_128\n", in,
        "n.ini:2: model.arch = mobilenet_v1_0.5_128 takes pictures of 128 x 128, but the data have "
        "32 x 32");
    refuse("[model]\narch = mobilenet_v1_0.5_128\n\nmultiplier = 1\n", in,
           "n.ini:4: model.multiplier = 1 contradicts model.arch = mobilenet_v1_0.5_128, "
           "which sets 0.5");
    refuse("[model]\nfirst_stride = 1\narch = mobilenet_v1_0.5_128\n", in,
           "n.ini:2: model.first_stride = 1 contradicts");
    refuse("[data]\nkind = folder\npath = x\nheight = 160\n[model]\narch = mobilenet_v1_0.5_128\n",
           in, "n.ini:4: data.height = 160 contradicts");
    refuse("[model]\narch = resnet50\ndepth = 101\n", in,
           "n.ini:3: model.depth = 101 contradicts model.arch = resnet50, which sets 50");
    refuse("[model]\narch = inception_v3\n", in,
           "n.ini:2: model.arch = inception_v3 takes pictures of 75 x 75 or more, but the data "
           "have 32 x "
           "32");
    refuse("[model]\narch = resnet20\nauxiliary = 0.4\n", in,
           "n.ini:3: model.auxiliary = 0.4: model.arch = resnet20 has no auxiliary classifier");
    refuse("[model]\narch = mobilenet_v1_0.5_225\n", in,
           "n.ini:2: model.arch = mobilenet_v1_0.5_225: expected what qat-train --keys lists; the "
           "nearest is mobilenet_v1_0.5_224");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("archs");
    TCase *tc = tcase_create("archs");
    tcase_add_checked_fixture(tc, network_setup, network_teardown);
    tcase_add_loop_test(tc, test_published_sizes, 0, sizeof sizes / sizeof sizes[0]);
    tcase_add_test(tc, test_exact_sizes);
    tcase_add_test(tc, test_inception);
    tcase_add_test(tc, test_features);
    tcase_add_test(tc, test_multipliers);
    tcase_add_test(tc, test_batch_that_fits);
    tcase_add_test(tc, test_names);
    tcase_add_test(tc, test_name_decides);
    tcase_add_test(tc, test_refused_names);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

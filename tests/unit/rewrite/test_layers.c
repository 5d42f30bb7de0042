/**
 * The layers are judged one by one. If an integer graph was frozen wrongly, this is found, whatever
 * part of a layer is wrong, and the tensor is named. The engine and the exact evaluation always
 * agree, because both run the wrong graph.
 */
#include "common/suite.h"
#include "qat/convert.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, SIDE = 6, CHANNELS = 3, IMAGE = SIDE * SIDE * CHANNELS };

static qat_registry *registry;

/* ------------------------------------------------------------------ a custom op */

/** A custom op whose integers stop at half of what its forward reaches. */
static qat_status halve_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void halve_forward(qat_node *node, const qat_run *run)
{
    memcpy(node->value, node->inputs[0]->value, qat_shape_count(&node->shape) * sizeof(qat_real));
}

static qat_status halve_freeze(const qat_fused_layer *layer, qat_error *err)
{
    qat_fused_layer cut = *layer;
    cut.act_max = 0.5f; /* a clamp that forward does not have */
    return qat_freeze_requantize(&cut, err);
}

static const qat_quant strict = {.role = QAT_ROLE_CUSTOM, .freeze = halve_freeze};
static const qat_quant lax = {.role = QAT_ROLE_CUSTOM, .freeze = halve_freeze, .max_quanta = 256};
static const qat_op halves[] = {{.name = "halve",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .shape = halve_shape,
                                 .forward = halve_forward,
                                 .quant = &strict},
                                {.name = "halve_roughly",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .shape = halve_shape,
                                 .forward = halve_forward,
                                 .quant = &lax}};

/* ------------------------------------------------------------------ networks */

struct net {
    qat_graph *graph, *training, *eval;
    qat_qgraph *integers;
    float bias; /* of the first channel; the k-th has k times as much */
    uint8_t codes[BATCH * IMAGE];
    float reals[BATCH * IMAGE];
};

static void check_status(qat_status st, const qat_error *err)
{
    ck_assert_msg(st == QAT_OK, "%s: %s", qat_status_name(st), err->message);
}

/** Spread over -1..1, differently in each sample. */
static void fill(float *values)
{
    for (int i = 0; i < BATCH * IMAGE; i++)
        values[i] = (float)((i * 7919 + 13) % 255) / 127.0f - 1.0f;
}

static void calibrate(struct net *n, const qat_quant_options *options)
{
    qat_error err;
    check_status(qat_create_training_graph(&n->training, n->graph, options, &err), &err);
    check_status(qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN, &err), &err);
    check_status(qat_graph_set_batch(n->training, BATCH, &err), &err);
    qat_graph_init_params(n->training, 11);
    for (int i = 0; i < qat_graph_nodes(n->training); i++) {
        qat_node *node = qat_graph_node(n->training, i);
        for (size_t k = 0;
             node->is_param && strstr(node->name, "bias") && k < qat_shape_count(&node->shape); k++)
            node->value[k] = n->bias * (float)(k + 1);
    }
    memcpy(qat_graph_find(n->training, "image")->value, n->reals, sizeof n->reals);
    qat_graph_forward(n->training, &(qat_run){.mode = QAT_MODE_TRAIN});
    qat_graph_update(n->training, &(qat_run){.mode = QAT_MODE_TRAIN});
}

/** Freeze the marked graph; the image's codes are those of its reals. */
static void freeze(struct net *n, qat_layout layout)
{
    qat_error err;
    qat_qparams p;
    qat_quant_options options = qat_quant_defaults();
    options.layout = layout;
    fill(n->reals);
    calibrate(n, &options);
    check_status(qat_create_eval_graph(&n->eval, n->graph, &options, &err), &err);
    check_status(qat_graph_plan(n->eval, BATCH, QAT_PLAN_KEEP, &err), &err);
    qat_graph_copy_params(n->eval, n->training);
    check_status(qat_freeze(&n->integers, n->eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    check_status(qat_node_qparams(qat_graph_find(n->eval, "image/q"), &p, &err), &err);
    for (int i = 0; i < BATCH * IMAGE; i++)
        n->codes[i] = (uint8_t)qat_code(&p, n->reals[i]);
}

static void net_free(struct net *n)
{
    qat_qgraph_free(n->integers);
    qat_graph_free(n->eval);
    qat_graph_free(n->training);
    qat_graph_free(n->graph);
}

/** conv - bias - ReLU6, mul with itself, pool, FC. */
static struct net make_net(qat_layout layout, float bias)
{
    struct net n = {.bias = bias};
    qat_error err;
    check_status(qat_graph_create(&n.graph, registry, &err), &err);
    qat_graph *g = n.graph;
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    x = qat_apply1(g, "conv2d", "conv", "filters=4 kernel=3", x);
    x = qat_apply1(g, "bias", "conv/b", "", x);
    x = qat_apply1(g, "relu6", "conv/r", "", x);
    x = qat_apply2(g, "mul", "square", "", x, x);
    x = qat_apply1(g, "average_pool2d", "pool", "kernel=2 stride=2", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    qat_graph_output(g, qat_apply1(g, "fully_connected", "fc", "units=3", x));
    check_status(qat_graph_check(g, &err), &err);
    freeze(&n, layout);
    return n;
}

/** What the judge says of the integer graph as it is; engine and exact evaluation agree on it. */
static qat_status judge(struct net *n, qat_compare *compare, qat_error *err)
{
    uint8_t *qm = NULL;
    size_t bytes = 0;
    qat_verifier *v = NULL;
    qat_qm_metadata const metadata = {0};
    check_status(qat_qm_write(n->integers, &metadata, &qm, &bytes, err), err);
    check_status(
        qat_verifier_create(&v, n->integers, n->eval, qm, bytes, NULL, registry, BATCH, err), err);
    check_status(qat_verifier_batch(v, (const void *const[]){n->codes},
                                    (const float *const[]){n->reals}, BATCH, err),
                 err);
    *compare = *qat_verifier_result(v);
    ck_assert_int_eq(compare->differing, 0);
    qat_status const st = qat_verifier_judge(v, err);
    qat_verifier_free(v);
    free(qm);
    return st;
}

static qat_qop *find_op(const struct net *n, const char *op)
{
    for (int i = 0; i < n->integers->n_ops; i++)
        if (strcmp(n->integers->ops[i].op, op) == 0)
            return &n->integers->ops[i];
    ck_abort_msg("no op %s", op);
    return NULL;
}

static int32_t *constant(const struct net *n, const char *op, int input)
{
    return n->integers->tensors[find_op(n, op)->inputs[input]].data;
}

/* ------------------------------------------------------------------ tests */

START_TEST(test_true_layers_pass)
{
    qat_error err;
    qat_compare c;
    struct net n = make_net((qat_layout)_i, 0.3f);
    check_status(judge(&n, &c, &err), &err);
    ck_assert_int_eq(c.layers, 5); /* conv, mul, pool, flatten, FC */
    ck_assert(c.layers_max_quanta > 0.25 && c.layers_max_quanta < 0.8);
    ck_assert_ptr_nonnull(qat_graph_find(n.eval, c.layers_furthest));
    ck_assert_int_gt(c.layers_values, c.bytes / 2); /* every code of every layer */
    ck_assert_int_lt(c.layers_differing, c.layers_values / 20);
    ck_assert_int_eq(c.layers_far, 0);
    net_free(&n);
}
END_TEST

static void wrong_multiplier(struct net *n)
{
    constant(n, "conv2d", 3)[0] -= constant(n, "conv2d", 3)[0] / 32;
}

static void wrong_bias(struct net *n)
{
    constant(n, "conv2d", 2)[1] += 400;
}

static void wrong_weight(struct net *n)
{
    uint8_t *w = n->integers->tensors[find_op(n, "conv2d")->inputs[1]].data;
    w[5] ^= 32;
}

static void wrong_clamp(struct net *n)
{
    qat_qop *op = find_op(n, "conv2d");
    op->params[op->n_params - 1] -= 20;
}

static void wrong_product(struct net *n)
{
    find_op(n, "mul")->params[0] -= find_op(n, "mul")->params[0] / 32;
}

static void wrong_window(struct net *n)
{
    find_op(n, "average_pool2d")->params[0] = 1;
}

static void wrong_shift(struct net *n)
{
    constant(n, "fully_connected", 4)[0] -= 1;
}

static const struct {
    void (*spoil)(struct net *n);
    const char *says;
} wrongs[] = {
    {wrong_multiplier, "conv/r/q (op conv2d), sample "},
    {wrong_bias, "conv/r/q (op conv2d), sample "},
    {wrong_weight, "conv/r/q (op conv2d), sample "},
    {wrong_clamp, "conv/r/q (op conv2d), sample "},
    {wrong_product, "square/q (op mul), sample "},
    {wrong_window, "pool/q (op average_pool2d), sample "},
    {wrong_shift, "fc/q (op fully_connected), sample "},
};

/** The layers behind the wrong one start from its codes. So they are right and are not named. */
START_TEST(test_wrong_layers_are_named)
{
    qat_error err;
    qat_compare c;
    struct net n = make_net(QAT_LAYOUT_UINT8, 0.3f);
    wrongs[_i].spoil(&n);
    ck_assert_int_eq(judge(&n, &c, &err), QAT_ERR_MISMATCH);
    ck_assert_msg(strncmp(err.message, wrongs[_i].says, strlen(wrongs[_i].says)) == 0, "%s",
                  err.message);
    net_free(&n);
}
END_TEST

static qat_status export_halved(const char *op, qat_export_result *result, qat_error *err)
{
    struct net n = {0};
    check_status(qat_graph_create(&n.graph, registry, err), err);
    qat_node *x = qat_graph_input(n.graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    qat_graph_output(n.graph, qat_apply1(n.graph, op, "custom", "", x));
    check_status(qat_graph_check(n.graph, err), err);
    freeze(&n, QAT_LAYOUT_INT8);
    qat_export_options const o = {.max_batch = BATCH, .random_samples = 2, .seed = 1};
    qat_status const st = qat_export(result, n.eval, &o, err);
    free(result->qm);
    net_free(&n);
    return st;
}

START_TEST(test_custom_ops_state_their_bound)
{
    qat_error err;
    qat_export_result r;
    ck_assert_int_eq(export_halved("halve", &r, &err), QAT_ERR_MISMATCH);
    ck_assert_msg(strstr(err.message, "export refused: custom/q (op requantize)"), "%s",
                  err.message);
    ck_assert_ptr_null(r.qm);
    check_status(export_halved("halve_roughly", &r, &err), &err);
    ck_assert(r.compare.layers_max_quanta > 32);
}
END_TEST

/**
 * A bias of 10^6 does not fit into the accumulator together with the sum. freeze clamps it and
 * gives a warning.
 */
START_TEST(test_clamped_biases_are_not_judged)
{
    qat_error err;
    qat_compare c;
    struct net n = make_net(QAT_LAYOUT_UINT8, 1e6f);
    check_status(judge(&n, &c, &err), &err);
    ck_assert_int_eq(c.layers, 4);
    net_free(&n);
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        ck_assert_int_eq(qat_registry_add(registry, &halves[i], NULL), QAT_OK);
}

static void teardown(void)
{
    qat_registry_free(registry);
}

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_true_layers_pass, 0, 2);
    tcase_add_loop_test(tcase, test_wrong_layers_are_named, 0,
                        (int)(sizeof wrongs / sizeof *wrongs));
    tcase_add_test(tcase, test_custom_ops_state_their_bound);
    tcase_add_test(tcase, test_clamped_biases_are_not_judged);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

#include "common/ptq_network.h"
#include "base/rng.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

qat_registry *registry;
qat_graph *g, *folded, *eval;
qat_quant_options options;

void ptq_setup(void)
{
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, &err), QAT_OK);
    options = qat_quant_defaults();
    folded = eval = NULL;
}

void ptq_teardown(void)
{
    qat_graph_free(eval);
    qat_graph_free(folded);
    qat_graph_free(g);
    qat_registry_free(registry);
}

qat_node *ptq_block(qat_node *x, const char *op, const char *name, const char *attrs,
                    const char *activation)
{
    char full[64];
    x = qat_apply1(g, op, name, attrs, x);
    snprintf(full, sizeof full, "%s/bn", name);
    x = qat_apply1(g, "batch_norm", full, "", x);
    snprintf(full, sizeof full, "%s/%s", name, activation);
    return qat_apply1(g, activation, full, "", x);
}

void ptq_build_network(const char *activation)
{
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, 8, 8, 2));
    x = ptq_block(x, "conv2d", "conv1", "filters=6 kernel=3", activation);
    x = ptq_block(x, "depthwise_conv2d", "dw2", "kernel=3", activation);
    x = qat_apply1(g, "max_pool2d", "pool", "kernel=2 stride=2", x);
    x = qat_apply1(g, "conv2d", "conv3", "filters=4 kernel=1", x);
    x = qat_apply1(g, "relu", "conv3/relu", "", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = qat_apply1(g, "fully_connected", "fc", "units=5", x);
    qat_graph_output(g, qat_apply1(g, "bias", "fc/bias", "", x));
}

/** Parameters like a trained network's: averages and scales of batch norm are not 0 and 1. */
static void fill_params(qat_graph *graph, uint64_t seed)
{
    qat_graph_init_params(graph, seed);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        qat_rng rng = qat_rng_at(seed, qat_hash_name(node->name), 0);
        bool const positive = strstr(node->name, "gamma") || strstr(node->name, "variance");
        for (size_t k = 0; node->is_param && k < qat_shape_count(&node->shape); k++)
            if (!strstr(node->name, "weights"))
                node->value[k] =
                    (float)(qat_rng_uniform(&rng) * (positive ? 2 : 0.6) + (positive ? 0.1 : -0.3));
    }
}

void ptq_feed(qat_graph *graph, uint64_t seed)
{
    qat_node *x = qat_graph_find(graph, "input");
    qat_rng rng = qat_rng_at(seed, 1, 2);
    ck_assert_int_eq(qat_graph_set_batch(graph, BATCH, NULL), QAT_OK);
    for (size_t k = 0; k < qat_shape_count(&x->shape); k++)
        x->value[k] = (float)(2 * qat_rng_uniform(&rng) - 1);
}

const qat_node *ptq_run(qat_graph *graph, uint64_t seed)
{
    qat_run const how = {.mode = QAT_MODE_EVAL};
    ptq_feed(graph, seed);
    qat_graph_forward(graph, &how);
    return qat_graph_output_at(graph, 0);
}

void ptq_make_folded(void)
{
    qat_error err;
    MUST(qat_graph_plan(g, BATCH, QAT_PLAN_KEEP, &err));
    fill_params(g, 3);
    MUST(qat_fold_batch_norm(&folded, g, BATCH, &err));
}

void ptq_make_eval(void)
{
    qat_error err;
    MUST(qat_create_eval_graph(&eval, folded, &options, &err));
    MUST(qat_graph_plan(eval, BATCH, QAT_PLAN_KEEP, &err));
    qat_graph_init_params(eval, 0);
    qat_graph_copy_params(eval, folded);
}

void ptq_same_function(qat_graph *a, qat_graph *b)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const qat_node *x = ptq_run(a, seed), *y = ptq_run(b, seed);
        double largest = 0;
        for (size_t k = 0; k < qat_shape_count(&x->shape); k++)
            largest = fmax(largest, fabs((double)x->value[k]));
        for (size_t k = 0; k < qat_shape_count(&x->shape); k++)
            ck_assert_double_le(fabs((double)x->value[k] - (double)y->value[k]), 1e-5 * largest);
    }
}

void ptq_calibrate(const char *estimator)
{
    qat_calibrator *c;
    const qat_estimator *e;
    double parameter;
    qat_error err;
    MUST(qat_estimator_parse(estimator, &e, &parameter, &err));
    MUST(qat_calibrator_create(&c, eval, &err));
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            ptq_feed(eval, seed);
            if (pass == 0)
                qat_calibrator_extents(c);
            else
                qat_calibrator_count(c);
        }
    qat_calibrator_commit(c, e, parameter);
    qat_calibrator_free(c);
}

const float *ptq_range_param(const char *name)
{
    return qat_graph_find(eval, name)->value;
}

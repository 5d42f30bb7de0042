/**
 * Every op's gradient against central differences, in double.
 *
 *     test_gradients_double           checks, prints the worst op
 *     test_gradients_double --write   writes all gradients to stdout, for test_gradients (float):
 *                                     for every compared tensor its count (int64), its doubles
 */
#include "autograd/graph/registry.h"
#include "autograd/ops/op.h"
#include "common/suite.h"
#include "fakequant/ops.h"
#include "unit/autograd/gradient_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef QAT_REAL_DOUBLE
#error "compile with QAT_REAL_DOUBLE"
#endif

static double const step = 2e-5, bound = 1e-6;
enum { VALUES = 150 /* of a tensor, at most */ };

static qat_registry *registry_of_double_ops(void)
{
    static const qat_op *const fold_ops[] = {&qat_op_bn_fold_weights, &qat_op_bn_fold_train,
                                             &qat_op_bn_fold_bias, NULL};
    qat_registry *registry;
    ck_assert_int_eq(qat_registry_create_empty(&registry, NULL), QAT_OK);
    for (int i = 0; qat_float_ops[i]; i++)
        ck_assert_int_eq(qat_registry_add(registry, qat_float_ops[i], NULL), QAT_OK);
    for (int i = 0; fold_ops[i]; i++)
        ck_assert_int_eq(qat_registry_add(registry, fold_ops[i], NULL), QAT_OK);
    return registry;
}

static double error_of(const qat_registry *registry, const gradient_case *c)
{
    gradient_graph g = gradient_build(registry, c, 1);
    qat_gradcheck_result result;
    qat_error err;
    qat_status const st = qat_gradcheck(g.graph, g.loss, &g.run, step, VALUES, &result, &err);
    ck_assert_msg(st == QAT_OK, "%s %s: %s", c->op, c->attrs, err.message);
    ck_assert_msg(result.max_gradient > 0 || !g.node->op->backward, "%s %s: all gradients are 0",
                  c->op, c->attrs);
    ck_assert_msg(result.max_error <= bound, "%s %s: %s off by %g relative", c->op, c->attrs,
                  result.worst, result.max_error);
    gradient_free(&g);
    return result.max_error;
}

START_TEST(gradients_equal_central_differences)
{
    qat_registry *registry = registry_of_double_ops();
    const gradient_case *c, *worst = NULL;
    double largest = -1;
    int n = 0;
    for (; (c = gradient_case_at(n)); n++) {
        double const error = error_of(registry, c);
        if (error > largest) {
            largest = error;
            worst = c;
        }
    }
    ck_assert_ptr_nonnull(worst);
    printf("%d cases, worst %s \"%s\": %.2g relative to central differences, bound %.0e\n", n,
           worst->op, worst->attrs, largest, bound);
    qat_registry_free(registry);
}
END_TEST

/* ------------------------------------------------------------------ the check can fail */

static void wrong_backward(qat_node *node, const qat_run *run)
{
    qat_node *x = node->inputs[0];
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        x->grad[i] += node->grad[i] * (1 - node->value[i] * node->value[i]) * (1 + 3e-6);
}

START_TEST(a_gradient_that_is_off_a_little_is_found)
{
    static const gradient_case c = {
        "wrong_tanh", "", {{FILL_PLAIN, KIND_DATA, {3, 4, 2}}}, QAT_MODE_EVAL, 0};
    qat_op wrong = qat_op_tanh;
    qat_gradcheck_result result;
    qat_registry *registry = registry_of_double_ops();
    wrong.name = c.op;
    wrong.backward = wrong_backward;
    ck_assert_int_eq(qat_registry_add(registry, &wrong, NULL), QAT_OK);
    gradient_graph g = gradient_build(registry, &c, 1);
    ck_assert_int_eq(qat_gradcheck(g.graph, g.loss, &g.run, step, VALUES, &result, NULL), QAT_OK);
    ck_assert_msg(result.max_error > bound, "%g", result.max_error);
    gradient_free(&g);
    qat_registry_free(registry);
}
END_TEST

/* ------------------------------------------------------------------ for the float program */

START_TEST(gradients_are_written)
{
    qat_registry *registry = registry_of_double_ops();
    const gradient_case *c;
    for (int n = 0; (c = gradient_case_at(n)); n++) {
        gradient_graph g = gradient_build(registry, c, 1);
        qat_graph_forward(g.graph, &g.run);
        qat_graph_backward(g.graph, g.loss, &g.run);
        for (int i = 0; i < qat_graph_nodes(g.graph); i++) {
            const qat_node *node = qat_graph_node(g.graph, i);
            int64_t const count = (int64_t)qat_shape_count(&node->shape);
            if (!gradient_is_compared(node))
                continue;
            fwrite(&count, sizeof count, 1, stdout);
            fwrite(node->grad, sizeof *node->grad, (size_t)count, stdout);
        }
        gradient_free(&g);
    }
    qat_registry_free(registry);
}
END_TEST

int main(int argc, char **argv)
{
    bool const write = argc > 1 && strcmp(argv[1], "--write") == 0;
    Suite *suite = suite_create("gradients in double");
    TCase *tcase = tcase_create("gradients");
    tcase_set_timeout(tcase, 300);
    if (write) {
        tcase_add_test(tcase, gradients_are_written);
    } else {
        tcase_add_test(tcase, gradients_equal_central_differences);
        tcase_add_test(tcase, a_gradient_that_is_off_a_little_is_found);
    }
    suite_add_tcase(suite, tcase);
    int const status =
        test_run_suite_as(suite, write ? CK_NOFORK : CK_FORK_GETENV, write ? CK_SILENT : CK_ENV);
    return fflush(stdout) ? EXIT_FAILURE : status;
}

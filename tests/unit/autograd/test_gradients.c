/**
 * Compares float gradients with those in double, and checks that no op is forgotten.
 *
 *     test_gradients PATH-OF-test_gradients_double
 */
#include "common/suite.h"
#include "unit/autograd/gradient_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double const bound = 1e-4;
static const char *double_program;

static bool has_case(const char *op)
{
    const gradient_case *c;
    for (int n = 0; (c = gradient_case_at(n)); n++)
        if (strcmp(c->op, op) == 0)
            return true;
    return false;
}

static const char *exemption(const char *op)
{
    for (const gradient_exemption *e = gradient_exemptions; e->op; e++)
        if (strcmp(e->op, op) == 0)
            return e->reason;
    return NULL;
}

START_TEST(every_op_with_a_gradient_has_a_case)
{
    qat_registry *registry;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_gt(qat_registry_count(registry), 20);
    for (int i = 0; i < qat_registry_count(registry); i++) {
        const qat_op *op = qat_registry_at(registry, i);
        if (!op->backward)
            continue;
        ck_assert_msg(
            has_case(op->name) != (exemption(op->name) != NULL), "op '%s' has %s", op->name,
            has_case(op->name) ? "a case and an exemption"
                               : "a gradient, and no line in tests/unit/gradient_cases*.c");
        if (exemption(op->name))
            printf("exempt: %s (%s)\n", op->name, exemption(op->name));
    }
    qat_registry_free(registry);
}
END_TEST

/* Largest |float - double| relative to the largest |double| of the tensor. */
static double difference(const qat_node *node, FILE *from)
{
    double largest = 0, worst = 0, value;
    int64_t count;
    ck_assert_uint_eq(fread(&count, sizeof count, 1, from), 1);
    ck_assert_int_eq(count, (int64_t)qat_shape_count(&node->shape));
    for (int64_t i = 0; i < count; i++) {
        ck_assert_uint_eq(fread(&value, sizeof value, 1, from), 1);
        ck_assert(isfinite(value) && isfinite(node->grad[i]));
        largest = fmax(largest, fabs(value));
        worst = fmax(worst, fabs(value - (double)node->grad[i]));
    }
    return worst == 0 ? 0 : worst / largest;
}

static double compare_case(const qat_registry *registry, const gradient_case *c, FILE *from)
{
    double worst = 0;
    gradient_graph g = gradient_build(registry, c, 1);
    qat_graph_forward(g.graph, &g.run);
    qat_graph_backward(g.graph, g.loss, &g.run);
    for (int i = 0; i < qat_graph_nodes(g.graph); i++) {
        const qat_node *node = qat_graph_node(g.graph, i);
        if (!gradient_is_compared(node))
            continue;
        double const d = difference(node, from);
        ck_assert_msg(d <= bound, "%s %s, gradient of %s: %g of the largest", c->op, c->attrs,
                      node->name, d);
        worst = fmax(worst, d);
    }
    gradient_free(&g);
    return worst;
}

START_TEST(float_gradients_equal_double_ones)
{
    char command[4096], nothing;
    qat_registry *registry;
    const gradient_case *c, *at = NULL;
    double worst = -1;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    snprintf(command, sizeof command, "'%s' --write", double_program);
    FILE *from = popen(command, "r");
    ck_assert_ptr_nonnull(from);
    for (int n = 0; (c = gradient_case_at(n)); n++) {
        double const d = compare_case(registry, c, from);
        if (d > worst) {
            worst = d;
            at = c;
        }
    }
    ck_assert_uint_eq(fread(&nothing, 1, 1, from), 0);
    ck_assert_int_eq(pclose(from), 0);
    ck_assert_ptr_nonnull(at);
    printf("worst %s \"%s\": float differs from double by %.2g of the largest gradient, bound "
           "%.0e\n",
           at->op, at->attrs, worst, bound);
    qat_registry_free(registry);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s PATH-OF-test_gradients_double\n", argv[0]);
        return 2;
    }
    double_program = argv[1];
    Suite *suite = suite_create("gradients");
    TCase *tcase = tcase_create("gradients");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, every_op_with_a_gradient_has_a_case);
    tcase_add_test(tcase, float_gradients_equal_double_ones);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}

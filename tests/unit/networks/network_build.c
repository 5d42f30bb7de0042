#include "unit/networks/network_build.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

qat_registry *network_registry;

void network_setup(void)
{
    ck_assert_int_eq(qat_registry_create(&network_registry, NULL), QAT_OK);
}

void network_teardown(void)
{
    qat_registry_free(network_registry);
}

qat_input_info input_of(int height, int width, int channels, int classes)
{
    return (qat_input_info){
        .height = height, .width = width, .channels = channels, .classes = classes};
}

static qat_status try_build(qat_graph **g, const char *text, qat_input_info in, qat_error *err)
{
    qat_recipe *r;
    *g = NULL;
    qat_status st = qat_recipe_parse(&r, text, "n.ini", NULL, 0, err);
    if (!st)
        st = qat_network_build(g, network_registry, r, &in, err);
    qat_recipe_free(r);
    return st;
}

qat_graph *build(const char *text, qat_input_info in)
{
    qat_graph *g;
    qat_error err;
    ck_assert_msg(try_build(&g, text, in, &err) == QAT_OK, "%s", err.message);
    return g;
}

void refuse(const char *text, qat_input_info in, const char *message)
{
    qat_graph *g;
    qat_error err;
    ck_assert_int_ne(try_build(&g, text, in, &err), QAT_OK);
    ck_assert_ptr_null(g);
    ck_assert_msg(strstr(err.message, message) != NULL, "got: %s", err.message);
}

void check_shape(const qat_graph *g, const char *name, const char *expected)
{
    char text[64];
    const qat_node *node = qat_graph_find(g, name);
    ck_assert_msg(node != NULL, "%s is missing", name);
    ck_assert_str_eq(qat_shape_text(&node->shape, text), expected);
}

/** The totals row. */
qat_layer_cost totals(const qat_graph *g)
{
    qat_layer_cost *costs;
    int count;
    ck_assert_int_eq(qat_network_costs(g, QAT_LAYOUT_UINT8, &costs, &count, NULL), QAT_OK);
    qat_layer_cost const total = costs[count - 1];
    free(costs);
    return total;
}

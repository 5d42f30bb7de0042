#include "common/toy_graph.h"

#include <check.h>

qat_registry *registry;
qat_graph *graph;

void toy_graph_setup(void)
{
    registry = toy_registry();
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
}

void toy_graph_teardown(void)
{
    qat_graph_free(graph);
    qat_registry_free(registry);
}

/** A fixture for tests of the engine: an empty graph over the toy ops. */
#ifndef QAT_TESTS_TOY_GRAPH_H
#define QAT_TESTS_TOY_GRAPH_H

#include "common/toy_ops.h"

/** Made and freed by the fixture. */
extern qat_registry *registry;
extern qat_graph *graph;

void toy_graph_setup(void);
void toy_graph_teardown(void);

#endif

/** For tests of networks: builds them from a recipe's text, and asks for shapes and sizes. */
#ifndef QAT_TESTS_NETWORK_BUILD_H
#define QAT_TESTS_NETWORK_BUILD_H

#include "qat/train.h"

/** The built-in ops; made and freed by the fixture. */
extern qat_registry *network_registry;
void network_setup(void);
void network_teardown(void);

qat_input_info input_of(int height, int width, int channels, int classes);
/** The float graph of a recipe (called n.ini in messages); it must be one. */
qat_graph *build(const char *text, qat_input_info in);
/** Assert that this recipe or network is refused with a message that contains these words. */
void refuse(const char *text, qat_input_info in, const char *message);
void check_shape(const qat_graph *g, const char *name, const char *expected);
/** The last row of its costs. */
qat_layer_cost totals(const qat_graph *g);

#endif

/** From a float graph with values to integers, as training and export do it. */
#ifndef QAT_TESTS_FOREIGN_INTEGERS_H
#define QAT_TESTS_FOREIGN_INTEGERS_H

#include "qat/qat.h"

/**
 * Observe ranges on the graph's input, freeze it in both layouts, and compare the engine with the
 * exact evaluation on the same input.
 * @param graph  planned for the batch, with values of its parameters and its input
 * @param bytes  compared; *differing of them
 */
qat_status integers_compare(const qat_registry *registry, const qat_graph *graph, int batch,
                            int64_t *bytes, int64_t *differing, qat_error *err);

#endif

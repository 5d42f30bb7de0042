/** The forward of every float op once more: in double, by the definition, one value at a time. */
#ifndef QAT_TESTS_NAIVE_OPS_H
#define QAT_TESTS_NAIVE_OPS_H

#include "qat/graph.h"

/** y = what node's value should be, from its inputs' values; false if there is no such function for
 *  its op (or for dropout in train mode, which is random). */
bool naive_forward(const qat_node *node, const qat_run *run, double *y);

#endif

/**
 * The forward functions of every float op a second time: in double, directly from the definition,
 * one value at a time.
 */
#ifndef QAT_TESTS_NAIVE_OPS_H
#define QAT_TESTS_NAIVE_OPS_H

#include "qat/graph.h"

/**
 * Set y to what node's value should be, computed from its inputs' values. Return false if there is
 * no such function for the op, or for dropout in train mode, which is random.
 */
bool naive_forward(const qat_node *node, const qat_run *run, double *y);

#endif

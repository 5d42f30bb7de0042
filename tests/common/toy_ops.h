/**
 * Small ops for tests of the engine, registered as a user's would be.
 *
 *   square(x)             x^2
 *   plus(a, b)            a + b, of equal shapes
 *   linear(x)             [N, C] -> [N, units]: gain (W x + offset), doubled where mode=doubled;
 *                         attributes units (must be given), gain, mode; parameters weights, offset
 *   total(x)              [1]: sum
 *   stop(x)               x, without a backward
 *   centre(x)             x - mean; parameter mean [1], which update sets to the batch's
 *   join(x...)            gain * sum of any number of inputs; parameter gain [1]
 *   gate(a, b)            a until step 2, which does not read b; then a + b
 *   lying(x)              2 x with a backward of 2.5
 *   hoarder(x)            x; needs more scratch for a smaller batch, which is forbidden
 *   batch_bound(x)        x; describes a parameter whose shape is the batch
 */
#ifndef QAT_TESTS_TOY_OPS_H
#define QAT_TESTS_TOY_OPS_H

#include "qat/graph.h"

/** A registry with the ops above; fails the test if that fails. qat_registry_free. */
qat_registry *toy_registry(void);

/** Fill a node's value with numbers in (-1, 1) that depend on seed. */
void toy_fill(qat_node *node, unsigned seed);

#endif

/** What a network computes without data: where all its inputs are constants. */
#ifndef QAT_TESTS_FOREIGN_KNOWN_H
#define QAT_TESTS_FOREIGN_KNOWN_H

#include "node_test.h"

/**
 * Compute all outputs from constants, as importing does with shapes, and compare them with the
 * answers: integers exactly, floats within the tolerance, and the dimensions.
 * @param worst  the largest difference of floats; INFINITY if a dimension or an integer differs
 */
qat_status known_compare(const node_test *t, const qat_registry *registry, double *worst,
                         qat_error *err);

#endif

/** Quantized networks of the archive: imported, run, and compared code by code. */
#ifndef QAT_TESTS_FOREIGN_QUANTIZED_H
#define QAT_TESTS_FOREIGN_QUANTIZED_H

#include "node_test.h"

/** Has it operators of codes, or are its first input and output codes of 8 bits? */
bool quantized_is(const node_test *t);
bool quantized_has_codes(const node_test *t);

/**
 * Import the network in each way that its inputs allow: all that are tensors of codes as data, then
 * only the first. The first way that is imported counts.
 * @param inputs     how many were data
 * @param differing  values of output 0 that differ
 */
qat_status quantized_compare(const char *folder, int *inputs, size_t *differing, qat_error *err);

#endif

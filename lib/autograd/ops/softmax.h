/** The softmax of one row, used by the op softmax and by the cross-entropy. */
#ifndef QAT_AUTOGRAD_SOFTMAX_H
#define QAT_AUTOGRAD_SOFTMAX_H

#include "qat/graph.h"

/**
 * y = exp(x - max x) / sum of exp(x - max x), for n >= 1 values. The sum is taken in double, in
 * order.
 */
void qat_softmax_row(const qat_real *x, qat_real *y, size_t n);

#endif

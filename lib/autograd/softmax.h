/** The softmax of one row, shared by the op and by the cross-entropy. */
#ifndef QAT_AUTOGRAD_SOFTMAX_H
#define QAT_AUTOGRAD_SOFTMAX_H

#include "qat/graph.h"

/** y = exp(x - max x) / sum of them, n >= 1 values; the sum in double, in order. */
void qat_softmax_row(const qat_real *x, qat_real *y, size_t n);

#endif

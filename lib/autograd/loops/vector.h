/**
 * Loops over arrays that several ops share. They are serial unless noted; callers cut the tiles.
 */
#ifndef QAT_AUTOGRAD_VECTOR_H
#define QAT_AUTOGRAD_VECTOR_H

#include "qat/graph.h"

/** y[i] += x[i] */
void qat_vector_add(qat_real *y, const qat_real *x, size_t n);

/** y[i] += a * x[i] */
void qat_vector_add_scaled(qat_real *y, const qat_real *x, qat_real a, size_t n);

/**
 * The sum of (x[i] - t[i])^2 in double. t may be NULL, which means zeros. Values with t[i] = NaN do
 * not count.
 */
double qat_vector_squares(const qat_real *x, const qat_real *t, size_t n);

/** y += x, over fixed tiles in parallel. */
void qat_accumulate(qat_real *y, const qat_real *x, size_t n);

/**
 * Pass dy on to the gradient of an input of the same size. It is written if it is new, otherwise
 * added. If the gradient is dy itself, there is nothing to do.
 */
void qat_pass_gradient(const qat_node *node, int input);

/**
 * y[i] += (part[0][i] + part[1][i] + ...), added in that order, over tiles in parallel. The parts
 * follow each other, `stride` values apart. The sum of the parts does not depend on y: so a
 * gradient has the same bits if it takes a detour through a node that passes it on.
 */
void qat_accumulate_parts(qat_real *y, const qat_real *parts, int n_parts, size_t stride, size_t n);

#endif

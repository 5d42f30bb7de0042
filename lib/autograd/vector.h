/** Loops over arrays that several ops share. Serial: callers cut the tiles. */
#ifndef QAT_AUTOGRAD_VECTOR_H
#define QAT_AUTOGRAD_VECTOR_H

#include "qat/graph.h"

/** y[i] += x[i] */
void qat_vector_add(qat_real *y, const qat_real *x, size_t n);

/** y[i] += a * x[i] */
void qat_vector_add_scaled(qat_real *y, const qat_real *x, qat_real a, size_t n);

/** sum of (x[i] - t[i])^2 in double; t may be NULL: zeros; where t[i] is NaN, nothing. */
double qat_vector_squares(const qat_real *x, const qat_real *t, size_t n);

/** y += x over fixed tiles in parallel. */
void qat_accumulate(qat_real *y, const qat_real *x, size_t n);

/** Pass dy on to the gradient of an input of the same size: written where it is new, nothing to do
 *  where it is dy itself, else added. */
void qat_pass_gradient(const qat_node *node, int input);

/** y[i] += (part[0][i] + part[1][i] + ...), added in that order, over tiles in parallel; parts lie
 * one behind the other, `stride` values apart. The sum does not depend on what y holds: a gradient
 * that takes a detour (a node that passes it on) is the same bits. */
void qat_accumulate_parts(qat_real *y, const qat_real *parts, int n_parts, size_t stride, size_t n);

#endif

/**
 * The clamp activations: y = min(max(x, MIN), MAX), with gradient 1 between the bounds, and 0 at
 * and beyond them. The op, its quant entry, its tests and the choices of model.activation are made
 * of these rows. Only the certificate has bounds of its own (lib/certify/fuse.c).
 *
 *     X(name, MIN, MAX, meaning)      a bound may be infinite
 */
#ifndef QAT_AUTOGRAD_CLAMPS_H
#define QAT_AUTOGRAD_CLAMPS_H

#include <math.h>

#define QAT_CLAMPS(X)                                                                              \
    X(relu, 0, INFINITY, "max(x, 0)")                                                              \
    X(relu1, 0, 1, "min(max(x, 0), 1)")                                                            \
    X(relu6, 0, 6, "min(max(x, 0), 6)")                                                            \
    X(hard_tanh, -1, 1, "min(max(x, -1), 1)")

#endif

/**
 * The curves: activations that are no clamps. At export, each becomes a table of 256 codes, or a
 * kernel. A row gives the op, its gradient cases and its choice in model.activation. How it becomes
 * integers says its entry in lib/integer/quant_curves.c; the certificate has functions of its
 * own (lib/certify/table.c).
 *
 *     X(name, meaning, y as a function of x, the gradient of x as one of x, y and dy)
 *
 * Both are expressions of the numbers x, y and dy, which have the type qat_real, float or double.
 * They may call the functions of loops/real.h, such as QAT_EXP(x), and those in front of CURVE in
 * op_activation.c, such as logistic_of(x). A literal that is no whole number is QAT_REAL(0.5). They
 * must be finite for x from -1e30 to 1e30, and let NaN through, so that it is found where it first
 * appears.
 */
#ifndef QAT_AUTOGRAD_CURVES_H
#define QAT_AUTOGRAD_CURVES_H

#include "autograd/ops/clamps.h"

/* clang-format off */
#define QAT_CURVES(X)                                                                              \
    X(logistic, "1 / (1 + exp(-x))", logistic_of(x), dy * y * (1 - y))                             \
    X(tanh, "hyperbolic tangent", QAT_TANH(x), dy * (1 - y * y))                                   \
    X(hard_swish, "x min(max(x + 3, 0), 6) / 6", x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6,       \
      x <= -3 ? 0 : x >= 3 ? dy : dy * (2 * x + 3) / 6)                                            \
    X(silu, "x / (1 + exp(-x))", x * logistic_of(x), dy * logistic_of(x) * (1 + (x - y)))      \
    X(gelu, "x (1 + erf(x / sqrt(2))) / 2", x * normal_of(x), dy * (normal_of(x) + x * density_of(x)))
/* clang-format on */

/** All that model.activation may be. */
#define QAT_ACTIVATIONS(X) QAT_CLAMPS(X) QAT_CURVES(X)

#endif

/** The C library's functions for qat_real, in float or double, by names such as QAT_EXP(x). */
#ifndef QAT_AUTOGRAD_REAL_H
#define QAT_AUTOGRAD_REAL_H

#include "qat/graph.h"
#include <float.h>
#include <math.h>

#ifdef QAT_REAL_DOUBLE
#define QAT_REAL(x)    (x)
#define QAT_REAL_MAX   DBL_MAX
#define QAT_SQRT(x)    sqrt(x)
#define QAT_EXP(x)     exp(x)
#define QAT_LOG(x)     log(x)
#define QAT_LOG1P(x)   log1p(x)
#define QAT_TANH(x)    tanh(x)
#define QAT_ERFC(x)    erfc(x)
#define QAT_FABS(x)    fabs(x)
#define QAT_FMAX(x, y) fmax(x, y)
#define QAT_FMIN(x, y) fmin(x, y)
#else
#define QAT_REAL(x)    (x##f) /* a literal: QAT_REAL(0.5) */
#define QAT_REAL_MAX   FLT_MAX
#define QAT_SQRT(x)    sqrtf(x)
#define QAT_EXP(x)     expf(x)
#define QAT_LOG(x)     logf(x)
#define QAT_LOG1P(x)   log1pf(x)
#define QAT_TANH(x)    tanhf(x)
#define QAT_ERFC(x)    erfcf(x)
#define QAT_FABS(x)    fabsf(x)
#define QAT_FMAX(x, y) fmaxf(x, y)
#define QAT_FMIN(x, y) fminf(x, y)
#endif

/**
 * Marks a hot loop: it is compiled for plain x86-64, for AVX2 and for AVX-512, and one version is
 * chosen when the program is loaded. All compute the same bits: such loops vectorize only across
 * independent results, and contraction to fused multiply-add is off. Builds with sanitizers have
 * only one version, because sanitizers are not ready when the choice is made. These functions are
 * static: gcc exports others from the library, even if they are hidden.
 */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) &&       \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define QAT_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define QAT_VECTOR
#endif

#endif

/**
 * Matrix products of row-major matrices. Only this module calls OpenBLAS.
 *
 * OpenBLAS is held to one thread. The caller makes the threads and cuts the work into tiles that do
 * not depend on their number (base/parallel.h). The same sizes then give the same bits.
 */
#ifndef QAT_AUTOGRAD_GEMM_H
#define QAT_AUTOGRAD_GEMM_H

#include "qat/graph.h"

typedef enum qat_transpose { QAT_AS_IS, QAT_TRANSPOSED } qat_transpose;

/**
 * Hold OpenBLAS to one thread, and let it take its memory: a buffer for each thread that multiplies
 * (128 MiB of address space on x86-64). OpenBLAS itself tries for ever where that is refused
 * (ulimit -v); here it is QAT_ERR_NOMEM. Call it before the first product, after qat_set_threads;
 * ops do so in `shape`. Any thread may call it; further calls cost next to nothing.
 */
qat_status qat_gemm_prepare(qat_error *err);

/**
 * c = op(a) op(b) + beta c, where op(a) is m x k, op(b) is k x n, c is m x n.
 * @param lda  values from one stored row of a to the next, before transposition
 * @param beta 0 (c may hold anything, NaN included) or 1
 */
void qat_gemm(qat_transpose ta, qat_transpose tb, int m, int n, int k, const qat_real *a, int lda,
              const qat_real *b, int ldb, qat_real beta, qat_real *c, int ldc);

/** The same in double, whatever qat_real is. Exact on integers below 2^53. */
void qat_gemm_f64(qat_transpose ta, qat_transpose tb, int m, int n, int k, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);

#endif

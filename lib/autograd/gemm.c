#include "autograd/gemm.h"

#include <cblas.h>

void qat_gemm_prepare(void)
{
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
}

static enum CBLAS_TRANSPOSE blas_of(qat_transpose t)
{
    return t == QAT_TRANSPOSED ? CblasTrans : CblasNoTrans;
}

void qat_gemm(qat_transpose ta, qat_transpose tb, int m, int n, int k, const qat_real *a, int lda,
              const qat_real *b, int ldb, qat_real beta, qat_real *c, int ldc)
{
#ifdef QAT_REAL_DOUBLE
    qat_gemm_f64(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
#else
    cblas_sgemm(CblasRowMajor, blas_of(ta), blas_of(tb), m, n, k, 1.0f, a, lda, b, ldb, beta, c,
                ldc);
#endif
}

void qat_gemm_f64(qat_transpose ta, qat_transpose tb, int m, int n, int k, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc)
{
    cblas_dgemm(CblasRowMajor, blas_of(ta), blas_of(tb), m, n, k, 1.0, a, lda, b, ldb, beta, c,
                ldc);
}

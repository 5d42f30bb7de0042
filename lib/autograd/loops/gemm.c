#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "autograd/loops/gemm.h"

#include "base/parallel.h"

#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
    BUFFER_MIB =
        132,    /* OpenBLAS's buffer of a thread, the largest of any processor, and some more */
    SIDE = 128, /* of a product that is too large for OpenBLAS to do without its buffer */
    MEET_MS = 20
};

/** How many threads have their buffer. OpenBLAS's memory is of the whole process, and so is this.
 */
static int ready;

/** May the process have so much memory? */
static bool can_have(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, bytes) == 0;
}

struct meeting {
    float *values;
    int threads;
    atomic_int arrived;
    double end; /* by then, whoever is there begins */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void multiply(void *context, int tile, int thread)
{
    struct meeting *m = context;
    float *values = m->values + (size_t)tile * 3 * SIDE * SIDE;
    (void)thread;
    atomic_fetch_add(&m->arrived, 1);
    while (atomic_load(&m->arrived) < m->threads && now() < m->end)
        sched_yield();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, values, SIDE,
                values + SIDE * SIDE, SIDE, 0, values + 2 * SIDE * SIDE, SIDE);
}

/** One product in each thread, at the same time: each takes a buffer, which OpenBLAS keeps. */
static qat_status take_buffers(int threads, qat_error *err)
{
    float *values = calloc((size_t)threads * 3 * SIDE * SIDE, sizeof *values);
    if (!values)
        return qat_out_of_memory(err, "matrix products");
    struct meeting m = {.values = values, .threads = threads, .end = now() + 1e-3 * MEET_MS};
    qat_parallel(threads, multiply, &m);
    free(values);
    return QAT_OK;
}

static qat_status prepare(qat_error *err)
{
    int const threads = qat_threads(), more = threads - ready;
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
    if (more <= 0)
        return QAT_OK;
    if (!can_have((size_t)more * BUFFER_MIB << 20))
        return qat_fail(err, QAT_ERR_NOMEM,
                        "matrix products: OpenBLAS takes up to %d MiB of memory for each of %d "
                        "thread%s, which this process may not have: raise its limit (ulimit -v), "
                        "or use fewer threads",
                        BUFFER_MIB, threads, threads == 1 ? "" : "s");
    qat_status const st = take_buffers(threads, err);
    if (!st)
        ready = threads;
    return st;
}

qat_status qat_gemm_prepare(qat_error *err)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    qat_status const st = prepare(err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
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

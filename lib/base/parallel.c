#include "base/parallel.h"

#ifdef _OPENMP
#include <omp.h>

void qat_parallel(int tiles, qat_tile_fn *fn, void *context)
{
    if (tiles < 2 || omp_get_max_threads() < 2) { /* no other thread is needed */
        for (int t = 0; t < tiles; t++)
            fn(context, t, 0);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int t = 0; t < tiles; t++)
        fn(context, t, omp_get_thread_num());
}

void qat_set_threads(int threads)
{
    omp_set_num_threads(threads < 1 ? 1 : threads);
}

int qat_threads(void)
{
    return omp_get_max_threads();
}

#else

void qat_parallel(int tiles, qat_tile_fn *fn, void *context)
{
    for (int t = 0; t < tiles; t++)
        fn(context, t, 0);
}

void qat_set_threads(int threads)
{
    (void)threads; /* built without OpenMP: always one thread */
}

int qat_threads(void)
{
    return 1;
}

#endif

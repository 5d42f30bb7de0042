/**
 * Tiles for threads. A loop is cut into tiles by its caller, never by the number of threads, and
 * each tile writes its own part of the output: results are the same bits for any thread count.
 */
#ifndef QAT_BASE_PARALLEL_H
#define QAT_BASE_PARALLEL_H

#include "qat/runtime.h" /* how many threads: qat_threads */

typedef void qat_tile_fn(void *context, int tile, int thread);

/** Equals: for (int t = 0; t < tiles; t++) fn(context, t, 0); with OpenMP, static schedule. */
void qat_parallel(int tiles, qat_tile_fn *fn, void *context);

#endif

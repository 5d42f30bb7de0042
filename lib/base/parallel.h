/**
 * Tiles for threads. The caller cuts a loop into tiles; their number never depends on the number of
 * threads. Each tile writes its own part of the output. So the result has the same bits for any
 * thread count.
 */
#ifndef QAT_BASE_PARALLEL_H
#define QAT_BASE_PARALLEL_H

#include "qat/runtime.h" /* how many threads: qat_threads */

typedef void qat_tile_fn(void *context, int tile, int thread);

/**
 * Equals for (int t = 0; t < tiles; t++) fn(context, t, 0). The tiles run in any order, spread over
 * qat_threads() threads of the pool (lib/infer/host/pool.h); thread is less than that, and two
 * tiles that run at the same time have different ones. A tile sees the caller's qat_threads(); what
 * it calls itself runs on its thread alone.
 */
void qat_parallel(int tiles, qat_tile_fn *fn, void *context);

#endif

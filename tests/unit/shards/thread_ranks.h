/**
 * Ranks that are threads of one process (qat/ranks.h), for tests: thread_ranks_run calls fn in `n`
 * threads, each with its own table.
 */
#ifndef THREAD_RANKS_H
#define THREAD_RANKS_H

#include "qat/ranks.h"

void thread_ranks_run(int n, void (*fn)(void *context, const qat_ranks *ranks), void *context);

#endif

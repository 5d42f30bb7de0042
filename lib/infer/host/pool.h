/**
 * Threads for loops.
 *
 * A job is a sequence of rounds; a round is cut into parts, which may run in any order and at the
 * same time. All parts of a round have ended before one of the next round begins.
 *
 *     caller    parts 0, 1 .. of round 0 | wait | parts of round 1 ..  | return
 *     worker 1  parts k, k+1 .. of it    | wait | ..                   | wait for the next job
 *
 * Each thread has its own contiguous share of a round's parts, the same one in every round. So it
 * finds in its cache what it wrote in the round before. Whoever has finished takes parts of the
 * others. Nobody waits for a thread that has not begun: where the system does not let a thread run,
 * because other programs need the processor, the others do its parts.
 */
#ifndef QI_HOST_POOL_H
#define QI_HOST_POOL_H

#include <stdint.h>

enum { QI_POOL_MOST_THREADS = 256, QI_POOL_MOST_PIECES = 64 };

/**
 * Do the parts first..end-1 of a round.
 * @param thread  which of the job's threads does it: 0 is the caller. Two calls that run at the
 *                same time have different numbers.
 */
typedef void qi_pool_fn(void *context, int32_t round, int32_t first, int32_t end, int thread);

typedef struct qi_pool_job {
    qi_pool_fn *fn;
    void *context;
    int32_t rounds;
    int threads; /* 1..QI_POOL_MOST_THREADS */
    int pieces;  /* of a thread's share, 1..QI_POOL_MOST_PIECES: a round has threads * pieces parts
                  */
} qi_pool_job;

/**
 * Equals
 *
 *     for (int32_t round = 0; round < job->rounds; round++)
 *         job->fn(job->context, round, 0, job->threads * job->pieces, 0);
 *
 * It cannot fail: where threads cannot be had, fewer do the same parts. Any thread may call it, and
 * several at the same time: each has threads of its own, from a store whose threads sleep until
 * they are needed again. If there are more callers than teams in that store, the others run alone.
 * So does a caller that is itself part of a job. A process made by fork starts its own threads,
 * unless it was forked by a part of a job; then it must not go on with that job.
 */
void qi_pool_run(const qi_pool_job *job);

/**
 * How many threads a job may have: as many as are wanted, at most QI_POOL_MOST_THREADS; if 0 are
 * wanted, one for each processor that this process may use. 1 in a build without threads.
 */
int qi_pool_threads(int wanted);

#endif

#include "base/parallel.h"

#include "infer/host/parts.h"

#include <limits.h>
#include <stdlib.h>

enum { PIECES = 4 }; /* of a thread's share: so a thread that is free can help one that is slow */

/** How many threads this thread of the program has; 0: it has not said. */
static _Thread_local int setting;

/** What OMP_NUM_THREADS says ("4", or "4,2" of which the first counts), or 0. */
static int threads_of_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long const threads = text ? strtol(text, NULL, 10) : 0;
    return threads < 1 ? 0 : threads > INT_MAX ? INT_MAX : (int)threads;
}

void qat_set_threads(int threads)
{
    setting = qi_host_parts()->pool_threads(threads < 1 ? 1 : threads);
}

int qat_threads(void)
{
    if (!setting)
        setting = qi_host_parts()->pool_threads(threads_of_environment());
    return setting;
}

/** A call of qat_parallel. */
typedef struct loop {
    qat_tile_fn *fn;
    void *context;
    int tiles, parts, setting;
} loop;

/** Parts differ by at most one tile. */
static void run_parts(void *context, int32_t round, int32_t part, int32_t end_part, int thread)
{
    const loop *l = context;
    int const first = (int)((int64_t)l->tiles * part / l->parts);
    int const end = (int)((int64_t)l->tiles * end_part / l->parts);
    (void)round;
    setting = l->setting; /* a tile sees its caller's setting */
    for (int t = first; t < end; t++)
        l->fn(l->context, t, thread);
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

void qat_parallel(int tiles, qat_tile_fn *fn, void *context)
{
    int const threads = tiles < 2 ? 1 : at_most(qat_threads(), tiles);
    if (threads < 2) {
        for (int t = 0; t < tiles; t++)
            fn(context, t, 0);
        return;
    }
    int const pieces = at_most((tiles - 1) / threads + 1, PIECES);
    loop l = {fn, context, tiles, threads * pieces, qat_threads()};
    qi_host_parts()->pool_run(&(qi_pool_job){
        .fn = run_parts, .context = &l, .rounds = 1, .threads = threads, .pieces = pieces});
}

/** Repeat a run and reduce the times to a few numbers. */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_RUNS = 5, SEED = 1 };
static const double warm_seconds = 0.1;

typedef struct runs {
    double *seconds;
    int64_t n, room;
} runs;

static double timed_run(const bench_subject *s)
{
    double const start = tool_now();
    s->run(s->context);
    return tool_now() - start;
}

static void warm_up(const bench_subject *s)
{
    double const end = tool_now() + warm_seconds;
    do
        s->run(s->context);
    while (tool_now() < end);
}

static qat_status keep(runs *r, double seconds, qat_error *err)
{
    if (r->n == r->room) {
        int64_t const room = r->room ? 2 * r->room : 1024;
        double *grown = realloc(r->seconds, (size_t)room * sizeof *grown);
        if (!grown)
            return qat_out_of_memory(err, "times of runs");
        r->seconds = grown;
        r->room = room;
    }
    r->seconds[r->n++] = seconds;
    return QAT_OK;
}

/** Does the protocol ask for another run, after `done` runs and `since` seconds? */
static bool goes_on(const bench_protocol *p, int64_t done, double since)
{
    return p->runs ? done < p->runs : done < LEAST_RUNS || since < p->seconds;
}

static qat_status run_often(runs *r, const bench_subject *s, qat_rng *rng, const bench_protocol *p,
                            qat_error *err)
{
    qat_status st = QAT_OK;
    double const start = tool_now();
    while (!st && goes_on(p, r->n, tool_now() - start)) {
        if (p->random_input)
            s->fill(s->context, rng);
        st = keep(r, timed_run(s), err);
    }
    return st;
}

static int ascending(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bench_times summary(const runs *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++)
        sum += r->seconds[i];
    qsort(r->seconds, (size_t)r->n, sizeof *r->seconds, ascending);
    return (bench_times){.runs = r->n,
                         .min_ms = 1e3 * r->seconds[0],
                         .median_ms = 0.5e3 * (r->seconds[(r->n - 1) / 2] + r->seconds[r->n / 2]),
                         .mean_ms = 1e3 * sum / (double)r->n,
                         .p95_ms = 1e3 * r->seconds[(int64_t)ceil(0.95 * (double)r->n) - 1]};
}

qat_status bench_time(bench_times *times, const bench_subject *subject, const bench_protocol *p,
                      qat_error *err)
{
    runs r = {0};
    qat_rng rng = qat_rng_at(SEED, 0, 0);
    subject->fill(subject->context, &rng);
    warm_up(subject);
    qat_status const st = run_often(&r, subject, &rng, p, err);
    if (!st)
        *times = summary(&r);
    free(r.seconds);
    return st;
}

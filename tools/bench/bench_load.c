/**
 * Time from opening a file to the first answer. For a cold start, a new process opens the model,
 * runs it once, then goes on running; it sends the times back through a pipe. From the second
 * process on, the file is in the system's cache. The parent forks, so it must not have used threads
 * before.
 */
#include "tools/bench/bench.h"
#include "tools/common/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS_AFTER = 40 };

static double timed_run(const qi_host *host, const tool_buffers *b)
{
    double const start = tool_now();
    qi_host_run(host, (const void *const *)b->in, b->out);
    return 1e3 * (tool_now() - start);
}

static qat_status run_opened(bench_start *s, const qi_host *host, qat_error *err)
{
    tool_buffers b = {0};
    qat_status const st = tool_buffers_create(&b, qi_host_model(host), err);
    if (!st) {
        s->first_ms = timed_run(host, &b);
        s->run_ms = timed_run(host, &b);
        for (int i = 0; i < RUNS_AFTER; i++) {
            double const ms = timed_run(host, &b);
            s->run_ms = ms < s->run_ms ? ms : s->run_ms;
        }
    }
    tool_buffers_free(&b);
    return st;
}

/** Time one start in this process. */
static qat_status start_once(bench_start *s, const char *path, const qi_host_options *options,
                             qat_error *err)
{
    qi_host *host = NULL;
    double const start = tool_now();
    if (qi_host_open(&host, path, options, err))
        return tool_not_opened(path, err);
    s->open_ms = 1e3 * (tool_now() - start);
    qat_status const st = run_opened(s, host, err);
    qi_host_close(host);
    return st;
}

/** What a child process sends back. */
typedef struct told {
    bench_start start;
    qat_status status;
    qat_error err;
} told;

/** Everything that a child process does. */
static void start_in_child(int to, const char *path, const qi_host_options *options)
{
    told t = {0};
    t.status = start_once(&t.start, path, options, &t.err);
    _exit(write(to, &t, sizeof t) == (ssize_t)sizeof t ? EXIT_SUCCESS : EXIT_FAILURE);
}

static qat_status start_in_process(bench_start *s, const char *path, const qi_host_options *options,
                                   qat_error *err)
{
    told t = {0};
    int ends[2];
    if (pipe(ends))
        return qat_fail(err, QAT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t const child = fork();
    if (child == 0)
        start_in_child(ends[1], path, options);
    close(ends[1]);
    bool const got = child > 0 && read(ends[0], &t, sizeof t) == (ssize_t)sizeof t;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (!got)
        return qat_fail(err, QAT_ERR_IO,
                        "%s: a process that measures the start could not be started, or it died",
                        path);
    *s = t.start;
    return t.status ? qat_fail(err, t.status, "%s", t.err.message) : QAT_OK;
}

qat_status bench_load(bench_start starts[BENCH_STARTS], const char *path, const tool_run *how,
                      bool cold, qat_error *err)
{
    qi_host_options const options = {
        .isa = how->isa, .threads = (int)how->threads, .limits = tool_limits_of()};
    qat_status st = QAT_OK;
    for (int i = 0; i < BENCH_STARTS && !st; i++)
        st = cold ? start_in_process(&starts[i], path, &options, err)
                  : start_once(&starts[i], path, &options, err);
    return st;
}

/**
 * Runs processes side by side. Signals are blocked and waited for, so that none arrives at a bad
 * moment.
 */
#define _GNU_SOURCE /* prctl's headers */
#include "tools/sweep/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

typedef struct slot {
    pid_t pid; /* 0: this slot is free */
    int job;
} slot;

typedef struct running {
    const qat_pool *pool;
    slot *slots;
    int next_job, busy;
    bool stopping;
    sigset_t waited_for, before;
} running;

/* ------------------------------------------------------------------ the new process */

static bool redirect(int to, const char *path, int flags)
{
    int const file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    return file >= 0 && dup2(file, to) >= 0;
}

static void become(const running *r, const qat_command *c, pid_t parent)
{
    sigprocmask(SIG_SETMASK, &r->before, NULL);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* the parent ended before this process could watch it */
        _exit(127);
#endif
    if (redirect(STDERR_FILENO, c->log, O_APPEND) && redirect(STDIN_FILENO, "/dev/null", 0) &&
        redirect(STDOUT_FILENO, c->output, O_TRUNC))
        execv(c->argv[0], c->argv);
    fprintf(stderr, "%s: %s\n", c->argv[0], strerror(errno));
    _exit(127);
}

static qat_status start(const running *r, slot *s, const qat_command *c, qat_error *err)
{
    pid_t const parent = getpid();
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0)
        become(r, c, parent);
    if (s->pid > 0)
        return QAT_OK;
    s->pid = 0;
    return qat_fail(err, QAT_ERR_IO, "%s: cannot start a process: %s", c->argv[0], strerror(errno));
}

/* ------------------------------------------------------------------ slots */

/** Start the next command of the job; if there is none, the slot becomes free. */
static qat_status go_on(running *r, slot *s, qat_error *err)
{
    qat_command command;
    if (!r->pool->next(r->pool->context, s->job, &command))
        return QAT_OK;
    qat_status const st = start(r, s, &command, err);
    r->busy += !st;
    return st;
}

static qat_status fill(running *r, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < r->pool->slots && !st && !r->stopping; i++)
        while (!r->slots[i].pid && r->next_job < r->pool->jobs && !st) {
            r->slots[i].job = r->next_job++;
            st = go_on(r, &r->slots[i], err);
        }
    return st;
}

static qat_status reap(running *r, slot *s, qat_error *err)
{
    int status;
    pid_t const pid = waitpid(s->pid, &status, WNOHANG);
    if (pid == 0)
        return QAT_OK;
    if (pid < 0)
        return qat_fail(err, QAT_ERR_IO, "cannot wait for a process: %s", strerror(errno));
    int const code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    s->pid = 0;
    r->busy--;
    if (r->stopping && code != 0)
        return QAT_OK;
    return r->pool->ended(r->pool->context, s->job, code) && !r->stopping ? go_on(r, s, err)
                                                                          : QAT_OK;
}

static void stop(running *r)
{
    r->stopping = true;
    for (int i = 0; i < r->pool->slots; i++)
        if (r->slots[i].pid)
            kill(r->slots[i].pid, SIGTERM);
}

static qat_status wait_for_one(running *r, qat_error *err)
{
    int number;
    qat_status st = QAT_OK;
    if (sigwait(&r->waited_for, &number))
        return qat_fail(err, QAT_ERR_IO, "cannot wait for signals");
    if (number != SIGCHLD)
        stop(r);
    for (int i = 0; i < r->pool->slots && !st; i++)
        if (r->slots[i].pid)
            st = reap(r, &r->slots[i], err);
    return st;
}

static void block_signals(running *r)
{
    sigemptyset(&r->waited_for);
    sigaddset(&r->waited_for, SIGCHLD);
    sigaddset(&r->waited_for, SIGINT);
    sigaddset(&r->waited_for, SIGTERM);
    sigprocmask(SIG_BLOCK, &r->waited_for, &r->before);
}

qat_status qat_pool_run(const qat_pool *pool, bool *stopped, qat_error *err)
{
    running r = {.pool = pool, .slots = calloc((size_t)pool->slots, sizeof(slot))};
    if (!r.slots)
        return qat_out_of_memory(err, "the pool");
    block_signals(&r);
    qat_status st = fill(&r, err);
    while (r.busy && !st) {
        st = wait_for_one(&r, err);
        if (!st)
            st = fill(&r, err);
    }
    if (st)
        stop(&r);
    for (int i = 0; i < pool->slots; i++)
        if (r.slots[i].pid)
            waitpid(r.slots[i].pid, NULL, 0);
    sigprocmask(SIG_SETMASK, &r.before, NULL);
    *stopped = r.stopping;
    free(r.slots);
    return st;
}

/**
 * A pool of processes. A job is a chain of commands that run one after the other; several jobs run
 * at a time. SIGINT and SIGTERM stop the pool: every running command gets a SIGTERM and is waited
 * for.
 */
#ifndef QAT_SWEEP_POOL_H
#define QAT_SWEEP_POOL_H

#include "qat/status.h"
#include <stdbool.h>

typedef struct qat_command {
    char *const *argv;  /* ends with NULL; argv[0] is a path */
    const char *output; /* file for standard output; overwritten */
    const char *log;    /* file for standard error; appended to */
} qat_command;

typedef struct qat_pool {
    int slots; /* most commands at a time, >= 1 */
    int jobs;
    void *context;
    /** The job's next command; its texts must live until the next call. false: there is none. */
    bool (*next)(void *context, int job, qat_command *command);
    /**
     * Called when a command has ended with this exit status (128 + n: by signal n; 127: it could
     * not be started). Return false to end the job. Not called for commands that a stop
     * interrupted.
     */
    bool (*ended)(void *context, int job, int status);
} qat_pool;

/**
 * Run all jobs, started in order. Open files of the caller stay open in the commands. So a lock
 * (flock) is held until the last command has ended. If the caller is killed, the commands get a
 * SIGTERM (Linux).
 * @param stopped  set if a signal ended the run early
 * @return QAT_ERR_IO if a process cannot be started or waited for
 */
qat_status qat_pool_run(const qat_pool *pool, bool *stopped, qat_error *err);

#endif

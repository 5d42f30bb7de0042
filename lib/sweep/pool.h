/**
 * A pool of processes: jobs, each a chain of commands that run one after the other, several jobs at
 * a time. SIGINT and SIGTERM stop it: every running command gets a SIGTERM and is waited for.
 */
#ifndef QAT_SWEEP_POOL_H
#define QAT_SWEEP_POOL_H

#include "qat/status.h"
#include <stdbool.h>

typedef struct qat_command {
    char *const *argv;  /* ends with NULL; argv[0] is a path */
    const char *output; /* file for its standard output, written anew */
    const char *log;    /* file for its standard error, added to */
} qat_command;

typedef struct qat_pool {
    int slots; /* commands at a time, >= 1 */
    int jobs;
    void *context;
    /** The job's next command, whose texts must live until the next call; false: none. */
    bool (*next)(void *context, int job, qat_command *command);
    /** A command ended with this exit status (128 + n: by signal n; 127: it could not be started);
     *  false: no more of this job. Not called for commands that a stop cut short. */
    bool (*ended)(void *context, int job, int status);
} qat_pool;

/**
 * Run all jobs, begun in their order. Open files of the caller stay open in the commands, so a lock
 * (flock) is held until the last of them has ended; should the caller be killed, they get a
 * SIGTERM (Linux).
 * @param stopped  set where a signal ended it early
 * @return QAT_ERR_IO where no process can be started or waited for
 */
qat_status qat_pool_run(const qat_pool *pool, bool *stopped, qat_error *err);

#endif

/**
 * The ranks of a command: the processes that mpirun started. Without MPI in the build, or without
 * mpirun, there is one process.
 */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include "qat/ranks.h"

/** The option --rank-timeout of a command; seconds. */
#define RANKS_TIMEOUT 20
#define RANKS_TIMEOUT_OPTION(variable)                                                             \
    {                                                                                              \
        "--rank-timeout", TOOL_INT, (variable), "S",                                               \
            "under mpirun: end all ranks when one has given no sign of life for S seconds\n"       \
            "(default: 20)",                                                                       \
            1, 86400                                                                               \
    }

/**
 * Find the other ranks. Call it once, before threads are started. From then on, a rank that shows
 * no sign of life for `timeout` seconds ends the run in all others.
 * @param program  for messages
 * @return NULL: this process is alone; else freed by ranks_close
 */
const qat_ranks *ranks_open(const char *program, int timeout);
/** Was this process started by mpirun, or srun, as one of several? */
bool ranks_are_many(void);
/**
 * How many threads one of several processes should start: one for each processor that mpirun has
 * bound it to, else its share of the machine's. 0 if OMP_NUM_THREADS says it: the library reads it.
 */
int ranks_threads(void);
/** Wait for the others, which must come here as well. NULL is fine. */
void ranks_close(const qat_ranks *ranks);
/**
 * After an error: tell it, once for all ranks if it is the same, and end all with this exit status.
 * Does not return.
 */
void ranks_fail(const qat_ranks *ranks, const char *program, const char *message, int status);

#endif

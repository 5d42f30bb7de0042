/**
 * The ranks of qat-train: the processes that mpirun started. Without MPI in the build, or without
 * mpirun, there is one process.
 */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include "qat/ranks.h"

/**
 * Find the other ranks. Call it once, before threads are started. From then on, a rank that shows
 * no sign of life for `timeout` seconds ends the run in all others.
 * @return NULL: this process is alone; else freed by ranks_close
 */
const qat_ranks *ranks_open(int timeout);
/** Was this process started by mpirun, or srun, as one of several? */
bool ranks_are_many(void);
/**
 * How many threads one of several processes should start: one for each processor that mpirun has
 * bound it to, else its share of the machine's.
 */
int ranks_threads(void);
/** Wait for the others, which must come here as well. NULL is fine. */
void ranks_close(const qat_ranks *ranks);
/** After an error: tell it, once for all ranks if it is the same, and end all. Does not return. */
void ranks_fail(const qat_ranks *ranks, const char *program, const char *message);

#endif

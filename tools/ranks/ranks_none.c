/** A build without MPI: a run has one process. */
#include "tools/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>

const qat_ranks *ranks_open(const char *program, int timeout)
{
    (void)timeout;
    if (ranks_are_many())
        ranks_fail(NULL, program,
                   "started as one of several processes, but this build has no MPI (-Dmpi=enabled)",
                   EXIT_FAILURE);
    return NULL;
}

void ranks_close(const qat_ranks *ranks)
{
    (void)ranks;
}

void ranks_fail(const qat_ranks *ranks, const char *program, const char *message, int status)
{
    (void)ranks;
    fprintf(stderr, "%s: %s\n", program, message);
    exit(status);
}

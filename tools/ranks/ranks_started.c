#define _GNU_SOURCE /* sched_getaffinity */
#include "tools/ranks/ranks.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/** The first of these variables that is a number above 0; else 0. */
static long first_of(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = getenv(names[i]);
        long const value = text ? strtol(text, NULL, 10) : 0;
        if (value > 0)
            return value;
    }
    return 0;
}

/** The variables that tell a process how many there are: Open MPI's, PMI's, Slurm's. */
bool ranks_are_many(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    return first_of(names, sizeof names / sizeof *names) > 1;
}

int ranks_threads(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE"};
    long const here = first_of(names, sizeof names / sizeof *names);
    long const online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    static const char *const given[] = {"OMP_NUM_THREADS"};
    if (first_of(given, 1) > 0) /* else the library does not read it either */
        return 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < online)
        return CPU_COUNT(&set);
    return here > 0 && online > here ? (int)(online / here) : 1;
}

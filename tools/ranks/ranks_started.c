#include "tools/ranks/ranks.h"

#include <stdlib.h>

/** The variables that tell a process how many there are: Open MPI's, PMI's, Slurm's. */
bool ranks_are_many(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *text = getenv(sizes[i]);
        if (text && strtol(text, NULL, 10) > 1)
            return true;
    }
    return false;
}

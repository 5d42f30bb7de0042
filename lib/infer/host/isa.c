/** Which instruction sets this build has, and which of them this processor runs. */
#include "infer/host/fast.h"

#include <string.h>

static int always(void)
{
    return 1;
}

static const qi_isa qi_isa_scalar = {.name = "scalar", .runs_here = always};

/** The best first. */
static const qi_isa *const sets[] = {
    &qi_isa_scalar,
};

enum { SETS = sizeof sets / sizeof sets[0] };

const qi_isa *qi_isa_entry(int i)
{
    return i >= 0 && i < SETS ? sets[i] : NULL;
}

const char *qi_isa_name(int i)
{
    const qi_isa *isa = qi_isa_entry(i);
    return isa ? isa->name : NULL;
}

int qi_isa_runs_here(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i]->name, name) == 0)
            return sets[i]->runs_here();
    return 0;
}

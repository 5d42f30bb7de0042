/** Choose the processors that a process uses, as taskset does. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "tools/bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/** Read a number in 0..CPU_SETSIZE-1 at *at and move *at past it; -1 if there is none. */
static int number(const char **at)
{
    char *end;
    errno = 0;
    long const v = strtol(*at, &end, 10);
    if (end == *at || errno || **at == '-' || **at == '+' || v < 0 || v >= CPU_SETSIZE)
        return -1;
    *at = end;
    return (int)v;
}

/** Add FIRST or FIRST-LAST to the set. */
static bool add_range(const char **at, cpu_set_t *set)
{
    int const first = number(at);
    int last = first;
    if (first >= 0 && **at == '-') {
        ++*at;
        last = number(at);
    }
    for (int i = first; i >= 0 && i <= last; i++)
        CPU_SET(i, set);
    return first >= 0 && last >= first;
}

static bool parse(const char *list, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (add_range(&list, set))
        if (*list++ != ',')
            return !list[-1];
    return false;
}

bool bench_are_cpus(const char *list)
{
    cpu_set_t set;
    return parse(list, &set);
}

qat_status bench_use_cpus(const char *list, qat_error *err)
{
    cpu_set_t set;
    if (!parse(list, &set) || sched_setaffinity(0, sizeof set, &set))
        return qat_fail(err, QAT_ERR_ARGUMENT, "--cpus %s: %s", list, strerror(errno));
    return QAT_OK;
}

int bench_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    return CPU_COUNT(&set);
}

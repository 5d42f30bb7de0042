/** What all commands share: options, messages, progress. One style: --help, --version, exit 0 done,
 *  1 failed, 2 wrong options or recipe. */
#ifndef QAT_TOOLS_TOOL_H
#define QAT_TOOLS_TOOL_H

#include "qat/qat.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TOOL_LIST_MAX = 256,
    TOOL_THREADS_MAX = QI_HOST_MAX_THREADS, /* of every --threads */
    TOOL_FAILED = 1,
    TOOL_USAGE = 2
};

typedef struct tool_list {
    const char *items[TOOL_LIST_MAX];
    int count;
} tool_list;

typedef enum tool_kind {
    TOOL_FLAG,     /* bool */
    TOOL_TEXT,     /* const char * */
    TOOL_OPTIONAL, /* const char *: --name or --name=value; "" without a value */
    TOOL_LIST,     /* tool_list: may be repeated */
    TOOL_INT       /* int64_t in min..max */
} tool_kind;

typedef struct tool_option {
    const char *name; /* with its dashes */
    tool_kind kind;
    void *target;
    const char *value; /* what it takes, for --help: "DIR" */
    const char *meaning;
    int64_t min, max;
} tool_option;

typedef struct tool {
    const char *name;
    const char *synopsis; /* arguments, for --help */
    const char *summary;
    const tool_option *options; /* ends with a NULL name */
    int min_args, max_args;     /* those without dashes */
} tool;

/**
 * Parse the command line; arguments without dashes go to args, in order. --help and --version print
 * and end the program; bad usage prints why, and ends it with 2. From here on the program ends with
 * TOOL_FAILED and a message where standard output could not be written.
 */
void tool_parse(const tool *t, int argc, char **argv, tool_list *args);

/** Bad usage found later than parsing: print, exit with 2. */
void tool_usage(const tool *t, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** A value of --isa (NULL: none was given) that names no instruction set of this build is bad
 * usage, answered with those that run here. */
void tool_check_isa(const tool *t, const char *isa);

/** A value KIND[:PATH] (NULL: none was given) of an unknown kind of data is bad usage; `also`: a
 * word that may stand in its place, or NULL. */
void tool_check_data(const tool *t, const char *option, const char *spec, const char *also);

/** Print err as this command's failure; returns the exit status: TOOL_USAGE where what was asked
 * for cannot be (QAT_ERR_ARGUMENT: options, recipes), TOOL_FAILED for all else. */
int tool_failed(const tool *t, const qat_error *err);

/** Use this many threads from now on; 0: one for each processor. */
void tool_threads(int64_t threads);

/**
 * Let OpenMP's threads sleep at barriers, unless the environment says otherwise (OMP_WAIT_POLICY,
 * GOMP_SPINCOUNT). They spin by default, which on a machine that is busy with other things takes
 * ten times as long. OpenMP reads this before main begins, so the program starts itself again,
 * once.
 */
void tool_sleep_at_barriers(char **argv);

/** Print text as a JSON string, quotes included. */
void tool_json_string(const char *text);

/** Warnings of the library to standard error. */
extern const qat_log tool_log;

/** Seconds of a clock that only goes forward. */
double tool_now(void);

/** Bar on standard error while that is a terminal; nothing otherwise. */
void tool_bar(const char *label, double fraction, const char *text);
/** Remove it, before a line is printed. */
void tool_bar_clear(void);
/** A qat_tick that shows the bar; context: the label. */
bool tool_tick(void *context, int64_t done, int64_t total);

#endif

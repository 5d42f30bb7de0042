/**
 * What all commands share: options, messages, progress. All have --help and --version, and exit
 * with 0 (done), 1 (failed) or 2 (wrong option, value or recipe).
 */
#ifndef QAT_TOOLS_TOOL_H
#define QAT_TOOLS_TOOL_H

#include "qat/qat.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TOOL_LIST_MAX = 256,
    TOOL_THREADS_MAX = QI_HOST_MAX_THREADS, /* of every --threads */
    TOOL_FIGURE_MAX = 64,                   /* one figure as text, with its NUL */
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
    TOOL_LIST,     /* tool_list; the option may be repeated */
    TOOL_INT       /* int64_t in min..max */
} tool_kind;

typedef struct tool_option {
    const char *name; /* with its dashes */
    tool_kind kind;
    void *target;
    const char *value; /* name of the value in --help, for example "DIR" */
    const char *meaning;
    int64_t min, max;
} tool_option;

typedef struct tool {
    const char *name;
    const char *synopsis; /* arguments, for --help */
    const char *summary;
    const tool_option *options; /* ends with a NULL name */
    int min_args, max_args;     /* numbers of arguments without dashes */
} tool;

/**
 * Parse the command line. Arguments without dashes go to args, in order. --help and --version print
 * and end the program. Wrong usage prints the reason and exits with 2. From then on the program
 * exits with TOOL_FAILED and a message if it could not write to standard output.
 */
void tool_parse(const tool *t, int argc, char **argv, tool_list *args);

/** Report wrong usage that was found after parsing: print it and exit with 2. */
void tool_usage(const tool *t, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/**
 * Check a value of --isa (NULL: not given). If this build does not know it, the usage error lists
 * the instruction sets that run here.
 */
void tool_check_isa(const tool *t, const char *isa);

/**
 * Check a value KIND[:PATH] (NULL: not given). An unknown kind of data is a usage error. `also` is
 * a word that is accepted instead, or NULL.
 */
void tool_check_data(const tool *t, const char *option, const char *spec, const char *also);

/**
 * The exit status of a failure: TOOL_USAGE for QAT_ERR_ARGUMENT (wrong options, values, recipes),
 * TOOL_FAILED for everything else.
 */
int tool_status(const qat_error *err);
/** Print err as the failure of this command and return its exit status. */
int tool_failed(const tool *t, const qat_error *err);

/**
 * Use this many threads from now on. 0, the library's default: OMP_NUM_THREADS, or one for each
 * processor that the process may use.
 */
void tool_threads(int64_t threads);

/**
 * Let OpenBLAS start no threads of its own: libqat has its own threads. Each would take 128 MiB,
 * and where that is refused (ulimit -v), it tries for ever, and the program cannot even end.
 * And where OpenBLAS is older than the processor and takes it for one without AVX, name kernels
 * that it should use instead. OpenBLAS reads both variables before main begins, so the program
 * starts itself again, once; not if OPENBLAS_NUM_THREADS is 1 already.
 */
void tool_set_blas(char **argv);

/**
 * A text that may come from a stranger (a name in a file, a file's name, a message with one), as a
 * person should see it: what could act on a terminal is \xNN (lib/base/shown.h). Every %s of such a
 * text goes through here. The result lives until 16 more calls.
 */
const char *tool_shown(const char *text);
/** The same for a string of Graphviz. */
const char *tool_shown_quoted(const char *text);

/** Print a text and free it. If memory ran out while it was written, the program ends with 1. */
void tool_print_text(qat_text *text);
/** One figure as people read it: "98.10 %", or a number in its own unit. Returns text. */
const char *tool_figure(char text[TOOL_FIGURE_MAX], const qat_accuracy *accuracy, int figure);
/** All figures as members of a JSON object, each name with the prefix; none if n is 0. */
void tool_json_figures(const char *prefix, const qat_accuracy *accuracy);

/** Print text as a JSON string of valid UTF-8, quotes included. */
void tool_json_string(const char *text);

/** Writes the library's warnings to standard error. */
extern const qat_log tool_log;

/** Seconds of a clock that never goes back. */
double tool_now(void);

/** Show a progress bar on standard error if that is a terminal; otherwise do nothing. */
void tool_bar(const char *label, double fraction, const char *text);
/** Remove the bar before a line is printed. */
void tool_bar_clear(void);
/** A qat_tick that shows the bar; context is the label. */
bool tool_tick(void *context, int64_t done, int64_t total);

#endif

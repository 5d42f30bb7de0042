#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "tools/common/tool.h"

#include "base/parallel.h"
#include "base/shown.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HELP_COLUMN = 26 };

/* ------------------------------------------------------------------ help */

/** Print the lines of a meaning below each other in the second column. */
static void print_meaning(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        printf("%.*s\n%*s", (int)(end - text), text, HELP_COLUMN, "");
    puts(text);
}

static void print_option(const tool_option *o)
{
    char left[96];
    const char *open = o->kind == TOOL_OPTIONAL ? "[=" : o->value ? " " : "";
    snprintf(left, sizeof left, "%s%s%s%s", o->name, open, o->value ? o->value : "",
             o->kind == TOOL_OPTIONAL ? "]" : "");
    if (strlen(left) >= HELP_COLUMN - 3)
        printf("  %s\n%*s", left, HELP_COLUMN, "");
    else
        printf("  %-*s", HELP_COLUMN - 2, left);
    print_meaning(o->meaning);
}

static void print_help(const tool *t)
{
    printf("usage: %s %s\n\n%s\n\n", t->name, t->synopsis, t->summary);
    for (const tool_option *o = t->options; o->name; o++)
        print_option(o);
    printf("  %-*sprint this text\n", HELP_COLUMN - 2, "--help");
    printf("  %-*sprint the version\n", HELP_COLUMN - 2, "--version");
    printf("\n"
           "exit status: 0 done, 1 failed, 2 wrong option, value or recipe\n");
}

void tool_usage(const tool *t, const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\nusage: %s %s\n", t->name, tool_shown(message), t->name, t->synopsis);
    exit(TOOL_USAGE);
}

int tool_status(const qat_error *err)
{
    return err->status == QAT_ERR_ARGUMENT ? TOOL_USAGE : TOOL_FAILED;
}

int tool_failed(const tool *t, const qat_error *err)
{
    tool_bar_clear();
    fprintf(stderr, "%s: %s\n", t->name, tool_shown(err->message));
    return tool_status(err);
}

/* ------------------------------------------------------------------ standard output */

static const char *program; /* name of the command, for messages */

/** If the disk is full, the output is lost. The command must not exit with success then. */
static void check_output(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    _exit(TOOL_FAILED);
}

/**
 * Open /dev/null as standard input, output or error where that is closed (`qat-train ... >&-`). The
 * next file that is opened, such as log.csv, would be that descriptor otherwise, and take what is
 * printed.
 */
static void open_standard(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
    else if (fcntl(STDOUT_FILENO, F_GETFD) < 0 || fcntl(STDERR_FILENO, F_GETFD) < 0)
        _exit(TOOL_FAILED); /* nothing can be said, and nothing may be written */
}

/* ------------------------------------------------------------------ parsing */

/** The option that arg begins with; *value is the text after its '=', or NULL. */
static const tool_option *find_option(const tool *t, const char *arg, const char **value)
{
    size_t const n = strcspn(arg, "=");
    *value = arg[n] ? arg + n + 1 : NULL;
    for (const tool_option *o = t->options; o->name; o++)
        if (strlen(o->name) == n && !memcmp(o->name, arg, n))
            return o;
    return NULL;
}

static void set_int(const tool *t, const tool_option *o, const char *value)
{
    char *end;
    errno = 0;
    long long const v = strtoll(value, &end, 10);
    if (!*value || *end || errno || v < o->min || v > o->max)
        tool_usage(t, "%s %s: expected an integer in %lld..%lld", o->name, value, (long long)o->min,
                   (long long)o->max);
    *(int64_t *)o->target = v;
}

static void append(const tool *t, tool_list *list, const char *item)
{
    if (list->count == TOOL_LIST_MAX)
        tool_usage(t, "more than %d arguments of one kind", TOOL_LIST_MAX);
    list->items[list->count++] = item;
}

static void set_option(const tool *t, const tool_option *o, const char *value)
{
    switch (o->kind) {
    case TOOL_FLAG:
        *(bool *)o->target = true;
        break;
    case TOOL_TEXT:
    case TOOL_OPTIONAL:
        *(const char **)o->target = value;
        break;
    case TOOL_LIST:
        append(t, o->target, value);
        break;
    case TOOL_INT:
        set_int(t, o, value);
        break;
    }
}

/** Parse one option. Its value follows '=', or is the next argument. */
static void parse_option(const tool *t, char **argv, int *at)
{
    const char *value;
    const tool_option *o = find_option(t, argv[*at], &value);
    if (!o)
        tool_usage(t, "unknown option %s", argv[*at]);
    if (o->kind == TOOL_FLAG && value)
        tool_usage(t, "%s takes no value", o->name);
    if (o->kind == TOOL_OPTIONAL && !value)
        value = "";
    if (o->kind != TOOL_FLAG && !value)
        value = argv[++*at];
    if (o->kind != TOOL_FLAG && !value)
        tool_usage(t, "%s needs a value: %s", o->name, o->value);
    set_option(t, o, value);
}

static void answer_standard(const tool *t, const char *arg)
{
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
        print_help(t);
        exit(0);
    }
    if (!strcmp(arg, "--version")) {
        printf("%s %s\n", t->name, qat_version());
        exit(0);
    }
}

void tool_parse(const tool *t, int argc, char **argv, tool_list *args)
{
    bool only_arguments = false;
    args->count = 0;
    open_standard();
    program = t->name;
    atexit(check_output);
    for (int i = 1; i < argc; i++) {
        if (!only_arguments && !strcmp(argv[i], "--")) {
            only_arguments = true;
        } else if (!only_arguments && argv[i][0] == '-' && argv[i][1]) {
            answer_standard(t, argv[i]);
            parse_option(t, argv, &i);
        } else {
            append(t, args, argv[i]);
        }
    }
    if (args->count < t->min_args || args->count > t->max_args)
        tool_usage(t, "%s arguments", args->count < t->min_args ? "too few" : "too many");
}

void tool_check_isa(const tool *t, const char *isa)
{
    char here[256] = "";
    for (int i = 0; qi_isa_name(i); i++) {
        const char *name = qi_isa_name(i);
        size_t const used = strlen(here);
        if (!isa || !strcmp(name, isa))
            return;
        if (qi_isa_runs_here(name))
            snprintf(here + used, sizeof here - used, "%s%s", used ? ", " : "", name);
    }
    if (isa)
        tool_usage(t, "--isa %s: this build does not know it; this processor runs: %s", isa, here);
}

void tool_check_data(const tool *t, const char *option, const char *spec, const char *also)
{
    if (!spec || (also && !strcmp(spec, also)))
        return;
    size_t const n = strcspn(spec, ":");
    for (int i = 0; i < qat_dataset_kinds(); i++) {
        const char *kind = qat_dataset_kind_name(i);
        if (strlen(kind) == n && !memcmp(kind, spec, n))
            return;
    }
    tool_usage(t, "%s %s: expected %s%sKIND[:PATH], where KIND is one of %s", option, spec,
               also ? also : "", also ? " or " : "", QAT_DATASET_KINDS_TEXT);
}

/* ------------------------------------------------------------------ small things */

void tool_threads(int64_t threads)
{
    if (threads > 0)
        qat_set_threads((int)threads);
}

/** If that fails, the program just continues. */
static void start_again(char **argv)
{
    char path[4096];
    ssize_t const n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return;
    path[n] = 0;
    execv(path, argv);
}

/** The kernels that OpenBLAS should use, by name, if it has taken its oldest for an unknown
 * processor. */
static const char *better_blas_core(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    void *const symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    char *(*core)(void) = NULL;
    memcpy(&core, &symbol, sizeof core);
    if (!core || strcmp(core(), "Prescott") != 0)
        return NULL;
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

void tool_set_blas(char **argv)
{
    const char *threads = getenv("OPENBLAS_NUM_THREADS");
    if (threads && strcmp(threads, "1") == 0)
        return;
    const char *core = getenv("OPENBLAS_CORETYPE") ? NULL : better_blas_core();
    if (core)
        setenv("OPENBLAS_CORETYPE", core, 1);
    if (!setenv("OPENBLAS_NUM_THREADS", "1", 1))
        start_again(argv);
}

double tool_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *shown(const char *text, bool quoted)
{
    enum { KEPT = 16 };
    static char *kept[KEPT]; /* freed when the program ends */
    static int next;
    size_t const max = strlen(text) * QAT_SHOWN_PER_BYTE + 1;
    char *larger = realloc(kept[next], max);
    if (!larger)
        return "(no memory to show this name)";
    kept[next] = larger;
    next = (next + 1) % KEPT;
    qat_shown(larger, max, text, quoted);
    return larger;
}

const char *tool_shown(const char *text)
{
    return qat_is_plain(text) ? text : shown(text, false);
}

const char *tool_shown_quoted(const char *text)
{
    return qat_is_plain(text) && !strpbrk(text, "\"\\") ? text : shown(text, true);
}

/** End the program if the text is not whole. */
static void check_text(const qat_text *text)
{
    if (!text->failed)
        return;
    tool_bar_clear();
    fprintf(stderr, "%s: out of memory\n", program);
    exit(TOOL_FAILED);
}

void tool_print_text(qat_text *text)
{
    check_text(text);
    fwrite(text->bytes, 1, text->count, stdout);
    qat_writer_free(text);
}

const char *tool_figure(char text[TOOL_FIGURE_MAX], const qat_accuracy *accuracy, int figure)
{
    qat_text w = {0};
    qat_text_add_figure(&w, accuracy, figure);
    check_text(&w);
    snprintf(text, TOOL_FIGURE_MAX, "%.*s", (int)w.count, (const char *)w.bytes);
    qat_writer_free(&w);
    return text;
}

void tool_json_figures(const char *prefix, const qat_accuracy *accuracy)
{
    qat_text text = {0};
    if (accuracy->n) {
        accuracy->task->tell_json(&text, accuracy, prefix);
        tool_print_text(&text);
    }
}

void tool_json_string(const char *text)
{
    qat_writer w = {0};
    qat_write_json(&w, text);
    tool_print_text(&w);
}

static void warn(void *context, const char *text)
{
    (void)context;
    tool_bar_clear();
    fprintf(stderr, "warning: %s\n", tool_shown(text));
}

const qat_log tool_log = {warn, NULL};

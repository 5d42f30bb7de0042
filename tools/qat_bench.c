/**
 * qat-bench: the latency of a .qm, whole and layer by layer, or of a checkpoint's float network.
 */
#include "base/number.h"
#include "tools/bench/bench.h"
#include "tools/common/limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_COUNTS = 64 };

static const char *threads = "1", *isa, *seconds, *cpus;
static int64_t runs;
static bool random_input, load, json;
static tool_list plugins;

static const tool_option options[] = {
    {"--threads", TOOL_TEXT, &threads, "N[,N...]",
     "threads of one run; with a list, each number in turn (default 1)", 0, 0},
    {"--isa", TOOL_TEXT, &isa, "NAME", "instruction set (default: the best of this processor)", 0,
     0},
    {"--runs", TOOL_INT, &runs, "N", "time N runs", 1, 1000000000},
    {"--seconds", TOOL_TEXT, &seconds, "S", "time runs for S seconds (default 1)", 0, 0},
    {"--random-input", TOOL_FLAG, &random_input, NULL, "use new random bytes for every run", 0, 0},
    {"--cpus", TOOL_TEXT, &cpus, "LIST", "use only these processors, for example 0,2-3", 0, 0},
    {"--load", TOOL_FLAG, &load, NULL,
     "instead, time from opening the file to the first answer, as multiples of\n"
     "an inference",
     0, 0},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file (repeatable)", 0, 0},
    TOOL_MEMORY_OPTION("the most memory that the model may take, in MiB (default 4096)"),
    TOOL_MACS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL,
     "print one JSON object per line, one for each number of threads", 0, 0},
    {0}};

static const tool me = {
    "qat-bench",
    "MODEL.qm [--threads N[,N...]] [--isa NAME] [--runs N | --seconds S] [--random-input]\n"
    "                 [--cpus LIST] [--plugin FILE.so]... [--max-memory MIB] [--max-macs N] "
    "[--json]\n"
    "       qat-bench CHECKPOINT [--threads N[,N...]] [--runs N | --seconds S] [--random-input]\n"
    "                 [--cpus LIST] [--plugin FILE.so]... [--json]\n"
    "       qat-bench MODEL.qm --load [--threads N[,N...]] [--isa NAME] [--cpus LIST] [--json]",
    "Measures the latency of a model: minimum, median, mean and 95th percentile. For each layer it "
    "prints\n"
    "the fastest time, the multiply-adds per second, and their share of what the processor can "
    "do.\n"
    "For a checkpoint it measures the float network with batch norm folded, for comparison.",
    options,
    1,
    1};

/** Parse the numbers of threads, each 1..TOOL_THREADS_MAX; returns how many there are. */
static int parse_threads(int counts[MOST_COUNTS])
{
    const char *at = threads;
    for (int n = 0; n < MOST_COUNTS; n++) {
        char *end;
        errno = 0;
        long const v = strtol(at, &end, 10);
        if (end == at || errno || v < 1 || v > TOOL_THREADS_MAX || (*end && *end != ','))
            break;
        counts[n] = (int)v;
        if (!*end)
            return n + 1;
        at = end + 1;
    }
    tool_usage(&me, "--threads %s: expected at most %d integers in 1..%d", threads, MOST_COUNTS,
               TOOL_THREADS_MAX);
}

static double parse_seconds(void)
{
    char *end;
    if (!seconds)
        return 1;
    double const v = qat_number_of(seconds, &end);
    if (end == seconds || *end || !(v > 0 && v <= 1e6))
        tool_usage(&me, "--seconds %s: expected a number above 0, at most 1000000", seconds);
    return v;
}

static qat_status latency(const char *path, const tool_run *how, const bench_protocol *p,
                          qat_error *err)
{
    tool_model m;
    bench_result r = {0};
    qat_status st = tool_model_open(&m, path, how, err);
    if (st)
        return st;
    st = bench_measure(&r, &m, p, err);
    if (!st)
        (json ? bench_print_json : bench_print)(path, &r);
    bench_result_free(&r);
    tool_model_close(&m);
    return st;
}

static qat_status float_latency(const char *path, const tool_run *how, const bench_protocol *p,
                                qat_error *err)
{
    bench_float r;
    qat_status const st = bench_measure_float(&r, path, how, p, err);
    if (!st)
        (json ? bench_print_float_json : bench_print_float)(path, &r);
    return st;
}

static qat_status loading(const char *path, const tool_run *how, bool cold, qat_error *err)
{
    bench_start starts[BENCH_STARTS];
    qat_status const st = bench_load(starts, path, how, cold, err);
    if (!st && json)
        bench_print_load_json(path, starts, how, cold);
    else if (!st)
        bench_print_load(starts, how, cold);
    return st;
}

int main(int argc, char **argv)
{
    tool_list args;
    int counts[MOST_COUNTS];
    qat_error err;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    int const n = parse_threads(counts);
    bench_protocol const p = {runs, parse_seconds(), random_input};
    tool_run how = {.plugins = &plugins, .isa = isa};
    if (runs && seconds)
        tool_usage(&me, "give either --runs or --seconds, not both");
    if (load && (runs || seconds || random_input || plugins.count))
        tool_usage(&me, "--load cannot be combined with %s",
                   runs           ? "--runs"
                   : seconds      ? "--seconds"
                   : random_input ? "--random-input"
                                  : "--plugin");
    if (cpus && !bench_are_cpus(cpus))
        tool_usage(&me, "--cpus %s: expected numbers and ranges, for example 0,2-3", cpus);
    tool_check_isa(&me, isa);
    tool_file kind = TOOL_FILE_QM;
    qat_status st = cpus ? bench_use_cpus(cpus, &err) : QAT_OK;
    if (!st)
        st = tool_file_kind(args.items[0], &kind, &err);
    bool const floating = kind == TOOL_FILE_CHECKPOINT;
    if (floating && (load || isa))
        tool_usage(&me, "%s is a checkpoint: %s works with a .qm only", args.items[0],
                   load ? "--load" : "--isa");
    for (int i = 0; i < (load ? 2 * n : n) && !st;
         i++) { /* new processes first, because they fork */
        how.threads = counts[i % n];
        st = load       ? loading(args.items[0], &how, i < n, &err)
             : floating ? float_latency(args.items[0], &how, &p, &err)
                        : latency(args.items[0], &how, &p, &err);
    }
    return st ? tool_failed(&me, &err) : 0;
}

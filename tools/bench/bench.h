/** What qat-bench measures, and how it prints it. */
#ifndef QAT_TOOLS_BENCH_H
#define QAT_TOOLS_BENCH_H

#include "base/rng.h"
#include "tools/common/model.h"
#include "tools/common/plugins.h"

/** How often a model is timed. */
typedef struct bench_protocol {
    int64_t runs;   /* number of runs; 0: as many as fit into `seconds`, and at least 5 */
    double seconds; /* wall-clock seconds; they include the work between runs that is not timed */
    bool random_input; /* new random bytes before every run (not timed); otherwise one set for all
                          runs */
} bench_protocol;

/** Latency of a run, over all timed runs. */
typedef struct bench_times {
    int64_t runs;
    double min_ms, median_ms, mean_ms, p95_ms;
} bench_times;

/** The thing to time. */
typedef struct bench_subject {
    void (*fill)(void *context, qat_rng *rng); /* new random inputs */
    void (*run)(void *context);
    void *context;
} bench_subject;

/** Run as the protocol says, after a warm-up of a tenth of a second. */
qat_status bench_time(bench_times *times, const bench_subject *subject, const bench_protocol *p,
                      qat_error *err);

/** One node of the model, with its time from the run in which it was fastest. */
typedef struct bench_layer {
    double ms;
    double macs;    /* multiply-adds of one run; 0: a layer that has no weights */
    double roof_ms; /* their time at the roof of the layer's sequence, on all processors that the
                       layer keeps busy; 0: unknown */
    int64_t rows, k, n;         /* as a product of matrices, rows x k by k x n; 0: it is none */
    int32_t window_h, window_w; /* of the weights; 1 x 1 for a fully connected layer */
} bench_layer;

typedef struct bench_result {
    const qi_host *host;
    const qi_model *model; /* of host */
    int cores;             /* processors that this process may use */
    const char *sequence;  /* the roof's instructions, or NULL: no roof is known */
    double roof;           /* GMAC/s of one core */
    double macs, roof_ms;  /* sums over the layers */
    bench_times times;
    bench_layer *layers; /* one for each node */
} bench_result;

/**
 * Measure the latency, then the time of each layer in separate runs. Free layers with
 * bench_result_free.
 */
qat_status bench_measure(bench_result *r, tool_model *m, const bench_protocol *p, qat_error *err);
void bench_result_free(bench_result *r);

/** The float network of a checkpoint. */
typedef struct bench_float {
    int threads, cores;
    double macs;
    bench_times times;
} bench_float;

/** Latency of the float network in the training library, with batch norm folded and batch 1. */
qat_status bench_measure_float(bench_float *r, const char *path, const tool_run *how,
                               const bench_protocol *p, qat_error *err);
void bench_print_float(const char *path, const bench_float *r);
void bench_print_float_json(const char *path, const bench_float *r);

/** Times from opening a file to the first answer, and of a later inference, in milliseconds. */
typedef struct bench_start {
    double open_ms, first_ms; /* qi_host_open; the first run */
    double run_ms;            /* fastest of the runs that follow */
} bench_start;

enum { BENCH_STARTS = 15 };

/**
 * Measure BENCH_STARTS starts. With `cold` each has its own process; otherwise all run in this one.
 */
qat_status bench_load(bench_start starts[BENCH_STARTS], const char *path, const tool_run *how,
                      bool cold, qat_error *err);

void bench_print(const char *path, const bench_result *r);
void bench_print_json(const char *path, const bench_result *r);
void bench_print_load(const bench_start starts[BENCH_STARTS], const tool_run *how, bool cold);
void bench_print_load_json(const char *path, const bench_start starts[BENCH_STARTS],
                           const tool_run *how, bool cold);

/** Is the text a list of processors, for example "0,2-3"? */
bool bench_are_cpus(const char *list);
/** Restrict this process and its future threads to these processors. */
qat_status bench_use_cpus(const char *list, qat_error *err);
/** How many processors this process may use. */
int bench_cores(void);

#endif

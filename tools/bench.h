/** What qat-bench measures, and how it prints it. */
#ifndef QAT_TOOLS_BENCH_H
#define QAT_TOOLS_BENCH_H

#include "base/rng.h"
#include "common/model.h"

/** How often a model runs. */
typedef struct bench_protocol {
    int64_t runs;      /* so often; 0: as often as fits into seconds, and at least 5 times */
    double seconds;    /* of the clock, what is not timed included */
    bool random_input; /* new random bytes before every run, outside its time; or one set for all */
} bench_protocol;

/** Latency of a run, of all runs that were timed. */
typedef struct bench_times {
    int64_t runs;
    double min_ms, median_ms, mean_ms, p95_ms;
} bench_times;

/** What is timed. */
typedef struct bench_subject {
    void (*fill)(void *context, qat_rng *rng); /* new random inputs */
    void (*run)(void *context);
    void *context;
} bench_subject;

/** Runs by the protocol, after a tenth of a second that is not counted. */
qat_status bench_time(bench_times *times, const bench_subject *subject, const bench_protocol *p,
                      qat_error *err);

/** One node of the model, in the run in which it was fastest. */
typedef struct bench_layer {
    double ms;
    double macs;    /* multiply-adds of one run; 0: a layer that has no weights */
    double roof_ms; /* what these take at the roof of the layer's sequence, on all processors that
                       the layer keeps busy; 0: unknown */
} bench_layer;

typedef struct bench_result {
    const qi_host *host;
    int cores;            /* processors that this process may use */
    const char *sequence; /* the roof's instructions, or NULL: no roof is known */
    double roof;          /* GMAC/s of one core */
    double macs, roof_ms; /* sums over the layers */
    bench_times times;
    bench_layer *layers; /* one for each node */
} bench_result;

/** Multiply-adds of one run of a node's products of weights and activations. */
double bench_macs(const qi_model *model, const qi_node *node);

/** Latency, then the time of each layer in runs of their own. layers: bench_result_free. */
qat_status bench_measure(bench_result *r, tool_model *m, const bench_protocol *p, qat_error *err);
void bench_result_free(bench_result *r);

/** The float network of a checkpoint. */
typedef struct bench_float {
    int threads, cores;
    double macs;
    bench_times times;
} bench_float;

/** Its latency in the training library: batch norm folded into weights and biases, batch 1. */
qat_status bench_measure_float(bench_float *r, const char *path, const tool_run *how,
                               const bench_protocol *p, qat_error *err);
void bench_print_float(const char *path, const bench_float *r);
void bench_print_float_json(const char *path, const bench_float *r);

/** From a file to its first answer, and an inference after that; milliseconds. */
typedef struct bench_start {
    double open_ms, first_ms; /* qi_host_open; the first run */
    double run_ms;            /* fastest of the runs that follow */
} bench_start;

enum { BENCH_STARTS = 15 };

/** BENCH_STARTS times, each in a process of its own or, where not cold, all in this one. */
qat_status bench_load(bench_start starts[BENCH_STARTS], const char *path, const tool_run *how,
                      bool cold, qat_error *err);

void bench_print(const char *path, const bench_result *r);
void bench_print_json(const char *path, const bench_result *r);
void bench_print_load(const bench_start starts[BENCH_STARTS], const tool_run *how, bool cold);
void bench_print_load_json(const char *path, const bench_start starts[BENCH_STARTS],
                           const tool_run *how, bool cold);

/** Is it a list of processors such as "0,2-3"? */
bool bench_are_cpus(const char *list);
/** Restrict this process, threads to come included, to these. */
qat_status bench_use_cpus(const char *list, qat_error *err);
/** How many it may use. */
int bench_cores(void);

#endif

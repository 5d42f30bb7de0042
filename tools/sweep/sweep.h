/** What the files of qat-sweep share. */
#ifndef QAT_TOOLS_SWEEP_H
#define QAT_TOOLS_SWEEP_H

#include "tools/common/tool.h"
#include "tools/sweep/results.h"

enum { SWEEP_PATH_MAX = 1024 };

/** One run: a cell of the grid with one seed. */
typedef struct sweep_job {
    char *dir;      /* OUT/<cell>/seed-<n>, owned */
    char *recipe;   /* the recipe with the cell's settings, as text; owned */
    char *plugins;  /* its plugin.path, which the commands after training are given; owned */
    bool quantized; /* quant.enabled */
    bool budgeted;  /* it has a budget, so its bits are searched */
    bool failed;
} sweep_job;

typedef struct sweep {
    const char *out;
    qat_sweep_grid grid;               /* axis 0: recipes */
    int seeds, slots, threads, verify; /* threads 0: as the recipes say */
    bool bench;
    bool predict; /* only search the bits */
    const char *bench_seconds;
    sweep_job *jobs; /* job cell * seeds + (seed - 1); owned */
    int n_jobs;
} sweep;

void sweep_free(sweep *s);

/**
 * Check the settings of every cell as qat-train would. It is an error if a job's folder was started
 * with other settings.
 */
qat_status sweep_prepare(sweep *s, qat_error *err);

/**
 * Lock OUT, so that no other sweep works in it; an error if one does. The lock ends with the last
 * process that holds it.
 */
qat_status sweep_lock(const char *out, qat_error *err);

/**
 * Do what is not done yet: trainings, exports and evaluations side by side, then latencies one by
 * one.
 * @param failed   how many jobs failed; the others went on
 * @param stopped  set if a signal ended it
 */
qat_status sweep_run(sweep *s, int *failed, bool *stopped, qat_error *err);

/** Can the commands after training be given each plugin of this plugin.path? */
qat_status sweep_check_plugins(const char *list, qat_error *err);

/** How many jobs have a step left. While there are any, missing columns may still come. */
int sweep_unfinished(const sweep *s);

/** Collect the results that the jobs have so far. */
qat_status sweep_collect(const sweep *s, qat_results *r, qat_error *err);

/** Refuse to put an empty table in the place of one with runs: they are of other settings. */
qat_status sweep_check_table(const sweep *s, const qat_results *r, qat_error *err);
/**
 * Write OUT/results.csv, .json and .md, and print the Markdown table. columns: names separated by
 * commas, or NULL. baseline: a cell, or -1. A column that no job has is an error; while a job is
 * unfinished it is left out.
 */
qat_status sweep_report(const sweep *s, const qat_results *r, const char *columns, int baseline,
                        qat_error *err);

#endif

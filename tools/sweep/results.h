/**
 * The results of a sweep: a row for each run (a cell of the grid with one seed), a column for each
 * figure, statistics over the seeds of a cell, and tables.
 */
#ifndef QAT_SWEEP_RESULTS_H
#define QAT_SWEEP_RESULTS_H

#include "tools/sweep/grid.h"
#include "tools/sweep/statistics.h"

enum { QAT_RESULTS_MAX_COLUMNS = 64, QAT_RESULTS_MAX_SEEDS = 1000 };

typedef struct qat_results {
    const qat_sweep_grid *grid; /* borrowed */
    int seeds;                  /* rows per cell; a run is in row cell * seeds + (seed - 1) */
    int n_columns;
    const char *columns[QAT_RESULTS_MAX_COLUMNS];
    double *values[QAT_RESULTS_MAX_COLUMNS]; /* one value per row; NaN: not known */
    qat_arena arena;
} qat_results;

/** seeds: 1..QAT_RESULTS_MAX_SEEDS. */
void qat_results_init(qat_results *r, const qat_sweep_grid *grid, int seeds);
void qat_results_free(qat_results *r);
int qat_results_rows(const qat_results *r);

/** The column with this name, or -1. */
int qat_results_column(const qat_results *r, const char *name);
/** Set a value; a new name adds a column. */
qat_status qat_results_set(qat_results *r, int row, const char *name, double value, qat_error *err);
/** Take all numbers of the JSON object in a file. A file that does not exist gives none. */
qat_status qat_results_read(qat_results *r, int row, const char *path, qat_error *err);
/**
 * Read a file of JSON objects, one for each number of threads (qat-bench --json). "min_ms" goes to
 * the column "ms_<threads>", or to "float_ms_<threads>" for a float network.
 */
qat_status qat_results_read_latency(qat_results *r, int row, const char *path, qat_error *err);

/** The statistics over the seeds whose value is known. */
qat_spread qat_results_spread(const qat_results *r, int cell, int column);
/** Cell minus baseline, over the seeds that both have. */
qat_paired qat_results_compare(const qat_results *r, int cell, int baseline, int column);

/** The title of a column with a task's figure that is a fraction, such as top1; NULL: it is none.
 */
const char *qat_results_title(const char *column);
/** Is this column a fraction that is shown in percent: a task's figure, or that of a network? */
int qat_results_is_share(const char *column);

/** CSV with a line for each run that has any value. free() the text. */
qat_status qat_results_csv(const qat_results *r, char **text, qat_error *err);
/** JSON of the cells with their settings, runs and statistics. baseline: a cell or -1. */
qat_status qat_results_json(const qat_results *r, int baseline, char **text, qat_error *err);
/**
 * A Markdown table with a line for each cell: its settings, the number of seeds done, mean and
 * deviation of the given columns, and their differences to the baseline with t and p.
 */
qat_status qat_results_markdown(const qat_results *r, const int *columns, int n, int baseline,
                                char **text, qat_error *err);

#endif

/** The parts of qat-report: what a run left, and the page made of it. */
#ifndef QAT_TOOLS_REPORT_H
#define QAT_TOOLS_REPORT_H

#include "tools/bench/bench.h"
#include "tools/debug/debug_tool.h"
#include "tools/figures/figures.h"
#include "tools/inspect/inspect.h"
#include "tools/report/html.h"

/** A CSV table of a run, such as log.csv: no quotes. Zeroed: it has no rows. */
typedef struct report_table {
    char *text;
    const char **cells; /* [1 + rows][columns], the heads first */
    int columns, rows;
} report_table;

/** Read a table. A file that is not there gives none. A row with other columns is an error. */
qat_status report_table_read(report_table *t, const char *path, qat_error *err);
void report_table_free(report_table *t);
/** The column with this name, or -1. */
int report_column(const report_table *t, const char *name);
const char *report_cell(const report_table *t, int row, int column);
/** A cell as a number; NaN: it has none, or one that is not finite. */
double report_value(const report_table *t, int row, int column);

/** A layer of the engine. */
typedef struct report_layer {
    char name[QAT_NAME_MAX], op[48];
    double macs, ms;
} report_layer;

enum { REPORT_WORST = 12, REPORT_CLASSES = 1024 };

/** A box in a picture. */
typedef struct report_box {
    qat_box at;
    double score; /* of a box that was found; below 0: one that is there */
    int class_;
} report_box;

/** A wrong answer, or the answers to one picture that are worst. */
typedef struct report_wrong {
    double how_wrong; /* the larger, the worse */
    double figure;    /* of this sample alone, NaN: it has none */
    int sample;
    uint8_t *pixels; /* owned, as all arrays here; NULL: the sample is no picture */
    report_box *boxes;
    int n_boxes;
    int32_t *said, *is; /* classes of pixels; below 0: not known */
    qat_text words;     /* what is said, and what is */
} report_wrong;

/** Answers of the integer model to test data. */
typedef struct report_answers {
    figures figures; /* of tasks with scores, else zeroed */
    qat_accuracy accuracy;
    int n_worst;
    report_wrong worst[REPORT_WORST]; /* the worst first */
} report_answers;

typedef struct report_run {
    const char *path;
    char name[160]; /* for heads and legends */
    char checkpoint[1024];
    report_table log, quant;
    inspected inspected; /* its checkpoint, and its integers */
    char *recipe;        /* its text */
    qat_debug *debug;
    qat_deploy_result deployed;
    report_layer *layers; /* of the engine */
    int n_layers;
    double ms; /* median of a whole inference */
    char isa[32];
    report_answers answers;
    int64_t most_answers;
    /* it was not exported, ...; "": it was */
    qat_error why_not, why_no_debug, why_no_values, why_no_answers;
} report_run;

typedef struct report_wanted {
    const tool_list *plugins;
    int64_t samples, answers; /* through all networks; through the integer model */
    const char *out;
} report_wanted;

/** Open a run's folder, or a checkpoint, and measure it. */
qat_status report_open(report_run *run, const char *path, const report_wanted *wanted,
                       qat_error *err);
void report_close(report_run *run);

/** The figure by which the run's task is judged; NULL: it was never evaluated. */
const qat_figure *report_figure(const report_run *run);

/** The sections of the page. */
qat_status report_compare(qat_writer *page, const report_run *runs, int n, qat_error *err);
qat_status report_section(qat_writer *page, const report_run *run, int charts, qat_error *err);
/** Answer at most `samples` samples of the run's test data. */
qat_status report_answer(report_answers *a, const qi_host *host, const qat_restored *c,
                         int64_t samples, qat_error *err);
void report_answers_free(report_answers *a);
/** Keep a sample's answer if it is among the worst. True: it is in *kept, to be filled. */
bool report_keep(report_answers *a, double how_wrong, int sample, report_wrong **kept);
/**
 * Look on at an evaluation, and keep the samples whose figure is worst if each is judged alone: for
 * tasks without scores. *state is freed with free.
 */
qat_status report_watch(report_answers *a, qat_input_info *input, void **state, qat_error *err);
/** The worst answers, with their pictures. */
void report_worst(qat_writer *page, const report_run *run);
/** The name of a class, or its number. */
const char *report_class(const report_run *run, int i, char text[FIGURES_NAME_MAX]);
/** Figures, confusion, and the worst answers. */
qat_status report_told(qat_writer *page, const report_run *run, qat_error *err);
/** Loss and figures over the steps, of one run or of several in one chart. */
qat_status report_curves(qat_writer *page, const report_run *runs, int n, qat_error *err);
/** The layers as qat-debug tells them. */
qat_status report_debug(qat_writer *page, const report_run *run, qat_error *err);
/** Ranges and scales over the steps. */
qat_status report_ranges(qat_writer *page, const report_run *run, int charts, qat_error *err);

#endif

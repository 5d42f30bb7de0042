/**
 * Figures of a network over a data set: confusion, precision, recall, F1, calibration, and the
 * curves over all thresholds; as text, JSON and pictures. And a list of all answers.
 *
 *     figures f = {0};
 *     qat_input_info in = *input;
 *     st = figures_begin(&f, &in, data, err);          // in.witness looks on
 *     ... qat_evaluate_model(host, &in, ...)           // or another evaluation
 *     st = figures_end(&f, err);
 *     figures_free(&f);
 */
#ifndef QAT_TOOLS_FIGURES_H
#define QAT_TOOLS_FIGURES_H

#include "base/figures/classes.h"
#include "base/figures/curve.h"
#include "qat/task.h"

enum { FIGURES_NAME_MAX = 64 };

/** Of one unit (a class, a label, an attribute, a value). -1: not known. */
typedef struct figures_unit {
    char name[FIGURES_NAME_MAX];   /* its number if it has none */
    double auc, ap, f1, threshold; /* f1: the best of all thresholds, and where it is */
    qat_curve curve;               /* some of its thresholds, as many as a picture shows */
    double mean_error, root_mean_square, r2; /* QAT_SCORES_VALUES */
} figures_unit;

typedef struct figures {
    qat_score_kind kind;
    int n_units, n_truths;
    size_t n, capacity;
    float *scores, *truth; /* [n, n_units], [n, n_truths] */
    qat_input_info input;
    qat_witness witness;

    /* since figures_end */
    bool probabilities;  /* the scores themselves; otherwise, of QAT_SCORES_ONE_OF, their softmax */
    double *log_sums;    /* [n] if it is the softmax */
    int64_t *confusion;  /* QAT_SCORES_ONE_OF: [true][answered] */
    figures_unit *units; /* [n_units] */
    qat_counts *counts;  /* [n_units]; QAT_SCORES_EACH: said at 1/2 or more; RANKED: at threshold */
    figures_unit all;    /* of all units' scores together; of QAT_SCORES_ONE_OF and EACH */
    qat_bin bins[QAT_BINS];
} figures;

/** Is an answer by itself what is compared with the truth? Not so for boxes. */
bool figures_of_task(const qat_task *task);

/**
 * Look on at the evaluation of this input, which gets a witness. The data name the units, if they
 * have names for all.
 */
qat_status figures_begin(figures *f, qat_input_info *input, const qat_dataset_info *data,
                         qat_error *err);
/** All samples were seen: compute. */
qat_status figures_end(figures *f, qat_error *err);
void figures_free(figures *f);

/** What a network says of sample i: a class and its probability. */
int figures_answer(const figures *f, size_t i, double *probability);
/** The probability of a unit for sample i, as curves use it; otherwise its score. */
double figures_score(const figures *f, size_t i, int unit);
double figures_accuracy(const figures *f);

/** Figures with the word before their names: "" or "float_", as qat-eval's JSON has it. */
typedef struct figures_run {
    const char *prefix;
    const figures *of;
} figures_run;

/** Two lines for people. */
void figures_tell(qat_text *text, const figures *f);
/** Write DIR/figures.json, DIR/figures.txt, and the pictures. */
qat_status figures_write(const figures_run *runs, int n, const char *data, const char *dir,
                         qat_error *err);
/** Write DIR/<prefix><picture>.png and .svg. */
qat_status figures_draw(const figures_run *run, const char *dir, qat_error *err);
/** Write all answers as CSV. */
qat_status figures_write_predictions(const figures_run *runs, int n, const char *path,
                                     qat_error *err);

#endif

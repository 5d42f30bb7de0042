/** Looks on at an evaluation, and computes the figures when it is over. */
#include "tools/figures/figures.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPACING = 256, ALL_MAX = 1 << 24 };

bool figures_of_task(const qat_task *task)
{
    return task->scored != QAT_SCORES_NONE;
}

/* ------------------------------------------------------------------ the pass */

static qat_status grow(figures *f, size_t more, qat_error *err)
{
    if (f->n + more <= f->capacity)
        return QAT_OK;
    size_t const capacity = 2 * f->capacity + more;
    float *scores = realloc(f->scores, capacity * (size_t)f->n_units * sizeof *scores);
    f->scores = scores ? scores : f->scores;
    float *truth = realloc(f->truth, capacity * (size_t)f->n_truths * sizeof *truth);
    f->truth = truth ? truth : f->truth;
    if (!scores || !truth)
        return qat_out_of_memory(err, "figures");
    f->capacity = capacity;
    return QAT_OK;
}

static qat_status see(void *context, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    figures *f = context;
    size_t const n = (size_t)f->n_units;
    qat_status st = grow(f, (size_t)count, err);
    for (int i = 0; i < count && !st; i++, f->n++) {
        float *scores = f->scores + f->n * n;
        st = qat_task_of(&f->input)->scores(&f->input, outputs, batch, i, scores,
                                            f->truth + f->n * (size_t)f->n_truths, err);
        for (size_t k = 0; k < n && !st; k++)
            if (!isfinite(scores[k]))
                st = qat_fail(err, QAT_ERR_NUMERIC, "figures: an answer for sample %zu is %s", f->n,
                              isnan(scores[k]) ? "NaN" : "infinite");
    }
    return st;
}

qat_status figures_begin(figures *f, qat_input_info *input, const qat_dataset_info *data,
                         qat_error *err)
{
    const qat_task *task = qat_task_of(input);
    *f = (figures){.kind = task->scored, .input = *input};
    if (!figures_of_task(task))
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "figures: the answers of a %s are no scores that each are right or wrong",
                        task->network);
    f->n_units = task->n_scores(input);
    f->n_truths = f->kind == QAT_SCORES_ONE_OF ? 1 : f->n_units;
    f->units = calloc((size_t)f->n_units, sizeof *f->units);
    f->counts = calloc((size_t)f->n_units, sizeof *f->counts);
    if (!f->units || !f->counts)
        return qat_out_of_memory(err, "figures");
    bool const named = data->labels && data->classes == f->n_units && input->classes == f->n_units;
    for (int k = 0; k < f->n_units; k++)
        if (named && data->labels[k])
            snprintf(f->units[k].name, FIGURES_NAME_MAX, "%s", data->labels[k]);
        else if (f->n_units == 1)
            snprintf(f->units[k].name, FIGURES_NAME_MAX, "%s", task->name);
        else
            snprintf(f->units[k].name, FIGURES_NAME_MAX, "%d", k);
    f->witness = (qat_witness){see, f};
    input->witness = &f->witness;
    return QAT_OK;
}

void figures_free(figures *f)
{
    for (int k = 0; f->units && k < f->n_units; k++)
        qat_curve_free(&f->units[k].curve);
    qat_curve_free(&f->all.curve);
    free(f->scores);
    free(f->truth);
    free(f->log_sums);
    free(f->confusion);
    free(f->units);
    free(f->counts);
    *f = (figures){0};
}

/* ------------------------------------------------------------------ one sample */

double figures_score(const figures *f, size_t i, int unit)
{
    double const score = (double)f->scores[i * (size_t)f->n_units + (size_t)unit];
    return f->log_sums ? exp(score - f->log_sums[i]) : score;
}

int figures_answer(const figures *f, size_t i, double *probability)
{
    int const answer = qat_highest(f->scores + i * (size_t)f->n_units, f->n_units);
    *probability = figures_score(f, i, answer);
    return answer;
}

/** 1, 0, or NaN: is it so? */
static float truth_of(const figures *f, size_t i, int unit)
{
    if (f->kind == QAT_SCORES_ONE_OF)
        return f->truth[i] == (float)unit;
    return f->truth[i * (size_t)f->n_units + (size_t)unit];
}

double figures_accuracy(const figures *f)
{
    int64_t right = 0;
    for (int k = 0; k < f->n_units; k++)
        right += f->counts[k].right;
    return f->n ? (double)right / (double)f->n : -1;
}

/* ------------------------------------------------------------------ curves */

/** Leave out thresholds that lie near others on the curves; the first and the last one stay. */
static void thin(qat_curve *c)
{
    double const hits = fmax(1, (double)c->hits), misses = fmax(1, (double)c->misses);
    size_t kept = 0;
    if (!c->at)
        return;
    for (size_t k = 0; k < c->n; k++) {
        const qat_threshold *last = kept ? &c->at[kept - 1] : NULL;
        double const step = last ? (double)(c->at[k].hits - last->hits) / hits +
                                       (double)(c->at[k].misses - last->misses) / misses
                                 : 1;
        if (step >= 1.0 / SPACING || k + 1 == c->n)
            c->at[kept++] = c->at[k];
    }
    c->n = kept;
    qat_threshold *less = realloc(c->at, (kept + 1) * sizeof *less);
    c->at = less ? less : c->at;
}

/** The curve of units first..end - 1 together. */
static qat_status set_curve(const figures *f, figures_unit *u, int first, int end, qat_error *err)
{
    qat_scored *samples = malloc((f->n * (size_t)(end - first) + 1) * sizeof *samples);
    size_t known = 0;
    if (!samples)
        return qat_out_of_memory(err, "figures");
    for (size_t i = 0; i < f->n; i++)
        for (int k = first; k < end; k++)
            if (!isnan(truth_of(f, i, k)))
                samples[known++] = (qat_scored){figures_score(f, i, k), truth_of(f, i, k) > 0.5f};
    qat_status const st = qat_curve_of(&u->curve, samples, known, err);
    free(samples);
    if (st)
        return st;
    u->auc = qat_curve_auc(&u->curve);
    u->ap = qat_curve_ap(&u->curve);
    u->f1 = qat_curve_best_f1(&u->curve, &u->threshold);
    return QAT_OK;
}

/** Of a unit that is there or not: the samples whose score says so. */
static void count_unit(figures *f, int unit)
{
    const figures_unit *u = &f->units[unit];
    double const at = f->kind == QAT_SCORES_RANKED ? u->threshold : 0.5;
    qat_counts *c = &f->counts[unit];
    c->is = u->curve.hits;
    for (size_t k = 0; k < u->curve.n && u->curve.at[k].score >= at; k++) {
        c->right = u->curve.at[k].hits;
        c->said = u->curve.at[k].hits + u->curve.at[k].misses;
    }
}

static qat_status set_curves(figures *f, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int k = 0; k < f->n_units && !st; k++) {
        st = set_curve(f, &f->units[k], k, k + 1, err);
        if (f->kind != QAT_SCORES_ONE_OF)
            count_unit(f, k);
        thin(&f->units[k].curve);
    }
    f->all.auc = f->all.ap = f->all.f1 = -1;
    if (!st && f->kind != QAT_SCORES_RANKED && f->n * (size_t)f->n_units <= ALL_MAX)
        st = set_curve(f, &f->all, 0, f->n_units, err);
    thin(&f->all.curve);
    return st;
}

/* ------------------------------------------------------------------ classes and values */

/** Are all scores probabilities? Otherwise they are numbers whose softmax counts. */
static bool all_probabilities(const figures *f)
{
    for (size_t i = 0; i < f->n * (size_t)f->n_units; i++)
        if (f->scores[i] < 0 || f->scores[i] > 1)
            return false;
    return true;
}

static qat_status count_classes(figures *f, qat_error *err)
{
    size_t const classes = (size_t)f->n_units;
    f->confusion = calloc(classes * classes, sizeof *f->confusion);
    f->log_sums = f->probabilities ? NULL : calloc(f->n + 1, sizeof *f->log_sums);
    if (!f->confusion || (!f->probabilities && !f->log_sums))
        return qat_out_of_memory(err, "figures");
    for (size_t i = 0; i < f->n; i++) {
        double p;
        if (f->log_sums)
            f->log_sums[i] = qat_log_sum(f->scores + i * classes, f->n_units);
        int const answer = figures_answer(f, i, &p), truth = (int)f->truth[i];
        f->confusion[(size_t)truth * classes + (size_t)answer]++;
        f->counts[truth].is++;
        f->counts[answer].said++;
        f->counts[answer].right += answer == truth;
        qat_bins_add(f->bins, p, answer == truth);
    }
    return QAT_OK;
}

static void fill_bins(figures *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (int k = 0; k < f->n_units; k++)
            if (!isnan(truth_of(f, i, k)))
                qat_bins_add(f->bins, figures_score(f, i, k), truth_of(f, i, k) > 0.5f);
}

static void judge_values(figures *f, int unit)
{
    figures_unit *u = &f->units[unit];
    double off = 0, squares = 0, sum = 0, spread = 0, known = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!isnan(truth_of(f, i, unit))) {
            double const truth = (double)truth_of(f, i, unit);
            double const d = figures_score(f, i, unit) - truth;
            known++;
            off += fabs(d);
            squares += d * d;
            sum += truth;
        }
    for (size_t i = 0; i < f->n; i++)
        if (!isnan(truth_of(f, i, unit))) {
            double const d = (double)truth_of(f, i, unit) - sum / known;
            spread += d * d;
        }
    f->counts[unit].is = (int64_t)known;
    u->mean_error = known > 0 ? off / known : -1;
    u->root_mean_square = known > 0 ? sqrt(squares / known) : -1;
    u->r2 = spread > 0 ? 1 - squares / spread : NAN;
}

qat_status figures_end(figures *f, qat_error *err)
{
    qat_status st = QAT_OK;
    f->probabilities = all_probabilities(f);
    if (f->kind == QAT_SCORES_EACH && !f->probabilities)
        f->kind = QAT_SCORES_RANKED;
    if (f->kind == QAT_SCORES_ONE_OF)
        st = count_classes(f, err);
    else if (f->kind == QAT_SCORES_EACH)
        fill_bins(f);
    for (int k = 0; k < f->n_units && f->kind == QAT_SCORES_VALUES; k++)
        judge_values(f, k);
    return st || f->kind == QAT_SCORES_VALUES ? st : set_curves(f, err);
}

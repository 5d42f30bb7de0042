/**
 * Figures of random scores: figures_cases DIR SEED writes scores.npy, truth.npy and figures.json,
 * for compare.py, which computes the same with scikit-learn.
 */
#include "base/files/npy.h"
#include "base/rng.h"
#include "tools/figures/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_UNITS = 12, SAMPLES = 700 };

/** A number of 0..1. */
static float uniform(qat_rng *rng)
{
    return (float)qat_rng_uniform(rng);
}

static float scores[SAMPLES * MOST_UNITS], truth[SAMPLES * MOST_UNITS];
static int n_units, n_truths;

static int count_scores(const qat_input_info *input)
{
    return n_units;
}

static qat_status give(const qat_input_info *input, const qat_outputs *outputs,
                       const qat_batch *batch, int i, float *to, float *is, qat_error *err)
{
    int const at = batch->index + i;
    for (int k = 0; k < n_units; k++)
        to[k] = scores[at * n_units + k];
    for (int k = 0; k < n_truths; k++)
        is[k] = truth[at * n_truths + k];
    return QAT_OK;
}

/** Scores that know something of the truth; in every other case many are equal. */
static void draw(qat_rng *rng, qat_score_kind kind, int n, bool coarse)
{
    for (int i = 0; i < n; i++) {
        int const class = (int)qat_rng_below(rng, (uint32_t)n_units);
        for (int k = 0; k < n_truths; k++)
            truth[i * n_truths + k] = kind == QAT_SCORES_ONE_OF
                                          ? (float)(class == 1 ? 0 : class) /* 1: no samples */
                                      : kind == QAT_SCORES_VALUES ? 10 * uniform(rng) - 3
                                      : uniform(rng) < 0.05f      ? NAN
                                                                  : uniform(rng) < 0.3f;
        for (int k = 0; k < n_units; k++) {
            float const t = truth[i * n_truths + k % n_truths];
            float s = uniform(rng);
            if (kind == QAT_SCORES_ONE_OF && coarse)
                s = 0.7f * s + 0.3f * (t == (float)k);
            else if (kind == QAT_SCORES_ONE_OF) /* no probabilities */
                s = 6 * s + 2 * (t == (float)k) - 3;
            else if (kind != QAT_SCORES_VALUES)
                s = isnan(t) ? s : 0.7f * s + 0.3f * t;
            s = kind == QAT_SCORES_RANKED ? 40 * s - 20 : s;
            scores[i * n_units + k] = coarse ? rintf(16 * s) / 16 : s;
        }
    }
}

int main(int argc, char **argv)
{
    int const seed = argc == 3 ? atoi(argv[2]) : 0;
    qat_score_kind const kind = QAT_SCORES_ONE_OF + seed % 4;
    qat_task const task = {
        .name = "case", .scored = kind, .n_scores = count_scores, .scores = give};
    qat_input_info in = {.task = &task};
    figures f;
    qat_error err = {0};
    qat_rng rng = qat_rng_at(1, 2, (uint64_t)seed);
    int const n = 1 + (int)qat_rng_below(&rng, SAMPLES);
    n_units = kind == QAT_SCORES_RANKED ? 1 : 2 + seed / 4 % (MOST_UNITS - 1);
    n_truths = kind == QAT_SCORES_ONE_OF ? 1 : n_units;
    draw(&rng, kind, n, seed / 4 % 2);
    qat_status st = figures_begin(&f, &in, NULL, &err);
    for (int at = 0; at < n && !st; at += 64)
        st = in.witness->see(in.witness->context, NULL, &(qat_batch){.index = at},
                             n - at < 64 ? n - at : 64, &err);
    if (!st)
        st = figures_end(&f, &err);
    char path[2][1024];
    snprintf(path[0], sizeof path[0], "%s/scores.npy", argv[1]);
    snprintf(path[1], sizeof path[1], "%s/truth.npy", argv[1]);
    if (!st)
        st = figures_write(&(figures_run){"", &f}, 1, "case", argv[1], &err);
    if (!st)
        st = qat_npy_write(path[0], QAT_NPY_F32, 2, (int64_t[]){n, n_units}, scores, &err);
    if (!st)
        st = qat_npy_write(path[1], QAT_NPY_F32, 2, (int64_t[]){n, n_truths}, truth, &err);
    figures_free(&f);
    if (st)
        fprintf(stderr, "%s\n", err.message);
    return st != QAT_OK;
}

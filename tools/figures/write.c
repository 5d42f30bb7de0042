/** Figures as JSON and as text. */
#include "tools/figures/figures.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/shown.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ JSON */

/** , "name": value; null if it is not known */
static void number(qat_writer *w, const char *name, double value, bool known)
{
    qat_write_text(w, ", \"%s\": ", name);
    qat_write_text(w, known && isfinite(value) ? "%.17g" : "null", value);
}

static void share(qat_writer *w, const char *name, double value)
{
    number(w, name, value, value >= 0);
}

static void count(qat_writer *w, const char *name, int64_t n)
{
    qat_write_text(w, ", \"%s\": %lld", name, (long long)n);
}

static void write_means(qat_writer *w, const char *name, qat_means m)
{
    qat_write_text(w, ", \"%s\": {\"precision\": %.17g, \"recall\": %.17g, \"f1\": %.17g}", name,
                   m.precision, m.recall, m.f1);
}

static void write_curve(qat_writer *w, const qat_curve *c)
{
    if (!c->hits || !c->misses)
        return;
    qat_write_text(w, ", \"roc\": [[0, 0]");
    for (size_t k = 0; k < c->n; k++)
        qat_write_text(w, ", [%.17g, %.17g]", (double)c->at[k].misses / (double)c->misses,
                       (double)c->at[k].hits / (double)c->hits);
    qat_write_text(w, "], \"precision_recall\": [[0, 1]");
    for (size_t k = 0; k < c->n; k++)
        qat_write_text(w, ", [%.17g, %.17g]", (double)c->at[k].hits / (double)c->hits,
                       (double)c->at[k].hits / (double)(c->at[k].hits + c->at[k].misses));
    qat_write_text(w, "]");
}

static void write_unit(qat_writer *w, const figures *f, int k)
{
    const figures_unit *u = &f->units[k];
    const qat_counts *c = &f->counts[k];
    qat_write_text(w, "{\"name\": ");
    qat_write_json(w, u->name);
    count(w, "samples", c->is);
    if (f->kind == QAT_SCORES_VALUES) {
        share(w, "mean_error", u->mean_error);
        share(w, "root_mean_square", u->root_mean_square);
        number(w, "r2", u->r2, true);
    } else {
        count(w, "answers", c->said);
        count(w, "right", c->right);
        share(w, "precision", qat_precision_of(c));
        share(w, "recall", qat_recall_of(c));
        share(w, "f1", qat_f1_of(c));
        share(w, "auc", u->auc);
        share(w, "ap", u->ap);
        share(w, "best_f1", u->f1);
        number(w, "best_threshold", u->threshold, u->f1 >= 0);
        write_curve(w, &u->curve);
    }
    qat_write_text(w, "}");
}

static void write_bins(qat_writer *w, const figures *f)
{
    double largest, error = qat_bins_error(f->bins, &largest);
    qat_write_text(w, ", \"calibration\": {\"bins\": [");
    for (int k = 0; k < QAT_BINS; k++) {
        const qat_bin *b = &f->bins[k];
        qat_write_text(w, "%s{\"low\": %.17g, \"high\": %.17g, \"n\": %lld", k ? ", " : "",
                       k * (1.0 / QAT_BINS), (k + 1) * (1.0 / QAT_BINS), (long long)b->n);
        number(w, "probability", b->sure / (double)b->n, b->n > 0);
        number(w, "right", (double)b->right / (double)b->n, b->n > 0);
        qat_write_text(w, "}");
    }
    qat_write_text(w, "]");
    share(w, "ece", error);
    share(w, "largest_error", largest);
    qat_write_text(w, "}");
}

static void write_confusion(qat_writer *w, const figures *f)
{
    qat_write_text(w, ", \"confusion\": [");
    for (int i = 0; i < f->n_units; i++) {
        qat_write_text(w, i ? ",\n    [" : "\n    [");
        for (int k = 0; k < f->n_units; k++)
            qat_write_text(w, "%s%lld", k ? ", " : "",
                           (long long)f->confusion[(size_t)i * (size_t)f->n_units + (size_t)k]);
        qat_write_text(w, "]");
    }
    qat_write_text(w, "]");
}

/** Mean of the areas that are known; -1: none is. */
static double mean_of(const figures *f, bool ap)
{
    double sum = 0;
    int known = 0;
    for (int k = 0; k < f->n_units; k++) {
        double const x = ap ? f->units[k].ap : f->units[k].auc;
        sum += x >= 0 ? x : 0;
        known += x >= 0;
    }
    return known ? sum / known : -1;
}

static void write_network(qat_writer *w, const figures *f)
{
    static const char *const kinds[] = {"", "one_of", "each", "ranked", "values"};
    qat_write_text(w, "{\"task\": ");
    qat_write_json(w, qat_task_of(&f->input)->name);
    qat_write_text(w, ", \"kind\": \"%s\", \"n\": %lld", kinds[f->kind], (long long)f->n);
    if (f->kind == QAT_SCORES_ONE_OF)
        share(w, "accuracy", figures_accuracy(f));
    if (f->kind != QAT_SCORES_VALUES) {
        write_means(w, "macro", qat_means_of(f->counts, f->n_units, false));
        write_means(w, "weighted", qat_means_of(f->counts, f->n_units, true));
        share(w, "mean_auc", mean_of(f, false));
        share(w, "mean_ap", mean_of(f, true));
        share(w, "auc_of_all", f->all.auc);
        share(w, "ap_of_all", f->all.ap);
    }
    if (f->kind == QAT_SCORES_ONE_OF || f->kind == QAT_SCORES_EACH)
        write_bins(w, f);
    if (f->confusion)
        write_confusion(w, f);
    qat_write_text(w, ", \"units\": [");
    for (int k = 0; k < f->n_units; k++) {
        qat_write_text(w, k ? ",\n    " : "\n    ");
        write_unit(w, f, k);
    }
    qat_write_text(w, "]}");
}

static void write_json(qat_writer *w, const figures_run *runs, int n, const char *data)
{
    qat_write_text(w, "{\"data\": ");
    qat_write_json(w, data);
    for (int i = 0; i < n; i++) {
        qat_write_text(w, ",\n  \"%sfigures\": ", runs[i].prefix);
        write_network(w, runs[i].of);
    }
    qat_write_text(w, "}\n");
}

/* ------------------------------------------------------------------ text */

/** The name of unit k, as a terminal may see it. */
static const char *shown(char text[FIGURES_NAME_MAX], const figures *f, int k)
{
    qat_shown(text, FIGURES_NAME_MAX, f->units[k].name, false);
    return text;
}

/** "93.10 %", or "-" */
static const char *percent(char text[16], double of)
{
    snprintf(text, 16, of >= 0 ? "%.2f %%" : "-", 100 * of);
    return text;
}

void figures_tell(qat_text *w, const figures *f)
{
    qat_means const m = qat_means_of(f->counts, f->n_units, false);
    char text[6][16], name[FIGURES_NAME_MAX];
    double largest;
    if (f->kind == QAT_SCORES_VALUES) {
        for (int k = 0; k < f->n_units; k++)
            qat_text_add(w, "%s: mean error %.6g  root mean square %.6g  R2 %.6g\n",
                         shown(name, f, k), f->units[k].mean_error, f->units[k].root_mean_square,
                         f->units[k].r2);
        return;
    }
    qat_text_add(w, "mean of %d: precision %s  recall %s  F1 %s  AUC %s  AP %s\n", f->n_units,
                 percent(text[0], m.precision), percent(text[1], m.recall), percent(text[2], m.f1),
                 percent(text[3], mean_of(f, false)), percent(text[4], mean_of(f, true)));
    if (f->kind != QAT_SCORES_RANKED)
        qat_text_add(w, "calibration error %s\n",
                     percent(text[5], qat_bins_error(f->bins, &largest)));
}

static void tell_units(qat_text *w, const figures *f)
{
    char text[5][16], name[FIGURES_NAME_MAX];
    qat_text_add(w, "\n%-24s %8s %8s %8s %10s %9s %9s %9s %9s\n", "", "samples", "answers", "right",
                 "precision", "recall", "F1", "AUC", "AP");
    for (int k = 0; k < f->n_units && f->kind != QAT_SCORES_VALUES; k++) {
        const figures_unit *u = &f->units[k];
        const qat_counts *c = &f->counts[k];
        qat_text_add(w, "%-24.24s %8lld %8lld %8lld %10s %9s %9s %9s %9s\n", shown(name, f, k),
                     (long long)c->is, (long long)c->said, (long long)c->right,
                     percent(text[0], qat_precision_of(c)), percent(text[1], qat_recall_of(c)),
                     percent(text[2], qat_f1_of(c)), percent(text[3], u->auc),
                     percent(text[4], u->ap));
    }
}

static void tell_confusion(qat_text *w, const figures *f)
{
    char name[FIGURES_NAME_MAX];
    qat_text_add(w, "\nrows: what is true; columns: what the network answers\n%-24s", "");
    for (int k = 0; k < f->n_units; k++)
        qat_text_add(w, " %7.7s", shown(name, f, k));
    for (int i = 0; i < f->n_units; i++) {
        qat_text_add(w, "\n%-24.24s", shown(name, f, i));
        for (int k = 0; k < f->n_units; k++)
            qat_text_add(w, " %7lld",
                         (long long)f->confusion[(size_t)i * (size_t)f->n_units + (size_t)k]);
    }
    qat_text_add(w, "\n");
}

static void tell_bins(qat_text *w, const figures *f)
{
    qat_text_add(w, "\n%-24s %8s %12s %8s\n", "probability", "answers", "mean", "right");
    for (int k = 0; k < QAT_BINS; k++) {
        const qat_bin *b = &f->bins[k];
        double const n = (double)b->n;
        char text[2][16];
        qat_text_add(w, "%.3f to %.3f           %8lld %12s %8s\n", k / (double)QAT_BINS,
                     (k + 1) / (double)QAT_BINS, (long long)b->n,
                     percent(text[0], b->n ? b->sure / n : -1),
                     percent(text[1], b->n ? (double)b->right / n : -1));
    }
}

static void tell_all(qat_text *w, const figures_run *runs, int n, const char *data)
{
    qat_text_add(w, "%s\n", data);
    for (int i = 0; i < n; i++) {
        const figures *f = runs[i].of;
        qat_text_add(w, "\n%s%s%lld sample%s\n", runs[i].prefix, *runs[i].prefix ? "network: " : "",
                     (long long)f->n, qat_plural((long long)f->n));
        figures_tell(w, f);
        if (f->kind != QAT_SCORES_VALUES)
            tell_units(w, f);
        if (f->kind == QAT_SCORES_ONE_OF || f->kind == QAT_SCORES_EACH)
            tell_bins(w, f);
        if (f->confusion)
            tell_confusion(w, f);
    }
}

/* ------------------------------------------------------------------ files */

static qat_status finish(qat_writer *w, const char *dir, const char *name, qat_error *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%.900s/%s", dir, name);
    qat_status const st = w->failed ? qat_out_of_memory(err, path)
                                    : qat_file_write_atomic(path, w->bytes, w->count, err);
    qat_writer_free(w);
    return st;
}

qat_status figures_write(const figures_run *runs, int n, const char *data, const char *dir,
                         qat_error *err)
{
    qat_writer w = {0};
    qat_status st = qat_make_dirs(dir, err);
    if (st)
        return st;
    write_json(&w, runs, n, data);
    st = finish(&w, dir, "figures.json", err);
    if (!st) {
        tell_all(&w, runs, n, data);
        st = finish(&w, dir, "figures.txt", err);
    }
    for (int i = 0; i < n && !st; i++)
        st = figures_draw(&runs[i], dir, err);
    return st;
}

/** How the integer model answers test data: figures, confusion, and which answers are worst. */
#include "tools/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWN = 20, MOST_PAIRS = 20, MOST_UNITS = 64, MOST_TOLD = 4 };

/* ------------------------------------------------------------------ answering */

static void free_wrong(report_wrong *w)
{
    free(w->pixels);
    free(w->boxes);
    free(w->said);
    free(w->is);
    qat_writer_free(&w->words);
    *w = (report_wrong){0};
}

bool report_keep(report_answers *a, double how_wrong, int sample, report_wrong **kept)
{
    int at = a->n_worst;
    while (at > 0 && a->worst[at - 1].how_wrong < how_wrong)
        at--;
    if (at == REPORT_WORST)
        return false;
    if (a->n_worst == REPORT_WORST)
        free_wrong(&a->worst[REPORT_WORST - 1]);
    else
        a->n_worst++;
    memmove(&a->worst[at + 1], &a->worst[at], (size_t)(a->n_worst - 1 - at) * sizeof *a->worst);
    a->worst[at] = (report_wrong){.how_wrong = how_wrong, .figure = NAN, .sample = sample};
    *kept = &a->worst[at];
    return true;
}

void report_answers_free(report_answers *a)
{
    for (int i = 0; i < a->n_worst; i++)
        free_wrong(&a->worst[i]);
    figures_free(&a->figures);
}

/* ------------------------------------------------------------------ scores */

/** Is a unit said to be there? */
static bool is_said(const figures *f, size_t i, int k)
{
    double const least = f->kind == QAT_SCORES_RANKED ? f->units[k].threshold : 0.5;
    return figures_score(f, i, k) >= least;
}

static double truth_at(const figures *f, size_t i, int k)
{
    return (double)f->truth[i * (size_t)f->n_truths + (size_t)k];
}

/** How far a unit's answer is from the truth; 0: it is right, or the truth is not known. */
static double wrongness_of(const figures *f, size_t i, int k)
{
    double const is = truth_at(f, i, k), score = figures_score(f, i, k);
    const figures_unit *u = &f->units[k];
    if (isnan(is))
        return 0;
    if (f->kind == QAT_SCORES_VALUES)
        return u->root_mean_square > 0 ? fabs(score - is) / u->root_mean_square : 0;
    if (is_said(f, i, k) == (is > 0.5))
        return 0;
    return f->kind == QAT_SCORES_EACH ? fabs(score - is)
                                      : fabs(score - u->threshold) / fmax(u->threshold, 1e-9);
}

/** How wrong the answer to a sample is; 0: it is right. */
static double how_wrong(const figures *f, size_t i)
{
    const float *scores = f->scores + i * (size_t)f->n_units;
    double p, sum = 0;
    if (f->kind == QAT_SCORES_ONE_OF)
        return (double)scores[figures_answer(f, i, &p)] - (double)scores[(int)f->truth[i]];
    for (int k = 0; k < f->n_units; k++)
        sum += wrongness_of(f, i, k);
    return sum;
}

static bool is_wrong(const figures *f, size_t i)
{
    double p;
    return f->kind == QAT_SCORES_ONE_OF ? figures_answer(f, i, &p) != (int)f->truth[i]
                                        : how_wrong(f, i) > 0;
}

/** The numbers, or the units that are there. */
static void tell_side(qat_text *words, const figures *f, size_t i, bool said)
{
    int told = 0;
    for (int k = 0; k < f->n_units; k++) {
        double const value = said ? figures_score(f, i, k) : truth_at(f, i, k);
        bool const there = said ? is_said(f, i, k) : value > 0.5;
        if (f->kind == QAT_SCORES_VALUES ? k >= MOST_TOLD : !there)
            continue;
        qat_text_add(words, told++ ? ", " : "");
        if (f->kind == QAT_SCORES_VALUES && isnan(value))
            qat_text_add(words, "not known");
        else if (f->kind == QAT_SCORES_VALUES)
            qat_text_add(words, "%.5g", value);
        else
            qat_text_add(words, "%s", f->units[k].name);
    }
    if (!told)
        qat_text_add(words, "none");
}

static void tell_wrong(report_wrong *w, const figures *f)
{
    size_t const i = (size_t)w->sample;
    double p;
    if (f->kind == QAT_SCORES_ONE_OF) {
        qat_text_add(&w->words, "says %s, is %s; margin %.3g",
                     f->units[figures_answer(f, i, &p)].name, f->units[(int)f->truth[i]].name,
                     w->how_wrong);
        return;
    }
    qat_text_add(&w->words, "says ");
    tell_side(&w->words, f, i, true);
    qat_text_add(&w->words, "; is ");
    tell_side(&w->words, f, i, false);
}

static qat_status find_worst(report_answers *a, const qat_dataset *data, qat_error *err)
{
    const figures *f = &a->figures;
    const qat_dataset_info *info = qat_dataset_info_of(data);
    qat_status st = QAT_OK;
    report_wrong *kept;
    int label;
    for (size_t i = 0; i < f->n; i++)
        if (is_wrong(f, i))
            (void)report_keep(a, how_wrong(f, i), (int)i, &kept);
    for (int i = 0; i < a->n_worst && !st; i++) {
        report_wrong *w = &a->worst[i];
        tell_wrong(w, f);
        if (info->type != QAT_SAMPLE_U8)
            continue;
        w->pixels = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels + 1);
        st = w->pixels ? qat_dataset_get(data, w->sample, w->pixels, &label, err)
                       : qat_out_of_memory(err, "pictures");
    }
    return st;
}

qat_status report_answer(report_answers *a, const qi_host *host, const qat_restored *c,
                         int64_t samples, qat_error *err)
{
    qat_input_info input = *qat_checkpoint_input(qat_restored_checkpoint(c));
    bool const scored = figures_of_task(qat_task_of(&input));
    qat_dataset *data = NULL;
    void *watch = NULL;
    if (scored && input.classes > REPORT_CLASSES)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "Only answers of at most %d classes are told here.", REPORT_CLASSES);
    qat_status st = qat_recipe_open_data(&data, qat_restored_recipe(c), NULL, QAT_SPLIT_TEST, err);
    if (!st)
        st = scored ? figures_begin(&a->figures, &input, qat_dataset_info_of(data), err)
                    : report_watch(a, &input, &watch, err);
    if (!st)
        st = qat_evaluate_model(host, &input, data, samples, NULL, NULL, &a->accuracy, err);
    if (!st && scored)
        st = figures_end(&a->figures, err);
    if (!st && scored)
        st = find_worst(a, data, err);
    qat_dataset_close(data);
    free(watch);
    return st;
}

/* ------------------------------------------------------------------ the sections */

const char *report_class(const report_run *run, int i, char text[FIGURES_NAME_MAX])
{
    const char *label = qat_checkpoint_label(qat_restored_checkpoint(run->inspected.restored), i);
    if (label)
        snprintf(text, FIGURES_NAME_MAX, "%.60s", tool_shown(label));
    else
        snprintf(text, FIGURES_NAME_MAX, "%d", i);
    return text;
}

/** All classes, with a row for each true one. */
static qat_status draw_confusion(qat_writer *page, const report_run *run, qat_error *err)
{
    static const char title[] = "true class against answer, share of the true class";
    const figures *f = &run->answers.figures;
    char names[MOST_DRAWN][FIGURES_NAME_MAX];
    const char *pointers[MOST_DRAWN], *heads[MOST_DRAWN + 1] = {"is, says"};
    double values[MOST_DRAWN * MOST_DRAWN];
    qat_writer svg = {0};
    for (int i = 0; i < f->n_units; i++) {
        int64_t const all = f->counts[i].is;
        heads[i + 1] = pointers[i] = report_class(run, i, names[i]);
        for (int k = 0; k < f->n_units; k++)
            values[i * f->n_units + k] =
                all ? 100.0 * (double)f->confusion[i * f->n_units + k] / (double)all : NAN;
    }
    plot_heat const p = {.title = title,
                         .x_title = "answer [class]",
                         .y_title = "true class",
                         .value_title = "share of the true class [%]",
                         .columns = f->n_units,
                         .rows = f->n_units,
                         .column_names = pointers,
                         .row_names = pointers,
                         .values = values};
    qat_status const st = plot_heat_svg(&p, &svg, err);
    if (!st)
        html_figure(page, &svg, title, true);
    else
        html_element(page, "h4", title);
    qat_writer_free(&svg);
    html_table(page, HTML_NUMBERS, heads, f->n_units + 1);
    for (int i = 0; i < f->n_units; i++) {
        qat_write_text(page, "<tr>");
        html_element(page, "td", names[i]);
        for (int k = 0; k < f->n_units; k++)
            qat_write_text(page, "<td>%lld</td>", (long long)f->confusion[i * f->n_units + k]);
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    return st == QAT_ERR_UNSUPPORTED ? QAT_OK : st;
}

/** The pairs of classes that are taken for each other most often. */
static void write_pairs(qat_writer *page, const report_run *run)
{
    static const char *const heads[] = {"is", "says", "samples"};
    const figures *f = &run->answers.figures;
    int64_t before = INT64_MAX;
    int after = 0;
    char name[FIGURES_NAME_MAX];
    html_table(page, HTML_TEXT_NUMBERS, heads, 3);
    for (int n = 0; n < MOST_PAIRS; n++) {
        int best = -1;
        for (int i = 0; i < f->n_units * f->n_units; i++) {
            bool const told = f->confusion[i] > before || (f->confusion[i] == before && i < after);
            if (i / f->n_units != i % f->n_units && !told && f->confusion[i] &&
                (best < 0 || f->confusion[i] > f->confusion[best]))
                best = i;
        }
        if (best < 0)
            break;
        before = f->confusion[best];
        after = best + 1;
        qat_write_text(page, "<tr>");
        html_element(page, "td", report_class(run, best / f->n_units, name));
        html_element(page, "td", report_class(run, best % f->n_units, name));
        qat_write_text(page, "<td>%lld</td></tr>\n", (long long)before);
    }
    html_table_end(page);
}

static void write_share(qat_writer *page, double share)
{
    if (share >= 0)
        qat_write_text(page, "<td>%.2f</td>", 100 * share);
    else
        qat_write_text(page, "<td>-</td>");
}

/** A row for each class, label or value. */
static void write_units(qat_writer *page, const figures *f)
{
    static const char *const shares[] = {"unit",   "samples",       "answers",
                                         "right",  "precision [%]", "recall [%]",
                                         "F1 [%]", "AUC [%]",       "AP [%]"};
    static const char *const values[] = {"value", "mean error [its unit]",
                                         "root mean square [its unit]", "R2 [1]"};
    bool const real = f->kind == QAT_SCORES_VALUES;
    html_table(page, HTML_NUMBERS, real ? values : shares, real ? 4 : 9);
    for (int k = 0; k < f->n_units && k < MOST_UNITS; k++) {
        const figures_unit *u = &f->units[k];
        const qat_counts *c = &f->counts[k];
        qat_write_text(page, "<tr>");
        html_element(page, "td", u->name);
        if (real) {
            html_number(page, u->mean_error);
            html_number(page, u->root_mean_square);
            html_number(page, u->r2);
        } else {
            qat_write_text(page, "<td>%lld</td><td>%lld</td><td>%lld</td>", (long long)c->is,
                           (long long)c->said, (long long)c->right);
            write_share(page, qat_precision_of(c));
            write_share(page, qat_recall_of(c));
            write_share(page, qat_f1_of(c));
            write_share(page, u->auc);
            write_share(page, u->ap);
        }
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    if (f->n_units > MOST_UNITS)
        qat_write_text(page, "<p>%d more: qat-eval --figures writes them.</p>\n",
                       f->n_units - MOST_UNITS);
}

/** The figures of the task over all samples that were answered. */
static void write_accuracy(qat_writer *page, const qat_accuracy *a)
{
    const char *comma = "";
    qat_write_text(page,
                   "<p>The integer model on %lld samples of the test data: ", (long long)a->n);
    for (int i = 0; i < a->task->n_figures; i++) {
        if (isnan(qat_figure_of(a, i)))
            continue;
        qat_write_text(page, "%s", comma);
        html_text(page, a->task->figures[i].name);
        qat_write_text(page, " ");
        qat_text_add_figure(page, a, i);
        comma = ", ";
    }
    qat_write_text(page, ".</p>\n");
}

qat_status report_told(qat_writer *page, const report_run *run, qat_error *err)
{
    const figures *f = &run->answers.figures;
    qat_status st = QAT_OK;
    html_element(page, "h3", "Answers");
    if (*run->why_no_answers.message || !run->answers.accuracy.n) {
        html_element(page, "p",
                     *run->why_no_answers.message ? run->why_no_answers.message
                                                  : "Nothing was answered.");
        return QAT_OK;
    }
    write_accuracy(page, &run->answers.accuracy);
    if (f->n && f->kind != QAT_SCORES_VALUES) {
        qat_write_text(page, "<p>");
        figures_tell(page, f);
        qat_write_text(page, "</p>\n");
    }
    if (f->confusion && f->n_units <= MOST_DRAWN)
        st = draw_confusion(page, run, err);
    else if (f->confusion)
        write_pairs(page, run);
    if (f->n)
        write_units(page, f);
    if (run->answers.n_worst)
        report_worst(page, run);
    return st;
}

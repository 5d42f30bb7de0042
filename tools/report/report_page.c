/** The sections of a run, and runs side by side. */
#include "tools/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 256 };

static void pair(qat_writer *page, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A row with a name and a text. */
static void pair(qat_writer *page, const char *name, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    qat_write_text(page, "<tr>");
    html_element(page, "td", name);
    html_element(page, "td", text);
    qat_write_text(page, "</tr>\n");
}

/* ------------------------------------------------------------------ several runs */

static double accuracy_of(const report_run *run, qat_judged which)
{
    return qat_main_figure(
        qat_checkpoint_accuracy(qat_restored_checkpoint(run->inspected.restored), which));
}

static double figure_of(const report_run *run, int which)
{
    const qat_deploy_result *d = &run->deployed;
    bool const done = !*run->why_not.message;
    switch (which) {
    case 0:
        return (double)qat_checkpoint_step(qat_restored_checkpoint(run->inspected.restored));
    case 1:
        return accuracy_of(run, QAT_JUDGED_FLOAT);
    case 2:
        return accuracy_of(run, QAT_JUDGED_SIMULATED);
    case 3:
        return accuracy_of(run, QAT_JUDGED_INTEGER);
    case 4:
        return (double)run->inspected.size.parameters;
    case 5:
        return 1e-6 * (double)run->inspected.size.macs;
    case 6:
        return done ? (double)d->qm_bytes : NAN;
    case 7:
        return done ? (double)d->arena_bytes : NAN;
    default:
        return done ? run->ms : NAN;
    }
}

static void write_figures(qat_writer *page, const report_run *runs, int n)
{
    static const char *const names[] = {"training steps",
                                        "in float",
                                        "simulated",
                                        "on integers",
                                        "parameters",
                                        "multiply-adds of one sample [millions]",
                                        "model file [bytes]",
                                        "memory of a run, arena [bytes]",
                                        "time of one sample here, median [ms]"};
    const char *heads[1 + TOOL_LIST_MAX] = {"figure"};
    char judged[200];
    const qat_figure *figure = report_figure(runs);
    snprintf(judged, sizeof judged, "%.100s [%s] ", figure ? figure->name : "main figure",
             !figure || figure->kind == QAT_FIGURE_REAL ? "own unit" : "%");
    for (int i = 0; i < n; i++)
        heads[1 + i] = runs[i].name;
    html_table(page, HTML_NUMBERS, heads, 1 + n);
    for (int k = 0; k < 9; k++) {
        qat_write_text(page, "<tr><td>");
        if (k >= 1 && k <= 3)
            html_text(page, judged);
        html_text(page, names[k]);
        qat_write_text(page, "</td>");
        for (int i = 0; i < n; i++) {
            double const v = figure_of(&runs[i], k), change = v - figure_of(runs, k);
            if (i && isfinite(change))
                qat_write_text(page, "<td>%.6g (%+.4g)</td>", v, change);
            else
                html_number(page, v);
        }
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    if (n > 1)
        html_element(page, "p", "In brackets: the difference to the first run.");
}

/** A line "key = value" of a recipe's text, and its section. */
typedef struct setting {
    char section[QAT_RECIPE_LINE_MAX + 1], key[QAT_RECIPE_LINE_MAX + 1];
    char value[QAT_RECIPE_VALUE_MAX];
} setting;

/** Read the first setting at or behind `at`. Returns what is behind it; NULL: there is none. */
static const char *next_setting(setting *s, const char *at)
{
    while (*at) {
        size_t const n = strcspn(at, "\n"), key = strcspn(at, " =\n");
        const char *line = at, *value = at + key + strspn(at + key, " =");
        at += n + (at[n] == '\n');
        if (*line == '[')
            snprintf(s->section, sizeof s->section, "%.*s", (int)strcspn(line + 1, "]\n"),
                     line + 1);
        if (*line == '[' || key == n)
            continue;
        snprintf(s->key, sizeof s->key, "%.*s", (int)key, line);
        snprintf(s->value, sizeof s->value, "%.*s", (int)strcspn(value, "\n"), value);
        return at;
    }
    return NULL;
}

/** Does the run's recipe have a line with this key in this section? Then *found is it. */
static bool find_setting(const report_run *run, const setting *like, setting *found)
{
    *found->section = 0;
    for (const char *at = run->recipe; (at = next_setting(found, at));)
        if (!strcmp(found->section, like->section) && !strcmp(found->key, like->key))
            return true;
    return false;
}

/** The run's value, or "". A key with its default value may have no line. */
static void find_value(const report_run *run, setting *s)
{
    char key[2 * sizeof s->key], text[QAT_RECIPE_VALUE_MAX];
    setting found;
    snprintf(key, sizeof key, "%s.%s", s->section, s->key);
    const char *value = qat_recipe_get(qat_restored_recipe(run->inspected.restored), key, text);
    if (!value)
        value = find_setting(run, s, &found) ? found.value : "";
    snprintf(s->value, sizeof s->value, "%s", value);
}

/** A row for the setting, if not all runs have the same value. Returns whether it is there. */
static bool write_difference(qat_writer *page, const report_run *runs, int n, setting *s)
{
    char first[QAT_RECIPE_VALUE_MAX], key[2 * sizeof s->key];
    bool differs = false;
    find_value(runs, s);
    memcpy(first, s->value, sizeof first);
    for (int i = 1; i < n && !differs; i++) {
        find_value(&runs[i], s);
        differs = strcmp(first, s->value) != 0;
    }
    if (!differs)
        return false;
    snprintf(key, sizeof key, "%s.%s", s->section, s->key);
    qat_write_text(page, "<tr>");
    html_element(page, "td", key);
    for (int i = 0; i < n; i++) {
        find_value(&runs[i], s);
        html_element(page, "td", s->value);
    }
    qat_write_text(page, "</tr>\n");
    return true;
}

/** Every setting of a run whose value another run does not share. */
static void write_differences(qat_writer *page, const report_run *runs, int n)
{
    const char *heads[1 + TOOL_LIST_MAX] = {"setting"};
    int found = 0;
    for (int i = 0; i < n; i++)
        heads[1 + i] = runs[i].name;
    html_element(page, "h3", "Settings that differ");
    html_table(page, HTML_TEXTS, heads, 1 + n);
    for (int i = 0; i < n; i++) {
        setting s = {.section = ""}, before;
        for (const char *at = runs[i].recipe; (at = next_setting(&s, at));) {
            bool known = false;
            for (int k = 0; k < i && !known; k++)
                known = find_setting(&runs[k], &s, &before);
            found += !known && write_difference(page, runs, n, &s);
        }
    }
    html_table_end(page);
    if (!found)
        html_element(page, "p", "None.");
}

qat_status report_compare(qat_writer *page, const report_run *runs, int n, qat_error *err)
{
    html_element(page, "h2", n > 1 ? "The runs side by side" : "In short");
    write_figures(page, runs, n);
    if (n == 1)
        return QAT_OK;
    write_differences(page, runs, n);
    return report_curves(page, runs, n, err);
}

/* ------------------------------------------------------------------ costs */

static qat_status write_costs(qat_writer *page, const report_run *run, qat_error *err)
{
    static const char *const heads[] = {
        "layer", "op", "parameters", "multiply-adds", "flash [bytes]", "RAM [bytes]"};
    static const char *const timed[] = {"layer", "integer op", "multiply-adds", "time [ms]"};
    const qat_restored *c = run->inspected.restored;
    const qat_checkpoint *ckpt = qat_restored_checkpoint(c);
    qat_layout const layout =
        qat_checkpoint_quantized(ckpt) ? qat_checkpoint_quant(ckpt)->layout : QAT_LAYOUT_UINT8;
    qat_layer_cost *costs = NULL;
    int n = 0;
    qat_status const st = qat_network_costs(qat_restored_graph(c), layout, &costs, &n, err);
    if (st)
        return st;
    html_element(page, "h3", "Cost of each layer");
    html_table(page, HTML_TEXT_NUMBERS, heads, 6);
    for (int i = 0; i < n; i++) {
        qat_write_text(page, "<tr>");
        html_element(page, "td", i == n - 1 ? "all" : costs[i].name);
        html_element(page, "td", costs[i].op);
        qat_write_text(page, "<td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td></tr>\n",
                       (long long)costs[i].parameters, (long long)costs[i].macs,
                       (long long)costs[i].flash, (long long)costs[i].ram);
    }
    html_table_end(page);
    free(costs);
    if (!run->n_layers)
        return QAT_OK;
    html_table(page, HTML_TEXT_NUMBERS, timed, 4);
    for (int i = 0; i < run->n_layers; i++) {
        qat_write_text(page, "<tr>");
        html_element(page, "td", run->layers[i].name);
        html_element(page, "td", run->layers[i].op);
        qat_write_text(page, "<td>%.0f</td><td>%.4f</td></tr>\n", run->layers[i].macs,
                       run->layers[i].ms);
    }
    html_table_end(page);
    qat_write_text(page, "<p>Times of the integer engine where this page was made, one thread, "
                         "instruction set ");
    html_text(page, run->isa);
    qat_write_text(page, "; the fastest of some runs.</p>\n");
    return QAT_OK;
}

/** Codes of a tensor: each bar is one code, so the bars are the grid of the quantization. */
static qat_status draw_codes(qat_writer *page, const inspected *x, int index, qat_error *err)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    int64_t counts[BINS] = {0};
    int const step = t->type == QI_S16 ? 256 : 1;
    int const lowest = t->type == QI_U8 ? 0 : t->type == QI_S8 ? INT8_MIN : INT16_MIN;
    int low = BINS, high = 0;
    char title[300], axis[160], mark[32];
    for (size_t i = 0; i < qat_qtensor_count(t); i++) {
        int const bin = (inspect_code(t, x->codes[index], i) - lowest) / step;
        counts[bin]++;
        low = bin < low ? bin : low;
        high = bin > high ? bin : high;
    }
    snprintf(title, sizeof title, "%.200s, %d bits", tool_shown(t->name), (int)t->bits);
    snprintf(axis, sizeof axis, "code q, real value S (q - Z), S = %.4g%s", (double)t->scale,
             t->channel_scales ? " ..." : "");
    snprintf(mark, sizeof mark, "Z = %d", (int)t->zero_point);
    plot_histogram const p = {.title = title,
                              .x_title = axis,
                              .n = high - low + 1,
                              .counts = counts + low,
                              .low = lowest + (low - 0.5) * step,
                              .high = lowest + (high + 0.5) * step,
                              .mark = t->zero_point >= lowest + low * step &&
                                              t->zero_point <= lowest + high * step
                                          ? t->zero_point
                                          : NAN,
                              .mark_name = mark};
    return html_histogram(page, &p, err);
}

static qat_status write_codes(qat_writer *page, const report_run *run, int charts, qat_error *err)
{
    const inspected *x = &run->inspected;
    qat_status st = QAT_OK;
    int left = 0;
    html_element(page, "h3", "Histograms of codes");
    if (!x->graph || *run->why_no_values.message) {
        html_element(page, "p", run->why_no_values.message);
        return QAT_OK;
    }
    qat_write_text(page, "<p>Each bar is one code. Activations are those of ");
    html_text(page, x->sample);
    qat_write_text(page, ".</p>\n");
    for (int i = 0; !st && i < x->graph->n_tensors; i++) {
        if (!x->codes[i] || !qat_qtensor_count(&x->graph->tensors[i]))
            continue;
        if (charts-- > 0)
            st = draw_codes(page, x, i, err);
        else
            left++;
    }
    if (left)
        qat_write_text(page, "<p>%d more tensors: qat-inspect --plot draws them.</p>\n", left);
    return st;
}

/* ------------------------------------------------------------------ the certificate */

static void write_certificate(qat_writer *page, const report_run *run)
{
    static const char *const heads[] = {"compared", "result"};
    const qat_deploy_result *d = &run->deployed;
    const qat_certificate *c = &d->certificate;
    char digest[2 * sizeof c->sha256 + 1] = "";
    html_element(page, "h3", "Certificate");
    if (*run->why_not.message) {
        html_element(page, "p", run->why_not.message);
        return;
    }
    for (size_t i = 0; i < sizeof c->sha256; i++)
        snprintf(digest + 2 * i, 3, "%02x", c->sha256[i]);
    html_table(page, HTML_TEXTS, heads, 2);
    pair(page, "engine against the exact evaluation", "%lld samples of %s, all bytes equal",
         (long long)d->samples, d->verified_on);
    pair(page, "file against", "%s", d->certified_against);
    pair(page, "layers", "%lld", (long long)c->layers);
    pair(page, "codes of weights, of biases", "%lld, %lld", (long long)c->weights,
         (long long)c->biases);
    pair(page, "multipliers, scales", "%lld, %lld", (long long)c->multipliers,
         (long long)c->scales);
    pair(page, "entries of tables", "%lld", (long long)c->tables);
    if (isfinite(c->engine_snr) && isfinite(c->simulation_snr))
        pair(page, "signal over noise at the outputs [dB]", "engine %.1f, simulation %.1f",
             c->engine_snr, c->simulation_snr);
    pair(page, "layers without an independent computation", "%s",
         c->n_uncertified ? c->uncertified : "none");
    pair(page, "SHA-256 of the .qm", "%s", digest);
    html_table_end(page);
}

qat_status report_section(qat_writer *page, const report_run *run, int charts, qat_error *err)
{
    qat_write_text(page, "<section>\n");
    html_element(page, "h2", run->name);
    qat_status st = report_curves(page, run, 1, err);
    if (!st)
        st = report_ranges(page, run, charts / 2, err);
    if (!st)
        st = report_debug(page, run, err);
    if (!st)
        st = report_told(page, run, err);
    if (!st)
        st = write_costs(page, run, err);
    write_certificate(page, run);
    if (!st)
        st = write_codes(page, run, charts, err);
    html_element(page, "h3", "Settings");
    qat_write_text(page, "<details><summary>the recipe, every key</summary>\n<pre>");
    for (const char *at = run->recipe; *at;) {
        char line[2 * QAT_RECIPE_VALUE_MAX];
        size_t const n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), at);
        html_text(page, line);
        qat_write_text(page, "\n");
        at += n + (at[n] != 0);
    }
    qat_write_text(page, "</pre></details>\n</section>\n");
    return st;
}

/** What quantization did to each layer: the table, the chart and the findings of qat-debug. */
#include "tools/report/report.h"

#include <ctype.h>
#include <stdio.h>

enum { MOST_HEADS = 64 };

static void write_table(qat_writer *page, const debug_told *told)
{
    const char *heads[MOST_HEADS] = {"layer", "op", "place"};
    char text[TOOL_FIGURE_MAX];
    int n = 3;
    for (int c = 0; c < debug_columns() && n < MOST_HEADS - 1; c++)
        if (debug_head(told, c))
            heads[n++] = debug_head(told, c);
    heads[n++] = "worst channels";
    html_table(page, HTML_TEXT_NUMBERS, heads, n);
    for (int i = 0; i < qat_debug_layers(told->debug); i++) {
        const qat_debug_layer *l = qat_debug_layer_at(told->debug, i);
        qat_write_text(page, "<tr>");
        html_element(page, "td", l->name);
        html_element(page, "td", l->op);
        qat_write_text(page, "<td>%d</td>", i + 1);
        for (int c = 0; c < debug_columns(); c++)
            if (debug_head(told, c))
                html_element(page, "td", debug_cell(text, c, l));
        html_element(page, "td", debug_channels(text, l));
        qat_write_text(page, "</tr>\n");
    }
    html_table_end(page);
    qat_write_text(page,
                   "<p>On %lld samples of the test data. dB: signal over noise; q: quanta of "
                   "the layer's output; place: in the order of execution, as in the chart.</p>\n",
                   (long long)qat_debug_samples(told->debug));
}

/** A paragraph that begins or ends with a layer's name. */
static void write_sentence(qat_writer *page, const char *before, const char *layer,
                           const char *after)
{
    qat_write_text(page, "<p>");
    html_text(page, before);
    qat_write_text(page, "<b>");
    html_text(page, layer);
    qat_write_text(page, "</b>");
    html_text(page, after);
    qat_write_text(page, "</p>\n");
}

/** Where the networks part, and what is wrong, the worst layer first. */
static void write_findings(qat_writer *page, const debug_told *told)
{
    const qat_debug *d = told->debug;
    char text[QAT_DEBUG_TEXT + 8];
    int found = 0;
    for (int i = 0; i < QAT_DEBUG_PAIRS; i++) {
        const char *what;
        const qat_debug_layer *l = debug_part(told, i, &what);
        snprintf(text, sizeof text, "%s in ", what);
        text[0] = (char)toupper((unsigned char)text[0]);
        if (l)
            write_sentence(page, text, l->name, ".");
    }
    for (int rank = 0; rank < qat_debug_layers(d); rank++) {
        const qat_debug_layer *l = qat_debug_layer_at(d, qat_debug_worst(d, rank));
        if (l->kind == QAT_DEBUG_NOTHING)
            continue;
        found++;
        snprintf(text, sizeof text, ": %s.", l->finding);
        write_sentence(page, "", l->name, text);
    }
    if (!found && qat_debug_layers(d))
        write_sentence(page, "Nothing stands out; most is lost in ",
                       qat_debug_layer_at(d, qat_debug_worst(d, 0))->name, ".");
}

qat_status report_debug(qat_writer *page, const report_run *run, qat_error *err)
{
    debug_told const told = {.debug = run->debug, .path = run->checkpoint, .has_float = true};
    qat_writer svg = {0};
    html_element(page, "h3", "What quantization did to each layer");
    if (!run->debug || *run->why_no_debug.message) {
        html_element(page, "p", run->why_no_debug.message);
        return QAT_OK;
    }
    qat_status const st = debug_plot(&told, NULL, &svg, err);
    if (!st)
        html_figure(page, &svg, "signal over quantization noise, layer by layer", false);
    qat_writer_free(&svg);
    write_table(page, &told);
    write_findings(page, &told);
    return st == QAT_ERR_UNSUPPORTED || st == QAT_ERR_STATE ? QAT_OK : st;
}

#include "tools/debug/debug_tool.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ columns */

/** A figure of a layer, by its name in all forms. */
struct column {
    const char *name, *head; /* of CSV and JSON; of the table, NULL: it is not there */
    double (*value)(const qat_debug_layer *layer);
    int digits;
    bool needs_float, needs_dump;
};

#define FIGURE(name, expression)                                                                   \
    static double name(const qat_debug_layer *l)                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
FIGURE(whole_snr, l->whole.snr)
FIGURE(whole_cosine, l->whole.cosine)
FIGURE(whole_largest, l->whole.largest)
FIGURE(simulated_snr, l->simulated.snr)
FIGURE(simulated_differing, 100 * l->differing)
FIGURE(own_snr, l->own.snr)
FIGURE(own_largest, l->own.largest)
FIGURE(rounding_snr, l->rounding.snr)
FIGURE(weights_snr, l->weights_snr)
FIGURE(bias_error, l->bias_error)
FIGURE(saturated, 100 * l->saturated)
FIGURE(codes, l->codes ? l->codes : NAN)
FIGURE(used, l->codes ? l->used : NAN)
FIGURE(foreign_snr, l->foreign.snr)
FIGURE(foreign_differing, 100 * l->foreign_differing)
FIGURE(loss, l->loss > -99 ? l->loss : NAN)

static const struct column columns[] = {
    {"whole_snr_db", "whole dB", whole_snr, 1, false, false},
    {"whole_cosine", "cosine", whole_cosine, 4, false, false},
    {"whole_largest_quanta", NULL, whole_largest, 2, false, false},
    {"simulated_snr_db", "simul. dB", simulated_snr, 1, true, false},
    {"simulated_differing_percent", NULL, simulated_differing, 3, true, false},
    {"own_snr_db", "own dB", own_snr, 1, false, false},
    {"own_largest_quanta", "largest q", own_largest, 1, false, false},
    {"weights_snr_db", "weights dB", weights_snr, 1, true, false},
    {"bias_error_quanta", "bias q", bias_error, 2, true, false},
    {"rounding_snr_db", "rounding dB", rounding_snr, 1, true, false},
    {"saturated_percent", "satur. %", saturated, 2, false, false},
    {"codes", NULL, codes, 0, false, false},
    {"codes_used", "codes", used, 0, false, false},
    {"foreign_snr_db", "other dB", foreign_snr, 1, false, true},
    {"foreign_differing_percent", "other %", foreign_differing, 2, false, true},
    {"loss_db", "loss dB", loss, 1, false, false},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static bool is_shown(const debug_told *t, const struct column *c)
{
    return c->head && (t->has_float || !c->needs_float) && (t->has_dump || !c->needs_dump);
}

static const char *figure(char text[TOOL_FIGURE_MAX], const struct column *c, double value)
{
    if (isnan(value))
        return strcpy(text, "-");
    if (strstr(c->name, "_db") && value >= 999)
        return strcpy(text, "equal");
    snprintf(text, TOOL_FIGURE_MAX, "%.*f", c->digits, value);
    return text;
}

int debug_columns(void)
{
    return COLUMNS;
}

const char *debug_head(const debug_told *t, int c)
{
    return is_shown(t, &columns[c]) ? columns[c].head : NULL;
}

const char *debug_cell(char text[TOOL_FIGURE_MAX], int c, const qat_debug_layer *layer)
{
    return figure(text, &columns[c], columns[c].value(layer));
}

/* ------------------------------------------------------------------ text */

static const qat_debug_layer *layer_at(const debug_told *t, int i)
{
    return qat_debug_layer_at(t->debug, i);
}

const char *debug_channels(char text[TOOL_FIGURE_MAX], const qat_debug_layer *layer)
{
    int n = 0;
    *text = 0;
    for (int i = 0; i < QAT_DEBUG_CHANNELS && layer->worst[i] >= 0 && layer->loss > -99; i++)
        n += snprintf(text + n, TOOL_FIGURE_MAX - (size_t)n, "%s%d", i ? " " : "", layer->worst[i]);
    return *text ? text : "-";
}

static void print_table(const debug_told *t)
{
    char text[TOOL_FIGURE_MAX];
    int width = 5;
    for (int i = 0; i < qat_debug_layers(t->debug); i++) {
        int const n = (int)strlen(tool_shown(layer_at(t, i)->name));
        width = n > width ? n : width;
    }
    printf("%-*s %-18s", width, "layer", "op");
    for (int c = 0; c < COLUMNS; c++)
        if (is_shown(t, &columns[c]))
            printf(" %11s", columns[c].head);
    printf("  worst channels\n");
    for (int i = 0; i < qat_debug_layers(t->debug); i++) {
        const qat_debug_layer *l = layer_at(t, i);
        printf("%-*s %-18s", width, tool_shown(l->name), tool_shown(l->op));
        for (int c = 0; c < COLUMNS; c++)
            if (is_shown(t, &columns[c]))
                printf(" %11s", figure(text, &columns[c], columns[c].value(l)));
        printf("  %s\n", debug_channels(text, l));
    }
}

static const struct {
    const char *name, *text;
} pairs[QAT_DEBUG_PAIRS] = {
    {"float_integer", "float and integer first part by more than rounding"},
    {"simulated_integer", "simulation and integer first differ in a code"},
    {"foreign_integer", "the other runtime and integer first differ, on its own inputs,"},
};

const qat_debug_layer *debug_part(const debug_told *t, int pair, const char **what)
{
    int const at = qat_debug_parts(t->debug, (qat_debug_pair)pair);
    *what = pairs[pair].text;
    return at < 0 ? NULL : layer_at(t, at);
}

static void print_parts(const debug_told *t)
{
    const char *what;
    for (int i = 0; i < QAT_DEBUG_PAIRS; i++) {
        const qat_debug_layer *layer = debug_part(t, i, &what);
        if (layer)
            printf("%s in %s\n", what, tool_shown(layer->name));
    }
}

static void print_findings(const debug_told *t)
{
    int found = 0;
    for (int rank = 0; rank < qat_debug_layers(t->debug); rank++) {
        const qat_debug_layer *l = layer_at(t, qat_debug_worst(t->debug, rank));
        if (l->kind == QAT_DEBUG_NOTHING)
            continue;
        if (!found++)
            printf("\nfound, the worst layer first:\n");
        printf("%3d. %s: %s\n", found, tool_shown(l->name), l->finding);
    }
    if (!found)
        printf("\nnothing stands out; most is lost in %s\n",
               qat_debug_layers(t->debug)
                   ? tool_shown(layer_at(t, qat_debug_worst(t->debug, 0))->name)
                   : "no layer");
}

void debug_print(const debug_told *t)
{
    long long const n = (long long)qat_debug_samples(t->debug);
    printf("%s on %lld sample%s of %s, against %s\n", tool_shown(t->path), n, qat_plural(n),
           tool_shown(t->data),
           t->against     ? tool_shown(t->against)
           : t->has_float ? "its float network"
                          : "the real numbers of its own weights");
    print_table(t);
    print_parts(t);
    print_findings(t);
}

/* ------------------------------------------------------------------ files */

static qat_status write_all(qat_writer *w, const char *path, qat_error *err)
{
    qat_status const st = w->failed ? qat_out_of_memory(err, path)
                                    : qat_file_write_atomic(path, w->bytes, w->count, err);
    qat_writer_free(w);
    return st;
}

/** A field of a CSV table or a string of JSON; quotes are doubled or escaped. */
static void write_quoted(qat_writer *w, const char *text, bool json)
{
    qat_write_text(w, "\"");
    for (const char *c = tool_shown(text); *c; c++)
        qat_write_text(w,
                       *c == '"'            ? (json ? "\\\"" : "\"\"")
                       : *c == '\\' && json ? "\\\\"
                                            : "%c",
                       *c);
    qat_write_text(w, "\"");
}

static int rank_of(const debug_told *t, int layer)
{
    int rank = 0;
    while (qat_debug_worst(t->debug, rank) != layer)
        rank++;
    return rank + 1;
}

qat_status debug_write_csv(const debug_told *t, const char *path, qat_error *err)
{
    char text[TOOL_FIGURE_MAX];
    qat_writer w = {0};
    qat_write_text(&w, "layer,op,rank");
    for (int c = 0; c < COLUMNS; c++)
        qat_write_text(&w, ",%s", columns[c].name);
    qat_write_text(&w, ",worst_channels,finding\n");
    for (int i = 0; i < qat_debug_layers(t->debug); i++) {
        const qat_debug_layer *l = layer_at(t, i);
        write_quoted(&w, l->name, false);
        qat_write_text(&w, ",%s,%d", tool_shown(l->op), rank_of(t, i));
        for (int c = 0; c < COLUMNS; c++) {
            double const v = columns[c].value(l);
            if (isnan(v))
                qat_write_text(&w, ",");
            else
                qat_write_text(&w, ",%.6g", v);
        }
        qat_write_text(&w, ",%s,", debug_channels(text, l));
        write_quoted(&w, l->finding, false);
        qat_write_text(&w, "\n");
    }
    return write_all(&w, path, err);
}

static void write_layer(qat_writer *w, const debug_told *t, int i)
{
    const qat_debug_layer *l = layer_at(t, i);
    qat_write_text(w, "%s\n  {\"layer\": ", i ? "," : "");
    write_quoted(w, l->name, true);
    qat_write_text(w, ", \"op\": ");
    write_quoted(w, l->op, true);
    qat_write_text(w, ", \"rank\": %d", rank_of(t, i));
    for (int c = 0; c < COLUMNS; c++)
        if (!isnan(columns[c].value(l)))
            qat_write_text(w, ", \"%s\": %.9g", columns[c].name, columns[c].value(l));
    qat_write_text(w, ", \"worst_channels\": [");
    for (int k = 0; k < QAT_DEBUG_CHANNELS && l->worst[k] >= 0 && l->loss > -99; k++)
        qat_write_text(w, "%s{\"channel\": %d, \"loss_db\": %.6g}", k ? ", " : "", l->worst[k],
                       l->worst_loss[k]);
    qat_write_text(w, "], \"finding\": ");
    write_quoted(w, l->finding, true);
    qat_write_text(w, "}");
}

qat_status debug_write_json(const debug_told *t, const char *path, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w, "{\"file\": ");
    write_quoted(&w, t->path, true);
    qat_write_text(&w, ", \"data\": ");
    write_quoted(&w, t->data, true);
    qat_write_text(&w, ", \"samples\": %lld", (long long)qat_debug_samples(t->debug));
    for (int i = 0; i < QAT_DEBUG_PAIRS; i++) {
        int const at = qat_debug_parts(t->debug, (qat_debug_pair)i);
        if (at < 0)
            continue;
        qat_write_text(&w, ", \"%s_part_in\": ", pairs[i].name);
        write_quoted(&w, layer_at(t, at)->name, true);
    }
    qat_write_text(&w, ", \"layers\": [");
    for (int i = 0; i < qat_debug_layers(t->debug); i++)
        write_layer(&w, t, i);
    qat_write_text(&w, "\n]}\n");
    return write_all(&w, path, err);
}

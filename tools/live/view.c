#include "tools/live/view.h"

#include "tools/common/tool.h"
#include "tools/live/canvas.h"
#include "tools/live/layers.h"
#include "tools/live/terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    LEAST_COLUMNS = 40, /* for charts and layers */
    TWO_CHARTS = 76,    /* columns for two charts side by side */
    LABEL = 8,          /* columns of the numbers beside a chart */
    MEMORY = 30,        /* columns of the part on memory */
    SLOWEST = 5,
    FRAMES = 8, /* a second */
    EVALUATED = 3
};

/** The evaluated networks: what people call them, and how their curves look. */
static const struct {
    const char *name;
    live_pen pen;
} networks[EVALUATED] = {{"float", {'f', LIVE_YELLOW, true}},
                         {"simulated", {'s', LIVE_MAGENTA, false}},
                         {"integers", {'i', LIVE_GREEN, false}}};
static const live_pen loss_pen = {'*', LIVE_CYAN, false};

struct live_view {
    live_terminal terminal;
    char title[128];
    const char *judged;
    double drawn_at;

    qat_train_progress now; /* the last step or evaluation; its pointers are not kept */
    live_curve loss, scores[EVALUATED];
    qat_accuracy last[EVALUATED];
    /* progress has the mean loss since a row; this is what turns it into that of a step */
    int64_t steps_of_row;
    double sum_of_row;
    bool rows_known; /* a row was seen to begin */

    live_layers layers;
    int64_t measured; /* steps in which layers were measured */
    size_t graph_bytes;

    /* the frame that is being made */
    qat_writer frame;
    int lines;
};

/* ------------------------------------------------------------------ lines */

/** One column stays free: a full line would wrap. */
static int columns_of(const live_view *v)
{
    int const most = v->terminal.columns - 1;
    return most < LIVE_WIDTH_MAX ? most : LIVE_WIDTH_MAX;
}

static live_line line_of(live_view *v)
{
    return (live_line){&v->terminal, &v->frame, 0, columns_of(v)};
}

static void end_line(live_view *v)
{
    qat_write_text(&v->frame, "\033[K\n");
    v->lines++;
}

/** A text whose end is at the line's end. */
static void put_right(live_line *l, int style, const char *text)
{
    live_fill(l, l->most - (int)strlen(text));
    live_put(l, style, text);
}

/** A character n times. */
static void repeat(live_line *l, int style, const char *character, int n)
{
    char text[4 * LIVE_WIDTH_MAX];
    size_t const bytes = strlen(character);
    n = n < LIVE_WIDTH_MAX ? n : LIVE_WIDTH_MAX - 1;
    for (int i = 0; i < n; i++)
        memcpy(text + (size_t)i * bytes, character, bytes);
    text[n > 0 ? (size_t)n * bytes : 0] = 0;
    live_put(l, style, text);
}

/** `share` of `columns` filled. */
static void put_bar(live_line *l, double share, int columns, int style)
{
    bool const utf8 = l->terminal->utf8;
    int const full = (int)(share * columns + 0.5);
    repeat(l, style, utf8 ? "\u2501" : "#", full);
    repeat(l, LIVE_DIM, utf8 ? "\u2500" : "-", columns - full);
}

static const char *time_text(char text[32], double seconds)
{
    long long const s = seconds < 3.6e6 ? (long long)(seconds + 0.5) : 3600000;
    if (s < 3600)
        snprintf(text, 32, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static void put_mib(live_line *l, const char *what, double bytes)
{
    live_putf(l, LIVE_DIM, "%s ", what);
    live_putf(l, 0, "%.1f MiB", bytes / 1048576);
}

/* ------------------------------------------------------------------ the head */

static void draw_head(live_view *v)
{
    const qat_train_progress *p = &v->now;
    bool const evaluates = p->event == QAT_EVENT_EVAL && p->total > 0;
    double const share = evaluates      ? (double)p->done / (double)p->total
                         : p->steps > 0 ? (double)p->step / (double)p->steps
                                        : 0;
    char text[96], time[32];
    live_line l = line_of(v);
    live_put(&l, 1, v->title);
    snprintf(text, sizeof text, " step %lld/%lld  epoch %.2f", (long long)p->step,
             (long long)p->steps, p->epoch);
    put_right(&l, 0, text);
    end_line(v);

    l = line_of(v);
    snprintf(text, sizeof text, " %3.0f %%  %s %s", 100 * share, evaluates ? v->judged : "ETA",
             evaluates ? "data" : time_text(time, p->eta));
    put_bar(&l, share, l.most - (int)strlen(text), evaluates ? LIVE_MAGENTA : LIVE_BLUE);
    live_put(&l, 0, text);
    end_line(v);

    l = line_of(v);
    live_put(&l, LIVE_DIM, "loss ");
    live_putf(&l, 0, "%.4f  ", p->loss);
    if (!isnan(p->accuracy)) {
        live_put(&l, LIVE_DIM, "train ");
        live_putf(&l, 0, "%.2f %%  ", p->accuracy);
    }
    live_put(&l, LIVE_DIM, "rate ");
    live_putf(&l, 0, "%.3g  ", p->lr);
    live_putf(&l, 0, "%.0f", p->samples_per_second);
    live_put(&l, LIVE_DIM, " images/s  ");
    live_put(&l, LIVE_DIM, "elapsed ");
    live_put(&l, 0, time_text(time, p->seconds));
    end_line(v);
}

/* ------------------------------------------------------------------ charts */

/** A chart: its curves, and the range of their values. */
typedef struct chart {
    live_canvas canvas;
    int column; /* where it begins */
    bool any;
} chart;

static void size_chart(live_view *v, chart *c, int column, int columns, int height)
{
    c->column = column;
    c->canvas = (live_canvas){.width = columns - LABEL,
                              .height = height,
                              .braille = v->terminal.utf8,
                              .x = {v->loss.n ? v->loss.x[0] : 0, (double)v->now.step},
                              .y = {INFINITY, -INFINITY}};
}

static void set_loss(live_view *v, chart *c)
{
    live_curve_range(&v->loss, &c->canvas.y[0], &c->canvas.y[1]);
    c->any = v->loss.n > 0;
    live_canvas_draw(&c->canvas, &v->loss, loss_pen);
}

static void set_scores(live_view *v, chart *c)
{
    for (int i = 0; i < EVALUATED; i++)
        live_curve_range(&v->scores[i], &c->canvas.y[0], &c->canvas.y[1]);
    c->any = c->canvas.y[0] <= c->canvas.y[1];
    for (int i = 0; i < EVALUATED; i++) {
        live_pen pen = networks[i].pen;
        pen.dotted &= !v->terminal.colours;
        live_canvas_draw(&c->canvas, &v->scores[i], pen);
    }
}

static void put_cell(live_line *l, const live_cell *cell, bool braille)
{
    char text[4] = {(char)0xe2, (char)(0xa0 + (cell->dots >> 6)), (char)(0x80 + (cell->dots & 63)),
                    0};
    if (!cell->dots)
        live_put(l, 0, " ");
    else if (braille)
        live_put(l, cell->style, text);
    else
        live_putf(l, cell->style, "%c", cell->letter);
}

/** A row of the chart, with the largest value beside the first one and the least beside the last.
 */
static void put_chart_row(live_line *l, const chart *c, int row)
{
    bool const ends = row == 0 || row == c->canvas.height - 1;
    live_fill(l, c->column);
    if (ends && c->any)
        live_putf(l, LIVE_DIM, "%*.4g ", LABEL - 1, c->canvas.y[row == 0]);
    live_fill(l, c->column + LABEL);
    for (int x = 0; x < c->canvas.width; x++)
        put_cell(l, &c->canvas.cells[row][x], c->canvas.braille);
}

/** What the curves of an evaluation are, with their last values. */
static void put_legend(live_view *v, live_line *l)
{
    const qat_accuracy *any = &v->last[0];
    if (!any->n) {
        live_putf(l, LIVE_DIM, "no evaluation on the %s data yet", v->judged);
        return;
    }
    if (l->most - l->columns >= 50)
        live_putf(l, LIVE_DIM, "%s ", v->judged);
    live_put(l, LIVE_DIM, any->task->figures[any->task->main].name);
    for (int i = 0; i < EVALUATED; i++) {
        char figure[TOOL_FIGURE_MAX];
        if (!v->last[i].n)
            continue;
        if (v->terminal.utf8)
            live_put(l, networks[i].pen.style,
                     networks[i].pen.dotted && !v->terminal.colours ? "  \u2504" : "  \u2501");
        else
            live_putf(l, networks[i].pen.style, "  %c", networks[i].pen.letter);
        live_putf(l, 0, " %s %s", networks[i].name,
                  tool_figure(figure, &v->last[i], v->last[i].task->main));
    }
}

static void put_loss_legend(const live_view *v, live_line *l)
{
    live_put(l, loss_pen.style, v->terminal.utf8 ? "\u2501" : "*");
    live_put(l, LIVE_DIM, v->loss.each > 1 ? " training loss, means" : " training loss");
}

/** Both charts, side by side or one below the other. */
static void draw_charts(live_view *v, int height)
{
    int const columns = columns_of(v), half = columns / 2;
    bool const two = columns >= TWO_CHARTS;
    chart loss, scores;
    size_chart(v, &loss, 0, two ? half - 2 : columns, height);
    size_chart(v, &scores, two ? half + 1 : 0, two ? columns - half - 1 : columns, height);
    set_loss(v, &loss);
    set_scores(v, &scores);
    live_line l = line_of(v);
    live_fill(&l, 1);
    put_loss_legend(v, &l);
    if (two) {
        live_fill(&l, scores.column + 1);
        put_legend(v, &l);
    }
    end_line(v);
    for (int row = 0; row < height; row++) {
        l = line_of(v);
        put_chart_row(&l, &loss, row);
        if (two)
            put_chart_row(&l, &scores, row);
        end_line(v);
    }
    if (two)
        return;
    l = line_of(v);
    live_fill(&l, 1);
    put_legend(v, &l);
    end_line(v);
    for (int row = 0; row < height; row++) {
        l = line_of(v);
        put_chart_row(&l, &scores, row);
        end_line(v);
    }
}

/* ------------------------------------------------------------------ layers and memory */

static double all_seconds(const live_layers *layers)
{
    double sum = 0;
    for (int i = 0; i < layers->n; i++)
        sum += layers->layers[i].seconds;
    return sum;
}

/** A layer: its name, a bar, its share of all layers, its milliseconds in a step. */
static void put_layer(live_view *v, live_line *l, const live_layer *layer, int columns)
{
    double const all = all_seconds(&v->layers), share = all > 0 ? layer->seconds / all : 0;
    int const numbers = 18, name = (columns - numbers) / 2;
    live_line cell = *l;
    cell.most = name - 1 < l->most ? name - 1 : l->most;
    live_put(&cell, 0, layer->name);
    l->columns = cell.columns;
    live_fill(l, name);
    put_bar(l, share, columns - numbers - name, LIVE_BLUE);
    live_putf(l, 0, "%4.0f %% %7.3g ms", 100 * share,
              1000 * layer->seconds / (double)(v->measured ? v->measured : 1));
}

static void put_memory(live_view *v, live_line *l, int row)
{
    struct rusage use;
    if (row == 0 && v->graph_bytes)
        put_mib(l, "training graph", (double)v->graph_bytes);
    if (row == 1 && !getrusage(RUSAGE_SELF, &use))
        put_mib(l, "process, peak", 1024.0 * (double)use.ru_maxrss);
}

static void draw_layers(live_view *v, int most)
{
    const live_layer *at[SLOWEST];
    int const n = live_layers_slowest(&v->layers, most < SLOWEST ? most : SLOWEST, at);
    int const columns = columns_of(v);
    bool const beside = columns >= TWO_CHARTS;
    int const width = beside ? columns - MEMORY : columns;
    live_line l = line_of(v);
    live_put(&l, LIVE_DIM, n ? "slowest layers, of a step" : "");
    if (beside) {
        live_fill(&l, width + 2);
        live_put(&l, LIVE_DIM, "memory");
    }
    end_line(v);
    for (int i = 0; i < n || (beside && i < 2); i++) {
        l = line_of(v);
        if (i < n)
            put_layer(v, &l, at[i], width);
        if (beside && i < 2) {
            live_fill(&l, width + 2);
            put_memory(v, &l, i);
        }
        end_line(v);
    }
    if (beside)
        return;
    l = line_of(v);
    put_memory(v, &l, 0);
    live_put(&l, 0, "  ");
    put_memory(v, &l, 1);
    end_line(v);
}

/* ------------------------------------------------------------------ frames */

/** As much as fits: the head; charts; layers. One line stays free for the cursor. A terminal that
 *  has not even room for the head shows its last lines. */
static void draw(live_view *v)
{
    live_terminal *t = &v->terminal;
    live_terminal_measure(t);
    int const rows = t->rows - 1, charts = columns_of(v) >= TWO_CHARTS ? 1 : 2;
    v->frame.count = 0;
    v->lines = 0;
    draw_head(v);
    int const layers = SLOWEST + 2 + (charts > 1); /* lines, with the blank one before */
    bool const wide = columns_of(v) >= LEAST_COLUMNS;
    bool const has_layers = wide && rows >= v->lines + 1 + charts * 4 + layers;
    int height = (rows - v->lines - 1 - (has_layers ? layers : 0)) / charts - 1;
    height = height < LIVE_HEIGHT_MAX ? height : LIVE_HEIGHT_MAX;
    if (wide && height >= 2) {
        end_line(v); /* a blank one */
        draw_charts(v, height);
    }
    if (has_layers) {
        end_line(v); /* a blank one */
        draw_layers(v, SLOWEST);
    }
    if (!v->frame.failed)
        live_terminal_draw(t, &v->frame, v->lines, columns_of(v));
    v->drawn_at = tool_now();
}

/* ------------------------------------------------------------------ events */

/** The loss of the last step, from the mean of the steps since a row. */
static double loss_of_step(live_view *v, const qat_train_progress *p)
{
    double const sum = p->loss * (double)++v->steps_of_row, before = v->sum_of_row;
    v->sum_of_row = sum;
    return v->rows_known ? sum - before : p->loss;
}

static void see_step(live_view *v, const qat_train_progress *p)
{
    v->rows_known |= p->step == 1;
    v->measured++;
    live_curve_add(&v->loss, (double)p->step, loss_of_step(v, p));
}

static void see_row(live_view *v, const qat_train_progress *p)
{
    const qat_accuracy *of[EVALUATED] = {&p->in_float, &p->simulated, &p->integer};
    v->rows_known = true;
    v->steps_of_row = 0;
    v->sum_of_row = 0;
    for (int i = 0; i < EVALUATED && p->evaluated; i++) {
        v->last[i] = *of[i];
        if (of[i]->n && !isnan(qat_main_figure(of[i])))
            live_curve_add(&v->scores[i], (double)p->step, qat_main_figure(of[i]));
    }
}

void live_view_see(live_view *v, const qat_train_progress *p)
{
    switch (p->event) {
    case QAT_EVENT_BEGIN:
        if (!v->layers.n && p->training)
            (void)live_layers_watch(&v->layers, p->training);
        v->graph_bytes = p->training ? qat_graph_arena_bytes(p->training) : 0;
        break;
    case QAT_EVENT_STEP:
        see_step(v, p);
        break;
    case QAT_EVENT_ROW:
        see_row(v, p);
        break;
    case QAT_EVENT_EVAL:
        break;
    case QAT_EVENT_DATA:
    case QAT_EVENT_CHECKPOINT:
    case QAT_EVENT_WARNING:
        return;
    }
    if (!isnan(p->loss)) /* that of step 0 has none */
        v->now = *p;
    if (tool_now() - v->drawn_at >= 1.0 / FRAMES)
        draw(v);
}

live_view *live_view_open(const char *title, const char *judged)
{
    live_view *v = calloc(1, sizeof *v);
    if (!v || !live_terminal_open(&v->terminal)) {
        free(v);
        return NULL;
    }
    snprintf(v->title, sizeof v->title, "%s", title);
    v->judged = judged;
    return v;
}

void live_view_clear(live_view *v)
{
    if (v)
        live_terminal_clear(&v->terminal);
}

void live_view_close(live_view *v)
{
    if (!v)
        return;
    v->now.event = QAT_EVENT_STEP;
    if (v->now.step > 0)
        draw(v);
    live_layers_free(&v->layers);
    qat_writer_free(&v->frame);
    free(v);
}

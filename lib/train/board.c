#include "train/board.h"

#include "base/files/file.h"
#include "board/event_file.h"
#include "board/events.h"
#include "board/probe.h"
#include "board/worst.h"
#include "qat/quantizer.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATED = 3, TAG_MAX = QAT_NAME_MAX + 32 };

struct qat_board {
    qat_trainer *trainer;
    qat_event_file file;
    qat_probe *in_float, *quantized; /* quantized: NULL where quantization is off */
    qat_worst worst[EVALUATED];      /* by qat_evaluated */
    bool has_worst;
    qat_board_setting *settings;
    int n_settings;
};

qat_status qat_board_check(const qat_recipe *recipe, qat_error *err)
{
    return QAT_OK;
}

/* ------------------------------------------------------------------ what stands first */

static char *copy_of(const char *text)
{
    size_t const n = strlen(text) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static qat_status add_setting(void *context, const qat_recipe_setting *from, qat_error *err)
{
    qat_board *b = context;
    size_t const n = (size_t)b->n_settings;
    qat_board_setting *grown = realloc(b->settings, (n + 1) * sizeof *grown);
    if (!grown)
        return qat_out_of_memory(err, "tensorboard");
    b->settings = grown;
    b->settings[b->n_settings++] =
        (qat_board_setting){.name = copy_of(from->name),
                            .value = copy_of(from->value),
                            .kind = isnan(from->number) ? QAT_SETTING_TEXT
                                    : from->yes_or_no   ? QAT_SETTING_BOOL
                                                        : QAT_SETTING_NUMBER,
                            .number = from->number};
    return grown[n].name && grown[n].value ? QAT_OK : qat_out_of_memory(err, "tensorboard");
}

static void free_settings(qat_board *b)
{
    for (int i = 0; i < b->n_settings; i++) {
        free(b->settings[i].name);
        free(b->settings[i].value);
    }
    free(b->settings);
}

/** Open the file behind the last row of the log. */
static qat_status open_file(qat_board *b, qat_error *err)
{
    const qat_trainer *t = b->trainer;
    char dir[QAT_RUN_PATH_MAX];
    qat_writer head = {0};
    qat_status st = qat_recipe_tell_settings(t->recipe, add_setting, b, err);
    if (!st)
        st = qat_run_path(dir, t->dir, "tensorboard", err);
    if (!st)
        st = qat_make_dirs(dir, err);
    if (!st) {
        qat_event_version(&head);
        qat_event_graph(&head, t->training);
        qat_event_settings(&head, b->settings, b->n_settings);
        st = qat_event_file_open(&b->file, dir, "events.out.tfevents.0.qat", &head,
                                 qat_trainer_last_row(t), err);
    }
    qat_writer_free(&head);
    return st;
}

/* ------------------------------------------------------------------ opening */

/** Graphs of its own, of the float graph's text. */
static qat_status open_probes(qat_board *b, qat_error *err)
{
    const qat_trainer *t = b->trainer;
    qat_graph *in_float = NULL, *quantized = NULL;
    qat_status st = qat_graph_read(&in_float, t->registry, t->graph_text, "tensorboard", err);
    if (!st && t->recipe->quant.enabled)
        st = qat_create_eval_graph(&quantized, in_float, &t->quant, err);
    if (!st && quantized)
        qat_simulate_integers(quantized, true);
    if (!st && quantized)
        st = qat_probe_open(&b->quantized, quantized, err);
    else
        qat_graph_free(quantized);
    if (!st)
        st = qat_probe_open(&b->in_float, in_float, err);
    else
        qat_graph_free(in_float);
    return st;
}

static qat_status open_worst(qat_board *b, qat_error *err)
{
    qat_status st = QAT_OK;
    b->has_worst = qat_worst_possible(&b->trainer->input);
    for (int i = 0; i < EVALUATED && b->has_worst && !st; i++)
        st = qat_worst_open(&b->worst[i], &b->trainer->input, err);
    return st;
}

qat_status qat_board_open(qat_trainer *t, qat_error *err)
{
    if (!t->recipe->output.tensorboard)
        return QAT_OK;
    qat_board *b = t->board = calloc(1, sizeof *b);
    if (!b)
        return qat_out_of_memory(err, "tensorboard");
    b->trainer = t;
    b->file.fd = -1;
    qat_status st = open_probes(b, err);
    if (!st)
        st = open_worst(b, err);
    return st ? st : open_file(b, err);
}

void qat_board_close(qat_board *b)
{
    if (!b)
        return;
    qat_event_file_close(&b->file);
    qat_probe_free(b->in_float);
    qat_probe_free(b->quantized);
    for (int i = 0; i < EVALUATED; i++)
        qat_worst_close(&b->worst[i]);
    free_settings(b);
    free(b);
}

/* ------------------------------------------------------------------ looking on */

void qat_board_watch(qat_trainer *t, qat_evaluated how)
{
    qat_board *b = t->board;
    if (!b || !b->has_worst)
        return;
    qat_worst_begin(&b->worst[how]);
    t->input.witness = &b->worst[how].witness;
}

void qat_board_unwatch(qat_trainer *t)
{
    t->input.witness = NULL;
}

/* ------------------------------------------------------------------ rows */

static void add_scalar(qat_board *b, int64_t step, double value, const char *tag, ...)
    __attribute__((format(printf, 4, 5)));

static void add_scalar(qat_board *b, int64_t step, double value, const char *tag, ...)
{
    char text[TAG_MAX];
    va_list args;
    va_start(args, tag);
    (void)vsnprintf(text, sizeof text, tag, args);
    va_end(args);
    if (!isnan(value))
        qat_event_scalar(&b->file.waiting, step, text, value);
}

/** A figure of each network that was evaluated. */
static void add_figure(qat_board *b, const qat_train_progress *row, int figure)
{
    const char *name = row->in_float.task->figures[figure].column;
    add_scalar(b, row->step, qat_figure_of(&row->in_float, figure), "%s/float", name);
    add_scalar(b, row->step, qat_figure_of(&row->integer, figure), "%s/integer", name);
    add_scalar(b, row->step, qat_figure_of(&row->simulated, figure), "%s/simulated", name);
}

static void add_scalars(qat_board *b, const qat_train_progress *row)
{
    const qat_task *task = row->evaluated ? row->in_float.task : NULL;
    add_scalar(b, row->step, row->loss, "train/loss");
    add_scalar(b, row->step, row->accuracy, "train/accuracy");
    add_scalar(b, row->step, row->gradient_norm, "train/gradient_norm");
    add_scalar(b, row->step, row->lr, "train/learning_rate");
    for (int i = 0; task && i < task->n_figures; i++)
        add_figure(b, row, i);
}

static void add_histogram(qat_board *b, int64_t step, const char *group, const char *name,
                          const float *values, size_t n)
{
    char tag[TAG_MAX];
    qat_board_histogram h = {0};
    (void)snprintf(tag, sizeof tag, "%s/%s", group, name);
    qat_board_measure(&h, values, n);
    qat_board_count(&h, values, n);
    if (h.n > 0)
        qat_event_histogram(&b->file.waiting, step, tag, &h);
}

static void add_weights(qat_board *b, int64_t step)
{
    const qat_graph *g = b->trainer->training;
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        if (node->is_param && node->trainable)
            add_histogram(b, step, "weights", node->name, node->value,
                          qat_shape_count(&node->shape));
    }
}

/** The ends of an activation's range, or of all channels of weights, whose scales are a histogram.
 */
static qat_status add_range(qat_board *b, const qat_node *node, int64_t step, qat_error *err)
{
    int const channels = qat_quantizer_channels(node);
    float *scales = malloc((size_t)channels * sizeof *scales), min = INFINITY, max = -INFINITY;
    bool known = true;
    if (!scales)
        return qat_out_of_memory(err, "tensorboard");
    for (int c = 0; c < channels && known; c++) {
        qat_qparams p = {0};
        known = qat_quantizer_qparams(node, c, &p, NULL) == QAT_OK;
        scales[c] = p.scale;
        min = fminf(min, p.min);
        max = fmaxf(max, p.max);
    }
    if (known) {
        add_scalar(b, step, (double)min, "ranges/%s/min", node->name);
        add_scalar(b, step, (double)max, "ranges/%s/max", node->name);
        if (channels > 1)
            add_histogram(b, step, "scales", node->name, scales, (size_t)channels);
    }
    free(scales);
    return QAT_OK;
}

/** Of the graph of the evaluated network, which has just run: the training graph's quantizers have
 *  those of the step before, and after a resume none. */
static qat_status add_ranges(qat_board *b, const qat_graph *g, int64_t step, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < qat_graph_nodes(g) && !st; i++)
        if (qat_node_quantizer(qat_graph_node(g, i)))
            st = add_range(b, qat_graph_node(g, i), step, err);
    return st;
}

/** The answers of the network that is nearest to what a device runs. */
static qat_status add_worst(qat_board *b, const qat_train_progress *row, qat_error *err)
{
    qat_evaluated const how = row->integer.n     ? QAT_EVALUATED_INTEGER
                              : row->simulated.n ? QAT_EVALUATED_SIMULATED
                                                 : QAT_EVALUATED_FLOAT;
    if (!b->has_worst)
        return QAT_OK;
    return qat_worst_write(&b->worst[how], b->trainer->test_data, row->step, &b->file.waiting, err);
}

/** What the probe's network computes, and its ranges. */
static qat_status add_activations(qat_board *b, const qat_train_progress *row, qat_error *err)
{
    const qat_trainer *t = b->trainer;
    bool const quantizes = b->quantized && row->step > t->plan.quant_start;
    qat_probe *probe = quantizes ? b->quantized : b->in_float;
    qat_graph *graph = qat_probe_graph(probe);
    qat_trainer_eval_params(t, graph);
    qat_status const st =
        qat_probe_write(probe, &t->input, t->test_data, row->step, &b->file.waiting, err);
    return st || !quantizes ? st : add_ranges(b, graph, row->step, err);
}

qat_status qat_board_row(qat_board *b, const qat_train_progress *row, qat_error *err)
{
    if (!b)
        return QAT_OK;
    add_scalars(b, row);
    if (!row->evaluated)
        return QAT_OK;
    add_weights(b, row->step);
    qat_status const st = add_activations(b, row, err);
    return st ? st : add_worst(b, row, err);
}

void qat_board_end(qat_board *b)
{
    if (!b || b->file.ended)
        return;
    qat_event_end(&b->file.waiting, b->trainer->step);
    b->file.ended = true;
}

qat_status qat_board_flush(qat_board *b, qat_error *err)
{
    return b ? qat_event_file_flush(&b->file, err) : QAT_OK;
}

/**
 * Writes quant.csv: what quantization does to each layer, every quant.range_log_every steps.
 *
 *     step,tensor,kind,quantizer,bits,channels,min,max,scale_min,scale_max,zero_point,changed,turned,active
 *
 * There is one row per active quantizer (active is 1), and, before an activation is quantized, one
 * of the range that it would have (active is 0). min and max are of the nudged range, over all
 * channels. For weights, two columns compare with the row before (Nagel et al., "Overcoming
 * Oscillations in Quantization-Aware Training"):
 *
 *     changed = share of weights whose code has changed
 *     turned  = share whose code changed against the direction of its last change: an oscillation
 *
 * Codes and directions are stored in the checkpoint as tensors "<weights>/q/codes", code + 1024
 * direction. So a resumed run writes the same rows as a run without interruption. Earlier rows are
 * only in the file: unlike those of log.csv, they are not in the checkpoint. If the disk is full,
 * rows wait in memory; they are lost if the program is killed before there is space.
 */
#include "train/log/quant_log.h"
#include "train/log/log_file.h"

#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "fakequant/ops.h"
#include "fakequant/weights.h"
#include "qat/quantizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header[] =
    "step,tensor,kind,quantizer,bits,channels,min,max,scale_min,scale_max,zero_point,changed,"
    "turned,active\n";

/** What is remembered about the weights of one tensor. */
typedef struct memory {
    bool known;
    size_t count;
    int16_t *codes;
    int8_t *directions; /* direction of the last change: -1, 1; 0: none yet */
} memory;

struct qat_quant_log {
    const qat_graph *graph;
    char path[512];
    qat_log_file file;
    memory *of_node;
    uint8_t *codes; /* room for the codes of the largest tensor */
};

/* ------------------------------------------------------------------ creating */

static qat_status remember_node(qat_quant_log *log, const qat_node *node, size_t *largest,
                                qat_error *err)
{
    memory *m = &log->of_node[node->index];
    m->count = qat_shape_count(&node->shape);
    m->codes = calloc(m->count, sizeof *m->codes);
    m->directions = calloc(m->count, sizeof *m->directions);
    *largest = m->count > *largest ? m->count : *largest;
    return m->codes && m->directions ? QAT_OK : qat_out_of_memory(err, log->path);
}

static qat_status allocate(qat_quant_log *log, qat_error *err)
{
    size_t largest = 1;
    qat_status st = QAT_OK;
    log->of_node = calloc((size_t)qat_graph_nodes(log->graph) + 1, sizeof *log->of_node);
    if (!log->of_node)
        return qat_out_of_memory(err, log->path);
    for (int i = 0; !st && i < qat_graph_nodes(log->graph); i++)
        if (qat_node_quantizes(qat_graph_node(log->graph, i), true))
            st = remember_node(log, qat_graph_node(log->graph, i), &largest, err);
    log->codes = malloc(largest);
    return st || log->codes ? st : qat_out_of_memory(err, log->path);
}

/** The length of the old file's rows up to `step`, complete lines only. */
static size_t rows_until(const char *text, size_t count, int64_t step)
{
    size_t at = 0;
    if (count < sizeof header - 1 || memcmp(text, header, sizeof header - 1) != 0)
        return 0;
    for (at = sizeof header - 1; at < count;) {
        const char *end = memchr(text + at, '\n', count - at);
        if (!end || strtoll(text + at, NULL, 10) > step)
            break;
        at = (size_t)(end - text) + 1;
    }
    return at;
}

/** Start the file, with its old rows up to `step` if a run continues. */
static qat_status begin(qat_quant_log *log, const char *dir, int64_t step, qat_error *err)
{
    uint8_t *old = NULL;
    size_t count = 0, keep = 0;
    if (step > 0 && qat_file_read(log->path, (size_t)1 << 31, &old, &count, NULL) == QAT_OK)
        keep = rows_until((const char *)old, count, step);
    qat_status const st = qat_log_open(&log->file, dir, "quant.csv", keep ? (char *)old : header,
                                       keep ? keep : sizeof header - 1, err);
    free(old);
    return st ? st : qat_log_flush(&log->file, err);
}

qat_status qat_quant_log_open(qat_quant_log **log, const qat_graph *training, const char *dir,
                              const qat_checkpoint *from, qat_error *err)
{
    qat_quant_log *l = calloc(1, sizeof *l);
    *log = NULL;
    if (!l)
        return qat_out_of_memory(err, "quant.csv");
    l->graph = training;
    l->file.fd = -1;
    int const n = snprintf(l->path, sizeof l->path, "%s/quant.csv", dir);
    qat_status st = n < 0 || (size_t)n >= sizeof l->path
                        ? qat_fail(err, QAT_ERR_ARGUMENT, "output.dir %.200s... is too long", dir)
                        : allocate(l, err);
    if (!st)
        st = begin(l, dir, from ? from->step : 0, err);
    if (st) {
        qat_quant_log_close(l);
        return st;
    }
    *log = l;
    return QAT_OK;
}

void qat_quant_log_close(qat_quant_log *log)
{
    if (!log)
        return;
    for (int i = 0; log->of_node && i < qat_graph_nodes(log->graph); i++) {
        free(log->of_node[i].codes);
        free(log->of_node[i].directions);
    }
    qat_log_close(&log->file);
    free(log->of_node);
    free(log->codes);
    free(log);
}

/* ------------------------------------------------------------------ rows */

/** Ranges and scales over all channels; false: not yet observed. */
static bool extremes(const qat_node *node, qat_qparams *widest, float scales[2])
{
    int const channels = qat_quantizer_channels(node);
    if (qat_quantizer_qparams(node, 0, widest, NULL))
        return false;
    scales[0] = scales[1] = widest->scale;
    for (int c = 1; c < channels; c++) {
        qat_qparams p;
        if (qat_quantizer_qparams(node, c, &p, NULL))
            return false;
        widest->min = fminf(widest->min, p.min);
        widest->max = fmaxf(widest->max, p.max);
        scales[0] = fminf(scales[0], p.scale);
        scales[1] = fmaxf(scales[1], p.scale);
    }
    return true;
}

/** Compare the codes with the remembered ones, then remember them. */
static void compare_codes(qat_quant_log *log, const qat_node *node, size_t *changed, size_t *turned)
{
    memory *m = &log->of_node[node->index];
    bool const int8 = (int)qat_attr(node, "layout") == QAT_LAYOUT_INT8;
    *changed = *turned = 0;
    qat_quantizer_codes(node, log->codes);
    for (size_t i = 0; i < m->count; i++) {
        int16_t const code = int8 ? (int8_t)log->codes[i] : log->codes[i];
        int const move = !m->known ? 0 : (code > m->codes[i]) - (code < m->codes[i]);
        *changed += move != 0;
        *turned += move != 0 && move == -m->directions[i];
        m->directions[i] = (int8_t)(move ? move : m->directions[i]);
        m->codes[i] = code;
    }
}

static void write_changes(qat_quant_log *log, const qat_node *node)
{
    memory *m = &log->of_node[node->index];
    bool const known = m->known;
    size_t changed, turned;
    if (!qat_node_quantizes(node, true)) {
        qat_write_text(&log->file.text, ",,");
        return;
    }
    compare_codes(log, node, &changed, &turned);
    m->known = true;
    if (known)
        qat_write_text(&log->file.text, ",%.6g,%.6g", (double)changed / (double)m->count,
                       (double)turned / (double)m->count);
    else
        qat_write_text(&log->file.text, ",,");
}

static void write_row(qat_quant_log *log, const qat_node *node, int64_t step)
{
    qat_qparams p = {0};
    float scales[2] = {0};
    qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step - 1};
    bool const active = qat_past_delay(&run, qat_attr(node, "delay"));
    if ((!active && qat_node_quantizes(node, true)) || !extremes(node, &p, scales))
        return;
    qat_write_text(&log->file.text, "%lld,%s,%s,%s,%d,%d,%.9g,%.9g,%.9g,%.9g,%d", (long long)step,
                   node->name, qat_node_quantizes(node, true) ? "weights" : "activation",
                   qat_node_quantizer(node)->name, (int)qat_attr(node, "bits"),
                   qat_quantizer_channels(node), (double)p.min, (double)p.max, (double)scales[0],
                   (double)scales[1], p.zero_point);
    write_changes(log, node);
    qat_write_text(&log->file.text, ",%d\n", active);
}

qat_status qat_quant_log_rows(qat_quant_log *log, int64_t step, qat_error *err)
{
    for (int i = 0; i < qat_graph_nodes(log->graph); i++)
        if (qat_node_quantizer(qat_graph_node(log->graph, i)))
            write_row(log, qat_graph_node(log->graph, i), step);
    return qat_quant_log_flush(log, err);
}

qat_status qat_quant_log_flush(qat_quant_log *log, qat_error *err)
{
    return qat_log_flush(&log->file, err);
}

/* ------------------------------------------------------------------ checkpoints */

static void name_of(char name[QAT_NAME_MAX], const qat_node *node)
{
    snprintf(name, QAT_NAME_MAX, "%.*s/codes", QAT_NAME_MAX - 8, node->name);
}

static qat_status save_memory(const memory *m, const qat_node *node, qat_named_tensor *t,
                              qat_error *err)
{
    name_of(t->name, node);
    t->shape = node->shape;
    t->values = malloc((m->count + 1) * sizeof *t->values);
    if (!t->values)
        return qat_out_of_memory(err, "checkpoint");
    for (size_t i = 0; i < m->count; i++)
        t->values[i] = (float)(m->codes[i] + 1024 * m->directions[i]);
    return QAT_OK;
}

qat_status qat_quant_log_save(const qat_quant_log *log, qat_checkpoint *c, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qat_graph_nodes(log->graph); i++)
        if (log->of_node[i].known)
            st = save_memory(&log->of_node[i], qat_graph_node(log->graph, i),
                             &c->params[c->n_params++], err);
    return st;
}

static void restore_memory(memory *m, const qat_named_tensor *t)
{
    for (size_t i = 0; i < m->count; i++) {
        int const value = (int)t->values[i];
        m->directions[i] = (int8_t)(value > 512 ? 1 : value < -512 ? -1 : 0);
        m->codes[i] = (int16_t)(value - 1024 * m->directions[i]);
    }
    m->known = true;
}

void qat_quant_log_restore(qat_quant_log *log, const qat_checkpoint *c)
{
    char name[QAT_NAME_MAX];
    for (int i = 0; i < qat_graph_nodes(log->graph); i++) {
        const qat_node *node = qat_graph_node(log->graph, i);
        name_of(name, node);
        for (int k = 0; log->of_node[i].count && k < c->n_params; k++)
            if (strcmp(c->params[k].name, name) == 0 &&
                qat_shape_equal(&c->params[k].shape, &node->shape))
                restore_memory(&log->of_node[i], &c->params[k]);
    }
}

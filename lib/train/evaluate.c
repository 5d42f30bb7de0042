/** A whole data set through a float graph, an exact evaluation, or the integer engine. */
#include "base/arena.h"
#include "base/parallel.h"
#include "qat/border.h"
#include "train/data.h"
#include "train/detector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENGINE_BATCH = 64 };

/** What one evaluation does with a batch of `count` samples. */
typedef qat_status batch_fn(void *state, const qat_batch *batch, int count, qat_error *err);

typedef struct pass {
    const qat_input_info *input;
    const qat_dataset *data;
    int batch;
    int64_t limit;
    qat_tick *tick;
    void *context;
} pass;

static qat_status run_batches(const pass *p, qat_loader *loader, batch_fn *fn, void *state,
                              qat_error *err)
{
    int64_t total = qat_dataset_info_of(p->data)->count, done = 0;
    if (p->limit > 0 && p->limit < total)
        total = p->limit;
    qat_status st = QAT_OK;
    while (!st && done < total) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (st)
            break;
        int const count = batch->count < total - done ? batch->count : (int)(total - done);
        st = fn(state, batch, count, err);
        done += count;
        if (!st && p->tick && !p->tick(p->context, done, total))
            st = qat_fail(err, QAT_ERR_STATE, "stopped after %lld of %lld samples", (long long)done,
                          (long long)total);
    }
    return st;
}

static qat_status evaluate(const pass *p, batch_fn *fn, void *state, qat_error *err)
{
    qat_loader *loader;
    qat_loader_options const o = {.batch = p->batch, .threads = 1, .prefetch = 4};
    qat_status st = qat_open_loader(&loader, p->data, p->input, &o, err);
    if (!st)
        st = run_batches(p, loader, fn, state, err);
    qat_loader_free(loader);
    return st;
}

/** Data with boxes go with detectors, others with classifiers. */
static qat_status check_task(const qat_dataset *data, bool detects, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(data);
    if (info->has_objects == detects)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_SHAPE, "%s: %s boxes, the network %s", info->name,
                    detects ? "no" : "pictures with",
                    detects ? "finds some" : "answers with one class");
}

/** The same of a detector: batches leave their findings, which are judged at the end. */
static qat_status evaluate_boxes(const pass *p, batch_fn *fn, void *state, qat_findings **findings,
                                 int classes, qat_accuracy *accuracy, qat_error *err)
{
    qat_status st = qat_findings_create(findings, classes, err);
    if (!st)
        st = evaluate(p, fn, state, err);
    if (!st)
        st = qat_findings_judge(*findings, accuracy, err);
    qat_findings_free(*findings);
    *findings = NULL;
    return st;
}

/* ------------------------------------------------------------------ float graphs */

qat_status qat_feed_graph(qat_graph *graph, const qat_batch *batch, int count, qat_error *err)
{
    qat_node *input = qat_graph_find(graph, QAT_INPUT_NAME);
    qat_node *label = qat_graph_find(graph, QAT_LABEL_NAME);
    qat_status const st = qat_graph_set_batch(graph, count, err);
    if (st)
        return st;
    memcpy(input->value, batch->real, qat_shape_count(&input->shape) * sizeof *input->value);
    for (int i = 0; label && i < count; i++)
        label->value[i] = (float)batch->labels[i];
    return QAT_OK;
}

typedef struct graph_state {
    qat_graph *graph;
    qat_accuracy *accuracy;
    const qat_detector *detector; /* or NULL */
    qat_findings *findings;
} graph_state;

/** Boxes of a batch, from the outputs' values. */
static qat_status find_boxes(const graph_state *s, const qat_batch *batch, int count,
                             qat_error *err)
{
    const qat_node *codes = qat_graph_output_at(s->graph, 0);
    const qat_node *scores = qat_graph_output_at(s->graph, 1);
    size_t const n = (size_t)codes->shape.dims[1];
    size_t const k = (size_t)qat_shape_channels(&scores->shape);
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < (size_t)count; i++)
        st = qat_findings_choose(s->findings, s->detector, &batch->objects[i],
                                 codes->value + i * n * 4, scores->value + i * n * k, err);
    return st;
}

/** The scores of a batch: NaN and infinity rank like any other, but mean nothing. */
static qat_status check_scores(const qat_node *out, int count, int classes, qat_error *err)
{
    for (int i = 0; i < count * classes; i++)
        if (!isfinite(out->value[i]))
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "evaluation: the score of class %d is %s (output %s)", i % classes,
                            isnan(out->value[i]) ? "NaN" : "infinite", out->name);
    return QAT_OK;
}

static qat_status graph_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    graph_state *s = state;
    qat_status const st = qat_feed_graph(s->graph, batch, count, err);
    if (st)
        return st;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(s->graph, &run);
    if (s->detector)
        return find_boxes(s, batch, count, err);
    const qat_node *out = qat_graph_output_at(s->graph, 0);
    int const classes = qat_shape_channels(&out->shape);
    qat_accuracy_add(s->accuracy, out->value, count, classes, batch->labels);
    return check_scores(out, count, classes, err);
}

qat_status qat_evaluate_graph(qat_graph *graph, const qat_input_info *input,
                              const qat_dataset *data, int batch, int64_t limit, qat_tick *tick,
                              void *context, qat_accuracy *accuracy, qat_error *err)
{
    pass const p = {input, data, batch, limit, tick, context};
    graph_state s = {graph, accuracy, input->detector, NULL};
    *accuracy = (qat_accuracy){0};
    if (!qat_graph_find(graph, QAT_INPUT_NAME) || !qat_graph_outputs(graph))
        return qat_fail(err, QAT_ERR_ARGUMENT, "the graph has no node %s, or no output",
                        QAT_INPUT_NAME);
    qat_status const st = check_task(data, input->detector != NULL, err);
    if (st || !input->detector)
        return st ? st : evaluate(&p, graph_batch, &s, err);
    return evaluate_boxes(&p, graph_batch, &s, &s.findings, input->classes, accuracy, err);
}

/* ------------------------------------------------------------------ inputs of integer models */

/** Real values to codes of the input tensor, for data that are not pixels. */
typedef struct coder {
    qat_sample_type type;
    qat_qparams params;
    qi_type code_type;
    size_t values;  /* of one sample */
    uint8_t *codes; /* a batch */
} coder;

static qat_status coder_init(coder *c, const qat_input_info *input, qi_type type, int bits,
                             float scale, int32_t zero_point, size_t values, int batch,
                             qat_error *err)
{
    int32_t lo, hi;
    size_t const expected = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    *c = (coder){.type = input->type, .code_type = type, .values = values};
    if (values != expected)
        return qat_fail(err, QAT_ERR_SHAPE, "the model's input has %zu values, a sample %zu",
                        values, expected);
    qat_code_range(type == QI_S8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, bits, false, &lo, &hi);
    if (input->type == QAT_SAMPLE_F32) {
        c->params = qat_given_qparams(scale, zero_point, lo, hi);
        c->codes = malloc(values * (size_t)batch);
        if (!c->codes)
            return qat_fail(err, QAT_ERR_NOMEM, "evaluation: out of memory");
    }
    return QAT_OK;
}

static const uint8_t *coder_bytes(coder *c, const qat_batch *batch, int count)
{
    if (c->type == QAT_SAMPLE_U8)
        return batch->bytes;
    for (size_t i = 0; i < c->values * (size_t)count; i++)
        c->codes[i] = (uint8_t)qat_code(&c->params, batch->real[i]);
    return c->codes;
}

/* ------------------------------------------------------------------ exact evaluation */

typedef struct exact_state {
    qat_exact *exact;
    const qat_qgraph *graph;
    coder coder;
    qat_accuracy *accuracy;
    const qat_detector *detector; /* or NULL */
    qat_findings *findings;
    float *real[2]; /* a detector's outputs of one sample */
} exact_state;

/** Sample i of output o as real numbers. */
static void decode_output(const exact_state *s, int o, size_t i)
{
    int const tensor = s->graph->outputs[o];
    const qat_qtensor *t = &s->graph->tensors[tensor];
    size_t const n = qat_qtensor_count(t);
    const uint8_t *codes = (const uint8_t *)qat_exact_tensor(s->exact, tensor) + i * n;
    for (size_t k = 0; k < n; k++) {
        int32_t const code = t->type == QI_S8 ? (int8_t)codes[k] : codes[k];
        s->real[o][k] = t->scale * (float)(code - t->zero_point);
    }
}

static qat_status find_exact_boxes(const exact_state *s, const qat_batch *batch, int count,
                                   qat_error *err)
{
    qat_status st = QAT_OK;
    for (size_t i = 0; !st && i < (size_t)count; i++) {
        decode_output(s, 0, i);
        decode_output(s, 1, i);
        st = qat_findings_choose(s->findings, s->detector, &batch->objects[i], s->real[0],
                                 s->real[1], err);
    }
    return st;
}

static qat_status exact_detector(exact_state *s, const qat_detector *detector, qat_error *err)
{
    s->detector = detector;
    for (int o = 0; detector && o < 2; o++) {
        s->real[o] =
            calloc(qat_qtensor_count(&s->graph->tensors[s->graph->outputs[o]]), sizeof *s->real[o]);
        if (!s->real[o])
            return qat_out_of_memory(err, "evaluation");
    }
    return QAT_OK;
}

static qat_status exact_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    exact_state *s = state;
    const void *in[1] = {coder_bytes(&s->coder, batch, count)};
    qat_status const st = qat_exact_run(s->exact, in, count, err);
    if (st)
        return st;
    if (s->detector)
        return find_exact_boxes(s, batch, count, err);
    const qat_qtensor *out = &s->graph->tensors[s->graph->outputs[0]];
    qat_accuracy_add_codes(s->accuracy, qat_exact_tensor(s->exact, s->graph->outputs[0]), out->type,
                           count, out->dims[out->rank - 1], batch->labels);
    return QAT_OK;
}

qat_status qat_evaluate_exact(const qat_qgraph *graph, const qat_registry *registry,
                              const qat_input_info *input, const qat_dataset *data, int batch,
                              int64_t limit, qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err)
{
    pass const p = {input, data, batch, limit, tick, context};
    exact_state s = {.graph = graph, .accuracy = accuracy};
    *accuracy = (qat_accuracy){0};
    if (graph->n_inputs != 1 || graph->n_outputs < 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "a model with %d inputs and %d outputs",
                        graph->n_inputs, graph->n_outputs);
    const qat_qtensor *in = &graph->tensors[graph->inputs[0]];
    qat_status st = coder_init(&s.coder, input, in->type, in->bits, in->scale, in->zero_point,
                               qat_qtensor_count(in), batch, err);
    if (!st)
        st = qat_exact_create(&s.exact, graph, registry, batch, err);
    if (!st)
        st = check_task(data, input->detector != NULL, err);
    if (!st)
        st = exact_detector(&s, input->detector, err);
    if (!st && s.detector)
        st = evaluate_boxes(&p, exact_batch, &s, &s.findings, input->classes, accuracy, err);
    else if (!st)
        st = evaluate(&p, exact_batch, &s, err);
    free(s.real[0]);
    free(s.real[1]);
    qat_exact_free(s.exact);
    free(s.coder.codes);
    return st;
}

/* ------------------------------------------------------------------ the engine */

typedef struct engine_state {
    const qi_host *host;
    coder coder;
    uint8_t *arenas; /* one for each thread */
    size_t arena_bytes;
    uint8_t *outputs[2]; /* of a batch; the second only a detector's */
    size_t output_bytes[2];
    const uint8_t *inputs;
    qat_accuracy *accuracy;
    qat_findings *findings; /* a detector's, else NULL */
} engine_state;

static void engine_sample(void *context, int sample, int thread)
{
    engine_state *s = context;
    const void *in[1] = {s->inputs + (size_t)sample * s->coder.values};
    void *out[2] = {s->outputs[0] + (size_t)sample * s->output_bytes[0],
                    s->outputs[1] + (size_t)sample * s->output_bytes[1]};
    qi_host_run_visit(s->host, s->arenas + (size_t)thread * s->arena_bytes, in, out, NULL, NULL);
}

/** What the model's last step makes of one sample's outputs. */
static qat_status detect_sample(const engine_state *s, const qat_objects *objects, size_t i,
                                qat_error *err)
{
    const void *out[2] = {s->outputs[0] + i * s->output_bytes[0],
                          s->outputs[1] + i * s->output_bytes[1]};
    qat_detections d;
    qat_status st = qat_detect(&d, s->host->model, out, err);
    if (st)
        return st;
    qat_found *found = calloc((size_t)d.rows, sizeof *found);
    int n = 0;
    for (int row = 0; found && row < d.rows; row++) {
        if (!(d.scores[row] > 0.0f)) /* rows behind what was found are zeros */
            continue;
        memcpy(&found[n].box, d.boxes + 4 * (size_t)row, sizeof found[n].box);
        found[n].class = (int32_t)d.classes[row];
        found[n++].score = d.scores[row];
    }
    st = found ? qat_findings_add(s->findings, objects, found, n, err)
               : qat_out_of_memory(err, "evaluation");
    free(found);
    qat_detections_free(&d);
    return st;
}

static qat_status engine_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    engine_state *s = state;
    const qi_model *model = s->host->model;
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    s->inputs = coder_bytes(&s->coder, batch, count);
    qat_parallel(count, engine_sample, s);
    qat_status st = QAT_OK;
    for (int i = 0; s->findings && !st && i < count; i++)
        st = detect_sample(s, &batch->objects[i], (size_t)i, err);
    if (s->findings)
        return st;
    qat_accuracy_add_codes(s->accuracy, s->outputs[0], (qi_type)out->type, count,
                           (int)s->output_bytes[0], batch->labels);
    return QAT_OK;
}

static qat_status engine_init(engine_state *s, const qat_input_info *input, qat_error *err)
{
    const qi_model *model = s->host->model;
    const qi_tensor *in = qi_tensor_at(model, qi_input_at(model, 0));
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    float scale;
    memcpy(&scale, &in->scale_bits, sizeof scale);
    qat_status const st = coder_init(&s->coder, input, (qi_type)in->type, in->bits, scale,
                                     in->zero_point, in->bytes, ENGINE_BATCH, err);
    if (st)
        return st;
    for (int i = 0; i < (int)qi_output_count(model); i++)
        s->output_bytes[i] = qi_tensor_at(model, qi_output_at(model, i))->bytes;
    s->arena_bytes = (s->host->arena_bytes + 63) / 64 * 64;
    s->arenas = qat_aligned_alloc(s->arena_bytes * (size_t)qat_threads());
    for (int i = 0; i < 2; i++)
        s->outputs[i] = malloc(s->output_bytes[i] * ENGINE_BATCH + 1);
    if (!s->arenas || !s->outputs[0] || !s->outputs[1])
        return qat_fail(err, QAT_ERR_NOMEM, "evaluation: out of memory");
    if (out->bytes < (size_t)input->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "the model answers %zu values, the data have %d classes", out->bytes,
                        input->classes);
    return QAT_OK;
}

/** So many inputs of one sample, values of one byte. */
static qat_status engine_check(const qi_model *model, qat_error *err)
{
    if (qat_is_detector(model) && qi_input_count(model) == 1 && qi_output_count(model) == 2 &&
        qi_tensor_at(model, qi_input_at(model, 0))->type <= QI_S8)
        return QAT_OK;
    if (qi_input_count(model) == 1 && qi_output_count(model) == 1 &&
        qi_tensor_at(model, qi_input_at(model, 0))->type <= QI_S8 &&
        qi_tensor_at(model, qi_output_at(model, 0))->type <= QI_S8)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "a model with %d inputs and %d outputs, or other than 8-bit ones, is no "
                    "classifier",
                    (int)qi_input_count(model), (int)qi_output_count(model));
}

qat_status qat_evaluate_model(const qi_host *host, const qat_input_info *input,
                              const qat_dataset *data, int64_t limit, qat_tick *tick, void *context,
                              qat_accuracy *accuracy, qat_error *err)
{
    pass const p = {input, data, ENGINE_BATCH, limit, tick, context};
    engine_state s = {.host = host, .accuracy = accuracy};
    *accuracy = (qat_accuracy){0};
    qat_status st = engine_check(host->model, err);
    if (!st && host->threads != 1)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "evaluation: the model was opened for %d threads, not 1", host->threads);
    if (!st)
        st = engine_init(&s, input, err);
    bool const detects = !st && qat_is_detector(host->model);
    if (!st)
        st = check_task(data, detects, err);
    if (!st && detects)
        st = evaluate_boxes(&p, engine_batch, &s, &s.findings, input->classes, accuracy, err);
    else if (!st)
        st = evaluate(&p, engine_batch, &s, err);
    free(s.coder.codes);
    free(s.outputs[0]);
    free(s.outputs[1]);
    qat_aligned_free(s.arenas);
    return st;
}

/** height, width, channels of an input tensor [1, H, W, C], [1, W, C] or [1, W]. */
static void sizes_of(qat_input_info *info, const qi_tensor *in)
{
    int32_t const *d = in->dims;
    info->height = in->rank >= 4 ? d[in->rank - 3] : 1;
    info->width = in->rank >= 3 ? d[in->rank - 2] : 1;
    info->channels = in->rank >= 2 ? d[in->rank - 1] : 1;
}

qat_status qat_input_info_of_model(qat_input_info *info, const qi_model *model, qat_error *err)
{
    const qi_preprocessing *pre = qi_model_preprocessing(model);
    qat_status const st = engine_check(model, err);
    *info = (qat_input_info){0};
    if (st)
        return st;
    sizes_of(info, qi_tensor_at(model, qi_input_at(model, 0)));
    info->type = pre->kind == 1 ? QAT_SAMPLE_U8 : QAT_SAMPLE_F32;
    info->resize_short = pre->resize_short;
    info->classes = qat_is_detector(model)
                        ? qat_detector_classes(model)
                        : (int)qi_tensor_at(model, qi_output_at(model, 0))->bytes;
    for (int c = 0; c < QAT_CHANNEL_VALUES; c++) {
        info->std[c] = 1;
        if (pre->kind == 0 || c >= info->channels)
            continue;
        memcpy(&info->mean[c], &pre->mean_bits[c], sizeof(float));
        memcpy(&info->std[c], &pre->std_bits[c], sizeof(float));
    }
    return QAT_OK;
}

/** Evaluates an integer model over a data set, by the engine. */
#include "train/evaluate.h"

#include "base/arena.h"
#include "base/parallel.h"
#include "base/words.h"
#include "qat/border.h"

#include <stdlib.h>
#include <string.h>

enum { ENGINE_BATCH = 64 };

typedef struct engine_state {
    const qi_host *host;
    qat_input_coder coder;
    uint8_t *arenas; /* one per thread */
    size_t arena_bytes;
    uint8_t *outputs[2]; /* of a batch; only a detector has the second */
    size_t output_bytes[2];
    const uint8_t *inputs;
    qat_accuracy *accuracy;
    qat_findings *findings; /* if it is a detector, else NULL */
    qat_answers *answers;   /* if the network has attributes, else NULL */
} engine_state;

static void engine_sample(void *context, int sample, int thread)
{
    engine_state *s = context;
    const void *in[1] = {s->inputs + (size_t)sample * s->coder.values};
    void *out[2] = {s->outputs[0] + (size_t)sample * s->output_bytes[0],
                    s->outputs[1] + (size_t)sample * s->output_bytes[1]};
    qi_host_run_visit(s->host, s->arenas + (size_t)thread * s->arena_bytes, in, out, NULL, NULL);
}

/** Run the epilogue on the outputs of one sample. */
static qat_status detect_sample(const engine_state *s, const qat_objects *objects, size_t i,
                                qat_error *err)
{
    const void *out[2] = {s->outputs[0] + i * s->output_bytes[0],
                          s->outputs[1] + i * s->output_bytes[1]};
    qat_detections d;
    qat_status st = qat_detect(&d, s->host->model, out, err);
    if (st)
        return st;
    st = qat_findings_add_detections(s->findings, objects, &d, err);
    qat_detections_free(&d);
    return st;
}

static qat_status engine_batch(void *state, const qat_batch *batch, int count, qat_error *err)
{
    engine_state *s = state;
    const qi_model *model = s->host->model;
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    s->inputs = qat_input_coder_bytes(&s->coder, batch, count);
    qat_parallel(count, engine_sample, s);
    qat_status st = QAT_OK;
    for (int i = 0; s->findings && !st && i < count; i++)
        st = detect_sample(s, &batch->objects[i], (size_t)i, err);
    if (s->findings)
        return st;
    if (s->answers) {
        qat_codes const scores = qat_codes_of_model(model, 0, s->outputs[0]);
        qat_codes const value = qat_codes_of_model(model, 1, s->outputs[1]);
        return qat_answers_add_codes(s->answers, &scores, &value, batch, count, err);
    }
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
    qat_status const st = qat_input_coder_init(&s->coder, input, (qi_type)in->type, in->bits, scale,
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
                        "the model answers %zu values, but the data have %d classes", out->bytes,
                        input->classes);
    return QAT_OK;
}

/** Check the number of inputs, and that their values are bytes. */
static qat_status engine_check(const qi_model *model, qat_error *err)
{
    qat_attributes attributes;
    if (qat_is_detector(model) && qi_input_count(model) == 1 && qi_output_count(model) == 2 &&
        qi_tensor_at(model, qi_input_at(model, 0))->type <= QI_S8)
        return QAT_OK;
    if (qat_attributes_of_model(&attributes, model) && qi_input_count(model) == 1 &&
        qi_tensor_at(model, qi_input_at(model, 0))->type <= QI_S8)
        return QAT_OK;
    if (qi_input_count(model) == 1 && qi_output_count(model) == 1 &&
        qi_tensor_at(model, qi_input_at(model, 0))->type <= QI_S8 &&
        qi_tensor_at(model, qi_output_at(model, 0))->type <= QI_S8)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "a model with %d input%s and %d output%s, or with tensors other than 8-bit "
                    "ones, is not a classifier",
                    (int)qi_input_count(model), qat_plural(qi_input_count(model)),
                    (int)qi_output_count(model), qat_plural(qi_output_count(model)));
}

qat_status qat_evaluate_model(const qi_host *host, const qat_input_info *input,
                              const qat_dataset *data, int64_t limit, qat_tick *tick, void *context,
                              qat_accuracy *accuracy, qat_error *err)
{
    qat_evaluation const p = {input, data, ENGINE_BATCH, limit, tick, context};
    engine_state s = {.host = host, .accuracy = accuracy};
    *accuracy = (qat_accuracy){0};
    qat_status st = engine_check(host->model, err);
    if (!st && host->threads != 1)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "evaluation: the model was opened for %d threads, but must be for 1",
                      host->threads);
    if (!st)
        st = engine_init(&s, input, err);
    bool const detects = !st && qat_is_detector(host->model);
    if (!st)
        st = qat_evaluation_check(data, detects, err);
    if (!st && detects)
        st = qat_evaluation_boxes(&p, engine_batch, &s, &s.findings, input->classes, accuracy, err);
    else if (!st && input->attributes.count)
        st = qat_evaluation_answers(&p, engine_batch, &s, &s.answers, accuracy, err);
    else if (!st)
        st = qat_evaluation_run(&p, engine_batch, &s, err);
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
    info->central_crop = pre->central_crop;
    qat_attributes_of_model(&info->attributes, model);
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

/** Evaluates an integer model over a data set, by the engine. */
#include "evaluate/evaluate.h"

#include "base/arena.h"
#include "base/parallel.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

enum { ENGINE_BATCH = 64 };

typedef struct engine_state {
    const qi_host *host;
    qat_input_coder coder;
    uint8_t *arenas; /* one per thread */
    size_t arena_bytes;
    uint8_t *outputs[QAT_MAX_OUTPUTS]; /* of a batch */
    size_t output_bytes[QAT_MAX_OUTPUTS];
    int n_outputs;
    const uint8_t *inputs;
    size_t input_bytes; /* of a run */
    int steps;          /* runs for a sample: 1, or the frames of a sequence */
} engine_state;

static void engine_sample(void *context, int sample, int thread)
{
    engine_state *s = context;
    const uint8_t *values = s->inputs + (size_t)sample * (size_t)s->steps * s->input_bytes;
    void *out[QAT_MAX_OUTPUTS];
    for (int i = 0; i < s->n_outputs; i++)
        out[i] = s->outputs[i] + (size_t)sample * s->output_bytes[i];
    uint8_t *arena = s->arenas + (size_t)thread * s->arena_bytes;
    qi_host_reset(s->host, arena);
    for (int i = 0; i < s->steps; i++) {
        const void *in[1] = {values + (size_t)i * s->input_bytes};
        qi_host_run_visit(s->host, arena, in, out, NULL, NULL);
    }
}

static qat_status engine_batch(void *state, const qat_batch *batch, int count, qat_outputs *outputs,
                               qat_error *err)
{
    engine_state *s = state;
    s->inputs = qat_input_coder_codes(&s->coder, batch, count);
    qat_parallel(count, engine_sample, s);
    outputs->model = qi_host_model(s->host);
    for (; outputs->n < s->n_outputs; outputs->n++)
        outputs->at[outputs->n] =
            qat_output_of_model(outputs->model, outputs->n, s->outputs[outputs->n]);
    return QAT_OK;
}

static qat_status engine_init(engine_state *s, const qat_input_info *input, qat_error *err)
{
    const qi_model *model = qi_host_model(s->host);
    const qi_tensor *in = qi_tensor_at(model, qi_input_at(model, 0));
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    size_t const sample = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    float scale;
    memcpy(&scale, &in->scale_bits, sizeof scale);
    size_t const values = qat_tensor_values(in);
    s->input_bytes = in->bytes;
    s->steps = qi_state_count(model) && sample % values == 0 ? (int)(sample / values) : 1;
    qat_status const st =
        qat_input_coder_init(&s->coder, input, (qi_type)in->type, in->bits, scale, in->zero_point,
                             values * (size_t)s->steps, ENGINE_BATCH, err);
    if (st)
        return st;
    bool whole = true;
    for (; s->n_outputs < (int)qi_output_count(model); s->n_outputs++) {
        size_t const bytes = qi_tensor_at(model, qi_output_at(model, s->n_outputs))->bytes;
        s->output_bytes[s->n_outputs] = bytes;
        s->outputs[s->n_outputs] = malloc(bytes * ENGINE_BATCH + 1);
        whole = whole && s->outputs[s->n_outputs];
    }
    s->arena_bytes = (qi_host_sizes(s->host).host_arena + 63) / 64 * 64;
    s->arenas = qat_aligned_alloc(s->arena_bytes * (size_t)qat_threads());
    if (!s->arenas || !whole)
        return qat_out_of_memory(err, "evaluation");
    if (qat_task_of(input)->units && qat_tensor_values(out) < (size_t)input->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "the model answers %zu values, but the data have %d classes",
                        qat_tensor_values(out), input->classes);
    return QAT_OK;
}

/** Does the model have one input of codes, and few enough outputs? */
static bool is_plain(const qi_model *model)
{
    return qi_input_count(model) == 1 && qi_output_count(model) <= QAT_MAX_OUTPUTS &&
           qi_type_has_codes((qi_type)qi_tensor_at(model, qi_input_at(model, 0))->type);
}

static qat_status not_judged(const qi_model *model, qat_error *err)
{
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "a model with %d input%s and %d output%s, or with inputs other than codes, is "
                    "not a classifier",
                    (int)qi_input_count(model), qat_plural(qi_input_count(model)),
                    (int)qi_output_count(model), qat_plural(qi_output_count(model)));
}

/** Find the task whose answers the model gives, and set what it says of it. */
static qat_status find_task(qat_input_info *info, const qat_registry *registry,
                            const qi_model *model, qat_error *err)
{
    for (int i = 0; is_plain(model) && i < qat_tasks(registry); i++) {
        *info = (qat_input_info){.task = qat_task_at(registry, i)};
        if (info->task->of_model(info, model))
            return QAT_OK;
    }
    *info = (qat_input_info){0};
    return not_judged(model, err);
}

qat_status qat_evaluate_model(const qi_host *host, const qat_input_info *input,
                              const qat_dataset *data, int64_t limit, qat_tick *tick, void *context,
                              qat_accuracy *accuracy, qat_error *err)
{
    return qat_evaluate_model_among(NULL, 1, host, input, data, limit, tick, context, accuracy,
                                    err);
}

qat_status qat_evaluate_model_among(const qat_ranks *ranks, int threads, const qi_host *host,
                                    const qat_input_info *input, const qat_dataset *data,
                                    int64_t limit, qat_tick *tick, void *context,
                                    qat_accuracy *accuracy, qat_error *err)
{
    qat_evaluation const p = {input, data, ENGINE_BATCH, limit, tick, context, ranks, threads};
    engine_state s = {.host = host};
    qat_input_info of_model = {0};
    *accuracy = (qat_accuracy){0};
    bool const judged = is_plain(qi_host_model(host)) &&
                        qat_task_of(input)->of_model(&of_model, qi_host_model(host));
    qat_status st = judged ? QAT_OK : not_judged(qi_host_model(host), err);
    if (!st && qi_host_threads(host) != 1)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "evaluation: the model was opened for %d threads, but must be for 1",
                      qi_host_threads(host));
    if (!st)
        st = engine_init(&s, input, err);
    if (!st)
        st = qat_evaluation_run(&p, engine_batch, &s, accuracy, err);
    free(s.coder.codes);
    for (int i = 0; i < s.n_outputs; i++)
        free(s.outputs[i]);
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

qat_status qat_input_info_of_model(qat_input_info *info, const qat_registry *registry,
                                   const qi_model *model, qat_error *err)
{
    const qi_preprocessing *pre = qi_model_preprocessing(model);
    qat_status const st = find_task(info, registry, model, err);
    if (st)
        return st;
    sizes_of(info, qi_tensor_at(model, qi_input_at(model, 0)));
    info->type = pre->kind == 1   ? QAT_SAMPLE_U8
                 : pre->kind == 3 ? QAT_SAMPLE_SOUND
                                  : QAT_SAMPLE_F32;
    info->resize_short = pre->resize_short;
    info->central_crop = pre->central_crop;
    for (int c = 0; c < QAT_CHANNEL_VALUES; c++) {
        info->std[c] = 1;
        if (pre->kind == 0 || c >= info->channels)
            continue;
        memcpy(&info->mean[c], &pre->mean_bits[c], sizeof(float));
        memcpy(&info->std[c], &pre->std_bits[c], sizeof(float));
    }
    return QAT_OK;
}

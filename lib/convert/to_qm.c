/** Turns an imported graph, of a .tflite or an .onnx file, into the bytes of a .qm. */
#include "base/arena.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "convert/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

enum { MOST_CHANNELS = 3 };

static bool is_picture(const qat_qtensor *x)
{
    return qi_type_bytes(x->type) == 1 && x->bits == 8 && x->rank == 4 && x->dims[0] == 1 &&
           (x->dims[3] == 1 || x->dims[3] == MOST_CHANNELS) && x->dims[1] <= UINT16_MAX &&
           x->dims[2] <= UINT16_MAX;
}

/** A uint8 input with one or three channels takes pixels as codes: mean Z, std 1 / S, if float32
 * has it. */
static qi_preprocessing picture_input(const qat_qgraph *graph)
{
    const qat_qtensor *x = &graph->tensors[graph->inputs[0]];
    qi_preprocessing p = {0};
    if (!is_picture(x) || x->type != QI_U8 || x->border || isinf(1.0f / x->scale))
        return p;
    p.kind = 1;
    p.height = x->dims[1];
    p.width = x->dims[2];
    p.channels = x->dims[3];
    p.channel_order = x->dims[3] == 3;
    for (int c = 0; c < p.channels; c++) {
        p.mean_bits[c] = bits_of((float)x->zero_point);
        p.std_bits[c] = bits_of(1.0f / x->scale);
    }
    return p;
}

/** Make input 0 take pixels, which a table turns into codes. */
static qat_status add_pixels(qat_qgraph *graph, const qat_import_options *o, qi_preprocessing *p,
                             qat_error *err)
{
    qat_qtensor *x = &graph->tensors[graph->inputs[0]];
    float mean[MOST_CHANNELS], std[MOST_CHANNELS];
    if (!is_picture(x))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "a mean and a std are for pictures, but the model's input %s is not 8-bit "
                        "[1, height, width, 1 or 3]",
                        x->name);
    int const channels = x->dims[3];
    if (o->means != 1 && o->means != channels)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%d means for the %d channels of the model's input",
                        o->means, channels);
    for (int c = 0; c < channels; c++) {
        mean[c] = o->mean[o->means > 1 ? c : 0];
        std[c] = o->std[o->means > 1 ? c : 0];
    }
    x->border = QI_BORDER_NONE;
    qat_status const st = qat_qgraph_add_input_table(graph, channels, mean, std, err);
    *p = picture_input(graph);
    for (int c = 0; c < channels; c++) {
        p->mean_bits[c] = bits_of(mean[c]);
        p->std_bits[c] = bits_of(std[c]);
    }
    return st;
}

/** The runs of a known-answer test: several for a model with states. */
static int steps_of(const qat_qgraph *graph)
{
    enum { STEPS = 4 };
    for (int i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i].is_state)
            return STEPS;
    return 1;
}

/** Make seeded random codes for every input. */
static qat_status random_inputs(const qat_qgraph *graph, uint8_t **inputs, qat_error *err)
{
    size_t const steps = (size_t)steps_of(graph);
    for (int i = 0; i < graph->n_inputs; i++) {
        const qat_qtensor *t = &graph->tensors[graph->inputs[i]];
        size_t const bytes = steps * qat_qtensor_bytes(t);
        uint32_t const codes = t->type == QI_U8 ? 1u << t->bits : 256;
        qat_rng rng = qat_rng_at(0, qat_hash_name("known-answer test"), (uint64_t)i);
        inputs[i] = malloc(bytes);
        if (!inputs[i])
            return qat_out_of_memory(err, "known-answer test");
        for (size_t j = 0; j < bytes; j++)
            inputs[i][j] = (uint8_t)qat_rng_below(&rng, codes);
    }
    return QAT_OK;
}

static qat_status write_answered(const qat_qgraph *graph, const qat_qm_metadata *metadata,
                                 uint8_t **qm, size_t *qm_bytes, qat_error *err)
{
    uint8_t **inputs = calloc((size_t)graph->n_inputs + 1, sizeof *inputs);
    size_t arena_bytes;
    if (!inputs)
        return qat_out_of_memory(err, "known-answer test");
    qat_status st = random_inputs(graph, inputs, err);
    if (!st)
        st = qat_qm_write_answered(graph, metadata, NULL, (const void *const *)inputs, qm, qm_bytes,
                                   &arena_bytes, err);
    for (int i = 0; i < graph->n_inputs; i++)
        free(inputs[i]);
    free(inputs);
    return st;
}

/** Refuse a model that would take more than the caller allows; need: bytes of its descriptors. */
static qat_status check_limits(const qi_model *model, size_t need, const qi_limits *limits,
                               qat_error *err)
{
    uint64_t const most_macs = limits->macs ? limits->macs : QI_DEFAULT_MACS;
    uint64_t const most = limits->memory ? limits->memory : QI_DEFAULT_MEMORY;
    uint64_t const macs = (uint64_t)qi_model_macs(model);
    uint64_t const bytes = (uint64_t)need + qi_arena_bytes(model);
    if (macs > most_macs)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "one run takes %llu multiply-adds, but %llu are allowed (--max-macs)",
                        (unsigned long long)macs, (unsigned long long)most_macs);
    if (bytes > most)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "a run needs %llu MiB of memory, but %llu MiB are allowed (--max-memory)",
                        qat_mib(bytes), qat_mib(most));
    return QAT_OK;
}

/** Run the engine's own checks, without memory for a run. */
static qat_status check_in_engine(const uint8_t *qm, size_t qm_bytes, const qi_limits *limits,
                                  qat_error *err)
{
    qi_error failed;
    qi_model *model;
    size_t need = 0;
    qi_status st = qi_model_bytes(qm, qm_bytes, &need, &failed);
    void *memory = st ? NULL : qat_aligned_alloc(need);
    if (!st && !memory)
        return qat_out_of_memory(err, NULL);
    if (!st)
        st = qi_model_init(&model, qm, qm_bytes, NULL, memory, need, &failed);
    qat_status const fits = st ? QAT_OK : check_limits(model, need, limits, err);
    qat_aligned_free(memory);
    if (!st)
        return fits;
    return qi_error_tell(&failed, "the engine refuses the model: model", err);
}

static qat_status write_checked(const qat_qgraph *graph, const qat_qm_metadata *metadata,
                                const qi_limits *limits, uint8_t **qm, size_t *qm_bytes,
                                qat_error *err)
{
    uint8_t *aligned;
    qat_status st = qat_qm_write(graph, metadata, qm, qm_bytes, err);
    if (st)
        return st;
    aligned = qat_aligned_alloc(*qm_bytes);
    if (!aligned)
        return qat_out_of_memory(err, NULL);
    memcpy(aligned, *qm, *qm_bytes);
    st = check_in_engine(aligned, *qm_bytes, limits, err);
    qat_aligned_free(aligned);
    return st;
}

typedef qat_status import_fn(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err);

static qat_status to_qm(import_fn *import, const void *bytes, size_t count,
                        const qat_import_options *options, uint8_t **qm, size_t *qm_bytes,
                        qat_error *err)
{
    qat_qgraph *graph = NULL;
    *qm = NULL;
    *qm_bytes = 0;
    qat_status st = import(&graph, bytes, count, err);
    if (st)
        return st;
    qat_qm_metadata metadata = {.description = options->description,
                                .labels = options->labels,
                                .n_labels = options->n_labels,
                                .preprocessing = picture_input(graph),
                                .kat_steps = steps_of(graph)};
    if (options->means > 0)
        st = add_pixels(graph, options, &metadata.preprocessing, err);
    if (!st)
        st = write_checked(graph, &metadata, &options->limits, qm, qm_bytes, err);
    if (!st && options->known_answers) {
        free(*qm);
        *qm = NULL;
        st = write_answered(graph, &metadata, qm, qm_bytes, err);
    }
    qat_qgraph_free(graph);
    if (st) {
        free(*qm);
        *qm = NULL;
        *qm_bytes = 0;
    }
    return st;
}

qat_status qat_tflite_to_qm(const void *bytes, size_t count, const qat_import_options *options,
                            uint8_t **qm, size_t *qm_bytes, qat_error *err)
{
    return to_qm(qat_tflite_import, bytes, count, options, qm, qm_bytes, err);
}

qat_status qat_onnx_to_qm(const void *bytes, size_t count, const qat_import_options *options,
                          uint8_t **qm, size_t *qm_bytes, qat_error *err)
{
    return to_qm(qat_onnx_import, bytes, count, options, qm, qm_bytes, err);
}

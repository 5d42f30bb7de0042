/** Tensors of an integer graph as tensors of a .tflite file. */
#include "export/tflite/out.h"

#include "qat/rounding.h"

#include <string.h>

const qat_qtensor *tfo_input(const tfo *o, int i)
{
    return &o->graph->tensors[o->op->inputs[i]];
}

const qat_qtensor *tfo_output(const tfo *o)
{
    return &o->graph->tensors[o->op->outputs[0]];
}

bool tfo_is_truth(const qat_qtensor *t)
{
    return t->type == QI_U8 && t->bits == 1 && t->scale == 1.0f && t->zero_point == 0;
}

static int type_of(const qat_qtensor *t)
{
    static const int types[QI_TYPES] = {[QI_U8] = TFL_UINT8,
                                        [QI_S8] = TFL_INT8,
                                        [QI_S32] = TFL_INT32,
                                        [QI_S64] = TFL_INT64,
                                        [QI_S16] = TFL_INT16};
    return tfo_is_truth(t) ? TFL_BOOL : types[t->type];
}

tfo_tensor tfo_describe(const qat_qtensor *t)
{
    tfo_tensor d = {.type = type_of(t), .rank = t->rank, .zero_point = t->zero_point};
    memcpy(d.dims, t->dims, sizeof d.dims);
    bool const scaled = t->type == QI_S32 && !t->data && t->scale != 1.0f; /* a QUANTIZE's */
    if ((qi_type_has_codes(t->type) && !tfo_is_truth(t)) || scaled) {
        d.scale = t->scale;
        d.n_scales = 1;
    }
    return d;
}

int tfo_tensor_index(tfo *o, int tensor)
{
    const qat_qtensor *t = &o->graph->tensors[tensor];
    if (o->index[tensor] >= 0)
        return o->index[tensor];
    tfo_tensor d = tfo_describe(t);
    if (t->data)
        d.buffer = tfo_add_buffer(&o->file, t->data, qat_qtensor_bytes(t));
    return o->index[tensor] = tfo_add_tensor(&o->file, t->name, &d);
}

int tfo_input_index(tfo *o, int i)
{
    return tfo_tensor_index(o, o->op->inputs[i]);
}

int tfo_output_index(tfo *o)
{
    return tfo_tensor_index(o, o->op->outputs[0]);
}

/** Named after the op's output; outside of ops, after the tensor that it is like. */
static int add_part(tfo *o, const qat_qtensor *like, const char *part, const tfo_tensor *d)
{
    char name[QAT_NAME_MAX];
    qat_part_name(name, o->op ? tfo_output(o)->name : like->name, part);
    return tfo_add_tensor(&o->file, name, d);
}

int tfo_between(tfo *o, const qat_qtensor *like, const char *part)
{
    tfo_tensor const d = tfo_describe(like);
    return add_part(o, like, part, &d);
}

/** Two 4-bit codes in a byte, the first in its lower half. */
static const void *packed(tfo *o, const qat_qtensor *t, size_t *bytes)
{
    size_t const count = qat_qtensor_count(t);
    const uint8_t *codes = t->data;
    *bytes = (count + 1) / 2;
    uint8_t *halves = qat_arena_take(&o->file.arena, *bytes);
    for (size_t i = 0; halves && i < count; i++)
        halves[i / 2] |= (uint8_t)((codes[i] & 15) << (i % 2 ? 4 : 0));
    return halves;
}

/** TensorFlow Lite's kernel for these reads weights as bytes, also those of 4 bits. */
static bool is_wide_depthwise(const tfo *o)
{
    return strcmp(o->op->op, "depthwise_conv2d") == 0 && tfo_input(o, QAT_IN_X)->type == QI_S16;
}

int tfo_weights(tfo *o, int channel_axis)
{
    int const tensor = o->op->inputs[QAT_IN_WEIGHTS];
    const qat_qtensor *w = &o->graph->tensors[tensor];
    if (o->index[tensor] >= 0)
        return o->index[tensor];
    tfo_tensor d = tfo_describe(w);
    const void *data = w->data;
    size_t bytes = qat_qtensor_bytes(w);
    if (w->channel_scales) {
        d.scales = w->channel_scales;
        d.n_scales = w->n_channels;
        d.dimension = channel_axis;
    }
    if (w->type == QI_S8 && w->bits <= 4 && !is_wide_depthwise(o)) {
        d.type = TFL_INT4;
        data = packed(o, w, &bytes);
    }
    d.buffer = tfo_add_buffer(&o->file, data, bytes);
    return o->index[tensor] = tfo_add_tensor(&o->file, w->name, &d);
}

/** The codes of a bias without fractional bits, which the format has not; check.c tells it. */
static const void *whole_bias(tfo *o, const qat_qtensor *bias)
{
    if (o->op->fraction == 0)
        return bias->data;
    size_t const n = qat_qtensor_count(bias);
    int32_t *codes = qat_arena_array(&o->file.arena, n, sizeof *codes);
    for (size_t i = 0; codes && i < n; i++)
        codes[i] = qi_rdbp(((const int32_t *)bias->data)[i], o->op->fraction);
    return codes;
}

/**
 * Layers may share a bias, but its scale is of each layer: S_x S_w. With 16-bit codes, a bias of 32
 * bits means sums of 32 bits; where they have 64, the bias of zeros stays out.
 */
int tfo_bias(tfo *o)
{
    const qat_qtensor *x = tfo_input(o, QAT_IN_X), *w = tfo_input(o, QAT_IN_WEIGHTS);
    const qat_qtensor *bias = tfo_input(o, QAT_IN_BIAS);
    if (o->op->rounding == QI_ROUND_LONG && bias->type == QI_S32)
        return -1;
    int const n = w->channel_scales ? w->n_channels : 1;
    tfo_tensor d = tfo_describe(bias);
    float *scales = qat_arena_array(&o->file.arena, (size_t)n, sizeof *scales);
    if (!scales) {
        o->file.failed = true;
        return 0;
    }
    for (int i = 0; i < n; i++)
        scales[i] = x->scale * (w->channel_scales ? w->channel_scales[i] : w->scale);
    d.scales = scales;
    d.n_scales = n;
    const void *codes = whole_bias(o, bias);
    if (!codes)
        o->file.failed = true;
    else
        d.buffer = tfo_add_buffer(&o->file, codes, qat_qtensor_bytes(bias));
    return tfo_add_tensor(&o->file, bias->name, &d);
}

/** A vector of the op, copied. */
static int add_vector(tfo *o, const qat_qtensor *like, const char *part, tfo_tensor *d, int n,
                      const void *values, size_t bytes)
{
    void *copy = qat_arena_take(&o->file.arena, bytes);
    if (copy)
        memcpy(copy, values, bytes);
    d->rank = 1;
    d->dims[0] = n;
    d->buffer = tfo_add_buffer(&o->file, copy, bytes);
    return add_part(o, like, part, d);
}

int tfo_sums(tfo *o, const char *name, int n, const int32_t *values, float scale)
{
    tfo_tensor d = {.type = TFL_INT32, .rank = 1, .dims = {n}, .n_scales = 1, .scale = scale};
    d.buffer = tfo_add_buffer(&o->file, values, (size_t)n * sizeof *values);
    return tfo_add_tensor(&o->file, name, &d);
}

int tfo_ints(tfo *o, const char *part, int n, const int32_t *values)
{
    tfo_tensor d = {.type = TFL_INT32};
    return add_vector(o, NULL, part, &d, n, values, (size_t)n * sizeof *values);
}

int tfo_code(tfo *o, const qat_qtensor *like, const char *part, int32_t code)
{
    int16_t const wide = (int16_t)code;
    uint8_t const byte = (uint8_t)code;
    tfo_tensor d = tfo_describe(like);
    size_t const bytes = qi_type_bytes(like->type);
    return add_vector(o, like, part, &d, 1, bytes > 1 ? (const void *)&wide : &byte, bytes);
}

/** Turns tensors of a .tflite file into tensors of the integer graph. */
#include "convert/tflite/import.h"
#include "infer/model/qm_layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qat_status tfl_refuse(tfl_importer *im, const char *format, ...)
{
    char text[QAT_ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return qat_fail(im->err, QAT_ERR_UNSUPPORTED, "%s", text);
}

int64_t tfl_count(const tfl_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1 || shape->dims[i] > QM_MAX_TENSOR_VALUES)
            return -1;
        count *= shape->dims[i];
        if (count > QM_MAX_TENSOR_VALUES)
            return -1;
    }
    return count;
}

qat_status tfl_axis(tfl_importer *im, int64_t axis, int rank, int *positive)
{
    int64_t const from_start = axis < 0 ? axis + rank : axis;
    if (from_start < 0 || from_start >= rank)
        return tfl_refuse(im, "axis %" PRId64 " of a tensor of rank %d", axis, rank);
    *positive = (int)from_start;
    return QAT_OK;
}

qat_emit tfl_emit(const tfl_importer *im, int n_inputs, const int *inputs, int output)
{
    return (qat_emit){.graph = im->graph,
                      .profile = QAT_PROFILE_TFLITE,
                      .name = im->model->tensors[im->op->outputs[0]].name,
                      .n_inputs = n_inputs,
                      .inputs = inputs,
                      .output = output,
                      .act_min = -INFINITY,
                      .act_max = INFINITY};
}

qat_status tfl_activation(tfl_importer *im, int field, qat_emit *e)
{
    static const float bounds[][2] = {[TFL_ACT_NONE] = {-INFINITY, INFINITY},
                                      [TFL_ACT_RELU] = {0, INFINITY},
                                      [TFL_ACT_RELU_N1_TO_1] = {-1, 1},
                                      [TFL_ACT_RELU6] = {0, 6}};
    unsigned const activation = fb_u8(&im->op->options, field, TFL_ACT_NONE);
    if (activation >= sizeof bounds / sizeof *bounds)
        return tfl_refuse(
            im,
            "fused activation %u is not supported (only NONE, RELU, RELU_N1_TO_1 and RELU6 are)",
            activation);
    e->act_min = bounds[activation][0];
    e->act_max = bounds[activation][1];
    return QAT_OK;
}

/* ------------------------------------------------------------------ describing */

static bool is_codes(int type)
{
    return type == TFL_UINT8 || type == TFL_INT8 || type == TFL_INT16;
}

/** Type and bits in the engine. INT4 is unpacked to bytes. */
static qat_qtensor typed(int type)
{
    static const struct {
        int type, bits;
        qi_type is;
    } types[] = {{TFL_INT8, 8, QI_S8},    {TFL_INT4, 4, QI_S8},    {TFL_INT16, 16, QI_S16},
                 {TFL_INT32, 32, QI_S32}, {TFL_INT64, 64, QI_S64}, {TFL_BOOL, 1, QI_U8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return (qat_qtensor){.type = types[i].is, .bits = types[i].bits};
    return (qat_qtensor){.type = QI_U8, .bits = 8};
}

static const char *name_of(const tfl_importer *im, int index)
{
    return im->model->tensors[index].name;
}

/** A quotient of two scales may be 0 or infinite in float32: its multiplier is then 0. */
bool tfl_is_scale(float scale)
{
    return scale > 0.0f && !isinf(scale);
}

/** The scales of a tensor of codes: one, or one per channel with zero points 0. */
static qat_status describe_scales(tfl_importer *im, int index, qat_qtensor *t)
{
    const tfl_tensor *from = &im->model->tensors[index];
    int32_t lo, hi;
    qat_tensor_codes(t, &lo, &hi);
    if (!from->scales.count)
        return tfl_refuse(im, "tensor %d (%s) has no quantization parameters", index, from->name);
    for (uint32_t i = 0; i < from->scales.count; i++) {
        float const scale = fb_f32_at(&from->scales, i);
        int64_t const zero_point = fb_i64_at(&from->zero_points, i);
        if (!tfl_is_scale(scale))
            return tfl_refuse(im, "tensor %d (%s) has the scale %g", index, from->name,
                              (double)scale);
        bool const is_zero = from->scales.count > 1 || t->type == QI_S32;
        if (zero_point < lo || zero_point > hi || (zero_point && is_zero))
            return tfl_refuse(im, "tensor %d (%s) has the zero point %" PRId64, index, from->name,
                              zero_point);
    }
    t->scale = fb_f32_at(&from->scales, 0);
    t->zero_point = (int32_t)fb_i64_at(&from->zero_points, 0);
    t->range_min = (float)((int64_t)lo - t->zero_point) * t->scale;
    t->range_max = (float)((int64_t)hi - t->zero_point) * t->scale;
    return QAT_OK;
}

static qat_status describe(tfl_importer *im, int index, bool may_vary, qat_qtensor *t)
{
    const tfl_tensor *from = &im->model->tensors[index];
    bool const has_codes = is_codes(from->type) || (from->type == TFL_INT4 && from->data);
    *t = typed(from->type);
    t->source_index = index;
    snprintf(t->name, sizeof t->name, "%s", from->name);
    if ((from->variable && !may_vary) || from->sparse)
        return tfl_refuse(im, "tensor %d (%s) is %s", index, from->name,
                          from->sparse ? "sparse" : "a variable that outlives a run");
    if (!has_codes && !(from->type == TFL_INT32 && from->scales.count))
        return tfl_refuse(im, "tensor %d (%s) is %s; only uint8, int8 and int16 run in integers",
                          index, from->name, tfl_type_name(from->type));
    return describe_scales(im, index, t);
}

qat_status tfl_describe(tfl_importer *im, int index, qat_qtensor *t)
{
    return describe(im, index, false, t);
}

bool tfl_is_plain(const tfl_tensor *t)
{
    return t->type == TFL_BOOL || t->type == TFL_INT64 ||
           ((is_codes(t->type) || t->type == TFL_INT32) && !t->scales.count);
}

qat_status tfl_describe_integers(tfl_importer *im, int index, qat_qtensor *t)
{
    const tfl_tensor *from = &im->model->tensors[index];
    if (!tfl_is_plain(from))
        return tfl_describe(im, index, t);
    if (from->variable || from->sparse)
        return tfl_refuse(im, "tensor %d (%s) is %s", index, from->name,
                          from->sparse ? "sparse" : "a variable that outlives a run");
    *t = typed(from->type);
    t->scale = 1.0f;
    t->source_index = index;
    snprintf(t->name, sizeof t->name, "%s", from->name);
    return QAT_OK;
}

/** The engine has no scalars, and no ranks above its own: the first axes then are one. */
static void set_shape(qat_qtensor *t, const tfl_shape *shape)
{
    int const more = shape->rank > QI_MAX_RANK ? shape->rank - QI_MAX_RANK : 0;
    t->rank = shape->rank > 0 ? shape->rank - more : 1;
    for (int i = 0; i < QI_MAX_RANK; i++)
        t->dims[i] = i < t->rank && shape->rank ? shape->dims[i + more] : 1;
    for (int i = 0; i < more; i++)
        t->dims[0] *= shape->dims[i];
}

qat_status tfl_append(tfl_importer *im, qat_qtensor *t, const tfl_shape *shape, int *tensor)
{
    set_shape(t, shape);
    *tensor = qat_qgraph_tensor(im->graph, t, im->err);
    return qat_append_status(*tensor, im->err);
}

/* ------------------------------------------------------------------ inputs */

bool tfl_has_input(const tfl_importer *im, int i)
{
    return i < im->op->n_inputs && im->op->inputs[i] >= 0;
}

const tfl_tensor *tfl_tensor_of(const tfl_importer *im, int i)
{
    return tfl_has_input(im, i) ? &im->model->tensors[im->op->inputs[i]] : NULL;
}

tfl_value *tfl_value_of(const tfl_importer *im, int i)
{
    return tfl_has_input(im, i) ? &im->values[im->op->inputs[i]] : NULL;
}

qat_status tfl_input_shape(tfl_importer *im, int i, int lo, int hi, tfl_shape *shape)
{
    const tfl_value *v = tfl_value_of(im, i);
    if (!v || !v->known)
        return tfl_refuse(im, "input %d is %s", i, v ? "not written yet" : "absent");
    *shape = v->shape;
    if (shape->rank >= lo && shape->rank <= hi)
        return QAT_OK;
    return tfl_refuse(im, "input %d has rank %d", i, shape->rank);
}

/** Bytes per value; 0 for a type that cannot be a constant here. */
static size_t item_bytes(int type)
{
    return type == TFL_INT64                          ? 8
           : type == TFL_INT32 || type == TFL_FLOAT32 ? 4
           : type == TFL_INT16                        ? 2
                                                      : is_codes(type) || type == TFL_BOOL;
}

/** The bytes that so many values take in the file. */
static size_t packed_bytes(int type, int64_t count)
{
    return type == TFL_INT4 ? ((size_t)count + 1) / 2 : (size_t)count * item_bytes(type);
}

/** The error if a constant's bytes do not fit its shape. */
static qat_status check_data(tfl_importer *im, int index)
{
    const tfl_tensor *t = &im->model->tensors[index];
    int64_t const count = tfl_count(&im->values[index].shape);
    size_t const bytes = count < 0 ? 0 : packed_bytes(t->type, count);
    if (count >= 0 && bytes && bytes == t->data_bytes && !t->sparse)
        return QAT_OK;
    return tfl_refuse(im, "constant tensor %d (%s) is %s, or its %zu bytes do not fit its shape",
                      index, t->name, t->sparse ? "sparse" : tfl_type_name(t->type), t->data_bytes);
}

qat_status tfl_take_room(tfl_importer *im, int index, size_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes > im->constant_room)
        return tfl_refuse(
            im,
            "constant tensor %d (%s): its constants would take more than 16 times the "
            "size of the file",
            index, im->model->tensors[index].name);
    im->constant_room -= bytes;
    *memory = qat_arena_take(im->graph->memory, bytes);
    return *memory ? QAT_OK : qat_out_of_memory(im->err, NULL);
}

/** Two 4-bit codes lie in a byte, the first in its lower half. */
static qat_status unpack_data(tfl_importer *im, int index, void **data)
{
    const tfl_tensor *t = &im->model->tensors[index];
    size_t const count = (size_t)tfl_count(&im->values[index].shape);
    qat_status const st = tfl_take_room(im, index, count, data);
    int8_t *codes = *data;
    for (size_t i = 0; i < count && !st; i++) {
        int const half = t->data[i / 2] >> (i % 2 ? 4 : 0) & 15;
        codes[i] = (int8_t)((half ^ 8) - 8);
    }
    return st;
}

/** A copy of the numbers of a constant. */
static qat_status take_data(tfl_importer *im, int index, void **data)
{
    const tfl_tensor *t = &im->model->tensors[index];
    if (t->type == TFL_INT4)
        return unpack_data(im, index, data);
    qat_status const st = tfl_take_room(im, index, t->data_bytes, data);
    if (!st)
        memcpy(*data, t->data, t->data_bytes);
    return st;
}

static qat_status read_channel_scales(tfl_importer *im, int index, qat_qtensor *t)
{
    const fb_vector *from = &im->model->tensors[index].scales;
    if (from->count < 2)
        return QAT_OK;
    void *memory;
    qat_status const st =
        tfl_take_room(im, index, from->count * sizeof *t->channel_scales, &memory);
    if (st)
        return st;
    t->channel_scales = memory;
    t->n_channels = (int)from->count;
    for (uint32_t i = 0; i < from->count; i++)
        t->channel_scales[i] = fb_f32_at(from, i);
    return QAT_OK;
}

/** Append a constant whose type was checked. */
static qat_status append_constant(tfl_importer *im, int index, qat_qtensor *t, int *tensor)
{
    qat_status st = check_data(im, index);
    if (st)
        return st;
    st = read_channel_scales(im, index, t);
    if (!st)
        st = take_data(im, index, &t->data);
    return st ? st : tfl_append(im, t, &im->values[index].shape, tensor);
}

qat_status tfl_constant(tfl_importer *im, int index, int *tensor)
{
    qat_qtensor t;
    tfl_value *v = &im->values[index];
    *tensor = v->tensor;
    if (v->tensor >= 0)
        return QAT_OK;
    qat_status st = tfl_describe(im, index, &t);
    if (!st)
        st = append_constant(im, index, &t, tensor);
    if (!st)
        v->tensor = *tensor;
    return st;
}

qat_status tfl_input(tfl_importer *im, int i, int *tensor)
{
    const tfl_value *v = tfl_value_of(im, i);
    const tfl_tensor *t = tfl_tensor_of(im, i);
    *tensor = -1;
    if (!v)
        return tfl_refuse(im, "input %d is missing", i);
    int const index = im->op->inputs[i];
    if (t->type == TFL_FLOAT32 && v->known && v->real_of >= 0 && !v->reals &&
        tfl_moves(im->op->code)) {
        *tensor = im->values[v->real_of].tensor;
        return QAT_OK;
    }
    if (t->type == TFL_FLOAT32)
        return tfl_refuse(im, "tensor %d (%s) is float32: the operator would need floating point",
                          index, t->name);
    if (!v->known)
        return tfl_refuse(im, "tensor %d (%s) is read before it is written", index, t->name);
    *tensor = v->tensor;
    if (v->tensor >= 0 && im->graph->tensors[v->tensor].channel_scales)
        return tfl_refuse(im, "tensor %d (%s) has several scales", index, t->name);
    if (v->tensor >= 0 && is_codes(t->type) && t->scales.count)
        return QAT_OK;
    if (!is_codes(t->type))
        return tfl_refuse(im, "tensor %d (%s) is %s; only uint8, int8 and int16 run in integers",
                          index, t->name, tfl_type_name(t->type));
    if (t->scales.count > 1)
        return tfl_refuse(im, "tensor %d (%s) has several scales", index, t->name);
    if (!t->data || !t->scales.count)
        return tfl_refuse(im, "tensor %d (%s) has no quantization parameters", index, t->name);
    return tfl_constant(im, index, tensor);
}

/** Integers that were computed at import, as a constant. */
static qat_status append_ints(tfl_importer *im, int i, int *tensor)
{
    tfl_value *v = tfl_value_of(im, i);
    qat_qtensor q;
    qat_status st = tfl_describe_integers(im, im->op->inputs[i], &q);
    size_t const each = st ? 0 : qi_type_bytes(q.type);
    if (!st)
        st = tfl_take_room(im, im->op->inputs[i], (size_t)v->n_ints * each, &q.data);
    for (int k = 0; k < v->n_ints && !st; k++) {
        int64_t const value = v->ints[k];
        memcpy((uint8_t *)q.data + (size_t)k * each, &value, each); /* little-endian */
    }
    if (!st)
        st = tfl_append(im, &q, &v->shape, tensor);
    v->tensor = *tensor;
    return st;
}

qat_status tfl_integers(tfl_importer *im, int i, int *tensor)
{
    tfl_value *v = tfl_value_of(im, i);
    const tfl_tensor *t = tfl_tensor_of(im, i);
    qat_qtensor q;
    *tensor = v ? v->tensor : -1;
    if (*tensor >= 0)
        return QAT_OK;
    if (v && v->ints && !t->data && tfl_is_plain(t))
        return append_ints(im, i, tensor);
    if (!v || !t->data || !tfl_is_plain(t))
        return tfl_input(im, i, tensor);
    qat_status st = tfl_describe_integers(im, im->op->inputs[i], &q);
    if (!st)
        st = append_constant(im, im->op->inputs[i], &q, tensor);
    if (!st)
        v->tensor = *tensor;
    return st;
}

qat_status tfl_inputs(tfl_importer *im, int n, int *tensors)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < n && !st; i++)
        st = tfl_input(im, i, &tensors[i]);
    return st;
}

qat_status tfl_state(tfl_importer *im, int i, int *tensor)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    tfl_value *v = tfl_value_of(im, i);
    tfl_shape shape = {.rank = t ? t->rank : 0};
    qat_qtensor q;
    *tensor = -1;
    if (!t || !t->variable || t->data)
        return tfl_refuse(im, "input %d, its state, is not a variable", i);
    int const index = im->op->inputs[i];
    memcpy(shape.dims, t->dims, (size_t)t->rank * sizeof *shape.dims);
    if (v->known || tfl_count(&shape) < 1)
        return tfl_refuse(im, "its state, tensor %d (%s), is %s", index, t->name,
                          v->known ? "another operator's, too" : "empty or too large");
    qat_status st = describe(im, index, true, &q);
    if (!st && t->scales.count > 1)
        st = tfl_refuse(im, "tensor %d (%s) has several scales", index, t->name);
    q.is_state = true;
    if (!st)
        st = tfl_append(im, &q, &shape, tensor);
    v->known = !st;
    v->shape = shape;
    v->tensor = *tensor;
    return st;
}

void tfl_next(tfl_importer *im, int i, int next)
{
    tfl_value *v = tfl_value_of(im, i);
    im->graph->tensors[v->tensor].next = next;
    v->tensor = next;
}

qat_status tfl_weights(tfl_importer *im, int i, int channel_axis, int *tensor)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    const tfl_value *v = tfl_value_of(im, i);
    if (!t || !t->data)
        return tfl_refuse(im, "input %d, its weights, is not a constant", i);
    int const index = im->op->inputs[i];
    uint32_t const scales = t->scales.count;
    bool const fits = channel_axis < v->shape.rank && t->quantized_dimension == channel_axis &&
                      scales == (uint32_t)v->shape.dims[channel_axis] &&
                      (t->type == TFL_INT8 || t->type == TFL_INT4);
    if (scales > 1 && !fits)
        return tfl_refuse(im,
                          "its weights, tensor %d (%s), are %s with %u scales along dimension %d; "
                          "only int8 with one scale per index of dimension %d is supported",
                          index, t->name, tfl_type_name(t->type), scales, t->quantized_dimension,
                          channel_axis);
    return tfl_constant(im, index, tensor);
}

qat_status tfl_bias(tfl_importer *im, int i, int channels, bool may_be_long, int *tensor)
{
    *tensor = -1;
    if (!tfl_has_input(im, i))
        return QAT_OK;
    int const index = im->op->inputs[i];
    const tfl_tensor *t = tfl_tensor_of(im, i);
    tfl_value *v = tfl_value_of(im, i);
    bool const fits = t->type == TFL_INT32 || (may_be_long && t->type == TFL_INT64);
    if (!t->data || !fits || tfl_count(&v->shape) != channels)
        return tfl_refuse(im, "its bias, tensor %d (%s), is not an int32%s constant of %d values",
                          index, t->name, may_be_long ? " or int64" : "", channels);
    *tensor = v->tensor;
    if (v->tensor >= 0)
        return QAT_OK;
    qat_qtensor q = typed(t->type);
    q.scale = 1.0f;
    q.source_index = index;
    snprintf(q.name, sizeof q.name, "%s", t->name);
    qat_status st = check_data(im, index);
    if (!st)
        st = take_data(im, index, &q.data);
    if (st)
        return st;
    float const scale = fb_f32_at(&t->scales, 0);
    q.scale = scale >= 0.0f && !isinf(scale) ? scale : 1.0f;
    st = tfl_append(im, &q, &(tfl_shape){1, {channels}}, tensor);
    v->tensor = *tensor;
    return st;
}

/* ------------------------------------------------------------------ integers known now */

/** Read the values of an integer constant of the file, once. */
static qat_status read_ints(tfl_importer *im, int index)
{
    tfl_value *v = &im->values[index];
    const tfl_tensor *t = &im->model->tensors[index];
    qat_status const st = check_data(im, index);
    if (st)
        return st;
    size_t const bytes = item_bytes(t->type), count = t->data_bytes / bytes;
    if (count > TFL_MAX_KNOWN_INTS)
        return tfl_refuse(im, "tensor %d (%s) holds %zu integers", index, t->name, count);
    int64_t *ints = qat_arena_array(&im->arena, count, sizeof *ints);
    if (!ints)
        return qat_out_of_memory(im->err, NULL);
    fb_vector const items = {(fb_file *)&im->model->file, (size_t)(t->data - im->model->file.bytes),
                             (uint32_t)count};
    for (uint32_t i = 0; i < count; i++)
        ints[i] = bytes == 8 ? fb_i64_at(&items, i) : fb_i32_at(&items, i);
    v->ints = ints;
    v->n_ints = (int)count;
    return QAT_OK;
}

bool tfl_is_known(tfl_importer *im, int i)
{
    const tfl_value *v = tfl_value_of(im, i);
    const tfl_tensor *t = tfl_tensor_of(im, i);
    return v && (v->ints || (t->data && (t->type == TFL_INT32 || t->type == TFL_INT64)));
}

qat_status tfl_ints(tfl_importer *im, int i, const char *what, const int64_t **values, int *count)
{
    const tfl_value *v = tfl_value_of(im, i);
    *values = NULL;
    *count = 0;
    if (!v)
        return tfl_refuse(im, "%s (input %d) is missing", what, i);
    int const index = im->op->inputs[i];
    if (!tfl_is_known(im, i))
        return tfl_refuse(im, "%s, tensor %d (%s), is not an integer constant", what, index,
                          name_of(im, index));
    qat_status const st = v->ints ? QAT_OK : read_ints(im, index);
    *values = v->ints;
    *count = v->n_ints;
    return st;
}

qat_status tfl_int(tfl_importer *im, int i, const char *what, int64_t *value)
{
    const int64_t *values;
    int count;
    qat_status const st = tfl_ints(im, i, what, &values, &count);
    if (!st && count != 1)
        return tfl_refuse(im, "%s has %d values instead of one", what, count);
    *value = st ? 0 : values[0];
    return st;
}

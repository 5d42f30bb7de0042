/** The table of ops, and those that become one operator with an option or two. */
#include "export/tflite/out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ appending */

/** An operator: the table of its options, its version for uint8 and float32, and for others. */
struct kind {
    int code, options, version_u8, version;
};

static const struct kind kinds[] = {
    {TFL_ADD, TFL_OPTIONS_ADD, 1, 2},
    {TFL_AVERAGE_POOL_2D, TFL_OPTIONS_POOL_2D, 1, 2},
    {TFL_CONCATENATION, TFL_OPTIONS_CONCATENATION, 1, 2},
    {TFL_CONV_2D, TFL_OPTIONS_CONV_2D, 1, 3},
    {TFL_DEPTHWISE_CONV_2D, TFL_OPTIONS_DEPTHWISE_CONV_2D, 2, 3},
    {TFL_DEQUANTIZE, TFL_OPTIONS_DEQUANTIZE, 1, 2},
    {TFL_FULLY_CONNECTED, TFL_OPTIONS_FULLY_CONNECTED, 1, 4},
    {TFL_L2_NORMALIZATION, TFL_OPTIONS_L2_NORM, 1, 2},
    {TFL_LOGISTIC, TFL_NO_OPTIONS, 1, 2},
    {TFL_MAX_POOL_2D, TFL_OPTIONS_POOL_2D, 1, 2},
    {TFL_MUL, TFL_OPTIONS_MUL, 1, 2},
    {TFL_RELU, TFL_NO_OPTIONS, 1, 2},
    {TFL_RELU_N1_TO_1, TFL_NO_OPTIONS, 1, 1},
    {TFL_RELU6, TFL_NO_OPTIONS, 1, 2},
    {TFL_RESHAPE, TFL_OPTIONS_RESHAPE, 1, 1},
    {TFL_RESIZE_BILINEAR, TFL_OPTIONS_RESIZE_BILINEAR, 3, 3},
    {TFL_SOFTMAX, TFL_OPTIONS_SOFTMAX, 1, 2},
    {TFL_TANH, TFL_NO_OPTIONS, 1, 2},
    {TFL_PAD, TFL_OPTIONS_PAD, 1, 2},
    {TFL_GATHER, TFL_OPTIONS_GATHER, 1, 2},
    {TFL_TRANSPOSE, TFL_OPTIONS_TRANSPOSE, 1, 2},
    {TFL_MEAN, TFL_OPTIONS_REDUCER, 1, 2},
    {TFL_SUB, TFL_OPTIONS_SUB, 1, 2},
    {TFL_STRIDED_SLICE, TFL_OPTIONS_STRIDED_SLICE, 1, 2},
    {TFL_CAST, TFL_OPTIONS_CAST, 1, 1},
    {TFL_PRELU, TFL_NO_OPTIONS, 1, 1},
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 1, 2},
    {TFL_ARG_MAX, TFL_OPTIONS_ARG_MAX, 1, 2},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 1, 2},
    {TFL_PADV2, TFL_OPTIONS_PADV2, 1, 2},
    {TFL_TRANSPOSE_CONV, TFL_OPTIONS_TRANSPOSE_CONV, 3, 3},
    {TFL_RESIZE_NEAREST_NEIGHBOR, TFL_OPTIONS_RESIZE_NEAREST_NEIGHBOR, 3, 3},
    {TFL_LEAKY_RELU, TFL_OPTIONS_LEAKY_RELU, 1, 2},
    {TFL_QUANTIZE, TFL_OPTIONS_QUANTIZE, 1, 1},
    {TFL_HARD_SWISH, TFL_OPTIONS_HARD_SWISH, 1, 1},
    {TFL_BATCH_MATMUL, TFL_OPTIONS_BATCH_MATMUL, 1, 2},
    {TFL_LOG_SOFTMAX, TFL_OPTIONS_LOG_SOFTMAX, 1, 2},
    {TFL_SUM, TFL_OPTIONS_REDUCER, 1, 2},
    {TFL_REDUCE_MAX, TFL_OPTIONS_REDUCER, 1, 2},
    {TFL_REDUCE_MIN, TFL_OPTIONS_REDUCER, 1, 2},
    {TFL_REDUCE_ANY, TFL_OPTIONS_REDUCER, 1, 1},
    {TFL_REDUCE_ALL, TFL_OPTIONS_REDUCER, 1, 1},
    {TFL_LOGICAL_OR, TFL_OPTIONS_LOGICAL_OR, 1, 1},
    {TFL_LOGICAL_AND, TFL_OPTIONS_LOGICAL_AND, 1, 1},
    {TFL_LOGICAL_NOT, TFL_OPTIONS_LOGICAL_NOT, 1, 1},
    {TFL_EQUAL, TFL_OPTIONS_EQUAL, 1, 2},
    {TFL_NOT_EQUAL, TFL_OPTIONS_NOT_EQUAL, 1, 2},
    {TFL_GREATER, TFL_OPTIONS_GREATER, 1, 2},
    {TFL_GREATER_EQUAL, TFL_OPTIONS_GREATER_EQUAL, 1, 2},
    {TFL_LESS, TFL_OPTIONS_LESS, 1, 2},
    {TFL_LESS_EQUAL, TFL_OPTIONS_LESS_EQUAL, 1, 2},
    {TFL_SELECT_V2, TFL_OPTIONS_SELECT_V2, 1, 1},
    {TFL_DIV, TFL_OPTIONS_DIV, 2, 2},
    {TFL_SQUARED_DIFFERENCE, TFL_OPTIONS_SQUARED_DIFFERENCE, 1, 2},
    {TFL_ABS, TFL_OPTIONS_ABS, 1, 3},
    {TFL_EXP, TFL_OPTIONS_EXP, 1, 2},
    {TFL_GELU, TFL_OPTIONS_GELU, 1, 2},
    {TFL_SVDF, TFL_OPTIONS_SVDF, 3, 3},
    {TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, TFL_OPTIONS_UNIDIRECTIONAL_SEQUENCE_LSTM, 2, 2},
};

tfo_operator *tfo_append(tfo *o, int code, int n_inputs, const int *inputs, int output)
{
    tfo_operator *op = tfo_add_operator(&o->file, code, n_inputs, inputs, output);
    for (size_t i = 0; op && i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code) {
            op->options_type = kinds[i].options;
            int const type = o->file.tensors[inputs[0]].type;
            op->version =
                type == TFL_UINT8 || type == TFL_FLOAT32 ? kinds[i].version_u8 : kinds[i].version;
        }
    return op;
}

static void add_option(tfo_operator *op, int field, uint32_t bits)
{
    if (op)
        op->options[op->n_options++] = (tfo_option){field, bits};
}

void tfo_option_int(tfo_operator *op, int field, int value)
{
    add_option(op, field, (uint32_t)value);
}

void tfo_option_float(tfo_operator *op, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_option(op, field, bits);
}

qat_status tfo_refuse(const tfo *o, const char *format, ...)
{
    char text[QAT_ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return qat_fail(o->err, QAT_ERR_UNSUPPORTED, "%s", text);
}

/* ------------------------------------------------------------------ clamps */

qat_qtensor tfo_with_all_bits(const qat_qtensor *t)
{
    qat_qtensor all = *t;
    all.bits = tfo_is_truth(t) ? 1 : 8 * (int)qi_type_bytes(t->type);
    return all;
}

static const float bounds[][2] = {[TFL_ACT_NONE] = {-INFINITY, INFINITY},
                                  [TFL_ACT_RELU] = {0, INFINITY},
                                  [TFL_ACT_RELU_N1_TO_1] = {-1, 1},
                                  [TFL_ACT_RELU6] = {0, 6}};

static bool is_clamp(const qat_qtensor *y, int activation, int32_t lo, int32_t hi)
{
    qat_qtensor const all = tfo_with_all_bits(y);
    int32_t its_lo, its_hi;
    qat_clamp_codes(&all, bounds[activation][0], bounds[activation][1], &its_lo, &its_hi);
    return its_lo == lo && its_hi == hi;
}

tfo_clamp tfo_begin_clamp(tfo *o, bool has_activation, int32_t lo, int32_t hi)
{
    tfo_clamp clamp = {.lo = lo, .hi = hi, .direct = tfo_output_index(o)};
    for (int a = TFL_ACT_NONE; a <= (has_activation ? TFL_ACT_RELU6 : TFL_ACT_NONE); a++)
        if (is_clamp(tfo_output(o), a, lo, hi)) {
            clamp.activation = a;
            return clamp;
        }
    clamp.direct = tfo_between(o, tfo_output(o), "before_clamp");
    return clamp;
}

void tfo_limit(tfo *o, const qat_qtensor *y, int from, int to, int32_t lo, int32_t hi)
{
    qat_qtensor const all = tfo_with_all_bits(y);
    int32_t lowest, highest;
    int at = from;
    qat_tensor_codes(&all, &lowest, &highest);
    if (lo > lowest) {
        int const inputs[] = {at, tfo_code(o, y, "lowest", lo)};
        at = hi == highest ? to : tfo_between(o, y, "raised");
        tfo_append(o, TFL_MAXIMUM, 2, inputs, at);
    }
    if (hi < highest)
        tfo_append(o, TFL_MINIMUM, 2, (const int[]){at, tfo_code(o, y, "highest", hi)}, to);
}

void tfo_end_clamp(tfo *o, const tfo_clamp *clamp)
{
    int const y = tfo_output_index(o);
    if (clamp->direct != y)
        tfo_limit(o, tfo_output(o), clamp->direct, y, clamp->lo, clamp->hi);
}

void tfo_reshape(tfo *o, int from)
{
    const qat_qtensor *y = tfo_output(o);
    int const shape = tfo_ints(o, "shape", y->rank, y->dims);
    tfo_append(o, TFL_RESHAPE, 2, (const int[]){from, shape}, tfo_output_index(o));
}

void tfo_writes(tfo *o, int tensor)
{
    o->written[o->op - o->graph->ops] = tensor;
}

/* ------------------------------------------------------------------ options or none */

/** Append an operator with all inputs of the op. */
tfo_operator *tfo_append_all(tfo *o, int code, int output)
{
    int inputs[TFL_MAX_OPERANDS];
    int const n = o->op->n_inputs;
    for (int i = 0; i < n; i++)
        inputs[i] = tfo_input_index(o, i);
    return tfo_append(o, code, n, inputs, output);
}

qat_status tfo_plain(tfo *o, int code)
{
    tfo_append_all(o, code, tfo_output_index(o));
    return QAT_OK;
}

tfo_clamp tfo_begin_own_clamp(tfo *o, bool has_activation)
{
    const int32_t *end = o->op->params + o->op->n_params;
    tfo_clamp const c = tfo_begin_clamp(o, has_activation, end[-2], end[-1]);
    tfo_writes(o, c.direct);
    return c;
}

/** ADD and the like have an activation. */
static qat_status write_activated(tfo *o, int code)
{
    tfo_clamp const c = tfo_begin_own_clamp(o, true);
    tfo_operator *to = tfo_append_all(o, code, c.direct);
    tfo_option_int(to, BINARY_ACTIVATION, c.activation);
    if (tfo_output(o)->type == QI_S16 && (code == TFL_ADD || code == TFL_SUB))
        tfo_option_int(to, BINARY_POWER_OF_TWO, o->op->params[0] == 1);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

static qat_status write_clamped(tfo *o, int code)
{
    tfo_clamp const c = tfo_begin_own_clamp(o, false);
    tfo_append_all(o, code, c.direct);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

static qat_status write_batch_matmul(tfo *o, int code)
{
    tfo_clamp const c = tfo_begin_own_clamp(o, false);
    tfo_operator *to = tfo_append_all(o, code, c.direct);
    tfo_option_int(to, BATCH_MATMUL_ADJ_X, o->op->params[0]);
    tfo_option_int(to, BATCH_MATMUL_ADJ_Y, o->op->params[1]);
    tfo_end_clamp(o, &c);
    return QAT_OK;
}

static qat_status write_concat(tfo *o, int code)
{
    tfo_option_int(tfo_append_all(o, code, tfo_output_index(o)), CONCATENATION_AXIS,
                   o->op->params[0]);
    return QAT_OK;
}

static qat_status write_reshape(tfo *o, int code)
{
    (void)code;
    tfo_reshape(o, tfo_input_index(o, 0));
    return QAT_OK;
}

/** Does real give the op's multiplier? */
static bool is_multiplier(const tfo *o, double real)
{
    int32_t mult, shift;
    qat_requantize_multiplier(real, &mult, &shift);
    return mult == o->op->params[0] && shift == o->op->params[1];
}

/** A RELU of its own: the activation whose clamp is lo..hi, or leaves at least that; 0: none. */
static int relu_of(const qat_qtensor *y, int32_t lo, int32_t hi, bool exactly)
{
    qat_qtensor const all = tfo_with_all_bits(y);
    int32_t its_lo, its_hi;
    for (int a = TFL_ACT_RELU; a <= TFL_ACT_RELU6; a++) {
        if (a == TFL_ACT_RELU_N1_TO_1 && y->type == QI_S16) /* there is none */
            continue;
        qat_clamp_codes(&all, bounds[a][0], bounds[a][1], &its_lo, &its_hi);
        if (exactly ? its_lo == lo && its_hi == hi : its_lo <= lo && its_hi >= hi)
            return a;
    }
    return 0;
}

/**
 * QUANTIZE, or a RELU of its own. The multiplier of a RELU is a float32, that of QUANTIZE a
 * float64: the operator is chosen by it, and what its clamp leaves is clamped behind it.
 */
static qat_status write_requantize(tfo *o, int code)
{
    static const int relus[] = {[TFL_ACT_RELU] = TFL_RELU,
                                [TFL_ACT_RELU_N1_TO_1] = TFL_RELU_N1_TO_1,
                                [TFL_ACT_RELU6] = TFL_RELU6};
    const qat_qtensor *x = tfo_input(o, 0), *y = tfo_output(o);
    const int32_t *p = o->op->params;
    bool const quantizes = is_multiplier(o, (double)x->scale / (double)y->scale);
    bool const relu = x->type == y->type && is_multiplier(o, (double)(x->scale / y->scale));
    int const exact = relu && !(quantizes && is_clamp(y, TFL_ACT_NONE, p[2], p[3]))
                          ? relu_of(y, p[2], p[3], true)
                          : 0;
    int const wider = relu && !quantizes && !exact ? relu_of(y, p[2], p[3], false) : 0;
    if (exact)
        return tfo_plain(o, relus[exact]);
    return write_clamped(o, wider ? relus[wider] : code);
}

/* ------------------------------------------------------------------ moves */

static qat_status write_pad(tfo *o, int code)
{
    const qat_qtensor *x = tfo_input(o, 0);
    const int32_t *p = o->op->params;
    int32_t pads[2 * QI_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        pads[2 * i] = p[i];
        pads[2 * i + 1] = p[QI_MAX_RANK + i];
    }
    bool const zeros = p[2 * QI_MAX_RANK] == tfo_output(o)->zero_point;
    int inputs[3] = {tfo_input_index(o, 0)};
    inputs[1] = tfo_ints(o, "paddings", 2 * x->rank, pads);
    tfo_tensor *paddings = &o->file.tensors[inputs[1]];
    paddings->rank = 2;
    paddings->dims[0] = x->rank;
    paddings->dims[1] = 2;
    if (!zeros)
        inputs[2] = tfo_code(o, tfo_output(o), "value", p[2 * QI_MAX_RANK]);
    tfo_append(o, zeros ? code : TFL_PADV2, zeros ? 2 : 3, inputs, tfo_output_index(o));
    return QAT_OK;
}

static qat_status write_resize(tfo *o, int code)
{
    bool const bilinear = code == TFL_RESIZE_BILINEAR;
    int const inputs[] = {tfo_input_index(o, 0), tfo_ints(o, "size", 2, &tfo_output(o)->dims[1])};
    tfo_operator *to = tfo_append(o, code, 2, inputs, tfo_output_index(o));
    tfo_option_int(to, bilinear ? RESIZE_BILINEAR_ALIGN_CORNERS : RESIZE_NEAREST_ALIGN_CORNERS,
                   o->op->params[0]);
    tfo_option_int(to, bilinear ? RESIZE_BILINEAR_HALF_PIXEL : RESIZE_NEAREST_HALF_PIXEL,
                   o->op->params[1]);
    return QAT_OK;
}

static qat_status write_arg_max(tfo *o, int code)
{
    int const inputs[] = {tfo_input_index(o, 0), tfo_ints(o, "axis", 1, o->op->params)};
    tfo_option_int(tfo_append(o, code, 2, inputs, tfo_output_index(o)), ARG_MAX_TYPE,
                   tfo_output(o)->type == QI_S64 ? TFL_INT64 : TFL_INT32);
    return QAT_OK;
}

/** Backwards to the first position: an end of -1 would mean the last one, so a mask says it. */
static qat_status write_strided_slice(tfo *o, int code)
{
    const qat_qtensor *y = tfo_output(o);
    const int32_t *begin = o->op->params, *stride = begin + QI_MAX_RANK;
    int32_t end[QI_MAX_RANK];
    int end_mask = 0;
    for (int i = 0; i < y->rank; i++) {
        end[i] = begin[i] + (y->dims[i] - 1) * stride[i] + (stride[i] > 0 ? 1 : -1);
        end_mask |= (end[i] < 0) << i;
    }
    int const inputs[] = {tfo_input_index(o, 0), tfo_ints(o, "begin", y->rank, begin),
                          tfo_ints(o, "end", y->rank, end),
                          tfo_ints(o, "strides", y->rank, stride)};
    tfo_option_int(tfo_append(o, code, 4, inputs, tfo_output_index(o)), SLICE_END_MASK, end_mask);
    return QAT_OK;
}

/** One index leaves no dimension if the file says that it is a scalar. */
static qat_status write_gather(tfo *o, int code)
{
    const qat_qtensor *x = tfo_input(o, 0), *indices = tfo_input(o, 1);
    int const rank = x->rank - 1 + indices->rank - o->op->params[1];
    if (tfo_output(o)->rank != rank) {
        if (!indices->data || qat_qtensor_count(indices) != 1 || tfo_output(o)->rank != rank - 1)
            return tfo_refuse(o, "its output has another shape than its indices give");
        o->file.tensors[tfo_input_index(o, 1)].rank = 0;
    }
    tfo_operator *to = tfo_append_all(o, code, tfo_output_index(o));
    tfo_option_int(to, GATHER_AXIS, o->op->params[0]);
    tfo_option_int(to, GATHER_BATCH_DIMS, o->op->params[1]);
    return QAT_OK;
}

static qat_status write_transpose(tfo *o, int code)
{
    int const inputs[] = {tfo_input_index(o, 0),
                          tfo_ints(o, "perm", tfo_input(o, 0)->rank, o->op->params)};
    tfo_append(o, code, 2, inputs, tfo_output_index(o));
    return QAT_OK;
}

/* ------------------------------------------------------------------ the table */

static const struct row {
    const char *op;
    int code;
    tfo_write_fn *write;
} rows[] = {
    {"add", TFL_ADD, write_activated},
    {"arg_max", TFL_ARG_MAX, write_arg_max},
    {"average_pool2d", TFL_AVERAGE_POOL_2D, tfo_average_pool2d},
    {"batch_matmul", TFL_BATCH_MATMUL, write_batch_matmul},
    {"cast", TFL_CAST, tfo_cast},
    {"compare", TFL_EQUAL, tfo_compare},
    {"concat", TFL_CONCATENATION, write_concat},
    {"conv2d", TFL_CONV_2D, tfo_conv2d},
    {"depthwise_conv2d", TFL_DEPTHWISE_CONV_2D, tfo_depthwise_conv2d},
    {"div", TFL_DIV, write_activated},
    {"fully_connected", TFL_FULLY_CONNECTED, tfo_fully_connected},
    {"gather", TFL_GATHER, write_gather},
    {"l2_normalization", TFL_L2_NORMALIZATION, tfo_plain},
    {"log_softmax", TFL_LOG_SOFTMAX, tfo_plain},
    {"logistic", TFL_LOGISTIC, tfo_plain},
    {"lstm", TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, tfo_lstm},
    {"max_pool2d", TFL_MAX_POOL_2D, tfo_max_pool2d},
    {"maximum", TFL_MAXIMUM, tfo_extreme},
    {"mean", TFL_MEAN, tfo_mean},
    {"minimum", TFL_MINIMUM, tfo_extreme},
    {"mul", TFL_MUL, write_activated},
    {"pad", TFL_PAD, write_pad},
    {"prelu", TFL_PRELU, tfo_prelu},
    {"reduce", TFL_REDUCE_MAX, tfo_reduce},
    {"requantize", TFL_QUANTIZE, write_requantize},
    {"reshape", TFL_RESHAPE, write_reshape},
    {"resize_bilinear", TFL_RESIZE_BILINEAR, write_resize},
    {"resize_nearest", TFL_RESIZE_NEAREST_NEIGHBOR, write_resize},
    {"select", TFL_SELECT_V2, tfo_plain},
    {"softmax", TFL_SOFTMAX, tfo_softmax},
    {"softmax16", TFL_SOFTMAX, tfo_softmax},
    {"squared_difference", TFL_SQUARED_DIFFERENCE, write_clamped},
    {"strided_slice", TFL_STRIDED_SLICE, write_strided_slice},
    {"sub", TFL_SUB, write_activated},
    {"sum", TFL_SUM, tfo_mean},
    {"svdf", TFL_SVDF, tfo_svdf},
    {"table", TFL_GATHER, tfo_table},
    {"tanh", TFL_TANH, tfo_plain},
    {"transpose", TFL_TRANSPOSE, write_transpose},
    {"transpose_conv2d", TFL_TRANSPOSE_CONV, tfo_transpose_conv2d},
};

qat_status tfo_write_op(tfo *o)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(o->op->op, rows[i].op)) {
            tfo_writes(o, tfo_output_index(o));
            return rows[i].write(o, rows[i].code);
        }
    return tfo_refuse(o, "TensorFlow Lite has no such operator, or it is not written yet");
}

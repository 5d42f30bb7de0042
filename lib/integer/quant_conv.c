/**
 * conv2d, depthwise_conv2d, transpose_conv2d, fully_connected: Jacob et al. section 2.2-2.4,
 * docs/arithmetic.md, section 3.
 *
 *     acc = sum (q - Z)(w - Zw) + bias                                        int32
 *     y   = clamp(Z3 + round(M acc)),   M = S1 S2 / S3
 *
 *     profile, op                  M                                     rounding
 *     paper                        float64                               QI_ROUND_TWICE
 *     tflite conv, int8            float64                               QI_ROUND_TWICE
 *     tflite conv, uint8           S1 S2 in float32, / S3 in float64     QI_ROUND_TWICE
 *     tflite fully_connected       float64                               QI_ROUND_DOUBLE
 *     onnx                         every operation in float32            QI_ROUND_EVEN
 *
 * There is one M per output channel if the weights have one scale per channel. exact_conv.c
 * evaluates these ops exactly.
 */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

#include <string.h>

/* ------------------------------------------------------------------ appending the ops */

struct accumulate {
    const qat_emit *e;
    bool depthwise, fully_connected;
    int inputs[QAT_ACCUMULATE_INPUTS];
    int channels;      /* of the output */
    int n_multipliers; /* channels, or 1 */
    int64_t max_accumulator;
    qi_rounding rounding;
};

static const qat_qtensor *tensor(const struct accumulate *a, int input)
{
    return &a->e->graph->tensors[a->inputs[input]];
}

double qat_accumulator_multiplier(float s1, float s2, float s3, bool in_float32)
{
    double const product = in_float32 ? (double)(s1 * s2) : (double)s1 * (double)s2;
    return product / (double)s3;
}

static double multiplier(const struct accumulate *a, int channel)
{
    const qat_qtensor *x = tensor(a, QAT_IN_X), *w = tensor(a, QAT_IN_WEIGHTS);
    float const s2 = w->channel_scales ? w->channel_scales[channel] : w->scale;
    if (a->e->profile == QAT_PROFILE_ONNX)
        return (double)(x->scale * s2 / a->e->graph->tensors[a->e->output].scale);
    bool const in_float32 =
        a->e->profile == QAT_PROFILE_TFLITE && x->type == QI_U8 && !a->fully_connected;
    return qat_accumulator_multiplier(x->scale, s2, a->e->graph->tensors[a->e->output].scale,
                                      in_float32);
}

/** mult [n] and shift [n], or the significand's halves [n, 2] and exponent [n]. */
static void fill_multipliers(const struct accumulate *a, bool split, int32_t *mult, int32_t *shift)
{
    for (int c = 0; c < a->n_multipliers; c++) {
        if (split) {
            int64_t significand;
            int exponent;
            qat_split_multiplier(multiplier(a, c), &significand, &exponent);
            mult[2 * c] = (int32_t)(uint32_t)significand;
            mult[2 * c + 1] = (int32_t)(significand >> 32);
            shift[c] = exponent;
        } else {
            qat_requantize_multiplier(multiplier(a, c), &mult[c], &shift[c]);
        }
    }
}

static qat_status append_vector(struct accumulate *a, int input, const char *part, int rows,
                                int columns, const int32_t *values, qat_error *err)
{
    char name[QAT_NAME_MAX];
    qat_part_name(name, a->e->name, part);
    a->inputs[input] = qat_qgraph_constant_s32(a->e->graph, name, rows, columns, values, err);
    return qat_append_status(a->inputs[input], err);
}

static qat_status append_multipliers(struct accumulate *a, bool split, qat_error *err)
{
    int const columns = split ? 2 : 1;
    int32_t *mult =
        qat_arena_array(a->e->graph->memory, (size_t)a->n_multipliers * 3, sizeof *mult);
    if (!mult)
        return qat_out_of_memory(err, a->e->name);
    int32_t *shift = mult + 2 * a->n_multipliers;
    fill_multipliers(a, split, mult, shift);
    qat_status const st =
        append_vector(a, QAT_IN_MULT, "mult", a->n_multipliers, columns, mult, err);
    return st ? st : append_vector(a, QAT_IN_SHIFT, "shift", a->n_multipliers, 1, shift, err);
}

static qat_status append_zero_bias(struct accumulate *a, qat_error *err)
{
    int32_t *zeros = qat_arena_array(a->e->graph->memory, (size_t)a->channels, sizeof *zeros);
    if (!zeros)
        return qat_out_of_memory(err, a->e->name);
    return append_vector(a, QAT_IN_BIAS, "bias_codes", a->channels, 1, zeros, err);
}

/**
 * How a layer rounds. Accumulators of 16-bit codes have 64 bits in TensorFlow Lite, unless the bias
 * has 32.
 */
static qi_rounding rounding_of(const struct accumulate *a)
{
    if (a->fully_connected && a->e->profile == QAT_PROFILE_TFLITE)
        return QI_ROUND_DOUBLE;
    if (a->e->profile == QAT_PROFILE_ONNX)
        return QI_ROUND_EVEN;
    bool const has_short_bias =
        a->inputs[QAT_IN_BIAS] >= 0 && tensor(a, QAT_IN_BIAS)->type == QI_S32;
    return tensor(a, QAT_IN_X)->type == QI_S16 && !has_short_bias ? QI_ROUND_LONG : QI_ROUND_TWICE;
}

/**
 * Append the constants of an accumulating op: a bias if there is none, and the multipliers. Also
 * find the bound.
 */
static qat_status begin(struct accumulate *a, qat_error *err)
{
    const qat_emit *e = a->e;
    memcpy(a->inputs, e->inputs, QAT_IN_MULT * sizeof *a->inputs);
    const qat_qtensor *w = tensor(a, QAT_IN_WEIGHTS);
    a->channels = w->dims[a->depthwise ? w->rank - 1 : 0];
    a->n_multipliers = w->channel_scales ? a->channels : 1;
    a->rounding = rounding_of(a);
    qat_status st = a->inputs[QAT_IN_BIAS] < 0 ? append_zero_bias(a, err) : QAT_OK;
    if (!st)
        st = qat_largest_accumulator(tensor(a, QAT_IN_X), tensor(a, QAT_IN_WEIGHTS),
                                     tensor(a, QAT_IN_BIAS), a->depthwise, a->rounding, e->name,
                                     &a->max_accumulator, err);
    return st ? st : append_multipliers(a, a->rounding == QI_ROUND_DOUBLE, err);
}

static qat_status finish(const struct accumulate *a, const char *op, int n_params, int32_t *params,
                         qat_error *err)
{
    qat_emit with_constants = *a->e;
    with_constants.n_inputs = QAT_ACCUMULATE_INPUTS;
    with_constants.inputs = a->inputs;
    qat_clamp_codes(&a->e->graph->tensors[a->e->output], a->e->act_min, a->e->act_max,
                    &params[n_params - 2], &params[n_params - 1]);
    return qat_emit_op(&with_constants, op, a->rounding, n_params, params, a->max_accumulator, err);
}

/** Append either convolution. Their seventh parameter is groups or the depth multiplier. */
static qat_status emit_windowed(const qat_emit *e, const char *op, bool depthwise,
                                const qat_window *window, qat_error *err)
{
    struct accumulate a = {.e = e, .depthwise = depthwise};
    qat_status const st = begin(&a, err);
    if (st)
        return st;
    const qat_qtensor *x = tensor(&a, QAT_IN_X), *w = tensor(&a, QAT_IN_WEIGHTS);
    const qat_qtensor *y = &e->graph->tensors[e->output];
    qat_window of_weights = *window;
    int32_t pads[2];
    of_weights.kernel_h = w->dims[1];
    of_weights.kernel_w = w->dims[2];
    qat_window_pads(&of_weights, x, y, pads);
    int const multiple = depthwise ? w->dims[3] / x->dims[3] : x->dims[3] / w->dims[3];
    int32_t params[] = {window->stride_h,
                        window->stride_w,
                        window->dilation_h,
                        window->dilation_w,
                        pads[0],
                        pads[1],
                        multiple,
                        0,
                        0};
    return finish(&a, op, 9, params, err);
}

qat_status qat_emit_conv2d(const qat_emit *e, const qat_window *window, qat_error *err)
{
    return emit_windowed(e, "conv2d", false, window, err);
}

qat_status qat_emit_depthwise_conv2d(const qat_emit *e, const qat_window *window, qat_error *err)
{
    return emit_windowed(e, "depthwise_conv2d", true, window, err);
}

/** Those of the convolution that this one transposes, which goes from out to in. */
static int transposed_pad(int out, int kernel, int stride, bool same)
{
    int const in = same ? (out + stride - 1) / stride : (out + stride - kernel) / stride;
    return qat_pad_before(out, in, kernel, stride, 1);
}

void qat_transposed_pads(qat_window *window, const qat_qtensor *y, bool same)
{
    window->pad_top = transposed_pad(y->dims[1], window->kernel_h, window->stride_h, same);
    window->pad_left = transposed_pad(y->dims[2], window->kernel_w, window->stride_w, same);
}

qat_status qat_emit_transpose_conv2d(const qat_emit *e, const qat_window *window, qat_error *err)
{
    struct accumulate a = {.e = e};
    qat_status const st = begin(&a, err);
    int32_t params[] = {
        window->stride_h, window->stride_w, window->pad_top, window->pad_left, 0, 0};
    return st ? st : finish(&a, "transpose_conv2d", 6, params, err);
}

qat_status qat_emit_fully_connected(const qat_emit *e, qat_error *err)
{
    struct accumulate a = {.e = e, .fully_connected = true};
    int32_t params[2];
    qat_status const st = begin(&a, err);
    return st ? st : finish(&a, "fully_connected", 2, params, err);
}

/* ------------------------------------------------------------------ freeze */

/** Weights and bias of the layer as constants; inputs: x, weights, bias. */
static qat_status freeze_constants(const qat_fused_layer *layer, bool depthwise, int inputs[3],
                                   qat_error *err)
{
    inputs[QAT_IN_X] = layer->inputs[0];
    qat_status st = qat_freeze_weights(layer, layer->weights, &inputs[QAT_IN_WEIGHTS], err);
    if (!st)
        st = qat_freeze_bias(layer, inputs[QAT_IN_WEIGHTS], depthwise, &inputs[QAT_IN_BIAS], err);
    return st;
}

static qat_emit emit_of_constants(const qat_fused_layer *layer, const int inputs[3])
{
    qat_emit e = qat_emit_of(layer);
    e.n_inputs = 3;
    e.inputs = inputs;
    return e;
}

static qat_status freeze_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    int inputs[3];
    qat_window window;
    qat_status st = qat_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, false, inputs, err);
    qat_emit const e = emit_of_constants(layer, inputs);
    return st ? st : qat_emit_conv2d(&e, &window, err);
}

static qat_status freeze_depthwise_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    int inputs[3];
    qat_window window;
    qat_status st = qat_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, true, inputs, err);
    qat_emit const e = emit_of_constants(layer, inputs);
    return st ? st : qat_emit_depthwise_conv2d(&e, &window, err);
}

static qat_status freeze_transpose_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    int inputs[3];
    qat_window window;
    qat_status st = qat_transposed_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, false, inputs, err);
    qat_emit const e = emit_of_constants(layer, inputs);
    return st ? st : qat_emit_transpose_conv2d(&e, &window, err);
}

static qat_status freeze_fully_connected(const qat_fused_layer *layer, qat_error *err)
{
    int inputs[3];
    qat_status const st = freeze_constants(layer, false, inputs, err);
    qat_emit const e = emit_of_constants(layer, inputs);
    return st ? st : qat_emit_fully_connected(&e, err);
}

const qat_quant qat_quant_conv2d = {
    .role = QAT_ROLE_ACCUMULATE, .freeze = freeze_conv2d, .weight_params = 1};
const qat_quant qat_quant_depthwise_conv2d = {.role = QAT_ROLE_ACCUMULATE,
                                              .freeze = freeze_depthwise_conv2d,
                                              .weight_params = 1,
                                              .channel_axis = 3};
const qat_quant qat_quant_transpose_conv2d = {.role = QAT_ROLE_ACCUMULATE,
                                              .freeze = freeze_transpose_conv2d,
                                              .weight_params = 1,
                                              .transposed = true};
const qat_quant qat_quant_fully_connected = {
    .role = QAT_ROLE_ACCUMULATE, .freeze = freeze_fully_connected, .weight_params = 1};

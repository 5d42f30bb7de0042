/**
 * conv2d, depthwise_conv2d, transpose_conv2d, fully_connected: Jacob et al. section 2.2-2.4,
 * docs/arithmetic.md, section 3.
 *
 *     acc = sum (q - Z)(w - Zw) 2^f + bias                                    int32
 *     y   = clamp(Z3 + round(M 2^-f acc)),   M = S1 S2 / S3
 *
 *     profile, op                  M                                     rounding
 *     paper                        float64                               QI_ROUND_TWICE
 *     tflite conv, int8            float64                               QI_ROUND_TWICE
 *     tflite conv, uint8           S1 S2 in float32, / S3 in float64     QI_ROUND_TWICE
 *     tflite fully_connected       float64                               QI_ROUND_DOUBLE
 *     onnx                         every operation in float32            QI_ROUND_EVEN
 *
 * There is one M per output channel if the weights have one scale per channel. f > 0 only where
 * weights or input have fewer bits, and rounding TWICE (qat_wanted_fraction). exact_conv.c
 * evaluates these ops exactly.
 */
#include "autograd/ops/op.h"
#include "integer/quant_ops.h"

#include <math.h>
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

double qat_layer_multiplier(qat_profile profile, qat_layout layout, bool fully_connected, float s1,
                            float s2, float s3)
{
    bool const is_u8 = layout == QAT_LAYOUT_UINT8;
    if (profile == QAT_PROFILE_ONNX)
        return (double)(s1 * s2 / s3);
    return qat_accumulator_multiplier(s1, s2, s3,
                                      profile == QAT_PROFILE_TFLITE && is_u8 && !fully_connected);
}

static double multiplier(const struct accumulate *a, int channel)
{
    const qat_qtensor *x = tensor(a, QAT_IN_X), *w = tensor(a, QAT_IN_WEIGHTS);
    float const s2 = w->channel_scales ? w->channel_scales[channel] : w->scale;
    return qat_layer_multiplier(
        a->e->profile, x->type == QI_U8 ? QAT_LAYOUT_UINT8 : QAT_LAYOUT_INT8, a->fully_connected,
        x->scale, s2, a->e->graph->tensors[a->e->output].scale);
}

/** Of M 2^-f: mult [n] and shift [n], or the significand's halves [n, 2] and exponent [n]. */
static void fill_multipliers(const struct accumulate *a, bool split, int32_t *mult, int32_t *shift)
{
    for (int c = 0; c < a->n_multipliers; c++) {
        double const m = ldexp(multiplier(a, c), -a->e->fraction);
        if (split) {
            int64_t significand;
            int exponent;
            qat_split_multiplier(m, &significand, &exponent);
            mult[2 * c] = (int32_t)(uint32_t)significand;
            mult[2 * c + 1] = (int32_t)(significand >> 32);
            shift[c] = exponent;
        } else {
            qat_requantize_multiplier(m, &mult[c], &shift[c]);
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

/** LONG shifts 15 - shift bits to the right, at least 8. */
static qat_status check_long(const struct accumulate *a, qat_error *err)
{
    enum { MOST_SHIFT = 7 };
    for (int c = 0; c < a->n_multipliers && a->rounding == QI_ROUND_LONG; c++) {
        int32_t mult, shift;
        qat_requantize_multiplier(multiplier(a, c), &mult, &shift);
        if (shift > MOST_SHIFT)
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "%s: channel %d: a unit of its accumulator is %g codes of its output; "
                            "with 16-bit activations it must be less than %d",
                            a->e->name, c, multiplier(a, c), 1 << MOST_SHIFT);
    }
    return QAT_OK;
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
    qat_status st = check_long(a, err);
    if (!st && a->inputs[QAT_IN_BIAS] < 0)
        st = append_zero_bias(a, err);
    if (!st)
        st = qat_largest_accumulator(tensor(a, QAT_IN_X), tensor(a, QAT_IN_WEIGHTS),
                                     tensor(a, QAT_IN_BIAS), a->depthwise, a->rounding, e->fraction,
                                     e->name, &a->max_accumulator, err);
    return st ? st : append_multipliers(a, a->rounding == QI_ROUND_DOUBLE, err);
}

static qat_status finish(const struct accumulate *a, const char *op, int n_params, int32_t *params,
                         qat_error *err)
{
    qat_emit with_constants = *a->e;
    with_constants.n_inputs = QAT_ACCUMULATE_INPUTS;
    with_constants.inputs = a->inputs;
    qat_emit_clamp(a->e, &params[n_params - 2], &params[n_params - 1]);
    qat_status const st =
        qat_emit_op(&with_constants, op, a->rounding, n_params, params, a->max_accumulator, err);
    if (!st)
        a->e->graph->ops[a->e->graph->n_ops - 1].fraction = a->e->fraction;
    return st;
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

/** A layer that is being frozen: weights and bias become constants, then it becomes an op. */
struct frozen {
    qat_emit emit; /* its inputs: x, weights, bias */
    int inputs[3];
};

/** M of each channel. */
static void find_multipliers(const struct accumulate *a, double *m)
{
    for (int c = 0; c < a->channels; c++)
        m[c] = multiplier(a, c);
}

static qat_status freeze_bias(const qat_fused_layer *layer, struct frozen *z, bool depthwise,
                              bool fully_connected, qat_error *err)
{
    struct accumulate a = {
        .e = &z->emit, .depthwise = depthwise, .fully_connected = fully_connected};
    memcpy(a.inputs, z->inputs, sizeof z->inputs);
    const qat_qtensor *w = tensor(&a, QAT_IN_WEIGHTS);
    a.channels = w->dims[depthwise ? w->rank - 1 : 0];
    double *multipliers =
        qat_arena_array(layer->graph->memory, (size_t)a.channels, sizeof *multipliers);
    if (!multipliers)
        return qat_out_of_memory(err, layer->head->name);
    z->emit.fraction = qat_wanted_fraction(layer->options, layer->profile, fully_connected,
                                           tensor(&a, QAT_IN_X)->bits, w->bits);
    find_multipliers(&a, multipliers);
    qat_status const st = qat_silence_channels(layer, z->inputs[QAT_IN_WEIGHTS], depthwise,
                                               multipliers, z->emit.fraction, err);
    if (st)
        return st;
    find_multipliers(&a, multipliers);
    return qat_freeze_bias(layer, z->inputs[QAT_IN_WEIGHTS], depthwise, multipliers,
                           &z->emit.fraction, &z->inputs[QAT_IN_BIAS], err);
}

static qat_status freeze_constants(const qat_fused_layer *layer, bool depthwise,
                                   bool fully_connected, struct frozen *z, qat_error *err)
{
    *z = (struct frozen){.emit = qat_emit_of(layer), .inputs = {layer->inputs[0]}};
    z->emit.n_inputs = 3;
    z->emit.inputs = z->inputs;
    qat_status const st =
        qat_freeze_weights(layer, layer->weights, &z->inputs[QAT_IN_WEIGHTS], err);
    return st ? st : freeze_bias(layer, z, depthwise, fully_connected, err);
}

static qat_status freeze_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    struct frozen z;
    qat_window window;
    qat_status st = qat_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, false, false, &z, err);
    return st ? st : qat_emit_conv2d(&z.emit, &window, err);
}

static qat_status freeze_depthwise_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    struct frozen z;
    qat_window window;
    qat_status st = qat_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, true, false, &z, err);
    return st ? st : qat_emit_depthwise_conv2d(&z.emit, &window, err);
}

static qat_status freeze_transpose_conv2d(const qat_fused_layer *layer, qat_error *err)
{
    struct frozen z;
    qat_window window;
    qat_status st = qat_transposed_window_of(&window, layer->head, err);
    if (!st)
        st = freeze_constants(layer, false, false, &z, err);
    return st ? st : qat_emit_transpose_conv2d(&z.emit, &window, err);
}

static qat_status freeze_fully_connected(const qat_fused_layer *layer, qat_error *err)
{
    struct frozen z;
    qat_status const st = freeze_constants(layer, false, true, &z, err);
    return st ? st : qat_emit_fully_connected(&z.emit, err);
}

const qat_quant qat_quant_conv2d = {
    .role = QAT_ROLE_ACCUMULATE, .freeze = freeze_conv2d, .weight_params = 1, .takes_wide = true};
const qat_quant qat_quant_depthwise_conv2d = {.role = QAT_ROLE_ACCUMULATE,
                                              .freeze = freeze_depthwise_conv2d,
                                              .weight_params = 1,
                                              .channel_axis = 3,
                                              .takes_wide = true};
const qat_quant qat_quant_transpose_conv2d = {.role = QAT_ROLE_ACCUMULATE,
                                              .freeze = freeze_transpose_conv2d,
                                              .weight_params = 1,
                                              .transposed = true,
                                              .takes_wide = true};
const qat_quant qat_quant_fully_connected = {.role = QAT_ROLE_ACCUMULATE,
                                             .freeze = freeze_fully_connected,
                                             .weight_params = 1,
                                             .takes_wide = true};

/**
 * Operators with one input and an output of the same shape: ReLUs (a requantization with a clamp),
 * LOGISTIC, TANH, HARD_SWISH and LEAKY_RELU (tables), SOFTMAX, L2_NORMALIZATION.
 */
#include "convert/tflite/import.h"

#include <math.h>

qat_status tfl_elementwise(tfl_importer *im, int *input, int *output)
{
    tfl_shape shape;
    qat_status st = tfl_input_shape(im, 0, 0, 4, &shape);
    if (!st)
        st = tfl_input(im, 0, input);
    return st ? st : tfl_output(im, 0, &shape, *input, output);
}

static qat_status import_relu(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = tfl_elementwise(im, &input, &output);
    qat_emit e = tfl_emit(im, 1, &input, output);
    e.act_min = im->op->code == TFL_RELU_N1_TO_1 ? -1.0f : 0.0f;
    e.act_max = im->op->code == TFL_RELU6          ? 6.0f
                : im->op->code == TFL_RELU_N1_TO_1 ? 1.0f
                                                   : INFINITY;
    return st ? st : qat_emit_requantize(&e, im->err);
}

/** 16-bit logistic, tanh and softmax have 15 fractional bits. */
static qat_status check_wide_scale(tfl_importer *im, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    if (fabsf(y->scale - 1.0f / 32768) <= 1e-3f / 32768)
        return QAT_OK;
    return tfl_refuse(im, "its output has the scale %g; only 1/32768 is supported",
                      (double)y->scale);
}

/** The reference's table for LOGISTIC has one fixed scale; the one for TANH has any. */
static qat_status check_logistic_scale(tfl_importer *im, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    if (y->type == QI_S16)
        return check_wide_scale(im, output);
    if (im->op->code == TFL_TANH || y->scale == 1.0f / 256)
        return QAT_OK;
    return tfl_refuse(im, "its output has the scale %g; only 1/256 is supported", (double)y->scale);
}

static qat_status import_sigmoid(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status st = tfl_elementwise(im, &input, &output);
    if (!st)
        st = check_logistic_scale(im, output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_sigmoid(&e, im->op->code == TFL_TANH ? "tanh" : "logistic", im->err);
}

static qat_status import_leaky_relu(tfl_importer *im)
{
    int input = -1, output = -1;
    float const alpha = fb_f32(&im->op->options, LEAKY_RELU_ALPHA, 0.0f);
    qat_status st = tfl_elementwise(im, &input, &output);
    if (!st && !(fabsf(alpha) <= 1e6f))
        st = tfl_refuse(im, "its alpha is %g", (double)alpha);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_leaky_relu(&e, alpha, im->err);
}

/** Of 16-bit codes. */
static qat_status import_wide(tfl_importer *im, int *input, int *output)
{
    qat_status const st = tfl_elementwise(im, input, output);
    if (!st && im->graph->tensors[*input].type != QI_S16)
        return tfl_refuse(im, "only int16 is supported");
    return st;
}

static qat_status import_abs(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = import_wide(im, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_wide_abs(&e, im->err);
}

static float real_exp(float x)
{
    return expf(x);
}

static qat_status import_exp(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = import_wide(im, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_wide_table(&e, real_exp, im->err);
}

static qat_status import_hard_swish(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = tfl_elementwise(im, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_hard_swish(&e, im->err);
}

/** Its fixed-point arithmetic has only one output grid: scale 1/256, zero point the lowest code. */
static qat_status check_softmax_grid(tfl_importer *im, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    int32_t lo, hi;
    if (y->type == QI_S16)
        return check_wide_scale(im, output);
    qat_tensor_codes(y, &lo, &hi);
    if (y->zero_point == lo && fabsf(y->scale - 1.0f / 256) <= 1e-3f / 256)
        return QAT_OK;
    return tfl_refuse(im,
                      "its output has scale %g and zero point %d; only 1/256 and %d are supported",
                      (double)y->scale, (int)y->zero_point, (int)lo);
}

static qat_status import_softmax(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status st = tfl_elementwise(im, &input, &output);
    if (!st)
        st = check_softmax_grid(im, output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_softmax(&e, fb_f32(&im->op->options, SOFTMAX_BETA, 0.0f), im->err);
}

/** Its fixed-point arithmetic has only one output grid: scale 1/128, zero point in the middle. */
static qat_status check_l2_grid(tfl_importer *im, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    int32_t const middle = y->type == QI_S8 ? 0 : 128;
    if (y->zero_point == middle && fabsf(y->scale - 1.0f / 128) <= 1e-3f / 128)
        return QAT_OK;
    return tfl_refuse(im,
                      "its output has scale %g and zero point %d; only 1/128 and %d are supported",
                      (double)y->scale, (int)y->zero_point, (int)middle);
}

static qat_status import_l2_normalization(tfl_importer *im)
{
    int input = -1, output = -1;
    unsigned const activation = fb_u8(&im->op->options, L2_NORM_ACTIVATION, TFL_ACT_NONE);
    qat_status st = tfl_elementwise(im, &input, &output);
    if (!st)
        st = check_l2_grid(im, output);
    if (!st && activation != TFL_ACT_NONE)
        st = tfl_refuse(im, "fused activation %u is not supported (only NONE is)", activation);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_op(&e, "l2_normalization", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

const tfl_handler tfl_elementwise_handlers[] = {
    {TFL_RELU, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_RELU6, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_RELU_N1_TO_1, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_LOGISTIC, TFL_NO_OPTIONS, 1, 1, 1, import_sigmoid},
    {TFL_TANH, TFL_NO_OPTIONS, 1, 1, 1, import_sigmoid},
    {TFL_LEAKY_RELU, TFL_OPTIONS_LEAKY_RELU, 1, 1, 1, import_leaky_relu},
    {TFL_ABS, TFL_OPTIONS_ABS, 1, 1, 1, import_abs},
    {TFL_EXP, TFL_OPTIONS_EXP, 1, 1, 1, import_exp},
    {TFL_HARD_SWISH, TFL_OPTIONS_HARD_SWISH, 1, 1, 1, import_hard_swish},
    {TFL_L2_NORMALIZATION, TFL_OPTIONS_L2_NORM, 1, 1, 1, import_l2_normalization},
    {TFL_SOFTMAX, TFL_OPTIONS_SOFTMAX, 1, 1, 1, import_softmax},
    {0}};

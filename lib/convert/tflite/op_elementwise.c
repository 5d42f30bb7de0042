/**
 * Operators with one input and an output of the same shape: ReLUs (a requantization with a clamp),
 * functions of one code (tables), SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.
 */
#include "convert/tflite/import.h"

#include <math.h>

qat_status tfl_elementwise(tfl_importer *im, int *input, int *output)
{
    tfl_shape shape;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
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
    e.act_max = im->op->code == TFL_RELU6 ? 6.0f : im->op->code == TFL_RELU ? INFINITY : 1.0f;
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

/** Of int8 or, if it may be, int16: the reference has no others. */
static qat_status begin_signed(tfl_importer *im, bool may_be_wide, int *input, int *output)
{
    qat_status const st = tfl_elementwise(im, input, output);
    if (st)
        return st;
    qi_type const type = im->graph->tensors[*input].type;
    if (type == QI_S8 || (may_be_wide && type == QI_S16))
        return QAT_OK;
    return tfl_refuse(im, "only int8%s is supported", may_be_wide ? " or int16" : "");
}

static qat_status import_abs(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, true, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    if (st || im->graph->tensors[input].type == QI_S16)
        return st ? st : qat_emit_wide_abs(&e, im->err);
    return qat_emit_leaky_relu(&e, -1.0f, im->err);
}

/** The reference negates the code, whatever its zero point; -128 stays. */
static qat_status import_neg(tfl_importer *im)
{
    uint8_t codes[TFL_CODES];
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, false, &input, &output);
    for (int i = 0; i < TFL_CODES; i++)
        codes[i] = (uint8_t)-qat_code_at(QI_S8, i);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_table(&e, 1, codes, im->err);
}

/** What has no root is no number. */
static float real_rsqrt(float x)
{
    return x > 0.0f ? 1.0f / sqrtf(x) : NAN;
}

static qat_status import_rsqrt(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, true, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    if (st || im->graph->tensors[input].type == QI_S16)
        return st ? st : qat_emit_wide_table(&e, real_rsqrt, im->err);
    return qat_emit_rsqrt(&e, im->err);
}

static qat_status import_function(tfl_importer *im, bool may_be_wide, qat_real_fn *f)
{
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, may_be_wide, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_real_table(&e, f, im->err);
}

static float real_exp(float x)
{
    return expf(x);
}

static qat_status import_exp(tfl_importer *im)
{
    return import_function(im, true, real_exp);
}

static float real_elu(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

static qat_status import_elu(tfl_importer *im)
{
    return import_function(im, false, real_elu);
}

/** What has no logarithm gives the lowest code. */
static float real_log(float x)
{
    return x > 0.0f ? logf(x) : -INFINITY;
}

static qat_status import_log(tfl_importer *im)
{
    return import_function(im, true, real_log);
}

/** Rounded toward zero; the reference fails below 0. */
static qat_status import_sqrt(tfl_importer *im)
{
    uint8_t codes[256];
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, false, &input, &output);
    if (st)
        return st;
    const qat_qtensor *x = &im->graph->tensors[input], *y = &im->graph->tensors[output];
    for (int i = 0; i < 256; i++) {
        int32_t const difference = qat_code_at(x->type, i) - x->zero_point;
        float const steps = sqrtf(x->scale * (float)(difference > 0 ? difference : 0)) / y->scale;
        int32_t const most = INT8_MAX - y->zero_point;
        codes[i] = (uint8_t)((steps < (float)most ? (int32_t)steps : most) + y->zero_point);
    }
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_table(&e, 1, codes, im->err);
}

static float real_gelu(float x)
{
    float const root_half = 0.70710678118654752440f;
    return 0.5f * x * erfcf(x * -root_half);
}

static float real_gelu_approximately(float x)
{
    float const root_2_over_pi = (float)(1.12837916709551257390 * 0.70710678118654752440);
    return 0.5f * x * (1.0f + tanhf(root_2_over_pi * (x + 0.044715f * x * x * x)));
}

static qat_status import_gelu(tfl_importer *im)
{
    bool const approximate = fb_u8(&im->op->options, GELU_APPROXIMATE, 0) != 0;
    int input = -1, output = -1;
    qat_status const st = tfl_elementwise(im, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st
              : qat_emit_real_table(&e, approximate ? real_gelu_approximately : real_gelu, im->err);
}

static qat_status import_hard_swish(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = tfl_elementwise(im, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_hard_swish(&e, im->err);
}

/** Its fixed-point arithmetic has only one output grid: scale 1/256, or 1/65536 of 16 bits, and
 * zero point the lowest code. */
static qat_status check_softmax_grid(tfl_importer *im, int input, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    float const codes = y->type == QI_S16 ? 65536 : 256;
    int32_t lo, hi;
    if (im->graph->tensors[input].type == QI_S16)
        return check_wide_scale(im, output);
    qat_tensor_codes(y, &lo, &hi);
    if (y->zero_point == lo && fabsf(y->scale - 1.0f / codes) <= 1e-3f / codes)
        return QAT_OK;
    return tfl_refuse(im,
                      "its output has scale %g and zero point %d; only 1/%g and %d are supported",
                      (double)y->scale, (int)y->zero_point, (double)codes, (int)lo);
}

/** Codes of 8 bits may become codes of 16. */
static qat_status import_softmax(tfl_importer *im)
{
    tfl_shape shape;
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
    if (!st)
        st = tfl_input(im, 0, &input);
    bool const grows = !st && im->model->tensors[im->op->outputs[0]].type == TFL_INT16 &&
                       qi_type_bytes(im->graph->tensors[input].type) == 1;
    if (!st)
        st = tfl_output(im, 0, &shape, grows ? -1 : input, &output);
    if (!st)
        st = check_softmax_grid(im, input, output);
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

static qat_status import_log_softmax(tfl_importer *im)
{
    int input = -1, output = -1;
    qat_status const st = begin_signed(im, false, &input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    if (st)
        return st;
    const qat_qtensor *y = &im->graph->tensors[output];
    if (y->scale != 1.0f / 16 || y->zero_point != INT8_MAX)
        return tfl_refuse(im,
                          "its output has scale %g and zero point %d; only 1/16 and %d are "
                          "supported",
                          (double)y->scale, (int)y->zero_point, INT8_MAX);
    return qat_emit_log_softmax(&e, im->err);
}

static qat_status import_logical_not(tfl_importer *im)
{
    static const uint8_t answers[256] = {1};
    tfl_shape shape;
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
    if (!st)
        st = tfl_integers(im, 0, &input);
    if (!st)
        st = tfl_integer_output(im, 0, &shape, input, &output);
    if (!st && (tfl_tensor_of(im, 0)->type != TFL_BOOL || im->graph->tensors[output].bits != 1))
        st = tfl_refuse(im, "only bool is supported");
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_table(&e, 1, answers, im->err);
}

const tfl_handler tfl_elementwise_handlers[] = {
    {TFL_RELU, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_RELU6, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_RELU_N1_TO_1, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_RELU_0_TO_1, TFL_NO_OPTIONS, 1, 1, 1, import_relu},
    {TFL_LOGISTIC, TFL_NO_OPTIONS, 1, 1, 1, import_sigmoid},
    {TFL_TANH, TFL_NO_OPTIONS, 1, 1, 1, import_sigmoid},
    {TFL_LEAKY_RELU, TFL_OPTIONS_LEAKY_RELU, 1, 1, 1, import_leaky_relu},
    {TFL_ABS, TFL_OPTIONS_ABS, 1, 1, 1, import_abs},
    {TFL_NEG, TFL_OPTIONS_NEG, 1, 1, 1, import_neg},
    {TFL_EXP, TFL_OPTIONS_EXP, 1, 1, 1, import_exp},
    {TFL_ELU, TFL_NO_OPTIONS, 1, 1, 1, import_elu},
    {TFL_LOG, TFL_NO_OPTIONS, 1, 1, 1, import_log},
    {TFL_GELU, TFL_OPTIONS_GELU, 1, 1, 1, import_gelu},
    {TFL_SQRT, TFL_NO_OPTIONS, 1, 1, 1, import_sqrt},
    {TFL_RSQRT, TFL_NO_OPTIONS, 1, 1, 1, import_rsqrt},
    {TFL_LOGICAL_NOT, TFL_OPTIONS_LOGICAL_NOT, 1, 1, 1, import_logical_not},
    {TFL_HARD_SWISH, TFL_OPTIONS_HARD_SWISH, 1, 1, 1, import_hard_swish},
    {TFL_L2_NORMALIZATION, TFL_OPTIONS_L2_NORM, 1, 1, 1, import_l2_normalization},
    {TFL_SOFTMAX, TFL_OPTIONS_SOFTMAX, 1, 1, 1, import_softmax},
    {TFL_LOG_SOFTMAX, TFL_OPTIONS_LOG_SOFTMAX, 1, 1, 1, import_log_softmax},
    {0}};

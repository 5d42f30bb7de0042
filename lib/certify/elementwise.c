/**
 * add, sub, mul, requantize, softmax, logistic, tanh. Their parameters are computed in float64 from
 * the scales, so they must be exactly equal (docs/arithmetic.md, sections 4, 5, 8, 9, 10).
 */
#include "certify/certify.h"

#include <math.h>
#include <string.h>

static const qi_tensor *input(const cert *c, const cert_op *op, int i)
{
    return cert_tensor(c, op->node->inputs[i]);
}

static const qi_tensor *output(const cert *c, const cert_op *op)
{
    return cert_tensor(c, op->node->outputs[0]);
}

static double scale(const qi_tensor *t)
{
    return (double)cert_scale(t);
}

static qat_status check_clamp(const cert *c, const cert_op *op, int at)
{
    return cert_check_clamp(c, op->name, output(c, op), op->act_min, op->act_max,
                            op->node->params[at], op->node->params[at + 1]);
}

qat_status cert_check_add(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    double const a = scale(input(c, op, 0)), b = scale(input(c, op, 1));
    double const twice = 2 * fmax(a, b);
    int const left = output(c, op)->type == QI_S16 ? 15 : 20;
    qat_status st =
        cert_check_form(c, op->name, op->node, 2, 9, cert_rounding(c, op->node, QI_ROUND_TWICE), 0);
    if (!st)
        st = cert_equal(c, op->name, "the parameter left_shift", p[0], left);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the first input's multiplier", a / twice, p[1],
                                   p[2]);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the second input's multiplier", b / twice, p[3],
                                   p[4]);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the output's multiplier",
                                   twice / (exp2(left) * scale(output(c, op))), p[5], p[6]);
    return st ? st : check_clamp(c, op, 7);
}

qat_status cert_check_mul(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    double const a = scale(input(c, op, 0)), b = scale(input(c, op, 1)), y = scale(output(c, op));
    bool const tflite = c->source->profile == QAT_PROFILE_TFLITE;
    double const real = tflite ? (double)((float)((float)(a * b)) / (float)y) : a * b / y;
    qat_status st =
        cert_check_form(c, op->name, op->node, 2, 4, cert_rounding(c, op->node, QI_ROUND_TWICE), 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier", real, p[0], p[1]);
    return st ? st : check_clamp(c, op, 2);
}

qat_status cert_check_requantize(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    double const real = scale(input(c, op, 0)) / scale(output(c, op));
    bool const in_float32 = c->source->profile == QAT_PROFILE_TFLITE && op->layer &&
                            op->layer->activation &&
                            !(output(c, op)->type == QI_S16 && op->act_min < 0);
    qat_status st =
        cert_check_form(c, op->name, op->node, 1, 4, cert_rounding(c, op->node, QI_ROUND_TWICE), 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier",
                                   in_float32 ? (double)(float)real : real, p[0], p[1]);
    return st ? st : check_clamp(c, op, 2);
}

/** (mult, shift) and a bound that follows from the shift. */
static qat_status check_fixed_point(cert *c, const cert_op *op, int32_t mult, int32_t shift,
                                    const char *bound, int32_t expected)
{
    const int32_t *p = op->node->params;
    qat_status st = cert_equal(c, op->name, "the parameter mult", p[0], mult);
    if (!st)
        st = cert_equal(c, op->name, "the parameter shift", p[1], shift);
    c->result->multipliers++;
    return st ? st : cert_equal(c, op->name, bound, p[2], expected);
}

qat_status cert_check_softmax(cert *c, const cert_op *op)
{
    int32_t mult, shift;
    cert_multiplier(fmin(scale(input(c, op, 0)) * 0x1p26, (double)INT32_MAX), &mult, &shift);
    if (shift < 0)
        mult = shift = 0;
    qat_status const st = cert_check_form(c, op->name, op->node, 1, 3, QI_ROUND_NONE, 0);
    return st ? st
              : check_fixed_point(c, op, mult, shift, "diff_min",
                                  -(int32_t)floor(31 * exp2(26 - shift)));
}

qat_status cert_check_sigmoid(cert *c, const cert_op *op)
{
    int32_t mult, shift;
    cert_multiplier(scale(input(c, op, 0)) * 0x1p27, &mult, &shift);
    double const radius = fmin(fmax(floor(15 * exp2(27 - shift)), 1), 0x1p30);
    qat_status const st = cert_check_form(c, op->name, op->node, 1, 3, QI_ROUND_NONE, 0);
    return st ? st
              : check_fixed_point(c, op, mult, shift < 31 ? shift : 31, "radius", (int32_t)radius);
}

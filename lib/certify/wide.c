/**
 * softmax, logistic, tanh, leaky_relu of 16-bit codes (docs/arithmetic.md, section 11). Parameters
 * and tables are computed again from the scales, so they must be exactly equal.
 *
 *     softmax      exp over -10..0 and 1 / (1 + x) over 0..1, each as 512 lines
 *     logistic     1/24 of x is a step: 12288 S_x = factor / 2^right, factor cut to 15 bits
 *     leaky_relu   S_x / S_y, and alpha times that, in float32; prelu with the one code 1 or -1
 */
#include "certify/certify.h"

#include <math.h>

enum { LINES = 512 };

static double scale(const cert *c, const cert_op *op)
{
    return (double)cert_scale(cert_input(c, op, 0));
}

/* ------------------------------------------------------------------ softmax */

static double reciprocal(double x)
{
    return 1 / (1 + x);
}

/** The code of f at position i of low..high; i need not be whole. */
static double code_of(double (*f)(double x), double low, double high, double i)
{
    return f(low + (high - low) * i / LINES) * 0x1p15;
}

/** An entry is lowered by half of what the middle of its line is above the function. */
static double entry_of(double (*f)(double x), double low, double high, int i)
{
    double const first = round(code_of(f, low, high, i));
    if (i == LINES)
        return first;
    double const above =
        round((code_of(f, low, high, i + 1) + first) / 2) - round(code_of(f, low, high, i + 0.5));
    return first - round(above / 2);
}

static qat_status check_lines(cert *c, const cert_op *op, int at, const char *part,
                              double (*f)(double x), double low, double high)
{
    const qi_tensor *t = cert_input(c, op, at);
    qat_status st = cert_check_constant(c, t, op->name, part, QI_S16, LINES + 1, 1);
    if (!st)
        st = cert_check_scale_1(c, t);
    for (int i = 0; !st && i <= LINES; i++)
        st = cert_equal(c, t->name, "an entry of the table", cert_code(t, (size_t)i),
                        (int64_t)fmin(entry_of(f, low, high, i), INT16_MAX));
    c->result->tables += LINES + 1;
    return st;
}

qat_status cert_check_wide_softmax(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    qat_status st = cert_check_form(c, op->name, op->node, 3, 2, QI_ROUND_NONE, 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier", scale(c, op) / (10.0 / 65535),
                                   p[0], p[1]);
    if (!st)
        st = check_lines(c, op, 1, "exp", exp, -10, 0);
    return st ? st : check_lines(c, op, 2, "reciprocal", reciprocal, 0, 1);
}

/* ------------------------------------------------------------------ logistic, tanh */

/** A scale that is a power of two, or nearly, which needs no shift: 2^-12; of tanh also 2^-11. */
static bool is_exact(const cert_op *op, double s, int *shift)
{
    double const log = log2(s);
    *shift = (int)round(log) + 12;
    return fabs(log - round(log)) < 1e-3 &&
           (*shift == 0 || (*shift == 1 && qat_node_is_op(op->head, "tanh")));
}

qat_status cert_check_wide_sigmoid(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    double const s = scale(c, op);
    double factor = 12288 * s;
    int shift, right = 0;
    if (is_exact(op, s, &shift))
        factor = 3 << shift;
    else
        for (; factor <= 16383.5 && right <= 30; right++)
            factor *= 2;
    qat_status st = cert_check_form(c, op->name, op->node, 1, 3, QI_ROUND_NONE, 0);
    if (!st)
        st = cert_equal(c, op->name, "the parameter mult", p[0], (int64_t)floor(factor) << 16);
    if (!st)
        st = cert_equal(c, op->name, "the parameter shift", p[1], 15 - right);
    c->result->multipliers++;
    return st ? st : cert_equal(c, op->name, "the parameter radius", p[2], 0);
}

/* ------------------------------------------------------------------ leaky_relu */

qat_status cert_check_wide_leaky_relu(cert *c, const cert_op *op)
{
    const int32_t *p = op->node->params;
    const qi_tensor *y = cert_output(c, op);
    float const alpha = (float)qat_attr(op->head, "alpha"), x = cert_scale(cert_input(c, op, 0));
    float const positive = x / cert_scale(y), times = x * alpha, negative = times / cert_scale(y);
    qat_status st = cert_check_form(c, op->name, op->node, 2, 6, QI_ROUND_TWICE, 0);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier above 0", (double)positive, p[0],
                                   p[1]);
    if (!st)
        st = cert_check_multiplier(c, op->name, "the multiplier below 0", fabs((double)negative),
                                   p[2], p[3]);
    if (!st)
        st = cert_check_constant(c, cert_input(c, op, 1), op->name, "alpha", QI_S16, 1, 1);
    if (!st)
        st = cert_check_scale_1(c, cert_input(c, op, 1));
    if (!st)
        st = cert_equal(c, op->name, "the sign of alpha", cert_code(cert_input(c, op, 1), 0),
                        negative < 0 ? -1 : 1);
    return st ? st : cert_check_clamp(c, op->name, y, op->act_min, op->act_max, p[4], p[5]);
}

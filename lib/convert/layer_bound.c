/**
 * Computes how far the integers of one layer may be from its real result, in quanta of its output.
 *
 *     requantize   r(M) = 1/2 + min(M, 1/4): the second of two roundings, and the first, of half
 *                  a unit before a shift right by n >= 1: 2^-n / 2 <= M (n = 0: it is the only one)
 *     conv, FC     r(M), M the largest; the float layer has the rounded bias (layers.c)
 *     add, sub     r(M) + 2 M, M = twice / (2^20 S3): each input is rounded on the shared scale
 *     mean         3/4
 *     softmax      5/8 + n 2^(b - 20): the sum's n terms are rounded to 2^-19
 *     logistic, tanh   5/8: 1/2 and less than 1/8 of the fixed-point polynomials; or, if it is
 *                  more, (1 - f(radius S1)) / S2: from the radius on, the output is saturated
 *     tables, average pools   1/2;  what only moves codes   0
 *
 * All bounds are increased by 2^-8 for the roundings of float32 on the other side, and for long
 * sums by 2^-20 of the largest accumulator.
 */
#include "convert/convert.h"

#include <math.h>
#include <string.h>

typedef double bound_fn(const qat_qgraph *graph, const qat_qop *op);

static const double FLOAT_QUANTA = 1.0 / 256, FLOAT_SUM = 1.0 / (1 << 20);
static const double FIXED_POINT = 0.625;

static const qat_qtensor *input(const qat_qgraph *graph, const qat_qop *op, int i)
{
    return &graph->tensors[op->inputs[i]];
}

static double output_scale(const qat_qgraph *graph, const qat_qop *op)
{
    return (double)graph->tensors[op->outputs[0]].scale;
}

static double requantized(double m)
{
    return 0.5 + fmin(m, 0.25);
}

/**
 * The largest multiplier, computed from the scales and not from the integers that are to be
 * checked.
 */
static double largest_multiplier(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *x = input(graph, op, 0), *w = input(graph, op, 1);
    double scale = (double)w->scale;
    for (int i = 0; w->channel_scales && i < w->n_channels; i++)
        scale = fmax(scale, (double)w->channel_scales[i]);
    return (double)x->scale * scale / output_scale(graph, op);
}

/** A clamped bias may be any distance away; freeze has warned about it. */
static double bound_accumulate(const qat_qgraph *graph, const qat_qop *op)
{
    double const m = largest_multiplier(graph, op);
    if (op->max_accumulator >= INT32_MAX)
        return INFINITY;
    return requantized(m) + m * FLOAT_SUM * (double)op->max_accumulator;
}

static double bound_add(const qat_qgraph *graph, const qat_qop *op)
{
    double const s1 = (double)input(graph, op, 0)->scale, s2 = (double)input(graph, op, 1)->scale;
    double const m = 2.0 * fmax(s1, s2) / (double)(1 << 20) / output_scale(graph, op);
    return requantized(m) + 2.0 * m;
}

static double bound_mul(const qat_qgraph *graph, const qat_qop *op)
{
    return requantized((double)input(graph, op, 0)->scale * (double)input(graph, op, 1)->scale /
                       output_scale(graph, op));
}

static double bound_requantize(const qat_qgraph *graph, const qat_qop *op)
{
    return requantized((double)input(graph, op, 0)->scale / output_scale(graph, op));
}

static double bound_mean(const qat_qgraph *graph, const qat_qop *op)
{
    return 0.75;
}

static double bound_softmax(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *y = &graph->tensors[op->outputs[0]];
    return FIXED_POINT + ldexp((double)y->dims[y->rank - 1], y->bits - 20);
}

/**
 * The smallest real |x| that saturates. Up to scale 1 it is 7.5 or more, where both functions have
 * reached their last code. At scale 4 the radius is 1: logistic(4) is 4.6 codes of 8 bits from 1.
 */
static double saturated_from(const qat_qgraph *graph, const qat_qop *op)
{
    double const scale = (double)input(graph, op, 0)->scale;
    int shift;
    (void)frexp(ldexp(scale, 27), &shift);
    return scale * fmax(floor(ldexp(15.0, 27 - shift)), 1.0);
}

static double bound_logistic(const qat_qgraph *graph, const qat_qop *op)
{
    double const missing = 1.0 / (1.0 + exp(saturated_from(graph, op)));
    return fmax(FIXED_POINT, missing / output_scale(graph, op));
}

static double bound_tanh(const qat_qgraph *graph, const qat_qop *op)
{
    double const missing = 1.0 - tanh(saturated_from(graph, op));
    return fmax(FIXED_POINT, missing / output_scale(graph, op));
}

static double bound_rounding(const qat_qgraph *graph, const qat_qop *op)
{
    return 0.5;
}

static double bound_copy(const qat_qgraph *graph, const qat_qop *op)
{
    return 0.0;
}

static const struct {
    const char *op;
    bound_fn *bound;
} bounds[] = {
    {"conv2d", bound_accumulate},
    {"depthwise_conv2d", bound_accumulate},
    {"fully_connected", bound_accumulate},
    {"add", bound_add},
    {"sub", bound_add},
    {"mul", bound_mul},
    {"mean", bound_mean},
    {"requantize", bound_requantize},
    {"average_pool2d", bound_rounding},
    {"table", bound_rounding},
    {"softmax", bound_softmax},
    {"logistic", bound_logistic},
    {"tanh", bound_tanh},
    {"concat", bound_copy},
    {"max_pool2d", bound_copy},
    {"reshape", bound_copy},
};

double qat_layer_bound(const qat_qgraph *graph, const qat_qop *op, const qat_node *head)
{
    const qat_quant *quant = head && head->op ? head->op->quant : NULL;
    if (quant && quant->max_quanta > 0.0)
        return quant->max_quanta;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(bounds[i].op, op->op) == 0)
            return bounds[i].bound(graph, op) + FLOAT_QUANTA;
    return 1.0 + FLOAT_QUANTA;
}

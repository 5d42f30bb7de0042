/**
 * What a batch norm makes of weights and bias (docs/arithmetic.md, section 14), in float64.
 *
 *     s = sqrt(v + eps)     w' = (gamma / s) w     b' = beta + (gamma / s) (b - m)
 *
 * The converter computes this in float32. It rounds eps and v + eps (the root halves both errors),
 * then the root, the quotient and the product. So the relative error of w' is at most 4 U, or 5 U
 * with products of errors. The error of b' is at most
 *
 *     U (5 |f m| + 5 |f b| + 2 (|beta| + |f m| + |f b|)),   f = gamma / s
 *
 * from the products and the two sums. Near a tie of two codes, this error cannot tell which of them
 * is right. So the same formula is also computed in float32, in the order beta - f m, + f b.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>

/** Inputs of batch_norm. */
enum { X, GAMMA, BETA, MEAN, VARIANCE };

struct averages {
    const float *gamma, *beta, *mean, *variance;
    double epsilon;
};

static qat_status averages_of(const cert *c, const qat_node *bn, int channels, struct averages *a)
{
    size_t const n = (size_t)channels;
    a->epsilon = qat_attr(bn, "epsilon");
    qat_status st = cert_values(c, bn->inputs[GAMMA]->name, n, &a->gamma);
    if (!st)
        st = cert_values(c, bn->inputs[BETA]->name, n, &a->beta);
    if (!st)
        st = cert_values(c, bn->inputs[MEAN]->name, n, &a->mean);
    return st ? st : cert_values(c, bn->inputs[VARIANCE]->name, n, &a->variance);
}

static double factor_of(const struct averages *a, int channel)
{
    return (double)a->gamma[channel] / sqrt((double)a->variance[channel] + a->epsilon);
}

qat_status cert_folded_weights(cert *c, const cert_weights *w, double *values)
{
    size_t const count = qat_shape_count(&w->shape), channels = (size_t)w->channels;
    const float *raw = NULL;
    struct averages a;
    qat_status st = w->param ? cert_values(c, w->param->name, count, &raw) : QAT_OK;
    if (!st && w->bn)
        st = averages_of(c, w->bn, w->channels, &a);
    for (size_t i = 0; !st && i < count; i++) {
        size_t const channel = w->axis == 0 ? i / (count / channels) : i % channels;
        values[i] = raw ? (double)raw[i] : 1;
        if (w->bn)
            values[i] *= factor_of(&a, (int)channel);
    }
    return st;
}

static float bias_in_float32(const struct averages *a, int channel, const float *bias)
{
    float const s = sqrtf(a->variance[channel] + (float)a->epsilon);
    float const factor = a->gamma[channel] / s;
    float const shift = factor * a->mean[channel];
    float b = a->beta[channel] - shift;
    if (bias) {
        float const more = factor * bias[channel];
        b += more;
    }
    return b;
}

qat_status cert_real_biases(cert *c, const cert_weights *w, cert_bias *biases)
{
    const float *bias = NULL;
    struct averages a;
    qat_status st = QAT_OK;
    if (w->bias)
        st = cert_values(c, w->bias->inputs[1]->name, (size_t)w->channels, &bias);
    if (!st && w->bn)
        st = averages_of(c, w->bn, w->channels, &a);
    for (int i = 0; !st && i < w->channels; i++) {
        double const b = bias ? (double)bias[i] : 0;
        biases[i] = (cert_bias){b, 0, (float)b};
        if (!w->bn)
            continue;
        double const f = factor_of(&a, i), fm = f * (double)a.mean[i], fb = f * b;
        biases[i].real = (double)a.beta[i] - fm + fb;
        biases[i].slack = CERT_U * (7 * (fabs(fm) + fabs(fb)) + 2 * fabs((double)a.beta[i]));
        biases[i].in_float32 = bias_in_float32(&a, i, bias);
    }
    return st;
}

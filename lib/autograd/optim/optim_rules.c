/**
 * The equations of the optimizers, for arrays that do not overlap. Weight decay replaces g by g +
 * weight_decay w (L2); AdamW subtracts it from the weight itself.
 *
 *     SGD        v = momentum v + g                        w -= rate v
 *     Nesterov   v = momentum v + g                        w -= rate (g + momentum v)
 *     Adam       m = beta1 m + (1 - beta1) g               w -= rate m' / (sqrt(v') + epsilon)
 *                v = beta2 v + (1 - beta2) g^2             m' = m / (1 - beta1^t), v' likewise
 *     AdamW      as Adam                                   w -= rate (the same + weight_decay w)
 *     RMSProp    s += (1 - decay) (g^2 - s)                w -= m
 *                m = momentum m + rate g / sqrt(s + epsilon)
 *     Adagrad    s += g^2                                  w -= rate g / sqrt(s)
 *
 * Adam: Kingma and Ba 2015, algorithm 1; AdamW: Loshchilov and Hutter 2019, algorithm 2, with its
 * schedule multiplier in the rate; RMSProp, Adagrad: as TensorFlow computes them.
 */
#include "autograd/loops/real.h"
#include "autograd/optim/optim.h"

QAT_VECTOR static void sgd(const optim_numbers *u, qat_real *restrict w, const qat_real *restrict g,
                           qat_real *restrict v, qat_real *unused, size_t n)
{
    qat_real const rate = u->rate, l2 = u->weight_decay, momentum = u->momentum;
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + l2 * w[i]);
        w[i] -= rate * v[i];
    }
}

QAT_VECTOR static void nesterov(const optim_numbers *u, qat_real *restrict w,
                                const qat_real *restrict g, qat_real *restrict v, qat_real *unused,
                                size_t n)
{
    qat_real const rate = u->rate, l2 = u->weight_decay, momentum = u->momentum;
    for (size_t i = 0; i < n; i++) {
        qat_real const gradient = g[i] + l2 * w[i];
        v[i] = momentum * v[i] + gradient;
        w[i] -= rate * (gradient + momentum * v[i]);
    }
}

QAT_VECTOR static void adam(const optim_numbers *u, qat_real *restrict w,
                            const qat_real *restrict g, qat_real *restrict m, qat_real *restrict v,
                            size_t n)
{
    qat_real const rate = u->rate, l2 = u->weight_decay, epsilon = u->epsilon;
    qat_real const beta1 = u->beta1, beta2 = u->beta2, unbias1 = u->unbias1, unbias2 = u->unbias2;
    for (size_t i = 0; i < n; i++) {
        qat_real const gradient = g[i] + l2 * w[i];
        m[i] = beta1 * m[i] + (1 - beta1) * gradient;
        v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
        w[i] -= rate * (m[i] * unbias1) / (QAT_SQRT(v[i] * unbias2) + epsilon);
    }
}

QAT_VECTOR static void adamw(const optim_numbers *u, qat_real *restrict w,
                             const qat_real *restrict g, qat_real *restrict m, qat_real *restrict v,
                             size_t n)
{
    qat_real const rate = u->rate, decay = u->weight_decay, epsilon = u->epsilon;
    qat_real const beta1 = u->beta1, beta2 = u->beta2, unbias1 = u->unbias1, unbias2 = u->unbias2;
    for (size_t i = 0; i < n; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        w[i] -= rate * ((m[i] * unbias1) / (QAT_SQRT(v[i] * unbias2) + epsilon) + decay * w[i]);
    }
}

QAT_VECTOR static void rmsprop(const optim_numbers *u, qat_real *restrict w,
                               const qat_real *restrict g, qat_real *restrict s,
                               qat_real *restrict m, size_t n)
{
    qat_real const rate = u->rate, l2 = u->weight_decay, epsilon = u->epsilon;
    qat_real const momentum = u->momentum, take = 1 - u->decay;
    for (size_t i = 0; i < n; i++) {
        qat_real const gradient = g[i] + l2 * w[i];
        s[i] += take * (gradient * gradient - s[i]);
        m[i] = momentum * m[i] + rate * gradient / QAT_SQRT(s[i] + epsilon);
        w[i] -= m[i];
    }
}

QAT_VECTOR static void adagrad(const optim_numbers *u, qat_real *restrict w,
                               const qat_real *restrict g, qat_real *restrict s, qat_real *unused,
                               size_t n)
{
    qat_real const rate = u->rate, l2 = u->weight_decay;
    for (size_t i = 0; i < n; i++) {
        qat_real const gradient = g[i] + l2 * w[i];
        s[i] += gradient * gradient;
        w[i] -= rate * gradient / QAT_SQRT(s[i]);
    }
}

const optim_rule *qat_optim_rule(const qat_optimizer_options *options)
{
    static const optim_rule rules[QAT_OPTIMIZERS] = {
        [QAT_OPTIMIZER_SGD] = {1, false, sgd},        [QAT_OPTIMIZER_ADAM] = {2, false, adam},
        [QAT_OPTIMIZER_ADAMW] = {2, false, adamw},    [QAT_OPTIMIZER_RMSPROP] = {2, true, rmsprop},
        [QAT_OPTIMIZER_ADAGRAD] = {1, true, adagrad},
    };
    static const optim_rule look_ahead = {1, false, nesterov};
    bool const ahead = options->kind == QAT_OPTIMIZER_SGD && options->nesterov;
    return ahead ? &look_ahead : &rules[options->kind];
}

/* ------------------------------------------------------------------ around the rule */

QAT_VECTOR static void optim_scale(qat_real *g, qat_real scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= scale;
}

void qat_optim_scale(qat_real *g, qat_real scale, size_t n)
{
    optim_scale(g, scale, n);
}

QAT_VECTOR static void optim_clamp(qat_real *g, qat_real limit, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        qat_real const low = g[i] < -limit ? -limit : g[i];
        g[i] = low > limit ? limit : low;
    }
}

void qat_optim_clamp(qat_real *g, qat_real limit, size_t n)
{
    optim_clamp(g, limit, n);
}

QAT_VECTOR static void optim_average(qat_real *restrict average, const qat_real *restrict w,
                                     qat_real take, size_t n)
{
    for (size_t i = 0; i < n; i++)
        average[i] -= take * (average[i] - w[i]);
}

void qat_optim_average(qat_real *restrict average, const qat_real *restrict w, qat_real take,
                       size_t n)
{
    optim_average(average, w, take, n);
}

#include "autograd/loops/batch_norm.h"

#include "autograd/loops/column_sums.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/loops/wide.h"

#include <string.h>

size_t qat_bn_place(qat_bn *bn, void *scratch, size_t rows, int channels)
{
    size_t const n = (size_t)channels, wide = qat_wide_pattern(n);
    qat_carve carve = {scratch, 0};
    bn->rows = rows;
    bn->channels = channels;
    bn->mean = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->variance = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->inv_std = qat_carve_take(&carve, n, sizeof(qat_real));
    bn->sum = qat_carve_take(&carve, qat_bn_sums(channels), sizeof(double));
    bn->sum_product = bn->sum ? bn->sum + n : NULL;
    bn->total = bn->sum ? bn->sum + 2 * n : NULL;
    bn->partial = qat_carve_take(&carve, qat_column_partials(rows, channels), sizeof(double));
    bn->wide.mean = qat_carve_take(&carve, wide, sizeof(qat_real));
    bn->wide.gain = qat_carve_take(&carve, wide, sizeof(qat_real));
    bn->wide.beta = qat_carve_take(&carve, wide, sizeof(qat_real));
    bn->wide.slope = qat_carve_take(&carve, wide, sizeof(qat_real));
    bn->wide.offset = qat_carve_take(&carve, wide, sizeof(qat_real));
    return carve.used;
}

static void set_inv_std(qat_bn *bn, double epsilon)
{
    for (int c = 0; c < bn->channels; c++)
        bn->inv_std[c] = 1 / QAT_SQRT(bn->variance[c] + (qat_real)epsilon);
}

void qat_bn_sum_batch(qat_bn *bn, const qat_real *x)
{
    qat_columns const columns = {.a = x, .b = x, .rows = bn->rows, .columns = bn->channels};
    qat_column_sums(&columns, bn->partial, bn->sum, bn->sum_product);
    *bn->total = (double)bn->rows;
}

void qat_bn_use_sums(qat_bn *bn, double epsilon)
{
    double const rows = *bn->total;
    for (int c = 0; c < bn->channels; c++) {
        /* Squares of floats are exact in double, so the difference loses nothing that matters. */
        double const mean = bn->sum[c] / rows;
        double const variance = bn->sum_product[c] / rows - mean * mean;
        bn->mean[c] = (qat_real)mean;
        bn->variance[c] = (qat_real)(variance < 0 ? 0 : variance);
    }
    set_inv_std(bn, epsilon);
}

void qat_bn_use_averages(qat_bn *bn, const qat_real *ema_mean, const qat_real *ema_variance,
                         double epsilon)
{
    for (int c = 0; c < bn->channels; c++) {
        bn->mean[c] = ema_mean[c];
        bn->variance[c] = ema_variance[c];
    }
    set_inv_std(bn, epsilon);
}

/* ------------------------------------------------------------------ forward */

/** y = the batch norm's values [at, at + n), from those of x. */
QAT_VECTOR static void normalise(const qat_bn *bn, size_t at, size_t n, const qat_real *restrict x,
                                 qat_real *restrict y)
{
    size_t const first = at % (size_t)bn->channels, wide = qat_wide_of((size_t)bn->channels);
    const qat_real *restrict mean = bn->wide.mean + first, *restrict gain = bn->wide.gain + first;
    const qat_real *restrict beta = bn->wide.beta + first;
    for (size_t i = 0; i < n; i += wide, x += wide, y += wide) {
        size_t const m = n - i < wide ? n - i : wide;
        for (size_t c = 0; c < m; c++)
            y[c] = (x[c] - mean[c]) * gain[c] + beta[c];
    }
}

/** A pass over a node's values. */
struct pass {
    const qat_bn *bn;
    const qat_node *node;
};

static void forward_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    qat_real *y = qat_tail_last(p->node)->value + at;
    normalise(p->bn, at, n, p->node->inputs[0]->value + at, y);
    qat_tail_forward(p->node, at, y, n);
}

static size_t values_of(const qat_bn *bn)
{
    return bn->rows * (size_t)bn->channels;
}

void qat_bn_forward(const qat_bn *bn, const qat_node *node, const qat_real *gamma,
                    const qat_real *beta)
{
    struct pass p = {bn, node};
    size_t const channels = (size_t)bn->channels;
    for (size_t c = 0; c < channels; c++)
        bn->wide.slope[c] = gamma[c] * bn->inv_std[c]; /* until the coefficients are repeated */
    qat_wide_lay(bn->mean, channels, bn->wide.mean);
    qat_wide_lay(bn->wide.slope, channels, bn->wide.gain);
    qat_wide_lay(beta, channels, bn->wide.beta);
    qat_run_strips(values_of(bn), forward_strip, &p);
}

/* ------------------------------------------------------------------ backward */

/** Mask dy by the node's tail. The input of the tail is computed again. */
static void mask_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    qat_real y[QAT_STRIP_VALUES];
    normalise(p->bn, at, n, p->node->inputs[0]->value + at, y);
    qat_tail_backward(p->node, y, p->node->grad + at, n);
}

static const qat_real *mask_strips(void *context, size_t at, size_t n, qat_real *room)
{
    const struct pass *p = context;
    qat_each_strip(at, at + n, mask_strip, context);
    return p->node->inputs[0]->value + at;
}

/** On entry g is dy, on return dx. */
QAT_VECTOR static void through_norm(const qat_bn *bn, size_t at, size_t n,
                                    const qat_real *restrict x, qat_real *restrict g)
{
    size_t const first = at % (size_t)bn->channels, wide = qat_wide_of((size_t)bn->channels);
    const qat_real *restrict mean = bn->wide.mean + first, *restrict gain = bn->wide.gain + first;
    const qat_real *restrict slope = bn->wide.slope + first;
    const qat_real *restrict offset = bn->wide.offset + first;
    for (size_t i = 0; i < n; i += wide, x += wide, g += wide) {
        size_t const m = n - i < wide ? n - i : wide;
        for (size_t c = 0; c < m; c++)
            g[c] = gain[c] * (g[c] - offset[c] - (x[c] - mean[c]) * slope[c]);
    }
}

static void backward_strip(void *context, size_t at, size_t n)
{
    const struct pass *p = context;
    const qat_node *x = p->node->inputs[0];
    const qat_real *dy = p->node->grad + at;
    qat_real sum[QAT_STRIP_VALUES];
    qat_real *g = qat_grad_is_new(p->node, 0) ? x->grad + at : sum;
    if (g != dy)
        memcpy(g, dy, n * sizeof *g);
    through_norm(p->bn, at, n, x->value + at, g);
    if (g == sum)
        qat_vector_add(x->grad + at, sum, n);
}

/** sum = sum of dy, sum_product = sum of dy x; masks dy. */
static void sum_columns(qat_bn *bn, struct pass *p)
{
    qat_columns const columns = {.a = p->node->grad,
                                 .b = p->node->inputs[0]->value,
                                 .rows = bn->rows,
                                 .columns = bn->channels,
                                 .prepare = p->node->tail ? mask_strips : NULL,
                                 .context = p};
    qat_column_sums(&columns, bn->partial, bn->sum, bn->sum_product);
}

/** sum dy xhat = inv_std (sum dy x - mean sum dy) */
static double gamma_gradient(const qat_bn *bn, int c)
{
    return (double)bn->inv_std[c] * (bn->sum_product[c] - (double)bn->mean[c] * bn->sum[c]);
}

void qat_bn_sum_gradient(qat_bn *bn, const qat_node *node, qat_real *dgamma, qat_real *dbeta)
{
    struct pass p = {bn, node};
    sum_columns(bn, &p);
    *bn->total = (double)bn->rows;
    for (int c = 0; c < bn->channels; c++) {
        if (dgamma)
            dgamma[c] += (qat_real)gamma_gradient(bn, c);
        if (dbeta)
            dbeta[c] += (qat_real)bn->sum[c];
    }
}

void qat_bn_backward(qat_bn *bn, const qat_node *node, bool through_batch)
{
    struct pass p = {bn, node};
    double const rows = *bn->total;
    if (!node->inputs[0]->grad)
        return;
    for (int c = 0; c < bn->channels; c++) {
        double const inv_std = (double)bn->inv_std[c], dg = gamma_gradient(bn, c);
        bn->wide.offset[c] = through_batch ? (qat_real)(bn->sum[c] / rows) : 0;
        bn->wide.slope[c] = through_batch ? (qat_real)(dg * inv_std / rows) : 0;
    }
    qat_wide_lay(bn->wide.offset, (size_t)bn->channels, bn->wide.offset);
    qat_wide_lay(bn->wide.slope, (size_t)bn->channels, bn->wide.slope);
    qat_run_strips(values_of(bn), backward_strip, &p);
}

double qat_bn_keep(double momentum, double steps)
{
    double const ramp = (1 + steps) / (10 + steps);
    if (!(steps > 0))
        return 0;
    return momentum < ramp ? momentum : ramp;
}

void qat_bn_update(const qat_bn *bn, double momentum, qat_real *ema_mean, qat_real *ema_variance,
                   qat_real *ema_steps)
{
    qat_real const keep = (qat_real)qat_bn_keep(momentum, (double)*ema_steps), take = 1 - keep;
    for (int c = 0; c < bn->channels; c++) {
        ema_mean[c] = keep * ema_mean[c] + take * bn->mean[c];
        ema_variance[c] = keep * ema_variance[c] + take * bn->variance[c];
    }
    *ema_steps += 1;
}

void qat_bn_weigh_statistics(const qat_bn *bn, double *weighed)
{
    size_t const n = (size_t)bn->channels;
    double const rows = (double)bn->rows;
    for (size_t c = 0; c < n; c++) {
        weighed[c] = rows * (double)bn->mean[c];
        weighed[n + c] = rows * (double)bn->variance[c];
    }
    weighed[2 * n] = rows;
}

void qat_bn_join_statistics(int channels, double *a, const double *b)
{
    for (size_t i = 0; i < qat_bn_sums(channels); i++)
        a[i] += b[i];
}

void qat_bn_set_statistics(qat_bn *bn, const double *weighed)
{
    size_t const n = (size_t)bn->channels;
    for (size_t c = 0; c < n; c++) {
        bn->mean[c] = (qat_real)(weighed[c] / weighed[2 * n]);
        bn->variance[c] = (qat_real)(weighed[n + c] / weighed[2 * n]);
    }
}

/**
 * The arithmetic of bn_fold_train per channel: from statistics to y = slope z + offset, and from
 * sums of gradients to the gradients of gamma, beta and the statistics. m, v, s and sB are defined
 * in op_bn_fold_train.c.
 *
 *     BATCH      slope = s / sB      offset = beta - gamma m / sB
 *     FROZEN     slope = 1           offset = beta - gamma EMA(m) / s
 */
#include "autograd/loops/wide.h"
#include "fold/fold_train.h"

/** one_pass: can m and v be computed from z? */
static bool tells_statistics(qat_real gamma)
{
    return QAT_FABS(gamma) >= (qat_real)1e-6;
}

/** s of one channel. */
static qat_real std_of(const qat_fold_train *f, int c)
{
    return qat_fold_std(qat_fold_input(f, FOLDT_EMA_VARIANCE)[c], f->node->attrs[FOLDT_EPSILON]);
}

/** Repeat two coefficients that were set per channel. */
static void lay(const qat_fold_train *f, qat_real *slope, qat_real *offset)
{
    qat_wide_lay(slope, (size_t)f->bn.channels, slope);
    qat_wide_lay(offset, (size_t)f->bn.channels, offset);
}

/* ------------------------------------------------------------------ forward */

/** Set bn's mean, variance and inv_std of the raw output from those of z. */
static void one_pass_statistics(qat_fold_train *f)
{
    for (int c = 0; c < f->bn.channels; c++) {
        qat_real const gamma = qat_fold_input(f, FOLDT_GAMMA)[c];
        bool const tells = tells_statistics(gamma);
        qat_real const ratio = tells ? std_of(f, c) / gamma : 0;
        f->z_mean[c] = f->bn.mean[c];
        f->bn.mean[c] = tells ? ratio * f->bn.mean[c] : qat_fold_input(f, FOLDT_EMA_MEAN)[c];
        f->bn.variance[c] =
            tells ? ratio * ratio * f->bn.variance[c] : qat_fold_input(f, FOLDT_EMA_VARIANCE)[c];
        f->bn.inv_std[c] = 1 / qat_fold_std(f->bn.variance[c], f->node->attrs[FOLDT_EPSILON]);
    }
}

/** Set the coefficients from the mean and variance of raw, or of z. */
static void batch_coefficients(qat_fold_train *f)
{
    const qat_node *raw = qat_fold_raw(f->node);
    if (!raw)
        one_pass_statistics(f);
    for (int c = 0; c < f->bn.channels; c++) {
        qat_real const gamma = qat_fold_input(f, FOLDT_GAMMA)[c];
        qat_real const beta = qat_fold_input(f, FOLDT_BETA)[c];
        f->slope[c] = std_of(f, c) * f->bn.inv_std[c];
        f->offset[c] = raw ? beta - gamma * f->bn.inv_std[c] * f->bn.mean[c]
                           : beta - f->slope[c] * f->z_mean[c]; /* gamma m = s E[z] */
    }
}

static void frozen_coefficients(qat_fold_train *f)
{
    for (int c = 0; c < f->bn.channels; c++) {
        f->slope[c] = 1;
        f->offset[c] = qat_fold_offset(
            qat_fold_input(f, FOLDT_GAMMA)[c], qat_fold_input(f, FOLDT_BETA)[c],
            qat_fold_input(f, FOLDT_EMA_MEAN)[c], qat_fold_input(f, FOLDT_EMA_VARIANCE)[c],
            f->node->attrs[FOLDT_EPSILON]);
    }
}

void qat_fold_coefficients(qat_fold_train *f)
{
    if (f->phase == QAT_FOLD_BATCH)
        batch_coefficients(f);
    else
        frozen_coefficients(f);
    lay(f, f->slope, f->offset);
}

/* ------------------------------------------------------------------ backward */

static void add_channel(const qat_fold_train *f, int input, int c, double value)
{
    qat_real *grad = f->node->inputs[input]->grad;
    if (grad)
        grad[c] += (qat_real)value;
}

/*
 * With i = 1 / sB, D = sum dy, P = sum dy z, N rows:
 *     y = s i z + beta - gamma m i
 *     dbeta = D      dgamma = -m i D      di = s P - gamma m D      dv = -i^3 / 2 di
 *     dm = -gamma i D      draw = dm / N + 2 dv (raw - m) / N      dz = s i dy
 */
static void two_pass_params(const qat_fold_train *f)
{
    for (int c = 0; c < f->bn.channels; c++) {
        double const i = (double)f->bn.inv_std[c], m = (double)f->bn.mean[c], d = f->bn.sum[c];
        add_channel(f, FOLDT_BETA, c, d);
        add_channel(f, FOLDT_GAMMA, c, -m * i * d);
    }
}

static void two_pass_coefficients(qat_fold_train *f)
{
    double const rows = *f->bn.total;
    for (int c = 0; c < f->bn.channels; c++) {
        double const i = (double)f->bn.inv_std[c], m = (double)f->bn.mean[c];
        double const gamma = (double)qat_fold_input(f, FOLDT_GAMMA)[c];
        double const d = f->bn.sum[c], p = f->bn.sum_product[c];
        double const dv = -0.5 * i * i * i * ((double)std_of(f, c) * p - gamma * m * d);
        f->raw_slope[c] = (qat_real)(2 * dv / rows);
        f->raw_offset[c] = (qat_real)((-gamma * i * d - 2 * dv * m) / rows);
    }
    lay(f, f->raw_slope, f->raw_offset);
}

/*
 * With mz = E[z] and vz = Var[z], v = s^2 vz / gamma^2:
 *     y = s i (z - mz) + beta
 *     dbeta = D      dv = -i^3 / 2 s (P - mz D)      dgamma = -2 dv v / gamma
 *     dz = s i (dy - D / N) + 2 dv (s / gamma)^2 (z - mz) / N
 * If gamma is almost 0, the terms of dv are left out.
 */
static double one_pass_dv(const qat_fold_train *f, int c)
{
    double const i = (double)f->bn.inv_std[c], s = (double)std_of(f, c);
    return -0.5 * i * i * i * s * (f->bn.sum_product[c] - (double)f->z_mean[c] * f->bn.sum[c]);
}

static void one_pass_params(const qat_fold_train *f)
{
    for (int c = 0; c < f->bn.channels; c++) {
        qat_real const gamma = qat_fold_input(f, FOLDT_GAMMA)[c];
        double const v = (double)f->bn.variance[c];
        add_channel(f, FOLDT_BETA, c, f->bn.sum[c]);
        if (tells_statistics(gamma))
            add_channel(f, FOLDT_GAMMA, c, -2 * one_pass_dv(f, c) * v / (double)gamma);
    }
}

static void one_pass_coefficients(qat_fold_train *f)
{
    double const rows = *f->bn.total;
    for (int c = 0; c < f->bn.channels; c++) {
        double const i = (double)f->bn.inv_std[c], mz = (double)f->z_mean[c];
        double const gamma = (double)qat_fold_input(f, FOLDT_GAMMA)[c];
        bool const tells = tells_statistics(qat_fold_input(f, FOLDT_GAMMA)[c]);
        double const s = (double)std_of(f, c), d = f->bn.sum[c];
        double const ratio = tells ? s / gamma : 0;
        double const slope = 2 * one_pass_dv(f, c) * ratio * ratio / rows;
        f->z_slope[c] = (qat_real)slope;
        f->z_offset[c] = (qat_real)(-s * i * d / rows - slope * mz);
    }
    lay(f, f->z_slope, f->z_offset);
}

static void frozen_params(const qat_fold_train *f)
{
    for (int c = 0; c < f->bn.channels; c++) {
        double const m = (double)qat_fold_input(f, FOLDT_EMA_MEAN)[c];
        add_channel(f, FOLDT_BETA, c, f->bn.sum[c]);
        add_channel(f, FOLDT_GAMMA, c, -m / (double)std_of(f, c) * f->bn.sum[c]);
    }
}

void qat_fold_param_gradients(const qat_fold_train *f)
{
    if (f->phase == QAT_FOLD_FROZEN)
        frozen_params(f);
    else if (qat_fold_raw(f->node))
        two_pass_params(f);
    else
        one_pass_params(f);
}

void qat_fold_gradient_coefficients(qat_fold_train *f)
{
    if (f->phase == QAT_FOLD_FROZEN)
        return;
    if (qat_fold_raw(f->node))
        two_pass_coefficients(f);
    else
        one_pass_coefficients(f);
}

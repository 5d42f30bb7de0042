/**
 * Batch-norm folding (Jacob et al. eq. 14): the constants of one channel.
 *
 *     s = sqrt(EMA(v) + eps)      w_fold = (gamma / s) w      b_fold = beta - (gamma / s) EMA(m)
 */
#ifndef QAT_FAKEQUANT_FOLD_H
#define QAT_FAKEQUANT_FOLD_H

#include "autograd/real.h"

/** s */
static inline qat_real qat_fold_std(qat_real ema_variance, double epsilon)
{
    return QAT_SQRT(ema_variance + (qat_real)epsilon);
}

/** gamma / s */
static inline qat_real qat_fold_factor(qat_real gamma, qat_real ema_variance, double epsilon)
{
    return gamma / qat_fold_std(ema_variance, epsilon);
}

/** beta - (gamma / s) EMA(m) */
static inline qat_real qat_fold_offset(qat_real gamma, qat_real beta, qat_real ema_mean,
                                       qat_real ema_variance, double epsilon)
{
    return beta - qat_fold_factor(gamma, ema_variance, epsilon) * ema_mean;
}

#endif

/**
 * The constants of one channel in batch-norm folding (Jacob et al. eq. 14).
 *
 *     s = sqrt(EMA(v) + eps)      w_fold = (gamma / s) w      b_fold = beta - (gamma / s) EMA(m)
 */
#ifndef QAT_FOLD_FOLD_H
#define QAT_FOLD_FOLD_H

#include "autograd/loops/real.h"
#include "fold/fold_notes.h"
#include "qat/graph.h"

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

/*
 * For a caller that computes the values of bn_fold_train itself: qat_bn_fold_wants_z,
 * qat_bn_fold_sums if it does not, qat_bn_fold_begin, qat_bn_fold_values.
 */

/** Does forward take statistics from z in this run? */
bool qat_bn_fold_wants_z(const qat_node *bn_fold_train, const qat_run *run);
/**
 * If it does not take statistics from z: set the sums over its batch, which qat_bn_fold_begin needs
 * (qat_shared.forward_sums).
 */
int qat_bn_fold_sums(qat_node *bn_fold_train, const qat_run *run, double **sums);
/** The coefficients of y = slope z + offset, repeated as in wide.h. */
typedef struct qat_fold_line {
    const qat_real *slope, *offset;
    qat_note_grid grid;
    uint16_t *notes; /* NULL: z's value is used */
} qat_fold_line;
/**
 * The caller sets the grid on which backward reads z, and stores z on this grid: as notes if the
 * node has room for them (qat_node_notes: first z's, then raw's), otherwise as z's value.
 * @param z_mean, z_variance  [channels], used if forward takes statistics from z
 */
qat_fold_line qat_bn_fold_begin(qat_node *bn_fold_train, const qat_run *run, const double *z_mean,
                                const double *z_variance);
/** Compute y of every value, and its tail, from z. */
void qat_bn_fold_values(qat_node *bn_fold_train);

#endif

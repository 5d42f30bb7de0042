/**
 * The arithmetic of batch normalisation (Ioffe and Szegedy, algorithm 1). The op batch_norm and its
 * folded form share it, so that both give the same bits.
 *
 * x is [rows, channels]: a tensor of any rank whose last dimension is the channel. Sums over rows
 * are taken in double over fixed blocks of rows, and the blocks are added in order. So the bits do
 * not depend on the number of threads.
 */
#ifndef QAT_AUTOGRAD_BATCH_NORM_H
#define QAT_AUTOGRAD_BATCH_NORM_H

#include "qat/graph.h"

/** The value of *ema_steps for averages from another source. After this many batches no rule for
 * the beginning of a run applies any more. A float still counts on exactly from here. */
#define QAT_BN_WARM_STEPS 1e6F

/** The working memory of one batch norm: pointers into a node's scratch. */
typedef struct qat_bn {
    size_t rows;
    int channels;
    qat_real *mean, *variance; /* [channels] the batch's biased variance, or the averages */
    qat_real *inv_std;         /* [channels] 1 / sqrt(variance + epsilon) */
    double *sum, *sum_product; /* [channels] results of the last reduction, one behind the other */
    double *total;             /* [1] behind them: the rows that were summed */
    double *partial;           /* qat_column_partials */
    struct {
        qat_real *mean, *gain, *beta; /* gain = gamma inv_std; forward sets them */
        qat_real *slope, *offset;     /* coefficients of dx, see qat_bn_backward */
    } wide;                           /* repeated as wide.h needs them */
} qat_bn;

/**
 * Place a qat_bn in scratch. Returns the bytes that it takes; fewer rows never take more.
 * @param scratch  64-byte aligned; NULL: only count
 */
size_t qat_bn_place(qat_bn *bn, void *scratch, size_t rows, int channels);

/** How many numbers sum, sum_product and total are: shards add up theirs (graph/shared.h). */
static inline size_t qat_bn_sums(int channels)
{
    return 2 * (size_t)channels + 1;
}

/** Set the sums of x and x^2. */
void qat_bn_sum_batch(qat_bn *bn, const qat_real *x);
/**
 * Use them: mean = E[x], variance = E[x^2] - E[x]^2 over the batch, inv_std = 1 / sqrt(variance +
 * epsilon).
 */
void qat_bn_use_sums(qat_bn *bn, double epsilon);

/** Use mean and variance from the averages instead (eval mode). */
void qat_bn_use_averages(qat_bn *bn, const qat_real *ema_mean, const qat_real *ema_variance,
                         double epsilon);

/**
 * y = (x - mean) (gamma inv_std) + beta. x is the value of the node's first input. y is written as
 * the node's value, or, through its tail, as the tail's value.
 */
void qat_bn_forward(const qat_bn *bn, const qat_node *node, const qat_real *gamma,
                    const qat_real *beta);

/**
 * The gradients: first of the parameters, and the sums of dy and dy x, then of x. One of the two
 * use functions and forward must have filled bn before. x and dx are the value and gradient of the
 * node's first input; dy is the gradient of the node, which its tail masks. dgamma and dbeta are
 * added to. All outputs but dy may be NULL.
 *     dbeta = sum dy     dgamma = sum dy xhat     xhat = (x - mean) inv_std
 *     through_batch (mean and variance depend on x):
 *         dx = gamma inv_std (dy - dbeta / rows - xhat dgamma / rows)
 *     otherwise (they are constants):
 *         dx = gamma inv_std dy
 */
void qat_bn_sum_gradient(qat_bn *bn, const qat_node *node, qat_real *dgamma, qat_real *dbeta);
void qat_bn_backward(qat_bn *bn, const qat_node *node, bool through_batch);

/**
 * The share of a moving average that stays when a batch is added to one of `steps` batches:
 *
 *     0                                          the first batch (steps is 0) replaces the start
 *     min(momentum, (1 + steps) / (10 + steps))  after it
 *
 * The second term forgets the beginning of a run, whose weights change fastest. With momentum 0.99
 * it is the smaller one for the first 890 batches.
 */
double qat_bn_keep(double momentum, double steps);

/**
 * Moving averages: ema = keep ema + (1 - keep) batch, keep = qat_bn_keep(momentum, *ema_steps).
 * Adds 1 to *ema_steps.
 */
void qat_bn_update(const qat_bn *bn, double momentum, qat_real *ema_mean, qat_real *ema_variance,
                   qat_real *ema_steps);

/**
 * For shards that are normalised each by itself: what one of them adds to the averages, as
 * qat_bn_sums numbers: mean and variance times rows, and rows; add b to a; set mean and variance to
 * those of all rows.
 */
void qat_bn_weigh_statistics(const qat_bn *bn, double *weighed);
void qat_bn_join_statistics(int channels, double *a, const double *b);
void qat_bn_set_statistics(qat_bn *bn, const double *weighed);

#endif

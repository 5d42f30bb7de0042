/**
 * The mean that a loss takes over the batch: what it adds up, and over how many. A loss keeps it
 * first in its scratch, so that shards of a batch can add up theirs (shared.h).
 */
#ifndef QAT_AUTOGRAD_MEAN_H
#define QAT_AUTOGRAD_MEAN_H

#include "autograd/graph/shared.h"

typedef struct qat_mean {
    double sum, count;
} qat_mean;

enum { QAT_MEAN_BYTES = 64 }; /* of scratch */

static inline qat_mean *qat_mean_of(const qat_node *node)
{
    return node->scratch;
}

/** Set the sum; sums points to both numbers for qat_shared.forward_sums. */
static inline int qat_mean_set(const qat_node *node, double sum, double count, double **sums)
{
    *qat_mean_of(node) = (qat_mean){sum, count};
    *sums = &qat_mean_of(node)->sum;
    return 2;
}

/** At least 1: a batch without anything known has the mean 0. */
static inline double qat_mean_count(const qat_node *node)
{
    return qat_mean_of(node)->count > 0 ? qat_mean_of(node)->count : 1;
}

/** The same for backward. A graph without shards counts again: backward may run twice. */
static inline double qat_mean_counted(const qat_node *node, double own)
{
    return qat_shard_of(node) >= 0 ? qat_mean_count(node) : own > 0 ? own : 1;
}

/** For qat_shared.forward of a loss that is the mean itself. */
static inline void qat_mean_forward(qat_node *node, const qat_run *unused)
{
    (void)unused;
    node->value[0] = (qat_real)(qat_mean_of(node)->sum / qat_mean_count(node));
}

#endif

/**
 * What an op adds up over the samples of a batch. If a batch is cut into shards (shards.h), each
 * shard has a node of the op. The parts of such an op run in this order, each for all shards before
 * the next one begins:
 *
 *     forward_sums -> the sums of all shards are added up, and replace those of each -> forward
 *     backward_sums -> likewise -> backward
 *     after the optimizer: observed of each shard -> join -> set_observed of the first -> op.update
 *
 * In a graph without shards op.forward and op.backward do all of it.
 */
#ifndef QAT_AUTOGRAD_SHARED_H
#define QAT_AUTOGRAD_SHARED_H

#include "qat/graph.h"

typedef struct qat_shared {
    /**
     * Add up over the samples of this node. Sets *sums, which lie in the node's memory, and returns
     * their number; 0: this run needs no sums.
     */
    int (*forward_sums)(qat_node *node, const qat_run *run, double **sums);
    void (*forward)(qat_node *node, const qat_run *run);
    /**
     * The same of gradients; gradients of parameters are those of this shard. Both may be NULL:
     * op.backward needs no sums but those of forward.
     */
    int (*backward_sums)(qat_node *node, const qat_run *run, double **sums);
    void (*backward)(qat_node *node, const qat_run *run);
    /**
     * What a training step has observed, for update: return how many numbers it is, and write it to
     * `observed` unless that is NULL; join b to a; set it. All three may be NULL.
     */
    int (*observed)(const qat_node *node, const qat_run *run, double *observed);
    void (*join)(const qat_node *node, double *a, const double *b);
    void (*set_observed)(qat_node *node, const double *observed);
    /** A batch norm: the graph may normalise each shard by itself (qat_shards_split_batch_norm). */
    bool is_batch_norm;
} qat_shared;

/**
 * Does the node add up over the samples of all shards in forward? No: it has the whole batch, or
 * does with its shard what it does with a batch.
 */
bool qat_is_shared(const qat_node *node);
/** How many shards the batch of the node's graph has; 1: it is not cut. */
int qat_shards_of(const qat_node *node);
/** The shard of the node's graph; -1: its graph has the whole batch. */
int qat_shard_of(const qat_node *node);

#endif

/**
 * A batch in shards: successive samples, as many as `shards` says, whoever computes them. Each
 * shard has a graph of its own. The graphs run side by side and share their parameters. What a
 * batch adds up (gradients, batch norm's moments, losses, observations) is added up in each shard
 * and then over the shards, in a tree that follows from their number alone (tree.h). So the
 * bits depend on the number of shards, but not on the number of threads and ranks.
 *
 *     qat_shards_create(&s, 8, 64, ranks, &err);       // ranks: NULL, or this process owns some
 *     for (i = 0; i < qat_shards_own(s); i++) graphs[i] = ...        // equal, not planned
 *     qat_shards_plan(s, graphs, QAT_PLAN_TRAIN, &err);
 *     qat_graph_init_params(graphs[0], seed);          // the first graph has the parameters
 *     for each step:
 *         feed graphs[i] with the samples of qat_shards_samples(s, i)
 *         qat_shards_forward(s, &run);
 *         qat_shards_backward(s, loss, &run);          // loss: of graphs[0]
 *         qat_optimizer_step(...);                     // of graphs[0]
 *         qat_shards_update(s, &run);
 *
 *     forward    CORE_FIXED nodes, in graphs[0]        (weights and their quantization)
 *                the others, of all graphs; sums of a shared node stop them all
 *     backward   the others; finished gradients of parameters are added up and exchanged meanwhile
 *                CORE_FIXED nodes, in graphs[0]
 */
#ifndef QAT_AUTOGRAD_SHARDS_H
#define QAT_AUTOGRAD_SHARDS_H

#include "qat/graph.h"
#include "qat/ranks.h"

typedef struct qat_shards qat_shards;

/** The samples [begin, end) of a batch. */
typedef struct qat_samples {
    int begin, end;
} qat_samples;

/**
 * Cut batches of `batch` samples.
 * @param ranks  borrowed; NULL: this process has all shards
 * @return       QAT_ERR_ARGUMENT if there are more shards than samples or more ranks than shards
 */
qat_status qat_shards_create(qat_shards **shards, int count, int batch, const qat_ranks *ranks,
                             qat_error *err);
void qat_shards_free(qat_shards *shards); /* NULL is fine */
/**
 * Before planning: let batch norm take the mean and variance of each shard, not those of the batch.
 * Its averages are then of the means over the shards, weighted by their samples.
 */
void qat_shards_split_batch_norm(qat_shards *shards);
/** How many shards this process owns; the samples of number i of them, and of all of them. */
int qat_shards_own(const qat_shards *shards);
qat_samples qat_shards_samples(const qat_shards *shards, int i);
qat_samples qat_shards_all_samples(const qat_shards *shards);

/**
 * Plan the graphs, which are borrowed, one for each own shard. QAT_ERR_UNSUPPORTED names a node
 * that cannot be cut.
 */
qat_status qat_shards_plan(qat_shards *shards, qat_graph *const *graphs, qat_plan plan,
                           qat_error *err);

void qat_shards_forward(qat_shards *shards, const qat_run *run);
/** Afterwards the gradients of the parameters are in the first graph. */
void qat_shards_backward(qat_shards *shards, qat_node *loss, const qat_run *run);
/** Only the first graph is updated: it has the parameters. */
void qat_shards_update(qat_shards *shards, const qat_run *run);
/** Forward of what does not depend on samples alone: parameters, and what follows from them. */
void qat_shards_forward_params(qat_shards *shards, const qat_run *run);

/**
 * For two processes, one of which computes gradients with the parameters of the other: messages
 * with what its nodes observed. Each has one shard, with split batch norm, and the same parameters
 * when it calls this, before the step of the run `first`. Later steps never observe more.
 * @param n  how many numbers a message has
 */
qat_status qat_shards_plan_messages(qat_shards *shards, const qat_run *first, size_t *n,
                                    qat_error *err);
/** After backward: what this process observed. */
void qat_shards_write_observed(const qat_shards *shards, const qat_run *run, double *observed);
/**
 * After qat_shards_forward_params and a step of the optimizer: update with what the other one has
 * observed, maybe with parameters of an earlier step.
 */
void qat_shards_update_remote(qat_shards *shards, const qat_run *run, const double *observed);

/** The first error of these functions; it is kept. */
qat_status qat_shards_status(qat_shards *shards, qat_error *err);

/** Add up n whole numbers over the ranks. */
qat_status qat_shards_add_up(qat_shards *shards, double *counts, int n, qat_error *err);

/** Seconds that this rank has waited for others, and bytes that it has sent, since the last call.
 */
typedef struct qat_shards_cost {
    double waited;
    long long bytes;
} qat_shards_cost;
qat_shards_cost qat_shards_take_cost(qat_shards *shards);

#endif

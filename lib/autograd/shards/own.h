/**
 * Private to lib/autograd/shards: the shards of this process.
 */
#ifndef QAT_AUTOGRAD_OWN_H
#define QAT_AUTOGRAD_OWN_H

#include "autograd/graph/core.h"
#include "autograd/shards/shards.h"
#include "autograd/shards/tree.h"

/** What the sums of small things need: see qat_sum_over_shards. */
typedef struct shard_room {
    double *send, *receive; /* the roots of this rank, of all ranks */
    size_t most;            /* numbers of one root for which there is room */
} shard_room;

/** Gradients that are exchanged together. */
typedef struct shard_bucket shard_bucket;

struct qat_shards {
    qat_shard_tree tree;
    const qat_ranks *ranks; /* NULL: all shards are here */
    int rank, first, own;   /* shards first .. first + own - 1 */
    int batch;
    bool split_batch_norm;
    qat_graph **graphs; /* own */
    void **slots;       /* [tree.shards], for joins */
    int *starts;        /* [tree.shards]: the roots of the ranks, one rank after the other */
    int *roots;         /* [ranks + 1]: where those of a rank begin in starts */

    double **sums; /* [own]: where the sums of the node are that stopped the graphs */
    int *n_sums;   /* [own] */
    double *means; /* [own] */
    shard_room room;

    core_node **ready; /* of graphs[0]: partial gradients in the order in which they are finished */
    int n_ready, n_joined;
    size_t unsent; /* values of those that are joined and in no bucket yet */
    shard_bucket *buckets;
    int n_buckets, buckets_started;

    int *seen; /* by node: how many numbers a message has of it (remote.c); NULL: none is sent */

    qat_error error;
    qat_shards_cost cost;
};

/** No samples: the first graph computes it for all. */
static inline bool qat_is_fixed(const core_node *core)
{
    return core->kind == CORE_FIXED;
}

/** How many numbers a node of a shard has observed; writes them unless `observed` is NULL. */
int qat_shards_observed(const qat_graph *g, int k, const qat_run *run, double *observed);

/** Keep the first error. */
void qat_shards_failed(qat_shards *s, const qat_error *err);
/** Wait until an exchange is done. Returns false after an error, which is kept. */
bool qat_shards_wait(qat_shards *s, qat_exchange *x);
bool qat_shards_begin(qat_shards *s, qat_exchange *x);

/** How many of the roots of all ranks are the rank's. */
static inline int qat_shards_roots_of(const qat_shards *s, int rank)
{
    return s->roots[rank + 1] - s->roots[rank];
}

/**
 * parts[i] has n numbers of own shard i: join them over all shards; each part becomes the whole.
 * join: a qat_join_fn for such parts.
 */
void qat_sum_over_shards(qat_shards *s, double *const *parts, size_t n, qat_join_fn *join,
                         void *context);

/** Begin a backward pass: list the partial gradients. */
void qat_shard_gradients_begin(qat_shards *s);
/** Node `done` and all after it have run: join what is finished, and send full buckets. */
void qat_shard_gradients_advance(qat_shards *s, int done);
/** Would the nodes from i on, if they had run, finish enough gradients for a bucket? */
bool qat_shard_gradients_due(const qat_shards *s, int i);
/** Wait for all buckets, and set the gradients of the first graph. */
void qat_shard_gradients_end(qat_shards *s);
void qat_shard_gradients_free(qat_shards *s);

#endif

/**
 * The tree in which sums over a batch are added up. Its leaves are the shards of the batch, and it
 * follows from their number alone:
 *
 *     sum[a, b) = sum[a, m) + sum[m, b),  m = a + the largest power of two below b - a
 *
 *     6 shards, 2 ranks:          +
 *                           /           \
 *                         +               +          rank 0 owns 0 1 2, rank 1 owns 3 4 5
 *                      /     \           / \
 *                     +       +         4   5        roots of rank 0: [0,2) [2,3)
 *                    / \     / \                     roots of rank 1: [3,4) [4,6)
 *                   0   1   2   3
 *
 * Each rank owns successive shards. It adds up the largest subtrees that are its own, whose roots
 * are exchanged; then every rank finishes the same tree. So the bits of a sum do not depend on the
 * number of ranks. The same holds for anything that is joined in place of added.
 */
#ifndef QAT_AUTOGRAD_TREE_H
#define QAT_AUTOGRAD_TREE_H

#include <stddef.h>

typedef struct qat_shard_tree {
    int shards, ranks; /* ranks <= shards */
} qat_shard_tree;

/** The first shard of a rank; of rank `ranks`, the number of shards. */
static inline int qat_tree_first(const qat_shard_tree *t, int rank)
{
    return (int)((long long)rank * t->shards / t->ranks);
}

/** a = a joined with b */
typedef void qat_join_fn(void *context, void *a, const void *b);

/** slots[i] is what shard i has: join the subtrees of a rank. The root [a, b) is in slots[a]. */
void qat_tree_join_own(const qat_shard_tree *t, int rank, void *const *slots, qat_join_fn *join,
                       void *context);
/** Join the roots of all ranks; the result is in slots[0]. */
void qat_tree_join_roots(const qat_shard_tree *t, void *const *slots, qat_join_fn *join,
                         void *context);
/** Set the first shard of each root of a rank, in order; returns their number. starts: [shards] */
int qat_tree_roots(const qat_shard_tree *t, int rank, int *starts);

/** A qat_join_fn for sums: context is the number of values, a size_t. */
void qat_join_doubles(void *context, void *a, const void *b);

#endif

#include "autograd/shards/tree.h"

#include <stdbool.h>

/** What a walk over the tree does. rank -1: it joins what is above the roots. */
struct walk {
    const qat_shard_tree *tree;
    int rank;
    void *const *slots;
    qat_join_fn *join;
    void *context;
    int *starts, n; /* of roots, if they are asked for */
};

static int owner_of(const qat_shard_tree *t, int shard)
{
    return (int)((((long long)shard + 1) * t->ranks - 1) / t->shards);
}

static int middle_of(int begin, int end)
{
    int half = 1;
    while (2 * half < end - begin)
        half *= 2;
    return begin + half;
}

static void join_all(const struct walk *w, int begin, int end)
{
    if (end - begin < 2)
        return;
    int const middle = middle_of(begin, end);
    join_all(w, begin, middle);
    join_all(w, middle, end);
    w->join(w->context, w->slots[begin], w->slots[middle]);
}

static void walk(struct walk *w, int begin, int end)
{
    int const owner = owner_of(w->tree, begin), middle = middle_of(begin, end);
    bool const is_root = owner == owner_of(w->tree, end - 1);
    if (is_root && owner == w->rank && w->starts)
        w->starts[w->n++] = begin;
    else if (is_root && owner == w->rank)
        join_all(w, begin, end);
    if (is_root)
        return;
    walk(w, begin, middle);
    walk(w, middle, end);
    if (w->rank < 0)
        w->join(w->context, w->slots[begin], w->slots[middle]);
}

void qat_tree_join_own(const qat_shard_tree *t, int rank, void *const *slots, qat_join_fn *join,
                       void *context)
{
    walk(&(struct walk){.tree = t, .rank = rank, .slots = slots, .join = join, .context = context},
         0, t->shards);
}

void qat_tree_join_roots(const qat_shard_tree *t, void *const *slots, qat_join_fn *join,
                         void *context)
{
    walk(&(struct walk){.tree = t, .rank = -1, .slots = slots, .join = join, .context = context}, 0,
         t->shards);
}

int qat_tree_roots(const qat_shard_tree *t, int rank, int *starts)
{
    struct walk w = {.tree = t, .rank = rank, .starts = starts};
    walk(&w, 0, t->shards);
    return w.n;
}

void qat_join_doubles(void *context, void *a, const void *b)
{
    size_t const n = *(const size_t *)context;
    double *sum = a;
    const double *more = b;
    for (size_t i = 0; i < n; i++)
        sum[i] += more[i];
}

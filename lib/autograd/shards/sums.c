/** Sums over shards that all graphs wait for: few numbers, so every rank gets all roots. */
#include "autograd/shards/own.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(qat_shards *s, size_t n)
{
    size_t const all = (size_t)s->roots[s->tree.ranks];
    size_t const own = (size_t)qat_shards_roots_of(s, s->rank);
    if (n <= s->room.most)
        return true;
    free(s->room.send);
    free(s->room.receive);
    s->room.send = malloc(own * n * sizeof(double));
    s->room.receive = malloc(all * n * sizeof(double));
    s->room.most = s->room.send && s->room.receive ? n : 0;
    return s->room.most != 0;
}

/** Exchange the roots; those of other ranks are in their slots then. */
static bool exchange_roots(qat_shards *s, size_t n)
{
    int const others = s->tree.ranks - 1, own = qat_shards_roots_of(s, s->rank);
    qat_piece *pieces = malloc(2 * (size_t)others * sizeof *pieces);
    qat_exchange x = {.channel = 0, .send = pieces, .receive = pieces ? pieces + others : NULL};
    if (!pieces || !make_room(s, n)) {
        qat_error err;
        free(pieces);
        qat_out_of_memory(&err, "sums over shards");
        qat_shards_failed(s, &err);
        return false;
    }
    for (int i = 0; i < own; i++)
        memcpy(s->room.send + (size_t)i * n, s->slots[s->starts[s->roots[s->rank] + i]],
               n * sizeof(double));
    for (int rank = 0; rank < s->tree.ranks; rank++) {
        double *at = s->room.receive + (size_t)s->roots[rank] * n;
        if (rank == s->rank)
            continue;
        x.send[x.n_send++] = (qat_piece){rank, s->room.send, (size_t)own * n * sizeof(double)};
        x.receive[x.n_receive++] =
            (qat_piece){rank, at, (size_t)qat_shards_roots_of(s, rank) * n * sizeof(double)};
        for (int i = 0; i < qat_shards_roots_of(s, rank); i++)
            s->slots[s->starts[s->roots[rank] + i]] = at + (size_t)i * n;
    }
    bool const done = qat_shards_begin(s, &x) && qat_shards_wait(s, &x);
    free(pieces);
    return done;
}

void qat_sum_over_shards(qat_shards *s, double *const *parts, size_t n, qat_join_fn *join,
                         void *context)
{
    for (int i = 0; i < s->own; i++)
        s->slots[s->first + i] = parts[i];
    qat_tree_join_own(&s->tree, s->rank, s->slots, join, context);
    if (s->tree.ranks > 1) {
        if (!exchange_roots(s, n))
            return;
        qat_tree_join_roots(&s->tree, s->slots, join, context);
    }
    const double *whole = s->slots[0];
    for (int i = 0; i < s->own; i++)
        if (parts[i] != whole)
            memcpy(parts[i], whole, n * sizeof(double));
}

/**
 * Gradients of parameters, over shards. Each own shard has its part in its own graph. When a
 * gradient is finished in all of them, their parts are joined to the roots of this rank. Without
 * other ranks that is the whole sum. Else gradients are exchanged in buckets of about a megabyte
 * while backward goes on:
 *
 *     roots       rank k gets from every rank the k-th slice of the bucket, of all roots
 *     join        it finishes the tree, for its slice
 *     whole       every rank gets all slices
 *
 * So a rank sends about twice what the parameters take, however many ranks there are.
 */
#include "autograd/shards/own.h"

#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKET_VALUES = 1 << 18, ROOTS = 1, WHOLE = 2 /* channels */ };

typedef enum bucket_state { BUCKET_ROOTS, BUCKET_WHOLE, BUCKET_DONE } bucket_state;

struct shard_bucket {
    bucket_state state;
    int first, n; /* gradients: s->ready[first] .. */
    size_t values, room;
    qat_real *memory; /* of the three: */
    qat_real *roots;  /* [own roots][values] */
    qat_real *slices; /* [all roots][slice] */
    qat_real *whole;  /* [values] */
    qat_exchange x;
    qat_piece *pieces; /* of x */
};

/* ------------------------------------------------------------------ what is finished when */

void qat_shard_gradients_begin(qat_shards *s)
{
    qat_graph *g = s->graphs[0];
    s->n_ready = s->n_joined = s->buckets_started = 0;
    s->unsent = 0;
    for (int i = 0; i < g->count; i++)
        if (g->nodes[i]->partial && g->nodes[i]->node.grad && g->nodes[i]->last_writer >= 0)
            s->ready[s->n_ready++] = g->nodes[i];
    for (int i = 1; i < s->n_ready; i++) /* by falling last_writer; almost in order already */
        for (int k = i; k > 0 && s->ready[k - 1]->last_writer < s->ready[k]->last_writer; k--) {
            core_node *const later = s->ready[k - 1];
            s->ready[k - 1] = s->ready[k];
            s->ready[k] = later;
        }
}

static size_t values_of(const core_node *core)
{
    return qat_shape_count(&core->node.shape);
}

bool qat_shard_gradients_due(const qat_shards *s, int i)
{
    size_t values = s->unsent;
    for (int k = s->n_joined; k < s->n_ready && s->ready[k]->last_writer >= i; k++)
        values += values_of(s->ready[k]);
    return values >= BUCKET_VALUES && s->tree.ranks > 1;
}

/* ------------------------------------------------------------------ own shards */

/** Joins a tile of one gradient. */
struct joined {
    qat_shards *s;
    size_t n;
    void *const *slots;
};

static void add_span(void *context, void *a, const void *b)
{
    const qat_span *span = context;
    qat_vector_add((qat_real *)a + span->begin, (const qat_real *)b + span->begin,
                   span->end - span->begin);
}

static void join_tile(void *context, int tile, int thread)
{
    const struct joined *j = context;
    qat_span span = qat_tile_span(j->n, QAT_TILE_VALUES, tile);
    (void)thread;
    qat_tree_join_own(&j->s->tree, j->s->rank, j->slots, add_span, &span);
}

static void join_own(qat_shards *s, const core_node *core)
{
    struct joined j = {s, values_of(core), s->slots};
    for (int i = 0; i < s->own; i++)
        s->slots[s->first + i] = s->graphs[i]->nodes[core->node.index]->node.grad;
    qat_parallel(qat_tiles_of(j.n, QAT_TILE_VALUES), join_tile, &j);
}

/* ------------------------------------------------------------------ buckets */

static qat_span slice_of(const qat_shards *s, const shard_bucket *b, int rank)
{
    return qat_block_span(b->values, s->tree.ranks, rank);
}

static size_t length(qat_span span)
{
    return span.end - span.begin;
}

static bool out_of_memory(qat_shards *s)
{
    qat_error err;
    qat_out_of_memory(&err, "gradients of shards");
    qat_shards_failed(s, &err);
    return false;
}

/** Make room for the bucket's values. They are the same in each step, so only the first allocates.
 */
static bool reserve(qat_shards *s, shard_bucket *b)
{
    size_t const own = (size_t)qat_shards_roots_of(s, s->rank);
    size_t const all = (size_t)s->roots[s->tree.ranks];
    size_t const slice = b->values / (size_t)s->tree.ranks + 1;
    if (b->values > b->room) {
        free(b->memory);
        b->memory = malloc(((own + 1) * b->values + all * slice) * sizeof *b->memory);
        b->room = b->memory ? b->values : 0;
    }
    if (!b->pieces)
        b->pieces = calloc(all + own * (size_t)s->tree.ranks, sizeof *b->pieces);
    if (!b->memory || !b->pieces)
        return out_of_memory(s);
    b->roots = b->memory;
    b->whole = b->roots + own * b->values;
    b->slices = b->whole + b->values;
    return true;
}

static void copy_roots(qat_shards *s, shard_bucket *b)
{
    size_t at = 0;
    for (int i = 0; i < b->n; i++) {
        const core_node *core = s->ready[b->first + i];
        size_t const n = values_of(core);
        for (int r = 0; r < qat_shards_roots_of(s, s->rank); r++) {
            int const shard = s->starts[s->roots[s->rank] + r] - s->first;
            const qat_real *part = s->graphs[shard]->nodes[core->node.index]->node.grad;
            memcpy(b->roots + (size_t)r * b->values + at, part, n * sizeof *part);
        }
        at += n;
    }
}

static void add_piece(qat_piece *pieces, int *n, int rank, qat_real *at, size_t values)
{
    if (values)
        pieces[(*n)++] = (qat_piece){rank, at, values * sizeof *at};
}

/** Send every rank its slice of the own roots; get the own slice of all others'. */
static void send_roots(qat_shards *s, shard_bucket *b)
{
    int const own = qat_shards_roots_of(s, s->rank);
    qat_span const mine = slice_of(s, b, s->rank);
    b->x = (qat_exchange){.channel = ROOTS, .send = b->pieces};
    b->x.receive = b->pieces + (size_t)own * (size_t)s->tree.ranks;
    for (int rank = 0; rank < s->tree.ranks; rank++) {
        qat_span const slice = slice_of(s, b, rank);
        for (int r = 0; rank != s->rank && r < own; r++)
            add_piece(b->x.send, &b->x.n_send, rank, b->roots + (size_t)r * b->values + slice.begin,
                      length(slice));
        for (int r = s->roots[rank]; rank != s->rank && r < s->roots[rank + 1]; r++)
            add_piece(b->x.receive, &b->x.n_receive, rank, b->slices + (size_t)r * length(mine),
                      length(mine));
    }
    b->state = BUCKET_ROOTS;
    qat_shards_begin(s, &b->x);
}

/** Finish the tree for the own slice, and send it to all. */
static void send_whole(qat_shards *s, shard_bucket *b)
{
    qat_span const mine = slice_of(s, b, s->rank);
    qat_span all = {0, length(mine)};
    for (int rank = 0; rank < s->tree.ranks; rank++)
        for (int r = s->roots[rank]; r < s->roots[rank + 1]; r++)
            s->slots[s->starts[r]] =
                rank == s->rank ? b->roots + (size_t)(r - s->roots[rank]) * b->values + mine.begin
                                : b->slices + (size_t)r * length(mine);
    qat_tree_join_roots(&s->tree, s->slots, add_span, &all);
    memcpy(b->whole + mine.begin, s->slots[0], length(mine) * sizeof *b->whole);
    b->x = (qat_exchange){.channel = WHOLE, .send = b->pieces};
    b->x.receive = b->pieces + s->tree.ranks;
    for (int rank = 0; rank < s->tree.ranks; rank++) {
        qat_span const slice = slice_of(s, b, rank);
        if (rank == s->rank)
            continue;
        add_piece(b->x.send, &b->x.n_send, rank, b->whole + mine.begin, length(mine));
        add_piece(b->x.receive, &b->x.n_receive, rank, b->whole + slice.begin, length(slice));
    }
    b->state = BUCKET_WHOLE;
    qat_shards_begin(s, &b->x);
}

static void set_gradients(qat_shards *s, shard_bucket *b)
{
    size_t at = 0;
    for (int i = 0; i < b->n; i++) {
        qat_node *node = &s->ready[b->first + i]->node;
        memcpy(node->grad, b->whole + at, values_of(s->ready[b->first + i]) * sizeof *node->grad);
        at += values_of(s->ready[b->first + i]);
    }
    b->state = BUCKET_DONE;
}

/** Is the exchange that a bucket waits for done? */
static bool arrived(qat_shards *s, shard_bucket *b, bool wait)
{
    qat_error err = {0};
    bool done = false;
    if (wait)
        return qat_shards_wait(s, &b->x);
    if (s->ranks->done(s->ranks->context, &b->x, false, &done, &err))
        qat_shards_failed(s, &err);
    return done && !s->error.status;
}

/** Let the buckets go on, in order: so all ranks begin the exchanges of a channel in one order. */
static void push_buckets(qat_shards *s, bool wait)
{
    for (bucket_state state = BUCKET_ROOTS; state < BUCKET_DONE; state++)
        for (int i = 0; i < s->buckets_started && !s->error.status; i++) {
            shard_bucket *b = &s->buckets[i];
            if (b->state > state)
                continue;
            if (b->state < state || !arrived(s, b, wait))
                break;
            if (state == BUCKET_ROOTS)
                send_whole(s, b);
            else
                set_gradients(s, b);
        }
}

static shard_bucket *next_bucket(qat_shards *s)
{
    if (s->buckets_started == s->n_buckets) {
        shard_bucket *more = realloc(s->buckets, ((size_t)s->n_buckets + 1) * sizeof *s->buckets);
        if (!more) {
            out_of_memory(s);
            return NULL;
        }
        s->buckets = more;
        s->buckets[s->n_buckets++] = (shard_bucket){0};
    }
    return &s->buckets[s->buckets_started];
}

/** Send what is joined and in no bucket yet: the last gradients of s->ready up to n_joined. */
static void start_bucket(qat_shards *s)
{
    shard_bucket *b = next_bucket(s);
    if (!b)
        return;
    const shard_bucket *before = s->buckets_started ? b - 1 : NULL;
    b->first = before ? before->first + before->n : 0;
    b->n = s->n_joined - b->first;
    b->values = s->unsent;
    if (!reserve(s, b))
        return;
    copy_roots(s, b);
    send_roots(s, b);
    s->buckets_started++;
    s->unsent = 0;
}

void qat_shard_gradients_advance(qat_shards *s, int done)
{
    while (s->n_joined < s->n_ready && s->ready[s->n_joined]->last_writer >= done) {
        core_node *core = s->ready[s->n_joined++];
        join_own(s, core);
        s->unsent += values_of(core);
        if (s->tree.ranks > 1 && s->unsent >= BUCKET_VALUES)
            start_bucket(s);
    }
    if (s->tree.ranks > 1)
        push_buckets(s, false);
}

void qat_shard_gradients_end(qat_shards *s)
{
    if (s->tree.ranks < 2 || s->error.status)
        return;
    if (s->unsent)
        start_bucket(s);
    push_buckets(s, true);
}

void qat_shard_gradients_free(qat_shards *s)
{
    for (int i = 0; i < s->n_buckets; i++) {
        free(s->buckets[i].memory);
        free(s->buckets[i].pieces);
    }
    free(s->buckets);
}

#include "tests/unit/shards/thread_ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

/** A piece on its way. */
typedef struct letter {
    struct letter *next;
    size_t bytes;
    char text[];
} letter;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t came;
    letter *box[MOST][MOST][QAT_CHANNELS]; /* from, to, channel */
} post = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

typedef struct member {
    qat_ranks table;
    void (*fn)(void *context, const qat_ranks *ranks);
    void *context;
    pthread_t thread;
} member;

static qat_status begin(void *context, qat_exchange *x, qat_error *err)
{
    const member *me = context;
    for (int i = 0; i < x->n_send; i++) {
        const qat_piece *piece = &x->send[i];
        letter *l = malloc(sizeof *l + piece->bytes);
        if (!l)
            return qat_out_of_memory(err, "test");
        l->next = NULL;
        l->bytes = piece->bytes;
        memcpy(l->text, piece->at, piece->bytes);
        pthread_mutex_lock(&post.lock);
        letter **at = &post.box[me->table.rank][piece->rank][x->channel];
        while (*at)
            at = &(*at)->next;
        *at = l;
        pthread_cond_broadcast(&post.came);
        pthread_mutex_unlock(&post.lock);
    }
    x->handle = x;
    return QAT_OK;
}

/** Take what came, in order; a piece that was taken has no bytes left. */
static bool take(const member *me, const qat_exchange *x)
{
    bool all = true;
    for (int i = 0; i < x->n_receive; i++) {
        qat_piece *piece = &x->receive[i];
        letter **box = &post.box[piece->rank][me->table.rank][x->channel], *l = *box;
        if (piece->bytes && l) {
            *box = l->next;
            memcpy(piece->at, l->text, l->bytes < piece->bytes ? l->bytes : piece->bytes);
            piece->bytes = 0;
            free(l);
        } else {
            all = all && !piece->bytes;
        }
    }
    return all;
}

static qat_status done(void *context, qat_exchange *x, bool wait, bool *is_done, qat_error *err)
{
    (void)err;
    pthread_mutex_lock(&post.lock);
    while (!(*is_done = take(context, x)) && wait)
        pthread_cond_wait(&post.came, &post.lock);
    pthread_mutex_unlock(&post.lock);
    return QAT_OK;
}

static const char *name(void *context)
{
    (void)context;
    return "a thread";
}

static void *run(void *context)
{
    member *me = context;
    me->fn(me->context, &me->table);
    return NULL;
}

void thread_ranks_run(int n, void (*fn)(void *context, const qat_ranks *ranks), void *context)
{
    member members[MOST];
    for (int i = 0; i < n; i++) {
        members[i] = (member){.fn = fn, .context = context};
        members[i].table = (qat_ranks){i, n, &members[i], begin, done, name};
        if (pthread_create(&members[i].thread, NULL, run, &members[i]))
            abort();
    }
    for (int i = 0; i < n; i++)
        pthread_join(members[i].thread, NULL);
}

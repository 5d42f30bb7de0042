/**
 * Ranks by MPI. Pieces are messages between two ranks, with the channel as their tag.
 *
 * A thread of its own tells the next rank that this one lives, and watches the one before: rank 0
 * is watched by rank 1, ..., the last one by rank 0. Whoever misses the signs for too long says so
 * and ends all ranks. A slow rank gives signs: only one that is dead, stopped, or cut off does not.
 */
#include "tools/ranks/ranks.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_MAX_LENGTH = 128,
    LARGEST = 1 << 30, /* bytes of one message */
    SPINS = 2000,      /* looks before a waiting rank begins to sleep between them */
    SLEEP_US = 20,
    STOPPED_SECONDS = 1 /* of a turn of the watcher, which takes a twentieth of it */
};

typedef struct mpi_ranks {
    qat_ranks table;
    MPI_Comm pieces, life;
    char (*names)[NAME_MAX_LENGTH]; /* of all ranks */
    int timeout;
    bool watched; /* MPI takes calls of two threads */
    atomic_bool ends;
    pthread_t watcher;
    FILE *timeline; /* NULL: none is written */
} mpi_ranks;

/** Messages on their way. */
typedef struct messages {
    double began, waited; /* seconds; waited: since then nothing else was done, 0: not at all */
    size_t bytes;         /* that are sent */
    int n;
    MPI_Request requests[];
} messages;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static qat_status failed(int code, qat_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return qat_fail(err, QAT_ERR_STATE, "MPI: %.300s", text);
}

/* ------------------------------------------------------------------ exchanges */

static int messages_of(const qat_piece *pieces, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += (int)((pieces[i].bytes + LARGEST - 1) / LARGEST);
    return count;
}

static int start_piece(const mpi_ranks *m, const qat_piece *p, int tag, bool send, messages *all)
{
    int code = MPI_SUCCESS;
    for (size_t at = 0; !code && at < p->bytes; at += LARGEST) {
        int const n = p->bytes - at < LARGEST ? (int)(p->bytes - at) : LARGEST;
        char *from = (char *)p->at + at;
        MPI_Request *request = &all->requests[all->n++];
        code = send ? MPI_Isend(from, n, MPI_BYTE, p->rank, tag, m->pieces, request)
                    : MPI_Irecv(from, n, MPI_BYTE, p->rank, tag, m->pieces, request);
    }
    return code;
}

static qat_status begin(void *context, qat_exchange *x, qat_error *err)
{
    const mpi_ranks *m = context;
    int const n = messages_of(x->send, x->n_send) + messages_of(x->receive, x->n_receive);
    messages *all = malloc(sizeof *all + (size_t)n * sizeof *all->requests);
    if (!all)
        return qat_out_of_memory(err, "ranks");
    int code = MPI_SUCCESS;
    *all = (messages){.began = seconds()};
    for (int i = 0; i < x->n_send; i++)
        all->bytes += x->send[i].bytes;
    for (int i = 0; !code && i < x->n_receive; i++)
        code = start_piece(m, &x->receive[i], x->channel, false, all);
    for (int i = 0; !code && i < x->n_send; i++)
        code = start_piece(m, &x->send[i], x->channel, true, all);
    x->handle = all;
    return code ? failed(code, err) : QAT_OK;
}

/** A line of the timeline: rank, channel, begin, begin of waiting (empty: none), end, bytes. */
static void note(const mpi_ranks *m, const qat_exchange *x, const messages *all)
{
    if (!m->timeline)
        return;
    fprintf(m->timeline, "%d,%d,%.6f,", m->table.rank, x->channel, all->began);
    if (all->waited > 0)
        fprintf(m->timeline, "%.6f", all->waited);
    fprintf(m->timeline, ",%.6f,%zu\n", seconds(), all->bytes);
}

static qat_status done(void *context, qat_exchange *x, bool wait, bool *is_done, qat_error *err)
{
    messages *all = x->handle;
    int flag = 0, code = MPI_SUCCESS;
    if (wait)
        all->waited = seconds();
    for (int spins = 0; !code && !flag; spins++) {
        code = MPI_Testall(all->n, all->requests, &flag, MPI_STATUSES_IGNORE);
        if (!wait)
            break;
        if (!flag && spins < SPINS)
            sched_yield();
        else if (!flag)
            sleep_us(SLEEP_US);
    }
    *is_done = flag;
    if (flag) {
        note(context, x, all);
        free(all);
        x->handle = NULL;
    }
    return code ? failed(code, err) : QAT_OK;
}

static const char *name(void *context)
{
    const mpi_ranks *m = context;
    return m->names[m->table.rank];
}

/* ------------------------------------------------------------------ signs of life */

static void tell_silence(const mpi_ranks *m, int rank)
{
    fprintf(stderr,
            "%s: %s has shown no sign of life for %d seconds: it is dead, stopped or cut off. All "
            "ranks end; --resume continues from the last checkpoint\n",
            m->names[m->table.rank], m->names[rank], m->timeout);
}

static void *watch(void *context)
{
    mpi_ranks *m = context;
    int const n = m->table.count, next = (m->table.rank + 1) % n;
    int const before = (m->table.rank + n - 1) % n;
    double const every = m->timeout < 10 ? m->timeout / 20.0 : 0.5;
    char sign = 0, seen = 0;
    MPI_Request sending = MPI_REQUEST_NULL, receiving;
    MPI_Irecv(&seen, 1, MPI_BYTE, before, 0, m->life, &receiving);
    double turn = seconds();
    for (double last = turn, told = 0; !atomic_load(&m->ends); sleep_us(50000)) {
        int sent, came;
        if (seconds() - turn > STOPPED_SECONDS) /* this process was stopped, as maybe all were */
            last = seconds();
        turn = seconds();
        MPI_Test(&sending, &sent, MPI_STATUS_IGNORE);
        if (sent && seconds() - told >= every) {
            told = seconds();
            MPI_Isend(&sign, 1, MPI_BYTE, next, 0, m->life, &sending);
        }
        for (MPI_Test(&receiving, &came, MPI_STATUS_IGNORE); came;
             MPI_Test(&receiving, &came, MPI_STATUS_IGNORE)) {
            last = seconds();
            MPI_Irecv(&seen, 1, MPI_BYTE, before, 0, m->life, &receiving);
        }
        if (seconds() - last <= m->timeout)
            continue;
        tell_silence(m, before);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    MPI_Cancel(&receiving);
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    if (sending != MPI_REQUEST_NULL)
        MPI_Request_free(&sending);
    return NULL;
}

/* ------------------------------------------------------------------ opening, closing */

/** QAT_RANKS_TIMELINE=NAME: each rank writes NAME.RANK.csv, a line for each exchange. */
static FILE *open_timeline(int rank)
{
    char path[4096];
    const char *wanted = getenv("QAT_RANKS_TIMELINE");
    if (!wanted || !*wanted)
        return NULL;
    snprintf(path, sizeof path, "%.4000s.%d.csv", wanted, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        perror(path);
    else
        fputs("rank,channel,begin,waited_from,end,bytes\n", file);
    return file;
}

static void gather_names(mpi_ranks *m)
{
    char host[64] = "", mine[NAME_MAX_LENGTH] = "";
    gethostname(host, sizeof host - 1);
    snprintf(mine, sizeof mine, "rank %d (%.60s, process %ld)", m->table.rank, host,
             (long)getpid());
    MPI_Allgather(mine, sizeof mine, MPI_CHAR, m->names, sizeof mine, MPI_CHAR, m->pieces);
}

static bool start(mpi_ranks *m, const char *program)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &m->table.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->table.count);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->pieces);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->life);
    MPI_Comm_set_errhandler(m->pieces, MPI_ERRORS_RETURN);
    if (m->table.count < 2) {
        fprintf(stderr,
                "%s: started as one of several processes, but MPI knows of one: use the mpirun of "
                "the MPI that the build has\n",
                program);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    m->names = calloc((size_t)m->table.count, sizeof *m->names);
    if (!m->names)
        return false;
    gather_names(m);
    m->timeline = open_timeline(m->table.rank);
    return !m->watched || !pthread_create(&m->watcher, NULL, watch, m);
}

const qat_ranks *ranks_open(const char *program, int timeout)
{
    int provided = MPI_THREAD_SINGLE;
    mpi_ranks *m = ranks_are_many() ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return NULL;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided))
        exit(EXIT_FAILURE);
    m->table = (qat_ranks){.context = m, .begin = begin, .done = done, .name = name};
    m->timeout = timeout;
    m->watched = provided >= MPI_THREAD_MULTIPLE;
    if (!start(m, program)) {
        fputs("out of memory\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    if (!m->watched && !m->table.rank)
        fputs(
            "warning: this MPI takes calls of one thread only: a rank that hangs is not noticed\n",
            stderr);
    return &m->table;
}

/** The slowest rank may write a checkpoint meanwhile, so all give signs of life until all are here.
 */
void ranks_close(const qat_ranks *ranks)
{
    if (!ranks)
        return;
    mpi_ranks *m = ranks->context;
    MPI_Request request;
    int all_here = 0;
    int code = MPI_Ibarrier(m->pieces, &request);
    for (; !code && !all_here; sleep_us(1000))
        code = MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
    if (code) {
        qat_error err;
        failed(code, &err);
        fprintf(stderr, "%s: %s\n", m->names[m->table.rank], err.message);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    atomic_store(&m->ends, true);
    if (m->watched)
        pthread_join(m->watcher, NULL);
    MPI_Finalize();
    if (m->timeline)
        fclose(m->timeline);
    free(m->names);
    free(m);
}

/** Most errors are those of all ranks, and rank 0 tells them; others have some time for theirs. */
void ranks_fail(const qat_ranks *ranks, const char *program, const char *message, int status)
{
    enum { LATER_US = 2000000 };
    const mpi_ranks *m = ranks->context;
    if (ranks->rank)
        sleep_us(LATER_US);
    if (ranks->rank)
        fprintf(stderr, "%s: %s: %s\n", program, m->names[ranks->rank], message);
    else
        fprintf(stderr, "%s: %s\n", program, message);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

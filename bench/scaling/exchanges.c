/**
 * What exchanges cost here, with the calls that training makes. Rank 0 prints one JSON object:
 *
 *     mpirun -n 4 exchanges
 *
 *     exchange    seconds until 8 bytes have gone from every rank to every other
 *     byte        what one more byte adds that every rank sends and gets
 *     add         seconds to add a float to another, of vectors in memory
 *
 * Each figure is the least of some rounds, or is made of such.
 */
#include "tools/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, SMALL = 200, LARGE = 8, BYTES = 1 << 20, VALUES = 1 << 18 };

typedef struct buffers {
    char *out, *in;
    qat_piece *send, *receive;
} buffers;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void stop(const qat_ranks *ranks, const qat_error *err)
{
    ranks_fail(ranks, "exchanges", err->message, EXIT_FAILURE);
}

/** Send some bytes to every other rank, and get as many. */
static void exchange(const qat_ranks *ranks, const buffers *b, size_t bytes)
{
    qat_exchange x = {.send = b->send, .receive = b->receive};
    qat_error err;
    bool done;
    for (int rank = 0; rank < ranks->count; rank++) {
        if (rank == ranks->rank)
            continue;
        x.send[x.n_send++] = (qat_piece){rank, b->out, bytes};
        x.receive[x.n_receive] = (qat_piece){rank, b->in + (size_t)x.n_receive * bytes, bytes};
        x.n_receive++;
    }
    if (ranks->begin(ranks->context, &x, &err) ||
        ranks->done(ranks->context, &x, true, &done, &err))
        stop(ranks, &err);
}

/** The least time of one such exchange. */
static double time_of(const qat_ranks *ranks, const buffers *b, size_t bytes, int repeat)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        exchange(ranks, b, 8);
        double const begin = seconds();
        for (int i = 0; i < repeat; i++)
            exchange(ranks, b, bytes);
        double const time = (seconds() - begin) / repeat;
        if (!round || time < least)
            least = time;
    }
    return least;
}

static void add(float *a, const float *b, int values)
{
    for (int i = 0; i < values; i++)
        a[i] += b[i];
}

static double time_of_adding(float *a, const float *b)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double const begin = seconds();
        add(a, b, VALUES);
        double const time = (seconds() - begin) / VALUES;
        if (!round || time < least)
            least = time;
    }
    return least;
}

int main(void)
{
    const qat_ranks *ranks = ranks_open("exchanges", 60);
    if (!ranks) {
        fputs("exchanges: start it by mpirun, with at least two processes\n", stderr);
        return 2;
    }
    size_t const n = (size_t)ranks->count;
    buffers const b = {calloc(1, BYTES), calloc(n, BYTES), calloc(n, sizeof(qat_piece)),
                       calloc(n, sizeof(qat_piece))};
    if (!b.out || !b.in || !b.send || !b.receive)
        abort();
    double const one = time_of(ranks, &b, 8, SMALL);
    double const large = time_of(ranks, &b, BYTES, LARGE);
    double const adding = time_of_adding((float *)(void *)b.in, (const float *)(void *)b.out);
    if (!ranks->rank)
        printf("{\"ranks\": %d, \"exchange\": %.3e, \"byte\": %.3e, \"add\": %.3e}\n", ranks->count,
               one, (large - one) / ((double)(n - 1) * BYTES), adding);
    free(b.out);
    free(b.in);
    free(b.send);
    free(b.receive);
    ranks_close(ranks);
    return 0;
}

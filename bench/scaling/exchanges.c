/**
 * What exchanges cost here, with the calls that training makes. Rank 0 prints one JSON object:
 *
 *     mpirun -n 4 exchanges [PROFILE SECONDS]
 *
 *     exchange    seconds until 8 bytes have gone from every rank to every other
 *     message     what one more message of 8 bytes adds to an exchange
 *     byte        what one more byte adds that every rank sends and gets
 *     add         seconds to add a float to another, of vectors in memory
 *     sums        seconds that sums add to a step which computes for SECONDS: the messages, and
 *                 waiting for the slowest rank each time; 0 without a PROFILE
 *
 * PROFILE says how much is computed before each sum, and how long its message is (model.awk). The
 * step is played with additions of vectors, once with the sums and once without. Each figure is the
 * least of some rounds, or is made of such.
 */
#include "tools/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 15,
    SMALL = 200,
    LARGE = 8,
    MESSAGES = 9,
    BYTES = 1 << 20,
    VALUES = 1 << 18,
    BLOCK = 1 << 12, /* values that playing a step adds at once: about a microsecond */
    MOST_SUMS = 4096
};

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
    ranks_fail(ranks, "exchanges", err->message);
}

/** Send `messages` messages of some bytes to every other rank, and get as many. */
static void exchange(const qat_ranks *ranks, const buffers *b, size_t bytes, int messages)
{
    qat_exchange x = {.send = b->send, .receive = b->receive};
    qat_error err;
    bool done;
    for (int rank = 0; rank < ranks->count; rank++)
        for (int i = 0; rank != ranks->rank && i < messages; i++) {
            x.send[x.n_send++] = (qat_piece){rank, b->out, bytes};
            x.receive[x.n_receive] = (qat_piece){rank, b->in + (size_t)x.n_receive * bytes, bytes};
            x.n_receive++;
        }
    if (ranks->begin(ranks->context, &x, &err) ||
        ranks->done(ranks->context, &x, true, &done, &err))
        stop(ranks, &err);
}

/** The least time of one such exchange. */
static double time_of(const qat_ranks *ranks, const buffers *b, size_t bytes, int messages,
                      int repeat)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        exchange(ranks, b, 8, 1);
        double const begin = seconds();
        for (int i = 0; i < repeat; i++)
            exchange(ranks, b, bytes, messages);
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

/* ------------------------------------------------------------------ playing a step */

typedef struct step {
    int n;
    size_t bytes[MOST_SUMS];
    double share[MOST_SUMS]; /* of the step's computing, before the sum */
} step;

static bool read_step(const char *file, step *s)
{
    FILE *f = fopen(file, "r");
    char line[128];
    s->n = 0;
    while (f && s->n < MOST_SUMS && fgets(line, sizeof line, f))
        if (sscanf(line, "sum %zu %lf", &s->bytes[s->n], &s->share[s->n]) == 2 &&
            s->bytes[s->n] <= BYTES)
            s->n++;
    if (f)
        fclose(f);
    return s->n > 0;
}

/** The time of a step of `blocks` blocks, with its sums or without. */
static double play(const qat_ranks *ranks, const buffers *b, const step *s, double blocks,
                   bool sums)
{
    float *const to = (float *)(void *)b->in;
    const float *const from = (const float *)(void *)b->out;
    double due = 0, done = 0;
    exchange(ranks, b, 8, 1);
    double const begin = seconds();
    for (int i = 0; i < s->n; i++) {
        for (due += s->share[i] * blocks; done < due; done++)
            add(to, from, BLOCK);
        if (sums)
            exchange(ranks, b, s->bytes[i], 1);
    }
    for (; done < blocks; done++)
        add(to, from, BLOCK);
    return seconds() - begin;
}

/** The least time of a step. */
static double time_of_step(const qat_ranks *ranks, const buffers *b, const step *s, double blocks,
                           bool sums)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double const time = play(ranks, b, s, blocks, sums);
        if (!round || time < least)
            least = time;
    }
    return least;
}

/** The largest of the ranks' numbers. */
static double largest(const qat_ranks *ranks, const buffers *b, double number)
{
    memcpy(b->out, &number, sizeof number);
    exchange(ranks, b, sizeof number, 1);
    for (int i = 0; i < ranks->count - 1; i++) {
        double other;
        memcpy(&other, b->in + (size_t)i * sizeof other, sizeof other);
        number = other > number ? other : number;
    }
    return number;
}

/** What sums add to a step that computes for `computing` seconds. */
static double time_of_sums(const qat_ranks *ranks, const buffers *b, const step *s,
                           double computing)
{
    double const some = 10000, time = time_of_step(ranks, b, s, some, false);
    double const blocks = some * computing / largest(ranks, b, time);
    double const apart = time_of_step(ranks, b, s, blocks, false);
    return time_of_step(ranks, b, s, blocks, true) - apart;
}

int main(int argc, char **argv)
{
    static step played;
    if (argc != 1 && (argc != 3 || !read_step(argv[1], &played))) {
        fputs("usage: exchanges [PROFILE SECONDS]; PROFILE has lines: sum BYTES SHARE\n", stderr);
        return 2;
    }
    const qat_ranks *ranks = ranks_open("exchanges", 60);
    if (!ranks) {
        fputs("exchanges: start it by mpirun, with at least two processes\n", stderr);
        return 2;
    }
    size_t const pieces = (size_t)ranks->count * MESSAGES;
    buffers const b = {calloc(1, BYTES), calloc((size_t)ranks->count, BYTES),
                       calloc(pieces, sizeof(qat_piece)), calloc(pieces, sizeof(qat_piece))};
    if (!b.out || !b.in || !b.send || !b.receive)
        abort();
    double const one = time_of(ranks, &b, 8, 1, SMALL);
    double const more = time_of(ranks, &b, 8, MESSAGES, SMALL);
    double const large = time_of(ranks, &b, BYTES, 1, LARGE);
    double const sums = argc == 3 ? time_of_sums(ranks, &b, &played, atof(argv[2])) : 0;
    double const adding = time_of_adding((float *)(void *)b.in, (const float *)(void *)b.out);
    int const others = ranks->count - 1;
    if (!ranks->rank)
        printf("{\"ranks\": %d, \"exchange\": %.3e, \"message\": %.3e, \"byte\": %.3e, \"add\": "
               "%.3e, \"sums\": %.3e}\n",
               ranks->count, one, (more - one) / (others * (MESSAGES - 1)),
               (large - one) / ((double)others * BYTES), adding, sums);
    free(b.out);
    free(b.in);
    free(b.send);
    free(b.receive);
    ranks_close(ranks);
    return 0;
}

/**
 * How long the steps of ranks take without messages: processes that train side by side, each its
 * part of every batch. An exchange brings what this rank itself sends, so all is computed that a
 * rank computes, merging included. Prints one JSON object:
 *
 *     apart RECIPE RANKS [SECTION.KEY=VALUE]...
 *
 *     apart       seconds of a step if no rank waits for another
 *     together    seconds of a step if all wait for the slowest at each sum, as in training
 *
 * Both are means over the ranks, of the second half of the run. What "comes" is copied, so moving
 * bytes once within this machine is a part of them. The gradients are wrong: set a learning rate of
 * almost 0, or weights may overflow. Files are written to the recipe's output.dir.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "qat/qat.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS_MAX = 256,
    SUMS = 0, /* the channel for whose exchanges all wait */
    SPINS = 2000,
    SLEEP_NS = 20000
};

/** What the processes share. */
typedef struct common {
    int ranks;
    bool together;
    atomic_int came;        /* how often a rank has come to a sum */
    double time[RANKS_MAX]; /* seconds of a step; 0: the rank has failed */
} common;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ------------------------------------------------------------------ ranks without messages */

static qat_status begin(void *context, qat_exchange *x, qat_error *err)
{
    (void)context, (void)err;
    x->handle = x;
    return QAT_OK;
}

/** Fill what would come from others with what this rank sends. */
static void answer(const qat_exchange *x)
{
    for (int i = 0; i < x->n_receive; i++) {
        qat_piece const *to = &x->receive[i];
        size_t n = 0;
        if (x->n_send) {
            qat_piece const *from = &x->send[i % x->n_send];
            n = from->bytes < to->bytes ? from->bytes : to->bytes;
            memcpy(to->at, from->at, n);
        }
        memset((char *)to->at + n, 0, to->bytes - n);
    }
}

/** Look, and let others compute meanwhile, as ranks under MPI do (tools/ranks/ranks_mpi.c). */
static void wait_for_all(common *c)
{
    int const turn = atomic_fetch_add(&c->came, 1) / c->ranks;
    for (int spins = 0; c->together && atomic_load(&c->came) / c->ranks <= turn; spins++)
        if (spins < SPINS)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
}

static qat_status done(void *context, qat_exchange *x, bool wait, bool *is_done, qat_error *err)
{
    (void)err;
    answer(x);
    if (wait && x->channel == SUMS)
        wait_for_all(context);
    x->handle = NULL;
    *is_done = true;
    return QAT_OK;
}

static const char *name(void *context)
{
    (void)context;
    return "this rank";
}

/* ------------------------------------------------------------------ one rank */

typedef struct watch {
    double half, end; /* when half of the run was over, and all of it */
    int64_t steps;    /* of the second half */
} watch;

static void look(void *context, const qat_train_progress *p)
{
    watch *w = context;
    if (p->event != QAT_EVENT_STEP)
        return;
    w->end = seconds();
    if (p->step <= p->steps / 2)
        w->half = w->end;
    w->steps = p->step - p->steps / 2;
}

/** Tells an error, and returns 0. */
static double train(common *c, int rank, const char *file, const char *const *sets, int n_sets)
{
    watch w = {0};
    qat_recipe *recipe = NULL;
    qat_train_result result;
    qat_error err = {0};
    qat_ranks const ranks = {rank, c->ranks, c, begin, done, name};
    qat_train_options const options = {.struct_size = sizeof options,
                                       .overwrite = true,
                                       .progress = look,
                                       .context = &w,
                                       .ranks = c->ranks > 1 ? &ranks : NULL};
    qat_set_threads(1);
    qat_status st = qat_recipe_load(&recipe, file, sets, n_sets, &err);
    if (!st)
        st = qat_train(recipe, &options, &result, &err);
    if (st)
        fprintf(stderr, "apart: %s\n", err.message);
    qat_recipe_free(recipe);
    return st || w.steps < 1 ? 0 : (w.end - w.half) / (double)w.steps;
}

static void end_all(const pid_t *children, int n)
{
    for (int i = 0; i < n; i++)
        kill(children[i], SIGKILL);
}

/** The mean over the ranks; 0 after an error, which was told. */
static double time_of_step(common *c, const char *file, const char *const *sets, int n_sets)
{
    pid_t children[RANKS_MAX];
    double sum = 0;
    bool failed = false;
    for (int rank = 0; rank < c->ranks; rank++) {
        children[rank] = fork();
        if (children[rank] < 0) {
            perror("apart");
            end_all(children, rank);
            return 0;
        }
        if (children[rank])
            continue;
        c->time[rank] = train(c, rank, file, sets, n_sets);
        _exit(c->time[rank] > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    for (int status; wait(&status) > 0;) {
        if (status && !failed)
            end_all(children, c->ranks);
        if (WIFSIGNALED(status) && !failed)
            fprintf(stderr, "apart: signal %d ended a rank\n", WTERMSIG(status));
        failed |= status != 0;
    }
    for (int rank = 0; rank < c->ranks; rank++)
        sum += c->time[rank];
    return failed ? 0 : sum / c->ranks;
}

int main(int argc, char **argv)
{
    int const ranks = argc > 2 ? atoi(argv[2]) : 0;
    if (ranks < 1 || ranks > RANKS_MAX) {
        fputs("usage: apart RECIPE RANKS [SECTION.KEY=VALUE]...\n", stderr);
        return 2;
    }
    common *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return EXIT_FAILURE;
    c->ranks = ranks;
    double time[2];
    for (int together = 0; together < 2; together++) {
        c->together = together;
        atomic_store(&c->came, 0);
        time[together] = time_of_step(c, argv[1], (const char *const *)argv + 3, argc - 3);
        if (!(time[together] > 0))
            return EXIT_FAILURE;
    }
    printf("{\"ranks\": %d, \"apart\": %.6f, \"together\": %.6f}\n", ranks, time[0], time[1]);
    return EXIT_SUCCESS;
}
